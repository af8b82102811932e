//! Zenoh in the bench of events: `ends server PROCESSOR FIFO` is a router, `ends client PROCESSOR FIFO ADDRESS` has a
//! publisher and its subscribers, which are clients of the router. An event passes two hops, as through a channel.
//! An argument that is not used is `-`. The file crates/probe/src/laboratory/end.rs describes the protocol.

mod end;

use std::io::{BufRead, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use end::{greet, now_ns, place};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::Sample;
use zenoh::{Config, Session, Wait};

type Outcome<T> = Result<T, String>;

/// Events of a stream that not all subscribers have received, as in crates/probe/src/laboratory/end/fan.rs.
const WINDOW: u64 = 64;
const WARM_UP: usize = 64;
const PER_CLOCK_READ: u64 = 16;
const CONSUMERS_MAX: u32 = 1_000;
const PATIENCE: Duration = Duration::from_secs(10);
const KEY: &str = "bench/event";
/// The sequence number of a probe, which is pushed until each subscriber has received one. Its receipts do not count.
const PROBE: u32 = u32::MAX;

fn words(error: impl std::fmt::Display) -> String {
    error.to_string().replace('\n', " ")
}

fn open(mode: &str, listen: &[String], connect: &[String]) -> Outcome<Session> {
    let mut config = Config::default();
    for (key, value) in [
        ("mode", format!("{mode:?}")),
        ("listen/endpoints", format!("{listen:?}")),
        ("connect/endpoints", format!("{connect:?}")),
        ("scouting/multicast/enabled", "false".to_owned()),
        ("scouting/gossip/enabled", "false".to_owned()),
    ] {
        config.insert_json5(key, &value).map_err(words)?;
    }
    zenoh::open(config).wait().map_err(words)
}

fn serve() -> Outcome<()> {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|probe| probe.local_addr());
    let at = format!("tcp/{}", free.map_err(words)?);
    let _router = open("router", std::slice::from_ref(&at), &[])?;
    greet(&at);
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(0);
}

/// Counts receipts, and wakes the publishing thread once all subscribers have an event.
struct Gate {
    consumers: u32,
    receipts: [AtomicU32; WINDOW as usize],
    whole: AtomicU64,
    last_ns: AtomicI64,
    found: AtomicU32,
    supplier: Thread,
}

impl Gate {
    fn receive(&self, number: u32) {
        let receipts = &self.receipts[number as usize % WINDOW as usize];
        if receipts.fetch_add(1, Ordering::AcqRel) + 1 < self.consumers {
            return;
        }
        self.last_ns.store(now_ns(), Ordering::Relaxed);
        receipts.store(0, Ordering::Relaxed);
        self.whole.fetch_add(1, Ordering::Release);
        self.supplier.unpark();
    }

    fn wait(&self, count: u64) -> Outcome<()> {
        let mut until = None;
        while self.whole.load(Ordering::Acquire) < count {
            let until = *until.get_or_insert_with(|| Instant::now() + PATIENCE);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("an event has not arrived".to_owned());
            }
            std::thread::park_timeout(left);
        }
        Ok(())
    }
}

fn subscribe(session: &Session, gate: &Arc<Gate>) -> Outcome<Subscriber<()>> {
    let gate = Arc::clone(gate);
    let is_found = AtomicBool::new(false);
    let receive = move |sample: Sample| {
        let payload = sample.payload().to_bytes();
        match payload.first_chunk::<4>().map(|first| u32::from_ne_bytes(*first)) {
            Some(PROBE) => {
                if !is_found.swap(true, Ordering::Relaxed) {
                    gate.found.fetch_add(1, Ordering::Release);
                }
            }
            None => {}
            Some(number) => gate.receive(number),
        }
    };
    let subscriber = session.declare_subscriber(KEY).callback(receive);
    subscriber.wait().map_err(words)
}

/// One run: a publisher and its subscribers.
struct Run {
    publisher: Publisher<'static>,
    gate: Arc<Gate>,
    payload: Vec<u8>,
    pushed: u64,
    // Dropped last.
    _subscribers: Vec<Subscriber<()>>,
    _sessions: Vec<Session>,
}

impl Run {
    fn begin(router: &str, consumers: u32, are_apart: bool, octets: usize, express: bool) -> Outcome<Self> {
        let gate = Arc::new(Gate {
            consumers,
            receipts: std::array::from_fn(|_| AtomicU32::new(0)),
            whole: AtomicU64::new(0),
            last_ns: AtomicI64::new(0),
            found: AtomicU32::new(0),
            supplier: std::thread::current(),
        });
        let client = || open("client", &[], &[router.to_owned()]);
        let mut sessions = vec![client()?];
        let mut subscribers = Vec::new();
        for index in 0..consumers {
            if index == 0 || are_apart {
                sessions.push(client()?);
            }
            subscribers.push(subscribe(&sessions[sessions.len() - 1], &gate)?);
        }
        let publisher = sessions[0]
            .declare_publisher(KEY)
            .congestion_control(CongestionControl::Block)
            .express(express)
            .wait()
            .map_err(words)?;
        let mut run = Self {
            publisher,
            gate,
            payload: vec![0; octets.max(4)],
            pushed: 0,
            _subscribers: subscribers,
            _sessions: sessions,
        };
        let until = Instant::now() + PATIENCE;
        while run.gate.found.load(Ordering::Acquire) < consumers {
            if Instant::now() > until {
                return Err("not all subscribers were found".to_owned());
            }
            run.put(PROBE)?;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(run)
    }

    fn put(&mut self, number: u32) -> Outcome<()> {
        self.payload[..4].copy_from_slice(&number.to_ne_bytes());
        self.publisher.put(&self.payload[..]).wait().map_err(words)
    }

    fn push(&mut self) -> Outcome<()> {
        let number = (self.pushed % u64::from(PROBE)) as u32;
        self.pushed += 1;
        self.put(number)
    }

    fn one_by_one(mut self, count: usize, budget_ns: i64) -> Outcome<Vec<u8>> {
        let mut taken: Vec<u32> = Vec::with_capacity(count);
        let mut begin_ns = 0;
        for at in 0..WARM_UP + count {
            let before_ns = now_ns();
            if at == WARM_UP {
                begin_ns = before_ns;
            }
            if at > WARM_UP && before_ns - begin_ns >= budget_ns {
                break;
            }
            self.push()?;
            self.gate.wait(self.pushed)?;
            if at >= WARM_UP {
                let took = self.gate.last_ns.load(Ordering::Relaxed) - before_ns;
                taken.push(u32::try_from(took).unwrap_or(u32::MAX));
            }
        }
        let mut answer = format!("ok {}\n", taken.len()).into_bytes();
        answer.extend(taken.iter().flat_map(|ns| ns.to_ne_bytes()));
        Ok(answer)
    }

    fn stream(mut self, count: u64, budget_ns: i64) -> Outcome<Vec<u8>> {
        let begin_ns = now_ns();
        while self.pushed < count && now_ns() - begin_ns < budget_ns {
            for _ in 0..PER_CLOCK_READ {
                self.gate.wait((self.pushed + 1).saturating_sub(WINDOW))?;
                self.push()?;
            }
        }
        self.gate.wait(self.pushed)?;
        Ok(format!("sum {} {}\n", self.pushed, now_ns() - begin_ns).into_bytes())
    }
}

fn obey(router: &str, line: &str) -> Outcome<Vec<u8>> {
    let unknown = || "this is no command".to_owned();
    let mut all = line.split_whitespace();
    let mut kind = all.next().ok_or_else(unknown)?.split('/');
    let mut number = || all.next()?.parse::<i64>().ok();
    let mut next = || number().ok_or_else(unknown);
    let (octets, _, count, budget_ns) = (next()?, next()?, next()?, next()?);
    let is_stream = kind.next().ok_or_else(unknown)?.ends_with("stream");
    let consumers: u32 = kind.next().and_then(|it| it.parse().ok()).ok_or_else(unknown)?;
    let are_apart = kind.next() == Some("apart");
    if !(1..=CONSUMERS_MAX).contains(&consumers) {
        return Err(unknown());
    }
    let octets = usize::try_from(octets).map_err(words)?;
    let run = Run::begin(router, consumers, are_apart, octets, !is_stream)?;
    if is_stream {
        run.stream(count.unsigned_abs(), budget_ns)
    } else {
        run.one_by_one(usize::try_from(count).map_err(words)?, budget_ns)
    }
}

fn call(router: &str) -> Outcome<()> {
    greet("ready");
    for line in std::io::stdin().lock().lines() {
        let answer = obey(router, &line.map_err(words)?);
        let answer = answer.unwrap_or_else(|fault| format!("error {fault}\n").into_bytes());
        let mut out = std::io::stdout().lock();
        out.write_all(&answer).and_then(|()| out.flush()).map_err(words)?;
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize| arguments.get(at).map_or("-", String::as_str);
    place(argument(2), argument(3));
    let outcome = match argument(1) {
        "server" => serve(),
        _ => call(argument(4)),
    };
    if let Err(fault) = outcome {
        eprintln!("zenoh: {fault}");
        std::process::exit(1);
    }
    // Threads of zenoh's are not stopped first.
    std::process::exit(0);
}

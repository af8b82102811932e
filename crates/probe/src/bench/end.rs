//! One end of a bench: a process that serves, or one that calls when it is told to. Foreign ends speak the same few words
//! (`bench/omniorb/ends.cc`).
//!
//! An end first says its scheduling class and, where it serves, what to call: `fifo REFERENCE`, `other REFERENCE`. A calling end is told
//! `KIND A B COUNT BUDGET_NS` (octets: A of them; structs: A elements; raw: A octets there and B back) and answers `ok N` and N round trips
//! of four octets each, nanoseconds in this machine's order, or `error WORDS`. Every end ends with its standard input.

use std::io::{BufRead as _, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use deckwatch_orb::{Orb, Servant};
use deckwatch_os::schedule::{Class, class, limit_real_time, set_affinity, set_class};

use super::case::element;
use super::error::BenchError;
use super::idl::deckwatch::{ComplexStruct, EchoRef, EchoSkeleton};
use super::mirror::Mirror;
use crate::limits::{BENCH_OCTETS_MAX, BENCH_SAMPLES_MAX, REAL_TIME_UNBLOCKED_MAX};
use deckwatch_os::clock::monotonic_ns;

/// What an end does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers over plain TCP.
    RawServer,
    /// Asks over plain TCP.
    RawClient,
    /// Serves an object of our ORB.
    OrbServer,
    /// Calls an object by our ORB.
    OrbClient,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [
        Self::RawServer,
        Self::RawClient,
        Self::OrbServer,
        Self::OrbClient,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::RawServer => "raw-server",
            Self::RawClient => "raw-client",
            Self::OrbServer => "orb-server",
            Self::OrbClient => "orb-client",
        }
    }
}

/// What an end is told when it starts.
#[derive(Clone, Debug)]
pub struct EndPlan {
    /// What it does.
    pub role: Role,
    /// The processor it is bound to.
    pub processor: Option<u32>,
    /// Its SCHED_FIFO priority; none: time sharing.
    pub fifo: Option<u8>,
    /// How long our servant keeps busy before it answers.
    pub servant_delay: Duration,
    /// What a client calls.
    pub reference: Option<String>,
}

/// Plays an end until its standard input ends.
///
/// # Errors
/// [`BenchError::System`] where it cannot begin; later failures are answers.
pub fn run_end(plan: &EndPlan) -> Result<(), BenchError> {
    if let Some(processor) = plan.processor {
        set_affinity(&[processor]).map_err(system("The processor cannot be had"))?;
    }
    let reference = plan.reference.as_deref().unwrap_or_default();
    match plan.role {
        Role::RawServer => raw_server(plan),
        Role::OrbServer => orb_server(plan),
        Role::RawClient => {
            place(plan.fifo);
            commands(|command, samples| raw_run(reference, command, samples))
        }
        Role::OrbClient => {
            let orb = Orb::builder().build().map_err(refused("The ORB"))?;
            let object = orb.string_to_object(reference);
            let object = object.map_err(refused("The reference"))?;
            let object = object.ok_or_else(|| refused("The reference")("it is nil"))?;
            let echo = EchoRef::unchecked_narrow(object);
            orb.seal();
            place(plan.fifo);
            commands(|command, samples| orb_run(&echo, command, samples))
        }
    }
}

pub(crate) fn system(doing: &'static str) -> impl Fn(std::io::Error) -> BenchError {
    move |source| BenchError::System { doing, source }
}

pub(crate) fn refused<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> BenchError {
    move |error| BenchError::EndFailed {
        what: what.to_owned(),
        reason: error.to_string(),
    }
}

/// Puts the calling thread into its class. What it got is told by [`greet`].
pub(crate) fn place(fifo: Option<u8>) {
    if let Some(priority) = fifo {
        let _kept_as_it_is = limit_real_time(REAL_TIME_UNBLOCKED_MAX);
        let _told_by_greet = set_class(Class::Fifo(priority));
    }
}

/// Says the calling thread's class, and what to call.
pub(crate) fn greet(reference: &str) -> Result<(), BenchError> {
    let word = match class() {
        Ok(Class::Fifo(_)) => "fifo",
        _ => "other",
    };
    let mut out = std::io::stdout();
    writeln!(out, "{word} {reference}")
        .and_then(|()| out.flush())
        .map_err(system("Nobody listens"))
}

/// Waits for the end of the standard input.
pub(crate) fn await_end() {
    let _whatever_came = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}

fn raw_server(plan: &EndPlan) -> Result<(), BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(system("Cannot listen"))?;
    let address = listener.local_addr().map_err(system("Cannot listen"))?;
    let fifo = plan.fifo;
    let serving = move || {
        place(fifo);
        if greet(&address.to_string()).is_err() {
            return;
        }
        // One client after the other; a lost one makes room for the next.
        for stream in listener.incoming().flatten() {
            let _client_gone = raw_serve(stream);
        }
    };
    std::thread::Builder::new()
        .name("raw-server".to_owned())
        .spawn(serving)
        .map_err(system("A thread cannot be started"))?;
    await_end();
    Ok(())
}

/// Answers every request of the announced size with as many octets as announced.
fn raw_serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut sizes = [0; 8];
    stream.read_exact(&mut sizes)?;
    let size_at = |at: usize| {
        let octets = sizes[at..].first_chunk().copied().unwrap_or_default();
        (u32::from_ne_bytes(octets) as usize).min(BENCH_OCTETS_MAX)
    };
    let (mut request, reply) = (vec![0; size_at(0)], vec![7; size_at(4)]);
    loop {
        stream.read_exact(&mut request)?;
        stream.write_all(&reply)?;
    }
}

fn orb_server(plan: &EndPlan) -> Result<(), BenchError> {
    let fifo = plan.fifo;
    let orb = Orb::builder()
        .listen("127.0.0.1:0")
        .map_err(refused("The endpoint"))?
        .on_thread_start(move || place(fifo))
        .build()
        .map_err(refused("The ORB"))?;
    let servant: Arc<dyn Servant> = Arc::new(EchoSkeleton::new(Mirror {
        delay: plan.servant_delay,
    }));
    let root = orb.root_poa().map_err(refused("The root adapter"))?;
    let reference = root
        .servant_to_reference(&servant)
        .map_err(refused("The servant"))?;
    root.the_poa_manager()
        .activate()
        .map_err(refused("The adapter's manager"))?;
    orb.seal();
    // The class of this thread stands for that of the lane's, which are placed alike.
    place(fifo);
    greet(&reference.to_string())?;
    let _time_sharing_again = set_class(Class::Other);
    await_end();
    orb.shutdown(true).map_err(refused("The end of the ORB"))
}

/// One run that a client is told to make.
pub(crate) struct Command {
    pub(crate) kind: String,
    pub(crate) there: usize,
    pub(crate) back: usize,
    pub(crate) count: usize,
    pub(crate) budget_ns: i64,
}

impl Command {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let kind = words.next()?.to_owned();
        let mut number = || words.next()?.parse::<usize>().ok();
        Some(Self {
            kind,
            there: number()?.min(BENCH_OCTETS_MAX),
            back: number()?.min(BENCH_OCTETS_MAX),
            count: number()?.clamp(1, BENCH_SAMPLES_MAX),
            budget_ns: i64::try_from(number()?).ok()?,
        })
    }
}

/// Obeys commands until there are no more.
pub(crate) fn commands(
    mut run: impl FnMut(&Command, &mut Samples) -> Result<(), String>,
) -> Result<(), BenchError> {
    greet("ready")?;
    let mut samples = Samples::default();
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(system("Commands cannot be read"))?;
        let outcome = Command::parse(&line)
            .ok_or_else(|| format!("'{line}' is no command"))
            .and_then(|command| {
                samples.prepare(&command);
                run(&command, &mut samples)
            });
        answer(outcome.map(|()| samples.taken())).map_err(system("Nobody listens"))?;
    }
    Ok(())
}

fn answer(outcome: Result<&[u32], String>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    match outcome {
        Ok(samples) => {
            writeln!(out, "ok {}", samples.len())?;
            let octets: Vec<u8> = samples.iter().flat_map(|ns| ns.to_ne_bytes()).collect();
            out.write_all(&octets)?;
        }
        Err(words) => writeln!(out, "error {}", words.replace('\n', " "))?,
    }
    out.flush()
}

/// Round trips of one run, in memory that has been touched before.
#[derive(Default)]
pub(crate) struct Samples {
    round_trips_ns: Vec<u32>,
    count: usize,
    count_max: usize,
    budget_ns: i64,
}

impl Samples {
    fn prepare(&mut self, command: &Command) {
        self.count = 0;
        self.count_max = command.count;
        self.budget_ns = command.budget_ns;
        self.round_trips_ns.clear();
        self.round_trips_ns.resize(command.count, u32::MAX);
    }

    fn taken(&self) -> &[u32] {
        &self.round_trips_ns[..self.count]
    }

    /// Makes round trips, first some that are not measured, until the count or the time is reached. The end of one is the start of the next.
    pub(crate) fn take(
        &mut self,
        mut one: impl FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        for _ in 0..WARM_UP {
            one()?;
        }
        let begin_ns = monotonic_ns();
        let mut before_ns = begin_ns;
        while self.count < self.count_max && before_ns - begin_ns < self.budget_ns {
            one()?;
            let after_ns = monotonic_ns();
            self.round_trips_ns[self.count] =
                u32::try_from(after_ns - before_ns).unwrap_or(u32::MAX);
            self.count += 1;
            before_ns = after_ns;
        }
        Ok(())
    }
}

/// Round trips before those that count: connections, adoption, caches.
const WARM_UP: usize = 64;

fn raw_run(address: &str, command: &Command, samples: &mut Samples) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(said)?;
    stream.set_nodelay(true).map_err(said)?;
    let sizes = [command.there, command.back].map(|size| size as u32);
    stream.write_all(&sizes[0].to_ne_bytes()).map_err(said)?;
    stream.write_all(&sizes[1].to_ne_bytes()).map_err(said)?;
    let (request, mut reply) = (vec![3; command.there], vec![0; command.back]);
    samples.take(|| {
        stream.write_all(&request).map_err(said)?;
        stream.read_exact(&mut reply).map_err(said)
    })
}

fn orb_run(echo: &EchoRef, command: &Command, samples: &mut Samples) -> Result<(), String> {
    match command.kind.as_str() {
        "octets" => {
            let data: Vec<u8> = (0..command.there).map(|index| index as u8).collect();
            call(&data, samples, || echo.echo_octets(&data))
        }
        "structs" => {
            let data: Vec<ComplexStruct> = vec![element(); command.there];
            call(&data, samples, || echo.echo_complex_sequence(&data))
        }
        kind => Err(format!("'{kind}' is nothing that this end can send")),
    }
}

/// Calls until enough; the first result must be what was sent, the others as long.
fn call<T: PartialEq>(
    sent: &[T],
    samples: &mut Samples,
    one: impl Fn() -> Result<Vec<T>, deckwatch_orb::SystemException>,
) -> Result<(), String> {
    let said = |error: deckwatch_orb::SystemException| error.to_string();
    if one().map_err(said)? != sent {
        return Err("what came back is not what was sent".to_owned());
    }
    samples.take(|| {
        let got = one().map_err(said)?;
        if got.len() == sent.len() {
            Ok(())
        } else {
            Err("what came back has another length".to_owned())
        }
    })
}

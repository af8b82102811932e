//! Programs that are stopped (SIGSTOP) for longer than their timeouts, and go on. With DECKWATCH_TEST_STOP_S=60 each stop
//! lasts so many seconds.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_orb::{Servant, SystemException};

use super::*;

/// How long a client waits for a reply.
const TIMEOUT: Duration = Duration::from_millis(250);
/// Calls of a client that end in vain while its server is stopped: longer than the server's own timeout of a second.
const CALLS_IN_VAIN: usize = 5;

/// How long a stop lasts at least.
fn stop_time() -> Duration {
    let seconds = std::env::var("DECKWATCH_TEST_STOP_S").ok();
    let seconds = seconds.and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// Calls a stopped server until the stop has lasted long enough. Each call ends by its own time, with the exception for it.
fn call_in_vain(mut call: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    let mut calls = 0;
    while calls < CALLS_IN_VAIN || begun.elapsed() < stop_time() {
        let raised = call().expect_err("its server is stopped");
        assert!(is_of_a_stop(&raised), "{raised}");
        calls += 1;
    }
}

/// Calls until a server that goes on answers again.
fn call_again(mut call: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while let Err(raised) = call() {
        assert!(begun.elapsed() < PATIENCE, "{raised}");
    }
}

/// A request for `_non_existent` of a naming service, in GIOP 1.2.
fn question() -> Vec<u8> {
    let mut body =
        b"\0\0\0\x02\x03\0\0\0\0\0\0\0\0\0\0\x0bNameService\0\0\0\0\x0e_non_existent\0\0\0"
            .to_vec();
    body.extend([0; 4]);
    let mut message = b"GIOP\x01\x02\x00\x00".to_vec();
    let size = u32::try_from(body.len()).expect("few octets");
    message.extend(size.to_be_bytes());
    message.extend(body);
    message
}

#[test]
fn a_naming_server_that_was_stopped_has_each_acknowledged_name_and_serves_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("names.redb");
    let mut command = Command::new(DECKWATCH);
    command.args(["names", "serve", "--listen", "127.0.0.1:0", "--store"]);
    let server = Server::start(command.arg(&store));
    let orb = client(TIMEOUT);
    let root = names(&orb, &server);
    let (mut number, mut bound) = (0, Vec::new());
    let mut bind_next = || {
        number += 1;
        let name = format!("ship{number}");
        bind(&root, &name)?;
        bound.push(name);
        Ok(())
    };
    call_again(|| {
        for _ in 0..10 {
            bind_next()?;
        }
        Ok(())
    });
    // A message that is half there when the server stops ends during the stop.
    let mut half = TcpStream::connect(address_of(&server)).expect("it listens");
    half.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let question = question();
    half.write_all(&question[..30]).expect("it is there");
    call_again(&mut bind_next);
    server.stop();
    call_in_vain(&mut bind_next);
    half.write_all(&question[30..]).expect("it is there");
    server.go_on();
    for _ in 0..10 {
        call_again(&mut bind_next);
    }
    let mut reply = [0; 25];
    half.read_exact(&mut reply).expect("it is answered");
    assert_eq!((reply[7], reply[24]), (1, 0), "a reply: it exists");
    assert!(bound.len() >= 21, "{}", bound.len());
    assert_bound(&server, &bound);
    orb.shutdown(true).expect("it ends");
    drop(server);
    let mut command = Command::new(DECKWATCH);
    command.args(["names", "serve", "--listen", "127.0.0.1:0", "--store"]);
    assert_bound(&Server::start(command.arg(&store)), &bound);
}

/// Where a server listens that has one address.
fn address_of(server: &Server) -> std::net::SocketAddr {
    let ior: deckwatch_giop::Ior = server.reference.parse().expect("an IOR");
    let profile = ior.iiop_profiles().next().expect("one").expect("sound");
    format!("{}:{}", profile.host, profile.port)
        .parse()
        .expect("an address")
}

/// A consumer that answers a push only when it is let.
struct Gated {
    taken: Mutex<Sender<i32>>,
    gate: Mutex<Receiver<()>>,
    /// The push that waits at the gate.
    waits_at: i32,
}

impl PushConsumer for Gated {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        let number = data.extract::<i32>().expect("a long");
        let _ = self.taken.lock().expect("whole").send(number);
        if number == self.waits_at {
            let _ = self.gate.lock().expect("whole").recv();
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_channel_that_was_stopped_delivers_each_acknowledged_event() {
    let mut command = Command::new(DECKWATCH);
    command.args(["channel", "--listen", "127.0.0.1:0", "--push-timeout", "1"]);
    let server = Server::start(&mut command);
    let (orb, of_consumer) = (client(TIMEOUT), client(PATIENCE));
    let at = cos_channel(&of_consumer, &server);
    let consumers = at.for_consumers().expect("an answer").expect("one");
    let (told, taken) = channel();
    let (open, gate) = channel();
    let consumer = PushConsumerSkeleton::new(Gated {
        taken: Mutex::new(told),
        gate: Mutex::new(gate),
        waits_at: 3,
    });
    let root = of_consumer.root_poa().expect("a root adapter");
    let servant: Arc<dyn Servant> = Arc::new(consumer);
    let consumer = root.servant_to_reference(&servant).expect("a reference");
    let proxy = consumers.obtain_push_supplier().expect("an answer");
    let proxy = proxy.expect("one");
    let consumer = PushConsumerRef::unchecked_narrow(consumer);
    proxy
        .connect_push_consumer(Some(&consumer))
        .expect("connected");
    let admin = cos_channel(&of_consumer, &server);
    let connected = supplier(&admin).object().clone();
    let connected = of_consumer.object_to_string(&connected);
    let object = orb.string_to_object(&connected).expect("an IOR");
    let supplier = cos::ProxyPushConsumerRef::unchecked_narrow(object.expect("not nil"));
    let (mut number, mut acknowledged) = (0, Vec::new());
    let mut push_next = || {
        number += 1;
        push(&supplier, number)?;
        acknowledged.push(number);
        Ok(())
    };
    for _ in 0..8 {
        push_next().expect("the channel answers");
    }
    for _ in 0..3 {
        taken.recv_timeout(PATIENCE).expect("it is delivered");
    }
    // The channel waits for the answer to the third event, which comes while it is stopped.
    server.stop();
    open.send(()).expect("it waits");
    call_in_vain(&mut push_next);
    server.go_on();
    for _ in 0..8 {
        call_again(&mut push_next);
    }
    acknowledged.retain(|number| *number > 3);
    take_all(&taken, acknowledged);
    for orb in [orb, of_consumer] {
        orb.shutdown(true).expect("it ends");
    }
}

/// Takes one message of GIOP.
fn message(stream: &mut TcpStream) -> Vec<u8> {
    let mut message = vec![0; 12];
    stream.read_exact(&mut message).expect("a header");
    let size = [message[8], message[9], message[10], message[11]];
    let size = if message[6] & 1 == 0 {
        u32::from_be_bytes(size)
    } else {
        u32::from_le_bytes(size)
    };
    let mut body = vec![0; size as usize];
    stream.read_exact(&mut body).expect("a body");
    message.extend(body);
    message
}

#[test]
fn a_client_that_is_stopped_in_the_middle_of_a_bind_delays_nobody_and_learns_its_outcome() {
    let mut command = Command::new(DECKWATCH);
    command.args(["names", "serve", "--listen", "127.0.0.1:0"]);
    let server = Server::start(&mut command);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let relay = listener.local_addr().expect("it listens");
    let url = format!("corbaloc:iiop:1.2@{relay}/NameService");
    let mut command = Command::new(DECKWATCH);
    command.args(["names", "bind", "ship", "corbaloc::127.0.0.1:9/ship"]);
    command.args(["--names", &url]).env("NO_COLOR", "1");
    let command = command.stdin(Stdio::null());
    let client_process = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = client_process.spawn().expect("it starts");
    let (mut near, _) = listener.accept().expect("a caller");
    let mut far = TcpStream::connect(address_of(&server)).expect("it listens");
    // What is asked before the bind passes.
    let request = loop {
        let request = message(&mut near);
        if request.windows(5).any(|word| word == b"bind\0") {
            break request;
        }
        far.write_all(&request).expect("it serves");
        let reply = message(&mut far);
        near.write_all(&reply).expect("it waits");
    };
    stop(&process);
    far.write_all(&request).expect("it serves");
    let reply = message(&mut far);
    near.write_all(&reply).expect("the kernel takes it");
    let begun = Instant::now();
    let orb = client(PATIENCE);
    let root = names(&orb, &server);
    let mut other = 0;
    while other < 20 || begun.elapsed() < stop_time() {
        other += 1;
        bind(&root, &format!("other{other}")).expect("the service answers");
    }
    signal(&[process.id()], Signal::CONT);
    drop(near);
    let (status, said) = end_of(process);
    // A stop that is longer than its own 30 seconds ends the call.
    let is_known = status == Some(0) || said.contains("TIMEOUT") && !stop_time().is_zero();
    assert!(is_known, "{status:?}: {said}");
    assert_bound(&server, &["ship".to_owned()]);
    orb.shutdown(true).expect("it ends");
}

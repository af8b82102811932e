//! Connections through shared memory: between threads, and with a process that is killed.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use deckwatch_os::poller::{Event, Interest, Poller};
use deckwatch_os::shared::{RING_SIZE, SharedListener, SharedStream, connect};
use deckwatch_os::stream::monotonic_ns;

/// Time limit of every step of a test, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn soon() -> Option<u64> {
    Some(monotonic_ns() + PATIENCE.as_nanos() as u64)
}

/// Returns a path for this test only, in the folder for temporary files.
fn place() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("deckwatch-shared-{}-{count}", std::process::id());
    std::env::temp_dir().join(name)
}

fn accept(listener: &SharedListener) -> SharedStream {
    let poller = Poller::new().unwrap();
    poller.watch(listener, 1, Interest::Pending).unwrap();
    loop {
        if let Some(stream) = listener.accept().unwrap() {
            return stream;
        }
        assert!(poller.wait(Some(PATIENCE)).unwrap().is_some());
    }
}

fn pair() -> (SharedStream, SharedStream) {
    let path = place();
    let listener = SharedListener::listen(&path, 8, None).unwrap();
    let near = connect(&path, soon()).unwrap();
    let far = accept(&listener);
    // The first read also reads the greeting.
    assert_eq!(far.read_now(&mut [0; 1]).unwrap(), None);
    (near, far)
}

fn watch(stream: &SharedStream) -> Poller {
    let poller = Poller::new().unwrap();
    assert!(!stream.begin_watch());
    poller
        .watch(stream.arrival(), 1, Interest::Arrival)
        .unwrap();
    poller
}

fn told(poller: &Poller) -> Event {
    poller
        .wait(Some(PATIENCE))
        .unwrap()
        .expect("an event in time")
}

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n ^ n >> 8 ^ n >> 16) as u8).collect()
}

#[test]
fn octets_go_both_ways_and_an_end_is_zero() {
    let (near, far) = pair();
    let mut into = [0; 8];
    for (from, to) in [(&near, &far), (&far, &near)] {
        assert_eq!(to.read_now(&mut into).unwrap(), None);
        assert!(!to.is_readable());
        from.write_all(b"abc", soon()).unwrap();
        assert!(to.is_readable());
        assert_eq!(to.read(&mut into, soon()).unwrap(), 3);
        assert_eq!(&into[..3], b"abc");
    }
    near.write_all(b"last", soon()).unwrap();
    near.shutdown_write();
    assert_eq!(far.read(&mut into, soon()).unwrap(), 4);
    assert_eq!(far.read(&mut into, soon()).unwrap(), 0);
    // The other direction stays open.
    far.write_all(b"reply", soon()).unwrap();
    assert_eq!(near.read(&mut into, soon()).unwrap(), 5);
    far.shutdown();
    assert_eq!(near.read(&mut into, soon()).unwrap(), 0);
    let refused = near.write_all(b"x", soon()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
}

#[test]
fn every_way_of_reading_gets_what_a_writer_sends_round_the_end_of_the_ring() {
    type Way = fn(&SharedStream, &Poller, &mut [u8]) -> Option<usize>;
    let ways: [Way; 4] = [
        |stream, _, into| Some(stream.read(into, soon()).unwrap()),
        |stream, _, into| {
            let short = Duration::from_millis(3);
            stream.read_within(into, short).unwrap()
        },
        |stream, _, into| {
            let short = Duration::from_micros(50);
            stream.read_spinning(into, short).unwrap()
        },
        |stream, poller, into| match stream.read_now(into).unwrap() {
            None => {
                told(poller);
                None
            }
            some => some,
        },
    ];
    for way in ways {
        let (near, far) = pair();
        let poller = watch(&far);
        let sent = numbers(5 * RING_SIZE + 13);
        let mut got = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut steps = [1, 7, 100, 5_000, RING_SIZE + 3, 12].into_iter().cycle();
                let mut rest = &sent[..];
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(steps.next().unwrap().min(rest.len()));
                    near.write_all(now, soon()).unwrap();
                    rest = later;
                }
                near.shutdown_write();
            });
            let mut into = vec![0; 3_001];
            loop {
                match way(&far, &poller, &mut into) {
                    Some(0) => break,
                    Some(count) => got.extend_from_slice(&into[..count]),
                    None => {}
                }
            }
        });
        assert!(got == sent);
    }
}

#[test]
fn a_poller_is_told_of_each_arrival_and_of_the_end() {
    let (near, far) = pair();
    let poller = watch(&far);
    let mut into = [0; 64];
    for _ in 0..200 {
        near.write_all(b"ask", soon()).unwrap();
        assert!(!told(&poller).ended);
        assert_eq!(far.read_now(&mut into).unwrap(), Some(3));
        far.write_all(b"answer", soon()).unwrap();
        assert_eq!(near.read(&mut into, soon()).unwrap(), 6);
    }
    assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), None);
    drop(near);
    assert!(told(&poller).ended);
    assert_eq!(far.read_now(&mut into).unwrap(), Some(0));
}

#[test]
fn what_came_before_a_poller_watched_is_found() {
    let (near, far) = pair();
    near.write_all(b"early", soon()).unwrap();
    assert_eq!(far.read(&mut [0; 2], soon()).unwrap(), 2);
    assert!(far.begin_watch());
    assert_eq!(far.read_now(&mut [0; 8]).unwrap(), Some(3));
    assert!(!far.begin_watch());
}

#[test]
fn a_full_ring_takes_no_more_and_its_writer_is_told_of_room() {
    let (near, far) = pair();
    let sent = numbers(RING_SIZE + 1000);
    let poller = Poller::new().unwrap();
    poller.watch(near.room(), 2, Interest::Arrival).unwrap();
    assert_eq!(near.write_now(&sent).unwrap(), RING_SIZE);
    assert_eq!(near.write_now(&sent[RING_SIZE..]).unwrap(), 0);
    assert_eq!(poller.wait(Some(Duration::ZERO)).unwrap(), None);
    let mut got = vec![0; RING_SIZE + 1000];
    let mut filled = 0;
    while filled < RING_SIZE {
        filled += far.read_now(&mut got[filled..]).unwrap().unwrap();
    }
    assert_eq!(told(&poller).token, 2);
    assert_eq!(near.write_now(&sent[RING_SIZE..]).unwrap(), 1000);
    while filled < sent.len() {
        filled += far.read_now(&mut got[filled..]).unwrap().unwrap();
    }
    assert!(got == sent);
    // When the reader shuts down, a write that waits for it ends.
    near.write_now(&numbers(RING_SIZE)).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| near.write_all(b"more", soon()));
        far.shutdown();
        let refused = writing.join().unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_writer_that_polls_for_room_is_told_however_the_reader_reads() {
    for chunk in [100, 3_000, 50_000, RING_SIZE / 2, RING_SIZE] {
        let (near, far) = pair();
        let poller = Poller::new().unwrap();
        poller.watch(near.room(), 2, Interest::Arrival).unwrap();
        let sent = numbers(40 * RING_SIZE);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut into, mut total) = (vec![0; chunk], 0);
                while total < sent.len() {
                    let short = Duration::from_millis(1);
                    if let Some(count) = far.read_spinning(&mut into, short).unwrap() {
                        assert!(into[..count] == sent[total..total + count]);
                        total += count;
                    }
                }
            });
            let mut rest = &sent[..];
            while !rest.is_empty() {
                let count = near.write_now(rest).unwrap();
                rest = &rest[count..];
                if !rest.is_empty() {
                    told(&poller);
                }
            }
        });
    }
}

#[test]
fn waits_end_at_their_deadline_and_at_a_shutdown_from_another_thread() {
    let (near, far) = pair();
    for wait_ms in [3, 120] {
        let deadline_ns = monotonic_ns() + wait_ms * 1_000_000;
        let late = near.read(&mut [0; 8], Some(deadline_ns)).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        assert!(monotonic_ns() >= deadline_ns);
    }
    near.write_now(&numbers(RING_SIZE)).unwrap();
    let deadline_ns = monotonic_ns() + 5_000_000;
    let late = near.write_all(b"more", Some(deadline_ns)).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| near.read(&mut [0; 8], soon()).unwrap());
        let writing = scope.spawn(|| near.write_all(b"more", soon()).unwrap_err());
        near.shutdown();
        assert_eq!(reading.join().unwrap(), 0);
        assert_eq!(writing.join().unwrap().kind(), ErrorKind::BrokenPipe);
    });
    drop(far);
}

#[test]
fn a_client_may_write_before_it_is_taken_and_learns_where_it_never_is() {
    let path = place();
    let listener = SharedListener::listen(&path, 8, None).unwrap();
    let first = connect(&path, soon()).unwrap();
    first.write_all(b"early", soon()).unwrap();
    let kept = accept(&listener);
    let mut into = [0; 8];
    assert_eq!(kept.read(&mut into, soon()).unwrap(), 5);
    let refused = |stream: &SharedStream| {
        let error = stream.read(&mut [0; 8], soon()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    };
    let second = connect(&path, soon()).unwrap();
    second.write_all(b"lost", soon()).unwrap();
    drop(accept(&listener));
    refused(&second);
    drop(kept);
    let third = connect(&path, soon()).unwrap();
    third.write_all(b"third", soon()).unwrap();
    let taken = accept(&listener);
    assert_eq!(taken.read_now(&mut into).unwrap(), Some(5));
    let fourth = connect(&path, soon()).unwrap();
    drop(listener);
    refused(&fourth);
}

#[test]
fn a_thread_that_waits_long_is_left_asleep() {
    let (near, _far) = pair();
    let sleeps = || -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    };
    let before = sleeps();
    let deadline_ns = Some(monotonic_ns() + 1_500_000_000);
    let none = near.read(&mut [0; 8], deadline_ns).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::TimedOut);
    // The thread checks every 50 ms whether the other end has died, and otherwise sleeps.
    let count = sleeps() - before;
    assert!(count < 150, "{count} sleeps");
}

#[test]
fn a_plain_socket_is_not_taken_for_one_at_either_end() {
    use std::io::Write as _;
    use std::os::unix::net::{UnixListener, UnixStream};
    let path = place();
    let listener = SharedListener::listen(&path, 8, None).unwrap();
    for said in [&b"GIOP\x01\x02\0\x06"[..], b"G", b"DWRING\0\x01"] {
        let mut plain = UnixStream::connect(&path).unwrap();
        let stream = accept(&listener);
        let mut into = [0; 8];
        assert_eq!(stream.read_now(&mut into).unwrap(), None);
        assert_eq!(
            stream
                .read_within(&mut into, Duration::from_millis(1))
                .unwrap(),
            None
        );
        plain.write_all(said).unwrap();
        let error = stream.read(&mut into, soon()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let mute = UnixStream::connect(&path).unwrap();
        let stream = accept(&listener);
        drop(mute);
        assert_eq!(stream.read_now(&mut into).unwrap(), Some(0));
    }
    drop(listener);
    let plain = UnixListener::bind(&path).unwrap();
    let stream = connect(&path, soon()).unwrap();
    drop(plain.accept().unwrap());
    let error = stream.read(&mut [0; 8], soon()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    std::fs::remove_file(&path).unwrap();
}

/// Set in the process that a test kills: its role and the path to connect to.
const ROLE: &str = "DECKWATCH_SHARED_MEMORY_ROLE";

fn start_victim(path: &std::path::Path, role: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "a_peer_killed_at_any_point_is_an_end_and_never_a_wait",
        "--nocapture",
    ]);
    command.env(ROLE, format!("{role}:{}", path.display()));
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// The body of the process that is killed. `told` has its role and the path to connect to.
fn wait_to_be_killed(told: &str) {
    let (role, path) = told.split_once(':').unwrap();
    let stream = connect(std::path::Path::new(path), soon()).unwrap();
    let mut into = [0; 512];
    match role {
        "writes" => while stream.write_all(&[7; 300], soon()).is_ok() {},
        "echoes" => {
            while let Ok(count @ 1..) = stream.read(&mut into, soon()) {
                if stream.write_all(&into[..count], soon()).is_err() {
                    break;
                }
            }
        }
        _ => while stream.read(&mut [0; 1], soon()).is_ok_and(|n| n == 0) {},
    }
}

/// Reads until the end, which must come. Returns the number of octets.
fn read_out(stream: &SharedStream, into: &mut [u8]) -> usize {
    let mut total = 0;
    loop {
        match stream.read(into, soon()) {
            Ok(0) => return total,
            Ok(count) => total += count,
            Err(error) => panic!("no end after a kill: {error}"),
        }
    }
}

#[test]
fn a_peer_killed_at_any_point_is_an_end_and_never_a_wait() {
    if let Ok(told) = std::env::var(ROLE) {
        return wait_to_be_killed(&told);
    }
    let path = place();
    let listener = SharedListener::listen(&path, 8, None).unwrap();
    for round in 0..12 {
        let role = ["writes", "echoes", "sleeps"][round % 3];
        let mut victim = start_victim(&path, role);
        let stream = accept(&listener);
        // A server cannot write before it has read the greeting.
        assert_eq!(stream.read_within(&mut [], PATIENCE).unwrap(), None);
        let mut into = vec![0; 700];
        for _ in 0..round * 37 {
            match role {
                "writes" => assert_ne!(stream.read(&mut into, soon()).unwrap(), 0),
                "echoes" => {
                    stream.write_all(&[1; 200], soon()).unwrap();
                    assert_ne!(stream.read(&mut into, soon()).unwrap(), 0);
                }
                _ => {}
            }
        }
        if role == "sleeps" {
            // The victim does not read: the writer waits for room when the victim dies.
            let killed = std::thread::scope(|scope| {
                let writing = scope.spawn(|| stream.write_all(&numbers(2 * RING_SIZE), soon()));
                victim.kill().unwrap();
                writing.join().unwrap()
            });
            assert_eq!(killed.unwrap_err().kind(), ErrorKind::BrokenPipe);
        } else if round % 2 == 0 {
            let poller = Poller::new().unwrap();
            let interest = if stream.begin_watch() {
                Interest::Handover
            } else {
                Interest::Arrival
            };
            poller.watch(stream.arrival(), 1, interest).unwrap();
            victim.kill().unwrap();
            loop {
                match stream.read_now(&mut into).unwrap() {
                    Some(0) => break,
                    Some(_) => {}
                    None => drop(told(&poller)),
                }
            }
        } else {
            victim.kill().unwrap();
        }
        read_out(&stream, &mut into);
        victim.wait().unwrap();
    }
}

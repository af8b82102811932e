//! Testbeds in namespaces: creation, holding, losses, removal. The tests need the privileges of `Testbed::obstacle`; a
//! test without them is skipped with a message.

#[path = "truth/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU32;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use deckwatch_os::namespace::{Namespace, NamespaceIdentity, kill_process, start_time_of_process};
use deckwatch_os::schedule::{self, Class};
use deckwatch_os::socket;
use deckwatch_testbed::relay::driver::RelayPlan;
use deckwatch_testbed::{
    Emulation, Environment, Host, HostSpec, NetworkSpec, RelayProgram, Standing, Testbed,
    leftovers, preset,
};
use program::{carried, relay_program, relayed};

/// Long enough for a datagram on a busy machine. A test waits for all of it only where no datagram is expected.
const PATIENCE: Duration = Duration::from_secs(5);

/// Creates a testbed. Returns `None` and counts a skip where namespaces cannot be created.
fn testbed(network: &NetworkSpec, names: &[&str]) -> Option<Testbed> {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return None;
    }
    let hosts: Vec<HostSpec> = names.iter().map(|&name| HostSpec::new(name)).collect();
    let testbed = Testbed::create_by(&relay_program(), network, &hosts).unwrap();
    assert_eq!(testbed.environment(), Environment::Namespaces);
    Some(testbed)
}

fn socket_on(host: &Host) -> UdpSocket {
    let bound = host
        .namespace()
        .unwrap()
        .run_inside(|| UdpSocket::bind((host.address(), 0)));
    let socket = bound.unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// A socket on each of two hosts, the first connected to the second.
fn pair(testbed: &Testbed) -> (UdpSocket, UdpSocket) {
    let (from, to) = (
        socket_on(&testbed.hosts()[0]),
        socket_on(&testbed.hosts()[1]),
    );
    from.connect(to.local_addr().unwrap()).unwrap();
    (from, to)
}

/// Returns when all frames that `from` has sent before have reached their ports. To find out, it waits for another
/// frame of the same host at another port. Frames of one host keep their order while the thread that sends them stays
/// on one processor.
fn wait_for_frames_of(from: &Host, other: &Host) {
    let (from, other) = (socket_on(from), socket_on(other));
    from.send_to(&[0; 4], other.local_addr().unwrap()).unwrap();
    assert_eq!(receive_number(&other), 0);
}

fn stay_on_one_processor() {
    let processors = schedule::affinity().unwrap();
    schedule::set_affinity(&processors[..1]).unwrap();
}

fn receive_number(socket: &UdpSocket) -> u32 {
    let mut octets = [0; 4];
    assert_eq!(socket.recv(&mut octets).unwrap(), 4);
    u32::from_be_bytes(octets)
}

fn standing_of(name_part: &str) -> Vec<Standing> {
    let all = Testbed::standing();
    all.into_iter()
        .filter(|found| found.owner.to_string().starts_with(name_part))
        .collect()
}

#[test]
fn thirty_six_hosts_come_up_reach_each_other_and_go() {
    let names: Vec<String> = (0..36).map(|i| format!("host{i}")).collect();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(testbed) = testbed(&preset("gigabit-ethernet").unwrap(), &words) else {
        return;
    };
    let from = socket_on(testbed.host("host0").unwrap());
    let addresses: BTreeSet<_> = testbed.hosts().iter().map(Host::address).collect();
    assert_eq!(addresses.len(), 36);
    for host in &testbed.hosts()[1..] {
        let to = socket_on(host);
        from.send_to(&7_u32.to_be_bytes(), to.local_addr().unwrap())
            .unwrap();
        assert_eq!(receive_number(&to), 7);
    }
    let namespaces: Vec<String> = testbed
        .hosts()
        .iter()
        .map(|host| host.namespace_name().unwrap().to_owned())
        .collect();
    drop(testbed);
    for name in namespaces {
        assert!(Namespace::named(&name).is_err(), "{name} is still there");
    }
}

#[test]
fn a_held_port_delays_every_frame_and_loses_none() {
    hold_and_release(&preset("fast-ethernet").unwrap());
}

#[test]
fn a_held_port_of_a_relay_delays_every_frame_and_loses_none() {
    hold_and_release(&relayed("fast-ethernet"));
}

fn hold_and_release(network: &NetworkSpec) {
    let Some(testbed) = testbed(network, &["A", "B", "C"]) else {
        return;
    };
    stay_on_one_processor();
    let (from, to) = pair(&testbed);
    let own = testbed.port("B").unwrap();
    // The port as another process finds it.
    let namespace = testbed.hosts()[1].namespace_name().unwrap();
    let found = leftovers::find_port("B", namespace.strip_suffix("-B")).unwrap();
    for (round, port) in (0..).zip([&own, &found, &own]) {
        port.hold().unwrap();
        for number in 0..100_u32 {
            from.send(&(round * 100 + number).to_be_bytes()).unwrap();
        }
        wait_for_frames_of(&testbed.hosts()[0], &testbed.hosts()[2]);
        to.set_nonblocking(true).unwrap();
        assert!(to.recv(&mut [0; 4]).is_err(), "a frame passed a held port");
        to.set_nonblocking(false).unwrap();
        port.release().unwrap();
        for number in 0..100 {
            assert_eq!(receive_number(&to), round * 100 + number);
        }
    }
}

#[test]
fn a_stream_crosses_cells_whole() {
    cross(&preset("atm-oc3").unwrap());
}

#[test]
fn a_stream_crosses_cells_of_a_relay_whole() {
    cross(&relayed("atm-oc3"));
}

fn cross(network: &NetworkSpec) {
    const OCTETS: usize = 1 << 20;
    let Some(testbed) = testbed(network, &["A", "B"]) else {
        return;
    };
    let (client, server) = (&testbed.hosts()[0], &testbed.hosts()[1]);
    let listen = || TcpListener::bind((server.address(), 0));
    let listener = server
        .namespace()
        .unwrap()
        .run_inside(listen)
        .unwrap()
        .unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, PATIENCE);
    let mut stream = client
        .namespace()
        .unwrap()
        .run_inside(connect)
        .unwrap()
        .unwrap();
    let sent: Vec<u8> = (0..OCTETS).map(|i| (i % 251) as u8).collect();
    std::thread::scope(|scope| {
        let received = scope.spawn(|| {
            let mut received = Vec::new();
            listener
                .accept()
                .unwrap()
                .0
                .read_to_end(&mut received)
                .unwrap();
            received
        });
        stream.write_all(&sent).unwrap();
        drop(stream);
        assert!(received.join().unwrap() == sent);
    });
}

#[test]
fn what_waits_at_a_port_leaves_by_the_priority_of_its_code_point() {
    wait_and_leave(&preset("fast-ethernet").unwrap());
    wait_and_leave(&preset("gigabit-ethernet").unwrap());
}

#[test]
fn what_waits_at_a_port_of_a_relay_leaves_by_the_priority_of_its_code_point() {
    wait_and_leave(&relayed("fast-ethernet"));
}

fn wait_and_leave(network: &NetworkSpec) {
    const EXPEDITED: u8 = 46;
    const ASSURED: u8 = 34;
    const LOWER_EFFORT: u8 = 8;
    let Some(testbed) = testbed(network, &["A", "B", "C"]) else {
        return;
    };
    stay_on_one_processor();
    let (from, to) = pair(&testbed);
    let port = testbed.port("B").unwrap();
    port.hold().unwrap();
    let code_points = [
        0,
        LOWER_EFFORT,
        0,
        ASSURED,
        EXPEDITED,
        LOWER_EFFORT,
        0,
        EXPEDITED,
    ];
    for (number, code_point) in (0_u32..).zip(code_points) {
        socket::set_priority(&from, false, Some(code_point), None).unwrap();
        from.send(&number.to_be_bytes()).unwrap();
    }
    wait_for_frames_of(&testbed.hosts()[0], &testbed.hosts()[2]);
    port.release().unwrap();
    let order: Vec<u32> = code_points.iter().map(|_| receive_number(&to)).collect();
    assert_eq!(order, [4, 7, 0, 2, 3, 6, 1, 5]);
}

#[test]
fn the_first_and_every_tenth_frame_are_lost_and_counted() {
    lose(&preset("fast-ethernet").unwrap());
}

#[test]
fn the_first_and_every_tenth_frame_through_a_relay_are_lost_and_counted() {
    lose(&relayed("fast-ethernet"));
}

fn lose(network: &NetworkSpec) {
    let Some(testbed) = testbed(network, &["A", "B", "C"]) else {
        return;
    };
    stay_on_one_processor();
    let (from, to) = pair(&testbed);
    let port = testbed.port("B").unwrap();
    port.lose_every(NonZeroU32::new(10).unwrap()).unwrap();
    for number in 0..100_u32 {
        from.send(&number.to_be_bytes()).unwrap();
    }
    wait_for_frames_of(&testbed.hosts()[0], &testbed.hosts()[2]);
    port.lose_none().unwrap();
    from.send(&100_u32.to_be_bytes()).unwrap();
    let expected = (0..=100).filter(|number| number % 10 != 0 || *number == 100);
    for number in expected {
        assert_eq!(receive_number(&to), number);
    }
    assert_eq!(port.lost_count().unwrap(), 10);
    if let Some(state) = testbed.relay_state().unwrap() {
        assert!(state.ledger.adds_up(), "{state:?}");
        assert_eq!(state.ledger.lines.lost_on_purpose, 10);
        // To B 91, and the one to C.
        assert_eq!((state.ledger.delivered, state.overflowed), (92, 0));
    }
    assert_eq!(testbed.port("A").unwrap().lost_count().unwrap(), 0);
}

#[test]
fn a_placed_process_runs_on_its_host_and_ends_with_the_testbed() {
    let Some(testbed) = testbed(&preset("fast-ethernet").unwrap(), &["A"]) else {
        return;
    };
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped());
    testbed.hosts()[0].place(&mut command).unwrap();
    let mut child = command.spawn().unwrap();
    let identity = testbed.hosts()[0].namespace().unwrap().identity();
    assert_eq!(NamespaceIdentity::of_process(child.id()).unwrap(), identity);
    drop(testbed);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn a_testbed_is_removed_when_its_maker_panics() {
    let Some(testbed) = testbed(&preset("fast-ethernet").unwrap(), &["A"]) else {
        return;
    };
    let name = testbed.hosts()[0].namespace_name().unwrap().to_owned();
    let maker = std::thread::spawn(move || {
        let _testbed = testbed;
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(maker.join().is_err());
    assert!(Namespace::named(&name).is_err());
}

/// Runs this test's program again as another process, which creates a testbed and waits to be killed.
#[test]
fn what_a_killed_process_left_is_cleaned_and_what_a_living_one_owns_is_not() {
    const PART: &str = "DECKWATCH_TESTBED_PART";
    if std::env::var_os(PART).is_some() {
        let _testbed = testbed(&preset("fast-ethernet").unwrap(), &["A", "B"]);
        println!("made");
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    let Some(living) = testbed(&preset("fast-ethernet").unwrap(), &["A"]) else {
        return;
    };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "--nocapture",
        "what_a_killed_process_left_is_cleaned_and_what_a_living_one_owns_is_not",
    ]);
    command
        .env(PART, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = std::io::BufReader::new(child.stdout.take().unwrap());
    assert!(std::io::BufRead::lines(output).any(|line| line.unwrap().ends_with("made")));
    let part = format!("dw{}-", child.id());
    assert_eq!(standing_of(&part)[0].hosts, ["A", "B"]);

    leftovers::clean().unwrap();
    assert_eq!(
        standing_of(&part).len(),
        1,
        "a living owner's testbed was removed"
    );

    child.kill().unwrap();
    // The child is not yet waited for: its id still exists, but the process has ended. The cleaning of another test may
    // remove its testbed first.
    let gone = std::iter::repeat_with(|| leftovers::clean().map(drop))
        .take(CLEANINGS_MAX)
        .any(|cleaned| cleaned.is_ok() && standing_of(&part).is_empty());
    assert!(gone);
    assert!(Namespace::named(living.hosts()[0].namespace_name().unwrap()).is_ok());
    child.wait().unwrap();
}

/// Cleanings until a killed process has ended, which takes a moment.
const CLEANINGS_MAX: usize = 100_000;

#[test]
fn a_kept_testbed_outlives_its_maker_and_every_cleaning_until_it_is_taken_down() {
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    let hosts = [HostSpec::new("A"), HostSpec::new("B")];
    let kept = Testbed::create_kept(&preset("fast-ethernet").unwrap(), &hosts).unwrap();
    leftovers::clean().unwrap();
    assert!(
        Testbed::standing()
            .iter()
            .any(|found| found.owner == kept.owner && found.namespaces.len() == 3)
    );
    let name = kept.namespace_of("B").unwrap();
    assert!(Namespace::named(&name).is_ok());
    assert_eq!(kept.address_of("B").unwrap().to_string(), "198.18.0.2");
    assert_eq!(kept.address_of("C"), None);
    let found = leftovers::find_host("B", Some(&kept.owner.to_string())).unwrap();
    assert_eq!(
        found.identity(),
        Namespace::named(&name).unwrap().identity()
    );
    assert_eq!(
        leftovers::take_down_kept(Some(kept.owner.number))
            .unwrap()
            .len(),
        1
    );
    assert!(Namespace::named(&name).is_err());
    assert!(leftovers::take_down_kept(Some(kept.owner.number)).is_err());
}

#[test]
fn a_testbed_tells_that_its_relay_was_killed() {
    let Some(testbed) = testbed(&relayed("fast-ethernet"), &["A", "B"]) else {
        return;
    };
    testbed.check().unwrap();
    kill_process(testbed.relay_process().unwrap()).unwrap();
    let told = std::iter::repeat_with(|| testbed.check())
        .take(CLEANINGS_MAX)
        .any(|checked| checked.is_err());
    assert!(told);
}

/// The relay of another process, which is killed, ends by itself: nobody is left to remove it.
#[test]
fn a_relay_ends_with_its_owner() {
    const OWNER: &str = "DECKWATCH_TESTBED_OWNER";
    if std::env::var_os(OWNER).is_some() {
        let testbed = testbed(&relayed("fast-ethernet"), &["A", "B"]).unwrap();
        println!("\nrelay {}", testbed.relay_process().unwrap());
        let _ = std::io::stdin().read_line(&mut String::new());
        return;
    }
    if let Some(reason) = Testbed::obstacle() {
        deckwatch_testkit::skip("namespaces", &reason);
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "a_relay_ends_with_its_owner"]);
    command
        .env(OWNER, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut owner = command.spawn().unwrap();
    let output = std::io::BufReader::new(owner.stdout.take().unwrap());
    let relay: u32 = std::io::BufRead::lines(output)
        .find_map(|line| line.unwrap().strip_prefix("relay ")?.parse().ok())
        .unwrap();
    assert!(start_time_of_process(relay).is_some());
    owner.kill().unwrap();
    owner.wait().unwrap();
    let gone = std::iter::repeat_with(|| start_time_of_process(relay).is_none())
        .take(CLEANINGS_MAX)
        .any(|gone| gone);
    assert!(gone);
    // Other tests clean leftovers too.
    let _ = leftovers::clean();
}

/// A relay on a host, which has nothing to carry there: it is alive, and nobody kills it.
#[test]
fn a_relay_that_spins_leaves_the_real_time_class_of_its_caller() {
    let network = carried("fast-ethernet", Emulation::SpinningRelay);
    if testbed(&network, &["A", "B"]).is_none() {
        return;
    }
    let own = relay_program();
    let mut words: Vec<_> = ["-f", "5"].map(Into::into).into();
    words.push(own.path.into_os_string());
    words.extend(own.words);
    let program = RelayProgram {
        path: "/usr/bin/chrt".into(),
        words,
        environment: own.environment,
    };
    let may = Command::new(&program.path)
        .args(["-f", "5", "true"])
        .output();
    if !may.is_ok_and(|done| done.status.success()) {
        deckwatch_testkit::skip("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
        return;
    }
    let hosts = ["A", "B"].map(HostSpec::new);
    let testbed = Testbed::create_by(&program, &network, &hosts).unwrap();
    let relay = testbed.relay_process().unwrap();
    // This program runs a test, so the relay, in a thread of its own. All began in SCHED_FIFO.
    let has_left = || {
        let threads = std::fs::read_dir(format!("/proc/{relay}/task")).unwrap();
        let names = threads.map(|thread| thread.unwrap().file_name());
        let mut numbers = names.filter_map(|name| name.to_str()?.parse().ok());
        numbers.any(|thread| schedule::class_of(thread).unwrap() == Class::Other)
    };
    // It begins to spin once it has said that it is there.
    let until = Instant::now() + PATIENCE;
    while !has_left() {
        assert!(Instant::now() < until, "it spins in SCHED_FIFO");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_relay_ends_when_its_input_does() {
    let Some(testbed) = testbed(&preset("fast-ethernet").unwrap(), &["A"]) else {
        return;
    };
    let program = relay_program();
    let mut command = Command::new(&program.path);
    command.args(&program.words).envs(program.environment);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    testbed.hosts()[0].place(&mut command).unwrap();
    let mut relay = command.spawn().unwrap();
    let plan = RelayPlan {
        layout: preset("fast-ethernet")
            .unwrap()
            .layout_for(vec!["A".to_owned()])
            .unwrap(),
        seed: 1,
        spins: false,
        ends_with_input: true,
    };
    let mut input = relay.stdin.take().unwrap();
    writeln!(input, "{}", serde_json::to_string(&plan).unwrap()).unwrap();
    let output = std::io::BufReader::new(relay.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(output);
    assert!(lines.any(|line| line.unwrap() == "The relay carries frames."));
    assert!(relay.try_wait().unwrap().is_none());
    drop(input);
    // The rest of what the program prints, up to its end.
    assert!(lines.all(|line| line.is_ok()));
    assert!(relay.wait().unwrap().success());
}

//! `deckwatch channel --real-time` as a supplier sees it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use deckwatch_event::handler_times::{MeasuredConsumer, ReportedHandler};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannelRef, ProxyPushConsumerRef,
    ProxyPushSupplierConnectPushConsumerError, Publication, SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_event::rtec_scheduler::{
    CriticalityT, ImportanceT, InfoTypeT, SchedulerCreateError, SchedulerRef,
};
use deckwatch_orb::transport::Endpoint;
use deckwatch_orb::{
    Ior, Orb, Policy, SetOverrideType, SyncScope, SystemException, SystemExceptionKind as Kind,
};

#[test]
fn real_time_channel_serves_until_it_is_destroyed_and_tells_its_counts() {
    let process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["channel", "--real-time", "--dispatching", "lanes:10,40"])
        .args(["--order", "deadline"])
        .arg("--priority-fallback")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = process.expect("the program starts");
    let mut ior = String::new();
    let said = process.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut ior).expect("a line");

    let orb = Orb::builder().build().expect("an ORB");
    let object = orb.string_to_object(ior.trim()).expect("an IOR");
    let channel = EventChannelRef::narrow(&object.expect("not nil")).expect("an answer");
    let channel = channel.expect("a real-time channel");
    let admin = channel.for_suppliers().expect("an answer").expect("one");
    let proxy = admin
        .obtain_push_consumer()
        .expect("an answer")
        .expect("one");
    proxy
        .connect_push_supplier(None, &SupplierQOS::default())
        .expect("it connects");
    let whole = [Policy::SyncScope(SyncScope::WithTarget)];
    let object = proxy
        .object()
        .set_policy_overrides(&whole, SetOverrideType::AddOverride);
    let proxy = ProxyPushConsumerRef::unchecked_narrow(object.expect("a policy of callers"));
    proxy.push(&[Event::default()]).expect("it is served");
    channel.destroy().expect("an answer");

    let ended = process.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    assert!(told.contains("events received 1, unwanted 1"), "{told}");
}

#[test]
fn options_of_a_real_time_channel_need_one() {
    let refused = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["channel", "--dispatching", "pool:2"])
        .output();
    let refused = refused.expect("the program starts");
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("--real-time"), "{told}");
}

/// A process of `deckwatch` that serves, killed when this is dropped.
struct Serving {
    process: Child,
    /// The first line that it prints, on standard output or, for `names`, on standard error.
    reference: String,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut reference = String::new();
        let mut told = BufReader::new(process.stdout.take().expect("a pipe"));
        told.read_line(&mut reference).expect("a line");
        if reference.is_empty() {
            let mut fault = String::new();
            let mut stderr = process.stderr.take().expect("a pipe");
            stderr.read_to_string(&mut fault).expect("text");
            panic!("{arguments:?}: {fault}");
        }
        let reference = reference.trim().to_owned();
        Self { process, reference }
    }

    /// The host and port of its reference.
    fn address(&self) -> String {
        let ior: Ior = self.reference.parse().expect("an IOR");
        let profile = ior.iiop_profiles().next().expect("one").expect("readable");
        format!("{}:{}", profile.host, profile.port)
    }

    /// Ends the channel. Returns what it has printed on standard error.
    fn end(mut self, channel: &EventChannelRef) -> String {
        channel.destroy().expect("an answer");
        let mut told = String::new();
        let mut stderr = self.process.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut told).expect("text");
        assert!(self.process.wait().expect("it ends").success(), "{told}");
        told
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const SCHEDULER_IDL: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../idl/rtec/RtecScheduler.idl"
);

struct Silent;

impl PushConsumer for Silent {
    fn push(&self, _data: &[Event]) -> Result<(), SystemException> {
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn client() -> Orb {
    let orb = Orb::builder().listen("127.0.0.1:0").expect("an address");
    let orb = orb.build().expect("an ORB");
    let poa = orb.root_poa().expect("its adapter");
    poa.the_poa_manager().activate().expect("it serves");
    orb
}

fn channel_of(orb: &Orb, reference: &str) -> EventChannelRef {
    let object = orb.string_to_object(reference).expect("a reference");
    EventChannelRef::unchecked_narrow(object.expect("not nil"))
}

fn event_type(number: i32) -> Event {
    Event {
        header: EventHeader {
            r#type: number,
            ..EventHeader::default()
        },
        ..Event::default()
    }
}

/// Connects a supplier of events of type 20, with this RT_Info.
pub(crate) fn supply(channel: &EventChannelRef, rt_info: i32) -> ProxyPushConsumerRef {
    let admin = channel.for_suppliers().expect("an answer").expect("one");
    let proxy = admin.obtain_push_consumer().expect("an answer");
    let mut publication = Publication {
        event: event_type(20),
        ..Publication::default()
    };
    publication.dependency_info.rt_info = rt_info;
    let qos = SupplierQOS {
        publications: vec![publication],
        is_gateway: false,
    };
    let proxy = proxy.expect("one");
    proxy
        .connect_push_supplier(None, &qos)
        .expect("it connects");
    proxy
}

/// Connects a consumer of events of type 20, with this RT_Info.
pub(crate) fn consume(
    orb: &Orb,
    channel: &EventChannelRef,
    rt_info: i32,
) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
    consume_by(orb, channel, rt_info, Silent)
}

/// As [`consume`], with this consumer.
pub(crate) fn consume_by(
    orb: &Orb,
    channel: &EventChannelRef,
    rt_info: i32,
    consumer: impl PushConsumer,
) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
    let admin = channel.for_consumers().expect("an answer").expect("one");
    let proxy = admin.obtain_push_supplier().expect("an answer");
    let poa = orb.root_poa().expect("its adapter");
    let servant = std::sync::Arc::new(PushConsumerSkeleton::new(consumer));
    let id = poa.activate_object(servant).expect("active");
    let own = PushConsumerRef::unchecked_narrow(poa.id_to_reference(&id).expect("a reference"));
    let qos = ConsumerQOS {
        dependencies: vec![Dependency {
            event: event_type(20),
            rt_info,
        }],
        is_gateway: false,
    };
    proxy.expect("one").connect_push_consumer(Some(&own), &qos)
}

/// `track` in the path of `read` would make `draw` late; `log` would not.
pub(crate) const SCHEDULE: &str = r#"
name = "s"
[[operations]]
name = "read"
worst_case = "2ms"
period = "50ms"
[[operations]]
name = "draw"
worst_case = "60ms"
period = "120ms"
[[operations]]
name = "track"
worst_case = "22ms"
[[operations]]
name = "log"
worst_case = "1ms"
"#;

/// The consumer was refused because `draw` would be late.
pub(crate) fn expect_late_draw(connected: Result<(), ProxyPushSupplierConnectPushConsumerError>) {
    let Err(ProxyPushSupplierConnectPushConsumerError::System(exception)) = connected else {
        panic!("{connected:?}");
    };
    assert_eq!(exception.kind, Kind::NoResources, "{exception}");
    let words = deckwatch_orb::exception_detail(&exception).expect("words");
    assert!(words.starts_with("draw: its response can take"), "{words}");
}

#[test]
fn channel_takes_its_lanes_from_a_file_and_refuses_what_would_be_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.toml");
    std::fs::write(&file, SCHEDULE).expect("a file");
    let path = file.display().to_string();
    let served = Serving::start(&[
        "channel",
        "--real-time",
        "--schedule",
        &path,
        "--lane-priorities",
        "2:11",
        "--priority-fallback",
    ]);
    let orb = client();
    let channel = channel_of(&orb, &served.reference);
    // The handles are asked for at the channel's own scheduling service.
    let address = served.address();
    let scheduler = orb.string_to_object(&format!("corbaloc::{address}/ScheduleService"));
    let scheduler = scheduler.expect("a reference").expect("not nil");
    let scheduler = SchedulerRef::unchecked_narrow(scheduler);
    let handle = |name: &str| scheduler.lookup(name).expect("it is declared");
    supply(&channel, handle("read"));
    expect_late_draw(consume(&orb, &channel, handle("track")));
    // A user of the command sees the same words: draw would call track three times.
    let refused = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["call", "--idl", SCHEDULER_IDL])
        .arg(format!("corbaloc::{address}/ScheduleService"))
        .arg("RtecScheduler::Scheduler::add_dependency")
        .args([handle("draw"), handle("track")].map(|number| number.to_string()))
        .args(["3", "TWO_WAY_CALL"])
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(
        told.contains("because: All operations: all executions together"),
        "{told}"
    );
    consume(&orb, &channel, handle("log")).expect("it is in time");
    let told = served.end(&channel);
    for expected in [
        "lane of native priority 11 (CORBA 3344), ordered by arrival",
        "lane of native priority 10 (CORBA 3010), ordered by arrival",
        "a connect is refused: draw: its response can take",
        "connects refused by the schedule 1",
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn table_of_a_channel_guards_its_schedule_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file.display().to_string()
    };
    let schedule =
        "name = \"s\"\n[[operations]]\nname = \"read\"\nworst_case = \"2ms\"\nperiod = \"50ms\"\n";
    let schedule = file("s.toml", schedule);
    let table = "[[allow]]\nwho = [\"this-host\"]\nmay = [\"supply\", \"consume\", \"observe\"]\n";
    let table = file("access.toml", table);
    let own = ["channel", "--real-time", "--priority-fallback"];
    let channel = [&own[..], &["--schedule", &schedule, "--access", &table]].concat();
    for words in [&channel[..], &["scheduler", "--access", &table]] {
        let served = Serving::start(words);
        let orb = client();
        let at = format!("corbaloc::{}/ScheduleService", served.address());
        let scheduler = orb.string_to_object(&at).expect("a reference");
        let scheduler = SchedulerRef::unchecked_narrow(scheduler.expect("not nil"));
        scheduler.get_rt_info_set().expect("it may be read");
        let refused = scheduler.create("flood");
        let Err(SchedulerCreateError::System(exception)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(exception.kind, Kind::NoPermission, "{exception}");
        assert!(scheduler.lookup("flood").is_err(), "it is declared");
    }
}

/// A consumer that takes 21 ms of processor time for each event, and tells the test.
struct Slow(std::sync::Mutex<std::sync::mpsc::Sender<()>>);

impl PushConsumer for Slow {
    fn push(&self, _data: &[Event]) -> Result<(), SystemException> {
        let end_ns = deckwatch_os::clock::thread_cpu_ns() + 21_000_000;
        while deckwatch_os::clock::thread_cpu_ns() < end_ns {
            std::hint::spin_loop();
        }
        // The test may have ended.
        let _ = self.0.lock().expect("whole").send(());
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn handler_that_exceeds_its_declaration_is_named_by_the_channel_and_makes_the_schedule_infeasible()
{
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.toml");
    let text = "name = \"s\"\n[[operations]]\nname = \"read\"\nworst_case = \"2ms\"\nperiod = \"50ms\"\n\
                [[operations]]\nname = \"draw\"\nworst_case = \"60ms\"\nperiod = \"120ms\"\n\
                [[operations]]\nname = \"log\"\nworst_case = \"1ms\"\ndepends = [{ on = \"read\" }]\n";
    std::fs::write(&file, text).expect("a file");
    let path = file.display().to_string();
    let arguments = [
        "channel",
        "--real-time",
        "--priority-fallback",
        "--schedule",
    ];
    let served = Serving::start(&[&arguments[..], &[&path]].concat());
    let orb = client();
    let channel = channel_of(&orb, &served.reference);
    let at = format!("corbaloc::{}/ScheduleService", served.address());
    let scheduler = orb.string_to_object(&at).expect("a reference");
    let scheduler = scheduler.expect("not nil");
    let log = ReportedHandler::find(&scheduler, "log").expect("it is declared");
    let read = SchedulerRef::unchecked_narrow(scheduler).lookup("read");
    let supplier = supply(&channel, read.expect("it is declared"));
    let judge = || {
        let judged = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(["schedule", &path, "--measured", &at])
            .env("COLUMNS", "160")
            .output()
            .expect("the program starts");
        let said = String::from_utf8_lossy(&judged.stdout).into_owned();
        (judged.status.code(), said)
    };
    let (status, said) = judge();
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("feasible: every deadline is met, with the measured execution times too"),
        "{said}"
    );

    let (told, handled) = std::sync::mpsc::channel();
    let slow = Slow(std::sync::Mutex::new(told));
    let measured = MeasuredConsumer::new(slow, std::sync::Arc::clone(log.times()));
    consume_by(&orb, &channel, log.handle(), measured).expect("it is in time");
    for _ in 0..2 {
        supplier.push(&[event_type(20)]).expect("it is sent");
    }
    for _ in 0..2 {
        handled.recv().expect("an event");
    }
    // The second execution may still be in its last instructions: then it is counted by the next report.
    log.report().expect("it is taken");
    while log.times().read().executions > 0 {
        log.report().expect("it is taken");
    }
    let (status, said) = judge();
    assert_eq!(status, Some(1), "{said}");
    for expected in [
        "INFEASIBLE with the measured execution times",
        "executions took longer than the declared worst case of 1 ms: up to 2",
        "draw: with the measured execution times, its response can take",
        " ABOVE",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let told = served.end(&channel);
    let named = "executions took longer than the declared worst case of 1 ms: up to 2";
    assert!(
        told.contains("warning: log: ") && told.contains(named),
        "{told}"
    );
    assert!(
        told.contains("warning: draw: with the measured execution times"),
        "{told}"
    );
}

/// A consumer that notifies the test of each event.
struct Told(std::sync::Mutex<std::sync::mpsc::Sender<()>>);

impl PushConsumer for Told {
    fn push(&self, _data: &[Event]) -> Result<(), SystemException> {
        // The test may have ended.
        let _ = self.0.lock().expect("whole").send(());
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Returns the codepoint of each connection of a process to this ORB.
fn codepoints_to(orb: &Orb, of: &Serving) -> Vec<u32> {
    let Some(Endpoint::Tcp { port, .. }) = orb.endpoints().into_iter().next() else {
        panic!("it listens by TCP");
    };
    let told = Command::new("ss")
        .args(["-tnpH", "--tos", &format!("dport = :{port}")])
        .output()
        .expect("it starts");
    let told = String::from_utf8(told.stdout).expect("plain words");
    let process = format!("pid={},", of.process.id());
    let lines = told.lines().filter(|line| line.contains(&process));
    // `ss` writes 0 without its usual 0x.
    let tos = lines.flat_map(|line| {
        line.split_whitespace()
            .find_map(|it| it.strip_prefix("tos:"))
    });
    tos.map(|tos| u32::from_str_radix(tos.trim_start_matches("0x"), 16).expect("a number") >> 2)
        .collect()
}

#[test]
fn packets_to_a_consumer_carry_the_codepoint_of_the_priority_of_its_lane() {
    if deckwatch_testkit::program("ss").is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.toml");
    let text = "name = \"s\"\n[[operations]]\nname = \"read\"\nworst_case = \"2ms\"\nperiod = \"50ms\"\n\
                [[operations]]\nname = \"draw\"\nworst_case = \"6ms\"\nperiod = \"120ms\"\n";
    std::fs::write(&file, text).expect("a file");
    let path = file.display().to_string();
    // Native 11 and 10 are the CORBA priorities 3344 and 3010: parts 2 and 1 of 21, class selectors 2 and 1.
    for (marking, expected) in [("by-priority", [16, 8, 0]), ("46", [46; 3])] {
        let served = Serving::start(&[
            "channel",
            "--real-time",
            "--schedule",
            &path,
            "--lane-priorities",
            "2:11",
            "--priority-fallback",
            "--dscp",
            marking,
        ]);
        let by = client();
        let channel = channel_of(&by, &served.reference);
        let scheduler =
            by.string_to_object(&format!("corbaloc::{}/ScheduleService", served.address()));
        let scheduler = SchedulerRef::unchecked_narrow(scheduler.expect("sound").expect("not nil"));
        let handle = |name: &str| scheduler.lookup(name).expect("it is declared");
        let (told, events) = std::sync::mpsc::channel();
        let consumers = [handle("read"), handle("draw"), 0].map(|rt_info| {
            let orb = client();
            let consumer = Told(std::sync::Mutex::new(told.clone()));
            consume_by(&orb, &channel, rt_info, consumer).expect("it connects");
            orb
        });
        let supplier = supply(&channel, 0);
        supplier.push(&[event_type(20)]).expect("it is sent");
        for _ in &consumers {
            events.recv().expect("an event");
        }
        let found = consumers.each_ref().map(|orb| codepoints_to(orb, &served));
        assert_eq!(
            found,
            expected.map(|codepoint| vec![codepoint]),
            "{marking}"
        );
        served.end(&channel);
    }
}

#[test]
fn scheduler_is_found_by_its_name_and_gives_a_channel_its_lanes() {
    let names = Serving::start(&["names", "serve"]);
    let address = names.address();
    let names_at = format!("corbaloc::{address}/NameService");
    let _service = Serving::start(&["scheduler", "--strategy", "edf", "--names", &names_at]);
    let orb = client();
    let name = format!("corbaname::{address}#ScheduleService");
    let scheduler = orb.string_to_object(&name).expect("it is bound");
    let scheduler = SchedulerRef::unchecked_narrow(scheduler.expect("not nil"));
    let fast = scheduler.create("fast").expect("a new name");
    // 1 ms each 10 ms, in units of 100 ns.
    let set = scheduler.set(
        fast,
        CriticalityT::MediumCriticality,
        10_000,
        0,
        0,
        100_000,
        ImportanceT::MediumImportance,
        0,
        0,
        InfoTypeT::Operation,
    );
    set.expect("it is declared");
    let arguments = [
        "channel",
        "--real-time",
        "--priority-fallback",
        "--scheduler",
    ];
    let served = Serving::start(&[&arguments[..], &[&name]].concat());
    let channel = channel_of(&orb, &served.reference);
    supply(&channel, fast);
    let unknown = consume(&orb, &channel, 99);
    match unknown {
        Err(ProxyPushSupplierConnectPushConsumerError::System(exception)) => {
            assert_eq!(exception.kind, Kind::BadParam, "{exception}");
        }
        other => panic!("{other:?}"),
    }
    let told = served.end(&channel);
    let lane = "lane of native priority 49 (CORBA 16050), ordered by deadline";
    assert!(told.contains(lane), "{told}");
    assert!(told.contains("the scheduler has no RT_Info 99"), "{told}");
}

#[test]
fn schedule_that_can_miss_a_deadline_starts_no_channel() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("s.toml");
    let text =
        "name = \"s\"\n[[operations]]\nname = \"late\"\nworst_case = \"12ms\"\nperiod = \"10ms\"\n";
    std::fs::write(&file, text).expect("a file");
    let refused = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["channel", "--real-time", "--schedule"])
        .arg(&file)
        .output();
    let refused = refused.expect("the program starts");
    assert_eq!(refused.status.code(), Some(2));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("A deadline can be missed"), "{told}");
}

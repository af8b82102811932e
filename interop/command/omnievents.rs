//! `deckwatch channel` in the place of omniEvents under omniEvents' own programs, and our clients with omniEvents.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::common::{Running, free_port, omniorb_program, run, scratch, try_run};
use crate::names::{Names, deckwatch};
use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::{
    ConsumerAdminRef, EventChannelRef, ProxyPullSupplierRef, ProxyPushConsumerRef, SupplierAdminRef,
};
use deckwatch_event::cos_event_comm::{
    PullSupplier, PullSupplierPullError, PullSupplierRef, PullSupplierSkeleton,
    PullSupplierTryPullError, PushConsumer, PushConsumerPushError, PushConsumerRef,
    PushConsumerSkeleton,
};
use deckwatch_event::cos_life_cycle::NameValuePair;
use deckwatch_event::omni_events::EventChannelFactoryRef;
use deckwatch_orb::cos_naming::NameComponent;
use deckwatch_orb::{ObjectRef, Orb, Servant, SystemException};
use deckwatch_testkit::program;

/// Time limit of a step, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A naming service of ours with a factory of ours, as `eventc` looks for it.
struct OurFactory {
    names: Names,
    process: Running,
    orb: Orb,
}

impl OurFactory {
    fn start() -> Self {
        let names = Names::start();
        let bind = ["--bind", "EventChannelFactory", "--names", &names.url];
        let mut process = Running::start(deckwatch().args(["channel", "--factory"]).args(bind));
        process.line_with("IOR:");
        let orb = serving_orb();
        Self {
            names,
            process,
            orb,
        }
    }

    /// A program of omniEvents that finds its objects in our naming service.
    fn theirs(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.args(self.names.initial());
        command
    }

    /// Has `eventc` create a channel, and bind it to this name.
    fn create(&self, name: &str, arguments: &[&str]) -> EventChannelRef {
        run(self.theirs("eventc").args(["-n", name]).args(arguments));
        self.channel(name).expect("`eventc` has bound it")
    }

    /// The channel that is bound to this name.
    fn channel(&self, name: &str) -> Result<EventChannelRef, String> {
        let resolve = ["names", "resolve", name, "--names", &self.names.url];
        let ior = try_run(deckwatch().args(resolve))?;
        Ok(EventChannelRef::unchecked_narrow(object(
            &self.orb,
            ior.trim(),
        )))
    }

    fn end(self) -> Vec<String> {
        self.orb.shutdown(true).expect("it ends");
        self.process.terminate();
        let (status, said) = self.process.wait();
        assert!(status.success(), "{said:?}");
        said
    }
}

fn serving_orb() -> Orb {
    let orb = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = orb.build().expect("an ORB");
    let poa = orb.root_poa().expect("a root adapter");
    poa.the_poa_manager().activate().expect("active");
    orb
}

fn object(orb: &Orb, text: &str) -> ObjectRef {
    let object = orb.string_to_object(text).expect("a reference");
    object.expect("not nil")
}

fn activate(orb: &Orb, servant: Arc<dyn Servant>) -> ObjectRef {
    let poa = orb.root_poa().expect("a root adapter");
    let id = poa.activate_object(servant).expect("active");
    poa.id_to_reference(&id).expect("a reference")
}

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}

fn consumers(channel: &EventChannelRef) -> ConsumerAdminRef {
    channel
        .for_consumers()
        .expect("an answer")
        .expect("not nil")
}

fn suppliers(channel: &EventChannelRef) -> SupplierAdminRef {
    channel
        .for_suppliers()
        .expect("an answer")
        .expect("not nil")
}

fn supplier(channel: &EventChannelRef) -> ProxyPushConsumerRef {
    let proxy = suppliers(channel).obtain_push_consumer();
    let proxy = proxy.expect("an answer").expect("not nil");
    proxy.connect_push_supplier(None).expect("connected");
    proxy
}

fn puller(channel: &EventChannelRef) -> ProxyPullSupplierRef {
    let proxy = consumers(channel).obtain_pull_supplier();
    let proxy = proxy.expect("an answer").expect("not nil");
    proxy.connect_pull_consumer(None).expect("connected");
    proxy
}

fn number(value: u32) -> Any {
    Any::from_value(&value).expect("a number")
}

/// The next number that `try_pull` returns.
fn next(puller: &ProxyPullSupplierRef) -> u32 {
    let begun = Instant::now();
    loop {
        let (event, has_event) = puller.try_pull().expect("an answer");
        if has_event {
            return event.extract().expect("a number");
        }
        assert!(begun.elapsed() < PATIENCE, "no event comes");
        std::thread::yield_now();
    }
}

/// `events` as a consumer that writes what it receives to a file.
fn recording(factory: &OurFactory, name: &str, to: &Path) -> Child {
    let file = File::create(to).expect("a file");
    let mut events = factory.theirs("events");
    let events = events.args(["-n", name]).stdout(file);
    events.stderr(Stdio::inherit()).spawn().expect("it starts")
}

/// The numbers in what `events` has recorded: for each event its time in two words, its TypeCode and its value. The
/// program says what it does before the first event, and that it is disconnected after the last.
fn recorded(file: &Path) -> Vec<u32> {
    const TK_ULONG: u32 = 5;
    let octets = std::fs::read(file).expect("a file");
    let spoken = b"find EventChannel in NameService\n";
    let octets = octets.strip_prefix(spoken).unwrap_or(&octets);
    let octets = octets.strip_suffix(b"disconnected\n").unwrap_or(octets);
    let events = octets.chunks_exact(16).map(|event| {
        let word = |at: usize| {
            let word = event[at..at + 4].try_into().expect("four octets");
            u32::from_ne_bytes(word)
        };
        assert_eq!(word(8), TK_ULONG, "{octets:?}");
        word(12)
    });
    events.collect()
}

fn has_programs() -> bool {
    ["eventc", "eventf", "events", "rmeventc"]
        .into_iter()
        .all(|name| program(name).is_some())
}

#[test]
fn omni_events_programs_create_read_fill_and_destroy_our_channels() {
    if !has_programs() {
        return;
    }
    let folder = scratch("omnievents");
    let factory = OurFactory::start();
    let channel = factory.create(
        "NAV",
        &["-q", "1000", "-i", "nav", "-c", "1000000", "-R", "50"],
    );
    let twice = factory
        .theirs("eventc")
        .args(["-n", "TWO", "-i", "nav"])
        .output();
    let twice = String::from_utf8(twice.expect("it runs").stderr).expect("text");
    assert!(twice.contains("InvalidCriteria"), "{twice}");
    let first = folder.join("first");
    let mut reading = recording(&factory, "NAV", &first);
    let supplier = supplier(&channel);
    // Nothing tells when `events` is connected.
    wait_for(|| {
        supplier.push(&number(0)).expect("pushed");
        recorded(&first).contains(&0)
    });
    for value in 1..=3 {
        supplier.push(&number(value)).expect("pushed");
    }
    wait_for(|| recorded(&first).ends_with(&[1, 2, 3]));
    let events: Vec<u32> = recorded(&first);
    // A second channel is filled from the file.
    let other = factory.create("COPY", &[]);
    let copy = puller(&other);
    let told = std::fs::read(&first).expect("a file");
    let spoken = b"find EventChannel in NameService\n".len();
    // `events` reads 1,024 octets at a time, and no event that two reads share.
    let last = &told[told.len().max(spoken + 48) - 48..];
    std::fs::write(folder.join("last"), last).expect("a file");
    let from = File::open(folder.join("last")).expect("a file");
    run(factory
        .theirs("events")
        .args(["-s", "-n", "COPY"])
        .stdin(from));
    assert_eq!([next(&copy), next(&copy), next(&copy)], [1, 2, 3]);
    run(factory.theirs("rmeventc").args(["-n", "NAV"]));
    assert!(reading.wait().expect("it ends").success());
    assert_eq!(recorded(&first), events, "the end is no event");
    assert!(factory.channel("NAV").is_err(), "the name is still bound");
    assert!(channel.for_consumers().is_err());
    factory.end();
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn eventf_chains_two_of_our_channels_and_a_filter_drops_other_types() {
    if !has_programs() {
        return;
    }
    let factory = OurFactory::start();
    let all = factory.create("ALL", &[]);
    let some = factory.create("SOME", &["-t", "IDL:omg.org/CosNaming/NameComponent:1.0"]);
    let ior = |channel: &EventChannelRef| factory.orb.object_to_string(channel.object());
    run(factory.theirs("eventf").args([ior(&all), ior(&some)]));
    let reader = puller(&some);
    let supplier = supplier(&all);
    supplier.push(&number(1)).expect("pushed");
    let component = NameComponent {
        id: "a".to_owned(),
        kind: "b".to_owned(),
    };
    supplier
        .push(&Any::from_value(&component).expect("a value"))
        .expect("pushed");
    let event = reader.pull().expect("an event");
    assert_eq!(event.extract::<NameComponent>(), Ok(component));
    let said = factory.end();
    let counts = said.iter().find(|line| line.starts_with("events received"));
    assert!(
        counts.is_some_and(|it| it.contains("received 3, delivered 3")),
        "{said:?}"
    );
}

#[test]
fn omniorb_programs_pull_from_our_channel_and_are_pulled_from() {
    const EVENTS: u32 = 20;
    let idl = ["omg/CosEventComm.idl", "omg/CosEventChannelAdmin.idl"];
    let Some(program) = omniorb_program("pull_clients", &idl) else {
        return;
    };
    let mut process = Running::start(deckwatch().args(["channel", "--pull-period", "10"]));
    let ior = process.line_with("IOR:");
    let client = |mode: &str| {
        let mut client = Command::new(&program);
        client.args([mode, &ior, &EVENTS.to_string()]);
        Running::start(&mut client)
    };
    // Two consumers connect before the supplier has anything.
    let mut waiting = client("pull");
    let mut asking = client("try_pull");
    waiting.line_with("ready");
    asking.line_with("ready");
    let supplying = client("supply");
    let expected: Vec<String> = (0..EVENTS).map(|value| format!("event {value}")).collect();
    for consumer in [waiting, asking] {
        let (status, said) = consumer.wait();
        let events: Vec<_> = said
            .iter()
            .filter(|line| line.starts_with("event "))
            .collect();
        assert_eq!(events, expected.iter().collect::<Vec<_>>());
        assert!(status.success(), "{said:?}");
    }
    let (status, said) = supplying.wait();
    assert!(status.success(), "{said:?}");
    process.terminate();
    let (_, said) = process.wait();
    let counts = format!("events received {EVENTS}, delivered {}", 2 * EVENTS);
    assert!(
        said.iter().any(|line| line.starts_with(&counts)),
        "{said:?}"
    );
}

#[test]
fn omniorb_programs_push_and_pull_through_our_typed_channel() {
    const EVENTS: u32 = 20;
    let idl = [
        "omg/CosEventComm.idl",
        "omg/CosEventChannelAdmin.idl",
        "omg/CosTypedEventComm.idl",
        "omg/CosTypedEventChannelAdmin.idl",
        "deckwatch/ship_events.idl",
    ];
    let Some(program) = omniorb_program("typed_clients", &idl) else {
        return;
    };
    let typed = ["--typed", "idl/deckwatch/ship_events.idl"];
    let interface = ["--interface", "IDL:Ship/Nav:1.0"];
    let mut process = Running::start(deckwatch().arg("channel").args(typed).args(interface));
    let ior = process.line_with("IOR:");
    let client = |mode: &str| {
        let mut client = Command::new(&program);
        client.args([mode, &ior, &EVENTS.to_string()]);
        Running::start(&mut client)
    };
    let mut consumers = [client("consume"), client("pull")];
    for consumer in &mut consumers {
        consumer.line_with("ready");
    }
    let (status, said) = client("push").wait();
    assert!(status.success(), "{said:?}");
    let moved = (0..EVENTS).map(|knots| format!("moved 54.5 10.25 {knots}"));
    let expected: Vec<String> = moved.chain(["renamed Kiel".to_owned()]).collect();
    for consumer in consumers {
        let (status, said) = consumer.wait();
        let is_call = |line: &&String| line.starts_with("moved") || line.starts_with("renamed");
        let calls: Vec<_> = said.iter().filter(is_call).collect();
        assert_eq!(calls, expected.iter().collect::<Vec<_>>());
        assert!(status.success(), "{said:?}");
    }
    process.terminate();
    let (_, said) = process.wait();
    let counts = format!("events received {}", EVENTS + 1);
    assert!(
        said.iter().any(|line| line.starts_with(&counts)),
        "{said:?}"
    );
}

/// omniEvents with a naming service of ours.
struct OmniEvents {
    _names: Names,
    _process: Running,
    folder: std::path::PathBuf,
    orb: Orb,
    factory: EventChannelFactoryRef,
}

impl OmniEvents {
    fn start(test: &str) -> Option<Self> {
        program("omniEvents")?;
        let folder = scratch(test);
        let names = Names::start();
        let port = free_port();
        let process = Running::start(
            Command::new("omniEvents")
                .args(["-f", "-p", &port.to_string(), "-t", "/dev/stderr", "-l"])
                .arg(&folder)
                .args(names.initial()),
        );
        let orb = serving_orb();
        let factory = object(&orb, &format!("corbaloc::127.0.0.1:{port}/omniEvents"));
        wait_for(|| factory.non_existent() == Ok(false));
        let factory = EventChannelFactoryRef::narrow(&factory);
        let factory = factory.expect("an answer").expect("a factory");
        Some(Self {
            _names: names,
            _process: process,
            folder,
            orb,
            factory,
        })
    }

    fn create(&self) -> EventChannelRef {
        let key = [NameComponent {
            id: "EventChannel".to_owned(),
            kind: "object interface".to_owned(),
        }];
        let fast = |name: &str, value: u32| NameValuePair {
            name: name.to_owned(),
            value: number(value),
        };
        let criteria = [
            fast("CyclePeriod_ns", 1_000_000),
            fast("PullRetryPeriod_ms", 1),
        ];
        let channel = self.factory.create_object(&key, &criteria);
        let channel = channel.expect("an answer").expect("not nil");
        EventChannelRef::narrow(&channel)
            .expect("an answer")
            .expect("a channel")
    }
}

impl Drop for OmniEvents {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true); // It may have ended.
        let _ = std::fs::remove_dir_all(&self.folder); // It may be gone already.
    }
}

/// A consumer of ours.
struct Taker(Sender<u32>);

impl PushConsumer for Taker {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        let value = data.extract().expect("a number");
        self.0.send(value).expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

fn taker(orb: &Orb, channel: &EventChannelRef) -> Receiver<u32> {
    let (taken, events) = channel_of_numbers();
    let consumer = activate(orb, Arc::new(PushConsumerSkeleton::new(Taker(taken))));
    let proxy = consumers(channel).obtain_push_supplier();
    let proxy = proxy.expect("an answer").expect("not nil");
    let consumer = PushConsumerRef::unchecked_narrow(consumer);
    proxy
        .connect_push_consumer(Some(&consumer))
        .expect("connected");
    events
}

fn channel_of_numbers() -> (Sender<u32>, Receiver<u32>) {
    channel()
}

/// A supplier of ours that has the numbers from 0.
#[derive(Default)]
struct Counting(AtomicU32);

impl PullSupplier for Counting {
    fn pull(&self) -> Result<Any, PullSupplierPullError> {
        Ok(number(self.0.fetch_add(1, SeqCst)))
    }

    fn try_pull(&self) -> Result<(Any, bool), PullSupplierTryPullError> {
        Ok((number(self.0.fetch_add(1, SeqCst)), true))
    }

    fn disconnect_pull_supplier(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn our_suppliers_and_consumers_use_omni_events_in_all_four_ways() {
    let Some(theirs) = OmniEvents::start("omnievents-clients") else {
        return;
    };
    let pushed = theirs.create();
    let (events, reader) = (taker(&theirs.orb, &pushed), puller(&pushed));
    let supplier = supplier(&pushed);
    for value in 0..10 {
        supplier.push(&number(value)).expect("pushed");
    }
    for value in 0..10 {
        assert_eq!(events.recv_timeout(PATIENCE), Ok(value));
        assert_eq!(next(&reader), value);
    }
    let pulled = theirs.create();
    let (events, reader) = (taker(&theirs.orb, &pulled), puller(&pulled));
    let counting = Arc::new(PullSupplierSkeleton::new(Counting::default()));
    let counting = PullSupplierRef::unchecked_narrow(activate(&theirs.orb, counting));
    let proxy = suppliers(&pulled).obtain_pull_consumer();
    let proxy = proxy.expect("an answer").expect("not nil");
    proxy
        .connect_pull_supplier(Some(&counting))
        .expect("connected");
    for value in 0..10 {
        assert_eq!(events.recv_timeout(PATIENCE), Ok(value));
        assert_eq!(next(&reader), value);
    }
    proxy.disconnect_pull_consumer().expect("an answer");
}

#[test]
fn our_channel_and_omni_events_pull_from_each_other() {
    let Some(theirs) = OmniEvents::start("omnievents-chain") else {
        return;
    };
    let mut process = Running::start(deckwatch().args(["channel", "--pull-period", "10"]));
    let ours = object(&theirs.orb, &process.line_with("IOR:"));
    let ours = EventChannelRef::unchecked_narrow(ours);
    let (first, last) = (theirs.create(), theirs.create());
    // From theirs into ours, and from ours into theirs.
    for (from, to) in [(&first, &ours), (&ours, &last)] {
        let link = PullSupplierRef::unchecked_narrow(puller(from).object().clone());
        let proxy = suppliers(to).obtain_pull_consumer();
        let proxy = proxy.expect("an answer").expect("not nil");
        proxy.connect_pull_supplier(Some(&link)).expect("connected");
    }
    let reader = puller(&last);
    let supplier = supplier(&first);
    for value in 0..10 {
        supplier.push(&number(value)).expect("pushed");
    }
    for value in 0..10 {
        assert_eq!(next(&reader), value);
    }
    process.terminate();
    let (status, said) = process.wait();
    assert!(status.success(), "{said:?}");
}

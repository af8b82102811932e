//! `deckwatch channel --store`: a channel that is killed keeps its clients after a restart.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin as cos;
use deckwatch_event::cos_event_comm::{
    PushConsumer as CosConsumer, PushConsumerPushError, PushConsumerRef as CosConsumerRef,
    PushConsumerSkeleton as CosConsumerSkeleton,
};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannelRef, ProxyPushConsumerRef, ProxyPushSupplierRef,
    SupplierQOS,
};
use deckwatch_event::rtec_event_comm::{
    Event, EventHeader, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_orb::{
    ObjectRef, Orb, Policy, Servant, SetOverrideType, SyncScope, SystemException,
    SystemExceptionKind as Kind,
};

use rustix::process::Signal;

use crate::watched::signal;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A running channel and its reference. Killed when dropped.
pub(crate) struct Channel {
    pub(crate) process: Child,
    pub(crate) ior: String,
}

impl Channel {
    fn start(store: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        command.arg("channel").arg("--store").arg(store).args(more);
        Self::of(&mut command)
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let spawned = command.stdout(Stdio::piped()).spawn();
        let mut process = spawned.expect("the program starts");
        let mut ior = String::new();
        let said = process.stdout.take().expect("a pipe");
        BufReader::new(said).read_line(&mut ior).expect("a line");
        let ior = ior.trim().to_owned();
        assert!(ior.starts_with("IOR:"), "it serves");
        Self { process, ior }
    }

    pub(crate) fn kill(mut self) {
        self.process.kill().expect("SIGKILL");
        self.process.wait().expect("it is gone");
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder that is removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("deckwatch-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("writable");
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self) -> PathBuf {
        self.0.join("nav.store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Taker(pub(crate) Mutex<Sender<i32>>);

impl PushConsumer for Taker {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        for event in data {
            let _ = self.0.lock().expect("whole").send(event.header.source);
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        let _ = self.0.lock().expect("whole").send(-1);
        Ok(())
    }
}

impl CosConsumer for Taker {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        let number = data.extract::<i32>().expect("a long");
        let _ = self.0.lock().expect("whole").send(number);
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        let _ = self.0.lock().expect("whole").send(-1);
        Ok(())
    }
}

pub(crate) fn client() -> Orb {
    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = builder.build().expect("an ORB");
    let root = orb.root_poa().expect("a root adapter");
    root.the_poa_manager().activate().expect("active");
    orb
}

fn activate(orb: &Orb, servant: Arc<dyn Servant>) -> ObjectRef {
    let root = orb.root_poa().expect("a root adapter");
    root.servant_to_reference(&servant).expect("a reference")
}

pub(crate) fn real_time(orb: &Orb, channel: &Channel) -> EventChannelRef {
    let object = orb.string_to_object(&channel.ior).expect("an IOR");
    EventChannelRef::unchecked_narrow(object.expect("not nil"))
}

/// A consumer of one type of events, connected.
pub(crate) fn consume(
    orb: &Orb,
    channel: &EventChannelRef,
    kind: i32,
) -> (ProxyPushSupplierRef, Receiver<i32>) {
    let (told, taken) = channel_of_numbers();
    let taker = PushConsumerSkeleton::new(Taker(Mutex::new(told)));
    let consumer = PushConsumerRef::unchecked_narrow(activate(orb, Arc::new(taker)));
    let admin = channel.for_consumers().expect("an answer").expect("one");
    let proxy = admin.obtain_push_supplier().expect("an answer");
    let proxy = proxy.expect("one");
    let qos = ConsumerQOS {
        dependencies: vec![Dependency {
            event: event(0, kind),
            rt_info: 0,
        }],
        is_gateway: false,
    };
    let connected = proxy.connect_push_consumer(Some(&consumer), &qos);
    connected.expect("connected");
    (proxy, taken)
}

fn channel_of_numbers() -> (Sender<i32>, Receiver<i32>) {
    channel()
}

/// A connected supplier whose pushes return once the channel has served them.
pub(crate) fn supply(channel: &EventChannelRef) -> ProxyPushConsumerRef {
    let admin = channel.for_suppliers().expect("an answer").expect("one");
    let proxy = admin.obtain_push_consumer().expect("an answer");
    let proxy = proxy.expect("one");
    let connected = proxy.connect_push_supplier(None, &SupplierQOS::default());
    connected.expect("connected");
    let served = [Policy::SyncScope(SyncScope::WithTarget)];
    let object = proxy.object();
    let object = object.set_policy_overrides(&served, SetOverrideType::AddOverride);
    ProxyPushConsumerRef::unchecked_narrow(object.expect("a policy of callers"))
}

pub(crate) fn event(source: i32, kind: i32) -> Event {
    Event {
        header: EventHeader {
            r#type: kind,
            source,
            ttl: 1,
            ..EventHeader::default()
        },
        ..Event::default()
    }
}

#[test]
fn clients_of_a_killed_real_time_channel_are_connected_again_with_their_filters() {
    let folder = Folder::new("stored-rt");
    let start = || Channel::start(&folder.file(), &["--real-time"]);
    let orb = client();
    let first = start();
    let channel = real_time(&orb, &first);
    let (_, taken) = consume(&orb, &channel, 17);
    let (suspended, missed) = consume(&orb, &channel, 17);
    suspended.suspend_connection().expect("an answer");
    let (leaver, left) = consume(&orb, &channel, 17);
    leaver.disconnect_push_supplier().expect("an answer");
    let supplier = supply(&channel);
    supplier.push(&[event(1, 17)]).expect("served");
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(1));
    let ior = first.ior.clone();
    first.kill();

    let second = start();
    assert_eq!(second.ior, ior, "the port and the key are kept");
    supplier.push(&[event(2, 18)]).expect("served");
    supplier.push(&[event(3, 17)]).expect("served");
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(3), "its filter is kept");
    suspended.resume_connection().expect("its proxy works");
    supplier.push(&[event(4, 17)]).expect("served");
    assert_eq!(missed.recv_timeout(PATIENCE), Ok(4), "it was suspended");
    assert_eq!(left.try_recv().ok(), None, "it had left");
    let (_, new) = consume(&orb, &channel, 17);
    supplier.push(&[event(5, 17)]).expect("served");
    assert_eq!(new.recv_timeout(PATIENCE), Ok(5));
    assert_eq!(
        taken.recv_timeout(PATIENCE),
        Ok(4),
        "no other's proxy is given twice"
    );
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(5));

    // A destroyed channel has no clients in its next life.
    channel.destroy().expect("an answer");
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(-1));
    let mut ended = second;
    ended.process.wait().expect("it ends");
    let third = start();
    let supplier = supply(&real_time(&orb, &third));
    supplier.push(&[event(6, 17)]).expect("served");
    let (_, new) = consume(&orb, &real_time(&orb, &third), 17);
    supplier.push(&[event(7, 17)]).expect("served");
    assert_eq!(new.recv_timeout(PATIENCE), Ok(7));
    assert_eq!(taken.try_recv().ok(), None);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn clients_of_a_killed_cos_channel_are_connected_again() {
    let folder = Folder::new("stored-cos");
    let start = || Channel::start(&folder.file(), &[]);
    let orb = client();
    let first = start();
    let object = orb.string_to_object(&first.ior).expect("an IOR");
    let channel = cos::EventChannelRef::unchecked_narrow(object.expect("not nil"));
    let consumers = channel.for_consumers().expect("an answer").expect("one");
    let suppliers = channel.for_suppliers().expect("an answer").expect("one");
    let (told, taken) = channel_of_numbers();
    let taker = CosConsumerSkeleton::new(Taker(Mutex::new(told)));
    let consumer = CosConsumerRef::unchecked_narrow(activate(&orb, Arc::new(taker)));
    let pushing = consumers.obtain_push_supplier().expect("an answer");
    let pushing = pushing.expect("one");
    pushing
        .connect_push_consumer(Some(&consumer))
        .expect("connected");
    let pulled = consumers.obtain_pull_supplier().expect("an answer");
    let pulled = pulled.expect("one");
    pulled.connect_pull_consumer(None).expect("connected");
    let supplier = suppliers.obtain_push_consumer().expect("an answer");
    let supplier = supplier.expect("one");
    supplier.connect_push_supplier(None).expect("connected");
    let push = |number: i32| supplier.push(&Any::from_value(&number).expect("a long"));
    push(1).expect("served");
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(1));
    first.kill();

    let _second = start();
    push(2).expect("served");
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(2));
    let (event, has_event) = pulled.try_pull().expect("connected");
    assert!(has_event, "its queue is new, its connection is not");
    assert_eq!(event.extract::<i32>().ok(), Some(2));
    pushing.disconnect_push_supplier().expect("an answer");
    orb.shutdown(true).expect("it ends");
}

#[test]
fn a_consumer_that_is_dead_after_the_restart_is_removed() {
    let folder = Folder::new("stored-dead");
    let start = || Channel::start(&folder.file(), &["--real-time"]);
    let first = start();
    let orb = client();
    let dead = client();
    let (proxy, _) = consume(&dead, &real_time(&dead, &first), 17);
    let proxy = orb.string_to_object(&dead.object_to_string(proxy.object()));
    let proxy = proxy.expect("an IOR").expect("not nil");
    first.kill();
    dead.shutdown(true).expect("it ends");

    let second = start();
    let supplier = supply(&real_time(&orb, &second));
    assert_eq!(proxy.non_existent(), Ok(false), "not known yet");
    let begun = Instant::now();
    while proxy.non_existent() == Ok(false) {
        assert!(begun.elapsed() < PATIENCE, "it is never removed");
        supplier.push(&[event(1, 17)]).expect("served");
    }
    orb.shutdown(true).expect("it ends");
}

#[test]
fn a_store_that_is_damaged_or_of_another_kind_is_reported_by_name() {
    let folder = Folder::new("stored-damage");
    drop(Channel::start(&folder.file(), &[]));
    let refused = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        command.arg("channel").arg("--store").arg(folder.file());
        let output = command.args(more).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let other = refused(&["--real-time"]);
    assert!(other.contains("a channel of the other kind"), "{other}");
    std::fs::write(folder.file(), "these octets are no store").expect("writable");
    let damaged = refused(&[]);
    assert!(damaged.contains("nav.store"), "{damaged}");
    assert!(!damaged.contains("panicked"), "{damaged}");
}

#[test]
fn a_full_disk_refuses_a_connect_and_the_channel_goes_on() {
    if let Some(reason) = deckwatch_testbed::Testbed::obstacle() {
        return deckwatch_testkit::skip("namespaces", &reason);
    }
    let folder = Folder::new("stored-full");
    // A small disk in a mount namespace of the channel alone.
    let script = "mount -t tmpfs -o size=8m tmpfs \"$1\" && cd \"$1\" && exec \"$2\" channel --real-time --store it";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]);
    command.arg(&folder.0).arg(env!("CARGO_BIN_EXE_deckwatch"));
    let channel = Channel::of(&mut command);
    let disk = format!("/proc/{}/root{}", channel.process.id(), folder.0.display());
    let filler = Path::new(&disk).join("filler");
    let orb = client();
    let served = real_time(&orb, &channel);
    let (before, taken) = consume(&orb, &served, 17);
    let supplier = supply(&served);

    let mut file = File::create(&filler).expect("the disk of the channel");
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let admin = served.for_consumers().expect("an answer").expect("one");
    let (told, lost) = channel_of_numbers();
    let taker = PushConsumerSkeleton::new(Taker(Mutex::new(told)));
    let consumer = PushConsumerRef::unchecked_narrow(activate(&orb, Arc::new(taker)));
    // Pages that the store has freed take some more records.
    let refused = (0..2_000).find_map(|_| {
        let proxy = admin.obtain_push_supplier().expect("an answer");
        let proxy = proxy.expect("one");
        let qos = ConsumerQOS {
            dependencies: vec![Dependency::default(); 40],
            is_gateway: true,
        };
        let refused = proxy.connect_push_consumer(Some(&consumer), &qos).err()?;
        Some((proxy, refused))
    });
    let (proxy, refused) = refused.expect("the disk is full");
    let refused = format!("{refused:?}");
    assert!(
        refused.contains(&format!("{:?}", Kind::PersistStore)),
        "{refused}"
    );
    supplier.push(&[event(1, 17)]).expect("served");
    assert_eq!(taken.recv_timeout(PATIENCE), Ok(1), "others are served");
    let stays = before.disconnect_push_supplier();
    if stays.is_err() {
        supplier.push(&[event(2, 17)]).expect("served");
        assert_eq!(taken.recv_timeout(PATIENCE), Ok(2), "it is still connected");
    }

    std::fs::remove_file(filler).expect("it is there");
    let qos = ConsumerQOS::default();
    let connected = proxy.connect_push_consumer(Some(&consumer), &qos);
    connected.expect("the disk has room, and the proxy was not half connected");
    drop(lost);
    orb.shutdown(true).expect("it ends");
}

#[test]
fn a_stricter_table_disconnects_whom_it_refuses_at_once_and_after_a_restart() {
    let folder = Folder::new("stored-access");
    let (table, audit) = (
        folder.path().join("access.toml"),
        folder.path().join("audit"),
    );
    let permit = |types: &str| {
        let supply = "[[allow]]\nwho = [\"this-host\"]\nmay = [\"supply\"]\n";
        let consume =
            format!("[[allow]]\nwho = [\"this-host\"]\nmay = [\"consume\"]\ntypes = [{types}]\n");
        std::fs::write(&table, format!("{supply}{consume}")).expect("writable");
    };
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        command
            .args(["channel", "--real-time", "--store"])
            .arg(folder.file());
        command
            .arg("--access")
            .arg(&table)
            .arg("--audit")
            .arg(&audit);
        Channel::of(&mut command)
    };
    permit("\"17-19\"");
    let orb = client();
    let first = start();
    let channel = real_time(&orb, &first);
    let (_, stays) = consume(&orb, &channel, 17);
    let (_, goes) = consume(&orb, &channel, 18);
    let (_, goes_later) = consume(&orb, &channel, 19);
    let supplier = supply(&channel);
    let push = |number| {
        for kind in 17..=19 {
            supplier.push(&[event(number, kind)]).expect("served");
        }
    };
    push(1);
    assert_eq!(goes.recv_timeout(PATIENCE), Ok(1));
    permit("\"17\", \"19\"");
    signal(&[first.process.id()], Signal::HUP);
    let mut last = 1;
    let end = loop {
        last += 1;
        push(last);
        match goes.recv_timeout(PATIENCE).expect("told") {
            -1 => break -1,
            number => assert_eq!(number, last, "until the table is read"),
        }
    };
    assert_eq!(end, -1, "it is disconnected");
    for number in 1..=last {
        assert_eq!(stays.recv_timeout(PATIENCE), Ok(number));
        assert_eq!(goes_later.recv_timeout(PATIENCE), Ok(number));
    }
    await_line(&audit, "disconnected");
    first.kill();

    permit("\"17\"");
    let _second = start();
    push(last + 1);
    assert_eq!(stays.recv_timeout(PATIENCE), Ok(last + 1));
    assert_eq!(goes.try_recv().ok(), None);
    assert_eq!(
        goes_later.try_recv().ok(),
        None,
        "it is not connected again"
    );
    await_line(&audit, "refused");
    orb.shutdown(true).expect("it ends");
}

/// Waits until the log has this event: a thread of its own writes it.
fn await_line(audit: &Path, event: &str) {
    let (begun, event) = (Instant::now(), format!("\"event\":\"{event}\""));
    while !std::fs::read_to_string(audit).is_ok_and(|log| log.contains(&event)) {
        assert!(begun.elapsed() < PATIENCE, "no {event}");
        std::thread::yield_now();
    }
}

#[test]
fn rights_of_others_to_stores_that_exist_are_taken_and_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("stored-rights");
    Channel::start(&folder.file(), &[]).kill();
    let names = folder.path().join("names.store");
    let run = |arguments: &[&str], store: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
        let output = command.args(arguments).arg("--store").arg(store).output();
        String::from_utf8(output.expect("it starts").stderr).expect("text")
    };
    // Each opens its store, and ends by itself: no interface has that address.
    let gc = ["names", "gc", "--sweep"];
    let channel = ["channel", "--listen", "203.0.113.9:1"];
    let mut service = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    service.args(["names", "serve", "--store"]).arg(&names);
    Channel::of(&mut service).kill();
    for (arguments, store) in [(&gc[..], &names), (&channel[..], &folder.file())] {
        let all = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(store, all).expect("its own");
        let told = run(arguments, store);
        let words = "others could use the store";
        assert!(told.contains(words) && told.contains("mode 644"), "{told}");
        let mode = std::fs::metadata(store).expect("it is there").permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{arguments:?}");
        assert!(!run(arguments, store).contains(words));
    }
}

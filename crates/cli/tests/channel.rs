//! `deckwatch channel` as its suppliers and consumers see it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use deckwatch_cdr::Any;
use deckwatch_event::cos_event_channel_admin::EventChannelRef;
use deckwatch_event::cos_event_comm::{
    PushConsumer, PushConsumerPushError, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_event::deckwatch::ChannelStatusRef;
use deckwatch_orb::{Orb, Servant, SystemException};

const PATIENCE: Duration = Duration::from_secs(60);

/// A consumer that blocks in each push until `may` allows it to return. It sends the event to `taken`, or `None` when
/// the channel has ended.
struct Slow {
    may: Mutex<Receiver<()>>,
    taken: Sender<Option<u32>>,
}

impl PushConsumer for Slow {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        let may = self.may.lock().expect("one event at a time");
        may.recv_timeout(PATIENCE).expect("leave is given");
        let number = data.extract::<u32>().expect("an unsigned long");
        self.taken.send(Some(number)).expect("the test listens");
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.taken.send(None).expect("the test listens");
        Ok(())
    }
}

/// A process that is killed when this is dropped, if it still runs.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _waited = self.0.wait();
    }
}

#[test]
fn who_is_slow_has_all_that_was_sent_before_a_destroyed_channel_ends() {
    let process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
        .args(["channel", "--push-timeout", "60"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut process = Process(process);
    let mut ior = String::new();
    let said = process.0.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut ior).expect("a line");

    let builder = Orb::builder().listen("127.0.0.1:0").expect("an endpoint");
    let orb = builder.build().expect("an ORB");
    let poa = orb.root_poa().expect("a root adapter");
    poa.the_poa_manager().activate().expect("active");
    let (leave, may) = channel();
    let (taken, takes) = channel();
    let slow = Slow {
        may: Mutex::new(may),
        taken,
    };
    let servant: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(slow));
    let consumer = poa.servant_to_reference(&servant).expect("a reference");

    let object = orb.string_to_object(ior.trim()).expect("an IOR");
    let served = EventChannelRef::unchecked_narrow(object.expect("not nil"));
    let admin = served.for_consumers().expect("an answer").expect("one");
    let proxy = admin.obtain_push_supplier().expect("an answer");
    let consumer = PushConsumerRef::unchecked_narrow(consumer);
    let connected = proxy.expect("one").connect_push_consumer(Some(&consumer));
    connected.expect("connected");
    let admin = served.for_suppliers().expect("an answer").expect("one");
    let supplier = admin.obtain_push_consumer().expect("an answer");
    let supplier = supplier.expect("one");
    supplier.connect_push_supplier(None).expect("connected");
    for number in 0..3_u32 {
        let event = Any::from_value(&number).expect("an event");
        supplier.push(&event).expect("pushed");
    }
    served.destroy().expect("destroyed");
    // The consumer returns no event before `leave` allows it. The process must not end before it has delivered all
    // events.
    assert!(takes.recv_timeout(Duration::from_millis(500)).is_err());
    for number in 0..3 {
        leave.send(()).expect("it waits");
        assert_eq!(takes.recv_timeout(PATIENCE), Ok(Some(number)));
    }
    assert_eq!(takes.recv_timeout(PATIENCE), Ok(None), "the end is told");
    assert!(process.0.wait().expect("it ends").success());
    orb.shutdown(true).expect("it ends");
}

#[test]
fn an_interface_of_no_events_is_refused_with_its_place_and_what_to_write() {
    let folder = std::env::temp_dir().join(format!("deckwatch-typed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let idl = folder.join("it.idl");
    let declared = "interface Nav { void moved(in long to); long where(); };";
    std::fs::write(&idl, declared).expect("writable");
    let said = |interface: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(["channel", "--interface", interface, "--typed"])
            .arg(&idl)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let returns = said("Nav");
    let expected = "it.idl:1:46: `where` is no event: it returns a value; write `void`";
    assert!(returns.contains(expected), "{returns}");
    let unknown = said("IDL:Sonar:1.0");
    assert!(
        unknown.contains("no interface `IDL:Sonar:1.0`"),
        "{unknown}"
    );
    std::fs::write(&idl, "interface {").expect("writable");
    let broken = said("Nav");
    assert!(broken.contains("it.idl:1:11"), "{broken}");
    std::fs::remove_dir_all(folder).expect("the folder goes");
}

#[test]
fn an_access_file_allows_what_it_names_and_refuses_the_rest_with_a_count_and_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.toml");
    let rules = "[[allow]]\nwho = [\"127.0.0.1\"]\nmay = [\"supply\", \"observe\"]\n";
    std::fs::write(&file, rules).expect("written");
    for (kind, header) in [
        (&[][..], &[][..]),
        (&["--real-time"], &["--event-type", "20"]),
    ] {
        let process = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
            .args(["channel", "--listen", "127.0.0.1:0", "--access"])
            .arg(&file)
            .args(kind)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut process = Process(process);
        let mut ior = String::new();
        let said = process.0.stdout.take().expect("a pipe");
        BufReader::new(said).read_line(&mut ior).expect("a line");
        let run = |arguments: &[&str]| {
            let output = Command::new(env!("CARGO_BIN_EXE_deckwatch"))
                .arg("events")
                .args(arguments)
                .args(["--ior", ior.trim()])
                .env("NO_COLOR", "1")
                .output()
                .expect("the program starts");
            let errors = String::from_utf8(output.stderr).expect("UTF-8");
            (output.status.code(), errors)
        };
        let publish = ["publish", "--type", "unsigned long", "7"];
        let (status, errors) = run(&[&publish[..], header].concat());
        assert_eq!((status, &*errors), (Some(0), "Sent 1 event.\n"), "{kind:?}");
        let (status, errors) = run(&["echo", "--count", "1"]);
        assert_eq!(status, Some(2), "{errors}");
        assert!(errors.contains("NO_PERMISSION"), "{errors}");
        let orb = Orb::builder().build().expect("an ORB");
        let object = orb.string_to_object(ior.trim()).expect("an IOR");
        let status = ChannelStatusRef::unchecked_narrow(object.expect("not nil"));
        let report = status.report().expect("an answer");
        assert_eq!((report.received, report.consumers), (1, 0), "{kind:?}");
        assert!(report.denied > 0, "{kind:?}");
        orb.shutdown(true).expect("it ends");
        let mut said = BufReader::new(process.0.stderr.take().expect("a pipe")).lines();
        let refused = said.find_map(|line| line.ok().filter(|line| line.starts_with("refused: ")));
        let refused = refused.expect("a line for the refusal");
        assert!(
            refused.contains("127.0.0.1") && refused.contains("consume"),
            "{refused}"
        );
    }
}

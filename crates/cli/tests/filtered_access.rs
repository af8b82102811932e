//! `deckwatch channel --real-time --access` against consumers whose filters would reach types that the table forbids: by
//! masks, negations and groups of all kinds, in the form of TAO's clients.

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};

use deckwatch_event::filter::designator::{
    ANY, BITMASK, CONJUNCTION, DISJUNCTION, GLOBAL, LOGICAL_AND, MASKED_TYPE, NEGATION, NULL,
    TIMEOUT,
};
use deckwatch_event::rtec_event_channel_admin::{
    ConsumerQOS, Dependency, EventChannelRef, ProxyPushSupplierConnectPushConsumerError,
};
use deckwatch_event::rtec_event_comm::{
    Event, PushConsumer, PushConsumerRef, PushConsumerSkeleton,
};
use deckwatch_orb::{Orb, Servant, SystemException, SystemExceptionKind as Kind};

use crate::stored_channel::{Channel, PATIENCE, client, event, real_time, supply};

/// A filter's list: (source, type).
type List = &'static [(i32, i32)];

/// The types that consumers may have.
const FIRST: i32 = 16;
const LAST: i32 = 31;

/// Filters that match events of a forbidden type, or may.
const REACHING: [List; 12] = [
    &[(5, ANY)],
    &[(0, NULL)],
    &[(2, DISJUNCTION), (0, 16), (0, 32)],
    &[(2, GLOBAL), (0, 16), (0, 15)],
    &[(2, CONJUNCTION), (0, 16), (0, 32)],
    &[(0, NEGATION), (0, 16)],
    &[(0, NEGATION), (0, NEGATION), (0, 16)],
    &[(0, LOGICAL_AND)],
    &[
        (2, LOGICAL_AND),
        (0, NEGATION),
        (0, 40),
        (0, NEGATION),
        (0, 41),
    ],
    &[(0, BITMASK), (-1, -1), (0, NULL)],
    &[(0, BITMASK), (-1, 48), (2, DISJUNCTION), (0, 16), (0, 33)],
    &[(0, MASKED_TYPE), (0, 1), (0, 1)],
];

/// Filters that match no other events than those of permitted types. The flag: they match some.
const PERMITTED: [(List, bool); 8] = [
    (&[(0, 16)], true),
    (&[(3, DISJUNCTION), (0, 16), (0, 20), (2, 31)], true),
    (&[(2, CONJUNCTION), (0, 16), (0, 17)], true),
    (&[(2, LOGICAL_AND), (0, 18), (0, NEGATION), (0, 40)], true),
    (&[(2, LOGICAL_AND), (0, NEGATION), (3, ANY), (0, 19)], true),
    (&[(0, BITMASK), (-1, -1), (0, 21)], true),
    (&[(0, BITMASK), (-1, 32), (0, 21)], false),
    (
        &[(2, LOGICAL_AND), (0, TIMEOUT), (0, NEGATION), (0, 16)],
        false,
    ),
];

/// A consumer that keeps the types that it gets, and notifies the test of the last one.
struct Keeper {
    types: Arc<Mutex<Vec<i32>>>,
    last: mpsc::Sender<()>,
}

impl PushConsumer for Keeper {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        let types = data.iter().map(|event| event.header.r#type);
        self.types.lock().expect("whole").extend(types);
        if data.iter().any(|event| event.header.source == SOURCE_LAST) {
            let _ = self.last.send(()); // The test may have ended.
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The source of the event behind all others.
const SOURCE_LAST: i32 = 99;

type Types = Arc<Mutex<Vec<i32>>>;

/// Connects a consumer with this filter.
fn consume(
    orb: &Orb,
    channel: &EventChannelRef,
    list: List,
) -> Result<(Types, mpsc::Receiver<()>), SystemException> {
    let types = Types::default();
    let (last, told) = mpsc::channel();
    let keeper = Keeper {
        types: Arc::clone(&types),
        last,
    };
    let servant: Arc<dyn Servant> = Arc::new(PushConsumerSkeleton::new(keeper));
    let root = orb.root_poa().expect("a root adapter");
    let own = root.servant_to_reference(&servant).expect("a reference");
    let own = PushConsumerRef::unchecked_narrow(own);
    let dependency = |&(source, kind): &(i32, i32)| Dependency {
        event: event(source, kind),
        rt_info: 0,
    };
    let qos = ConsumerQOS {
        dependencies: list.iter().map(dependency).collect(),
        is_gateway: false,
    };
    let admin = channel.for_consumers().expect("an answer").expect("one");
    let proxy = admin.obtain_push_supplier().expect("an answer");
    match proxy.expect("one").connect_push_consumer(Some(&own), &qos) {
        Ok(()) => Ok((types, told)),
        Err(ProxyPushSupplierConnectPushConsumerError::System(refused)) => Err(refused),
        Err(other) => panic!("a system exception, not {other:?}"),
    }
}

#[test]
fn no_filter_reaches_types_that_the_table_forbids() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("access.toml");
    let rules = "[[allow]]\nwho = [\"127.0.0.1\"]\nmay = [\"supply\", \"administer\"]\n\
                 [[allow]]\nwho = [\"127.0.0.1\"]\nmay = [\"consume\"]\ntypes = [\"16-31\"]\n";
    std::fs::write(&file, rules).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deckwatch"));
    command.args([
        "channel",
        "--real-time",
        "--listen",
        "127.0.0.1:0",
        "--access",
    ]);
    let mut served = Channel::of(command.arg(&file).stderr(Stdio::piped()));
    let orb = client();
    let channel = real_time(&orb, &served);
    for list in REACHING {
        let refused = consume(&orb, &channel, list).map(drop);
        let refused = refused.expect_err("it is not permitted");
        assert_eq!(refused.kind, Kind::NoPermission, "{list:?}");
    }
    let connected = PERMITTED.map(|(list, has_some)| {
        let consumer = consume(&orb, &channel, list);
        (list, has_some, consumer.expect("it is permitted"))
    });
    // It is behind the others on their connection.
    let (_, told) = consume(&orb, &channel, &[(SOURCE_LAST, LAST)]).expect("permitted");
    let supplier = supply(&channel);
    for source in [1, 2, 3, i32::MAX, -1] {
        let of_each_type = (1..=64).chain([i32::MAX, i32::MIN, -1]);
        for kind in of_each_type {
            supplier.push(&[event(source, kind)]).expect("permitted");
        }
    }
    supplier
        .push(&[event(SOURCE_LAST, LAST)])
        .expect("permitted");
    told.recv_timeout(PATIENCE).expect("the last event");
    for (list, has_some, (types, _)) in &connected {
        let types = types.lock().expect("whole");
        assert_eq!(!types.is_empty(), *has_some, "{list:?}: {types:?}");
        let is_permitted = |kind: &i32| (FIRST..=LAST).contains(kind);
        assert!(types.iter().all(is_permitted), "{list:?}: {types:?}");
    }
    channel.destroy().expect("an answer");
    let mut told = String::new();
    let mut stderr = served.process.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut told).expect("text");
    assert!(served.process.wait().expect("it ends").success(), "{told}");
    assert!(
        told.contains("may not consume (type 32, source any)"),
        "{told}"
    );
    let denied = format!("requests denied {}", REACHING.len());
    assert!(told.contains(&denied), "{denied}: {told}");
    orb.shutdown(true).expect("it ends");
}

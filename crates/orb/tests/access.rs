//! A table before the objects of an adapter: who may call which operations on which objects.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use deckwatch_access::{Action, Rule, Table, Who};
use deckwatch_orb::limits::REFUSALS_KEPT_MAX;
use deckwatch_orb::{
    Access, AccessEvent, AccessLog, Caller, Counter, Guard, IdAssignment, IdUniqueness, Need,
    ObjectRef, Orb, Policies, RequestProcessing, Servant, ServantActivator, ServantLocator,
    ServantManager, ServantRetention, ServerRequest, SystemException, SystemExceptionKind as Kind,
    ThreadPolicy, Vocabulary, own_minor,
};

use crate::support::{TEST_ID, call, seen_by, socket_path};

struct Anything;

impl Servant for Anything {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[TEST_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        request.reply().map(drop)
    }
}

/// Provides the servant of any object. A caller without permission does not reach it.
struct Provider;

impl ServantLocator for Provider {
    fn preinvoke(
        &self,
        _id: &[u8],
        _adapter: &deckwatch_orb::Poa,
        operation: &str,
        _cookie: &mut deckwatch_orb::Cookie,
    ) -> Result<Arc<dyn Servant>, deckwatch_orb::ServantManagerError> {
        assert_ne!(
            operation, "secret",
            "a refused request reaches no servant manager"
        );
        Ok(Arc::new(Anything))
    }

    fn postinvoke(
        &self,
        _id: &[u8],
        _adapter: &deckwatch_orb::Poa,
        _operation: &str,
        _cookie: deckwatch_orb::Cookie,
        _servant: Arc<dyn Servant>,
    ) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Lets an adapter serve by what its policies say.
fn provide(poa: &deckwatch_orb::Poa) {
    match poa.policies().request_processing {
        RequestProcessing::UseActiveObjectMapOnly => {
            poa.activate_object_with_id(b"gyro", Arc::new(Anything))
                .unwrap();
        }
        RequestProcessing::UseDefaultServant => poa.set_servant(Arc::new(Anything)).unwrap(),
        RequestProcessing::UseServantManager => {
            let locator = ServantManager::Locator(Arc::new(Provider));
            poa.set_servant_manager(locator).unwrap();
        }
    }
}

fn rule(who: Who, operations: &[&str], on: &[&str]) -> Rule {
    Rule {
        who: vec![who],
        operations: operations.iter().map(|&it| it.to_owned()).collect(),
        on: Some(on.iter().map(|&it| it.to_owned()).collect()),
        ..Rule::default()
    }
}

fn is_denied(outcome: Result<(), SystemException>) -> bool {
    outcome.is_err_and(|raised| {
        (raised.kind, raised.minor) == (Kind::NoPermission, own_minor::ACCESS_DENIED)
    })
}

#[test]
fn adapter_with_a_table_serves_what_a_rule_permits_on_each_road_to_a_servant() {
    let user_ids = Policies {
        id_assignment: IdAssignment::UserId,
        ..Policies::default()
    };
    let roads = [
        user_ids,
        Policies {
            thread: ThreadPolicy::SingleThreadModel,
            ..user_ids
        },
        Policies {
            request_processing: RequestProcessing::UseDefaultServant,
            id_uniqueness: IdUniqueness::MultipleId,
            ..user_ids
        },
        Policies {
            request_processing: RequestProcessing::UseServantManager,
            servant_retention: ServantRetention::NonRetain,
            ..user_ids
        },
    ];
    for policies in roads {
        let orb = Orb::builder()
            .listen("127.0.0.1:0")
            .unwrap()
            .build()
            .unwrap();
        let root = orb.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let ship = root.create_poa("ship", None, &Policies::default()).unwrap();
        let manager = Some(root.the_poa_manager());
        let poa = ship.create_poa("nav", manager, &policies).unwrap();
        let table = Table::new(vec![rule(
            Who::ThisHost,
            &["ping"],
            &["ship/nav/", "other"],
        )]);
        let guard = poa
            .set_access(Access::new(table).from_file("nav.toml"))
            .unwrap();
        assert!(
            poa.set_access(Access::new(Table::default())).is_err(),
            "once"
        );
        provide(&poa);
        let object = poa.create_reference_with_id(b"gyro", TEST_ID).unwrap();
        let client = Orb::builder().build().unwrap();
        let seen = seen_by(&client, &object);
        for _ in 0..2 {
            assert_eq!(call(&seen, "ping"), Ok(()));
            assert!(is_denied(call(&seen, "secret")));
        }
        assert!(seen.is_a(TEST_ID).unwrap(), "every object has it");
        assert_eq!(guard.refused(), 2);
        let refusals = guard.take_refusals();
        let refusal = refusals[0].to_string();
        assert!(
            refusal.ends_with(" may not (call secret of ship/nav/gyro)"),
            "{refusal}"
        );
        let is_by_loopback =
            |caller| matches!(caller, Caller::Tcp(SocketAddr::V4(peer)) if peer.ip().is_loopback());
        assert!(is_by_loopback(refusals[0].caller));
        let told = call(&seen, "secret").unwrap_err();
        let told = deckwatch_orb::exception_detail(&told).expect("words");
        assert!(told.ends_with("; add a rule for it to nav.toml"), "{told}");
    }
}

#[test]
fn user_of_this_host_is_known_over_a_unix_socket_and_others_are_not() {
    use std::os::unix::fs::MetadataExt as _;
    let own = std::fs::metadata("/proc/self").unwrap().uid();
    let permitted = |who: Who| -> Result<(), SystemException> {
        let endpoint = format!("unix:{}", socket_path());
        let orb = Orb::builder().listen(&endpoint).unwrap().build().unwrap();
        let root = orb.root_poa().unwrap();
        root.the_poa_manager().activate().unwrap();
        let rules = Rule {
            on: None,
            ..rule(who, &["*"], &[])
        };
        root.set_access(Access::new(Table::new(vec![rules])))
            .unwrap();
        let servant: Arc<dyn Servant> = Arc::new(Anything);
        let object: ObjectRef = root.servant_to_reference(&servant).unwrap();
        assert_eq!(call(&object, "ping"), Ok(()), "this process is not checked");
        let client = Orb::builder().build().unwrap();
        call(&seen_by(&client, &object), "ping")
    };
    assert_eq!(permitted(Who::User(own)), Ok(()));
    assert!(is_denied(permitted(Who::User(own + 1))));
    assert!(
        is_denied(permitted(Who::ThisHost)),
        "the user counts, not the host"
    );
}

/// Each operation needs more of the object `root` than of any other.
struct RootIsMore;

impl Vocabulary for RootIsMore {
    fn need(&self, _: &[&str], _: &[u8], object_id: &[u8]) -> Need {
        Need::All(if object_id == b"root" {
            Action::Administer
        } else {
            Action::Bind
        })
    }
}

#[test]
fn what_one_object_permits_is_not_remembered_for_another_that_needs_more() {
    let orb = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .build()
        .unwrap();
    let root = orb.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let policies = Policies {
        id_assignment: IdAssignment::UserId,
        ..Policies::default()
    };
    let manager = Some(root.the_poa_manager());
    let poa = root.create_poa("names", manager, &policies).unwrap();
    let binds = Rule {
        who: vec![Who::ThisHost],
        may: vec![Action::Bind],
        ..Rule::default()
    };
    let access = Access::new(Table::new(vec![binds])).named(Some("names".to_owned()));
    poa.set_guard(&Guard::new(&orb, access, RootIsMore))
        .unwrap();
    let client = Orb::builder().build().unwrap();
    let object = |id: &[u8]| {
        poa.activate_object_with_id(id, Arc::new(Anything)).unwrap();
        let reference = poa.create_reference_with_id(id, TEST_ID).unwrap();
        seen_by(&client, &reference)
    };
    let (lesser, more) = (object(b"lesser"), object(b"root"));
    for _ in 0..2 {
        assert_eq!(call(&lesser, "destroy"), Ok(()));
        assert!(is_denied(call(&more, "destroy")));
    }
}

/// An ORB at loopback whose root serves, and one that calls it.
fn serving() -> (Orb, deckwatch_orb::Poa, Orb) {
    let orb = Orb::builder()
        .listen("127.0.0.1:0")
        .unwrap()
        .build()
        .unwrap();
    let root = orb.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    (orb, root, Orb::builder().build().unwrap())
}

/// The words of a service whose objects are told apart by their adapters.
struct ByOperation;

impl Vocabulary for ByOperation {
    fn need(&self, _: &[&str], _: &[u8], _: &[u8]) -> Need {
        Need::Operation
    }
}

#[test]
fn what_one_adapter_permits_is_not_remembered_for_another_with_the_same_guard() {
    let (orb, root, client) = serving();
    let policies = Policies {
        id_assignment: IdAssignment::UserId,
        ..Policies::default()
    };
    let table = Table::new(vec![rule(Who::ThisHost, &["ping"], &["port/"])]);
    let guard = Guard::new(&orb, Access::new(table), ByOperation);
    let object = |name: &str| {
        let manager = Some(root.the_poa_manager());
        let poa = root.create_poa(name, manager, &policies).unwrap();
        poa.set_guard(&guard).unwrap();
        poa.activate_object_with_id(b"engine", Arc::new(Anything))
            .unwrap();
        let reference = poa.create_reference_with_id(b"engine", TEST_ID).unwrap();
        seen_by(&client, &reference)
    };
    let (port, starboard) = (object("port"), object("starboard"));
    for _ in 0..2 {
        assert_eq!(call(&port, "ping"), Ok(()));
        assert!(is_denied(call(&starboard, "ping")));
    }
}

#[test]
fn another_table_holds_for_the_next_request_of_an_open_connection() {
    let (_orb, root, client) = serving();
    let table = |operations: &[&str]| {
        let rules = Rule {
            on: None,
            ..rule(Who::ThisHost, operations, &[])
        };
        Table::new(vec![rules])
    };
    let access = Access::new(table(&["ping", "one"]));
    root.set_access(access.clone()).unwrap();
    let servant: Arc<dyn Servant> = Arc::new(Anything);
    let object = seen_by(&client, &root.servant_to_reference(&servant).unwrap());
    assert_eq!(
        (call(&object, "ping"), call(&object, "one")),
        (Ok(()), Ok(()))
    );
    assert!(is_denied(call(&object, "two")));
    access.replace(table(&["ping", "two"]));
    assert!(is_denied(call(&object, "one")), "it was permitted before");
    assert_eq!(
        (call(&object, "ping"), call(&object, "two")),
        (Ok(()), Ok(()))
    );
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 1);
    // What both tables permit is never refused while they are exchanged.
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !is_done.load(SeqCst) {
                        assert_eq!(call(&object, "ping"), Ok(()));
                    }
                })
            })
            .collect();
        for _ in 0..200 {
            access.replace(table(&["one", "ping"]));
            access.replace(table(&["ping"]));
        }
        is_done.store(true, SeqCst);
        drop(callers);
    });
    assert!(is_denied(call(&object, "one")));
}

/// Counts the servants that it was asked for.
#[derive(Default)]
struct Counting(AtomicUsize);

impl ServantActivator for Counting {
    fn incarnate(
        &self,
        _id: &[u8],
        _adapter: &deckwatch_orb::Poa,
    ) -> Result<Arc<dyn Servant>, deckwatch_orb::ServantManagerError> {
        self.0.fetch_add(1, SeqCst);
        Ok(Arc::new(Anything))
    }

    fn etherealize(
        &self,
        _id: &[u8],
        _adapter: &deckwatch_orb::Poa,
        _servant: Arc<dyn Servant>,
        _cleanup_in_progress: bool,
        _remaining_activations: bool,
    ) {
    }
}

#[test]
fn peer_without_a_rule_for_an_object_has_no_servant_made_for_it() {
    let (_orb, root, client) = serving();
    let policies = Policies {
        id_assignment: IdAssignment::UserId,
        request_processing: RequestProcessing::UseServantManager,
        ..Policies::default()
    };
    let manager = Some(root.the_poa_manager());
    let poa = root.create_poa("ship", manager, &policies).unwrap();
    let table = Table::new(vec![rule(Who::ThisHost, &["ping"], &["ship/rudder"])]);
    poa.set_access(Access::new(table)).unwrap();
    let made = Arc::new(Counting::default());
    let activator = ServantManager::Activator(made.clone());
    poa.set_servant_manager(activator).unwrap();
    let object = |id: &[u8]| {
        let reference = poa.create_reference_with_id(id, TEST_ID).unwrap();
        seen_by(&client, &reference)
    };
    let (rudder, mast) = (object(b"rudder"), object(b"mast"));
    assert!(is_denied(mast.is_a("IDL:Other:1.0").map(drop)));
    assert!(is_denied(mast.non_existent().map(drop)));
    assert_eq!(made.0.load(SeqCst), 0);
    assert_eq!(rudder.non_existent(), Ok(false));
    assert_eq!(made.0.load(SeqCst), 1);
}

/// What a log is told: of refusals their operation, of administration what it is about.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl AccessLog for Told {
    fn note(&self, event: &AccessEvent<'_>) {
        let line = match event {
            AccessEvent::Refused(refusal) => format!("refused {}", refusal.operation),
            AccessEvent::Administered { operation, .. } => {
                format!("administered {}", String::from_utf8_lossy(operation))
            }
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// `bind` binds, and all else resolves.
struct Names;

impl Vocabulary for Names {
    fn need(&self, _: &[&str], operation: &[u8], _: &[u8]) -> Need {
        Need::All(match operation {
            b"bind" => Action::Bind,
            b"destroy" => Action::Administer,
            _ => Action::Resolve,
        })
    }
}

#[test]
fn log_is_told_of_each_refusal_and_of_each_call_that_binds_and_a_guard_keeps_the_first() {
    let told = Arc::new(Told::default());
    let builder = Orb::builder().listen("127.0.0.1:0").unwrap();
    let orb = builder.access_log(told.clone()).build().unwrap();
    let root = orb.root_poa().unwrap();
    root.the_poa_manager().activate().unwrap();
    let binds = Rule {
        who: vec![Who::ThisHost],
        may: vec![Action::Bind, Action::Resolve],
        ..Rule::default()
    };
    let guard = Guard::new(&orb, Access::new(Table::new(vec![binds])), Names);
    root.set_guard(&guard).unwrap();
    let servant: Arc<dyn Servant> = Arc::new(Anything);
    let client = Orb::builder().build().unwrap();
    let object = seen_by(&client, &root.servant_to_reference(&servant).unwrap());
    for _ in 0..2 {
        assert_eq!(call(&object, "bind"), Ok(()));
        assert_eq!(call(&object, "resolve"), Ok(()));
        assert!(is_denied(call(&object, "destroy")));
    }
    let pair = ["administered bind", "refused destroy"];
    assert_eq!(*told.0.lock().unwrap(), [pair, pair].concat());
    for _ in 2..REFUSALS_KEPT_MAX + 5 {
        assert!(is_denied(call(&object, "destroy")));
    }
    assert_eq!(guard.refused(), REFUSALS_KEPT_MAX as u64 + 5);
    assert_eq!(guard.take_refusals().len(), REFUSALS_KEPT_MAX);
}

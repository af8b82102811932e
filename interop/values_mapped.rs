//! Valuetypes of IDL, called in omniORB and JacORB and served to them.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Running, free_port, omniorb_program, try_run};
use crate::jacorb::jacorb_program_in;
use crate::values_mirror::{
    Account, Choice, Circle, Label, Lost, MirrorLoseError, MirrorRef, MirrorSkeleton, Names, Node,
    NodeValue, Pair, PlaceValue, PointValue, Reflecting, ShapeValue, Stamp, StampValue, place,
    point,
};
use deckwatch_cdr::Any;
use deckwatch_cdr::valuetype::{ValueBase, ValueFactory, narrow};
use deckwatch_orb::{Orb, Servant};

fn omniorb() -> Option<std::path::PathBuf> {
    omniorb_program("values/values", &["deckwatch/values.idl"])
}

fn list(len: i32) -> Option<Arc<dyn NodeValue>> {
    (0..len).fold(None, |next, number| Some(Arc::new(Node { number, next })))
}

/// Makes all calls to a foreign mirror.
fn ask_all(mirror: &MirrorRef) {
    let one = point(3, 4);
    assert_eq!(mirror.echo_point(Some(&one)), Ok(Some(one.clone())));
    assert_eq!(mirror.echo_point(None), Ok(None));
    let (is_same, first, second) = mirror.same(Some(&one), Some(&one)).expect("a reply");
    assert!(is_same && Arc::ptr_eq(&first.expect("a point"), &second.expect("a point")));
    let (is_same, ..) = mirror
        .same(Some(&one), Some(&point(3, 4)))
        .expect("a reply");
    assert!(!is_same);
    let pair = Pair {
        left: Some(one.clone()),
        right: Some(one.clone()),
    };
    let back = mirror.echo_pair(&pair).expect("a reply");
    assert!(back == pair && Arc::ptr_eq(&back.left.expect("one"), &back.right.expect("one")));
    let points = [
        Some(one.clone()),
        None,
        Some(point(1, 1)),
        Some(one.clone()),
    ];
    assert_eq!(mirror.echo_points(&points).as_deref(), Ok(&points[..]));
    let choice = Choice::One(Some(one.clone()));
    assert_eq!(mirror.echo_choice(&choice), Ok(choice));
    assert_eq!(mirror.echo_list(list(150).as_ref()), Ok(list(150)));
    let names = Arc::new(Names(vec![
        "one".to_owned(),
        "x".repeat(20_000),
        "two".to_owned(),
    ]));
    assert_eq!(mirror.echo_names(Some(&names)), Ok(Some(names)));
    let label = Arc::new(Label("ahoy".to_owned()));
    assert_eq!(mirror.echo_label(Some(&label)), Ok(Some(label)));
    ask_for_derived(mirror);
    let Err(MirrorLoseError::Lost(Lost { last, before })) = mirror.lose(Some(&one)) else {
        panic!("it raises");
    };
    assert!(Arc::ptr_eq(
        &last.expect("a point"),
        &before.expect("a point")
    ));
}

fn ask_for_derived(mirror: &MirrorRef) {
    // Chunks, and texts across the peer's buffers.
    let far: Arc<dyn PlaceValue> = Arc::new(place(2, &"f".repeat(20_000), None));
    let near: Arc<dyn PlaceValue> = Arc::new(place(1, &"n".repeat(20_000), Some(far.clone())));
    let back = mirror
        .change(Some(&near))
        .expect("a reply")
        .expect("a place");
    assert_eq!(
        (back.x, back.name.len(), back.next.as_ref()),
        (2, 20_001, Some(&far))
    );
    // The peer knows places and returns one; here it is read as the point that is declared.
    let sent: Arc<dyn PointValue> = near.clone();
    let back = mirror
        .echo_point(Some(&sent))
        .expect("a reply")
        .expect("a point");
    assert_eq!(*back.as_point(), near.base);
    let account = Arc::new(Account { balance: 41 });
    let back = mirror.echo_account(Some(&(account as _))).expect("a reply");
    assert_eq!(back.expect("an account").total(), Ok(42));
}

/// Values where no type with state is declared. JacORB 3.9 writes none: it needs javax.transaction, which Java 17 lacks.
fn ask_for_bases(mirror: &MirrorRef) {
    let circle = Arc::new(Circle { radius: 2.0 });
    let factory = ValueFactory::of::<Circle>();
    deckwatch_cdr::valuetype::register_value_factory(Circle::REPOSITORY_ID, factory);
    let shape: Arc<dyn ShapeValue> = circle.clone();
    assert_eq!(mirror.echo_shape(Some(&shape)), Ok(Some(shape)));
    let base: Arc<dyn ValueBase> = circle.clone();
    let back = mirror
        .echo_base(Some(&base))
        .expect("a reply")
        .expect("a value");
    assert_eq!(narrow::<Circle>(back), Some(circle));
}

#[test]
fn omniorb_takes_values_of_valuetypes_and_gives_them_back() {
    let Some(program) = omniorb() else {
        return;
    };
    let endpoint = format!("giop:tcp:127.0.0.1:{}", free_port());
    let mut server = Running::start(Command::new(&program).args(["-ORBendPoint", &endpoint]));
    let (_orb, mirror) = mirror_of(&server.line_with("IOR:"));
    ask_all(&mirror);
    ask_for_bases(&mirror);
    let near: Arc<dyn PlaceValue> =
        Arc::new(place(1, "near", Some(Arc::new(place(2, "far", None)))));
    let any = Any::from_value(&Some(near.clone())).expect("an any");
    let back = mirror.anything(&any).expect("a reply");
    assert_eq!(
        back.extract::<Option<Arc<dyn PlaceValue>>>(),
        Ok(Some(near))
    );
}

#[test]
fn jacorb_takes_values_of_valuetypes_and_gives_them_back() {
    let Some(program) = jacorb_program_in("jacorb-values", "deckwatch/values.idl") else {
        return;
    };
    let mut server = Running::start(&mut program.command());
    let (_orb, mirror) = mirror_of(&server.line_with("IOR:"));
    ask_all(&mirror);
    let stamp = Stamp {
        seconds: 1.5,
        zone: "UTC".to_owned(),
    };
    let stamp: Arc<dyn StampValue> = Arc::new(stamp);
    assert_eq!(mirror.echo_stamp(Some(&stamp)), Ok(Some(stamp)));
}

#[test]
fn a_client_of_jacorb_gets_its_values_of_valuetypes_back() {
    if let Some(program) = jacorb_program_in("jacorb-values", "deckwatch/values.idl") {
        is_content(&mut program.command());
    }
}

fn mirror_of(reference: &str) -> (Orb, MirrorRef) {
    let orb = Orb::builder().round_trip_timeout(Duration::from_secs(30));
    let orb = orb.build().expect("an ORB");
    let object = orb.string_to_object(reference).expect("a reference");
    (orb, MirrorRef::unchecked_narrow(object.expect("not nil")))
}

#[test]
fn a_client_of_omniorb_gets_its_values_of_valuetypes_back() {
    if let Some(program) = omniorb() {
        is_content(&mut Command::new(&program));
    }
}

/// Serves a foreign client, which gets the reference as its last argument.
fn is_content(client: &mut Command) {
    let orb = Orb::builder()
        .listen("127.0.0.1:0")
        .and_then(|builder| builder.build());
    let orb = orb.expect("a free port");
    orb.register_value_factory(Circle::REPOSITORY_ID, ValueFactory::of::<Circle>());
    let root = orb.root_poa().expect("it listens");
    root.the_poa_manager().activate().expect("a fresh manager");
    let servant: Arc<dyn Servant> = Arc::new(MirrorSkeleton::new(Reflecting));
    let object = root.servant_to_reference(&servant).expect("activation");
    let said = try_run(client.arg(orb.object_to_string(&object)));
    let _by_the_test = orb.shutdown(true);
    assert!(
        said.as_deref().is_ok_and(|said| said.contains("all right")),
        "{said:?}"
    );
}

//! Values of valuetypes as arguments, results and members (CORBA 3.3 part 1, clause 9), between two ORBs.

use std::sync::{Arc, Mutex, PoisonError};

use crate::common::{self, Over, over_each};
use crate::values_mirror::{
    Account, AccountInit, AccountOperations, Berth, Choice, Circle, CircleInit, Label, Lost,
    MirrorLoseError, MirrorRef, MirrorSkeleton, Names, Node, NodeValue, Pair, Place, PlaceValue,
    Point, PointValue, Reflecting, ShapeValue, Stamp, StampValue, place, point,
};
use deckwatch_cdr::valuetype::{ValueBase, ValueFactory, narrow};
use deckwatch_cdr::{Any, DecodeFact};
use deckwatch_orb::{Orb, Servant, SystemException, SystemExceptionKind as Kind};

/// The process has one table of factories: held while a test needs a type to be unknown.
static FACTORIES: Mutex<()> = Mutex::new(());

/// A client and a server of their own.
struct Ends {
    server: Orb,
    mirror: MirrorRef,
}

impl Ends {
    fn new(over: Over) -> Self {
        let server = common::listening(over, Orb::builder());
        let root = server.root_poa().expect("it listens");
        root.the_poa_manager().activate().expect("a fresh manager");
        let servant: Arc<dyn Servant> = Arc::new(MirrorSkeleton::new(Reflecting));
        let object = root.servant_to_reference(&servant).expect("activation");
        let text = server.object_to_string(&object);
        let client = common::client();
        let object = client
            .string_to_object(&text)
            .expect("a reference")
            .expect("not nil");
        let mirror = MirrorRef::unchecked_narrow(object);
        Self { server, mirror }
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        let _by_the_test = self.server.shutdown(true);
    }
}

fn list(len: i32) -> Option<Arc<dyn NodeValue>> {
    (0..len).fold(None, |next, number| Some(Arc::new(Node { number, next })))
}

over_each! {
    fn a_value_is_an_argument_and_a_result_and_null_is_none(over) {
        let mirror = &Ends::new(over).mirror;
        let sent = point(3, 4);
        let back = mirror.echo_point(Some(&sent)).expect("it returns").expect("not null");
        assert_eq!((back.x, back.y), (3, 4));
        assert_eq!(&*back, &*sent);
        assert!(mirror.echo_point(None).expect("it returns").is_none());
    }

    fn two_handles_of_one_value_stay_one_value_in_a_request_and_a_reply(over) {
        let mirror = &Ends::new(over).mirror;
        let (one, equal) = (point(1, 2), point(1, 2));
        let (is_same, first, second) = mirror.same(Some(&one), Some(&one)).expect("it returns");
        assert!(is_same);
        assert!(Arc::ptr_eq(&first.expect("not null"), &second.expect("not null")));
        let (is_same, ..) = mirror.same(Some(&one), Some(&equal)).expect("it returns");
        assert!(!is_same, "equal values are two");
    }

    fn members_of_structs_sequences_unions_and_exceptions_share_values(over) {
        let mirror = &Ends::new(over).mirror;
        let one = point(5, 6);
        let back = mirror.echo_pair(&Pair { left: Some(one.clone()), right: Some(one.clone()) });
        let back = back.expect("it returns");
        assert_eq!(back.left.as_deref(), Some(&*one));
        assert!(Arc::ptr_eq(&back.left.expect("a point"), &back.right.expect("a point")));
        let points = [Some(one.clone()), None, Some(one.clone())];
        let back = mirror.echo_points(&points).expect("it returns");
        assert_eq!(back, points);
        assert!(Arc::ptr_eq(back[0].as_ref().expect("a point"), back[2].as_ref().expect("a point")));
        for choice in [Choice::One(Some(one.clone())), Choice::Many(None)] {
            assert_eq!(mirror.echo_choice(&choice), Ok(choice));
        }
        let Err(MirrorLoseError::Lost(Lost { last, before })) = mirror.lose(Some(&one)) else {
            panic!("it raises");
        };
        assert!(Arc::ptr_eq(&last.expect("a point"), &before.expect("a point")));
    }

    fn a_derived_value_arrives_whole_where_its_factory_is_known_and_else_as_its_base(over) {
        let _alone = FACTORIES.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = Ends::new(over);
        let far = Arc::new(place(2, "far", None));
        let near: Arc<dyn PlaceValue> = Arc::new(place(1, "near", Some(far)));
        let sent: Arc<dyn PointValue> = near.clone();
        let back = ends.mirror.echo_point(Some(&sent)).expect("it returns").expect("not null");
        let base: Arc<dyn ValueBase> = back.clone();
        assert_eq!(base.repository_id(), Point::REPOSITORY_ID, "no factory is registered: truncated");
        assert_eq!((back.x, back.y), (1, -1));
        // A base that may not be truncated needs its factory.
        let berth: Arc<dyn PointValue> = Arc::new(Berth { base: Point::default(), depth: 7 });
        let refused = ends.mirror.echo_point(Some(&berth)).expect_err("nobody knows it");
        assert_eq!(refused.kind, Kind::Marshal);
        assert_eq!(refused.minor, SystemException::from_fact(DecodeFact::ValueFactoryMissing).minor);
        assert!(ends.server.register_value_factory(Berth::REPOSITORY_ID, ValueFactory::of::<Berth>()).is_none());
        let back = ends.mirror.echo_point(Some(&berth)).expect("it returns").expect("not null");
        assert_eq!(narrow::<Berth>(back).expect("a berth").depth, 7);
        assert!(ends.server.lookup_value_factory(Berth::REPOSITORY_ID).is_ok());
        assert!(ends.server.unregister_value_factory(Berth::REPOSITORY_ID).is_ok());
        let unknown = ends.server.unregister_value_factory(Berth::REPOSITORY_ID).expect_err("it is gone");
        assert_eq!((unknown.kind, unknown.minor), (Kind::BadParam, common::OMG | 1));
        let back = ends.mirror.change(Some(&near)).expect("it returns").expect("not null");
        assert_eq!((back.x, back.name.as_str()), (2, "near!"));
        assert_eq!(back.next.as_ref().expect("the next").name, "far");
    }

    fn a_list_keeps_its_order_and_one_deeper_than_the_limit_is_refused(over) {
        let mirror = &Ends::new(over).mirror;
        let deepest = i32::from(deckwatch_cdr::limits::VALUE_NESTING_MAX);
        for len in [0, 1, 2, deepest] {
            assert_eq!(mirror.echo_list(list(len).as_ref()).expect("it returns"), list(len), "{len}");
        }
        let refused = mirror.echo_list(list(deepest + 1).as_ref()).expect_err("too deep");
        assert_eq!(refused.kind, Kind::ImpLimit);
    }

    fn abstract_values_boxes_custom_values_and_value_base_travel(over) {
        let ends = Ends::new(over);
        let mirror = &ends.mirror;
        ends.server.register_value_factory(Circle::REPOSITORY_ID, ValueFactory::of::<Circle>());
        let circle: Arc<dyn ShapeValue> = Arc::new(Circle::unit().expect("a circle"));
        let back = mirror.echo_shape(Some(&circle)).expect("it returns").expect("not null");
        assert_eq!(back.area(), Ok(std::f64::consts::PI));
        let names = Arc::new(Names(vec!["one".to_owned(), "two".to_owned()]));
        assert_eq!(mirror.echo_names(Some(&names)).expect("it returns"), Some(names));
        let label = Arc::new(Label::from("label".to_owned()));
        assert_eq!(mirror.echo_label(Some(&label)).expect("it returns"), Some(label));
        let stamp: Arc<dyn StampValue> = Arc::new(Stamp { seconds: 1.5, zone: "UTC".to_owned() });
        let back = mirror.echo_stamp(Some(&stamp)).expect("it returns").expect("not null");
        assert_eq!((back.seconds, back.zone.as_str()), (1.5, "UTC"));
        let base: Arc<dyn ValueBase> = circle;
        let back = mirror.echo_base(Some(&base)).expect("it returns").expect("not null");
        assert_eq!(narrow::<Circle>(back).expect("a circle").radius, 1.0);
        let account = Arc::new(Account::open(41).expect("an account"));
        assert_eq!(account.total(), Ok(41));
        let back = mirror.echo_account(Some(&(account as _))).expect("it returns").expect("not null");
        assert_eq!(back.total(), Ok(42));
    }

    fn a_value_travels_in_an_any_with_the_type_code_of_its_own_type(over) {
        let mirror = &Ends::new(over).mirror;
        let sent: Arc<dyn PlaceValue> = Arc::new(place(1, "near", Some(Arc::new(place(2, "far", None)))));
        let any = Any::from_value(&Some(sent.clone() as Arc<dyn PointValue>)).expect("an any");
        assert_eq!(any.type_code().id(), Some(Place::REPOSITORY_ID));
        let back = mirror.anything(&any).expect("it returns");
        assert_eq!(back, any);
        let value = back.extract::<Option<Arc<dyn PlaceValue>>>().expect("a place");
        assert_eq!(value, Some(sent));
        let wrong = back.extract::<Option<Arc<dyn NodeValue>>>().expect_err("no node");
        assert_eq!(wrong.fact, DecodeFact::ValueFactoryMissing);
        let one = point(7, 7);
        let pair = Pair { left: Some(one.clone()), right: Some(one) };
        let back = mirror.anything(&Any::from_value(&pair).expect("an any")).expect("it returns");
        let back: Pair = back.extract().expect("a pair");
        assert_eq!(back, pair);
        assert!(Arc::ptr_eq(&back.left.expect("a point"), &back.right.expect("a point")));
    }
}

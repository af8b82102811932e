//! Permission for requests in both directions of a connection (CORBA 3.3 part 2, clauses 9.9.1.1 and 9.9.2): listen
//! points, trust, and the policy. The other side's octets are made by hand.

use std::sync::Arc;
use std::time::Duration;

use crate::common;
use crate::common::both::{
    Acceptor, BI_DIR_IIOP, FORM, INVOCATION_POLICIES, NOWHERE, Opener, announced, both, nowhere,
    ping, said, starting_in,
};
use crate::common::message::{
    LOCATE_REPLY, LOCATE_REQUEST, NO_EXCEPTION, REPLY, REQUEST, SYSTEM_EXCEPTION, done,
};
use crate::common::servant::Probe;
use crate::common::{Octets, Order, Over, Peer, Request, Wire, message};
use deckwatch_cdr::Any;
use deckwatch_orb::{
    BidirectionalPolicyValue, Counter, Orb, Policies, Policy, PolicyErrorCode, PolicyType, Servant,
    SetOverrideType, SystemExceptionKind as Kind,
};

#[test]
fn an_opener_says_where_it_listens_with_its_first_request_and_numbers_them_evenly() {
    let peer = Peer::answering(Over::Tcp, |_, asked| done(asked));
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    let endpoint = opener.orb.endpoints()[0].clone();
    for is_first in [true, false] {
        assert_eq!(ping(&server), Ok(()));
        let asked = peer.heard();
        assert_eq!(asked.asked().id % 2, 0);
        let points = announced(&asked);
        assert_eq!(points.is_some(), is_first);
        for (host, port) in points.iter().flatten() {
            assert_eq!(endpoint.to_string(), format!("{host}:{port}"));
        }
    }
}

#[test]
fn listen_points_precede_the_code_sets_in_the_first_request() {
    // TAO 2 obeys the first context that it knows, and no other.
    const CODE_SETS: u32 = 1;
    let peer = Peer::answering(Over::Tcp, |_, asked| done(asked));
    let opener = Opener::new(&both());
    let mut code_sets = Octets::encapsulation(Order::Big);
    let (utf_8, utf_16) = (0x0501_0001, 0x0001_0109);
    code_sets.u32(utf_8).u32(0).u32(utf_16).u32(0);
    let mut ior = peer.ior(2, b"Fake");
    ior.profiles = vec![peer.profile(2, b"Fake", &[(CODE_SETS, code_sets.octets)])];
    let server = opener.orb.string_to_object(&ior.text(Order::Big));
    assert_eq!(ping(&server.unwrap().unwrap()), Ok(()));
    let contexts = peer.heard().asked().contexts;
    let ids: Vec<u32> = contexts.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [BI_DIR_IIOP, CODE_SETS]);
}

#[test]
fn a_question_where_the_object_is_says_nothing_of_its_connection_and_the_first_request_does() {
    let peer = Peer::answering(Over::Tcp, |_, asked| match asked.kind() {
        LOCATE_REQUEST => message(asked.form(), LOCATE_REPLY, |octets| {
            octets.u32(asked.body().u32()).u32(1);
        }),
        _ => done(asked),
    });
    let opener = Opener::new(&both());
    let server = peer.seen_by(&opener.orb, 2);
    assert_eq!(server.validate_connection(), Ok(true));
    assert_eq!(peer.heard().kind(), LOCATE_REQUEST);
    for is_first in [true, false] {
        assert_eq!(ping(&server), Ok(()));
        assert_eq!(announced(&peer.heard()).is_some(), is_first);
    }
    assert_eq!(opener.orb.counters().read(Counter::ConnectionsMade), 1);
}

#[test]
fn nobody_offers_it_without_the_policy_at_both_ends_of_his_or_before_giop_1_2() {
    let normal = SetOverrideType::AddOverride;
    for (policies, value, minor) in [
        (both(), BidirectionalPolicyValue::Normal, 2),
        (Policies::root(), BidirectionalPolicyValue::Both, 2),
        (both(), BidirectionalPolicyValue::Both, 1),
        (both(), BidirectionalPolicyValue::Both, 0),
    ] {
        let peer = Peer::answering(Over::Tcp, |_, asked| done(asked));
        let opener = Opener::new(&policies);
        let server = peer.seen_by(&opener.orb, minor);
        let server = server.set_policy_overrides(&[Policy::Bidirectional(value)], normal);
        assert_eq!(ping(&server.unwrap()), Ok(()));
        assert_eq!(announced(&peer.heard()), None);
    }
}

#[test]
fn an_object_whose_adapter_does_not_take_part_is_not_asked_over_it() {
    let opener = Arc::new(Opener::new(&both()));
    let root = opener.orb.root_poa().unwrap();
    let servant: Arc<dyn Servant> = Arc::new(Probe::default());
    let hidden = root.servant_to_reference(&servant).unwrap();
    let key = hidden.object_key().unwrap().to_vec();
    let peer = Peer::start(Over::Tcp, move |_, wire, tell| {
        while let Some(asked) = wire.hear() {
            tell(wire.ask(&Request::new(FORM, &key, "ping").bare()));
            wire.say(&done(&asked));
        }
    });
    assert_eq!(ping(&peer.seen_by(&opener.orb, 2)), Ok(()));
    let mut answer = peer.heard().reply();
    assert_eq!(answer.status, SYSTEM_EXCEPTION);
    assert_eq!(answer.body.string(), "IDL:omg.org/CORBA/OBJ_ADAPTER:1.0");
}

#[test]
fn what_an_opener_says_of_where_it_listens_counts_before_the_start_of_its_request() {
    let server = Acceptor::with(Orb::builder().clock_bound(Duration::ZERO), &both());
    let mut wire = Wire::to(&server.orb);
    let keep = |id| server.request(id, "keep");
    let early = keep(2).context(BI_DIR_IIOP, &said(&[NOWHERE]));
    let early = early.context(INVOCATION_POLICIES, &starting_in(Duration::from_secs(50)));
    wire.say(&early.with(|octets| nowhere(FORM.0).write(octets)));
    // The listen points are announced once, and the requests after it are served.
    let answer = wire.ask(&keep(4).with(|octets| nowhere(FORM.0).write(octets)));
    assert_eq!(
        (answer.reply().id, answer.reply().status),
        (4, NO_EXCEPTION)
    );
    wire.say(&server.request(6, "call").bare());
    let asked = wire.hear().expect("a call over this very connection");
    assert_eq!(asked.kind(), REQUEST);
    wire.say(&done(&asked));
    let answer = wire.hear().expect("a reply").reply();
    assert_eq!((answer.id, answer.status), (6, NO_EXCEPTION));
    assert_eq!(server.orb.counters().read(Counter::RequestsEarly), 1);
}

#[test]
fn a_server_without_the_policy_connects_to_whom_it_calls_back() {
    let server = Acceptor::new(&Policies::root());
    let mut wire = Wire::to(&server.orb);
    server.keep(&mut wire, &[NOWHERE]);
    let mut answer = wire.ask(&server.request(4, "call").bare()).reply();
    assert_eq!(answer.status, SYSTEM_EXCEPTION);
    assert_eq!(answer.body.string(), "IDL:omg.org/CORBA/TRANSIENT:1.0");
    // The server does not accept a reply on this connection either.
    wire.say(&message(FORM, REPLY, |octets| {
        octets.u32(1).u32(NO_EXCEPTION).u32(0);
    }));
    let complaint = wire.hear().expect("an answer");
    assert_eq!(complaint.kind(), common::message::MESSAGE_ERROR);
    wire.expect_end();
}

#[test]
fn what_a_peer_announces_is_believed_of_the_references_that_it_sends_alone() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    // The client announces listen points of another server. A reference to that server from another source is not
    // called over this connection.
    server.keep(&mut wire, &[NOWHERE]);
    let elsewhere = server.orb.string_to_object(&nowhere(2).text(Order::Big));
    let failed = ping(&elsewhere.unwrap().unwrap()).unwrap_err();
    assert_eq!(failed.kind, Kind::Transient);
    // A reference from the client whose address is not among the announced points is not called over the connection
    // either.
    let mut other = Wire::to(&server.orb);
    server.keep(&mut other, &[("127.0.0.1", 2)]);
    let failed = ping(&server.caller.kept()).unwrap_err();
    assert_eq!(failed.kind, Kind::Transient);
}

#[test]
fn a_callback_is_not_made_over_it_before_giop_1_2() {
    let server = Acceptor::new(&both());
    let mut wire = Wire::to(&server.orb);
    let request = Request::new((1, Order::Big), &server.key, "keep").id(2);
    let request = request.context(BI_DIR_IIOP, &said(&[NOWHERE]));
    let answer = wire.ask(&request.with(|octets| nowhere(1).write(octets)));
    assert_eq!(answer.reply().status, NO_EXCEPTION);
    assert_eq!(
        server
            .orb
            .counters()
            .read(Counter::ConnectionsBidirectional),
        0
    );
}

#[test]
fn the_policy_is_made_from_its_standard_number_and_value() {
    let any = |value: u16| Any::from_value(&value).unwrap();
    let kind = PolicyType(37);
    let made = Policy::create(kind, &any(1));
    assert_eq!(
        made,
        Ok(Policy::Bidirectional(BidirectionalPolicyValue::Both))
    );
    let made = Policy::create(kind, &any(0));
    assert_eq!(
        made,
        Ok(Policy::Bidirectional(BidirectionalPolicyValue::Normal))
    );
    let made = Policy::create(kind, &any(2));
    assert_eq!(made, Err(PolicyErrorCode::BadPolicyValue));
}

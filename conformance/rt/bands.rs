//! Priority bands by clause (RTCORBA 1.2: PriorityBandedConnectionPolicy), at the client: references made by hand in
//! TAO's form, and hand-written servers at their endpoints.

use crate::common::message::{CLOSE_CONNECTION, SYSTEM_EXCEPTION, message};
use crate::common::rt::{
    Reference, at, banded, client, done, lane, refused, said_priority, said_range, two_lanes, with,
};
use crate::common::servant::call;
use crate::common::{Over, Peer};
use deckwatch_orb::{Counter, PolicyType, minor, own_minor};

#[test]
fn a_band_has_a_connection_of_its_own_and_the_server_is_told_its_priorities_first() {
    let peer = lane();
    let client = client();
    let reference = Reference::without_lanes(&peer).propagated(0);
    let object = with(
        &reference.seen_by(&client),
        &[banded(&[(0, 9), (10, 32_767)])],
    );
    for (numbers, band) in [([3, 9], (0, 9)), ([10, 11], (10, 32_767))] {
        assert_eq!(at(&client, numbers[0], || call(&object, "ping")), Ok(()));
        let told = peer.heard().asked();
        assert_eq!(
            (told.operation.as_str(), said_range(&told)),
            ("_bind_priority_band", Some(band))
        );
        assert_eq!(told.body.rest(), b"");
        assert_eq!(said_range(&peer.heard().asked()), None);
        // For the next call of the band, the connection is already bound.
        assert_eq!(at(&client, numbers[1], || call(&object, "ping")), Ok(()));
        let asked = peer.heard().asked();
        assert_eq!(
            (asked.operation.as_str(), said_priority(&asked)),
            ("ping", Some(numbers[1]))
        );
    }
    assert_eq!(client.counters().read(Counter::ConnectionsMade), 2);
}

#[test]
fn a_band_goes_to_the_first_lane_in_it() {
    let (low, high, reference) = two_lanes();
    let client = client();
    // The bands may also come from the reference.
    let object = reference
        .propagated(5)
        .bands(&[(0, 10), (15, 32_767)])
        .seen_by(&client);
    for (peer, number) in [(&low, 7), (&high, 25)] {
        assert_eq!(at(&client, number, || call(&object, "ping")), Ok(()));
        assert_eq!(peer.heard().asked().operation, "_bind_priority_band");
        assert_eq!(said_priority(&peer.heard().asked()), Some(number));
    }
    let missed = at(&client, 12, || {
        let policies = [
            PolicyType::PRIORITY_BANDED_CONNECTION,
            PolicyType::PRIORITY_MODEL,
        ];
        assert_eq!(object.inconsistent_policies(), Ok(&policies[..]));
        call(&object, "ping")
    });
    assert_eq!(missed, refused(own_minor::BANDS_MISSED));
    let laneless = with(
        &two_lanes().2.propagated(5).seen_by(&client),
        &[banded(&[(6, 9)])],
    );
    let missed = at(&client, 7, || call(&laneless, "ping"));
    assert_eq!(missed, refused(own_minor::LANES_MISSED));
}

#[test]
fn a_band_of_an_object_that_declares_its_priority_is_that_of_its_priority() {
    let (low, high, reference) = two_lanes();
    let client = client();
    let object = reference
        .declared(20)
        .bands(&[(0, 10), (15, 30)])
        .seen_by(&client);
    assert_eq!(at(&client, 3, || call(&object, "ping")), Ok(()));
    assert_eq!(said_range(&high.heard().asked()), Some((15, 30)));
    assert_eq!(low.heard_so_far(), 0);
}

/// Replies to the `_bind_priority_band` request with this exception, and closes the connection after the next reply.
fn refusing(repository_id: &'static str) -> Peer {
    Peer::start(Over::Tcp, move |_, wire, tell| {
        while let Some(heard) = wire.hear() {
            let is_question = heard.asked().operation == "_bind_priority_band";
            tell(heard.clone());
            if is_question {
                wire.say(&heard.answered(SYSTEM_EXCEPTION, |o| {
                    o.string(repository_id).u32(0).u32(1);
                }));
                continue;
            }
            wire.say(&done(&heard));
            wire.say(&message(heard.form(), CLOSE_CONNECTION, |_| ()));
            break;
        }
    })
}

#[test]
fn a_server_that_does_not_know_bands_is_asked_for_one_once() {
    let peer = refusing("IDL:omg.org/CORBA/BAD_OPERATION:1.0");
    let client = client();
    let reference = Reference::without_lanes(&peer)
        .propagated(0)
        .bands(&[(0, 9)]);
    let object = reference.seen_by(&client);
    let mut operations = Vec::new();
    for _ in 0..3 {
        assert_eq!(at(&client, 1, || call(&object, "ping")), Ok(()));
        loop {
            operations.push(peer.heard().asked().operation);
            if operations.last().is_some_and(|last| last == "ping") {
                break;
            }
        }
        // The next call finds the connection closed, and opens another.
    }
    assert_eq!(operations, ["_bind_priority_band", "ping", "ping", "ping"]);
}

#[test]
fn a_band_that_the_server_refuses_is_refused_to_the_caller_before_his_request() {
    let peer = refusing("IDL:omg.org/CORBA/INV_POLICY:1.0");
    let client = client();
    let reference = Reference::without_lanes(&peer)
        .propagated(0)
        .bands(&[(0, 9)]);
    let object = reference.seen_by(&client);
    assert_eq!(at(&client, 1, || call(&object, "ping")), refused(0));
    assert_eq!(peer.heard().asked().operation, "_bind_priority_band");
    assert_eq!(peer.heard_so_far(), 0);
}

#[test]
fn bands_of_both_sides_cannot_be_reconciled_and_an_empty_list_leaves_it_to_the_other() {
    let peer = lane();
    let client = client();
    let reference = Reference::without_lanes(&peer).propagated(0);
    let said = reference.clone().bands(&[(0, 9)]).seen_by(&client);
    let both = with(&said, &[banded(&[(0, 9)])]);
    let irreconcilable = refused(minor::omg(1));
    at(&client, 1, || {
        assert_eq!(call(&both, "ping"), irreconcilable);
        assert_eq!(both.validate_connection().map(drop), irreconcilable);
        let kinds = &[PolicyType::PRIORITY_BANDED_CONNECTION][..];
        assert_eq!(both.inconsistent_policies(), Ok(kinds));
        assert_eq!(both.policy(kinds[0]).map(drop), irreconcilable);
    });
    assert_eq!(peer.heard_so_far(), 0);
    let left = with(&said, &[banded(&[])]);
    let right = with(&reference.bands(&[]).seen_by(&client), &[banded(&[(0, 9)])]);
    for object in [left, right] {
        let kind = PolicyType::PRIORITY_BANDED_CONNECTION;
        assert_eq!(object.policy(kind), Ok(Some(banded(&[(0, 9)]))));
        assert_eq!(at(&client, 1, || call(&object, "ping")), Ok(()));
        assert_eq!(object.inconsistent_policies(), Ok(&[][..]));
    }
    assert_eq!(said_range(&peer.heard().asked()), Some((0, 9)));
}

#[test]
fn bands_for_an_object_without_a_priority_model_are_inv_policy() {
    let peer = lane();
    let client = client();
    let object = with(
        &Reference::without_lanes(&peer).seen_by(&client),
        &[banded(&[(0, 9)])],
    );
    let outcome = at(&client, 1, || call(&object, "ping"));
    assert_eq!(outcome, refused(own_minor::BANDS_WITHOUT_MODEL));
    assert_eq!(peer.heard_so_far(), 0);
}

//! Pollers and sets of them by clause (CORBA 3.3 part 1, clauses 17.9 and 7.4). The other side's octets are made by
//! hand.

use std::sync::mpsc::channel;

use crate::common;
use crate::common::asynchronous::{answering_when_let, heard, passing_on, poll, poller, same};
use crate::common::message::CANCEL_REQUEST;
use crate::common::{OMG, Peer, over_each};
use deckwatch_dynamic::{PollableSet, PollableSetError};
use deckwatch_orb::{SystemException, SystemExceptionKind as Kind};

over_each! {
    fn a_poller_gives_its_reply_once_and_says_where_an_exception_is_from(over) {
        let (peer, open) = answering_when_let(over);
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let poller = poller(&object, 7);
        assert_eq!(poller.operation_target(), &object);
        assert_eq!(poller.operation_name(), "number");
        let unasked = poller.is_from_poller().unwrap_err();
        assert_eq!((unasked.kind, unasked.minor), (Kind::BadInvOrder, OMG | 22));
        assert_eq!(poller.is_ready(0), Ok(false));
        let none = poll(&poller, 0).unwrap_err();
        assert_eq!((none.kind, none.minor), (Kind::NoResponse, OMG | 1));
        assert_eq!(poller.is_from_poller(), Ok(true));
        let none = poll(&poller, 5).unwrap_err();
        assert_eq!((none.kind, none.minor), (Kind::Timeout, OMG | 1));
        let other: Result<(), SystemException> = poller.poll("other", 0, |_| Ok(()), |_, _| Ok(None));
        assert_eq!(other.unwrap_err().kind, Kind::BadOperation);
        open.send(()).unwrap();
        assert_eq!(poller.is_ready(u32::MAX), Ok(true));
        assert_eq!(poll(&poller, 0), Ok(7));
        assert_eq!(poller.is_from_poller(), Ok(false));
        let again = poll(&poller, 0).unwrap_err();
        assert_eq!((again.kind, again.minor), (Kind::ObjectNotExist, OMG | 5));
        let again = poller.is_ready(0).unwrap_err();
        assert_eq!((again.kind, again.minor), (Kind::ObjectNotExist, OMG | 5));
    }

    fn a_poller_may_be_given_a_handler_and_lose_it_again(over) {
        let (peer, open) = answering_when_let(over);
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let (told, heard_by) = channel();
        // The handler is set before the reply arrives; the poller may be dropped then.
        let first = poller(&object, 1);
        first.set_handler(Some(passing_on(told.clone())));
        let kept = poll(&first, 0).unwrap_err();
        assert_eq!(kept.kind, Kind::BadInvOrder);
        drop(first);
        open.send(()).unwrap();
        assert_eq!(heard(&heard_by), Ok(1));
        // The handler is set after the reply has arrived.
        let second = poller(&object, 2);
        open.send(()).unwrap();
        assert_eq!(second.is_ready(u32::MAX), Ok(true));
        second.set_handler(Some(passing_on(told.clone())));
        assert_eq!(heard(&heard_by), Ok(2));
        // The handler is set and then removed.
        let third = poller(&object, 3);
        third.set_handler(Some(passing_on(told)));
        third.set_handler(None);
        open.send(()).unwrap();
        assert_eq!(poll(&third, u32::MAX), Ok(3));
    }

    fn a_poller_that_is_dropped_has_its_request_cancelled(over) {
        let peer = Peer::silent(over);
        let client = common::client();
        let poller = poller(&peer.seen_by(&client, 2), 1);
        let asked = peer.heard().asked();
        drop(poller);
        let cancel = peer.heard();
        assert_eq!((cancel.kind(), cancel.body().u32()), (CANCEL_REQUEST, asked.id));
    }

    fn a_set_gives_the_poller_that_is_ready(over) {
        let peer = Peer::answering(over, |_, asked| {
            // The first request gets no reply.
            let number = asked.asked().body.u64();
            if number == 0 { Vec::new() } else { same(asked) }
        });
        let client = common::client();
        let object = peer.seen_by(&client, 2);
        let pollers: Vec<_> = (0..3).map(|number| poller(&object, number)).collect();
        let set = pollers[0].create_pollable_set();
        set.add_pollable(&pollers[1]).unwrap();
        let twice = set.add_pollable(&pollers[1]).unwrap_err();
        assert_eq!((twice.kind, twice.minor), (Kind::BadParam, OMG | 43));
        let other = common::client();
        let alien = poller(&peer.seen_by(&other, 2), 5);
        assert_eq!(set.add_pollable(&alien).unwrap_err().kind, Kind::BadParam);
        assert_eq!(set.number_left(), 2);
        assert_eq!(set.ready_pollable(u32::MAX), Ok(pollers[1].clone()));
        assert_eq!(set.number_left(), 1);
        let none = |timeout| match set.ready_pollable(timeout) {
            Err(PollableSetError::System(exception)) => (exception.kind, exception.minor),
            other => panic!("nothing is ready, and not {other:?}"),
        };
        assert_eq!(none(0), (Kind::NoResponse, OMG | 1));
        assert_eq!(none(5), (Kind::Timeout, OMG | 1));
        assert_eq!(set.remove(&pollers[2]), Err(PollableSetError::UnknownPollable));
        assert_eq!(set.remove(&pollers[0]), Ok(()));
        assert_eq!(set.ready_pollable(0), Err(PollableSetError::NoPossiblePollable));
        assert_eq!(PollableSet::default().number_left(), 0);
        assert_eq!(poll(&pollers[1], 0), Ok(1));
    }
}

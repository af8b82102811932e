//! Clients that have left a channel are called back by threads of their own (Event Service 1.2, clause 2.3.3): a client
//! that is slow to connect or to answer holds no thread that serves requests.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use deckwatch_orb::{ObjectRef, SystemException};
use deckwatch_sync::PiMutex;

use crate::limits;
use crate::peers::Peer;

/// The farewells of one channel that are not said yet: each peer has one thread, which calls its clients in turn.
#[derive(Default)]
pub(crate) struct Farewells(PiMutex<HashMap<Peer, VecDeque<Farewell>>>);

struct Farewell {
    client: ObjectRef,
    operation: &'static str,
}

impl Farewells {
    /// Has a client of a peer called back. Without room or a thread it is not: it has left by itself.
    pub(crate) fn say(self: &Arc<Self>, peer: Peer, client: &ObjectRef, operation: &'static str) {
        let farewell = Farewell {
            client: client.clone(),
            operation,
        };
        let mut queues = self.0.lock("event.farewells");
        if let Some(queue) = queues.get_mut(&peer) {
            if queue.len() < limits::FAREWELLS_QUEUED_MAX {
                queue.push_back(farewell);
            }
            return;
        }
        if queues.len() >= limits::FAREWELLS_MAX {
            return;
        }
        queues.insert(peer, VecDeque::from([farewell]));
        drop(queues);
        let own = Arc::clone(self);
        let work = move || {
            while let Some(farewell) = own.next(peer) {
                say_farewell(&farewell.client, farewell.operation);
            }
        };
        if !in_thread(work) {
            self.0.lock("event.farewells").remove(&peer);
        }
    }

    /// Takes the next farewell of a peer. Forgets the peer if there is none.
    fn next(&self, peer: Peer) -> Option<Farewell> {
        let mut queues = self.0.lock("event.farewells");
        let next = queues.get_mut(&peer)?.pop_front();
        if next.is_none() {
            queues.remove(&peer);
        }
        next
    }
}

/// Notifies a client that its communication has ended. May take [`limits::FAREWELL_TIMEOUT`].
pub(crate) fn say_farewell(client: &ObjectRef, operation: &str) {
    let hurried = client.with_round_trip_timeout(Some(limits::FAREWELL_TIMEOUT));
    // A client that does not answer is gone already.
    let _: Result<(), SystemException> =
        hurried.invoke(operation, |_| Ok(()), |_| Ok(()), |_, _| Ok(None));
}

/// Runs `work` in a thread that no caller waits for. Returns false without a thread.
pub(crate) fn in_thread(work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name("event-farewell".to_owned());
    thread.spawn(work).is_ok()
}

#[cfg(test)]
mod tests {
    use deckwatch_orb::Orb;

    use super::*;

    #[test]
    fn farewells_that_wait_for_those_of_their_peer_are_bounded() {
        let orb = Orb::builder().build().expect("an ORB");
        let client = orb.string_to_object("corbaloc::127.0.0.1:9/x");
        let client = client.expect("sound").expect("not nil");
        let farewells = Arc::new(Farewells::default());
        // A thread calls clients of this peer.
        let (peer, operation) = (Peer::User(7), "disconnect_push_consumer");
        let queued = || farewells.0.lock("event.farewells")[&peer].len();
        farewells
            .0
            .lock("event.farewells")
            .insert(peer, VecDeque::new());
        for count in 1..=limits::FAREWELLS_QUEUED_MAX {
            farewells.say(peer, &client, operation);
            assert_eq!(queued(), count);
        }
        farewells.say(peer, &client, operation);
        assert_eq!(queued(), limits::FAREWELLS_QUEUED_MAX);
        while farewells.next(peer).is_some() {}
        assert!(farewells.0.lock("event.farewells").is_empty());
    }
}

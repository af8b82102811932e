//! When a channel removes a consumer whose pushes fail.

use std::sync::Arc;

use crate::raw::{Answering, CLOSE};
use crate::support::{World, number, wait_for};
use deckwatch_cdr::Any;
use deckwatch_event::ChannelCounts;
use deckwatch_event::cos_event_comm::{PushConsumer, PushConsumerPushError, PushConsumerSkeleton};
use deckwatch_event::limits::FAILURES_MAX;
use deckwatch_orb::{Completion, SystemException, SystemExceptionKind as Kind};

/// A consumer that raises an exception for every event but [`ACCEPTED`].
struct Refuser(Kind);

const ACCEPTED: u32 = 0;
const REFUSED: u32 = 1;

impl PushConsumer for Refuser {
    fn push<'a>(&'a self, data: &'a Any) -> Result<(), PushConsumerPushError> {
        match data.extract::<u32>().expect("an unsigned long") {
            ACCEPTED => Ok(()),
            _ => Err(SystemException::new(self.0, 0, Completion::No).into()),
        }
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A channel with one [`Refuser`].
fn refused_by(kind: Kind) -> World {
    let world = World::new();
    let refuser = PushConsumerSkeleton::new(Refuser(kind));
    world.connect(world.activate(Arc::new(refuser)));
    world
}

/// Pushes these values, each after the outcome of the one before is known. Returns the counts after the last.
fn push_all(world: &World, values: &[u32]) -> ChannelCounts {
    let supplier = world.supplier();
    let ended = || {
        let counts = world.served.counts();
        counts.delivered + counts.failed
    };
    for value in values {
        let before = ended();
        supplier.push(&number(*value)).unwrap();
        wait_for(|| ended() > before);
    }
    world.served.counts()
}

#[test]
fn a_success_between_failures_keeps_a_consumer() {
    let world = refused_by(Kind::NoResources);
    let almost = vec![REFUSED; FAILURES_MAX as usize - 1];
    let values = [
        &almost[..],
        &[ACCEPTED],
        &almost,
        &[ACCEPTED],
        &almost,
        &[ACCEPTED],
    ]
    .concat();
    let counts = push_all(&world, &values);
    assert_eq!(
        (counts.delivered, counts.failed),
        (3, 3 * almost.len() as u64)
    );
    assert_eq!(counts.consumers_lost, 0);
    // As many failures in a row as the limit remove it.
    push_all(&world, &[REFUSED; FAILURES_MAX as usize]);
    wait_for(|| world.served.counts().consumers_lost == 1);
    world.end();
}

#[test]
fn a_consumer_that_is_no_consumer_is_removed_at_its_first_answer() {
    for kind in [Kind::ObjectNotExist, Kind::InvObjref, Kind::BadOperation] {
        let world = refused_by(kind);
        let counts = push_all(&world, &[REFUSED]);
        assert_eq!((counts.delivered, counts.failed), (0, 1), "{kind:?}");
        wait_for(|| world.served.counts().consumers_lost == 1);
        // Nothing more is pushed to it.
        world.supplier().push(&number(ACCEPTED)).unwrap();
        world.end();
        let counts = world.served.counts();
        assert_eq!((counts.delivered, counts.failed), (0, 1), "{kind:?}");
    }
}

#[test]
fn a_consumer_that_closes_its_connection_on_each_event_is_removed() {
    let world = World::new();
    let closing = Answering::new();
    world.connect(closing.object(&world.user));
    // In order: the event was not served, and is sent again.
    closing.run_always(|_| CLOSE.to_vec());
    world.supplier().push(&number(ACCEPTED)).unwrap();
    wait_for(|| world.served.counts().consumers_lost == 1);
    let counts = world.served.counts();
    assert_eq!((counts.delivered, counts.displaced + counts.failed), (0, 1));
    world.end();
}

//! Timers of asynchronous calls: their deadlines, and the starts of replies that arrived early.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use deckwatch_sync::PiMutexGuard;

use super::super::Client;
use super::{Outstanding, Replies};
use crate::limits::ENDED_CALLS_FEW;
use crate::transport::Instant64;

/// When a call ends by its deadline, or when its early reply may be returned.
pub(super) struct Timer {
    pub(super) at: Instant64,
    call: Weak<Outstanding>,
    /// Its reply has arrived and waits for its start; the timer alone may own the call.
    pub(super) replied: Option<Arc<Outstanding>>,
}

impl Timer {
    /// Whether its call has not ended otherwise.
    fn is_wanted(&self) -> bool {
        self.replied.is_some() || self.call.strong_count() != 0
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

impl Replies {
    /// Ends a call at its deadline.
    pub(super) fn note_deadline(&self, call: &Arc<Outstanding>) {
        let Some(at) = call.deadlines().reply else {
            return;
        };
        let mut deadlines = self.deadlines.lock("replies.deadlines");
        // Most calls end long before their deadlines: timers of ended calls go when they outnumber the calls under way.
        let under_way = call.orb().client.outstanding.held();
        if deadlines.len() >= 2 * under_way + ENDED_CALLS_FEW {
            deadlines.retain(|Reverse(due)| due.is_wanted());
        }
        self.note_due(
            deadlines,
            Timer {
                at,
                call: Arc::downgrade(call),
                replied: None,
            },
        );
    }

    /// Returns the reply to a call at its start.
    pub(super) fn note_start(&self, call: &Arc<Outstanding>, at: Instant64) {
        let due = Timer {
            at,
            call: Weak::new(),
            replied: Some(Arc::clone(call)),
        };
        self.note_due(self.deadlines.lock("replies.deadlines"), due);
    }

    fn note_due(&self, mut deadlines: PiMutexGuard<'_, BinaryHeap<Reverse<Timer>>>, due: Timer) {
        let is_first = deadlines.peek().is_none_or(|first| due.at < first.0.at);
        deadlines.push(Reverse(due));
        drop(deadlines);
        if is_first {
            self.poller.wake();
        }
    }

    /// Ends calls at their deadlines, and connections that were unused for too long. Returns how long until the next of
    /// them is due.
    pub(super) fn expire(&self, client: &Client) -> Option<Duration> {
        let now = client.transport.now();
        let mut next = None;
        loop {
            let mut deadlines = self.deadlines.lock("replies.deadlines");
            match deadlines.peek() {
                Some(Reverse(due)) if due.at <= now => {}
                Some(Reverse(due)) => {
                    next = Some(due.at.since(now));
                    break;
                }
                None => break,
            }
            let due = deadlines.pop();
            drop(deadlines);
            let Some(Reverse(due)) = due else { continue };
            if let Some(call) = due.replied {
                call.begin_reply(self);
            } else if let Some(call) = due.call.upgrade() {
                call.expire(client, self);
            }
        }
        let idle = self.end_idle(client, now);
        next.into_iter().chain(idle).min()
    }

    /// Whether a timer is due.
    pub(super) fn has_due(&self, client: &Client) -> bool {
        let deadlines = self.deadlines.lock("replies.due");
        let first = deadlines.peek();
        first.is_some_and(|first| first.0.at <= client.transport.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;

    #[test]
    fn deadlines_of_calls_that_have_ended_are_not_kept() {
        let server = Orb::builder().listen("127.0.0.1:0").unwrap().build();
        let server = server.unwrap();
        let client = Orb::builder().build().unwrap();
        let url = format!("corbaloc:{}/nobody", server.endpoints()[0].url_address());
        let object = client.string_to_object(&url).unwrap().unwrap();
        let object = object.with_round_trip_timeout(Some(Duration::from_secs(3_600)));
        for _ in 0..3 * ENDED_CALLS_FEW {
            let pending = object.send_deferred("ask", |_| Ok(())).unwrap();
            assert_eq!(pending.wait(None), Ok(true));
        }
        let noted = client
            .0
            .calls
            .client
            .replies_made()
            .unwrap()
            .deadlines
            .lock("test")
            .len();
        assert!(noted <= ENDED_CALLS_FEW + 4, "{noted}");
    }
}

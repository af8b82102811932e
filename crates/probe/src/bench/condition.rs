//! Where the ends of a bench run, and in which class.

use deckwatch_os::schedule::affinity;

use super::error::BenchError;
use super::program::Place;

/// Where both ends run, and in which class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Both on one processor, SCHED_FIFO: what the software costs, and nothing of how an idle processor wakes. Targets are judged here.
    Pinned,
    /// Each on a processor of its own, SCHED_FIFO.
    TwoCores,
    /// Wherever the kernel puts them, time sharing.
    Default,
    /// Each on a processor of its own, time sharing, looking for messages instead of sleeping. Targets of spinning ends are judged here.
    Spinning,
}

impl Condition {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Pinned, Self::Spinning, Self::TwoCores, Self::Default];

    /// Targets are judged here.
    pub(super) const fn is_judged(self) -> bool {
        matches!(self, Self::Pinned | Self::Spinning)
    }

    /// Places of server and client, and the processors left for the bench itself.
    pub(crate) fn places(self) -> Result<Places, BenchError> {
        let all = affinity().map_err(|source| BenchError::System {
            doing: "The processors cannot be told",
            source,
        })?;
        let place = |processor, fifo| Place { processor, fifo };
        let fifo = Some(FIFO_PRIORITY);
        let (server, client, own) = match (self, all.as_slice()) {
            (Self::Default, _) => (place(None, None), place(None, None), all),
            (Self::Pinned, [rest @ .., last]) => {
                let both = place(Some(*last), fifo);
                let own = if rest.is_empty() { &all[..] } else { rest };
                (both, both, own.to_vec())
            }
            (Self::TwoCores | Self::Spinning, [rest @ .., first, last]) => {
                let own = if rest.is_empty() { &all[..] } else { rest };
                // Who spins would keep a processor for himself for ever in a real-time class.
                let fifo = fifo.filter(|_| self == Self::TwoCores);
                (
                    place(Some(*last), fifo),
                    place(Some(*first), fifo),
                    own.to_vec(),
                )
            }
            _ => return Err(BenchError::TooFewProcessors(all.len())),
        };
        Ok(Places {
            condition: self,
            server,
            client,
            own,
        })
    }
}

/// The places of a condition on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) condition: Condition,
    pub(crate) server: Place,
    pub(crate) client: Place,
    /// Processors for the bench itself.
    pub(crate) own: Vec<u32>,
}

impl Places {
    pub(crate) fn words(&self) -> String {
        match (self.condition, self.server.processor, self.client.processor) {
            (Condition::Pinned, Some(processor), _) => {
                format!("both ends on processor {processor}, SCHED_FIFO {FIFO_PRIORITY}, blocking")
            }
            (Condition::TwoCores, Some(server), Some(client)) => format!(
                "server on processor {server}, client on {client}, SCHED_FIFO {FIFO_PRIORITY}, blocking"
            ),
            (Condition::Spinning, Some(server), Some(client)) => {
                format!("server on processor {server}, client on {client}, SCHED_OTHER, spinning")
            }
            _ => "wherever the kernel puts them, SCHED_OTHER, blocking".to_owned(),
        }
    }
}

/// Above the kernel's own interrupt threads, which run at 50 too and share with it by turns.
pub(crate) const FIFO_PRIORITY: u8 = 50;

/// Of the client that shall not wait for the others.
pub(crate) const HIGH_PRIORITY: u8 = 60;

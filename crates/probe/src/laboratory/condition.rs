//! Processors and scheduling class of the ends.

use deckwatch_os::schedule::{Class, affinity, set_class};

use super::error::LaboratoryError;
use super::program::Place;

/// Processors and scheduling class of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Both on one processor, SCHED_FIFO. The wake-up of an idle processor is not measured. Targets are judged here.
    Pinned,
    /// Each on a processor of its own, SCHED_FIFO.
    TwoCores,
    /// Each on a processor of its own, time sharing.
    Apart,
    /// On the processors that the kernel chooses, time sharing. The kernel may put both on one, and may move them
    /// between two runs: rates differ by a factor of two then, whatever the program does.
    Default,
    /// Each on a processor of its own, time sharing, spinning. Targets of spinning ends are judged here.
    Spinning,
}

impl Condition {
    /// All conditions.
    pub const ALL: [Self; 5] = [
        Self::Pinned,
        Self::Spinning,
        Self::TwoCores,
        Self::Apart,
        Self::Default,
    ];

    /// Places of server and client, and the processors that are left for this process.
    pub(crate) fn places(self) -> Result<Places, LaboratoryError> {
        let all = affinity().map_err(|source| LaboratoryError::System {
            doing: "The processors of this process cannot be read",
            source,
        })?;
        let place = |processor, fifo| Place { processor, fifo };
        let wants_fifo = matches!(self, Self::Pinned | Self::TwoCores);
        let may_be_fifo = wants_fifo && may_be_real_time();
        let fifo = may_be_fifo.then_some(FIFO_PRIORITY);
        let (server, client, own) = match (self, all.as_slice()) {
            (Self::Default, _) => (place(None, None), place(None, None), all),
            (Self::Pinned, [rest @ .., last]) => {
                let both = place(Some(*last), fifo);
                let own = if rest.is_empty() { &all[..] } else { rest };
                (both, both, own.to_vec())
            }
            (Self::TwoCores | Self::Apart | Self::Spinning, [rest @ .., first, last]) => {
                let own = if rest.is_empty() { &all[..] } else { rest };
                (
                    place(Some(*last), fifo),
                    place(Some(*first), fifo),
                    own.to_vec(),
                )
            }
            _ => return Err(LaboratoryError::TooFewProcessors(all.len())),
        };
        Ok(Places {
            condition: self,
            is_refused: wants_fifo && !may_be_fifo,
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
    /// The condition asks for SCHED_FIFO, and this host does not permit it: the ends are in the time-sharing class.
    pub(crate) is_refused: bool,
    pub(crate) server: Place,
    pub(crate) client: Place,
    /// Processors for this process.
    pub(crate) own: Vec<u32>,
}

impl Places {
    /// Whether targets are judged here.
    pub(crate) const fn are_judged(&self) -> bool {
        matches!(self.condition, Condition::Pinned | Condition::Spinning) && !self.is_refused
    }

    /// A place that takes no processor from the ends if there is another one, in the time-sharing class.
    pub(crate) fn aside(&self) -> Place {
        let is_bound = self.server.processor.is_some();
        Place {
            processor: self.own.first().copied().filter(|_| is_bound),
            fifo: None,
        }
    }

    pub(crate) fn words(&self) -> String {
        let class = match self.server.fifo {
            Some(priority) => format!("SCHED_FIFO {priority}"),
            None if self.is_refused => {
                "SCHED_OTHER for want of permission for SCHED_FIFO".to_owned()
            }
            None => "SCHED_OTHER".to_owned(),
        };
        match (self.condition, self.server.processor, self.client.processor) {
            (Condition::Pinned, Some(processor), _) => {
                format!("both ends on processor {processor}, {class}, blocking")
            }
            (Condition::TwoCores | Condition::Apart, Some(server), Some(client)) => {
                format!("server on processor {server}, client on {client}, {class}, blocking")
            }
            (Condition::Spinning, Some(server), Some(client)) => {
                format!("server on processor {server}, client on {client}, {class}, spinning")
            }
            _ => format!("wherever the kernel puts them, {class}, blocking"),
        }
    }
}

/// Whether threads of this process may be in the real-time class. A thread that ends at once tries it.
fn may_be_real_time() -> bool {
    let try_it = || set_class(Class::Fifo(HIGH_PRIORITY)).is_ok();
    let tried = std::thread::Builder::new().spawn(try_it);
    tried.is_ok_and(|tried| tried.join().unwrap_or(false))
}

/// The priority of the ends: that of the kernel's interrupt threads, which take turns with them.
pub(crate) const FIFO_PRIORITY: u8 = 50;

/// The priority of the client that must not wait for the others.
pub(crate) const HIGH_PRIORITY: u8 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_is_refused_is_not_told_and_not_judged() {
        let place = Place {
            processor: Some(3),
            fifo: None,
        };
        let refused = Places {
            condition: Condition::Pinned,
            is_refused: true,
            server: place,
            client: place,
            own: vec![0],
        };
        let words = refused.words();
        assert!(
            words.starts_with("both ends on processor 3, SCHED_OTHER"),
            "{words}"
        );
        assert!(!refused.are_judged());
        let place = place_of(FIFO_PRIORITY);
        let granted = Places {
            is_refused: false,
            server: place,
            client: place,
            ..refused
        };
        let words = granted.words();
        assert!(words.contains("SCHED_FIFO 50, blocking"), "{words}");
        assert!(granted.are_judged());
    }

    const fn place_of(fifo: u8) -> Place {
        Place {
            processor: Some(3),
            fifo: Some(fifo),
        }
    }
}

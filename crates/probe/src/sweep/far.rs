//! Ends on far hosts: how they are started, whether what they say can be true, and their clock.

use std::net::IpAddr;
use std::process::Command;

use deckwatch_carrier::host_clock::{Exchange, HostClock};

use super::talk::{Answer, Arrived};
use super::way::{Answered, Streams};
use crate::laboratory::{LOAD_WORDS, Role};

/// One end on a host of its own, in place of a process of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarEnd {
    /// The host's name.
    pub name: String,
    /// The command that starts this program there, up to its path.
    pub command: Vec<String>,
    /// The address at which the other end sends to it.
    pub address: IpAddr,
    /// Where the host is another machine: the name of this measurement, whose ends may share the host.
    pub run: Option<String>,
}

impl FarEnd {
    /// The command that plays an end there.
    pub(super) fn start(&self) -> Command {
        self.program(["laboratory-end", Role::Sweep.word()])
    }

    /// Returns the command that carries out a load there.
    #[must_use]
    pub fn load(&self) -> Command {
        self.program(LOAD_WORDS)
    }

    fn program(&self, words: [&str; 2]) -> Command {
        let (first, more) = (self.command.split_first()).unwrap_or((&self.name, &[]));
        let mut command = Command::new(first);
        command.args(more).args(words);
        if let Some(run) = &self.run {
            command.args(["--run", run]);
        }
        command
    }
}

/// The server's clock, related to the client's by the transactions themselves. `None` for ends with one clock.
#[derive(Debug, Default)]
pub(super) struct FarClock(Option<HostClock>);

impl FarClock {
    /// A clock of another machine.
    pub(super) fn of_another() -> Self {
        Self(Some(HostClock::default()))
    }

    /// Takes the best exchange of these transactions, and converts the stamps of the server to the client's clock.
    pub(super) fn convert(&mut self, answered: &mut [Answered], streams: &mut Streams) {
        let Some(clock) = &mut self.0 else { return };
        for one in &*answered {
            let exchanges = exchanges(one);
            let best = exchanges.min_by_key(|of| (of.t4_ns - of.t1_ns) - (of.t3_ns - of.t2_ns));
            if let Some(best) = best {
                clock.note(best);
            }
        }
        let clock = clock.settled();
        let all = answered.iter_mut().flat_map(|one| &mut one.arrived);
        for arrived in all.chain(streams.iter_mut().flat_map(|(_, arrived)| arrived)) {
            arrived.first_ns = clock.to_near(arrived.first_ns);
            arrived.last_ns = clock.to_near(arrived.last_ns);
            for (_, received_ns, sent_ns) in &mut arrived.answered {
                // One shift for both, so that the server's own time stays as it was.
                let shift_ns = clock.to_near(*received_ns) - *received_ns;
                *received_ns += shift_ns;
                *sent_ns += shift_ns;
            }
        }
    }

    /// What a result says of the clocks, and the bound of the error of a one-way latency.
    pub(super) fn words(&self) -> (String, Option<u64>) {
        let Some(clock) = &self.0 else {
            let one = "all ends have the CLOCK_MONOTONIC of one kernel";
            return (one.to_owned(), None);
        };
        let bound = clock.settled().known_error_ns();
        let words = match bound {
            Some(ns) => format!(
                "the server's CLOCK_MONOTONIC is converted to the client's by the fastest transactions: one-way latencies \
                 are within {ns} ns, whatever the two directions take"
            ),
            _ => "a clock has jumped, or no transaction was answered: one-way latencies are not known".to_owned(),
        };
        (words, bound)
    }
}

/// The transactions as exchanges of four stamps.
fn exchanges(of: &Answered) -> impl Iterator<Item = Exchange> {
    let server = of.arrived.last();
    let answered = server.map_or(&[][..], |server| &server.answered);
    answered.iter().filter_map(|(sequence, t2_ns, t3_ns)| {
        let place = usize::try_from(sequence.checked_sub(of.first)?).ok()?;
        let (t1_ns, t4_ns) = *of.sent.get(place)?;
        (t4_ns != 0).then_some(Exchange {
            t1_ns,
            t2_ns: *t2_ns,
            t3_ns: *t3_ns,
            t4_ns,
        })
    })
}

/// Whether an answer about so many messages can be true. A far end may be broken or hostile.
pub(super) fn is_possible(answer: &Answer, messages: u64) -> bool {
    let count = |len: usize| len as u64 <= messages;
    match answer {
        Answer::Transactions(sent) => {
            count(sent.len())
                && (sent.iter()).all(|(start_ns, stop_ns)| {
                    let is_answered = *stop_ns == 0 || stop_ns >= start_ns;
                    is_time(*start_ns) && is_time(*stop_ns) && is_answered
                })
        }
        Answer::Streamed(streamed) => {
            let refused = streamed.send_errors.checked_add(streamed.queue_drops);
            is_time(streamed.start_a_ns)
                && is_time(streamed.stop_a_ns)
                && streamed.stop_a_ns >= streamed.start_a_ns
                && refused.is_some_and(|refused| refused <= messages)
        }
        Answer::Arrived(arrived) => {
            let Arrived {
                received,
                duplicates,
                overflows,
                refused,
                first_ns,
                last_ns,
                answered,
            } = arrived;
            let counts = [received, refused].into_iter().all(|of| *of <= messages);
            let others = [duplicates, overflows]
                .into_iter()
                .all(|of| *of <= COUNT_MAX);
            let answered_are = answered.iter().all(|(_, received_ns, sent_ns)| {
                is_time(*received_ns) && is_time(*sent_ns) && sent_ns >= received_ns
            });
            counts
                && others
                && count(answered.len())
                && answered_are
                && is_time(*first_ns)
                && is_time(*last_ns)
                && last_ns >= first_ns
        }
        Answer::Listening { .. } | Answer::Done | Answer::Failed { .. } => true,
    }
}

fn is_time(ns: i64) -> bool {
    (0..=TIME_MAX_NS).contains(&ns)
}

/// A century: no machine is up for longer.
const TIME_MAX_NS: i64 = 100 * 365 * 24 * 3_600 * 1_000_000_000;

/// More than any socket counts in a sweep.
const COUNT_MAX: u64 = u32::MAX as u64;

#[cfg(test)]
mod tests {
    use super::super::talk::Streamed;
    use super::*;

    const AHEAD_NS: i64 = 500_000_000_000;

    /// Transactions of 30 us there, 5 us inside and 20 us back, at a server whose clock is ahead. The second one is held
    /// up on the way there.
    fn answered() -> Answered {
        let times = |place: i64| 1_000_000_000 + place * 1_000_000;
        let held_up = |place: i64| if place == 1 { 400_000 } else { 0 };
        let sent = (0..4).map(|place| (times(place), times(place) + held_up(place) + 55_000));
        let at_server = (0..4).map(|place| {
            let received_ns = times(place) + held_up(place) + 30_000 + AHEAD_NS;
            (place.unsigned_abs(), received_ns, received_ns + 5_000)
        });
        Answered {
            first: 0,
            sent: sent.collect(),
            arrived: vec![Arrived {
                answered: at_server.collect(),
                ..Arrived::default()
            }],
        }
    }

    #[test]
    fn the_stamps_of_another_clock_are_converted_within_half_a_round_trip() {
        let mut clock = FarClock::of_another();
        let mut all = [answered()];
        let mut streams = vec![(
            Streamed::default(),
            vec![Arrived {
                first_ns: 2_000_000_000 + AHEAD_NS,
                last_ns: 2_000_900_000 + AHEAD_NS,
                ..Arrived::default()
            }],
        )];
        clock.convert(&mut all, &mut streams);
        for (place, (_, received_ns, sent_ns)) in all[0].arrived[0].answered.iter().enumerate() {
            let there_ns = received_ns - all[0].sent[place].0;
            // The middle of both ways: 25 in place of 30 us.
            let due_ns = if place == 1 { 425_000 } else { 25_000 };
            assert!((there_ns - due_ns).abs() <= 1, "{there_ns}");
            assert_eq!(sent_ns - received_ns, 5_000);
        }
        let last_ns = streams[0].1[0].last_ns;
        assert!((last_ns - 2_000_900_000).abs() <= 25_001, "{last_ns}");
        let bound_ns = clock.words().1.expect("an exchange");
        assert!((25_000..25_300).contains(&bound_ns), "{bound_ns}");
        assert_eq!(FarClock::default().words().1, None);
    }

    #[test]
    fn an_answer_that_cannot_be_true_is_not_taken() {
        let whole = answered();
        let sent = Answer::Transactions(whole.sent.clone());
        assert!(is_possible(&sent, 4));
        assert!(!is_possible(&sent, 3), "more than were asked for");
        let future = Answer::Transactions(vec![(1, i64::MAX)]);
        assert!(!is_possible(&future, 4));
        let backwards = Answer::Transactions(vec![(9, 5)]);
        assert!(!is_possible(&backwards, 4));
        let arrived = Answer::Arrived(whole.arrived[0].clone());
        assert!(is_possible(&arrived, 4));
        assert!(!is_possible(&arrived, 3));
        for lie in [
            Arrived {
                received: 5,
                ..Arrived::default()
            },
            Arrived {
                overflows: u64::MAX,
                ..Arrived::default()
            },
            Arrived {
                first_ns: i64::MIN,
                ..Arrived::default()
            },
        ] {
            assert!(!is_possible(&Answer::Arrived(lie.clone()), 4), "{lie:?}");
        }
        let refused = Streamed {
            send_errors: u64::MAX,
            queue_drops: 1,
            ..Streamed::default()
        };
        assert!(!is_possible(&Answer::Streamed(refused), 4));
    }
}

//! Ends on far hosts: how they are started, whether what they say can be true, and their clock.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use deckwatch_carrier::host_clock::{Exchange, HostClock};
use deckwatch_meter::clock::Window;
use deckwatch_meter::experiment::{ExperimentDocument, Measurement};
use deckwatch_meter::metrics::{CLIENT_TO_SERVER, SERVER_TO_CLIENT, Transaction};

use super::SIZE;
use super::figures::WAYS;
use super::point::Iteration;
use super::ring::Side;
use super::talk::{Answer, Arrived, Order};
use crate::laboratory::caution::Caution;
use crate::laboratory::process::End;
use crate::laboratory::{LOAD_WORDS, LaboratoryError, Role};
use crate::limits::CLOCK_PATIENCE;

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
        self.program(&["laboratory-end", Role::Sweep.word()])
    }

    /// The command that plays a part there, as those of a mission: a naming service or a channel.
    pub(super) fn part(&self) -> Command {
        self.program(&["part"])
    }

    /// Returns the command that carries out a load there.
    #[must_use]
    pub fn load(&self) -> Command {
        self.program(&LOAD_WORDS)
    }

    fn program(&self, words: &[&str]) -> Command {
        let (first, more) = (self.command.split_first()).unwrap_or((&self.name, &[]));
        let mut command = Command::new(first);
        command.args(more).args(words);
        if let Some(run) = &self.run {
            command.args(["--run", run]);
        }
        command
    }
}

/// The ends that relate the server's clock to the client's. `None` for ends with one clock.
#[derive(Default)]
pub(super) struct FarClock {
    ends: Option<[Side; 2]>,
    /// The last window of the time before: the clocks are related from there on without a gap.
    last: Option<Window>,
}

impl FarClock {
    /// Starts to relate the clocks of two hosts.
    ///
    /// # Errors
    /// [`LaboratoryError`]: an end does not start, or cannot open its socket.
    pub(super) fn start(far: &[FarEnd; 2]) -> Result<Self, LaboratoryError> {
        let side = |of: &FarEnd| -> Result<Side, LaboratoryError> {
            let mut end = End::start(format!("The clock on {}", of.name), of.start())?;
            end.greeting()?;
            let address = of.address;
            Ok(Side { end, address })
        };
        let [mut client, mut server] = [side(&far[0])?, side(&far[1])?];
        let address = server.address;
        match server.ask(&Order::Respond { address }, Duration::ZERO)? {
            Some(Answer::Answering { address: there }) => {
                let peer = SocketAddr::new(address, there.port());
                let from = client.address;
                client.done(&Order::Probe { peer, from })?;
            }
            Some(answer) => return Err(server.unexpected(&answer)),
            None => {}
        }
        Ok(Self {
            ends: Some([client, server]),
            last: None,
        })
    }

    /// Converts the stamps of the server to the client's clock. Returns the bounds of one-way latencies, or `None` for
    /// ends with one clock.
    ///
    /// # Errors
    /// [`LaboratoryError`]: an end failed.
    pub(super) fn convert(
        &mut self,
        found: &mut [Vec<Iteration>],
    ) -> Result<Option<Bounds>, LaboratoryError> {
        let Some([client, _]) = &mut self.ends else {
            return Ok(None);
        };
        let found_since = match client.ask(&Order::Relate, CLOCK_PATIENCE)? {
            Some(Answer::Related(windows)) => windows,
            Some(answer) => return Err(client.unexpected(&answer)),
            // The user wants to end: the transactions have to do.
            None => Vec::new(),
        };
        let before = self.last.filter(|_| !found_since.is_empty());
        let windows: Vec<Window> = before.into_iter().chain(found_since).collect();
        self.last = windows.last().copied();
        Ok(Some(convert(&windows, found)))
    }
}

/// Upper bounds of the error of a one-way latency, nanoseconds. `None`: nothing bounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Whatever the delays are.
    pub(super) rigorous_ns: Option<u64>,
    /// At 95% confidence, if the shortest times of both directions are equal.
    pub(super) assumed_ns: Option<u64>,
}

/// Converts the stamps by these windows, or by the fastest transactions where no datagrams came back.
fn convert(windows: &[Window], found: &mut [Vec<Iteration>]) -> Bounds {
    let mut clock = HostClock::default();
    windows.iter().for_each(|window| clock.note_window(window));
    if windows.is_empty() {
        for one in found.iter().flatten() {
            let exchanges = one.transactions.iter().map(exchange);
            let best = exchanges.min_by_key(|of| of.under_way_ns().unwrap_or(u64::MAX));
            best.into_iter().for_each(|best| clock.note(best));
        }
    }
    let clock = clock.settled();
    let mut times: Option<(i64, i64)> = None;
    for one in found.iter_mut().flatten() {
        for of in &mut one.transactions {
            // One shift for both, so that the server's own time stays as it was.
            let shift_ns = clock.to_near(of.stop_b_ns).saturating_sub(of.stop_b_ns);
            of.stop_b_ns = of.stop_b_ns.saturating_add(shift_ns);
            of.start_c_ns = of.start_c_ns.saturating_add(shift_ns);
            let (from, to) = times.unwrap_or((of.start_a_ns, of.stop_d_ns));
            times = Some((from.min(of.start_a_ns), to.max(of.stop_d_ns)));
        }
        if one.stream.received > 0 {
            one.stream.start_b_ns = clock.to_near(one.stream.start_b_ns);
            one.stream.stop_b_ns = clock.to_near(one.stream.stop_b_ns);
        }
    }
    let between = times.filter(|_| clock.is_known());
    Bounds {
        rigorous_ns: between.and_then(|(from, to)| clock.error_ns(from, to)),
        assumed_ns: between.and_then(|(from, to)| clock.assumed_ns(from, to)),
    }
}

/// A transaction as an exchange of four stamps.
const fn exchange(of: &Transaction) -> Exchange {
    Exchange {
        t1_ns: of.start_a_ns,
        t2_ns: of.stop_b_ns,
        t3_ns: of.start_c_ns,
        t4_ns: of.stop_d_ns,
    }
}

/// Adds the bounds to a point. A one-way latency whose mean is not larger than the rigorous bound, or has none, gets
/// other keys: no figure and no table shows it as a latency.
pub(super) fn bound(point: &mut Measurement, bounds: Bounds) {
    for (key, ns) in [(RIGOROUS, bounds.rigorous_ns), (ASSUMED, bounds.assumed_ns)] {
        point
            .values
            .extend(ns.map(|ns| (key.to_owned(), ns as f64)));
    }
    for metric in [CLIENT_TO_SERVER, SERVER_TO_CLIENT] {
        let mean_ns = point.values.get(&metric.key("mean")).copied();
        let is_comparable = |ns: u64| mean_ns.is_none_or(|mean_ns| mean_ns > ns as f64);
        if bounds.rigorous_ns.is_some_and(is_comparable) {
            continue;
        }
        let is_of = |key: &String| key.starts_with(&format!("{}_", metric.stem));
        point.runs.retain(|key, _| !is_of(key));
        let keys: Vec<String> = point
            .values
            .keys()
            .filter(|key| is_of(key))
            .cloned()
            .collect();
        for key in keys {
            if let Some(value) = point.values.remove(&key) {
                point.values.insert(format!("{NOT_COMPARABLE}{key}"), value);
            }
        }
    }
}

/// Writes into a document of far hosts what its points say of the clocks.
pub(super) fn describe(document: &mut ExperimentDocument) {
    let bounds = |key: &str| {
        let all = document
            .measurements
            .iter()
            .map(|of| of.values.get(key).copied());
        let all: Option<Vec<f64>> = all.collect();
        all?.into_iter().reduce(f64::max).map(|ns| ns as u64)
    };
    let (rigorous_ns, assumed_ns) = (bounds(RIGOROUS), bounds(ASSUMED));
    let note = match (rigorous_ns, assumed_ns) {
        (Some(rigorous), Some(assumed)) => format!(
            "one-way latencies are within {rigorous} ns, whatever the two directions take, and within {assumed} ns if their \
             shortest times are equal"
        ),
        (Some(rigorous), None) => format!(
            "one-way latencies are within {rigorous} ns, whatever the two directions take; by the fastest transactions, \
             because too few datagrams about the clocks came back"
        ),
        _ => "a clock has jumped, or no datagram came back: some one-way latencies are not known"
            .to_owned(),
    };
    let clock = &mut document.provenance.clock;
    clock.shared = false;
    clock.note = format!("the server's CLOCK_MONOTONIC is converted to the client's: {note}");
    (clock.latency_error_ns, clock.latency_assumed_ns) = (rigorous_ns, assumed_ns);
    document
        .notes
        .retain(|old| !old.contains("one-way latencies are"));
    document.notes.push(note.clone());
    let points = &document.measurements;
    for figure in &mut document.figures {
        let Some(system) = figure
            .title
            .strip_prefix(WAYS)
            .and_then(|of| of.strip_prefix(", "))
        else {
            continue;
        };
        figure.notes.push(format!("The clocks: {note}."));
        let own = points
            .iter()
            .filter(|of| of.system == system && is_incomparable(of));
        let sizes = own.filter_map(|of| Some(of.factors.get(SIZE)?.to_string()));
        let sizes: Vec<String> = sizes.collect();
        if !sizes.is_empty() {
            let sizes = sizes.join(", ");
            figure.notes.push(format!(
                "NOT COMPARABLE at {sizes} octets: the bound of the clocks is as large as a latency, which is left out."
            ));
        }
    }
}

/// A warning for each point with a one-way latency that the bound of the clocks exceeds.
pub(super) fn cautions(points: &[Measurement]) -> Vec<Caution> {
    let incomparable = points.iter().filter(|of| is_incomparable(of));
    let caution = incomparable.map(|point| Caution::NotComparable {
        what: format!(
            "{} at {} octets",
            point.system,
            point.factors.get(SIZE).copied().unwrap_or_default()
        ),
        bound_ns: point.values.get(RIGOROUS).copied(),
    });
    caution.collect()
}

fn is_incomparable(point: &Measurement) -> bool {
    point
        .values
        .keys()
        .any(|key| key.starts_with(NOT_COMPARABLE))
}

/// Keys of the bounds of a point's one-way latencies.
const RIGOROUS: &str = "one_way_bound_ns";
const ASSUMED: &str = "one_way_bound_if_symmetric_ns";

/// How the keys of latencies begin that the bound exceeds.
const NOT_COMPARABLE: &str = "not_comparable_";

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
        // Impossible windows are counted by the clock, and make it unknown.
        Answer::Listening { .. }
        | Answer::Answering { .. }
        | Answer::Related(_)
        | Answer::Done
        | Answer::Failed { .. } => true,
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
    use deckwatch_meter::clock::Relation;

    use super::super::talk::Streamed;
    use super::*;

    const AHEAD_NS: i64 = 500_000_000_000;
    const S: i64 = 1_000_000_000;

    /// Transactions of 30 us there, 5 us inside and 20 us back, at a server whose clock is ahead. The second one is held
    /// up on the way there.
    fn iteration() -> Iteration {
        let transaction = |place: i64| {
            let (sent_ns, held_up_ns) = (S + place * 1_000_000, 400_000 * i64::from(place == 1));
            let received_ns = sent_ns + held_up_ns + 30_000;
            Transaction {
                start_a_ns: sent_ns,
                stop_b_ns: received_ns + AHEAD_NS,
                start_c_ns: received_ns + AHEAD_NS + 5_000,
                stop_d_ns: received_ns + 25_000,
                inside_ns: 0,
            }
        };
        let mut found = Iteration {
            transactions: (0..4).map(transaction).collect(),
            ..Iteration::default()
        };
        let stream = &mut found.stream;
        (stream.received, stream.start_b_ns, stream.stop_b_ns) =
            (9, 2 * S + AHEAD_NS, 2 * S + AHEAD_NS + 900_000);
        found
    }

    /// A window around the iteration.
    fn window() -> Window {
        let relation = |near_ns: i64| Relation {
            near_ns,
            far_ns: near_ns + AHEAD_NS,
            rigorous_ns: 10_000,
            assumed_ns: Some(3_000),
        };
        Window {
            relation: relation(2 * S),
            ends: [relation(0), relation(4 * S)],
            skew_ppm: (0.0, 0.0, 0.0),
            round_trip_ns: 20_000,
            exchanges: 128,
            follows: false,
        }
    }

    fn point(found: &[Iteration], bounds: Bounds) -> Measurement {
        let place = super::super::point::Place {
            system: "udp".to_owned(),
            factors: [(SIZE.to_owned(), 64.0)].into(),
        };
        let mut point = super::super::point::measurement(&place, found).expect("an iteration");
        bound(&mut point, bounds);
        point
    }

    #[test]
    fn stamps_are_converted_by_windows_of_exchanges_with_both_bounds() {
        let mut found = [vec![iteration()]];
        let bounds = convert(&[window()], &mut found);
        let expected = (Some(10_200), Some(3_200));
        assert_eq!((bounds.rigorous_ns, bounds.assumed_ns), expected);
        let first = found[0][0].transactions[0];
        assert_eq!(
            first.client_to_server_ns(),
            30_000,
            "not the middle of both ways"
        );
        assert_eq!(first.server_to_client_ns(), 20_000);
        assert_eq!(found[0][0].stream.stop_b_ns, 2 * S + 900_000);
        let point = point(&found[0], bounds);
        assert_eq!(point.values[RIGOROUS], 10_200.0);
        assert_eq!(point.values[ASSUMED], 3_200.0);
        assert_eq!(cautions(&[point]), []);
    }

    #[test]
    fn without_windows_the_fastest_transactions_bound_the_clock_by_half_their_time() {
        let mut found = [vec![iteration()]];
        let bounds = convert(&[], &mut found);
        for (place, of) in found[0][0].transactions.iter().enumerate() {
            // The middle of both ways: 25 in place of 30 us.
            let due_ns = if place == 1 { 425_000 } else { 25_000 };
            assert!((of.client_to_server_ns() - due_ns).abs() <= 1, "{of:?}");
            assert_eq!(of.start_c_ns - of.stop_b_ns, 5_000);
        }
        let bound_ns = bounds.rigorous_ns.expect("an exchange");
        assert!((25_000..26_500).contains(&bound_ns), "{bound_ns}");
        assert_eq!(bounds.assumed_ns, None, "transactions estimate nothing");
    }

    #[test]
    fn a_latency_that_the_bound_exceeds_is_not_comparable_and_others_are() {
        let mut found = [vec![iteration()]];
        convert(&[window()], &mut found);
        let between = Bounds {
            rigorous_ns: Some(25_000),
            assumed_ns: Some(3_000),
        };
        let judged = point(&found[0], between);
        // 130 us there on average, 20 back.
        assert!(judged.values.contains_key("client_to_server_mean_ns"));
        assert!(!judged.values.contains_key("server_to_client_mean_ns"));
        assert!(!judged.runs.contains_key("server_to_client_mean_ns"));
        assert_eq!(
            judged.values["not_comparable_server_to_client_mean_ns"],
            20_000.0
        );
        assert!(judged.values.contains_key("transaction_mean_ns"));
        let told = cautions(&[judged])[0].to_string();
        assert!(
            told.contains("udp at 64 octets") && told.contains("NOT COMPARABLE"),
            "{told}"
        );
        let unknown = point(
            &found[0],
            Bounds {
                rigorous_ns: None,
                assumed_ns: None,
            },
        );
        assert!(
            !unknown.values.contains_key("client_to_server_mean_ns"),
            "a clock jumped"
        );
    }

    #[test]
    fn an_answer_that_cannot_be_true_is_not_taken() {
        let times = |place: i64| (S + place, S + place + 55_000);
        let sent = Answer::Transactions((0..4).map(times).collect());
        assert!(is_possible(&sent, 4));
        assert!(!is_possible(&sent, 3), "more than were asked for");
        let future = Answer::Transactions(vec![(1, i64::MAX)]);
        assert!(!is_possible(&future, 4));
        let backwards = Answer::Transactions(vec![(9, 5)]);
        assert!(!is_possible(&backwards, 4));
        let arrived = Answer::Arrived(Arrived {
            answered: (0..4).map(|place| (place, S, S + 5_000)).collect(),
            ..Arrived::default()
        });
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

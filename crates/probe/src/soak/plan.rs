//! The faults of a soak: what, when and where, from a seed alone.

use std::time::Duration;

use deckwatch_meter::statistics::simulated::Random;

use super::faults::FaultKind;
use super::server::Kind;

/// One fault that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// After the start.
    pub(super) at: Duration,
    pub(super) kind: FaultKind,
    pub(super) server: Kind,
    /// How long it lasts, for kinds that last.
    pub(super) lasts: Duration,
}

/// Returns the faults of these kinds in the order of their times. The last eighth of the time has none.
pub(super) fn plan(time: Duration, seed: u64, kinds: &[FaultKind]) -> Vec<Due> {
    let mut random = Random::new(seed);
    let mut all = Vec::new();
    for kind in FaultKind::ALL {
        // Drawn for every kind, so that leaving one out does not move the others.
        let drawn = match kind {
            FaultKind::Kill => kills(time, &mut random),
            _ => evenly(time, kind, &mut random),
        };
        all.extend(drawn.into_iter().filter(|due| kinds.contains(&due.kind)));
    }
    all.sort_by_key(|due| due.at);
    all
}

/// Kills leave long lives between them, because a trend is judged within a life: in a short soak only the naming
/// service and one other server are killed, early; in a long one every server, up to four times.
fn kills(time: Duration, random: &mut Random) -> Vec<Due> {
    let kill = |server, share: f64| Due {
        at: time.mul_f64(share),
        kind: FaultKind::Kill,
        server,
        lasts: Duration::ZERO,
    };
    if time < SHORT {
        let other = Kind::SERVERS[1 + below(random, Kind::SERVERS.len() - 1)];
        return vec![
            kill(Kind::Names, 0.10 + share(random) * 0.05),
            kill(other, 0.17 + share(random) * 0.05),
        ];
    }
    let count = (1 + time.as_secs() / 7_200).min(4) as u32;
    let every = 1.0 / f64::from(count + 1);
    let mut all = Vec::new();
    for server in Kind::SERVERS {
        for number in 1..=count {
            let jitter = (share(random) - 0.5) * every * 0.5;
            all.push(kill(server, (f64::from(number) * every + jitter).min(0.85)));
        }
    }
    all
}

/// Faults of one kind, one in each of as many equal parts of the time.
fn evenly(time: Duration, kind: FaultKind, random: &mut Random) -> Vec<Due> {
    let (count, of, lasts): (u32, fn(Kind) -> bool, f64) = match kind {
        FaultKind::Stop => (6, |_| true, 1.0 / 40.0),
        FaultKind::Cut => (40, |kind| kind != Kind::SharedObject, 0.0),
        FaultKind::Silence => (4, Kind::is_channel, 1.0 / 15.0),
        FaultKind::Death | FaultKind::Kill => (12, Kind::is_channel, 1.0 / 60.0),
    };
    let servers: Vec<Kind> = Kind::SERVERS.into_iter().filter(|kind| of(*kind)).collect();
    // A long soak has more of them, at least one of a kind in twelve minutes.
    let count = count.max((time.as_secs() / 720) as u32);
    let lasts = time.mul_f64(lasts).clamp(Duration::from_secs(1), LASTS_MAX);
    let part = 0.875 / f64::from(count);
    (0..count)
        .map(|number| Due {
            at: time.mul_f64((f64::from(number) + share(random)) * part),
            kind,
            server: servers[below(random, servers.len())],
            lasts,
        })
        .collect()
}

/// A number from 0 to 1.
fn share(random: &mut Random) -> f64 {
    random.below(1 << 20) as f64 / f64::from(1 << 20)
}

pub(super) fn below(random: &mut Random, end: usize) -> usize {
    usize::try_from(random.below(end as u64)).unwrap_or_default()
}

/// A soak below this has few kills.
const SHORT: Duration = Duration::from_secs(300);

/// The longest stop, and the longest silence of a consumer: longer than most timeouts of operators' tools.
const LASTS_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_seed_gives_the_same_faults_and_another_seed_others() {
        let one = plan(10 * MINUTE, 1, &FaultKind::ALL);
        assert_eq!(one, plan(10 * MINUTE, 1, &FaultKind::ALL));
        assert_ne!(one, plan(10 * MINUTE, 2, &FaultKind::ALL));
        assert!(one.is_sorted_by_key(|due| due.at));
        let kills = [FaultKind::Kill];
        let of_one = one
            .iter()
            .filter(|due| due.kind == FaultKind::Kill)
            .copied();
        assert_eq!(plan(10 * MINUTE, 1, &kills), of_one.collect::<Vec<_>>());
        assert_eq!(plan(10 * MINUTE, 1, &[]), []);
    }

    #[test]
    fn kills_leave_long_lives_and_reach_every_server_of_a_long_soak() {
        for seed in 0..50 {
            let short = plan(MINUTE, seed, &[FaultKind::Kill]);
            assert!(
                short.iter().any(|due| due.server == Kind::Names),
                "{short:?}"
            );
            assert!(short.iter().all(|due| due.at < MINUTE / 4), "{short:?}");
            for (time, each) in [(10 * MINUTE, 1), (8 * 60 * MINUTE, 4)] {
                let all = plan(time, seed, &[FaultKind::Kill]);
                for server in Kind::SERVERS {
                    let of_it: Vec<Due> = all
                        .iter()
                        .filter(|due| due.server == server)
                        .copied()
                        .collect();
                    assert_eq!(of_it.len(), each);
                    let apart = of_it.windows(2).map(|two| two[1].at - two[0].at);
                    assert!(
                        apart.min().is_none_or(|least| least > time / 12),
                        "{of_it:?}"
                    );
                    assert!(of_it.iter().all(|due| due.at < time * 7 / 8));
                }
            }
        }
    }

    #[test]
    fn silence_and_death_are_those_of_consumers() {
        let all = plan(10 * MINUTE, 3, &[FaultKind::Silence, FaultKind::Death]);
        assert_eq!(all.len(), 16);
        assert!(all.iter().all(|due| due.server.is_channel()));
    }

    #[test]
    fn each_equal_part_of_the_time_has_one_fault_of_a_kind() {
        let hours = 60 * MINUTE;
        for (time, kind, count, lasts) in [
            (10 * MINUTE, FaultKind::Stop, 6, MINUTE / 4),
            (10 * MINUTE, FaultKind::Cut, 40, MINUTE / 60),
            (10 * MINUTE, FaultKind::Silence, 4, MINUTE * 2 / 3),
            (10 * MINUTE, FaultKind::Death, 12, MINUTE / 6),
            // One in twelve minutes, and each lasts a minute at most.
            (8 * hours, FaultKind::Stop, 40, MINUTE),
            (4 * hours, FaultKind::Silence, 20, MINUTE),
        ] {
            let part = time * 7 / 8 / count;
            let (mut early, mut late) = (false, false);
            for seed in 0..20 {
                let all = plan(time, seed, &[kind]);
                assert_eq!(all.len(), count as usize, "{kind:?}");
                for (number, due) in (0..).zip(&all) {
                    let from = part * number;
                    assert!((from..=from + part).contains(&due.at), "{due:?}");
                    early |= due.at < from + part / 4;
                    late |= due.at > from + part * 3 / 4;
                    let apart = due.lasts.abs_diff(lasts);
                    assert!(apart < Duration::from_micros(1), "{due:?}");
                }
            }
            assert!(early && late, "{kind:?}: all over its part");
        }
    }

    #[test]
    fn faults_reach_every_server_that_can_have_them() {
        let reached = |kind| {
            let all = (0..20).flat_map(|seed| plan(10 * MINUTE, seed, &[kind]));
            let servers: Vec<Kind> = all.map(|due| due.server).collect();
            Kind::SERVERS.map(|server| servers.contains(&server))
        };
        assert_eq!(reached(FaultKind::Stop), [true; 7]);
        let cut = Kind::SERVERS.map(|server| server != Kind::SharedObject);
        assert_eq!(reached(FaultKind::Cut), cut);
        for kind in [FaultKind::Silence, FaultKind::Death] {
            assert_eq!(reached(kind), Kind::SERVERS.map(Kind::is_channel));
        }
    }

    /// Kills of a soak, by server, as shares of its time.
    fn shares(time: Duration, server: Kind) -> Vec<Vec<f64>> {
        let of = |seed| {
            let all = plan(time, seed, &[FaultKind::Kill]);
            let own = all.into_iter().filter(|due| due.server == server);
            own.map(|due| due.at.as_secs_f64() / time.as_secs_f64())
                .collect()
        };
        (0..100).map(of).collect()
    }

    /// Panics unless the shares fill a range, up to a tenth of it at each end.
    #[track_caller]
    fn fill(shares: &[f64], from: f64, to: f64) {
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let most = shares.iter().copied().fold(0.0, f64::max);
        let edge = (to - from) / 10.0;
        assert!((from..from + edge).contains(&least), "{least} of {from}");
        assert!(to - edge < most && most <= to, "{most} of {to}");
    }

    #[test]
    fn kills_of_a_short_soak_are_early_and_apart() {
        let time = SHORT - Duration::from_secs(1);
        fill(&shares(time, Kind::Names).concat(), 0.10, 0.15);
        let others = &Kind::SERVERS[1..];
        let all: Vec<Vec<Vec<f64>>> = others.iter().map(|kind| shares(time, *kind)).collect();
        assert!(all.iter().all(|of| !of.concat().is_empty()));
        fill(&all.concat().concat(), 0.17, 0.22);
        for seed in 0..100 {
            assert_eq!(plan(time, seed, &[FaultKind::Kill]).len(), 2);
            let whole = plan(SHORT, seed, &[FaultKind::Kill]);
            assert_eq!(whole.len(), Kind::SERVERS.len());
        }
    }

    #[test]
    fn kills_of_a_long_soak_are_around_equal_parts_of_it() {
        let hours = 60 * MINUTE;
        for (time, count) in [(SHORT, 1), (2 * hours, 2), (5 * hours, 3), (24 * hours, 4)] {
            for server in Kind::SERVERS {
                let all = shares(time, server);
                assert!(all.iter().all(|of| of.len() == count), "{time:?}");
                let every = 1.0 / (count + 1) as f64;
                for number in 0..count {
                    let own: Vec<f64> = all.iter().map(|of| of[number]).collect();
                    let middle = every * (number + 1) as f64;
                    fill(&own, middle - every / 4.0, middle + every / 4.0);
                }
            }
        }
    }
}

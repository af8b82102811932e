//! Simulated missions whose true share of late messages is exactly the budget: how often is a verdict wrong?
//!
//! At the edge of the budget, a PASS and a FAIL are both wrong, and each may come in at most 5% of runs. Late messages
//! are independent, or come in bursts by one of three processes. The verdicts are those of the judge: [`InBursts`] and
//! [`fails_of_many`].

mod process;

pub use process::{Process, Random};

use serde::Serialize;

use super::{InBursts, allowed_share, assumed, fails_of_many};
use crate::result::{LateBudget, VerdictKind};

/// A mission that is simulated many times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// How late messages come.
    pub process: Process,
    /// The budget, and the true share of late messages.
    pub budget: LateBudget,
    /// Messages judged at each destination.
    pub messages: u64,
    /// Number of destinations.
    pub destinations: u32,
}

/// The verdicts of a simulated mission, of which all are wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Wrong {
    /// Number of runs.
    pub runs: u32,
    /// Runs with the verdict PASS. One destination is at the edge, and the others are never late.
    pub pass: u32,
    /// Runs with the verdict FAIL. All destinations are at the edge.
    pub fail: u32,
    /// PASS by the rule for independent messages.
    pub pass_if_independent: u32,
    /// FAIL by the rule for independent messages at a single destination.
    pub fail_if_independent: u32,
}

impl Edge {
    /// Returns the missions of the table: four processes, three budgets, three lengths, 1 and 17 destinations.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut edges = Vec::new();
        for (late, of) in [(3, 10_000), (1, 100), (1, 20)] {
            for messages in [1_000, 10_000, 100_000] {
                for process in Process::ALL {
                    for destinations in [1, 17] {
                        edges.push(Self {
                            process,
                            budget: LateBudget { late, of },
                            messages,
                            destinations,
                        });
                    }
                }
            }
        }
        edges
    }

    /// Simulates `runs` runs. The mission asks for bursts of the length that the process has.
    #[must_use]
    pub fn simulate(&self, runs: u32, random: &mut Random) -> Wrong {
        let share = allowed_share(self.budget);
        let mut wrong = Wrong {
            runs,
            ..Wrong::default()
        };
        for _ in 0..runs {
            let seen: Vec<Seen> = (0..self.destinations)
                .map(|_| self.destination(share, random))
                .collect();
            wrong.pass += u32::from(seen[0].kind == VerdictKind::Pass);
            wrong.pass_if_independent += u32::from(seen[0].alone == VerdictKind::Pass);
            let chances: Vec<f64> = seen
                .iter()
                .filter(|one| one.kind == VerdictKind::Fail)
                .map(|one| one.chance)
                .collect();
            let fails = fails_of_many(&chances, seen.len());
            wrong.fail += u32::from(fails.iter().any(Option::is_some));
            let alone = |one: &Seen| one.alone == VerdictKind::Fail;
            wrong.fail_if_independent += u32::from(seen.iter().any(alone));
        }
        wrong
    }

    fn destination(&self, share: f64, random: &mut Random) -> Seen {
        let late = self.process.positions(self.messages, share, random);
        let (_, assumed) = assumed(self.messages, &late, self.process.burst());
        let with = |burst| InBursts {
            late: late.len() as f64,
            count: self.messages as f64,
            burst,
        };
        Seen {
            kind: with(assumed).kind(share),
            chance: with(assumed).chance_at(share),
            alone: with(1).kind(share),
        }
    }
}

/// One destination of one run.
struct Seen {
    kind: VerdictKind,
    chance: f64,
    /// The verdict by the rule for independent messages.
    alone: VerdictKind,
}

impl Wrong {
    /// Returns the largest number of wrong verdicts that a rule which is wrong in 5% of runs exceeds with a probability
    /// of less than one in 10,000.
    #[must_use]
    pub fn limit(&self) -> u32 {
        let runs = f64::from(self.runs);
        let beyond = |wrong: u32| {
            super::chance_of_at_least(
                f64::from(wrong) + 1.0,
                runs,
                1.0 - crate::limits::CONFIDENCE,
            )
        };
        (0..self.runs)
            .find(|&wrong| beyond(wrong) < CHANCE_OF_ALARM)
            .unwrap_or(self.runs)
    }

    /// Returns true if neither verdict is wrong in more than 5% of runs, the sampling error allowed for.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.pass.max(self.fail) <= self.limit()
    }
}

/// The table has about 200 cells with two numbers each: a rule that is wrong in exactly 5% of runs everywhere exceeds
/// the limit somewhere in 4% of tables.
const CHANCE_OF_ALARM: f64 = 1e-4;

#[cfg(test)]
mod tests {
    use super::*;

    fn simulated(process: Process, budget: (u64, u64), messages: u64, destinations: u32) -> Wrong {
        let (late, of) = budget;
        let edge = Edge {
            process,
            budget: LateBudget { late, of },
            messages,
            destinations,
        };
        let runs = if destinations == 1 { 300 } else { 40 };
        edge.simulate(runs, &mut Random::new(2_026))
    }

    #[test]
    fn the_table_has_each_mission_once() {
        let all = Edge::all();
        // Three budgets, three lengths, ten processes, 1 and 17 destinations.
        assert_eq!(all.len(), 3 * 3 * 10 * 2);
        for (index, edge) in all.iter().enumerate() {
            assert!(!all[..index].contains(edge), "{edge:?}");
        }
    }

    #[test]
    fn the_limit_is_the_number_that_one_table_in_ten_thousand_exceeds() {
        let of = |runs, pass, fail| Wrong {
            runs,
            pass,
            fail,
            ..Wrong::default()
        };
        // Of a hundred runs, 15 or more are wrong with a probability of 0.000136, and 16 or more with 0.000037.
        for (runs, limit) in [(0, 0), (1, 1), (3, 3), (20, 6), (100, 15), (300, 31)] {
            assert_eq!(of(runs, 0, 0).limit(), limit, "{runs} runs");
        }
        assert!(of(100, 15, 15).is_sound());
        assert!(!of(100, 16, 0).is_sound());
        assert!(!of(100, 0, 16).is_sound());
    }

    #[test]
    fn where_all_messages_may_be_late_and_are_each_run_passes() {
        let edge = Edge {
            process: Process::Independent,
            budget: LateBudget { late: 1, of: 1 },
            messages: 100,
            destinations: 2,
        };
        let expected = Wrong {
            runs: 3,
            pass: 3,
            pass_if_independent: 3,
            ..Wrong::default()
        };
        assert_eq!(edge.simulate(3, &mut Random::new(1)), expected);
    }

    #[test]
    fn independent_messages_at_the_edge_have_few_wrong_verdicts_by_both_rules() {
        let edge = Edge {
            process: Process::Independent,
            budget: LateBudget { late: 1, of: 20 },
            messages: 1_000,
            destinations: 1,
        };
        let wrong = edge.simulate(200, &mut Random::new(2_026));
        let few = 1..=wrong.limit();
        let all = [
            wrong.pass,
            wrong.fail,
            wrong.pass_if_independent,
            wrong.fail_if_independent,
        ];
        assert!(all.iter().all(|wrong| few.contains(wrong)), "{wrong:?}");
    }

    #[test]
    fn at_the_edge_wrong_verdicts_come_in_at_most_5_percent_of_runs() {
        let processes = [
            Process::Independent,
            Process::Markov { burst: 3 },
            Process::Markov { burst: 10 },
            Process::Blocks { burst: 10 },
            Process::Spells { burst: 30 },
        ];
        for process in processes {
            for (budget, messages) in [
                ((3, 10_000), 10_000),
                ((3, 10_000), 100_000),
                ((1, 100), 10_000),
                ((1, 20), 1_000),
            ] {
                for destinations in [1, 17] {
                    let wrong = simulated(process, budget, messages, destinations);
                    assert!(
                        wrong.is_sound(),
                        "{process:?}, {budget:?}, {messages} messages to {destinations}: {wrong:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_rule_for_independent_messages_is_wrong_where_late_messages_come_in_bursts() {
        let blocks = Process::Blocks { burst: 30 };
        let wrong = simulated(blocks, (3, 10_000), 10_000, 1);
        assert!(wrong.pass_if_independent > wrong.runs * 8 / 10, "{wrong:?}");
        let many = simulated(Process::Independent, (1, 100), 10_000, 17);
        assert!(many.fail_if_independent > many.runs / 4, "{many:?}");
    }

    #[test]
    fn each_process_has_the_share_that_it_is_asked_for() {
        let mut random = Random::new(3);
        for process in Process::ALL {
            for share in [0.01, 0.05, 0.3] {
                let count = 2_000_000;
                let late = process.positions(count, share, &mut random);
                assert!(late.is_sorted_by(|one, next| one < next));
                assert!(late.last().is_none_or(|&last| last < count));
                let found = late.len() as f64 / count as f64;
                assert!(
                    (found / share - 1.0).abs() < 0.1,
                    "{process:?}: {found}, and {share} was asked for"
                );
            }
        }
    }
}

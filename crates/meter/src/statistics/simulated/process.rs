//! How late messages come in a simulated run.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng as _;
use serde::Serialize;

/// A stationary process of late messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Process {
    /// Each message is late independently of the others.
    Independent,
    /// Bursts without a gap, of geometric length: a Markov chain.
    Markov {
        /// Late messages in a burst, on average.
        burst: u64,
    },
    /// Bursts without a gap, of equal length.
    Blocks {
        /// Late messages in a burst.
        burst: u64,
    },
    /// Bursts in which up to three messages in time come between two late ones.
    Spells {
        /// Late messages in a burst.
        burst: u64,
    },
}

impl Process {
    /// The processes of the table.
    pub const ALL: [Self; 10] = [
        Self::Independent,
        Self::Markov { burst: 3 },
        Self::Markov { burst: 10 },
        Self::Markov { burst: 30 },
        Self::Blocks { burst: 3 },
        Self::Blocks { burst: 10 },
        Self::Blocks { burst: 30 },
        Self::Spells { burst: 3 },
        Self::Spells { burst: 10 },
        Self::Spells { burst: 30 },
    ];

    /// Returns the number of late messages in a burst; for a Markov chain, on average.
    #[must_use]
    pub const fn burst(self) -> u64 {
        match self {
            Self::Independent => 1,
            Self::Markov { burst } | Self::Blocks { burst } | Self::Spells { burst } => burst,
        }
    }

    /// Returns the name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::Markov { .. } => "Markov",
            Self::Blocks { .. } => "blocks",
            Self::Spells { .. } => "spells",
        }
    }

    /// Returns the ascending positions of the late messages among `count`; in the long run, `share` of all messages
    /// are late.
    #[must_use]
    pub fn positions(self, count: u64, share: f64, random: &mut Random) -> Vec<u64> {
        // Messages from the first late one of a burst to the last, on average.
        let burst = self.burst() as f64;
        let length = burst + (burst - 1.0) * self.gap_mean();
        // The messages in time before a burst are geometric with this mean.
        let before = (burst / share - length).max(0.0);
        let begin = 1.0 / (1.0 + before);
        // The process is stationary after some bursts' time.
        let early = (SETTLING * length) as u64;
        let end = early + count;
        let mut positions = Vec::new();
        let mut next = 0;
        while next < end {
            next += random.geometric(begin);
            let size = match self {
                Self::Markov { burst } => 1 + random.geometric(1.0 / burst as f64),
                _ => self.burst(),
            };
            for index in 0..size {
                if index > 0 && matches!(self, Self::Spells { .. }) {
                    next += random.below(1 + SPELL_GAP_MAX);
                }
                if (early..end).contains(&next) {
                    positions.push(next - early);
                }
                next += 1;
            }
        }
        positions
    }

    /// Returns the mean number of messages in time between two late ones of a burst.
    fn gap_mean(self) -> f64 {
        match self {
            Self::Spells { .. } => SPELL_GAP_MAX as f64 / 2.0,
            _ => 0.0,
        }
    }
}

/// Most messages in time between two late ones of a spell.
const SPELL_GAP_MAX: u64 = 3;

/// Lengths of a burst after which a process that began without one has forgotten its beginning.
const SETTLING: f64 = 30.0;

/// A seeded source of random numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// Returns the source for a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Pcg64::new(u128::from(seed), 11))
    }

    /// Returns a number from 0 to 1, without 1.
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number from 0 to `end`, without `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.uniform() * end as f64) as u64
    }

    /// Returns how many times an event of the probability `success` fails before it first succeeds.
    fn geometric(&mut self, success: f64) -> u64 {
        if success >= 1.0 {
            return 0;
        }
        ((1.0 - self.uniform()).ln() / (-success).ln_1p()) as u64
    }
}

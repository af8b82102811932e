//! Strategies: which priority an operation gets, and how the queue of each priority is ordered.

use crate::info::{Criticality, RtInfo};

/// A scheduling strategy, named as in TAO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Rate monotonic: a static priority for each period, the shortest first (Liu and Layland 1973).
    #[default]
    Rms,
    /// Earliest deadline first: one priority, ordered by deadline (Liu and Layland 1973).
    Edf,
    /// Minimum laxity first: one priority, ordered by laxity, the time that is left less the time that a job still
    /// takes (Mok 1983).
    Mlf,
    /// Maximum urgency first: a priority for each criticality, each ordered by laxity (Stewart and Khosla 1991).
    Muf,
    /// TAO's RMS-Dyn: a static priority for each period of the critical operations; below them one priority for all
    /// others, ordered by laxity.
    RmsDyn,
}

/// How the queue of one priority is ordered (`RtecScheduler::Dispatching_Type_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    /// By arrival.
    Static,
    /// By absolute deadline.
    Deadline,
    /// By laxity.
    Laxity,
}

/// What orders priorities: less is more urgent. Operations with equal keys share a priority.
pub(crate) type LevelKey = (u32, u64);

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 5] = [Self::Rms, Self::Edf, Self::Mlf, Self::Muf, Self::RmsDyn];

    /// Returns its name, as files and command lines write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rms => "rms",
            Self::Edf => "edf",
            Self::Mlf => "mlf",
            Self::Muf => "muf",
            Self::RmsDyn => "rms-dyn",
        }
    }

    /// Returns the strategy with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    pub(crate) fn level_of(self, info: &RtInfo, period_ns: u64) -> (LevelKey, Dispatch) {
        let least_critical = Criticality::VeryHigh as u32;
        let below = least_critical - info.criticality as u32;
        match self {
            Self::Rms => ((0, period_ns), Dispatch::Static),
            Self::Edf => ((0, 0), Dispatch::Deadline),
            Self::Mlf => ((0, 0), Dispatch::Laxity),
            Self::Muf => ((below, 0), Dispatch::Laxity),
            Self::RmsDyn if info.criticality.is_critical() => ((0, period_ns), Dispatch::Static),
            Self::RmsDyn => ((1, 0), Dispatch::Laxity),
        }
    }
}

impl Dispatch {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Deadline => "deadline",
            Self::Laxity => "laxity",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_orders_levels_as_the_papers_say() {
        let info = |criticality| RtInfo {
            criticality,
            ..RtInfo::default()
        };
        let of =
            |strategy: Strategy, criticality, period| strategy.level_of(&info(criticality), period);
        use Criticality::{High, Medium, VeryHigh, VeryLow};
        let rms = Strategy::Rms;
        assert!(of(rms, VeryLow, 10).0 < of(rms, VeryHigh, 20).0);
        assert_eq!(of(rms, Medium, 10).1, Dispatch::Static);
        assert_eq!(of(Strategy::Edf, VeryLow, 1), ((0, 0), Dispatch::Deadline));
        assert_eq!(of(Strategy::Mlf, VeryLow, 1), ((0, 0), Dispatch::Laxity));
        let muf = Strategy::Muf;
        assert!(of(muf, VeryHigh, 90).0 < of(muf, High, 1).0);
        assert!(of(muf, High, 90).0 < of(muf, VeryLow, 1).0);
        let dynamic = Strategy::RmsDyn;
        assert_eq!(of(dynamic, High, 9), ((0, 9), Dispatch::Static));
        assert!(of(dynamic, High, 9).0 < of(dynamic, VeryHigh, 10).0);
        assert!(of(dynamic, High, 1000).0 < of(dynamic, Medium, 1).0);
        assert_eq!(of(dynamic, Medium, 1), of(dynamic, VeryLow, 2));
    }

    #[test]
    fn the_orders_of_queues_have_names() {
        let all = [Dispatch::Static, Dispatch::Deadline, Dispatch::Laxity];
        let names = all.map(Dispatch::name);
        assert_eq!(names, ["static", "deadline", "laxity"]);
    }

    #[test]
    fn a_strategy_is_found_by_its_name() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::named(strategy.name()), Some(strategy));
        }
        assert_eq!(Strategy::named("RMS"), None);
    }
}

//! The controller of one processor: how much a load takes of it, so that all that runs there takes the target.
//!
//! Pure: it sees differences of counters, and returns a share. The share is the target less what others take, plus a
//! part of the error so far. The first term follows another load within half a second. The second removes the rounding
//! of the kernel's counters, whose error does not grow with time.

use crate::limits::DEFICIT_MAX;

/// What happened on the processor since the look before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) wall_ns: f64,
    /// Time in which the processor was not idle.
    pub(super) busy_ns: f64,
    /// The load's own part of it.
    pub(super) own_ns: f64,
}

#[derive(Clone, Debug)]
pub(super) struct Controller {
    target: f64,
    own_max: f64,
    /// The last looks: time, and what others took of it.
    looks: [(f64, f64); LOOKS],
    /// Index of the oldest look.
    oldest: usize,
    /// Busy time that is missing; negative if there was too much.
    deficit_ns: f64,
}

impl Controller {
    /// `own_max` is the largest share that the load may take itself.
    pub(super) const fn new(target: f64, own_max: f64) -> Self {
        Self {
            target,
            own_max,
            looks: [(0.0, 0.0); LOOKS],
            oldest: 0,
            deficit_ns: 0.0,
        }
    }

    /// Returns the share that the load is to take until the next look.
    pub(super) fn after(&mut self, look: Look) -> f64 {
        if look.wall_ns <= 0.0 {
            return self.share();
        }
        self.looks[self.oldest] = (look.wall_ns, look.busy_ns - look.own_ns);
        self.oldest = (self.oldest + 1) % LOOKS;
        let bound = DEFICIT_MAX.as_nanos() as f64;
        let missing = self.target * look.wall_ns - look.busy_ns;
        self.deficit_ns = (self.deficit_ns + missing).clamp(-bound, bound);
        self.share()
    }

    fn share(&self) -> f64 {
        let sum = |sum: (f64, f64), look: &(f64, f64)| (sum.0 + look.0, sum.1 + look.1);
        let (wall_ns, others_ns) = self.looks.iter().fold((0.0, 0.0), sum);
        let others = (others_ns / wall_ns.max(1.0)).clamp(0.0, 1.0);
        let share = self.target - others + self.deficit_ns / REPAID_NS;
        share.clamp(0.0, self.own_max)
    }
}

/// Looks over which the share of others is averaged. The kernel's counters know one of a tenth of a second to ten points.
const LOOKS: usize = 5;

/// Time in which a deficit is paid back.
const REPAID_NS: f64 = 5e8;

#[cfg(test)]
mod tests {
    use super::*;

    /// A processor in simulated time: what others want of it, and how the kernel counts.
    struct Processor {
        controller: Controller,
        share: f64,
        now: u64,
        busy: f64,
        busy_seen: f64,
    }

    const LOOK: f64 = 1e8;
    const TICK: f64 = 1e7;

    impl Processor {
        fn new(target: f64, own_max: f64) -> Self {
            Self {
                controller: Controller::new(target, own_max),
                share: target.min(own_max),
                now: 0,
                busy: 0.0,
                busy_seen: 0.0,
            }
        }

        /// Returns the true use of the next second. Others take `others`; of what is left the load gets `granted` of what
        /// it wants.
        fn second(&mut self, others: f64, granted: f64) -> f64 {
            let before = self.busy;
            for _ in 0..10 {
                let own = (self.share * granted).min(1.0 - others) * LOOK;
                self.busy += own + others * LOOK;
                self.now += 1;
                // The kernel counts whole hundredths of a second of idle time.
                let wall = self.now as f64 * LOOK;
                let idle = ((wall - self.busy) / TICK).floor() * TICK;
                let seen = wall - idle;
                self.share = self.controller.after(Look {
                    wall_ns: LOOK,
                    busy_ns: seen - self.busy_seen,
                    own_ns: own,
                });
                self.busy_seen = seen;
            }
            (self.busy - before) / 1e9
        }
    }

    fn assert_near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 0.02, "{found} instead of {wanted}");
    }

    #[test]
    fn an_undisturbed_processor_is_held_from_its_first_second() {
        for target in [0.1, 0.333, 0.5, 0.9, 1.0] {
            let mut processor = Processor::new(target, 1.0);
            for _ in 0..5 {
                assert_near(processor.second(0.0, 1.0), target);
            }
        }
    }

    #[test]
    fn steps_of_another_load_are_taken_into_account_within_a_second() {
        let mut processor = Processor::new(0.6, 1.0);
        for others in [0.0, 0.3, 0.1, 0.55, 0.0] {
            processor.second(others, 1.0);
            for _ in 0..3 {
                assert_near(processor.second(others, 1.0), 0.6);
            }
        }
    }

    #[test]
    fn another_load_above_the_target_leaves_nothing_for_this_one_and_is_not_paid_back() {
        let mut processor = Processor::new(0.5, 1.0);
        for _ in 0..10 {
            processor.second(0.8, 1.0);
        }
        assert!(processor.share < 1e-9, "{}", processor.share);
        processor.second(0.0, 1.0);
        assert_near(processor.second(0.0, 1.0), 0.5);
    }

    #[test]
    fn a_load_that_gets_less_than_it_wants_wants_more() {
        // Something that takes turns with the load, and is not counted as busy, keeps it from a tenth of its time.
        let mut processor = Processor::new(0.5, 1.0);
        processor.second(0.0, 0.9);
        for _ in 0..5 {
            assert_near(processor.second(0.0, 0.9), 0.5);
        }
    }

    #[test]
    fn a_stolen_processor_counts_as_taken_by_others() {
        let mut processor = Processor::new(0.7, 1.0);
        // The hypervisor takes a quarter for three seconds, then all of it for one.
        for stolen in [0.25, 0.25, 0.25] {
            processor.second(stolen, 1.0);
        }
        assert_near(processor.second(0.25, 1.0), 0.7);
        assert_near(processor.second(1.0, 1.0), 1.0);
        processor.second(0.0, 1.0);
        assert_near(processor.second(0.0, 1.0), 0.7);
    }

    #[test]
    fn the_own_share_never_exceeds_its_bound() {
        let mut processor = Processor::new(0.8, 0.8);
        for granted in [1.0, 0.5, 0.1, 1.0] {
            processor.second(0.0, granted);
            assert!(processor.share <= 0.8);
        }
    }
}

//! What others did to a measurement that a test checks. A check that fails while others take the processor decides
//! nothing; what the check itself takes excuses nothing.

use std::time::Duration;

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::provenance::Readings;
use deckwatch_testkit::OtherProcesses;

/// A failed check.
pub(crate) struct Failure {
    pub(crate) what: String,
    /// What others did meanwhile, if it may be the cause.
    pub(crate) disturbance: Option<String>,
}

/// The machine before a measurement.
pub(crate) struct Before {
    readings: Readings,
    others: OtherProcesses,
}

impl Before {
    pub(crate) fn now() -> Self {
        Self {
            readings: Readings::take(),
            others: OtherProcesses::now(),
        }
    }

    /// Returns what others have done since, if it can have made a check fail. That is more than `withheld_max` of
    /// processor time withheld by the hypervisor or a quota, or much taken by other processes.
    pub(crate) fn disturbance(&self, withheld_max: Duration) -> Option<String> {
        let others = self.others.used_since();
        let since = self.readings.until(&Readings::take());
        by_others(&since, others, withheld_max)
    }

    /// Returns what is wrong as a failed check of instruments, with the disturbance since.
    pub(crate) fn failure(&self, wrong: &[String]) -> Result<(), Failure> {
        if wrong.is_empty() {
            return Ok(());
        }
        let withheld_max = self.readings.until(&Readings::take()).duration;
        Err(Failure {
            what: wrong.join("\n"),
            disturbance: self.disturbance(withheld_max.mul_f64(DISTURBED_SHARE)),
        })
    }
}

/// A thread that waited for a processor is not enough: it may have waited for the check's own threads, its loads, or the
/// program that it checks. So at most the time counts that other processes used.
fn by_others(since: &Disturbance, others: Duration, withheld_max: Duration) -> Option<String> {
    let waited = since.processor_pressure.unwrap_or(others).min(others);
    let is_disturbed =
        since.withheld() > withheld_max || waited > since.duration.mul_f64(DISTURBED_SHARE);
    is_disturbed.then(|| {
        format!(
            "{:?} of processor time withheld, {waited:?} waited for other processes, in {:?}",
            since.withheld(),
            since.duration
        )
    })
}

/// Runs a check up to three times, until it succeeds. A second failure of an undisturbed run is final: a fault repeats,
/// and what a hypervisor takes from a run shows in no counter. Fewer decide nothing: the test counts a skip.
pub(crate) fn up_to_three_times_if_disturbed(check: impl Fn() -> Result<(), Failure>) {
    let mut failures = Vec::new();
    let mut undisturbed = 0;
    for _ in 0..3 {
        match check() {
            Ok(()) => return,
            Err(Failure { what, disturbance }) => {
                undisturbed += usize::from(disturbance.is_none());
                failures.push(format!("{what}\n  disturbed: {disturbance:?}"));
                assert!(undisturbed < 2, "{}", failures.join("\n"));
            }
        }
    }
    deckwatch_testkit::skip("processor time", &failures.join("\n"));
}

/// Share of the time in which a thread waited for a processor that other processes had, from which they disturbed.
const DISTURBED_SHARE: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;

    const WITHHELD_MAX: Duration = Duration::from_millis(10);

    /// Ten seconds in which threads waited for so long.
    fn waited(ms: u64) -> Disturbance {
        Disturbance {
            duration: Duration::from_secs(10),
            processor_pressure: Some(Duration::from_millis(ms)),
            ..Disturbance::default()
        }
    }

    fn excuse(since: &Disturbance, others_ms: u64) -> Option<String> {
        by_others(since, Duration::from_millis(others_ms), WITHHELD_MAX)
    }

    #[test]
    fn what_the_check_itself_takes_is_no_excuse() {
        assert_eq!(excuse(&waited(9_000), 400), None);
        assert_eq!(excuse(&waited(400), 9_000), None);
    }

    #[test]
    fn what_others_take_is_an_excuse() {
        let unread = Disturbance {
            processor_pressure: None,
            ..waited(0)
        };
        for since in [&waited(600), &unread] {
            let words = excuse(since, 600).expect("disturbed");
            assert!(words.contains("600ms waited for other"), "{words}");
        }
    }

    #[test]
    fn what_the_hypervisor_or_a_quota_withholds_is_an_excuse() {
        let ms = Duration::from_millis;
        let stolen = |ms| Disturbance {
            stolen: Duration::from_millis(ms),
            ..waited(0)
        };
        assert_eq!(excuse(&stolen(10), 0), None);
        assert!(excuse(&stolen(20), 0).is_some());
        let throttled = Disturbance {
            throttled: ms(11),
            ..waited(0)
        };
        assert!(excuse(&throttled, 0).is_some());
    }
}

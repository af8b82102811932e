//! The disturbances of a run that its mission does not declare.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::caution::Caution;
use crate::limits::{PRESSURE_SHARE_WARNED, STOLEN_SHARE_WARNED};
use crate::result::Warning;

/// Differences of counters over a run, and bounds; zero if nothing was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// How long the run took.
    pub duration: Duration,
    /// Processors of the machine.
    pub processors: u32,
    /// Processor time that the hypervisor gave to other virtual machines, summed over all processors.
    pub stolen: Duration,
    /// Time for which the control group's quota stopped the run's threads.
    pub throttled: Duration,
    /// Time in which at least one runnable thread waited for a processor; `None` if the kernel does not report it.
    pub processor_pressure: Option<Duration>,
    /// Datagrams dropped by a full receive buffer in the network namespaces that were read; `None` if those of the run
    /// were not read.
    pub udp_receive_overflows: Option<u64>,
    /// Datagrams refused by a full send buffer or queue in these namespaces.
    pub udp_send_errors: Option<u64>,
    /// Packets that a capture dropped.
    pub capture_dropped: u64,
    /// Upper bound of the error of a latency that the clocks of its two ends cause; zero if both ends read one clock.
    pub clock_error: Duration,
}

impl Disturbance {
    /// Returns the processor time withheld from the run by causes that no mission declares.
    #[must_use]
    pub fn withheld(&self) -> Duration {
        self.stolen.saturating_add(self.throttled)
    }

    /// Returns the processor time that the machine had available.
    fn capacity(&self) -> Duration {
        self.duration.saturating_mul(self.processors)
    }

    /// Adds what another process of the run measured. Counters of its own network namespace and capture are added; of
    /// readings of the whole machine the larger one is kept.
    pub fn absorb(&mut self, other: &Self) {
        self.duration = self.duration.max(other.duration);
        self.processors = self.processors.max(other.processors);
        self.stolen = self.stolen.max(other.stolen);
        self.throttled = self.throttled.max(other.throttled);
        self.processor_pressure = self.processor_pressure.max(other.processor_pressure);
        self.udp_receive_overflows = sum(self.udp_receive_overflows, other.udp_receive_overflows);
        self.udp_send_errors = sum(self.udp_send_errors, other.udp_send_errors);
        self.capture_dropped = self.capture_dropped.saturating_add(other.capture_dropped);
        self.clock_error = self.clock_error.max(other.clock_error);
    }

    /// Returns what a reader must know about the whole run before trusting its numbers.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let pressure = self.processor_pressure.unwrap_or_default();
        let overflows = self.udp_receive_overflows.unwrap_or(0);
        let send_errors = self.udp_send_errors.unwrap_or(0);
        let stolen_warned = self.capacity().mul_f64(STOLEN_SHARE_WARNED);
        let pressure_warned = self.duration.mul_f64(PRESSURE_SHARE_WARNED);
        let all = [
            (
                self.stolen > stolen_warned,
                Caution::StolenProcessor(self.stolen),
            ),
            (
                !self.throttled.is_zero(),
                Caution::Throttled(self.throttled),
            ),
            (
                pressure > pressure_warned,
                Caution::ProcessorPressure {
                    waited: pressure,
                    of: self.duration,
                },
            ),
            (overflows > 0, Caution::ReceiveOverflowHere(overflows)),
            (send_errors > 0, Caution::SendErrorsHere(send_errors)),
            (
                self.capture_dropped > 0,
                Caution::CaptureDropped(self.capture_dropped),
            ),
            (
                !self.clock_error.is_zero(),
                Caution::ClockError(self.clock_error),
            ),
        ];
        all.into_iter()
            .filter_map(|(holds, caution)| holds.then(|| caution.into()))
            .collect()
    }

    /// Returns the readings by name, for the result document.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, f64> {
        let mut map = BTreeMap::from([
            ("stolen_us".to_owned(), self.stolen.as_micros() as f64),
            ("throttled_us".to_owned(), self.throttled.as_micros() as f64),
            ("capture_dropped".to_owned(), self.capture_dropped as f64),
            (
                "clock_error_ns".to_owned(),
                self.clock_error.as_nanos() as f64,
            ),
        ]);
        if let Some(pressure) = self.processor_pressure {
            map.insert("psi_cpu_some_us".to_owned(), pressure.as_micros() as f64);
        }
        if let Some(overflows) = self.udp_receive_overflows {
            map.insert("udp_rcvbuf_errors".to_owned(), overflows as f64);
        }
        if let Some(errors) = self.udp_send_errors {
            map.insert("udp_sndbuf_errors".to_owned(), errors as f64);
        }
        map
    }
}

/// Returns the sum of the values that were read; `None` if neither was.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(disturbance: &Disturbance) -> Vec<String> {
        disturbance
            .warnings()
            .into_iter()
            .map(|warning| warning.kind)
            .collect()
    }

    #[test]
    fn an_undisturbed_run_warns_of_nothing() {
        let quiet = Disturbance {
            duration: Duration::from_secs(20),
            processors: 2,
            processor_pressure: Some(Duration::from_secs(1)),
            ..Disturbance::default()
        };
        assert!(kinds(&quiet).is_empty());
        assert!(kinds(&Disturbance::default()).is_empty());
    }

    #[test]
    fn each_disturbance_is_warned_of_from_its_threshold() {
        let run = Disturbance {
            duration: Duration::from_secs(20),
            processors: 2,
            ..Disturbance::default()
        };
        let ms = Duration::from_millis;
        assert!(
            kinds(&Disturbance {
                stolen: ms(400),
                ..run.clone()
            })
            .is_empty()
        );
        assert_eq!(
            kinds(&Disturbance {
                stolen: ms(401),
                ..run.clone()
            }),
            ["stolen-cpu"]
        );
        assert_eq!(
            kinds(&Disturbance {
                processor_pressure: Some(ms(4_001)),
                ..run.clone()
            }),
            ["cpu-pressure"]
        );
        let all = Disturbance {
            throttled: ms(1),
            udp_receive_overflows: Some(1),
            udp_send_errors: Some(1),
            capture_dropped: 1,
            clock_error: ms(1),
            ..run
        };
        assert_eq!(
            kinds(&all),
            [
                "throttled",
                "receive-overflow",
                "send-errors",
                "capture-dropped",
                "clock-error"
            ]
        );
        assert_eq!(all.to_map()["capture_dropped"], 1.0);
    }

    #[test]
    fn counters_of_namespaces_add_up_and_readings_of_the_machine_do_not() {
        let ms = Duration::from_millis;
        let one = Disturbance {
            stolen: ms(30),
            udp_receive_overflows: Some(2),
            capture_dropped: 1,
            ..Disturbance::default()
        };
        let mut both = one.clone();
        both.absorb(&Disturbance {
            stolen: ms(40),
            processor_pressure: Some(ms(5)),
            udp_receive_overflows: Some(3),
            ..Disturbance::default()
        });
        let expected = Disturbance {
            stolen: ms(40),
            processor_pressure: Some(ms(5)),
            udp_receive_overflows: Some(5),
            ..one
        };
        assert_eq!(both, expected);
    }
}

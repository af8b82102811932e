//! What disturbed a run without having been declared by its mission.

use std::collections::BTreeMap;
use std::time::Duration;

/// Differences over a run, and bounds; zero where nothing was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbance {
    /// How long the run took.
    pub duration: Duration,
    /// Processors of the machine.
    pub processors: u32,
    /// Processor time that the hypervisor gave to others, all processors together.
    pub stolen: Duration,
    /// Time for which the control group's quota stopped its threads.
    pub throttled: Duration,
    /// Time in which at least one runnable thread waited for a processor, where the kernel tells.
    pub processor_pressure: Option<Duration>,
    /// Datagrams that found a full receive buffer, in all of this machine's namespaces that were read.
    pub udp_receive_overflows: u64,
    /// Datagrams refused by a full send buffer or queue.
    pub udp_send_errors: u64,
    /// Packets that a capture dropped.
    pub capture_dropped: u64,
    /// Bound of the error of a latency by the clocks of its two ends; zero where both read one clock.
    pub clock_error: Duration,
}

impl Disturbance {
    /// Processor time withheld from the run by what no mission declares.
    #[must_use]
    pub fn withheld(&self) -> Duration {
        self.stolen.saturating_add(self.throttled)
    }

    /// The readings by name, for the result document.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, f64> {
        let mut map = BTreeMap::from([
            ("stolen_us".to_owned(), self.stolen.as_micros() as f64),
            ("throttled_us".to_owned(), self.throttled.as_micros() as f64),
            (
                "udp_rcvbuf_errors".to_owned(),
                self.udp_receive_overflows as f64,
            ),
            ("udp_sndbuf_errors".to_owned(), self.udp_send_errors as f64),
            ("capture_dropped".to_owned(), self.capture_dropped as f64),
            (
                "clock_error_ns".to_owned(),
                self.clock_error.as_nanos() as f64,
            ),
        ]);
        if let Some(pressure) = self.processor_pressure {
            map.insert("psi_cpu_some_us".to_owned(), pressure.as_micros() as f64);
        }
        map
    }
}

//! A second instrument for the baseline: sockperf's TCP ping-pong of the same size. The option `--full-rtt` makes it
//! print whole round trips instead of half ones.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use deckwatch_meter::experiment::EndNote;

use crate::laboratory::LaboratoryError;
use crate::laboratory::examined::{Asked, Examination, examine};
use crate::laboratory::program::Place;

/// A sockperf server; it is killed when dropped.
pub(super) struct Sockperf {
    server: Child,
    port: u16,
    places: (Place, Place),
    /// Both ends look for messages in a loop instead of sleeping.
    spins: bool,
}

/// The result of one run, of whole round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PingPong {
    pub(super) count: u64,
    pub(super) p50_ns: f64,
    pub(super) p99_ns: f64,
}

impl Sockperf {
    /// Starts the server. Ends that spin have sockets that do not block.
    pub(super) fn start(places: (Place, Place), spins: bool) -> Result<Self, LaboratoryError> {
        let cannot = |source| LaboratoryError::CannotStart {
            what: "sockperf's server".to_owned(),
            source,
        };
        // It does not accept port 0, so it gets one that was free a moment ago.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(cannot)?
            .port();
        let server = places
            .0
            .command("sockperf")
            .args(["server", "--tcp", "-i", "127.0.0.1", "-p"])
            .arg(port.to_string())
            .args(spins.then_some(NONBLOCKED))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(cannot)?;
        let mut started = Self {
            server,
            port,
            places,
            spins,
        };
        started.await_listening()?;
        Ok(started)
    }

    fn await_listening(&mut self) -> Result<(), LaboratoryError> {
        let until = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if let Ok(Some(status)) = self.server.try_wait() {
                return Err(LaboratoryError::EndFailed {
                    what: "sockperf's server".to_owned(),
                    reason: format!("it has ended ({status})"),
                });
            }
            if Instant::now() > until {
                return Err(LaboratoryError::Silent {
                    what: "sockperf's server".to_owned(),
                    patience: PATIENCE,
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// One run with messages of `size` octets both ways, and its ends as they were read back. It takes one second, the
    /// shortest that sockperf accepts.
    pub(super) fn run(&self, size: usize) -> Result<(PingPong, Vec<EndNote>), LaboratoryError> {
        let cannot = |source| LaboratoryError::CannotStart {
            what: "sockperf".to_owned(),
            source,
        };
        let client = self
            .places
            .1
            .command("sockperf")
            .args(["ping-pong", "--tcp", "--full-rtt", "-t", "1"])
            .args(["-i", "127.0.0.1", "-p"])
            .arg(self.port.to_string())
            .arg("-m")
            .arg(size.to_string())
            .args(self.spins.then_some(NONBLOCKED))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let mut ends = [
            ("sockperf server", self.server.id(), self.places.0),
            ("sockperf client", client.id(), self.places.1),
        ]
        .map(|(end, process, place)| Examination::begin(end, process, Asked::at(place)));
        // It warms up first.
        examine(&mut ends, RUN_TIME);
        let output = client.wait_with_output().map_err(cannot)?;
        let output_text = String::from_utf8_lossy(&output.stdout);
        let found = parse(&output_text).ok_or_else(|| LaboratoryError::EndFailed {
            what: "sockperf".to_owned(),
            reason: format!(
                "it has ended ({}) without its percentiles: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            ),
        })?;
        Ok((found, ends.iter().map(Examination::note).collect()))
    }
}

const NONBLOCKED: &str = "--nonblocked";

/// A run with its warm-up.
const RUN_TIME: Duration = Duration::from_millis(1_400);

/// The longest time until the server listens.
const PATIENCE: Duration = Duration::from_secs(10);

impl Drop for Sockperf {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Reads the percentiles from its output. Returns `None` if they are not of whole round trips.
fn parse(text: &str) -> Option<PingPong> {
    if !text.contains("Round trip is") {
        return None;
    }
    let number_after = |mark: &str| {
        let rest = &text[text.rfind(mark)? + mark.len()..];
        rest.trim_start_matches([' ', '='])
            .split_whitespace()
            .next()?
            .parse::<f64>()
            .ok()
    };
    Some(PingPong {
        count: number_after("Total ")? as u64,
        p50_ns: number_after("percentile 50.000")? * 1e3,
        p99_ns: number_after("percentile 99.000")? * 1e3,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "sockperf: [Total Run] RunTime=1.001 sec; SentMessages=133092\n\
        sockperf: Summary: Round trip is 6.940 usec\n\
        sockperf: Total 78914 observations; each percentile contains 789.14 observations\n\
        sockperf: ---> percentile 99.000 =    9.972\n\
        sockperf: ---> percentile 50.000 =    6.305\n";

    #[test]
    fn whole_round_trips_are_read_and_halves_refused() {
        let run = parse(OUTPUT).expect("whole round trips");
        assert_eq!(
            (run.count, run.p50_ns, run.p99_ns),
            (78_914, 6_305.0, 9_972.0)
        );
        assert_eq!(parse(&OUTPUT.replace("Round trip is", "Latency is")), None);
    }
}

//! The other instruments: their command lines, and what they print.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use deckwatch_meter::experiment::Bound;

use super::server::Server;
use crate::laboratory::LaboratoryError;
use crate::laboratory::condition::Places;

/// An instrument of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// Round trips, one at a time.
    Sockperf,
    /// Throughput.
    Iperf3,
    /// Round trips at an interval, of datagrams.
    Irtt,
    /// Throughput.
    Nuttcp,
}

/// What an instrument sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    pub(super) is_udp: bool,
    /// TCP_NODELAY is off.
    pub(super) delays: bool,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Second,
    Messages(u64),
}

impl Instrument {
    /// All instruments.
    pub const ALL: [Self; 4] = [Self::Sockperf, Self::Iperf3, Self::Irtt, Self::Nuttcp];

    /// The name of its program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sockperf => "sockperf",
            Self::Iperf3 => "iperf3",
            Self::Irtt => "irtt",
            Self::Nuttcp => "nuttcp",
        }
    }

    /// Why it cannot be used here, if it cannot.
    pub(super) fn missing(self) -> Option<String> {
        let path = std::env::var_os("PATH")?;
        let is_there =
            std::env::split_paths(&path).any(|folder| folder.join(self.name()).is_file());
        let name = self.name();
        (!is_there).then(|| format!("{name} is not installed (Debian's package {name})"))
    }

    /// Whether it measures throughput. The others measure round trips.
    pub(super) const fn is_of_throughput(self) -> bool {
        matches!(self, Self::Iperf3 | Self::Nuttcp)
    }

    /// Whether it has the protocol.
    pub(super) const fn speaks(self, protocol: Protocol) -> bool {
        match self {
            Self::Sockperf | Self::Iperf3 | Self::Nuttcp => true,
            Self::Irtt => protocol.is_udp,
        }
    }

    /// The key of its values, and of the ratio of ours to them.
    pub(super) const fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Sockperf => ("beside_sockperf_p50_ns", "p50_over_sockperf_ratio"),
            Self::Iperf3 => ("beside_iperf3_bit_s", "throughput_over_iperf3_ratio"),
            Self::Irtt => ("beside_irtt_p50_ns", "p50_over_irtt_ratio"),
            Self::Nuttcp => ("beside_nuttcp_bit_s", "throughput_over_nuttcp_ratio"),
        }
    }

    /// The target of the ratio. The others are shown: irtt pauses between its round trips, and nuttcp is no faster than
    /// iperf3.
    pub(super) const fn bound(self) -> Option<Bound> {
        match self {
            Self::Sockperf => Some(Bound::AtMost(1.0)),
            Self::Iperf3 => Some(Bound::AtLeast(1.0)),
            Self::Irtt | Self::Nuttcp => None,
        }
    }

    /// One run on loopback: the median round trip in nanoseconds, or the received bits a second.
    pub(super) fn run(
        self,
        places: &Places,
        (protocol, size): (Protocol, u32),
        extent: Extent,
    ) -> Result<f64, LaboratoryError> {
        let server = Server::start(self, places.server, protocol)?;
        let placed = places.client.command(self.name());
        // A client that floods its own processor in a real-time class never ends.
        let mut client = Command::new("timeout");
        client.args(["-s", "KILL", RUN_S_MAX]).process_group(0);
        client.arg(placed.get_program()).args(placed.get_args());
        client.args(self.client_words(&server, (protocol, size), extent));
        let output = client.stdin(Stdio::null()).output();
        let output = output.map_err(|source| cannot_start(self, source))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found = match self {
            Self::Sockperf => sockperf_p50_ns(&text),
            Self::Iperf3 => iperf3_bit_s(&text, protocol.is_udp),
            Self::Irtt => irtt_p50_ns(&text),
            Self::Nuttcp => nuttcp_bit_s(&text),
        };
        found.ok_or_else(|| {
            let words = String::from_utf8_lossy(&output.stderr);
            let status = output.status;
            failed(
                self,
                &format!("it has ended ({status}) without a result: {}", words.trim()),
            )
        })
    }

    /// The arguments of its client.
    fn client_words(
        self,
        server: &Server,
        (Protocol { is_udp, delays }, size): (Protocol, u32),
        extent: Extent,
    ) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
        let (port, size) = (server.port.to_string(), size.to_string());
        let count = match extent {
            Extent::Second => None,
            Extent::Messages(count) => Some(count.to_string()),
        };
        match self {
            Self::Sockperf => {
                add(&["ping-pong", "--full-rtt", "-t", "1", "-i", "127.0.0.1"]);
                add(&["-m", &size, "-p", &port]);
                if !is_udp {
                    add(&["--tcp"]);
                }
                if delays {
                    add(&["--tcp-avoid-nodelay"]);
                }
            }
            Self::Iperf3 => {
                add(&["-c", "127.0.0.1", "-J", "-l", &size, "-p", &port]);
                match &count {
                    Some(count) => add(&["-k", count]),
                    None => add(&["-t", "1"]),
                }
                if is_udp {
                    add(&["-u", "-b", "0"]);
                } else if !delays {
                    add(&["-N"]);
                }
            }
            Self::Irtt => {
                // Its packets have a header of some 60 octets at least.
                add(&["client", "-Q", "-i", "1ms", "-d", "1s", "-l", &size, "-o"]);
                add(&["-", &format!("127.0.0.1:{port}")]);
            }
            Self::Nuttcp => {
                let data = server.data_port.to_string();
                add(&["-fparse", "-p", &data, "-P", &port, "-l", &size]);
                match &count {
                    Some(count) => add(&["-n", count]),
                    None => add(&["-T", "1"]),
                }
                if is_udp {
                    add(&["-u", "-Ru"]);
                } else if !delays {
                    add(&["-D"]);
                }
                add(&["127.0.0.1"]);
            }
        }
        words
    }
}

/// Seconds after which a run is killed: many times what it should take.
const RUN_S_MAX: &str = "15";

pub(super) fn cannot_start(instrument: Instrument, source: std::io::Error) -> LaboratoryError {
    LaboratoryError::CannotStart {
        what: instrument.name().to_owned(),
        source,
    }
}

pub(super) fn failed(instrument: Instrument, reason: &str) -> LaboratoryError {
    LaboratoryError::EndFailed {
        what: instrument.name().to_owned(),
        reason: reason.to_owned(),
    }
}

/// Reads the median from sockperf's output. `None` if it is not of whole round trips.
fn sockperf_p50_ns(text: &str) -> Option<f64> {
    text.contains("Round trip is").then_some(())?;
    let mark = "percentile 50.000";
    let rest = &text[text.rfind(mark)? + mark.len()..];
    let number = rest
        .trim_start_matches([' ', '='])
        .split_whitespace()
        .next()?;
    Some(number.parse::<f64>().ok()? * 1e3)
}

/// Reads the received bits a second from iperf3's document. Of UDP, it has those sent and the share lost.
fn iperf3_bit_s(text: &str, is_udp: bool) -> Option<f64> {
    let document: serde_json::Value = serde_json::from_str(text).ok()?;
    let end = document.get("end")?;
    if !is_udp {
        return end.get("sum_received")?.get("bits_per_second")?.as_f64();
    }
    let sum = end.get("sum")?;
    let lost = sum.get("lost_percent")?.as_f64()? / 100.0;
    Some(sum.get("bits_per_second")?.as_f64()? * (1.0 - lost))
}

/// Reads the median round trip from irtt's document.
fn irtt_p50_ns(text: &str) -> Option<f64> {
    let document: serde_json::Value = serde_json::from_str(text).ok()?;
    let rtt = document.get("stats")?.get("rtt")?;
    rtt.get("median")?.as_f64().filter(|ns| *ns > 0.0)
}

/// Reads the received bits a second from nuttcp's line, which has millions of them.
fn nuttcp_bit_s(text: &str) -> Option<f64> {
    let mark = "rate_Mbps=";
    let rest = &text[text.rfind(mark)? + mark.len()..];
    let number = rest.split_whitespace().next()?;
    Some(number.parse::<f64>().ok()? * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_other_instruments_are_of_whole_round_trips_and_of_what_was_received() {
        let text = "sockperf: Summary: Round trip is 6.940 usec\n\
                    sockperf: ---> percentile 50.000 =    6.305\n";
        assert_eq!(sockperf_p50_ns(text), Some(6_305.0));
        assert_eq!(
            sockperf_p50_ns(&text.replace("Round trip", "Latency")),
            None
        );
        let tcp = r#"{"end":{"sum_sent":{"bits_per_second":9e9},"sum_received":{"bits_per_second":8e9}}}"#;
        assert_eq!(iperf3_bit_s(tcp, false), Some(8e9));
        let udp = r#"{"end":{"sum":{"bits_per_second":4e9,"lost_percent":25}}}"#;
        assert_eq!(iperf3_bit_s(udp, true), Some(3e9));
        assert_eq!(iperf3_bit_s("{}", true), None);
        let irtt = r#"{"stats":{"rtt":{"min":1000,"median":25000,"max":90000}}}"#;
        assert_eq!(irtt_p50_ns(irtt), Some(25_000.0));
        let none = r#"{"stats":{"rtt":{"median":0}}}"#;
        assert_eq!(irtt_p50_ns(none), None);
        let nuttcp = "megabytes=1.2207 real_seconds=0.02 rate_Mbps=512.5 tx_cpu=50 rx_cpu=20\n";
        assert_eq!(nuttcp_bit_s(nuttcp), Some(512.5e6));
        assert_eq!(nuttcp_bit_s("nuttcp: error"), None);
    }
}

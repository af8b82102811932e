//! Other instruments in the same run: sockperf's ping-pong and iperf3's throughput, of the same protocol and size.

use std::collections::BTreeMap;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deckwatch_carrier::carrier::Framing;
use deckwatch_meter::experiment::{Measurement, Ratio};
use deckwatch_meter::metrics::{END_TO_END_THROUGHPUT, TRANSACTION};

use super::variant::Variant;
use super::{SIZE, Sweep};
use crate::laboratory::LaboratoryError;
use crate::laboratory::session::Session;

/// An instrument of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instrument {
    /// Round trips, one at a time.
    Sockperf,
    /// Throughput.
    Iperf3,
}

impl Instrument {
    /// All instruments.
    pub const ALL: [Self; 2] = [Self::Sockperf, Self::Iperf3];

    /// The name of its program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sockperf => "sockperf",
            Self::Iperf3 => "iperf3",
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

    /// The key of its values, and of the ratio of ours to them.
    pub(super) const fn keys(self) -> (&'static str, &'static str) {
        match self {
            Self::Sockperf => ("beside_sockperf_p50_ns", "p50_over_sockperf_ratio"),
            Self::Iperf3 => ("beside_iperf3_bit_s", "throughput_over_iperf3_ratio"),
        }
    }

    /// One run of a second on loopback: the median round trip in nanoseconds, or the received bits a second.
    /// TCP has the setting of NODELAY that ours has.
    fn run(self, (is_udp, delays): (bool, bool), size: u32) -> Result<f64, LaboratoryError> {
        let server = Server::start(self, (is_udp, delays))?;
        let mut client = command(self);
        match self {
            Self::Sockperf => {
                client.args(["ping-pong", "--full-rtt", "-t", "1", "-i", "127.0.0.1"]);
                client.args(["-m", &size.to_string()]);
                client.args((!is_udp).then_some("--tcp"));
                client.args(delays.then_some("--tcp-avoid-nodelay"));
            }
            Self::Iperf3 => {
                client.args(["-c", "127.0.0.1", "-t", "1", "-J", "-l", &size.to_string()]);
                client.args(is_udp.then_some(["-u", "-b", "0"]).into_iter().flatten());
                client.args((!is_udp && !delays).then_some("-N"));
            }
        }
        client.args(["-p", &server.port.to_string()]);
        let output = client.stdin(Stdio::null()).output();
        let output = output.map_err(|source| cannot_start(self, source))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let found = match self {
            Self::Sockperf => sockperf_p50_ns(&text),
            Self::Iperf3 => iperf3_bit_s(&text, is_udp),
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
}

/// Results of other instruments beside one variant, an entry for each iteration.
pub(super) type Others = BTreeMap<&'static str, Vec<f64>>;

/// Runs the other instruments beside an iteration of udp or tcp. An instrument that is missing or fails is skipped.
pub(super) fn run_beside(
    session: &mut Session<'_>,
    asked: &Sweep,
    variant: Variant,
    size: u32,
    others: &mut Others,
) {
    let is_udp = variant.carrier.framing() == Framing::Datagram;
    let is_transport = is_udp || variant.carrier.framing() == Framing::Length;
    let delays = variant.socket.delays;
    let others_have = usize::from(delays);
    let is_alike =
        is_transport && variant.factors().len() == others_have && asked.network.is_none();
    for instrument in asked.beside.iter().filter(|_| is_alike) {
        if let Some(reason) = instrument.missing() {
            session.skip(instrument.name(), &reason);
            continue;
        }
        let ran = instrument.run((is_udp, delays), size);
        if let Some(value) = session.or_skip(instrument.name(), ran) {
            others.entry(instrument.keys().0).or_default().push(value);
        }
    }
}

/// The ratios of a point to other instruments, in words.
pub(super) fn ratio_notes(point: &Measurement) -> Vec<String> {
    let size = point.factors.get(SIZE).copied().unwrap_or_default();
    let of = |(name, key): (&str, &str)| {
        let ratio = point.ratio(key)?.interval_words();
        Some(format!(
            "{} at {size} octets, {name}: {ratio}",
            point.system
        ))
    };
    let [sockperf, iperf3] = Instrument::ALL.map(|it| it.keys().1);
    let words = [
        ("median transaction time over sockperf's", sockperf),
        ("end-to-end throughput over iperf3's", iperf3),
    ];
    words.into_iter().filter_map(of).collect()
}

/// Adds the results of other instruments, and ours over theirs, iteration by iteration.
pub(super) fn add_ratios(point: &mut Measurement, others: &Others) {
    for instrument in Instrument::ALL {
        let (key, ratio) = instrument.keys();
        let own = match instrument {
            Instrument::Sockperf => TRANSACTION.key("p50"),
            Instrument::Iperf3 => END_TO_END_THROUGHPUT.run_key(),
        };
        let (Some(theirs), Some(own)) = (others.get(key), point.runs.get(&own)) else {
            continue;
        };
        // An iteration that it missed would shift the pairs.
        if theirs.len() != own.len() {
            continue;
        }
        let ratios: Vec<f64> = own
            .iter()
            .zip(theirs)
            .map(|(own, theirs)| own / theirs)
            .collect();
        for (key, values) in [(key, theirs.clone()), (ratio, ratios)] {
            let median = Ratio::of(values.clone()).map(|found| (key.to_owned(), found.median));
            point.values.extend(median);
            point.runs.insert(key.to_owned(), values);
        }
    }
}

/// A server, which is killed when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(
        instrument: Instrument,
        (is_udp, delays): (bool, bool),
    ) -> Result<Self, LaboratoryError> {
        // Neither accepts port 0, so each gets one that was free a moment ago.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free
            .map_err(|source| cannot_start(instrument, source))?
            .port();
        let mut server = command(instrument);
        match instrument {
            Instrument::Sockperf => {
                server.args(["server", "-i", "127.0.0.1"]);
                server.args((!is_udp).then_some("--tcp"));
                server.args(delays.then_some("--tcp-avoid-nodelay"));
            }
            Instrument::Iperf3 => {
                server.args(["-s", "-B", "127.0.0.1"]);
            }
        }
        server.args(["-p", &port.to_string()]);
        server
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = server
            .spawn()
            .map_err(|source| cannot_start(instrument, source))?;
        let mut started = Self { child, port };
        let listens_at_udp = is_udp && instrument == Instrument::Sockperf;
        let until = Instant::now() + PATIENCE;
        // The port is taken when the server listens.
        while is_free(port, listens_at_udp) {
            if let Ok(Some(status)) = started.child.try_wait() {
                return Err(failed(
                    instrument,
                    &format!("its server has ended ({status})"),
                ));
            }
            if Instant::now() > until {
                return Err(failed(instrument, "its server does not listen"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(started)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_free(port: u16, is_udp: bool) -> bool {
    if is_udp {
        UdpSocket::bind(("127.0.0.1", port)).is_ok()
    } else {
        TcpListener::bind(("127.0.0.1", port)).is_ok()
    }
}

fn command(instrument: Instrument) -> Command {
    let mut command = Command::new(instrument.name());
    // In a process group of its own, so that Ctrl-C reaches this program alone.
    command.process_group(0);
    command
}

fn cannot_start(instrument: Instrument, source: std::io::Error) -> LaboratoryError {
    LaboratoryError::CannotStart {
        what: instrument.name().to_owned(),
        source,
    }
}

fn failed(instrument: Instrument, reason: &str) -> LaboratoryError {
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

/// The longest time until a server listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(10);

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
    }
}

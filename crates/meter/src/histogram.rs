//! Complete histograms of latency, and the interval log that the HdrHistogram tools of all languages read.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;

use crate::limits::{HISTOGRAM_DIGITS, HISTOGRAM_NS_MAX};
use crate::sample::{NO_STAMP, Sample};

/// Counts of latencies in nanoseconds, exact to three digits, in memory that is allocated once.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    counts: Histogram<u64>,
}

/// Why an interval log cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// The file cannot be written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A histogram cannot be encoded in the log's format.
    #[error("A histogram cannot be written: {0}.")]
    Form(String),
}

impl LatencyHistogram {
    /// Returns an empty histogram for latencies up to [`HISTOGRAM_NS_MAX`]. It always occupies about 260 KB.
    #[must_use]
    pub fn new() -> Self {
        // The constant bounds are valid; a test constructs a histogram with them.
        let counts = Histogram::new_with_bounds(1, HISTOGRAM_NS_MAX, HISTOGRAM_DIGITS)
            .expect("constant bounds in order");
        Self { counts }
    }

    /// Counts one latency. A latency below 1 ns counts as 0, one above [`HISTOGRAM_NS_MAX`] as that maximum. Does not
    /// allocate.
    pub fn record(&mut self, latency_ns: i64) {
        self.counts
            .saturating_record(u64::try_from(latency_ns).unwrap_or(0));
    }

    /// Returns the number of latencies counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Returns the latency that this share of all latencies does not exceed, to three digits; 0 if nothing was counted.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        self.counts.value_at_quantile(share)
    }

    /// Returns the buckets that are not empty, ascending: the upper bound of each in nanoseconds, and its count.
    pub fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter_recorded();
        counts.map(|range| {
            (
                range.value_iterated_to(),
                range.count_since_last_iteration(),
            )
        })
    }

    /// Resets all counts.
    pub fn clear(&mut self) {
        self.counts.reset();
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

/// The header of an interval log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogHead {
    /// When the schedule started.
    pub started_at: SystemTime,
    /// The same moment, nanoseconds of CLOCK_MONOTONIC.
    pub start_ns: i64,
    /// Length of one interval.
    pub interval: Duration,
    /// A description of the latencies, one line for each entry.
    pub about: Vec<String>,
}

/// Writes the latencies (due to received, nanoseconds) of the judged messages of one destination. The format is an
/// interval log in version V2, with one histogram for each interval in which a message was due. Lost messages have no
/// latency; a comment counts them.
///
/// # Errors
/// [`HistogramError::File`] if the file cannot be written.
pub fn write_log(path: &Path, head: &LogHead, samples: &[Sample]) -> Result<(), HistogramError> {
    let judged = || samples.iter().filter(|sample| !sample.flags.warm_up);
    let mut latencies: Vec<(i64, i64)> = judged()
        .filter(|sample| sample.received_ns != NO_STAMP)
        .map(|sample| {
            (
                sample.due_ns.saturating_sub(head.start_ns),
                sample.received_ns.saturating_sub(sample.due_ns),
            )
        })
        .collect();
    latencies.sort_by_key(|(since_start_ns, _)| *since_start_ns);
    let lost = judged().count() - latencies.len();
    let text = log_text(head, &latencies, lost)?;
    let file = |source| HistogramError::File {
        path: path.to_owned(),
        source,
    };
    std::fs::File::create(path)
        .and_then(|mut file| file.write_all(&text))
        .map_err(file)
}

fn log_text(
    head: &LogHead,
    latencies: &[(i64, i64)],
    lost: usize,
) -> Result<Vec<u8>, HistogramError> {
    let form = |error: &dyn std::fmt::Display| HistogramError::Form(error.to_string());
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    for line in &head.about {
        builder.add_comment(line);
    }
    builder.add_comment(&format!(
        "[Unit: nanoseconds; maxima in milliseconds. Lost messages, not in any histogram: {lost}]"
    ));
    builder
        .with_start_time(head.started_at)
        .with_base_time(head.started_at);
    builder
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| form(&error))?;
    text.extend_from_slice(b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n");
    let mut writer = IntervalLogWriterBuilder::new();
    let writer = writer.with_max_value_divisor(NS_PER_MS);
    let mut writer = writer
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|error| form(&error))?;
    let interval_ns = i64::try_from(head.interval.as_nanos())
        .unwrap_or(i64::MAX)
        .max(1);
    let mut histogram = LatencyHistogram::new();
    for group in
        latencies.chunk_by(|a, b| a.0.div_euclid(interval_ns) == b.0.div_euclid(interval_ns))
    {
        histogram.clear();
        for (_, latency_ns) in group {
            histogram.record(*latency_ns);
        }
        let from_ns = group[0]
            .0
            .div_euclid(interval_ns)
            .saturating_mul(interval_ns);
        let from = Duration::from_nanos(u64::try_from(from_ns).unwrap_or(0));
        writer
            .write_histogram(&histogram.counts, from, head.interval, None)
            .map_err(|error| form(&error))?;
    }
    Ok(text)
}

/// Maxima in the log are for human readers; the tools expect them in milliseconds.
const NS_PER_MS: f64 = 1e6;

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn head() -> LogHead {
        LogHead {
            started_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_790_000_000_500),
            start_ns: 77,
            interval: Duration::from_secs(1),
            about: vec!["NAV over udp at SONAR".to_owned()],
        }
    }

    /// A 20 Hz flow with the latencies 1, 2, 3 ... microseconds; one message in 50 is lost.
    fn samples(count: u64) -> Vec<Sample> {
        (0..count)
            .map(|sequence| {
                let mut sample = crate::blame::tests::prompt(sequence);
                sample.due_ns += 77;
                sample.received_ns = if sequence % 50 == 49 {
                    NO_STAMP
                } else {
                    sample.due_ns + 1_000 * (i64::try_from(sequence).expect("small") + 1)
                };
                sample
            })
            .collect()
    }

    #[test]
    fn the_log_holds_a_histogram_for_each_interval_with_every_latency_in_it() {
        let path =
            std::env::temp_dir().join(format!("deckwatch-meter-{}.hlog", std::process::id()));
        write_log(&path, &head(), &samples(100)).expect("written");
        let text = std::fs::read(&path).expect("read");
        std::fs::remove_file(&path).expect("removed");
        let words = String::from_utf8_lossy(&text);
        assert!(words.contains("not in any histogram: 2]"), "{words}");
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&text) {
            if let LogEntry::Interval(interval) = entry.expect("a sound line") {
                use base64_decode as decode;
                let histogram: Histogram<u64> = Deserializer::new()
                    .deserialize(&mut decode(interval.encoded_histogram()).as_slice())
                    .expect("a histogram");
                assert_eq!(interval.duration(), Duration::from_secs(1));
                found.push((
                    interval.start_timestamp().as_secs(),
                    histogram.len(),
                    histogram.max() / 1_000,
                ));
            }
        }
        assert_eq!(
            found,
            [
                (0, 20, 20),
                (1, 20, 40),
                (2, 19, 60),
                (3, 20, 80),
                (4, 19, 99)
            ]
        );
    }

    fn base64_decode(text: &str) -> Vec<u8> {
        let digit = |octet: u8| match octet {
            b'A'..=b'Z' => u32::from(octet - b'A'),
            b'a'..=b'z' => u32::from(octet - b'a') + 26,
            b'0'..=b'9' => u32::from(octet - b'0') + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits: Vec<u32> = text
            .bytes()
            .filter(|octet| *octet != b'=')
            .map(digit)
            .collect();
        digits
            .chunks(4)
            .flat_map(|four| {
                let bits =
                    four.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - four.len()));
                bits.to_be_bytes()[1..four.len()].to_vec()
            })
            .collect()
    }

    #[test]
    fn the_standard_tools_read_the_log() {
        let path = std::env::temp_dir().join(format!(
            "deckwatch-meter-foreign-{}.hlog",
            std::process::id()
        ));
        write_log(&path, &head(), &samples(100)).expect("written");
        let program = "import sys\n\
             from hdrh.log import HistogramLogReader\n\
             from hdrh.histogram import HdrHistogram\n\
             log = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600 * 10**9, 3))\n\
             while (h := log.get_next_interval_histogram()) is not None:\n    \
                 print(int(h.get_start_time_stamp()), h.get_total_count(), h.get_max_value() // 1000)";
        if let Some(found) = crate::foreign::python("hdrh.log", program, &path) {
            let expected = "1790000000500 20 20\n1790000001500 20 40\n1790000002500 19 60\n1790000003500 20 80\n1790000004500 19 99";
            assert_eq!(found, expected);
        } else {
            deckwatch_testkit::did_a_part();
        }
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn what_is_beyond_the_bounds_is_counted_at_them() {
        let mut histogram = LatencyHistogram::new();
        for latency_ns in [-5, 0, 1_000, i64::MAX] {
            histogram.record(latency_ns);
        }
        assert_eq!(histogram.count(), 4);
        let counts: Vec<u64> = histogram.recorded().map(|(_, count)| count).collect();
        assert_eq!(counts, [2, 1, 1]);
        assert_eq!(histogram.quantile_ns(0.5), 0);
        assert!(histogram.quantile_ns(1.0) >= HISTOGRAM_NS_MAX);
        histogram.clear();
        assert_eq!((histogram.count(), histogram.quantile_ns(0.5)), (0, 0));
    }
}

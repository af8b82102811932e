//! Samples read back are equal to those written, here and in foreign readers.

use std::collections::BTreeMap;
use std::path::Path;

use super::*;
use crate::foreign::python;
use crate::limits::ROW_GROUP_ROWS;
use crate::result::{
    Counts, DestinationResult, FlowResult, LateBudget, LateRate, Verdict, VerdictKind,
};
use crate::sample::{Layer, NO_STAMP, Sample, SampleFlags};

fn verdict() -> Verdict {
    Verdict {
        kind: VerdictKind::Pass,
        reasons: Vec::new(),
        remedies: Vec::new(),
        messages_needed: None,
    }
}

fn flow(index: u16, carrier: &str, hosts: &[&str]) -> FlowResult {
    let destination = |(index, host): (u16, &&str)| DestinationResult {
        index,
        host: (*host).to_owned(),
        counts: Counts::default(),
        late_rate: LateRate::default(),
        bursts: None,
        latency_ns: BTreeMap::new(),
        inter_arrival_ns: BTreeMap::new(),
        latency_intervals_ns: BTreeMap::new(),
        clock_error_ns: None,
        clock_assumed_ns: None,
        blame: BTreeMap::new(),
        late_layers_ns: BTreeMap::new(),
        layers_ns: BTreeMap::new(),
        handler: None,
        verdict: verdict(),
    };
    FlowResult {
        index,
        name: "NAV".to_owned(),
        carrier: carrier.to_owned(),
        carrier_index: None,
        road: None,
        type_name: "octets".to_owned(),
        size_bytes: 384,
        from: "RTS".to_owned(),
        rate_hz: 20.0,
        arrivals: "periodic".to_owned(),
        deadline_ns: 50_000_000,
        budget: LateBudget {
            late: 3,
            of: 10_000,
        },
        scheduling: String::new(),
        settings: None,
        merged_layers: Vec::new(),
        destinations: (0..).zip(hosts).map(destination).collect(),
        verdict: verdict(),
    }
}

/// Returns a flow without destinations, with this verdict.
pub(crate) fn flow_with(carrier: &str, verdict: Verdict) -> FlowResult {
    FlowResult {
        verdict,
        ..flow(0, carrier, &[])
    }
}

fn sample(sequence: u64) -> Sample {
    let due_ns = i64::try_from(sequence).expect("small") * 50_000_000;
    let lost = sequence % 7 == 6;
    Sample {
        flow: u16::from(sequence.is_multiple_of(2)),
        destination: 1,
        sequence,
        due_ns,
        sent_ns: due_ns + 1_000,
        returned_ns: due_ns + 3_000,
        reply_transmit_ns: due_ns + 3_100,
        reply_receive_ns: due_ns + 3_200,
        channel_reply_ns: due_ns + 3_300,
        channel_receive_ns: NO_STAMP,
        channel_transmit_ns: NO_STAMP,
        kernel_transmit_ns: due_ns + 2_000,
        kernel_receive_ns: if lost { NO_STAMP } else { due_ns + 4_000 },
        received_ns: if lost { NO_STAMP } else { due_ns + 5_000 },
        handled_ns: if lost { NO_STAMP } else { due_ns + 6_000 },
        execution_ns: if lost { NO_STAMP } else { 900 },
        flags: SampleFlags {
            warm_up: sequence < 3,
            clock_step: sequence % 17 == 1,
            waited_for_room: sequence % 7 == 1,
            lost,
            late: lost,
            late_by_inter_arrival: sequence % 5 == 1,
            out_of_order: sequence % 11 == 1,
            duplicates: u8::from(sequence % 13 == 1),
        },
        blame: lost.then_some(Layer::ALL[usize::try_from(sequence % 5).expect("small")]),
    }
}

/// A directory for one test, removed when the test ends.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("deckwatch-meter-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write(path: &Path, samples: &[Sample]) {
    let flows = [
        flow(0, "udp", &["SONAR", "HELM"]),
        flow(1, "event", &["SONAR", "HELM"]),
    ];
    let mut writer = SampleWriter::create(path, &flows).expect("created");
    for part in samples.chunks(1_000) {
        writer.write(part).expect("written");
    }
    assert!(
        !path.exists(),
        "a file that is not whole does not have its name"
    );
    writer.finish().expect("finished");
}

#[test]
fn samples_come_back_as_they_were_written_over_several_row_groups() {
    let folder = Folder::new("round-trip");
    let path = folder.0.join("samples.parquet");
    let samples: Vec<Sample> = (0..ROW_GROUP_ROWS as u64 + 1_234).map(sample).collect();
    write(&path, &samples);
    let reader = SampleReader::open(&path).expect("opened");
    assert_eq!(reader.rows(), samples.len() as u64);
    assert_eq!(
        reader
            .map(|group| group.expect("a sound group").len())
            .collect::<Vec<_>>(),
        [ROW_GROUP_ROWS, 1_234]
    );
    assert!(read(&path).expect("read") == samples);
    let size = std::fs::metadata(&path).expect("a file").len();
    assert!(
        size < samples.len() as u64 * 40,
        "{size} octets for {} samples",
        samples.len()
    );
}

#[test]
fn a_file_without_samples_is_sound() {
    let folder = Folder::new("empty");
    let path = folder.0.join("samples.parquet");
    write(&path, &[]);
    assert_eq!(read(&path).expect("read"), []);
}

#[test]
fn stamps_at_the_ends_of_their_range_survive() {
    let folder = Folder::new("extremes");
    let path = folder.0.join("samples.parquet");
    let samples: Vec<Sample> = [i64::MAX, i64::MIN + 1, 0, NO_STAMP, -1]
        .into_iter()
        .map(|stamp_ns| Sample {
            sequence: u64::MAX,
            flow: u16::MAX,
            destination: u16::MAX,
            due_ns: stamp_ns,
            received_ns: stamp_ns,
            ..sample(8)
        })
        .collect();
    write(&path, &samples);
    assert_eq!(read(&path).expect("read"), samples);
}

#[test]
fn damaged_files_are_refused_with_their_name() {
    let folder = Folder::new("damaged");
    let path = folder.0.join("samples.parquet");
    assert!(matches!(read(&path), Err(SamplesError::File { .. })));
    std::fs::write(&path, b"not Parquet at all").expect("written");
    let error = read(&path).expect_err("no magic number");
    assert!(matches!(error, SamplesError::Format { .. }));
    assert!(error.to_string().contains("samples.parquet"), "{error}");
    write(
        &path.with_extension("whole"),
        &(0..5_000).map(sample).collect::<Vec<_>>(),
    );
    let whole = std::fs::read(path.with_extension("whole")).expect("read");
    for keep in [0, 4, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        std::fs::write(&path, &whole[..keep]).expect("written");
        assert!(read(&path).is_err(), "cut to {keep} octets");
    }
}

#[test]
fn damage_anywhere_is_an_error_or_other_samples_but_no_panic() {
    let folder = Folder::new("flipped");
    let path = folder.0.join("samples.parquet");
    write(&path, &(0..40).map(sample).collect::<Vec<_>>());
    let whole = std::fs::read(&path).expect("read");
    let mut refused = 0;
    for position in (0..whole.len()).step_by(3) {
        let mut damaged = whole.clone();
        damaged[position] ^= 1 << (position % 8);
        std::fs::write(&path, &damaged).expect("written");
        refused += u32::from(read(&path).is_err());
    }
    assert!(refused > 0);
}

/// Reads the file with a foreign reader. Prints rows, lost messages, the sum of latencies, nulls of a stamp, a host, a
/// carrier, and the count of one blamed layer.
const FOREIGN: [(&str, &str); 3] = [
    (
        "pyarrow.parquet",
        "import sys, pyarrow.parquet as p, pyarrow.compute as c\nt = p.read_table(sys.argv[1])\n\
         print(t.num_rows, c.sum(t['lost']).as_py(), c.sum(t['latency_ns']).as_py(), t['received_ns'].null_count, \
         t['destination'][0].as_py(), t['carrier'][1].as_py(), c.sum(c.equal(t['blame'], 'sender')).as_py(), c.max(t['sequence']).as_py())",
    ),
    (
        "duckdb",
        "import sys, duckdb\nprint(*duckdb.sql(f\"\"\"select count(*), sum(lost::int), sum(latency_ns), count(*) - count(received_ns), \
         any_value(destination), max(carrier) filter (sequence = 1), count(*) filter (blame = 'sender'), max(sequence) from '{sys.argv[1]}'\"\"\").fetchall()[0])",
    ),
    (
        "polars",
        "import sys, polars as p\nt = p.read_parquet(sys.argv[1])\n\
         print(t.height, t['lost'].sum(), t['latency_ns'].sum(), t['received_ns'].null_count(), t['destination'][0], t['carrier'][1], (t['blame'] == 'sender').sum(), t['sequence'].max())",
    ),
];

#[test]
fn foreign_readers_open_the_file_and_find_what_was_written() {
    let folder = Folder::new("foreign");
    let path = folder.0.join("samples.parquet");
    let samples: Vec<Sample> = (0..70_000).map(sample).collect();
    write(&path, &samples);
    let lost = samples.iter().filter(|sample| sample.flags.lost).count();
    let sender = samples
        .iter()
        .filter(|sample| sample.blame == Some(Layer::Sender))
        .count();
    let latencies = (samples.len() - lost) * 5_000;
    let expected = format!(
        "{} {lost} {latencies} {lost} HELM udp {sender} 69999",
        samples.len()
    );
    for (module, program) in FOREIGN {
        if let Some(found) = python(module, program, &path) {
            assert_eq!(found, expected, "{module}");
        } else {
            deckwatch_testkit::did_a_part();
        }
    }
}

//! The log: its lines, its files, and what it does when there is no room.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::{fs, io};

use super::*;

fn records(path: &Path) -> Vec<Record> {
    let text = fs::read_to_string(path).expect("a log");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

fn about(text: &str) -> Record {
    Record {
        about: Some(text.to_owned()),
        ..Record::new(Event::Reloaded)
    }
}

#[test]
fn log_says_that_it_begins_and_ends_and_grows_from_run_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(&folder.path().join("audit.jsonl"));
    for run in 1..=2 {
        let audit = Audit::open(&options).unwrap();
        audit.record(about("a\u{1b}[31m\nb"));
        drop(audit);
        let text = fs::read_to_string(&options.file).unwrap();
        assert!(text.contains(r"a\u001b[31m\nb"), "{text}");
        let events: Vec<_> = records(&options.file).iter().map(|it| it.event).collect();
        let one = [Event::Started, Event::Reloaded, Event::Ended];
        assert_eq!(events, one.repeat(run));
    }
}

#[test]
fn half_a_line_of_a_killed_server_does_not_spoil_the_next_line() {
    let folder = tempfile::tempdir().unwrap();
    let options = AuditOptions::new(&folder.path().join("audit.jsonl"));
    fs::write(&options.file, "{\"time\":\"20").unwrap();
    drop(Audit::open(&options).unwrap());
    let text = fs::read_to_string(&options.file).unwrap();
    let last = text.lines().nth(1).expect("a second line");
    assert_eq!(
        serde_json::from_str::<Record>(last).unwrap().event,
        Event::Started
    );
}

#[test]
fn files_are_begun_anew_by_size_and_the_oldest_goes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let mut options = AuditOptions::new(&file);
    (options.size_max, options.kept) = (2_000, 2);
    let audit = Audit::open(&options).unwrap();
    let size = about("0000").line().len();
    let count = 5 * 2_000 / size;
    (0..count).for_each(|number| audit.record(about(&format!("{number:04}"))));
    drop(audit);
    let mut found: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    found.sort();
    assert_eq!(found, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
    let all = ["audit.jsonl.2", "audit.jsonl.1", "audit.jsonl"].map(|name| {
        let path = folder.path().join(name);
        assert!(fs::metadata(&path).unwrap().len() <= 2_000);
        records(&path)
    });
    let numbers: Vec<u32> = all
        .concat()
        .iter()
        .filter_map(|record| record.about.as_ref()?.parse().ok())
        .collect();
    assert_eq!(numbers.last(), Some(&(count as u32 - 1)));
    assert!(
        numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{numbers:?}"
    );
}

#[test]
fn fifo_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let refused = Audit::open(&AuditOptions::new(&path)).unwrap_err();
    assert!(refused.to_string().contains("a pipe (FIFO)"), "{refused}");
}

#[test]
fn log_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    drop(Audit::open(&AuditOptions::new(&path)).unwrap());
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn refused_connection_has_its_reason_and_a_text_of_a_peer_is_cut_off() {
    let long = "x".repeat(limits::TEXT_LEN_MAX + 9);
    let refused = Record::of(&AccessEvent::ConnectionRefused {
        peer: &long,
        reason: "why",
    });
    assert_eq!(refused.about.as_deref(), Some("why"));
    assert_eq!(refused.peer.unwrap().len(), limits::TEXT_LEN_MAX);
}

/// Lines that wait for leave to be written: true, or false for a full disk.
struct Held {
    leave: Receiver<bool>,
    at: Sender<()>,
    written: Arc<Mutex<Vec<Record>>>,
}

impl Lines for Held {
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let _ = self.at.send(()); // The test may look no longer.
        if self.leave.recv() == Ok(false) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let record = serde_json::from_slice(line).expect("a record");
        self.written.lock().unwrap().push(record);
        Ok(())
    }
}

type Written = Arc<Mutex<Vec<Record>>>;

fn held() -> (Audit, Sender<bool>, Receiver<()>, Written) {
    let ((may, leave), (at, arrived)) = (channel(), channel());
    let written = Written::default();
    let lines = Held {
        leave,
        at,
        written: Arc::clone(&written),
    };
    (Audit::over(lines).unwrap(), may, arrived, written)
}

fn counts(written: &Written, event: Event) -> Vec<u64> {
    let written = written.lock().unwrap();
    let of = written.iter().filter(|record| record.event == event);
    of.filter_map(|record| record.count).collect()
}

#[test]
fn full_queue_drops_records_and_their_count_is_written() {
    let (audit, may, arrived, written) = held();
    audit.record(about("first"));
    arrived.recv().unwrap();
    // The writer holds one; the queue takes its length, and no more.
    for _ in 0..limits::QUEUE_LEN_MAX + 3 {
        audit.record(about("more"));
    }
    drop(may);
    drop(audit);
    assert_eq!(counts(&written, Event::Dropped), [3]);
    let written = written.lock().unwrap();
    assert_eq!(written.len(), 1 + limits::QUEUE_LEN_MAX + 1 + 1);
}

#[test]
fn full_disk_is_survived_and_what_is_lost_is_counted() {
    let (audit, may, _arrived, written) = held();
    // The disk takes one record. It refuses the second, and the count before the third. Then it has room again.
    for leave in [true, false, false, true] {
        may.send(leave).unwrap();
    }
    drop(may);
    (0..5).for_each(|number| audit.record(about(&number.to_string())));
    drop(audit);
    assert_eq!(counts(&written, Event::Lost), [2]);
    let written = written.lock().unwrap();
    let abouts: Vec<_> = written
        .iter()
        .filter_map(|it| it.about.as_deref())
        .collect();
    assert_eq!(abouts, ["0", "3", "4"]);
}

#[test]
fn published_schema_is_current() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schema/audit-1.json"
    );
    let current = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    if std::env::var_os("DECKWATCH_BLESS").is_some() {
        fs::write(path, &current).unwrap();
    }
    let published = fs::read_to_string(path).unwrap();
    assert!(
        published == current,
        "write it anew with: deckwatch schema audit > docs/schema/audit-1.json"
    );
}

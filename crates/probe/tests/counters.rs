//! Each counter counts exactly the events that a program makes on command.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use deckwatch_probe::counters::{Counted, Counts, Watch};

/// A program that makes events on command.
struct Doer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Doer {
    fn start() -> Option<Self> {
        let compiler = deckwatch_testkit::program("cc")?;
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("counted");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/counted.c");
        let built = Command::new(compiler)
            .args(["-O1", "-fno-builtin", "-pthread", "-o"])
            .args([program.as_os_str(), source.as_ref()])
            .status();
        assert!(built.expect("cc runs").success());
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut doer = Self {
            child,
            input,
            output,
        };
        doer.await_done();
        Some(doer)
    }

    fn await_done(&mut self) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        assert_eq!(line, "done\n");
    }

    fn does(&mut self, words: &str) {
        writeln!(self.input, "{words}").expect("it listens");
        self.await_done();
    }

    /// The counts while it makes these events.
    fn counted(&mut self, watch: &Watch, words: &str) -> Counts {
        // Once before, so that work of the first time is not counted.
        self.does(words);
        let before = watch.read();
        self.does(words);
        watch.read().since(&before)
    }
}

impl Drop for Doer {
    fn drop(&mut self) {
        // It may have ended meanwhile.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn allocations_locks_calls_and_waits_on_purpose_are_counted_one_by_one() {
    let Some(mut doer) = Doer::start() else {
        return;
    };
    let watch = Watch::begin(doer.child.id(), &Counted::ALL_BUT_RUST);
    if let Some(error) = watch.missing().values().next() {
        return deckwatch_testkit::skip("perf events", &error.to_string());
    }
    let nothing = doer.counted(&watch, "0 0 0 0");
    let growth = |counts: &Counts, what| counts.of(what).zip(nothing.of(what));
    // It only reads a line and writes one: no allocation, no lock.
    assert_eq!(nothing.of(Counted::Allocations), Some(0));
    assert_eq!(nothing.of(Counted::MutexLocks), Some(0));
    assert_eq!(nothing.of(Counted::FutexWaits), Some(0));
    for (words, what) in [
        ("1000 0 0 0", Counted::Allocations),
        ("0 1000 0 0", Counted::MutexLocks),
        ("0 0 1000 0", Counted::SystemCalls),
    ] {
        let counts = doer.counted(&watch, words);
        for other in Counted::ALL_BUT_RUST {
            let (with, without) = growth(&counts, other).expect("counted");
            let expected = if other == what { 1_000 } else { 0 };
            // The system call that waits for its next line may come before or after a reading.
            let unsure = u64::from(other == Counted::SystemCalls);
            let grown = i128::from(with) - i128::from(without);
            let off = (grown - expected).unsigned_abs();
            assert!(off <= 2 * u128::from(unsure), "{words}: {other} {grown}");
        }
    }
    let waited = doer.counted(&watch, "0 0 0 1");
    assert!(waited.of(Counted::FutexWaits) >= Some(1), "{waited:?}");
}

#[test]
fn a_process_that_is_not_there_is_said_and_not_counted_as_doing_nothing() {
    // The kernel's largest process id is far below.
    let watch = Watch::begin(u32::MAX >> 1, &Counted::ALL);
    assert_eq!(watch.missing().len(), Counted::ALL.len());
    assert_eq!(watch.read(), Counts::default());
}

#[test]
fn our_own_locks_are_counted_while_somebody_asks() {
    let mutex = deckwatch_sync::PiMutex::new(0);
    let before = deckwatch_sync::locks_taken();
    *mutex.lock("uncounted") += 1;
    assert_eq!(deckwatch_sync::locks_taken(), before);
    deckwatch_sync::count_locks(true);
    *mutex.lock("counted") += 1;
    drop(mutex.try_lock("counted too"));
    let held = mutex.lock("counted as well");
    assert!(mutex.try_lock("not taken").is_none());
    drop(held);
    assert_eq!(deckwatch_sync::locks_taken() - before, 3);
    deckwatch_sync::count_locks(false);
    *mutex.lock("uncounted again") += 1;
    assert_eq!(deckwatch_sync::locks_taken() - before, 3);
}

//! The near end of the pipe to a far part: two threads, one that writes and one that reads.
//!
//! Neither blocks the coordinator. What the far part sends is bounded in length, number and rate; a file is accepted
//! only in a place of the plan, with its size and digest.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use deckwatch_carrier::host_clock::Exchange;
use deckwatch_os::clock::monotonic_ns;
use sha2::{Digest as _, Sha256};

use super::files::{Returned, hex};
use super::plain_text;
use super::words::{FarReadings, FarWord, PING};
use crate::limits::{
    FAR_LINE_SIZE_MAX, FAR_LINES_MAX, FAR_LINES_PER_S_MAX, FAR_SILENCE_MAX, FIRST_PING_INTERVAL,
    FIRST_PINGS, LINES_BEFORE_HELLO_MAX, PING_INTERVAL,
};

/// What a far part said.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line of the part.
    Line(String),
    /// An answer to a question.
    Exchange(Exchange),
    /// The part's end, how it ended if not successfully, and the disturbances of its machine.
    End(Option<String>, FarReadings),
    /// What it says cannot be right. It is to be given up.
    Broken(String),
}

/// What the near end knows of a far part before it has said anything.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Version and build of this program.
    pub(crate) build: String,
    /// The plan, as a line.
    pub(crate) plan: String,
    /// The files that come back.
    pub(crate) returned: Vec<Returned>,
}

/// The near end of the pipe.
#[derive(Debug)]
pub(crate) struct Pipe {
    queue: SyncSender<String>,
    /// When the last octet was read; 0 before the first word.
    heard_ns: Arc<AtomicI64>,
}

impl Pipe {
    /// Starts the threads. `tell` gets all that is heard, and returns false if nobody listens any more; its last call
    /// has `None`.
    ///
    /// # Errors
    /// The operating system's error if a thread cannot be started.
    pub(crate) fn open(
        input: ChildStdin,
        output: ChildStdout,
        terms: Terms,
        mut tell: impl FnMut(Option<Heard>) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, lines) = sync_channel(COMMANDS_MAX);
        let heard_ns = Arc::new(AtomicI64::new(0));
        let mut reader = Reader::new(output, terms, queue.clone());
        reader.heard_ns = Arc::clone(&heard_ns);
        let _writing = Builder::new().spawn(move || write_all(input, &lines))?;
        let _reading = Builder::new().spawn(move || {
            if let Err(fault) = reader.read_all(&mut tell) {
                let _ = tell(Some(Heard::Broken(fault)));
            }
            let _ = tell(None);
        })?;
        Ok(Self { queue, heard_ns })
    }

    /// Writes a line, unless the pipe is so full that the part is not alive.
    pub(crate) fn write(&self, line: String) {
        let _ = self.queue.try_send(line);
    }

    /// Whether the far part has spoken, and then said nothing for [`FAR_SILENCE_MAX`].
    pub(crate) fn is_silent(&self) -> bool {
        let heard_ns = self.heard_ns.load(Ordering::Relaxed);
        let silent_ns = u64::try_from(monotonic_ns() - heard_ns).unwrap_or(0);
        heard_ns != 0 && Duration::from_nanos(silent_ns) > FAR_SILENCE_MAX
    }
}

/// Writes lines, and questions between them, until the queue or the pipe is closed. The first line is the plan; no
/// question precedes it.
fn write_all(mut input: ChildStdin, lines: &Receiver<String>) {
    let Ok(plan) = lines.recv() else { return };
    let mut write = |line: &str| {
        input
            .write_all(line.as_bytes())
            .and_then(|()| input.flush())
    };
    if write(&plan).is_err() {
        return;
    }
    let mut asked = 0;
    let mut next = Instant::now();
    loop {
        let line = match lines.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(line) => line,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                asked += 1;
                next += if asked < FIRST_PINGS {
                    FIRST_PING_INTERVAL
                } else {
                    PING_INTERVAL
                };
                format!("{PING}{}\n", monotonic_ns())
            }
        };
        if write(&line).is_err() {
            return;
        }
    }
}

/// Reads `output` to its end as a [`Pipe`] does, and tells what is heard.
///
/// # Errors
/// What cannot be right, as the rest of a sentence.
pub(crate) fn read_all(
    output: impl Read,
    terms: Terms,
    mut tell: impl FnMut(Option<Heard>) -> bool,
) -> Result<(), String> {
    let (queue, _lines) = sync_channel(1);
    Reader::new(output, terms, queue).read_all(&mut tell)
}

/// Reads what a far part writes.
struct Reader<R> {
    output: BufReader<R>,
    heard_ns: Arc<AtomicI64>,
    /// The plan, until it may be written.
    plan: Option<(String, SyncSender<String>)>,
    terms: (String, Vec<Returned>),
    began: Instant,
    lines: u64,
}

impl<R: Read> Reader<R> {
    fn new(output: R, terms: Terms, queue: SyncSender<String>) -> Self {
        Self {
            output: BufReader::new(output),
            heard_ns: Arc::default(),
            plan: Some((terms.plan, queue)),
            terms: (terms.build, terms.returned),
            began: Instant::now(),
            lines: 0,
        }
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// What cannot be right, as the rest of a sentence.
    fn read_all(&mut self, tell: &mut impl FnMut(Option<Heard>) -> bool) -> Result<(), String> {
        if !self.read_hello()? {
            return Ok(());
        }
        while let Some(line) = self.line()? {
            let t4_ns = monotonic_ns();
            let heard = match serde_json::from_str(&line) {
                Ok(FarWord::Pong {
                    t1_ns,
                    t2_ns,
                    t3_ns,
                }) => Heard::Exchange(Exchange {
                    t1_ns,
                    t2_ns,
                    t3_ns,
                    t4_ns,
                }),
                Ok(FarWord::File { index, size_bytes }) => {
                    self.read_file(index, size_bytes)?;
                    continue;
                }
                Ok(FarWord::End { how, readings }) => {
                    Heard::End(how.map(|how| plain_text(&how)), readings)
                }
                Ok(FarWord::Hello { .. } | FarWord::FileEnd { .. }) => {
                    return Err("it said a word in the wrong place".to_owned());
                }
                Err(_) => Heard::Line(line),
            };
            if !tell(Some(heard)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reads up to the first word, and lets the plan be written. Returns false at the end of the output: the status of
    /// the command then tells why.
    fn read_hello(&mut self) -> Result<bool, String> {
        for _ in 0..LINES_BEFORE_HELLO_MAX {
            let Some(line) = self.line()? else {
                return Ok(false);
            };
            // Before it, login scripts may write.
            if let Ok(FarWord::Hello { build }) = serde_json::from_str(&line) {
                if build != self.terms.0 {
                    return Err(other_build(&build, &self.terms.0));
                }
                // Dropped afterwards, so that the coordinator alone keeps the pipe open.
                if let Some((plan, queue)) = self.plan.take() {
                    let _ = queue.try_send(plan);
                }
                return Ok(true);
            }
        }
        Err(format!(
            "it said {LINES_BEFORE_HELLO_MAX} lines, and none of them is of this program"
        ))
    }

    /// Reads a line. Returns `None` at the end of the output.
    fn line(&mut self) -> Result<Option<String>, String> {
        let mut line = Vec::new();
        let most = FAR_LINE_SIZE_MAX as u64;
        let read = (&mut self.output).take(most).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return Ok(None);
        }
        self.note();
        if !line.ends_with(b"\n") {
            if line.len() < FAR_LINE_SIZE_MAX {
                return Ok(None);
            }
            return Err(format!("it said a line of more than {} KiB", most >> 10));
        }
        self.lines += 1;
        if self.lines > FAR_LINES_MAX + FAR_LINES_PER_S_MAX * self.began.elapsed().as_secs() {
            return Err(format!(
                "it said {} lines, more than a part has to say",
                self.lines
            ));
        }
        Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
    }

    fn note(&self) {
        self.heard_ns.store(monotonic_ns(), Ordering::Relaxed);
    }

    fn read_file(&mut self, index: usize, size_bytes: u64) -> Result<(), String> {
        let Some(place) = self.terms.1.get(index).cloned() else {
            return Err(format!(
                "it wrote back a file {index} that the plan does not name"
            ));
        };
        let Returned {
            path,
            size_bytes_max,
        } = place;
        if size_bytes > size_bytes_max {
            return Err(format!(
                "it wrote back a file of {size_bytes} octets, and at most {size_bytes_max} were expected"
            ));
        }
        let name = path.file_name().unwrap_or_default().display().to_string();
        let failed = |error: std::io::Error| format!("its file {name} cannot be kept: {error}");
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(failed)?;
        let mut digest = Sha256::new();
        let mut buffer = vec![0; COPY_BYTES];
        let mut left = size_bytes;
        while left > 0 {
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(COPY_BYTES);
            let count = self.output.read(&mut buffer[..wanted]).unwrap_or(0);
            if count == 0 {
                drop(std::fs::remove_file(&path));
                return Err(format!("the pipe ended within its file {name}"));
            }
            self.note();
            digest.update(&buffer[..count]);
            file.write_all(&buffer[..count]).map_err(failed)?;
            left -= count as u64;
        }
        let end = self
            .line()?
            .and_then(|line| serde_json::from_str(&line).ok());
        if end
            == Some(FarWord::FileEnd {
                sha256: hex(&digest.finalize()),
            })
        {
            return Ok(());
        }
        drop(std::fs::remove_file(&path));
        Err(format!(
            "its file {name} arrived changed: the digest differs"
        ))
    }
}

/// Returns why another build is refused, and what to do.
pub(crate) fn other_build(theirs: &str, ours: &str) -> String {
    format!(
        "it is deckwatch {}, and this is {ours}: put this program there (deckwatch run --install), or name the right one by `program`",
        plain_text(theirs)
    )
}

/// Commands that wait to be written: plan, `go` and `stop`.
const COMMANDS_MAX: usize = 8;
/// Octets of a file that are copied at once.
const COPY_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const BUILD: &str = "1 (a) debug";

    fn word(word: &FarWord) -> String {
        serde_json::to_string(word).expect("plain data") + "\n"
    }

    fn hello() -> String {
        word(&FarWord::Hello {
            build: BUILD.to_owned(),
        })
    }

    /// Returns what is told of this output, and how reading ended.
    fn read(output: &[u8], returned: Vec<Returned>) -> (Vec<Heard>, Result<(), String>) {
        let terms = Terms {
            build: BUILD.to_owned(),
            plan: String::new(),
            returned,
        };
        let mut heard = Vec::new();
        let ended = read_all(output, terms, |one| {
            heard.extend(one);
            true
        });
        (heard, ended)
    }

    fn fault(output: &[u8], returned: Vec<Returned>) -> String {
        read(output, returned).1.expect_err("hostile")
    }

    fn file(index: usize, octets: &[u8], sha256: &str) -> Vec<u8> {
        let head = word(&FarWord::File {
            index,
            size_bytes: octets.len() as u64,
        });
        let end = word(&FarWord::FileEnd {
            sha256: sha256.to_owned(),
        });
        [hello().as_bytes(), head.as_bytes(), octets, end.as_bytes()].concat()
    }

    struct Place(std::path::PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("deckwatch-near-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn returned(&self, size_bytes_max: u64) -> Vec<Returned> {
            vec![Returned {
                path: self.0.clone(),
                size_bytes_max,
            }]
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            drop(std::fs::remove_file(&self.0));
        }
    }

    #[test]
    fn what_a_login_script_writes_first_is_skipped_and_another_build_is_refused() {
        let (heard, ended) = read(
            format!("Welcome!\n\u{7}\n{}x\n", hello()).as_bytes(),
            vec![],
        );
        assert!(
            matches!(&heard[..], [Heard::Line(line)] if line == "x"),
            "{heard:?}"
        );
        assert_eq!(ended, Ok(()));
        let other = word(&FarWord::Hello {
            build: "2\u{1b}[2J".to_owned(),
        });
        let fault = fault(other.as_bytes(), vec![]);
        assert!(
            fault.starts_with("it is deckwatch 2\\u001b[2J, and this is 1 (a) debug"),
            "{fault}"
        );
        assert!(fault.contains("--install"), "{fault}");
    }

    #[test]
    fn a_file_is_kept_with_its_digest_and_only_where_the_plan_has_it() {
        let place = Place::new("kept");
        let octets = b"records";
        let sha256 = hex(&Sha256::digest(octets));
        assert_eq!(read(&file(0, octets, &sha256), place.returned(7)).1, Ok(()));
        assert_eq!(std::fs::read(&place.0).expect("kept"), octets);
        let twice = fault(&file(0, octets, &sha256), place.returned(7));
        assert!(twice.contains("cannot be kept"), "{twice}");
        let elsewhere = fault(&file(1, octets, &sha256), place.returned(7));
        assert!(elsewhere.contains("does not name"), "{elsewhere}");
    }

    #[test]
    fn a_file_that_is_too_large_cut_or_changed_is_refused_and_not_kept() {
        let octets = b"records";
        let sha256 = hex(&Sha256::digest(octets));
        let place = Place::new("refused");
        let large = fault(&file(0, octets, &sha256), place.returned(6));
        assert!(large.contains("at most 6 were expected"), "{large}");
        let changed = fault(&file(0, b"recordz", &sha256), place.returned(7));
        assert!(changed.contains("digest differs"), "{changed}");
        let whole = file(0, octets, &sha256);
        let head = whole.len() - 90;
        let cut = fault(&whole[..head], place.returned(7));
        assert!(
            cut.contains("ended within") || cut.contains("digest"),
            "{cut}"
        );
        assert!(!place.0.exists());
    }

    #[test]
    fn endless_output_is_given_up_with_what_was_wrong() {
        let many = [hello(), "{}\n".repeat(5000)].concat();
        let (heard, ended) = read(many.as_bytes(), vec![]);
        assert!(heard.len() < 1200, "{}", heard.len());
        assert!(ended.expect_err("too many").contains("more than a part"));
        let long = [hello().into_bytes(), vec![b'x'; FAR_LINE_SIZE_MAX + 1]].concat();
        assert!(fault(&long, vec![]).contains("a line of more than"));
        let foreign = fault("login:\n".repeat(200).as_bytes(), vec![]);
        assert!(foreign.contains("none of them"), "{foreign}");
        let twice = fault(hello().repeat(2).as_bytes(), vec![]);
        assert!(twice.contains("wrong place"), "{twice}");
    }

    #[test]
    fn octets_changed_anywhere_end_the_reading_without_a_panic_or_a_larger_file() {
        let place = Place::new("changed");
        let octets = b"records of a part\n{}";
        let sha256 = hex(&Sha256::digest(octets));
        let pong = word(&FarWord::Pong {
            t1_ns: 1,
            t2_ns: i64::MIN,
            t3_ns: i64::MAX,
        });
        let end = word(&FarWord::End {
            how: None,
            readings: FarReadings::default(),
        });
        let whole = [
            file(0, octets, &sha256),
            pong.into_bytes(),
            end.into_bytes(),
        ]
        .concat();
        // A fixed sequence, so that a failure comes again.
        let mut state = 1_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..2_000 {
            let mut changed = whole.clone();
            for _ in 0..=next(4) {
                let at = next(changed.len());
                match next(3) {
                    0 => changed[at] = next(256) as u8,
                    1 => changed.truncate(at.max(1)),
                    _ => changed.insert(at, next(256) as u8),
                }
            }
            let (heard, ended) = read(&changed, place.returned(64));
            assert!(heard.len() <= changed.len(), "{ended:?}");
            if let Ok(kept) = std::fs::metadata(&place.0) {
                assert!(kept.len() <= 64);
            }
            drop(std::fs::remove_file(&place.0));
        }
    }
}

//! Writes to standard output and standard error.
//! - If standard output cannot be written, for example because a disk is full, that is an error.
//! - A reader that has closed the pipe is no error.
//! - Errors on standard error are ignored.
//! - No control character of a text that is printed reaches a terminal: peers choose names and addresses.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, LineWriter, Write};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anyhow::Context as _;
use deckwatch_os::signal;
use deckwatch_text::escaped_output;

/// Standard output, whole lines at a time.
pub(crate) struct Output(LineWriter<AutoStream<Box<dyn Write>>>);

pub(crate) fn stdout() -> Output {
    let stdout = io::stdout();
    let file = stdout.as_fd().try_clone_to_owned().map(File::from);
    let choice = AutoStream::choice(&stdout);
    Output::over(Box::new(Interruptible(file)), choice)
}

impl Output {
    fn over(raw: Box<dyn Write>, choice: ColorChoice) -> Self {
        Self(LineWriter::new(AutoStream::new(raw, choice)))
    }
}

/// A file whose writes a signal ends: a reader that reads no more would block them for ever. If the reader takes nothing
/// for [`signal::STALL_MAX`] after the signal, or has closed the pipe, the rest is dropped, whoever writes it.
struct Interruptible(io::Result<File>);

/// Whether the reader of standard output has closed the pipe, or takes nothing after a signal.
static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output takes no more. A command without an end of its own ends then.
pub(crate) fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed)
}

/// Ignores a broken pipe: a reader such as `head` closes the pipe when it has read enough.
fn unless_gone(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => {
            READER_IS_GONE.store(true, Ordering::Relaxed);
            Ok(())
        }
        kind => {
            let words = format!("standard output cannot be written: {error}");
            Err(io::Error::new(kind, words))
        }
    }
}

impl Write for Interruptible {
    /// Takes all octets: `AutoStream` reads all that it still has after each write that takes less.
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let file = match &mut self.0 {
            Ok(file) => file,
            Err(error) => return Err(error.kind().into()),
        };
        // A longer write may block in its middle.
        for piece in octets.chunks(WRITTEN_AT_ONCE) {
            if !signal::can_write(file) {
                READER_IS_GONE.store(true, Ordering::Relaxed);
            }
            if reader_is_gone() {
                break;
            }
            if let Err(error) = file.write_all(piece) {
                unless_gone(error)?;
                break;
            }
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Octets that a pipe takes without blocking once it is ready: `PIPE_BUF` of Linux.
const WRITTEN_AT_ONCE: usize = 4_096;

/// Prints to standard output and flushes it.
pub(crate) fn print(text: fmt::Arguments<'_>) -> anyhow::Result<()> {
    let mut out = stdout();
    out.write_all(plain(&text.to_string()).as_bytes())?;
    Ok(out.flush()?)
}

/// Escapes what could change a terminal, except line ends and tabs: text of others is escaped before, by
/// [`escaped`](deckwatch_text::escaped). The escape is that of JSON: in a document it changes nothing.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    escaped_output(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Prints to standard error. Errors are ignored.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _ = anstream::stderr().write_all(plain(&text.to_string()).as_bytes());
}

/// Writes a new file and renames it to `file`. No reader sees a partial file, and a failed write keeps the old content.
pub(crate) fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    deckwatch_report::write_whole(file, text)
        .with_context(|| format!("cannot write {}", file.display()))
}

/// As `print!`, with a result.
macro_rules! out {
    ($($arg:tt)*) => { $crate::output::print(format_args!($($arg)*)) };
}

/// As `println!`, with a result.
macro_rules! outln {
    ($($arg:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($arg)*))) };
}

/// As `eprint!`, but errors are ignored.
macro_rules! err {
    ($($arg:tt)*) => { $crate::output::tell(format_args!($($arg)*)) };
}

/// As `eprintln!`, but errors are ignored.
macro_rules! errln {
    ($($arg:tt)*) => { $crate::output::tell(format_args!("{}\n", format_args!($($arg)*))) };
}

pub(crate) use {err, errln, out, outln};

/// Prints that the rights which others had to a store were taken from them.
pub(crate) fn tell_rights(store: &std::path::Path, before: Option<u32>) {
    if let Some(before) = before {
        errln!(
            "warning: others could use the store {} (mode {before:03o}): now its user alone can (600)",
            store.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Counts the octets that are offered to a writer, those that are offered again among them.
    struct Offered(Interruptible, Rc<Cell<usize>>);

    impl Write for Offered {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.1.set(self.1.get() + octets.len());
            self.0.write(octets)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.flush()
        }
    }

    #[test]
    fn four_times_the_output_costs_four_times_the_work() {
        let offered = |lines: usize| {
            let count = Rc::default();
            let raw = Interruptible(File::options().write(true).open("/dev/null"));
            let raw = Offered(raw, Rc::clone(&count));
            let mut out = Output::over(Box::new(raw), ColorChoice::Never);
            out.write_all("a line of 24 characters\n".repeat(lines).as_bytes())
                .expect("it is written");
            count.get()
        };
        assert_eq!(offered(1_000), 24_000);
        assert_eq!(offered(4_000), 96_000);
    }

    #[test]
    fn control_characters_are_escaped_and_all_others_are_kept() {
        let kept = "it's \"N\u{e4}v\"\tC:\\a\n";
        assert!(matches!(plain(kept), Cow::Borrowed(text) if text == kept));
        assert_eq!(
            plain("a\u{1b}[31mX\u{1b}]0;owned\u{7}\r\u{7f}\u{9b}2J\u{202e}b"),
            "a\\u001b[31mX\\u001b]0;owned\\u0007\\r\\u007f\\u009b2J\\u202eb"
        );
        let document = serde_json::json!({"name": "\u{7f}\u{9b}\u{202e}"});
        let read: serde_json::Value =
            serde_json::from_str(&plain(&document.to_string())).expect("JSON");
        assert_eq!(read, document);
    }
}

//! Writes to standard output and standard error.
//! - If standard output cannot be written, for example because a disk is full, that is an error.
//! - A reader that has closed the pipe is no error.
//! - Errors on standard error are ignored.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;

/// Standard output. Output after the reader has closed the pipe is dropped.
pub(crate) struct Output(anstream::AutoStream<io::Stdout>);

pub(crate) fn stdout() -> Output {
    Output(anstream::stdout())
}

/// Whether the reader of standard output has closed the pipe.
static READER_IS_GONE: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output has closed the pipe. A command without an end of its own ends then.
pub(crate) fn reader_is_gone() -> bool {
    READER_IS_GONE.load(Ordering::Relaxed)
}

/// Replaces a broken pipe by `otherwise`: a reader such as `head` closes the pipe when it has read enough.
fn unless_gone<T>(written: io::Result<T>, otherwise: T) -> io::Result<T> {
    written.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => {
            READER_IS_GONE.store(true, Ordering::Relaxed);
            Ok(otherwise)
        }
        kind => {
            let words = format!("standard output cannot be written: {error}");
            Err(io::Error::new(kind, words))
        }
    })
}

impl Write for Output {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        unless_gone(self.0.write(octets), octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_gone(self.0.flush(), ())
    }
}

/// Prints to standard output and flushes it.
pub(crate) fn print(text: fmt::Arguments<'_>) -> anyhow::Result<()> {
    let mut out = stdout();
    out.write_fmt(text)?;
    Ok(out.flush()?)
}

/// Prints to standard error. Errors are ignored.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _unheard = anstream::stderr().write_fmt(text);
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

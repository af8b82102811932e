//! What this program prints. A full disk behind standard output is an error; a reader who has gone, and a standard error that nobody takes, are none.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;

/// Standard output, of which a reader who has heard enough lets the rest go.
pub(crate) struct Output(anstream::AutoStream<io::Stdout>);

pub(crate) fn stdout() -> Output {
    Output(anstream::stdout())
}

/// A reader of a pipe who has gone, such as `head`, is one who has what he wants.
fn unless_gone<T>(written: io::Result<T>, otherwise: T) -> io::Result<T> {
    written.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(otherwise),
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

/// Prints to standard output, at once.
pub(crate) fn print(text: fmt::Arguments<'_>) -> anyhow::Result<()> {
    let mut out = stdout();
    out.write_fmt(text)?;
    Ok(out.flush()?)
}

/// Prints to standard error, where somebody may hear it.
pub(crate) fn tell(text: fmt::Arguments<'_>) {
    let _unheard = anstream::stderr().write_fmt(text);
}

/// Writes beside the file and moves it into place: nobody sees half of it, and what was there stays where there is no room.
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

/// As `eprint!`, of which nobody need hear.
macro_rules! err {
    ($($arg:tt)*) => { $crate::output::tell(format_args!($($arg)*)) };
}

/// As `eprintln!`, of which nobody need hear.
macro_rules! errln {
    ($($arg:tt)*) => { $crate::output::tell(format_args!("{}\n", format_args!($($arg)*))) };
}

pub(crate) use {err, errln, out, outln};

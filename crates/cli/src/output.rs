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
    let written = match std::fs::canonicalize(file) {
        // A device or a pipe takes what is written, and is not to be replaced.
        Ok(there) if !there.is_file() => std::fs::write(file, text),
        // Behind a link, which stays one.
        Ok(there) => replace(&there, text),
        Err(_) => replace(file, text),
    };
    written.with_context(|| format!("cannot write {}", file.display()))
}

fn replace(file: &Path, text: &str) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".new");
    let mode = std::fs::metadata(file).map(|there| there.permissions());
    let replaced = std::fs::write(&beside, text)
        .and_then(|()| mode.map_or(Ok(()), |mode| std::fs::set_permissions(&beside, mode)))
        .and_then(|()| std::fs::rename(&beside, file));
    replaced.inspect_err(|_| {
        let _never_made = std::fs::remove_file(&beside);
    })
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_pipe_is_written_to_and_not_replaced_and_a_link_stays_one() {
        let folder = std::env::temp_dir().join(format!("deckwatch-whole-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        let (file, link, pipe) = (folder.join("f"), folder.join("l"), folder.join("p"));
        std::os::unix::fs::symlink(&file, &link).expect("writable");
        std::fs::write(&file, "old").expect("writable");
        write_whole(&link, "new").expect("writable");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "new");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo is there").success());
        let options = || File::options().read(true).write(true).open(&pipe);
        let mut reader = options().expect("a pipe that has a writer, too");
        write_whole(&pipe, "new").expect("writable");
        let mut heard = [0; 3];
        reader.read_exact(&mut heard).expect("readable");
        assert_eq!(&heard, b"new");
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 3);
        std::fs::remove_dir_all(&folder).expect("removable");
    }
}

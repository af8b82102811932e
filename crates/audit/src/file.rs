//! The files of a log: one that grows, and the earlier ones, `FILE.1` the youngest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use deckwatch_os::regular;

/// Where the lines of a log go.
pub(crate) trait Lines: Send + 'static {
    /// Writes a whole line, or nothing of it.
    ///
    /// # Errors
    /// When the disk is full or fails.
    fn write_line(&mut self, line: &[u8]) -> io::Result<()>;
}

/// Files that are begun anew by size.
pub(crate) struct RotatedFile {
    path: PathBuf,
    size_max: u64,
    kept: u32,
    file: File,
    size: u64,
}

impl RotatedFile {
    /// Opens the file, or makes it: only its user may read it, from now on.
    ///
    /// # Errors
    /// When the system refuses it; for a path that is no regular file, or a symbolic link.
    pub(crate) fn open(path: &Path, size_max: u64, kept: u32) -> io::Result<Self> {
        let (file, size) = open(path)?;
        Ok(Self {
            path: path.to_owned(),
            size_max,
            kept,
            file,
            size,
        })
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    /// Makes room for a new file: the oldest is removed, the others are renamed.
    fn rotate(&mut self) -> io::Result<()> {
        if self.kept == 0 {
            fs::remove_file(&self.path)?;
        } else {
            for number in (1..self.kept).rev() {
                match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            fs::rename(&self.path, self.numbered(1))?;
        }
        (self.file, self.size) = open(&self.path)?;
        Ok(())
    }
}

impl Lines for RotatedFile {
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + line.len() as u64 > self.size_max {
            self.rotate()?;
        }
        let written = self.file.write_all(line);
        if written.is_err() {
            // Without its end a line would spoil the next one.
            let _ = self.file.set_len(self.size); // The disk may have failed.
            return written;
        }
        self.size += line.len() as u64;
        Ok(())
    }
}

/// Opens a file at its end, behind a whole line.
fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    let mut file = regular::open_private(path, &mut options)?;
    let mut size = file.seek(SeekFrom::End(0))?;
    if size > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(size - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            size += 1;
        }
    }
    Ok((file, size))
}

//! The source texts of one compilation, and locations in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of a compilation. A file included twice has two ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub(crate) u32);

impl FileId {
    /// The main file of the compilation.
    pub const MAIN: Self = Self(0);
}

/// A range of octets in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first octet.
    pub start: u32,
    /// Offset after the last octet.
    pub end: u32,
}

impl Span {
    /// Returns the span from the start of `self` to the end of `other`, if both are in one file; otherwise `self`.
    #[must_use]
    pub fn to(self, other: Self) -> Self {
        if self.file == other.file && other.end >= self.start {
            Self {
                end: other.end,
                ..self
            }
        } else {
            self
        }
    }

    /// Returns the empty span just after `self`.
    #[must_use]
    pub fn after(self) -> Self {
        Self {
            start: self.end,
            ..self
        }
    }
}

/// One file's name and text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path as the user wrote it, or an include path joined with the name in the `#include`.
    pub path: PathBuf,
    /// The text; octets that are not UTF-8 are read as ISO 8859-1.
    pub text: Arc<str>,
}

/// All files of one compilation, the main one first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

/// The start of a span, as file, line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// The file.
    pub path: &'a Path,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// The whole line, without its end.
    pub text: &'a str,
}

impl Sources {
    pub(crate) fn add(&mut self, path: PathBuf, text: Arc<str>) -> FileId {
        self.files.push(SourceFile { path, text });
        FileId((self.files.len() - 1) as u32)
    }

    /// Returns a file.
    ///
    /// # Panics
    /// If the id is from another compilation.
    #[must_use]
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Returns all files, the main one first.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Returns the text of a span.
    #[must_use]
    pub fn text(&self, span: Span) -> &str {
        &self.file(span.file).text[span.start as usize..span.end as usize]
    }

    /// Returns the location where a span starts.
    #[must_use]
    pub fn location(&self, span: Span) -> Location<'_> {
        let file = self.file(span.file);
        let start = (span.start as usize).min(file.text.len());
        let before = &file.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line_end = file.text[start..]
            .find('\n')
            .map_or(file.text.len(), |at| start + at);
        Location {
            path: &file.path,
            line: before.bytes().filter(|&octet| octet == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            text: file.text[line_start..line_end].trim_end_matches('\r'),
        }
    }
}

/// Decodes a source text: as UTF-8 if it is valid UTF-8, otherwise as ISO 8859-1.
pub(crate) fn decode(octets: Vec<u8>) -> Arc<str> {
    match String::from_utf8(octets) {
        Ok(text) => text.into(),
        Err(error) => error
            .into_bytes()
            .into_iter()
            .map(char::from)
            .collect::<String>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_counts_lines_and_characters_from_one() {
        let mut sources = Sources::default();
        let file = sources.add("x.idl".into(), "a\r\nbä c\n".into());
        let location = sources.location(Span {
            file,
            start: 7,
            end: 8,
        });
        assert_eq!(
            (location.line, location.column, location.text),
            (2, 4, "bä c")
        );
    }

    #[test]
    fn location_at_the_end_of_the_file_is_its_last_line() {
        let mut sources = Sources::default();
        let file = sources.add("x.idl".into(), "a\nb".into());
        let location = sources.location(Span {
            file,
            start: 3,
            end: 3,
        });
        assert_eq!((location.line, location.column, location.text), (2, 2, "b"));
    }

    #[test]
    fn text_that_is_not_utf8_is_read_as_latin1() {
        assert_eq!(&*decode(vec![b'\xe9', b'x']), "éx");
    }
}

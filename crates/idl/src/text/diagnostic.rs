//! Errors in an IDL file: the location, the message, and the source line.

use std::fmt;

use deckwatch_text::is_shown;

use crate::limits::ERRORS_MAX;
use crate::text::source::{Sources, Span};

/// One error: its location, a message, related locations, and a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The location; `None` if the error concerns the file as a whole.
    pub span: Option<Span>,
    /// The message, as a sentence without its full stop.
    pub message: String,
    /// Related locations, each with a text that describes it.
    pub notes: Vec<(Span, String)>,
    /// What to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span: Some(span),
            message: message.into(),
            notes: Vec::new(),
            help: None,
        }
    }

    pub(crate) fn without_place(message: impl Into<String>) -> Self {
        Self {
            span: None,
            message: message.into(),
            notes: Vec::new(),
            help: None,
        }
    }

    pub(crate) fn note(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push((span, text.into()));
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// The errors of one compilation, with the source texts that they refer to: at least one error, at most [`ERRORS_MAX`].
#[derive(Clone, Debug)]
pub struct Diagnostics {
    /// The errors, in the order in which they were found.
    pub errors: Vec<Diagnostic>,
    /// The source texts.
    pub sources: Sources,
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            self.write_one(f, error)?;
        }
        if self.errors.len() >= ERRORS_MAX {
            write!(f, "\nToo many errors; the rest is not shown.\n")?;
        }
        Ok(())
    }
}

/// Returns a part of a file in backticks. Of a long one the start is shown.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("`{}...`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Characters that [`quoted`] shows: enough to find a literal by.
const QUOTED_MAX: usize = 60;

impl Diagnostics {
    fn write_one(&self, f: &mut fmt::Formatter<'_>, error: &Diagnostic) -> fmt::Result {
        match error.span {
            Some(span) => {
                let at = self.sources.location(span);
                writeln!(
                    f,
                    "{}:{}:{}: error: {}",
                    at.path.display(),
                    at.line,
                    at.column,
                    error.message
                )?;
                self.write_excerpt(f, span)?;
            }
            None => writeln!(f, "error: {}", error.message)?,
        }
        for (span, text) in &error.notes {
            let at = self.sources.location(*span);
            writeln!(
                f,
                "{}:{}:{}: note: {text}",
                at.path.display(),
                at.line,
                at.column
            )?;
            self.write_excerpt(f, *span)?;
        }
        match &error.help {
            Some(help) => writeln!(f, "help: {help}"),
            None => Ok(()),
        }
    }

    /// Writes the source line, and under it a row of carets for the part of the span in that line.
    fn write_excerpt(&self, f: &mut fmt::Formatter<'_>, span: Span) -> fmt::Result {
        let at = self.sources.location(span);
        let skipped = (at.column - 1).saturating_sub(COLUMNS_BEFORE);
        let shown: String = at
            .text
            .chars()
            .skip(skipped)
            .take(COLUMNS_MAX)
            .map(|c| if is_shown(c) { c } else { ' ' })
            .collect();
        let text = self.sources.text(span);
        let width = text
            .lines()
            .next()
            .unwrap_or("")
            .chars()
            .count()
            .clamp(1, COLUMNS_MAX);
        let gutter = at.line.to_string().len();
        writeln!(f, "{:gutter$} |", "")?;
        writeln!(f, "{} | {}", at.line, shown.trim_end())?;
        writeln!(
            f,
            "{:gutter$} | {:indent$}{}",
            "",
            "",
            "^".repeat(width),
            indent = at.column - 1 - skipped
        )
    }
}

/// Characters shown of a long line.
const COLUMNS_MAX: usize = 160;
/// Characters shown before the error in a long line.
const COLUMNS_BEFORE: usize = 100;

/// Collects errors, up to [`ERRORS_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    errors: Vec<Diagnostic>,
}

impl Reporter {
    pub(crate) fn report(&mut self, error: Diagnostic) {
        let known = self
            .errors
            .last()
            .is_some_and(|last| last.span == error.span && last.message == error.message);
        if !self.is_full() && !known {
            self.errors.push(error);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() >= ERRORS_MAX
    }

    /// Returns the collected errors, or `Ok` if there are none.
    pub(crate) fn finish(self, sources: &Sources) -> Result<(), Diagnostics> {
        if self.errors.is_empty() {
            return Ok(());
        }
        Err(Diagnostics {
            errors: self.errors,
            sources: sources.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_shows_file_line_column_and_the_source_line() {
        let mut sources = Sources::default();
        let file = sources.add("a.idl".into(), "struct S {\n  long long\n};\n".into());
        let span = Span {
            file,
            start: 13,
            end: 22,
        };
        let errors = vec![
            Diagnostic::new(span, "expected a member")
                .note(
                    Span {
                        file,
                        start: 7,
                        end: 8,
                    },
                    "in `S`",
                )
                .help("give it a name"),
        ];
        let text = Diagnostics { errors, sources }.to_string();
        assert_eq!(
            text,
            "a.idl:2:3: error: expected a member\n  |\n2 |   long long\n  |   ^^^^^^^^^\n\
             a.idl:1:8: note: in `S`\n  |\n1 | struct S {\n  |        ^\nhelp: give it a name\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let mut sources = Sources::default();
        let file = sources.add("a.idl".into(), "x".repeat(100_000).into());
        let errors = vec![Diagnostic::new(
            Span {
                file,
                start: 50_000,
                end: 90_000,
            },
            "too long",
        )];
        let text = Diagnostics { errors, sources }.to_string();
        assert!(text.lines().all(|line| line.len() < 400), "{text}");
    }
}

//! Text that others wrote, made safe to print: names and exceptions of a peer, the content of a file, a host's name, the
//! error of a process on another host.
//!
//! Such text may hold control characters, which change a terminal; line ends, which forge a line of our own; and
//! characters that are invisible or that reorder what is around them. [`Escaped`] shows each of them by its number.

#![forbid(unsafe_code)]

use std::fmt;

/// Whether a character is visible and changes nothing around it. Line ends and tabs are not shown.
#[must_use]
pub fn is_shown(c: char) -> bool {
    !c.is_control() && !is_invisible(c)
}

/// Whether a character is invisible, or reorders text on a terminal. Categories Cf, Zl and Zp of Unicode, and the fillers.
const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
        | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Text that others wrote, on one line: what is not shown stands as an escape of JSON (`\n`, `\u001b`), and an octet that
/// is not UTF-8 as `\xff`. A backslash of the text stays one: the form is for readers, not for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escaped<'a>(&'a [u8]);

/// Shows a text that others wrote.
#[must_use]
pub const fn escaped(text: &str) -> Escaped<'_> {
    Escaped(text.as_bytes())
}

/// Shows octets that should be text.
#[must_use]
pub const fn escaped_octets(octets: &[u8]) -> Escaped<'_> {
    Escaped(octets)
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_some() || f.precision().is_some() {
            let mut text = String::new();
            self.write_to(&mut text)?;
            return f.pad(&text);
        }
        self.write_to(f)
    }
}

impl Escaped<'_> {
    fn write_to(self, f: &mut impl fmt::Write) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some((at, c)) = rest.char_indices().find(|(_, c)| !is_shown(*c)) {
                f.write_str(&rest[..at])?;
                write_escape(f, c)?;
                rest = &rest[at + c.len_utf8()..];
            }
            f.write_str(rest)?;
            for octet in chunk.invalid() {
                write!(f, "\\x{octet:02x}")?;
            }
        }
        Ok(())
    }
}

fn write_escape(f: &mut impl fmt::Write, c: char) -> fmt::Result {
    match c {
        '\n' => f.write_str("\\n"),
        '\r' => f.write_str("\\r"),
        '\t' => f.write_str("\\t"),
        c => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(f, "\\u{unit:04x}")?;
            }
            Ok(())
        }
    }
}

/// Escapes as JSON does what is not shown, except line ends and tabs, which stay. A JSON document keeps its meaning, so
/// this may be applied to a whole output.
///
/// Returns `None` if there is nothing to escape.
#[must_use]
pub fn escaped_output(text: &str) -> Option<String> {
    let stays = |c: char| matches!(c, '\n' | '\t') || is_shown(c);
    if text.chars().all(stays) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) {
            out.push(c);
        } else {
            // A write to a string does not fail.
            let _ = write_escape(&mut out, c);
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_stays_on_one_line_and_changes_no_terminal() {
        let said = "N\u{e4}v \u{65e5}\n\t\r\0\u{1b}[31m\u{7f}\u{9b}\u{202e}\u{200b}\u{2066}\u{feff}\u{e0041}C:\\a 'x'";
        assert_eq!(
            escaped(said).to_string(),
            "N\u{e4}v \u{65e5}\\n\\t\\r\\u0000\\u001b[31m\\u007f\\u009b\\u202e\\u200b\\u2066\\ufeff\\udb40\\udc41\
             C:\\a 'x'"
        );
        assert_eq!(
            escaped_octets(b"a\xff\xc3\x28\n").to_string(),
            "a\\xff\\xc3(\\n"
        );
        assert_eq!(
            format!("[{:>4}|{:<4}]", escaped("\n"), escaped("ab")),
            "[  \\n|ab  ]"
        );
    }

    #[test]
    fn no_control_character_is_shown_and_most_others_are() {
        for number in 0..=0xff_u8 {
            let c = char::from(number);
            assert_eq!(
                is_shown(c),
                !(c.is_control() || c == '\u{ad}'),
                "{number:x}"
            );
        }
        for c in [
            '\u{300}',
            '\u{5d0}',
            '\u{1f600}',
            '\u{3000}',
            '\u{2027}',
            '\u{202f}',
            '\u{2070}',
        ] {
            assert!(is_shown(c), "{c:?}");
        }
        // A second opinion: the standard library escapes what is not printable.
        let is_filler = |c: char| "\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}".contains(c);
        for c in ('\u{80}'..='\u{dffff}').filter(|c| !is_shown(*c)) {
            assert!(c.escape_debug().count() > 1 || is_filler(c), "{c:?}");
        }
    }

    #[test]
    fn an_output_keeps_its_lines_and_a_document_its_meaning() {
        assert_eq!(escaped_output("it's \"N\u{e4}v\"\tC:\\a\n"), None);
        assert_eq!(
            escaped_output("a\n\u{1b}b\u{202e}\u{e0041}").as_deref(),
            Some("a\n\\u001bb\\u202e\\udb40\\udc41")
        );
    }
}

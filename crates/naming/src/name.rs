//! Stringified names and their URLs (Naming Service 1.3, clauses 2.4 and 2.5): `id.kind/id/...`, with `\` before `/`,
//! `.` and `\`.

use std::fmt::Write as _;

/// One component, as (id, kind).
pub type Pair = (String, String);

/// Why a text is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// There is no component.
    #[error("a name has at least one component")]
    Empty,
    /// Two slashes follow each other, or a slash is the first or last character.
    #[error("a component is empty at octet {0}; an empty component is written as a single dot")]
    EmptyComponent(usize),
    /// A component has two dots that are not escaped.
    #[error("a second dot at octet {0}; a dot that belongs to an id or kind is written \\.")]
    SecondDot(usize),
    /// `id.` without a kind: only the empty component has a bare dot.
    #[error("a dot without a kind behind it at octet {0}")]
    DanglingDot(usize),
    /// `\` before a character other than `/`, `.` or `\`.
    #[error("an escape of an ordinary character at octet {0}")]
    Escape(usize),
}

/// Reads a stringified name.
///
/// # Errors
/// The first violation of clause 2.4, with its offset.
pub fn parse(text: &str) -> Result<Vec<Pair>, NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    let mut components = Vec::new();
    let mut reader = Reader::default();
    let mut escaped = false;
    for (offset, character) in text.char_indices() {
        match (escaped, character) {
            (true, '/' | '.' | '\\') => reader.take(character),
            (true, _) => return Err(NameError::Escape(offset)),
            (false, '\\') => {}
            (false, '/') => components.push(std::mem::take(&mut reader).finish(offset)?),
            (false, '.') if reader.dot.is_some() => return Err(NameError::SecondDot(offset)),
            (false, '.') => reader.dot = Some(offset),
            (false, _) => reader.take(character),
        }
        escaped = !escaped && character == '\\';
    }
    if escaped {
        return Err(NameError::Escape(text.len()));
    }
    components.push(reader.finish(text.len())?);
    Ok(components)
}

#[derive(Default)]
struct Reader {
    id: String,
    kind: String,
    dot: Option<usize>,
}

impl Reader {
    fn take(&mut self, character: char) {
        if self.dot.is_some() {
            &mut self.kind
        } else {
            &mut self.id
        }
        .push(character);
    }

    fn finish(self, offset: usize) -> Result<Pair, NameError> {
        match self.dot {
            None if self.id.is_empty() => Err(NameError::EmptyComponent(offset)),
            Some(dot) if self.kind.is_empty() && !self.id.is_empty() => {
                Err(NameError::DanglingDot(dot))
            }
            _ => Ok((self.id, self.kind)),
        }
    }
}

/// Writes a name as a string that [`parse`] reads back.
#[must_use]
pub fn to_text<'a>(components: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (index, (id, kind)) in components.into_iter().enumerate() {
        if index > 0 {
            text.push('/');
        }
        escape(id, &mut text);
        if !kind.is_empty() || id.is_empty() {
            text.push('.');
            escape(kind, &mut text);
        }
    }
    text
}

fn escape(part: &str, text: &mut String) {
    for character in part.chars() {
        if matches!(character, '/' | '.' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
}

/// Returns the `corbaname:` URL of a stringified name at an address. Characters that RFC 2396 does not allow are
/// escaped (clause 2.5.3.2).
#[must_use]
pub fn to_url(address: &str, name: &str) -> String {
    let mut url = format!("corbaname:{address}");
    if !name.is_empty() {
        url.push('#');
    }
    for octet in name.bytes() {
        if octet.is_ascii_alphanumeric() || b";/:?@&=+$,-_.!~*'()".contains(&octet) {
            url.push(char::from(octet));
        } else {
            write!(url, "%{octet:02x}").expect("a string takes text");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(id: &str, kind: &str) -> Pair {
        (id.to_owned(), kind.to_owned())
    }

    #[test]
    fn examples_of_the_standard_read_as_it_says() {
        assert_eq!(
            parse("a/b/c").unwrap(),
            [pair("a", ""), pair("b", ""), pair("c", "")]
        );
        assert_eq!(
            parse("a.b/c.d/.").unwrap(),
            [pair("a", "b"), pair("c", "d"), pair("", "")]
        );
        assert_eq!(
            parse(r"a/x\/y\/z/b").unwrap(),
            [pair("a", ""), pair("x/y/z", ""), pair("b", "")]
        );
        assert_eq!(
            parse(r"a\.b.c\.d/e.f").unwrap(),
            [pair("a.b", "c.d"), pair("e", "f")]
        );
        assert_eq!(parse(".k").unwrap(), [pair("", "k")]);
    }

    #[test]
    fn malformed_names_are_refused_with_their_place() {
        assert_eq!(parse(""), Err(NameError::Empty));
        assert_eq!(parse("a//b"), Err(NameError::EmptyComponent(2)));
        assert_eq!(parse("/a"), Err(NameError::EmptyComponent(0)));
        assert_eq!(parse("a/"), Err(NameError::EmptyComponent(2)));
        assert_eq!(parse("a.b.c"), Err(NameError::SecondDot(3)));
        assert_eq!(parse("a./b"), Err(NameError::DanglingDot(1)));
        assert_eq!(parse(r"a\b"), Err(NameError::Escape(2)));
        assert_eq!(parse("a\\"), Err(NameError::Escape(2)));
    }

    #[test]
    fn what_is_written_reads_back() {
        for (id, kind) in [("a", ""), ("", "k"), ("", ""), ("x.y/z", r"\"), ("ü", "ß")] {
            let text = to_text([(id, kind), ("n", "k")]);
            assert_eq!(
                parse(&text).unwrap(),
                [pair(id, kind), pair("n", "k")],
                "{text}"
            );
        }
    }

    #[test]
    fn url_escapes_what_a_url_may_not_hold() {
        assert_eq!(
            to_url(":host:2809/NameService", "a b/c.d"),
            "corbaname::host:2809/NameService#a%20b/c.d"
        );
    }
}

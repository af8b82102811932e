//! A cursor over a text, which reads marks, words and quoted texts and skips spaces.

use std::borrow::Cow;

use super::NotationError;

/// A cursor; cheap to copy, so that the reader can return to an earlier position.
#[derive(Clone, Copy)]
pub(super) struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

/// A piece of the text with its position; escapes in a quoted text are decoded.
pub(super) struct Token<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) quoted: bool,
    /// The text in UTF-16, if an escape names a lone surrogate; `text` has U+FFFD in its place.
    pub(super) units: Option<Vec<u16>>,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Token<'_> {
    pub(super) fn error(&self, message: impl Into<String>) -> NotationError {
        NotationError::new(self.start, self.end, message)
    }

    /// Returns the token as error messages show it.
    pub(super) fn shown(&self) -> String {
        const LONGEST: usize = 40;
        if self.text.chars().count() > LONGEST {
            let head: String = self.text.chars().take(LONGEST).collect();
            format!("`{head}...`")
        } else {
            format!("`{}`", self.text)
        }
    }
}

impl<'t> Scanner<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Skips spaces, and returns the next character.
    pub(super) fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    pub(super) fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == Some(mark);
        if found {
            self.at += mark.len_utf8();
        }
        found
    }

    pub(super) fn eat_text(&mut self, mark: &str) -> bool {
        self.peek();
        let found = self.rest().starts_with(mark);
        if found {
            self.at += mark.len();
        }
        found
    }

    pub(super) fn expect(&mut self, mark: char) -> Result<(), NotationError> {
        if self.eat(mark) {
            return Ok(());
        }
        Err(self.expected(&format!("`{mark}`")))
    }

    /// Returns an error for the next character: `what` was expected.
    pub(super) fn expected(&mut self, what: &str) -> NotationError {
        let (found, width) = match self.peek() {
            None => ("the end".to_owned(), 0),
            Some(mark) => (format!("`{mark}`"), mark.len_utf8()),
        };
        NotationError::new(
            self.at,
            self.at + width,
            format!("expected {what}, found {found}"),
        )
    }

    pub(super) fn finish(&mut self) -> Result<(), NotationError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(NotationError::new(
                self.at,
                self.text.len(),
                "something follows the value; text with spaces or marks in it stands in quotes",
            )),
        }
    }

    /// Reads a word: letters, digits and underscores, at least one.
    pub(super) fn word(&mut self) -> Option<Token<'t>> {
        self.peek();
        let rest = self.rest();
        let len = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        (len > 0).then(|| self.take(len))
    }

    /// Reads a quoted text, if one starts here.
    pub(super) fn quoted(&mut self) -> Result<Option<Token<'t>>, NotationError> {
        let Some(quote @ ('"' | '\'')) = self.peek() else {
            return Ok(None);
        };
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        let mut units: Option<Vec<u16>> = None;
        loop {
            let place = self.at;
            let Some(c) = self.next() else {
                return Err(NotationError::new(start, place, "this quote is not closed"));
            };
            let c = match c {
                _ if c == quote => break,
                '\\' => self.escape(place)?,
                c => Ok(c),
            };
            if let Err(lone) = c {
                let units = units.get_or_insert_with(|| text.encode_utf16().collect());
                units.push(lone);
            } else if let (Ok(c), Some(units)) = (c, &mut units) {
                units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
            }
            text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        Ok(Some(Token {
            text: text.into(),
            quoted: true,
            units,
            start,
            end: self.at,
        }))
    }

    /// Reads a quoted text, or a bare one: the whole rest if `whole`, otherwise the text up to a comma or closing
    /// bracket.
    pub(super) fn scalar(&mut self, whole: bool) -> Result<Option<Token<'t>>, NotationError> {
        if let Some(token) = self.quoted()? {
            return Ok(Some(token));
        }
        let rest = self.rest();
        let len = if whole {
            rest.len()
        } else {
            rest.find([',', ']', '}']).unwrap_or(rest.len())
        };
        let len = rest[..len].trim_end().len();
        Ok((len > 0).then(|| self.take(len)))
    }

    /// Skips one value of any type.
    pub(super) fn skip(&mut self, depth_left: u8) -> Result<(), NotationError> {
        let start = self.at;
        let Some(depth_left) = depth_left.checked_sub(1) else {
            return Err(NotationError::new(
                start,
                start,
                "values nest deeper than the limit",
            ));
        };
        let close = match self.peek() {
            Some('[') => ']',
            Some('{') => '}',
            _ => return self.scalar(false).map(|_| ()),
        };
        self.at += 1;
        while self.peek().is_some_and(|mark| mark != close) {
            if close == '}' && self.quoted()?.is_none() {
                self.word();
            }
            self.eat(':');
            self.skip(depth_left)?;
            if !self.eat(',') {
                break;
            }
        }
        self.expect(close)
    }

    fn take(&mut self, len: usize) -> Token<'t> {
        let start = self.at;
        self.at += len;
        Token {
            text: self.text[start..self.at].into(),
            quoted: false,
            units: None,
            start,
            end: self.at,
        }
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Decodes the escape after a backslash: JSON's escapes, C's for control characters, and `\xHH`. The inner `Err` is
    /// a lone surrogate.
    fn escape(&mut self, start: usize) -> Result<Result<char, u16>, NotationError> {
        let unknown = |at: usize| NotationError::new(start, at, "this escape is not known");
        let c = self.next().ok_or_else(|| unknown(self.at))?;
        Ok(Ok(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'a' => '\u{7}',
            '0' => '\0',
            '\\' | '"' | '\'' | '/' => c,
            'x' => char::from(self.hex(2, start)? as u8),
            'u' => {
                let first = self.hex(4, start)? as u16;
                let behind_first = self.at;
                let mut units = vec![first];
                if (0xD800..0xDC00).contains(&first) && self.rest().starts_with("\\u") {
                    self.at += 2;
                    units.push(self.hex(4, start)? as u16);
                }
                let mut decoded = char::decode_utf16(units.iter().copied());
                match (decoded.next(), decoded.next()) {
                    (Some(Ok(c)), _) => c,
                    (_, second) => {
                        // The second escape is read by itself.
                        if second.is_some() {
                            self.at = behind_first;
                        }
                        return Ok(Err(first));
                    }
                }
            }
            _ => return Err(unknown(self.at)),
        }))
    }

    fn hex(&mut self, digits: usize, start: usize) -> Result<u32, NotationError> {
        let text = self.rest().get(..digits).unwrap_or("");
        let valid = text.bytes().all(|octet| octet.is_ascii_hexdigit()) && !text.is_empty();
        let number = u32::from_str_radix(text, 16).ok().filter(|_| valid);
        self.at += text.len();
        number.ok_or_else(|| NotationError::new(start, self.at, "expected hexadecimal digits"))
    }
}

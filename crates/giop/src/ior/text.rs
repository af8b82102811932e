//! Stringified references: `IOR:` and hexadecimal digits (CORBA 3.3 part 2, clause 7.6.9).

use super::Ior;
use super::view::encapsulated;
use crate::limits::REFERENCE_TEXT_MAX;
use deckwatch_cdr::{DecodeError, Parse, Write, Writer};
use std::fmt;
use std::str::FromStr;

/// Why text is not a reference, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceError {
    /// Octets from the start of the text.
    pub offset: usize,
    /// What is wrong.
    pub fact: ReferenceFact,
}

/// What is wrong with the text of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReferenceFact {
    /// Something else was expected.
    Expected(&'static str),
    /// The octets of the digits are not a reference.
    Octets(DecodeError),
}

impl ReferenceError {
    pub(crate) const fn expected(offset: usize, what: &'static str) -> Self {
        Self {
            offset,
            fact: ReferenceFact::Expected(what),
        }
    }
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fact {
            ReferenceFact::Expected(what) => {
                write!(f, "expected {what} at character {}", self.offset + 1)
            }
            ReferenceFact::Octets(error) => {
                write!(
                    f,
                    "the digits from character {} on are no reference: {error}",
                    self.offset + 1
                )
            }
        }
    }
}

impl std::error::Error for ReferenceError {}

/// The length of the scheme that `text` begins with, in any case.
pub(crate) fn scheme(text: &str, scheme: &str) -> Option<usize> {
    let head = text.as_bytes().get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme.as_bytes())
        .then_some(scheme.len())
}

impl FromStr for Ior {
    type Err = ReferenceError;

    /// Reads `IOR:` and hexadecimal digits; white space around them is passed over.
    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let lead = text.len() - text.trim_start().len();
        let trimmed = text.trim();
        let digits_at = scheme(trimmed, "IOR:").ok_or(ReferenceError::expected(lead, "IOR:"))?;
        let digits = &trimmed.as_bytes()[digits_at..];
        let first = lead + digits_at;
        if digits.len() > REFERENCE_TEXT_MAX {
            return Err(ReferenceError::expected(
                first + REFERENCE_TEXT_MAX,
                "the end of the reference",
            ));
        }
        let mut octets = Vec::with_capacity(digits.len() / 2);
        let digit = |at: usize| {
            let digit = digits
                .get(at)
                .and_then(|digit| char::from(*digit).to_digit(16));
            digit.ok_or(ReferenceError::expected(first + at, "a hexadecimal digit"))
        };
        for at in (0..digits.len()).step_by(2) {
            octets.push((digit(at)? << 4 | digit(at + 1)?) as u8);
        }
        let malformed = |error: DecodeError| ReferenceError {
            offset: first + (error.offset as usize).saturating_mul(2).min(digits.len()),
            fact: ReferenceFact::Octets(error),
        };
        encapsulated(&octets)
            .and_then(|mut r| Self::parse(&mut r))
            .map_err(malformed)
    }
}

impl fmt::Display for Ior {
    /// `IOR:` and hexadecimal digits, in native byte order. Fails for a reference that cannot be written (a type id
    /// with a null, or beyond ISO 8859-1).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets);
        let order = w.order().flag();
        w.write_u8(order)
            .and_then(|()| self.write(&mut w))
            .map_err(|_| fmt::Error)?;
        f.write_str("IOR:")?;
        octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

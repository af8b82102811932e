//! Object URLs: `corbaloc:` and `corbaname:` (CORBA 3.3 part 2, clause 7.6.10).

mod corbaloc;
mod corbaname;

pub use corbaloc::{Address, Corbaloc};
pub use corbaname::Corbaname;

use crate::ior::ReferenceError;
use crate::{Ior, ior};
use std::fmt;
use std::str::FromStr;

/// Port of IIOP where an address gives none.
pub const DEFAULT_PORT: u16 = 2809;

/// Text that names an object, in any of the standard's forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectUrl {
    /// `IOR:` and digits.
    Ior(Ior),
    /// `corbaloc:`.
    Corbaloc(Corbaloc),
    /// `corbaname:`.
    Corbaname(Corbaname),
}

impl FromStr for ObjectUrl {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let trimmed = text.trim();
        let lead = text.len() - text.trim_start().len();
        let parsed = if ior::scheme(trimmed, "IOR:").is_some() {
            trimmed.parse().map(Self::Ior)
        } else if ior::scheme(trimmed, "corbaloc:").is_some() {
            trimmed.parse().map(Self::Corbaloc)
        } else if ior::scheme(trimmed, "corbaname:").is_some() {
            trimmed.parse().map(Self::Corbaname)
        } else {
            Err(ReferenceError::expected(0, "IOR:, corbaloc: or corbaname:"))
        };
        parsed.map_err(|error| ReferenceError {
            offset: error.offset + lead,
            ..error
        })
    }
}

/// Decodes a part of a URL: `%` and two hexadecimal digits stand for octets that may not stand for themselves. `offset`
/// is that of the part.
fn unescape(part: &str, offset: usize) -> Result<Vec<u8>, ReferenceError> {
    let mut octets = Vec::with_capacity(part.len());
    let bytes = part.as_bytes();
    let mut at = 0;
    while let Some(octet) = bytes.get(at) {
        if *octet != b'%' {
            octets.push(*octet);
            at += 1;
            continue;
        }
        let digit = |at: usize| {
            let digit = bytes
                .get(at)
                .and_then(|digit| char::from(*digit).to_digit(16));
            digit.ok_or(ReferenceError::expected(offset + at, "a hexadecimal digit"))
        };
        octets.push((digit(at + 1)? << 4 | digit(at + 2)?) as u8);
        at += 3;
    }
    Ok(octets)
}

/// Octets that stand for themselves in a key or name (RFC 2396, as the clause lists them).
const fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric()
        || matches!(
            octet,
            b';' | b'/'
                | b':'
                | b'?'
                | b'@'
                | b'&'
                | b'='
                | b'+'
                | b'$'
                | b','
                | b'-'
                | b'_'
                | b'.'
                | b'!'
                | b'~'
                | b'*'
                | b'\''
                | b'('
                | b')'
        )
}

fn write_escaped(octets: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    octets.iter().try_for_each(|octet| {
        if is_plain(*octet) {
            write!(f, "{}", char::from(*octet))
        } else {
            write!(f, "%{octet:02x}")
        }
    })
}

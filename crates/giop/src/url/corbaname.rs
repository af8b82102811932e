//! `corbaname:` URLs (clause 7.6.10.4): a naming context and a stringified name in it.

use super::{Corbaloc, unescape, write_escaped};
use crate::ior::{ReferenceError, scheme};
use std::fmt;
use std::str::FromStr;

/// Key of the naming service where the URL gives none.
const DEFAULT_KEY: &[u8] = b"NameService";

/// A `corbaname:` URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Corbaname {
    /// The naming context; its key is `NameService` where the URL had none.
    pub context: Corbaloc,
    /// The name in it, in the stringified form of CosNaming; empty for the context itself.
    pub name: String,
}

impl FromStr for Corbaname {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let at = scheme(text, "corbaname:").ok_or(ReferenceError::expected(0, "corbaname:"))?;
        let rest = &text[at..];
        let (location, name, name_at) = match rest.find('#') {
            Some(sign) => (&rest[..sign], &rest[sign + 1..], at + sign + 1),
            None => (rest, "", text.len()),
        };
        let mut context = Corbaloc::parse_at(location, at)?;
        if context.key.is_empty() {
            context.key = DEFAULT_KEY.to_vec();
        }
        let name = String::from_utf8(unescape(name, name_at)?)
            .map_err(|_| ReferenceError::expected(name_at, "a name whose escapes are UTF-8"))?;
        Ok(Self { context, name })
    }
}

impl fmt::Display for Corbaname {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaname:")?;
        self.context.write_location(f)?;
        if self.name.is_empty() {
            return Ok(());
        }
        f.write_str("#")?;
        write_escaped(self.name.as_bytes(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_and_name_are_read_and_written() {
        let url: Corbaname = "corbaname::1.2@host:9/Root#a.b/c%5c.d%20e".parse().unwrap();
        assert_eq!(
            (url.context.key.as_slice(), &*url.name),
            (&b"Root"[..], r"a.b/c\.d e")
        );
        assert_eq!(url.to_string().parse(), Ok(url));
    }

    #[test]
    fn the_key_defaults_to_the_name_service() {
        let url: Corbaname = "corbaname:rir:#a".parse().unwrap();
        assert_eq!(
            (url.context.key.as_slice(), &*url.name),
            (&b"NameService"[..], "a")
        );
        assert_eq!("corbaname::host".parse::<Corbaname>().unwrap().name, "");
    }

    #[test]
    fn what_is_malformed_is_located() {
        let error = |text: &str| text.parse::<Corbaname>().unwrap_err().to_string();
        assert_eq!(
            error("corbaname:host#x"),
            "expected iiop:, :, ssliop:, omniunix:, shm: or rir: at character 11"
        );
        assert_eq!(
            error("corbaname::h#a%zz"),
            "expected a hexadecimal digit at character 16"
        );
        assert_eq!(
            error("corbaname::h#%ff"),
            "expected a name whose escapes are UTF-8 at character 14"
        );
    }
}

//! The naming service and the name that an argument gives.

use anyhow::{Context as _, bail};
use deckwatch_naming::user::{Refusal, path};
use deckwatch_orb::cos_naming::{NameComponent, NamingContextRef};
use deckwatch_orb::{ObjectRef, Orb};
use deckwatch_text::escaped;

use crate::serve::client_orb;
use crate::tls::TlsArgs;

/// The naming service to use.
#[derive(clap::Args)]
pub(crate) struct At {
    /// Reference of the naming service, or a file that holds it
    #[arg(
        long,
        value_name = "REFERENCE",
        default_value = "corbaloc::127.0.0.1:2809/NameService"
    )]
    names: String,
    /// Print each message sent or received, and what was tried before a failure
    #[arg(long)]
    pub(crate) trace: bool,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

/// A name in a service.
pub(crate) struct Place {
    pub(crate) orb: Orb,
    pub(crate) root: NamingContextRef,
    pub(crate) path: Vec<NameComponent>,
    /// The name as the user wrote it.
    pub(super) name: String,
}

impl At {
    /// Splits a name into service and path: `corbaname:ADDRESS#NAME` holds both; any other name belongs to `--names`.
    pub(crate) fn place(&self, name: &str) -> anyhow::Result<Place> {
        let (place, path) = self.place_or_root(Some(name))?;
        if path {
            Ok(place)
        } else {
            bail!("{name} names the service itself and nothing in it")
        }
    }

    /// As [`At::place`], but without a name the place is the service's root. Also returns whether there is a name.
    pub(crate) fn place_or_root(&self, name: Option<&str>) -> anyhow::Result<(Place, bool)> {
        let orb = client_orb(self.trace, &self.tls)?;
        let url = name.filter(|name| {
            name.trim_start()
                .to_ascii_lowercase()
                .starts_with("corbaname:")
        });
        let (reference, name) = match url {
            Some(url) => {
                let (address, name) = url.trim().split_once('#').unwrap_or((url.trim(), ""));
                // A corbaname without a name part refers to the context at its address.
                (address.to_owned(), unescaped(name)?)
            }
            None => (
                crate::reference::read(&self.names)?,
                name.unwrap_or("").to_owned(),
            ),
        };
        let path = match name.as_str() {
            "" => Vec::new(),
            name => path(name).with_context(|| format!("`{name}` is not a name"))?,
        };
        let named = !path.is_empty();
        let root = root(&orb, &reference)?;
        let place = Place {
            orb,
            root,
            path,
            name,
        };
        Ok((place, named))
    }
}

fn root(orb: &Orb, reference: &str) -> anyhow::Result<NamingContextRef> {
    let nobody = || {
        format!(
            "no naming service answers at {}; `deckwatch names serve` starts one, `--names` names another",
            escaped(reference)
        )
    };
    let object = orb
        .string_to_object(reference)
        .with_context(nobody)?
        .with_context(nobody)?;
    let found = NamingContextRef::narrow(&object).with_context(nobody)?;
    found.with_context(|| {
        format!(
            "{} is an object, but not a naming context",
            escaped(reference)
        )
    })
}

/// Decodes the name after `#` of a URL: `%` and two hexadecimal digits are one octet.
fn unescaped(text: &str) -> anyhow::Result<String> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            octets.push(*first);
            continue;
        }
        let digits = behind
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let octet = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        octets.push(octet.with_context(|| {
            format!("`{text}` has a `%` without two hexadecimal digits behind it")
        })?);
        rest = &behind[2..];
    }
    String::from_utf8(octets).with_context(|| format!("`{text}` is not UTF-8"))
}

impl Place {
    /// Resolves the name.
    pub(crate) fn resolve(&self) -> anyhow::Result<ObjectRef> {
        let found = self
            .root
            .resolve(&self.path)
            .map_err(|error| Refusal::of(&self.path, error))
            .with_context(|| format!("cannot resolve {}", self.name))?;
        found.with_context(|| format!("{} is bound to nil", self.name))
    }

    /// Returns the context bound to the name, or the root if the path is empty.
    pub(crate) fn context(&self) -> anyhow::Result<NamingContextRef> {
        if self.path.is_empty() {
            return Ok(self.root.clone());
        }
        let object = self.resolve()?;
        let asked = NamingContextRef::narrow(&object);
        asked
            .with_context(|| format!("the context {} does not answer", self.name))?
            .with_context(|| format!("{} is bound to an object, not to a context", self.name))
    }

    pub(super) fn unbind(&self) -> anyhow::Result<()> {
        self.root
            .unbind(&self.path)
            .map_err(|error| Refusal::of(&self.path, error))
            .with_context(|| format!("cannot unbind {}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_in_a_url_is_unescaped() {
        assert_eq!(unescaped("a%20b/c%2Ed").unwrap(), "a b/c.d");
        assert_eq!(unescaped("%C3%BC").unwrap(), "ü");
        for malformed in ["%", "%4", "%zz", "%ff"] {
            assert!(unescaped(malformed).is_err(), "{malformed}");
        }
    }
}

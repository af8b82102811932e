//! The table of carriers. A new carrier is a file in `carriers/` and a line in [`CARRIERS`].

pub mod corba;
pub mod event;
pub(crate) mod orb;
pub mod tcp;
pub mod udp;

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::carrier::Carrier;

/// All built-in carriers, the rawest first. Reports colour a carrier by its index here: append new carriers at the end.
pub static CARRIERS: [&dyn Carrier; 6] = [
    &udp::Udp,
    &tcp::Tcp,
    &corba::TWO_WAY,
    &corba::ONEWAY,
    &event::COS,
    &event::REAL_TIME,
];

/// A carrier in plans: serialized as its name, looked up in [`CARRIERS`]. Two are equal if their names are equal.
#[derive(Clone, Copy)]
pub struct CarrierRef(&'static dyn Carrier);

impl CarrierRef {
    /// A carrier that may be missing from the table. A plan with such a carrier cannot be read back.
    #[must_use]
    pub const fn new(carrier: &'static dyn Carrier) -> Self {
        Self(carrier)
    }

    /// All built-in carriers, in the order of [`CARRIERS`].
    pub fn all() -> impl Iterator<Item = Self> {
        CARRIERS.into_iter().map(Self)
    }

    /// The index in [`CARRIERS`], by which reports colour the carrier. Returns `None` if the table lacks it.
    #[must_use]
    pub fn index(self) -> Option<u16> {
        (0..)
            .zip(Self::all())
            .find_map(|(index, carrier)| (carrier == self).then_some(index))
    }
}

impl Deref for CarrierRef {
    type Target = dyn Carrier;

    fn deref(&self) -> &Self::Target {
        self.0
    }
}

impl PartialEq for CarrierRef {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for CarrierRef {}

impl fmt::Debug for CarrierRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CarrierRef({self})")
    }
}

impl fmt::Display for CarrierRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CarrierRef {
    type Err = UnknownCarrier;

    fn from_str(word: &str) -> Result<Self, UnknownCarrier> {
        Self::all()
            .find(|carrier| carrier.name() == word)
            .ok_or_else(|| UnknownCarrier(word.to_owned()))
    }
}

impl Serialize for CarrierRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for CarrierRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        word.parse().map_err(serde::de::Error::custom)
    }
}

/// A word that is not the name of a carrier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a carrier. Name one of {names}.", names = names())]
pub struct UnknownCarrier(pub String);

/// The names of all built-in carriers, separated by commas.
#[must_use]
pub fn names() -> String {
    let names: Vec<&str> = CARRIERS.iter().map(|carrier| carrier.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_read_by_the_names_they_are_written_with() {
        for (carrier, index) in CarrierRef::all().zip(0..) {
            assert_eq!(carrier.to_string().parse(), Ok(carrier));
            let written = serde_json::to_value(carrier).expect("a word");
            assert_eq!(written, serde_json::Value::from(carrier.name()));
            assert_eq!(carrier.index(), Some(index), "names are unique");
        }
        let unknown = "dds".parse::<CarrierRef>().expect_err("not in the table");
        assert!(unknown.to_string().contains("corba-oneway"), "{unknown}");
    }
}

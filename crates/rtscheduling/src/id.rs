//! The id of a distributable thread.

use std::fmt;

/// RTScheduling::Current::IdType: sixteen random octets, so that no two hosts make the same id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdType(pub [u8; 16]);

impl IdType {
    /// Returns a new random id.
    pub(crate) fn fresh() -> Self {
        Self(deckwatch_os::random::identity())
    }
}

/// In hexadecimal.
impl fmt::Display for IdType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for IdType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdType({self})")
    }
}

//! The tags of values on the wire (CORBA 3.3 part 2, clause 9.3.4.1).

/// The tag of a value that came before, in front of how far back it stands.
pub(crate) const WITHOUT_TAG: u32 = u32::MAX;
/// The tag of no value.
pub(crate) const NULL_TAG: u32 = 0;
/// The first of the tags that a value begins with; their lowest bits say how it goes on. Smaller numbers are sizes of chunks.
pub(crate) const FIRST_TAG: u32 = 0x7fff_ff00;
pub(crate) const LAST_TAG: u32 = 0x7fff_ffff;
/// There is a URL where code may be had.
pub(crate) const CODE_BASE: u32 = 1;
/// There is one repository id.
pub(crate) const ONE_ID: u32 = 2;
/// There is a list of repository ids.
pub(crate) const ID_LIST: u32 = 6;
/// The state comes in chunks.
pub(crate) const CHUNKED: u32 = 8;

//! The tags of values on the wire (CORBA 3.3 part 2, clause 9.3.4.1).

/// An indirection: how far back the value stands follows.
pub(crate) const WITHOUT_TAG: u32 = u32::MAX;
/// The null value.
pub(crate) const NULL_TAG: u32 = 0;
/// The first tag of a value; its low bits say what follows. Smaller numbers are sizes of chunks.
pub(crate) const FIRST_TAG: u32 = 0x7fff_ff00;
pub(crate) const LAST_TAG: u32 = 0x7fff_ffff;
/// A URL of code follows.
pub(crate) const CODE_BASE: u32 = 1;
/// One repository id follows.
pub(crate) const ONE_ID: u32 = 2;
/// A list of repository ids follows.
pub(crate) const ID_LIST: u32 = 6;
/// The state comes in chunks.
pub(crate) const CHUNKED: u32 = 8;

//! Every bound of this crate, with its reason.

/// Slots of the first chunk of a [`crate::SlotTable`]; each further chunk doubles the table.
pub const SLOT_CHUNK_FIRST: usize = 64;

/// Chunks a [`crate::SlotTable`] may grow to: 64 << 15 is two million slots, more objects than one adapter serves.
pub const SLOT_CHUNKS_MAX: usize = 16;

//! Every bound of this crate, with its reason.

/// Slots of the first chunk of a [`crate::SlotTable`]; each further chunk doubles the table.
/// `loom` follows every slot: for it two are enough.
pub const SLOT_CHUNK_FIRST: usize = if cfg!(loom) { 2 } else { 64 };

/// Chunks a [`crate::SlotTable`] may grow to: 64 << 15 is two million slots, more objects than one adapter serves.
pub const SLOT_CHUNKS_MAX: usize = 16;

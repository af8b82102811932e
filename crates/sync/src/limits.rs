//! Every bound of this crate, with its reason.

/// Slots of the first chunk of a [`crate::SlotTable`]; each further chunk doubles the table.
pub const SLOT_CHUNK_FIRST: usize = if cfg!(loom) { 2 } else { 64 };

/// Places of the first table of a [`crate::SlotIndex`]; each further table is twice as long. For `loom` four are
/// enough.
pub const INDEX_TABLE_FIRST: usize = if cfg!(loom) { 4 } else { 64 };

/// Tables a [`crate::SlotIndex`] may grow through: the last, 64 << 16, is twice as long as a [`crate::SlotTable`] has
/// slots.
pub const INDEX_TABLES_MAX: usize = 17;

/// Chunks a [`crate::SlotTable`] may grow to: 64 << 15 is two million slots, more objects than one adapter serves.
pub const SLOT_CHUNKS_MAX: usize = 16;

/// Places that a [`crate::TurnQueue`] keeps once nothing waits; more are returned to the allocator.
pub const TURN_QUEUE_KEPT: usize = 16;

//! Bounded structures shared between threads: a priority-inheriting lock, a claim that nobody waits for, a bell that threads wait for,
//! queues, a line, a pool, a settable cell, a table of slots and an index of it.
//!
//! None of them allocates after it has been made (the table grows only when something is inserted, the line while one waits in it), and the roads
//! that a real-time thread takes are one or two atomic operations where nobody contends.

mod bell;
mod claim;
pub mod limits;
mod line;
mod lock_count;
#[cfg(loom)]
mod modelled;
mod ordered_queue;
#[cfg(not(loom))]
mod pi_lock;
#[cfg(not(loom))]
mod pi_mutex;
mod pool;
mod primitive;
mod queue;
mod settable;
mod slot_index;
mod slot_table;

#[cfg(loom)]
use modelled as pi_mutex;

pub use bell::Bell;
pub use claim::{Claim, Claimed};
pub use line::Line;
pub use lock_count::{count_locks, locks_taken};
pub use ordered_queue::OrderedQueue;
#[cfg(not(loom))]
pub use pi_lock::{NeverFree, NotHeld, PiLock};
pub use pi_mutex::{PiMutex, PiMutexGuard};
pub use pool::{Lent, Pool};
pub use queue::{BoundedQueue, Popped, PushError};
pub use settable::Settable;
pub use slot_index::SlotIndex;
pub use slot_table::{Pinned, SlotKey, SlotTable, TableFull};

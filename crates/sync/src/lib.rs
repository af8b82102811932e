//! Bounded structures shared between threads: a lock with priority inheritance, a claim that no thread waits for, a
//! bell, queues, a pool, a budget, a settable cell, a table of slots and an index of it.
//!
//! None of them allocates after creation, except that a table grows when a value is inserted and a turn queue while
//! values wait. The paths of a real-time thread are one or two atomic operations without contention.

mod bell;
mod budget;
mod claim;
pub mod limits;
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
mod served_queue;
mod settable;
mod slot_index;
mod slot_table;
mod turn_queue;

#[cfg(loom)]
use modelled as pi_mutex;

pub use bell::Bell;
pub use budget::{Budget, Handles, Share};
pub use claim::{Claim, Claimed};
pub use lock_count::{count_locks, locks_taken};
pub use ordered_queue::OrderedQueue;
#[cfg(not(loom))]
pub use pi_lock::{NeverFree, NotHeld, PiLock};
pub use pi_mutex::{PiMutex, PiMutexGuard};
pub use pool::{Lent, Pool};
pub use queue::{BoundedQueue, Popped, PushError};
pub use served_queue::{ServedQueue, Unserved, WhenFull};
pub use settable::Settable;
pub use slot_index::SlotIndex;
pub use slot_table::{Pinned, SlotKey, SlotTable, TableFull};
pub use turn_queue::TurnQueue;

//! Bounded queues and priority-inheriting locks.

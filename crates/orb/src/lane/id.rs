//! What tells a lane from others of its ORB: threadpool, priority, and attributes of its threads.

use std::time::Duration;

use crate::rt::Priority;

/// The identity of a lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneId {
    /// The number of its threadpool; 0 for the default pool of the ORB.
    pub(crate) pool: u32,
    /// Its index within the pool.
    pub(crate) index: usize,
    /// The priority of its threads; `None`: that of the process.
    pub(crate) priority: Option<Priority>,
    /// It is one of several lanes with different priorities. Its threads keep its priority.
    pub(crate) is_lane: bool,
    /// Number of threads of lower lanes that it may borrow.
    pub(crate) lenders: usize,
    /// Stack size of a thread in octets; 0: the system's default.
    pub(crate) stack_size: usize,
    /// How long an idle dynamic thread waits before it ends.
    pub(crate) idle: Duration,
}

impl LaneId {
    /// The identity of the default lane of an ORB.
    pub(crate) const fn default_pool(idle: Duration) -> Self {
        Self {
            pool: 0,
            index: 0,
            priority: None,
            is_lane: false,
            lenders: 0,
            stack_size: 0,
            idle,
        }
    }

    /// The name of its keeper thread.
    pub(crate) fn keeper_name(&self) -> String {
        format!("orb-{}.{}-keeper", self.pool, self.index)
    }

    /// The name of its thread at `seat`.
    pub(crate) fn thread_name(&self, seat: usize) -> String {
        match self.pool {
            0 => format!("orb-lane-{seat}"),
            pool => format!("orb-{pool}.{}-{seat}", self.index),
        }
    }
}

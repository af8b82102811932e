//! What sets a lane apart from others of its ORB: its threadpool, its priority, and what its threads are made with.

use std::time::Duration;

use crate::rt::Priority;

/// The place of a lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneId {
    /// The number of its threadpool; 0 for the one that the ORB begins with.
    pub(crate) pool: u32,
    /// Its number within the pool, from 0 on.
    pub(crate) index: usize,
    /// The priority of its threads; none: as threads of the process begin.
    pub(crate) priority: Option<Priority>,
    /// It is one of several that are told apart by their priorities, and its threads keep theirs.
    pub(crate) is_lane: bool,
    /// Threads of lower lanes that it may borrow.
    pub(crate) lenders: usize,
    /// Octets of a thread's stack; 0: as the system has it.
    pub(crate) stack_size: usize,
    /// How long a dynamic thread waits for work before it ends.
    pub(crate) idle: Duration,
}

impl LaneId {
    /// That of the lane which an ORB begins with.
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

    /// What its keeper is called.
    pub(crate) fn keeper_name(&self) -> String {
        format!("orb-{}.{}-keeper", self.pool, self.index)
    }

    /// What its thread at `seat` is called.
    pub(crate) fn thread_name(&self, seat: usize) -> String {
        match self.pool {
            0 => format!("orb-lane-{seat}"),
            pool => format!("orb-{pool}.{}-{seat}", self.index),
        }
    }
}

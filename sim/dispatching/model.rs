//! A model of the lanes: plain lists.

use deckwatch_event::dispatch::{QueueFull, QueueOptions, QueueOrder};

/// How urgent an event set is.
pub(super) struct Urgency {
    pub(super) lane: usize,
    pub(super) deadline_ns: Option<u64>,
    pub(super) worst_case_ns: u64,
}

/// The lanes of one channel, by rising priority. None: it is reactive.
pub(super) struct Model {
    options: QueueOptions,
    lanes: Vec<Vec<Waiting>>,
    next: u64,
}

/// One event set for one client.
struct Waiting {
    order: u64,
    /// When it came.
    at: u64,
    client: u64,
    event: i32,
}

impl Model {
    pub(super) fn new(lanes: usize, options: QueueOptions) -> Self {
        Self {
            options,
            lanes: (0..lanes).map(|_| Vec::new()).collect(),
            next: 0,
        }
    }

    pub(super) fn is_reactive(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn highest(&self) -> usize {
        self.lanes.len() - 1
    }

    pub(super) fn is_empty(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_none_or(Vec::is_empty)
    }

    /// Queues an event set. Returns the client that loses one if the queue is full.
    pub(super) fn put(&mut self, urgency: Urgency, client: u64, event: i32) -> Option<u64> {
        let order = match (self.options.order, urgency.deadline_ns) {
            (QueueOrder::Arrival, _) => 0,
            (_, None) => u64::MAX,
            (QueueOrder::Deadline, Some(deadline_ns)) => deadline_ns,
            (QueueOrder::Laxity, Some(deadline_ns)) => deadline_ns - urgency.worst_case_ns,
        };
        self.next += 1;
        let waiting = Waiting {
            order,
            at: self.next,
            client,
            event,
        };
        let lane = &mut self.lanes[urgency.lane];
        lane.push(waiting);
        if lane.len() <= self.options.len {
            return None;
        }
        let is_by_arrival = self.options.order == QueueOrder::Arrival;
        let lost = match self.options.when_full {
            QueueFull::DropNew => lane.pop(),
            QueueFull::DropFirst if is_by_arrival => Some(lane.remove(0)),
            QueueFull::DropFirst => {
                let last = (0..lane.len()).max_by_key(|at| (lane[*at].order, lane[*at].at));
                last.map(|at| lane.remove(at))
            }
        };
        lost.map(|lost| lost.client)
    }

    /// Takes the event set that is next: its client, and the event.
    pub(super) fn take(&mut self, lane: usize) -> Option<(u64, i32)> {
        let lane = self.lanes.get_mut(lane)?;
        let first = (0..lane.len()).min_by_key(|at| (lane[*at].order, lane[*at].at))?;
        let first = lane.remove(first);
        Some((first.client, first.event))
    }
}

//! What the keeper of a lane does with a request: it waits for a thread, or it is refused at once.

use std::sync::atomic::Ordering;

use deckwatch_giop::{LocateStatus, Message};
use deckwatch_sync::SlotKey;

use crate::connection::Connection;
use crate::connection::{Arrived, Inbound};
use crate::contexts::{read, written::echoed_priority};
use crate::counters::Counter;
use crate::lane::Lane;
use crate::lane::waiting::{Behind, Waiting, WaitingRoom};
use crate::rt::Priority;
use crate::wire;
use crate::{Completion, raise, raise::own};

impl Lane {
    /// Whether a connection is not to be read on now: a one-way of it waits for a thread, or the calling keeper has no thread in
    /// sight for what it would read. Who ends that has the rest told anew.
    pub(crate) fn must_leave(
        &self,
        room: &WaitingRoom,
        connection: &Connection,
        reading: &mut Inbound,
    ) -> bool {
        let is_parked = connection.parked.load(Ordering::SeqCst);
        let is_hopeless = self.room_kept_here().is_some() && !self.may_read(room);
        if is_parked || is_hopeless {
            reading.excuse();
        }
        if is_hopeless && !is_parked {
            self.tell_of_rest(connection);
        }
        is_parked || is_hopeless
    }

    /// Lets a two-way request wait; its connection counts it as being served.
    pub(crate) fn admit_two_way(
        &self,
        room: &WaitingRoom,
        key: SlotKey,
        connection: &Connection,
        arrived: Arrived,
    ) {
        let waiting = Waiting {
            key,
            arrived,
            behind: Behind::Nothing,
        };
        self.admit_request(room, connection, waiting);
    }

    /// Lets a message wait before which none behind it may be looked at.
    pub(crate) fn admit_in_order(
        &self,
        room: &WaitingRoom,
        connection: &Connection,
        arrived: Arrived,
    ) {
        connection.parked.store(true, Ordering::SeqCst);
        connection.serving.fetch_add(1, Ordering::SeqCst);
        let waiting = Waiting {
            key: connection.key(),
            arrived,
            behind: Behind::Connection,
        };
        self.admit_request(room, connection, waiting);
    }

    /// Lets a request wait, or refuses it and whatever waits behind it.
    pub(crate) fn admit_request(
        &self,
        room: &WaitingRoom,
        connection: &Connection,
        waiting: Waiting,
    ) {
        let order = self.order_of(&waiting.arrived);
        let mut refused = room.push(order, waiting, &self.slab).err();
        while let Some(waiting) = refused {
            self.refuse_waiting(connection, &waiting.arrived);
            refused = self.finish(connection, waiting);
            match &refused {
                Some(next) => self.give_for_line(next.arrived.size()),
                None => return,
            }
        }
        self.counters.count(Counter::RequestsBuffered);
        // SYNC: pairs with the swap in `close_entrance`: what is let in behind the last look is given up here.
        if self.closing.load(Ordering::SeqCst) {
            return self.discard_waiting();
        }
        self.tell_of_waiting();
    }

    /// What leaves the queue first: what the ORB's scheduler says, where it has one. Else in a lane the oldest, in a pool without lanes
    /// what has the highest priority, then the oldest.
    pub(crate) fn order_of(&self, arrived: &Arrived) -> u64 {
        if let Some(order) = self.server.adapter.interceptors.request_order() {
            return match Message::parse_joined(&arrived.message()) {
                Ok(Message::Request(request)) => order.order(&request.contexts),
                _ => u64::MAX,
            };
        }
        if self.station.is_lane {
            return 0;
        }
        let priority = match Message::parse_joined(&arrived.message()) {
            Ok(Message::Request(request)) => read::priority(&request).ok().flatten(),
            _ => None,
        };
        let priority = priority.or(self.station.priority).unwrap_or(Priority::MIN);
        u64::from(Priority::MAX.value().abs_diff(priority.value()))
    }

    /// Nobody can serve it soon: the caller learns at once. A one-way whose caller asks for nothing is lost, and counted.
    pub(crate) fn refuse_waiting(&self, connection: &Connection, arrived: &Arrived) {
        self.counters.count(Counter::RequestsRefused);
        match Message::parse_joined(&arrived.message()) {
            Ok(Message::Request(mut request)) => {
                // The connection's first request says code sets, refused or not.
                let full = raise::transient(own::LANE_FULL, Completion::No);
                let agreed = connection.agree_on_code_sets(&mut request);
                let exception = agreed.err().unwrap_or(full);
                if !request.response.is_expected() {
                    return;
                }
                let echoed = echoed_priority(&request);
                let (contexts, sizes) = (echoed.as_slice(), self.shape.sizes);
                self.write_with(connection, |reply| {
                    wire::exception_reply(reply, &request, exception, contexts, sizes);
                });
            }
            Ok(Message::LocateRequest(request)) => {
                // A request would be refused here and nowhere else.
                let here = LocateStatus::ObjectHere;
                self.write_with(connection, |reply| {
                    wire::locate_reply(reply, request.version, request.id, here, None);
                });
            }
            _ => {}
        }
    }
}

//! Connections that both sides ask over, from the side of the lane that reads them: replies are given to who waits for them, and what
//! the opener says of where it listens is noted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_giop::{ListenPoint, Message, Request, Version};
use deckwatch_sync::SlotKey;

use crate::connection::Arrived;
use crate::connection::Connection;
use crate::connection::bidirectional::Bidirectional;
use crate::contexts;
use crate::counters::Counter;
use crate::lane::Lane;
use crate::transport::Stream;
use crate::{Completion, raise, raise::own};

impl Connection {
    /// Whether this ORB has opened it.
    pub(crate) fn is_opened_here(&self) -> bool {
        self.bidirectional
            .get()
            .is_some_and(|bidirectional| bidirectional.is_opened_here)
    }
}

impl Lane {
    /// Takes a connection in that this ORB has opened. False: the lane is full, or at its end.
    pub(crate) fn take_in(
        &self,
        stream: Arc<dyn Stream>,
        bidirectional: &Arc<Bidirectional>,
    ) -> bool {
        self.admit(stream, Some(bidirectional)) && bidirectional.is_open()
    }

    /// Writes a message, or lets it wait for room. False: the connection is closed.
    pub(crate) fn write_bidirectional(&self, key: SlotKey, message: &[u8]) -> bool {
        let Some(connection) = self.connections.pin(key) else {
            return false;
        };
        self.write_from_outside(&connection, message);
        self.let_read(&connection);
        // The thread that has adopted it may be the one that asks: somebody else must see the reply.
        let is_served_here = self.server.is_served_here();
        if is_served_here && connection.adopted.swap(false, Ordering::AcqRel) {
            self.watch_again(&connection);
        }
        true
    }

    /// Notes where the opener of a connection listens, and that it may be asked over it, where a request says so and an adapter of
    /// ours allows it.
    pub(crate) fn note_listen_points(&self, connection: &Connection, request: &Request<'_>) {
        if request.version < Version::V1_2 || connection.is_opened_here() {
            return;
        }
        let Some(data) = contexts::read::listen_points(request) else {
            return;
        };
        let Ok(points) = ListenPoint::parse_all(data) else {
            return self.counters.count(Counter::ProtocolErrors);
        };
        let bidirectional = connection.bidirectional.get_or_init(|| {
            let lane = self.this.get().cloned().unwrap_or_default();
            let bidirectional = Bidirectional::new(lane, false);
            bidirectional.set_key(connection.key());
            self.counters.count(Counter::ConnectionsBidirectional);
            Arc::new(bidirectional)
        });
        bidirectional.add_points(points);
    }

    /// Gives a reply to who waits for it.
    pub(crate) fn take_answer(&self, bidirectional: &Bidirectional, arrived: Arrived) {
        let id = match Message::parse_joined(&arrived.message()) {
            Ok(Message::Reply(reply)) => Some(reply.id),
            Ok(Message::LocateReply(reply)) => Some(reply.id),
            _ => None,
        };
        let given = match id {
            Some(id) => bidirectional.give(id, arrived),
            None => Err(arrived),
        };
        if let Err(unwanted) = given {
            self.counters.count(Counter::RepliesToNobody);
            self.slab.take_back(unwanted.buffer);
        }
    }

    /// The connection has ended: nobody waits for replies any more. `in_order`: by a CloseConnection, which promises that what has not been
    /// answered has not been served.
    pub(crate) fn end_bidirectional(&self, connection: &Connection, in_order: bool) {
        if let Some(bidirectional) = connection.bidirectional.get() {
            let why = match in_order {
                true => raise::comm_failure(own::CONNECTION_CLOSED, Completion::No),
                false => raise::comm_failure(own::CONNECTION_LOST, Completion::Maybe),
            };
            bidirectional.end(why);
        }
    }
}

//! A connection as the peer of the requests that it brings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use deckwatch_cdr::{CharSet, Divided};
use deckwatch_giop::{Request, Version};

use crate::connection::Connection;
use crate::connection::bidirectional::Bidirectional;
use crate::contexts;
use crate::lane::Lane;
use crate::server::{Early, Peer, Server, Unanswered, Wait};
use crate::transport::Instant64;
use crate::{Completion, SystemException, minor, raise};

/// A connection, and the lane that writes to it.
struct ConnectionPeer<'c> {
    lane: &'c Lane,
    connection: &'c Connection,
}

impl Peer for ConnectionPeer<'_> {
    fn number(&self) -> u32 {
        self.connection.number
    }

    fn may_enter(&self, _server: &Server) -> bool {
        // What has been read before the end is answered.
        true
    }

    fn agree_on_code_sets(&self, request: &mut Request<'_>) -> Result<(), SystemException> {
        self.connection.agree_on_code_sets(request)
    }

    fn bidirectional(&self) -> Option<&Arc<Bidirectional>> {
        self.connection.bidirectional.get()
    }

    fn wait<'w>(&'w self, server: &'w Server) -> Wait<'w> {
        Wait {
            patience: Some(&server.wait_permits),
            until: None,
        }
    }

    fn put_aside(
        &self,
        message: &Divided<'_>,
        request: &Request<'_>,
        start: Instant64,
    ) -> Result<Early, SystemException> {
        self.lane
            .put_aside(self.connection, message, request, start)
            .map(|()| Early::PutAside)
    }

    #[inline]
    fn with_reply(&self, is_awaited: bool, write: impl FnOnce(&mut Vec<u8>)) {
        if is_awaited {
            self.lane.slab.with_empty(write);
        } else {
            write(&mut Vec::new());
        }
    }

    #[inline]
    fn write(&self, reply: &[u8]) {
        self.lane.write(self.connection, reply);
    }

    fn write_receipt(&self, receipt: &[u8]) {
        self.lane.write_from_outside(self.connection, receipt);
    }

    fn is_local(&self) -> bool {
        false
    }
}

impl Lane {
    /// Has a message answered that a connection has brought.
    ///
    /// # Errors
    /// [`Unanswered`]: the connection cannot go on.
    pub(crate) fn answer(
        &self,
        connection: &Connection,
        message: &Divided<'_>,
    ) -> Result<(), Unanswered> {
        let lane = self;
        let answered = self
            .server
            .answer(message, &ConnectionPeer { lane, connection });
        if answered.is_err() {
            std::hint::cold_path();
            self.say_message_error(connection, Version::V1_0);
        }
        answered
    }
}

impl Connection {
    /// Reads a request in the code sets of its connection: those of the first request that announces some. Another choice later is MARSHAL.
    pub(crate) fn agree_on_code_sets(
        &self,
        request: &mut Request<'_>,
    ) -> Result<(), SystemException> {
        let mut agreed = self.chars.load(Ordering::Acquire);
        if let Some(chars) = contexts::read::code_sets(request)? {
            let announced = number_of(chars);
            let before =
                self.chars
                    .compare_exchange(0, announced, Ordering::AcqRel, Ordering::Acquire);
            agreed = before.map_or_else(|before| before, |_none| announced);
            if agreed != announced {
                return Err(raise::marshal(minor::CODE_SETS_CHANGED, Completion::No));
            }
        }
        if agreed == number_of(CharSet::Utf8) {
            request.body = request
                .body
                .with_codec(request.body.codec().with_chars(CharSet::Utf8));
        }
        Ok(())
    }
}

/// A code set as a number, of which 0 is none.
const fn number_of(chars: CharSet) -> u8 {
    match chars {
        CharSet::Latin1 => 1,
        CharSet::Utf8 => 2,
    }
}

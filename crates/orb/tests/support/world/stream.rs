//! Connections of the simulated world, and its listeners.

use std::time::Duration;

use deckwatch_orb::transport::{
    Endpoint, Instant64, Listener, Source, Stream, Transport, TransportError,
};

use super::World;

pub(super) struct SimStream {
    pub(super) world: World,
    pub(super) end: u64,
}

impl Stream for SimStream {
    fn read(&self, into: &mut [u8], deadline: Option<Instant64>) -> Result<usize, TransportError> {
        loop {
            if let Some(count) = self.read_now(into)? {
                return Ok(count);
            }
            if deadline.is_some_and(|at| at <= self.world.now()) {
                return Err(TransportError::TimedOut);
            }
            if !self.world.step(deadline.map(|at| at.0)) {
                return Err(TransportError::Broken);
            }
        }
    }

    fn read_within(&self, into: &mut [u8], _: Duration) -> Result<Option<usize>, TransportError> {
        self.read_now(into)
    }

    fn read_spinning(&self, into: &mut [u8], _: Duration) -> Result<Option<usize>, TransportError> {
        self.read_now(into)
    }

    fn read_now(&self, into: &mut [u8]) -> Result<Option<usize>, TransportError> {
        let mut state = self.world.state();
        let now = state.now;
        let end = state
            .ends
            .get_mut(&self.end)
            .ok_or(TransportError::Broken)?;
        if end.is_broken {
            return Err(TransportError::Broken);
        }
        if !end.is_readable(now) {
            return Ok(None);
        }
        let Some((_, octets)) = end.inbox.front_mut() else {
            return Ok(Some(0));
        };
        let count = octets.len().min(into.len());
        into[..count].copy_from_slice(&octets[..count]);
        octets.drain(..count);
        if octets.is_empty() {
            end.inbox.pop_front();
            end.told = None;
        }
        let peer = end.peer;
        if let Some(writer) = state.ends.get_mut(&peer) {
            writer.is_room_told = false;
        }
        Ok(Some(count))
    }

    fn is_readable(&self) -> bool {
        let state = self.world.state();
        state
            .ends
            .get(&self.end)
            .is_none_or(|end| end.is_readable(state.now))
    }

    fn write_all(
        &self,
        mut octets: &[u8],
        deadline: Option<Instant64>,
    ) -> Result<(), TransportError> {
        loop {
            octets = &octets[self.write_now(octets)?..];
            if octets.is_empty() {
                return Ok(());
            }
            if deadline.is_some_and(|at| at <= self.world.now()) {
                return Err(TransportError::TimedOut);
            }
            if !self.world.step(deadline.map(|at| at.0)) {
                return Err(TransportError::Broken);
            }
        }
    }

    fn write_now(&self, octets: &[u8]) -> Result<usize, TransportError> {
        let mut state = self.world.state();
        let arrives = state.now + state.latency();
        let end = state.ends.get(&self.end).ok_or(TransportError::Broken)?;
        if end.is_broken {
            return Err(TransportError::Broken);
        }
        if end.is_refused {
            return Err(TransportError::Refused);
        }
        let (peer, room) = (end.peer, state.room(end));
        let octets = &octets[..octets.len().min(room)];
        if octets.is_empty() {
            return Ok(0);
        }
        let sent = (state.now, self.end, octets.len());
        state.trace.push(sent);
        if state.is_cut {
            return Ok(octets.len());
        }
        let peer = state.ends.get_mut(&peer).ok_or(TransportError::Broken)?;
        // Octets of one connection keep their order.
        let arrives = peer
            .inbox
            .back()
            .map_or(arrives, |(last, _)| arrives.max(*last));
        peer.inbox.push_back((arrives, octets.to_vec()));
        Ok(octets.len())
    }

    fn shutdown(&self) {
        let mut state = self.world.state();
        let at = state.now + state.latency_ns.1;
        let Some(peer) = state.ends.get(&self.end).map(|end| end.peer) else {
            return;
        };
        if let Some(peer) = state.ends.get_mut(&peer) {
            peer.ended_at.get_or_insert(at);
        }
    }

    fn source(&self) -> Source<'_> {
        Source::Simulated(self.end)
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        self.shutdown();
        self.world.state().ends.remove(&self.end);
    }
}

pub(super) struct SimListener {
    pub(super) world: World,
    pub(super) id: u64,
    pub(super) endpoint: Endpoint,
}

impl Listener for SimListener {
    fn accept(&self) -> Result<Option<Box<dyn Stream>>, TransportError> {
        let accepted = self
            .world
            .state()
            .listeners
            .get_mut(&self.id)
            .and_then(|(_, waiting)| waiting.pop_front());
        Ok(accepted.map(|end| {
            Box::new(SimStream {
                world: self.world.clone(),
                end,
            }) as Box<dyn Stream>
        }))
    }

    fn is_pending(&self) -> bool {
        let state = self.world.state();
        state
            .listeners
            .get(&self.id)
            .is_some_and(|(_, waiting)| !waiting.is_empty())
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn source(&self) -> Source<'_> {
        Source::Simulated(self.id)
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.world.state().listeners.remove(&self.id);
    }
}

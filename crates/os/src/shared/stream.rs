//! One end of a connection through shared memory.

mod reading;
mod waiting;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net;

use super::memory::Memory;
use super::ring::{Ring, Spoiled, Writer, wait};
use waiting::{DEATH_LOOK, drain, events, remaining, ring_for, sleep, wake};

/// A connection through shared memory; may be read by one thread while another writes. It behaves as a stream socket does.
#[derive(Debug)]
pub struct SharedStream {
    /// Empty at a server until it has read the client's greeting.
    shared: OnceLock<Shared>,
    end: End,
    /// What it has written.
    written: Writer,
    /// What it has read.
    read: AtomicU64,
    /// Brings the greeting, then tells a poller that octets have arrived, and by its end that the other end is gone.
    arrival: OwnedFd,
    /// An octet may wait in `arrival`.
    arrival_rung: AtomicBool,
    /// An octet may wait in the other socket.
    room_rung: AtomicBool,
    /// The socket has told that nothing more is written at the other end.
    silent: AtomicBool,
    /// It has told that nothing is read there either.
    gone: AtomicBool,
    /// This end has shut down.
    closed: AtomicBool,
    /// Counted by its listener.
    _counted: Option<Counted>,
}

/// What both ends have.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) memory: Memory,
    /// Tells a poller that there is room again.
    pub(super) room: OwnedFd,
}

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Client,
    Server,
}

/// The rings as one end sees them.
#[derive(Clone, Copy)]
struct Rings<'s> {
    incoming: &'s Ring,
    outgoing: &'s Ring,
    room: &'s OwnedFd,
}

/// One of the connections that a listener may have.
#[derive(Debug)]
pub(super) struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// None: as many as may be are open. Who asks in vain keeps out nobody who comes when one has ended.
    pub(super) fn take(open: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        let more = |open: usize| (open < max).then_some(open + 1);
        let order = Ordering::Relaxed;
        open.fetch_update(order, order, more).ok()?;
        Some(Self(Arc::clone(open)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SharedStream {
    pub(super) fn connected(arrival: OwnedFd, shared: Shared) -> Self {
        Self::new(End::Client, arrival, OnceLock::from(shared), None)
    }

    pub(super) fn accepted(arrival: OwnedFd, counted: Counted) -> Self {
        Self::new(End::Server, arrival, OnceLock::new(), Some(counted))
    }

    fn new(end: End, arrival: OwnedFd, shared: OnceLock<Shared>, counted: Option<Counted>) -> Self {
        Self {
            shared,
            end,
            written: Writer::default(),
            read: AtomicU64::new(0),
            arrival,
            arrival_rung: AtomicBool::new(false),
            room_rung: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            _counted: counted,
        }
    }

    fn rings(&self) -> Option<Rings<'_>> {
        let shared = self.shared.get()?;
        let [to_server, to_client] = shared.memory.rings();
        let (incoming, outgoing) = match self.end {
            End::Client => (to_client, to_server),
            End::Server => (to_server, to_client),
        };
        Some(Rings {
            incoming,
            outgoing,
            room: &shared.room,
        })
    }

    /// Asks the socket whether the other end still writes.
    fn is_ended(&self) -> bool {
        if !self.gone.load(Ordering::Relaxed) {
            let told = events(&self.arrival);
            if told.intersects(PollFlags::HUP | PollFlags::ERR) {
                self.gone.store(true, Ordering::Relaxed);
                self.silent.store(true, Ordering::Relaxed);
            }
            if told.contains(PollFlags::RDHUP) {
                self.silent.store(true, Ordering::Relaxed);
            }
        }
        self.silent.load(Ordering::Relaxed)
    }

    /// Writes what there is room for.
    fn put(&self, octets: &[u8]) -> io::Result<usize> {
        // A server that has heard nothing has nothing to say.
        let rings = self.rings().ok_or(io::ErrorKind::NotConnected)?;
        let ring = rings.outgoing;
        if self.closed.load(Ordering::Relaxed)
            || self.gone.load(Ordering::Relaxed)
            || ring.reader.0.deaf.load(Ordering::Relaxed) != 0
        {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = ring.put(&self.written, octets).map_err(broken)?;
        if count != 0 {
            // SYNC: pairs with the fences of a reader that is about to wait: it finds the octets, or we that it waits.
            fence(Ordering::SeqCst);
            ring_for(&ring.reader.0.waits, &self.arrival);
        }
        Ok(count)
    }

    fn awaits_room(&self, how: u32) {
        if let Some(rings) = self.rings() {
            rings.outgoing.writer_waits.0.store(how, Ordering::Relaxed);
        }
        // SYNC: pairs with the fence in `tell_of_room`.
        fence(Ordering::SeqCst);
    }

    /// Writes all of `octets`, waiting until `deadline_ns` (for ever without one) where the peer does not read.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, in which case a part may have been sent; `BrokenPipe` where nobody reads any more;
    /// `InvalidData` where the other end has spoiled the memory.
    pub fn write_all(&self, mut octets: &[u8], deadline_ns: Option<u64>) -> io::Result<()> {
        let mut vain_wakes = 0;
        loop {
            octets = &octets[self.put(octets)?..];
            if octets.is_empty() {
                return Ok(());
            }
            self.awaits_room(wait::SLEEPS);
            let count = self.put(octets)?;
            octets = &octets[count..];
            if count == 0 {
                let slice = remaining(deadline_ns)?.min(DEATH_LOOK);
                self.sleep_for_room(slice, &mut vain_wakes);
            } else {
                vain_wakes = 0;
            }
            self.awaits_room(wait::AWAKE);
        }
    }

    fn sleep_for_room(&self, limit: Duration, vain_wakes: &mut u32) {
        if let Some(rings) = self.rings()
            && !sleep(&rings.outgoing.writer_waits.0, limit, vain_wakes)
        {
            self.is_ended();
        }
    }

    /// Writes what goes without waiting, and returns how many octets that is; 0: none. Where some did not go, a poller that watches
    /// [`SharedStream::room`] is told of room.
    ///
    /// # Errors
    /// `BrokenPipe` where nobody reads any more, `InvalidData` where the other end has spoiled the memory.
    pub fn write_now(&self, octets: &[u8]) -> io::Result<usize> {
        if self.room_rung.swap(false, Ordering::Relaxed) {
            drain(self.room());
            self.is_ended();
        }
        let mut written = self.put(octets)?;
        if written < octets.len() {
            self.room_rung.store(true, Ordering::Relaxed);
            self.awaits_room(wait::WATCHES);
            // Until the ring is seen full: the reader tells of room when a full one has become half empty, and of no other.
            loop {
                let count = self.put(&octets[written..])?;
                written += count;
                if count == 0 || written == octets.len() {
                    break;
                }
            }
        }
        Ok(written)
    }

    /// Ends both directions; whoever waits, at either end, comes back.
    pub fn shutdown(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.end_writing();
        if let Some(rings) = self.rings() {
            rings.incoming.reader.0.deaf.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            // The other end's writer, then our own reader and writer.
            ring_for(&rings.incoming.writer_waits.0, rings.room);
            wake(&rings.incoming.reader.0.waits);
            wake(&rings.outgoing.writer_waits.0);
            let _already_ended = net::shutdown(rings.room, net::Shutdown::Both);
        }
        let _already_ended = net::shutdown(&self.arrival, net::Shutdown::Both);
    }

    /// Ends our direction: the peer reads to the end of what was written.
    pub fn shutdown_write(&self) {
        self.end_writing();
        let _already_ended = net::shutdown(&self.arrival, net::Shutdown::Write);
    }

    fn end_writing(&self) {
        if let Some(Rings { outgoing, .. }) = self.rings() {
            outgoing.written.0.ended.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            ring_for(&outgoing.reader.0.waits, &self.arrival);
        }
    }

    /// What a poller watches for arrivals and for the other end's end, after [`SharedStream::begin_watch`].
    #[must_use]
    pub fn arrival(&self) -> BorrowedFd<'_> {
        self.arrival.as_fd()
    }

    /// What a poller watches for room, as if it were arrivals.
    #[must_use]
    pub fn room(&self) -> BorrowedFd<'_> {
        let room = self.shared.get().map(|shared| shared.room.as_fd());
        room.unwrap_or(self.arrival.as_fd())
    }
}

impl AsFd for SharedStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrival.as_fd()
    }
}

impl Drop for SharedStream {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn broken(_: Spoiled) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::stream::monotonic_ns;

    #[test]
    fn a_peer_that_spoils_the_memory_breaks_its_connection_and_nothing_else() {
        let sockets = || {
            let flags = SocketFlags::CLOEXEC;
            socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
        };
        for seed in 1..40_u64 {
            let ((arrival, _theirs), (room, _also_theirs)) = (sockets(), sockets());
            let memory = Memory::private().unwrap();
            let shared = OnceLock::from(Shared { memory, room });
            let stream = SharedStream::new(End::Server, arrival, shared, None);
            let is_over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut random = seed;
                    while !is_over.load(Ordering::Relaxed) {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        let near = random % (2 * super::super::RING_SIZE as u64);
                        for ring in stream.shared.get().unwrap().memory.rings() {
                            ring.spoil(if seed % 2 == 0 { near } else { random });
                            ring.reader
                                .0
                                .waits
                                .store(random as u32 % 3, Ordering::Relaxed);
                            ring.writer_waits
                                .0
                                .store(random as u32 % 3, Ordering::Relaxed);
                        }
                    }
                });
                let mut into = vec![0; 5_000];
                for _ in 0..50 {
                    let deadline_ns = Some(monotonic_ns() + 200_000);
                    let _any = stream.write_now(&into);
                    let _any = stream.read_now(&mut into);
                    let _any = stream.is_readable();
                    let _any = stream.begin_watch();
                    let _any = stream.read(&mut into, deadline_ns);
                    let _any = stream.write_all(&into, deadline_ns);
                    let _any = stream.read_spinning(&mut into, Duration::from_micros(10));
                }
                is_over.store(true, Ordering::Relaxed);
            });
        }
    }
}

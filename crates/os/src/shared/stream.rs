//! One end of a connection through shared memory.

mod reading;
mod waiting;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::net;

use super::memory::Memory;
use super::ring::{Ring, Spoiled, Writer, wait};
use waiting::{DEATH_LOOK, drain, events, remaining, ring_for, sleep, wake};

/// A connection through shared memory, with the behaviour of a stream socket. One thread may read while another writes.
#[derive(Debug)]
pub struct SharedStream {
    /// Empty at a server until it has read the client's greeting.
    shared: OnceLock<Shared>,
    end: End,
    /// The write position.
    written: Writer,
    /// The read position.
    read: AtomicU64,
    /// Carries the greeting and then the wake-ups of a poller for arrived octets. It is closed when the other end has
    /// closed or died.
    arrival: OwnedFd,
    /// A wake-up octet may be unread in `arrival`.
    arrival_rung: AtomicBool,
    /// A wake-up octet may be unread in the `room` socket.
    room_rung: AtomicBool,
    /// The socket has reported that the other end writes no more.
    silent: AtomicBool,
    /// The socket has reported that the other end reads no more either.
    gone: AtomicBool,
    /// This end has shut down.
    closed: AtomicBool,
}

/// The parts that both ends share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) memory: Memory,
    /// Wakes a poller when there is room again.
    pub(super) room: OwnedFd,
}

/// The end of a connection.
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

impl SharedStream {
    pub(super) fn connected(arrival: OwnedFd, shared: Shared) -> Self {
        Self::new(End::Client, arrival, OnceLock::from(shared))
    }

    pub(super) fn accepted(arrival: OwnedFd) -> Self {
        Self::new(End::Server, arrival, OnceLock::new())
    }

    fn new(end: End, arrival: OwnedFd, shared: OnceLock<Shared>) -> Self {
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

    /// Polls the socket. Returns true if the other end writes no more.
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

    /// Writes the octets that there is room for. Returns their number.
    fn put(&self, octets: &[u8]) -> io::Result<usize> {
        // A server cannot write before it has read the greeting.
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
            // SYNC: pairs with the fences of a reader that is about to wait: either it finds the octets, or this thread
            // finds that it waits.
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

    /// Writes all of `octets`, waiting until `deadline_ns` (for ever without one) if the peer does not read.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, in which case a part may have been sent; `BrokenPipe` if the peer reads no more;
    /// `InvalidData` if the other end has corrupted the memory.
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

    /// Writes what fits without waiting. Returns the number of octets, which may be 0. If some did not fit, a poller
    /// that watches [`SharedStream::room`] is notified of room.
    ///
    /// # Errors
    /// `BrokenPipe` if the peer reads no more; `InvalidData` if the other end has corrupted the memory.
    pub fn write_now(&self, octets: &[u8]) -> io::Result<usize> {
        if self.room_rung.swap(false, Ordering::Relaxed) {
            drain(self.room());
            self.is_ended();
        }
        let mut written = self.put(octets)?;
        if written < octets.len() {
            self.room_rung.store(true, Ordering::Relaxed);
            self.awaits_room(wait::WATCHES);
            // Repeats until the ring is found full: the reader notifies only when a full ring has become half empty.
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

    /// Ends both directions and wakes the waiting threads at both ends.
    pub fn shutdown(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        self.end_writing();
        if let Some(rings) = self.rings() {
            rings.incoming.reader.0.deaf.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            // Wakes the other end's writer, then the reader and the writer of this end.
            ring_for(&rings.incoming.writer_waits.0, rings.room);
            wake(&rings.incoming.reader.0.waits);
            wake(&rings.outgoing.writer_waits.0);
            let _ = net::shutdown(rings.room, net::Shutdown::Both); // It may have ended already.
        }
        let _ = net::shutdown(&self.arrival, net::Shutdown::Both); // It may have ended already.
    }

    /// Ends the outgoing direction: the peer reads to the end of what was written.
    pub fn shutdown_write(&self) {
        self.end_writing();
        let _ = net::shutdown(&self.arrival, net::Shutdown::Write); // It may have ended already.
    }

    fn end_writing(&self) {
        if let Some(Rings { outgoing, .. }) = self.rings() {
            outgoing.written.0.ended.store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            ring_for(&outgoing.reader.0.waits, &self.arrival);
        }
    }

    /// The descriptor that a poller watches for arrivals and for the other end's end, after
    /// [`SharedStream::begin_watch`].
    #[must_use]
    pub fn arrival(&self) -> BorrowedFd<'_> {
        self.arrival.as_fd()
    }

    /// The descriptor that a poller watches for room; it becomes readable then.
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
            let stream = SharedStream::new(End::Server, arrival, shared);
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
                    let _ = stream.write_now(&into);
                    let _ = stream.read_now(&mut into);
                    let _ = stream.is_readable();
                    let _ = stream.begin_watch();
                    let _ = stream.read(&mut into, deadline_ns);
                    let _ = stream.write_all(&into, deadline_ns);
                    let _ = stream.read_spinning(&mut into, Duration::from_micros(10));
                }
                is_over.store(true, Ordering::Relaxed);
            });
        }
    }
}

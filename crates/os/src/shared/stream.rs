//! One end of a connection through shared memory.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};
use rustix::thread::futex;

use super::handshake::{Greeting, hear_greeting};
use super::memory::Memory;
use super::ring::{RING_SIZE, Ring, Spoiled, Writer, wait};
use crate::stream::{is_readable_now, monotonic_ns, wait_for};

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
pub(super) struct Counted(pub(super) Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How long a thread sleeps before it looks whether the other end has died: that wakes nobody who sleeps in a futex.
const DEATH_LOOK: Duration = Duration::from_millis(50);

/// Wake-ups in vain after which one read sleeps in a way that the other end cannot cut short.
const VAIN_WAKES_MAX: u32 = 16;

/// How long it sleeps then.
const VAIN_WAKE_REST: Duration = Duration::from_millis(1);

/// How often a spinning read looks before it looks at the clock.
const LOOKS_PER_CLOCK: u32 = 64;

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

    /// Reads the greeting, where it has come. 0: an end came instead.
    fn greeted(&self) -> io::Result<Option<usize>> {
        match hear_greeting(&self.arrival)? {
            Greeting::NotYet => Ok(self.closed.load(Ordering::Relaxed).then_some(0)),
            Greeting::Ended => Ok(Some(0)),
            Greeting::Heard(shared) => {
                let _read_twice = self.shared.set(shared);
                if let Some(rings) = self.rings() {
                    rings.incoming.reader.0.taken.store(1, Ordering::Release);
                }
                Ok(None)
            }
        }
    }

    /// Takes what is there. `None`: nothing; 0: the end.
    fn look(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(rings) = self.rings() else {
            let told = self.greeted()?;
            return match self.rings() {
                Some(_) => self.look(into),
                None => Ok(told),
            };
        };
        let ring = rings.incoming;
        // Looked at before the octets: what was written before the end is read before it.
        let is_end = self.closed.load(Ordering::Relaxed)
            || self.silent.load(Ordering::Relaxed)
            || ring.written.0.ended.load(Ordering::Acquire) != 0;
        let (count, waited) = ring.take(&self.read, into).map_err(broken)?;
        if count != 0 {
            // A writer that waits has seen the ring full since octets were last counted: whatever of these is taken then, a take
            // that begins with half of the ring or more is still to come.
            if waited >= RING_SIZE / 2 && waited - count <= RING_SIZE / 2 {
                tell_of_room(rings);
            }
            return Ok(Some(count));
        }
        if !is_end {
            return Ok(None);
        }
        let taken = &rings.outgoing.reader.0.taken;
        let is_refused = self.end == End::Client && taken.load(Ordering::Acquire) == 0;
        if is_refused && !self.closed.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        Ok(Some(0))
    }

    /// Reads what has arrived, waiting until `deadline_ns` (for ever without one). 0: the peer has ended its side.
    ///
    /// # Errors
    /// `TimedOut` at the deadline, `ConnectionRefused` where the server never took the connection and so nothing of what was written,
    /// `InvalidData` where the other end has spoiled the memory.
    pub fn read(&self, into: &mut [u8], deadline_ns: Option<u64>) -> io::Result<usize> {
        let mut vain_wakes = 0;
        loop {
            // A deadline that has passed leaves what has come.
            if let Some(count) = self.look(into)? {
                return Ok(count);
            }
            let slice = remaining(deadline_ns)?.min(DEATH_LOOK);
            if let Some(count) = self.read_after_sleep(into, slice, &mut vain_wakes)? {
                return Ok(count);
            }
        }
    }

    /// Reads, waiting at most about `wait`. `None`: nothing came.
    ///
    /// # Errors
    /// `InvalidData` where the other end has spoiled the memory.
    pub fn read_within(&self, into: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
        match self.look(into)? {
            None => self.read_after_sleep(into, wait.min(DEATH_LOOK), &mut 0),
            some => Ok(some),
        }
    }

    fn read_after_sleep(
        &self,
        into: &mut [u8],
        limit: Duration,
        vain_wakes: &mut u32,
    ) -> io::Result<Option<usize>> {
        let Some(rings) = self.rings() else {
            wait_for_greeting(&self.arrival, limit);
            return self.look(into);
        };
        let word = &rings.incoming.reader.0.waits;
        word.store(wait::SLEEPS, Ordering::Relaxed);
        // SYNC: pairs with the fence in `ring_for`'s callers: we find the octets, or they that we sleep.
        fence(Ordering::SeqCst);
        let mut found = self.look(into);
        if matches!(found, Ok(None)) {
            let is_in_time = sleep(word, limit, vain_wakes);
            found = self.look(into);
            if matches!(found, Ok(None)) && !is_in_time && self.is_ended() {
                found = self.look(into);
            }
        }
        word.store(wait::AWAKE, Ordering::Relaxed);
        found
    }

    /// Reads as soon as octets are there, looking again and again without sleeping, for `wait` at most. `None`: nothing came.
    ///
    /// # Errors
    /// `InvalidData` where the other end has spoiled the memory.
    pub fn read_spinning(&self, into: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
        let mut give_up_ns = None;
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                if let Some(count) = self.look(into)? {
                    return Ok(Some(count));
                }
            }
            let now_ns = monotonic_ns();
            let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
            if now_ns >= *give_up_ns.get_or_insert(now_ns.saturating_add(wait_ns)) {
                return if self.is_ended() {
                    self.look(into)
                } else {
                    Ok(None)
                };
            }
        }
    }

    /// Reads what has arrived without waiting. `None`: nothing has. Where it has taken all, its poller is told of the next.
    ///
    /// # Errors
    /// `InvalidData` where the other end has spoiled the memory.
    pub fn read_now(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if self.arrival_rung.swap(false, Ordering::Relaxed) {
            drain(&self.arrival);
        }
        let mut total = 0;
        let mut is_told = false;
        loop {
            match self.look(&mut into[total..])? {
                Some(0) if total == 0 => return Ok(Some(0)),
                // The socket has told of the end, too.
                Some(0) => return Ok(Some(total)),
                Some(count) => total += count,
                None if !is_told => {
                    self.awaits_arrival();
                    is_told = true;
                }
                None if total != 0 => return Ok(Some(total)),
                None if self.is_ended() => is_told = false,
                None => return Ok(None),
            }
            if total == into.len() {
                return Ok(Some(total));
            }
        }
    }

    /// Has its poller told of the next arrival.
    fn awaits_arrival(&self) {
        // Until then the socket tells of the greeting.
        let Some(rings) = self.rings() else {
            return;
        };
        self.arrival_rung.store(true, Ordering::Relaxed);
        let word = &rings.incoming.reader.0.waits;
        word.store(wait::WATCHES, Ordering::Relaxed);
        // SYNC: as in `read_after_sleep`.
        fence(Ordering::SeqCst);
    }

    /// Says that a poller watches [`SharedStream::arrival`] from now on; whether there is something to read already, which it is not told of.
    pub fn begin_watch(&self) -> bool {
        self.awaits_arrival();
        self.has_something()
    }

    fn has_something(&self) -> bool {
        let Some(Rings { incoming: ring, .. }) = self.rings() else {
            return false;
        };
        self.closed.load(Ordering::Relaxed)
            || ring.written.0.ended.load(Ordering::Acquire) != 0
            || ring.waiting(self.read.load(Ordering::Relaxed)) != Ok(0)
    }

    /// Whether anything can be read now: octets, the peer's end or an error. Takes nothing out.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.has_something()
            || self.is_ended()
            || self.shared.get().is_none() && is_readable_now(self)
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

/// A writer that waits does so for a full ring, and is woken when half of it is free.
fn tell_of_room(rings: Rings<'_>) {
    // SYNC: pairs with the fence in `awaits_room`: it finds the room, or we that it waits.
    fence(Ordering::SeqCst);
    ring_for(&rings.incoming.writer_waits.0, rings.room);
}

fn broken(_: Spoiled) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// Wakes whoever waits by this word, in the way it waits.
fn ring_for(word: &AtomicU32, socket: &OwnedFd) {
    if word.load(Ordering::Relaxed) == wait::AWAKE {
        return;
    }
    match word.swap(wait::AWAKE, Ordering::AcqRel) {
        wait::SLEEPS => {
            let _nobody_sleeps = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
        }
        wait::WATCHES => {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            // A socket that is full is readable already.
            let _full_or_ended = net::send(socket, &[0], flags);
        }
        _ => {}
    }
}

/// Wakes a thread of this process that sleeps by this word.
fn wake(word: &AtomicU32) {
    word.store(wait::AWAKE, Ordering::SeqCst);
    let _nobody_sleeps = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Sleeps until somebody rings, which counts as in vain until something is found; false where the time has passed.
fn sleep(word: &AtomicU32, limit: Duration, vain_wakes: &mut u32) -> bool {
    if *vain_wakes >= VAIN_WAKES_MAX {
        std::thread::park_timeout(VAIN_WAKE_REST.min(limit));
        return false;
    }
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let slept = futex::wait(word, futex::Flags::empty(), wait::SLEEPS, Some(&limit));
    let is_woken = slept != Err(Errno::TIMEDOUT);
    *vain_wakes += u32::from(is_woken);
    is_woken
}

fn remaining(deadline_ns: Option<u64>) -> io::Result<Duration> {
    let Some(deadline_ns) = deadline_ns else {
        return Ok(DEATH_LOOK);
    };
    match deadline_ns.saturating_sub(monotonic_ns()) {
        0 => Err(io::ErrorKind::TimedOut.into()),
        remaining_ns => Ok(Duration::from_nanos(remaining_ns)),
    }
}

/// Takes out the octets that told of something.
fn drain(socket: impl AsFd) {
    let _ended = net::recv(socket, &mut [0_u8; 64][..], RecvFlags::DONTWAIT);
}

fn wait_for_greeting(socket: &OwnedFd, limit: Duration) {
    let deadline_ns =
        monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let _not_in_time = wait_for(socket, PollFlags::IN, Some(deadline_ns));
}

fn events(socket: &OwnedFd) -> PollFlags {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut asked = [PollFd::new(socket, PollFlags::RDHUP)];
    match poll(&mut asked, Some(&now)) {
        Ok(_) => asked[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

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

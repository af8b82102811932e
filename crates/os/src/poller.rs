//! Waiting for many descriptors at once (epoll), edge-triggered: each event notifies one waiting thread, once.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll;

/// The events that a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Octets (or a connection, or the peer's end) have arrived; notified once per arrival.
    Arrival,
    /// As [`Interest::Arrival`], and notified at once if the descriptor is writable. This hands work that is already in
    /// memory to another waiting thread.
    Handover,
    /// Level-triggered arrival, for a listener: notified again as long as connections are pending.
    Pending,
    /// The descriptor has become writable; notified once per change, and at once if it is writable already.
    Room,
    /// Only errors and hang-ups, which cannot be masked.
    Nothing,
}

impl Interest {
    fn flags(self) -> epoll::EventFlags {
        let arrival = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        match self {
            Self::Arrival => arrival,
            Self::Handover => arrival | epoll::EventFlags::OUT,
            Self::Pending => epoll::EventFlags::IN,
            Self::Room => epoll::EventFlags::OUT | epoll::EventFlags::ET,
            Self::Nothing => epoll::EventFlags::ET,
        }
    }
}

/// The event that ended one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token with which its source is watched.
    pub token: u64,
    /// Whether the peer has ended or the connection has failed: further reads reach the end and do not wait.
    pub ended: bool,
}

/// An epoll descriptor. All methods take `&self`: several threads may wait in one poller, and each event wakes one of
/// them.
#[derive(Debug)]
pub struct Poller {
    fd: OwnedFd,
}

impl Poller {
    /// Creates an empty poller, close-on-exec.
    ///
    /// # Errors
    /// The kernel's error, most often that descriptors have run out.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            fd: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Watches `source`; its events carry `token`.
    ///
    /// # Errors
    /// The kernel's error: already watched, or the limit of watches is reached.
    pub fn watch(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.fd,
            source,
            epoll::EventData::new_u64(token),
            interest.flags(),
        )?)
    }

    /// Changes the events that `source` is watched for. A condition that already holds is notified again.
    ///
    /// # Errors
    /// The kernel's error: not watched.
    pub fn rewatch(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(
            &self.fd,
            source,
            epoll::EventData::new_u64(token),
            interest.flags(),
        )?)
    }

    /// Stops watching `source`.
    ///
    /// # Errors
    /// The kernel's error: not watched.
    pub fn forget(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, source)?)
    }

    /// Waits for one event and returns it. Returns `None` after `timeout` or a signal.
    ///
    /// # Errors
    /// The kernel's error for an invalid wait.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<Event>> {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 1];
        let told = self.wait_in(&mut events, timeout)?;
        Ok(told.first().map(event_of))
    }

    /// Waits for events and puts them into `events`, at most [`EVENTS_MAX`]. Returns their number, 0 after `timeout` or
    /// a signal.
    ///
    /// # Errors
    /// The kernel's error for an invalid wait.
    pub fn wait_many(&self, events: &mut [Event], timeout: Option<Duration>) -> io::Result<usize> {
        let mut all = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_MAX];
        let room = events.len().min(EVENTS_MAX);
        let told = self.wait_in(&mut all[..room], timeout)?;
        for (place, event) in events.iter_mut().zip(&*told) {
            *place = event_of(event);
        }
        Ok(told.len())
    }

    fn wait_in<'e>(
        &self,
        events: &'e mut [MaybeUninit<epoll::Event>],
        timeout: Option<Duration>,
    ) -> io::Result<&'e mut [epoll::Event]> {
        let timeout = timeout.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_nanos()),
        });
        match epoll::wait(&self.fd, events, timeout.as_ref()) {
            Ok((told, _)) => Ok(told),
            Err(rustix::io::Errno::INTR) => Ok(&mut []),
            Err(error) => Err(error.into()),
        }
    }
}

/// Events that one call returns. They stand on the stack.
pub const EVENTS_MAX: usize = 32;

fn event_of(event: &epoll::Event) -> Event {
    let (flags, data) = (event.flags, event.data);
    let ends = epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
    Event {
        token: data.u64(),
        ended: flags.intersects(ends),
    }
}

impl AsFd for Poller {
    /// Readable while an event is pending: one poller can watch another.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Wake;

    fn told(poller: &Poller) -> Option<u64> {
        poller
            .wait(Some(Duration::ZERO))
            .unwrap()
            .map(|event| event.token)
    }

    #[test]
    fn an_edge_is_told_once_and_again_after_rewatch() {
        let poller = Poller::new().unwrap();
        let wake = Wake::new().unwrap();
        poller.watch(&wake, 7, Interest::Arrival).unwrap();
        wake.notify();
        assert_eq!(told(&poller), Some(7));
        assert_eq!(told(&poller), None);
        poller.rewatch(&wake, 8, Interest::Arrival).unwrap();
        assert_eq!(told(&poller), Some(8));
    }

    #[test]
    fn many_events_are_taken_by_one_wait_and_each_once() {
        let poller = Poller::new().unwrap();
        let wakes: [Wake; 3] = std::array::from_fn(|_| Wake::new().unwrap());
        for (wake, token) in wakes.iter().zip(1..) {
            poller.watch(wake, token, Interest::Arrival).unwrap();
            wake.notify();
        }
        let none = Event {
            token: 0,
            ended: false,
        };
        let mut events = [none; 2];
        let mut tokens = Vec::new();
        for count in [2, 1, 0] {
            let told = poller.wait_many(&mut events, Some(Duration::ZERO));
            assert_eq!(told.unwrap(), count);
            tokens.extend(events[..count].iter().map(|event| event.token));
        }
        tokens.sort_unstable();
        assert_eq!(tokens, [1, 2, 3]);
    }

    #[test]
    fn a_handover_is_told_without_any_arrival() {
        let poller = Poller::new().unwrap();
        let wake = Wake::new().unwrap();
        poller.watch(&wake, 7, Interest::Nothing).unwrap();
        assert_eq!(told(&poller), None);
        poller.rewatch(&wake, 7, Interest::Handover).unwrap();
        assert_eq!(told(&poller), Some(7));
        poller.forget(&wake).unwrap();
        assert_eq!(told(&poller), None);
    }

    #[test]
    fn a_poller_within_a_poller_is_told_until_all_it_knows_has_been_taken() {
        let (outer, inner) = (Poller::new().unwrap(), Poller::new().unwrap());
        let wakes = [Wake::new().unwrap(), Wake::new().unwrap()];
        outer.watch(&inner, 9, Interest::Pending).unwrap();
        assert_eq!(told(&outer), None);
        for (wake, token) in wakes.iter().zip(1..) {
            inner.watch(wake, token, Interest::Room).unwrap();
        }
        for token in [1, 2] {
            assert_eq!(told(&outer), Some(9));
            assert_eq!(told(&inner), Some(token));
        }
        assert_eq!(told(&outer), None);
    }

    #[test]
    fn a_pending_source_is_told_until_it_is_drained() {
        let poller = Poller::new().unwrap();
        let wake = Wake::new().unwrap();
        poller.watch(&wake, 1, Interest::Pending).unwrap();
        wake.notify();
        assert_eq!(told(&poller), Some(1));
        assert_eq!(told(&poller), Some(1));
        wake.clear();
        assert_eq!(told(&poller), None);
    }
}

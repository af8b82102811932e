//! Waiting for many descriptors at once (epoll), edge-triggered: each fact is told to one waiting thread, once.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll;

/// What a descriptor is watched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Octets (or a connection, or the peer's end) have arrived; told once per arrival.
    Arrival,
    /// As [`Interest::Arrival`], and told at once again where the descriptor can be written: a way to hand
    /// work that is already in memory to another waiting thread.
    Handover,
    /// Level-triggered arrival, for a listener: told again as long as connections wait.
    Pending,
    /// Room to write into has come; told once per time, and at once where there is some.
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

/// What one wait was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token its source was watched with.
    pub token: u64,
    /// The peer has ended or the connection has failed: reading on will come to an end, not to a wait.
    pub ended: bool,
}

/// An epoll descriptor. All methods take `&self`: several threads may wait in one poller, and each event wakes one of them.
#[derive(Debug)]
pub struct Poller {
    fd: OwnedFd,
}

impl Poller {
    /// Makes an empty poller, close-on-exec.
    ///
    /// # Errors
    /// What the kernel answers, most often that descriptors have run out.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            fd: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Watches `source`; `token` comes back with its events.
    ///
    /// # Errors
    /// What the kernel answers: already watched, or the limit of watches is reached.
    pub fn watch(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(
            &self.fd,
            source,
            epoll::EventData::new_u64(token),
            interest.flags(),
        )?)
    }

    /// Changes what `source` is watched for. A fact that already holds is told anew.
    ///
    /// # Errors
    /// What the kernel answers: not watched.
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
    /// What the kernel answers: not watched.
    pub fn forget(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, source)?)
    }

    /// Waits for one event and returns it; `None` when `timeout` has passed or a signal came.
    ///
    /// # Errors
    /// What the kernel answers to a wait that cannot be waited.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<Option<Event>> {
        let timeout = timeout.map(|t| Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_nanos()),
        });
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 1];
        match epoll::wait(&self.fd, &mut events[..], timeout.as_ref()) {
            Ok((told, _)) => Ok(told.first().map(|event| {
                let (flags, data) = (event.flags, event.data);
                let ends =
                    epoll::EventFlags::RDHUP | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                Event {
                    token: data.u64(),
                    ended: flags.intersects(ends),
                }
            })),
            Err(rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Poller {
    /// Readable while something can be told: a poller can be watched by another.
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

//! The far end: answers questions, with the kernel's stamps of the exchange before.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use deckwatch_os::{clock, socket, stamp};

use super::datagram::{Datagram, SIZE, WireSync};
use super::local::Stamper;
use crate::limits::{
    CLOCK_DATAGRAMS_A_TURN_MAX, CLOCK_PROBERS_MAX, STAMPS_BEGIN_MAX, STOP_LOOK, SYNC_INTERVAL,
};

/// Answers the questions of any number of probers.
#[derive(Debug)]
pub struct Responder {
    socket: UdpSocket,
    address: SocketAddr,
    stamper: Stamper,
    /// The last exchange of each prober, the longest silent first.
    before: Vec<Exchanged>,
    /// The kernel's count of the next datagram.
    id: u32,
    sync: WireSync,
    sync_read: Instant,
    answered: u64,
    ignored: u64,
}

/// The far stamps of an exchange.
#[derive(Clone, Copy, Debug)]
struct Exchanged {
    prober: (SocketAddr, u64),
    sequence: u64,
    t2_ns: i64,
    t3_ns: i64,
}

impl Responder {
    /// Listens at an address; the kernel chooses the port 0.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        stamp::stamp_datagrams(&socket)?;
        // Without stamps the exchanges do not count; each datagram shows by itself.
        let _ = stamp::await_stamps(STAMPS_BEGIN_MAX);
        let stamper = Stamper::new();
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            sync: stamper.wire_sync(),
            stamper,
            before: Vec::with_capacity(CLOCK_PROBERS_MAX),
            id: 0,
            sync_read: Instant::now(),
            answered: 0,
            ignored: 0,
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Questions answered.
    #[must_use]
    pub const fn answered(&self) -> u64 {
        self.answered
    }

    /// How often this machine's clock was set meanwhile.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.stamper.steps()
    }

    /// Datagrams that are no questions.
    #[must_use]
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Waits for questions, at most for `patience`, and answers them.
    pub fn turn(&mut self, patience: Duration) {
        let patience_ns = i64::try_from(patience.min(STOP_LOOK).as_nanos()).unwrap_or(0);
        let until_ns = clock::monotonic_ns() + patience_ns;
        // A report that is left in the error queue would end each wait at once.
        while let Ok(Some(_)) = stamp::take_report(&self.socket) {}
        socket::wait_readable([self.socket.as_fd()].into_iter(), until_ns);
        if self.sync_read.elapsed() > SYNC_INTERVAL {
            self.sync = self.stamper.wire_sync();
            self.sync_read = Instant::now();
        }
        for _ in 0..CLOCK_DATAGRAMS_A_TURN_MAX {
            let mut octets = [0; SIZE + 1];
            let Ok((received, from)) = stamp::receive_from(&self.socket, &mut octets) else {
                return;
            };
            let question = Datagram::parse_question(&octets[..received.len]);
            match (question, from) {
                (Some(question), Some(from)) => {
                    self.answer(&question, from, received.stamp_realtime_ns);
                }
                _ => self.ignored += 1,
            }
        }
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.before.len()
    }

    fn answer(&mut self, question: &Datagram, from: SocketAddr, arrived_ns: Option<i64>) {
        let prober = (from, question.nonce.get());
        let known = self.before.iter().position(|one| one.prober == prober);
        let before = known.map(|index| self.before.remove(index));
        let stepped = self.stepped();
        let before = before.filter(|_| !stepped);
        let t2_ns = arrived_ns
            .filter(|_| !stepped)
            .and_then(|ns| self.stamper.convert(ns));
        let stamps = before.map(|one| (one.sequence, one.t2_ns, one.t3_ns));
        let answer = question.answer(stamps, self.sync);
        let sent = self
            .socket
            .send_to(zerocopy::IntoBytes::as_bytes(&answer), from);
        if sent.is_err() {
            // It depends on the kernel whether the datagram was counted.
            if stamp::stamp_datagrams(&self.socket).is_ok() {
                self.id = 0;
            }
            return;
        }
        self.answered += 1;
        let id = self.id;
        self.id = self.id.wrapping_add(1);
        let left_ns = self.transmit_stamp(id);
        let stepped = self.stepped();
        let t3_ns = left_ns
            .filter(|_| !stepped)
            .and_then(|ns| self.stamper.convert(ns));
        let Some((t2_ns, t3_ns)) = t2_ns.zip(t3_ns) else {
            return;
        };
        if self.before.len() == CLOCK_PROBERS_MAX {
            self.before.remove(0);
        }
        self.before.push(Exchanged {
            prober,
            sequence: question.sequence.get(),
            t2_ns,
            t3_ns,
        });
    }

    /// Reads the clocks again. Returns true after a step of CLOCK_REALTIME; all further answers report it.
    fn stepped(&mut self) -> bool {
        let stepped = self.stamper.renew();
        if stepped {
            self.sync = self.stamper.wire_sync();
        }
        stepped
    }

    /// Returns the stamp of a datagram that was just sent. The kernel takes it within the call that sends, unless the
    /// datagram waits for the address of the next host.
    fn transmit_stamp(&self, wanted: u32) -> Option<i64> {
        while let Ok(Some(report)) = stamp::take_report(&self.socket) {
            match report {
                stamp::Report::Stamp { id, realtime_ns } if id == wanted => {
                    return Some(realtime_ns);
                }
                _ => {}
            }
        }
        None
    }
}

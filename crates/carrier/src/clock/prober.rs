//! The near end: asks at random times, and makes exchanges of the stamps of both kernels.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;

use deckwatch_meter::clock::{Exchange, SyncState};
use deckwatch_os::{clock, random, socket, stamp};
use serde::{Deserialize, Serialize};
use zerocopy::IntoBytes as _;

use super::datagram::{Datagram, SIZE, WireSync};
use super::local::Stamper;
use crate::limits::{
    CLOCK_ANSWER_NS_MAX, CLOCK_DATAGRAMS_A_TURN_MAX, CLOCK_INTERVAL_NS, CLOCK_QUESTIONS_MAX,
    STAMPS_BEGIN_MAX,
};

/// Asks one responder.
#[derive(Debug)]
pub struct Prober {
    socket: UdpSocket,
    nonce: u64,
    stamper: Stamper,
    /// The kernel's count of the next datagram.
    id: u32,
    next: u64,
    next_ns: i64,
    chance: u64,
    asked: VecDeque<Asked>,
    counts: Counts,
    heard: Option<WireSync>,
}

/// A question whose exchange is not complete.
#[derive(Clone, Copy, Debug)]
struct Asked {
    sequence: u64,
    id: u32,
    /// When it was sent, for the time limit.
    sent_ns: i64,
    t1_ns: Option<i64>,
    t4_ns: Option<i64>,
    is_answered: bool,
    /// It followed an answer at once.
    is_second: bool,
}

/// What became of the questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Questions sent.
    pub asked: u64,
    /// Questions that were answered.
    pub answered: u64,
    /// Questions without an answer within a second.
    pub lost: u64,
    /// Exchanges with all four stamps.
    pub exchanges: u64,
    /// Datagrams that are no answers to questions of this prober.
    pub ignored: u64,
    /// Questions that this host or the other one refused.
    pub refused: u64,
    /// How often this machine's clock was set.
    pub steps: u64,
}

impl Prober {
    /// Prepares to ask the responder at an address.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn connect(to: SocketAddr, from: Option<IpAddr>) -> io::Result<Self> {
        let any = match to {
            SocketAddr::V4(_) => IpAddr::from([0; 4]),
            SocketAddr::V6(_) => IpAddr::from([0; 16]),
        };
        let socket = UdpSocket::bind((from.unwrap_or(any), 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        stamp::stamp_datagrams(&socket)?;
        // Without stamps the exchanges do not count; each datagram shows by itself.
        let _ = stamp::await_stamps(STAMPS_BEGIN_MAX);
        let drawn = u128::from_ne_bytes(random::identity());
        Ok(Self {
            socket,
            nonce: drawn as u64,
            stamper: Stamper::new(),
            id: 0,
            next: 0,
            next_ns: clock::monotonic_ns(),
            chance: (drawn >> 64) as u64 | 1,
            asked: VecDeque::with_capacity(CLOCK_QUESTIONS_MAX),
            counts: Counts::default(),
            heard: None,
        })
    }

    /// What became of the questions so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The state of the far clock in the last answer.
    #[must_use]
    pub fn far_sync(&self) -> Option<SyncState> {
        self.heard.map(|sync| sync.state())
    }

    /// Upper bound of the error of two converted stamps, one of each machine, nanoseconds.
    #[must_use]
    pub fn stamp_error_ns(&self) -> u64 {
        let far_ns = self.heard.map_or(0, |sync| sync.stamp_error_ns.get());
        self.stamper.error_ns() + u64::from(far_ns)
    }

    /// Returns by how much the far CLOCK_REALTIME is ahead, where the far CLOCK_MONOTONIC is `ahead_ns` ahead.
    #[must_use]
    pub fn realtime_ahead_ns(&self, ahead_ns: i64) -> Option<i64> {
        let far_ns = self.heard?.realtime_less_monotonic_ns.get();
        let near_ns = self.stamper.realtime_less_monotonic_ns();
        ahead_ns.checked_add(far_ns.checked_sub(near_ns)?)
    }

    /// Asks when it is time, and takes answers, until CLOCK_MONOTONIC reaches `until_ns`. Each complete exchange goes
    /// to `note`.
    pub fn run(&mut self, until_ns: i64, mut note: impl FnMut(Exchange)) {
        loop {
            let now_ns = clock::monotonic_ns();
            if now_ns >= until_ns {
                return;
            }
            if now_ns >= self.next_ns {
                // The intervals are random: a periodic load must not meet each question at the same phase. After a
                // delay no question is sent in addition.
                let interval = (-self.even().ln()).min(INTERVALS_MAX);
                self.next_ns = now_ns + (interval * CLOCK_INTERVAL_NS as f64) as i64;
                self.ask(false);
            }
            self.take_reports();
            let wait_ns = self.next_ns.min(until_ns);
            socket::wait_readable([self.socket.as_fd()].into_iter(), wait_ns);
            self.take_answers(&mut note);
            self.forget();
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.asked.len()
    }

    fn ask(&mut self, is_second: bool) {
        self.renew();
        let sequence = self.next;
        self.next += 1;
        self.counts.asked += 1;
        let question = Datagram::question(self.nonce, sequence);
        if self.socket.send(question.as_bytes()).is_err() {
            // A refusal of an earlier question, or no room. It depends on the kernel whether this one was counted.
            self.counts.refused += 1;
            if stamp::stamp_datagrams(&self.socket).is_ok() {
                self.id = 0;
                self.asked.clear();
            }
            return;
        }
        if self.asked.len() == CLOCK_QUESTIONS_MAX {
            self.drop_first();
        }
        self.asked.push_back(Asked {
            sequence,
            id: self.id,
            sent_ns: clock::monotonic_ns(),
            t1_ns: None,
            t4_ns: None,
            is_answered: false,
            is_second,
        });
        self.id = self.id.wrapping_add(1);
    }

    /// Reads the clocks again. After a step of CLOCK_REALTIME the stamps of both its sides do not belong together.
    fn renew(&mut self) {
        if self.stamper.renew() {
            self.counts.steps += 1;
            for asked in &mut self.asked {
                (asked.t1_ns, asked.t4_ns) = (None, None);
                // Stamps that come from now on are not taken either.
                asked.is_answered = true;
            }
        }
    }

    /// Takes transmit stamps.
    fn take_reports(&mut self) {
        let mut is_renewed = false;
        for _ in 0..CLOCK_DATAGRAMS_A_TURN_MAX {
            let Ok(Some(report)) = stamp::take_report(&self.socket) else {
                return;
            };
            let stamp::Report::Stamp { id, realtime_ns } = report else {
                continue;
            };
            if !is_renewed {
                is_renewed = true;
                self.renew();
            }
            let t1_ns = self.stamper.convert(realtime_ns);
            let mut asked = self.asked.iter_mut();
            if let Some(asked) = asked.find(|asked| asked.id == id && !asked.is_answered) {
                asked.t1_ns = t1_ns;
            }
        }
    }

    fn take_answers(&mut self, note: &mut impl FnMut(Exchange)) {
        for _ in 0..CLOCK_DATAGRAMS_A_TURN_MAX {
            let mut octets = [0; SIZE + 1];
            let received = match stamp::receive(&self.socket, &mut octets) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.counts.refused += 1;
                    continue;
                }
                Err(_) => return,
            };
            let answer = Datagram::parse_answer(&octets[..received.len], self.nonce);
            let Some(answer) = answer.filter(|answer| self.is_awaited(answer)) else {
                self.counts.ignored += 1;
                continue;
            };
            // A transmit stamp may come after the answer to its datagram.
            self.take_reports();
            self.renew();
            self.take_answer(&answer, received.stamp_realtime_ns, note);
        }
    }

    /// Whether this is the first answer to a question.
    fn is_awaited(&self, answer: &Datagram) -> bool {
        let sequence = answer.sequence.get();
        let is = |asked: &&Asked| asked.sequence == sequence;
        let asked = self.asked.iter().find(is);
        asked.is_some_and(|asked| asked.t4_ns.is_none())
    }

    fn take_answer(
        &mut self,
        answer: &Datagram,
        stamp_ns: Option<i64>,
        note: &mut impl FnMut(Exchange),
    ) {
        let t4_ns = stamp_ns.and_then(|ns| self.stamper.convert(ns));
        let sequence = answer.sequence.get();
        let mut again = false;
        if let Some(asked) = self.asked.iter_mut().find(|one| one.sequence == sequence) {
            self.counts.answered += u64::from(!asked.is_answered);
            asked.is_answered = true;
            asked.t4_ns = t4_ns;
            again = !asked.is_second;
        }
        self.heard = Some(answer.sync);
        if again {
            // Before the first question the processor did something else, which adds microseconds to the delay of that
            // question. The second question, like each answer, leaves a processor that has just received.
            self.ask(true);
        }
        self.complete(answer).into_iter().for_each(note);
    }

    /// Returns the exchange whose far stamps an answer has.
    fn complete(&mut self, answer: &Datagram) -> Option<Exchange> {
        let before = answer.before.get();
        let index = self.asked.iter().position(|one| one.sequence == before)?;
        let Asked { t1_ns, t4_ns, .. } = self.asked[index];
        let (t1_ns, t4_ns) = t1_ns.zip(t4_ns)?;
        self.asked.remove(index);
        self.counts.exchanges += 1;
        Some(Exchange {
            t1_ns,
            t2_ns: answer.t2_ns.get(),
            t3_ns: answer.t3_ns.get(),
            t4_ns,
        })
    }

    /// Gives up questions that wait for too long.
    fn forget(&mut self) {
        let oldest_ns = clock::monotonic_ns() - CLOCK_ANSWER_NS_MAX;
        while self
            .asked
            .front()
            .is_some_and(|one| one.sent_ns < oldest_ns)
        {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let first = self.asked.pop_front();
        self.counts.lost += u64::from(first.is_some_and(|one| !one.is_answered));
    }

    /// Returns a random number between 0 and 1 (xorshift).
    fn even(&mut self) -> f64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        ((self.chance >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

/// The longest interval between two questions, in mean ones.
const INTERVALS_MAX: f64 = 5.0;

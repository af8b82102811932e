//! One way of a link: the queue before it, its clock, and what it does to the frames that it carries.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use super::ledger::Counts;
use super::{Band, Moving};
use crate::layout::Node;
use crate::limits::RELAY_FRAMES_IN_FLIGHT_MAX;
use crate::link::LinkSpec;

/// A line from one node to the next. It sends one frame at a time; what is on the line is never interrupted.
#[derive(Debug)]
pub(super) struct Line<F> {
    pub(super) spec: LinkSpec,
    /// The node at its end.
    pub(super) to: Node,
    /// The node at its beginning.
    pub(super) from: Node,
    pub(super) counts: Counts,
    bands: [VecDeque<Moving<F>>; 3],
    /// Frames that a band holds.
    room: usize,
    /// When the line has sent what it was given: nanoseconds, and the part of one that is left, times the rate.
    free_at_ns: u64,
    free_rest: u64,
    /// Frames that have not left it yet: two in the moment in which one leaves and the next one begins.
    carrying: usize,
    /// The next frame is chosen when the line is free.
    choosing: bool,
    held: bool,
    /// Drops the first frame and every n-th after it.
    lose: Option<(NonZeroU32, u32)>,
    random: Random,
    /// When the last frame that kept its order reached the end.
    reached_at_ns: u64,
    in_flight: usize,
}

/// What a line does next.
pub(super) enum Turn<F> {
    /// It waits for a frame or for its release.
    Nothing,
    /// It chooses a frame at this time, when it is free.
    Choose(u64),
    /// It sends a frame, whose last bit leaves at `until_ns`, and chooses the next then, if one waits.
    Send {
        until_ns: u64,
        moving: Moving<F>,
        another: bool,
    },
}

impl<F: Clone> Line<F> {
    pub(super) fn new(spec: LinkSpec, ends: [Node; 2], seed: u64) -> Self {
        // A host's own queue has let the frame out already, in the order of the host's priorities.
        let room = match ends[0] {
            Node::Host(_) => crate::limits::HOST_QUEUE_FRAMES,
            Node::Switch(_) => spec.queue_frames,
        };
        Self {
            spec,
            from: ends[0],
            to: ends[1],
            counts: Counts::default(),
            bands: [const { VecDeque::new() }; 3],
            room: room as usize,
            free_at_ns: 0,
            free_rest: 0,
            carrying: 0,
            choosing: false,
            held: false,
            lose: None,
            random: Random(seed),
            reached_at_ns: 0,
            in_flight: 0,
        }
    }

    /// Queues a frame, or drops it.
    pub(super) fn offer(&mut self, at_ns: u64, moving: Moving<F>) -> Turn<F> {
        self.counts.offered += 1;
        if self.is_lost_on_purpose() {
            self.counts.lost_on_purpose += 1;
            return Turn::Nothing;
        }
        if moving.packet_bytes > self.spec.mtu_bytes {
            self.counts.too_long += 1;
            return Turn::Nothing;
        }
        let band = match self.from {
            Node::Host(_) => Band::Middle,
            Node::Switch(_) => moving.band,
        };
        let queue = &mut self.bands[band as usize];
        if queue.len() >= self.room {
            self.counts.queue_full += 1;
            return Turn::Nothing;
        }
        queue.push_back(moving);
        self.turn(at_ns)
    }

    /// The time has come to choose the next frame.
    pub(super) fn choose(&mut self, at_ns: u64) -> Turn<F> {
        self.choosing = false;
        self.turn(at_ns)
    }

    /// Puts the first frame of the highest priority on the line, if the line is free.
    fn turn(&mut self, at_ns: u64) -> Turn<F> {
        if self.choosing || self.held {
            return Turn::Nothing;
        }
        let Some(queue) = self.bands.iter_mut().find(|queue| !queue.is_empty()) else {
            return Turn::Nothing;
        };
        if at_ns < self.free_at_ns {
            self.choosing = true;
            return Turn::Choose(self.free_at_ns);
        }
        let Some(moving) = queue.pop_front() else {
            return Turn::Nothing;
        };
        self.occupy(at_ns, moving.packet_bytes);
        self.choosing = self.bands.iter().any(|queue| !queue.is_empty());
        Turn::Send {
            until_ns: self.free_at_ns,
            moving,
            another: self.choosing,
        }
    }

    /// The line is busy with a frame from `at_ns` on.
    fn occupy(&mut self, at_ns: u64, packet_bytes: u32) {
        if at_ns > self.free_at_ns {
            self.free_at_ns = at_ns;
            self.free_rest = 0;
        }
        let octets = self.spec.link_layer.wire_octets(packet_bytes.into());
        let rate = u128::from(self.spec.rate_bits_per_s);
        let total = u128::from(octets) * 8 * NS_PER_S + u128::from(self.free_rest);
        let whole_ns = u64::try_from(total / rate).unwrap_or(u64::MAX);
        self.free_at_ns = self.free_at_ns.saturating_add(whole_ns);
        self.free_rest = u64::try_from(total % rate).unwrap_or(0);
        self.carrying += 1;
    }

    /// The frame on the line has left. Returns when it reaches the end, and when its duplicate does.
    pub(super) fn sent(&mut self, at_ns: u64) -> [Option<u64>; 2] {
        self.carrying -= 1;
        let impairment = self.spec.impairment;
        if self.random.hits(impairment.loss) {
            self.counts.lost += 1;
            return [None; 2];
        }
        let copies = 1 + usize::from(self.random.hits(impairment.duplicate));
        self.counts.duplicated += copies as u64 - 1;
        let mut arrivals = [None; 2];
        for arrival in &mut arrivals[..copies] {
            if self.in_flight >= RELAY_FRAMES_IN_FLIGHT_MAX {
                self.counts.queue_full += 1;
                continue;
            }
            self.in_flight += 1;
            *arrival = Some(self.arrival(at_ns));
        }
        arrivals
    }

    fn arrival(&mut self, at_ns: u64) -> u64 {
        let impairment = self.spec.impairment;
        let jitter_ns = self.random.up_to(impairment.jitter_ns);
        let at_ns = at_ns + impairment.delay_ns + jitter_ns;
        if self.random.hits(impairment.reorder) {
            return at_ns + impairment.reorder_delay_ns;
        }
        self.reached_at_ns = self.reached_at_ns.max(at_ns);
        self.reached_at_ns
    }

    pub(super) fn arrived(&mut self) {
        self.in_flight -= 1;
        self.counts.arrived += 1;
    }

    pub(super) fn hold(&mut self) {
        self.held = true;
    }

    pub(super) fn release(&mut self, at_ns: u64) -> Turn<F> {
        self.held = false;
        self.turn(at_ns)
    }

    pub(super) fn lose(&mut self, every_nth: Option<NonZeroU32>) {
        self.lose = every_nth.map(|every_nth| (every_nth, 0));
    }

    /// Frames in the queue, on the line and behind it.
    pub(super) fn inside(&self) -> u64 {
        let queued: usize = self.bands.iter().map(VecDeque::len).sum();
        (queued + self.carrying + self.in_flight) as u64
    }

    fn is_lost_on_purpose(&mut self) -> bool {
        let Some((every_nth, seen)) = &mut self.lose else {
            return false;
        };
        let lost = *seen == 0;
        *seen = (*seen + 1) % every_nth.get();
        lost
    }
}

/// Random numbers from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number above 0 and below 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn hits(&mut self, share: f64) -> bool {
        // A share of 0 draws no number, so that a link that loses nothing behaves as one without the question.
        share > 0.0 && self.share() < share
    }

    fn up_to(&mut self, max: u64) -> u64 {
        if max == 0 {
            return 0;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a u64 is one"
        )]
        let part = (self.share() * max as f64) as u64;
        part
    }
}

const NS_PER_S: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_split_mix_64() {
        let mut random = Random(1_234_567);
        // The first numbers that its authors' program prints for this seed.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([(); 5].map(|()| random.next()), expected);
    }

    #[test]
    fn a_share_is_above_0_and_below_1_even_of_the_smallest_and_the_largest_number() {
        // The step from 0 leads back to 0, and 0 is mixed to 0.
        let mut least = Random(0_u64.wrapping_sub(0x9E37_79B9_7F4A_7C15));
        assert_eq!(least.share(), 0.5 / (1_u64 << 53) as f64);
        let mut random = Random(3);
        let shares: Vec<f64> = (0..10_000).map(|_| random.share()).collect();
        assert!(shares.iter().all(|share| 0.0 < *share && *share < 1.0));
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
    }

    #[test]
    fn a_share_of_0_draws_no_number() {
        let mut random = Random(3);
        assert!(!random.hits(0.0));
        assert_eq!(random.up_to(0), 0);
        assert_eq!(random.0, 3);
        assert!(random.hits(1.0));
        assert_ne!(random.0, 3);
    }

    #[test]
    fn a_number_below_the_share_hits_and_the_share_itself_does_not() {
        let drawn = Random(3).share();
        assert!(!Random(3).hits(drawn));
        assert!(Random(3).hits(drawn.next_up()));
    }
}

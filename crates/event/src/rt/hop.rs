//! Other channels, seen from one channel: which consumers lead to them, and which events have been here before.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::ObjectRef;
use deckwatch_sync::PiMutex;

use crate::deckwatch_federation::{EventId, GatewayConsumerRef};
use crate::limits::{ORIGIN_WINDOW, ORIGINS_MAX};
use crate::rtec_event_channel_admin::{ConsumerQOS, ProxyPushConsumerRef};

/// Where a consumer leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// To no other channel.
    None,
    /// To a gateway that takes one off the `ttl` by itself, as TAO's do.
    Gateway,
    /// To a proxy of another channel, with no gateway between that would take one off.
    Proxy,
    /// To a gateway of the channel with this identity.
    Channel(u64),
}

impl Hop {
    pub(super) fn of(consumer: &ObjectRef, qos: &ConsumerQOS) -> Self {
        let named = || {
            qos.dependencies
                .first()
                .map_or(0, |first| first.event.header.ec_send_time)
        };
        match consumer.type_id() {
            GatewayConsumerRef::REPOSITORY_ID => Self::Channel(named()),
            ProxyPushConsumerRef::REPOSITORY_ID => Self::Proxy,
            _ if qos.is_gateway => Self::Gateway,
            _ => Self::None,
        }
    }

    /// The operation that takes its events.
    pub(super) const fn operation(self) -> &'static str {
        match self {
            Self::Channel(_) => "forward",
            Self::None | Self::Gateway | Self::Proxy => "push",
        }
    }
}

/// A channel's part in a federation.
pub(super) struct Hops {
    identity: u64,
    last: AtomicU64,
    seen: PiMutex<Seen>,
}

impl Hops {
    pub(super) fn new() -> Self {
        Self {
            identity: drawn_identity(),
            last: AtomicU64::new(0),
            seen: PiMutex::default(),
        }
    }

    /// The channel's identity among federated channels; not 0.
    pub(super) const fn identity(&self) -> u64 {
        self.identity
    }

    /// The identity of an event that has none yet.
    pub(super) fn next_id(&self) -> EventId {
        EventId {
            channel: self.identity,
            number: self.last.fetch_add(1, Relaxed) + 1,
        }
    }

    /// Returns true for an event that has not been here before.
    pub(super) fn is_new(&self, id: EventId) -> bool {
        self.seen.lock("rt.seen").is_new(id)
    }
}

/// Draws the identity of a channel, or of a sender to a multicast group; not 0.
pub(crate) fn drawn_identity() -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = deckwatch_os::random::identity();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h]).max(1)
}

/// The events that have been here, by the channel that gave them their identity.
#[derive(Default)]
struct Seen {
    /// With the turn of their last event.
    origins: HashMap<u64, (Window, u64)>,
    /// Events looked up, as the time by which origins age.
    turn: u64,
}

/// The latest numbers of one origin.
pub(crate) struct Window {
    highest: u64,
    /// A bit for each of the last [`ORIGIN_WINDOW`] numbers, at its remainder.
    bits: [u64; WORDS],
}

const WORDS: usize = (ORIGIN_WINDOW / u64::BITS as u64) as usize;

impl Seen {
    fn is_new(&mut self, id: EventId) -> bool {
        self.turn += 1;
        if !self.origins.contains_key(&id.channel) && self.origins.len() >= ORIGINS_MAX {
            let oldest = self.origins.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(channel, _)| *channel) {
                self.origins.remove(&oldest);
            }
        }
        let (window, used) =
            (self.origins.entry(id.channel)).or_insert_with(|| (Window::at(id.number), 0));
        *used = self.turn;
        window.is_new(id.number)
    }
}

impl Window {
    /// A window that ends with this number and has seen none.
    pub(crate) const fn at(number: u64) -> Self {
        Self {
            highest: number,
            bits: [0; WORDS],
        }
    }

    /// The number with these low bits that is nearest to the highest.
    pub(crate) const fn nearest(&self, low: u32) -> u64 {
        let ahead = low.wrapping_sub(self.highest as u32).cast_signed();
        self.highest.saturating_add_signed(ahead as i64)
    }

    /// Returns true for a number that was seen, or that is too old to tell.
    pub(crate) const fn has(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        number <= self.highest
            && (self.highest - number >= ORIGIN_WINDOW || self.bits[word] & bit != 0)
    }

    /// Marks a number as seen. Returns false if it was, or if it is too old to tell.
    pub(crate) fn is_new(&mut self, number: u64) -> bool {
        if number > self.highest {
            if number - self.highest >= ORIGIN_WINDOW {
                self.bits.fill(0);
            } else {
                for passed in self.highest + 1..=number {
                    let (word, bit) = place(passed);
                    self.bits[word] &= !bit;
                }
            }
            self.highest = number;
        } else if self.highest - number >= ORIGIN_WINDOW {
            return false;
        }
        let (word, bit) = place(number);
        let is_new = self.bits[word] & bit == 0;
        self.bits[word] |= bit;
        is_new
    }
}

const fn place(number: u64) -> (usize, u64) {
    let at = number % ORIGIN_WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(channel: u64, number: u64) -> EventId {
        EventId { channel, number }
    }

    #[test]
    fn event_is_new_once_in_any_order_within_the_window() {
        let mut seen = Seen::default();
        for number in [1, 3, 2, ORIGIN_WINDOW + 1, 2 * ORIGIN_WINDOW, u64::MAX] {
            assert!(seen.is_new(id(7, number)), "{number}");
            assert!(!seen.is_new(id(7, number)), "{number}");
        }
        assert!(seen.is_new(id(8, 1)), "each channel has its own numbers");
        assert!(
            !seen.is_new(id(7, 1)),
            "behind the window it counts as seen"
        );
        assert!(
            seen.is_new(id(7, u64::MAX - 1)),
            "the first was not in between"
        );
    }

    #[test]
    fn number_behind_a_window_that_has_seen_none_counts_as_seen() {
        let window = Window::at(2 * ORIGIN_WINDOW);
        assert!(window.has(ORIGIN_WINDOW));
        assert!(!window.has(ORIGIN_WINDOW + 1));
        assert!(!window.has(2 * ORIGIN_WINDOW + 1));
    }

    #[test]
    fn numbers_in_a_window_far_from_0_are_told_from_each_other() {
        for base in [5 * ORIGIN_WINDOW / 2, 1 << 40] {
            let mut window = Window::at(base);
            for number in (base..base + ORIGIN_WINDOW - 1).step_by(3) {
                assert!(!window.has(number) || number == base, "{number}");
                assert!(window.is_new(number), "{number}");
            }
            for number in (base + 1..base + ORIGIN_WINDOW - 1).step_by(3) {
                assert!(window.is_new(number), "{number}");
                assert!(!window.is_new(number), "{number}");
            }
            // A step as long as the window forgets all.
            let far = base + 3 * ORIGIN_WINDOW;
            assert!(window.is_new(far));
            assert!(!window.has(far - ORIGIN_WINDOW + 1));
            assert!(!window.is_new(far - ORIGIN_WINDOW));
            assert!(!window.is_new(far - ORIGIN_WINDOW - 1));
        }
        // A step of one less than the window keeps the first number.
        let mut window = Window::at(1);
        for number in [1, ORIGIN_WINDOW] {
            assert!(window.is_new(number));
        }
        assert!(!window.is_new(1));
    }

    #[test]
    fn places_in_the_window_are_used_again() {
        let mut seen = Seen::default();
        for number in 1..=3 * ORIGIN_WINDOW {
            assert!(seen.is_new(id(1, number)), "{number}");
        }
        assert!(seen.is_new(id(2, 1)));
        assert!(seen.is_new(id(2, ORIGIN_WINDOW)));
        assert!(seen.is_new(id(2, ORIGIN_WINDOW + 1)), "has the place of 1");
        assert!(!seen.is_new(id(2, ORIGIN_WINDOW)));
        assert!(!seen.is_new(id(2, 1)));
    }

    #[test]
    fn origins_are_bounded_and_the_one_that_was_quiet_longest_is_forgotten() {
        let mut seen = Seen::default();
        for channel in 1..=ORIGINS_MAX as u64 {
            seen.is_new(id(channel, 1));
        }
        assert!(!seen.is_new(id(1, 1)), "used again");
        seen.is_new(id(u64::MAX, 1));
        assert_eq!(seen.origins.len(), ORIGINS_MAX);
        assert!(!seen.is_new(id(1, 1)));
        assert!(seen.is_new(id(2, 1)), "2 was quiet longest");
    }

    #[test]
    fn each_channel_draws_its_own_identity_and_numbers_events_from_1() {
        let (one, other) = (Hops::new(), Hops::new());
        assert_ne!(one.identity(), other.identity());
        assert_eq!(one.next_id(), id(one.identity(), 1));
        assert_eq!(one.next_id(), id(one.identity(), 2));
    }
}

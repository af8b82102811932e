//! Channels on several hosts that pass events on to each other.
//!
//! A [`Gateway`] subscribes one channel at another, over IIOP. It learns from the channel's observers what the local
//! consumers want, and subscribes to just that: what nobody wants does not cross the network. For both directions each
//! channel has a gateway to the other. The remote channel may be TAO's.
//!
//! [`Multicast`] puts a channel on a UDP multicast group, in the form of TAO's: one datagram, or some fragments, reach
//! any number of channels. The sender does not know the subscriptions there, and a lost datagram is not sent again.
//!
//! # What ends an event's way
//!
//! * **The `ttl`.** Each way between two channels takes one off; an event with 0 reaches no other channel. A gateway
//!   of another kind (TAO's) takes one off by itself, and therefore receives the event unchanged.
//! * **The identity of the channel.** A gateway names its channel when it subscribes. A channel sends it no event that
//!   came from there, directly or not.
//! * **The identity of the event.** The first channel of Deckwatch that an event reaches gives it a number. A channel
//!   takes each number once, whatever the ways by which it arrives.
//!
//! Consumers of channels of Deckwatch get an event at most once, in any circle of channels. A channel of TAO does not
//! pass identities on, and neither does a group: an event that has crossed one may come back, as often as its `ttl`
//! allows. TAO's own rule, a `ttl` of 1, ends it after one way.

mod counters;
pub(crate) mod fragment;
mod gateway;
mod link;
pub(crate) mod multicast;
pub(crate) mod reassembly;

pub use counters::GatewayCounts;
pub use gateway::{Gateway, GatewayOptions};
pub use link::GatewayFailure;
pub use multicast::{Multicast, MulticastCounts, MulticastError, MulticastOptions};

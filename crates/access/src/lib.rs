//! Access rules: which peers may do what, on which object, with which events. One form for all services.
//!
//! A table is a list of permissions. What no rule permits is refused, so the order of the rules does not matter, and a
//! rule that is added never takes a permission away. Pure: no file, no socket, no clock.

#![forbid(unsafe_code)]

pub mod limits;
mod network;
mod ranges;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::IpAddr;

pub use network::{Network, NetworkError};
pub use ranges::{Range, Ranges};

/// A peer that asks, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Subject {
    /// An address. IPv4 addresses are not written as IPv6.
    Address(IpAddr),
    /// A user of this host.
    User(u32),
    /// A peer of which nothing is known. Rules for anyone permit it.
    Unknown,
}

/// What a rule permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Connect as a supplier, and push.
    Supply = 1,
    /// Connect as a consumer, and get events.
    Consume = 2,
    /// Look at counts, subscriptions and publications.
    Observe = 4,
    /// Create and destroy channels.
    Administer = 8,
}

impl Action {
    /// All actions, with the words of a file.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Supply, "supply"),
        (Self::Consume, "consume"),
        (Self::Observe, "observe"),
        (Self::Administer, "administer"),
    ];
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = Self::ALL.iter().find(|(action, _)| action == self);
        f.write_str(own.map_or("", |(_, word)| word))
    }
}

/// The peers of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Every peer.
    Anyone,
    /// The addresses of a network.
    Network(Network),
    /// A user of this host, over unix sockets and shared memory.
    User(u32),
}

impl Who {
    fn is(&self, subject: Subject) -> bool {
        match (self, subject) {
            (Self::Anyone, _) => true,
            (Self::Network(network), Subject::Address(address)) => network.contains(address),
            (Self::User(user), Subject::User(uid)) => *user == uid,
            _ => false,
        }
    }
}

/// The events that a peer asks for. `None` is any: it needs one rule that permits all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// A type.
    pub event_type: Option<i32>,
    /// A source.
    pub source: Option<i32>,
}

impl Events {
    /// All events.
    pub const ANY: Self = Self {
        event_type: None,
        source: None,
    };
}

/// One permission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its peers.
    pub who: Vec<Who>,
    /// What they may do.
    pub may: Vec<Action>,
    /// The names of the objects; `None` for all.
    pub on: Option<Vec<String>>,
    /// Types of events; `None` for all.
    pub types: Option<Ranges>,
    /// Sources of events; `None` for all.
    pub sources: Option<Ranges>,
}

impl Rule {
    fn is_for(&self, subject: Subject, action: Action, object: Option<&str>) -> bool {
        let is_on = |names: &Vec<String>| {
            object.is_some_and(|object| names.iter().any(|name| name == object))
        };
        self.may.contains(&action)
            && self.who.iter().any(|who| who.is(subject))
            && self.on.as_ref().is_none_or(is_on)
    }

    fn permits_events(&self, events: Events) -> bool {
        let is_in = |ranges: &Option<Ranges>, asked: Option<i32>| {
            ranges
                .as_ref()
                .is_none_or(|ranges| asked.is_some_and(|value| ranges.contains(value)))
        };
        is_in(&self.types, events.event_type) && is_in(&self.sources, events.source)
    }
}

/// The rules of one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    rules: Vec<Rule>,
}

impl Table {
    /// A table of these rules. Without a rule, nobody may do anything.
    #[must_use]
    pub const fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    /// Returns true if a rule permits the action on the object with all of these events. Does not allocate.
    #[must_use]
    pub fn permits(
        &self,
        subject: Subject,
        action: Action,
        object: Option<&str>,
        events: Events,
    ) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.is_for(subject, action, object) && rule.permits_events(events))
    }

    /// Returns true if a rule permits the action on the object with some events. Does not allocate.
    #[must_use]
    pub fn permits_some(&self, subject: Subject, action: Action, object: Option<&str>) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.is_for(subject, action, object))
    }
}

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subject<'n> {
    /// Its address. IPv4 addresses are not written as IPv6.
    pub address: Option<IpAddr>,
    /// The user that it runs as, if it is a process of this host over a unix socket or shared memory.
    pub user: Option<u32>,
    /// The name in its certificate.
    pub name: Option<&'n str>,
    /// Its address is one of this host's own. A loopback address always is.
    pub is_this_host: bool,
}

impl Subject<'_> {
    /// A peer of which nothing is known. Rules for anyone permit it.
    pub const UNKNOWN: Self = Self {
        address: None,
        user: None,
        name: None,
        is_this_host: false,
    };

    /// A peer at an address.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self {
            address: Some(address),
            is_this_host: address.is_loopback(),
            ..Self::UNKNOWN
        }
    }

    /// A user of this host.
    #[must_use]
    pub const fn user(uid: u32) -> Self {
        Self {
            user: Some(uid),
            ..Self::UNKNOWN
        }
    }
}

/// What a rule permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Connect as a supplier, and push.
    Supply,
    /// Connect as a consumer, and get events.
    Consume,
    /// Look at counts, subscriptions and publications.
    Observe,
    /// Create and destroy channels; destroy the root of names, sweep names.
    Administer,
    /// Resolve and list names.
    Resolve,
    /// Bind and unbind names, make and destroy contexts.
    Bind,
}

impl Action {
    /// All actions, with the words of a file.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Supply, "supply"),
        (Self::Consume, "consume"),
        (Self::Observe, "observe"),
        (Self::Administer, "administer"),
        (Self::Resolve, "resolve"),
        (Self::Bind, "bind"),
    ];
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = Self::ALL.iter().find(|(action, _)| action == self);
        f.write_str(own.map_or("", |(_, word)| word))
    }
}

/// The peers of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Every peer.
    Anyone,
    /// Programs of this host: at a loopback address, or at an address of the host's own. Over unix sockets and shared
    /// memory the user counts instead.
    ThisHost,
    /// The addresses of a network.
    Network(Network),
    /// A user of this host, over unix sockets and shared memory.
    User(u32),
    /// The name in a certificate: of a host or a common name in any case of its letters, a URI exactly.
    Name(String),
}

impl Who {
    fn is(&self, subject: Subject<'_>) -> bool {
        match self {
            Self::Anyone => true,
            Self::ThisHost => subject.is_this_host,
            Self::Network(network) => subject.address.is_some_and(|it| network.contains(it)),
            Self::User(user) => subject.user == Some(*user),
            Self::Name(name) => subject.name.is_some_and(|it| is_name(name, it)),
        }
    }
}

/// URIs differ by the case of their letters (RFC 3986, 6.2.2.1).
fn is_name(name: &str, of_peer: &str) -> bool {
    if name.contains("://") {
        name == of_peer
    } else {
        name.eq_ignore_ascii_case(of_peer)
    }
}

/// A request, as far as rules look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// What it needs in the words of the service. `None` for an adapter without such words.
    pub action: Option<Action>,
    /// Its operation.
    pub operation: &'a [u8],
    /// The name of its object.
    pub object: Option<&'a str>,
    /// The events that it is about. `None`: some events of the rule suffice.
    pub events: Option<Events>,
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Its peers.
    pub who: Vec<Who>,
    /// What they may do.
    pub may: Vec<Action>,
    /// Operations that they may call; `*` for all. They stand beside the actions: one of both suffices.
    pub operations: Vec<String>,
    /// The names of the objects; `None` for all. A name that ends in `/` is for all objects whose names begin with it.
    pub on: Option<Vec<String>>,
    /// Types of events; `None` for all.
    pub types: Option<Ranges>,
    /// Sources of events; `None` for all.
    pub sources: Option<Ranges>,
}

impl Rule {
    fn is_for(&self, subject: Subject<'_>, object: Option<&str>) -> bool {
        let is_on = |names: &Vec<String>| {
            let is = |name: &String, object: &str| {
                name == object || name.ends_with('/') && object.starts_with(name.as_str())
            };
            object.is_some_and(|object| names.iter().any(|name| is(name, object)))
        };
        self.who.iter().any(|who| who.is(subject)) && self.on.as_ref().is_none_or(is_on)
    }

    fn permits(&self, subject: Subject<'_>, asked: &Asked<'_>) -> bool {
        self.covers(asked)
            && self.is_for(subject, asked.object)
            && asked.events.is_none_or(|events| self.covers_events(events))
    }

    fn covers(&self, asked: &Asked<'_>) -> bool {
        let is_called = |name: &String| name == ANY || name.as_bytes() == asked.operation;
        asked
            .action
            .is_some_and(|action| self.may.contains(&action))
            || self.operations.iter().any(is_called)
    }

    fn covers_events(&self, events: Events) -> bool {
        let is_in = |ranges: &Option<Ranges>, asked: Option<i32>| {
            ranges
                .as_ref()
                .is_none_or(|ranges| asked.is_some_and(|value| ranges.contains(value)))
        };
        is_in(&self.types, events.event_type) && is_in(&self.sources, events.source)
    }
}

/// All operations, in a rule.
const ANY: &str = "*";

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

    /// The table of a server that was given none: this host, and processes of the server's own user, may do everything.
    /// Others may read: resolve and list names, consume events, look at counts.
    #[must_use]
    pub fn local(own_user: u32) -> Self {
        Self::new(vec![
            Rule {
                who: vec![Who::ThisHost, Who::User(own_user)],
                may: Action::ALL.iter().map(|(action, _)| *action).collect(),
                operations: vec![ANY.to_owned()],
                ..Rule::default()
            },
            Rule {
                who: vec![Who::Anyone],
                may: vec![Action::Resolve, Action::Consume, Action::Observe],
                ..Rule::default()
            },
        ])
    }

    /// The same with one more rule.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Returns true if a rule permits a peer anything with an object.
    #[must_use]
    pub fn knows(&self, subject: Subject<'_>, object: Option<&str>) -> bool {
        self.rules.iter().any(|rule| rule.is_for(subject, object))
    }

    /// Returns true if a rule permits a request. Does not allocate.
    #[must_use]
    pub fn permits(&self, subject: Subject<'_>, asked: &Asked<'_>) -> bool {
        self.rules.iter().any(|rule| rule.permits(subject, asked))
    }
}

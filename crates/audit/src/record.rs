//! One line of an audit log: the shape that the JSON Schema publishes.

use deckwatch_access::Action;
use deckwatch_orb::{AccessEvent, Caller, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::TEXT_LEN_MAX;

/// One line of an audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// When it was written down, UTC (RFC 3339)
    pub time: String,
    /// What has happened
    pub event: Event,
    /// The peer: an address and port, or a user of this host
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The name in the peer's certificate
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// The action by the words of access tables
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The operation that the peer called
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The object by the names of access tables
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// What the operation was about: the name that it binds, the file that was read again
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Records that are missing before this line
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The log was opened: a server has started
    Started,
    /// The server ends
    Ended,
    /// The access table refused a request
    Refused,
    /// The access table was read again, and no longer permits what a connected client does: it was disconnected
    Disconnected,
    /// The access table permitted an administrative operation, which was then called
    Administered,
    /// A peer has connected
    Connected,
    /// A peer's connection was refused
    ConnectionRefused,
    /// A file was read again
    Reloaded,
    /// Records were dropped because the log's queue was full, or because the peer had its share of lines in a second
    Dropped,
    /// Records could not be written: the disk was full, or failed
    Lost,
}

impl Record {
    /// A record of now.
    #[must_use]
    pub fn new(event: Event) -> Self {
        Self {
            time: deckwatch_meter::provenance::rfc3339(std::time::SystemTime::now()),
            event,
            peer: None,
            certificate: None,
            action: None,
            operation: None,
            object: None,
            about: None,
            count: None,
        }
    }

    /// The record of what a guard or a lane reports.
    #[must_use]
    pub fn of(event: &AccessEvent<'_>) -> Self {
        match *event {
            AccessEvent::Refused(refusal) => Self::refusal(Event::Refused, refusal),
            AccessEvent::Disconnected(refusal) => Self::refusal(Event::Disconnected, refusal),
            AccessEvent::Administered {
                caller,
                name,
                action,
                operation,
                object,
                about,
            } => Self {
                operation: Some(text(&String::from_utf8_lossy(operation))),
                about: about.map(text),
                ..Self::asked(Event::Administered, caller, name).with(Some(action), object)
            },
            AccessEvent::Connected { caller, name } => Self::asked(Event::Connected, caller, name),
            AccessEvent::ConnectionRefused { peer, reason } => Self {
                peer: Some(text(peer)),
                about: Some(text(reason)),
                ..Self::new(Event::ConnectionRefused)
            },
        }
    }

    fn refusal(event: Event, refusal: &Refusal) -> Self {
        Self {
            operation: Some(text(&refusal.operation)).filter(|it| !it.is_empty()),
            ..Self::asked(event, refusal.caller, refusal.name.as_deref())
                .with(refusal.action, refusal.object.as_deref())
        }
    }

    fn asked(event: Event, caller: Caller, name: Option<&str>) -> Self {
        Self {
            peer: Some(text(&caller.to_string())),
            certificate: name.map(text),
            ..Self::new(event)
        }
    }

    fn with(self, action: Option<Action>, object: Option<&str>) -> Self {
        Self {
            action: action.map(|action| action.to_string()),
            object: object.map(text),
            ..self
        }
    }

    /// The line, with its end. JSON escapes control characters.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("texts and numbers");
        line.push(b'\n');
        line
    }
}

/// A text of a peer, cut off at its limit.
fn text(text: &str) -> String {
    text.chars().take(TEXT_LEN_MAX).collect()
}

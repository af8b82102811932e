//! The calls of a bench: octets or structs of a size, with a period, and their baseline.

use deckwatch_cdr::{Any, EncodeError, Write, Writer};
use deckwatch_event::RtecEventData;
use deckwatch_event::rtec_event_comm::{Event, EventHeader};
use deckwatch_giop::Ior;
use deckwatch_orb::cos_naming::NameComponent;

use super::attack::Attack;
use super::kind;
use crate::laboratory::LaboratoryError;
use crate::laboratory::payload::{STRUCT_SIZE, element, message_sizes, plain};

/// The operation of a call and the type of its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `sequence<octet>`, there and back.
    Octets,
    /// `sequence<ComplexStruct>`, from figure 7 of the submarine paper, there and back; each takes 40 octets.
    Structs,
    /// `sequence<octet>`, with an empty reply.
    SinkOctets,
    /// `sequence<ComplexStruct>`, with an empty reply.
    SinkStructs,
    /// `sequence<PlainStruct>`, whose CDR is its layout in memory, with an empty reply; each takes 40 octets.
    SinkPlain,
    /// `sequence<octet>` in one-way messages without pause, until the server has counted them all.
    StreamOctets,
    /// `resolve` of a naming service, of a name of one component, whose id has so many octets.
    Resolve,
    /// An event with a `sequence<octet>` to a number of consumers, pushed once all have received the one before.
    Push,
    /// The same without pause.
    PushStream,
    /// As [`Self::Push`], over a real-time channel: the octets are the payload.
    RtPush,
    /// The same without pause.
    RtPushStream,
}

impl Operation {
    /// All operations of calls to the objects of the bench.
    pub const ALL: [Self; 6] = [
        Self::Octets,
        Self::Structs,
        Self::SinkOctets,
        Self::SinkStructs,
        Self::SinkPlain,
        Self::StreamOctets,
    ];

    /// The article and the word for an event of this operation.
    pub(super) const fn an_event(self) -> &'static str {
        match self {
            Self::RtPush | Self::RtPushStream => "a real-time event",
            _ => "an event",
        }
    }

    /// Its name in tables and commands.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Octets => "octets",
            Self::Structs => "structs",
            Self::SinkOctets => "sink-octets",
            Self::SinkStructs => "sink-structs",
            Self::SinkPlain => "sink-plain",
            Self::StreamOctets => "stream-octets",
            Self::Resolve => "resolve",
            Self::Push => "push",
            Self::PushStream => "push-stream",
            Self::RtPush => "rt-push",
            Self::RtPushStream => "rt-push-stream",
        }
    }

    /// The operation of that name.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .chain([Self::Resolve])
            .find(|operation| operation.word() == word)
    }

    const fn idl_name(self) -> &'static str {
        match self {
            Self::Octets => "echo_octets",
            Self::Structs => "echo_complex_sequence",
            Self::SinkOctets => "sink_octets",
            Self::SinkStructs => "sink_complex_sequence",
            Self::SinkPlain => "sink_plain_sequence",
            Self::StreamOctets => "send_octets",
            Self::Resolve => "resolve",
            Self::Push | Self::PushStream | Self::RtPush | Self::RtPushStream => "push",
        }
    }

    const fn element_size(self) -> usize {
        match self {
            Self::Octets
            | Self::SinkOctets
            | Self::StreamOctets
            | Self::Resolve
            | Self::Push
            | Self::PushStream
            | Self::RtPush
            | Self::RtPushStream => 1,
            Self::Structs | Self::SinkStructs | Self::SinkPlain => STRUCT_SIZE,
        }
    }

    fn write(self, count: usize, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Octets | Self::SinkOctets | Self::StreamOctets => vec![0_u8; count].write(w),
            Self::Structs | Self::SinkStructs => vec![element(); count].write(w),
            Self::SinkPlain => vec![plain(); count].write(w),
            Self::Resolve => vec![resolved_name(count)].write(w),
            Self::Push | Self::PushStream => Any::from_value(&vec![0_u8; count])?.write(w),
            Self::RtPush | Self::RtPushStream => vec![real_time_event(0, count)].write(w),
        }
    }

    /// Writes the result of a call to the object that `reference` leads to.
    fn write_result(
        self,
        count: usize,
        reference: &str,
        w: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        match self {
            Self::Octets | Self::Structs => self.write(count, w),
            // The root context is bound to the name.
            Self::Resolve => reference.parse().unwrap_or_else(|_| Ior::nil()).write(w),
            _ => Ok(()),
        }
    }
}

/// The name that clients of a naming service resolve.
pub(crate) fn resolved_name(id_len: usize) -> NameComponent {
    NameComponent {
        id: "n".repeat(id_len),
        kind: String::new(),
    }
}

/// An event of a real-time channel with this payload.
pub(crate) fn real_time_event(event_type: i32, payload: usize) -> Event {
    Event {
        header: EventHeader {
            r#type: event_type,
            source: 1,
            ttl: 1,
            ..EventHeader::default()
        },
        data: RtecEventData {
            payload: vec![3; payload],
            ..RtecEventData::default()
        },
    }
}

/// The baseline of a system's runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// Raw TCP messages with the octets of our GIOP messages. The send buffers are those of the system.
    #[default]
    RawTcp,
    /// The same with the buffers that the kernel chooses.
    UntunedRawTcp,
    /// The same system's calls with as many plain octets.
    Octets,
    /// The same system's calls to a server with one object.
    OneObject,
    /// The same system's calls over plain TCP.
    PlainCalls,
    /// The same calls to a server that nobody attacks.
    NoAttack(Attack),
    /// The same system's events without consumers of other events.
    NoOthers,
    /// The same system's events without a load of low priority.
    NoLoad,
}

/// The consumers of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumers {
    /// Their number; 0 for calls.
    pub count: u16,
    /// Each has an endpoint and a thread of its own; else all are of one ORB.
    pub are_apart: bool,
}

impl Consumers {
    /// No consumers: calls.
    const NONE: Self = Self::together(0);

    /// Consumers of one ORB.
    #[must_use]
    pub const fn together(count: u16) -> Self {
        Self {
            count,
            are_apart: false,
        }
    }

    /// Consumers that have an ORB each.
    #[must_use]
    pub const fn apart(count: u16) -> Self {
        Self {
            count,
            are_apart: true,
        }
    }

    /// In words, to be appended to a name.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self { count: 0, .. } => String::new(),
            Self { count: 1, .. } => " to one consumer".to_owned(),
            Self {
                count,
                are_apart: true,
            } => format!(" to {count} consumers, an endpoint each"),
            Self { count, .. } => format!(" to {count} consumers at one endpoint"),
        }
    }
}

/// One operation at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The operation.
    pub operation: Operation,
    /// Octets of the payload without the length field. Structs are rounded down to a whole number.
    pub size: usize,
    /// Nanoseconds from one call to the next. Without a period, a call starts at the reply of the one before.
    pub period_ns: Option<u64>,
    /// The baseline.
    pub beside: Beside,
    /// The consumers of events.
    pub consumers: Consumers,
}

impl Case {
    /// Calls without pause, beside raw TCP.
    #[must_use]
    pub const fn new(operation: Operation, size: usize) -> Self {
        Self {
            operation,
            size,
            period_ns: None,
            beside: Beside::RawTcp,
            consumers: Consumers::NONE,
        }
    }

    /// Events of `size` octets to `consumers`.
    #[must_use]
    pub const fn push(operation: Operation, size: usize, consumers: Consumers) -> Self {
        Self {
            consumers,
            ..Self::new(operation, size)
        }
    }

    /// The same with another baseline.
    #[must_use]
    pub const fn beside(self, beside: Beside) -> Self {
        Self { beside, ..self }
    }

    /// The same with one call each `period_ns` nanoseconds.
    #[must_use]
    pub const fn every(self, period_ns: u64) -> Self {
        let period_ns = Some(period_ns);
        Self { period_ns, ..self }
    }

    /// A call of the high lane, or of the naming service, under an attack, beside one to a server that nobody attacks.
    #[must_use]
    pub const fn under(attack: Attack) -> Self {
        let call = if attack.is_on_names() {
            kind::RESOLVE
        } else {
            kind::SMALL
        };
        call.every(kind::PRIORITY_PERIOD_NS)
            .beside(Beside::NoAttack(attack))
    }

    /// As many plain octets, with an empty reply.
    pub(super) fn as_octets(self) -> Self {
        Self {
            operation: Operation::SinkOctets,
            size: self.count() * self.operation.element_size(),
            ..self
        }
    }

    /// The operation and the baseline, in words.
    #[must_use]
    pub fn words(self) -> String {
        let beside = match self.beside {
            Beside::RawTcp => "",
            Beside::UntunedRawTcp => " beside untuned raw TCP",
            Beside::Octets => " beside octets",
            Beside::OneObject => ", many objects",
            Beside::PlainCalls => " beside plain calls",
            Beside::NoAttack(attack) => {
                return format!("{}, under {}", self.operation.word(), attack.word());
            }
            Beside::NoOthers => ", consumers of other events",
            Beside::NoLoad => ", a load of low priority",
        };
        format!(
            "{}{}{beside}",
            self.operation.word(),
            self.consumers.words()
        )
    }

    /// The number of octets or structs.
    #[must_use]
    pub fn count(self) -> usize {
        (self.size / self.operation.element_size()).max(1)
    }

    /// Its result is a rate, not round trips.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(
            self.operation,
            Operation::StreamOctets | Operation::PushStream | Operation::RtPushStream
        )
    }

    /// It is about events: a raw fan-out has no replies.
    #[must_use]
    pub const fn is_push(self) -> bool {
        self.consumers.count > 0
    }

    /// The kind of a client's command: the operation, and the consumers of events.
    pub(super) fn command(self) -> String {
        let Consumers { count, are_apart } = self.consumers;
        let word = self.operation.word();
        match (count, are_apart) {
            (0, _) => word.to_owned(),
            (_, true) => format!("{word}/{count}/apart"),
            (_, false) => format!("{word}/{count}/together"),
        }
    }

    /// Octets of our request and of our reply on the wire, with GIOP headers. Raw TCP sends as many. A one-way has no
    /// reply.
    ///
    /// # Errors
    /// [`LaboratoryError::Reference`]: `reference` is not one of our own.
    pub fn message_sizes(self, reference: &str) -> Result<(usize, usize), LaboratoryError> {
        let there = |w: &mut Writer<'_>| self.operation.write(self.count(), w);
        let back = |w: &mut Writer<'_>| self.operation.write_result(self.count(), reference, w);
        let (there, back) = message_sizes(reference, self.operation.idl_name(), there, back)?;
        let has_reply = !self.is_stream() && !self.is_push();
        Ok((there, if has_reply { back } else { 0 }))
    }
}

#[cfg(test)]
mod tests;

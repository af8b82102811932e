//! Consumers that read events in the message that brought them, so that an event takes no memory at its consumer. The
//! skeletons that are generated from the IDL decode each event into a value of its own before they call the servant.

use deckwatch_cdr::{Any, DecodeError, Parse as _, Reader};
use deckwatch_orb::{Servant, ServerRequest, SystemException, generated::unknown_operation};

use crate::cos_event_comm::{self, PushConsumerPushError};
use crate::rtec_event_comm::{self, EventHeader};

/// A consumer of a real-time channel.
pub trait EventConsumer: Send + Sync + 'static {
    /// IDL operation `push` of `RtecEventComm::PushConsumer`.
    ///
    /// # Errors
    /// The exception for the channel, which disconnects a consumer that raises many.
    fn push(&self, events: ReceivedEvents<'_>) -> Result<(), SystemException>;

    /// IDL operation `disconnect_push_consumer`.
    ///
    /// # Errors
    /// The exception for the channel.
    fn disconnect_push_consumer(&self) -> Result<(), SystemException>;
}

/// A consumer of a COS channel.
pub trait AnyConsumer: Send + Sync + 'static {
    /// IDL operation `push` of `CosEventComm::PushConsumer`.
    ///
    /// # Errors
    /// The exception for the channel, which disconnects a consumer that raises many.
    fn push(&self, event: ReceivedAny<'_>) -> Result<(), PushConsumerPushError>;

    /// IDL operation `disconnect_push_consumer`.
    ///
    /// # Errors
    /// The exception for the channel.
    fn disconnect_push_consumer(&self) -> Result<(), SystemException>;
}

/// The events of one push. An iteration ends behind an event that is malformed.
#[derive(Clone, Debug)]
pub struct ReceivedEvents<'m> {
    r: Reader<'m>,
    /// Events that were not read.
    left: usize,
    /// The any of the event before was not read. It is skipped when the next event is wanted: the last one, and so the
    /// only one of most pushes, is not decoded.
    is_before_any: bool,
}

/// An event of a real-time channel.
#[derive(Clone, Debug)]
pub struct ReceivedEvent<'m> {
    /// Its header.
    pub header: EventHeader,
    /// The octets of its payload.
    pub payload: &'m [u8],
    /// Its other value.
    pub any: ReceivedAny<'m>,
}

/// A value with its type, not decoded.
#[derive(Clone, Debug)]
pub struct ReceivedAny<'m>(Reader<'m>);

impl<'m> ReceivedEvents<'m> {
    fn parse(mut r: Reader<'m>) -> Result<Self, DecodeError> {
        let left = r.read_count(EventHeader::SIZE_MIN)?;
        let is_before_any = false;
        Ok(Self {
            r,
            left,
            is_before_any,
        })
    }

    fn parse_event(&mut self) -> Result<ReceivedEvent<'m>, DecodeError> {
        if std::mem::replace(&mut self.is_before_any, true) {
            Any::parse(&mut self.r)?;
        }
        let header = EventHeader::parse(&mut self.r)?;
        // The padding of RtecEventData.
        self.r.read_u32()?;
        let payload = self.r.read_octet_sequence()?;
        let any = ReceivedAny(self.r);
        Ok(ReceivedEvent {
            header,
            payload,
            any,
        })
    }
}

impl<'m> Iterator for ReceivedEvents<'m> {
    type Item = Result<ReceivedEvent<'m>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let event = self.parse_event();
        if event.is_err() {
            self.left = 0;
        }
        Some(event)
    }
}

impl ReceivedAny<'_> {
    /// Decodes the value, which takes memory.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn decode(&self) -> Result<Any, DecodeError> {
        Any::parse(&mut { self.0 })
    }
}

/// Makes an [`EventConsumer`] a servant of IDL interface `RtecEventComm::PushConsumer`.
#[derive(Clone, Debug)]
pub struct EventConsumerServant<C>(C);

impl<C: EventConsumer> EventConsumerServant<C> {
    /// Puts a consumer behind the servant.
    pub const fn new(consumer: C) -> Self {
        Self(consumer)
    }
}

impl<C: EventConsumer> Servant for EventConsumerServant<C> {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[rtec_event_comm::PushConsumerRef::REPOSITORY_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            b"push" => self.0.push(ReceivedEvents::parse(request.arguments())?)?,
            b"disconnect_push_consumer" => self.0.disconnect_push_consumer()?,
            _ => return Err(unknown_operation()),
        }
        request.reply().map(drop)
    }
}

/// Makes an [`AnyConsumer`] a servant of IDL interface `CosEventComm::PushConsumer`.
#[derive(Clone, Debug)]
pub struct AnyConsumerServant<C>(C);

impl<C: AnyConsumer> AnyConsumerServant<C> {
    /// Puts a consumer behind the servant.
    pub const fn new(consumer: C) -> Self {
        Self(consumer)
    }
}

impl<C: AnyConsumer> Servant for AnyConsumerServant<C> {
    fn repository_ids(&self) -> &'static [&'static str] {
        &[cos_event_comm::PushConsumerRef::REPOSITORY_ID]
    }

    fn dispatch(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.operation() {
            b"push" => match self.0.push(ReceivedAny(request.arguments())) {
                Ok(()) => {}
                Err(PushConsumerPushError::Disconnected(exception)) => {
                    return request.raise(&exception);
                }
                Err(PushConsumerPushError::System(exception)) => return Err(exception),
            },
            b"disconnect_push_consumer" => self.0.disconnect_push_consumer()?,
            _ => return Err(unknown_operation()),
        }
        request.reply().map(drop)
    }
}

/// An `Arc` of a consumer serves as well.
impl<C: EventConsumer> EventConsumer for std::sync::Arc<C> {
    fn push(&self, events: ReceivedEvents<'_>) -> Result<(), SystemException> {
        (**self).push(events)
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        (**self).disconnect_push_consumer()
    }
}

/// As above.
impl<C: AnyConsumer> AnyConsumer for std::sync::Arc<C> {
    fn push(&self, event: ReceivedAny<'_>) -> Result<(), PushConsumerPushError> {
        (**self).push(event)
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        (**self).disconnect_push_consumer()
    }
}

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

#[cfg(test)]
mod tests {
    use deckwatch_cdr::{ByteOrder, Write as _, Writer};

    use super::*;
    use crate::RtecEventData;
    use crate::rtec_event_comm::Event;

    const ORDERS: [ByteOrder; 2] = [ByteOrder::Big, ByteOrder::Little];

    fn events() -> Vec<Event> {
        let any = |octets: usize| Any::from_value(&vec![5_u8; octets]).expect("octets");
        // Payloads and values of odd lengths: the next event begins behind padding.
        let event = |(number, octets): (i32, usize)| Event {
            header: EventHeader {
                r#type: number,
                ..EventHeader::default()
            },
            data: RtecEventData {
                pad1: 0,
                payload: vec![number as u8; octets],
                any_value: any(octets + 2),
            },
        };
        [(1, 0), (2, 3), (3, 8)].into_iter().map(event).collect()
    }

    fn written(events: &Vec<Event>, order: ByteOrder) -> Vec<u8> {
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets).with_order(order);
        events.write(&mut w).expect("they fit");
        octets
    }

    /// Reads all events, each with its value, as a skeleton would give them.
    fn read(octets: &[u8], order: ByteOrder) -> Result<Vec<Event>, DecodeError> {
        let all = ReceivedEvents::parse(Reader::new(octets, order))?;
        let decoded = all.map(|event| {
            let event = event?;
            Ok(Event {
                header: event.header,
                data: RtecEventData {
                    pad1: 0,
                    payload: event.payload.to_vec(),
                    any_value: event.any.decode()?,
                },
            })
        });
        decoded.collect()
    }

    #[test]
    fn events_of_one_push_are_those_that_a_skeleton_decodes() {
        for order in ORDERS {
            let octets = written(&events(), order);
            assert_eq!(read(&octets, order), Ok(events()));
            // What a consumer does not ask for is skipped.
            let headers = ReceivedEvents::parse(Reader::new(&octets, order)).expect("a count");
            let types = headers.map(|event| event.map(|event| event.header.r#type));
            assert_eq!(types.collect::<Result<Vec<_>, _>>(), Ok(vec![1, 2, 3]));
        }
    }

    #[test]
    fn octets_that_lie_are_errors_and_end_the_iteration() {
        for order in ORDERS {
            let octets = written(&events(), order);
            for len in 0..octets.len() {
                assert!(read(&octets[..len], order).is_err(), "{len}");
                if let Ok(all) = ReceivedEvents::parse(Reader::new(&octets[..len], order)) {
                    assert!(all.count() <= 3, "{len}");
                }
            }
            // A count of 2^32 - 1 is refused by the octets that are there.
            let mut many = octets.clone();
            many[..4].fill(0xff);
            assert!(ReceivedEvents::parse(Reader::new(&many, order)).is_err());
            // More events than there are: an error in the place of the first of them, and nothing behind it.
            let mut more = octets.clone();
            let last = if order == ByteOrder::Big { 3 } else { 0 };
            more[last] = 6;
            let found: Vec<bool> = ReceivedEvents::parse(Reader::new(&more, order))
                .expect("octets for six headers")
                .map(|event| event.is_ok())
                .collect();
            assert_eq!(found, [true, true, true, false]);
        }
    }
}

//! Finds the messages in a captured GIOP stream, both whole and fragmented ones.

use deckwatch_giop::{Assembly, Message};

use crate::limits::GIOP_MESSAGE_SIZE_MAX;

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct GiopMessages {
    assembly: Assembly,
}

impl Default for GiopMessages {
    fn default() -> Self {
        Self {
            assembly: Assembly::new(GIOP_MESSAGE_SIZE_MAX),
        }
    }
}

impl GiopMessages {
    /// Processes one message of the stream. Calls `see` with the message that it is or completes. Fragments that do not
    /// belong to one message are dropped.
    pub(crate) fn take(&mut self, message: &[u8], see: &mut dyn FnMut(&Message<'_>)) {
        match self.assembly.accept(message) {
            Ok(Some(whole)) => {
                if let Ok(message) = Message::parse_joined(&whole) {
                    see(&message);
                }
            }
            Ok(None) => {}
            Err(_) => *self = Self::default(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use deckwatch_giop::{ByteOrder, Format, Parts, RequestHeader, Response, Target};

    use super::*;
    use crate::body::Body;
    use crate::body::BodyPlan;
    use crate::reassembly::{Cut, Reassembly};

    pub(crate) fn body() -> Body {
        Body::new(&BodyPlan::Octets { size_bytes: 300 }).expect("of a usual size")
    }

    fn request(sequence: u64, order: ByteOrder, size_max: usize) -> Vec<u8> {
        request_of(
            "deliver_oneway",
            Response::Nothing,
            sequence,
            order,
            size_max,
        )
    }

    /// Encodes a request with this sequence number; fragmented if it is longer than `size_max`.
    pub(crate) fn request_of(
        operation: &str,
        response: Response,
        sequence: u64,
        order: ByteOrder,
        size_max: usize,
    ) -> Vec<u8> {
        let header = RequestHeader {
            id: 7 + u32::try_from(sequence).expect("small"),
            response,
            target: Target::Key(b"key"),
            operation,
            contexts: &[],
        };
        let mut message = Vec::new();
        let open = header
            .begin(
                &mut message,
                Format {
                    order,
                    ..Format::default()
                },
            )
            .expect("room");
        let mut body = body();
        body.set_sequence(sequence);
        body.write(&mut open.writer(&mut message)).expect("room");
        open.finish(&mut message).expect("a size");
        let parts = Parts::of(&message, size_max).expect("a message");
        parts
            .flat_map(|part| [part.header(), part.data].concat())
            .collect()
    }

    #[test]
    fn sequence_numbers_are_read_from_whole_and_divided_requests_in_either_byte_order() {
        let reader = body().sequence_reader();
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for size_max in [4096, 64, 100] {
                let octets: Vec<u8> = (0..3)
                    .flat_map(|sequence| request(sequence, order, size_max))
                    .collect();
                let (mut stream, mut requests) =
                    (Reassembly::new(Cut::Giop), GiopMessages::default());
                stream.open(u32::MAX);
                let mut seen = Vec::new();
                // Packet boundaries are arbitrary; each stamp is the offset of its packet's end in the stream.
                for (index, packet) in octets.chunks(77).enumerate() {
                    let at = u32::try_from(index * 77).expect("small");
                    let end = i64::from(at) + packet.len() as i64;
                    stream.take(at, packet, end, &mut |message, stamp| {
                        requests.take(message, &mut |message| {
                            let Message::Request(request) = message else {
                                panic!("{message:?}")
                            };
                            assert_eq!(request.operation, b"deliver_oneway");
                            seen.push((reader.read_argument(request.body), stamp));
                        });
                    });
                }
                let each = octets.len() as i64 / 3;
                let complete = |sequence: i64| ((sequence + 1) * each + 76) / 77 * 77;
                let expected: Vec<_> = (0..3)
                    .map(|sequence| {
                        (
                            Some(sequence as u64),
                            complete(sequence).min(octets.len() as i64),
                        )
                    })
                    .collect();
                assert_eq!(seen, expected, "{order:?} {size_max}");
            }
        }
    }

    #[test]
    fn a_fragment_of_nothing_costs_what_was_under_way_and_no_more() {
        let mut requests = GiopMessages::default();
        let divided = request(0, ByteOrder::Little, 64);
        let Ok(deckwatch_giop::Frame::Message(_, first)) =
            deckwatch_giop::Frame::parse(&divided, 4096)
        else {
            panic!("a first part")
        };
        let stray = request(1, ByteOrder::Little, 64);
        let mut seen = 0;
        requests.take(&divided[..first], &mut |_| seen += 1);
        // The second fragment belongs to another request.
        let Ok(deckwatch_giop::Frame::Message(_, second)) =
            deckwatch_giop::Frame::parse(&stray[first..], 4096)
        else {
            panic!("a second part")
        };
        requests.take(&stray[first..first + second], &mut |_| seen += 1);
        requests.take(&request(2, ByteOrder::Little, 4096), &mut |_| seen += 1);
        assert_eq!(seen, 1);
    }
}

//! Successive messages of one body, side by side in one buffer, for one system call.

use std::ops::Range;

use crate::body::{Body, FRAME_HEADER_SIZE};
use crate::limits::BATCH_BYTES;

/// A buffer of whole messages. The octets of all messages but their sequence numbers are copied once.
#[derive(Debug)]
pub(crate) struct Batch {
    octets: Vec<u8>,
    /// Octets of each message.
    size: usize,
    /// Octets of the length before each message.
    header: usize,
}

impl Batch {
    /// For messages on a byte stream, which follow their length.
    pub(crate) fn framed(body: &Body) -> Self {
        Self::of(body.framed(), FRAME_HEADER_SIZE)
    }

    /// For datagrams.
    pub(crate) fn unframed(body: &Body) -> Self {
        Self::of(body.octets(), 0)
    }

    fn of(message: &[u8], header: usize) -> Self {
        let count = (BATCH_BYTES / message.len().max(1)).max(1);
        Self {
            octets: message.repeat(count),
            size: message.len(),
            header,
        }
    }

    /// Octets of each message.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }

    /// Writes these sequence numbers, as far as there is room, and returns the messages and their number. The messages
    /// are those of the body that the batch was made of.
    pub(crate) fn fill(&mut self, body: &Body, sequences: &Range<u64>) -> (&[u8], u64) {
        let mut count = 0;
        let places = self.octets.chunks_exact_mut(self.size.max(1));
        for (place, sequence) in places.zip(sequences.clone()) {
            body.put_sequence(&mut place[self.header..], sequence);
            count += 1;
        }
        (&self.octets[..count * self.size], count as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::BodyPlan;

    #[test]
    fn a_batch_has_the_messages_that_the_body_would_have() {
        let plan = BodyPlan::Octets { size_bytes: 20 };
        let mut body = Body::new(&plan).expect("a body");
        let mut batch = Batch::framed(&body);
        for sequences in [5..8_u64, 900..901] {
            let mut expected = Vec::new();
            for sequence in sequences.clone() {
                body.set_sequence(sequence);
                expected.extend_from_slice(body.framed());
            }
            let count = sequences.end - sequences.start;
            assert_eq!(batch.fill(&body, &sequences), (&expected[..], count));
        }
        let mut datagrams = Batch::unframed(&body);
        let (octets, count) = datagrams.fill(&body, &(7..9));
        assert_eq!((octets.len(), count), (40, 2));
        assert_eq!(body.sequence_reader().read(&octets[20..]), Some(8));
    }

    #[test]
    fn a_batch_is_bounded_and_has_at_least_one_message() {
        for (size_bytes, at_least) in [(8, 1_000), (1 << 20, 1)] {
            let body = Body::new(&BodyPlan::Octets { size_bytes }).expect("a body");
            let mut batch = Batch::unframed(&body);
            let (octets, count) = batch.fill(&body, &(0..u64::MAX));
            assert!(count >= at_least);
            assert!(octets.len() <= BATCH_BYTES.max(size_bytes as usize));
            assert_eq!(octets.len() as u64, count * u64::from(size_bytes));
        }
    }
}

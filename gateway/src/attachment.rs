//! What travels beside the payload: the rest of the event, and where it was published.
//!
//! A CDR encapsulation (CORBA 3.3, clause 9.3.3) of
//!
//! ```text
//! struct Attachment {
//!     octet version;                      // 1
//!     unsigned long magic;                // 0x44574757, "DWGW"
//!     unsigned long long gateway;         // identity of the gateway that published it
//!     unsigned long long number;          // of the event among those with its key, from 0
//!     RtecEventComm::EventHeader header;
//!     any value;                          // with its TypeCode
//! };
//! ```
//!
//! The payload of the sample is the event's payload, octet by octet: programs that know nothing of gateways read it.

use deckwatch_cdr::{Any, ByteOrder, EncodeError, Parse as _, Reader, Write as _, Writer};
use deckwatch_event::rtec_event_comm::EventHeader;

use crate::limits::EVENT_SIZE_MAX;

/// The event beside its payload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attachment {
    pub(crate) gateway: u64,
    pub(crate) number: u64,
    pub(crate) header: EventHeader,
    pub(crate) value: Any,
}

const VERSION: u8 = 1;
const MAGIC: u32 = 0x4457_4757;

impl Attachment {
    /// Returns the octets of the attachment.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        // An opaque value exists in one byte order.
        let form = self.value.sole_form();
        let order = form.map_or(ByteOrder::NATIVE, |(order, _)| order);
        let mut octets = Vec::new();
        let w = Writer::new(&mut octets).with_order(order);
        let mut w = w.with_limit(EVENT_SIZE_MAX);
        w.write_u8(order.flag())?;
        w.write_u8(VERSION)?;
        w.write_u32(MAGIC)?;
        self.gateway.write(&mut w)?;
        self.number.write(&mut w)?;
        self.header.write(&mut w)?;
        self.value.write(&mut w)?;
        Ok(octets)
    }

    /// Parses an attachment. `None` if the octets are none of a gateway's, or malformed.
    pub(crate) fn decode(octets: &[u8]) -> Option<Self> {
        let outer = Reader::new(octets, ByteOrder::Big);
        let mut r = outer.into_encapsulation().ok()?;
        let (version, magic) = (r.read_u8().ok()?, r.read_u32().ok()?);
        if (version, magic) != (VERSION, MAGIC) {
            return None;
        }
        let attachment = Self {
            gateway: u64::parse(&mut r).ok()?,
            number: u64::parse(&mut r).ok()?,
            header: EventHeader::parse(&mut r).ok()?,
            value: Any::parse(&mut r).ok()?,
        };
        r.finish().ok()?;
        Some(attachment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(value: Any) -> Attachment {
        Attachment {
            gateway: 0x0102_0304_0506_0708,
            number: 9,
            header: EventHeader {
                r#type: 17,
                source: 3,
                ttl: 1,
                creation_time: 5,
                ec_recv_time: 6,
                ec_send_time: 7,
            },
            value,
        }
    }

    /// Computed from the struct by hand: an attachment is read by other versions of the gateway.
    #[test]
    fn octets_are_those_of_the_struct() {
        let big = [
            &[0, 1, 0, 0][..], // byte order, version, padding
            b"DWGW",
            &[1, 2, 3, 4, 5, 6, 7, 8],
            &[0, 0, 0, 0, 0, 0, 0, 9],
            &[0, 0, 0, 17, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0], // header, padding
            &[0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6],
            &[0, 0, 0, 0, 0, 0, 0, 7],
            &[0, 0, 0, 0], // tk_null
        ];
        let decoded = Attachment::decode(&big.concat()).expect("an attachment");
        assert_eq!(decoded, attachment(Any::empty()));
        let native = decoded.encode().expect("octets");
        assert_eq!(native.len(), big.concat().len());
        assert_eq!(Attachment::decode(&native).expect("an attachment"), decoded);
    }

    #[test]
    fn a_value_keeps_its_type() {
        for value in [
            Any::from_value(&-7_i32).expect("a value"),
            Any::from_value("näv").expect("a value"),
            Any::from_value(&vec![1.5_f64, 2.5]).expect("a value"),
        ] {
            let sent = attachment(value);
            let octets = sent.encode().expect("octets");
            assert_eq!(Attachment::decode(&octets).expect("an attachment"), sent);
        }
    }

    #[test]
    fn no_part_of_an_attachment_is_one() {
        let sent = attachment(Any::from_value("nav").expect("a value"));
        let octets = sent.encode().expect("octets");
        for len in 0..octets.len() {
            assert!(Attachment::decode(&octets[..len]).is_none(), "{len}");
        }
        let longer = [&octets[..], &[0]].concat();
        assert!(Attachment::decode(&longer).is_none());
        for at in [0, 1, 4] {
            let mut other = octets.clone();
            other[at] ^= 0x40;
            assert!(Attachment::decode(&other).is_none(), "octet {at}");
        }
    }
}

//! Listen points of the opener of a bidirectional connection (CORBA 3.3 part 2, clause 9.9.1.1).

use deckwatch_cdr::{ByteOrder, DecodeError, EncodeError, Parse, Reader, Write, Writer};

use crate::limits::LISTEN_POINTS_MAX;

/// An address at which the opener of a connection listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListenPoint {
    /// Host name or address, as in references.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl ListenPoint {
    /// The octets of a BI_DIR_IIOP service context.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`] in a host.
    pub fn write_all(points: &[Self]) -> Result<Vec<u8>, EncodeError> {
        let mut octets = Vec::new();
        let mut w = Writer::new(&mut octets);
        w.write_u8(ByteOrder::NATIVE.flag())?;
        w.write_count(points.len())?;
        for point in points {
            w.write_string_octets(point.host.as_bytes())?;
            point.port.write(&mut w)?;
        }
        Ok(octets)
    }

    /// Reads the octets of a BI_DIR_IIOP service context; returns the first [`LISTEN_POINTS_MAX`] points.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse_all(octets: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut r = Reader::new(octets, ByteOrder::Big).into_encapsulation()?;
        let count = r.read_count(7)?;
        (0..count.min(LISTEN_POINTS_MAX))
            .map(|_| {
                let host = r.read_string_octets()?;
                Ok(Self {
                    host: String::from_utf8_lossy(host).into_owned(),
                    port: u16::parse(&mut r)?,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(host: &str, port: u16) -> ListenPoint {
        ListenPoint {
            host: host.to_owned(),
            port,
        }
    }

    #[test]
    fn points_are_read_from_octets_made_by_hand() {
        let by_hand = b"\x00\0\0\0\0\0\0\x02\0\0\0\x02a\0\0\x07\0\0\0\x03bc\0\0\x01\x02";
        let read = ListenPoint::parse_all(by_hand);
        assert_eq!(read, Ok(vec![point("a", 7), point("bc", 0x102)]));
        let ours = ListenPoint::write_all(&[point("a", 7), point("bc", 0x102)]).unwrap();
        assert_eq!(ListenPoint::parse_all(&ours), read);
    }

    #[test]
    fn no_more_points_are_read_than_are_kept_and_those_that_lie_are_refused() {
        let many = vec![point("host", 1); LISTEN_POINTS_MAX + 9];
        let read = ListenPoint::parse_all(&ListenPoint::write_all(&many).unwrap()).unwrap();
        assert_eq!(read.len(), LISTEN_POINTS_MAX);
        assert!(ListenPoint::parse_all(b"\x00\0\0\0\xff\xff\xff\xff").is_err());
        assert!(ListenPoint::parse_all(b"").is_err());
    }
}

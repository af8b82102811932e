//! Endpoints of the lanes of a server: TAO's component for TCP, and this ORB's own for endpoints within a host.

use super::iiop::encapsulation;
use super::policies::list;
use super::view::encapsulated;
use super::{TaggedComponent, component_tag};
use crate::limits::LANE_ENDPOINTS_MAX;
use deckwatch_cdr::{DecodeError, EncodeError, Parse, Write};

/// An endpoint of a lane. The first of a profile is that of its own host and port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LaneEndpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The CORBA priority of the lane; negative where it has none.
    pub priority: i16,
}

impl LaneEndpoint {
    /// Reads the component.
    ///
    /// # Errors
    /// What is wrong with its octets; `ReferenceMalformed` above [`LANE_ENDPOINTS_MAX`] endpoints.
    pub fn list_from_octets(data: &[u8]) -> Result<Vec<Self>, DecodeError> {
        list(&mut encapsulated(data)?, 9, LANE_ENDPOINTS_MAX, |r| {
            Ok(Self {
                host: String::parse(r)?,
                port: u16::parse(r)?,
                priority: i16::parse(r)?,
            })
        })
    }

    /// The component for a profile.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`], [`EncodeError::LengthTooLarge`].
    pub fn list_to_component(endpoints: &[Self]) -> Result<TaggedComponent, EncodeError> {
        let data = encapsulation(|w| {
            w.write_count(endpoints.len())?;
            endpoints.iter().try_for_each(|endpoint| {
                endpoint.host.write(w)?;
                endpoint.port.write(w)?;
                endpoint.priority.write(w)
            })
        })?;
        Ok(TaggedComponent {
            tag: component_tag::TAO_ENDPOINTS,
            data,
        })
    }
}

/// An endpoint of a lane for processes of its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LocalLane {
    /// The protocol, as real-time policies number it: unix sockets or shared memory.
    pub protocol: u32,
    /// The name of the host.
    pub host: String,
    /// The path there.
    pub path: String,
    /// The CORBA priority of the lane; negative where it has none.
    pub priority: i16,
}

impl LocalLane {
    /// Reads the component.
    ///
    /// # Errors
    /// What is wrong with its octets; `ReferenceMalformed` above [`LANE_ENDPOINTS_MAX`] endpoints.
    pub fn list_from_octets(data: &[u8]) -> Result<Vec<Self>, DecodeError> {
        list(&mut encapsulated(data)?, 16, LANE_ENDPOINTS_MAX, |r| {
            Ok(Self {
                protocol: r.read_u32()?,
                host: String::parse(r)?,
                path: String::parse(r)?,
                priority: i16::parse(r)?,
            })
        })
    }

    /// The component for a profile.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`], [`EncodeError::LengthTooLarge`].
    pub fn list_to_component(endpoints: &[Self]) -> Result<TaggedComponent, EncodeError> {
        let data = encapsulation(|w| {
            w.write_count(endpoints.len())?;
            endpoints.iter().try_for_each(|endpoint| {
                w.write_u32(endpoint.protocol)?;
                endpoint.host.write(w)?;
                endpoint.path.write(w)?;
                endpoint.priority.write(w)
            })
        })?;
        Ok(TaggedComponent {
            tag: component_tag::DECKWATCH_LANES,
            data,
        })
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_cdr::DecodeFact;

    use super::*;

    #[test]
    fn endpoints_are_read_as_tao_writes_them_and_written_so() {
        let octets = [
            1, 0, 0, 0, 2, 0, 0, 0, //
            3, 0, 0, 0, b'a', b'b', 0, 0, 0x5A, 0xF4, 5, 0, //
            2, 0, 0, 0, b'a', 0, 1, 0, 0xFF, 0xFF,
        ];
        let endpoint = |host: &str, port, priority| LaneEndpoint {
            host: host.to_owned(),
            port,
            priority,
        };
        let expected = [endpoint("ab", 62_554, 5), endpoint("a", 1, -1)];
        let read = LaneEndpoint::list_from_octets(&octets);
        assert_eq!(read.as_deref(), Ok(&expected[..]));
        let written = LaneEndpoint::list_to_component(&expected).expect("short");
        assert_eq!(written.tag, 0x5441_4F02);
        let again = LaneEndpoint::list_from_octets(&written.data);
        assert_eq!(again.as_deref(), Ok(&expected[..]));
        if cfg!(target_endian = "little") {
            assert_eq!(written.data, octets);
        }
    }

    #[test]
    fn endpoints_within_a_host_come_back() {
        let lane = |path: &str, priority| LocalLane {
            protocol: 0x5441_4F00,
            host: "nav".to_owned(),
            path: path.to_owned(),
            priority,
        };
        let lanes = [lane("/run/a", 5), lane("/run/b", 90)];
        let written = LocalLane::list_to_component(&lanes).expect("short");
        assert_eq!(written.tag, 0x4457_0002);
        let read = LocalLane::list_from_octets(&written.data);
        assert_eq!(read.as_deref(), Ok(&lanes[..]));
    }

    #[test]
    fn more_endpoints_than_any_server_has_lanes_are_refused() {
        let one = LaneEndpoint {
            host: "a".to_owned(),
            port: 1,
            priority: 0,
        };
        let local = LocalLane {
            protocol: 7,
            host: "a".to_owned(),
            path: "b".to_owned(),
            priority: 0,
        };
        let refused = Some(DecodeFact::ReferenceMalformed);
        for (count, fact) in [
            (LANE_ENDPOINTS_MAX, None),
            (LANE_ENDPOINTS_MAX + 1, refused),
        ] {
            let written = LaneEndpoint::list_to_component(&vec![one.clone(); count]);
            let read = LaneEndpoint::list_from_octets(&written.expect("short").data);
            assert_eq!(read.err().map(|error| error.fact), fact);
            let written = LocalLane::list_to_component(&vec![local.clone(); count]);
            let read = LocalLane::list_from_octets(&written.expect("short").data);
            assert_eq!(read.err().map(|error| error.fact), fact);
        }
        assert!(LaneEndpoint::list_from_octets(&[1, 0, 0, 0, 9, 0, 0, 0]).is_err());
    }
}

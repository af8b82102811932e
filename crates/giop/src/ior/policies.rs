//! The policies component (CORBA 3.3 part 1, clause 17.3: Messaging::PolicyValueSeq), with the policies of real-time
//! CORBA in TAO's form (RTCORBA 1.2: PriorityModelPolicy, PriorityBandedConnectionPolicy, ClientProtocolPolicy).

use super::iiop::encapsulation;
use super::view::encapsulated;
use super::{TaggedComponent, component_tag};
use crate::limits::{BANDS_MAX, POLICIES_MAX, PROTOCOLS_MAX};
use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};

/// Numbers of the policies that references carry.
pub mod policy_type {
    /// RTCORBA::PRIORITY_MODEL_POLICY_TYPE: a [`super::PriorityModelValue`].
    pub const PRIORITY_MODEL: u32 = 40;
    /// RTCORBA::CLIENT_PROTOCOL_POLICY_TYPE: a list of [`super::ProtocolValue`].
    pub const CLIENT_PROTOCOL: u32 = 43;
    /// RTCORBA::PRIORITY_BANDED_CONNECTION_POLICY_TYPE: a list of [`super::BandValue`].
    pub const PRIORITY_BANDED_CONNECTION: u32 = 45;
}

/// A policy as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PolicyValue {
    /// Its number.
    pub policy_type: u32,
    /// The encapsulation of its value.
    pub value: Vec<u8>,
}

/// Content of a priority model policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PriorityModelValue {
    /// 0: the caller's priority; 1: the server's.
    pub model: u32,
    /// The server's priority.
    pub server_priority: i16,
}

/// A band of a banded connection policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BandValue {
    /// Its lowest priority.
    pub low: i16,
    /// Its highest priority.
    pub high: i16,
}

/// A protocol of a client protocol policy. The properties of GIOP, before those of the transport, take no octets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProtocolValue {
    /// TCP.
    Tcp {
        /// Send and receive buffer in octets.
        buffers: [i32; 2],
        /// SO_KEEPALIVE.
        keep_alive: bool,
        /// SO_DONTROUTE.
        dont_route: bool,
        /// TCP_NODELAY.
        no_delay: bool,
    },
    /// Unix sockets, by TAO's number.
    UnixDomain {
        /// Send and receive buffer in octets.
        buffers: [i32; 2],
    },
    /// Shared memory, by TAO's number.
    SharedMemory {
        /// Octets of memory.
        size: i32,
        /// The mapped file and its lock file.
        names: [String; 2],
    },
    /// Another protocol, without known properties.
    Other(u32),
}

/// TAO's number of unix sockets.
const UNIX_DOMAIN: u32 = 0x5441_4F00;
/// TAO's number of shared memory.
const SHARED_MEMORY: u32 = 0x5441_4F02;

/// Reads the component.
///
/// # Errors
/// What is wrong with its octets; [`DecodeFact::ReferenceMalformed`] above [`POLICIES_MAX`] policies.
pub fn parse_policies(data: &[u8]) -> Result<Vec<PolicyValue>, DecodeError> {
    list(&mut encapsulated(data)?, 8, POLICIES_MAX, |r| {
        Ok(PolicyValue {
            policy_type: r.read_u32()?,
            value: r.read_octet_sequence()?.to_vec(),
        })
    })
}

/// The component for a profile.
///
/// # Errors
/// [`EncodeError::LengthTooLarge`].
pub fn policies_component(policies: &[PolicyValue]) -> Result<TaggedComponent, EncodeError> {
    let data = encapsulation(|w| {
        w.write_count(policies.len())?;
        policies.iter().try_for_each(|policy| {
            w.write_u32(policy.policy_type)?;
            w.write_octet_sequence(&policy.value)
        })
    })?;
    Ok(TaggedComponent {
        tag: component_tag::POLICIES,
        data,
    })
}

impl PriorityModelValue {
    /// Reads the value of a policy.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn from_octets(value: &[u8]) -> Result<Self, DecodeError> {
        let mut r = encapsulated(value)?;
        Ok(Self {
            model: r.read_u32()?,
            server_priority: i16::parse(&mut r)?,
        })
    }

    /// The policy as it travels.
    ///
    /// # Errors
    /// No other value exists.
    pub fn to_policy(self) -> Result<PolicyValue, EncodeError> {
        policy(policy_type::PRIORITY_MODEL, |w| {
            w.write_u32(self.model)?;
            self.server_priority.write(w)
        })
    }
}

impl BandValue {
    /// Reads the value of a policy.
    ///
    /// # Errors
    /// What is wrong with its octets; [`DecodeFact::ReferenceMalformed`] above [`BANDS_MAX`] bands.
    pub fn list_from_octets(value: &[u8]) -> Result<Vec<Self>, DecodeError> {
        list(&mut encapsulated(value)?, 4, BANDS_MAX, |r| {
            Ok(Self {
                low: i16::parse(r)?,
                high: i16::parse(r)?,
            })
        })
    }

    /// The policy as it travels.
    ///
    /// # Errors
    /// [`EncodeError::LengthTooLarge`].
    pub fn list_to_policy(bands: &[Self]) -> Result<PolicyValue, EncodeError> {
        policy(policy_type::PRIORITY_BANDED_CONNECTION, |w| {
            w.write_count(bands.len())?;
            bands.iter().try_for_each(|band| {
                band.low.write(w)?;
                band.high.write(w)
            })
        })
    }
}

impl ProtocolValue {
    /// Its number.
    #[must_use]
    pub const fn number(&self) -> u32 {
        match self {
            Self::Tcp { .. } => super::profile_tag::INTERNET_IOP,
            Self::UnixDomain { .. } => UNIX_DOMAIN,
            Self::SharedMemory { .. } => SHARED_MEMORY,
            Self::Other(number) => *number,
        }
    }

    /// Reads the value of a policy.
    ///
    /// # Errors
    /// What is wrong with its octets; [`DecodeFact::ReferenceMalformed`] above [`PROTOCOLS_MAX`] protocols.
    pub fn list_from_octets(value: &[u8]) -> Result<Vec<Self>, DecodeError> {
        list(&mut encapsulated(value)?, 4, PROTOCOLS_MAX, Self::parse)
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.read_u32()?;
        let buffers = |r: &mut Reader<'_>| Ok([i32::parse(r)?, i32::parse(r)?]);
        Ok(match number {
            super::profile_tag::INTERNET_IOP => Self::Tcp {
                buffers: buffers(r)?,
                keep_alive: bool::parse(r)?,
                dont_route: bool::parse(r)?,
                no_delay: bool::parse(r)?,
            },
            UNIX_DOMAIN => Self::UnixDomain {
                buffers: buffers(r)?,
            },
            SHARED_MEMORY => Self::SharedMemory {
                size: i32::parse(r)?,
                names: [String::parse(r)?, String::parse(r)?],
            },
            number => Self::Other(number),
        })
    }

    /// The policy as it travels.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`], [`EncodeError::LengthTooLarge`].
    pub fn list_to_policy(protocols: &[Self]) -> Result<PolicyValue, EncodeError> {
        policy(policy_type::CLIENT_PROTOCOL, |w| {
            w.write_count(protocols.len())?;
            protocols.iter().try_for_each(|protocol| protocol.write(w))
        })
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_u32(self.number())?;
        match self {
            Self::Tcp {
                buffers,
                keep_alive,
                dont_route,
                no_delay,
            } => {
                buffers.iter().try_for_each(|size| size.write(w))?;
                [keep_alive, dont_route, no_delay]
                    .iter()
                    .try_for_each(|flag| flag.write(w))
            }
            Self::UnixDomain { buffers } => buffers.iter().try_for_each(|size| size.write(w)),
            Self::SharedMemory { size, names } => {
                size.write(w)?;
                names.iter().try_for_each(|name| name.write(w))
            }
            Self::Other(_) => Ok(()),
        }
    }
}

fn policy(
    policy_type: u32,
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<PolicyValue, EncodeError> {
    Ok(PolicyValue {
        policy_type,
        value: encapsulation(write)?,
    })
}

/// A sequence of at most `count_max` elements of at least `size_min` octets.
pub(super) fn list<'a, T>(
    r: &mut Reader<'a>,
    size_min: usize,
    count_max: usize,
    mut one: impl FnMut(&mut Reader<'a>) -> Result<T, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let count = r.read_count(size_min)?;
    if count > count_max {
        return Err(r.error(DecodeFact::ReferenceMalformed));
    }
    (0..count).map(|_| one(r)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets as TAO writes them on a little-endian host: CLIENT_PROPAGATED with the server's priority 5, and two
    /// bands.
    const POLICIES: &[u8] = &[
        1, 0, 0, 0, 2, 0, 0, 0, //
        40, 0, 0, 0, 10, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, //
        45, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 9, 0, 10, 0, 0xFF, 0x7F,
    ];

    #[test]
    fn policies_are_read_as_another_orb_writes_them() {
        let policies = parse_policies(POLICIES).expect("well formed");
        let model = PriorityModelValue::from_octets(&policies[0].value);
        let expected = PriorityModelValue {
            model: 0,
            server_priority: 5,
        };
        assert_eq!(model, Ok(expected));
        let bands = BandValue::list_from_octets(&policies[1].value).expect("well formed");
        let band = |low, high| BandValue { low, high };
        assert_eq!(bands, [band(0, 9), band(10, i16::MAX)]);
        let written = [
            expected.to_policy().expect("short"),
            BandValue::list_to_policy(&bands).expect("short"),
        ];
        let component = policies_component(&written).expect("short");
        if cfg!(target_endian = "little") {
            assert_eq!(component.data, POLICIES);
        }
        assert_eq!(component.tag, 2);
    }

    #[test]
    fn the_other_byte_order_is_understood() {
        let model = [0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 0xFF];
        let expected = PriorityModelValue {
            model: 1,
            server_priority: i16::MAX,
        };
        assert_eq!(PriorityModelValue::from_octets(&model), Ok(expected));
    }

    #[test]
    fn protocols_come_back_and_those_not_known_too() {
        let protocols = [
            ProtocolValue::Tcp {
                buffers: [65_536, 0],
                keep_alive: true,
                dont_route: false,
                no_delay: true,
            },
            ProtocolValue::Other(0x5441_4F04),
            ProtocolValue::UnixDomain { buffers: [1, 2] },
            ProtocolValue::SharedMemory {
                size: 7,
                names: ["a".to_owned(), String::new()],
            },
        ];
        let policy = ProtocolValue::list_to_policy(&protocols).expect("short");
        let read = ProtocolValue::list_from_octets(&policy.value);
        assert_eq!(read.as_deref(), Ok(&protocols[..]));
    }

    #[test]
    fn a_list_that_is_longer_than_any_is_refused() {
        const REFUSED: Option<DecodeFact> = Some(DecodeFact::ReferenceMalformed);
        let bands = |count| {
            let bands = vec![BandValue { low: 0, high: 1 }; count];
            let policy = BandValue::list_to_policy(&bands).expect("short");
            let read = BandValue::list_from_octets(&policy.value);
            read.err().map(|error| error.fact)
        };
        assert_eq!((bands(BANDS_MAX), bands(BANDS_MAX + 1)), (None, REFUSED));
        let protocols = |count| {
            let policy = ProtocolValue::list_to_policy(&vec![ProtocolValue::Other(7); count]);
            let read = ProtocolValue::list_from_octets(&policy.expect("short").value);
            read.err().map(|error| error.fact)
        };
        let (fits, beyond) = (protocols(PROTOCOLS_MAX), protocols(PROTOCOLS_MAX + 1));
        assert_eq!((fits, beyond), (None, REFUSED));
        let policies = |count| {
            let policy = ProtocolValue::list_to_policy(&[]).expect("short");
            let component = policies_component(&vec![policy; count]).expect("short");
            let read = parse_policies(&component.data);
            read.err().map(|error| error.fact)
        };
        let (fits, beyond) = (policies(POLICIES_MAX), policies(POLICIES_MAX + 1));
        assert_eq!((fits, beyond), (None, REFUSED));
        let claims = [1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0];
        assert!(BandValue::list_from_octets(&claims).is_err());
        assert!(parse_policies(&claims).is_err());
        assert!(ProtocolValue::list_from_octets(&claims).is_err());
    }
}

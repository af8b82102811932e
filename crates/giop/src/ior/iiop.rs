//! The IIOP profile (CORBA 3.3 part 2, clause 9.7.2).

use super::view::encapsulated;
use super::{IiopProfileRef, TaggedComponent, TaggedProfile, component_tag, profile_tag};
use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Write, Writer};

/// Host, port and key of an object, and the components of its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IiopProfile {
    /// Minor version of IIOP; the major is 1.
    pub minor: u8,
    /// Host name or address; an IPv6 address without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The object's key at that host.
    pub object_key: Vec<u8>,
    /// Components; a profile of 1.0 has none.
    pub components: Vec<TaggedComponent>,
}

impl IiopProfile {
    /// A profile of IIOP 1.2.
    #[must_use]
    pub fn new(host: &str, port: u16, object_key: &[u8]) -> Self {
        Self {
            minor: 2,
            host: host.to_owned(),
            port,
            object_key: object_key.to_vec(),
            components: Vec::new(),
        }
    }

    /// Reads the encapsulation of a profile.
    ///
    /// # Errors
    /// As [`IiopProfileRef::parse`]; [`DecodeFact::NotInCodeSet`] where the host is no text.
    pub fn from_octets(data: &[u8]) -> Result<Self, DecodeError> {
        let profile = IiopProfileRef::parse(data)?;
        let host = std::str::from_utf8(profile.host)
            .map_err(|_| DecodeError::new(DecodeFact::NotInCodeSet, 8))?;
        Ok(Self {
            minor: profile.minor,
            host: host.to_owned(),
            port: profile.port,
            object_key: profile.object_key.to_vec(),
            components: profile.components()?,
        })
    }

    /// The profile as it stands in a reference.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`] in the host; [`EncodeError::TypeUnsupported`] where a profile of 1.0 has
    /// components.
    pub fn to_tagged(&self) -> Result<TaggedProfile, EncodeError> {
        if self.minor == 0 && !self.components.is_empty() {
            return Err(EncodeError::TypeUnsupported);
        }
        let data = encapsulation(|w| {
            w.write_octets(&[1, self.minor])?;
            w.write_string_octets(self.host.as_bytes())?;
            self.port.write(w)?;
            w.write_octet_sequence(&self.object_key)?;
            if self.minor > 0 {
                self.components.write(w)
            } else {
                Ok(())
            }
        })?;
        Ok(TaggedProfile {
            tag: profile_tag::INTERNET_IOP,
            data,
        })
    }

    /// The data of the first component of this tag.
    #[must_use]
    pub fn component(&self, tag: u32) -> Option<&[u8]> {
        self.components
            .iter()
            .find(|component| component.tag == tag)
            .map(|component| &*component.data)
    }

    /// The type of the ORB that made the profile, where the profile states it.
    #[must_use]
    pub fn orb_type(&self) -> Option<u32> {
        let data = self.component(component_tag::ORB_TYPE)?;
        encapsulated(data).ok()?.read_u32().ok()
    }

    /// Every host and port: the profile's own first, then those of its alternate address components. Unreadable
    /// components are passed over.
    pub fn addresses(&self) -> impl Iterator<Item = (String, u16)> {
        let alternates = self
            .components
            .iter()
            .filter(|component| component.tag == component_tag::ALTERNATE_IIOP_ADDRESS);
        std::iter::once((self.host.clone(), self.port)).chain(alternates.filter_map(|component| {
            let mut r = encapsulated(&component.data).ok()?;
            Some((String::parse(&mut r).ok()?, u16::parse(&mut r).ok()?))
        }))
    }

    /// Every unix socket at which the object is reachable: the name of the host, and the path there. Unreadable
    /// components are passed over.
    pub fn unix_addresses(&self) -> impl Iterator<Item = (String, String)> {
        self.places_of_host(component_tag::OMNIORB_UNIX_TRANS)
    }

    /// Every unix socket at which connections through shared memory are made, as above.
    pub fn shared_memory_addresses(&self) -> impl Iterator<Item = (String, String)> {
        self.places_of_host(component_tag::DECKWATCH_SHARED_MEMORY)
    }

    fn places_of_host(&self, tag: u32) -> impl Iterator<Item = (String, String)> {
        let places = self
            .components
            .iter()
            .filter(move |component| component.tag == tag);
        places.filter_map(|component| {
            let mut r = encapsulated(&component.data).ok()?;
            let mut text = || String::from_utf8(r.read_string_octets().ok()?.to_vec()).ok();
            Some((text()?, text()?))
        })
    }
}

/// Returns a component that adds a unix socket to a profile: the name of its host, then its path. The form is
/// omniORB's, for both directions; a profile without another address has port 0.
///
/// # Errors
/// [`EncodeError::StringHoldsNull`].
pub fn unix_address(host: &str, path: &str) -> Result<TaggedComponent, EncodeError> {
    place_of_host(component_tag::OMNIORB_UNIX_TRANS, host, path)
}

/// Returns a component that adds shared memory to a profile: the name of the host, then the path of the socket at which
/// connections are made.
///
/// # Errors
/// [`EncodeError::StringHoldsNull`].
pub fn shared_memory_address(host: &str, path: &str) -> Result<TaggedComponent, EncodeError> {
    place_of_host(component_tag::DECKWATCH_SHARED_MEMORY, host, path)
}

fn place_of_host(tag: u32, host: &str, path: &str) -> Result<TaggedComponent, EncodeError> {
    let data = encapsulation(|w| {
        w.write_string_octets(host.as_bytes())?;
        w.write_string_octets(path.as_bytes())
    })?;
    Ok(TaggedComponent { tag, data })
}

/// Returns a component that adds an address to a profile (clause 9.7.3).
///
/// # Errors
/// [`EncodeError::StringHoldsNull`].
pub fn alternate_address(host: &str, port: u16) -> Result<TaggedComponent, EncodeError> {
    let data = encapsulation(|w| {
        host.write(w)?;
        port.write(w)
    })?;
    Ok(TaggedComponent {
        tag: component_tag::ALTERNATE_IIOP_ADDRESS,
        data,
    })
}

/// The octets of an encapsulation: byte order, then what `write` adds.
pub(crate) fn encapsulation(
    write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Result<Vec<u8>, EncodeError> {
    let mut data = Vec::new();
    let mut w = Writer::new(&mut data);
    w.write_u8(w.order().flag())?;
    write(&mut w)?;
    Ok(data)
}

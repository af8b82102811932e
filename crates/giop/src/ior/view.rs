//! References borrowed from a message.

use super::TaggedComponent;
use crate::limits::{COMPONENTS_MAX, PROFILES_MAX};
use crate::{ByteOrder, TaggedProfileRef};
use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};

/// An object reference as it stands in a message.
#[derive(Clone, Copy, Debug)]
pub struct IorRef<'a> {
    /// Repository id, without its null.
    pub type_id: &'a [u8],
    at_first: Reader<'a>,
    count: u32,
}

impl<'a> IorRef<'a> {
    /// The profiles in order.
    pub fn profiles(&self) -> impl Iterator<Item = TaggedProfileRef<'a>> + use<'a> {
        let mut r = self.at_first;
        (0..self.count).map_while(move |_| parse_profile(&mut r).ok())
    }
}

fn parse_profile<'a>(r: &mut Reader<'a>) -> Result<TaggedProfileRef<'a>, DecodeError> {
    Ok(TaggedProfileRef {
        tag: r.read_u32()?,
        data: r.read_octet_sequence()?,
    })
}

impl<'a> Parse<'a> for IorRef<'a> {
    const SIZE_MIN: usize = 9;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let type_id = r.read_string_octets()?;
        let at = r.position();
        let count = r.read_count(8)?;
        if count > PROFILES_MAX {
            return Err(DecodeError::new(DecodeFact::ReferenceMalformed, at));
        }
        let ior = Self {
            type_id,
            at_first: *r,
            count: count as u32,
        };
        for _ in 0..count {
            parse_profile(r)?;
        }
        Ok(ior)
    }
}

impl Write for IorRef<'_> {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_string_octets(self.type_id)?;
        w.write_u32(self.count)?;
        self.profiles().try_for_each(|profile| {
            w.write_u32(profile.tag)?;
            w.write_octet_sequence(profile.data)
        })
    }
}

/// An IIOP profile as it stands in a reference.
#[derive(Clone, Copy, Debug)]
pub struct IiopProfileRef<'a> {
    /// Minor version of IIOP; the major is 1. Above 2 the profile is read as 1.2.
    pub minor: u8,
    /// Host name or address.
    pub host: &'a [u8],
    /// TCP port.
    pub port: u16,
    /// The object's key at that host.
    pub object_key: &'a [u8],
    components: Option<Reader<'a>>,
}

impl<'a> IiopProfileRef<'a> {
    /// Reads the encapsulation of a profile.
    ///
    /// # Errors
    /// [`DecodeFact::ReferenceMalformed`] for a major version other than 1, and what is wrong with the octets else.
    pub fn parse(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = encapsulated(data)?;
        let (major, minor) = (r.read_u8()?, r.read_u8()?);
        if major != 1 {
            return Err(DecodeError::new(DecodeFact::ReferenceMalformed, 1));
        }
        let host = r.read_string_octets()?;
        let port = u16::parse(&mut r)?;
        let object_key = r.read_octet_sequence()?;
        Ok(Self {
            minor,
            host,
            port,
            object_key,
            components: (minor > 0).then_some(r),
        })
    }

    /// The components, which profiles have since 1.1.
    ///
    /// # Errors
    /// What is wrong with their octets.
    pub fn components(&self) -> Result<Vec<TaggedComponent>, DecodeError> {
        match self.components {
            // Some ORBs omit the list where it is empty.
            Some(r) if r.remaining() < 4 => Ok(Vec::new()),
            Some(mut r) => parse_components(&mut r),
            None => Ok(Vec::new()),
        }
    }
}

/// Returns a reader behind the byte order of an encapsulation that stands alone.
pub(crate) fn encapsulated(data: &[u8]) -> Result<Reader<'_>, DecodeError> {
    Reader::new(data, ByteOrder::Big).into_encapsulation()
}

pub(super) fn parse_components(r: &mut Reader<'_>) -> Result<Vec<TaggedComponent>, DecodeError> {
    let count = r.read_count(TaggedComponent::SIZE_MIN)?;
    if count > COMPONENTS_MAX {
        return Err(r.error(DecodeFact::ReferenceMalformed));
    }
    TaggedComponent::parse_vec(r, count)
}

//! How a request names its object (CORBA 3.3 part 2, clause 9.4.2.3).

use crate::ProtocolError;
use crate::ior::{IiopProfileRef, IorRef, profile_tag};
use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Version, Write, Writer};

const KEY_ADDRESS: u16 = 0;
const PROFILE_ADDRESS: u16 = 1;
const REFERENCE_ADDRESS: u16 = 2;

/// A profile as it stands in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedProfileRef<'a> {
    /// What kind of profile it is.
    pub tag: u32,
    /// Its encapsulation.
    pub data: &'a [u8],
}

/// The object a request is for.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// Its key alone; the only form before GIOP 1.2.
    Key(&'a [u8]),
    /// A profile of its reference.
    Profile(TaggedProfileRef<'a>),
    /// Its whole reference, and which profile was chosen.
    Reference {
        /// Index of the profile.
        selected: u32,
        /// The reference.
        ior: IorRef<'a>,
    },
}

impl<'a> Target<'a> {
    pub(crate) fn parse(version: Version, r: &mut Reader<'a>) -> Result<Self, ProtocolError> {
        if version < Version::V1_2 {
            return Ok(Self::Key(r.read_octet_sequence()?));
        }
        Ok(match u16::parse(r)? {
            KEY_ADDRESS => Self::Key(r.read_octet_sequence()?),
            PROFILE_ADDRESS => Self::Profile(TaggedProfileRef {
                tag: r.read_u32()?,
                data: r.read_octet_sequence()?,
            }),
            REFERENCE_ADDRESS => Self::Reference {
                selected: r.read_u32()?,
                ior: IorRef::parse(r)?,
            },
            other => return Err(ProtocolError::AddressingUnknown(other)),
        })
    }

    pub(crate) fn write(&self, version: Version, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Key(key) => {
                if version >= Version::V1_2 {
                    KEY_ADDRESS.write(w)?;
                }
                w.write_octet_sequence(key)
            }
            _ if version < Version::V1_2 => Err(EncodeError::TypeUnsupported),
            Self::Profile(profile) => {
                PROFILE_ADDRESS.write(w)?;
                w.write_u32(profile.tag)?;
                w.write_octet_sequence(profile.data)
            }
            Self::Reference { selected, ior } => {
                REFERENCE_ADDRESS.write(w)?;
                w.write_u32(*selected)?;
                ior.write(w)
            }
        }
    }

    /// The object key, in whichever form it came.
    ///
    /// # Errors
    /// [`DecodeFact::ReferenceMalformed`] where there is no IIOP profile, and what is wrong with it else.
    pub fn object_key(&self) -> Result<&'a [u8], DecodeError> {
        let profile = match *self {
            Self::Key(key) => return Ok(key),
            Self::Profile(profile) => Some(profile),
            Self::Reference { selected, ior } => ior.profiles().nth(selected as usize),
        };
        match profile {
            Some(profile) if profile.tag == profile_tag::INTERNET_IOP => {
                Ok(IiopProfileRef::parse(profile.data)?.object_key)
            }
            _ => Err(DecodeError::new(DecodeFact::ReferenceMalformed, 0)),
        }
    }
}

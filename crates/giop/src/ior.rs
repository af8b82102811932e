//! Interoperable object references (CORBA 3.3 part 2, clauses 7.6 and 9.7).

pub mod code_sets;
mod explain;
mod iiop;
mod lanes;
pub mod policies;
pub mod security;
mod text;
mod view;

pub(crate) use iiop::encapsulation;
pub use iiop::{IiopProfile, alternate_address, shared_memory_address, unix_address};
pub use lanes::{LaneEndpoint, LocalLane};
pub(crate) use text::scheme;
pub use text::{ReferenceError, ReferenceFact};
pub(crate) use view::encapsulated;
pub use view::{IiopProfileRef, IorRef};

use crate::limits::PROFILES_MAX;
use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};

/// The ORB type by which TAO identifies itself in references.
pub(crate) const TAO: u32 = 0x5441_4F00;

/// Tags of profiles.
pub mod profile_tag {
    /// IIOP.
    pub const INTERNET_IOP: u32 = 0;
    /// Components only.
    pub const MULTIPLE_COMPONENTS: u32 = 1;
}

/// Tags of components.
pub mod component_tag {
    /// Which ORB made the reference.
    pub const ORB_TYPE: u32 = 0;
    /// Code sets of the server.
    pub const CODE_SETS: u32 = 1;
    /// Policies of the object.
    pub const POLICIES: u32 = 2;
    /// A further host and port of a profile.
    pub const ALTERNATE_IIOP_ADDRESS: u32 = 3;
    /// SSL port and options.
    pub const SSL_SEC_TRANS: u32 = 20;
    /// The mechanisms of CSIv2 by which the server may be called.
    pub const CSI_SEC_MECH_LIST: u32 = 33;
    /// Within a mechanism: no protected transport.
    pub const NULL_TAG: u32 = 34;
    /// Within a mechanism: TLS, its options and addresses.
    pub const TLS_SEC_TRANS: u32 = 36;
    /// The endpoints of a server's lanes, as TAO writes them.
    pub const TAO_ENDPOINTS: u32 = 0x5441_4F02;
    /// A unix socket of a host, as omniORB writes it.
    pub const OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;
    /// Shared memory for processes of the same host: this ORB's own, which others ignore. `DW`, and a number.
    pub const DECKWATCH_SHARED_MEMORY: u32 = 0x4457_0001;
    /// The endpoints of a server's lanes for processes of its host: this ORB's own.
    pub const DECKWATCH_LANES: u32 = 0x4457_0002;
}

/// A profile: a way to reach the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaggedProfile {
    /// What kind of profile it is.
    pub tag: u32,
    /// Its encapsulation.
    pub data: Vec<u8>,
}

/// A component of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaggedComponent {
    /// Its tag.
    pub tag: u32,
    /// Its octets, mostly an encapsulation.
    pub data: Vec<u8>,
}

/// An object reference. Profiles of every kind are kept as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ior {
    /// Repository id of the most derived interface that the server states; may be empty.
    pub type_id: String,
    /// Ways to reach the object; none in a nil reference.
    pub profiles: Vec<TaggedProfile>,
}

impl Ior {
    /// The nil reference.
    #[must_use]
    pub const fn nil() -> Self {
        Self {
            type_id: String::new(),
            profiles: Vec::new(),
        }
    }

    /// A reference with one IIOP profile.
    ///
    /// # Errors
    /// Those of writing the profile: a host with a null, or too large.
    pub fn with_iiop(type_id: &str, profile: &IiopProfile) -> Result<Self, EncodeError> {
        Ok(Self {
            type_id: type_id.to_owned(),
            profiles: vec![profile.to_tagged()?],
        })
    }

    /// Whether this is the nil reference.
    #[must_use]
    pub const fn is_nil(&self) -> bool {
        self.profiles.is_empty()
    }

    /// The IIOP profiles in order, with an error in the place of each that cannot be read.
    pub fn iiop_profiles(&self) -> impl Iterator<Item = Result<IiopProfile, DecodeError>> {
        let iiop = self
            .profiles
            .iter()
            .filter(|profile| profile.tag == profile_tag::INTERNET_IOP);
        iiop.map(|profile| IiopProfile::from_octets(&profile.data))
    }

    /// The components of every multiple-components profile, with an error in the place of each that cannot be read.
    pub fn shared_components(
        &self,
    ) -> impl Iterator<Item = Result<Vec<TaggedComponent>, DecodeError>> {
        let multiple = self
            .profiles
            .iter()
            .filter(|profile| profile.tag == profile_tag::MULTIPLE_COMPONENTS);
        multiple.map(|profile| {
            let mut r = view::encapsulated(&profile.data)?;
            view::parse_components(&mut r)
        })
    }
}

impl Write for TaggedProfile {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_u32(self.tag)?;
        w.write_octet_sequence(&self.data)
    }
}

impl Write for TaggedComponent {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        w.write_u32(self.tag)?;
        w.write_octet_sequence(&self.data)
    }
}

impl<'a> Parse<'a> for TaggedProfile {
    const SIZE_MIN: usize = 8;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            tag: r.read_u32()?,
            data: r.read_octet_sequence()?.to_vec(),
        })
    }
}

impl<'a> Parse<'a> for TaggedComponent {
    const SIZE_MIN: usize = 8;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            tag: r.read_u32()?,
            data: r.read_octet_sequence()?.to_vec(),
        })
    }
}

impl Write for Ior {
    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.type_id.write(w)?;
        self.profiles.write(w)
    }
}

impl<'a> Parse<'a> for Ior {
    const SIZE_MIN: usize = 9;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let type_id = String::parse(r)?;
        let at = r.position();
        let count = r.read_count(TaggedProfile::SIZE_MIN)?;
        if count > PROFILES_MAX {
            return Err(DecodeError::new(DecodeFact::ReferenceMalformed, at));
        }
        Ok(Self {
            type_id,
            profiles: TaggedProfile::parse_vec(r, count)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;
    use crate::limits::{COMPONENTS_MAX, REFERENCE_TEXT_MAX};

    const REFUSED: Option<DecodeFact> = Some(DecodeFact::ReferenceMalformed);

    #[test]
    fn reference_with_too_many_profiles_is_refused() {
        let of = |count| {
            let profile = IiopProfile::new("a", 1, b"key").to_tagged().expect("short");
            let ior = Ior {
                type_id: String::new(),
                profiles: vec![profile; count],
            };
            let mut octets = Vec::new();
            ior.write(&mut Writer::new(&mut octets)).expect("short");
            let r = Reader::new(&octets, ByteOrder::NATIVE);
            let facts = [
                Ior::parse(&mut r.clone()).err(),
                IorRef::parse(&mut r.clone()).err(),
            ];
            facts.map(|error| error.map(|error| error.fact))
        };
        assert_eq!(of(PROFILES_MAX), [None; 2]);
        assert_eq!(of(PROFILES_MAX + 1), [REFUSED; 2]);
    }

    #[test]
    fn profile_with_too_many_components_is_refused() {
        let of = |count| {
            let component = TaggedComponent {
                tag: 7,
                data: Vec::new(),
            };
            let profile = IiopProfile {
                components: vec![component; count],
                ..IiopProfile::new("a", 1, b"key")
            };
            let tagged = profile.to_tagged().expect("short");
            let read = IiopProfile::from_octets(&tagged.data);
            read.err().map(|error| error.fact)
        };
        assert_eq!(
            (of(COMPONENTS_MAX), of(COMPONENTS_MAX + 1)),
            (None, REFUSED)
        );
    }

    #[test]
    fn reference_with_too_long_a_text_is_refused() {
        const SCHEME: &str = "IOR:";
        let of = |digits| {
            let text = SCHEME.to_owned() + &"0".repeat(digits);
            text.parse::<Ior>().expect_err("zeros are no reference")
        };
        let read = of(REFERENCE_TEXT_MAX).fact;
        assert!(matches!(read, ReferenceFact::Octets(_)), "{read:?}");
        let end = SCHEME.len() + REFERENCE_TEXT_MAX;
        let refused = ReferenceError::expected(end, "the end of the reference");
        assert_eq!(of(REFERENCE_TEXT_MAX + 1), refused);
    }
}

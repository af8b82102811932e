//! IIOP over TLS in references: the SSL component (CORBA Security 1.8, clause 3.9.2.2) and the transport layer of CSIv2
//! (CORBA 3.3 part 2, clause 10.5): which address speaks TLS, and what it requires.

use super::iiop::encapsulation;
use super::view::encapsulated;
use super::{IiopProfile, TaggedComponent, component_tag};
use crate::limits::{SECURITY_ADDRESSES_MAX, SECURITY_MECHANISMS_MAX};
use deckwatch_cdr::{DecodeError, DecodeFact, EncodeError, Parse, Reader, Write, Writer};

/// Association options (clause 10.5.1.1): what a transport protects, and whom it authenticates.
pub mod association {
    /// Requests without protection.
    pub const NO_PROTECTION: u16 = 1;
    /// Octets that were changed on the way are noticed.
    pub const INTEGRITY: u16 = 2;
    /// Octets are encrypted.
    pub const CONFIDENTIALITY: u16 = 4;
    /// Octets that were sent before are noticed.
    pub const DETECT_REPLAY: u16 = 8;
    /// Octets in another order are noticed.
    pub const DETECT_MISORDERING: u16 = 16;
    /// The server shows a certificate.
    pub const ESTABLISH_TRUST_IN_TARGET: u16 = 32;
    /// The client shows a certificate.
    pub const ESTABLISH_TRUST_IN_CLIENT: u16 = 64;
    /// Nothing is delegated.
    pub const NO_DELEGATION: u16 = 128;
    /// One client's identity may be used by an intermediate object.
    pub const SIMPLE_DELEGATION: u16 = 256;
    /// Identities of client and intermediate object may be used together.
    pub const COMPOSITE_DELEGATION: u16 = 512;
    /// The caller may state another identity.
    pub const IDENTITY_ASSERTION: u16 = 1024;
    /// The client may give its privileges to another one.
    pub const DELEGATION_BY_CLIENT: u16 = 2048;

    /// What TLS always gives.
    pub const TLS: u16 = INTEGRITY
        | CONFIDENTIALITY
        | DETECT_REPLAY
        | DETECT_MISORDERING
        | ESTABLISH_TRUST_IN_TARGET;

    /// Any of these in what a server requires: its plain address is not to be used.
    pub const PROTECTED: u16 =
        INTEGRITY | CONFIDENTIALITY | ESTABLISH_TRUST_IN_TARGET | ESTABLISH_TRUST_IN_CLIENT;
}

/// The names of association options, by their bits from the lowest.
const OPTION_NAMES: [&str; 12] = [
    "no protection",
    "integrity",
    "confidentiality",
    "replay detection",
    "misordering detection",
    "a server certificate",
    "a client certificate",
    "no delegation",
    "simple delegation",
    "composite delegation",
    "identity assertion",
    "delegation by the client",
];

/// Content of the SSL component: TLS at the profile's own host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslTransport {
    /// Association options that the server supports.
    pub supports: u16,
    /// Those that it requires.
    pub requires: u16,
    /// The TCP port.
    pub port: u16,
}

impl SslTransport {
    /// Reads the component's encapsulation.
    ///
    /// # Errors
    /// What is wrong with its octets.
    pub fn from_octets(data: &[u8]) -> Result<Self, DecodeError> {
        let mut r = encapsulated(data)?;
        Ok(Self {
            supports: u16::parse(&mut r)?,
            requires: u16::parse(&mut r)?,
            port: u16::parse(&mut r)?,
        })
    }

    /// The component for a profile.
    ///
    /// # Errors
    /// None is known.
    pub fn to_component(&self) -> Result<TaggedComponent, EncodeError> {
        let data = encapsulation(|w| {
            self.supports.write(w)?;
            self.requires.write(w)?;
            self.port.write(w)
        })?;
        Ok(TaggedComponent {
            tag: component_tag::SSL_SEC_TRANS,
            data,
        })
    }
}

/// The TLS transport of a mechanism.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsTransport {
    /// Association options that the server supports.
    pub supports: u16,
    /// Those that it requires.
    pub requires: u16,
    /// Host and port of each address.
    pub addresses: Vec<(String, u16)>,
}

/// How a mechanism protects its transport.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MechanismTransport {
    /// Not at all.
    #[default]
    Plain,
    /// By TLS.
    Tls(TlsTransport),
    /// In a way that this crate does not know, with its tag.
    Other(u32),
}

/// One way to call the object that CSIv2 allows. Above the transport (an authentication in the requests, identities) the
/// options alone are kept: level 0 asks for none of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecurityMechanism {
    /// Association options that it requires as a whole.
    pub requires: u16,
    /// Its transport.
    pub transport: MechanismTransport,
    /// What the authentication of the client in requests supports and requires.
    pub authentication: [u16; 2],
    /// What the attributes of requests support and require.
    pub attributes: [u16; 2],
}

impl SecurityMechanism {
    /// Reads the component TAG_CSI_SEC_MECH_LIST.
    ///
    /// # Errors
    /// What is wrong with its octets; `ReferenceMalformed` above [`SECURITY_MECHANISMS_MAX`] mechanisms or
    /// [`SECURITY_ADDRESSES_MAX`] addresses.
    pub fn list_from_octets(data: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let mut r = encapsulated(data)?;
        // Whether the server keeps state of authentications: level 0 has none.
        bool::parse(&mut r)?;
        let count = bounded(&mut r, MECHANISM_SIZE_MIN, SECURITY_MECHANISMS_MAX)?;
        (0..count).map(|_| Self::parse(&mut r)).collect()
    }

    fn parse(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let requires = u16::parse(r)?;
        let transport = MechanismTransport::parse(&TaggedComponent::parse(r)?)?;
        let authentication = [u16::parse(r)?, u16::parse(r)?];
        // The mechanism of the authentication, and the name of the target.
        r.read_octet_sequence()?;
        r.read_octet_sequence()?;
        let attributes = [u16::parse(r)?, u16::parse(r)?];
        let authorities = bounded(r, 8, SECURITY_ADDRESSES_MAX)?;
        for _ in 0..authorities {
            r.read_u32()?;
            r.read_octet_sequence()?;
        }
        let namings = bounded(r, 4, SECURITY_ADDRESSES_MAX)?;
        for _ in 0..namings {
            r.read_octet_sequence()?;
        }
        r.read_u32()?;
        Ok(Self {
            requires,
            transport,
            authentication,
            attributes,
        })
    }

    /// The component with these mechanisms.
    ///
    /// # Errors
    /// [`EncodeError::StringHoldsNull`]; [`EncodeError::TypeUnsupported`] for a transport of another kind.
    pub fn list_to_component(mechanisms: &[Self]) -> Result<TaggedComponent, EncodeError> {
        let data = encapsulation(|w| {
            false.write(w)?;
            w.write_count(mechanisms.len())?;
            mechanisms.iter().try_for_each(|one| one.write(w))
        })?;
        Ok(TaggedComponent {
            tag: component_tag::CSI_SEC_MECH_LIST,
            data,
        })
    }

    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.requires.write(w)?;
        self.transport.to_component()?.write(w)?;
        self.authentication
            .into_iter()
            .try_for_each(|options| options.write(w))?;
        w.write_octet_sequence(&[])?;
        w.write_octet_sequence(&[])?;
        self.attributes
            .into_iter()
            .try_for_each(|options| options.write(w))?;
        w.write_count(0)?;
        w.write_count(0)?;
        w.write_u32(0)
    }
}

/// Fewest octets of a mechanism.
const MECHANISM_SIZE_MIN: usize = 36;

impl MechanismTransport {
    fn parse(component: &TaggedComponent) -> Result<Self, DecodeError> {
        match component.tag {
            component_tag::NULL_TAG => return Ok(Self::Plain),
            component_tag::TLS_SEC_TRANS => {}
            other => return Ok(Self::Other(other)),
        }
        let mut r = encapsulated(&component.data)?;
        let (supports, requires) = (u16::parse(&mut r)?, u16::parse(&mut r)?);
        let count = bounded(&mut r, 7, SECURITY_ADDRESSES_MAX)?;
        let address = |_| Ok((String::parse(&mut r)?, u16::parse(&mut r)?));
        Ok(Self::Tls(TlsTransport {
            supports,
            requires,
            addresses: (0..count).map(address).collect::<Result<_, _>>()?,
        }))
    }

    fn to_component(&self) -> Result<TaggedComponent, EncodeError> {
        let (tag, data) = match self {
            Self::Plain => (component_tag::NULL_TAG, Vec::new()),
            Self::Other(_) => return Err(EncodeError::TypeUnsupported),
            Self::Tls(tls) => {
                let data = encapsulation(|w| {
                    tls.supports.write(w)?;
                    tls.requires.write(w)?;
                    w.write_count(tls.addresses.len())?;
                    tls.addresses.iter().try_for_each(|(host, port)| {
                        host.write(w)?;
                        port.write(w)
                    })
                })?;
                (component_tag::TLS_SEC_TRANS, data)
            }
        };
        Ok(TaggedComponent { tag, data })
    }
}

fn bounded(r: &mut Reader<'_>, size_min: usize, max: usize) -> Result<usize, DecodeError> {
    let count = r.read_count(size_min)?;
    if count > max {
        return Err(r.error(DecodeFact::ReferenceMalformed));
    }
    Ok(count)
}

impl IiopProfile {
    /// Every host and port at which the object is reached over TLS, each once. Unreadable components are passed over.
    #[must_use]
    pub fn tls_addresses(&self) -> Vec<(String, u16)> {
        let mut found: Vec<(String, u16)> = Vec::new();
        let mut add = |host: &str, port: u16| {
            let is_known = found.iter().any(|(at, of)| at == host && *of == port);
            if port != 0 && !host.is_empty() && !is_known {
                found.push((host.to_owned(), port));
            }
        };
        for component in &self.components {
            match component.tag {
                component_tag::SSL_SEC_TRANS => {
                    if let Ok(ssl) = SslTransport::from_octets(&component.data) {
                        add(&self.host, ssl.port);
                    }
                }
                component_tag::CSI_SEC_MECH_LIST => {
                    let listed = SecurityMechanism::list_from_octets(&component.data);
                    for mechanism in listed.unwrap_or_default() {
                        if let MechanismTransport::Tls(tls) = mechanism.transport {
                            tls.addresses
                                .iter()
                                .for_each(|(host, port)| add(host, *port));
                        }
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Whether the server requires TLS: the plain address of the profile, if it has one, is not to be used. An SSL
    /// component that supports requests without protection requires none: TAO's `-SSLNoProtection` adds that bit and
    /// leaves the ones that it requires as they are.
    #[must_use]
    pub fn requires_tls(&self) -> bool {
        let of_ssl = self.component(component_tag::SSL_SEC_TRANS);
        let of_ssl = of_ssl.and_then(|data| SslTransport::from_octets(data).ok());
        let of_csi = self.component(component_tag::CSI_SEC_MECH_LIST);
        let of_csi = of_csi.and_then(|data| SecurityMechanism::list_from_octets(data).ok());
        let transport = |mechanism: &SecurityMechanism| match &mechanism.transport {
            MechanismTransport::Tls(tls) => tls.requires & association::PROTECTED != 0,
            MechanismTransport::Plain | MechanismTransport::Other(_) => false,
        };
        let ssl_requires = |ssl: SslTransport| {
            ssl.requires & association::PROTECTED != 0
                && ssl.supports & association::NO_PROTECTION == 0
        };
        of_ssl.is_some_and(ssl_requires)
            || of_csi.is_some_and(|all| !all.is_empty() && all.iter().all(transport))
    }
}

/// Association options in words.
pub(super) fn option_words(options: u16) -> String {
    let bits = OPTION_NAMES.iter().enumerate();
    let named = bits.filter(|(bit, _)| options & 1 << bit != 0);
    let mut words: Vec<_> = named.map(|(_, name)| (*name).to_owned()).collect();
    let rest = options & !((1 << OPTION_NAMES.len()) - 1);
    if rest != 0 {
        words.push(format!("{rest:#06x}"));
    }
    if words.is_empty() {
        return "nothing".to_owned();
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours() -> SecurityMechanism {
        SecurityMechanism {
            requires: association::INTEGRITY | association::CONFIDENTIALITY,
            transport: MechanismTransport::Tls(TlsTransport {
                supports: association::TLS | association::ESTABLISH_TRUST_IN_CLIENT,
                requires: association::INTEGRITY | association::CONFIDENTIALITY,
                addresses: vec![("nav.ship".to_owned(), 2810), ("::1".to_owned(), 2811)],
            }),
            ..SecurityMechanism::default()
        }
    }

    #[test]
    fn the_ssl_component_of_another_orb_is_read() {
        // Big-endian, as a Java ORB writes it: supports 0x7e, requires 0x06, port 2810.
        let octets = [0, 0, 0, 0x7e, 0, 6, 0x0a, 0xfa];
        let ssl = SslTransport::from_octets(&octets).unwrap();
        let expected = SslTransport {
            supports: 0x7e,
            requires: 6,
            port: 2810,
        };
        assert_eq!(ssl, expected);
        let again = SslTransport::from_octets(&ssl.to_component().unwrap().data);
        assert_eq!(again, Ok(expected));
        assert!(SslTransport::from_octets(&octets[..7]).is_err());
    }

    #[test]
    fn the_mechanisms_of_a_server_come_back_and_each_cut_is_an_error() {
        let all = [ours(), SecurityMechanism::default()];
        let component = SecurityMechanism::list_to_component(&all).unwrap();
        assert_eq!(component.tag, 33);
        let read = SecurityMechanism::list_from_octets(&component.data);
        assert_eq!(read.as_deref(), Ok(&all[..]));
        for end in 0..component.data.len() {
            assert!(
                SecurityMechanism::list_from_octets(&component.data[..end]).is_err(),
                "{end}"
            );
        }
    }

    /// What is wrong with a list of mechanisms that is encapsulated so.
    fn fact(data: &[u8]) -> Option<DecodeFact> {
        let read = SecurityMechanism::list_from_octets(data);
        read.err().map(|error| error.fact)
    }

    #[test]
    fn more_mechanisms_or_addresses_than_any_server_has_are_refused() {
        let mechanisms = |count| {
            let many = vec![SecurityMechanism::default(); count];
            fact(&SecurityMechanism::list_to_component(&many).unwrap().data)
        };
        let addresses = |count| {
            let mut one = ours();
            if let MechanismTransport::Tls(tls) = &mut one.transport {
                tls.addresses = vec![("a".to_owned(), 1); count];
            }
            fact(&SecurityMechanism::list_to_component(&[one]).unwrap().data)
        };
        // A plain mechanism with so many authorities and naming mechanisms, which are passed over.
        let others = |authorities: usize, namings: usize| {
            let data = encapsulation(|w| {
                false.write(w)?;
                w.write_count(1)?;
                0_u16.write(w)?;
                MechanismTransport::Plain.to_component()?.write(w)?;
                [0_u16; 2].write(w)?;
                w.write_octet_sequence(&[])?;
                w.write_octet_sequence(&[])?;
                [0_u16; 2].write(w)?;
                w.write_count(authorities)?;
                for _ in 0..authorities {
                    w.write_u32(0)?;
                    w.write_octet_sequence(&[])?;
                }
                w.write_count(namings)?;
                (0..namings).try_for_each(|_| w.write_octet_sequence(&[]))?;
                w.write_u32(0)
            });
            fact(&data.unwrap())
        };
        let refused = Some(DecodeFact::ReferenceMalformed);
        let max = SECURITY_MECHANISMS_MAX;
        assert_eq!((mechanisms(max), mechanisms(max + 1)), (None, refused));
        let max = SECURITY_ADDRESSES_MAX;
        assert_eq!((addresses(max), addresses(max + 1)), (None, refused));
        assert_eq!(others(max, max), None);
        assert_eq!((others(max + 1, 0), others(0, max + 1)), (refused, refused));
    }

    #[test]
    fn a_list_as_the_standard_lays_it_out_is_read_octet_by_octet() {
        // Written by hand after the IDL of clause 10.5.2.3, big-endian: one mechanism, TLS at `a` port 1, a GSSUP
        // authentication that is supported, one privilege authority, one naming mechanism, identity types 2.
        let octets = [
            &[0, 0, 0, 0][..], // byte order, stateful
            &[0, 0, 0, 1],     // one mechanism
            &[0, 0x46, 0, 0],  // requires
            &[0, 0, 0, 36],    // TLS_SEC_TRANS
            &[0, 0, 0, 20],
            &[0, 0, 0, 0x7e, 0, 0x46, 0, 0],
            &[0, 0, 0, 1],
            &[0, 0, 0, 2, b'a', 0, 0, 1],
            &[0, 0x40, 0, 0], // authentication
            &[0, 0, 0, 1, 9, 0, 0, 0],
            &[0, 0, 0, 1, 8, 0],
            &[4, 0, 0, 0], // attributes
            &[0, 0],
            &[0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 1, 7, 0, 0, 0],
            &[0, 0, 0, 1, 0, 0, 0, 1, 6, 0, 0, 0],
            &[0, 0, 0, 2],
        ]
        .concat();
        let read = SecurityMechanism::list_from_octets(&octets).unwrap();
        let expected = SecurityMechanism {
            requires: 0x46,
            transport: MechanismTransport::Tls(TlsTransport {
                supports: 0x7e,
                requires: 0x46,
                addresses: vec![("a".to_owned(), 1)],
            }),
            authentication: [0x40, 0],
            attributes: [0x400, 0],
        };
        assert_eq!(read, [expected]);
    }

    #[test]
    fn addresses_over_tls_are_those_of_both_components_each_once() {
        let mut profile = IiopProfile::new("nav.ship", 2809, b"k");
        assert!(profile.tls_addresses().is_empty() && !profile.requires_tls());
        let ssl = SslTransport {
            supports: 0x7f,
            requires: 1,
            port: 2810,
        };
        profile.components.push(ssl.to_component().unwrap());
        assert!(
            !profile.requires_tls(),
            "it takes requests without protection"
        );
        let list = SecurityMechanism::list_to_component(&[ours()]).unwrap();
        profile.components.push(list);
        let expected = [("nav.ship".to_owned(), 2810), ("::1".to_owned(), 2811)];
        assert_eq!(profile.tls_addresses(), expected);
        assert!(profile.requires_tls());
    }

    #[test]
    fn a_tao_that_takes_requests_without_protection_too_requires_no_tls() {
        // Recorded of TAO 2.2.2: `-SSLNoProtection`, and without it; the second octet is padding.
        let of = |supports: u8| {
            let data = vec![1, 0xaf, supports, 0, 0x86, 0, 0xea, 0x1c];
            let mut profile = IiopProfile::new("127.0.0.1", 7401, b"k");
            profile.components.push(TaggedComponent {
                tag: component_tag::SSL_SEC_TRANS,
                data,
            });
            profile
        };
        assert!(of(0xa6).requires_tls());
        assert!(!of(0xa7).requires_tls());
        assert_eq!(of(0xa7).tls_addresses(), [("127.0.0.1".to_owned(), 7402)]);
    }

    #[test]
    fn a_reference_laid_out_as_the_sources_of_tao_write_it_offers_tls() {
        // Two endpoints in one profile: the order and the values of the components are those in TAO's sources
        // (`SSLIOP_Acceptor.cpp`, with both ports and the default protection), little-endian. The same layout without
        // the second endpoint is recorded in `tests/data/tao-ssliop.txt`.
        let profile = [
            &[1, 1, 2, 0][..], // byte order, IIOP 1.2
            &[9, 0, 0, 0],
            b"nav.ship\0\0",
            &[0xf9, 0x0a], // port 2809
            &[4, 0, 0, 0, 0x14, 1, 0x0f, 0],
            &[4, 0, 0, 0],
            &[0, 0, 0, 0, 8, 0, 0, 0], // ORB type
            &[1, 0, 0, 0, 0, b'O', b'A', b'T'],
            &[1, 0, 0, 0, 20, 0, 0, 0], // code sets
            &[1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 9, 1, 1, 0, 0, 0, 0, 0],
            &[20, 0, 0, 0, 8, 0, 0, 0], // SSL: supports 0xa6, requires 0x86, port 2810
            &[1, 0, 0xa6, 0, 0x86, 0, 0xfa, 0x0a],
            // The SSL component of the profile's second endpoint, at port 2811: TAO's own tag.
            &[1, b'O', b'A', b'T', 14, 0, 0, 0],
            &[1, 0, 0, 0, 1, 0, 0, 0, 0xa6, 0, 0x86, 0, 0xfb, 0x0a],
        ]
        .concat();
        let size = u32::try_from(profile.len()).unwrap().to_le_bytes();
        let octets = [
            &[1, 0, 0, 0, 13, 0, 0, 0][..],
            b"IDL:Echo:1.0\0\0\0\0",
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &size,
            &profile,
        ]
        .concat();
        let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        let ior: super::super::Ior = format!("IOR:{digits}").parse().unwrap();
        let profile = ior.iiop_profiles().next().unwrap().unwrap();
        assert_eq!((profile.host.as_str(), profile.port), ("nav.ship", 2809));
        assert_eq!(profile.components.len(), 4);
        let expected = [("nav.ship".to_owned(), 2810)];
        assert_eq!(profile.tls_addresses(), expected);
        assert!(profile.requires_tls(), "integrity and confidentiality");
    }

    #[test]
    fn options_are_told_in_words() {
        assert_eq!(option_words(0), "nothing");
        assert_eq!(
            option_words(0x46),
            "integrity, confidentiality, a client certificate"
        );
        assert_eq!(option_words(0x8001), "no protection, 0x8000");
    }
}

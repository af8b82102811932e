//! The name in a certificate: what stands for its owner in access rules and shares.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The first DNS name of a certificate, else its first URI, else the common name of its subject. The handshake has
/// verified the certificate.
pub(super) fn name_of(certificate: &CertificateDer<'_>) -> Option<Arc<str>> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    let alternative = parsed.valid_dns_names().next();
    let alternative = alternative.or_else(|| parsed.valid_uri_names().next());
    let name = alternative.or_else(|| common_name(parsed.subject()))?;
    Some(name.into())
}

/// The object identifier 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 6;
/// Strings whose octets are UTF-8 or a part of it: UTF8String, PrintableString, IA5String.
const STRINGS: [u8; 3] = [12, 19, 22];

/// The last common name of a subject: the most specific one. `subject` holds the sets of the distinguished name (X.501,
/// in DER).
fn common_name(mut subject: &[u8]) -> Option<&str> {
    let mut found = None;
    while let Some((SET, mut set)) = take(&mut subject) {
        while let Some((SEQUENCE, mut attribute)) = take(&mut set) {
            let kind = take(&mut attribute);
            let value = take(&mut attribute);
            if kind == Some((OBJECT_IDENTIFIER, COMMON_NAME))
                && let Some((tag, text)) = value
                && STRINGS.contains(&tag)
            {
                found = std::str::from_utf8(text).ok().or(found);
            }
        }
    }
    found.filter(|name| !name.is_empty())
}

/// Takes the first value off: its tag and content. `None` at the end, or where the octets are no DER.
fn take<'d>(rest: &mut &'d [u8]) -> Option<(u8, &'d [u8])> {
    let (&[tag, first], mut after) = rest.split_first_chunk::<2>()?;
    let len = match first {
        0..=0x7f => usize::from(first),
        0x81 | 0x82 => {
            let (len, behind) = after.split_at_checked(usize::from(first & 0x7f))?;
            after = behind;
            len.iter()
                .fold(0, |sum, octet| sum << 8 | usize::from(*octet))
        }
        _ => return None,
    };
    let (content, behind) = after.split_at_checked(len)?;
    *rest = behind;
    Some((tag, content))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn a_certificate_is_named_by_dns_before_uri_before_common_name() {
        let folder = tempfile::tempdir().unwrap();
        let authority = deckwatch_testkit::certificates::Authority::new(folder.path(), "ship");
        let (uri, dns) = ("spiffe://ship/nav", "nav.ship");
        for (alternative, name) in [
            (&["10.0.0.1", uri, dns][..], dns),
            (&["10.0.0.1", uri], uri),
            (&["10.0.0.1"], "nav"),
            (&[], "nav"),
        ] {
            let issued = authority.issue("nav", alternative);
            let pem = std::fs::read(issued.chain).unwrap();
            let certificate = CertificateDer::from_pem_slice(&pem).unwrap();
            assert_eq!(name_of(&certificate).as_deref(), Some(name));
        }
    }

    #[test]
    fn the_most_specific_common_name_is_found_whatever_stands_around_it() {
        let attribute = |number: u8, text: &str| {
            let value = [&[12, text.len() as u8], text.as_bytes()].concat();
            let kind = [6, 3, 0x55, 4, number];
            let both = [&kind[..], &value].concat();
            let sequence = [&[0x30, both.len() as u8], &both[..]].concat();
            [&[0x31, sequence.len() as u8], &sequence[..]].concat()
        };
        let all = [
            attribute(3, "fleet"),
            attribute(10, "x"),
            attribute(3, "nav"),
        ]
        .concat();
        assert_eq!(common_name(&all), Some("nav"));
        assert_eq!(common_name(&attribute(10, "x")), None);
        for end in 0..all.len() {
            assert_ne!(common_name(&all[..end]), Some("nav"), "cut at {end}");
        }
        assert_eq!(common_name(&[0x31, 0x82, 0xff]), None);
    }
}

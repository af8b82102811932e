//! A reference in words, for people.

use super::code_sets::{CodeSetInfo, code_set_name};
use super::policies::{
    BandValue, PolicyValue, PriorityModelValue, ProtocolValue, parse_policies, policy_type,
};
use super::security::{MechanismTransport, SecurityMechanism, SslTransport, option_words};
use super::view::encapsulated;
use super::{
    IiopProfile, Ior, LaneEndpoint, LocalLane, TaggedComponent, TaggedProfile, component_tag,
    profile_tag,
};
use deckwatch_cdr::{Parse, Reader};
use deckwatch_text::escaped;
use std::fmt::Write;

/// Most octets of a key or of unknown data that are shown.
const OCTETS_SHOWN: usize = 64;

impl Ior {
    /// The reference in words, one line for each fact; the last ends with a line feed.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = String::new();
        if self.is_nil() {
            text.push_str("a nil reference: it names no object\n");
        }
        let type_id = if self.type_id.is_empty() {
            "not stated"
        } else {
            &self.type_id
        };
        line(&mut text, 0, &format!("type id: {}", escaped(type_id)));
        for (index, profile) in self.profiles.iter().enumerate() {
            line(
                &mut text,
                0,
                &format!("profile {}: {}", index + 1, title(profile)),
            );
            explain_profile(&mut text, profile);
        }
        text
    }
}

fn line(text: &mut String, depth: usize, words: &str) {
    // Writing to a String does not fail.
    let _ = writeln!(text, "{:indent$}{words}", "", indent = depth * 2);
}

fn title(profile: &TaggedProfile) -> String {
    match profile.tag {
        profile_tag::INTERNET_IOP => "IIOP".to_owned(),
        profile_tag::MULTIPLE_COMPONENTS => "components for all profiles".to_owned(),
        tag => format!("of an unknown kind, tag {tag:#010x}"),
    }
}

fn explain_profile(text: &mut String, profile: &TaggedProfile) {
    match profile.tag {
        profile_tag::INTERNET_IOP => match IiopProfile::from_octets(&profile.data) {
            Ok(iiop) => {
                line(
                    text,
                    1,
                    &format!(
                        "IIOP 1.{} at {} port {}",
                        iiop.minor,
                        escaped(&iiop.host),
                        iiop.port
                    ),
                );
                line(
                    text,
                    1,
                    &format!("object key: {}", octets(&iiop.object_key)),
                );
                explain_components(text, &iiop.components);
            }
            Err(error) => line(text, 1, &format!("malformed: {error}")),
        },
        profile_tag::MULTIPLE_COMPONENTS => {
            let ior = Ior {
                type_id: String::new(),
                profiles: vec![profile.clone()],
            };
            for components in ior.shared_components() {
                match components {
                    Ok(components) => explain_components(text, &components),
                    Err(error) => line(text, 1, &format!("malformed: {error}")),
                }
            }
        }
        _ => line(
            text,
            1,
            &format!("{} octets: {}", profile.data.len(), octets(&profile.data)),
        ),
    }
}

fn explain_components(text: &mut String, components: &[TaggedComponent]) {
    for component in components {
        let words = explain_component(component).unwrap_or_else(|| {
            format!(
                "component {:#010x}, {} octets: {}",
                component.tag,
                component.data.len(),
                octets(&component.data)
            )
        });
        line(text, 1, &words);
    }
}

/// A component in words; `None` where its tag is unknown or its octets are malformed.
fn explain_component(component: &TaggedComponent) -> Option<String> {
    let mut r = encapsulated(&component.data).ok()?;
    Some(match component.tag {
        component_tag::ORB_TYPE => {
            let orb = r.read_u32().ok()?;
            format!(
                "made by {}",
                orb_name(orb).map_or_else(|| format!("the ORB of type {orb:#010x}"), str::to_owned)
            )
        }
        component_tag::CODE_SETS => {
            let info = CodeSetInfo::from_octets(&component.data).ok()?;
            let set = |number: u32| {
                code_set_name(number).map_or_else(|| format!("{number:#010x}"), str::to_owned)
            };
            let with = |sets: &[u32]| match sets {
                [] => String::new(),
                sets => format!(
                    " (converts {})",
                    sets.iter()
                        .map(|number| set(*number))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            };
            format!(
                "code sets: {}{} for char, {}{} for wchar",
                set(info.chars.native),
                with(&info.chars.conversion),
                set(info.wide.native),
                with(&info.wide.conversion)
            )
        }
        component_tag::ALTERNATE_IIOP_ADDRESS => {
            let (host, port) = (String::parse(&mut r).ok()?, u16::parse(&mut r).ok()?);
            format!("also at {} port {port}", escaped(&host))
        }
        component_tag::OMNIORB_UNIX_TRANS => {
            format!("also at the unix socket {}", place_of_host(&mut r)?)
        }
        component_tag::DECKWATCH_SHARED_MEMORY => {
            format!("also through memory shared at {}", place_of_host(&mut r)?)
        }
        component_tag::POLICIES => {
            let policies = parse_policies(&component.data).ok()?;
            let words: Vec<_> = policies.iter().map(explain_policy).collect();
            format!("policies: {}", words.join(", "))
        }
        component_tag::DECKWATCH_LANES => {
            let lanes = LocalLane::list_from_octets(&component.data).ok()?;
            let words: Vec<_> = lanes.iter().map(explain_local_lane).collect();
            format!("lanes within a host: {}", words.join(", "))
        }
        component_tag::TAO_ENDPOINTS => {
            let lanes = LaneEndpoint::list_from_octets(&component.data).ok()?;
            let words: Vec<_> = lanes.iter().map(explain_lane).collect();
            format!("lanes: {}", words.join(", "))
        }
        component_tag::SSL_SEC_TRANS => {
            explain_ssl(SslTransport::from_octets(&component.data).ok()?)
        }
        component_tag::CSI_SEC_MECH_LIST => {
            let mechanisms = SecurityMechanism::list_from_octets(&component.data).ok()?;
            let words: Vec<_> = mechanisms.iter().map(explain_mechanism).collect();
            format!("CSIv2: {}", words.join("; or "))
        }
        _ => return None,
    })
}

/// A path and its host.
fn place_of_host(r: &mut Reader<'_>) -> Option<String> {
    let host = String::from_utf8_lossy(r.read_string_octets().ok()?);
    let path = String::from_utf8_lossy(r.read_string_octets().ok()?);
    Some(format!("{} of {}", escaped(&path), escaped(&host)))
}

fn explain_lane(lane: &LaneEndpoint) -> String {
    let (host, port) = (escaped(&lane.host), lane.port);
    match lane.priority {
        ..0 => format!("{host} port {port}"),
        priority => format!("priority {priority} at {host} port {port}"),
    }
}

fn explain_local_lane(lane: &LocalLane) -> String {
    let (host, path) = (escaped(&lane.host), escaped(&lane.path));
    format!("priority {} at {path} of {host}", lane.priority)
}

fn explain_ssl(ssl: SslTransport) -> String {
    let (supports, requires) = (option_words(ssl.supports), option_words(ssl.requires));
    format!(
        "TLS at port {}; supports {supports}; requires {requires}",
        ssl.port
    )
}

fn explain_mechanism(mechanism: &SecurityMechanism) -> String {
    let mut words = match &mechanism.transport {
        MechanismTransport::Plain => "no protected transport".to_owned(),
        MechanismTransport::Other(tag) => format!("a transport of the unknown tag {tag}"),
        MechanismTransport::Tls(tls) => {
            let places = tls.addresses.iter();
            let places: Vec<_> = places
                .map(|(host, port)| format!("{} port {port}", escaped(host)))
                .collect();
            let (supports, requires) = (option_words(tls.supports), option_words(tls.requires));
            let at = if places.is_empty() {
                "the profile's address".to_owned()
            } else {
                places.join(" and ")
            };
            format!("TLS at {at}, supports {supports}, requires {requires}")
        }
    };
    for (what, [supports, requires]) in [
        ("requests authenticate", mechanism.authentication),
        ("requests carry", mechanism.attributes),
    ] {
        if supports | requires != 0 {
            let (supports, requires) = (option_words(supports), option_words(requires));
            words.push_str(&format!(
                ", {what}: supports {supports}, requires {requires}"
            ));
        }
    }
    words
}

/// A policy in words, or its number and size.
fn explain_policy(policy: &PolicyValue) -> String {
    let words = match policy.policy_type {
        policy_type::PRIORITY_MODEL => {
            let value = PriorityModelValue::from_octets(&policy.value).ok();
            value.map(|value| match value.model {
                0 => format!(
                    "the caller's priority, {} for callers without one",
                    value.server_priority
                ),
                _ => format!("the server's priority {}", value.server_priority),
            })
        }
        policy_type::PRIORITY_BANDED_CONNECTION => {
            let bands = BandValue::list_from_octets(&policy.value).ok();
            let band = |band: &BandValue| format!("{} to {}", band.low, band.high);
            bands.map(|bands| {
                let words: Vec<_> = bands.iter().map(band).collect();
                format!("bands {}", words.join(" and "))
            })
        }
        policy_type::CLIENT_PROTOCOL => {
            let protocols = ProtocolValue::list_from_octets(&policy.value).ok();
            let protocol = |protocol: &ProtocolValue| match protocol {
                ProtocolValue::Tcp { .. } => "TCP".to_owned(),
                ProtocolValue::UnixDomain { .. } => "unix sockets".to_owned(),
                ProtocolValue::SharedMemory { .. } => "shared memory".to_owned(),
                ProtocolValue::Other(number) => format!("{number:#010x}"),
            };
            protocols.map(|protocols| {
                let words: Vec<_> = protocols.iter().map(protocol).collect();
                format!("protocols {}", words.join(" and "))
            })
        }
        _ => None,
    };
    words.unwrap_or_else(|| format!("{} ({} octets)", policy.policy_type, policy.value.len()))
}

/// ORB types registered with the OMG, of the ORBs still in use.
const fn orb_name(orb: u32) -> Option<&'static str> {
    Some(match orb {
        0x4154_5400 => "omniORB",
        super::TAO => "TAO",
        0x4A41_4300 => "JacORB",
        0x4F42_0001 => "ORBacus",
        _ => return None,
    })
}

/// Text with octets that do not print escaped.
fn octets(octets: &[u8]) -> String {
    let shown = &octets[..octets.len().min(OCTETS_SHOWN)];
    let rest = if octets.len() > OCTETS_SHOWN {
        format!("... ({} octets)", octets.len())
    } else {
        String::new()
    };
    format!("\"{}\"{rest}", shown.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::super::policies::policies_component;
    use super::super::security::TlsTransport;
    use super::super::{alternate_address, shared_memory_address, unix_address};
    use super::*;

    #[test]
    fn every_part_of_a_reference_is_told() {
        let mut profile = IiopProfile::new("nav.ship", 2809, b"NameService\0\xFF");
        let omni = vec![1, 0, 0, 0, 0, 0x54, 0x54, 0x41];
        profile.components = vec![
            TaggedComponent {
                tag: component_tag::ORB_TYPE,
                data: omni,
            },
            CodeSetInfo::ours().to_component().unwrap(),
            alternate_address("backup", 99).unwrap(),
            unix_address("nav", "/run/nav").unwrap(),
            shared_memory_address("nav", "/run/shm").unwrap(),
            policies_component(&[
                PriorityModelValue {
                    model: 0,
                    server_priority: 5,
                }
                .to_policy()
                .unwrap(),
                BandValue::list_to_policy(&[BandValue { low: 0, high: 9 }]).unwrap(),
                PolicyValue {
                    policy_type: 23,
                    value: vec![1],
                },
            ])
            .unwrap(),
            LaneEndpoint::list_to_component(&[
                LaneEndpoint {
                    host: "nav.ship".to_owned(),
                    port: 2809,
                    priority: 5,
                },
                LaneEndpoint {
                    host: "nav.ship".to_owned(),
                    port: 2810,
                    priority: -1,
                },
            ])
            .unwrap(),
            LocalLane::list_to_component(&[LocalLane {
                protocol: 0x5441_4F00,
                host: "nav".to_owned(),
                path: "/run/nav".to_owned(),
                priority: 5,
            }])
            .unwrap(),
            SslTransport {
                supports: 0x7f,
                requires: 1,
                port: 2810,
            }
            .to_component()
            .unwrap(),
            SecurityMechanism::list_to_component(&[SecurityMechanism {
                requires: 6,
                transport: MechanismTransport::Tls(TlsTransport {
                    supports: 0x3e,
                    requires: 6,
                    addresses: vec![("nav.ship".to_owned(), 2810)],
                }),
                authentication: [0x40, 0],
                ..SecurityMechanism::default()
            }])
            .unwrap(),
            TaggedComponent {
                tag: 77,
                data: vec![1, 2],
            },
        ];
        let mut ior = Ior::with_iiop("IDL:X:1.0", &profile).unwrap();
        ior.profiles.push(TaggedProfile {
            tag: 9,
            data: b"abc".to_vec(),
        });
        ior.profiles.push(TaggedProfile {
            tag: profile_tag::INTERNET_IOP,
            data: vec![0, 1],
        });
        assert_eq!(
            ior.explain(),
            "type id: IDL:X:1.0\n\
             profile 1: IIOP\n  IIOP 1.2 at nav.ship port 2809\n  \
             object key: \"NameService\\x00\\xff\"\n  made by omniORB\n  \
             code sets: UTF-8 (converts ISO 8859-1) for char, UTF-16 for wchar\n  also at backup port 99\n  \
             also at the unix socket /run/nav of nav\n  \
             also through memory shared at /run/shm of nav\n  \
             policies: the caller's priority, 5 for callers without one, bands 0 to 9, 23 (1 octets)\n  \
             lanes: priority 5 at nav.ship port 2809, nav.ship port 2810\n  \
             lanes within a host: priority 5 at /run/nav of nav\n  \
             TLS at port 2810; supports no protection, integrity, confidentiality, replay detection, \
             misordering detection, a server certificate, a client certificate; requires no protection\n  \
             CSIv2: TLS at nav.ship port 2810, supports integrity, confidentiality, replay detection, \
             misordering detection, a server certificate, requires integrity, confidentiality, \
             requests authenticate: supports a client certificate, requires nothing\n  \
             component 0x0000004d, 2 octets: \"\\x01\\x02\"\n\
             profile 2: of an unknown kind, tag 0x00000009\n  3 octets: \"abc\"\n\
             profile 3: IIOP\n  malformed: the octets end before the value does (at octet 2)\n"
        );
        assert!(Ior::nil().explain().starts_with("a nil reference"));
    }
}

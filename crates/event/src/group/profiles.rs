//! References with a profile for each member of a group.

use deckwatch_giop::ior::{Ior, component_tag};
use deckwatch_orb::{ObjectRef, Orb, Origin};

/// The addresses of the members, this one's first. Without any, references are left as they are.
#[derive(Clone, Default)]
pub(crate) struct Profiles {
    orb: Option<Orb>,
    others: Vec<(String, u16)>,
}

impl Profiles {
    pub(crate) fn new(orb: &Orb, others: Vec<(String, u16)>) -> Self {
        Self {
            orb: Some(orb.clone()),
            others,
        }
    }

    /// The reference with further profiles: the same key at the other members.
    pub(crate) fn add_to(&self, reference: ObjectRef) -> ObjectRef {
        let Some(orb) = &self.orb else {
            return reference;
        };
        let mut ior = reference.ior().clone();
        for (host, port) in &self.others {
            self.add(&mut ior, host, *port);
        }
        let object = orb.string_to_object_of(&ior.to_string(), Origin::Own);
        object.ok().flatten().unwrap_or(reference)
    }

    fn add(&self, ior: &mut Ior, host: &str, port: u16) {
        let Some(Ok(mut profile)) = ior.iiop_profiles().next() else {
            return;
        };
        (profile.host, profile.port) = (host.to_owned(), port);
        // What else the profile has are this member's own addresses.
        let is_common = |tag| [component_tag::ORB_TYPE, component_tag::CODE_SETS].contains(&tag);
        profile
            .components
            .retain(|component| is_common(component.tag));
        if let Ok(tagged) = profile.to_tagged() {
            ior.profiles.push(tagged);
        }
    }
}

//! Reads the references and files that argument values name.

use std::path::Path;

use deckwatch_cdr::value::Reference;
use deckwatch_giop::Ior;
use deckwatch_giop::ior::TaggedProfile;
use deckwatch_idl::notation::World;
use deckwatch_orb::Orb;
use deckwatch_os::regular;

pub(crate) struct Surroundings<'o> {
    pub(crate) orb: &'o Orb,
}

impl World for Surroundings<'_> {
    fn reference(&self, text: &str) -> Result<Reference, String> {
        let object = self
            .orb
            .string_to_object(text)
            .map_err(|error| error.to_string())?;
        let Some(object) = object else {
            return Ok(Reference::default());
        };
        let ior = object.ior();
        Ok(Reference {
            type_id: ior.type_id.clone(),
            profiles: (ior.profiles.iter())
                .map(|profile| (profile.tag, profile.data.clone()))
                .collect(),
        })
    }

    fn reference_text(&self, reference: &Reference) -> String {
        let profiles = reference.profiles.iter().map(|(tag, data)| TaggedProfile {
            tag: *tag,
            data: data.clone(),
        });
        let ior = Ior {
            type_id: reference.type_id.clone(),
            profiles: profiles.collect(),
        };
        ior.to_string()
    }

    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        regular::read(Path::new(path), FILE_SIZE_MAX).map_err(|error| error.to_string())
    }
}

/// Maximum size of a file that holds a value, in octets: several times the largest message.
const FILE_SIZE_MAX: u64 = 64 << 20;

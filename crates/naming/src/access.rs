//! What the operations of contexts and listings need, by the words of access tables.

use deckwatch_access::Action;
use deckwatch_cdr::{Parse as _, Reader};
use deckwatch_orb::cos_naming::NameComponent;
use deckwatch_orb::{Access, Guard, Need, Orb, Vocabulary};
use std::sync::Arc;

use crate::name::to_text;
use crate::store::ROOT;

/// The name of all objects of the service in access tables.
pub const NAMES: &str = "names";

/// A guard for the adapters of a naming service.
pub(crate) fn guard(orb: &Orb, access: Access) -> Arc<Guard> {
    Guard::new(orb, access.named(Some(NAMES.to_owned())), Words)
}

struct Words;

impl Vocabulary for Words {
    fn need(&self, kind: &[&str], operation: &[u8], object_id: &[u8]) -> Need {
        let is_listing = kind.iter().any(|id| id.contains("/BindingIterator:"));
        Need::All(match operation {
            _ if is_listing => Action::Resolve,
            b"resolve" | b"resolve_str" | b"list" | b"to_name" | b"to_string" | b"to_url" => {
                Action::Resolve
            }
            b"destroy" if object_id == ROOT.to_be_bytes() => Action::Administer,
            b"bind" | b"rebind" | b"bind_context" | b"rebind_context" | b"bind_new_context"
            | b"new_context" | b"unbind" | b"destroy" => Action::Bind,
            // An operation that is added later is closed until it has a word here.
            _ => Action::Administer,
        })
    }

    /// The name that is bound or unbound.
    fn about(&self, operation: &[u8], mut arguments: Reader<'_>) -> Option<String> {
        if matches!(operation, b"destroy" | b"new_context") {
            return None;
        }
        let name = Vec::<NameComponent>::parse(&mut arguments).ok()?;
        let components = name.iter().map(|it| (it.id.as_str(), it.kind.as_str()));
        Some(to_text(components))
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_cdr::{ByteOrder, Write as _, Writer};

    use super::*;

    #[test]
    fn audit_says_which_name_a_request_is_about() {
        let name = [("ships", ""), ("nav", "channel")].map(|(id, kind)| NameComponent {
            id: id.to_owned(),
            kind: kind.to_owned(),
        });
        let mut octets = Vec::new();
        name.to_vec()
            .write(&mut Writer::new(&mut octets))
            .expect("written");
        let about = |operation: &[u8], octets: &[u8]| {
            Words.about(operation, Reader::new(octets, ByteOrder::NATIVE))
        };
        assert_eq!(
            about(b"bind", &octets).as_deref(),
            Some("ships/nav.channel")
        );
        assert_eq!(about(b"bind", &octets[..5]), None, "cut");
        assert_eq!(about(b"destroy", &octets), None, "it has no argument");
        assert_eq!(about(b"new_context", &octets), None);
    }

    #[test]
    fn each_operation_of_a_context_has_a_word_and_unknown_ones_are_administration() {
        let context = ["IDL:omg.org/CosNaming/NamingContextExt:1.0"];
        let listing = ["IDL:omg.org/CosNaming/BindingIterator:1.0"];
        let of = |kind: &[&str], operation: &[u8], id: u64| {
            Words.need(kind, operation, &id.to_be_bytes())
        };
        assert_eq!(of(&context, b"resolve", ROOT), Need::All(Action::Resolve));
        assert_eq!(of(&context, b"rebind", ROOT), Need::All(Action::Bind));
        assert_eq!(
            of(&context, b"destroy", ROOT),
            Need::All(Action::Administer)
        );
        assert_eq!(of(&context, b"destroy", ROOT + 1), Need::All(Action::Bind));
        assert_eq!(of(&listing, b"destroy", ROOT), Need::All(Action::Resolve));
        assert_eq!(of(&context, b"gc", ROOT), Need::All(Action::Administer));
    }
}

//! Which events are wanted.

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::typecode::Kind;

use super::Event;

/// A choice of events. Without any term, all are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// An event is of one of these types.
    pub types: Vec<TypeTerm>,
}

/// One type that is wanted.
#[derive(Clone, Debug)]
pub enum TypeTerm {
    /// A name: `NavData`, `Nav::NavData`, a repository id, or the IDL of a type without a name.
    Name(String),
    /// A type of an IDL file: the event has an equivalent type, or octets that may be an encapsulation of it.
    Known(TypeCode),
}

impl Selection {
    /// Whether an event is wanted.
    #[must_use]
    pub fn wants(&self, event: &Event) -> bool {
        let code = event.data.type_code();
        self.types.is_empty() || self.types.iter().any(|term| term.fits(code))
    }
}

impl TypeTerm {
    fn fits(&self, code: &TypeCode) -> bool {
        match self {
            Self::Name(name) => has_name(code, name),
            Self::Known(known) => code.equivalent(known) || is_octets(code),
        }
    }
}

/// Whether a type is a sequence of octets.
pub(super) fn is_octets(code: &TypeCode) -> bool {
    let plain = code.unaliased();
    let of_octets = |content: TypeCode| content.unaliased().kind() == Kind::Octet;
    plain.kind() == Kind::Sequence && plain.content_type().is_some_and(of_octets)
}

/// Whether `name` is a type's repository id, its scoped name, or the last parts of its scoped name.
fn has_name(code: &TypeCode, name: &str) -> bool {
    let name = name.trim_start_matches("::");
    match code.id().filter(|id| !id.is_empty()) {
        Some(id) if id == name => true,
        Some(id) => ends_scoped(&scoped_name(id), name),
        None => code.to_string() == name,
    }
}

/// Returns the scoped name in a repository id: `Nav::NavData` of `IDL:Nav/NavData:1.0`. An id of another form is
/// returned as it is.
#[must_use]
pub fn scoped_name(id: &str) -> String {
    let inner = id.strip_prefix("IDL:").and_then(|id| id.rsplit_once(':'));
    inner.map_or_else(|| id.to_owned(), |(path, _)| path.replace('/', "::"))
}

fn ends_scoped(whole: &str, name: &str) -> bool {
    let before = whole.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::Any;
    use deckwatch_idl::Model;

    fn nav() -> TypeCode {
        let idl = "#pragma prefix \"ship\"\nmodule Nav { struct NavData { long n; }; };";
        let model = Model::parse("nav.idl", idl).expect("an IDL");
        model.type_code("Nav::NavData").expect("the type")
    }

    fn event(code: &TypeCode) -> Event {
        let value = deckwatch_cdr::value::Value::default_for(code).expect("a value");
        Event {
            data: Any::from_dynamic(code, &value).expect("an event"),
        }
    }

    fn named(name: &str) -> Selection {
        Selection {
            types: vec![TypeTerm::Name(name.to_owned())],
        }
    }

    #[test]
    fn a_type_is_named_by_its_id_or_the_end_of_its_scoped_name() {
        let nav = event(&nav());
        for name in [
            "NavData",
            "Nav::NavData",
            "::Nav::NavData",
            "ship::Nav::NavData",
            "IDL:ship/Nav/NavData:1.0",
        ] {
            assert!(named(name).wants(&nav), "{name}");
        }
        for name in ["Data", "v::NavData", "Nav", "NavData2", "", "long"] {
            assert!(!named(name).wants(&nav), "{name}");
        }
        let number = Event {
            data: Any::from_value(&7_u32).expect("an event"),
        };
        assert!(named("unsigned long").wants(&number));
        assert!(!named("long").wants(&number));
        assert!(Selection::default().wants(&number));
    }

    #[test]
    fn a_known_type_fits_types_without_names_and_octets() {
        let known = Selection {
            types: vec![TypeTerm::Known(nav())],
        };
        assert!(known.wants(&event(&nav())));
        let octets = Event {
            data: Any::from_value(&vec![0_u8; 3]).expect("an event"),
        };
        assert!(known.wants(&octets));
        let number = Event {
            data: Any::from_value(&7_u32).expect("an event"),
        };
        assert!(!known.wants(&number));
    }
}

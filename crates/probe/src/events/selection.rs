//! Which events are wanted.

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::typecode::Kind;

use super::Event;

/// A choice of events. Without any term, all are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// An event is of one of these types.
    pub types: Vec<TypeTerm>,
    /// The header of an event has one of these sources.
    pub sources: Vec<i32>,
}

/// One type that is wanted.
#[derive(Clone, Debug)]
pub enum TypeTerm {
    /// A name: `NavData`, `Nav::NavData`, a repository id, or the IDL of a type without a name.
    Name(String),
    /// A type of an IDL file: the event has an equivalent type, or octets that may be an encapsulation of it.
    Known(TypeCode),
    /// The type in the header of an event of the real-time channel.
    Header(i32),
}

impl Selection {
    /// Whether an event is wanted.
    #[must_use]
    pub fn wants(&self, event: &Event) -> bool {
        let has_source = |source: &i32| event.header.is_some_and(|header| header.source == *source);
        let is_from = self.sources.is_empty() || self.sources.iter().any(has_source);
        is_from && (self.types.is_empty() || self.types.iter().any(|term| term.fits(event)))
    }

    /// Whether only events with a header can be wanted.
    #[must_use]
    pub fn needs_header(&self) -> bool {
        let is_header = |term: &TypeTerm| matches!(term, TypeTerm::Header(_));
        !self.sources.is_empty() || self.types.iter().any(is_header)
    }

    /// Returns type and source of the headers of all events that are wanted, 0 for any, so that a channel need not send
    /// others.
    #[must_use]
    pub fn headers(&self) -> Vec<(i32, i32)> {
        let number = |term: &TypeTerm| match term {
            TypeTerm::Header(number) => *number,
            TypeTerm::Name(_) | TypeTerm::Known(_) => 0,
        };
        let mut types: Vec<i32> = self.types.iter().map(number).collect();
        if types.is_empty() || types.contains(&0) {
            types = vec![0];
        }
        let any = [0];
        let sources = if self.sources.is_empty() {
            &any[..]
        } else {
            &self.sources
        };
        let of_type = |number: &i32| {
            sources
                .iter()
                .map(|source| (*number, *source))
                .collect::<Vec<_>>()
        };
        types.iter().flat_map(of_type).collect()
    }
}

impl TypeTerm {
    fn fits(&self, event: &Event) -> bool {
        let code = event.data.type_code();
        match self {
            Self::Name(name) => has_name(code, name),
            Self::Known(known) => {
                code.equivalent(known) || is_octets(code) || !event.payload.is_empty()
            }
            Self::Header(number) => event.header.is_some_and(|header| header.r#type == *number),
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
    use deckwatch_event::rtec_event_comm::EventHeader;
    use deckwatch_idl::Model;

    fn nav() -> TypeCode {
        let idl = "#pragma prefix \"ship\"\nmodule Nav { struct NavData { long n; }; };";
        let model = Model::parse("nav.idl", idl).expect("an IDL");
        model.type_code("Nav::NavData").expect("the type")
    }

    fn event(code: &TypeCode) -> Event {
        let value = deckwatch_cdr::value::Value::default_for(code).expect("a value");
        Event::of(Any::from_dynamic(code, &value).expect("an event"))
    }

    fn named(name: &str) -> Selection {
        Selection {
            types: vec![TypeTerm::Name(name.to_owned())],
            ..Selection::default()
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
        let number = Event::of(Any::from_value(&7_u32).expect("an event"));
        assert!(named("unsigned long").wants(&number));
        assert!(!named("long").wants(&number));
        assert!(Selection::default().wants(&number));
    }

    #[test]
    fn a_known_type_fits_types_without_names_and_octets() {
        let known = Selection {
            types: vec![TypeTerm::Known(nav())],
            ..Selection::default()
        };
        assert!(known.wants(&event(&nav())));
        let octets = Event::of(Any::from_value(&vec![0_u8; 3]).expect("an event"));
        assert!(known.wants(&octets));
        let number = Event::of(Any::from_value(&7_u32).expect("an event"));
        assert!(!known.wants(&number));
    }

    #[test]
    fn type_and_source_of_a_header_are_numbers() {
        let of = |number, source| Event {
            header: Some(EventHeader {
                r#type: number,
                source,
                ..EventHeader::default()
            }),
            ..Event::of(Any::empty())
        };
        let wanted = Selection {
            types: vec![TypeTerm::Header(17), TypeTerm::Header(18)],
            sources: vec![3, 4],
        };
        assert!(wanted.wants(&of(18, 3)));
        assert!(!wanted.wants(&of(18, 5)) && !wanted.wants(&of(19, 3)));
        assert!(!wanted.wants(&Event::of(Any::empty())));
        assert_eq!(wanted.headers(), [(17, 3), (17, 4), (18, 3), (18, 4)]);
        assert_eq!(Selection::default().headers(), [(0, 0)]);
        assert!(wanted.needs_header() && !named("long").needs_header());
        let by_name = Selection {
            sources: vec![3],
            ..named("long")
        };
        assert_eq!(
            by_name.headers(),
            [(0, 3)],
            "the channel does not know the type of the value"
        );
    }
}

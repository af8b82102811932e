//! A key expression with places for type and source, such as `ship/nav/{type}/{source}`.

use zenoh::key_expr::{KeyExpr, keyexpr};

use crate::limits::KEY_CHUNKS_MAX;

/// A key expression whose chunks may be places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    text: String,
    chunks: Vec<Chunk>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Chunk {
    Literal(String),
    Type,
    Source,
}

/// The numbers in a key, where the template has places for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) event_type: Option<i32>,
    pub(crate) source: Option<i32>,
}

impl Template {
    /// Parses a template; the error says what to write instead.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let chunks: Vec<Chunk> = text.split('/').map(Chunk::of).collect();
        if chunks.len() > KEY_CHUNKS_MAX {
            return Err(format!("it has more than {KEY_CHUNKS_MAX} chunks"));
        }
        for (place, name) in [(Chunk::Type, "{type}"), (Chunk::Source, "{source}")] {
            if chunks.iter().filter(|chunk| **chunk == place).count() > 1 {
                return Err(format!("{name} stands in it twice: write it once"));
            }
        }
        let partly =
            |chunk: &Chunk| matches!(chunk, Chunk::Literal(text) if text.contains(['{', '}']));
        if chunks.iter().any(partly) {
            return Err(
                "only {type} and {source} may stand in braces, each alone between slashes, \
                        as in \"ship/nav/{type}/{source}\""
                    .to_owned(),
            );
        }
        if text.contains(['*', '$']) {
            return Err(
                "wildcards have no number for the event: write {type} or {source}, \
                        or a mapping for each key"
                    .to_owned(),
            );
        }
        let template = Self {
            text: text.to_owned(),
            chunks,
        };
        match keyexpr::new(&template.wild()) {
            Ok(_) => Ok(template),
            Err(error) => Err(format!("zenoh says: {error}")),
        }
    }

    /// The text that was parsed.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn has_type(&self) -> bool {
        self.chunks.contains(&Chunk::Type)
    }

    pub(crate) fn has_source(&self) -> bool {
        self.chunks.contains(&Chunk::Source)
    }

    /// The key expression that all keys of the template match.
    pub(crate) fn expression(&self) -> KeyExpr<'static> {
        KeyExpr::new(self.wild()).expect("parse has checked it")
    }

    fn wild(&self) -> String {
        self.rendered("*", "*")
    }

    /// The key of an event.
    pub(crate) fn key(&self, event_type: i32, source: i32) -> KeyExpr<'static> {
        let key = self.rendered(&event_type.to_string(), &source.to_string());
        KeyExpr::new(key).expect("a number is a valid chunk")
    }

    fn rendered(&self, event_type: &str, source: &str) -> String {
        let chunk = |chunk| match chunk {
            &Chunk::Type => event_type,
            &Chunk::Source => source,
            Chunk::Literal(text) => text,
        };
        let chunks: Vec<&str> = self.chunks.iter().map(chunk).collect();
        chunks.join("/")
    }

    /// Returns the numbers in a key. `None` if the key is none of this template.
    pub(crate) fn read(&self, key: &str) -> Option<Numbers> {
        let mut numbers = Numbers::default();
        let mut parts = key.split('/');
        for chunk in &self.chunks {
            let part = parts.next()?;
            match chunk {
                Chunk::Literal(text) if text == part => {}
                Chunk::Literal(_) => return None,
                Chunk::Type => numbers.event_type = Some(number(part)?),
                Chunk::Source => numbers.source = Some(number(part)?),
            }
        }
        parts.next().is_none().then_some(numbers)
    }

    /// Whether a key may be one of both templates.
    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.expression().intersects(&other.expression())
    }
}

impl Chunk {
    fn of(text: &str) -> Self {
        match text {
            "{type}" => Self::Type,
            "{source}" => Self::Source,
            literal => Self::Literal(literal.to_owned()),
        }
    }
}

/// Reads a number in the one form in which [`Template::key`] writes it: two keys never stand for one event.
fn number(text: &str) -> Option<i32> {
    let number: i32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(template: &str, key: &str) -> Option<(Option<i32>, Option<i32>)> {
        let numbers = Template::parse(template).expect("a template").read(key)?;
        Some((numbers.event_type, numbers.source))
    }

    #[test]
    fn a_key_that_was_written_is_read_back() {
        let template = Template::parse("ship/{source}/nav/{type}").expect("a template");
        assert_eq!(template.expression().as_str(), "ship/*/nav/*");
        for (event_type, source) in [(16, 0), (i32::MAX, -1), (17, i32::MIN)] {
            let key = template.key(event_type, source);
            assert_eq!(
                read("ship/{source}/nav/{type}", key.as_str()),
                Some((Some(event_type), Some(source)))
            );
        }
        assert_eq!(read("ship/nav", "ship/nav"), Some((None, None)));
    }

    #[test]
    fn other_keys_and_other_forms_of_numbers_are_not_read() {
        for key in [
            "a/17/b",
            "a/+17",
            "a/017",
            "a/x",
            "a",
            "a/17/",
            "b/17",
            "a/99999999999",
            "a/",
        ] {
            assert_eq!(read("a/{type}", key), None, "{key}");
        }
        assert_eq!(read("a/{type}", "a/17"), Some((Some(17), None)));
    }

    #[test]
    fn mistakes_in_a_template_are_refused() {
        for text in [
            "",
            "/a",
            "a/",
            "a//b",
            "a/{type}/{type}",
            "a/x{type}",
            "a/{kind}",
            "a/*",
            "a/**",
            "a/x$*",
            "a/#",
            "a?b",
        ] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
        let many = vec!["a"; KEY_CHUNKS_MAX + 1].join("/");
        assert!(Template::parse(&many).is_err());
    }

    #[test]
    fn templates_intersect_where_a_key_fits_both() {
        let of = |text| Template::parse(text).expect("a template");
        assert!(of("a/{type}").intersects(&of("a/17")));
        assert!(of("a/{type}").intersects(&of("{source}/b")));
        assert!(!of("a/{type}").intersects(&of("a/{type}/{source}")));
        assert!(!of("a/b").intersects(&of("a/c")));
    }
}

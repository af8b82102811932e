//! Repository ids, and the pragmas that change them (CORBA 3.3 part 1, clause 14.7).

use logos::Logos;

use crate::parse::ast::{Name, ScopedName};
use crate::text::lexer::Kind;
use crate::text::source::Span;

/// A `#pragma` that this compiler knows.
#[derive(Debug)]
pub(crate) enum Pragma {
    Prefix(String),
    Id(ScopedName, String),
    Version(ScopedName, String),
    /// A pragma of another compiler.
    Other,
}

/// Reads a `#pragma` line.
///
/// # Errors
/// Returns a message that describes the expected form.
pub(crate) fn pragma(line: &str, span: Span) -> Result<Pragma, String> {
    let joined = line.replace("\\\r\n", "   ").replace("\\\n", "  ");
    let tokens: Vec<(Kind, Span)> = Kind::lexer(&joined[1..])
        .spanned()
        .filter_map(|(kind, range)| {
            let base = span.start + 1;
            let place = Span {
                file: span.file,
                start: base + range.start as u32,
                end: base + range.end as u32,
            };
            kind.ok().map(|kind| (kind, place))
        })
        .collect();
    let text = |place: &Span| {
        &line[(place.start - span.start) as usize..(place.end - span.start) as usize]
    };
    let rest = tokens.get(2..).unwrap_or(&[]);
    match tokens.get(1).map_or("", |(_, place)| text(place)) {
        "prefix" => match rest {
            [(Kind::String, place)] => Ok(Pragma::Prefix(unquoted(text(place)))),
            _ => Err("expected a string: `#pragma prefix \"omg.org\"`".into()),
        },
        "ID" => match rest {
            [name @ .., (Kind::String, place)] => {
                Ok(Pragma::Id(scoped(name, text)?, unquoted(text(place))))
            }
            _ => Err("expected a name and a string: `#pragma ID M::I \"IDL:M/I:1.0\"`".into()),
        },
        "version" => match rest {
            [name @ .., (Kind::Float, place)] => {
                Ok(Pragma::Version(scoped(name, text)?, text(place).into()))
            }
            _ => Err("expected a name and a version: `#pragma version M::I 1.1`".into()),
        },
        _ => Ok(Pragma::Other),
    }
}

fn unquoted(text: &str) -> String {
    text[1..text.len() - 1].to_owned()
}

fn scoped<'a>(
    tokens: &[(Kind, Span)],
    text: impl Fn(&Span) -> &'a str,
) -> Result<ScopedName, String> {
    let absolute = matches!(tokens.first(), Some((Kind::Scope, _)));
    let mut parts = Vec::new();
    for (index, (kind, place)) in tokens.iter().enumerate().skip(usize::from(absolute)) {
        match (kind, (index + usize::from(absolute)) % 2) {
            (Kind::Word, 0) => {
                let text = text(place);
                let name = text.strip_prefix('_').unwrap_or(text);
                parts.push(Name {
                    text: name.to_owned(),
                    escaped: name != text,
                    span: *place,
                });
            }
            (Kind::Scope, 1) => {}
            _ => return Err("expected a name".into()),
        }
    }
    match (parts.first(), parts.last()) {
        (Some(first), Some(last)) => {
            let span = first.span.to(last.span);
            Ok(ScopedName {
                absolute,
                parts,
                span,
            })
        }
        _ => Err("expected a name".into()),
    }
}

/// Returns the repository id `IDL:prefix/A/B:1.0`.
pub(crate) fn repository_id(prefix: &str, scoped_name: &str) -> String {
    let slash = if prefix.is_empty() { "" } else { "/" };
    format!("IDL:{prefix}{slash}{}:1.0", scoped_name.replace("::", "/"))
}

/// Returns the id with another version; unchanged if it is not of the `IDL` format.
pub(crate) fn with_version(id: &str, version: &str) -> String {
    match id
        .strip_prefix("IDL:")
        .and_then(|rest| rest.rsplit_once(':'))
    {
        Some((path, _)) => format!("IDL:{path}:{version}"),
        None => id.to_owned(),
    }
}

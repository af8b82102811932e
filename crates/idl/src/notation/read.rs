//! Reads values from text.

use deckwatch_cdr::limits::NESTING_MAX;
use deckwatch_cdr::typecode::Kind;
use deckwatch_cdr::value::{Reference, Value};
use deckwatch_cdr::{Any, TypeCode};

use super::print::shown_name;
use super::scan::{Scanner, Token};
use super::{Notation, NotationError, leaf};

type Read<T> = Result<T, NotationError>;

/// Reads a text that is exactly one value.
pub(super) fn whole(notation: &Notation<'_>, type_code: &TypeCode, text: &str) -> Read<Value> {
    let mut reading = Reading {
        notation,
        scan: Scanner::new(text),
    };
    let value = reading.value(type_code, 0)?;
    reading.scan.finish()?;
    Ok(value)
}

struct Reading<'a> {
    notation: &'a Notation<'a>,
    scan: Scanner<'a>,
}

impl<'a> Reading<'a> {
    /// Reads a value; `depth` is 0 for a value that is not part of another.
    fn value(&mut self, type_code: &TypeCode, depth: u8) -> Read<Value> {
        if depth >= NESTING_MAX {
            let at = self.scan.at();
            return Err(NotationError::new(
                at,
                at,
                "values nest deeper than the limit",
            ));
        }
        let plain = type_code.unaliased();
        match plain.kind() {
            Kind::Struct | Kind::Except => self.structure(&plain, depth),
            Kind::Union => self.union(&plain, depth),
            Kind::Sequence | Kind::Array => self.elements(&plain, depth),
            Kind::Any => self.any(depth),
            Kind::Null | Kind::Void => {
                let token = self.scalar(type_code, depth)?;
                if token.text == "null" {
                    Ok(Value::Nothing)
                } else {
                    Err(token.error("expected null: the type has no value"))
                }
            }
            Kind::Principal => {
                let token = self.scalar(type_code, depth)?;
                self.octets(&token).map(Value::Octets)
            }
            Kind::Objref | Kind::Component | Kind::Home => self.reference(type_code, depth),
            Kind::TypeCode => {
                let token = self.scalar(type_code, depth)?;
                self.type_code(&token).map(Value::TypeCode)
            }
            _ => {
                let token = self.scalar(type_code, depth)?;
                leaf::read(&plain, &token).map_err(|message| {
                    let expected = self.notation.type_text(type_code);
                    token.error(message.replace("{type}", &expected))
                })
            }
        }
    }

    /// Reads a scalar, whose text does not start with a bracket.
    fn scalar(&mut self, type_code: &TypeCode, depth: u8) -> Read<Token<'a>> {
        let open = depth > 0 && matches!(self.scan.peek(), Some('{' | '['));
        match self.scan.scalar(depth == 0)? {
            Some(token) if !open => Ok(token),
            _ => Err(self.expected(type_code)),
        }
    }

    fn expected(&mut self, type_code: &TypeCode) -> NotationError {
        let name = self.notation.type_text(type_code);
        self.scan.expected(&format!("a value of type {name}"))
    }

    /// Reads `{name: value, ...}`, and calls `member` at each value. Returns the offset of the closing brace.
    fn members(&mut self, mut member: impl FnMut(&mut Self, Token<'a>) -> Read<()>) -> Read<usize> {
        self.scan.expect('{')?;
        while self.scan.peek() != Some('}') {
            let name = match self.scan.quoted()? {
                Some(name) => Some(name),
                None => self.scan.word(),
            };
            let Some(name) = name else {
                return Err(self.scan.expected("a member's name"));
            };
            self.scan.expect(':')?;
            member(self, name)?;
            if !self.scan.eat(',') {
                break;
            }
        }
        let end = self.scan.at();
        if self.scan.eat('}') {
            Ok(end)
        } else {
            Err(self.scan.expected("`,` or `}`"))
        }
    }

    fn structure(&mut self, plain: &TypeCode, depth: u8) -> Read<Value> {
        let mut values: Vec<Option<Value>> = vec![None; plain.member_count()];
        if self.scan.peek() != Some('{') {
            let name = self.notation.type_text(plain);
            return Err(self
                .scan
                .expected(&format!("`{{` and the members of {name}")));
        }
        let end = self.members(|reading, name| {
            let index = member_index(plain, &name.text).ok_or_else(|| {
                let known = names(plain).join(", ");
                let within = reading.notation.type_text(plain);
                name.error(format!(
                    "{within} has no member {}; it has {known}",
                    name.shown()
                ))
            })?;
            if values[index].is_some() {
                return Err(name.error(format!("the member {} stands here twice", name.shown())));
            }
            let member = plain.member_type(index).unwrap_or_else(TypeCode::null);
            let value = reading.value(&member, depth + 1);
            values[index] = Some(value.map_err(|error| error.within(&name.text))?);
            Ok(())
        })?;
        if let Some(missing) = values.iter().position(Option::is_none) {
            let member = plain.member_type(missing).unwrap_or_else(TypeCode::null);
            let message = format!(
                "the member `{}` ({}) of {} is missing",
                plain.member_name(missing).unwrap_or(""),
                self.notation.type_text(&member),
                self.notation.type_text(plain)
            );
            return Err(NotationError::new(end, end + 1, message));
        }
        Ok(Value::Struct(values.into_iter().flatten().collect()))
    }

    /// Reads `{case: label, value: member}`, or `{member: value}`.
    fn union(&mut self, plain: &TypeCode, depth: u8) -> Read<Value> {
        let (mut number, mut place, mut named) = (None, None, None);
        let discriminator = plain.discriminator_type().unwrap_or_else(TypeCode::null);
        let end = self.members(|reading, name| {
            match &*name.text {
                "case" if number.is_none() => {
                    let at = reading.scan.at();
                    let label = reading.label(&discriminator, depth + 1);
                    let label = label.map_err(|error| error.within("case"))?;
                    let unfit = || NotationError::new(at, reading.scan.at(), "no union has this case");
                    number = Some(match label {
                        Value::ULongLong(label) => label.cast_signed(),
                        label => label.as_number().ok_or_else(unfit)?,
                    });
                }
                "value" if place.is_none() && named.is_none() => {
                    place = Some(reading.scan);
                    reading.scan.skip(NESTING_MAX)?;
                }
                _ if number.is_none() && place.is_none() && named.is_none() => {
                    let index = member_index(plain, &name.text).ok_or_else(|| {
                        let known = names(plain).join(", ");
                        let within = reading.notation.type_text(plain);
                        name.error(format!(
                            "{within} has no member {}; write {{case: LABEL, value: VALUE}}, or one of {known} with its value",
                            name.shown()
                        ))
                    })?;
                    let member = plain.member_type(index).unwrap_or_else(TypeCode::null);
                    let value = reading.value(&member, depth + 1);
                    named = Some((index, value.map_err(|error| error.within(&name.text))?));
                }
                _ => return Err(name.error("a union has one case and one value")),
            }
            Ok(())
        })?;
        if let Some((index, value)) = named {
            let label = label_of(plain, index);
            return Ok(Value::Union(label, Some(Box::new(value))));
        }
        let missing = |what: &str| {
            let message = format!(
                "the {what} of {} is missing",
                self.notation.type_text(plain)
            );
            NotationError::new(end, end + 1, message)
        };
        let number = number.ok_or_else(|| missing("case"))?;
        match (case_of(plain, number), place) {
            (Some(index), Some(place)) => {
                let mut inner = Reading {
                    notation: self.notation,
                    scan: place,
                };
                let member = plain.member_type(index).unwrap_or_else(TypeCode::null);
                let value = inner.value(&member, depth + 1);
                let value = value.map_err(|error| error.within("value"))?;
                Ok(Value::Union(number, Some(Box::new(value))))
            }
            (None, None) => Ok(Value::Union(number, None)),
            (Some(_), None) => Err(missing("value")),
            (None, Some(_)) => Err(NotationError::new(
                end,
                end + 1,
                "no member has this case, so that there is no value",
            )),
        }
    }

    /// Reads a discriminator's value. For an enum also accepts a number, since a server can send one that has no
    /// enumerator.
    fn label(&mut self, discriminator: &TypeCode, depth: u8) -> Read<Value> {
        let mut ahead = self.scan;
        if discriminator.unaliased().kind() == Kind::Enum
            && let Some(token) = ahead.scalar(false)?
            && let Ok(number) = token.text.parse()
        {
            self.scan = ahead;
            return Ok(Value::Enum(number));
        }
        self.value(discriminator, depth)
    }

    fn elements(&mut self, plain: &TypeCode, depth: u8) -> Read<Value> {
        let element = plain.content_type().unwrap_or_else(TypeCode::null);
        let kind = element.unaliased().kind();
        let start = self.scan.at();
        let value = if self.scan.peek() == Some('[') {
            let elements = self.list(&element, depth)?;
            match kind {
                Kind::Octet | Kind::Char => {
                    let octets = elements.iter().filter_map(Value::as_number);
                    Value::Octets(octets.map(|octet| octet as u8).collect())
                }
                _ => Value::Elements(elements),
            }
        } else if matches!(kind, Kind::Octet | Kind::Char) {
            let token = self.scalar(plain, depth)?;
            if kind == Kind::Octet || (!token.quoted && token.text.starts_with('@')) {
                Value::Octets(self.octets(&token)?)
            } else {
                Value::Octets(leaf::latin1(&token.text).map_err(|message| token.error(message))?)
            }
        } else {
            let name = self.notation.type_text(plain);
            return Err(self
                .scan
                .expected(&format!("`[` and the elements of {name}")));
        };
        self.check_length(plain, &value, start)?;
        Ok(value)
    }

    fn list(&mut self, element: &TypeCode, depth: u8) -> Read<Vec<Value>> {
        self.scan.expect('[')?;
        let mut elements = Vec::new();
        while self.scan.peek() != Some(']') {
            let value = self.value(element, depth + 1);
            let step = || format!("[{}]", elements.len());
            let value = value.map_err(|error| error.within(&step()))?;
            elements.push(value);
            if !self.scan.eat(',') {
                break;
            }
        }
        if self.scan.eat(']') {
            Ok(elements)
        } else {
            Err(self.scan.expected("`,` or `]`"))
        }
    }

    fn check_length(&self, plain: &TypeCode, value: &Value, start: usize) -> Read<()> {
        let count = match value {
            Value::Octets(octets) => octets.len(),
            Value::Elements(elements) => elements.len(),
            _ => return Ok(()),
        };
        let length = plain.length().unwrap_or(0) as usize;
        let fits = match plain.kind() {
            Kind::Array => count == length,
            _ => length == 0 || count <= length,
        };
        if fits {
            return Ok(());
        }
        let atmost = if plain.kind() == Kind::Array {
            ""
        } else {
            "at most "
        };
        let message = format!(
            "expected {atmost}{length} elements ({}), found {count}",
            self.notation.type_text(plain)
        );
        Err(NotationError::new(start, self.scan.at(), message))
    }

    /// Reads `{type: "...", value: ...}` in either order, or `null` for an `any` without value.
    fn any(&mut self, depth: u8) -> Read<Value> {
        const FORM: &str = "`{type: \"IDL type\", value: VALUE}`";
        if self.scan.peek() != Some('{') {
            return match self.scan.scalar(depth == 0)? {
                Some(token) if token.text == "null" => Ok(Value::Any(Any::empty())),
                Some(token) => Err(token.error(format!(
                    "expected an any as {FORM}, found {}",
                    token.shown()
                ))),
                None => Err(self.scan.expected(&format!("an any as {FORM}"))),
            };
        }
        let (mut type_code, mut place) = (None, None);
        let end = self.members(|reading, name| {
            match &*name.text {
                "type" if type_code.is_none() => {
                    let token = reading.scalar(&TypeCode::meta(), depth + 1)?;
                    let found = reading.type_code(&token);
                    type_code = Some(found.map_err(|error| error.within("type"))?);
                }
                "value" if place.is_none() => {
                    place = Some(reading.scan);
                    reading.scan.skip(NESTING_MAX)?;
                }
                _ => return Err(name.error(format!("an any is {FORM}"))),
            }
            Ok(())
        })?;
        let (Some(type_code), Some(place)) = (type_code, place) else {
            return Err(NotationError::new(
                end,
                end + 1,
                format!("an any is {FORM}"),
            ));
        };
        let mut inner = Reading {
            notation: self.notation,
            scan: place,
        };
        let value = inner.value(&type_code, depth + 1);
        let value = value.map_err(|error| error.within("value"))?;
        let any = Any::from_dynamic(&type_code, &value);
        any.map(Value::Any)
            .map_err(|error| NotationError::new(place.at(), inner.scan.at(), error.to_string()))
    }

    fn reference(&mut self, type_code: &TypeCode, depth: u8) -> Read<Value> {
        let token = self.scalar(type_code, depth)?;
        if matches!(&*token.text, "nil" | "null") {
            return Ok(Value::Reference(Reference::default()));
        }
        let found = self.notation.world.reference(&token.text);
        found.map(Value::Reference).map_err(|why| {
            token.error(format!(
                "expected IOR:, corbaloc:, corbaname: or nil, found {}: {why}",
                token.shown()
            ))
        })
    }

    fn type_code(&self, token: &Token<'_>) -> Read<TypeCode> {
        self.notation.type_code(&token.text).map_err(|mut error| {
            let quotes = 2 * usize::from(token.quoted);
            if token.text.len() + quotes == token.end - token.start {
                // An opening quote shifts the location by one.
                let shift = token.start + quotes / 2;
                error.start += shift;
                error.end += shift;
            } else {
                // The token has escapes (a quoted repository id has quotes in it), so the octet of the error is
                // unknown.
                (error.start, error.end) = (token.start, token.end);
            }
            error
        })
    }

    /// Reads `x'00ff'`, or the file of `@file`.
    fn octets(&self, token: &Token<'_>) -> Read<Vec<u8>> {
        if let Some(path) = token.text.strip_prefix('@').filter(|_| !token.quoted) {
            let content = self.notation.world.file(path);
            return content.map_err(|why| token.error(format!("cannot read {path}: {why}")));
        }
        leaf::hex(&token.text).ok_or_else(|| {
            token.error(format!(
                "expected octets as x'00ff', [0, 255] or @FILE, found {}",
                token.shown()
            ))
        })
    }
}

/// Returns the index of the member that is printed with this name. Case is ignored: no two IDL names of a scope differ
/// only in case.
fn member_index(plain: &TypeCode, name: &str) -> Option<usize> {
    (0..plain.member_count()).find(|&index| {
        plain.member_name(index).is_some_and(|known| {
            known.eq_ignore_ascii_case(name) || known.is_empty() && shown_name(known, index) == name
        })
    })
}

fn names(plain: &TypeCode) -> Vec<&str> {
    let mut names: Vec<&str> = (0..plain.member_count())
        .filter_map(|index| plain.member_name(index))
        .collect();
    names.dedup();
    names
}

/// Returns the index of the member that a discriminator selects.
pub(super) fn case_of(plain: &TypeCode, number: i64) -> Option<usize> {
    (0..plain.member_count())
        .find(|&index| plain.member_label(index) == Some(number))
        .or(plain.default_index())
}

/// Returns a discriminator that selects a member: its label, or for the default member a number without a label.
fn label_of(plain: &TypeCode, index: usize) -> i64 {
    plain.member_label(index).unwrap_or_else(|| {
        let taken = |number: i64| {
            (0..plain.member_count()).any(|other| plain.member_label(other) == Some(number))
        };
        (0..=plain.member_count() as i64)
            .find(|&number| !taken(number))
            .unwrap_or(0)
    })
}

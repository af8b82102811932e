//! Reads types from text.

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::limits::{FIXED_DIGITS_MAX, NESTING_MAX};
use deckwatch_cdr::typecode::{Case, Kind, Member};

use super::NotationError;
use super::scan::{Scanner, Token};
use crate::Model;

type Read<T> = Result<T, NotationError>;

/// Reads a text that is exactly one type.
pub(super) fn whole(model: &Model, text: &str) -> Read<TypeCode> {
    let mut reading = Reading {
        model,
        scan: Scanner::new(text),
        depth: 0,
        sequences: 0,
        inside: Vec::new(),
    };
    let code = reading.with_dimensions()?;
    match reading.scan.peek() {
        None => Ok(code),
        Some(_) => Err(reading.scan.expected("the end of the type")),
    }
}

struct Reading<'a> {
    model: &'a Model,
    scan: Scanner<'a>,
    depth: u8,
    /// Number of sequences around the current position.
    sequences: usize,
    /// Repository ids of the structs and unions around the current position, and the number of sequences around each.
    inside: Vec<(String, usize)>,
}

impl<'a> Reading<'a> {
    /// Reads a type with its array dimensions, such as `[2][3]`.
    fn with_dimensions(&mut self) -> Read<TypeCode> {
        if self.depth >= NESTING_MAX {
            let at = self.scan.at();
            return Err(NotationError::new(
                at,
                at,
                "types nest deeper than the limit",
            ));
        }
        self.depth += 1;
        let mut code = self.plain()?;
        let mut dimensions = Vec::new();
        while self.scan.eat('[') {
            dimensions.push(self.number()?);
            self.scan.expect(']')?;
        }
        for len in dimensions.into_iter().rev() {
            code = TypeCode::array(&code, len);
        }
        self.depth -= 1;
        Ok(code)
    }

    fn plain(&mut self) -> Read<TypeCode> {
        self.scan.eat_text("::");
        let Some(word) = self.scan.word() else {
            return Err(self.scan.expected("an IDL type"));
        };
        if let Some(code) = self.basic(&word) {
            return Ok(code);
        }
        match &*word.text {
            "string" => Ok(TypeCode::string(self.bound()?)),
            "wstring" => Ok(TypeCode::wstring(self.bound()?)),
            "sequence" => self.sequence(),
            "fixed" => self.fixed(&word),
            "struct" | "exception" => self.structure(word.text == "exception"),
            "union" => self.union(),
            "enum" => self.enumeration(),
            "typedef" => {
                let (id, name) = self.head()?;
                let content = self.with_dimensions()?;
                Ok(TypeCode::alias(&id, &name, &content))
            }
            "interface" => {
                let (id, name) = self.head()?;
                Ok(TypeCode::interface(&id, &name))
            }
            "recursive" => self.recursive(&word),
            _ => self.named(word),
        }
    }

    /// Reads a type that consists of keywords only.
    fn basic(&mut self, word: &Token<'_>) -> Option<TypeCode> {
        let mut next = |wanted: &str| {
            let before = self.scan;
            let found = self.scan.word().is_some_and(|word| word.text == wanted);
            if !found {
                self.scan = before;
            }
            found
        };
        Some(match &*word.text {
            "null" => TypeCode::null(),
            "void" => TypeCode::void(),
            "boolean" => TypeCode::boolean(),
            "octet" | "uint8" => TypeCode::octet(),
            "char" => TypeCode::char(),
            "wchar" => TypeCode::wchar(),
            "short" | "int16" => TypeCode::short(),
            "int32" => TypeCode::long(),
            "int64" => TypeCode::longlong(),
            "uint16" => TypeCode::ushort(),
            "uint32" => TypeCode::ulong(),
            "uint64" => TypeCode::ulonglong(),
            "long" if next("long") => TypeCode::longlong(),
            "long" if next("double") => TypeCode::longdouble(),
            "long" => TypeCode::long(),
            "unsigned" if next("short") => TypeCode::ushort(),
            "unsigned" if next("long") => {
                if next("long") {
                    TypeCode::ulonglong()
                } else {
                    TypeCode::ulong()
                }
            }
            "float" => TypeCode::float(),
            "double" => TypeCode::double(),
            "any" => TypeCode::any(),
            "TypeCode" => TypeCode::meta(),
            "Object" => TypeCode::object(),
            _ => return None,
        })
    }

    fn number(&mut self) -> Read<u32> {
        let Some(word) = self.scan.word() else {
            return Err(self.scan.expected("a number"));
        };
        let number = word.text.parse().ok().filter(|number| *number > 0);
        number.ok_or_else(|| word.error("expected a number from 1 to 4294967295"))
    }

    /// Reads a bound `<n>`; returns 0 if there is none.
    fn bound(&mut self) -> Read<u32> {
        if !self.scan.eat('<') {
            return Ok(0);
        }
        let bound = self.number()?;
        self.scan.expect('>')?;
        Ok(bound)
    }

    fn sequence(&mut self) -> Read<TypeCode> {
        self.scan.expect('<')?;
        self.sequences += 1;
        let element = self.with_dimensions()?;
        self.sequences -= 1;
        let bound = if self.scan.eat(',') {
            self.number()?
        } else {
            0
        };
        self.scan.expect('>')?;
        Ok(TypeCode::sequence(&element, bound))
    }

    /// Reads a reference to an enclosing struct or union. Inside that type, a
    /// sequence must enclose the reference; otherwise the type would be infinite.
    fn recursive(&mut self, word: &Token<'_>) -> Read<TypeCode> {
        let id = self.id()?;
        let around = self.inside.iter().rev().find(|(inside, _)| *inside == id);
        match around {
            Some((_, sequences)) if *sequences < self.sequences => Ok(TypeCode::recursive(&id)),
            Some(_) => Err(word.error("a type contains itself behind a sequence alone")),
            None => Err(word.error(format!("no type of the id {id} is around this place"))),
        }
    }

    /// Reads the parts of a struct or union with this id.
    fn parts<T>(&mut self, id: &str, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.inside.iter().any(|(inside, _)| inside == id) {
            let at = self.scan.at();
            let message =
                format!("a type of the id {id} is around this place: write `recursive \"{id}\"`");
            return Err(NotationError::new(at, at, message));
        }
        self.inside.push((id.to_owned(), self.sequences));
        let parts = read(self);
        self.inside.pop();
        parts
    }

    fn fixed(&mut self, word: &Token<'_>) -> Read<TypeCode> {
        self.scan.expect('<')?;
        let digits = self.number()?;
        self.scan.expect(',')?;
        let negative = self.scan.eat('-');
        let scale = self
            .scan
            .word()
            .and_then(|word| word.text.parse::<i16>().ok());
        self.scan.expect('>')?;
        let scale = scale.map(|scale| if negative { -scale } else { scale });
        match (u16::try_from(digits), scale) {
            (Ok(digits @ 1..=FIXED_DIGITS_MAX), Some(scale)) if scale <= digits.cast_signed() => {
                Ok(TypeCode::fixed(digits, scale))
            }
            _ => Err(word.error("fixed has 1 to 31 digits, and no more behind the point")),
        }
    }

    /// Reads the scoped name of a type in the model.
    fn named(&mut self, first: Token<'a>) -> Read<TypeCode> {
        let mut name = first.text.clone().into_owned();
        while self.scan.eat_text("::") {
            let Some(word) = self.scan.word() else {
                return Err(self.scan.expected("a name"));
            };
            name.push_str("::");
            name.push_str(&word.text);
        }
        self.model.type_code(&name).ok_or_else(|| {
            let message = match self.model.lookup(&name) {
                Some(_) => format!("`{name}` is no type whose values can be carried"),
                None => format!("the type `{name}` is not known; write its name with its modules'"),
            };
            NotationError::new(first.start, self.scan.at(), message)
        })
    }

    fn id(&mut self) -> Read<String> {
        match self.scan.quoted()? {
            Some(id) => Ok(id.text.into_owned()),
            None => Err(self.scan.expected("a repository id in quotes")),
        }
    }

    /// Reads a name, if one starts here; a name that is no word stands in quotes.
    fn name(&mut self) -> Read<Option<Token<'a>>> {
        match self.scan.quoted()? {
            Some(name) => Ok(Some(name)),
            None => Ok(self.scan.word()),
        }
    }

    /// Reads `"id" Name`; the name is optional.
    fn head(&mut self) -> Read<(String, String)> {
        let id = self.id()?;
        let before = self.scan;
        match self.name()? {
            Some(name) if name.text != "switch" => Ok((id, name.text.into_owned())),
            _ => {
                self.scan = before;
                Ok((id, String::new()))
            }
        }
    }

    fn member(&mut self) -> Read<(TypeCode, String)> {
        let code = self.with_dimensions()?;
        let Some(name) = self.name()? else {
            return Err(self.scan.expected("a member's name"));
        };
        self.scan.expect(';')?;
        Ok((code, name.text.into_owned()))
    }

    fn structure(&mut self, exception: bool) -> Read<TypeCode> {
        let (id, name) = self.head()?;
        let members = self.parts(&id, |reading| {
            reading.scan.expect('{')?;
            let mut members = Vec::new();
            while !reading.scan.eat('}') {
                members.push(reading.member()?);
            }
            Ok(members)
        })?;
        let members: Vec<Member<'_>> = members
            .iter()
            .map(|(type_code, name)| Member { name, type_code })
            .collect();
        Ok(if exception {
            TypeCode::exception(&id, &name, &members)
        } else {
            TypeCode::structure(&id, &name, &members)
        })
    }

    fn union(&mut self) -> Read<TypeCode> {
        let (id, name) = self.head()?;
        if !self.scan.eat_text("switch") {
            return Err(self.scan.expected("`switch`"));
        }
        self.scan.expect('(')?;
        let discriminator = self.with_dimensions()?;
        self.scan.expect(')')?;
        let cases = self.parts(&id, |reading| {
            reading.scan.expect('{')?;
            let mut cases = Vec::new();
            while !reading.scan.eat('}') {
                let label = reading.label(&discriminator)?;
                reading.scan.expect(':')?;
                let (code, name) = reading.member()?;
                cases.push((label, code, name));
            }
            Ok(cases)
        })?;
        let cases: Vec<Case<'_>> = cases
            .iter()
            .map(|(label, type_code, name)| Case {
                label: *label,
                name,
                type_code,
            })
            .collect();
        Ok(TypeCode::union(&id, &name, &discriminator, &cases))
    }

    /// Reads `default`, or `case` and the discriminator's number.
    fn label(&mut self, discriminator: &TypeCode) -> Read<Option<i64>> {
        match self.scan.word() {
            Some(word) if word.text == "default" => Ok(None),
            Some(word) if word.text == "case" => {
                let sign = if self.scan.eat('-') { "-" } else { "" };
                let number = self.scan.word();
                let number =
                    number.and_then(|number| format!("{sign}{}", number.text).parse().ok());
                let fitting = number.filter(|number| is_label(discriminator, *number));
                fitting.map(Some).ok_or_else(|| {
                    word.error("expected a number of the discriminator's type behind `case`")
                })
            }
            _ => Err(self.scan.expected("`case` or `default`")),
        }
    }

    fn enumeration(&mut self) -> Read<TypeCode> {
        let (id, name) = self.head()?;
        self.scan.expect('{')?;
        let mut names = Vec::new();
        loop {
            let Some(word) = self.name()? else {
                return Err(self.scan.expected("an enumerator"));
            };
            names.push(word.text.into_owned());
            if self.scan.eat('}') {
                break;
            }
            self.scan.expect(',')?;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(TypeCode::enumeration(&id, &name, &names))
    }
}

/// Whether a number is a value of a discriminator's type. For an `unsigned long long`, the number holds its bits.
fn is_label(discriminator: &TypeCode, number: i64) -> bool {
    let plain = discriminator.unaliased();
    match plain.kind() {
        Kind::Boolean => (0..=1).contains(&number),
        Kind::Char => u8::try_from(number).is_ok(),
        Kind::WChar => u32::try_from(number)
            .ok()
            .and_then(char::from_u32)
            .is_some(),
        Kind::Enum => usize::try_from(number).is_ok_and(|index| index < plain.member_count()),
        Kind::Short => i16::try_from(number).is_ok(),
        Kind::UShort => u16::try_from(number).is_ok(),
        Kind::Long => i32::try_from(number).is_ok(),
        Kind::ULong => u32::try_from(number).is_ok(),
        Kind::LongLong | Kind::ULongLong => true,
        _ => false,
    }
}

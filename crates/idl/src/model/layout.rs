//! TypeCodes of a model's types, and the offsets of their parts in CDR.

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::typecode::{Case, Member};

use crate::generate::label_number;
use crate::model::{Basic, DefId, DefinitionKind, Flavour, Model, Type};

impl Model {
    /// Returns the TypeCode of the type with that name; [`deckwatch_cdr`] reads and writes values by it. Returns `None`
    /// if the name is not a type's, or for a type without marshalled values: valuetypes, abstract and local interfaces,
    /// and native types.
    #[must_use]
    pub fn type_code(&self, scoped_name: &str) -> Option<TypeCode> {
        self.type_code_of(&Type::Named(self.lookup(scoped_name)?))
    }

    /// Returns the TypeCode of a type.
    #[must_use]
    pub fn type_code_of(&self, ty: &Type) -> Option<TypeCode> {
        self.code(ty, &mut Vec::new())
    }

    fn code(&self, ty: &Type, inside: &mut Vec<DefId>) -> Option<TypeCode> {
        Some(match ty {
            Type::Basic(basic) => basic_code(*basic)?,
            Type::String(bound) => TypeCode::string(bound.unwrap_or(0)),
            Type::WideString(bound) => TypeCode::wstring(bound.unwrap_or(0)),
            Type::Fixed { digits, scale } => TypeCode::fixed(*digits, i16::try_from(*scale).ok()?),
            Type::Sequence { element, bound } => {
                TypeCode::sequence(&self.code(element, inside)?, bound.unwrap_or(0))
            }
            Type::Array { element, length } => {
                TypeCode::array(&self.code(element, inside)?, *length)
            }
            Type::Named(id) if inside.contains(id) => {
                TypeCode::recursive(&self.definition(*id).repository_id)
            }
            // Only structs and unions can contain themselves; an alias between them is expanded again.
            Type::Named(id) => {
                let depth = inside.len();
                if !matches!(self.definition(*id).kind, DefinitionKind::Alias(_)) {
                    inside.push(*id);
                }
                let code = self.definition_code(*id, inside);
                inside.truncate(depth);
                code?
            }
        })
    }

    fn definition_code(&self, id: DefId, inside: &mut Vec<DefId>) -> Option<TypeCode> {
        let definition = self.definition(id);
        let (id, name) = (definition.repository_id.as_str(), definition.name.as_str());
        match &definition.kind {
            // A value of an abstract interface is a reference or a valuetype; a local object cannot be marshalled.
            DefinitionKind::Interface(interface) if interface.flavour != Flavour::Plain => None,
            DefinitionKind::Interface(_) => Some(TypeCode::interface(id, name)),
            DefinitionKind::Alias(target) => {
                Some(TypeCode::alias(id, name, &self.code(target, inside)?))
            }
            DefinitionKind::Enum(enumerators) => {
                let names: Vec<&str> = enumerators.iter().map(|(name, _)| name.as_str()).collect();
                Some(TypeCode::enumeration(id, name, &names))
            }
            DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) => {
                let codes: Option<Vec<TypeCode>> = structure
                    .members
                    .iter()
                    .map(|member| self.code(&member.ty, inside))
                    .collect();
                let codes = codes?;
                let members: Vec<Member<'_>> = (structure.members.iter().zip(&codes))
                    .map(|(member, type_code)| Member {
                        name: &member.name,
                        type_code,
                    })
                    .collect();
                Some(match definition.kind {
                    DefinitionKind::Exception(_) => TypeCode::exception(id, name, &members),
                    _ => TypeCode::structure(id, name, &members),
                })
            }
            DefinitionKind::Union(union) => {
                let discriminator = self.code(&union.discriminator, inside)?;
                let codes: Option<Vec<TypeCode>> = union
                    .cases
                    .iter()
                    .map(|case| self.code(&case.ty, inside))
                    .collect();
                let codes = codes?;
                let labelled = union
                    .cases
                    .iter()
                    .zip(&codes)
                    .flat_map(|(case, type_code)| {
                        case.labels.iter().map(move |label| Case {
                            label: label.as_ref().map(label_number),
                            name: &case.name,
                            type_code,
                        })
                    });
                let cases: Vec<Case<'_>> = labelled.collect();
                Some(TypeCode::union(id, name, &discriminator, &cases))
            }
            DefinitionKind::Module(_)
            | DefinitionKind::Constant(..)
            | DefinitionKind::Native
            | DefinitionKind::Value(_) => None,
        }
    }

    /// Returns the octets that a value of the type with that name takes at an offset that is a multiple of eight.
    /// Returns `None` if the size depends on the value, or the name is not a type's.
    #[must_use]
    pub fn marshalled_size(&self, scoped_name: &str) -> Option<u64> {
        self.end_of(&Type::Named(self.lookup(scoped_name)?), 0)
    }

    /// Returns the offset of a member in a value that starts at a multiple of eight, and the member's type. In `path`,
    /// dots separate the names of nested members. Returns `None` if the data before the member has no fixed size, or
    /// there is no such member.
    #[must_use]
    pub fn offset_of<'a>(&'a self, scoped_name: &str, path: &str) -> Option<(u64, &'a Type)> {
        let mut id = self.lookup(scoped_name)?;
        let mut offset = 0;
        let mut found = None;
        for name in path.split('.') {
            if let Some(ty) = found {
                match self.resolve(ty) {
                    Type::Named(inner) => id = *inner,
                    _ => return None,
                }
            }
            let structure = match self.resolve_definition(id) {
                DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) => {
                    structure
                }
                _ => return None,
            };
            let index = structure
                .members
                .iter()
                .position(|member| member.name == name)?;
            for before in &structure.members[..index] {
                offset = self.end_of(&before.ty, offset)?;
            }
            found = Some(&structure.members[index].ty);
        }
        let ty = found?;
        Some((self.start_of(ty, offset), ty))
    }

    fn resolve_definition(&self, mut id: DefId) -> &DefinitionKind {
        loop {
            match &self.definition(id).kind {
                DefinitionKind::Alias(Type::Named(target)) => id = *target,
                kind => return kind,
            }
        }
    }

    /// Returns the offset of a value's first octet after alignment, at `offset` or later.
    fn start_of(&self, ty: &Type, offset: u64) -> u64 {
        match self.resolve(ty) {
            Type::Array { element, .. } => self.start_of(element, offset),
            Type::Named(id) => match &self.definition(*id).kind {
                DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) => {
                    structure
                        .members
                        .first()
                        .map_or(offset, |first| self.start_of(&first.ty, offset))
                }
                DefinitionKind::Enum(_) => offset.next_multiple_of(4),
                _ => offset,
            },
            Type::Basic(basic) => {
                basic_size(*basic).map_or(offset, |(align, _)| offset.next_multiple_of(align))
            }
            _ => offset,
        }
    }

    /// Returns the offset after a value that is aligned at `offset` or later. Returns `None` if its size is not fixed.
    fn end_of(&self, ty: &Type, offset: u64) -> Option<u64> {
        match self.resolve(ty) {
            Type::Basic(basic) => {
                let (align, size) = basic_size(*basic)?;
                offset.checked_next_multiple_of(align)?.checked_add(size)
            }
            Type::Fixed { digits, .. } => offset.checked_add(u64::from(*digits / 2 + 1)),
            Type::Array { element, length } => self.end_of_array(element, *length, offset),
            Type::Named(id) => match &self.definition(*id).kind {
                DefinitionKind::Enum(_) => offset.checked_next_multiple_of(4)?.checked_add(4),
                DefinitionKind::Struct(structure) | DefinitionKind::Exception(structure) => {
                    structure
                        .members
                        .iter()
                        .try_fold(offset, |offset, member| self.end_of(&member.ty, offset))
                }
                _ => None,
            },
            Type::String(_) | Type::WideString(_) | Type::Sequence { .. } => None,
        }
    }

    /// Returns the offset after an array. An element's size depends on its offset modulo eight, so the sizes repeat
    /// after at most eight elements.
    fn end_of_array(&self, element: &Type, length: u32, offset: u64) -> Option<u64> {
        let mut ends = vec![offset];
        while ends.len() <= length as usize {
            let last = *ends.last()?;
            let alike = ends[..ends.len() - 1]
                .iter()
                .position(|earlier| earlier % 8 == last % 8);
            if let Some(first) = alike {
                let period = (ends.len() - 1 - first) as u64;
                let left = u64::from(length) - (ends.len() as u64 - 1);
                let whole = (left / period).checked_mul(last - ends[first])?;
                let rest = ends[first + (left % period) as usize] - ends[first];
                return last.checked_add(whole)?.checked_add(rest);
            }
            ends.push(self.end_of(element, last)?);
        }
        ends.last().copied()
    }
}

fn basic_code(basic: Basic) -> Option<TypeCode> {
    Some(match basic {
        Basic::Boolean => TypeCode::boolean(),
        Basic::Octet => TypeCode::octet(),
        Basic::Char => TypeCode::char(),
        Basic::WideChar => TypeCode::wchar(),
        Basic::Short => TypeCode::short(),
        Basic::UShort => TypeCode::ushort(),
        Basic::Long => TypeCode::long(),
        Basic::ULong => TypeCode::ulong(),
        Basic::LongLong => TypeCode::longlong(),
        Basic::ULongLong => TypeCode::ulonglong(),
        Basic::Float => TypeCode::float(),
        Basic::Double => TypeCode::double(),
        Basic::LongDouble => TypeCode::longdouble(),
        Basic::Any => TypeCode::any(),
        Basic::TypeCode => TypeCode::meta(),
        Basic::Object => TypeCode::object(),
        Basic::ValueBase => return None,
    })
}

/// Returns the alignment and the size in octets, if the size is fixed.
fn basic_size(basic: Basic) -> Option<(u64, u64)> {
    Some(match basic {
        Basic::Boolean | Basic::Octet | Basic::Char => (1, 1),
        Basic::Short | Basic::UShort => (2, 2),
        Basic::Long | Basic::ULong | Basic::Float => (4, 4),
        Basic::LongLong | Basic::ULongLong | Basic::Double => (8, 8),
        Basic::LongDouble => (8, 16),
        Basic::WideChar | Basic::Any | Basic::TypeCode | Basic::Object | Basic::ValueBase => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::{Writer, value};

    fn model(name: &str) -> Model {
        let path = format!(
            "{}/../../idl/deckwatch/{name}.idl",
            env!("CARGO_MANIFEST_DIR")
        );
        Model::load(path, &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// Returns the octets that a written value of the type takes, with all members zero.
    fn written(model: &Model, name: &str) -> u64 {
        let code = model.type_code(name).unwrap();
        let value = value::Value::default_for(&code).unwrap();
        let mut octets = Vec::new();
        value::write_value(&code, &value, &mut Writer::new(&mut octets)).unwrap();
        octets.len() as u64
    }

    #[test]
    fn nav_data_is_384_octets_whatever_its_values() {
        let nav = model("nav");
        assert_eq!(nav.marshalled_size("Nav::NavData"), Some(384));
        assert_eq!(written(&nav, "Nav::NavData"), 384);
        assert_eq!(
            nav.offset_of("Nav::NavData", "sequence_number").unwrap().0,
            0
        );
        assert_eq!(nav.offset_of("Nav::NavData", "measured_ns").unwrap().0, 8);
        assert_eq!(
            nav.offset_of("Nav::NavData", "health.temperature_decidegrees")
                .unwrap()
                .0,
            318
        );
        assert!(nav.offset_of("Nav::NavData", "health.colour").is_none());
    }

    #[test]
    fn sizes_and_offsets_agree_with_what_is_written() {
        let text = "
            enum E { a, b };
            struct Odd { octet o; short s; octet p; };
            struct Wide { octet o; double d; };
            struct All {
                octet first; Odd odds[7]; Wide pairs[3]; long double ld; fixed<5,2> f; Odd grid[5][3]; E mood; boolean last;
            };
        ";
        let model = Model::parse("t.idl", text).unwrap();
        for name in ["Odd", "Wide", "All"] {
            assert_eq!(
                model.marshalled_size(name),
                Some(written(&model, name)),
                "{name}"
            );
        }
        let huge = Model::parse(
            "t.idl",
            "struct S { octet o; long l; }; typedef S T[4000000000][4000000000];",
        )
        .unwrap();
        assert_eq!(huge.marshalled_size("T"), None);
        let large = Model::parse(
            "t.idl",
            "struct S { octet o; long l; }; typedef S T[4000000000];",
        )
        .unwrap();
        assert_eq!(large.marshalled_size("T"), Some(32_000_000_000));
    }

    #[test]
    fn a_size_that_depends_on_the_value_is_none() {
        let echo = model("echo");
        assert_eq!(echo.marshalled_size("Deckwatch::ComplexStruct"), None);
        assert_eq!(
            echo.offset_of("Deckwatch::ComplexStruct", "name")
                .unwrap()
                .0,
            25
        );
        assert_eq!(echo.marshalled_size("Deckwatch::Echo"), None);
        assert_eq!(echo.marshalled_size("Deckwatch"), None);
    }

    #[test]
    fn a_type_that_contains_itself_has_a_type_code() {
        let model = Model::parse("t.idl", "struct T { string s; sequence<T> children; };").unwrap();
        let code = model.type_code("T").unwrap();
        assert_eq!(code.member_type(1).unwrap().content_type().unwrap(), code);
    }
}

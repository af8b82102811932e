//! From a type of an IDL file's model to its TypeCode.

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::typecode::{Case, Member};
use deckwatch_idl::Value;
use deckwatch_idl::model::{Basic, DefId, DefinitionKind, Model, Structure, Type, Union};

/// The TypeCode of a named type.
///
/// # Errors
/// In whole sentences, for names that the model does not have and for types that values cannot be made of.
pub(crate) fn of_name(model: &Model, scoped_name: &str) -> Result<TypeCode, String> {
    let id = model
        .lookup(scoped_name)
        .ok_or_else(|| format!("The IDL file has no `{scoped_name}`."))?;
    Describing {
        model,
        within: Vec::new(),
    }
    .named(id)
}

struct Describing<'m> {
    model: &'m Model,
    /// Structs and unions being described, the outermost first: inside themselves they are named only.
    within: Vec<DefId>,
}

impl Describing<'_> {
    fn of(&mut self, ty: &Type) -> Result<TypeCode, String> {
        Ok(match ty {
            Type::Basic(basic) => of_basic(*basic)?,
            Type::String(bound) => TypeCode::string(bound.unwrap_or(0)),
            Type::WideString(bound) => TypeCode::wstring(bound.unwrap_or(0)),
            Type::Fixed { digits, scale } => {
                TypeCode::fixed(*digits, i16::try_from(*scale).unwrap_or(i16::MAX))
            }
            Type::Sequence { element, bound } => {
                TypeCode::sequence(&self.of(element)?, bound.unwrap_or(0))
            }
            Type::Array { element, length } => TypeCode::array(&self.of(element)?, *length),
            Type::Named(id) => self.named(*id)?,
        })
    }

    fn named(&mut self, id: DefId) -> Result<TypeCode, String> {
        let model = self.model;
        let definition = model.definition(id);
        let (repository_id, name) = (definition.repository_id.as_str(), definition.name.as_str());
        match &definition.kind {
            DefinitionKind::Struct(_) | DefinitionKind::Union(_) if self.within.contains(&id) => {
                Ok(TypeCode::recursive(repository_id))
            }
            DefinitionKind::Struct(structure) if structure.defined => self
                .inside(id, |describing| {
                    describing.structure(repository_id, name, structure)
                }),
            DefinitionKind::Union(union) if union.defined => self.inside(id, |describing| {
                describing.union(repository_id, name, union)
            }),
            DefinitionKind::Enum(enumerators) => {
                let names: Vec<&str> = enumerators.iter().map(|(name, _)| name.as_str()).collect();
                Ok(TypeCode::enumeration(repository_id, name, &names))
            }
            DefinitionKind::Alias(target) => {
                Ok(TypeCode::alias(repository_id, name, &self.of(target)?))
            }
            DefinitionKind::Interface(_) => Ok(TypeCode::interface(repository_id, name)),
            _ => Err(format!(
                "`{}` is no type of which a value can be sent.",
                definition.scoped_name
            )),
        }
    }

    fn inside(
        &mut self,
        id: DefId,
        describe: impl FnOnce(&mut Self) -> Result<TypeCode, String>,
    ) -> Result<TypeCode, String> {
        self.within.push(id);
        let described = describe(self);
        self.within.pop();
        described
    }

    fn structure(
        &mut self,
        repository_id: &str,
        name: &str,
        structure: &Structure,
    ) -> Result<TypeCode, String> {
        let types: Vec<TypeCode> = structure
            .members
            .iter()
            .map(|member| self.of(&member.ty))
            .collect::<Result<_, _>>()?;
        let members: Vec<Member<'_>> = structure
            .members
            .iter()
            .zip(&types)
            .map(|(member, type_code)| Member {
                name: &member.name,
                type_code,
            })
            .collect();
        Ok(TypeCode::structure(repository_id, name, &members))
    }

    fn union(
        &mut self,
        repository_id: &str,
        name: &str,
        union: &Union,
    ) -> Result<TypeCode, String> {
        let discriminator = self.of(&union.discriminator)?;
        let types: Vec<TypeCode> = union
            .cases
            .iter()
            .map(|case| self.of(&case.ty))
            .collect::<Result<_, _>>()?;
        // A member with several labels stands in a TypeCode once for each.
        let cases: Vec<Case<'_>> = union
            .cases
            .iter()
            .zip(&types)
            .flat_map(|(case, type_code)| {
                case.labels
                    .iter()
                    .map(move |label| (case, type_code, label))
            })
            .map(|(case, type_code, label)| Case {
                label: label.as_ref().map(number),
                name: &case.name,
                type_code,
            })
            .collect();
        Ok(TypeCode::union(repository_id, name, &discriminator, &cases))
    }
}

/// A label as the number that travels.
fn number(label: &Value) -> i64 {
    match label {
        Value::Boolean(value) => i64::from(*value),
        // Truncation is the meaning: an unsigned long long keeps its bits.
        Value::Integer(value) => *value as i64,
        Value::Char(value) | Value::WideChar(value) => i64::from(u32::from(*value)),
        Value::Enumerator(_, index) => i64::from(*index),
        _ => 0,
    }
}

fn of_basic(basic: Basic) -> Result<TypeCode, String> {
    Ok(match basic {
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
        Basic::ValueBase => return Err("Value types cannot be sent.".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use deckwatch_cdr::typecode::Kind;

    use super::*;

    fn described(idl: &str, name: &str) -> Result<TypeCode, String> {
        of_name(&Model::parse("test.idl", idl).expect("sound IDL"), name)
    }

    #[test]
    fn every_kind_of_type_is_described() {
        let idl = "module M {
            enum Colour { red, green };
            typedef string<13> Name;
            union Choice switch (Colour) { case red: long number; default: Name text; };
            struct All { Colour paint; Name names[2][3]; Choice pick; sequence<double, 7> numbers; fixed<9,2> price; any other; Object target; wchar letter; };
        };";
        let all = described(idl, "M::All").expect("described");
        assert_eq!(
            (all.kind(), all.id(), all.name()),
            (Kind::Struct, Some("IDL:M/All:1.0"), Some("All"))
        );
        let kinds: Vec<Kind> = (0..all.member_count())
            .filter_map(|index| Some(all.member_type(index)?.kind()))
            .collect();
        assert_eq!(
            kinds,
            [
                Kind::Enum,
                Kind::Array,
                Kind::Union,
                Kind::Sequence,
                Kind::Fixed,
                Kind::Any,
                Kind::Objref,
                Kind::WChar
            ]
        );
        assert_eq!(all.member_name(6), Some("target"));
    }

    #[test]
    fn a_type_inside_itself_ends() {
        let idl = "struct Node { long value; sequence<Node> children; };";
        let node = described(idl, "Node").expect("described");
        let children = node.member_type(1).expect("there");
        let element = children.content_type().expect("of a sequence");
        assert_eq!(element, node);
    }

    #[test]
    fn what_is_no_type_is_refused() {
        assert!(described("module M { const long c = 1; };", "M::c").is_err());
        assert!(described("module M { const long c = 1; };", "M").is_err());
        assert!(described("struct S { long l; };", "T").is_err());
    }
}

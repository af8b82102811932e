//! Looks up a flow's IDL type in its file, and checks that the type carries a sequence number.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use deckwatch_idl::model::{Basic, DefinitionKind, Model, Structure, Type};
use deckwatch_testbed::NetworkSpec;

use super::LoadError;
use super::checks::{TypeFault, TypeKey, Types};
use super::shape::{list, nearest};

/// The IDL files of a mission, each read once.
#[derive(Default)]
pub(super) struct TypesInFiles {
    models: HashMap<PathBuf, Result<Model, String>>,
}

impl Types for TypesInFiles {
    fn network(&mut self, path: &Path) -> Option<Result<NetworkSpec, LoadError>> {
        Some(crate::network::load(path))
    }

    fn check(
        &mut self,
        idl_file: &Path,
        type_name: &str,
        sequence: &str,
    ) -> Result<u64, TypeFault> {
        let model = self
            .models
            .entry(idl_file.to_owned())
            .or_insert_with(|| Model::load(idl_file, &[]).map_err(|errors| errors.to_string()));
        let model = model.as_ref().map_err(|errors| TypeFault {
            of: TypeKey::Idl,
            fact: "this IDL file cannot be used".to_owned(),
            help: format!("it says:\n{}", errors.trim_end()),
        })?;
        let structure = structure(model, type_name)?;
        integer_max(model, type_name, structure, sequence)
    }
}

fn structure<'m>(model: &'m Model, type_name: &str) -> Result<&'m Structure, TypeFault> {
    let fault = |fact, help| TypeFault {
        of: TypeKey::Type,
        fact,
        help,
    };
    let structures = || {
        model.definitions().filter_map(|(_, definition)| {
            matches!(definition.kind, DefinitionKind::Struct(_))
                .then_some(definition.scoped_name.as_str())
        })
    };
    let Some(id) = model.lookup(type_name) else {
        let bare = |name: &str| name.rsplit("::").next().unwrap_or(name).to_owned();
        let in_module = structures().find(|name| bare(name) == type_name);
        let help = match in_module.or_else(|| nearest(type_name, structures())) {
            Some(near) => format!("write \"{near}\""),
            None => format!("the file has these structures: {}", list(structures())),
        };
        return Err(fault(
            format!("there is no type `{type_name}` in the IDL file"),
            help,
        ));
    };
    match behind_aliases(model, &Type::Named(id)) {
        Some(structure) => Ok(structure),
        None => Err(fault(
            format!("`{type_name}` is not a structure"),
            format!(
                "name one of the structures of the file: {}",
                list(structures())
            ),
        )),
    }
}

fn behind_aliases<'m>(model: &'m Model, ty: &Type) -> Option<&'m Structure> {
    let mut id = match ty {
        Type::Named(id) => *id,
        _ => return None,
    };
    loop {
        match &model.definition(id).kind {
            DefinitionKind::Struct(structure) if structure.defined => return Some(structure),
            DefinitionKind::Alias(Type::Named(target)) => id = *target,
            _ => return None,
        }
    }
}

/// Returns the largest number that the member can hold. `path` names nested members with dots.
fn integer_max(
    model: &Model,
    type_name: &str,
    structure: &Structure,
    path: &str,
) -> Result<u64, TypeFault> {
    let fault = |fact, help| TypeFault {
        of: TypeKey::Sequence,
        fact,
        help,
    };
    let (name, rest) = path
        .split_once('.')
        .map_or((path, None), |(name, rest)| (name, Some(rest)));
    let names = || structure.members.iter().map(|member| member.name.as_str());
    let Some(member) = structure.members.iter().find(|member| member.name == name) else {
        let help = match nearest(name, names()) {
            Some(near) => format!("write `{near}` in its place"),
            None => format!("name one of {}", list(names())),
        };
        return Err(fault(format!("`{type_name}` has no member `{name}`"), help));
    };
    if let (Some(rest), Some(inner)) = (rest, behind_aliases(model, &member.ty)) {
        return integer_max(model, &format!("{type_name}.{name}"), inner, rest);
    }
    let max = match (rest, model.resolve(&member.ty)) {
        (None, Type::Basic(Basic::Short)) => Some(i16::MAX as u64),
        (None, Type::Basic(Basic::UShort)) => Some(u64::from(u16::MAX)),
        (None, Type::Basic(Basic::Long)) => Some(i32::MAX as u64),
        (None, Type::Basic(Basic::ULong)) => Some(u64::from(u32::MAX)),
        (None, Type::Basic(Basic::LongLong)) => Some(i64::MAX as u64),
        (None, Type::Basic(Basic::ULongLong)) => Some(u64::MAX),
        _ => None,
    };
    max.ok_or_else(|| {
        let integers = structure.members.iter().filter(|member| {
            use Basic::{Long, LongLong, Short, ULong, ULongLong, UShort};
            let ty = model.resolve(&member.ty);
            matches!(
                ty,
                Type::Basic(Short | UShort | Long | ULong | LongLong | ULongLong)
            )
        });
        let integers: Vec<_> = integers.map(|member| member.name.as_str()).collect();
        let help = if integers.is_empty() {
            "add an `unsigned long` to the structure".to_owned()
        } else {
            format!("name one of its integers: {}", list(integers))
        };
        fault(format!("`{path}` of `{type_name}` is not an integer"), help)
    })
}

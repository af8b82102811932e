//! Finds the interface and the operation that the arguments name.

use anyhow::{Context as _, bail};
use deckwatch_idl::Model;
use deckwatch_idl::model::{Access, Definition, DefinitionKind, Interface, Operation};
use deckwatch_orb::ObjectRef;

use super::Args;

/// Finds the operation `name`. The interface is searched for in this order:
/// - the interface that `name` or `--interface` gives
/// - the interface of the reference's repository id
/// - the only interface of the file that has such an operation, if the reference's interface is not in the file
/// - else the first interface that has such an operation and that the object confirms by `_is_a`
pub(super) fn operation<'m>(
    model: &'m Model,
    args: &Args,
    name: &str,
    target: &ObjectRef,
) -> anyhow::Result<&'m Operation> {
    let (scope, name) = match name.rsplit_once("::") {
        Some((scope, name)) => (Some(scope), name),
        None => (args.interface.as_deref(), name),
    };
    if let Some(scope) = scope {
        return of_interface(model, interface(model, scope)?, name, args.arguments.len());
    }
    let known = of_type_id(model, target.type_id());
    if let Some((definition, interface)) = known
        && let Some(found) = operation_of(model, interface, name, args.arguments.len())
    {
        tracing::debug!(
            interface = definition.scoped_name,
            "taken from the reference"
        );
        return Ok(found);
    }
    let candidates: Vec<_> = interfaces(model)
        .filter(|(_, candidate)| {
            // The reference may name a base of the object's own interface.
            known.is_none_or(|(known, _)| {
                let ancestors = candidate.ancestors.iter();
                ancestors
                    .map(|id| model.definition(*id))
                    .any(|ancestor| ancestor.repository_id == known.repository_id)
            })
        })
        .filter_map(|(definition, candidate)| {
            let own = candidate.operations.iter();
            let found = matching(own, name, args.arguments.len())?;
            Some((definition, found))
        })
        .collect();
    match (candidates.as_slice(), known) {
        ([], Some(known)) => of_interface(model, known, name, args.arguments.len()),
        ([], None) => bail!(
            "no interface in the IDL has an operation or attribute `{name}`; `--list` shows what there is"
        ),
        ([(_, found)], None) => Ok(found),
        (several, _) if args.dry_run => {
            let names: Vec<&str> = several
                .iter()
                .map(|(one, _)| one.scoped_name.as_str())
                .collect();
            bail!(
                "nobody is asked in a dry run: say with `--interface` which is meant of {}",
                names.join(", ")
            )
        }
        (several, _) => asked(target, several, name),
    }
}

/// Returns the first of several interfaces that the object confirms by `_is_a`.
fn asked<'m>(
    target: &ObjectRef,
    several: &[(&'m Definition, &'m Operation)],
    name: &str,
) -> anyhow::Result<&'m Operation> {
    for (definition, found) in several {
        let is_one = target.is_a(&definition.repository_id);
        if is_one.with_context(|| {
            format!(
                "cannot ask whether the object is a {}",
                definition.scoped_name
            )
        })? {
            return Ok(found);
        }
    }
    let names: Vec<&str> = several
        .iter()
        .map(|(one, _)| one.scoped_name.as_str())
        .collect();
    bail!(
        "the object is none of the interfaces that have `{name}`: {}",
        names.join(", ")
    )
}

/// Finds an interface by its scoped name, or by the last part of that name if only one interface has it.
pub(super) fn interface<'m>(
    model: &'m Model,
    name: &str,
) -> anyhow::Result<(&'m Definition, &'m Interface)> {
    let name = name.trim_start_matches("::");
    let by_last_part = |scoped: &str| scoped.rsplit("::").next() == Some(name);
    let exact = interfaces(model)
        .find(|(definition, _)| definition.scoped_name == name || definition.repository_id == name);
    let mut loose =
        interfaces(model).filter(|(definition, _)| by_last_part(&definition.scoped_name));
    match (exact, loose.next(), loose.next()) {
        (Some(found), ..) | (None, Some(found), None) => Ok(found),
        _ => {
            let names: Vec<&str> = interfaces(model)
                .map(|(one, _)| one.scoped_name.as_str())
                .collect();
            bail!(
                "the IDL has no interface `{name}`; it has {}",
                names.join(", ")
            )
        }
    }
}

/// Finds an interface by its repository id.
pub(super) fn of_type_id<'m>(
    model: &'m Model,
    id: &str,
) -> Option<(&'m Definition, &'m Interface)> {
    interfaces(model).find(|(definition, _)| definition.repository_id == id)
}

/// Returns every interface that the IDL defines.
pub(super) fn interfaces(model: &Model) -> impl Iterator<Item = (&Definition, &Interface)> {
    model
        .definitions()
        .filter_map(|(_, definition)| match &definition.kind {
            DefinitionKind::Interface(interface) if interface.defined => {
                Some((definition, interface))
            }
            _ => None,
        })
}

fn of_interface<'m>(
    model: &'m Model,
    (definition, interface): (&'m Definition, &'m Interface),
    name: &str,
    given: usize,
) -> anyhow::Result<&'m Operation> {
    if let Some(found) = operation_of(model, interface, name, given) {
        return Ok(found);
    }
    let of_all = model.operations(interface);
    if of_all
        .iter()
        .any(|one| one.attribute.is_some() && one.name == name)
    {
        bail!(
            "the attribute `{name}` of {} is readonly: it takes no value",
            definition.scoped_name
        );
    }
    let mut names: Vec<&str> = of_all.iter().map(|one| one.name.as_str()).collect();
    names.dedup();
    bail!(
        "{} has no operation or attribute `{name}`; it has {}",
        definition.scoped_name,
        names.join(", ")
    )
}

fn operation_of<'m>(
    model: &'m Model,
    interface: &'m Interface,
    name: &str,
    given: usize,
) -> Option<&'m Operation> {
    matching(model.operations(interface).into_iter(), name, given)
}

/// Finds an operation by its name on the wire or in the IDL. An attribute's IDL name means its setter if arguments are
/// given, else its getter.
fn matching<'m>(
    mut operations: impl Iterator<Item = &'m Operation>,
    name: &str,
    given: usize,
) -> Option<&'m Operation> {
    operations.find(|operation| {
        let meant = match operation.attribute {
            Some(Access::Get) => given == 0,
            Some(Access::Set) => given > 0,
            None => true,
        };
        operation.wire_name == name || (operation.name == name && meant)
    })
}

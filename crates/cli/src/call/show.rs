//! Prints the outcome of a call, and the list of operations.

use std::process::ExitCode;

use anyhow::anyhow;
use deckwatch_idl::model::{Access, Definition, Operation, Type};
use deckwatch_idl::notation::{Notation, Printed};
use deckwatch_orb::Orb;

use super::signature::Signature;
use super::talk::{Outcome, mode_text};
use super::{Args, find};
use crate::output::{errln, out, outln};

/// Preferred line length of a printed value, in characters.
const WIDTH: usize = 110;

/// Exit status after a user exception.
const RAISED: u8 = 1;

pub(super) fn outcome(
    notation: &Notation<'_>,
    signature: &Signature,
    outcome: Outcome,
    json: bool,
) -> anyhow::Result<ExitCode> {
    match outcome {
        Outcome::Returned(values) => {
            let returned = signature.returned();
            let printed = returned.iter().zip(&values).map(|((name, code), value)| {
                let printed = notation
                    .print(code, value)
                    .map_err(|why| anyhow!("{name}: {why}"))?;
                Ok(((*name).to_owned(), printed))
            });
            let printed = printed.collect::<anyhow::Result<Vec<_>>>()?;
            if json {
                outln!("{}", Printed::Members(printed).json(WIDTH))?;
            } else if printed.is_empty() {
                errln!("returned; there are no results");
            } else {
                for (name, printed) in printed {
                    outln!("{name}: {}", printed.text(WIDTH - name.len() - 2))?;
                }
            }
        }
        Outcome::Sent if json => outln!("{{}}")?,
        Outcome::Sent => errln!("sent; a one-way operation has no reply"),
        Outcome::Raised(place, members) => {
            let (name, code) = &signature.raises[place];
            let members = notation
                .print(code, &members)
                .map_err(|why| anyhow!("{name}: {why}"))?;
            if json {
                let members = vec![
                    (
                        "exception".to_owned(),
                        Printed::quoted(code.id().unwrap_or("")),
                    ),
                    ("members".to_owned(), members),
                ];
                outln!("{}", Printed::Members(members).json(WIDTH))?;
            } else {
                errln!("raised {name}: {}", members.text(WIDTH));
            }
            return Ok(RAISED.into());
        }
        Outcome::Failed(exception, Some(detail)) => return Err(anyhow!(detail).context(exception)),
        Outcome::Failed(exception, None) => return Err(exception.into()),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn list(notation: &Notation<'_>, orb: &Orb, args: &Args) -> anyhow::Result<ExitCode> {
    let model = notation.model();
    let target = args
        .reference
        .as_ref()
        .map(|text| crate::reference::target(orb, text))
        .transpose()?;
    let of_reference = target.and_then(|target| find::of_type_id(model, target.type_id()));
    let chosen = match &args.interface {
        Some(name) => Some(find::interface(model, name)?),
        None => of_reference,
    };
    let shown: Vec<_> = match chosen {
        Some(one) => vec![one],
        None => find::interfaces(model).collect(),
    };
    for (index, (definition, interface)) in shown.into_iter().enumerate() {
        if index > 0 {
            out!("\n")?;
        }
        outln!("{} ({})", definition.scoped_name, definition.repository_id)?;
        // In a list of all interfaces, inherited operations are listed with their own interface only.
        let operations = if chosen.is_some() {
            model.operations(interface)
        } else {
            interface.operations.iter().collect()
        };
        for operation in &operations {
            if let Some(line) = line(notation, operation, &operations) {
                outln!("  {line}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the IDL of one operation of `all`, or `None` for the setter of an attribute: the getter's line stands for
/// both.
fn line(notation: &Notation<'_>, operation: &Operation, all: &[&Operation]) -> Option<String> {
    let model = notation.model();
    let name_of = |definition: &Definition| definition.scoped_name.clone();
    let type_text = |ty: &Type| match (model.type_code_of(ty), ty) {
        (Some(code), _) => notation.type_text(&code),
        (None, Type::Named(id)) => name_of(model.definition(*id)),
        (None, _) => "valuetype".to_owned(),
    };
    let result = operation
        .result
        .as_ref()
        .map_or_else(|| "void".to_owned(), type_text);
    match operation.attribute {
        Some(Access::Get) => {
            let is_set_too =
                |one: &&Operation| one.attribute == Some(Access::Set) && one.name == operation.name;
            let readonly = if all.iter().any(is_set_too) {
                ""
            } else {
                "readonly "
            };
            return Some(format!("{readonly}attribute {result} {}", operation.name));
        }
        Some(Access::Set) => return None,
        None => {}
    }
    let parameters: Vec<String> = (operation.parameters.iter())
        .map(|one| {
            format!(
                "{} {} {}",
                mode_text(one.mode),
                type_text(&one.ty),
                one.name
            )
        })
        .collect();
    let raises: Vec<String> = (operation.raises.iter())
        .map(|id| name_of(model.definition(*id)))
        .collect();
    let oneway = if operation.oneway { "oneway " } else { "" };
    let raises = match raises.as_slice() {
        [] => String::new(),
        raises => format!(" raises ({})", raises.join(", ")),
    };
    Some(format!(
        "{oneway}{result} {}({}){raises}",
        operation.name,
        parameters.join(", ")
    ))
}

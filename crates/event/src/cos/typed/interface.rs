//! The interfaces whose operations are the events of a typed channel.

use std::fmt;
use std::sync::Arc;

use deckwatch_cdr::value::Value;
use deckwatch_cdr::{Any, TypeCode};
use deckwatch_idl::model::{DefinitionKind, Flavour, Interface, Mode, Model, Operation};

use crate::limits;

/// An interface that both sides of a typed channel agree on. All its operations have `in` parameters only, return
/// nothing and raise nothing (Event Service 1.2, clause 2.6).
#[derive(Clone, Debug)]
pub struct TypedInterface {
    /// Its repository id.
    pub(super) id: String,
    /// The repository id of the interface by which consumers pull: `Pull` stands before the name.
    pub(super) pull_id: String,
    /// The repository ids of the interfaces that it inherits from.
    ancestors: Vec<String>,
    pub(super) operations: Vec<TypedOperation>,
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct TypedOperation {
    pub(super) name: Arc<str>,
    /// The operation that returns at once, in the interface by which consumers pull.
    pub(super) try_name: String,
    pub(super) parameters: Vec<TypeCode>,
    /// What `try_name` returns where there is no event.
    pub(super) nothing: Vec<Any>,
}

/// Why an interface is none of events.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypedInterfaceError {
    /// The IDL has no interface of this name or repository id.
    Unknown(String),
    /// The interface is local, abstract, or declared only.
    NotRemote(String),
    /// The interface has no operation, or more than a channel takes.
    OperationCount(String),
    /// One operation cannot be an event.
    Operation {
        /// File, line and column of the operation.
        location: String,
        /// Its name.
        operation: String,
        /// What is wrong with it.
        fault: OperationFault,
    },
}

/// Why an operation cannot be an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OperationFault {
    /// It returns a value.
    ReturnsValue,
    /// It has an `out` or `inout` parameter.
    ReturnsParameter,
    /// It raises exceptions.
    Raises,
    /// A parameter has a type without values at run time: a native type or a local interface.
    NoValues,
    /// Another operation has its name with `try_` before it.
    TryNameTaken,
}

impl TypedInterface {
    /// Returns the interface of this scoped name or repository id.
    ///
    /// # Errors
    /// [`TypedInterfaceError`] if there is none, or if its operations cannot be events.
    pub fn of(model: &Model, interface: &str) -> Result<Self, TypedInterfaceError> {
        let found = model
            .lookup_id(interface)
            .or_else(|| model.lookup(interface));
        let unknown = || TypedInterfaceError::Unknown(interface.to_owned());
        let definition = model.definition(found.ok_or_else(unknown)?);
        let DefinitionKind::Interface(declared) = &definition.kind else {
            return Err(unknown());
        };
        if !declared.defined || declared.flavour != Flavour::Plain {
            return Err(TypedInterfaceError::NotRemote(interface.to_owned()));
        }
        let operations = model.operations(declared);
        if !(1..=limits::OPERATIONS_MAX).contains(&operations.len()) {
            return Err(TypedInterfaceError::OperationCount(interface.to_owned()));
        }
        let has = |name: &str| operations.iter().any(|other| other.wire_name == name);
        let operations = operations
            .iter()
            .map(|operation| typed(model, operation, &has));
        Ok(Self {
            id: definition.repository_id.clone(),
            pull_id: pull_id(&definition.repository_id),
            ancestors: ancestors(model, declared),
            operations: operations.collect::<Result<_, _>>()?,
        })
    }

    /// Its repository id.
    #[must_use]
    pub fn repository_id(&self) -> &str {
        &self.id
    }

    /// Returns true for its own repository id and for those of its bases.
    pub(super) fn is_a(&self, id: &[u8]) -> bool {
        self.id.as_bytes() == id || self.ancestors.iter().any(|base| base.as_bytes() == id)
    }

    /// The position of the operation of this name.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        let is_it = |operation: &TypedOperation| operation.name.as_bytes() == name;
        self.operations.iter().position(is_it)
    }

    /// The position of the operation whose `try_` form has this name.
    pub(super) fn find_try(&self, name: &[u8]) -> Option<usize> {
        let is_it = |operation: &TypedOperation| operation.try_name.as_bytes() == name;
        self.operations.iter().position(is_it)
    }
}

fn ancestors(model: &Model, interface: &Interface) -> Vec<String> {
    let ids = interface.ancestors.iter();
    ids.map(|&id| model.definition(id).repository_id.clone())
        .collect()
}

/// `IDL:Ship/Nav:1.0` becomes `IDL:Ship/PullNav:1.0`.
fn pull_id(id: &str) -> String {
    let name = id.rfind(['/', ':']).map_or(0, |colon| {
        // The version stands behind the last colon.
        id[..colon].rfind(['/', ':']).map_or(0, |before| before + 1)
    });
    format!("{}Pull{}", &id[..name], &id[name..])
}

fn typed(
    model: &Model,
    operation: &Operation,
    has: &dyn Fn(&str) -> bool,
) -> Result<TypedOperation, TypedInterfaceError> {
    let refuse = |fault| {
        let at = model.sources().location(operation.span);
        TypedInterfaceError::Operation {
            location: format!("{}:{}:{}", at.path.display(), at.line, at.column),
            operation: operation.name.clone(),
            fault,
        }
    };
    if operation.result.is_some() {
        return Err(refuse(OperationFault::ReturnsValue));
    }
    if operation.parameters.iter().any(|it| it.mode != Mode::In) {
        return Err(refuse(OperationFault::ReturnsParameter));
    }
    if !operation.raises.is_empty() {
        return Err(refuse(OperationFault::Raises));
    }
    let try_name = format!("try_{}", operation.wire_name);
    if has(&try_name) {
        return Err(refuse(OperationFault::TryNameTaken));
    }
    let (mut parameters, mut nothing) = (Vec::new(), Vec::new());
    for parameter in &operation.parameters {
        let type_code = model.type_code_of(&parameter.ty);
        let type_code = type_code.ok_or_else(|| refuse(OperationFault::NoValues))?;
        let value = Value::default_for(&type_code)
            .and_then(|value| Any::from_dynamic(&type_code, &value))
            .map_err(|_| refuse(OperationFault::NoValues))?;
        parameters.push(type_code);
        nothing.push(value);
    }
    Ok(TypedOperation {
        name: operation.wire_name.as_str().into(),
        try_name,
        parameters,
        nothing,
    })
}

impl fmt::Display for TypedInterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(
                f,
                "the IDL files have no interface `{name}`; write its repository id, such as \
                 IDL:Ship/Nav:1.0, or its scoped name, such as Ship::Nav"
            ),
            Self::NotRemote(name) => write!(
                f,
                "`{name}` is local, abstract or only declared; events need an interface with objects"
            ),
            Self::OperationCount(name) => write!(
                f,
                "`{name}` has no operation, or too many; an interface of events has 1 to {}",
                limits::OPERATIONS_MAX
            ),
            Self::Operation {
                location,
                operation,
                fault,
            } => write!(f, "{location}: `{operation}` is no event: {fault}"),
        }
    }
}

impl fmt::Display for OperationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReturnsValue => "it returns a value; write `void`",
            Self::ReturnsParameter => "it has an `out` or `inout` parameter; write `in`",
            Self::Raises => "it raises exceptions; remove the `raises` clause",
            Self::NoValues => "a parameter has a native type or a local interface",
            Self::TryNameTaken => "another operation has its name with `try_` before it",
        })
    }
}

impl std::error::Error for TypedInterfaceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_by_which_consumers_pull_has_pull_before_its_name() {
        for (id, expected) in [
            ("IDL:Ship/Nav:1.0", "IDL:Ship/PullNav:1.0"),
            ("IDL:Nav:1.0", "IDL:PullNav:1.0"),
            ("IDL:omg.org/A/B:2.3", "IDL:omg.org/A/PullB:2.3"),
        ] {
            assert_eq!(pull_id(id), expected);
        }
    }
}

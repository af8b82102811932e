//! Helpers for clients of any naming service: names from text, binding with creation of the contexts on the path, and
//! messages for the exceptions raised.

use std::fmt;

use deckwatch_orb::cos_naming::naming_context::NotFoundReason;
use deckwatch_orb::cos_naming::{
    NameComponent, NamingContextBindNewContextError, NamingContextRef,
};
use deckwatch_orb::generated::write_exception;
use deckwatch_orb::{ObjectRef, SystemException};
use deckwatch_text::escaped;

use crate::name::{self, NameError};
pub use crate::walk::Fault;

/// Converts a stringified name to the components that operations take.
///
/// # Errors
/// The position and the cause, if the text is not a valid name.
pub fn path(text: &str) -> Result<Vec<NameComponent>, NameError> {
    let pairs = name::parse(text)?;
    Ok(pairs
        .into_iter()
        .map(|(id, kind)| NameComponent { id, kind })
        .collect())
}

/// The stringified form of some components, which [`path`] reads back.
#[must_use]
pub fn text(components: &[NameComponent]) -> String {
    name::to_text(
        components
            .iter()
            .map(|component| (component.id.as_str(), component.kind.as_str())),
    )
}

/// How to treat a name that is already bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep the binding; binding again fails.
    Keep,
    /// Replace the binding.
    Replace,
}

/// Binds an object to a name relative to `root`. Creates the missing contexts on the path.
///
/// # Errors
/// An invalid name, or the exception that the service raised.
pub fn bind_with_contexts(
    root: &NamingContextRef,
    name: &str,
    object: &ObjectRef,
    existing: Existing,
) -> Result<(), BindError> {
    let path = path(name)?;
    make_contexts(root, &path[..path.len() - 1])?;
    match existing {
        Existing::Keep => root
            .bind(&path, Some(object))
            .map_err(|error| Refusal::of(&path, error))?,
        Existing::Replace => root
            .rebind(&path, Some(object))
            .map_err(|error| Refusal::of(&path, error))?,
    }
    Ok(())
}

/// Creates a context and its parents, unless they exist.
///
/// # Errors
/// The exception that the service raised.
pub fn make_contexts(root: &NamingContextRef, path: &[NameComponent]) -> Result<(), Refusal> {
    for len in 1..=path.len() {
        match root.bind_new_context(&path[..len]) {
            Ok(_) | Err(NamingContextBindNewContextError::AlreadyBound(_)) => {}
            Err(error) => return Err(Refusal::of(&path[..len], error)),
        }
    }
    Ok(())
}

/// Why a name was not bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The text is not a valid name.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The service raised an exception.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The exception that a naming service raised for a name; its `Display` is a message for the user.
#[derive(Debug)]
pub struct Refusal {
    path: Vec<NameComponent>,
    fault: Fault,
}

impl Refusal {
    /// Creates it from the name and the error of an operation on it.
    pub fn of(path: &[NameComponent], error: impl Into<Fault>) -> Self {
        Self {
            path: path.to_vec(),
            fault: error.into(),
        }
    }

    /// The exception as it was raised.
    #[must_use]
    pub const fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The part of the name before `rest`.
    fn before(&self, rest: &[NameComponent]) -> &[NameComponent] {
        &self.path[..self.path.len().saturating_sub(rest.len())]
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::NotFound(raised) => {
                let (before, rest) = (self.before(&raised.rest_of_name), &raised.rest_of_name);
                let first = &rest[..rest.len().min(1)];
                let place = match before {
                    [] => "the context asked".to_owned(),
                    before => format!("`{}`", shown(before)),
                };
                match raised.why {
                    NotFoundReason::MissingNode if first.is_empty() => {
                        f.write_str("it is not bound")
                    }
                    NotFoundReason::MissingNode => write!(f, "{place} has no `{}`", shown(first)),
                    NotFoundReason::NotContext => write!(
                        f,
                        "`{}` in {place} is bound to an object, not to a context",
                        shown(first)
                    ),
                    NotFoundReason::NotObject => write!(
                        f,
                        "`{}` in {place} is bound to a context, not to an object",
                        shown(first)
                    ),
                }
            }
            Fault::CannotProceed(raised) => write!(
                f,
                "the service of the context `{}` cannot be reached from the one asked; `{}` is left of the name",
                shown(self.before(&raised.rest_of_name)),
                shown(&raised.rest_of_name)
            ),
            Fault::InvalidName(_) => {
                f.write_str("the service does not take this name: it is empty or too long")
            }
            Fault::AlreadyBound(_) => f.write_str("it is bound already"),
            Fault::NotEmpty(_) => f.write_str("the context still holds names"),
            Fault::System(exception) => write_exception(exception, f),
        }
    }
}

/// A name as it may be printed: the service may have chosen it.
fn shown(name: &[NameComponent]) -> String {
    escaped(&text(name)).to_string()
}

impl std::error::Error for Refusal {}

/// For operations that raise system exceptions only.
impl From<SystemException> for Refusal {
    fn from(exception: SystemException) -> Self {
        Self::of(&[], exception)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_orb::cos_naming::naming_context::{CannotProceed, NotFound};

    fn told(why: NotFoundReason, rest: &str) -> String {
        let rest_of_name = if rest.is_empty() {
            Vec::new()
        } else {
            path(rest).unwrap()
        };
        let raised = Fault::NotFound(NotFound { why, rest_of_name });
        Refusal::of(&path("a/b.c/d").unwrap(), raised).to_string()
    }

    #[test]
    fn what_is_missing_is_told_with_its_place() {
        use NotFoundReason::{MissingNode, NotContext, NotObject};
        assert_eq!(told(MissingNode, "a/b.c/d"), "the context asked has no `a`");
        assert_eq!(told(MissingNode, "b.c/d"), "`a` has no `b.c`");
        assert_eq!(
            told(NotContext, "b.c/d"),
            "`b.c` in `a` is bound to an object, not to a context"
        );
        assert_eq!(
            told(NotObject, "d"),
            "`d` in `a/b.c` is bound to a context, not to an object"
        );
        // A service may return a shorter or longer rest than the name has.
        assert_eq!(told(MissingNode, ""), "it is not bound");
        assert_eq!(
            told(MissingNode, "x/y/z/a/b"),
            "the context asked has no `x`"
        );
    }

    #[test]
    fn a_name_that_leads_out_is_told_with_where_it_stopped() {
        let raised = Fault::CannotProceed(CannotProceed {
            cxt: None,
            rest_of_name: path("d").unwrap(),
        });
        assert_eq!(
            Refusal::of(&path("a/b.c/d").unwrap(), raised).to_string(),
            "the service of the context `a/b.c` cannot be reached from the one asked; `d` is left of the name"
        );
    }
}

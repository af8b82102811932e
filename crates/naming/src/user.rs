//! What users of any naming service do again and again: names from text, and binding with the contexts on the way.

use deckwatch_orb::ObjectRef;
use deckwatch_orb::cos_naming::{
    NameComponent, NamingContextBindError, NamingContextBindNewContextError, NamingContextExtRef,
    NamingContextRebindError,
};

use crate::name::{self, NameError};

/// A stringified name as the components that operations take.
///
/// # Errors
/// Where and why it is no name.
pub fn path(text: &str) -> Result<Vec<NameComponent>, NameError> {
    let pairs = name::parse(text)?;
    Ok(pairs
        .into_iter()
        .map(|(id, kind)| NameComponent { id, kind })
        .collect())
}

/// What becomes of a name that is bound already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and binding fails.
    Keep,
    /// It is bound anew.
    Replace,
}

/// Binds an object under a name below `root`, making the contexts on the way that do not exist.
///
/// # Errors
/// What is wrong with the name, or what the service raised.
pub fn bind_with_contexts(
    root: &NamingContextExtRef,
    name: &str,
    object: &ObjectRef,
    existing: Existing,
) -> Result<(), BindError> {
    let path = path(name)?;
    for len in 1..path.len() {
        match root.bind_new_context(&path[..len]) {
            Ok(_) | Err(NamingContextBindNewContextError::AlreadyBound(_)) => {}
            Err(error) => return Err(BindError::Context(error)),
        }
    }
    match existing {
        Existing::Keep => root.bind(&path, Some(object))?,
        Existing::Replace => root.rebind(&path, Some(object))?,
    }
    Ok(())
}

/// Why a name was not bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The text.
    #[error("it is not a name: {0}")]
    Name(#[from] NameError),
    /// A context on the way.
    #[error("a context on the way cannot be made: {0}")]
    Context(NamingContextBindNewContextError),
    /// The binding.
    #[error(transparent)]
    Bind(#[from] NamingContextBindError),
    /// The binding in place of another.
    #[error(transparent)]
    Rebind(#[from] NamingContextRebindError),
}

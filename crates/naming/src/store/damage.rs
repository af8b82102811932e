//! What of a store is damaged, and the errors of the store.

use std::fmt;

use deckwatch_store::redb;
use deckwatch_text::escaped;

use super::check::Report;
use super::rows::Key;
use crate::name;

/// A part of a store that is not as this program wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// A binding does not match its checksum, or is the binding of another name or of no context.
    Binding {
        /// The context that it is in.
        context: u64,
        /// The id under which it was found.
        id: String,
        /// The kind under which it was found.
        kind: String,
    },
    /// A context does not match its checksum.
    Context(u64),
    /// Names of a context are missing, or too many, or older than those that were written.
    Names {
        /// The context.
        context: u64,
        /// How many were written.
        written: u64,
        /// How many were found.
        found: u64,
    },
    /// Contexts are missing, or too many, or older than those that were written.
    Contexts {
        /// How many were written.
        written: u64,
        /// How many were found.
        found: u64,
    },
    /// Bindings are missing, or too many.
    Bindings {
        /// How many were written.
        written: u64,
        /// How many were found.
        found: u64,
    },
    /// The row of the whole store is missing or does not match its checksum.
    Whole,
    /// Pages of the file do not match their checksums.
    Pages,
}

impl Damage {
    pub(super) fn binding((context, id, kind): Key<'_>) -> Self {
        Self::Binding {
            context,
            id: id.to_owned(),
            kind: kind.to_owned(),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Binding { context, id, kind } => {
                let name = name::to_text([(id.as_str(), kind.as_str())]);
                write!(
                    f,
                    "the name `{}` in context {context} is damaged",
                    escaped(&name)
                )
            }
            Self::Context(number) => write!(f, "the row of context {number} is damaged"),
            Self::Names {
                context,
                written,
                found,
            } if written == found => write!(
                f,
                "a name in context {context} is not the one that was written last"
            ),
            Self::Names {
                context,
                written,
                found,
            } => write!(
                f,
                "context {context} has {found} names instead of {written}"
            ),
            Self::Contexts { written, found } if written == found => {
                f.write_str("a context is not the one that was written last")
            }
            Self::Contexts { written, found } => {
                write!(f, "there are {found} contexts instead of {written}")
            }
            Self::Bindings { written, found } => {
                write!(f, "there are {found} names instead of {written}")
            }
            Self::Whole => f.write_str("the row with the counts of the store is damaged"),
            Self::Pages => f.write_str("pages of the file do not match their checksums"),
        }
    }
}

/// The errors of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The component is bound already.
    #[error("the name is bound already")]
    AlreadyBound,
    /// The bind would replace a context by an object, or an object by a context.
    #[error("the name is bound to something of the other kind")]
    WrongKind,
    /// The context still has bindings.
    #[error("the context is not empty")]
    NotEmpty,
    /// The context does not exist any more.
    #[error("the context does not exist")]
    NoSuchContext,
    /// A limit of the service is reached.
    #[error("the naming service holds as many contexts or bindings as it may")]
    Full,
    /// The maker holds its share of contexts or bindings.
    #[error("its maker holds its share of the service's contexts or bindings")]
    ShareFull,
    /// A row that was read is damaged.
    #[error("the store is damaged: {0}")]
    Damaged(Damage),
    /// The store was read whole, and has damages.
    #[error("the store is damaged:\n{0}")]
    Unsound(Box<Report>),
    /// The file is a store of another format.
    #[error("it is no store of this program's format: {0}")]
    OtherFormat(&'static str),
    /// An error of the database.
    #[error(transparent)]
    Database(#[from] Box<redb::Error>),
}

deckwatch_store::from_database!(StoreError);

impl StoreError {
    /// Returns true if another process has the file open.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        let Self::Database(error) = self else {
            return false;
        };
        matches!(**error, redb::Error::DatabaseAlreadyOpen)
    }

    /// Returns true if the file is damaged, and not, for example, in use or not there.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged(_) | Self::Unsound(_) => true,
            Self::Database(error) => matches!(**error, redb::Error::Corrupted(_)),
            _ => false,
        }
    }
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage)
    }
}

//! Why an ORB could not be made.

use std::fmt;

use crate::arguments::KnownOptions;
use crate::interceptor::OrbInitError;
use crate::rtorb::CannotMakePool;
use crate::transport::{Endpoint, TransportError};

/// The reason why an ORB could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// An argument that begins with `-ORB` is not known.
    UnknownOption(String),
    /// The last argument is an option that needs a value.
    ValueMissing(String),
    /// The value does not have the form that the option requires.
    ValueMalformed {
        /// The option.
        option: String,
        /// The value as given.
        value: String,
        /// The form that the option requires.
        expected: &'static str,
    },
    /// The ORB cannot listen at this endpoint.
    CannotListen {
        /// The endpoint.
        endpoint: Endpoint,
        /// The cause.
        error: TransportError,
    },
    /// A thread could not be started.
    CannotStartThread,
    /// An initializer raised an exception.
    Initializer(OrbInitError),
    /// Spinning is set for lanes whose threads have a real-time class.
    SpinsInRealTime,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption(option) => {
                write!(
                    f,
                    "The option {option} is not known; known are {KnownOptions}."
                )
            }
            Self::ValueMissing(option) => write!(f, "The option {option} needs a value after it."),
            Self::ValueMalformed {
                option,
                value,
                expected,
            } => {
                write!(f, "{option} cannot be '{value}': write {expected}.")
            }
            Self::CannotListen { endpoint, error } => {
                write!(f, "Cannot listen at {endpoint}. {error}")
            }
            Self::CannotStartThread => f.write_str("A thread of the ORB could not be started."),
            Self::Initializer(error) => write!(f, "An initializer of the ORB refuses. {error}"),
            Self::SpinsInRealTime => f.write_str(
                "The threads of a lane that spins must not have a real-time class: nothing else would run \
                 on their processors.",
            ),
        }
    }
}

impl std::error::Error for BuildError {}

impl From<CannotMakePool> for BuildError {
    fn from(why: CannotMakePool) -> Self {
        match why {
            CannotMakePool::Listen(endpoint, error) => Self::CannotListen { endpoint, error },
            CannotMakePool::StartThread => Self::CannotStartThread,
            CannotMakePool::SpinInRealTime => Self::SpinsInRealTime,
        }
    }
}

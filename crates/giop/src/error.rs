//! What can be wrong with a message before its values are read.

use deckwatch_cdr::DecodeError;
use std::fmt;

/// Why octets are not an acceptable message. The answer is MessageError, or a closed connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The first four octets are not `GIOP`.
    NotGiop,
    /// The major version is not 1, or the minor is above 2.
    VersionUnsupported {
        /// Major number.
        major: u8,
        /// Minor number.
        minor: u8,
    },
    /// The version has no message of this type.
    KindUnknown(u8),
    /// A flag is set that the version does not have, or the byte order of GIOP 1.0 is neither 0 nor 1.
    FlagsUnknown(u8),
    /// The message, or a train of fragments, is larger than the limit.
    MessageTooLarge,
    /// The process has no memory for the message.
    MemoryExhausted,
    /// The octets are fewer or more than the header's size says.
    SizeMismatch,
    /// This kind of message cannot be followed by fragments in its version.
    NotFragmentable,
    /// A fragment of no message that is unfinished.
    FragmentUnexpected,
    /// More unfinished messages than the limit.
    FragmentsTooMany,
    /// A message's fragments begin again, or change version or byte order.
    FragmentsMixed,
    /// A reply or locate status that the version does not have.
    StatusUnknown(u32),
    /// Response flags that are not a SyncScope.
    ResponseFlagsUnknown(u8),
    /// A target addressing disposition other than key, profile and reference.
    AddressingUnknown(u16),
    /// The header's values are malformed.
    Decode(DecodeError),
}

impl From<DecodeError> for ProtocolError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiop => f.write_str("the message does not begin with GIOP"),
            Self::VersionUnsupported { major, minor } => {
                write!(f, "GIOP {major}.{minor} is not supported")
            }
            Self::KindUnknown(kind) => write!(f, "the message type {kind} is not known"),
            Self::FlagsUnknown(flags) => write!(f, "the header's flags {flags:#04x} are not known"),
            Self::MessageTooLarge => f.write_str("the message is larger than the limit"),
            Self::MemoryExhausted => f.write_str("there is no memory for the message"),
            Self::SizeMismatch => f.write_str("the message has another size than its header says"),
            Self::NotFragmentable => f.write_str("this kind of message cannot be fragmented"),
            Self::FragmentUnexpected => {
                f.write_str("a fragment belongs to no message that is awaited")
            }
            Self::FragmentsTooMany => f.write_str("too many messages have outstanding fragments"),
            Self::FragmentsMixed => {
                f.write_str("the fragments of one message do not belong together")
            }
            Self::StatusUnknown(status) => write!(f, "the reply status {status} is not known"),
            Self::ResponseFlagsUnknown(flags) => {
                write!(f, "the response flags {flags:#04x} are not known")
            }
            Self::AddressingUnknown(addressing) => {
                write!(f, "the target addressing {addressing} is not known")
            }
            Self::Decode(error) => write!(f, "the message header is malformed: {error}"),
        }
    }
}

impl std::error::Error for ProtocolError {}

const _: () = assert!(size_of::<ProtocolError>() <= 16);

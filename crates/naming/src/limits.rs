//! Every bound of the naming service, with its reason.

use std::time::Duration;

/// Contexts a service keeps. Each is an active object of some hundred octets: 100,000 are a few tens of MiB.
pub const CONTEXTS_MAX: u64 = 100_000;

/// Bindings a service keeps; at about a kilobyte each a disk of one gibibyte, at [`COMPONENT_SIZE_MAX`] and
/// [`REFERENCE_TEXT_MAX`] eighteen.
pub const BINDINGS_MAX: u64 = 1_000_000;

/// Octets of a component's id, and of its kind. Names are for people to read.
pub const COMPONENT_SIZE_MAX: usize = 1_024;

/// Characters of a reference that is bound, in its stringified form: references seen in the field have some hundred octets,
/// which are twice as many characters.
pub const REFERENCE_TEXT_MAX: usize = 16 << 10;

/// How long the service of a context that is not ours may take to go on with a name: whoever asks waits, and so does one
/// of our threads.
pub const FOREIGN_TIMEOUT: Duration = Duration::from_secs(5);

/// Components of one name. A name is walked one lookup a component.
pub const COMPONENTS_MAX: usize = 64;

/// Bindings one `list` or `next_n` returns; more come with the iterator. At [`COMPONENT_SIZE_MAX`] they are two megabytes, the
/// largest message that omniORB takes unless told otherwise.
pub const LIST_MAX: usize = 1_000;

/// Binding iterators open at a time; the oldest gives way. A client that forgets `destroy` must not fill the service.
pub const ITERATORS_MAX: usize = 1_000;

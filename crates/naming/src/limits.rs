//! All limits of the naming service, with their reasons.

use std::time::Duration;

/// Contexts of a service. Each is an active object of some hundred octets: 100,000 are a few tens of MiB.
pub const CONTEXTS_MAX: u64 = 100_000;

/// Bindings of a service. At about a kilobyte each they take one gibibyte on disk; at [`COMPONENT_SIZE_MAX`] and
/// [`REFERENCE_TEXT_MAX`] they take eighteen.
pub const BINDINGS_MAX: u64 = 1_000_000;

/// Octets of a component's id, and of its kind. Names are for people to read.
pub const COMPONENT_SIZE_MAX: usize = 1_024;

/// Characters of a bound reference, in stringified form. References seen in the field have some hundred octets, which
/// are twice as many characters.
pub const REFERENCE_TEXT_MAX: usize = 16 << 10;

/// Time limit of a call to the service of a foreign context. The caller waits for it, and so does one of our threads.
pub const FOREIGN_TIMEOUT: Duration = Duration::from_secs(5);

/// Components of one name. Each component costs one lookup.
pub const COMPONENTS_MAX: usize = 64;

/// Bindings that one `list` or `next_n` returns; the iterator returns the others. At [`COMPONENT_SIZE_MAX`] they are
/// two megabytes, the largest message that omniORB accepts by default.
pub const LIST_MAX: usize = 1_000;

/// Binding iterators open at a time; beyond it the oldest is destroyed. A client that forgets `destroy` must not
/// exhaust the service.
pub const ITERATORS_MAX: usize = 1_000;

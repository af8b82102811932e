//! Every bound of the naming service, with its reason.

/// Contexts a service keeps. Each is an active object of some hundred octets: 100,000 are a few tens of MiB.
pub const CONTEXTS_MAX: u64 = 100_000;

/// Bindings a service keeps; at about a kilobyte each a disk of one gibibyte.
pub const BINDINGS_MAX: u64 = 1_000_000;

/// Components of one name. A name is walked one lookup a component.
pub const COMPONENTS_MAX: usize = 64;

/// Bindings one `list` or `next_n` returns; more come with the iterator. Keeps a reply below some hundred kilobytes.
pub const LIST_MAX: usize = 1_000;

/// Binding iterators open at a time; the oldest gives way. A client that forgets `destroy` must not fill the service.
pub const ITERATORS_MAX: usize = 1_000;

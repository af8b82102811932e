//! All limits of the naming service, with their reasons.

use std::time::Duration;

/// Contexts of a service. Each is an active object of some hundred octets: 100,000 are a few tens of MiB.
///
/// Share: a quarter, or `--share-per-peer` | seen: its own oldest idle context that was never bound gives way, or
/// IMP_LIMIT with the minor code NAMES_SHARE_FULL | test:
/// crates/naming/src/store/tests/shares.rs::a_maker_that_takes_its_share_leaves_others_served
pub const CONTEXTS_MAX: u64 = 100_000;

/// Bindings of a service. At about a kilobyte each they take one gibibyte on disk; at [`COMPONENT_SIZE_MAX`] and
/// [`REFERENCE_TEXT_MAX`] they take eighteen.
///
/// Share: a quarter, or `--share-per-peer` | seen: IMP_LIMIT with the minor code NAMES_SHARE_FULL | test:
/// crates/naming/src/store/tests/shares.rs::a_maker_that_takes_its_share_leaves_others_served
pub const BINDINGS_MAX: u64 = 1_000_000;

/// Octets of a component's id, and of its kind. Names are for people to read.
///
/// Share: each component | seen: InvalidName | test:
/// crates/naming/tests/service.rs::names_and_references_beyond_the_limits_are_refused
pub const COMPONENT_SIZE_MAX: usize = 1_024;

/// Characters of a bound reference, in stringified form. References seen in the field have some hundred octets, which
/// are twice as many characters.
///
/// Share: each binding | seen: IMP_LIMIT | test:
/// crates/naming/tests/service.rs::names_and_references_beyond_the_limits_are_refused
pub const REFERENCE_TEXT_MAX: usize = 16 << 10;

/// Times the octets of a message that a name takes in memory once it is read: a component is 16 octets at least, and
/// takes 48 and two texts.
pub const NAME_GROWTH: u64 = 8;

/// Octets of a message that a service accepts however little memory it may have: a name of [`COMPONENTS_MAX`]
/// components at their limits is half of it.
pub const MESSAGE_SIZE_MIN: u64 = 256 << 10;

/// Calls to other naming services under way at the same time, each in a serving thread: half of the threads that a lane
/// has by default. The others serve what this service answers alone. A call beyond it raises TRANSIENT at once.
///
/// Share: a half ([`OUTWARD_SHARE`]) | seen: TRANSIENT with the minor code OUTWARD_SHARE_FULL | test:
/// crates/naming/tests/service/outward.rs::peers_hold_their_share_of_calls_to_silent_services_and_all_others_are_served
pub const OUTWARD_MAX: usize = 16;

/// As many of them may be for one peer; its next one raises TRANSIENT at once. A name that passes
/// [`deckwatch_orb::limits::HOPS_MAX`] services, all on one host, needs no more.
pub const OUTWARD_SHARE: usize = 8;

/// Components of one name. Each component costs one lookup.
///
/// Share: each name | seen: InvalidName | test:
/// crates/naming/tests/service.rs::names_and_references_beyond_the_limits_are_refused
pub const COMPONENTS_MAX: usize = 64;

/// Bindings that one `list` or `next_n` returns; the iterator returns the others. At [`COMPONENT_SIZE_MAX`] they are
/// two megabytes, the largest message that omniORB accepts by default.
///
/// Share: each call | seen: an iterator for the others | test:
/// crates/naming/tests/service.rs::long_listings_come_in_parts
pub const LIST_MAX: usize = 1_000;

/// Binding iterators open at a time; beyond it the oldest of the peer that has most is destroyed. A client that forgets
/// `destroy` must not exhaust the service.
///
/// Share: a quarter | seen: its own oldest iterator is destroyed | test:
/// crates/naming/src/listings.rs::a_peer_at_its_share_of_listings_loses_its_own
pub const ITERATORS_MAX: usize = 1_000;

/// Octets of the text that says who made a context or binding.
pub const MAKER_SIZE_MAX: usize = 255;

/// Damages that one check of a store names. A store with more is restored from an export.
pub const DAMAGES_MAX: usize = 1_000;

/// Octets of one line of an export. A name and a reference at their limits are less, each octet escaped with six.
pub const EXPORT_LINE_MAX: u64 = 64 << 10;

/// Octets of the name of a context in an export or a list for people. Longer ones are left out.
pub const PATH_TEXT_MAX: usize = 4 << 10;

/// Percent of the contexts, of the bindings and of the open iterators that one peer may hold, unless the operator says
/// otherwise. A gateway that binds the names of all others needs more.
pub const SHARE_PERCENT_DEFAULT: u8 = 25;

/// How long a context that was never bound is kept for its maker, since it was made and since it was last used. After
/// that it gives way, while it is empty, to another one that finds no room. Clients bind a context right after they
/// made it; a context that only the name of another service leads to is used from time to time.
pub const UNBOUND_LIFETIME: Duration = Duration::from_secs(600);

/// Contexts that one request examines for one that gives way.
pub const EXPIRED_MAX: usize = 64;

//! Every bound of this crate, with its reason.

/// Most octets of one message, header included, after its fragments have been joined: 64 MiB, far above a mission's and far
/// below what would exhaust a small host. A connection may set a lower one.
pub const MESSAGE_SIZE_MAX: usize = deckwatch_cdr::limits::MESSAGE_SIZE_MAX;

/// Most messages of one connection whose fragments are awaited at the same time. Peers that interleave fragments at all
/// interleave those of concurrent requests; eight leaves room for a busy peer and bounds what an idle one can hold.
pub const FRAGMENTED_MESSAGES_MAX: usize = 8;

/// Most octets that all unfinished messages of one connection may hold together: one of the largest.
pub const FRAGMENTED_SIZE_MAX: usize = MESSAGE_SIZE_MAX;

/// Fewest octets of one outgoing fragment: header, request id and one aligned value.
pub const FRAGMENT_SIZE_MIN: usize = 32;

/// Most profiles of an IOR that are read; what follows is refused. References seen in the field have at most three.
pub const PROFILES_MAX: usize = 64;

/// Most components of a profile. References seen in the field have fewer than ten.
pub const COMPONENTS_MAX: usize = 256;

/// Most octets of a stringified reference: its hexadecimal form is twice a reference's octets, and an object URL is shorter.
pub const REFERENCE_TEXT_MAX: usize = 1 << 20;

/// Most listen points of the opener of a bidirectional connection that are kept: an ORB has one an interface of its host.
pub const LISTEN_POINTS_MAX: usize = 32;

/// Most addresses of a `corbaloc:` URL.
pub const ADDRESSES_MAX: usize = 32;

/// Most policies of a reference that are read: the standards have fewer than thirty that a reference may carry.
pub const POLICIES_MAX: usize = 64;

/// Most bands of a banded connection: a connection each, and a program tells no more urgencies apart.
pub const BANDS_MAX: usize = 256;

/// Most protocols of a protocol policy: TAO, which has the most, has nine.
pub const PROTOCOLS_MAX: usize = 32;

/// Most endpoints of a server's lanes: a lane a native priority, each at two addresses.
pub const LANE_ENDPOINTS_MAX: usize = 256;

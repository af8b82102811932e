//! Every bound of this crate, with its reason.

/// Most octets of one message, header included, after joining its fragments: 64 MiB, far above a mission's messages and
/// far below what would exhaust a small host. A connection may set a lower limit.
pub const MESSAGE_SIZE_MAX: usize = deckwatch_cdr::limits::MESSAGE_SIZE_MAX;

/// Most unfinished messages of one connection. Peers that interleave fragments interleave those of concurrent requests;
/// eight leaves room for a busy peer and bounds what an idle one can hold.
///
/// Share: each connection | seen: MessageError, and the end of the connection | test:
/// crates/giop/tests/fragments.rs::trains_that_lie_are_refused
pub const FRAGMENTED_MESSAGES_MAX: usize = 8;

/// Most octets of all unfinished messages of one connection: one message of the largest size.
pub const FRAGMENTED_SIZE_MAX: usize = MESSAGE_SIZE_MAX;

/// Fewest octets of one outgoing fragment: header, request id and one aligned value.
pub const FRAGMENT_SIZE_MIN: usize = 32;

/// Most profiles of an IOR; an IOR with more is refused. References in use have at most three.
///
/// Share: each reference | seen: INV_OBJREF with the minor code of the fact | test:
/// crates/giop/src/ior.rs::reference_with_too_many_profiles_is_refused
pub const PROFILES_MAX: usize = 64;

/// Most components of a profile. References in use have fewer than ten.
///
/// Share: each profile | seen: nothing, the profile is passed over; INV_OBJREF if there is no other | test:
/// crates/giop/src/ior.rs::profile_with_too_many_components_is_refused
pub const COMPONENTS_MAX: usize = 256;

/// Most octets of a stringified reference: its hexadecimal form is twice a reference's octets, and an object URL is
/// shorter.
///
/// Share: each text | seen: InvalidAddress from the `to_url` of a naming context | test:
/// crates/giop/src/ior.rs::reference_with_too_long_a_text_is_refused,
/// crates/giop/src/url/corbaloc/tests.rs::too_many_addresses_and_too_long_a_text_are_refused
pub const REFERENCE_TEXT_MAX: usize = 1 << 20;

/// Most listen points of a bidirectional connection that are kept: an ORB has one for each interface of its host.
///
/// Share: each connection | seen: nothing, further ones are not kept | test:
/// crates/giop/src/listen_point.rs::no_more_points_are_read_than_are_kept_and_those_that_lie_are_refused
pub const LISTEN_POINTS_MAX: usize = 32;

/// Most addresses of a `corbaloc:` URL.
///
/// Share: each URL | seen: InvalidAddress from the `to_url` of a naming context | test:
/// crates/giop/src/url/corbaloc/tests.rs::too_many_addresses_and_too_long_a_text_are_refused
pub const ADDRESSES_MAX: usize = 32;

/// Most policies of a reference: the standards have fewer than thirty that a reference may carry.
///
/// Share: each profile | seen: nothing, the component is passed over | test:
/// crates/giop/src/ior/policies.rs::a_list_that_is_longer_than_any_is_refused
pub const POLICIES_MAX: usize = 64;

/// Most bands of a banded connection: each is a connection, and a program distinguishes no more urgencies.
///
/// Share: each policy | seen: nothing, the policy is passed over | test:
/// crates/giop/src/ior/policies.rs::a_list_that_is_longer_than_any_is_refused
pub const BANDS_MAX: usize = 256;

/// Most protocols of a protocol policy: the largest list, TAO's, has nine.
///
/// Share: each policy | seen: nothing, the policy is passed over | test:
/// crates/giop/src/ior/policies.rs::a_list_that_is_longer_than_any_is_refused
pub const PROTOCOLS_MAX: usize = 32;

/// Most endpoints of a server's lanes: a lane for each native priority, each at two addresses.
///
/// Share: each profile | seen: nothing, the component is passed over | test:
/// crates/giop/src/ior/lanes.rs::more_endpoints_than_any_server_has_lanes_are_refused
pub const LANE_ENDPOINTS_MAX: usize = 256;

/// Most security mechanisms of a reference: servers in use list one or two.
///
/// Share: each profile | seen: nothing, the component is passed over | test:
/// crates/giop/src/ior/security.rs::more_mechanisms_or_addresses_than_any_server_has_are_refused
pub const SECURITY_MECHANISMS_MAX: usize = 16;

/// Most addresses, authorities and naming mechanisms of a security mechanism: one for each interface of its host.
///
/// Share: each mechanism | seen: nothing, the component is passed over | test:
/// crates/giop/src/ior/security.rs::more_mechanisms_or_addresses_than_any_server_has_are_refused
pub const SECURITY_ADDRESSES_MAX: usize = 32;

/// Most UTF-16 units of the words that a system exception carries: some lines. They are written in one reply, and the
/// thread that receives them keeps them.
///
/// Share: each reply | seen: nothing, the text is cut off | test:
/// crates/giop/src/exception_detail.rs::hostile_details_are_cut_off_refused_or_lose_their_control_characters
pub const EXCEPTION_DETAIL_UNITS_MAX: usize = 1024;

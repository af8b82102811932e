//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Octets of one line between coordinator and part. A plan names at most a few hundred destinations, each an IOR of
/// under 1 KiB; a line beyond this is no plan.
pub const LINE_SIZE_MAX: usize = 4 << 20;

/// Time between two progress lines of a part: four a second look alive to the eye and cost a loaded host nothing.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Messages that one supplier or consumer keeps records of, over all its destinations: at 40 octets each, 2.6 GB of
/// memory file.
pub const RECORDS_MAX: u64 = 1 << 26;

/// Room in a consumer's records beyond one a message, for duplicates: a quarter more, and at least this many.
pub const SPARE_RECORDS_MIN: u64 = 1024;

/// Octets of one message: the largest that the ORB takes, and far beyond what a mission sends at a rate.
pub const BODY_SIZE_MAX: u32 = 1 << 20;

/// Octets of one datagram: 65,535 less the headers of IPv4 and UDP.
pub const DATAGRAM_SIZE_MAX: u32 = 65_507;

/// Octets asked for as a raw consumer's receive buffer: a second of the largest flows of a ship, so that only a stopped
/// consumer overflows it.
pub const RECEIVE_BUFFER_BYTES: u32 = 1 << 20;

/// Octets asked for as the receive buffer of a raw supplier, which holds its transmit stamps until they are taken: 768
/// octets each, two a message.
pub const STAMP_BUFFER_BYTES: u32 = 4 << 20;

/// Octets of a TCP supplier's send buffer. Small, so that a message waits where it is seen, not for seconds in the
/// kernel.
pub const SEND_BUFFER_BYTES: u32 = 256 << 10;

/// Octets, or one message if that is more, that a TCP supplier keeps for a peer that does not read, beyond the send
/// buffer; then messages are lost.
pub const BACKLOG_BYTES_MAX: usize = 256 << 10;

/// Messages sent whose transmit stamp has not come yet; older ones stay without.
pub const PENDING_STAMPS_MAX: usize = 4096;

/// Transmit stamps taken at most between two looks at the clock: about a tenth of a millisecond's work.
pub const STAMPS_A_TURN_MAX: usize = 64;

/// A supplier does nothing but sleep in this time before a message is due, nanoseconds: longer than one turn of other
/// work.
pub const QUIET_NS: i64 = 200_000;

/// The longest sleep of a thread before it checks whether to stop.
pub const STOP_LOOK: Duration = Duration::from_millis(100);

/// Time between two checks of a servant whether its part has begun to receive.
pub const BEGIN_LOOK: Duration = Duration::from_millis(1);

/// Time in which a connection to a consumer has to be made.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Time that a supplier waits after its last message for the last transmit stamps.
pub const STAMPS_AFTER_END: Duration = Duration::from_millis(100);

/// Processor time after which a real-time thread that has not blocked is taken for spinning, beyond the handling time
/// that its plan asks for.
pub const REAL_TIME_UNBLOCKED_MAX: Duration = Duration::from_secs(1);

/// Longest handling time of one message: what is longer is a mistake in a unit.
pub const HANDLE_FOR_MAX: Duration = Duration::from_secs(10);

/// Octets of one packet: a datagram of 65,535 with its link header.
pub const PACKET_SIZE_MAX: usize = 65_535 + 18;

/// Time between two polls of a tap.
pub const TAP_PERIOD: Duration = Duration::from_millis(20);

/// Octets asked for as a tap's buffer on each interface: six [`TAP_PERIOD`]s of Gigabit Ethernet, with the kernel's
/// overhead of small packets.
pub const TAP_BUFFER_BYTES: u32 = 16 << 20;

/// Interfaces that one tap watches.
pub const TAP_INTERFACES_MAX: usize = 16;

/// Octets of a GIOP message that the join reads: the largest body with room for headers and the TypeCode of an any.
pub const GIOP_MESSAGE_SIZE_MAX: usize = BODY_SIZE_MAX as usize + (64 << 10);

/// Octets of one stream that the join keeps because others before them are missing: more than a TCP receive window of a
/// ship's network. Beyond it the missing ones are taken for missed by the capture.
pub const EARLY_OCTETS_MAX: usize = 8 << 20;

/// Connections of one stream that the join follows: more than a supplier makes after faults.
pub const JOINED_CONNECTIONS_MAX: usize = 1024;

/// The stamps of a raw carrier's own socket and of the tap on the same host are of the same packet on one kernel. On
/// leaving a few hundred instructions lie between them; on arriving they are one stamp converted twice for datagrams,
/// and the way through the IP layer apart for segments that were forwarded between namespaces: 2 to 5 microseconds
/// each. This allows for a processor taken away in between.
pub const AGREEMENT_BOUND_NS: u64 = 100_000;

/// More than one in so many messages whose two stamps are further apart than [`AGREEMENT_BOUND_NS`] is a disagreement
/// of the methods.
pub const DISAGREEMENTS_ONE_IN: u64 = 100;

/// Time in which the kernel begins to stamp after it was asked to: a work queue of it has to run once.
pub const STAMPS_BEGIN_MAX: Duration = Duration::from_secs(1);

/// Threads of the ORB in a channel's process: one for the stream's supplier, one for connections that come meanwhile.
pub const CHANNEL_THREADS: usize = 2;

/// Threads of the ORB in a naming service's process.
pub const NAMES_THREADS: usize = 2;

/// The longest that a naming service waits for another one that its names lead to.
pub const NAMES_CALL_TIME_MAX: Duration = Duration::from_secs(5);

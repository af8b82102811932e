//! The limits of this crate, each with its reason.

use std::time::Duration;

/// Octets of one line between coordinator and part. A plan names at most a few hundred destinations, each with an IOR
/// of less than 1 KiB. A longer line is not a plan.
pub const LINE_SIZE_MAX: usize = 4 << 20;

/// Time between two progress lines of a part: four lines a second look continuous to a person and cost a loaded host
/// almost nothing.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Records of one supplier or consumer, over all its destinations. With 40 octets each they take 2.6 GB of a memory
/// file.
pub const RECORDS_MAX: u64 = 1 << 26;

/// Spare records of a consumer for duplicates, beyond one for each message: a quarter more, and at least this many.
pub const SPARE_RECORDS_MIN: u64 = 1024;

/// Octets of one message: the largest that the ORB accepts, far more than a mission sends periodically.
pub const BODY_SIZE_MAX: u32 = 1 << 20;

/// Octets of one datagram: 65,535 less the headers of IPv4 and UDP.
pub const DATAGRAM_SIZE_MAX: u32 = 65_507;

/// Size requested for a raw consumer's receive buffer in octets. It holds one second of a ship's largest flows, so only
/// a stopped consumer lets it overflow.
pub const RECEIVE_BUFFER_BYTES: u32 = 1 << 20;

/// Size requested for a raw supplier's receive buffer in octets. The buffer holds transmit stamps until the supplier
/// reads them: two for each message, 768 octets each.
pub const STAMP_BUFFER_BYTES: u32 = 4 << 20;

/// The longest time that a `udp` supplier waits for room in its send buffer. It also waits for the flow's deadline at
/// most. The bound is shorter than the time that a part has to end after `stop`.
pub const SEND_WAIT_MAX: Duration = Duration::from_secs(5);

/// Octets of a raw supplier's send buffer. It is small so that a message waits in the backlog, where the wait is
/// visible, and not for seconds in the kernel.
pub const SEND_BUFFER_BYTES: u32 = 256 << 10;

/// Octets of a TCP supplier's backlog beyond the send buffer, for a peer that does not read; one message if that is
/// more. If the backlog is full, messages are lost.
pub const BACKLOG_BYTES_MAX: usize = 256 << 10;

/// Octets that a raw supplier writes with one system call if it sends many messages at once, and that a raw consumer
/// reads then: as much as the usual write of a program that only transfers, and no more than fits in a processor's cache.
pub const BATCH_BYTES: usize = 128 << 10;

/// Messages that wait for their transmit stamps. If there are more, the oldest stay without stamps.
pub const PENDING_STAMPS_MAX: usize = 4096;

/// Transmit stamps read between two readings of the clock: about a tenth of a millisecond of work.
pub const STAMPS_A_TURN_MAX: usize = 64;

/// In this time before a message is due, a supplier only sleeps, nanoseconds. It is longer than one round of other
/// work.
pub const QUIET_NS: i64 = 200_000;

/// The longest time that a thread blocks before it checks whether to stop.
pub const STOP_LOOK: Duration = Duration::from_millis(100);

/// Time between two checks by a servant whether its part has begun to receive.
pub const BEGIN_LOOK: Duration = Duration::from_millis(1);

/// Time limit for a connection to a consumer.
pub const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Time that a supplier waits for the last transmit stamps after its last message.
pub const STAMPS_AFTER_END: Duration = Duration::from_millis(100);

/// Processor time, in addition to the plan's handling time, after which a real-time thread that has not blocked is
/// considered to be in an endless loop.
pub const REAL_TIME_UNBLOCKED_MAX: Duration = Duration::from_secs(1);

/// Longest handling time of one message: a longer one is a mistake in a unit.
pub const HANDLE_FOR_MAX: Duration = Duration::from_secs(10);

/// Octets of one packet: a datagram of 65,535 with its link header.
pub const PACKET_SIZE_MAX: usize = 65_535 + 18;

/// Time between two polls of a tap.
pub const TAP_PERIOD: Duration = Duration::from_millis(20);

/// Size requested for a tap's buffer on each interface in octets: six [`TAP_PERIOD`]s of Gigabit Ethernet, with the
/// kernel's overhead of small packets.
pub const TAP_BUFFER_BYTES: u32 = 16 << 20;

/// Interfaces that one tap captures on.
pub const TAP_INTERFACES_MAX: usize = 16;

/// Octets of a GIOP message that the join reads: the largest body, and room for headers and the TypeCode of an `any`.
pub const GIOP_MESSAGE_SIZE_MAX: usize = BODY_SIZE_MAX as usize + (64 << 10);

/// Octets of one stream that the join keeps while earlier octets are missing: more than a TCP receive window of a
/// ship's network. Beyond it the missing octets are considered missing from the capture.
pub const EARLY_OCTETS_MAX: usize = 8 << 20;

/// Connections of one stream that the join follows: more than a supplier opens after faults.
pub const JOINED_CONNECTIONS_MAX: usize = 1024;

/// Bound of the difference between the stamps that a raw carrier's own socket and the tap on the same host take of one
/// packet. Both come from one kernel. When a packet leaves, a few hundred instructions are between them. When a
/// datagram arrives, both are one stamp, converted twice. When a segment that was forwarded between namespaces arrives,
/// the path through the IP layer is between them. Each of these takes 2 to 5 microseconds. The bound also allows for a
/// preemption in between.
pub const AGREEMENT_BOUND_NS: u64 = 100_000;

/// Difference of two such stamps on one interface, of 99 segments in 100. Measured over loopback on two processors with
/// eight runnable threads, nine runs of 1,200 pairs each: median 0.6 microseconds, 99th percentile 2.0 to 2.7, and at
/// least 99.7% within 5. Of datagrams, the 99th percentile was 2.2 to 4.1 and at least 99.2% were within 5.
pub const AGREEMENT_USUAL_NS: u64 = 5_000;

/// The methods disagree if more than one in this many messages has stamps further apart than [`AGREEMENT_BOUND_NS`].
pub const DISAGREEMENTS_ONE_IN: u64 = 100;

/// Time limit for the kernel to begin stamping after it is asked to: one of its work queues must run first.
pub const STAMPS_BEGIN_MAX: Duration = Duration::from_secs(1);

/// ORB threads in a channel's process: one for the stream's supplier, one for connections that are opened meanwhile.
pub const CHANNEL_THREADS: usize = 2;

/// ORB threads in a naming service's process.
pub const NAMES_THREADS: usize = 2;

/// The longest time that a naming service waits for another naming service which its bindings refer to.
pub const NAMES_CALL_TIME_MAX: Duration = Duration::from_secs(5);

/// Eras of the clock that a part records: more times than anybody sets a clock during a run. Later stamps are not
/// converted.
pub const CLOCK_ERAS_MAX: usize = 16;

/// The longest time between two updates of a tap's note, which a killed tap leaves behind.
pub const NOTE_INTERVAL: Duration = Duration::from_secs(1);

/// The most that two machines' clocks drift apart, parts in a million: each crystal is within 100 of true, and time
/// services correct it by less.
pub const CLOCK_DRIFT_MAX_PPM: u64 = 200;

/// Exchanges kept of one machine's clock: with eight parts that exchange once a second, two minutes of all of them, and
/// the narrowest of each longer time.
pub const CLOCK_EXCHANGES_MAX: usize = 1024;

/// Time around the schedule in which a far machine's stamps are believed, nanoseconds. Parts run before the start and
/// after the end, but not for an hour.
pub const FAR_STAMP_MARGIN_NS: i64 = 3_600_000_000_000;

/// The largest value believed of a counter that a far machine reports: more than a run can count, and any number of
/// them can be added up.
pub const FAR_COUNTER_MAX: u64 = 1 << 40;

/// Mean interval of the pairs of questions to another machine's clock, nanoseconds. 200 pairs a second find the clocks
/// within a microsecond under 90% load, and take 0.5% of Fast Ethernet.
pub const CLOCK_INTERVAL_NS: i64 = 5_000_000;

/// Time after which a question to another machine's clock counts as lost, nanoseconds: more than a round trip round the
/// earth.
pub const CLOCK_ANSWER_NS_MAX: i64 = 1_000_000_000;

/// Questions that wait for their answers: those of [`CLOCK_ANSWER_NS_MAX`], with room for random intervals.
pub const CLOCK_QUESTIONS_MAX: usize = 512;

/// Datagrams taken before other work is done: a flood cannot stop the questions.
pub const CLOCK_DATAGRAMS_A_TURN_MAX: usize = 64;

/// Probers whose last exchange a responder keeps: more than the hosts of a mission. With more, the longest silent ones
/// lose exchanges.
pub const CLOCK_PROBERS_MAX: usize = 64;

/// Interval at which a responder reads the state of NTP and PTP: reading the processes takes about a millisecond.
pub const SYNC_INTERVAL: Duration = Duration::from_secs(2);

/// Octets of an adapter's manifest: fifteen short lines, and comments.
pub const MANIFEST_SIZE_MAX: u64 = 64 << 10;

/// Adapters that are read: far more than there are middlewares.
pub const ADAPTERS_MAX: usize = 256;

/// Octets of an external carrier's name: it stands in tables and paths.
pub const ADAPTER_NAME_LEN_MAX: usize = 32;

/// Octets of an adapter's summary, and of one word of its build command.
pub const ADAPTER_SUMMARY_LEN_MAX: usize = 256;

/// Words of an adapter's build command, and packages that it needs.
pub const ADAPTER_WORDS_MAX: usize = 64;

/// Time until the program of an external carrier is ready. A Java program that discovers its peers takes seconds. The
/// bound is shorter than the coordinator's patience, so that the part can report the reason.
pub const PROGRAM_READY_MAX: Duration = Duration::from_secs(15);

/// Time that a program has to end after `stop`, and again after SIGTERM: together less than the coordinator's patience.
pub const PROGRAM_STOP_MAX: Duration = Duration::from_secs(4);

/// Octets of one line of a program's output. The longest has an endpoint, such as an IOR of less than 1 KiB.
pub const PROGRAM_LINE_SIZE_MAX: usize = 16 << 10;

/// Octets that a program may write to its standard output, and to its standard error. More is an endless loop, and would
/// disturb the measurement.
pub const PROGRAM_OUTPUT_SIZE_MAX: u64 = 4 << 20;

/// Events of a program that the part handles: one of each kind, and warnings.
pub const PROGRAM_EVENTS_MAX: usize = 1024;

/// Warnings of a program that are kept.
pub const PROGRAM_WARNINGS_MAX: usize = 16;

/// Octets of a program's last lines that are kept for an error.
pub const PROGRAM_WORDS_SIZE_MAX: usize = 2048;

/// Records that are read at once while a program writes them: 192 KiB.
pub const PROGRAM_RECORDS_AT_ONCE: usize = 4096;

/// Time before its due time at which a message may be sent: the timers of some languages wake up this early.
pub const SENT_EARLY_MAX_NS: i64 = 1_000_000;

/// Knots kept of one machine's clock: two of each window, which is three hours. Beyond that half of them are dropped.
pub const CLOCK_KNOTS_MAX: usize = 1 << 16;

/// Earlier knots with which a new one is compared: a clock that has jumped contradicts all of them.
pub const CLOCK_COMPARED_MAX: usize = 64;

/// Octets of the note beside a capture: about 40 for each of [`CLOCK_ERAS_MAX`] eras, and a fixed head.
pub const CAPTURE_NOTE_SIZE_MAX: u64 = 1 << 20;

//! All limits of the testbed, with their reasons.

/// Hosts of one testbed. Their addresses differ in the last octet; 0, 255 and the highest few are not used.
pub const HOSTS_MAX: usize = 250;

/// Octets of a host's name. With the owner's part before it, a namespace's name is still a short file name.
pub const HOST_NAME_LEN_MAX: usize = 32;

/// Testbeds that outlive the command that created them; more are an error in a script.
pub const KEPT_TESTBEDS_MAX: u32 = 1000;

/// Characters of a tool's output that an error includes.
pub const TOOL_SPEECH_LEN_MAX: usize = 600;

/// Datagrams sent to find out whether a new link passes frames, each with a wait of a hundredth of a second. The
/// kernel's own delay is at most a second; a busy machine adds to it.
pub const LINK_TRIES_MAX: u32 = 1000;

/// Frames queued in a host's own interface, in each priority: the default of Linux. They exceed a socket's send buffer,
/// so that a sender that is too fast blocks, as with real interfaces, and loses no frames.
pub const HOST_QUEUE_FRAMES: u32 = 1000;

/// Frames that have left a line of a relay and have not reached its end. At Gigabit Ethernet that is a quarter of a
/// second of propagation delay.
pub const RELAY_FRAMES_IN_FLIGHT_MAX: usize = 20_000;

/// The receive buffer of a relay, octets in the kernel's count: the frames of some tenths of a second in which the relay
/// does not run.
pub const RELAY_RECEIVE_BUFFER_BYTES: u32 = 64 << 20;

/// Octets of a frame that a relay takes beyond the MTU: the Ethernet header and two VLAN tags.
pub const RELAY_FRAME_BYTES_EXTRA: usize = 22;

/// Octets of the plan of a relay, as JSON: some hundred for each link of [`HOSTS_MAX`] hosts and as many switches.
pub const RELAY_PLAN_BYTES_MAX: u64 = 1 << 20;

/// Lines that a relay's program may print before it carries frames.
pub const RELAY_LINES_MAX: usize = 100;

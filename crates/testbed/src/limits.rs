//! Every bound of the testbed, with its reason.

/// Hosts of one testbed: their addresses differ in the last octet, 0 and 255 left out, the highest few kept free.
pub const HOSTS_MAX: usize = 250;

/// Octets of a host's name: with the owner's part before it a namespace's name stays a short file name.
pub const HOST_NAME_LEN_MAX: usize = 32;

/// Testbeds kept beyond the command that made them; more are a mistake of a script.
pub const KEPT_TESTBEDS_MAX: u32 = 1000;

/// Processes of a load on one host; the paper uses 20.
pub const LOAD_PROCESSES_MAX: u32 = 1000;

/// How long a load may be asked to live, seconds: a day outlasts any mission and ends what was forgotten.
pub const LOAD_LIFETIME_S_MAX: u64 = 86_400;

/// Octets of a tool's output that an error repeats.
pub const TOOL_SPEECH_LEN_MAX: usize = 600;

/// Datagrams, a hundredth of a second each, sent to find out whether a new link carries anything: the kernel's own
/// delay is at most a second, a busy machine adds to it.
pub const LINK_TRIES_MAX: u32 = 1000;

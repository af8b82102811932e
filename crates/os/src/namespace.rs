//! Network namespaces: running a child in one, entering one with a thread. Also the privileges of this process.
//!
//! `ip netns add NAME` creates a named namespace: a file in [`NAMED_NAMESPACES`] keeps it alive.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, LinkNameSpaceType};

/// The folder in which `ip netns` keeps the names.
pub const NAMED_NAMESPACES: &str = "/run/netns";

/// A network namespace, held open.
#[derive(Clone, Debug)]
pub struct Namespace {
    file: Arc<OwnedFd>,
    identity: NamespaceIdentity,
}

impl Namespace {
    /// Opens the namespace with this name.
    ///
    /// # Errors
    /// The operating system's error, when the name does not exist or the namespace may not be opened.
    pub fn named(name: &str) -> io::Result<Self> {
        Self::open(&Path::new(NAMED_NAMESPACES).join(name))
    }

    /// Opens the namespace of the calling thread.
    ///
    /// # Errors
    /// The operating system's error, when `/proc` is not mounted.
    pub fn current() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Opens the namespace at any path: `/run/netns/NAME` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let identity = NamespaceIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
        };
        Ok(Self {
            file: Arc::new(OwnedFd::from(file)),
            identity,
        })
    }

    /// The identity of a namespace, by which two namespaces can be compared.
    #[must_use]
    pub const fn identity(&self) -> NamespaceIdentity {
        self.identity
    }

    /// Moves the calling thread, and only it, into the namespace; sockets it opens from now on are there.
    ///
    /// # Errors
    /// The operating system's error: EPERM without CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<()> {
        enter(self.file.as_fd())
    }

    /// Runs `work` on a new thread inside the namespace and returns its result. The calling thread stays in its own
    /// namespace.
    ///
    /// # Errors
    /// As [`Self::enter`]; then `work` was not run.
    ///
    /// # Panics
    /// When `work` panics.
    pub fn run_inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let inside = std::thread::Builder::new()
                .name("in-namespace".to_owned())
                .spawn_scoped(scope, || self.enter().map(|()| work()))?;
            inside
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The identity of a namespace, by which two namespaces can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespaceIdentity {
    device: u64,
    inode: u64,
}

impl NamespaceIdentity {
    /// Returns the network namespace of a process's first thread.
    ///
    /// # Errors
    /// The operating system's error: the process has ended, or belongs to another user.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let metadata = fs::metadata(format!("/proc/{pid}/ns/net"))?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

/// Where and how a child process runs. Every part is optional; the default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The namespace it starts in.
    pub namespace: Option<Namespace>,
    /// The processors that it may use; empty for all of its parent's.
    pub processors: Vec<u32>,
    /// Kills it (SIGKILL) when the *thread* that started it ends. Start such a child from a thread that lives at least
    /// as long as the child shall.
    pub dies_with_parent: bool,
    /// Puts it in a process group of its own, so that Ctrl-C in a terminal reaches only the parent.
    pub own_group: bool,
    /// Puts it in a session of its own, which has no terminal, and so in a process group of its own too. A program that
    /// would ask for a password fails at once: in a group of its own alone, the kernel stops it (SIGTTIN).
    pub own_session: bool,
}

impl Placement {
    /// Configures `command` so that its children run with this placement.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a processor number that no processor set can hold. If the kernel refuses the
    /// placement, the later `spawn` returns the error.
    pub fn apply(&self, command: &mut Command) -> io::Result<()> {
        let own_session = self.own_session;
        // The leader of a group cannot begin a session.
        if self.own_group && !own_session {
            command.process_group(0);
        }
        let namespace = self.namespace.clone();
        let processors = processor_set(&self.processors)?;
        let parent = self.dies_with_parent.then(rustix::process::getpid);
        let place = move || -> io::Result<()> {
            if let Some(parent) = parent {
                die_with(parent)?;
            }
            if own_session {
                rustix::process::setsid()?;
            }
            if let Some(namespace) = &namespace {
                namespace.enter()?;
            }
            if let Some(processors) = &processors {
                rustix::thread::sched_setaffinity(None, processors)?;
            }
            Ok(())
        };
        // SAFETY: `place` runs between fork and exec. It makes system calls on values made before the fork, and neither
        // allocates, locks nor panics.
        unsafe { command.pre_exec(place) };
        Ok(())
    }
}

/// A capability of the kernel: a privilege beyond those of every process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Capability {
    /// Create and change interfaces, addresses, shapers, filters.
    NetAdmin = 12,
    /// Raw and packet sockets.
    NetRaw = 13,
    /// Lock memory beyond RLIMIT_MEMLOCK.
    IpcLock = 14,
    /// Create and enter namespaces, mount.
    SysAdmin = 21,
    /// Real-time scheduling and any processor affinity.
    SysNice = 23,
}

impl Capability {
    /// All capabilities that this program uses.
    pub const ALL: [Self; 5] = [
        Self::NetAdmin,
        Self::NetRaw,
        Self::IpcLock,
        Self::SysAdmin,
        Self::SysNice,
    ];

    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysNice => "CAP_SYS_NICE",
        }
    }

    /// Returns true if the calling process has the capability in effect.
    #[must_use]
    pub fn is_held(self) -> bool {
        fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| effective_capabilities(&status))
            .is_some_and(|set| self.is_in(set))
    }

    /// Returns true if programs that the calling process starts have the capability too: the process is root, or the
    /// capability is ambient. A capability that only this program's file has (`setcap`) is not inherited.
    #[must_use]
    pub fn is_held_by_children(self) -> bool {
        fs::read_to_string("/proc/self/status").is_ok_and(|status| self.is_passed_on(&status))
    }

    fn is_passed_on(self, status: &str) -> bool {
        let in_set = |name| capability_set(status, name).is_some_and(|set| self.is_in(set));
        let root = status
            .lines()
            .find_map(|line| line.strip_prefix("Uid:"))
            .and_then(|ids| ids.split_ascii_whitespace().nth(1))
            == Some("0");
        in_set("CapAmb:") || root && in_set("CapEff:")
    }

    /// Returns true if the capability is in a set in the kernel's format (`CapEff` of `/proc/PID/status`).
    #[must_use]
    pub const fn is_in(self, set: u64) -> bool {
        set >> (self as u8) & 1 == 1
    }
}

/// Returns the effective capabilities in the text of `/proc/PID/status`.
#[must_use]
pub fn effective_capabilities(status: &str) -> Option<u64> {
    capability_set(status, "CapEff:")
}

fn capability_set(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Returns when a process started, in clock ticks since boot. The process id and this time together identify a process
/// uniquely. Returns `None` for a process that has ended, even if its parent has not waited for it.
#[must_use]
pub fn start_time_of_process(pid: u32) -> Option<u64> {
    start_time_in_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Kills a process (SIGKILL).
///
/// # Errors
/// The operating system's error: the process has ended, or belongs to another user.
pub fn kill_process(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, Signal::KILL)?)
}

/// Kills all processes (SIGKILL) of the group that `leader` leads.
///
/// # Errors
/// The operating system's error: no process is left, or all belong to another user.
pub fn kill_process_group(leader: u32) -> io::Result<()> {
    signal_process_group(leader, GroupSignal::Kill)
}

/// A signal to a group of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSignal {
    /// SIGTERM: asks the processes to end.
    Terminate,
    /// SIGKILL: ends them at once.
    Kill,
    /// SIGSTOP: stops them until [`GroupSignal::Continue`].
    Stop,
    /// SIGCONT.
    Continue,
}

/// Sends a signal to all processes of the group that `leader` leads.
///
/// # Errors
/// As [`kill_process_group`].
pub fn signal_process_group(leader: u32, signal: GroupSignal) -> io::Result<()> {
    let leader = i32::try_from(leader)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    let signal = match signal {
        GroupSignal::Terminate => Signal::TERM,
        GroupSignal::Kill => Signal::KILL,
        GroupSignal::Stop => Signal::STOP,
        GroupSignal::Continue => Signal::CONT,
    };
    Ok(rustix::process::kill_process_group(leader, signal)?)
}

/// Reads the fields of `/proc/PID/stat` after the command. The command is in parentheses and may contain any character
/// (proc_pid_stat(5)).
fn start_time_in_stat(stat: &str) -> Option<u64> {
    const STATE: usize = 0;
    const START_TIME: usize = 19;
    let fields: Vec<&str> = stat
        .get(stat.rfind(')')? + 1..)?
        .split_ascii_whitespace()
        .collect();
    if matches!(*fields.get(STATE)?, "Z" | "X") {
        return None;
    }
    fields.get(START_TIME)?.parse().ok()
}

fn enter(namespace: BorrowedFd<'_>) -> io::Result<()> {
    let network = Some(LinkNameSpaceType::Network);
    Ok(rustix::thread::move_into_link_name_space(
        namespace, network,
    )?)
}

fn die_with(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() == Some(parent) {
        Ok(())
    } else {
        // The parent ended before the request was made, so no signal would ever be sent.
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

fn processor_set(processors: &[u32]) -> io::Result<Option<CpuSet>> {
    if processors.is_empty() {
        return Ok(None);
    }
    let mut set = CpuSet::new();
    for &processor in processors {
        let processor = usize::try_from(processor).unwrap_or(usize::MAX);
        if processor >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(processor);
    }
    Ok(Some(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_time_is_found_behind_a_command_with_parentheses_and_spaces() {
        let stat =
            "4711 (a) b) R) S 1 4711 4711 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 1000 200";
        assert_eq!(start_time_in_stat(stat), Some(987_654));
    }

    #[test]
    fn a_process_that_ended_but_was_not_waited_for_has_no_start_time() {
        let stat = "4711 (a) Z 1 4711 4711 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 987654 0 0";
        assert_eq!(start_time_in_stat(stat), None);
        assert_eq!(start_time_in_stat("4711 (a"), None);
    }

    #[test]
    fn capabilities_are_read_bit_by_bit() {
        let set =
            effective_capabilities("Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000003000\n").unwrap();
        assert!(Capability::NetAdmin.is_in(set) && Capability::NetRaw.is_in(set));
        assert!(!Capability::SysAdmin.is_in(set) && !Capability::SysNice.is_in(set));
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }

    #[test]
    fn only_root_and_ambient_capabilities_are_passed_on() {
        let status = |uid, effective, ambient| {
            format!("Uid:\t1000\t{uid}\t0\t0\nCapEff:\t{effective}\nCapAmb:\t{ambient}\n")
        };
        assert!(Capability::NetAdmin.is_passed_on(&status(0, "1000", "0")));
        assert!(Capability::NetAdmin.is_passed_on(&status(1000, "1000", "1000")));
        assert!(!Capability::NetAdmin.is_passed_on(&status(1000, "1000", "0")));
        assert!(!Capability::NetAdmin.is_passed_on(&status(0, "2000", "0")));
    }

    #[test]
    fn a_child_runs_on_the_processors_it_was_given_in_a_group_of_its_own() {
        let last = *crate::schedule::affinity().unwrap().last().unwrap();
        let mut command = Command::new("cat");
        command.arg("/proc/self/status").arg("/proc/self/stat");
        let placement = Placement {
            processors: vec![last],
            dies_with_parent: true,
            own_group: true,
            ..Placement::default()
        };
        placement.apply(&mut command).unwrap();
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains(&format!("Cpus_allowed_list:\t{last}\n")),
            "{text}"
        );
        let stat = text.lines().last().unwrap();
        let pid = stat.split(' ').next().unwrap();
        assert!(
            stat.contains(&format!("R {} {pid} ", std::process::id())),
            "{stat}"
        );
    }

    #[test]
    fn a_child_in_a_session_of_its_own_leads_its_group_and_has_no_terminal() {
        let mut command = Command::new("cat");
        command.arg("/proc/self/stat");
        let placement = Placement {
            own_group: true,
            own_session: true,
            ..Placement::default()
        };
        placement.apply(&mut command).unwrap();
        let output = command.output().unwrap();
        let stat = String::from_utf8(output.stdout).unwrap();
        let pid = stat.split(' ').next().unwrap();
        // Parent, process group, session, terminal.
        let wanted = format!("R {} {pid} {pid} 0 ", std::process::id());
        assert!(stat.contains(&wanted), "{stat}");
    }

    #[test]
    fn a_processor_beyond_every_set_is_refused() {
        let placement = Placement {
            processors: vec![u32::MAX],
            ..Placement::default()
        };
        assert!(placement.apply(&mut Command::new("true")).is_err());
    }

    #[test]
    fn the_calling_thread_and_its_process_share_a_namespace() {
        let here = Namespace::current().unwrap();
        assert_eq!(
            here.identity(),
            NamespaceIdentity::of_process(std::process::id()).unwrap()
        );
    }
}

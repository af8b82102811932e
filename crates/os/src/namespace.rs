//! Network namespaces: run a child in one, enter one with a thread; and what this process is permitted to do.
//!
//! A namespace with a name is what `ip netns add NAME` makes: a file in [`NAMED_NAMESPACES`] that keeps it alive.

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

/// Where `ip netns` keeps the names.
pub const NAMED_NAMESPACES: &str = "/run/netns";

/// A network namespace, held open.
#[derive(Clone, Debug)]
pub struct Namespace {
    file: Arc<OwnedFd>,
    identity: NamespaceIdentity,
}

impl Namespace {
    /// Opens the namespace of that name.
    ///
    /// # Errors
    /// The operating system's, when there is none of that name or it may not be opened.
    pub fn named(name: &str) -> io::Result<Self> {
        Self::open(&Path::new(NAMED_NAMESPACES).join(name))
    }

    /// Opens the namespace the calling thread is in.
    ///
    /// # Errors
    /// The operating system's, when `/proc` is not mounted.
    pub fn current() -> io::Result<Self> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Opens the namespace behind any path: `/run/netns/NAME` or `/proc/PID/ns/net`.
    ///
    /// # Errors
    /// The operating system's.
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

    /// What tells two namespaces apart.
    #[must_use]
    pub const fn identity(&self) -> NamespaceIdentity {
        self.identity
    }

    /// Moves the calling thread, and only it, into the namespace; sockets it opens from now on are there.
    ///
    /// # Errors
    /// The operating system's: EPERM without CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<()> {
        enter(self.file.as_fd())
    }

    /// Runs `work` on a thread of its own inside the namespace and returns what it returned; the calling thread stays where it is.
    ///
    /// # Errors
    /// As [`Self::enter`]; then `work` was not run.
    ///
    /// # Panics
    /// When `work` does.
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

/// What tells two namespaces apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespaceIdentity {
    device: u64,
    inode: u64,
}

impl NamespaceIdentity {
    /// The network namespace a process's first thread is in.
    ///
    /// # Errors
    /// The operating system's: the process is gone, or belongs to another user.
    pub fn of_process(pid: u32) -> io::Result<Self> {
        let metadata = fs::metadata(format!("/proc/{pid}/ns/net"))?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }
}

/// Where and how a child process is to run. Every part is optional; the default changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The namespace it starts in.
    pub namespace: Option<Namespace>,
    /// The processors it may use; empty for all of its parent's.
    pub processors: Vec<u32>,
    /// Kills it (SIGKILL) when the *thread* that started it ends: start such children from a thread that lives as long as they shall.
    pub dies_with_parent: bool,
    /// Puts it in a process group of its own, so that Ctrl-C in a terminal reaches only the parent.
    pub own_group: bool,
}

impl Placement {
    /// Arranges for `command`'s children to be placed so.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a processor number that no processor set can hold. What the kernel refuses is the error of the later `spawn`.
    pub fn apply(&self, command: &mut Command) -> io::Result<()> {
        if self.own_group {
            command.process_group(0);
        }
        let namespace = self.namespace.clone();
        let processors = processor_set(&self.processors)?;
        let parent = self.dies_with_parent.then(rustix::process::getpid);
        let place = move || -> io::Result<()> {
            if let Some(parent) = parent {
                die_with(parent)?;
            }
            if let Some(namespace) = &namespace {
                namespace.enter()?;
            }
            if let Some(processors) = &processors {
                rustix::thread::sched_setaffinity(None, processors)?;
            }
            Ok(())
        };
        // SAFETY: `place` runs between fork and exec. It makes system calls on values made before the fork, and neither allocates, locks nor panics.
        unsafe { command.pre_exec(place) };
        Ok(())
    }
}

/// Something the kernel permits a process, beyond what every process may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Capability {
    /// Make and change interfaces, addresses, shapers, filters.
    NetAdmin = 12,
    /// Raw and packet sockets.
    NetRaw = 13,
    /// Lock memory beyond RLIMIT_MEMLOCK.
    IpcLock = 14,
    /// Make and enter namespaces, mount.
    SysAdmin = 21,
    /// Real-time scheduling and any processor affinity.
    SysNice = 23,
}

impl Capability {
    /// All that this program ever needs.
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

    /// Whether the calling process has it in effect.
    #[must_use]
    pub fn is_held(self) -> bool {
        fs::read_to_string("/proc/self/status")
            .ok()
            .and_then(|status| effective_capabilities(&status))
            .is_some_and(|set| self.is_in(set))
    }

    /// Whether programs that the calling process starts have it too: it is root, or the capability is ambient. One that the file of this program
    /// alone was given (`setcap`) stays with this program.
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

    /// Whether it is in a set as the kernel writes it (`CapEff` of `/proc/PID/status`).
    #[must_use]
    pub const fn is_in(self, set: u64) -> bool {
        set >> (self as u8) & 1 == 1
    }
}

/// The effective capabilities in the text of `/proc/PID/status`.
#[must_use]
pub fn effective_capabilities(status: &str) -> Option<u64> {
    capability_set(status, "CapEff:")
}

fn capability_set(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// When a process started, in clock ticks since the machine did: with the process id it names a process for ever. None for one that has
/// ended, waited for by its parent or not.
#[must_use]
pub fn start_time_of_process(pid: u32) -> Option<u64> {
    start_time_in_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Ends a process at once (SIGKILL).
///
/// # Errors
/// The operating system's: it is gone, or belongs to another user.
pub fn kill_process(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, Signal::KILL)?)
}

/// Ends a process at once (SIGKILL), and with it all that are in the group which it leads.
///
/// # Errors
/// The operating system's: none is left, or all belong to another user.
pub fn kill_process_group(leader: u32) -> io::Result<()> {
    let leader = i32::try_from(leader)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process_group(leader, Signal::KILL)?)
}

/// Fields of `/proc/PID/stat` after the command, which stands in parentheses and may itself hold any character (proc_pid_stat(5)).
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
        // The parent ended before the request was made, so no signal would ever come.
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

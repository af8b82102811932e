//! Counts events of threads, by the kernel's own tracepoints and probes (`perf_event_open`). Nothing is preloaded into
//! the counted process, and the process is not stopped.
//!
//! Tracepoints and probes belong to the trace file system, which only root can read and write.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

/// The event to count.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Each system call.
    SystemCalls,
    /// Each system call that waits for a word of memory: a lock that another thread holds, or a condition.
    FutexWaits,
    /// Each futex call: waits, and what wakes them.
    FutexCalls,
    /// Each call of one of these functions.
    Entries(&'a Entries),
}

/// A running count, until it is dropped, of the events of one thread and of the threads that it starts later.
#[derive(Debug)]
pub struct EventCount {
    file: File,
}

impl EventCount {
    /// Counts the events of `thread` (the kernel's id) from now on.
    ///
    /// # Errors
    /// The operating system's error: EACCES without the permission, ENOENT if the kernel has no such event, ESRCH
    /// without such a thread.
    pub fn of_thread(event: Event<'_>, thread: u32) -> io::Result<Self> {
        match event {
            Event::SystemCalls => {
                Self::open(&Attributes::tracepoint("raw_syscalls/sys_enter")?, thread)
            }
            Event::FutexCalls => {
                Self::open(&Attributes::tracepoint("syscalls/sys_enter_futex")?, thread)
            }
            Event::FutexWaits => {
                let count =
                    Self::open(&Attributes::tracepoint("syscalls/sys_enter_futex")?, thread)?;
                count.filter(FUTEX_WAIT_FILTER)?;
                Ok(count)
            }
            Event::Entries(entries) => {
                Self::open(&Attributes::tracepoint_numbered(entries.number), thread)
            }
        }
    }

    /// Returns the count until now.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn read(&self) -> io::Result<u64> {
        let mut octets = [0; 8];
        (&self.file).read_exact(&mut octets)?;
        Ok(u64::from_ne_bytes(octets))
    }

    fn open(attributes: &Attributes, thread: u32) -> io::Result<Self> {
        const ANY_PROCESSOR: i32 = -1;
        const NO_GROUP: i32 = -1;
        const CLOSE_ON_EXEC: u64 = 8;
        // SAFETY: the attributes say their own size and outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(attributes),
                thread.cast_signed(),
                ANY_PROCESSOR,
                NO_GROUP,
                CLOSE_ON_EXEC,
            )
        };
        let file = descriptor(result)?.into();
        Ok(Self { file })
    }

    fn filter(&self, words: &CStr) -> io::Result<()> {
        const SET_FILTER: libc::Ioctl = 0x4008_2406;
        // SAFETY: the words end with a null and outlive the call.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), SET_FILTER, words.as_ptr()) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

/// Functions of one program or library, whose calls are one event. The kernel has the event until this is dropped, or
/// until the next is made after the process was killed.
///
/// One event for all of them: the kernel waits for all processors when it removes an event that was counted, about
/// 80 ms each.
#[derive(Debug)]
pub struct Entries {
    /// Its group and its name.
    name: String,
    number: u64,
}

impl Entries {
    /// Makes the event of all calls of the functions whose code begins at `offsets` in `file`.
    ///
    /// # Errors
    /// The operating system's error: EACCES or EPERM without the permission, EINVAL for an offset that is no code.
    pub fn of(file: &Path, offsets: &[u64]) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let counted = File::open(file)?;
        let files = trace_files()?;
        remove_stale(&files)?;
        let own = std::process::id();
        let event = NEXT.fetch_add(1, Ordering::Relaxed);
        // Removes what was defined if a later step fails.
        let mut entries = Self {
            name: format!("{GROUP}{own}/entries_{event}"),
            number: 0,
        };
        let mut definitions = definitions(&files)?;
        for offset in offsets {
            // A path of the process's own files has no space or colon in it.
            let descriptor = counted.as_raw_fd();
            let line = format!(
                "p:{} /proc/self/fd/{descriptor}:{offset:#x}\n",
                entries.name
            );
            definitions.write_all(line.as_bytes())?;
        }
        entries.number = number_of(&files, &entries.name)?;
        Ok(entries)
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        // The next `Entries` removes what stays.
        let _ = trace_files().and_then(|files| remove(&files, &self.name));
    }
}

/// The beginning of the group of a process's events, before the process's id.
const GROUP: &str = "deckwatch_";

fn definitions(files: &OwnedFd) -> io::Result<File> {
    open_in(files, DEFINITIONS, OFlags::WRONLY | OFlags::APPEND)
}

const DEFINITIONS: &str = "uprobe_events";

fn remove(files: &OwnedFd, name: &str) -> io::Result<()> {
    definitions(files)?.write_all(format!("-:{name}\n").as_bytes())
}

/// Removes events of processes that have been killed.
fn remove_stale(files: &OwnedFd) -> io::Result<()> {
    let mut text = String::new();
    open_in(files, DEFINITIONS, OFlags::RDONLY)?.read_to_string(&mut text)?;
    for line in text.lines() {
        let Some((name, _)) = line.strip_prefix("p:").and_then(|it| it.split_once(' ')) else {
            continue;
        };
        let process = name
            .strip_prefix(GROUP)
            .and_then(|it| it.split_once('/'))
            .map(|(process, _)| process);
        if process.is_some_and(|it| !Path::new("/proc").join(it).exists()) {
            // Each function of an event has a line; the first has removed them all.
            let _ = remove(files, name);
        }
    }
    Ok(())
}

/// FUTEX_WAIT, _WAIT_BITSET, _LOCK_PI and _LOCK_PI2 (0, 9, 6, 13), each with FUTEX_PRIVATE_FLAG (128) and
/// FUTEX_CLOCK_REALTIME (256) or without.
const FUTEX_WAIT_FILTER: &CStr = c"op==0||op==128||op==256||op==384||\
    op==9||op==137||op==265||op==393||op==6||op==134||op==262||op==390||op==13||op==141||op==269||op==397";

/// The first 72 octets of the kernel's `perf_event_attr`; the kernel determines the version from the size
/// (PERF_ATTR_SIZE_VER1).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
}

impl Attributes {
    fn new(kind: u32) -> Self {
        const INHERIT: u64 = 1 << 1;
        Self {
            kind,
            size: size_of::<Self>() as u32,
            flags: INHERIT,
            ..Self::default()
        }
    }

    fn tracepoint(name: &str) -> io::Result<Self> {
        Ok(Self::tracepoint_numbered(number_of(&trace_files()?, name)?))
    }

    fn tracepoint_numbered(number: u64) -> Self {
        const TRACEPOINT: u32 = 2;
        Self {
            config: number,
            ..Self::new(TRACEPOINT)
        }
    }
}

fn number(text: &str) -> io::Result<u64> {
    let parsed = text.trim().parse();
    parsed.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Returns an instance of the trace file system. It is not mounted, and is removed when it is closed.
fn trace_files() -> io::Result<OwnedFd> {
    const CREATE: libc::c_uint = 6;
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: the name ends with a null; nothing else is pointed to.
    let context = descriptor(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 0) })?;
    // SAFETY: creation takes neither key nor value.
    let created = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            CREATE,
            nothing,
            nothing,
            0,
        )
    };
    if created != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: numbers alone are passed.
    descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0, 0) })
}

fn open_in(files: &OwnedFd, path: &str, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC;
    let file = rustix::fs::openat(files, path, flags, rustix::fs::Mode::empty())?;
    Ok(File::from(file))
}

/// Returns the number of the tracepoint with this name.
fn number_of(files: &OwnedFd, name: &str) -> io::Result<u64> {
    let mut text = String::new();
    open_in(files, &format!("events/{name}/id"), OFlags::RDONLY)?
        .take(LINE_LEN_MAX)
        .read_to_string(&mut text)?;
    number(&text)
}

/// Octets of a number and its line end.
const LINE_LEN_MAX: u64 = 32;

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the kernel has just made it, and nobody else knows it.
        Ok(descriptor @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the events whose group begins with `group`.
    fn events_of(files: &OwnedFd, group: &str) -> Vec<String> {
        let mut text = String::new();
        let mut file = open_in(files, DEFINITIONS, OFlags::RDONLY).expect("readable");
        file.read_to_string(&mut text).expect("text");
        let names = text.lines().filter_map(|line| line.strip_prefix("p:"));
        let mut names: Vec<String> = names
            .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
            .filter(|name| name.starts_with(group))
            .collect();
        names.dedup();
        names
    }

    #[test]
    fn an_event_is_removed_when_it_is_dropped_and_that_of_a_killed_process_by_the_next() {
        // Some code of this program: offsets are not checked before an event is counted.
        let (program, offsets) = (Path::new("/proc/self/exe"), [0x1_0000, 0x1_0010]);
        let entries = match Entries::of(program, &offsets) {
            Ok(entries) => entries,
            Err(error) => return deckwatch_testkit::skip("perf events", &error.to_string()),
        };
        let own = format!("{GROUP}{}/", std::process::id());
        let files = trace_files().expect("entries could be made");
        assert!(events_of(&files, &own).contains(&entries.name));
        // No process has this id: it is above the kernel's limit.
        let killed = format!("{GROUP}999999999/");
        let line = format!("p:{killed}entries_0 /proc/self/exe:0x10000\n");
        let mut definitions = definitions(&files).expect("writable");
        definitions.write_all(line.as_bytes()).expect("defined");
        drop(entries);
        assert_eq!(events_of(&files, &own), Vec::<String>::new());
        assert_eq!(events_of(&files, &killed).len(), 1);
        let next = Entries::of(program, &offsets).expect("as the first");
        assert_eq!(events_of(&files, &killed), Vec::<String>::new());
        assert_eq!(events_of(&files, &own), std::slice::from_ref(&next.name));
    }
}

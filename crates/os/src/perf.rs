//! Counts events of threads, by the kernel's own tracepoints and probes (`perf_event_open`). Nothing is preloaded into
//! the counted process, and the process is not stopped.
//!
//! Probes need CAP_SYS_ADMIN (on some systems CAP_PERFMON is not enough). The numbers of tracepoints are in the trace
//! file system, which only root can read.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The event to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Each system call.
    SystemCalls,
    /// Each system call that waits for a word of memory: a lock that another thread holds, or a condition.
    FutexWaits,
    /// Each futex call: waits, and what wakes them.
    FutexCalls,
    /// Each call of the function whose code begins at `offset` in a program or library.
    Entries {
        /// The program or library.
        file: &'a Path,
        /// Octets from its beginning.
        offset: u64,
    },
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
            Event::Entries { file, offset } => {
                let path = CString::new(file.as_os_str().as_bytes())
                    .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
                Self::open(&Attributes::probe(&path, offset)?, thread)
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
        // SAFETY: the attributes say their own size and outlive the call, and so does the path that a probe names.
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
        const SET_FILTER: libc::c_ulong = 0x4008_2406;
        // SAFETY: the words end with a null and outlive the call.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), SET_FILTER, words.as_ptr()) };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
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
        const TRACEPOINT: u32 = 2;
        let number = tracepoint_number(name)?;
        Ok(Self {
            config: number,
            ..Self::new(TRACEPOINT)
        })
    }

    /// The result does not borrow `path`: the caller must keep it alive until the call that takes the attributes.
    fn probe(path: &CStr, offset: u64) -> io::Result<Self> {
        let kind = std::fs::read_to_string("/sys/bus/event_source/devices/uprobe/type")?;
        Ok(Self {
            config1: path.as_ptr() as u64,
            config2: offset,
            ..Self::new(number(&kind)? as u32)
        })
    }
}

fn number(text: &str) -> io::Result<u64> {
    let parsed = text.trim().parse();
    parsed.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Returns the number of a tracepoint, read from an instance of the trace file system. That instance is not mounted,
/// and is removed when it is closed.
fn tracepoint_number(name: &str) -> io::Result<u64> {
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
    let mount = descriptor(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0, 0) })?;
    let path = format!("events/{name}/id");
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let file = rustix::fs::openat(&mount, path, flags, rustix::fs::Mode::empty())?;
    let mut text = String::new();
    File::from(file)
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

//! Scheduling class, processors and processor time of the calling thread.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::time::Duration;

use rustix::thread::CpuSet;

/// A scheduling class with its native priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// SCHED_OTHER, time sharing.
    #[default]
    Other,
    /// SCHED_FIFO. Only for threads that block: a spinning thread stops all threads of lower priority on its processor.
    Fifo(u8),
    /// SCHED_RR.
    RoundRobin(u8),
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("SCHED_OTHER"),
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Self::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
        }
    }
}

/// Sets the scheduling class of the calling thread; threads that it creates start in SCHED_OTHER.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_NICE or a sufficient RLIMIT_RTPRIO, `InvalidInput` for a priority outside 1..=99.
pub fn set_class(class: Class) -> io::Result<()> {
    set_class_by_number(0, class)
}

/// `thread` 0 is the calling thread.
fn set_class_by_number(thread: i32, class: Class) -> io::Result<()> {
    let (policy, priority) = match class {
        Class::Other => (libc::SCHED_OTHER, 0),
        Class::Fifo(priority) => (libc::SCHED_FIFO, priority),
        Class::RoundRobin(priority) => (libc::SCHED_RR, priority),
    };
    let parameters = Parameters {
        priority: i32::from(priority),
    };
    // Without the flag, a thread that a real-time thread creates would be real-time too, even if it never blocks.
    let policy = policy | libc::SCHED_RESET_ON_FORK;
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: the kernel reads one sched_param from a live reference.
    match unsafe { libc::syscall(call, thread, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(match io::Error::last_os_error() {
            gone if gone.raw_os_error() == Some(libc::ESRCH) => io::ErrorKind::NotFound.into(),
            error => error,
        }),
    }
}

/// The kernel's `sched_param`. The C library musl has another one, and refuses these calls: so they go to the kernel.
#[repr(C)]
struct Parameters {
    priority: i32,
}

/// Returns the kernel's id of the calling thread.
#[must_use]
pub fn thread_number() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Names the calling thread, for `top -H` and warnings. The kernel keeps 15 octets.
pub fn name_thread(name: &CStr) {
    // Fails only for a name that the kernel cannot read.
    let _ = rustix::thread::set_name(name);
}

/// As [`set_class`] for another thread of this process, identified by its [`thread_number`]. The thread must not have
/// ended: the kernel may give its number to another thread.
///
/// # Errors
/// As [`set_class`]; `NotFound` if there is no such thread.
pub fn set_class_of(thread: u32, class: Class) -> io::Result<()> {
    set_class_by_number(thread.cast_signed(), class)
}

/// Returns the class of the calling thread; a class other than the three counts as SCHED_OTHER.
///
/// # Errors
/// The kernel's error.
pub fn class() -> io::Result<Class> {
    class_of(0)
}

/// As [`class`] for a thread of any process, by its [`thread_number`]; 0 is the calling thread.
///
/// # Errors
/// The kernel's error.
pub fn class_of(thread: u32) -> io::Result<Class> {
    let thread = thread.cast_signed();
    // SAFETY: no memory is involved.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, thread) };
    let policy = i32::try_from(policy).unwrap_or(libc::SCHED_OTHER);
    if policy < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut parameters = Parameters { priority: 0 };
    // SAFETY: the kernel writes one sched_param to a live reference.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getparam, thread, &raw mut parameters) };
    if answer < 0 {
        return Err(io::Error::last_os_error());
    }
    let priority = u8::try_from(parameters.priority).unwrap_or(0);
    Ok(match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO => Class::Fifo(priority),
        libc::SCHED_RR => Class::RoundRobin(priority),
        _ => Class::Other,
    })
}

/// Returns how long the calling thread has run on a processor (CLOCK_THREAD_CPUTIME_ID).
#[must_use]
pub fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    // The kernel never reports a negative time.
    Duration::try_from(time).unwrap_or_default()
}

/// As [`processor_time`] for another thread of this process, identified by its [`thread_number`].
///
/// # Errors
/// `NotFound` if there is no such thread.
pub fn processor_time_of(thread: u32) -> io::Result<Duration> {
    // The kernel's clock of one thread: the complement of its number above three bits, which mean "time on a
    // processor, of a thread".
    let clock = (!thread.cast_signed() << 3) | 0b110;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec to a live reference.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
    Ok(Duration::new(seconds, nanoseconds))
}

/// Binds the calling thread, and those that it creates from now on, to processors.
///
/// # Errors
/// `InvalidInput` if none of them exists or is permitted.
pub fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &set)?;
    Ok(())
}

/// Returns the processors that the calling thread may run on.
///
/// # Errors
/// The kernel's error.
pub fn affinity() -> io::Result<Vec<u32>> {
    Ok(in_set(&rustix::thread::sched_getaffinity(None)?))
}

/// Returns the processors that a thread, by its [`thread_number`], or the first thread of a process may run on.
///
/// # Errors
/// The kernel's error: the process has ended.
pub fn affinity_of(process: u32) -> io::Result<Vec<u32>> {
    let number = i32::try_from(process).map_err(|_| io::ErrorKind::InvalidInput)?;
    let process = rustix::thread::Pid::from_raw(number).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(in_set(&rustix::thread::sched_getaffinity(Some(process))?))
}

fn in_set(set: &CpuSet) -> Vec<u32> {
    (0..CpuSet::MAX_CPU)
        .filter(|&cpu| set.is_set(cpu))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect()
}

/// Makes the kernel end the process when one of its real-time threads has run this long without blocking. A spinning
/// thread then ends one run, but does not block the machine. The process ends by SIGXCPU, which no other limit of this
/// crate causes; SIGKILL follows if it survives that by [`AFTER_SIGXCPU`].
///
/// # Errors
/// `PermissionDenied` if the limit is already lower.
pub fn limit_real_time(unblocked: Duration) -> io::Result<()> {
    let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let limit = libc::rlimit {
        rlim_cur: microseconds(unblocked),
        // With equal limits the kernel sends SIGKILL at once, and the end looks like any other kill.
        rlim_max: microseconds(unblocked.saturating_add(AFTER_SIGXCPU)),
    };
    // SAFETY: the kernel reads one rlimit from a live reference.
    match unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &raw const limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Time from the SIGXCPU of [`limit_real_time`] to the SIGKILL. SIGXCPU ends a process within a tick of the kernel, which
/// is at most 10 ms.
pub const AFTER_SIGXCPU: Duration = Duration::from_millis(200);

/// The signal by which the limit of [`limit_real_time`] ends a process.
pub const REAL_TIME_LIMIT_SIGNAL: i32 = libc::SIGXCPU;

/// Sets the timer slack of the calling thread: how much later than requested it may be woken, so that wake-ups are
/// combined. A time-sharing thread starts with 50 microseconds; a real-time thread has none.
pub fn set_timer_slack(slack: Duration) {
    let slack = libc::c_ulong::try_from(slack.as_nanos()).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: the call takes integers only. It cannot fail for the calling thread.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack, 0, 0, 0) };
    debug_assert_eq!(result, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_thread<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
        std::thread::spawn(run).join().expect("no panic")
    }

    #[test]
    fn a_class_that_was_got_is_the_class_that_is_read() {
        in_thread(|| {
            for asked in [Class::Fifo(3), Class::RoundRobin(2), Class::Other] {
                match set_class(asked) {
                    Ok(()) => assert_eq!(class().expect("readable"), asked),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
                }
            }
        });
    }

    #[test]
    fn a_thread_is_put_into_a_class_by_its_number() {
        let (here, arrived) = std::sync::mpsc::channel();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            here.send(thread_number()).expect("the test waits");
            let _ = gate.recv(); // Sent, or the test has failed.
            class().expect("readable")
        });
        let number = arrived.recv().expect("it says so");
        assert_ne!(number, thread_number());
        let set = set_class_of(number, Class::Fifo(4));
        go.send(()).expect("it waits");
        let seen = other.join().expect("no panic");
        match set {
            Ok(()) => assert_eq!(seen, Class::Fifo(4)),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        let gone = set_class_of(u32::MAX >> 1, Class::Other).expect_err("no such thread");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_processor_time_of_a_thread_is_its_own() {
        let (here, arrived) = std::sync::mpsc::channel();
        let (go, gate) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let begun = processor_time();
            while processor_time() < begun + Duration::from_millis(5) {
                std::hint::spin_loop();
            }
            here.send((thread_number(), processor_time()))
                .expect("the test waits");
            let _ = gate.recv(); // Sent, or the test has failed.
            processor_time()
        });
        let (number, used) = arrived.recv().expect("it reports");
        assert!(used >= Duration::from_millis(5));
        let seen = processor_time_of(number).expect("it waits");
        let own = processor_time();
        assert!(processor_time_of(thread_number()).expect("it runs") >= own);
        go.send(()).expect("it waits");
        let last = other.join().expect("no panic");
        assert!(
            (used..=last).contains(&seen),
            "{used:?} {seen:?} {last:?}: the clock of the other thread"
        );
        // The kernel numbers threads with 22 bits.
        let gone = processor_time_of(1 << 27).expect_err("no such thread");
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_priority_that_no_class_has_is_refused_and_changes_nothing() {
        in_thread(|| {
            let error = set_class(Class::Fifo(100)).expect_err("1..=99");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(class().expect("readable"), Class::Other);
        });
    }

    #[test]
    fn threads_of_a_real_time_thread_are_not_real_time() {
        let child = in_thread(|| {
            if set_class(Class::Fifo(1)).is_err() {
                deckwatch_testkit::skip_part("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
            }
            in_thread(|| class().expect("readable"))
        });
        assert_eq!(child, Class::Other);
    }

    #[test]
    fn a_real_time_process_that_never_blocks_ends_by_the_signal_of_its_limit() {
        use std::os::unix::process::{CommandExt, ExitStatusExt};
        if in_thread(|| set_class(Class::Fifo(1))).is_err() {
            deckwatch_testkit::skip("real-time-class", "SCHED_FIFO needs CAP_SYS_NICE");
            return;
        }
        let mut spinning = std::process::Command::new("sh");
        spinning.args(["-c", "while :; do :; done"]);
        let prepare = || {
            limit_real_time(Duration::from_millis(50))?;
            set_class(Class::Fifo(1))
        };
        // SAFETY: between fork and exec the closure makes system calls only, and allocates nothing.
        unsafe { spinning.pre_exec(prepare) };
        let status = spinning.status().expect("a shell");
        assert_eq!(status.signal(), Some(REAL_TIME_LIMIT_SIGNAL), "{status:?}");
    }

    #[test]
    fn a_thread_runs_where_it_was_bound() {
        in_thread(|| {
            let all = affinity().expect("readable");
            let one = [*all.last().expect("at least one")];
            set_affinity(&one).expect("permitted");
            assert_eq!(affinity().expect("readable"), one);
            let of_thread = affinity_of(thread_number());
            assert_eq!(of_thread.expect("readable"), one);
            assert!(set_affinity(&[5_000]).is_err());
            assert!(set_affinity(&[]).is_err());
        });
    }
}

//! Short trials of the kernel, for properties that its files do not show.

use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use deckwatch_meter::disturbance::Disturbance;
use deckwatch_meter::provenance::Readings;
use deckwatch_os::filter::PortFilter;
use deckwatch_os::schedule::{Class, set_class};
use deckwatch_os::tap::{self, Leaving, Tap};
use deckwatch_os::{clock, stamp};
use deckwatch_testbed::{HostSpec, PRESETS, Testbed};

use crate::limits::{STAMPED_DATAGRAMS_MAX, WAKE_UP_PERIOD_NS, WAKE_UPS};

/// Results of the trials. Errors are sentences for the reader.
#[derive(Clone, Debug)]
pub struct Trials {
    /// The resolution of the kernel's timers, in nanoseconds.
    pub timer_resolution_ns: i64,
    /// Lateness of a thread in the time-sharing class.
    pub time_sharing: WakeUps,
    /// Lateness of a thread of the lowest SCHED_FIFO priority, or why the thread could not be started.
    pub real_time: Result<WakeUps, String>,
    /// Disturbance of the machine during the trials.
    pub disturbance: Disturbance,
    /// The kernel stamps datagrams in software.
    pub stamps: Result<(), String>,
    /// Packets of an interface can be tapped.
    pub tap: Result<(), String>,
    /// A host on a shaped network can be created.
    pub emulation: Result<(), String>,
    /// A run of this user emulates its hosts in a user namespace, into which it moves, and taps packets there.
    pub isolates: bool,
}

/// Lateness of a thread that sleeps until absolute times, one millisecond apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeUps {
    /// Number of wake-ups.
    pub count: usize,
    /// The median, in nanoseconds after the due time.
    pub median_ns: i64,
    /// The maximum, in nanoseconds after the due time.
    pub max_ns: i64,
}

impl Trials {
    /// Runs the trials.
    #[must_use]
    pub fn make() -> Self {
        let before = Readings::take();
        let time_sharing = on_a_thread_of(Class::Other);
        let real_time = on_a_thread_of(Class::Fifo(LOWEST_REAL_TIME));
        let disturbance = before.until(&Readings::take());
        Self {
            timer_resolution_ns: clock::timer_resolution_ns(),
            // The time-sharing class is always permitted.
            time_sharing: time_sharing.unwrap_or_default(),
            real_time: real_time.map_err(|error| error.to_string()),
            disturbance,
            stamps: stamps().map_err(|error| error.to_string()),
            tap: open_tap().map_err(|error| error.to_string()),
            emulation: emulation(),
            isolates: Testbed::will_isolate(),
        }
    }
}

impl Default for WakeUps {
    /// Nothing measured.
    fn default() -> Self {
        Self {
            count: 0,
            median_ns: 0,
            max_ns: 0,
        }
    }
}

/// The thread only sleeps, so the lowest priority is enough and delays no other thread.
const LOWEST_REAL_TIME: u8 = 1;

fn on_a_thread_of(class: Class) -> io::Result<WakeUps> {
    let measure = move || set_class(class).map(|()| wake_ups());
    let measured = std::thread::Builder::new().spawn(measure)?;
    measured
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn wake_ups() -> WakeUps {
    let begin_ns = clock::monotonic_ns();
    let mut late_ns: Vec<i64> = (1..=WAKE_UPS)
        .map(|number| {
            let due_ns = begin_ns
                + i64::try_from(number)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(WAKE_UP_PERIOD_NS);
            clock::sleep_until(due_ns);
            clock::monotonic_ns() - due_ns
        })
        .collect();
    late_ns.sort_unstable();
    WakeUps {
        count: late_ns.len(),
        median_ns: late_ns.get(late_ns.len() / 2).copied().unwrap_or_default(),
        max_ns: late_ns.last().copied().unwrap_or_default(),
    }
}

/// Sends datagrams over loopback until one arrives with a time stamp.
fn stamps() -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(socket.local_addr()?)?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    stamp::stamp_received(&socket)?;
    for _ in 0..STAMPED_DATAGRAMS_MAX {
        socket.send(&[0])?;
        if stamp::receive(&socket, &mut [0])?
            .stamp_realtime_ns
            .is_some()
        {
            return Ok(());
        }
        std::thread::sleep(BETWEEN_DATAGRAMS);
    }
    Err(io::Error::other(
        "the kernel delivers datagrams without stamps",
    ))
}

/// The kernel patches itself to switch stamping on, which takes some of these intervals.
const BETWEEN_DATAGRAMS: Duration = Duration::from_millis(1);

fn open_tap() -> io::Result<()> {
    const BUFFER_BYTES: u32 = 65_536;
    let interfaces = tap::interfaces()?;
    let loopback = interfaces.iter().find(|interface| interface.name == "lo");
    let loopback = loopback.ok_or(io::ErrorKind::NotFound)?;
    Tap::open(
        loopback,
        Leaving::Seen,
        &PortFilter::new(&[ANY_PORT]),
        BUFFER_BYTES,
    )
    .map(drop)
}

/// A port for a filter that matches nothing.
const ANY_PORT: u16 = 9;

fn emulation() -> Result<(), String> {
    if let Some(reason) = Testbed::obstacle() {
        return Err(reason);
    }
    let made = Testbed::create(&PRESETS[0].spec(), &[HostSpec::new("doctor")]);
    made.map(drop).map_err(|error| error.to_string())
}

//! Pressure on memory or a disk by the program `stress-ng`, watched by the kernel's counters of its processes.

mod program;
mod readings;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use deckwatch_os::mapped::room_bytes;
use serde::{Deserialize, Serialize};

use self::program::Program;
use self::readings::Stalls;
use crate::held::Unit;
use crate::limits::{
    DISK_RESERVE_BYTES, DISK_SIZE_MIN, MEMORY_RESERVE_BYTES, MEMORY_SIZE_MIN, STOP_LOOK,
};
use crate::{Held, LoadError, LoadReport, Second, Stop};

/// Pressure by one worker of `stress-ng`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StressPlan {
    /// Memory is taken, and written and read without pause.
    Memory {
        /// Octets.
        size_bytes: u64,
    },
    /// A file is written and read without pause. Each write is on the disk before the next one begins.
    Disk {
        /// The folder in which the file is.
        path: PathBuf,
        /// Octets of the file.
        size_bytes: u64,
    },
}

/// The figures of `stress-ng` about itself, and what the machine waited meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stressed {
    /// The version of `stress-ng`.
    pub version: String,
    /// Its "bogo operations". They compare only with other runs of this version.
    pub operations: u64,
    /// The same in a second.
    pub operations_per_s: f64,
    /// Processor time of its worker.
    pub processor_time: Duration,
    /// Octets a second that it wrote to its file, while it wrote; `None` for memory.
    pub written_octets_per_s: Option<f64>,
    /// Octets a second that it read from its file, while it read; `None` for memory.
    pub read_octets_per_s: Option<f64>,
    /// Share of the time in which at least one task of the machine waited for memory, or for input and output
    /// (`/proc/pressure`); `None` on a kernel that does not count it.
    pub stalled_some: Option<f64>,
    /// Share of the time in which all tasks that were not idle waited.
    pub stalled_full: Option<f64>,
}

impl fmt::Display for Stressed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            version,
            operations,
            operations_per_s,
            processor_time,
            ..
        } = self;
        write!(
            f,
            "stress-ng {version}: {operations} bogo operations, {operations_per_s:.0} a second, in {:.1} s of processor time",
            processor_time.as_secs_f64()
        )?;
        if let Some((written, read)) = self.written_octets_per_s.zip(self.read_octets_per_s) {
            let mib = f64::from(1 << 20);
            let (written, read) = (written / mib, read / mib);
            write!(f, "; wrote {written:.1} MiB/s, read {read:.1} MiB/s")?;
        }
        if let Some((some, full)) = self.stalled_some.zip(self.stalled_full) {
            let (some, full) = (some * 100.0, full * 100.0);
            write!(
                f,
                "; some task of the machine waited {some:.1}% of the time, all tasks {full:.1}%"
            )?;
        }
        Ok(())
    }
}

impl StressPlan {
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        match self {
            Self::Memory { size_bytes } if *size_bytes < MEMORY_SIZE_MIN => {
                Err(LoadError::MemorySize)
            }
            Self::Disk { size_bytes, .. } if *size_bytes < DISK_SIZE_MIN => {
                Err(LoadError::DiskSize)
            }
            Self::Memory { .. } | Self::Disk { .. } => Ok(()),
        }
    }

    /// Refuses what would take the machine's last memory, or fill its disk.
    fn check_room(&self) -> Result<(), LoadError> {
        match self {
            &Self::Memory { size_bytes } => {
                let available_bytes = readings::available_bytes()
                    .map_err(LoadError::system("Reading /proc/meminfo"))?;
                if size_bytes > available_bytes.saturating_sub(MEMORY_RESERVE_BYTES) {
                    return Err(LoadError::MemoryRoom {
                        size_bytes,
                        available_bytes,
                    });
                }
            }
            Self::Disk { path, size_bytes } => {
                let room_bytes = room_bytes(path).map_err(|error| LoadError::Folder {
                    path: path.clone(),
                    error,
                })?;
                if *size_bytes > room_bytes.saturating_sub(DISK_RESERVE_BYTES) {
                    return Err(LoadError::DiskRoom {
                        path: path.clone(),
                        size_bytes: *size_bytes,
                        room_bytes,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the words of `stress-ng` for this work.
    fn words(&self) -> Vec<String> {
        let words = match self {
            Self::Memory { size_bytes } => {
                // Some of its methods take an eighth more for themselves.
                format!(
                    "--vm 1 --vm-bytes {size_bytes} --vm-keep --vm-populate --vm-method rand-set"
                )
            }
            Self::Disk { size_bytes, .. } => {
                format!("--hdd 1 --hdd-bytes {size_bytes} --hdd-opts dsync")
            }
        };
        words.split(' ').map(str::to_owned).collect()
    }

    fn held(&self) -> Held {
        let (of, asked, unit) = match self {
            Self::Memory { size_bytes } => {
                ("memory".to_owned(), Some(*size_bytes as f64), Unit::Octets)
            }
            Self::Disk { path, .. } => (format!("disk {}", path.display()), None, Unit::OctetsPerS),
        };
        Held {
            of,
            asked,
            unit,
            ..Held::default()
        }
    }

    /// Returns the folder for what the program writes.
    fn folder(&self) -> PathBuf {
        match self {
            Self::Memory { .. } => std::env::temp_dir(),
            Self::Disk { path, .. } => path.clone(),
        }
    }

    const fn stalls_of(&self) -> &'static str {
        match self {
            Self::Memory { .. } => "/proc/pressure/memory",
            Self::Disk { .. } => "/proc/pressure/io",
        }
    }
}

/// Carries out the load until it is stopped or `end` has come.
pub(crate) fn run(
    plan: &StressPlan,
    stop: &Stop,
    end: Instant,
    tell: &mut dyn FnMut(&Second),
) -> Result<LoadReport, LoadError> {
    plan.check_room()?;
    let stalls = || Stalls::read(Path::new(plan.stalls_of()));
    let begin = Instant::now();
    let (stalls_before, lifetime) = (stalls(), end.saturating_duration_since(begin));
    let mut program = Program::start(&plan.folder(), &plan.words(), lifetime)?;
    let held = watch(plan, &mut program, stop, end, tell)?;
    let elapsed = begin.elapsed();
    let stalled = stalls().zip(stalls_before);
    let share = |part: fn(&Stalls) -> Duration| {
        let (after, before) = stalled.as_ref()?;
        let stalled = part(after).saturating_sub(part(before));
        Some((stalled.as_secs_f64() / elapsed.as_secs_f64()).min(1.0))
    };
    let stressed = Stressed {
        stalled_some: share(|stalls| stalls.some),
        stalled_full: share(|stalls| stalls.full),
        ..program.finish()?
    };
    Ok(LoadReport {
        held: vec![held],
        stressed: Some(stressed),
        ..LoadReport::default()
    })
}

/// Adds up the seconds until the end.
fn watch(
    plan: &StressPlan,
    program: &mut Program,
    stop: &Stop,
    end: Instant,
    tell: &mut dyn FnMut(&Second),
) -> Result<Held, LoadError> {
    let mut held = plan.held();
    let mut last = (Instant::now(), program.counters());
    let mut at_s = 0;
    while !stop.is_set() && Instant::now() < end {
        std::thread::sleep(STOP_LOOK.min(end.saturating_duration_since(Instant::now())));
        program.check_runs(end)?;
        let waited = last.0.elapsed();
        if waited < SECOND {
            continue;
        }
        let now = (Instant::now(), program.counters());
        let achieved = match plan {
            StressPlan::Memory { .. } => now.1.resident_bytes as f64,
            StressPlan::Disk { .. } => {
                let written = now.1.written_bytes.saturating_sub(last.1.written_bytes);
                written as f64 / waited.as_secs_f64()
            }
        };
        at_s += 1;
        let second = Second {
            at_s,
            index: 0,
            of: held.of.clone(),
            asked: held.asked,
            unit: held.unit,
            achieved,
            own: achieved,
            stolen: 0.0,
        };
        if at_s > 1 {
            held.add(&second);
        }
        tell(&second);
        last = now;
    }
    Ok(held)
}

/// A second, less what the sleep of the last look may come early.
const SECOND: Duration = Duration::from_millis(999);

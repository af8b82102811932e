//! The checks of a mission's loads: of which kind each is, and which keys go together.

use std::path::PathBuf;

use deckwatch_load::limits::{
    DISK_SIZE_MIN, LOOPS_MAX, MEMORY_SIZE_MIN, MESSAGE_OCTETS_MAX, MESSAGE_OCTETS_MIN,
    REAL_TIME_SHARE_MAX,
};
use deckwatch_load::{Pace, Pattern, StressPlan};
use toml::Spanned;

use super::Checks;
use crate::mission::file::{Arrivals, Load as Table, LoadProtocol};
use crate::mission::{Load, LoadWork, Messages};

impl<'m> Checks<'m> {
    pub(super) fn loads(&mut self) -> Vec<Load> {
        let mut loads = Vec::new();
        for table in &self.file.loads {
            let work = self.work(table);
            for name in &table.get_ref().hosts {
                if let (Some(host), Some(work)) = (self.host(name), work.clone()) {
                    loads.push(Load {
                        host,
                        work,
                        must_hold: table.get_ref().must_hold == Some(true),
                    });
                }
            }
        }
        loads
    }

    fn work(&mut self, spanned: &'m Spanned<Table>) -> Option<LoadWork> {
        let table = spanned.get_ref();
        let Table {
            share,
            to,
            count,
            memory_mib,
            disk,
            ..
        } = table;
        match (share, to, count, memory_mib, disk) {
            (Some(share), None, None, None, None) => self.share(table, share),
            (None, Some(to), None, None, None) => self.net(table, to),
            (None, None, Some(_), None, None) => self.loops(spanned),
            (None, None, None, Some(mib), None) => self.memory(mib),
            (None, None, None, None, Some(folder)) => self.disk(spanned, folder),
            _ => {
                self.faults.report(
                    spanned.span(),
                    "a load is of one kind".to_owned(),
                    "give one of: `share` of a processor; `to` with a rate; `processes`, `count` and `sleep`; `memory_mib`; `disk`",
                );
                None
            }
        }
    }

    fn memory(&mut self, mib: &Spanned<u64>) -> Option<LoadWork> {
        let size_bytes = self.mib(mib, MEMORY_SIZE_MIN, "memory_mib = 512");
        Some(LoadWork::Stress(StressPlan::Memory { size_bytes }))
    }

    fn disk(&mut self, spanned: &Spanned<Table>, folder: &Spanned<String>) -> Option<LoadWork> {
        let table = spanned.get_ref();
        let path = PathBuf::from(folder.get_ref());
        if !path.is_absolute() {
            self.faults.report(
                folder.span(),
                "the folder of a load on a disk is an absolute path of its host".to_owned(),
                "write for example: disk = \"/var/tmp\"",
            );
        }
        if table.must_hold == Some(true) {
            self.faults.report(
                spanned.span(),
                "a load on a disk has no target, so that it cannot hold it".to_owned(),
                "remove `must_hold`",
            );
        }
        let size_bytes = (table.disk_mib.as_ref()).map_or(DISK_SIZE_USUAL, |mib| {
            self.mib(mib, DISK_SIZE_MIN, "disk_mib = 256")
        });
        Some(LoadWork::Stress(StressPlan::Disk { path, size_bytes }))
    }

    /// Returns a size in octets, at least `min`.
    fn mib(&mut self, mib: &Spanned<u64>, min: u64, example: &str) -> u64 {
        let size_bytes = mib.get_ref().saturating_mul(1 << 20);
        if size_bytes < min || size_bytes > SIZE_MAX {
            self.faults.report(
                mib.span(),
                format!("a size is {} to {} MiB", min >> 20, SIZE_MAX >> 20),
                format!("write for example: {example}"),
            );
        }
        size_bytes
    }

    fn loops(&mut self, spanned: &Spanned<Table>) -> Option<LoadWork> {
        let table = spanned.get_ref();
        let whole = (table.processes, table.count, table.sleep);
        let (Some(processes), Some(count), Some(sleep)) = whole else {
            self.faults.report(
                spanned.span(),
                "a load that counts needs `processes`, `count` and `sleep`".to_owned(),
                "write: processes = 20, count = 500_000, sleep = \"1us\"",
            );
            return None;
        };
        if !(1..=LOOPS_MAX).contains(&processes) || count == 0 {
            self.faults.report(
                spanned.span(),
                format!("a load has 1 to {LOOPS_MAX} processes, which count to at least 1"),
                "write: processes = 20, count = 500_000, sleep = \"1us\"",
            );
        }
        if table.must_hold == Some(true) {
            self.faults.report(
                spanned.span(),
                "a load that counts has no target, so that it cannot hold it".to_owned(),
                "remove `must_hold`, or write for example: share = 0.5",
            );
        }
        Some(LoadWork::Loops {
            processes,
            count,
            sleep: sleep.0,
        })
    }

    fn share(&mut self, table: &Table, share: &Spanned<f64>) -> Option<LoadWork> {
        let value = *share.get_ref();
        let fifo_priority = table.native_priority.as_ref().map(|it| *it.get_ref());
        let max = if fifo_priority.is_some() {
            REAL_TIME_SHARE_MAX
        } else {
            1.0
        };
        if !(value > 0.0 && value <= max) {
            let class = fifo_priority.map_or("", |_| ", in the real-time class");
            self.faults.report(
                share.span(),
                format!("the share of a processor is above 0 and at most {max}{class}"),
                "write for example: share = 0.5",
            );
        }
        if let Some(priority) = &table.native_priority
            && !(1..=99).contains(priority.get_ref())
        {
            self.faults.report(
                priority.span(),
                "a native priority is 1 to 99".to_owned(),
                "write for example: native_priority = 10",
            );
        }
        Some(LoadWork::Share {
            share: value,
            fifo_priority,
        })
    }

    fn net(&mut self, table: &Table, to: &'m Spanned<String>) -> Option<LoadWork> {
        let to_host = self.host(to)?;
        let octets = table.octets.as_ref().map_or(1024, |octets| {
            let value = *octets.get_ref();
            if !(MESSAGE_OCTETS_MIN..=MESSAGE_OCTETS_MAX).contains(&value) {
                self.faults.report(
                    octets.span(),
                    format!("a message has {MESSAGE_OCTETS_MIN} to {MESSAGE_OCTETS_MAX} octets"),
                    "write for example: octets = 1024",
                );
            }
            value
        });
        let pace = match (&table.rate_mbit_s, &table.link_share) {
            (Some(rate), None) => {
                if !(*rate.get_ref() > 0.0 && rate.get_ref().is_finite()) {
                    self.faults.report(
                        rate.span(),
                        "a rate is above 0".to_owned(),
                        "write for example: rate_mbit_s = 10",
                    );
                }
                Pace::Rate {
                    bits_per_s: rate.get_ref() * 1e6,
                }
            }
            (None, Some(share)) => {
                if !(*share.get_ref() > 0.0 && *share.get_ref() <= 1.0) {
                    self.faults.report(
                        share.span(),
                        "the share of a link is above 0 and at most 1".to_owned(),
                        "write for example: link_share = 0.5",
                    );
                }
                Pace::Share {
                    share: *share.get_ref(),
                }
            }
            (None, None) => Pace::Flood,
            (Some(rate), Some(_)) => {
                self.faults.report(
                    rate.span(),
                    "a load on a link has a rate or a share".to_owned(),
                    "remove `rate_mbit_s` or `link_share`; without both it is a flood",
                );
                return None;
            }
        };
        Some(LoadWork::Net {
            to: to_host,
            messages: Messages {
                protocol: table.over.unwrap_or(LoadProtocol::Udp).into(),
                size_octets: octets,
                pace,
                pattern: pattern(table),
            },
        })
    }

    /// A share of a link needs a network with a rate.
    pub(super) fn link_shares(&mut self, has_rate: bool) {
        for table in &self.file.loads {
            if let Some(share) = &table.get_ref().link_share
                && !has_rate
            {
                self.faults.report(
                    share.span(),
                    "the network has no rate, of which this would be a share".to_owned(),
                    "write `rate_mbit_s`, or choose an emulated network",
                );
            }
        }
    }
}

fn pattern(table: &Table) -> Pattern {
    match (table.arrivals, table.burst_size) {
        (Some(Arrivals::Poisson), _) => Pattern::Poisson {
            seed: table.seed.unwrap_or(1),
        },
        (Some(Arrivals::Bursts), size) => Pattern::Bursts {
            size: size.unwrap_or(BURST_USUAL).max(1),
        },
        (Some(Arrivals::Periodic) | None, _) => Pattern::Constant,
    }
}

/// Length of the file of a load on a disk that gives none.
const DISK_SIZE_USUAL: u64 = 256 << 20;

/// More than any host has.
const SIZE_MAX: u64 = 1 << 50;

/// Messages of a burst whose size is not given: what iperf3 sends at once.
const BURST_USUAL: u32 = 8;

//! The checks of one flow: its type, arrivals, length, deadline, budget and scheduling.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deckwatch_carrier::body::BodyPlan;
use deckwatch_carrier::carrier::NetworkPriority;
use deckwatch_carrier::plan::{History, Reliability};
use deckwatch_carrier::scheduling::{Scheduling, SchedulingClass};
use deckwatch_meter::pacing::{Arrivals, Extent, Schedule};
use deckwatch_meter::result::LateBudget;
use toml::Spanned;

use super::{Checks, TypeKey, Types};
use crate::limits::{CLUSTERS_MAX, DEADLINE_MAX, PERIOD_MIN, WARM_UP_DEFAULT};
use crate::mission::{Flow, OwnKeys, file};

impl<'m> Checks<'m> {
    pub(super) fn flow(
        &mut self,
        flow: &'m file::Flow,
        index: u64,
        types: &mut dyn Types,
    ) -> Option<Flow> {
        let from = self.host(&flow.from);
        let to = self.destinations(flow);
        let body = self.body(flow, types);
        let arrivals = self.arrivals(flow, index);
        let extent = self.extent(flow);
        let deadline = self.deadline(flow);
        let budget = self.budget(flow);
        let stall = self.stall(flow);
        self.processors(flow.processors.as_ref());
        let (from, arrivals, extent, (body, sequence_max)) = (from?, arrivals?, extent?, body?);
        let clusters = self.clusters(flow, stall.map(|stall| arrivals.messages_within(stall)));
        let warm_up = flow
            .warm_up
            .as_ref()
            .map_or(WARM_UP_DEFAULT, |text| text.get_ref().0);
        let warm_up = (warm_up.as_secs_f64() * arrivals.rate_hz()).ceil() as u64;
        self.schedule(flow, &arrivals, extent, warm_up, sequence_max);
        let supplier_scheduling = self.scheduling(flow, from);
        let consumer_scheduling = to.iter().map(|&host| self.scheduling(flow, host)).collect();
        Some(Flow {
            name: flow.name.get_ref().clone(),
            body,
            sequence_max,
            from,
            to,
            carriers: vec![flow.carrier],
            arrivals,
            extent,
            warm_up,
            deadline: deadline?,
            budget: budget?,
            clusters,
            priority: flow.priority,
            supplier_scheduling,
            consumer_scheduling,
            has_own: OwnKeys {
                scheduling: flow.scheduling.is_some(),
                processors: flow.processors.is_some(),
            },
            network_priority: NetworkPriority {
                dscp: flow.dscp,
                socket_priority: flow.socket_priority,
            },
            receive_buffer_bytes: flow.receive_buffer_bytes,
            channel_queue_len: flow.channel_queue_len,
            reliability: flow.reliability.map(|reliability| match reliability {
                file::Reliability::Reliable => Reliability::Reliable,
                file::Reliability::BestEffort => Reliability::BestEffort,
            }),
            history: flow.history.map(|count| match count {
                0 => History::KeepAll,
                count => History::KeepLast(count),
            }),
            handle_for: flow
                .handle_for
                .as_ref()
                .map_or(Duration::ZERO, |text| text.get_ref().0),
            worst_case: flow.worst_case.map(|text| text.0),
        })
    }

    fn destinations(&mut self, flow: &'m file::Flow) -> Vec<usize> {
        let mut to = Vec::new();
        for name in &flow.to {
            let Some(host) = self.host(name) else {
                continue;
            };
            if to.contains(&host) {
                let help = "name each destination once";
                self.faults.report(
                    name.span(),
                    format!("`{}` is a destination already", name.get_ref()),
                    help,
                );
            } else {
                to.push(host);
            }
        }
        to
    }

    fn body(
        &mut self,
        flow: &'m file::Flow,
        types: &mut dyn Types,
    ) -> Option<(BodyPlan, Option<u64>)> {
        let Some(type_name) = &flow.type_name else {
            for (key, extra) in [("idl", &flow.idl), ("sequence", &flow.sequence)] {
                if let Some(extra) = extra {
                    let help = "add the type, for example: type = \"Nav::NavData\"";
                    self.faults
                        .report(extra.span(), format!("`{key}` needs `type`"), help);
                }
            }
            let Some(octets) = &flow.octets else {
                let help = "add `type`, `idl` and `sequence`, or, for example: octets = 384";
                self.faults.report(
                    flow.name.span(),
                    "the flow does not say what its messages are",
                    help,
                );
                return None;
            };
            let size_bytes = *octets.get_ref();
            return Some((BodyPlan::Octets { size_bytes }, None));
        };
        if let Some(octets) = &flow.octets {
            self.faults.report(
                octets.span(),
                "`octets` and `type` exclude each other",
                "remove one of the two",
            );
        }
        let mut needed = |key: &str, value: &'m Option<Spanned<String>>, example: &str| {
            if value.is_none() {
                let help = format!("add, for example: {key} = \"{example}\"");
                self.faults
                    .report(type_name.span(), format!("`type` needs `{key}`"), help);
            }
            value.as_ref()
        };
        let idl = needed("idl", &flow.idl, "../idl/deckwatch/nav.idl");
        let sequence = needed("sequence", &flow.sequence, "sequence_number");
        let (idl, sequence) = (idl?, sequence?);
        let idl_file = self.folder.join(idl.get_ref());
        let sequence_max = match types.check(&idl_file, type_name.get_ref(), sequence.get_ref()) {
            Ok(max) => max,
            Err(fault) => {
                let place = match fault.of {
                    TypeKey::Idl => idl.span(),
                    TypeKey::Type => type_name.span(),
                    TypeKey::Sequence => sequence.span(),
                };
                self.faults.report(place, fault.fact, fault.help);
                return None;
            }
        };
        let body = BodyPlan::Typed {
            idl_file: absolute(&idl_file),
            include_paths: Vec::new(),
            type_name: type_name.get_ref().clone(),
            sequence_member: sequence.get_ref().clone(),
        };
        Some((body, Some(sequence_max)))
    }

    fn arrivals(&mut self, flow: &file::Flow, index: u64) -> Option<Arrivals> {
        let kind = flow
            .arrivals
            .as_ref()
            .map_or(file::Arrivals::Periodic, |kind| *kind.get_ref());
        let only = |key: &str, kinds: &str| format!("`{key}` is only for arrivals = \"{kinds}\"");
        if let Some(seed) = flow
            .seed
            .as_ref()
            .filter(|_| kind != file::Arrivals::Poisson)
        {
            self.faults.report(
                seed.span(),
                only("seed", "poisson"),
                "remove it, or write: arrivals = \"poisson\"",
            );
        }
        let burst = flow
            .burst_size
            .as_ref()
            .map(|size| ("burst_size", size.span()));
        let gap = flow.burst_gap.as_ref().map(|gap| ("burst_gap", gap.span()));
        for (key, place) in burst
            .into_iter()
            .chain(gap)
            .filter(|_| kind != file::Arrivals::Bursts)
        {
            self.faults.report(
                place,
                only(key, "bursts"),
                "remove it, or write: arrivals = \"bursts\"",
            );
        }
        let size = match (&flow.burst_size, &flow.arrivals) {
            (None, Some(place)) if kind == file::Arrivals::Bursts => {
                let help = "add, for example: burst_size = 8";
                self.faults
                    .report(place.span(), "bursts need `burst_size`", help);
                return None;
            }
            (size, _) => size.as_ref().map_or(1, |size| *size.get_ref()),
        };
        let period = self.period(flow, f64::from(size))?;
        Some(match kind {
            file::Arrivals::Periodic => Arrivals::Periodic { period },
            file::Arrivals::Poisson => Arrivals::Poisson {
                mean_period: period,
                seed: flow.seed.as_ref().map_or(1 + index, |seed| *seed.get_ref()),
            },
            file::Arrivals::Bursts => Arrivals::Bursts {
                period,
                size,
                gap: flow
                    .burst_gap
                    .as_ref()
                    .map_or(Duration::ZERO, |gap| gap.get_ref().0),
            },
        })
    }

    /// Returns the period, from `period` or from `rate_hz`. `rate_hz` is in messages per second, of which `size` are
    /// sent in each period.
    fn period(&mut self, flow: &file::Flow, size: f64) -> Option<Duration> {
        let (period, place) = match (&flow.rate_hz, &flow.period) {
            (Some(rate), None) => (
                Duration::from_secs_f64(size / rate.get_ref().max(RATE_MIN_HZ)),
                rate.span(),
            ),
            (None, Some(period)) => (period.get_ref().0, period.span()),
            (None, None) => {
                let help = "add, for example: rate_hz = 20, or: period = \"50ms\"";
                self.faults.report(
                    flow.name.span(),
                    "the flow does not say how often it sends",
                    help,
                );
                return None;
            }
            (Some(_), Some(period)) => {
                let fact = "`rate_hz` and `period` say the same thing twice";
                self.faults
                    .report(period.span(), fact, "remove one of the two");
                return None;
            }
        };
        if period < PERIOD_MIN {
            let fact = format!("the time between messages must be at least {PERIOD_MIN:?}");
            self.faults
                .report(place, fact, "send less often, or in bursts");
            return None;
        }
        Some(period)
    }

    fn extent(&mut self, flow: &file::Flow) -> Option<Extent> {
        match (&flow.count, &flow.duration) {
            (Some(count), None) => Some(Extent::Count {
                messages: *count.get_ref(),
            }),
            (None, Some(duration)) => Some(Extent::Duration {
                duration: duration.get_ref().0,
            }),
            (None, None) => {
                let help = "add, for example: count = 100_000, or: duration = \"20s\"";
                self.faults.report(
                    flow.name.span(),
                    "the flow does not say how long it is judged",
                    help,
                );
                None
            }
            (Some(_), Some(duration)) => {
                let fact = "`count` and `duration` exclude each other";
                self.faults
                    .report(duration.span(), fact, "remove one of the two");
                None
            }
        }
    }

    fn schedule(
        &mut self,
        flow: &file::Flow,
        arrivals: &Arrivals,
        extent: Extent,
        warm_up: u64,
        sequence_max: Option<u64>,
    ) {
        let schedule = Schedule {
            start_ns: 0,
            offset: Duration::ZERO,
            arrivals: arrivals.clone(),
            extent,
            warm_up,
        };
        if let Err(error) = schedule.check() {
            let count = flow.count.as_ref().map(Spanned::span);
            let duration = flow.duration.as_ref().map(Spanned::span);
            let place: Range<usize> = count.or(duration).unwrap_or(flow.name.span());
            let fact = format!("this schedule cannot be kept: {error}");
            self.faults.report(
                place,
                fact.trim_end_matches('.'),
                "check the units of rate, period, count and duration",
            );
            return;
        }
        let messages = schedule.expected_messages() as u64;
        if let (Some(sequence), Some(max)) = (&flow.sequence, sequence_max)
            && messages > max
        {
            let fact = format!(
                "`{}` counts to {max}, and the flow sends {messages} messages",
                sequence.get_ref()
            );
            self.faults.report(
                sequence.span(),
                fact,
                "name a wider integer, or send fewer messages",
            );
        }
    }

    fn deadline(&mut self, flow: &file::Flow) -> Option<Duration> {
        let deadline = flow.deadline.get_ref().0;
        if deadline.is_zero() || deadline > DEADLINE_MAX {
            let fact = format!(
                "a deadline lies above zero and up to {} minutes",
                DEADLINE_MAX.as_secs() / 60
            );
            self.faults.report(
                flow.deadline.span(),
                fact,
                "write, for example: deadline = \"50ms\"",
            );
            return None;
        }
        Some(deadline)
    }

    fn budget(&mut self, flow: &file::Flow) -> Option<LateBudget> {
        let budget = flow.late.get_ref().0;
        let fault = if budget.of == 0 || budget.late >= budget.of {
            (
                "a budget allows fewer late messages than there are",
                "write, for example: late = \"3 in 10_000\"",
            )
        } else if budget.late == 0 {
            (
                "no number of messages proves that none is ever late",
                "write, for example: late = \"1 in 1_000_000\"",
            )
        } else {
            return Some(budget);
        };
        self.faults.report(flow.late.span(), fault.0, fault.1);
        None
    }

    fn stall(&mut self, flow: &file::Flow) -> Option<Duration> {
        let stall = flow.stall.as_ref()?;
        if flow.clusters.is_some() {
            let fact = "`clusters` and `stall` say the same thing twice";
            self.faults
                .report(stall.span(), fact, "remove one of the two");
            return None;
        }
        if stall.get_ref().0.is_zero() {
            let help = "write, for example: stall = \"500ms\"";
            self.faults
                .report(stall.span(), "a stall of no time holds up no message", help);
            return None;
        }
        Some(stall.get_ref().0)
    }

    /// Returns the burst that the flow asks for; `within_stall` is the number of messages due during its stall. Without
    /// so many messages, no verdict can hold for the burst.
    fn clusters(&mut self, flow: &file::Flow, within_stall: Option<u64>) -> Option<u64> {
        let burst = flow.clusters.as_ref().map(|clusters| *clusters.get_ref());
        let burst = burst.or(within_stall)?;
        if burst > CLUSTERS_MAX {
            let fact = format!("a burst of {burst} late messages is longer than any run can prove");
            let help = "write a shorter `stall`";
            if let Some(stall) = &flow.stall {
                self.faults.report(stall.span(), fact, help);
            }
            return None;
        }
        Some(burst)
    }

    /// Returns the scheduling of the flow's processes on a host: that of the flow, else that of the host.
    fn scheduling(&mut self, flow: &file::Flow, host: usize) -> Scheduling {
        let host = &self.file.hosts[host];
        let wish = flow.scheduling.as_ref().or(host.scheduling.as_ref());
        let cpus = flow.processors.as_ref().or(host.processors.as_ref());
        Scheduling {
            class: wish.map_or(SchedulingClass::Other, |wish| {
                self.class(wish, flow.priority)
            }),
            cpus: cpus.map_or(Vec::new(), |cpus| cpus.get_ref().clone()),
            lock_memory: flow.lock_memory.or(host.lock_memory).unwrap_or(false),
        }
    }

    fn class(
        &mut self,
        wish: &Spanned<file::Scheduling>,
        priority: Option<u16>,
    ) -> SchedulingClass {
        let file::Scheduling {
            class,
            native_priority,
        } = *wish.get_ref();
        if class == file::SchedulingClass::Other {
            if native_priority.is_some() {
                let fact = "the time-sharing class has no `native_priority`";
                self.faults
                    .report(wish.span(), fact, "remove it, or write: class = \"fifo\"");
            }
            return SchedulingClass::Other;
        }
        let Some(priority) = native_priority.or(priority.map(native_priority_of)) else {
            let fact = "a real-time class needs a priority";
            let help = "add `native_priority`, from 1 to 99, here, or `priority` to each flow";
            self.faults.report(wish.span(), fact, help);
            return SchedulingClass::Other;
        };
        match class {
            file::SchedulingClass::RoundRobin => SchedulingClass::RoundRobin { priority },
            _ => SchedulingClass::Fifo { priority },
        }
    }
}

/// Maps a CORBA priority by the linear mapping of Real-time CORBA: 0..=32767 onto 1..=99.
fn native_priority_of(priority: u16) -> u8 {
    let span = f64::from(NATIVE_MAX - NATIVE_MIN);
    NATIVE_MIN + (f64::from(priority) * span / f64::from(CORBA_MAX)).round() as u8
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

const NATIVE_MIN: u8 = 1;
const NATIVE_MAX: u8 = 99;
const CORBA_MAX: u16 = 32_767;
/// Lowest rate, one message in about thirty years: lower rates could give a period that cannot be represented.
const RATE_MIN_HZ: f64 = 1e-9;

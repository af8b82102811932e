//! `deckwatch channel --real-time`: its options and its counts.

use std::str::FromStr;

use anyhow::Context as _;
use deckwatch_event::dispatch::{Dispatching, LaneOptions, QueueFull, QueueOptions, QueueOrder};
use deckwatch_event::limits::{
    DISPATCH_LANES_MAX, DISPATCH_QUEUE_MAX, DISPATCH_THREADS_MAX, QUEUE_LEN_DEFAULT,
};
use deckwatch_event::rt::{Loss, RtChannelOptions, RtEventChannel};
use deckwatch_event::{ChannelOptions, ChannelStore};
use deckwatch_orb::{Orb, Priority};

use super::group;
use super::scheduled::{ScheduleArgs, Scheduled};
use crate::output::errln;

/// Options of a real-time channel.
#[derive(clap::Args)]
#[command(next_help_heading = "Real-time channel")]
pub(super) struct RealTimeArgs {
    /// Serve a real-time channel, wire-compatible with TAO's (RtecEventChannelAdmin)
    #[arg(long, conflicts_with = "factory")]
    real_time: bool,
    /// Which threads send: reactive (those that serve pushes), pool:THREADS, or lanes:PRIORITY[,PRIORITY...]
    #[arg(
        long,
        value_name = "HOW",
        default_value = "reactive",
        requires = "real_time"
    )]
    dispatching: How,
    /// Which event leaves the queue of a pool or a lane first
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "arrival",
        requires = "real_time"
    )]
    order: Order,
    /// Events that wait in the queue of a pool or a lane
    #[arg(long, value_name = "COUNT", default_value_t = QUEUE_LEN_DEFAULT, requires = "real_time")]
    lane_queue: usize,
    /// Which event a full queue of a pool or a lane drops: the first (by deadline or laxity, the one that is due last),
    /// or the new one
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "first",
        requires = "real_time"
    )]
    lane_full: LaneFull,
    /// Serve as one of a group of processes that replace each other: the address of each, in the order in which they
    /// take over; `--listen` is one of them
    #[arg(
        long,
        value_name = "HOST:PORT,HOST:PORT[,...]",
        value_delimiter = ',',
        requires = "real_time",
        conflicts_with_all = ["federate", "multicast", "scheduler"]
    )]
    pub(super) group: Vec<String>,
    /// Start even if the host refuses a lane its priority
    #[arg(long, requires = "real_time")]
    priority_fallback: bool,
    /// Let a connected client connect again to change its QoS
    #[arg(long, requires = "real_time")]
    reconnect: bool,
    /// Call a client back that disconnects by itself
    #[arg(long, requires = "real_time")]
    disconnect_callbacks: bool,
    #[command(flatten)]
    schedule: ScheduleArgs,
}

/// A real-time channel, and the schedule that it takes its priorities from.
pub(super) struct RealTime {
    pub(super) channel: RtEventChannel,
    pub(super) scheduled: Option<Scheduled>,
}

/// What was started.
pub(super) enum Started {
    Channel(RealTime),
    Member(group::Member, Option<Scheduled>),
}

/// `--dispatching`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum How {
    Reactive,
    Pool(usize),
    Lanes(Vec<Priority>),
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Order {
    Arrival,
    Deadline,
    Laxity,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum LaneFull {
    First,
    New,
}

impl FromStr for How {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let unknown = || {
            format!("`{word}` is none of reactive, pool:THREADS and lanes:PRIORITY[,PRIORITY...]")
        };
        if word == "reactive" {
            return Ok(Self::Reactive);
        }
        match word.split_once(':') {
            Some(("pool", threads)) => threads.parse().map(Self::Pool).map_err(|_| unknown()),
            Some(("lanes", list)) => lanes(list).map_err(|why| format!("`{word}`: {why}")),
            _ => Err(unknown()),
        }
    }
}

fn lanes(list: &str) -> Result<How, String> {
    let mut priorities = Vec::new();
    for text in list.split(',') {
        let priority = text.parse().ok().and_then(Priority::new);
        let priority = priority.ok_or_else(|| {
            format!(
                "`{text}` is no CORBA priority, which is a number from 0 to {}",
                i16::MAX
            )
        })?;
        if priorities.contains(&priority) {
            return Err(format!(
                "priority {text} stands there twice; a lane has a priority of its own"
            ));
        }
        priorities.push(priority);
    }
    Ok(How::Lanes(priorities))
}

impl RealTimeArgs {
    /// Whether a real-time channel was asked for.
    pub(super) const fn is_asked(&self) -> bool {
        self.real_time
    }

    /// Starts the channel. What it has in common with other channels is in `common`.
    pub(super) fn start(
        &self,
        orb: &Orb,
        common: &ChannelOptions,
        (store, listen): (Option<ChannelStore>, &str),
    ) -> anyhow::Result<Started> {
        let queue = QueueOptions {
            len: self.lane_queue,
            order: match self.order {
                Order::Arrival => QueueOrder::Arrival,
                Order::Deadline => QueueOrder::Deadline,
                Order::Laxity => QueueOrder::Laxity,
            },
            when_full: match self.lane_full {
                LaneFull::First => QueueFull::DropFirst,
                LaneFull::New => QueueFull::DropNew,
            },
        };
        let scheduled = self.schedule.start(orb, queue, common.access.clone())?;
        let dispatching = match &self.dispatching {
            _ if let Some(scheduled) = &scheduled => scheduled.dispatching.clone(),
            How::Reactive => Dispatching::Reactive,
            How::Pool(threads) => Dispatching::Pool {
                threads: *threads,
                queue,
            },
            How::Lanes(priorities) => {
                let lane = |priority: &Priority| LaneOptions {
                    priority: *priority,
                    threads: 1,
                    queue,
                };
                Dispatching::Lanes(priorities.iter().map(lane).collect())
            }
        };
        let options = RtChannelOptions {
            queue_len: common.queue_len,
            when_full: common.when_full,
            size_max: common.size_max,
            dispatching,
            allow_priority_fallback: self.priority_fallback,
            reconnect: self.reconnect,
            disconnect_callbacks: self.disconnect_callbacks,
            share_percent: common.share_percent,
            access: common.access.clone(),
            scheduling: scheduled.as_ref().map(|it| it.scheduling.clone()),
        };
        if !self.group.is_empty() {
            let member = group::start(orb, options, (&self.group, listen), store)?;
            return Ok(Started::Member(member, scheduled));
        }
        let channel = match store {
            Some(store) => RtEventChannel::start_stored(orb, options, store)
                .context("cannot start from the store")?,
            None => RtEventChannel::start(orb, options).with_context(|| {
                format!(
                    "cannot start the dispatching: a queue holds 1 to {DISPATCH_QUEUE_MAX} events, there are at most \
                     {DISPATCH_LANES_MAX} lanes of different priorities and {DISPATCH_THREADS_MAX} threads, and the \
                     host must allow the priorities (or --priority-fallback)"
                )
            })?,
        };
        Ok(Started::Channel(RealTime { channel, scheduled }))
    }
}

/// Prints the connects that the schedule has refused since the last call.
pub(super) fn print_unadmitted(channel: &RtEventChannel) {
    for words in channel.take_unadmitted() {
        errln!("a connect is refused: {words}");
    }
}

/// Prints what the channel has done, and each loss with its reason.
pub(super) fn print_counts(channel: &RtEventChannel) {
    let counts = channel.counts();
    errln!(
        "events received {}, unwanted {}, timeouts {}; sets delivered {}, dropped {}, failed {}, \
         to other channels {}; consumers lost {}, suppliers lost {}, connects refused {}, requests denied {}, \
         observers lost {}, priorities without a lane {}, priorities refused by the host {}, \
         connects refused by the schedule {}",
        counts.received,
        counts.unwanted,
        counts.timeouts,
        counts.delivered,
        counts.dropped,
        counts.failed,
        counts.forwarded,
        counts.consumers_lost,
        counts.suppliers_lost,
        counts.refused,
        counts.denied,
        counts.observers_lost,
        counts.priorities_missed,
        counts.priority_fallbacks,
        counts.refused_by_schedule
    );
    for lane in channel.lanes() {
        match lane.priority {
            Some(priority) => errln!("lane {priority} sent {}", lane.dispatched),
            None => errln!("the pool sent {}", lane.dispatched),
        }
    }
    let print = |whose: &str, lost: [u64; Loss::ALL.len()]| {
        for (why, count) in Loss::ALL.iter().zip(lost).filter(|(_, count)| *count > 0) {
            errln!("{whose} lost {count}: {}", why.name());
        }
    };
    print("all consumers", counts.lost);
    for consumer in channel.consumers() {
        let kind = if consumer.is_hop {
            "channel behind consumer"
        } else {
            "consumer"
        };
        print(&format!("{kind} {}", consumer.number), consumer.lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatching_is_written_in_one_word() {
        let at = |value| Priority::new(value).expect("a priority");
        assert_eq!("reactive".parse(), Ok(How::Reactive));
        assert_eq!("pool:4".parse(), Ok(How::Pool(4)));
        assert_eq!("lanes:5,40".parse(), Ok(How::Lanes(vec![at(5), at(40)])));
        let told = |word: &str| word.parse::<How>().expect_err("malformed");
        assert_eq!(
            told("lanes:10,5,10"),
            "`lanes:10,5,10`: priority 10 stands there twice; a lane has a priority of its own"
        );
        assert_eq!(
            told("lanes:10,99999"),
            "`lanes:10,99999`: `99999` is no CORBA priority, which is a number from 0 to 32767"
        );
        for wrong in ["lanes:", "lanes:-1", "pool:x", "threads"] {
            assert!(
                wrong
                    .parse::<How>()
                    .is_err_and(|error| error.contains(wrong))
            );
        }
    }
}

//! What a channel reports of itself.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use deckwatch_orb::SystemException;

use super::admission::Admission;
use super::consumer::ConsumerReport;
use super::counters::RtCounts;
use super::shared::Shared;
use crate::deckwatch::ChannelReport;
use crate::status;

impl Shared {
    pub(super) fn counts(&self) -> RtCounts {
        let sent = self.deliveries.counts();
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        RtCounts {
            received: count(&self.counters.received),
            unwanted: count(&self.counters.unwanted),
            timeouts: count(&self.counters.timeouts),
            forwarded: count(&self.counters.forwarded),
            delivered: sent.delivered,
            dropped: sent.dropped,
            failed: sent.failed,
            lost: self.counters.losses.read(),
            consumers_lost: count(&self.counters.consumers_lost),
            suppliers_lost: count(&self.counters.suppliers_lost),
            refused: self.shares.refused(),
            denied: self.objects.home.gate.refused(),
            observers_lost: count(&self.counters.observers_lost),
            priorities_missed: self.dispatcher.missed(),
            priority_fallbacks: count(&self.counters.priority_fallbacks),
            refused_by_schedule: self.admission.as_ref().map_or(0, Admission::refused),
        }
    }

    /// The state of the channel, for `deckwatch events list`. An event set that was lost on its way to a queue counts
    /// as dropped.
    pub(super) fn status(&self) -> Result<ChannelReport, SystemException> {
        self.check_alive()?;
        let counts = self.counts();
        let (consumers, suppliers) = {
            let clients = self.clients.lock("rt.clients");
            let consumers = clients.consumers.values();
            let reports = consumers.map(|each| status::consumer_report(&each.outlet));
            (reports.collect(), clients.suppliers.len())
        };
        Ok(ChannelReport {
            time_ns: self.now_ns(),
            suppliers: status::count(suppliers),
            received: counts.received,
            delivered: counts.delivered,
            dropped: counts.dropped + counts.lost.iter().sum::<u64>(),
            failed: counts.failed,
            consumers_lost: counts.consumers_lost,
            suppliers_lost: counts.suppliers_lost,
            refused: counts.refused,
            denied: counts.denied,
            ..status::of_consumers(consumers)
        })
    }

    pub(super) fn reports(&self) -> Vec<ConsumerReport> {
        let clients = self.clients.lock("rt.clients");
        let mut reports: Vec<_> = clients
            .consumers
            .values()
            .map(|each| each.report())
            .collect();
        reports.sort_by_key(|report| report.number);
        reports
    }

    /// Does what the threads would do, without waiting; see [`super::RtEventChannel::turn`].
    pub(super) fn turn(&self, lane: usize) -> bool {
        self.fire_due();
        self.dispatcher.turn(lane)
    }

    /// Returns why the schedule has refused connects since the last call, in words.
    pub(super) fn take_unadmitted(&self) -> Vec<String> {
        let admission = self.admission.as_ref();
        admission.map_or_else(Vec::new, Admission::take_refusals)
    }
}

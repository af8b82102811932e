//! The state of a channel, for `deckwatch events list` (`idl/deckwatch/channel_status.idl`).

use std::cmp::Reverse;
use std::sync::Arc;

use deckwatch_orb::delivery::Outlet;
use deckwatch_orb::{ObjectRef, Servant, SystemException};

use crate::beside::Beside;
use crate::deckwatch::{
    ChannelReport, ChannelStatus, ChannelStatusSkeleton, ConsumerReport, ConsumerStatus,
    ConsumerStatusSkeleton,
};
use crate::limits::CONSUMERS_REPORTED_MAX;
use crate::shared::Shared;

/// Serves the state of one channel.
struct Status<R>(R);

impl<R> ChannelStatus for Status<R>
where
    R: Fn() -> Result<ChannelReport, SystemException> + Send + Sync + 'static,
{
    fn report(&self) -> Result<ChannelReport, SystemException> {
        self.0()
    }
}

/// Serves the counters of one consumer.
struct OwnStatus<R>(R);

impl<R> ConsumerStatus for OwnStatus<R>
where
    R: Fn() -> Result<ConsumerReport, SystemException> + Send + Sync + 'static,
{
    fn report(&self) -> Result<ConsumerReport, SystemException> {
        self.0()
    }
}

/// Returns the state of a COS channel.
pub(crate) fn cos_report(shared: &Shared) -> Result<ChannelReport, SystemException> {
    shared.check_alive()?;
    let counts = shared.counts();
    let mut consumers = Vec::new();
    shared
        .consumers
        .for_each(|outlet| consumers.push(consumer_report(outlet)));
    Ok(ChannelReport {
        time_ns: shared.now().0,
        pulling_consumers: count(shared.pullers.len()),
        suppliers: count(shared.supplier_count()),
        pulled_suppliers: count(shared.sources.len()),
        received: counts.received,
        delivered: counts.delivered,
        dropped: counts.displaced,
        failed: counts.failed,
        consumers_lost: counts.consumers_lost,
        suppliers_lost: counts.suppliers_lost,
        refused: counts.refused,
        denied: counts.denied,
        ..of_consumers(consumers)
    })
}

/// Returns a report that has the consumers alone.
pub(crate) fn of_consumers(mut consumers: Vec<ConsumerReport>) -> ChannelReport {
    let number = count(consumers.len());
    let queued = consumers.iter().map(|consumer| consumer.queued).sum();
    consumers.sort_by_key(|consumer| Reverse(consumer.queued));
    consumers.truncate(CONSUMERS_REPORTED_MAX);
    ChannelReport {
        time_ns: 0,
        consumers: number,
        pulling_consumers: 0,
        suppliers: 0,
        pulled_suppliers: 0,
        queued,
        received: 0,
        delivered: 0,
        dropped: 0,
        failed: 0,
        consumers_lost: 0,
        suppliers_lost: 0,
        refused: 0,
        denied: 0,
        longest_queues: consumers,
    }
}

pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(crate) fn consumer_report(outlet: &Outlet) -> ConsumerReport {
    let counts = outlet.counts();
    ConsumerReport {
        address: address(outlet.object()),
        queued: outlet.queue_len() as u64,
        delivered: counts.delivered,
        dropped: counts.dropped,
        failed: counts.failed,
    }
}

/// Host and port of an object; empty if it has none.
pub(crate) fn address(object: &ObjectRef) -> String {
    let profile = object.ior().iiop_profiles().flatten().next();
    profile.map_or_else(String::new, |profile| {
        format!("{}:{}", profile.host, profile.port)
    })
}

/// Returns a channel's servant that serves [`ChannelStatus`] too: it answers `report` by this function.
pub(crate) fn with_status(
    channel: Arc<dyn Servant>,
    report: impl Fn() -> Result<ChannelReport, SystemException> + Send + Sync + 'static,
) -> Beside {
    let status = Arc::new(ChannelStatusSkeleton::new(Status(report)));
    Beside::new(channel, status, &[b"report"])
}

/// Returns a proxy's servant that serves [`ConsumerStatus`] too: it answers `report` by this function.
pub(crate) fn with_consumer_status(
    proxy: Arc<dyn Servant>,
    report: impl Fn() -> Result<ConsumerReport, SystemException> + Send + Sync + 'static,
) -> Beside {
    let status = Arc::new(ConsumerStatusSkeleton::new(OwnStatus(report)));
    Beside::new(proxy, status, &[b"report"])
}

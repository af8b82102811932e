//! Makes the samples of one destination from the records of both ends and the legs between them.

use std::net::SocketAddr;

use deckwatch_meter::sample::{NO_STAMP, Sample, SampleFlags};
use deckwatch_os::tap::Direction;

use super::{Agreement, JoinedDestination, Legs};
use crate::plan::{JoinDestination, JoinPlan};
use crate::record::{ConsumerRecord, ReadRecords, SHARED_STAMP, SupplierRecord};

/// The data about the messages to one destination.
pub(super) struct Sources<'s> {
    pub(super) plan: &'s JoinPlan,
    pub(super) destination: &'s JoinDestination,
    pub(super) sent: &'s ReadRecords<SupplierRecord>,
    pub(super) received: &'s ReadRecords<ConsumerRecord>,
    pub(super) legs: &'s Legs<'s>,
}

/// The stamps on the legs to one destination, where captures contain them.
#[derive(Clone, Copy, Default)]
struct Way<'s> {
    transmit: Option<&'s [i64]>,
    channel_receive: Option<&'s [i64]>,
    channel_transmit: Option<&'s [i64]>,
    receive: Option<&'s [i64]>,
}

impl Sources<'_> {
    /// Makes one sample for each message of the schedule.
    pub(super) fn join(&self, agreement: &mut Agreement) -> JoinedDestination {
        let index = self.destination.index;
        let way = self.way();
        let sent = self.sent.of_destination(index);
        let mut joined = JoinedDestination {
            index,
            host: self.destination.host.clone(),
            samples: Vec::with_capacity(sent.len()),
            send_errors: 0,
            receive_overflows: self.received.header.overflows,
            malformed: self.received.header.malformed,
            unstamped: 0,
        };
        let arrivals = first_arrivals(&self.received.records, sent.len());
        for (due, sent) in self.plan.stream.schedule.dues().zip(sent) {
            let place = usize::try_from(due.sequence).unwrap_or(usize::MAX);
            let arrival = arrivals.get(place).copied().flatten();
            let mut sample = Sample {
                flow: self.plan.stream.flow,
                destination: index,
                sequence: due.sequence,
                due_ns: due.due_ns,
                sent_ns: stamp(sent.sent_ns),
                returned_ns: stamp(sent.returned_ns),
                channel_receive_ns: at(way.channel_receive, place).unwrap_or(NO_STAMP),
                channel_transmit_ns: at(way.channel_transmit, place).unwrap_or(NO_STAMP),
                kernel_transmit_ns: NO_STAMP,
                kernel_receive_ns: NO_STAMP,
                received_ns: arrival.map_or(NO_STAMP, |(first, _)| first.received_ns),
                handled_ns: arrival.map_or(NO_STAMP, |(first, _)| stamp(first.handled_ns)),
                flags: SampleFlags {
                    warm_up: due.warm_up,
                    duplicates: arrival.map_or(0, |(_, duplicates)| duplicates),
                    ..SampleFlags::default()
                },
                blame: None,
            };
            self.stamp_by_kernel(
                &mut sample,
                &way,
                sent,
                arrival.map(|(first, _)| first),
                agreement,
            );
            joined.send_errors += u64::from(sent.error != 0 && !due.warm_up);
            joined.unstamped += u64::from(self.lacks_stamp(&sample, &way));
            joined.samples.push(sample);
        }
        joined
    }

    fn way(&self) -> Way<'_> {
        let (from, host) = (self.plan.from.as_str(), self.destination.host.as_str());
        let leaving = |to: SocketAddr| self.legs.stamps(from, Direction::Leaving, to);
        let arriving = |at: SocketAddr| self.legs.stamps(host, Direction::Arriving, at);
        let listening = self.destination.listening;
        let receive = listening.and_then(arriving);
        match self.plan.channel_endpoint {
            Some(channel) => Way {
                transmit: leaving(channel),
                channel_receive: self.legs.stamps(from, Direction::Arriving, channel),
                channel_transmit: listening.and_then(leaving),
                receive,
            },
            None => Way {
                transmit: listening.and_then(leaving),
                receive,
                ..Way::default()
            },
        }
    }

    /// Uses the stamp nearer to the wire. At the supplier this is the later one: the driver stamps after the tap. At
    /// the consumer it is the earlier one: a segment forwarded between namespaces loses its first stamp, and the
    /// socket's stamp is then taken only after the IP layer.
    fn stamp_by_kernel(
        &self,
        sample: &mut Sample,
        way: &Way<'_>,
        sent: &SupplierRecord,
        first: Option<&ConsumerRecord>,
        agreement: &mut Agreement,
    ) {
        let place = usize::try_from(sample.sequence).unwrap_or(usize::MAX);
        let (tap_transmit, tap_receive) = (at(way.transmit, place), at(way.receive, place));
        let socket_transmit = (sent.transmit_ns != 0).then_some(sent.transmit_ns);
        let alone = first
            .filter(|record| record.kernel_receive_ns != 0 && record.flags & SHARED_STAMP == 0);
        let socket_receive = alone.map(|record| record.kernel_receive_ns);
        agreement.compare(socket_transmit, tap_transmit);
        agreement.compare(socket_receive, tap_receive);
        let shared = first
            .map(|record| record.kernel_receive_ns)
            .filter(|&ns| ns != 0);
        let transmit = socket_transmit.into_iter().chain(tap_transmit).max();
        let receive = socket_receive.into_iter().chain(tap_receive).min();
        sample.kernel_transmit_ns = transmit.unwrap_or(NO_STAMP);
        sample.kernel_receive_ns = receive.or(shared).unwrap_or(NO_STAMP);
    }

    /// Returns true if a message that arrived lacks a stamp that a socket or a tap should provide.
    fn lacks_stamp(&self, sample: &Sample, way: &Way<'_>) -> bool {
        let raw = !self.plan.stream.carrier.road().middleware;
        let lacks = |expected: bool, stamp: i64| expected && stamp == NO_STAMP;
        sample.received_ns != NO_STAMP
            && (lacks(raw || way.transmit.is_some(), sample.kernel_transmit_ns)
                || lacks(raw || way.receive.is_some(), sample.kernel_receive_ns)
                || lacks(way.channel_receive.is_some(), sample.channel_receive_ns)
                || lacks(way.channel_transmit.is_some(), sample.channel_transmit_ns))
    }
}

/// Returns, by sequence number, the first arrival and the number of later copies.
fn first_arrivals(
    records: &[ConsumerRecord],
    messages: usize,
) -> Vec<Option<(&ConsumerRecord, u8)>> {
    let mut arrivals = vec![None; messages];
    for record in records {
        let place = usize::try_from(record.sequence)
            .ok()
            .and_then(|place| arrivals.get_mut(place));
        match place {
            Some(place @ None) => *place = Some((record, 0)),
            Some(Some((_, duplicates))) => *duplicates = u8::saturating_add(*duplicates, 1),
            None => {}
        }
    }
    arrivals
}

fn stamp(record_ns: i64) -> i64 {
    if record_ns == 0 { NO_STAMP } else { record_ns }
}

fn at(stamps: Option<&[i64]>, place: usize) -> Option<i64> {
    stamps?
        .get(place)
        .copied()
        .filter(|&stamp| stamp != NO_STAMP)
}

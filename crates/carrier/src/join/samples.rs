//! Makes the samples of one destination from the records of both ends and the legs between them.

use std::net::SocketAddr;
use std::time::Duration;

use deckwatch_meter::sample::{NO_STAMP, Sample, SampleFlags};
use deckwatch_os::tap::Direction;

use super::leg::{LegStamps, Legs};
use super::{Agreement, JoinedDestination};
use crate::plan::{JoinDestination, JoinPlan};
use crate::record::{ConsumerRecord, ReadRecords, SHARED_STAMP, SupplierRecord, WAITED_FOR_ROOM};
use crate::stamp_clock::Eras;

/// The data about the messages to one destination.
pub(super) struct Sources<'s> {
    pub(super) plan: &'s JoinPlan,
    pub(super) destination: &'s JoinDestination,
    pub(super) sent: &'s ReadRecords<SupplierRecord>,
    pub(super) received: &'s ReadRecords<ConsumerRecord>,
    pub(super) legs: &'s Legs<'s>,
    pub(super) sent_clock: &'s Eras,
    pub(super) received_clock: &'s Eras,
}

/// The eras of the clocks of both ends.
pub(super) struct Clocks {
    pub(super) sent: Eras,
    /// By destination.
    pub(super) received: Vec<Eras>,
}

impl Clocks {
    pub(super) fn of(
        plan: &JoinPlan,
        sent: &ReadRecords<SupplierRecord>,
        received: &[ReadRecords<ConsumerRecord>],
    ) -> Self {
        let far = |host: &str| plan.far.get(host);
        let received = received.iter().zip(&plan.destinations);
        Self {
            sent: sent.header.clock().of_host(far(&plan.from)),
            received: received
                .map(|(read, at)| read.header.clock().of_host(far(&at.host)))
                .collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Eras> {
        self.received.iter().chain([&self.sent])
    }

    /// Upper bound of the error of each conversion.
    pub(super) fn error_ns(&self) -> u64 {
        self.all().map(Eras::error_ns).max().unwrap_or(0)
    }

    /// How many times the clock was set.
    pub(super) fn steps(&self) -> usize {
        self.all().map(Eras::steps).max().unwrap_or(0)
    }
}

/// The stamps on the legs to one destination, where captures contain them.
#[derive(Clone, Copy, Default)]
struct Way<'s> {
    transmit: Option<LegStamps<'s>>,
    channel_receive: Option<LegStamps<'s>>,
    channel_transmit: Option<LegStamps<'s>>,
    receive: Option<LegStamps<'s>>,
}

/// Converts the kernel's stamps of one message.
struct Conversion {
    from_ns: i64,
    to_ns: i64,
    /// The clock was set while the message was under way.
    stepped: bool,
}

impl Conversion {
    /// Converts a stamp, if there is one.
    fn convert(&mut self, clock: &Eras, realtime_ns: Option<i64>) -> Option<i64> {
        let converted = clock.convert((self.from_ns, self.to_ns), realtime_ns?);
        self.stepped |= converted.is_none();
        converted
    }

    /// Converts the stamp in one place of a leg's list.
    fn of_leg(
        &mut self,
        leg: Option<LegStamps<'_>>,
        list: fn(LegStamps<'_>) -> &[i64],
        place: usize,
    ) -> Option<i64> {
        let leg = leg?;
        let stamp = list(leg).get(place).copied();
        self.convert(leg.clock, stamp.filter(|&stamp| stamp != NO_STAMP))
    }
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
            unread: None,
        };
        let arrivals = first_arrivals(&self.received.records, sent.len());
        let supplier = self.plan.far.get(&self.plan.from);
        for (due, sent) in self.plan.stream.schedule.dues().zip(sent) {
            let place = usize::try_from(due.sequence).unwrap_or(usize::MAX);
            let arrival = arrivals.get(place).copied().flatten();
            let mut sample = Sample {
                flow: self.plan.stream.flow,
                destination: index,
                sequence: due.sequence,
                due_ns: supplier.map_or(due.due_ns, |far| far.due_ns(due.due_ns)),
                sent_ns: stamp(sent.sent_ns),
                returned_ns: stamp(sent.returned_ns),
                received_ns: arrival.map_or(NO_STAMP, |(first, _)| first.received_ns),
                handled_ns: arrival.map_or(NO_STAMP, |(first, _)| stamp(first.handled_ns)),
                execution_ns: arrival.map_or(NO_STAMP, |(first, _)| stamp(first.execution_ns)),
                flags: SampleFlags {
                    warm_up: due.warm_up,
                    waited_for_room: sent.flags & WAITED_FOR_ROOM != 0,
                    duplicates: arrival.map_or(0, |(_, duplicates)| duplicates),
                    ..SampleFlags::default()
                },
                ..Sample::NONE
            };
            let first = arrival.map(|(first, _)| first);
            self.stamp_by_kernel(&mut sample, &way, sent, first, agreement);
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

    /// Fills in the kernel's stamps. If the clock was set while the message was under way, marks it instead: its stamps
    /// are then from both sides of the step.
    fn stamp_by_kernel(
        &self,
        sample: &mut Sample,
        way: &Way<'_>,
        sent: &SupplierRecord,
        first: Option<&ConsumerRecord>,
        agreement: &mut Agreement,
    ) {
        if sample.sent_ns == NO_STAMP {
            return;
        }
        let last_ns = sample.received_ns.max(sample.returned_ns);
        // A lost message may have been stamped after its call returned.
        let under_way_ns = match first {
            Some(_) => 0,
            None => nanoseconds(self.plan.stream.deadline),
        };
        let mut conversion = Conversion {
            from_ns: sample.sent_ns,
            to_ns: last_ns.max(sample.sent_ns.saturating_add(under_way_ns)),
            stepped: false,
        };
        let unstamped = *sample;
        self.stamp_converted(sample, way, sent, first, &mut conversion, agreement);
        if conversion.stepped {
            *sample = unstamped;
            sample.flags.clock_step = true;
        }
    }

    /// Uses the stamp nearer to the network. At the supplier this is the stamp in front of the interface's queue; the
    /// socket's is a little before the tap's. At the consumer it is the earlier one too: a segment forwarded between
    /// namespaces loses its first stamp, and the socket's stamp is then taken only after the IP layer.
    fn stamp_converted(
        &self,
        sample: &mut Sample,
        way: &Way<'_>,
        sent: &SupplierRecord,
        first: Option<&ConsumerRecord>,
        conversion: &mut Conversion,
        agreement: &mut Agreement,
    ) {
        let place = usize::try_from(sample.sequence).unwrap_or(usize::MAX);
        let mut of_message = |leg| conversion.of_leg(leg, |leg| leg.messages, place);
        let (tap_transmit, tap_receive) = (of_message(way.transmit), of_message(way.receive));
        sample.channel_receive_ns = of_message(way.channel_receive).unwrap_or(NO_STAMP);
        sample.channel_transmit_ns = of_message(way.channel_transmit).unwrap_or(NO_STAMP);
        let mut of_reply = |leg| {
            let stamp = conversion.of_leg(leg, |leg| leg.replies, place);
            stamp.unwrap_or(NO_STAMP)
        };
        sample.reply_transmit_ns = of_reply(way.receive);
        if way.channel_transmit.is_some() {
            sample.channel_reply_ns = of_reply(way.transmit);
            sample.reply_receive_ns = of_reply(way.channel_transmit);
        } else {
            sample.reply_receive_ns = of_reply(way.transmit);
        }
        let socket_transmit = conversion.convert(self.sent_clock, known(sent.transmit_realtime_ns));
        let receive = first.and_then(|record| known(record.kernel_receive_realtime_ns));
        let socket_receive = conversion.convert(self.received_clock, receive);
        let alone = first.is_some_and(|record| record.flags & SHARED_STAMP == 0);
        let (own_receive, shared) = if alone {
            (socket_receive, None)
        } else {
            (None, socket_receive)
        };
        agreement.compare(socket_transmit, tap_transmit);
        agreement.compare(own_receive, tap_receive);
        let transmit = socket_transmit.into_iter().chain(tap_transmit).min();
        let receive = own_receive.into_iter().chain(tap_receive).min();
        sample.kernel_transmit_ns = transmit.unwrap_or(NO_STAMP);
        sample.kernel_receive_ns = receive.or(shared).unwrap_or(NO_STAMP);
    }

    /// Returns true if a message that arrived lacks a stamp that a socket or a tap should provide.
    fn lacks_stamp(&self, sample: &Sample, way: &Way<'_>) -> bool {
        let raw = !self.plan.stream.carrier.road().middleware;
        let lacks = |expected: bool, stamp: i64| expected && stamp == NO_STAMP;
        sample.received_ns != NO_STAMP
            && !sample.flags.clock_step
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

/// Returns the kernel's stamp of a record.
fn known(realtime_ns: i64) -> Option<i64> {
    (realtime_ns != 0).then_some(realtime_ns)
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

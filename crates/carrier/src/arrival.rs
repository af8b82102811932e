//! What a consumer does with a message that the carrier has delivered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use deckwatch_meter::pacing::Schedule;
use deckwatch_os::clock;

use crate::record::{ConsumerRecord, HeaderPage, Records, SHARED_STAMP};
use crate::stamp_clock::StampClock;
use crate::talk::Progress;

/// Handles the messages that a carrier delivers. A carrier reads the clock as soon as its code has the message and the
/// sequence number.
pub trait Handler: Send {
    /// Handles one message.
    fn handle(&mut self, arrival: Arrival);

    /// Handles messages that one system call has received, without stamps of the kernel. The first one has the time when
    /// the call returned, and the others the time when all were found in its octets.
    fn handle_all(&mut self, sequences: &[u64], (returned_ns, found_ns): (i64, i64)) {
        let times = std::iter::once(returned_ns).chain(std::iter::repeat(found_ns));
        for (&sequence, received_ns) in sequences.iter().zip(times) {
            self.handle(Arrival {
                sequence,
                kernel_receive_realtime_ns: None,
                shared_stamp: false,
                received_ns,
            });
        }
    }
}

/// One message that arrived at its consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Sequence number.
    pub sequence: u64,
    /// The kernel's stamp of the message's last octet, nanoseconds of CLOCK_REALTIME, if the carrier has it.
    pub kernel_receive_realtime_ns: Option<i64>,
    /// True if the stamp is that of a later octet, read in the same call.
    pub shared_stamp: bool,
    /// When the consumer's code received the message.
    pub received_ns: i64,
}

/// State that the threads of a part share: when to start, whether to stop, and the counts for the progress lines.
#[derive(Debug, Default)]
pub struct Shared {
    /// Start of the schedule, nanoseconds of CLOCK_MONOTONIC; zero before `go`.
    pub start_ns: AtomicI64,
    /// Tells the part to finish.
    pub stop: AtomicBool,
    /// Messages come in bulk: a raw receiver without stamps takes many with one system call, and reads the clock twice
    /// for all of them ([`Handler::handle_all`]).
    pub in_bulk: AtomicBool,
    /// See [`Progress`].
    pub sent: AtomicU64,
    /// See [`Progress`].
    pub send_errors: AtomicU64,
    /// See [`Progress`].
    pub received: AtomicU64,
    /// See [`Progress`].
    pub late: AtomicU64,
    /// See [`Progress`].
    pub overflows: AtomicU64,
    /// Messages that the consumer's socket dropped, whatever the reason.
    pub dropped: AtomicU64,
    /// Sends that waited for room in the send buffer.
    pub waits: AtomicU64,
    /// Arrivals for which no record was left.
    pub unrecorded: AtomicU64,
    /// Arrivals that are not messages of the stream.
    pub malformed: AtomicU64,
    /// Datagrams that the network or the peer's host refused.
    pub refusals: AtomicU64,
}

impl Shared {
    /// Returns true if the part must finish.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns true if messages come in bulk.
    #[must_use]
    pub fn is_bulk(&self) -> bool {
        self.in_bulk.load(Ordering::Relaxed)
    }

    /// Returns the counts for a progress line.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            sent: self.sent.load(Ordering::Relaxed),
            send_errors: self.send_errors.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            overflows: self.overflows.load(Ordering::Relaxed),
        }
    }

    /// Counts as overflows those of the socket's drops for which the host counted a full receive buffer. Returns the
    /// others: wrong checksums, or no memory in the kernel. `None` if the host's counter cannot be read; then all drops
    /// count as overflows.
    pub fn attribute_drops(&self, host_overflows: Option<u64>) -> u64 {
        let dropped = self.dropped.load(Ordering::Relaxed);
        let overflows = dropped.min(host_overflows.unwrap_or(u64::MAX));
        self.overflows.store(overflows, Ordering::Relaxed);
        dropped - overflows
    }

    /// Writes the counters to the record file.
    pub fn note_in(&self, page: &mut HeaderPage, clock: &StampClock, finished: bool) {
        page.update(|header| {
            header.start_ns = self.start_ns.load(Ordering::Relaxed);
            header.unrecorded = self.unrecorded.load(Ordering::Relaxed);
            header.overflows = self.overflows.load(Ordering::Relaxed);
            header.malformed = self.malformed.load(Ordering::Relaxed);
            header.refusals = self.refusals.load(Ordering::Relaxed);
            header.set_eras(clock.eras());
            header.finished = u64::from(finished);
        });
    }
}

/// The handler of a run: uses the processor time of the mission's application, and writes the record.
#[derive(Debug)]
pub struct Recorder {
    records: Records<ConsumerRecord>,
    count: usize,
    judged: Vec<Option<i64>>,
    deadline_ns: i64,
    handler: HandlerPlan,
    shared: Arc<Shared>,
}

/// What the application of a mission does with each message.
#[derive(Clone, Copy, Debug, Default)]
pub struct HandlerPlan {
    /// Processor time that it uses.
    pub handle_for: Duration,
    /// Whether its processor time is measured: two system calls for each message.
    pub is_measured: bool,
}

impl Recorder {
    /// Creates a handler that writes to `records`. `schedule` and `deadline` are for the live count of late messages.
    #[must_use]
    pub fn new(
        records: Records<ConsumerRecord>,
        schedule: &Schedule,
        deadline: Duration,
        handler: HandlerPlan,
        shared: Arc<Shared>,
    ) -> Self {
        let from_start = Schedule {
            start_ns: 0,
            ..schedule.clone()
        };
        let judged = from_start
            .dues()
            .map(|due| (!due.warm_up).then_some(due.due_ns))
            .collect();
        Self {
            records,
            count: 0,
            judged,
            deadline_ns: i64::try_from(deadline.as_nanos()).unwrap_or(i64::MAX),
            handler,
            shared,
        }
    }

    fn is_late(&self, arrival: &Arrival) -> bool {
        let due = usize::try_from(arrival.sequence)
            .ok()
            .and_then(|sequence| *self.judged.get(sequence)?);
        let start_ns = self.shared.start_ns.load(Ordering::Relaxed);
        due.is_some_and(|due_ns| {
            start_ns != 0 && arrival.received_ns - start_ns - due_ns > self.deadline_ns
        })
    }
}

impl Handler for Recorder {
    fn handle(&mut self, arrival: Arrival) {
        let start_ns = self.handler.is_measured.then(clock::thread_cpu_ns);
        if !self.handler.handle_for.is_zero() {
            work_for(self.handler.handle_for);
        }
        // Zero means that it was not measured.
        let execution_ns =
            start_ns.map_or(0, |start_ns| (clock::thread_cpu_ns() - start_ns).max(1));
        let handled_ns = clock::monotonic_ns();
        self.shared.received.fetch_add(1, Ordering::Relaxed);
        if self.is_late(&arrival) {
            self.shared.late.fetch_add(1, Ordering::Relaxed);
        }
        let Some(record) = self.records.slice_mut().get_mut(self.count) else {
            self.shared.unrecorded.fetch_add(1, Ordering::Relaxed);
            return;
        };
        *record = ConsumerRecord {
            sequence: arrival.sequence,
            kernel_receive_realtime_ns: arrival.kernel_receive_realtime_ns.unwrap_or(0),
            received_ns: arrival.received_ns,
            handled_ns,
            execution_ns,
            flags: if arrival.shared_stamp {
                SHARED_STAMP
            } else {
                0
            },
        };
        self.count += 1;
    }
}

/// Keeps the processor busy until the calling thread has used this much processor time.
fn work_for(processor_time: Duration) {
    let end_ns = clock::thread_cpu_ns()
        .saturating_add(i64::try_from(processor_time.as_nanos()).unwrap_or(i64::MAX));
    let mut sum = 0_u64;
    while clock::thread_cpu_ns() < end_ns {
        for term in 0..64_u64 {
            sum = std::hint::black_box(sum.wrapping_add(term));
        }
    }
}

#[cfg(test)]
mod tests {
    use deckwatch_meter::pacing::{Arrivals, Extent};

    use super::*;
    use crate::record::{ReadRecords, RecordFile};
    use crate::scratch::Scratch;

    fn records(scratch: &Scratch, capacity: u64) -> (HeaderPage, Records<ConsumerRecord>) {
        let file = RecordFile::consumer(&scratch.path("c"), 0, 0, capacity, 8).expect("made");
        file.into_parts()
    }

    fn schedule() -> Schedule {
        Schedule {
            start_ns: 0,
            offset: Duration::ZERO,
            arrivals: Arrivals::Periodic {
                period: Duration::from_millis(1),
            },
            extent: Extent::Count { messages: 3 },
            warm_up: 1,
        }
    }

    fn arrival(sequence: u64, received_ns: i64) -> Arrival {
        Arrival {
            sequence,
            kernel_receive_realtime_ns: None,
            shared_stamp: false,
            received_ns,
        }
    }

    #[test]
    fn late_ones_are_counted_but_not_in_the_warm_up_nor_before_the_start() {
        let shared = Arc::new(Shared::default());
        let scratch = Scratch::new();
        let (_, records) = records(&scratch, 8);
        let deadline = Duration::from_micros(100);
        let mut recorder = Recorder::new(
            records,
            &schedule(),
            deadline,
            HandlerPlan::default(),
            Arc::clone(&shared),
        );
        let start = 1_000_000_000;
        recorder.handle(arrival(1, start + 9_000_000));
        shared.start_ns.store(start, Ordering::Relaxed);
        recorder.handle(arrival(0, start + 9_000_000)); // warm-up
        recorder.handle(arrival(1, start + 1_100_000)); // just in time
        recorder.handle(arrival(2, start + 2_100_001)); // late
        recorder.handle(arrival(99, start + 2_100_001)); // not of the schedule
        assert_eq!(shared.late.load(Ordering::Relaxed), 1);
        assert_eq!(shared.received.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn only_as_many_drops_as_the_host_counted_are_overflows() {
        let shared = Shared::default();
        shared.dropped.store(12, Ordering::Relaxed);
        for (host, overflows) in [(Some(7), 7), (Some(0), 0), (Some(90), 12), (None, 12)] {
            assert_eq!(shared.attribute_drops(host), 12 - overflows);
            assert_eq!(shared.progress().overflows, overflows);
        }
    }

    #[test]
    fn what_finds_no_record_is_counted_and_forgotten() {
        let shared = Arc::new(Shared::default());
        let scratch = Scratch::new();
        let (_, records) = records(&scratch, 1);
        let mut recorder = Recorder::new(
            records,
            &schedule(),
            Duration::ZERO,
            HandlerPlan::default(),
            Arc::clone(&shared),
        );
        for sequence in 0..3 {
            recorder.handle(arrival(sequence, 1));
        }
        assert_eq!(shared.unrecorded.load(Ordering::Relaxed), 2);
        let read = ReadRecords::consumer(&scratch.path("c")).expect("read");
        assert_eq!(read.records.len(), 1);
        assert_eq!(read.records[0].sequence, 0);
    }

    #[test]
    fn execution_time_is_recorded_if_it_is_measured() {
        for (is_measured, least_ns) in [(true, 300_000), (false, 0)] {
            let shared = Arc::new(Shared::default());
            let scratch = Scratch::new();
            let (_, records) = records(&scratch, 1);
            let handler = HandlerPlan {
                handle_for: Duration::from_micros(300),
                is_measured,
            };
            let mut recorder = Recorder::new(records, &schedule(), Duration::ZERO, handler, shared);
            recorder.handle(arrival(0, 1));
            let read = ReadRecords::consumer(&scratch.path("c")).expect("read");
            let execution_ns = read.records[0].execution_ns;
            assert!(execution_ns >= least_ns, "{execution_ns}");
            assert_eq!(execution_ns > 0, is_measured);
        }
    }

    #[test]
    fn handling_takes_the_processor_time_that_was_asked_for() {
        let before_ns = clock::thread_cpu_ns();
        work_for(Duration::from_micros(500));
        assert!(clock::thread_cpu_ns() - before_ns >= 500_000);
    }
}

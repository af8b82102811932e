//! The record file that the program of an external carrier writes: it is read here while the program maps it.
//!
//! The part maps nothing: the program may write, lie or truncate at any time. So the part reads copies, keeps its own
//! header, and believes the records only after [`ForeignRecords::verify`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use deckwatch_meter::pacing::Schedule;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::program::ProgramDone;
use crate::limits::{FAR_COUNTER_MAX, PROGRAM_RECORDS_AT_ONCE, SENT_EARLY_MAX_NS};
use crate::record::{
    ConsumerRecord, HEADER_SIZE, Header, RecordError, RecordFile, SUPPLIER_MAGIC, SupplierRecord,
    seal_open,
};
use crate::sender::SendError;
use crate::stamp_clock::StampClock;
use crate::talk::Progress;

/// A record file that another program writes.
pub(super) struct ForeignRecords {
    file: File,
    header: Header,
    size_bytes: u64,
    /// For each sequence number its due time from the start, and whether it is judged.
    dues: Vec<(i64, bool)>,
    deadline_ns: i64,
    /// Records counted so far, of each slot.
    counted: Vec<u64>,
    progress: Progress,
}

impl ForeignRecords {
    /// Takes over a record file that was just created.
    pub(super) fn new(
        path: &Path,
        file: RecordFile,
        schedule: &Schedule,
        deadline: Duration,
    ) -> Result<Self, RecordError> {
        let header = file.into_header();
        let opened = File::options().read(true).write(true).open(path);
        let file = opened.map_err(|error| RecordError::io(path, error))?;
        let metadata = file.metadata();
        let from_start = Schedule {
            start_ns: 0,
            ..schedule.clone()
        };
        let dues = from_start.dues().map(|due| (due.due_ns, !due.warm_up));
        Ok(Self {
            size_bytes: metadata
                .map_err(|error| RecordError::io(path, error))?
                .len(),
            file,
            header,
            dues: dues.collect(),
            deadline_ns: i64::try_from(deadline.as_nanos()).unwrap_or(i64::MAX),
            counted: vec![0; usize::try_from(header.slots).unwrap_or(0)],
            progress: Progress::default(),
        })
    }

    /// Returns the octets of one message.
    pub(super) const fn message_bytes(&self) -> u64 {
        self.header.size_bytes
    }

    pub(super) const fn start(&mut self, start_ns: i64) {
        self.header.start_ns = start_ns;
    }

    /// Counts the records that were written since the last call.
    pub(super) fn progress(&mut self) -> io::Result<Progress> {
        if self.header.magic == SUPPLIER_MAGIC {
            for slot in 0..self.header.slots {
                while self.count_sent(slot)? == PROGRAM_RECORDS_AT_ONCE {}
            }
        } else {
            while self.count_received()? == PROGRAM_RECORDS_AT_ONCE {}
        }
        Ok(self.progress)
    }

    fn count_sent(&mut self, slot: u64) -> io::Result<usize> {
        let place = usize::try_from(slot).unwrap_or(0);
        let from = self.counted[place];
        let mut count = 0;
        for record in self.read::<SupplierRecord>(slot, from)? {
            // The program writes this field after the send.
            if record.returned_ns == 0 {
                break;
            }
            count += 1;
            self.progress.send_errors += u64::from(record.error != 0);
        }
        self.counted[place] += count as u64;
        self.progress.sent += count as u64;
        Ok(count)
    }

    fn count_received(&mut self) -> io::Result<usize> {
        let from = self.counted[0];
        let mut count = 0;
        for record in self.read::<ConsumerRecord>(0, from)? {
            // The program writes this field last.
            if record.received_ns == 0 {
                break;
            }
            count += 1;
            self.progress.late += u64::from(self.is_late(&record));
        }
        self.counted[0] += count as u64;
        self.progress.received += count as u64;
        Ok(count)
    }

    fn is_late(&self, record: &ConsumerRecord) -> bool {
        let due = self.due_of(record.sequence);
        let latency_ns = |due_ns| record.received_ns.checked_sub(due_ns);
        due.filter(|_| self.header.start_ns != 0)
            .filter(|&(_, is_judged)| is_judged)
            .and_then(|(due_ns, _)| latency_ns(self.header.start_ns.saturating_add(due_ns)))
            .is_some_and(|latency_ns| latency_ns > self.deadline_ns)
    }

    fn due_of(&self, sequence: u64) -> Option<(i64, bool)> {
        self.dues.get(usize::try_from(sequence).ok()?).copied()
    }

    /// Reads at most [`PROGRAM_RECORDS_AT_ONCE`] records of a slot.
    fn read<R: FromBytes + IntoBytes + Immutable + KnownLayout + Clone + Default>(
        &self,
        slot: u64,
        from: u64,
    ) -> io::Result<Vec<R>> {
        let left = self.header.capacity.saturating_sub(from);
        let count = usize::try_from(left).map_or(PROGRAM_RECORDS_AT_ONCE, |left| {
            left.min(PROGRAM_RECORDS_AT_ONCE)
        });
        let mut records = vec![R::default(); count];
        let at = place::<R>(slot * self.header.capacity + from);
        self.file.read_exact_at(records.as_mut_bytes(), at)?;
        Ok(records)
    }

    /// Writes the header, of which the program knows nothing.
    pub(super) fn note(&mut self, clock: &StampClock, done: ProgramDone, finished: bool) {
        let header = &mut self.header;
        header.unrecorded = done.unrecorded.min(FAR_COUNTER_MAX);
        header.overflows = done.overflows.min(FAR_COUNTER_MAX);
        header.malformed = done.malformed.min(FAR_COUNTER_MAX);
        header.refusals = done.refusals.min(FAR_COUNTER_MAX);
        header.set_eras(clock.eras());
        header.finished = u64::from(finished);
        // Fails only if the file system is gone. The join then finds no records.
        let _ = self.file.write_all_at(header.as_bytes(), 0);
    }

    /// Writes the checksum, behind which the records are not changed any more.
    pub(super) fn seal(&self) {
        seal_open(&self.file);
    }

    /// Removes all records, so that no message has one.
    pub(super) fn clear(&self) {
        // Fails only if the file system is gone. The join then finds no records.
        let _ = self.file.set_len(0);
        let _ = self.file.set_len(self.size_bytes);
        let _ = self.file.write_all_at(self.header.as_bytes(), 0);
    }

    /// Checks all records after the program has ended. Returns the first fact that cannot be true.
    pub(super) fn verify(&mut self, now_ns: i64) -> io::Result<Option<String>> {
        let size_bytes = self.file.metadata()?.len();
        if size_bytes != self.size_bytes {
            let fact = format!(
                "the file has {size_bytes} octets instead of {}",
                self.size_bytes
            );
            return Ok(Some(fact));
        }
        for slot in 0..self.header.slots {
            let mut from = 0;
            let mut has_ended = false;
            while from < self.header.capacity {
                let fact = if self.header.magic == SUPPLIER_MAGIC {
                    self.verify_sent(slot, from, now_ns)?
                } else {
                    self.verify_received(from, now_ns, &mut has_ended)?
                };
                if fact.is_some() {
                    return Ok(fact);
                }
                from += PROGRAM_RECORDS_AT_ONCE as u64;
            }
        }
        Ok(None)
    }

    fn verify_sent(&self, slot: u64, from: u64, now_ns: i64) -> io::Result<Option<String>> {
        let records = self.read::<SupplierRecord>(slot, from)?;
        for (record, sequence) in records.iter().zip(from..) {
            let due_ns = self.due_of(sequence).map_or(0, |(due_ns, _)| due_ns);
            let earliest_ns = self.header.start_ns.saturating_add(due_ns) - SENT_EARLY_MAX_NS;
            let fact = match record {
                record if record.sent_ns == 0 && record.returned_ns == 0 => continue,
                record if record.sent_ns > now_ns || record.returned_ns > now_ns => {
                    "has a time in the future"
                }
                record if self.header.start_ns == 0 || record.sent_ns < earliest_ns => {
                    "was sent before it was due"
                }
                // A program that was killed in a send has not written the second.
                record if record.returned_ns != 0 && record.returned_ns < record.sent_ns => {
                    "was accepted before it was sent"
                }
                record if record.transmit_realtime_ns != 0 => "has a time of the kernel",
                record if record.error != 0 && SendError::from_code(record.error).is_none() => {
                    "has an error that does not exist"
                }
                _ => continue,
            };
            return Ok(Some(format!("message {sequence} {fact}")));
        }
        Ok(None)
    }

    fn verify_received(
        &self,
        from: u64,
        now_ns: i64,
        has_ended: &mut bool,
    ) -> io::Result<Option<String>> {
        let longest_ns = now_ns.saturating_sub(self.header.start_ns);
        for (record, place) in self.read::<ConsumerRecord>(0, from)?.iter().zip(from..) {
            let stamps = [record.received_ns, record.handled_ns];
            let fact = if record.received_ns == 0 {
                *has_ended = true;
                continue;
            } else if *has_ended {
                "follows an empty record"
            } else if self.due_of(record.sequence).is_none() {
                "has a sequence number that was not sent"
            } else if stamps.iter().any(|&stamp_ns| stamp_ns > now_ns) {
                "has a time in the future"
            } else if self.header.start_ns == 0 || record.received_ns < self.header.start_ns {
                "was received before the start"
            } else if record.handled_ns < record.received_ns {
                "was handled before it was received"
            } else if !(0..=longest_ns).contains(&record.execution_ns) {
                "took more processor time than there was"
            } else if record.kernel_receive_realtime_ns != 0 || record.flags != 0 {
                "has a time of the kernel"
            } else {
                continue;
            };
            let sequence = record.sequence;
            return Ok(Some(format!(
                "arrival {place}, of message {sequence}, {fact}"
            )));
        }
        Ok(None)
    }
}

fn place<R>(record: u64) -> u64 {
    HEADER_SIZE as u64 + record * size_of::<R>() as u64
}

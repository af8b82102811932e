//! Record files: what a supplier or consumer records about each message. The files are mapped memory, so the records
//! survive when the process is killed.
//!
//! A file is one page with the [`Header`], then records of fixed size in this machine's byte order. Stamps are
//! nanoseconds of CLOCK_MONOTONIC, zero if none was taken. Only the kernel's stamps are CLOCK_REALTIME; the join converts
//! them by the header's eras. A supplier's records are ordered by destination, then by sequence number; a consumer's
//! records are in order of arrival.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::marker::PhantomData;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use deckwatch_os::mapped::MappedFile;
use deckwatch_os::regular;
use thiserror::Error;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::limits::{CLOCK_ERAS_MAX, RECORDS_MAX};
use crate::stamp_clock::{ClockEra, Eras};

/// The header of a record file. It is written when the file is created; its counters are updated about four times a
/// second.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Header {
    /// [`SUPPLIER_MAGIC`] or [`CONSUMER_MAGIC`].
    pub magic: [u8; 8],
    /// Index of the stream.
    pub flow: u32,
    /// Index of the consumer's destination; 0 in a supplier's file.
    pub destination: u32,
    /// Number of a supplier's destinations that have records of their own; 1 in a consumer's file.
    pub slots: u64,
    /// Number of records for each of these destinations.
    pub capacity: u64,
    /// Octets of one message's CDR encoding.
    pub size_bytes: u64,
    /// Start of the schedule.
    pub start_ns: i64,
    /// Arrivals when no record was left.
    pub unrecorded: u64,
    /// Messages dropped by a full receive buffer.
    pub overflows: u64,
    /// Arrivals that are not messages of the stream.
    pub malformed: u64,
    /// Datagrams that the network or the peer's host refused.
    pub refusals: u64,
    /// 1 if the process ended normally.
    pub finished: u64,
    /// Number of eras of the clock so far.
    pub era_count: u64,
    /// The eras of CLOCK_REALTIME, the clock of kernel stamps.
    pub eras: [ClockEra; CLOCK_ERAS_MAX],
}

impl Header {
    /// Records the eras of the clock.
    pub fn set_eras(&mut self, eras: &[ClockEra]) {
        self.era_count = eras.len().min(CLOCK_ERAS_MAX) as u64;
        for (place, era) in self.eras.iter_mut().zip(eras) {
            *place = *era;
        }
    }

    /// Returns the recorded eras of the clock.
    #[must_use]
    pub fn clock(&self) -> Eras {
        let count = usize::try_from(self.era_count).unwrap_or(usize::MAX);
        Eras::new(self.eras.get(..count).unwrap_or_default())
    }
}

/// The magic of a supplier's file; the last octet is the version.
pub const SUPPLIER_MAGIC: [u8; 8] = *b"dwsuppl\x02";
/// The magic of a consumer's file; the last octet is the version.
pub const CONSUMER_MAGIC: [u8; 8] = *b"dwconsm\x03";

/// Octets before the first record.
pub const HEADER_SIZE: usize = 4096;

/// Where the checksum of a finished file is: the last octets before the records.
const CHECKSUM_AT: usize = HEADER_SIZE - 8;

/// Writes the checksum of a finished file, which is not mapped any more. Without it the records count as damaged.
pub(crate) fn seal(path: &Path) {
    if let Ok(file) = regular::open_with(path, File::options().read(true).write(true)) {
        seal_open(&file);
    }
}

/// As [`seal`].
pub(crate) fn seal_open(mut file: &File) {
    let start = file.seek(SeekFrom::Start(0));
    if let Ok(checksum) = start.and_then(|_| checksum_of(&mut file)) {
        // Fails only if the file system is gone.
        let _ = file.write_all_at(&checksum.to_ne_bytes(), CHECKSUM_AT as u64);
    }
}

/// Returns the checksum of a file without the octets in which it is stored. It is never zero.
fn checksum_of(file: &mut impl Read) -> io::Result<u64> {
    let mut hasher = crc32fast::Hasher::new();
    let mut head = [0; HEADER_SIZE];
    file.read_exact(&mut head)?;
    hasher.update(&head[..CHECKSUM_AT]);
    let mut some = vec![0; READ_AT_ONCE];
    loop {
        match file.read(&mut some)? {
            0 => return Ok(u64::from(hasher.finalize()) | IS_SEALED),
            count => hasher.update(&some[..count]),
        }
    }
}

/// Set in each checksum.
const IS_SEALED: u64 = 1 << 32;

/// Octets of one read for the checksum.
const READ_AT_ONCE: usize = 256 << 10;

/// A supplier's record of one message to one destination.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct SupplierRecord {
    /// When the supplier began to send the message; zero if it did not send it.
    pub sent_ns: i64,
    /// When the send call returned.
    pub returned_ns: i64,
    /// The kernel's stamp, CLOCK_REALTIME: where the message enters the queueing discipline.
    pub transmit_realtime_ns: i64,
    /// Zero, or [`SendError::code`](crate::sender::SendError::code).
    pub error: u32,
    /// [`WAITED_FOR_ROOM`] or 0.
    pub flags: u32,
}

/// In a supplier's `flags`: the send call waited for room in the send buffer. The message itself waited in front of the
/// kernel.
pub const WAITED_FOR_ROOM: u32 = 1;

/// A consumer's record of one arrival.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct ConsumerRecord {
    /// Sequence number.
    pub sequence: u64,
    /// The kernel's stamp of the message's last octet, CLOCK_REALTIME.
    pub kernel_receive_realtime_ns: i64,
    /// When the consumer's code received the message; zero means no record.
    pub received_ns: i64,
    /// When the consumer finished handling the message.
    pub handled_ns: i64,
    /// Processor time of handling the message; zero if it was not measured.
    pub execution_ns: i64,
    /// [`SHARED_STAMP`] or 0.
    pub flags: u64,
}

/// In `flags`: the kernel's stamp is that of a later octet, which was read in the same call. The message itself may
/// have arrived earlier.
pub const SHARED_STAMP: u64 = 1;

/// Returns the records that a consumer needs for `messages`: a quarter more for duplicates, and at least
/// [`SPARE_RECORDS_MIN`](crate::limits::SPARE_RECORDS_MIN).
#[must_use]
pub const fn consumer_capacity(messages: u64) -> u64 {
    let spare = messages / 4;
    let least = crate::limits::SPARE_RECORDS_MIN;
    messages.saturating_add(if spare > least { spare } else { least })
}

/// Returns the octets of a consumer's file for `messages`.
#[must_use]
pub const fn consumer_size_bytes(messages: u64) -> u64 {
    file_size_bytes(consumer_capacity(messages), size_of::<ConsumerRecord>())
}

/// Returns the octets of a supplier's file for `slots` destinations with `messages` each.
#[must_use]
pub const fn supplier_size_bytes(slots: u64, messages: u64) -> u64 {
    file_size_bytes(slots.saturating_mul(messages), size_of::<SupplierRecord>())
}

const fn file_size_bytes(records: u64, record_size: usize) -> u64 {
    records
        .saturating_mul(record_size as u64)
        .saturating_add(HEADER_SIZE as u64)
}

/// A record file that is being written.
#[derive(Debug)]
pub struct RecordFile {
    file: MappedFile,
    header: Header,
}

impl RecordFile {
    /// Creates a supplier's file for `slots` destinations with `capacity` messages each.
    ///
    /// # Errors
    /// [`RecordError::TooMany`] beyond [`RECORDS_MAX`]; [`RecordError::Io`].
    pub fn supplier(
        path: &Path,
        flow: u16,
        slots: u64,
        capacity: u64,
        size_bytes: u64,
    ) -> Result<Self, RecordError> {
        let header = Header {
            magic: SUPPLIER_MAGIC,
            flow: flow.into(),
            slots,
            capacity,
            size_bytes,
            ..Header::default()
        };
        Self::create(path, header, size_of::<SupplierRecord>())
    }

    /// Creates a consumer's file for `capacity` arrivals.
    ///
    /// # Errors
    /// [`RecordError::TooMany`] beyond [`RECORDS_MAX`]; [`RecordError::Io`].
    pub fn consumer(
        path: &Path,
        flow: u16,
        destination: u16,
        capacity: u64,
        size_bytes: u64,
    ) -> Result<Self, RecordError> {
        let header = Header {
            magic: CONSUMER_MAGIC,
            flow: flow.into(),
            destination: destination.into(),
            slots: 1,
            capacity,
            size_bytes,
            ..Header::default()
        };
        Self::create(path, header, size_of::<ConsumerRecord>())
    }

    fn create(path: &Path, header: Header, record_size: usize) -> Result<Self, RecordError> {
        let records = header.slots.saturating_mul(header.capacity);
        if records > crate::limits::RECORDS_MAX {
            return Err(RecordError::TooMany);
        }
        let size = usize::try_from(records)
            .ok()
            .and_then(|records| records.checked_mul(record_size)?.checked_add(HEADER_SIZE))
            .ok_or(RecordError::TooMany)?;
        let mut file =
            MappedFile::create(path, size).map_err(|error| RecordError::io(path, error))?;
        file.octets_mut()[..size_of::<Header>()].copy_from_slice(header.as_bytes());
        Ok(Self { file, header })
    }

    /// Ends the mapping. Returns the header, for a file whose records another program writes.
    #[must_use]
    pub fn into_header(self) -> Header {
        self.header
    }

    /// Splits the file into the header and the records, so that different threads can write them.
    #[must_use]
    pub fn into_parts<R>(self) -> (HeaderPage, Records<R>) {
        let (page, records) = self.file.split_at(HEADER_SIZE);
        let records = Records {
            file: records,
            kind: PhantomData,
        };
        (
            HeaderPage {
                page,
                header: self.header,
            },
            records,
        )
    }
}

/// Writes the header while another thread writes records.
#[derive(Debug)]
pub struct HeaderPage {
    page: MappedFile,
    header: Header,
}

impl HeaderPage {
    /// Changes the header.
    pub fn update(&mut self, change: impl FnOnce(&mut Header)) {
        change(&mut self.header);
        self.page.octets_mut()[..size_of::<Header>()].copy_from_slice(self.header.as_bytes());
    }
}

/// The records of a file that is being written, or those of some of its destinations.
#[derive(Debug)]
pub struct Records<R> {
    file: MappedFile,
    kind: PhantomData<R>,
}

impl<R: FromBytes + IntoBytes + KnownLayout + Immutable> Records<R> {
    /// Returns the records.
    ///
    /// # Panics
    /// If the size of the memory is not a multiple of the record size.
    #[must_use]
    pub fn slice_mut(&mut self) -> &mut [R] {
        <[R]>::mut_from_bytes(self.file.octets_mut())
            .expect("pages are aligned, and the room was made for whole records")
    }

    /// Splits off the first `count` records. Returns them and the rest.
    ///
    /// # Panics
    /// If there are fewer than `count` records.
    #[must_use]
    pub fn split_at(self, count: usize) -> (Self, Self) {
        let (first, rest) = self.file.split_at(count * size_of::<R>());
        let part = |file| Self {
            file,
            kind: PhantomData,
        };
        (part(first), part(rest))
    }
}

/// A record file that was read back.
#[derive(Clone, Debug)]
pub struct ReadRecords<R> {
    /// The header of the file.
    pub header: Header,
    /// The records of the file.
    pub records: Vec<R>,
}

impl<R> ReadRecords<R> {
    /// Bounds the counters of a file that another machine wrote: they are added up later.
    pub(crate) fn bound_counters(&mut self) {
        let header = &mut self.header;
        for counter in [
            &mut header.unrecorded,
            &mut header.overflows,
            &mut header.malformed,
            &mut header.refusals,
        ] {
            *counter = (*counter).min(crate::limits::FAR_COUNTER_MAX);
        }
    }
}

impl ReadRecords<SupplierRecord> {
    /// Reads a supplier's file.
    ///
    /// # Errors
    /// [`RecordError::Io`], [`RecordError::NotRecords`].
    pub fn supplier(path: &Path) -> Result<Self, RecordError> {
        read(path, SUPPLIER_MAGIC)
    }

    /// Returns the records of one destination, or the common records if all destinations share them.
    #[must_use]
    pub fn of_destination(&self, index: u16) -> &[SupplierRecord] {
        let slot = u64::from(index).min(self.header.slots.saturating_sub(1));
        let capacity = usize::try_from(self.header.capacity).unwrap_or(0);
        let from = usize::try_from(slot).unwrap_or(0).saturating_mul(capacity);
        self.records
            .get(from..from.saturating_add(capacity))
            .unwrap_or(&[])
    }
}

impl ReadRecords<ConsumerRecord> {
    /// Reads a consumer's file up to its last arrival.
    ///
    /// # Errors
    /// [`RecordError::Io`], [`RecordError::NotRecords`].
    pub fn consumer(path: &Path) -> Result<Self, RecordError> {
        let mut read = read(path, CONSUMER_MAGIC)?;
        let arrivals = read
            .records
            .partition_point(|record: &ConsumerRecord| record.received_ns != 0);
        read.records.truncate(arrivals);
        Ok(read)
    }
}

fn read<R: FromBytes + Immutable + KnownLayout + Clone>(
    path: &Path,
    magic: [u8; 8],
) -> Result<ReadRecords<R>, RecordError> {
    let size_max = HEADER_SIZE as u64 + RECORDS_MAX * size_of::<R>() as u64;
    let octets = regular::read(path, size_max).map_err(|error| RecordError::io(path, error))?;
    let broken = || RecordError::NotRecords {
        path: path.display().to_string(),
    };
    let (header, _) = Header::read_from_prefix(&octets).map_err(|_| broken())?;
    let body = octets.get(HEADER_SIZE..).ok_or_else(broken)?;
    let count = header
        .slots
        .checked_mul(header.capacity)
        .ok_or_else(broken)?;
    let whole = body.chunks_exact(size_of::<R>());
    let is_whole = whole.len() as u64 == count && whole.remainder().is_empty();
    let seal: [u8; 8] = octets[CHECKSUM_AT..HEADER_SIZE]
        .try_into()
        .map_err(|_| broken())?;
    let is_intact = match header.finished {
        0 => seal == [0; 8],
        _ => checksum_of(&mut &octets[..]).is_ok_and(|checksum| seal == checksum.to_ne_bytes()),
    };
    if header.magic == magic && !is_intact {
        return Err(RecordError::Damaged {
            path: path.display().to_string(),
        });
    }
    // Without slots any capacity would fit.
    if header.magic != magic || header.slots == 0 || !is_whole {
        return Err(broken());
    }
    let records = whole
        .map(|octets| R::read_from_bytes(octets).map_err(|_| broken()))
        .collect::<Result<_, _>>()?;
    Ok(ReadRecords { header, records })
}

/// Why records cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// More records than [`RECORDS_MAX`].
    #[error("The stream has more messages than records are kept of ({max}); shorten it or lower its rate.", max = crate::limits::RECORDS_MAX)]
    TooMany,
    /// The file cannot be created or read.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: String,
        /// The system's error.
        error: io::Error,
    },
    /// The records are not those that the part wrote.
    #[error("{path} does not match its checksum: it was changed after its part ended.")]
    Damaged {
        /// The file.
        path: String,
    },
    /// The file is not one of this program's record files.
    #[error("{path} is not a whole record file of this version.")]
    NotRecords {
        /// The file.
        path: String,
    },
}

impl RecordError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        Self::Io {
            path: path.display().to_string(),
            error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn records_of_each_destination_come_back_though_the_writer_never_finished() {
        let scratch = Scratch::new();
        let path = scratch.path("s");
        let file = RecordFile::supplier(&path, 4, 2, 3, 384).expect("made");
        let (mut header, records) = file.into_parts::<SupplierRecord>();
        let (_, mut second) = records.split_at(3);
        second.slice_mut()[1].sent_ns = 77;
        header.update(|header| header.start_ns = 5);
        let read = ReadRecords::supplier(&path).expect("read while still mapped");
        assert_eq!(
            (read.header.flow, read.header.start_ns, read.header.finished),
            (4, 5, 0)
        );
        assert_eq!(read.of_destination(0), [SupplierRecord::default(); 3]);
        assert_eq!(read.of_destination(1)[1].sent_ns, 77);
    }

    #[test]
    fn a_consumers_records_end_with_its_last_arrival() {
        let scratch = Scratch::new();
        let path = scratch.path("c");
        let file = RecordFile::consumer(&path, 4, 1, 10, 384).expect("made");
        let (_, mut records) = file.into_parts::<ConsumerRecord>();
        for (record, sequence) in records.slice_mut().iter_mut().zip([1, 0, 2]) {
            record.sequence = sequence;
            record.received_ns = 9;
        }
        let read = ReadRecords::consumer(&path).expect("read");
        let sequences: Vec<u64> = read.records.iter().map(|record| record.sequence).collect();
        assert_eq!(sequences, [1, 0, 2]);
    }

    #[test]
    fn files_have_the_size_that_is_foretold() {
        let scratch = Scratch::new();
        let (supplier, consumer) = (scratch.path("s"), scratch.path("c"));
        drop(RecordFile::supplier(&supplier, 0, 3, 700, 8).expect("made"));
        let capacity = consumer_capacity(9000);
        assert_eq!((capacity, consumer_capacity(1)), (11_250, 1025));
        drop(RecordFile::consumer(&consumer, 0, 0, capacity, 8).expect("made"));
        let size = |path| std::fs::metadata(path).expect("there").len();
        assert_eq!(size(&supplier), supplier_size_bytes(3, 700));
        assert_eq!(size(&consumer), consumer_size_bytes(9000));
    }

    #[test]
    fn any_octet_changed_in_a_finished_file_makes_it_damaged() {
        let scratch = Scratch::new();
        let path = scratch.path("s");
        let file = RecordFile::supplier(&path, 4, 2, 3, 384).expect("made");
        let (mut header, mut records) = file.into_parts::<SupplierRecord>();
        records.slice_mut()[5].sent_ns = 77;
        header.update(|header| header.finished = 1);
        let is_damaged = || {
            let error = ReadRecords::supplier(&path).err();
            matches!(error, Some(RecordError::Damaged { .. }))
        };
        assert!(is_damaged(), "it has no checksum");
        drop((header, records));
        seal(&path);
        let whole = std::fs::read(&path).expect("a file");
        assert_eq!(
            ReadRecords::supplier(&path).expect("whole").records[5].sent_ns,
            77
        );
        let finished = std::mem::offset_of!(Header, finished);
        for place in [8, finished, 2000, CHECKSUM_AT, HEADER_SIZE, whole.len() - 1] {
            let mut octets = whole.clone();
            octets[place] ^= 1;
            std::fs::write(&path, octets).expect("written");
            assert!(is_damaged(), "octet {place}");
        }
        for length in [0, 1, HEADER_SIZE, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).expect("written");
            assert!(ReadRecords::supplier(&path).is_err(), "{length} octets");
        }
    }

    #[test]
    fn what_is_no_record_file_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path("x");
        std::fs::write(&path, b"short").expect("written");
        assert!(matches!(
            ReadRecords::consumer(&path),
            Err(RecordError::NotRecords { .. })
        ));
        let supplier = scratch.path("s");
        drop(RecordFile::supplier(&supplier, 0, 1, 1, 8).expect("made"));
        assert!(matches!(
            ReadRecords::consumer(&supplier),
            Err(RecordError::NotRecords { .. })
        ));
        let octets = std::fs::read(&supplier).expect("read");
        std::fs::write(&path, &octets[..octets.len() - 1]).expect("written");
        assert!(matches!(
            ReadRecords::supplier(&path),
            Err(RecordError::NotRecords { .. })
        ));
        assert!(matches!(
            RecordFile::supplier(&scratch.path("m"), 0, 1 << 20, 1 << 20, 8),
            Err(RecordError::TooMany)
        ));
    }
}

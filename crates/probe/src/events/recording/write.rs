//! Writes a recording.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use deckwatch_cdr::{ByteOrder, CharSet, Codec, EncodeError, Write, Writer};
use deckwatch_os::regular;
use serde::Serialize;

use super::{
    EVENT_HEAD_SIZE, End, FRAME_SIZE, Head, KIND_END, KIND_EVENT, KIND_HEAD, MAGIC, RecordingError,
    VERSION, checksum,
};
use crate::events::Received;
use crate::events::subscription::Losses;
use crate::limits::RECORD_SIZE_MAX;

/// Writes events to a new file, each with one write.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    /// CLOCK_MONOTONIC at the start, nanoseconds.
    start_ns: i64,
    /// Octets of whole records in the file.
    size_bytes: u64,
    events: u64,
    unwritten: u64,
    /// The octets of the record that is written next; kept for its memory.
    record: Vec<u8>,
}

impl Recorder {
    /// Creates the file, which must not exist; only its user may read it. `start_ns` is the start of the recording, nanoseconds of
    /// CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The operating system's error; `AlreadyExists` if there is such a file.
    pub fn create(path: &Path, head: &Head, start_ns: i64) -> Result<Self, RecordingError> {
        let mut options = OpenOptions::new();
        let file = regular::open_private(path, options.write(true).create_new(true))?;
        let mut recorder = Self {
            file,
            start_ns,
            size_bytes: 0,
            events: 0,
            unwritten: 0,
            record: [&MAGIC[..], &VERSION.to_le_bytes()].concat(),
        };
        recorder.append()?;
        recorder.add_json(KIND_HEAD, head)?;
        Ok(recorder)
    }

    /// Writes an event. If the write fails, the file is cut to its whole records.
    ///
    /// # Errors
    /// The operating system's error, for example a full disk.
    pub fn add(&mut self, received: &Received) -> Result<(), RecordingError> {
        let after_ns = received.at.monotonic_ns.saturating_sub(self.start_ns);
        let after_ns = u64::try_from(after_ns).unwrap_or(0);
        let data = &received.event.data;
        let order = data
            .sole_form()
            .map_or(ByteOrder::NATIVE, |(order, _)| order);
        self.begin(KIND_EVENT);
        self.record.push(u8::from(order == ByteOrder::Little));
        self.record.resize(FRAME_SIZE + EVENT_HEAD_SIZE, 0);
        let encode = |record: &mut Vec<u8>| -> Result<(), EncodeError> {
            let mut w = Writer::new(record)
                .with_order(order)
                .with_codec(Codec::DEFAULT.with_chars(CharSet::Utf8));
            after_ns.write(&mut w)?;
            received.event.header.is_some().write(&mut w)?;
            received.event.header.unwrap_or_default().write(&mut w)?;
            received.event.payload.write(&mut w)?;
            data.write(&mut w)
        };
        let is_encoded = encode(&mut self.record).is_ok();
        if !is_encoded || self.record.len() > RECORD_SIZE_MAX {
            self.unwritten += 1;
            return Ok(());
        }
        self.end_record()?;
        self.events += 1;
        Ok(())
    }

    /// Writes the end, and waits until the disk has the whole file.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn finish(mut self, losses: Losses, unwanted: u64) -> Result<End, RecordingError> {
        let end = End {
            events: self.events,
            dropped: losses.dropped,
            dropped_by_channel: losses.dropped_by_channel,
            unwanted,
            unwritten: self.unwritten,
        };
        self.add_json(KIND_END, &end)?;
        self.file.sync_all()?;
        Ok(end)
    }

    /// Events in the file.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Octets in the file.
    #[must_use]
    pub const fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn add_json(&mut self, kind: u8, value: &impl Serialize) -> Result<(), RecordingError> {
        self.begin(kind);
        serde_json::to_writer(&mut self.record, value).map_err(io::Error::from)?;
        self.end_record()
    }

    fn begin(&mut self, kind: u8) {
        self.record.clear();
        self.record.resize(FRAME_SIZE, 0);
        self.record.push(kind);
    }

    /// Fills in length and checksum, and writes the record.
    fn end_record(&mut self) -> Result<(), RecordingError> {
        let body_len = self.record.len() - FRAME_SIZE;
        // `RECORD_SIZE_MAX` fits; a head or an end has some hundred octets.
        let len = u32::try_from(body_len).unwrap_or(u32::MAX).to_le_bytes();
        let (frame, body) = self.record.split_at_mut(FRAME_SIZE);
        frame[..4].copy_from_slice(&len);
        frame[4..].copy_from_slice(&checksum(len, body).to_le_bytes());
        self.append()
    }

    fn append(&mut self) -> Result<(), RecordingError> {
        if let Err(error) = self.file.write_all(&self.record) {
            // If this fails too, a reader finds the torn record.
            let _ = self.file.set_len(self.size_bytes);
            return Err(error.into());
        }
        self.size_bytes += self.record.len() as u64;
        Ok(())
    }
}

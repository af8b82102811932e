//! Reads a recording, to its end or to where it is torn.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use deckwatch_cdr::{Any, ByteOrder, CharSet, Codec, DecodeError, Parse as _, Reader};
use deckwatch_event::limits::PUBLICATIONS_MAX;
use deckwatch_event::rtec_event_comm::EventHeader;
use deckwatch_os::regular;

use super::{
    EVENT_HEAD_SIZE, End, FRAME_SIZE, Head, KIND_END, KIND_EVENT, KIND_HEAD, MAGIC, PREAMBLE_SIZE,
    Recorded, RecordingError, VERSION, checksum,
};
use crate::events::Event;
use crate::events::selection::Selection;
use crate::limits::RECORD_SIZE_MAX;

/// A recording that is read from its beginning.
#[derive(Debug)]
pub struct Recording {
    file: BufReader<File>,
    head: Head,
    size_bytes: u64,
    /// Where the next record begins.
    offset: u64,
    first_offset: u64,
    events: u64,
    tail: Option<Tail>,
}

/// How a recording ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The recorder has ended it in order.
    Ended(End),
    /// The recorder still runs, or was killed between two records.
    Open,
    /// The recorder was killed while it wrote a record, or the machine failed: so many octets are no whole record.
    Torn(u64),
    /// A record is damaged that is not the last one. Nothing behind it is read: where the next one begins is not known.
    Damaged {
        /// Where the record begins.
        offset: u64,
        /// What is wrong with it.
        fact: String,
    },
}

/// The extent of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// What was recorded.
    pub head: Head,
    /// Whole events.
    pub events: u64,
    /// Time from the start of the recording to the first and to the last event; `None` without any.
    pub span: Option<(Duration, Duration)>,
    /// The events among them that are wanted.
    pub wanted: Wanted,
    /// How it ends.
    pub tail: Tail,
}

/// The events of a recording that are wanted, by what a channel takes of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Type and source of their headers; no more than one more than a supplier can publish.
    pub headers: BTreeSet<(i32, i32)>,
    /// Events with a header.
    pub with_header: u64,
    /// Events without one.
    pub without_header: u64,
    /// Events with octets beside their value.
    pub with_payload: u64,
}

impl Wanted {
    fn add(&mut self, event: &Event) {
        self.with_payload += u64::from(!event.payload.is_empty());
        match event.header {
            None => self.without_header += 1,
            Some(header) => {
                self.with_header += 1;
                if self.headers.len() <= PUBLICATIONS_MAX {
                    self.headers.insert((header.r#type, header.source));
                }
            }
        }
    }
}

/// Reads a whole recording, and checks every record up to the first that is damaged.
///
/// # Errors
/// [`RecordingError`]; a damaged event is none.
pub fn survey(path: &Path, wanted: &Selection) -> Result<Survey, RecordingError> {
    let mut recording = Recording::open(path)?;
    let mut span: Option<(Duration, Duration)> = None;
    let mut of_wanted = Wanted::default();
    while let Some(recorded) = recording.read_whole()? {
        let (first, _) = span.unwrap_or((recorded.after, recorded.after));
        span = Some((first, recorded.after));
        if wanted.wants(&recorded.event) {
            of_wanted.add(&recorded.event);
        }
    }
    Ok(Survey {
        events: recording.events,
        span,
        wanted: of_wanted,
        tail: recording.tail.unwrap_or(Tail::Open),
        head: recording.head,
    })
}

/// One record, or why there is none.
enum Record {
    Body(Vec<u8>),
    Tail(Tail),
}

impl Recording {
    /// Opens a recording and reads its head.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let file = regular::open(path)?;
        let size_bytes = file.metadata()?.len();
        let mut file = BufReader::new(file);
        let mut preamble = [0; PREAMBLE_SIZE];
        let read = file.read_exact(&mut preamble);
        let (magic, version) = preamble.split_at(MAGIC.len());
        if read.is_err() || magic != MAGIC {
            return Err(RecordingError::NotARecording);
        }
        match u32::from_le_bytes([version[0], version[1], version[2], version[3]]) {
            VERSION => {}
            other => return Err(RecordingError::Version(other)),
        }
        let mut recording = Self {
            file,
            head: Head::default(),
            size_bytes,
            offset: PREAMBLE_SIZE as u64,
            first_offset: 0,
            events: 0,
            tail: None,
        };
        match recording.record()? {
            Record::Body(body) if body.first() == Some(&KIND_HEAD) => {
                let head = serde_json::from_slice(&body[1..]);
                recording.head = head.map_err(|error| recording.damaged(&error.to_string()))?;
            }
            Record::Body(_) => return Err(recording.damaged("its first record is not its head")),
            // Killed before it had written its head: there are no events.
            Record::Tail(tail) => recording.tail = Some(tail),
        }
        recording.first_offset = recording.offset;
        Ok(recording)
    }

    /// What was recorded.
    #[must_use]
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the next event, or `None` at the end of the whole records.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn read(&mut self) -> Result<Option<Recorded>, RecordingError> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let start = self.offset;
        let body = match self.record()? {
            Record::Body(body) => body,
            Record::Tail(tail) => {
                self.tail = Some(tail);
                return Ok(None);
            }
        };
        let damaged = |fact: &str| RecordingError::Damaged {
            offset: start,
            fact: fact.to_owned(),
            events: self.events,
        };
        match body.first() {
            Some(&KIND_EVENT) => {
                let recorded = event(&body).map_err(|fact| damaged(&fact))?;
                self.events += 1;
                Ok(Some(recorded))
            }
            Some(&KIND_END) => {
                let end = serde_json::from_slice(&body[1..]);
                let end = end.map_err(|error| damaged(&error.to_string()))?;
                if self.offset != self.size_bytes {
                    return Err(damaged("octets follow the end of the recording"));
                }
                self.tail = Some(Tail::Ended(end));
                Ok(None)
            }
            _ => Err(damaged("its kind is not known")),
        }
    }

    /// As [`Self::read`], but a damaged record is the end: the events before it are whole.
    ///
    /// # Errors
    /// [`RecordingError`], but not [`RecordingError::Damaged`].
    pub fn read_whole(&mut self) -> Result<Option<Recorded>, RecordingError> {
        match self.read() {
            Err(RecordingError::Damaged { offset, fact, .. }) => {
                self.tail = Some(Tail::Damaged { offset, fact });
                Ok(None)
            }
            read => read,
        }
    }

    /// Goes back to the first event.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn rewind(&mut self) -> Result<(), RecordingError> {
        self.file.seek(SeekFrom::Start(self.first_offset))?;
        (self.offset, self.events, self.tail) = (self.first_offset, 0, None);
        Ok(())
    }

    /// Reads the next record and checks it.
    fn record(&mut self) -> Result<Record, RecordingError> {
        let left = self.size_bytes.saturating_sub(self.offset);
        if left == 0 {
            return Ok(Record::Tail(Tail::Open));
        }
        let mut frame = [0; FRAME_SIZE];
        if left < FRAME_SIZE as u64 {
            return Ok(Record::Tail(Tail::Torn(left)));
        }
        self.file.read_exact(&mut frame)?;
        let [a, b, c, d, e, f, g, h] = frame;
        let (len, sum) = ([a, b, c, d], u32::from_le_bytes([e, f, g, h]));
        let body_len = u32::from_le_bytes(len) as usize;
        if body_len > RECORD_SIZE_MAX {
            return Err(self.damaged("its length is beyond the limit"));
        }
        let record_len = (FRAME_SIZE + body_len) as u64;
        if left < record_len {
            return Ok(Record::Tail(Tail::Torn(left)));
        }
        let mut body = vec![0; body_len];
        self.file.read_exact(&mut body)?;
        if body.is_empty() || checksum(len, &body) != sum {
            // A failure of the machine may leave the last record with its length and without its octets, or zeros.
            return if left == record_len || self.is_rest_zero(&frame, &body)? {
                Ok(Record::Tail(Tail::Torn(left)))
            } else {
                Err(self.damaged("its checksum is wrong"))
            };
        }
        self.offset += record_len;
        Ok(Record::Body(body))
    }

    /// Whether a record and all octets behind it are zero.
    fn is_rest_zero(&mut self, frame: &[u8], body: &[u8]) -> Result<bool, RecordingError> {
        let is_zero = |octets: &[u8]| octets.iter().all(|octet| *octet == 0);
        if !is_zero(frame) || !is_zero(body) {
            return Ok(false);
        }
        let mut octets = [0; 4096];
        loop {
            match self.file.read(&mut octets)? {
                0 => return Ok(true),
                read if is_zero(&octets[..read]) => {}
                _ => return Ok(false),
            }
        }
    }

    fn damaged(&self, fact: &str) -> RecordingError {
        RecordingError::Damaged {
            offset: self.offset,
            fact: fact.to_owned(),
            events: self.events,
        }
    }
}

/// Reads the body of an event.
fn event(body: &[u8]) -> Result<Recorded, String> {
    let order = match body.get(1) {
        Some(0) => ByteOrder::Big,
        Some(1) => ByteOrder::Little,
        _ => return Err("its byte order is not known".to_owned()),
    };
    let octets = body.get(EVENT_HEAD_SIZE..).unwrap_or_default();
    let mut r = Reader::new(octets, order).with_codec(Codec::DEFAULT.with_chars(CharSet::Utf8));
    parse(&mut r).map_err(|error| error.to_string())
}

fn parse(r: &mut Reader<'_>) -> Result<Recorded, DecodeError> {
    let after_ns = u64::parse(r)?;
    let has_header = bool::parse(r)?;
    let header = EventHeader::parse(r)?;
    Ok(Recorded {
        after: Duration::from_nanos(after_ns),
        event: Event {
            header: has_header.then_some(header),
            payload: Vec::parse(r)?,
            data: Any::parse(r)?,
        },
    })
}

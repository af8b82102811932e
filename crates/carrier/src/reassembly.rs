//! Reassembles TCP streams from captured packets and cuts them into messages. A message gets the stamp of the packet
//! that contains its last octet.
//!
//! Octets are processed in stream order. Where packets leave, the first transmission of an octet counts. Where they
//! arrive, the packet that closes the last gap before the octet counts. Octets missing from the capture are skipped,
//! and the messages that contain them are counted as unread.

use std::collections::BTreeMap;

use deckwatch_giop::Frame;

use crate::body::FRAME_HEADER_SIZE;
use crate::limits::{BODY_SIZE_MAX, EARLY_OCTETS_MAX, GIOP_MESSAGE_SIZE_MAX};

/// How a stream is cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Each message follows its length in four octets, big-endian. All messages have this size.
    Length(u32),
    /// GIOP messages.
    Giop,
}

/// One direction of one connection.
#[derive(Debug)]
pub(crate) struct Reassembly {
    cut: Cut,
    /// Sequence number of the next octet in order; `None` before the first packet.
    next: Option<u32>,
    /// Octets after a gap, with their stamps, keyed by their distance from the first octet seen.
    early: BTreeMap<u64, (i64, Vec<u8>)>,
    early_octets: usize,
    /// Distance of `next` from the first octet seen.
    distance: u64,
    cutter: Cutter,
}

impl Reassembly {
    /// Creates the state of a stream before its first packet.
    #[must_use]
    pub(crate) const fn new(cut: Cut) -> Self {
        Self {
            cut,
            next: None,
            early: BTreeMap::new(),
            early_octets: 0,
            distance: 0,
            cutter: Cutter::new(),
        }
    }

    /// Handles a SYN with this sequence number: the octets after it begin with a message.
    pub(crate) fn open(&mut self, at: u32) {
        let unread = self.cutter.unread;
        *self = Self::new(self.cut);
        self.next = Some(at.wrapping_add(1));
        self.cutter.unread = unread;
    }

    /// Processes a packet's octets. Calls `message` with each message that they complete.
    pub(crate) fn take(
        &mut self,
        at: u32,
        octets: &[u8],
        stamp_ns: i64,
        message: &mut dyn FnMut(&[u8], i64),
    ) {
        if octets.is_empty() {
            return;
        }
        let next = *self.next.get_or_insert_with(|| {
            self.cutter.in_step = false;
            at
        });
        // Half of the sequence number space is before `next`, half after it.
        let ahead = at.wrapping_sub(next).cast_signed();
        if ahead > 0 {
            self.keep_early(u64::from(ahead.unsigned_abs()), octets, stamp_ns);
            while self.early_octets > EARLY_OCTETS_MAX {
                self.step_over(message);
            }
            return;
        }
        let Some(fresh) = octets
            .get(ahead.unsigned_abs() as usize..)
            .filter(|fresh| !fresh.is_empty())
        else {
            return; // retransmission
        };
        self.advance(fresh, stamp_ns, message);
        self.take_followers(Some(stamp_ns), message);
    }

    /// Called at the end of the capture: processes the octets after the remaining gaps.
    pub(crate) fn finish(&mut self, message: &mut dyn FnMut(&[u8], i64)) {
        while !self.early.is_empty() {
            self.step_over(message);
        }
    }

    /// Returns the number of messages that could not be read, as far as it is known.
    #[must_use]
    pub(crate) const fn unread(&self) -> u64 {
        self.cutter.unread
    }

    fn keep_early(&mut self, ahead: u64, octets: &[u8], stamp_ns: i64) {
        let place = self
            .early
            .entry(self.distance + ahead)
            .or_insert_with(|| (stamp_ns, Vec::new()));
        if octets.len() > place.1.len() {
            self.early_octets += octets.len() - place.1.len();
            *place = (stamp_ns, octets.to_vec());
        }
    }

    fn advance(&mut self, octets: &[u8], stamp_ns: i64, message: &mut dyn FnMut(&[u8], i64)) {
        self.cutter.feed(self.cut, octets, stamp_ns, message);
        self.forward(octets.len() as u64);
    }

    fn forward(&mut self, octets: u64) {
        self.distance += octets;
        // The truncation is intended: sequence numbers are modulo 2^32.
        self.next = self.next.map(|next| next.wrapping_add(octets as u32));
    }

    /// Processes early octets that are now in order. `completing_ns` is the stamp of the packet that closed the gap
    /// before them.
    fn take_followers(&mut self, completing_ns: Option<i64>, message: &mut dyn FnMut(&[u8], i64)) {
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() > self.distance {
                return;
            }
            let (at, (own_ns, octets)) = entry.remove_entry();
            self.early_octets -= octets.len();
            let known = usize::try_from(self.distance - at).unwrap_or(usize::MAX);
            if let Some(fresh) = octets.get(known..).filter(|fresh| !fresh.is_empty()) {
                self.advance(fresh, completing_ns.unwrap_or(own_ns), message);
            }
        }
    }

    /// Skips the missing octets before the first early ones.
    fn step_over(&mut self, message: &mut dyn FnMut(&[u8], i64)) {
        let Some((&at, _)) = self.early.first_key_value() else {
            return;
        };
        let missing = at - self.distance;
        self.cutter.miss(self.cut, missing);
        self.forward(missing);
        // The gap is in the capture, not in the stream, so the octets' own stamps are right.
        self.take_followers(None, message);
    }
}

/// Cuts octets that are in order into messages.
#[derive(Debug)]
struct Cutter {
    message: Vec<u8>,
    /// Remaining octets of a message that is incomplete and therefore skipped.
    skip: u64,
    /// True if the next octet continues `message` or begins a new one.
    in_step: bool,
    unread: u64,
}

impl Cutter {
    const fn new() -> Self {
        Self {
            message: Vec::new(),
            skip: 0,
            in_step: true,
            unread: 0,
        }
    }

    fn feed(
        &mut self,
        cut: Cut,
        mut octets: &[u8],
        stamp_ns: i64,
        message: &mut dyn FnMut(&[u8], i64),
    ) {
        let skipped = usize::try_from(self.skip)
            .unwrap_or(usize::MAX)
            .min(octets.len());
        octets = &octets[skipped..];
        self.skip -= skipped as u64;
        if !self.in_step {
            let Some(start) = cut.first_start(octets) else {
                return;
            };
            octets = &octets[start..];
            self.in_step = true;
        }
        while !octets.is_empty() {
            let Some(need) = cut.need(&self.message) else {
                self.lose_step();
                return;
            };
            let (taken, rest) = octets.split_at(need.min(octets.len()));
            self.message.extend_from_slice(taken);
            octets = rest;
            match cut.need(&self.message) {
                Some(0) => {
                    message(&self.message, stamp_ns);
                    self.message.clear();
                }
                Some(_) => {}
                None => {
                    self.lose_step();
                    return;
                }
            }
        }
    }

    /// Skips octets that are missing from the capture. If the end of the current message is known, the rest of the
    /// message is skipped too.
    fn miss(&mut self, cut: Cut, octets: u64) {
        let to_end = match (self.skip, self.message.is_empty()) {
            (0, true) => None,
            (0, false) => {
                self.unread += 1;
                cut.rest(&self.message)
            }
            (skip, _) => Some(skip),
        };
        self.message.clear();
        self.skip = 0;
        match to_end.and_then(|to_end| to_end.checked_sub(octets)) {
            Some(skip) if self.in_step => self.skip = skip,
            _ => self.in_step = false,
        }
    }

    fn lose_step(&mut self) {
        self.unread += 1;
        self.message.clear();
        self.in_step = false;
    }
}

impl Cut {
    /// Returns how many octets a message that begins with `message` still needs: up to the end of its header, then up
    /// to its end. Returns 0 if the message is complete, `None` if the octets are not a message.
    fn need(self, message: &[u8]) -> Option<usize> {
        match self {
            Self::Length(expected) => {
                let Some((header, body)) = message.split_first_chunk::<FRAME_HEADER_SIZE>() else {
                    return Some(FRAME_HEADER_SIZE - message.len());
                };
                let size = u32::from_be_bytes(*header);
                (size == expected && size <= BODY_SIZE_MAX)
                    .then(|| (size as usize).saturating_sub(body.len()))
            }
            Self::Giop => match Frame::parse(message, GIOP_MESSAGE_SIZE_MAX).ok()? {
                Frame::Need(count) => Some(count),
                Frame::Message(..) => Some(0),
            },
        }
    }

    /// Returns how many octets a message with a complete header still needs.
    fn rest(self, message: &[u8]) -> Option<u64> {
        let header_size = match self {
            Self::Length(_) => FRAME_HEADER_SIZE,
            Self::Giop => deckwatch_giop::HEADER_SIZE,
        };
        let need = self.need(message)?;
        (message.len() >= header_size).then_some(need as u64)
    }

    /// Returns the offset at which a message may begin, when the message boundaries are unknown.
    fn first_start(self, octets: &[u8]) -> Option<usize> {
        match self {
            Self::Length(size) => {
                let mut windows = octets.windows(FRAME_HEADER_SIZE);
                windows.position(|window| window == size.to_be_bytes())
            }
            Self::Giop => {
                let mut windows = octets.windows(deckwatch_giop::HEADER_SIZE);
                windows.position(|window| self.need(window).is_some())
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! The datagram of questions and answers. Both have the same length, so that answers amplify no flood.

use deckwatch_meter::clock::{SERVICES, SyncState};
use deckwatch_os::discipline::status_in_words;
use zerocopy::big_endian::{I32, I64, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A question, or the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Datagram {
    magic: [u8; 8],
    /// Drawn by the prober; answers repeat it.
    pub(super) nonce: U64,
    /// The number of the question; answers repeat it.
    pub(super) sequence: U64,
    /// The exchange whose far stamps follow; [`NONE`] in questions.
    pub(super) before: U64,
    /// When its question arrived, nanoseconds of CLOCK_MONOTONIC.
    pub(super) t2_ns: I64,
    /// When its answer left.
    pub(super) t3_ns: I64,
    /// The state of the responder's clock; zeroes in questions.
    pub(super) sync: WireSync,
}

/// A [`SyncState`] as octets.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub(super) struct WireSync {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, nanoseconds.
    pub(super) realtime_less_monotonic_ns: I64,
    offset_ns: I64,
    max_error_us: U32,
    estimated_error_us: U32,
    frequency_ppb: I32,
    tai_offset_s: I32,
    status: U32,
    steps: U32,
    /// A bit for each of [`SERVICES`].
    services: u8,
    synchronised: u8,
    zeroes: [u8; 2],
    /// Upper bound of the error of the far stamps, nanoseconds.
    pub(super) stamp_error_ns: U32,
}

/// Stands for no exchange.
pub(super) const NONE: u64 = u64::MAX;

/// Octets of a datagram.
pub(super) const SIZE: usize = size_of::<Datagram>();

const QUESTION: [u8; 8] = *b"DWCLKQ\0\x01";
const ANSWER: [u8; 8] = *b"DWCLKA\0\x01";

impl Datagram {
    pub(super) fn question(nonce: u64, sequence: u64) -> Self {
        Self {
            magic: QUESTION,
            nonce: nonce.into(),
            sequence: sequence.into(),
            before: NONE.into(),
            t2_ns: 0.into(),
            t3_ns: 0.into(),
            sync: WireSync::default(),
        }
    }

    /// Returns the answer to this question. `before` are an earlier exchange of the same prober and its far stamps.
    pub(super) fn answer(&self, before: Option<(u64, i64, i64)>, sync: WireSync) -> Self {
        let (before, t2_ns, t3_ns) = before.unwrap_or((NONE, 0, 0));
        Self {
            magic: ANSWER,
            before: before.into(),
            t2_ns: t2_ns.into(),
            t3_ns: t3_ns.into(),
            sync,
            ..*self
        }
    }

    /// Returns `None` for octets that are no question.
    pub(super) fn parse_question(octets: &[u8]) -> Option<Self> {
        let datagram = Self::read_from_bytes(octets).ok()?;
        (datagram.magic == QUESTION).then_some(datagram)
    }

    /// Returns `None` for octets that are no answer to this prober.
    pub(super) fn parse_answer(octets: &[u8], nonce: u64) -> Option<Self> {
        let datagram = Self::read_from_bytes(octets).ok()?;
        (datagram.magic == ANSWER && datagram.nonce.get() == nonce).then_some(datagram)
    }
}

impl WireSync {
    pub(super) fn of(
        state: &SyncState,
        status: u32,
        (realtime_less_monotonic_ns, stamp_error_ns): (i64, u64),
    ) -> Self {
        let bit = |index: usize| u8::from(state.services.iter().any(|one| one == SERVICES[index]));
        let services = (0..SERVICES.len()).fold(0, |all, index| all | bit(index) << index);
        let small = |value: u64| U32::new(u32::try_from(value).unwrap_or(u32::MAX));
        let signed = |value: i64| I32::new(i32::try_from(value).unwrap_or(0));
        Self {
            realtime_less_monotonic_ns: realtime_less_monotonic_ns.into(),
            offset_ns: state.offset_ns.into(),
            max_error_us: small(state.max_error_us),
            estimated_error_us: small(state.estimated_error_us),
            frequency_ppb: signed(state.frequency_ppb),
            tai_offset_s: signed(state.tai_offset_s),
            status: status.into(),
            steps: small(state.steps),
            services,
            synchronised: u8::from(state.synchronised),
            zeroes: [0; 2],
            stamp_error_ns: small(stamp_error_ns),
        }
    }

    pub(super) fn state(&self) -> SyncState {
        let runs = |index: usize| self.services & 1 << index != 0;
        let names = (0..SERVICES.len()).filter(|&index| runs(index));
        SyncState {
            synchronised: self.synchronised == 1,
            status: status_in_words(self.status.get()),
            offset_ns: self.offset_ns.get(),
            frequency_ppb: self.frequency_ppb.get().into(),
            max_error_us: self.max_error_us.get().into(),
            estimated_error_us: self.estimated_error_us.get().into(),
            tai_offset_s: self.tai_offset_s.get().into(),
            services: names.map(|index| SERVICES[index].to_owned()).collect(),
            steps: self.steps.get().into(),
        }
    }
}

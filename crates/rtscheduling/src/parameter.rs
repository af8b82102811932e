//! The scheduling parameter, and the service context that carries it.

use std::time::Duration;

use deckwatch_cdr::{ByteOrder, DecodeError, Parse, Reader};
use deckwatch_giop::UtcT;

use deckwatch_orb::Priority;

use crate::IdType;

/// The scheduling parameter of a segment. Each discipline uses some of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SchedulingParameter {
    /// Used by [`crate::RankedScheduler::fixed_priority`]: the highest value is first.
    pub priority: Option<Priority>,
    /// Used by [`crate::RankedScheduler::most_important_first`]: the highest value is first.
    pub importance: Option<i16>,
    /// Used by [`crate::RankedScheduler::earliest_deadline_first`]: the earliest is first.
    pub deadline: Option<UtcT>,
    /// The processor time that the segment still needs. [`crate::RankedScheduler::least_laxity`] uses it with the
    /// deadline. A request carries what is left of it when the request is sent.
    pub execution_time: Option<Duration>,
}

/// The data of the service context SchedulingInfo. In a request: its distributable thread, with the execution time that
/// is left. In the reply to a request with an execution time: the same thread, and as execution time the processor time
/// that the request has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SchedulingInfo {
    pub(crate) id: IdType,
    pub(crate) parameter: SchedulingParameter,
}

/// The size of the service context SchedulingInfo as this crate writes it. An encapsulation contains: flags of the
/// parameters that are set (octet), [`MARK`] (unsigned long), the id (sequence of octets), priority, importance
/// (short), deadline (UtcT), execution time (TimeT).
pub(crate) const INFO_SIZE: usize = 56;

/// Distinguishes this crate's context from others with the same number, which are ignored: those of TAO, where each
/// scheduler has its own format, and FT_TRANSACTION_DEPTH of fault tolerance.
const MARK: u32 = 0x4457_5254;

const PRIORITY: u8 = 1;
const IMPORTANCE: u8 = 2;
const DEADLINE: u8 = 4;
const EXECUTION_TIME: u8 = 8;

/// Nanoseconds in a unit of TimeBase::TimeT.
const UNIT_NS: u128 = 100;

impl SchedulingInfo {
    /// Returns the context's data, in native byte order.
    pub(crate) fn to_octets(self) -> [u8; INFO_SIZE] {
        let Self { id, parameter } = self;
        let said = |flag, is_said: bool| if is_said { flag } else { 0 };
        let flags = said(PRIORITY, parameter.priority.is_some())
            | said(IMPORTANCE, parameter.importance.is_some())
            | said(DEADLINE, parameter.deadline.is_some())
            | said(EXECUTION_TIME, parameter.execution_time.is_some());
        let deadline = parameter.deadline.unwrap_or_default();
        let units = parameter.execution_time.unwrap_or_default().as_nanos() / UNIT_NS;
        let units = u64::try_from(units).unwrap_or(u64::MAX);
        let mut octets = [0; INFO_SIZE];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            octets[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&[ByteOrder::NATIVE.flag(), flags, 0, 0]);
        put(&MARK.to_ne_bytes());
        put(&(id.0.len() as u32).to_ne_bytes());
        put(&id.0);
        put(&parameter.priority.map_or(0, Priority::value).to_ne_bytes());
        put(&parameter.importance.unwrap_or(0).to_ne_bytes());
        put(&deadline.to_octets());
        put(&units.to_ne_bytes());
        octets
    }

    /// Parses the context's data. Returns `None` if this crate did not write the context.
    ///
    /// # Errors
    /// The data has the mark of this crate and cannot be read.
    pub(crate) fn parse(data: &[u8]) -> Result<Option<Self>, DecodeError> {
        let Ok(mut r) = Reader::new(data, ByteOrder::NATIVE).into_encapsulation() else {
            return Ok(None);
        };
        let (Ok(flags), Ok(MARK)) = (r.read_u8(), r.read_u32()) else {
            return Ok(None);
        };
        let id = r.read_octet_sequence()?;
        let Ok(id) = <[u8; 16]>::try_from(id) else {
            return Ok(None);
        };
        let (priority, importance) = (i16::parse(&mut r)?, i16::parse(&mut r)?);
        let (deadline, units) = (UtcT::parse(&mut r)?, u64::parse(&mut r)?);
        let execution_ns = u128::from(units) * UNIT_NS;
        let execution_time =
            u64::try_from(execution_ns).map_or(Duration::MAX, Duration::from_nanos);
        let priority = Priority::try_from(priority).ok();
        Ok(Some(Self {
            id: IdType(id),
            parameter: SchedulingParameter {
                priority: priority.filter(|_| flags & PRIORITY != 0),
                importance: (flags & IMPORTANCE != 0).then_some(importance),
                deadline: (flags & DEADLINE != 0).then_some(deadline),
                execution_time: (flags & EXECUTION_TIME != 0).then_some(execution_time),
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> SchedulingInfo {
        SchedulingInfo {
            id: IdType(*b"0123456789abcdef"),
            parameter: SchedulingParameter {
                priority: Priority::try_from(32_767).ok(),
                importance: Some(-3),
                deadline: Some(UtcT::new(u64::MAX, 9, -60)),
                execution_time: Some(Duration::from_nanos(700)),
            },
        }
    }

    #[test]
    fn a_thread_arrives_as_it_left() {
        for parameter in [
            all().parameter,
            SchedulingParameter::default(),
            SchedulingParameter {
                importance: Some(0),
                ..SchedulingParameter::default()
            },
        ] {
            let sent = SchedulingInfo { parameter, ..all() };
            let arrived = SchedulingInfo::parse(&sent.to_octets());
            assert_eq!(arrived, Ok(Some(sent)));
        }
    }

    #[test]
    fn the_context_stands_as_it_is_described() {
        let octets = all().to_octets();
        let mut r = Reader::new(&octets, ByteOrder::NATIVE)
            .into_encapsulation()
            .unwrap();
        assert_eq!(r.read_u8(), Ok(15));
        assert_eq!(r.read_u32(), Ok(MARK));
        assert_eq!(r.read_octet_sequence(), Ok(&b"0123456789abcdef"[..]));
        assert_eq!(
            (i16::parse(&mut r), i16::parse(&mut r)),
            (Ok(32_767), Ok(-3))
        );
        assert_eq!(UtcT::parse(&mut r), Ok(UtcT::new(u64::MAX, 9, -60)));
        assert_eq!(u64::parse(&mut r), Ok(7));
        assert_eq!(r.remaining(), 0);
    }

    #[test]
    fn contexts_of_others_are_passed_over_and_ours_cut_short_are_refused() {
        for foreign in [
            &[][..],
            &[1],
            // FT_TRANSACTION_DEPTH of fault tolerance, and an id of TAO.
            &[1, 0, 0, 0, 2, 0, 0, 0],
            &[7, 0, 0, 0, 0, 0, 0, 0],
            &[0; INFO_SIZE],
        ] {
            assert_eq!(SchedulingInfo::parse(foreign), Ok(None), "{foreign:?}");
        }
        let whole = all().to_octets();
        for len in 8..whole.len() {
            assert!(SchedulingInfo::parse(&whole[..len]).is_err(), "{len}");
        }
    }
}

//! Universal time of the Time Service (TimeBase::UtcT), for absolute deadlines (CORBA 3.3 part 1, clause 17.2.4).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use deckwatch_cdr::{
    DecodeError, EncodeError, Parse, Reader, TypeCode, Typed, Write, Writer, typecode::Member,
};

/// TimeBase::UtcT: a point in universal time with the bound of its error, and the time zone of its writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UtcT {
    /// TimeBase::TimeT: units of 100 ns since 15 October 1582, 0:00.
    pub time: u64,
    /// The bound of the error, in units of 100 ns; at most [`UtcT::INACCURACY_MAX`].
    inaccuracy: u64,
    /// The writer's minutes east of Greenwich; does not change the point in time.
    pub tdf: i16,
}

impl UtcT {
    /// The largest inaccuracy that its 48 bits can express; in effect, unknown.
    pub const INACCURACY_MAX: u64 = (1 << 48) - 1;

    /// Returns a point in time with an error of at most `inaccuracy` units of 100 ns; larger values become the maximum
    /// of 48 bits.
    #[must_use]
    pub const fn new(time: u64, inaccuracy: u64, tdf: i16) -> Self {
        let inaccuracy = if inaccuracy > Self::INACCURACY_MAX {
            Self::INACCURACY_MAX
        } else {
            inaccuracy
        };
        Self {
            time,
            inaccuracy,
            tdf,
        }
    }

    /// Returns the time of nanoseconds since 1970, as CLOCK_REALTIME counts them, with the bound of that clock's error.
    #[must_use]
    pub fn from_unix_ns(unix_ns: u64, bound: Duration) -> Self {
        let inaccuracy = bound.as_nanos().div_ceil(u128::from(UNIT_NS));
        let inaccuracy = u64::try_from(inaccuracy).unwrap_or(u64::MAX);
        Self::new(UNIX_EPOCH_UNITS + unix_ns / UNIT_NS, inaccuracy, 0)
    }

    /// Nanoseconds since 1970; 0 for earlier times, `u64::MAX` for times that are too late.
    #[must_use]
    pub const fn unix_ns(&self) -> u64 {
        self.time
            .saturating_sub(UNIX_EPOCH_UNITS)
            .saturating_mul(UNIT_NS)
    }

    /// The bound of the error, in units of 100 ns.
    #[must_use]
    pub const fn inaccuracy(&self) -> u64 {
        self.inaccuracy
    }

    /// The bound of the error.
    #[must_use]
    pub const fn inaccuracy_ns(&self) -> u64 {
        self.inaccuracy.saturating_mul(UNIT_NS)
    }

    /// Inaccuracy and time zone in one word.
    #[must_use]
    pub const fn detail(&self) -> u64 {
        self.inaccuracy << 16 | self.tdf.cast_unsigned() as u64
    }

    /// Returns the time of these units and this [`UtcT::detail`].
    #[must_use]
    pub const fn with_detail(time: u64, detail: u64) -> Self {
        Self::new(time, detail >> 16, (detail as u16).cast_signed())
    }

    /// The octets of the value in native byte order, from a multiple of eight on.
    #[must_use]
    pub fn to_octets(self) -> [u8; 16] {
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&self.time.to_ne_bytes());
        octets[8..12].copy_from_slice(&(self.inaccuracy as u32).to_ne_bytes());
        octets[12..14].copy_from_slice(&((self.inaccuracy >> 32) as u16).to_ne_bytes());
        octets[14..].copy_from_slice(&self.tdf.to_ne_bytes());
        octets
    }
}

/// With inaccuracy 0; use [`UtcT::new`] where the error is known.
impl From<SystemTime> for UtcT {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Self::from_unix_ns(unix_ns, Duration::ZERO)
    }
}

impl Write for UtcT {
    const SIZE_MAX: usize = 7 + 16;

    fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.time.write(w)?;
        (self.inaccuracy as u32).write(w)?;
        ((self.inaccuracy >> 32) as u16).write(w)?;
        self.tdf.write(w)
    }
}

impl<'a> Parse<'a> for UtcT {
    const SIZE_MIN: usize = 16;

    fn parse(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let time = u64::parse(r)?;
        let low = u32::parse(r)?;
        let high = u16::parse(r)?;
        let tdf = i16::parse(r)?;
        Ok(Self::new(time, u64::from(high) << 32 | u64::from(low), tdf))
    }
}

impl Typed for UtcT {
    fn type_code() -> TypeCode {
        let alias = |name, code: &TypeCode| {
            let id = format!("IDL:omg.org/TimeBase/{name}:1.0");
            TypeCode::alias(&id, name, code)
        };
        let time = alias("TimeT", &u64::type_code());
        let tdf = alias("TdfT", &i16::type_code());
        let (low, high) = (u32::type_code(), u16::type_code());
        let member = |name, type_code| Member { name, type_code };
        TypeCode::structure(
            "IDL:omg.org/TimeBase/UtcT:1.0",
            "UtcT",
            &[
                member("time", &time),
                member("inacclo", &low),
                member("inacchi", &high),
                member("tdf", &tdf),
            ],
        )
    }
}

/// Nanoseconds in a unit of TimeBase::TimeT.
const UNIT_NS: u64 = 100;

/// 1 January 1970 in units of TimeBase::TimeT: 141,427 days after the beginning of the Gregorian calendar.
const UNIX_EPOCH_UNITS: u64 = 141_427 * 86_400 * 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use deckwatch_cdr::{Any, ByteOrder};

    #[test]
    fn the_epoch_of_unix_has_the_number_that_uuids_of_version_1_have_it_by() {
        // RFC 9562 counts from the same day in the same units and prints this number.
        assert_eq!(UNIX_EPOCH_UNITS, 0x01B2_1DD2_1381_4000);
        let one_second = UtcT::from_unix_ns(1_000_000_000, Duration::from_nanos(101));
        assert_eq!(one_second.time, UNIX_EPOCH_UNITS + 10_000_000);
        assert_eq!(one_second.inaccuracy(), 2);
        assert_eq!(one_second.unix_ns(), 1_000_000_000);
        assert_eq!(UtcT::new(5, 0, 0).unix_ns(), 0);
        assert_eq!(UtcT::from(UNIX_EPOCH), UtcT::new(UNIX_EPOCH_UNITS, 0, 0));
    }

    #[test]
    fn a_time_reads_back_as_it_was_written_in_both_its_forms() {
        for time in [
            UtcT::new(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654, -120),
            UtcT::new(u64::MAX, u64::MAX, 720),
            UtcT::default(),
        ] {
            let mut octets = Vec::new();
            time.write(&mut Writer::new(&mut octets)).unwrap();
            assert_eq!(octets, time.to_octets());
            let read = UtcT::parse(&mut Reader::new(&octets, ByteOrder::NATIVE));
            assert_eq!(read, Ok(time));
            assert_eq!(UtcT::with_detail(time.time, time.detail()), time);
            assert_eq!(Any::from_value(&time).unwrap().extract(), Ok(time));
        }
        assert_eq!(UtcT::new(1, u64::MAX, 0).inaccuracy(), UtcT::INACCURACY_MAX);
    }
}

//! The age of events when they are received: time from the stamp in the event to its receipt.
//!
//! The age is one way. It contains the difference of the clocks of both hosts, unless supplier and consumer share one.

use std::time::SystemTime;

use deckwatch_cdr::TypeCode;
use deckwatch_cdr::value::{MemberPath, Value};
use deckwatch_meter::histogram::LatencyHistogram;
use deckwatch_meter::limits::HISTOGRAM_NS_MAX;

use super::Received;
use super::shown::value_of;
use crate::limits::P99_SAMPLES_MIN;

/// Where the stamp of an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StampPlace {
    /// `creation_time` in the header of an event of the real-time channel, in units of 100 ns.
    Header,
    /// One member of the value; without a unit an integer is nanoseconds and a floating-point number seconds.
    Member(String, Option<Unit>),
    /// A member with the seconds, and one with the rest in a unit, nanoseconds if none is given.
    Members(String, String, Option<Unit>),
}

/// The unit of a stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
    /// 100 ns, the unit of `TimeBase::TimeT`.
    TimeT,
}

impl Unit {
    const fn ns(self) -> i128 {
        match self {
            Self::S => 1_000_000_000,
            Self::Ms => 1_000_000,
            Self::Us => 1_000,
            Self::Ns => 1,
            Self::TimeT => 100,
        }
    }
}

impl std::str::FromStr for Unit {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "s" => Self::S,
            "ms" => Self::Ms,
            "us" => Self::Us,
            "ns" => Self::Ns,
            "100ns" => Self::TimeT,
            _ => return Err("expected s, ms, us, ns or 100ns"),
        })
    }
}

/// The clock of a stamp, as its size tells: no host has run for 30 years, and no event is older than 2000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StampClock {
    /// Nanoseconds since 1970.
    Utc,
    /// CLOCK_MONOTONIC of this host.
    Monotonic,
}

/// Reads the stamps of events.
#[derive(Debug)]
pub struct Stamps {
    place: StampPlace,
    /// The types that events may have, as in [`Shown::with_types`](super::shown::Shown::with_types).
    known: Vec<TypeCode>,
    /// The paths in the type of the last event.
    paths: Option<(TypeCode, Vec<MemberPath>)>,
}

impl Stamps {
    /// Returns a reader of stamps at this place.
    #[must_use]
    pub const fn at(place: StampPlace) -> Self {
        Self {
            place,
            known: Vec::new(),
            paths: None,
        }
    }

    /// Reads the values of events by these types where they fit, as [`Shown`](super::shown::Shown) does.
    #[must_use]
    pub fn with_types(self, known: Vec<TypeCode>) -> Self {
        Self { known, ..self }
    }

    /// Returns the age of an event, nanoseconds; negative if the stamp is in the future.
    ///
    /// # Errors
    /// The reason, as a clause, if the event has no such stamp, or a stamp of 0: its supplier has set none.
    pub fn age_ns(&mut self, received: &Received) -> Result<i64, String> {
        let stamp_ns = match &self.place {
            StampPlace::Header => {
                let header = received.event.header.as_ref();
                let header =
                    header.ok_or("it has no header; `--stamp` names a member of its value")?;
                if header.creation_time == 0 {
                    return Err(
                        "the creation_time of its header is 0; `--stamp` names a member of its \
                                value"
                            .to_owned(),
                    );
                }
                time_t_ns(header.creation_time)
            }
            StampPlace::Member(path, unit) => {
                let (path, unit) = (path.clone(), *unit);
                let [value] = self.members(received, [&path])?;
                single_ns(&value, unit).ok_or_else(|| format!("{path} is no number"))?
            }
            StampPlace::Members(seconds, rest, unit) => {
                let paths = [seconds.clone(), rest.clone()];
                let unit = unit.unwrap_or(Unit::Ns);
                let values = self.members(received, [&paths[0], &paths[1]])?;
                let [seconds, rest] = values.map(|value| whole(&value));
                let no_integer = || format!("{} and {} are no integers", paths[0], paths[1]);
                let seconds_ns = seconds.ok_or_else(no_integer)? * Unit::S.ns();
                seconds_ns + rest.ok_or_else(no_integer)? * unit.ns()
            }
        };
        if stamp_ns == 0 {
            return Err("its stamp is 0; `--stamp` names another member".to_owned());
        }
        let now_ns = match clock_of(stamp_ns) {
            StampClock::Monotonic => i128::from(received.at.monotonic_ns),
            StampClock::Utc => since_1970_ns(received.at.utc),
        };
        let age_ns = now_ns - stamp_ns;
        Ok(i64::try_from(age_ns).unwrap_or(if age_ns < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Returns the values of members.
    fn members<const N: usize>(
        &mut self,
        received: &Received,
        paths: [&str; N],
    ) -> Result<[Value; N], String> {
        let (code, whole) = value_of(&received.event, &self.known);
        let mut whole = whole?;
        if self.paths.as_ref().is_none_or(|(known, _)| *known != code) {
            let resolved = paths.iter().map(|path| {
                let resolved = MemberPath::resolve(&code, path);
                resolved.map_err(|error| error.to_string())
            });
            let resolved = resolved.collect::<Result<_, _>>()?;
            self.paths = Some((code, resolved));
        }
        let resolved = self.paths.iter().flat_map(|(_, paths)| paths);
        let values: Vec<Value> = resolved
            .filter_map(|path| path.slot(&mut whole).cloned())
            .collect();
        values
            .try_into()
            .map_err(|_| "its value has no such member".to_owned())
    }
}

/// Returns the nanoseconds of a `TimeBase::TimeT`: since 1970 if it counts from 15 October 1582 as the standard says
/// (Time Service 1.1, clause 1.3.2.1), else as it is: some ORBs write the time since the start of the host.
fn time_t_ns(time: u64) -> i128 {
    let ns = i128::from(time) * Unit::TimeT.ns();
    if ns >= UTC_SINCE_1582_NS {
        ns - EPOCH_1582_NS
    } else {
        ns
    }
}

fn single_ns(value: &Value, unit: Option<Unit>) -> Option<i128> {
    let seconds = match value {
        Value::Double(seconds) => *seconds,
        Value::Float(seconds) => f64::from(*seconds),
        Value::ULongLong(time) if unit == Some(Unit::TimeT) => return Some(time_t_ns(*time)),
        _ => return Some(whole(value)? * unit.unwrap_or(Unit::Ns).ns()),
    };
    let ns = seconds * unit.unwrap_or(Unit::S).ns() as f64;
    ns.is_finite().then_some(ns as i128)
}

fn whole(value: &Value) -> Option<i128> {
    match value {
        Value::ULongLong(number) => Some(i128::from(*number)),
        other => other.as_number().map(i128::from),
    }
}

const fn clock_of(stamp_ns: i128) -> StampClock {
    if stamp_ns >= YEAR_2000_NS {
        StampClock::Utc
    } else {
        StampClock::Monotonic
    }
}

fn since_1970_ns(utc: SystemTime) -> i128 {
    let since = utc
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    i128::try_from(since.as_nanos()).unwrap_or(0)
}

/// The first moment of 2000, nanoseconds since 1970.
const YEAR_2000_NS: i128 = 946_684_800 * 1_000_000_000;
/// The first moment of 1970, nanoseconds since 15 October 1582.
const EPOCH_1582_NS: i128 = 12_219_292_800 * 1_000_000_000;
/// The least nanoseconds since 1582 that are taken as such.
const UTC_SINCE_1582_NS: i128 = EPOCH_1582_NS + YEAR_2000_NS;

/// Collects the ages of one window, or of the whole stream.
#[derive(Clone, Debug, Default)]
pub struct AgeWindow {
    ages: LatencyHistogram,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    future: u64,
}

/// The ages of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Ages {
    /// Events with a stamp.
    pub events: u64,
    /// The least age, nanoseconds; `None` without events.
    pub min_ns: Option<i64>,
    /// The median to three digits, nanoseconds; `None` without events, or if an age is negative or above one hour.
    pub p50_ns: Option<u64>,
    /// The 99th percentile; `None` with fewer than ten samples beyond it, or if an age is negative or above one hour.
    pub p99_ns: Option<u64>,
    /// The greatest age, nanoseconds.
    pub max_ns: Option<i64>,
    /// Events whose stamp is in the future: the clocks differ.
    pub future: u64,
}

impl AgeWindow {
    /// Counts an age.
    pub fn add(&mut self, age_ns: i64) {
        self.ages.record(age_ns);
        self.min_ns = Some(self.min_ns.map_or(age_ns, |min_ns| min_ns.min(age_ns)));
        self.max_ns = Some(self.max_ns.map_or(age_ns, |max_ns| max_ns.max(age_ns)));
        self.future += u64::from(age_ns < 0);
    }

    /// Returns the ages, and begins the next window.
    pub fn take(&mut self) -> Ages {
        let ages = self.ages();
        self.ages.clear();
        (self.min_ns, self.max_ns, self.future) = (None, None, 0);
        ages
    }

    /// Returns the ages.
    #[must_use]
    pub fn ages(&self) -> Ages {
        let events = self.ages.count();
        // The histogram has no negative ages, and none beyond its range.
        let is_sound = self.future == 0
            && (self.max_ns).is_none_or(|max_ns| max_ns.unsigned_abs() <= HISTOGRAM_NS_MAX);
        let of = |end_ns: Option<i64>| end_ns.map_or(0, |ns| u64::try_from(ns).unwrap_or(0));
        let (min_ns, max_ns) = (of(self.min_ns), of(self.max_ns));
        // The histogram returns the upper bound of a bucket.
        let quantile = |share, least| {
            let is_known = is_sound && events >= least;
            is_known.then(|| self.ages.quantile_ns(share).clamp(min_ns, max_ns))
        };
        Ages {
            events,
            min_ns: self.min_ns,
            p50_ns: quantile(0.5, 1),
            p99_ns: quantile(0.99, P99_SAMPLES_MIN),
            max_ns: self.max_ns,
            future: self.future,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Event, Moment};
    use deckwatch_cdr::value::write_value;
    use deckwatch_cdr::{Any, Writer};
    use deckwatch_event::rtec_event_comm::EventHeader;
    use deckwatch_idl::Model;
    use std::time::Duration;

    const UTC_NS: u64 = 1_790_000_000_500_000_000;
    const MONOTONIC_NS: i64 = 5_000_000_000;

    fn received(data: Any) -> Received {
        Received {
            event: Event::of(data),
            at: Moment {
                monotonic_ns: MONOTONIC_NS,
                utc: SystemTime::UNIX_EPOCH + Duration::from_nanos(UTC_NS),
            },
        }
    }

    fn header(idl_value: Vec<Value>) -> Received {
        let idl = "struct H { long long sec; unsigned long nsec; double at; string text; }; struct E { H header; };";
        let model = Model::parse("e.idl", idl).expect("an IDL");
        let code = model.type_code("E").expect("the type");
        let value = Value::Struct(vec![Value::Struct(idl_value)]);
        received(Any::from_dynamic(&code, &value).expect("an event"))
    }

    fn event(sec: i64, nsec: u32, at: f64) -> Received {
        let text = Value::String(String::new());
        header(vec![
            Value::LongLong(sec),
            Value::ULong(nsec),
            Value::Double(at),
            text,
        ])
    }

    fn age(place: StampPlace, received: &Received) -> Result<i64, String> {
        Stamps::at(place).age_ns(received)
    }

    fn member(path: &str, unit: Option<Unit>) -> StampPlace {
        StampPlace::Member(path.to_owned(), unit)
    }

    #[test]
    fn a_stamp_in_two_members_is_seconds_and_nanoseconds_of_either_clock() {
        let place = || StampPlace::Members("header.sec".to_owned(), "header.nsec".to_owned(), None);
        assert_eq!(
            age(place(), &event(1_790_000_000, 100_000_000, 0.0)),
            Ok(400_000_000)
        );
        assert_eq!(age(place(), &event(4, 999_999_999, 0.0)), Ok(1));
        assert_eq!(
            age(place(), &event(5, 7, 0.0)),
            Ok(-7),
            "a stamp in the future"
        );
    }

    #[test]
    fn a_stamp_of_0_is_none_wherever_it_stands() {
        let number = received(Any::from_value(&0_u64).expect("an event"));
        let two = StampPlace::Members("header.sec".to_owned(), "header.nsec".to_owned(), None);
        for (place, event) in [
            (two, event(0, 0, 0.0)),
            (member("header.at", None), event(0, 0, 0.0)),
            (member("", Some(Unit::TimeT)), number),
        ] {
            let told = age(place, &event).expect_err("no stamp");
            assert_eq!(told, "its stamp is 0; `--stamp` names another member");
        }
        let mut stamped = event(4, 0, 0.0);
        stamped.event.header = Some(EventHeader::default());
        let told = age(StampPlace::Header, &stamped).expect_err("no stamp");
        assert!(
            told.contains("creation_time of its header is 0") && told.contains("`--stamp`"),
            "{told}"
        );
        let creation_time = (UTC_NS + 12_219_292_800_000_000_000) / 100;
        stamped.event.header = Some(EventHeader {
            creation_time: creation_time - 3,
            ..EventHeader::default()
        });
        assert_eq!(age(StampPlace::Header, &stamped), Ok(300));
    }

    #[test]
    fn a_stamp_in_a_payload_is_read_by_a_known_type() {
        let idl = "struct Nav { unsigned long n; unsigned long long at; };";
        let model = Model::parse("nav.idl", idl).expect("an IDL");
        let code = model.type_code("Nav").expect("the type");
        let value = Value::Struct(vec![Value::ULong(7), Value::ULongLong(UTC_NS - 9)]);
        let mut carried = received(Any::empty());
        let mut payload = Vec::new();
        let mut w = Writer::new(&mut payload);
        write_value(&code, &value, &mut w).expect("octets");
        carried.event.payload = payload;
        let mut stamps = Stamps::at(member("at", None)).with_types(vec![code]);
        assert_eq!(stamps.age_ns(&carried), Ok(9));
        let unknown = age(member("at", None), &carried).expect_err("octets");
        assert!(unknown.contains("has no part at"), "{unknown}");
    }

    #[test]
    fn a_stamp_in_one_member_has_a_unit() {
        let number = |number: u64| received(Any::from_value(&number).expect("an event"));
        assert_eq!(age(member("", None), &number(UTC_NS - 3)), Ok(3));
        assert_eq!(
            age(member("", Some(Unit::Ms)), &number(4_900)),
            Ok(100_000_000)
        );
        // 100 ns since 1582, and since the start of the host.
        let since_1582 = (UTC_NS + 12_219_292_800_000_000_000) / 100;
        assert_eq!(
            age(member("", Some(Unit::TimeT)), &number(since_1582 - 2)),
            Ok(200)
        );
        assert_eq!(
            age(member("", Some(Unit::TimeT)), &number(49_999_999)),
            Ok(100)
        );
        assert_eq!(
            age(member("header.at", None), &event(0, 0, 4.5)),
            Ok(500_000_000)
        );
    }

    #[test]
    fn an_event_without_the_stamp_is_told() {
        let event = event(0, 0, 0.0);
        let missing = age(member("header.time", None), &event).expect_err("no such member");
        assert!(
            missing.contains("has no member time; it has sec, nsec, at, text"),
            "{missing}"
        );
        let text = age(member("header.text", None), &event).expect_err("a text");
        assert_eq!(text, "header.text is no number");
        let no_header = age(StampPlace::Header, &event).expect_err("no header");
        assert!(no_header.contains("`--stamp`"), "{no_header}");
    }

    #[test]
    fn ages_beyond_the_histogram_have_no_percentile() {
        let mut window = AgeWindow::default();
        let hour_ns = i64::try_from(HISTOGRAM_NS_MAX).expect("small");
        window.add(hour_ns);
        assert!(window.ages().p50_ns.is_some());
        for _ in 0..2_000 {
            window.add(24 * hour_ns);
        }
        let ages = window.ages();
        assert_eq!((ages.p50_ns, ages.p99_ns), (None, None));
        assert_eq!(ages.max_ns, Some(24 * hour_ns));
    }

    #[test]
    fn percentiles_lie_between_the_least_and_the_greatest_age() {
        let mut window = AgeWindow::default();
        // A bucket of this size is 64 ns wide.
        window.add(100_001);
        let ages = window.ages();
        assert_eq!((ages.p50_ns, ages.max_ns), (Some(100_001), Some(100_001)));
        for _ in 0..2_000 {
            window.add(100_001);
        }
        assert_eq!(window.ages().p99_ns, Some(100_001));
    }

    #[test]
    fn percentiles_need_ten_samples_beyond_them() {
        let mut window = AgeWindow::default();
        assert_eq!(window.ages().p50_ns, None);
        for age_ns in 0..999 {
            window.add(age_ns * 100);
        }
        assert_eq!(window.ages().p99_ns, None);
        window.add(7);
        assert!(window.ages().p99_ns.is_some());
        window.add(-5);
        let ages = window.take();
        assert_eq!(
            (ages.events, ages.min_ns, ages.max_ns),
            (1_001, Some(-5), Some(99_800))
        );
        assert_eq!((ages.future, ages.p50_ns), (1, None), "the clocks differ");
        assert_eq!(window.ages().events, 0);
    }
}

//! The two formats of strings in a mission file: durations ("50ms") and late budgets ("3 in 10_000").

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use deckwatch_meter::result::LateBudget;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// A duration as a mission file writes it: a decimal number and one of the units ns, us, ms, s, min, h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct DurationText(pub Duration);

/// A late budget as a mission file writes it: "3 in 10_000".
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct BudgetText(pub LateBudget);

/// A string that is not what its key needs; what it should be, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Expected {0}.")]
pub struct NotUnderstood(pub &'static str);

/// Name of the duration format in the schema and in errors.
pub(super) const DURATION_FORMAT: &str = "deckwatch-duration";
/// Name of the late budget format in the schema and in errors.
pub(super) const BUDGET_FORMAT: &str = "deckwatch-late-budget";

const UNITS_NS: [(&str, u64); 6] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("h", 3_600_000_000_000),
];

impl FromStr for DurationText {
    type Err = NotUnderstood;

    fn from_str(text: &str) -> Result<Self, NotUnderstood> {
        const EXPECTED: NotUnderstood = NotUnderstood(
            "a number and a unit (ns, us, ms, s, min, h), for example \"50ms\" or \"1.5s\"",
        );
        let number_len = text
            .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
            .ok_or(EXPECTED)?;
        let (number, unit) = text.split_at(number_len);
        let unit_ns = UNITS_NS
            .into_iter()
            .find_map(|(name, ns)| (name == unit.trim()).then_some(ns))
            .ok_or(EXPECTED)?;
        nanoseconds(number, unit_ns)
            .map(|ns| Self(Duration::from_nanos(ns)))
            .ok_or(EXPECTED)
    }
}

/// Converts `number` units to whole nanoseconds without floating-point rounding. Fractions of a nanosecond are cut off.
fn nanoseconds(number: &str, unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let mut ns = digits(whole)?.checked_mul(unit_ns)?;
    let mut place_ns = unit_ns;
    if fraction.is_empty() {
        return None;
    }
    for digit in fraction.chars() {
        place_ns /= 10;
        ns = ns.checked_add(u64::from(digit.to_digit(10)?) * place_ns)?;
    }
    Some(ns)
}

/// Parses a whole number with `_` between digits, as in TOML.
fn digits(text: &str) -> Option<u64> {
    let bare = text.replace('_', "");
    let sound = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && !text.contains("__");
    if sound { bare.parse().ok() } else { None }
}

impl FromStr for BudgetText {
    type Err = NotUnderstood;

    fn from_str(text: &str) -> Result<Self, NotUnderstood> {
        const EXPECTED: NotUnderstood =
            NotUnderstood("how many messages may be late in how many, for example \"3 in 10_000\"");
        let mut words = text.split_ascii_whitespace();
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(late), Some("in"), Some(of), None) => {
                let late = digits(late).ok_or(EXPECTED)?;
                let of = digits(of).ok_or(EXPECTED)?;
                Ok(Self(LateBudget { late, of }))
            }
            _ => Err(EXPECTED),
        }
    }
}

impl fmt::Display for DurationText {
    /// Writes the duration in the largest unit that needs no fraction.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos();
        let mut units = UNITS_NS;
        units.sort_by_key(|&(_, unit_ns)| std::cmp::Reverse(unit_ns));
        let (unit, unit_ns) = units
            .into_iter()
            .find(|&(_, unit_ns)| ns > 0 && ns.is_multiple_of(u128::from(unit_ns)))
            .unwrap_or(("s", 1_000_000_000));
        write!(f, "{}{unit}", ns / u128::from(unit_ns))
    }
}

impl TryFrom<String> for DurationText {
    type Error = NotUnderstood;

    fn try_from(text: String) -> Result<Self, NotUnderstood> {
        text.parse()
    }
}

impl TryFrom<String> for BudgetText {
    type Error = NotUnderstood;

    fn try_from(text: String) -> Result<Self, NotUnderstood> {
        text.parse()
    }
}

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": DURATION_FORMAT,
            "pattern": r"^[0-9]+(_[0-9]+)*(\.[0-9]+)?\s*(ns|us|ms|s|min|h)\s*$",
        })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl JsonSchema for BudgetText {
    fn schema_name() -> Cow<'static, str> {
        "LateBudget".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": BUDGET_FORMAT,
            "pattern": r"^\s*[0-9]+(_[0-9]+)*\s+in\s+[0-9]+(_[0-9]+)*\s*$",
        })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duration(text: &str) -> Option<Duration> {
        text.parse::<DurationText>().ok().map(|parsed| parsed.0)
    }

    #[test]
    fn durations_are_exact_in_every_unit() {
        assert_eq!(duration("50ms"), Some(Duration::from_millis(50)));
        assert_eq!(duration("1us"), Some(Duration::from_micros(1)));
        assert_eq!(duration("7ns"), Some(Duration::from_nanos(7)));
        assert_eq!(duration("0.1s"), Some(Duration::from_millis(100)));
        assert_eq!(duration("1.000000001s"), Some(Duration::new(1, 1)));
        assert_eq!(duration("62.5 ms"), Some(Duration::from_micros(62_500)));
        assert_eq!(duration("2min"), Some(Duration::from_secs(120)));
        assert_eq!(duration("1.5h"), Some(Duration::from_secs(5400)));
        assert_eq!(duration("1_000us"), Some(Duration::from_millis(1)));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "50",
            "ms",
            "-1ms",
            "1.ms",
            ".5s",
            "1..5s",
            "5 m s",
            "1e3ms",
            "_1ms",
            "1_ms",
            "99999999999999999999s",
            "9999999999h",
            "5 µs",
            "1_.5s",
        ] {
            assert_eq!(duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_are_said_in_their_largest_whole_unit() {
        for text in ["50ms", "1us", "1500ms", "2min", "0s", "90min", "3h", "20s"] {
            let parsed: DurationText = text.parse().expect("a duration");
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn budgets_are_late_in_how_many() {
        let of = |text: &str| text.parse::<BudgetText>().ok().map(|b| (b.0.late, b.0.of));
        assert_eq!(of("3 in 10_000"), Some((3, 10_000)));
        assert_eq!(of("0 in 1"), Some((0, 1)));
        for text in [
            "3",
            "3 of 10",
            "3 in",
            "3 in 10 20",
            "-1 in 10",
            "3 in 1e4",
            "3in10",
        ] {
            assert_eq!(of(text), None, "{text:?}");
        }
    }
}

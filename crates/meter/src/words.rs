//! Formats numbers for people, for the sentences of a result and the tables beside them.

use std::time::Duration;

/// Formats a number with a comma between thousands.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of messages, with the singular for one.
pub fn messages(number: u64) -> String {
    let noun = if number == 1 { "message" } else { "messages" };
    format!("{} {noun}", count(number))
}

/// Formats a number of points, with the singular for one.
pub fn points(number: usize) -> String {
    let noun = if number == 1 { "point" } else { "points" };
    format!("{} {noun}", count(number as u64))
}

/// Formats a share of one as a percentage with two significant digits.
#[must_use]
pub fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        return "0 %".to_owned();
    }
    let decimals = (1 - percent.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{percent:.decimals$} %")
}

/// Formats a duration in the unit that suits it. Below a minute it has three significant digits and no trailing zeros;
/// above, it has the two largest units.
#[must_use]
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let pair = |whole: u64, unit: &str, rest: u64, small: &str| match rest {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {small}"),
    };
    match seconds {
        0..60 => below_a_minute(duration.as_secs_f64()),
        60..3600 => pair(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => pair(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

fn below_a_minute(seconds: f64) -> String {
    let (value, unit) = [(1.0, "s"), (1e3, "ms"), (1e6, "us")]
        .into_iter()
        .map(|(times, unit)| (seconds * times, unit))
        .find(|(value, _)| *value >= 1.0)
        .unwrap_or((seconds * 1e9, "ns"));
    let decimals = match value {
        ..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let text = if decimals == 0 {
        &text
    } else {
        text.trim_end_matches('0').trim_end_matches('.')
    };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_is_no_plural() {
        let said = [0, 1, 2_000].map(messages);
        assert_eq!(said, ["0 messages", "1 message", "2,000 messages"]);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn shares_have_two_significant_digits() {
        assert_eq!(share(0.0), "0 %");
        assert_eq!(share(0.0003), "0.030 %");
        assert_eq!(share(0.0125), "1.2 %");
        assert_eq!(share(0.5), "50 %");
        assert_eq!(share(1.0), "100 %");
    }

    #[test]
    fn durations_have_three_digits_or_two_units() {
        let nanoseconds = |ns| duration(Duration::from_nanos(ns));
        assert_eq!(nanoseconds(0), "0 ns");
        assert_eq!(nanoseconds(850), "850 ns");
        assert_eq!(nanoseconds(1_500), "1.5 us");
        assert_eq!(nanoseconds(5_000_000), "5 ms");
        assert_eq!(nanoseconds(60_000_000), "60 ms");
        assert_eq!(nanoseconds(12_453_174_000), "12.5 s");
        assert_eq!(nanoseconds(20_000_000_000), "20 s");
        assert_eq!(duration(Duration::from_secs(60)), "1 min");
        assert_eq!(duration(Duration::from_secs(494)), "8 min 14 s");
        assert_eq!(duration(Duration::from_secs(5002)), "1 h 23 min");
        assert_eq!(duration(Duration::from_secs(90_000)), "1 d 1 h");
    }
}

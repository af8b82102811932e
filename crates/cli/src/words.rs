//! Numbers as people read them.

use std::time::Duration;

use deckwatch_meter::result::LateBudget;

/// With a comma between thousands.
pub(crate) fn count(number: u64) -> String {
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

/// In the two largest units that matter.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Without a fraction where there is none.
pub(crate) fn rate(hertz: f64) -> String {
    let text = format!("{hertz:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(crate) fn budget(budget: LateBudget) -> String {
    format!("{} in {}", count(budget.late), count(budget.of))
}

/// A share as a percentage with two significant digits.
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        return "0 %".to_owned();
    }
    let decimals = (1 - percent.log10().floor() as i32).clamp(0, 6) as usize;
    format!("{percent:.decimals$} %")
}

/// Nanoseconds in the unit that suits them.
pub(crate) fn latency(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        ..1e3 => format!("{ns} ns"),
        ..1e6 => format!("{:.1} us", ns / 1e3),
        ..1e9 => format!("{:.2} ms", ns / 1e6),
        _ => format!("{:.2} s", ns / 1e9),
    }
}

pub(crate) fn plural(noun: &str, number: usize) -> String {
    if number == 1 {
        noun.to_owned()
    } else {
        format!("{noun}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn durations_have_at_most_two_units() {
        assert_eq!(duration(Duration::from_millis(21_050)), "21.1 s");
        assert_eq!(duration(Duration::from_secs(5002)), "1 h 23 min");
        assert_eq!(duration(Duration::from_secs(150)), "2 min 30 s");
        assert_eq!(duration(Duration::from_secs(90_000)), "1 d 1 h");
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
    fn latencies_have_the_unit_that_suits_them() {
        assert_eq!(latency(850), "850 ns");
        assert_eq!(latency(38_400), "38.4 us");
        assert_eq!(latency(50_000_000), "50.00 ms");
        assert_eq!(latency(1_500_000_000), "1.50 s");
    }

    #[test]
    fn whole_rates_have_no_fraction() {
        assert_eq!(rate(20.0), "20");
        assert_eq!(rate(0.5), "0.5");
        assert_eq!(rate(1.0 / 3.0), "0.333");
    }
}

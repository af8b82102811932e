//! Formats numbers for the user.

use deckwatch_meter::result::LateBudget;
pub(crate) use deckwatch_meter::words::{count, duration, share};

/// Formats hertz with at most three decimals, without trailing zeros.
pub(crate) fn rate(hertz: f64) -> String {
    let text = format!("{hertz:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(crate) fn budget(budget: LateBudget) -> String {
    format!("{} in {}", count(budget.late), count(budget.of))
}

/// Formats nanoseconds in a suitable unit.
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

/// Formats what an emulated network does as a real one, and what it does not. No line if nothing is stated.
pub(crate) fn fidelity(emulated: &[String], not_emulated: &[String]) -> Vec<String> {
    let one = |word: &str, clause: &String| format!("  {word} {clause}");
    let not = not_emulated
        .iter()
        .map(|clause| one("Not emulated:", clause));
    let lines = emulated.iter().map(|clause| one("Emulated:", clause));
    lines.chain(not).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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

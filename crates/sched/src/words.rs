//! Durations in words.

/// Returns a duration in the unit that suits it, with all digits that it has.
#[must_use]
pub fn in_words(ns: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)];
    for (unit, unit_ns) in UNITS {
        if ns >= unit_ns {
            let fraction = format!(
                "{:09}",
                u128::from(ns % unit_ns) * 1_000_000_000 / u128::from(unit_ns)
            );
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            return format!("{}{point}{fraction} {unit}", ns / unit_ns);
        }
    }
    format!("{ns} ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_their_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1500, "1.5 us"),
            (50_000_000, "50 ms"),
            (62_500_000, "62.5 ms"),
            (1_000_000_001, "1.000000001 s"),
        ];
        for (ns, words) in cases {
            assert_eq!(in_words(ns), words);
        }
    }
}

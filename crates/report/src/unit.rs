//! Formats numbers for the reader: with a unit, with three figures, with thousands apart.

use deckwatch_text::is_shown;

/// Narrow no-break space, between a number and its unit, and between thousands.
const THIN: char = '\u{202f}';

/// Formats a duration with three figures and a suitable unit: `12.3 µs`, `50 ms`.
pub(crate) fn duration(ns: f64) -> String {
    for (unit, below) in [("ns", 999.5), ("µs", 999.5e3), ("ms", 999.5e6)] {
        if ns.abs() < below {
            let divisor = below / 999.5;
            return format!("{}{THIN}{unit}", figures(ns / divisor));
        }
    }
    if ns.abs() < 600e9 {
        format!("{}{THIN}s", figures(ns / 1e9))
    } else {
        long_duration(ns / 1e9)
    }
}

/// Formats a waiting time in two units: `8 min 20 s`, `3 days 4 h`.
pub(crate) fn long_duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "for ever".to_owned();
    }
    let whole = seconds.round().max(0.0) as u64;
    let pair = |n: u64, unit: &str, rest: u64, small: &str| match rest {
        0 => format!("{}{THIN}{unit}", count(n)),
        rest => format!("{}{THIN}{unit} {rest}{THIN}{small}", count(n)),
    };
    match whole {
        0..100 => format!("{}{THIN}s", figures(seconds)),
        100..3600 => pair(whole / 60, "min", whole % 60, "s"),
        3600..86_400 => pair(whole / 3600, "h", whole % 3600 / 60, "min"),
        86_400..172_800 => pair(1, "day", whole % 86_400 / 3600, "h"),
        _ => pair(whole / 86_400, "days", whole % 86_400 / 3600, "h"),
    }
}

/// Formats a count with its thousands apart.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() <= 4 {
        return digits;
    }
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(THIN);
        }
        out.push(digit);
    }
    out
}

/// Formats a share of one as a percentage with two figures: `0.03 %`.
pub(crate) fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        return format!("0{THIN}%");
    }
    let places = (1.0 - percent.abs().log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{}{THIN}%", trimmed(format!("{percent:.places$}")))
}

/// Formats a rate in hertz.
pub(crate) fn rate(hz: f64) -> String {
    format!("{}{THIN}Hz", figures(hz))
}

/// Formats a number with three figures and a unit that is scaled by thousands: `65.5 kB`, `1.2 Gbit/s`.
pub(crate) fn scaled(value: f64, unit: &str) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    let step = steps
        .into_iter()
        .find(|(scale, _)| value.abs() >= *scale * 0.9995);
    let (scale, letter) = step.unwrap_or((1.0, ""));
    format!("{}{THIN}{letter}{unit}", figures(value / scale))
}

/// Formats a number with three figures, without needless zeros.
pub(crate) fn figures(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return trimmed(format!("{value}"));
    }
    let places = (2.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    let text = trimmed(format!("{value:.places$}"));
    match text.parse::<u64>() {
        Ok(whole) => count(whole),
        Err(_) => text,
    }
}

/// Cuts a text to `chars` characters, with an ellipsis if something was cut. Characters that would change the direction
/// or the position of other text are replaced.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    let mut out: String = text.chars().take(chars).map(visible).collect();
    if text.chars().nth(chars).is_some() {
        out.push('…');
    }
    out
}

fn visible(letter: char) -> char {
    match letter {
        '\n' | '\t' => letter,
        letter if is_shown(letter) => letter,
        _ => char::REPLACEMENT_CHARACTER,
    }
}

fn trimmed(text: String) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(THIN, " ")
    }

    #[test]
    fn durations_take_the_unit_that_suits_them() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (384.0, "384 ns"),
            (999.7, "1 µs"),
            (12_345.0, "12.3 µs"),
            (50e6, "50 ms"),
            (100.25e6, "100 ms"),
            (1.254e9, "1.25 s"),
            (3_661e9, "1 h 1 min"),
            (-12_345.0, "-12.3 µs"),
        ] {
            assert_eq!(plain(&duration(ns)), text);
        }
    }

    #[test]
    fn long_durations_have_at_most_two_units() {
        assert_eq!(plain(&long_duration(12.0)), "12 s");
        assert_eq!(plain(&long_duration(500.0)), "8 min 20 s");
        assert_eq!(plain(&long_duration(7200.0)), "2 h");
        assert_eq!(plain(&long_duration(90_000.0)), "1 day 1 h");
        assert_eq!(plain(&long_duration(f64::INFINITY)), "for ever");
    }

    #[test]
    fn scaled_units_step_by_thousands() {
        assert_eq!(plain(&scaled(64.0, "B")), "64 B");
        assert_eq!(plain(&scaled(65_536.0, "B")), "65.5 kB");
        assert_eq!(plain(&scaled(1.25e9, "bit/s")), "1.25 Gbit/s");
        assert_eq!(plain(&scaled(999.6, "B")), "1 kB");
    }

    #[test]
    fn counts_have_their_thousands_apart() {
        assert_eq!(plain(&count(9999)), "9999");
        assert_eq!(plain(&count(10_000)), "10 000");
        assert_eq!(plain(&count(2_000_000)), "2 000 000");
    }

    #[test]
    fn shares_are_percentages_of_two_figures() {
        assert_eq!(plain(&share(0.0003)), "0.03 %");
        assert_eq!(plain(&share(0.0)), "0 %");
        assert_eq!(plain(&share(1.0)), "100 %");
        assert_eq!(plain(&share(0.00746)), "0.75 %");
        assert_eq!(plain(&share(0.000_001_25)), "0.00013 %");
    }

    #[test]
    fn a_cut_text_ends_with_an_ellipsis_and_splits_no_character() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }

    #[test]
    fn marks_that_turn_the_direction_of_text_are_replaced() {
        assert_eq!(cut("a\u{202e}b\u{7}\n", 9), "a\u{fffd}b\u{fffd}\n");
    }
}

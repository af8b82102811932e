//! Exact bounds of a share: C. J. Clopper and E. S. Pearson, "The use of confidence or fiducial limits illustrated in
//! the case of the binomial", Biometrika 26, 1934. They are computed with the incomplete beta function (NIST DLMF
//! 8.17), which also accepts an effective number of trials that is not whole.

use statrs::function::gamma::ln_gamma;

use crate::limits::{BETA_TERMS_MAX, CONFIDENCE};

/// Returns the one-sided 95% lower and upper bounds of a share, for `events` in `trials`. Without trials: 0 and 1.
///
/// At the lower bound, the probability of at least as many events is 5%. At the upper bound, the probability of at most
/// as many events is 5%.
#[must_use]
pub fn exact_bounds(events: f64, trials: f64) -> (f64, f64) {
    if trials <= 0.0 {
        return (0.0, 1.0);
    }
    let events = events.clamp(0.0, trials);
    let rest = trials - events;
    let lower = if events <= 0.0 {
        0.0
    } else {
        beta_quantile(events, rest + 1.0, 1.0 - CONFIDENCE)
    };
    let upper = if rest <= 0.0 {
        1.0
    } else {
        beta_quantile(events + 1.0, rest, CONFIDENCE)
    };
    (lower, upper)
}

/// Returns true if the upper bound of [`exact_bounds`] is at most `share`; it needs one evaluation instead of a search.
#[must_use]
pub fn upper_bound_within(events: f64, trials: f64, share: f64) -> bool {
    let rest = trials - events;
    if trials <= 0.0 || rest <= 0.0 {
        return share >= 1.0;
    }
    regularised_beta(events + 1.0, rest, share) >= CONFIDENCE
}

/// Returns true if the lower bound of [`exact_bounds`] is at least `share`.
#[must_use]
pub fn lower_bound_beyond(events: f64, trials: f64, share: f64) -> bool {
    chance_of_at_least(events, trials, share) <= 1.0 - CONFIDENCE
}

/// Returns the probability of at least `events` in `trials` if the share is `share`.
#[must_use]
pub fn chance_of_at_least(events: f64, trials: f64, share: f64) -> f64 {
    if events <= 0.0 {
        return 1.0;
    }
    regularised_beta(events, (trials - events).max(0.0) + 1.0, share)
}

/// Returns the argument at which the regularised incomplete beta function has the value `probability`, by bisection to
/// the last bit.
fn beta_quantile(a: f64, b: f64, probability: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 1.0_f64);
    loop {
        let middle = low + (high - low) / 2.0;
        // The last condition ends the search for a quantile that is too small to matter.
        if middle <= low || middle >= high || high < f64::MIN_POSITIVE {
            return middle;
        }
        if regularised_beta(a, b, middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Returns the regularised incomplete beta function I_x(a, b) for positive a and b. It evaluates the continued fraction
/// of DLMF 8.17.22 on the side of the mean where it converges fast, by the method of W. J. Lentz (Applied Optics 15,
/// 1976).
///
/// The number of terms grows with the square root of the larger parameter, so a small fixed number is wrong for large
/// samples. The remaining error is that of the difference of three `ln_gamma`: 1e-6 of the probability at 10^8 trials.
fn regularised_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    let below_mean = x < (a + 1.0) / (a + b + 2.0);
    // The argument is so far from the mean that the result underflows. The fraction, which has many terms there, is not
    // needed.
    if front == 0.0 {
        return if below_mean { 0.0 } else { 1.0 };
    }
    if below_mean {
        (front * beta_fraction(a, b, x) / a).clamp(0.0, 1.0)
    } else {
        (1.0 - front * beta_fraction(b, a, 1.0 - x) / b).clamp(0.0, 1.0)
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for term in 1..=BETA_TERMS_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: f64, expected: f64, relative: f64) {
        assert!(
            (found - expected).abs() <= relative * expected.abs(),
            "{found} is not {expected}"
        );
    }

    #[test]
    fn none_late_gives_the_rule_of_the_root() {
        for n in [1.0_f64, 10.0, 400.0, 9_985.0, 1e5, 1e8] {
            let (lower, upper) = exact_bounds(0.0, n);
            assert_eq!(lower, 0.0);
            assert_close(
                upper,
                -f64::exp_m1(0.05_f64.ln() / n),
                if n > 1e6 { 1e-7 } else { 1e-9 },
            );
        }
    }

    #[test]
    fn all_late_gives_the_mirror_of_none_late() {
        for n in [1.0, 10.0, 1e5] {
            let (lower, upper) = exact_bounds(n, n);
            assert_eq!(upper, 1.0);
            assert_close(lower, 0.05_f64.powf(1.0 / n), 1e-9);
        }
    }

    #[test]
    fn nothing_seen_says_nothing() {
        assert_eq!(exact_bounds(0.0, 0.0), (0.0, 1.0));
        assert!(!upper_bound_within(0.0, 0.0, 0.5));
    }

    #[test]
    fn bounds_agree_with_published_values() {
        // The values are from scipy.stats.beta.ppf(0.05, k, n - k + 1) and scipy.stats.beta.ppf(0.95, k + 1, n - k).
        for (k, n, lower, upper) in REFERENCE {
            let found = exact_bounds(k, n);
            let tolerance = if n > 1e6 { 1e-6 } else { 1e-9 };
            assert_close(found.0, lower, tolerance);
            assert_close(found.1, upper, tolerance);
        }
    }

    const REFERENCE: [(f64, f64, f64, f64); 11] = [
        (1.0, 10.0, 0.005116196891823701, 0.39416330243650466),
        (5.0, 10.0, 0.2224411010081294, 0.7775588989918706),
        (9.0, 10.0, 0.6058366975634952, 0.9948838031081763),
        (3.0, 10_000.0, 8.17739791029067e-05, 0.0007751813790100997),
        (21.0, 1e5, 0.00014072441872858688, 0.0003023904609063288),
        (883.0, 1e5, 0.008348956272669265, 0.009332308735152367),
        (32_000.0, 1e5, 0.31757250915206664, 0.32243520412579774),
        (1.5, 37.25, 0.004743587077182227, 0.14076684271342424),
        (1.0, 1e8, 5.129329437439552e-10, 4.7438644247114806e-08),
        (5e7, 1e8, 0.49991775231941443, 0.5000822476805855),
        (3e4, 1e8, 0.00029715714740537864, 0.00030286425750267046),
    ];

    #[test]
    fn upper_bound_within_says_what_the_bound_says() {
        for (events, trials) in [
            (0.0, 100.0),
            (3.0, 10_000.0),
            (21.0, 1e5),
            (883.0, 1e5),
            (1.5, 37.25),
        ] {
            let upper = exact_bounds(events, trials).1;
            assert!(upper_bound_within(events, trials, upper * 1.000_001));
            assert!(!upper_bound_within(events, trials, upper * 0.999_999));
        }
    }

    #[test]
    fn a_first_denominator_of_zero_does_not_end_the_fraction() {
        // I_x(1, 3) is 1 - (1 - x)^3, and the factor in front of the fraction 3 x (1 - x)^3.
        let fraction = beta_fraction(1.0, 3.0, 0.5);
        assert_close(fraction, 0.875 / 0.187_5, 1e-9);
    }

    #[test]
    fn bounds_cover_in_at_least_19_of_20_binomial_outcomes() {
        // Computed exactly by summing the binomial distribution: an exact bound never covers less than its confidence.
        let n = 60_u32;
        for share in [0.01, 0.05, 0.3, 0.5, 0.9] {
            let (mut below, mut above, mut probability) = (0.0, 0.0, (1.0_f64 - share).powi(60));
            for k in 0..=n {
                let (lower, upper) = exact_bounds(f64::from(k), f64::from(n));
                below += if upper < share { probability } else { 0.0 };
                above += if lower > share { probability } else { 0.0 };
                probability *= f64::from(n - k) / f64::from(k + 1) * share / (1.0 - share);
            }
            assert!(
                below <= 0.05 && above <= 0.05,
                "share {share}: {below}, {above}"
            );
        }
    }
}

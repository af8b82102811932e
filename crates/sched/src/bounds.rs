//! Utilisation, compared exactly, and the bounds of it that the papers give.

use std::cmp::Ordering;

use crate::error::SchedError;

/// Returns the utilisation, the sum of cost over period. The number is for a reader; [`compare_with_one`] is exact.
#[must_use]
pub fn utilisation(tasks: impl IntoIterator<Item = (u64, u64)>) -> f64 {
    let shares = tasks.into_iter().map(|(cost, period)| share(cost, period));
    shares.sum()
}

/// Compares the sum of cost over period with one, without rounding. Each share is written with 128 binary digits; sums
/// that differ from one by less than these count as one.
pub fn compare_with_one(tasks: impl IntoIterator<Item = (u64, u64)>) -> Ordering {
    // The sum's fraction, in units of 2^-128 with what the digits cut off, and its whole part.
    let (mut whole, mut high, mut low, mut cut) = (0_u128, 0_u128, 0_u128, 0_u128);
    for (cost, period) in tasks {
        let period = u128::from(period.max(1));
        let cost = u128::from(cost);
        whole += cost / period;
        let first = (cost % period) << 64;
        high += first / period;
        let second = (first % period) << 64;
        low += second / period;
        // A share that ends has at most 63 digits: its period is then a power of two below 2^64. What is left after 64
        // digits never ends.
        cut += u128::from(second != 0);
    }
    high += low >> 64;
    whole += high >> 64;
    let fraction = (high << 64) + (low & u128::from(u64::MAX));
    match whole {
        0 if u128::MAX - fraction < cut => Ordering::Equal,
        0 => Ordering::Less,
        1 if fraction == 0 && cut == 0 => Ordering::Equal,
        _ => Ordering::Greater,
    }
}

/// Returns the greatest utilisation of `count` tasks that rate-monotonic priorities always schedule, if deadlines are
/// periods: `n (2^(1/n) - 1)` (Liu and Layland, JACM 20(1), 1973, theorem 5). It falls from 1 to 0.693.
#[must_use]
pub fn liu_layland(count: usize) -> f64 {
    if count == 0 {
        return 1.0;
    }
    let n = count as f64;
    n * (2_f64.powf(1.0 / n) - 1.0)
}

/// Returns the product of `utilisation + 1` of all tasks. Rate-monotonic priorities schedule every set for which it is
/// at most 2, if deadlines are periods (Bini, Buttazzo, Buttazzo, IEEE Trans. Computers 52(7), 2003, theorem 1).
#[must_use]
pub fn hyperbolic(tasks: impl IntoIterator<Item = (u64, u64)>) -> f64 {
    let factors = tasks
        .into_iter()
        .map(|(cost, period)| share(cost, period) + 1.0);
    factors.product()
}

fn share(cost: u64, period: u64) -> f64 {
    if cost == 0 {
        0.0
    } else {
        cost as f64 / period as f64
    }
}

/// Returns the least common multiple of the periods: after it a synchronous schedule repeats.
///
/// # Errors
/// [`SchedError::HyperperiodOverflow`] if it does not fit 64 bits of nanoseconds.
pub fn hyperperiod(periods: impl IntoIterator<Item = u64>) -> Result<u64, SchedError> {
    periods.into_iter().try_fold(1, |so_far, period| {
        least_common_multiple(so_far, period).ok_or(SchedError::HyperperiodOverflow)
    })
}

pub(crate) fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest != 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    if divisor == 0 {
        return Some(0);
    }
    (a / divisor).checked_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_the_papers_numbers() {
        let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
        assert_eq!(rounded(liu_layland(1)), 1.0);
        assert_eq!(rounded(liu_layland(2)), 0.828);
        assert_eq!(rounded(liu_layland(3)), 0.78);
        assert_eq!(rounded(liu_layland(1_000_000)), 0.693);
        assert_eq!(liu_layland(0), 1.0);
        assert_eq!(rounded(hyperbolic([(1, 2), (1, 3)])), 2.0);
    }

    #[test]
    fn a_sum_is_compared_with_one_exactly() {
        assert_eq!(compare_with_one([]), Ordering::Less);
        assert_eq!(compare_with_one([(1, 2), (1, 4), (1, 4)]), Ordering::Equal);
        assert_eq!(compare_with_one([(1, 3), (2, 3)]), Ordering::Equal);
        assert_eq!(compare_with_one([(1, 3), (1, 3), (1, 3)]), Ordering::Equal);
        assert_eq!(compare_with_one([(3, 3)]), Ordering::Equal);
        let huge = 1 << 62;
        assert_eq!(
            compare_with_one([(1, 2), (huge, 2 * huge)]),
            Ordering::Equal
        );
        assert_eq!(
            compare_with_one([(1, 2), (huge - 1, 2 * huge)]),
            Ordering::Less
        );
        assert_eq!(
            compare_with_one([(1, 2), (huge + 1, 2 * huge)]),
            Ordering::Greater
        );
        assert_eq!(compare_with_one([(2, 2), (1, u64::MAX)]), Ordering::Greater);
        assert_eq!(compare_with_one([(u64::MAX, 1); 3]), Ordering::Greater);
    }

    #[test]
    fn a_sum_that_lacks_more_than_the_digits_of_its_shares_is_less_than_one() {
        // With p = 2^63 + 29 and q = 2^64 - 1, the sum is 1 - 1 / (p q). The first 128 digits of both shares sum up to
        // 1 - 3 * 2^-128. The other digits of both are less than 2 * 2^-128.
        let shares = [
            (4_533_521_848_623_533_886, (1 << 63) + 29),
            (9_379_700_376_462_483_872, u64::MAX),
        ];
        assert_eq!(compare_with_one(shares), Ordering::Less);
    }

    #[test]
    fn the_hyperperiod_is_the_least_common_multiple_or_an_error() {
        assert_eq!(hyperperiod([4, 6, 10]), Ok(60));
        assert_eq!(hyperperiod([]), Ok(1));
        let primes = [4_294_967_291, 4_294_967_279, 4_294_967_231];
        assert_eq!(hyperperiod(primes), Err(SchedError::HyperperiodOverflow));
    }

    #[test]
    fn the_utilisation_is_the_sum_of_the_shares() {
        assert!((utilisation([(1, 4), (1, 2), (0, 0)]) - 0.75).abs() < 1e-12);
    }
}

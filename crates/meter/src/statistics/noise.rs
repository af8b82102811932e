//! Noise for tests: values that keep a part of the value before them.

use super::simulated::Random;

/// A sum of four draws, with the variance 1.
pub(crate) fn drawn(random: &mut Random) -> f64 {
    let sum: u64 = (0..4).map(|_| random.below(1 << 20)).sum();
    ((sum as f64 + 2.0) / f64::from(1 << 20) - 2.0) * 3_f64.sqrt()
}

/// Values around 0, with the variance 1, that keep `kept` of the value before.
pub(crate) fn depending(kept: f64, count: usize, random: &mut Random) -> Vec<f64> {
    let own = (1.0 - kept * kept).sqrt();
    let mut value = drawn(random);
    let next = || {
        value = kept * value + own * drawn(random);
        value
    };
    std::iter::repeat_with(next).take(count).collect()
}

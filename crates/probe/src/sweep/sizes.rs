//! The sizes of a sweep: lists and ranges of octets, and their random order.

use deckwatch_carrier::limits::BODY_SIZE_MAX;
use deckwatch_meter::statistics::simulated::Random;

use crate::limits::{SWEEP_SIZE_MIN, SWEEP_SIZES_MAX};

/// Reads sizes: numbers and ranges `FIRST..LAST:STEP`, separated by commas, or the name of a preset. Returns them in
/// ascending order, each once.
///
/// # Errors
/// The words that cannot be read, and what to write instead.
pub fn parse_sizes(text: &str) -> Result<Vec<u32>, String> {
    let mut sizes = Vec::new();
    for item in text.split(',') {
        match item.trim() {
            "nttcp" => sizes.extend((16..=16_384).step_by(16)),
            "ffi" => sizes.extend(ffi()),
            item => sizes.extend(range(item)?),
        }
        if sizes.len() > SWEEP_SIZES_MAX {
            return Err(format!(
                "`{text}` has more than {SWEEP_SIZES_MAX} sizes: give a greater step"
            ));
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

/// The increments of the FFI report: 1, 10, 100 and 1000 octets, each for one decade.
fn ffi() -> impl Iterator<Item = u32> {
    let decade = |step: u32| (step..=10 * step).step_by(step as usize);
    let all = [1, 10, 100, 1_000].into_iter().flat_map(decade);
    all.filter(|size| *size >= SWEEP_SIZE_MIN)
}

fn range(item: &str) -> Result<impl Iterator<Item = u32> + use<>, String> {
    let number = |text: &str| -> Result<u32, String> {
        let size = text.trim().parse();
        let size = size.map_err(|_| format!("`{item}` is no size: {HINT}"))?;
        if (SWEEP_SIZE_MIN..=BODY_SIZE_MAX).contains(&size) {
            return Ok(size);
        }
        Err(format!(
            "`{item}`: a message has {SWEEP_SIZE_MIN} to {BODY_SIZE_MAX} octets: {SWEEP_SIZE_MIN} of them are its \
             number, by which losses are found; write {SWEEP_SIZE_MIN} for the smallest"
        ))
    };
    let Some((first, rest)) = item.split_once("..") else {
        let size = number(item)?;
        return Ok((size..=size).step_by(1));
    };
    let (last, step) = rest.split_once(':').unwrap_or((rest, "16"));
    let (first, last) = (number(first)?, number(last)?);
    let step: usize = step
        .trim()
        .parse()
        .map_err(|_| format!("`{item}` has no step: {HINT}"))?;
    if step == 0 || last < first {
        return Err(format!("`{item}` is no range: {HINT}"));
    }
    Ok((first..=last).step_by(step))
}

const HINT: &str = "write sizes such as `64,1024`, a range such as `16..1024:16`, `nttcp` or `ffi`";

/// Puts values into an order that the seed chooses, so that a drift of the machine is not taken for an effect of the
/// size.
pub(super) fn shuffle<T>(values: &mut [T], seed: u64) {
    let mut random = Random::new(seed);
    for end in (1..values.len()).rev() {
        let other = usize::try_from(random.below(end as u64 + 1)).unwrap_or(end);
        values.swap(end, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_lists_ranges_and_presets_in_ascending_order() {
        assert_eq!(parse_sizes("64"), Ok(vec![64]));
        assert_eq!(parse_sizes("16..64:16,20,32"), Ok(vec![16, 20, 32, 48, 64]));
        assert_eq!(parse_sizes("64..64:16"), Ok(vec![64]));
        let nttcp = parse_sizes("nttcp").expect("a preset");
        assert_eq!((nttcp.len(), nttcp[0], nttcp[1_023]), (1_024, 16, 16_384));
        let ffi = parse_sizes("ffi").expect("a preset");
        assert_eq!(ffi[..5], [8, 9, 10, 20, 30]);
        assert_eq!(ffi[ffi.len() - 2..], [9_000, 10_000]);
        assert_eq!(ffi.len(), 3 + 9 + 9 + 9);
    }

    #[test]
    fn a_wrong_size_is_shown_with_what_to_write_instead() {
        for (text, words) in [
            ("4", "8 to 1048576 octets"),
            ("1,4", "`1`: a message has 8"),
            ("1..16:1", "write 8 for the smallest"),
            ("64..16:16", "`64..16:16` is no range"),
            ("16..64:0", "no range"),
            ("many", "write sizes such as"),
            ("16..64:x", "no step"),
            ("8..1048576:1", "greater step"),
        ] {
            let error = parse_sizes(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_seed_chooses_an_order_in_which_every_value_stands_once() {
        let of = |seed| {
            let mut values: Vec<u32> = (0..100).collect();
            shuffle(&mut values, seed);
            values
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        let mut sorted = of(1);
        assert!(!sorted.is_sorted());
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn as_many_sizes_as_a_sweep_may_have_are_read() {
        let count = u32::try_from(SWEEP_SIZES_MAX).expect("few");
        let last = SWEEP_SIZE_MIN + count - 1;
        let most = parse_sizes(&format!("{SWEEP_SIZE_MIN}..{last}:1"));
        assert_eq!(most.map(|sizes| sizes.len()), Ok(SWEEP_SIZES_MAX));
        assert!(parse_sizes(&format!("{SWEEP_SIZE_MIN}..{}:1", last + 1)).is_err());
    }

    #[test]
    fn every_order_is_chosen_by_some_seed() {
        let orders = (0..200).map(|seed| {
            let mut values = [0, 1, 2];
            shuffle(&mut values, seed);
            values
        });
        let orders: std::collections::BTreeSet<[i32; 3]> = orders.collect();
        assert_eq!(orders.len(), 6, "{orders:?}");
    }
}

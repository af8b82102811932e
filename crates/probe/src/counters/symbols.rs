//! Entry points of functions in a shared library: the dynamic symbols of a 64-bit little-endian ELF file.

/// File offsets of the functions in `names` that the file defines. Returns nothing for a damaged or different file.
pub(super) fn function_offsets(file: &[u8], names: &[&str]) -> Vec<u64> {
    offsets(file, names).unwrap_or_default()
}

fn offsets(file: &[u8], names: &[&str]) -> Option<Vec<u64>> {
    const LITTLE_ENDIAN_64: &[u8] = b"\x7fELF\x02\x01";
    const DYNAMIC_SYMBOLS: u32 = 11;
    const SECTION_SIZE: u64 = 64;
    const SYMBOL_SIZE: u64 = 24;
    const FUNCTION: u8 = 2;
    file.starts_with(LITTLE_ENDIAN_64).then_some(())?;
    let (sections, count) = (word(file, 0x28, 0)?, half(file, 0x3c, 0)?);
    let section = |index: u64| sections.checked_add(index.checked_mul(SECTION_SIZE)?);
    let symbols = (0..u64::from(count))
        .filter_map(section)
        .find(|at| quarter(file, *at, 4) == Some(DYNAMIC_SYMBOLS))?;
    let (begin, size) = (word(file, symbols, 0x18)?, word(file, symbols, 0x20)?);
    let strings = section(u64::from(quarter(file, symbols, 0x28)?))?;
    let strings = word(file, strings, 0x18)?;
    let mut found = Vec::new();
    for index in 0..size / SYMBOL_SIZE {
        let symbol = begin.checked_add(index * SYMBOL_SIZE)?;
        let [kind, _] = *array(file, symbol, 4)?;
        let (section, address) = (half(file, symbol, 6)?, word(file, symbol, 8)?);
        let name = strings.checked_add(u64::from(quarter(file, symbol, 0)?))?;
        let is_wanted = |wanted: &&str| {
            let octets = file.get(usize::try_from(name).ok()?..)?;
            Some(octets.strip_prefix(wanted.as_bytes())?.first() == Some(&0))
        };
        if kind & 0xf == FUNCTION
            && section != 0
            && names.iter().any(|wanted| is_wanted(wanted) == Some(true))
        {
            found.extend(offset_of(file, address));
        }
    }
    Some(found)
}

/// The file offset of what is loaded at `address`.
fn offset_of(file: &[u8], address: u64) -> Option<u64> {
    const LOADED: u32 = 1;
    const SEGMENT_SIZE: u64 = 56;
    let (segments, count) = (word(file, 0x20, 0)?, half(file, 0x38, 0)?);
    (0..u64::from(count)).find_map(|index| {
        let segment = segments.checked_add(index * SEGMENT_SIZE)?;
        let (offset, begin) = (word(file, segment, 8)?, word(file, segment, 0x10)?);
        let size = word(file, segment, 0x20)?;
        let within = address.checked_sub(begin)?;
        (quarter(file, segment, 0)? == LOADED && within < size)
            .then(|| offset.checked_add(within))
            .flatten()
    })
}

/// The number at `at` plus `offset`.
fn array<const N: usize>(file: &[u8], at: u64, offset: u64) -> Option<&[u8; N]> {
    let at = at.checked_add(offset)?;
    file.get(usize::try_from(at).ok()?..)?.first_chunk()
}

fn word(file: &[u8], at: u64, offset: u64) -> Option<u64> {
    array(file, at, offset).map(|octets| u64::from_le_bytes(*octets))
}

fn quarter(file: &[u8], at: u64, offset: u64) -> Option<u32> {
    array(file, at, offset).map(|octets| u32::from_le_bytes(*octets))
}

fn half(file: &[u8], at: u64, offset: u64) -> Option<u16> {
    array(file, at, offset).map(|octets| u16::from_le_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_define_nothing_and_harm_nobody() {
        let own = std::fs::read("/proc/self/exe").expect("its own program");
        for len in (0..own.len().min(4_096)).step_by(7) {
            assert!(function_offsets(&own[..len], &["malloc"]).is_empty());
        }
        assert!(function_offsets(b"#!/bin/sh\n", &["malloc"]).is_empty());
        let mut lying = own[..64].to_vec();
        lying[0x28..0x30].fill(0xff);
        assert!(function_offsets(&lying, &["malloc"]).is_empty());
    }
}

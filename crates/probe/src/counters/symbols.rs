//! Entry points of functions in a program or shared library: the symbols of a 64-bit little-endian ELF file.

/// A table of symbols; the number is the type of its section.
#[derive(Clone, Copy)]
pub(super) enum Table {
    /// All functions of a program; a stripped program has none.
    All = 2,
    /// Those that a library offers.
    Dynamic = 11,
}

/// File offsets of the functions that the file defines and whose names are wanted. Returns nothing for a damaged or
/// different file.
pub(super) fn function_offsets(
    file: &[u8],
    table: Table,
    is_wanted: &dyn Fn(&[u8]) -> bool,
) -> Vec<u64> {
    offsets(file, table, is_wanted).unwrap_or_default()
}

/// Whether a function takes a `Mutex` or a `RwLock` of Rust's library, by its name in the program. Both forms of names
/// write the length of each part before it; the type of the value, or its place, stands before the function.
pub(super) fn is_rust_lock(name: &[u8]) -> bool {
    const LOCKS: [(&[u8], &[&[u8]]); 2] = [
        (b"4sync6poison5mutex", &[b"4lock", b"8try_lock"]),
        (
            b"4sync6poison6rwlock",
            &[b"4read", b"8try_read", b"5write", b"9try_write"],
        ),
    ];
    let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
    let takes = |function: &&[u8]| {
        let legacy = [b"$GT$", *function, b"17h"].concat();
        let v0 = [b"E", *function].concat();
        has(&legacy) || (has(&v0) && name.starts_with(b"_RNvM"))
    };
    let mut all = LOCKS.iter();
    all.any(|(module, functions)| has(module) && functions.iter().any(takes))
}

fn offsets(file: &[u8], table: Table, is_wanted: &dyn Fn(&[u8]) -> bool) -> Option<Vec<u64>> {
    const LITTLE_ENDIAN_64: &[u8] = b"\x7fELF\x02\x01";
    const SECTION_SIZE: u64 = 64;
    const SYMBOL_SIZE: u64 = 24;
    const FUNCTION: u8 = 2;
    file.starts_with(LITTLE_ENDIAN_64).then_some(())?;
    let (sections, count) = (word(file, 0x28, 0)?, half(file, 0x3c, 0)?);
    let section = |index: u64| sections.checked_add(index.checked_mul(SECTION_SIZE)?);
    let symbols = (0..u64::from(count))
        .filter_map(section)
        .find(|at| quarter(file, *at, 4) == Some(table as u32))?;
    let (begin, size) = (word(file, symbols, 0x18)?, word(file, symbols, 0x20)?);
    let strings = section(u64::from(quarter(file, symbols, 0x28)?))?;
    let strings = word(file, strings, 0x18)?;
    let mut found = Vec::new();
    for index in 0..size / SYMBOL_SIZE {
        let symbol = begin.checked_add(index * SYMBOL_SIZE)?;
        let [kind, _] = *array(file, symbol, 4)?;
        let (section, address) = (half(file, symbol, 6)?, word(file, symbol, 8)?);
        let name = strings.checked_add(u64::from(quarter(file, symbol, 0)?))?;
        if kind & 0xf == FUNCTION && section != 0 && is_wanted(name_at(file, name)?) {
            found.extend(offset_of(file, address));
        }
    }
    Some(found)
}

/// The name at `at`, which ends before a null.
fn name_at(file: &[u8], at: u64) -> Option<&[u8]> {
    let rest = file.get(usize::try_from(at).ok()?..)?;
    rest.split(|octet| *octet == 0).next()
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
        let found = |file: &[u8]| {
            [Table::All, Table::Dynamic].map(|table| function_offsets(file, table, &|_| true))
        };
        let nothing: [Vec<u64>; 2] = [Vec::new(), Vec::new()];
        let own = std::fs::read("/proc/self/exe").expect("its own program");
        for len in (0..own.len().min(4_096)).step_by(7) {
            assert_eq!(found(&own[..len]), nothing);
        }
        assert_eq!(found(b"#!/bin/sh\n"), nothing);
        let mut lying = own[..64].to_vec();
        lying[0x28..0x30].fill(0xff);
        assert_eq!(found(&lying), nothing);
    }

    #[test]
    fn functions_that_take_a_lock_are_known_in_both_forms_of_names() {
        for (name, is_lock) in [
            (
                "_ZN3std4sync6poison5mutex14Mutex$LT$T$GT$4lock17h0123456789abcdefE",
                true,
            ),
            (
                "_ZN3std4sync6poison6rwlock15RwLock$LT$T$GT$5write17h0123456789abcdefE",
                true,
            ),
            (
                "_RNvMs5_NtNtNtCs1_3std4sync6poison5mutexINtB5_5MutexjE8try_lockCs2_4main",
                true,
            ),
            (
                "_RNvMs1_NtNtNtCs1_3std4sync6poison6rwlockINtB5_6RwLockjE4readCs2_4main",
                true,
            ),
            (
                "_ZN3std4sync6poison5mutex14Mutex$LT$T$GT$10into_inner17h0123456789abcdefE",
                false,
            ),
            (
                "_RNCNvMs5_NtNtNtCs1_3std4sync6poison5mutexINtB7_5MutexjE4lock0Cs2_4main",
                false,
            ),
            (
                "_RNvMNtNtNtNtCs1_3std3sys4sync5mutex5futexNtB2_5Mutex14lock_contended",
                false,
            ),
            ("pthread_mutex_lock", false),
        ] {
            assert_eq!(is_rust_lock(name.as_bytes()), is_lock, "{name}");
        }
    }
}

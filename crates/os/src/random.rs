//! Random octets from the kernel.

/// Returns 128 random bits: a number that no other host has drawn or will draw.
///
/// # Panics
/// If the kernel returns no random octets. It waits for its first ones when the host starts, and does not fail
/// afterwards.
#[must_use]
pub fn identity() -> [u8; 16] {
    let mut octets = [0_u8; 16];
    loop {
        // SAFETY: the kernel writes at most so many octets to a live array. So few are written whole or, before a
        // signal, not at all.
        let count = unsafe { libc::getrandom(octets.as_mut_ptr().cast(), octets.len(), 0) };
        match usize::try_from(count) {
            Ok(count) if count == octets.len() => return octets,
            _ => assert_eq!(
                std::io::Error::last_os_error().kind(),
                std::io::ErrorKind::Interrupted,
                "the kernel has no random octets"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_identities_are_the_same() {
        let drawn: std::collections::HashSet<_> = (0..1_000).map(|_| identity()).collect();
        assert_eq!(drawn.len(), 1_000);
    }
}

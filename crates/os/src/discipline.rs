//! How the kernel keeps CLOCK_REALTIME right: its state as NTP and PTP programs set it (adjtimex). Nothing is changed.

use std::io;

/// The kernel's state of CLOCK_REALTIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discipline {
    /// Whether a program keeps the clock synchronised, by the kernel's count.
    pub synchronised: bool,
    /// The status flags, `STA_*`.
    pub status: u32,
    /// What is left of the last correction, nanoseconds.
    pub offset_ns: i64,
    /// The correction of the rate, parts in 10^9.
    pub frequency_ppb: i64,
    /// The largest error, microseconds; it grows until a program sets it.
    pub max_error_us: u64,
    /// The estimated error, microseconds.
    pub estimated_error_us: u64,
    /// TAI less UTC, seconds; 0 if nobody has set it.
    pub tai_offset_s: i64,
}

impl Discipline {
    /// Reads the state.
    ///
    /// # Errors
    /// The kernel's error; a sandbox may forbid the call.
    pub fn read() -> io::Result<Self> {
        // SAFETY: a timex of zeroes is valid: no field is to be set.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: `timex` is live and whole.
        let state = unsafe { libc::adjtimex(&raw mut timex) };
        if state < 0 {
            return Err(io::Error::last_os_error());
        }
        let unit_ns = if timex.status & libc::STA_NANO == 0 {
            1_000
        } else {
            1
        };
        Ok(Self {
            synchronised: state != libc::TIME_ERROR && timex.status & libc::STA_UNSYNC == 0,
            status: timex.status.cast_unsigned(),
            offset_ns: timex.offset * unit_ns,
            frequency_ppb: timex.freq * 1_000 / FREQUENCY_SCALE,
            max_error_us: u64::try_from(timex.maxerror).unwrap_or(0),
            estimated_error_us: u64::try_from(timex.esterror).unwrap_or(0),
            tai_offset_s: i64::from(timex.tai),
        })
    }
}

/// Returns the names of status flags, joined by `|`.
#[must_use]
pub fn status_in_words(status: u32) -> String {
    let has = |&&(flag, _): &&(i32, &str)| status & flag.cast_unsigned() != 0;
    let names: Vec<&str> = FLAGS.iter().filter(has).map(|&(_, name)| name).collect();
    names.join("|")
}

const FLAGS: [(i32, &str); 13] = [
    (libc::STA_PLL, "PLL"),
    (libc::STA_PPSFREQ, "PPSFREQ"),
    (libc::STA_PPSTIME, "PPSTIME"),
    (libc::STA_FLL, "FLL"),
    (libc::STA_INS, "INS"),
    (libc::STA_DEL, "DEL"),
    (libc::STA_UNSYNC, "UNSYNC"),
    (libc::STA_FREQHOLD, "FREQHOLD"),
    (libc::STA_PPSSIGNAL, "PPSSIGNAL"),
    (libc::STA_CLOCKERR, "CLOCKERR"),
    (libc::STA_NANO, "NANO"),
    (libc::STA_MODE, "MODE"),
    (libc::STA_CLK, "CLK"),
];

/// The kernel counts parts in a million, in units of 2^-16.
const FREQUENCY_SCALE: i64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_this_machine_is_read_and_consistent() {
        let state = Discipline::read().expect("permitted");
        let flags = status_in_words(state.status);
        assert_eq!(state.synchronised, !flags.contains("UNSYNC"), "{state:?}");
        // The kernel corrects by 500 parts in a million at most.
        assert!(state.frequency_ppb.abs() <= 500_000, "{state:?}");
    }

    #[test]
    fn status_flags_have_the_kernels_names() {
        assert_eq!(status_in_words(0x2001), "PLL|NANO");
        assert_eq!(status_in_words(0x40), "UNSYNC");
        assert_eq!(status_in_words(0), "");
    }
}

//! Formats a moment as text.

use std::time::{Duration, SystemTime};

/// Returns a moment in UTC to the millisecond, in the format of RFC 3339. A moment before 1970 becomes 1970.
#[must_use]
pub fn rfc3339(moment: SystemTime) -> String {
    let since = moment
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        since.subsec_millis()
    )
}

/// Returns year, month and day of a number of days after 1970-01-01, in the Gregorian calendar.
const fn civil(days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    let mut days = days;
    // Skip whole cycles of 400 years first, so that the loop below is short.
    year += days / DAYS_OF_400_YEARS * 400;
    days %= DAYS_OF_400_YEARS;
    while days >= days_of_year(year) {
        days -= days_of_year(year);
        year += 1;
    }
    let mut month = 1;
    while days >= days_of_month(year, month) {
        days -= days_of_month(year, month);
        month += 1;
    }
    (year, month, days + 1)
}

const DAYS_OF_400_YEARS: u64 = 146_097;

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

const fn days_of_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

const fn days_of_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_standard_has_them() {
        // The values are from date -u -d @N --rfc-3339=seconds.
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.250Z"),
            (951_782_399, "2000-02-28T23:59:59.250Z"),
            (951_827_696, "2000-02-29T12:34:56.250Z"),
            (1_709_251_199, "2024-02-29T23:59:59.250Z"),
            (1_795_253_625, "2026-11-21T09:33:45.250Z"),
            (4_107_542_400, "2100-03-01T00:00:00.250Z"),
            (253_402_300_799, "9999-12-31T23:59:59.250Z"),
        ] {
            assert_eq!(
                rfc3339(
                    SystemTime::UNIX_EPOCH
                        + Duration::from_secs(seconds)
                        + Duration::from_millis(250)
                ),
                text
            );
        }
        assert_eq!(
            rfc3339(SystemTime::UNIX_EPOCH - Duration::from_secs(9)),
            "1970-01-01T00:00:00.000Z"
        );
    }
}

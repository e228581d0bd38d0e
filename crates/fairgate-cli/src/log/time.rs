//! Times for people and programs.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns a time as RFC 3339 has it, in UTC and whole seconds: 2026-03-01T12:00:00Z.
pub(crate) fn utc(time: SystemTime) -> String {
    let seconds = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
    };
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns a time of Unix for people, in UTC: 18:00, or with the date if it is not within a day.
pub(crate) fn until(seconds: u64, now: SystemTime) -> String {
    let text = utc(UNIX_EPOCH + Duration::from_secs(seconds));
    let is_near = now
        .duration_since(UNIX_EPOCH)
        .is_ok_and(|now| seconds.abs_diff(now.as_secs()) < 86_400);
    let (date, time) = text.split_once('T').unwrap_or((&text, ""));
    let minute = time.get(..5).unwrap_or(time);
    match is_near {
        true => format!("{minute} UTC"),
        false => format!("{date} {minute} UTC"),
    }
}

/// Returns the date so many days after 1970-01-01 (Hinnant, "chrono-compatible low-level date algorithms",
/// 2013: `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    // From 1 March.
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_near_has_no_date() {
        let now = UNIX_EPOCH + Duration::from_secs(1_709_164_800);
        assert_eq!(until(1_709_164_800 + 18 * 3600, now), "18:00 UTC");
        assert_eq!(until(1_709_164_800 + 25 * 3600 + 60, now), "2024-03-01 01:01 UTC");
    }

    /// As `date --utc --date=@SECONDS` prints them.
    #[test]
    fn times_are_those_of_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_800, "2024-02-29T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
        assert_eq!(utc(UNIX_EPOCH - Duration::from_secs(1)), "1969-12-31T23:59:59Z");
    }
}

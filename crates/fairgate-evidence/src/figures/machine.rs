//! What the figures were measured on, when, and from which commit. Nothing that names a host or a folder.

use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, thread};

use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::markdown::Table;

/// The head of the document.
pub(crate) fn head(bench: &Bench) -> Result<String> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let model = fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| model(&text));
    let model = model.unwrap_or(format!("a processor for {}", env::consts::ARCH));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs());
    let commit = bench.output("git", &["rev-parse", "--short", "HEAD"])?;
    let changes = bench.output("git", &["status", "--porcelain", "--", ".", ":(exclude)docs"])?;
    let changed = if changes.trim().is_empty() {
        ""
    } else {
        ", with changes"
    };
    let mut table = Table::new(2, &["", ""]);
    table.add(&["date", &date(seconds / 86_400)]);
    table.add(&["commit", &format!("{}{changed}", commit.trim())]);
    table.add(&["processor", &format!("{model}, {processors} of them")]);
    table.add(&["system", &format!("Linux {}", version(&kernel))]);
    table.add(&["compiler", bench.output("rustc", &["--version"])?.trim()]);
    Ok(table.text())
}

/// The model of the first processor in /proc/cpuinfo; `None` where the kernel does not tell.
fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The version in a kernel's release, without what those who built it have added.
fn version(release: &str) -> &str {
    let is_other = |letter: char| !letter.is_ascii_digit() && letter != '.';
    release.split(is_other).next().unwrap_or(release)
}

/// Days since 1970 as year, month and day (Hinnant, "chrono-compatible low-level date algorithms", 2013).
fn date(days: u64) -> String {
    // Years begin in March, so that the leap day is the last one. Day 0 is 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + later)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_818, "2026-12-31"),
            (20_819, "2027-01-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn a_kernel_is_its_version() {
        assert_eq!(version("6.1.0-28-amd64\n"), "6.1.0");
        assert_eq!(version("6.18.2\n"), "6.18.2");
    }

    #[test]
    fn the_model_is_that_of_the_first_processor() {
        let cpuinfo =
            "processor\t: 0\nmodel name\t: Some  CPU @ 2.50GHz\nflags\t: fpu\nmodel name\t: Other\n";
        assert_eq!(model(cpuinfo).as_deref(), Some("Some CPU @ 2.50GHz"));
        assert_eq!(model("processor\t: 0\nBogoMIPS\t: 50.00\n"), None);
    }
}

//! Measurements of times on a machine that may have other work.
//!
//! Other programs can take the processor for longer than a shaper's burst lasts. Then a rate or a delay is
//! wrong without a bug. So a failed measurement is repeated. But a bug that shows in half of all runs must
//! not pass, and a single success proves little. So a successful measurement is repeated, too.
//!
//! A measurement passes after [`HOLDS`] successes, plus [`MORE_FOR_EACH_FAILURE`] for each failure. It fails
//! at failure number [`MOST_FAILED`] + 1. The probability to pass, if an attempt fails with probability p:
//!
//! ```text
//!   p       0.01    0.05   0.1    0.2    0.5    0.8
//!   passes  0.9999  0.99   0.96   0.74   0.086  0.0016
//! ```
//!
//! No other test on a live network runs beside a measurement, but tests that only compute may. So a test
//! says how much of the processors is idle if it has them for itself. A failure with less than that is
//! reported and repeated, but not counted. After [`MOST_BUSY`] of these all failures count.
//!
//! Only measured times ([`Times`]) may fail and be repeated. Everything that must always hold (counts, bytes,
//! order, the contents of a document) is asserted, and fails the test immediately.

use std::fs;

use super::{alone, say, watch_live};

/// The number of successes that are needed.
const HOLDS: u32 = 4;

/// The number of additional successes for each failure.
const MORE_FOR_EACH_FAILURE: u32 = 3;

/// The number of failures that are allowed.
const MOST_FAILED: u32 = 3;

/// The number of failures that are not counted because the processors were busy.
const MOST_BUSY: u32 = 60;

/// The times that an attempt measured.
#[derive(Default)]
pub(crate) struct Times {
    wrong: Vec<String>,
}

impl Times {
    /// Records a measured value, and whether it is as expected.
    pub(crate) fn expect(&mut self, is_right: bool, measured: String) {
        if !is_right {
            self.wrong.push(measured);
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Attempts {
    held: u32,
    failed: u32,
}

impl Attempts {
    /// Returns whether the measurement passes. `None` if it must be repeated.
    fn verdict(self) -> Option<bool> {
        if self.failed > MOST_FAILED {
            Some(false)
        } else if self.held == HOLDS + self.failed * MORE_FOR_EACH_FAILURE {
            Some(true)
        } else {
            None
        }
    }
}

/// Repeats a measurement until it passes or fails, and reports the number of attempts on standard error. Each
/// attempt has a deadline. No other test on a live network runs at the same time.
///
/// A failure counts if at least `idle` of the processors' time was idle, 0 to 1. With 0 each failure counts.
pub(crate) fn measured(test: &'static str, idle: f64, measure: impl Fn() -> Times) {
    let Some(_alone) = alone(test) else {
        return;
    };
    let mut attempts = Attempts::default();
    let mut busy = 0;
    let passes = loop {
        let _watched = watch_live(test);
        let before = processor_time();
        let wrong = measure().wrong;
        let was_idle = idle_since(before);
        if wrong.is_empty() {
            attempts.held += 1;
        } else {
            match was_idle < idle && busy < MOST_BUSY {
                true => busy += 1,
                false => attempts.failed += 1,
            }
            say(&format!(
                "MEASURED: {test}: an attempt failed, {:.0} % idle: {}",
                was_idle * 100.0,
                wrong.join("; ")
            ));
        }
        if let Some(passes) = attempts.verdict() {
            break passes;
        }
    };
    let Attempts { held, failed } = attempts;
    let summary = format!(
        "{test}: held in {held} of {} attempts; {busy} more failed while the processors were busy",
        held + failed
    );
    say(&format!("MEASURED: {summary}"));
    assert!(passes, "{summary}");
}

/// Returns the time of all processors since the start, and for how much of it they were idle, in ticks (`cpu`
/// of `/proc/stat`).
fn processor_time() -> Option<[u64; 2]> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let words = text.lines().next()?.split_whitespace().skip(1);
    // Guests are counted as users, too.
    let ticks: Vec<u64> = words.take(8).map(|word| word.parse().unwrap_or(0)).collect();
    Some([ticks.iter().sum(), *ticks.get(3)?])
}

/// Returns the part of the processors' time that was idle since then. If the kernel does not say: 1.
fn idle_since(before: Option<[u64; 2]>) -> f64 {
    let (Some([all, idle]), Some([all_now, idle_now])) = (before, processor_time()) else {
        return 1.0;
    };
    (idle_now - idle) as f64 / (all_now - all).max(1) as f64
}

/// Returns the probability to pass from this state, if an attempt fails with probability `fails`.
fn passes(attempts: Attempts, fails: f64) -> f64 {
    let Attempts { held, failed } = attempts;
    match attempts.verdict() {
        Some(passes) => f64::from(u8::from(passes)),
        None => {
            let next = |held, failed| passes(Attempts { held, failed }, fails);
            fails * next(held, failed + 1) + (1.0 - fails) * next(held + 1, failed)
        }
    }
}

#[test]
fn a_bug_that_shows_in_half_of_the_runs_rarely_passes() {
    for (fails, expected) in [
        (0.01, 0.9999),
        (0.05, 0.99),
        (0.1, 0.96),
        (0.2, 0.74),
        (0.5, 0.086),
        (0.8, 0.0016),
    ] {
        let found = passes(Attempts::default(), fails);
        eprintln!("{fails} {found}");
        assert!((found - expected).abs() <= 0.05 * expected, "{found} at {fails}");
    }
}

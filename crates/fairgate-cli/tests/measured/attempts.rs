//! Measurements of time on a machine that may have other work to do.
//!
//! Other load takes the processor away for longer than a shaper's bucket makes up for, and then a rate or a
//! delay is wrong without any bug. So a measurement that fails is repeated. A bug that shows in half of all
//! runs must not pass by that, and a single success proves little: so a measurement that succeeds is repeated
//! too.
//!
//! A measurement passes when it has held [`HOLDS`] times, and [`MORE_FOR_EACH_FAILURE`] times more for each
//! time it has failed. It fails at failure number [`MOST_FAILED`] + 1. The probability to pass, if an attempt
//! fails with probability p:
//!
//! ```text
//!   p       0.01    0.05   0.1    0.2    0.5    0.8
//!   passes  0.9999  0.99   0.97   0.78   0.071  0.0004
//! ```
//!
//! Only times may be repeated ([`Times`]). What must always hold (counts, bytes, order, what is in a
//! document) is asserted, and fails the test at once.

use std::sync::{Mutex, PoisonError};

use crate::common::{live, say};

/// How often a measurement must hold.
const HOLDS: u32 = 5;

/// How often more for each time it has failed.
const MORE_FOR_EACH_FAILURE: u32 = 2;

/// How often it may fail.
const MOST_FAILED: u32 = 3;

/// What an attempt has found about times.
#[derive(Default)]
pub(crate) struct Times {
    wrong: Vec<String>,
}

impl Times {
    /// Notes what was measured, and whether it is as it must be.
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
    /// Whether the measurement passes; `None` if it has to be repeated.
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

/// Measures until it is clear whether the measurement passes, and says on standard error how many attempts it
/// took. Each attempt has a deadline. Measurements run one at a time: they would spoil each other.
pub(crate) fn measured(test: &'static str, measure: impl Fn() -> Times) {
    static ALONE: Mutex<()> = Mutex::new(());
    // A test that failed has poisoned it, which does not matter to others.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut attempts = Attempts::default();
    let passes = loop {
        let Some(_watched) = live(test) else {
            return;
        };
        let wrong = measure().wrong;
        if wrong.is_empty() {
            attempts.held += 1;
        } else {
            attempts.failed += 1;
            say(&format!(
                "MEASURED: {test}: an attempt failed: {}",
                wrong.join("; ")
            ));
        }
        if let Some(passes) = attempts.verdict() {
            break passes;
        }
    };
    let Attempts { held, failed } = attempts;
    let summary = format!("{test}: right in {held} of {} attempts", held + failed);
    say(&format!("MEASURED: {summary}"));
    assert!(passes, "{summary}");
}

/// The probability to pass from here on, if an attempt fails with probability `fails`.
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
fn a_bug_that_shows_half_of_the_time_hardly_ever_passes() {
    for (fails, expected) in [
        (0.01, 0.9999),
        (0.05, 0.99),
        (0.1, 0.97),
        (0.2, 0.78),
        (0.5, 0.071),
        (0.8, 0.0004),
    ] {
        let found = passes(Attempts::default(), fails);
        eprintln!("{fails} {found}");
        assert!((found - expected).abs() <= 0.05 * expected, "{found} at {fails}");
    }
}

//! Runs the cases of a suite. One function for all disciplines: `proptest!` would have the runner compiled
//! for each of them.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::case::{Case, cases, cases_with_setbacks};
use crate::driver::{check, check_setbacks};
use crate::recipe::Tree;

/// Checks random cases on random `trees`, as the test of this file and name. Cases that have failed are tried
/// again first, as with `proptest!`.
///
/// # Panics
/// With the smallest case that fails.
pub fn conforms(file: &'static str, test: &'static str, trees: BoxedStrategy<Tree>) {
    run(file, test, &cases(trees).boxed(), check);
}

/// The same with a clock that is sometimes set back.
///
/// # Panics
/// With the smallest case that fails.
pub fn conforms_with_setbacks(file: &'static str, test: &'static str, trees: BoxedStrategy<Tree>) {
    run(file, test, &cases_with_setbacks(trees).boxed(), check_setbacks);
}

fn run(file: &'static str, test: &'static str, cases: &BoxedStrategy<Case>, check: fn(&Case)) {
    let mut runner = TestRunner::new(ProptestConfig {
        source_file: Some(file),
        test_name: Some(test),
        ..ProptestConfig::default()
    });
    let outcome = runner.run(cases, |case| {
        check(&case);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}\n{runner}");
    }
}

//! The conformance suite of the library, for a discipline written in Python.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

use fairgate::registry::{ParameterInfo, Value};
use fairgate_conformance::proptest::prelude::*;
use fairgate_conformance::proptest::test_runner::{
    Config as Settings, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
};
use fairgate_conformance::{Recipe, cases, check_allocating};
use pyo3::prelude::*;

use crate::discipline::Config;
use crate::{errors, failure, registry};

/// How often a failing case is made smaller.
const SHRINKS: u32 = 400;

/// Runs random operations on a discipline written in Python, with random parameters.
///
/// The first failing case is made smaller, and is the exception's text.
#[pyfunction]
pub(crate) fn conformance(py: Python<'_>, name: &str, count: u32, seed: u64, shapes: bool) -> PyResult<()> {
    let Some(described) = registry::python(name) else {
        return Err(errors::refused(
            py,
            &format!("there is no discipline `{name}` written in Python"),
        ));
    };
    let parameters = described.parameters.clone();
    let make = move |config: Config, seed| {
        Python::attach(|py| described.make(py, config, seed)).map_err(|error| {
            failure::set(error);
            described.cannot_be_made()
        })
    };
    let mut recipe = Recipe::leaf(move || configs(&parameters), make);
    if shapes {
        recipe = recipe.shaping();
    }
    let settings = Settings {
        cases: count,
        max_shrink_iters: SHRINKS,
        failure_persistence: None,
        ..Settings::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(settings, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let cause = RefCell::new(None);
    // Every attempt to make a case smaller would print its panic.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let result = runner.run(&cases(recipe.trees_of_fifos()), |case| {
        failure::take();
        let checked = panic::catch_unwind(AssertUnwindSafe(|| check_allocating(&case)));
        Python::attach(|py| py.check_signals()).map_err(|error| {
            failure::set(error);
            TestCaseError::reject("interrupted")
        })?;
        match (failure::take(), checked) {
            (Some(failure), _) => {
                let text = failure.to_string();
                cause.replace(Some(failure));
                Err(TestCaseError::fail(text))
            }
            (None, Err(panic)) => Err(TestCaseError::fail(errors::text_of(&*panic).to_owned())),
            (None, Ok(())) => Ok(()),
        }
    });
    panic::set_hook(hook);
    match result {
        Ok(()) => Ok(()),
        Err(_) if failure::is_set() => Err(failure::take().expect("it is set")),
        Err(TestError::Abort(reason)) => Err(errors::refused(py, reason.message())),
        Err(TestError::Fail(reason, case)) => {
            let what = format!("{}\nThe smallest case found: {case:#?}", reason.message());
            Err(errors::discipline(py, name, "conformance", &what, cause.take()))
        }
    }
}

/// Returns random values of all parameters.
fn configs(parameters: &[ParameterInfo]) -> BoxedStrategy<Config> {
    let value = |info: &ParameterInfo| match &info.default {
        Some(Value::Flag(_)) => any::<bool>().prop_map(Value::Flag).boxed(),
        default => {
            let numbers = info.range.clone().prop_map(Value::Number).boxed();
            match default {
                Some(default) => prop_oneof![Just(default.clone()), numbers].boxed(),
                None => numbers,
            }
        }
    };
    let values: Vec<_> = parameters.iter().map(value).collect();
    let config = |values: Vec<Value>| Config {
        settings: values.into_iter().enumerate().collect(),
    };
    values.prop_map(config).boxed()
}

//! Errors as the exceptions of `fairgate.errors`. They have the location, the rule and the remedy that the
//! program shows, and the same drawing.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use fairgate_config::{FileError, Problem};
use miette::{GraphicalReportHandler, GraphicalTheme};
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// The width of a message, in columns.
const WIDTH: usize = 100;

fn exception<'py>(py: Python<'py>, name: &str, arguments: impl PyCallArgs<'py>) -> PyErr {
    let made = py
        .import("fairgate.errors")
        .and_then(|errors| errors.getattr(name)?.call1(arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns the exception for wrong input: `InputError`, with a `Problem` for each mistake.
pub(crate) fn input(py: Python<'_>, error: &FileError) -> PyErr {
    let mut drawn = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(WIDTH);
    if handler.render_report(&mut drawn, error).is_err() {
        drawn = error.to_string();
    }
    let problems = error.problems().iter().map(|problem| problem_of(py, problem));
    let list = problems
        .collect::<PyResult<Vec<_>>>()
        .and_then(|problems| PyList::new(py, problems));
    match list {
        Ok(list) => exception(py, "InputError", (drawn.trim_matches('\n'), list)),
        Err(error) => error,
    }
}

fn problem_of<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyAny>> {
    let (line, column) = problem.position();
    py.import("fairgate.errors")?.getattr("Problem")?.call1((
        &problem.message,
        &problem.label,
        &problem.help,
        problem.file(),
        line,
        column,
    ))
}

/// Returns the exception for input that has no location: `InputError`.
pub(crate) fn refused(py: Python<'_>, what: &str) -> PyErr {
    exception(py, "InputError", (what,))
}

/// Returns the exception for a discipline in Python that broke its contract: `DisciplineError`.
pub(crate) fn discipline(py: Python<'_>, name: &str, call: &str, what: &str, cause: Option<PyErr>) -> PyErr {
    let error = exception(py, "DisciplineError", (name, call, what));
    error.set_cause(py, cause);
    error
}

/// Returns the exception for a run that has no results: `SimulationError`.
pub(crate) fn simulation(py: Python<'_>, error: &fairgate_sim::Error) -> PyErr {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    let name = match error {
        fairgate_sim::Error::Scenario(_) => "InputError",
        fairgate_sim::Error::Imbalance(_) => "BugError",
        _ => "SimulationError",
    };
    exception(py, name, (text,))
}

/// Calls `work`. A panic is a bug; it becomes a `BugError`, which a program can catch like any other error.
pub(crate) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(bug(py, &*panic)))
}

/// Returns the message of a panic.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}

pub(crate) fn bug(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let text = text_of(panic);
    exception(py, "BugError", (format!("there is a bug in fairgate: {text}"),))
}

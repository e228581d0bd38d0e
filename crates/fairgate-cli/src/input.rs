//! What users hand in.

use std::io;
use std::path::Path;
use std::time::Duration;

use fairgate_config::units::parse_duration;
use fairgate_config::{Document, Problem, Registry, Spec};
use miette::Diagnostic;
use thiserror::Error;

use crate::exit::Failure;
use crate::output::{self, Format};

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum ReadError {
    #[error("can't read {path}")]
    #[diagnostic(help("give the path of a configuration file; examples/home.toml is one"))]
    Unreadable { path: String, source: io::Error },
    #[error("{path} is not text: the byte at offset {offset} is no UTF-8")]
    #[diagnostic(help("a configuration file is TOML, in UTF-8"))]
    NotText { path: String, offset: usize },
}

/// Reads a configuration file of these disciplines.
pub(crate) fn document(path: &Path, registry: &Registry) -> Result<Document, Failure> {
    Ok(Document::parse_with(
        &path.display().to_string(),
        &text(path)?,
        registry,
    )?)
}

/// What is right in queues, and hardly meant to stay.
pub(crate) fn warnings<'s>(queues: impl Iterator<Item = (&'s str, &'s Spec)>) -> Vec<String> {
    let of_queue = |(name, spec): (&str, &Spec)| -> Vec<String> {
        let warnings = spec.warnings().into_iter();
        warnings
            .map(|warning| format!("queue {name}: {warning}"))
            .collect()
    };
    queues.flat_map(of_queue).collect()
}

/// What may go wrong where a tree forwards frames.
pub(crate) fn live_warnings(spec: &Spec) -> Vec<String> {
    spec.live_warnings().iter().map(at_its_place).collect()
}

/// What `fairgate run` refuses whatever the interfaces are.
pub(crate) fn refused_live(spec: &Spec) -> Vec<String> {
    let refused = spec.asks_for_marks();
    refused
        .iter()
        .map(|problem| format!("{}; `fairgate run` refuses this", at_its_place(problem)))
        .collect()
}

/// What is wrong where, in one line.
pub(crate) fn at_its_place(problem: &Problem) -> String {
    let (line, column) = problem.position();
    format!("{}:{line}:{column}: {problem}; {}", problem.file(), problem.help)
}

/// Says it to people; a document has no place beside it.
pub(crate) fn warn(warnings: &[String], format: Format) {
    if format == Format::Text {
        for warning in warnings {
            output::say(format_args!("warning: {warning}"));
        }
    }
}

/// A time on the command line in which something is to happen.
pub(crate) fn some_time(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("must be above 0, such as 10s".to_owned()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Bytes of memory that can be had without swapping; no bound where the system doesn't say.
pub(crate) fn available_memory() -> u64 {
    fairgate_bench::campaign::available_memory().unwrap_or(u64::MAX)
}

/// Reads a file of text.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| ReadError::Unreadable {
        path: name.clone(),
        source,
    })?;
    Ok(String::from_utf8(bytes).map_err(|error| ReadError::NotText {
        path: name,
        offset: error.utf8_error().valid_up_to(),
    })?)
}

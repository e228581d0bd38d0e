//! Configuration files.

use fairgate_config::Document;
use pyo3::prelude::*;

use crate::{errors, failure, registry};

/// Reads a configuration file with all disciplines of this process. A check makes each discipline once, so
/// one in Python can fail.
pub(crate) fn read(py: Python<'_>, name: &str, text: &str) -> PyResult<Document> {
    failure::take();
    let document = Document::parse_with(name, text, &registry::current());
    match failure::take() {
        Some(failure) => Err(failure),
        None => document.map_err(|error| errors::input(py, &error)),
    }
}

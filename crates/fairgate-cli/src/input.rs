//! What users hand in.

use std::io;
use std::path::Path;

use fairgate_config::Document;
use miette::Diagnostic;
use thiserror::Error;

use crate::exit::Failure;

#[derive(Debug, Error, Diagnostic)]
pub(crate) enum ReadError {
    #[error("can't read {path}")]
    #[diagnostic(help("give the path of a configuration file; examples/home.toml is one"))]
    Unreadable { path: String, source: io::Error },
    #[error("{path} is not text: the byte at offset {offset} is no UTF-8")]
    #[diagnostic(help("a configuration file is TOML, in UTF-8"))]
    NotText { path: String, offset: usize },
}

/// Reads a configuration file.
pub(crate) fn document(path: &Path) -> Result<Document, Failure> {
    Ok(Document::parse(&path.display().to_string(), &text(path)?)?)
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

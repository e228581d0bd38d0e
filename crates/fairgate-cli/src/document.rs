//! Configuration files, as commands read them.

use std::path::Path;

use fairgate_config::{Document, Registry};

use crate::failure::Failure;
use crate::input::Texts;

/// Reads a configuration file of these disciplines.
pub(crate) fn read(path: &Path, registry: &Registry) -> Result<Document, Failure> {
    of(&Texts::default(), path, registry)
}

/// Reads one of these texts. A file of another program is named as such, instead of all its mistakes.
pub(crate) fn of(texts: &Texts, path: &Path, registry: &Registry) -> Result<Document, Failure> {
    let (name, text) = (path.display().to_string(), texts.text(path)?);
    Document::parse_with(&name, &text, registry).map_err(|error| {
        #[cfg(feature = "live")]
        if let Some(another) = crate::foreign::another_kind(&name, &text, &[]) {
            return another;
        }
        error.into()
    })
}

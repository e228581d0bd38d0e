//! What an experiment's file says of it: the section `[experiment]`.
//!
//! ```toml
//! [experiment]
//! paper = "qfq"
//! place = "section VII-A, Figure 7, Table II"
//! title = "End-to-end delays under four schedulers"
//! about = "..."
//!
//! [[experiment.open]]            # what the paper leaves open
//! parameter = "packet size"
//! value = "1000 B"
//! why = "..."
//!
//! [[experiment.show]]            # what the figures must bear out
//! id = "order"
//! text = "..."
//!
//! [experiment.parameters]        # its own, if it has any
//! ```

use fairgate_config::{Document, FileError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The experiment in words.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Description {
    /// The paper's short name.
    pub paper: String,
    /// Where in the paper.
    pub place: String,
    /// One line.
    pub title: String,
    /// A few sentences.
    pub about: String,
    /// Parameters that the paper leaves open.
    #[serde(default)]
    pub open: Vec<Open>,
    /// What the figures must bear out.
    #[serde(rename = "show")]
    pub claims: Vec<Claim>,
}

/// A parameter that the paper leaves open.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Which.
    pub parameter: String,
    /// What was chosen.
    pub value: String,
    /// Why that.
    pub why: String,
}

/// Something that the figures must bear out.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name.
    pub id: String,
    /// The claim.
    pub text: String,
}

impl Description {
    pub(crate) fn read(document: &Document) -> Result<Description, FileError> {
        document
            .section("experiment")?
            .ok_or_else(|| missing(document, "[experiment]"))
    }
}

/// The experiment's own parameters.
pub(crate) fn parameters<T: DeserializeOwned>(document: &Document) -> Result<T, FileError> {
    #[derive(Deserialize)]
    struct Section<T> {
        parameters: Option<T>,
    }
    document
        .section::<Section<T>>("experiment")?
        .and_then(|section| section.parameters)
        .ok_or_else(|| missing(document, "[experiment.parameters]"))
}

fn missing(document: &Document, section: &str) -> FileError {
    document.error(
        0..0,
        format!("there is no section {section}"),
        "every experiment has one; see the others beside it",
    )
}

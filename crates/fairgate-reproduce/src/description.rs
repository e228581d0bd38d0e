//! The description of an experiment: the section `[experiment]` of its file.
//!
//! ```toml
//! [experiment]
//! paper = "qfq"
//! place = "section VII-A, Figure 7, Table II"
//! title = "End-to-end delays under four schedulers"
//! about = "..."
//!
//! [[experiment.open]]            # a parameter that the paper does not give
//! parameter = "packet size"
//! value = "1000 B"
//! why = "..."
//!
//! [[experiment.show]]            # a claim that the results must confirm
//! id = "order"
//! text = "..."
//!
//! [experiment.parameters]        # parameters of this experiment, if it has any
//! ```

use fairgate_config::{Document, FileError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The experiment as text.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Description {
    /// The short name of the paper.
    pub paper: String,
    /// The sections and figures of the paper.
    pub place: String,
    /// The title, in one line.
    pub title: String,
    /// A description, in a few sentences.
    pub about: String,
    /// The parameters that the paper does not give.
    #[serde(default)]
    pub open: Vec<Open>,
    /// The claims that the results must confirm.
    #[serde(rename = "show")]
    pub claims: Vec<Claim>,
}

/// A parameter that the paper does not give.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The name of the parameter.
    pub parameter: String,
    /// The chosen value.
    pub value: String,
    /// The reason for the choice.
    pub why: String,
}

/// A claim that the results must confirm.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The name of the claim.
    pub id: String,
    /// The claim as a sentence.
    pub text: String,
}

impl Description {
    pub(crate) fn read(document: &Document) -> Result<Description, FileError> {
        document
            .section("experiment")?
            .ok_or_else(|| missing(document, "[experiment]"))
    }
}

/// Reads the experiment's own parameters.
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
        "every experiment needs one; see the other files in the folder",
    )
}

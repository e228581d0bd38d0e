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
//! open = ["packet size"]         # parameters of `open` on which it depends: it is reproduced if they are so
//! ours = "..."                   # a limit that the paper does not state, and its reason
//! tried = "..."                  # what was tried in vain, if it is not reproduced
//!
//! # In an experiment that is data alone, conditions on means; see `scenario/conditions.rs`.
//! holds = [{ value = ["loss of audio", "fifo, *"], from = 20, to = 30 }]
//!
//! [[experiment.instead]]         # a statement of ours beside a claim
//! claim = "order"
//! id = "order-by-bytes"
//! text = "..."                   # and `holds`, in an experiment that is data alone
//!
//! [experiment.parameters]        # parameters of this experiment, if it has any
//! ```

use fairgate_config::{Document, FileError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;

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
    /// Statements of ours beside the claims.
    #[serde(default)]
    pub instead: Vec<Instead>,
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

/// A claim of the paper. It is judged as the paper states it, by the paper's own formula.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The name of the claim.
    pub id: String,
    /// The claim as a sentence.
    pub text: String,
    /// The names of the parameters on which it depends, and which the paper does not give. They are among
    /// [`Description::open`].
    #[serde(default)]
    pub open: Vec<String>,
    /// The limits by which it is judged that the paper does not state, and their reasons.
    #[serde(default)]
    pub ours: Option<String>,
    /// What was tried to reproduce it, if it is not reproduced.
    #[serde(default)]
    pub tried: Option<String>,
    /// The conditions that must hold, in an experiment that is data alone.
    #[serde(default, skip_serializing)]
    pub(crate) holds: Vec<Condition>,
}

/// A measured mean, or the ratio of one to another, is within limits. Both limits are included.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Condition {
    /// The measure, and the case or a pattern of cases.
    pub(crate) value: Spanned<[String; 2]>,
    /// The value by which it is divided.
    pub(crate) of: Option<Spanned<[String; 2]>>,
    pub(crate) from: Option<f64>,
    pub(crate) to: Option<f64>,
}

/// A statement of ours beside a claim, for example by another formula. It does not change the verdict on the
/// claim.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Instead {
    /// The name of the claim.
    pub claim: String,
    /// The name of the statement.
    pub id: String,
    /// The statement as a sentence.
    pub text: String,
    /// The conditions that must hold, in an experiment that is data alone.
    #[serde(default, skip_serializing)]
    pub(crate) holds: Vec<Condition>,
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

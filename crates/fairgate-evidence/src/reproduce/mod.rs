//! Reproduces the experiments of papers and compares the results with the published values.
//!
//! An experiment consists of data and a function. The data are embedded, so that the program needs no files.
//! They are `experiments/<paper>/<id>.toml` and `<id>.published.csv` beside it. The TOML file has the
//! description, the parameters, those parameters that the paper does not give, and the claims that the
//! results must confirm, and statements of ours beside them. The function is a file in `experiments/` of the
//! source folder. It measures and judges the claims.
//!
//! ```text
//!   <id>.toml, <id>.published.csv --> Experiment --run--> Findings      measurements, verdicts, curves
//!                                          \                 |
//!                                           `-----------> Reproduction  measured beside published: JSON,
//!                                           CSV, page
//! ```
//!
//! To add an experiment, write the two files, a function from [`Run`] to [`Findings`], and a line in
//! [`EXPERIMENTS`].

mod agreement;
mod also;
mod description;
mod digits;
mod error;
mod experiment;
mod experiments;
mod findings;
mod kind;
mod published;
mod reproduction;
mod run;
mod scenario;
mod verdicts;

pub use description::{Claim, Description, Instead, Open};
pub use error::ReproduceError;
pub use experiment::Experiment;
pub use experiments::EXPERIMENTS;
pub use findings::{Beside, Figure, Findings, Grid, LiveReport, Measurement, Verdict};
pub use kind::Kind;
pub use published::Published;
pub use reproduction::{JudgedClaim, JudgedInstead, Reproduction, Row};
pub use run::{Conditions, Count, Run};
pub use verdicts::{NotVerdicts, VerdictRow, Verdicts};

/// Returns the experiment called `id`.
pub fn find(id: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.id == id)
}

//! The papers' experiments, run again: what comes out beside what was published.
//!
//! An experiment is data and a function. The data, embedded here so that the program runs anywhere, is
//! `experiments/<paper>/<id>.toml` (what it is, its parameters, those that the paper leaves open, and the claims that the
//! figures must bear out) with `<id>.published.csv` beside it; the function, a file in `experiments/`, measures and judges
//! the claims.
//!
//! ```text
//!   <id>.toml, <id>.published.csv --> Experiment --run--> Findings      measurements, verdicts, curves
//!                                          \                 |
//!                                           `-----------> Reproduction  measured beside published: JSON, CSV, page
//! ```
//!
//! To add one: the two files, a function from [`Run`] to [`Findings`], and a line in [`EXPERIMENTS`].

#![forbid(unsafe_code)]

mod description;
mod error;
mod experiment;
mod experiments;
mod findings;
mod published;
mod reproduction;

pub use description::{Claim, Description, Open};
pub use error::ReproduceError;
pub use experiment::{Conditions, Count, Experiment, Run};
pub use experiments::EXPERIMENTS;
pub use findings::{Figure, Findings, Grid, Measurement, Verdict};
pub use published::Published;
pub use reproduction::{JudgedClaim, Reproduction, Row};

/// The experiment called `id`.
pub fn find(id: &str) -> Option<&'static Experiment> {
    EXPERIMENTS.iter().find(|experiment| experiment.id == id)
}

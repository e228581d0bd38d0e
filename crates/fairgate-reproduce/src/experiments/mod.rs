//! The experiments, a file for each.

use crate::Experiment;

/// An experiment from its two files and its function.
macro_rules! experiment {
    ($id:literal, $paper:literal, $run:expr) => {
        Experiment {
            id: $id,
            file: include_str!(concat!("../../../../experiments/", $paper, "/", $id, ".toml")),
            published: include_str!(concat!(
                "../../../../experiments/",
                $paper,
                "/",
                $id,
                ".published.csv"
            )),
            run: $run,
        }
    };
}

mod sqf;

/// All experiments, in the order of their papers.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment!("sqf-fig3", "sqf", sqf::probability),
    experiment!("sqf-fig4", "sqf", sqf::mean_time),
];

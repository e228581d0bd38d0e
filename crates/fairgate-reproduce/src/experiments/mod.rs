//! The experiments, one file each.

use crate::Experiment;

/// Creates an experiment from its two files and its function.
macro_rules! experiment {
    ($id:literal, $paper:literal, $run:expr, counts: $counts:expr) => {
        Experiment {
            id: $id,
            file: include_str!(concat!("../../experiments/", $paper, "/", $id, ".toml")),
            published: include_str!(concat!(
                "../../experiments/",
                $paper,
                "/",
                $id,
                ".published.csv"
            )),
            counts: $counts,
            run: $run,
        }
    };
    ($id:literal, $paper:literal, $run:expr) => {
        experiment!($id, $paper, $run, counts: false)
    };
}

mod qfq_bounds;
mod qfq_speed;
mod qfq_table2;
mod rfc7928;
mod sqf;

/// All experiments, in the order of their papers.
pub const EXPERIMENTS: &[Experiment] = &[
    experiment!("qfq-table2", "qfq", qfq_table2::run),
    experiment!("qfq-table3", "qfq", qfq_speed::table, counts: true),
    experiment!("qfq-fig9", "qfq", qfq_speed::figure, counts: true),
    experiment!("qfq-bounds", "qfq", qfq_bounds::run),
    experiment!("sqf-fig3", "sqf", sqf::probability),
    experiment!("sqf-fig4", "sqf", sqf::mean_time),
    experiment!("rfc7928", "rfc7928", rfc7928::run),
];

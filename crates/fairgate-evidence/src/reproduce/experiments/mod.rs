//! The experiments, one file each.

use std::borrow::Cow;

use crate::reproduce::Experiment;

/// The text of a file of an experiment.
macro_rules! file {
    ($paper:literal, $name:expr) => {
        include_str!(concat!("../../../experiments/", $paper, "/", $name))
    };
}

/// Creates an experiment from its files and its function. `network` is a file that several experiments share:
/// it follows the experiment's own.
macro_rules! experiment {
    ($id:literal, $paper:literal, $run:expr, counts: $counts:expr, file: $file:expr) => {
        Experiment {
            id: Cow::Borrowed($id),
            path: None,
            file: Cow::Borrowed($file),
            published: Cow::Borrowed(file!($paper, concat!($id, ".published.csv"))),
            counts: $counts,
            run: $run,
        }
    };
    ($id:literal, $paper:literal, $run:expr, counts: $counts:expr) => {
        experiment!($id, $paper, $run, counts: $counts, file: file!($paper, concat!($id, ".toml")))
    };
    ($id:literal, $paper:literal, $run:expr) => {
        experiment!($id, $paper, $run, counts: false)
    };
    ($id:literal, $paper:literal, network: $network:literal) => {
        experiment!($id, $paper, scenario::run, counts: false, file: concat!(
            include_str!(concat!("../../../experiments/", $paper, "/", $id, ".toml")),
            include_str!(concat!("../../../experiments/", $paper, "/", $network, ".toml")),
        ))
    };
    ($id:literal, $paper:literal) => {
        experiment!($id, $paper, scenario::run)
    };
}

mod altq_cost;
mod qfq_bounds;
mod qfq_speed;
mod qfq_table2;
mod rfc7928;
mod sqf;

use crate::reproduce::scenario;

/// All experiments, in the order of their papers.
pub static EXPERIMENTS: &[Experiment] = &[
    experiment!("qfq-table2", "qfq", qfq_table2::run),
    experiment!("qfq-table3", "qfq", qfq_speed::table, counts: true),
    experiment!("qfq-fig9", "qfq", qfq_speed::figure, counts: true),
    experiment!("qfq-bounds", "qfq", qfq_bounds::run),
    experiment!("msfc-bufferbloat", "msfc"),
    experiment!("msfc-parking-lot", "msfc"),
    experiment!("msfc-a", "msfc", network: "msfc-tree"),
    experiment!("msfc-b", "msfc", network: "msfc-tree"),
    experiment!("msfc-random", "msfc", network: "msfc-tree"),
    experiment!("msfc-auto", "msfc", network: "msfc-tree"),
    experiment!("altq-overhead", "altq", altq_cost::overhead),
    experiment!("altq-filters", "altq", altq_cost::filters),
    experiment!("altq-allocation", "altq"),
    experiment!("altq-timer", "altq"),
    experiment!("altq-buffer", "altq"),
    experiment!("altq-guarantee", "altq"),
    experiment!("altq-sharing", "altq"),
    experiment!("sqf-fig3", "sqf", sqf::probability),
    experiment!("sqf-fig4", "sqf", sqf::mean_time),
    experiment!("sqf-fig6", "sqf"),
    experiment!("sqf-fig7", "sqf"),
    experiment!("sqf-table1", "sqf"),
    experiment!("sqf-fig8", "sqf"),
    experiment!("pdrr-fig1", "pdrr"),
    experiment!("pdrr-fig2", "pdrr"),
    experiment!("pdrr-fig3", "pdrr"),
    experiment!("pdrr-fig4", "pdrr"),
    experiment!("pdrr-fig5", "pdrr"),
    experiment!("pdrr-overload", "pdrr"),
    experiment!("aqm-rrul", "aqm"),
    experiment!("rfc7928", "rfc7928", rfc7928::run),
];

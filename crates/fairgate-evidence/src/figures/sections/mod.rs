//! What is measured, and the tables that are made of it.
//!
//! A section runs benchmarks and returns a block of Markdown for each of its places in the document. What
//! reads a benchmark's output is apart from what runs it, so that it can be tested on recorded output.

mod aims;
mod filters;
mod headers;
mod live;
mod pairs;
mod schedulers;
mod simulator;

use crate::figures::Result;
use crate::figures::bench::Bench;

/// Blocks by name.
pub(crate) type Blocks = Vec<(&'static str, String)>;

/// A part of the document.
pub(crate) struct Section {
    /// The names of its blocks.
    pub(crate) blocks: &'static [&'static str],
    pub(crate) measure: fn(&Bench) -> Result<Blocks>,
}

/// All sections, in the order in which they are measured.
pub(crate) const ALL: [Section; 6] = [
    Section {
        blocks: &["pairs", "trees", "overflow"],
        measure: pairs::measure,
    },
    Section {
        blocks: &["filters", "hosts"],
        measure: filters::measure,
    },
    Section {
        blocks: &["headers"],
        measure: headers::measure,
    },
    Section {
        blocks: &[
            "schedulers",
            "statistics",
            "many-flows",
            "mixed",
            "scheduler-aims",
            "floor",
        ],
        measure: schedulers::measure,
    },
    Section {
        blocks: &["simulator"],
        measure: simulator::measure,
    },
    Section {
        blocks: &["packets", "shaped", "attacks", "link"],
        measure: live::measure,
    },
];

/// The names of all blocks. That of the peers is measured alone.
pub(crate) fn blocks() -> Vec<&'static str> {
    let of_sections = ALL.iter().flat_map(|section| section.blocks);
    ["head", "peers"]
        .into_iter()
        .chain(of_sections.copied())
        .collect()
}

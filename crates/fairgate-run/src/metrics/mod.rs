//! What Prometheus reads: the counters of the status as OpenMetrics text.
//!
//! Everything but the state of the moment is a counter, so that a rate is what Prometheus computes of two
//! readings. A name never has more label values than this: two directions, [`MOST_CLASSES`] classes and as
//! many nodes of each besides `other`, the library's reasons for drops, and the disciplines of these classes.
//! What a list of subscribers says about a class is the same in all of its series.

mod classes;
mod families;
mod figures;
mod names;
mod network;

use std::fmt;

use fairgate_run_api::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

pub(crate) use classes::Classes;
pub use classes::MOST_CLASSES;
use classes::Rows;
pub(crate) use names::{Node, nodes};

/// The media type of OpenMetrics text.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns the metrics of a status. `classes` has names for the classes of earlier ones.
pub(crate) fn text(status: Status, classes: &mut Classes) -> Result<String, fmt::Error> {
    let rows = classes.rows(&status);
    let mut registry = Registry::with_prefix("fairgate");
    registry.register_collector(Box::new(Reading { status, rows }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// What is encoded.
#[derive(Debug)]
struct Reading {
    status: Status,
    rows: Rows,
}

impl Collector for Reading {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        families::of_run(&self.status, &mut encoder)?;
        families::of_directions(&self.status, &mut encoder)?;
        families::of_autorate(&self.status, &mut encoder)?;
        families::of_classes(&self.rows, &mut encoder)?;
        families::of_nodes(&self.rows, &mut encoder)
    }
}

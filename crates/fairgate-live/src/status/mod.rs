//! The status of a run: what is read, and the documents made of it.

mod autorate;
mod class_names;
pub(crate) mod delays;
mod document;
mod estimators;
mod path;
mod queue_names;
mod reading;
mod recording;
mod workers;

pub(crate) use autorate::{Board, before_review};
pub use class_names::ClassNames;
pub use document::status_of_tree;
#[cfg(test)]
pub(crate) use document::tree_status;
pub(crate) use document::{processor_status, status_of};
pub(crate) use estimators::{Estimators, Rates};
pub(crate) use queue_names::QueueNames;
pub(crate) use reading::{
    ClassReadingOf, DirectionReading, NodeReading, RunReading, STEP, Sent, TreeReading, Variables,
};
pub(crate) use recording::Recording;
pub(crate) use workers::{WorkerReading, WorkersReading};

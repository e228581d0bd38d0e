//! What schedulers cost: the controller of the QFQ paper's Figure 8, and how its runs are measured.
//!
//! A [`Controller`](controller::Controller) drives one of [`ALGORITHMS`] with a [`Workload`];
//! [`measure::time`] runs it in turns with NONE, the controller over nothing but a queue, and says what is left;
//! [`callgrind`] counts instructions; a [`Job`] is one scheduler under one workload, for either. [`floor`] measures the
//! memory and the branches underneath.

#![forbid(unsafe_code)]

pub mod algorithms;
pub mod backlogs;
pub mod callgrind;
pub mod campaign;
pub mod controller;
pub mod floor;
pub mod measure;
pub mod subject;
pub mod workload;

pub use algorithms::{ALGORITHMS, Algorithm, Mode, none};
pub use campaign::{Instructions, Job, JobError};
pub use controller::{Drive, Fault, Workload};
pub use workload::{Load, Order, Sizes, Weights};

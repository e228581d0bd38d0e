//! Measures the cost of schedulers with the controller of the QFQ paper's Figure 8.
//!
//! A [`Controller`](controller::Controller) drives one of [`ALGORITHMS`] with a [`Workload`].
//! [`measure::time`] runs it in turns with NONE, the controller with only a queue, and returns the
//! difference. [`callgrind`] counts instructions. A [`Job`] is one scheduler under one workload, for both.
//! [`floor`] measures memory latency and branches, which are lower limits of all times.

pub mod algorithms;
pub mod backlogs;
pub mod callgrind;
pub mod campaign;
pub mod controller;
pub mod floor;
pub mod measure;
pub mod subject;
pub mod workload;

pub use algorithms::{ALGORITHMS, Algorithm, Mode, UNMATCHED, none};
pub use campaign::{Instructions, Job, JobError};
pub use controller::{Drive, WorkError, Workload};
pub use workload::{Load, Order, Sizes, Weights};

//! What schedulers cost: the controller of the QFQ paper's Figure 8, and how its runs are measured.

#![forbid(unsafe_code)]

pub mod backlogs;
pub mod controller;
pub mod subject;
pub mod workload;

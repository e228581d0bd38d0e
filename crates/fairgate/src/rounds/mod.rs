//! Fair queueing by rounds.

pub mod drr;
pub mod drr_classes;
pub mod sfq;

//! Fair queueing by round robin.

pub mod cake;
mod class_round_robin;
mod codel_flows;
pub mod drr;
pub mod drr_classes;
pub mod ets;
pub mod fq;
pub mod fq_codel;
pub mod fq_nagle;
pub mod fq_pie;
pub mod hhf;
pub mod mq;
pub mod msfc;
mod new_and_old;
mod ring;
pub mod sfq;

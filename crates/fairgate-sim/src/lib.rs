//! A discrete-event network simulator that runs the same disciplines as the live data plane.

pub mod tcp;

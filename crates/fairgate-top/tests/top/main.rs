//! Screens as text, and screens under random keys and readings.

mod keys;
mod readings;
mod screens;
mod snapshot;
#[path = "../../src/testing.rs"]
mod testing;

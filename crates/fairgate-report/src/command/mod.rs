//! What all commands of our programs share: how they read what users give, how they print and write results,
//! show progress, and end.

pub mod embedded;
pub mod exit;
pub mod failure;
pub mod input;
pub mod output;
pub mod progress;
pub mod shell;

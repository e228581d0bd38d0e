//! The papers' experiments, and their documentation.

mod documentation;
mod experiments;

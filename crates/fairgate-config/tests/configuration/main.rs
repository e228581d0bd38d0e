//! Configurations as users write them, and trees built from them.

mod changes;
mod class_states;
mod documentation;
mod edits;
mod mistakes;
mod sections;
mod tables;

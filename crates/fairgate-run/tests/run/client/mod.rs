//! The client and the API together, and what a client is told if something is wrong.

mod answers;
mod mistakes;
mod stage;

//! The rates of a run follow the line: by probes, or by a file.
//!
//! A thread of ordinary priority does all of it. It sends pings and receives the answers, or reads the file;
//! reviews the rate of each direction ([`fairgate::autorate`]); and orders a change of the tree if the rate
//! differs. The forwarding threads only tell how much they have sent, and set the new rate between two turns.
//! Nothing is added to what they do for a packet.
//!
//! A change of the rate is no change that a user has made: it has no line in the audit, and the revision of
//! the trees stays, so that two operators do not get in each other's way by it. What other changes do to a
//! tree stays: the new rate is set in the tree that runs.

mod file;
mod follower;
mod probes;

pub use follower::{AutorateStop, Follower, RateRefused, SetRate};

//! Wi-Fi: an access point and its stations on one channel, as a medium that all of them share.
//!
//! Source: IEEE 802.11-2020 (the MAC, clause 10; OFDM, clause 17; VHT, that is 802.11ac, clause 21) and
//! IEEE 802.11ax-2021 (HE, clause 27).
//!
//! The modules know neither the simulator nor its packets. Time and random numbers are arguments.
//!
//! ```text
//!   medium        frames in, frames out: one transmission after another
//!    |    \
//!    |     queue        MAC queue, block acknowledgement, retries      category    EDCA, DSCP
//!    |
//!   contention    who transmits next, and who collides                 counters    what was counted
//!   rate          duration of each frame, from
//!     phy         symbols and bits           path    distance, signal, errors
//! ```
//!
//! Idea: all members hear each other, so that the channel is either idle or busy for all of them. An idle
//! time is a grid of slots. Each contender has one slot in which it will transmit; the earliest one wins, and
//! equal slots collide. So a transmission takes two events, whatever the number of stations: its start and
//! its end.
//!
//! Deviations from the standard, and non-goals:
//!
//! * There are no hidden stations, no capture of the stronger signal, and no other cell on the channel. There
//!   are no beacons, no association and no power save.
//! * RTS, CTS, acknowledgements and block acknowledgements are never damaged unless they collide. Requests
//!   for a block acknowledgement take no time.
//! * Frames are not encrypted. An MPDU carries one packet (no A-MSDU, no fragments), however long it
//!   is. Multi-user features (MU-MIMO, OFDMA) and beamforming are not modelled.
//! * After a collision or a lost PPDU, every member waits for EIFS. In the standard the senders wait for the
//!   acknowledgement timeout instead, which is 15 µs shorter with OFDM.
//! * A packet that arrives on an idle channel waits for the next boundary of the grid of slots: 4.5 µs on
//!   average.

mod category;
mod contention;
mod counters;
mod medium;
mod path;
mod phy;
mod queue;
mod rate;
#[cfg(test)]
mod saturation;

pub(crate) use category::{AccessCategory, CategoryParameters};
pub(crate) use contention::Countdown;
pub(crate) use counters::{DirectionCounters, MediumCounters};
pub(crate) use medium::{AirDirection, Fate, Medium, Resolved, Settings};
pub(crate) use path::Path;
pub(crate) use phy::Radio;
pub use phy::Standard;
pub(crate) use queue::AggregateLimits;
pub(crate) use rate::{Errors, StationRate, Timing};

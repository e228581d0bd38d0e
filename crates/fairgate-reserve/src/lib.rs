//! Reservations: a flow that conforms to a token bucket gets a rate and a promised delay, or a clear refusal.
//!
//! This is the traffic control of IntServ (RFC 2210 and 2212), which ALTQ built for RSVP, without the
//! signalling. A reservation names a token bucket, a filter, and the longest delay that is acceptable.
//! Admission control gives it a class of its own in the tree, if the link has the rate and the scheduler's
//! published bound ([`fairgate_theory::guarantees`]) is within that delay. A reservation is soft state: it
//! ends by itself unless it is refreshed.
//!
//! ```text
//!   terms --> admission: capacity, bound --> changes in words --> Spec::edited --> the new tree
//!               |                                                                     |
//!               +--> Refusal: what is left, what could be promised                    the driver applies it
//! ```
//!
//! The tree is a shaper whose rate is that of the link, `tbf`, above a scheduler with a bound: `hfsc`, or one
//! with weights (`wf2q_plus`, `qfq`, `s_kps`, `gfq`, `scfq`). In `hfsc` a reservation is a real-time curve,
//! so that delay and rate are independent. A scheduler with weights couples them: a short delay costs a high
//! rate.
//!
//! The crate does no input and output and reads no clock. Time is an argument. A change returns the new
//! reservations and the new tree; the caller keeps both when the tree is running.
//!
//! ```
//! use std::time::Duration;
//! use fairgate::{Rate, Time};
//! use fairgate_config::{Registry, Spec};
//! use fairgate_reserve::{Reservations, Terms};
//!
//! let tree = Spec::inline("tbf rate=20mbit burst=5kb / hfsc default=1 { 1 ls=20mbit / fq_codel }")?;
//! let terms = Terms {
//!     rate: Rate::mbit(1),
//!     burst: 3_000,
//!     max_packet: 300,
//!     delay: Some(Duration::from_millis(10)),
//!     filter: "dscp=EF".to_owned(),
//!     lifetime: Duration::from_secs(90),
//! };
//! let none = Reservations::new(1514);
//! let (one, changed) = none.add(&tree, &Registry::builtin(), "call", terms, Time::ZERO)?;
//! let promise = one.get("call").unwrap().grant.delay;
//! assert!(promise <= Duration::from_millis(10));
//! assert_eq!(changed.classes()[0].tree.unwrap().classes().len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod admission;
mod place;
mod refusal;
mod table;

use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_config::Spec;

pub use refusal::Refusal;
pub use table::Reservations;

/// Checks that reservations can be made in a tree.
///
/// # Errors
/// If its link's rate is not known, or no bound is known for its scheduler.
pub fn check_place(tree: &Spec) -> Result<(), Refusal> {
    place::Place::find(tree).map(drop)
}

/// What a reservation asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The token rate `r`: what the flow sends in the long run, bit/s with Ethernet headers.
    pub rate: Rate,
    /// The size of the token bucket `b`: what it may send at once, bytes.
    pub burst: u64,
    /// The longest packet `M`, bytes.
    pub max_packet: u32,
    /// The longest acceptable delay. Without it the flow gets its token rate, and the delay that this gives.
    pub delay: Option<Duration>,
    /// The conditions of the filter that finds the flow's packets, as in `fairgate filter add`:
    /// `destination_port=5004 protocol=udp`.
    pub filter: String,
    /// How long the reservation exists unless it is refreshed.
    pub lifetime: Duration,
}

/// A reservation that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// What was asked for.
    pub terms: Terms,
    /// The number of its class.
    pub class: u16,
    /// What was promised.
    pub grant: Grant,
    /// When it ends unless it is refreshed.
    pub expires: Time,
}

/// What a reservation gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The rate that the scheduler guarantees in the long run, bit/s: at least the token rate.
    pub rate: u64,
    /// No packet of the conforming flow is in the tree for longer.
    pub delay: Duration,
    /// The settings of the class: a curve or a weight.
    pub(crate) settings: String,
}

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
//! The module does no input and output and reads no clock. Time is an argument. A change returns the new
//! reservations and the new tree; the caller keeps both when the tree is running.
//!
//! ```
//! use std::time::Duration;
//! use fairgate::{Rate, Time};
//! use fairgate_config::{Registry, Spec};
//! use fairgate_run::reserve::{Excess, Reservations, Terms};
//!
//! let tree = Spec::inline("tbf rate=20mbit burst=5kb / hfsc default=1 { 1 ls=20mbit / fq_codel }")?;
//! let terms = Terms {
//!     rate: Rate::mbit(1),
//!     burst: 3_000,
//!     peak: None,
//!     min_packet: Terms::MIN_PACKET,
//!     max_packet: 300,
//!     delay: Some(Duration::from_millis(10)),
//!     filter: "dscp=EF".to_owned(),
//!     excess: Excess::BestEffort,
//!     lifetime: Duration::from_secs(90),
//! };
//! let none = Reservations::new(1514);
//! let (one, changed) = none.add(&tree, &Registry::builtin(), "call", terms, Time::ZERO)?;
//! let promise = one.get("call").unwrap().grant.delay;
//! assert!(promise <= Duration::from_millis(10));
//! assert_eq!(changed.classes()[0].tree.unwrap().classes().len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod refusal;
mod reservable;
mod table;

use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_config::Spec;
use thiserror::Error;

pub use fairgate_theory::guarantees::token_bucket::ArrivalCurve;
pub use refusal::Refusal;
pub use table::Reservations;

/// The shortest frame, bytes: an Ethernet header. Frames of a host are not padded yet.
const SHORTEST: u32 = 14;

/// Checks that reservations can be made in a tree.
///
/// # Errors
/// If its link's rate is not known, or no bound is known for its scheduler.
pub fn check_place(tree: &Spec) -> Result<(), Refusal> {
    reservable::ReservableTree::find(tree).map(drop)
}

/// What a reservation asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The token rate `r`: what the flow sends in the long run, bit/s with Ethernet headers.
    pub rate: Rate,
    /// The size of the token bucket `b`: what it may send at once, bytes.
    pub burst: u64,
    /// The peak rate `p`: what it sends at most while it empties the bucket, bit/s. Without it, the bucket
    /// may come at once.
    pub peak: Option<Rate>,
    /// The minimum policed unit `m`, bytes: shorter packets count as packets of this length.
    pub min_packet: u32,
    /// The longest packet `M`, bytes. At the peak rate this is what may come at once.
    pub max_packet: u32,
    /// The longest acceptable delay. Without it the flow gets its token rate, and the delay that this gives.
    pub delay: Option<Duration>,
    /// The conditions of the filter that finds the flow's packets, as in `fairgate filter add`:
    /// `destination_port=5004 protocol=udp`.
    pub filter: String,
    /// What happens to packets beyond the token bucket.
    pub excess: Excess,
    /// How long the reservation exists unless it is refreshed.
    pub lifetime: Duration,
}

impl Terms {
    /// The usual minimum policed unit: shorter frames are padded to this length on an Ethernet cable.
    pub const MIN_PACKET: u32 = 60;

    /// Returns the most that the flow sends in any interval.
    pub fn arrivals(&self) -> ArrivalCurve {
        let peak = self.peak.map(|peak| (peak, self.max_packet));
        ArrivalCurve::new(self.rate, self.burst, peak)
    }
}

/// What happens to the packets of a flow that are beyond its token bucket, or too long. The others have the
/// promised delay all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Excess {
    /// They go to the scheduler's default class, where they are overtaken by packets that conform (RFC 2212).
    #[default]
    BestEffort,
    /// They are dropped.
    Drop,
}

/// A reservation that was admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// What was asked for.
    pub terms: Terms,
    /// The number of its class.
    pub class: u32,
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
    /// What this hop adds to the delay along a path, or why that is not known.
    pub error_terms: Result<ErrorTerms, NoErrorTerms>,
    /// The settings of the class: a curve or a weight.
    pub(crate) settings: String,
}

/// The error terms of RFC 2212. Summed over the hops of a path, with the rate `R` that each of them reserves,
/// they bound the delay of the path: `(b - M) (p - R) / (p - r) / R + (M + C) / R + D` for `p > R >= r`, and
/// `(M + C) / R + D` for `R >= p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorTerms {
    /// C, bytes: takes the longer, the lower the rate is.
    pub c: u64,
    /// D: does not depend on the rate. The time on the cable is not part of it.
    pub d: Duration,
}

/// Why a hop has no error terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoErrorTerms {
    /// A real-time curve with two slopes.
    #[error(
        "the real-time curve has two slopes, so its delay is not C / R + D with one rate R; without a delay \
         in the terms it has one slope"
    )]
    TwoSlopes,
    /// Only another form of the scheduler's bound is known.
    #[error("the bound of this scheduler is not known in the form C / R + D")]
    OtherForm,
}

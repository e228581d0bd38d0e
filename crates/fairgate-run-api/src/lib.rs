//! The vocabulary of a run: what it is asked ([`Question`]), what it answers ([`Answer`], [`Refused`]), and
//! the documents of its state. No I/O.
//!
//! Whatever can be asked implements [`Ask`]: a run in this process, and one in another process that is asked
//! over HTTP.

#![forbid(unsafe_code)]

mod audit;
mod autorate;
mod difference;
mod entry;
mod flows;
mod names;
mod network;
mod outline;
mod question;
mod recording;
mod refused;
mod reservations;
mod status;
mod subscribers;
mod trees;
mod why;

pub use audit::{Audit, AuditEntry, change as described_change};
pub use autorate::{AutorateDirection, AutorateStatus};
pub use difference::Difference;
pub use entry::Entry;
pub use flows::{DEFAULT_FLOWS, FlowOrder, FlowStatus, FlowsStatus, LanStatus, LossStatus, RoundTripStatus};
pub use names::{ClassName, SubscriberName, brief};
pub use network::{Network, NetworkNode, below, trees};
pub use outline::{
    Changeable, OutlineDocument, OutlineEntry, ParameterDocument, Part, PlaceDocument, changeable, parts,
    places,
};
pub use question::{
    Answer, Ask, Change, Features, LONGEST_CONFIRMATION_S, LocalRun, Question, Reserve, Unexpected, WhatIf,
    ask,
};
pub use recording::{ClassInterval, Interval, Percentiles, Recorder, SHORTEST_INTERVAL_US};
pub use refused::Refused;
pub use reservations::{
    ErrorTermsStatus, ExcessStatus, ReservationStatus, Reservations, ReserveOrder, TermsStatus,
};
pub use status::{
    ChangesStatus, ClassRateStatus, ClassStatus, CountStatus, Detail, DirectionStatus, HOST, Losses,
    NatStatus, NodeStatus, PassedByStatus, ProcessorStatus, QUEUE, RateStatus, SHARDED, SOJOURN_UNIT_S,
    Sojourn, Status, ValueStatus,
};
pub use subscribers::{
    ListedNode, NodePatch, Shaped, SubscriberChange, SubscriberChanged, SubscriberDocument, SubscriberMade,
    SubscriberStatus, no_list, unknown, version,
};
pub use trees::{ChangeMade, Mistake, TreeStatus, TreesStatus};
pub use why::{Cause, Load, Why};

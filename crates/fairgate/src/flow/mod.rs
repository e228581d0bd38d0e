//! Assigns packets to flows: header fields and their keyed hash.

mod acknowledgement;
mod by;
pub mod dissect;
mod hash;
mod header_bytes;
mod key;
mod numbers;

pub use acknowledgement::{Acknowledgement, SackRanges, Timestamps};
pub use by::{FlowBy, FlowByHasher};
pub use dissect::{Dissection, LinkType, dissect, dissect_payload, dissect_tunnelled, set_ce, set_dscp};
pub(crate) use hash::Sip;
pub use hash::{FlowHash, FlowHasher};
pub use header_bytes::HeaderBytes;
pub use key::FlowKey;
pub use numbers::ethertype;

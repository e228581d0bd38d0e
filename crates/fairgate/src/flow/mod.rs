//! Which flow a packet belongs to: header fields and their keyed hash.

pub mod dissect;
mod hash;
mod key;
mod numbers;

pub use dissect::{Dissection, LinkType, dissect, dissect_tunnelled, set_ce};
pub use hash::{FlowHash, FlowHasher};
pub use key::FlowKey;
pub(crate) use numbers::ethertype;

//! Which flow a packet belongs to: header fields and their keyed hash.

mod hash;
mod key;

pub use hash::{FlowHash, FlowHasher};
pub use key::FlowKey;

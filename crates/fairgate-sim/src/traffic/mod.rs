//! What sends packets.

mod datagrams;

pub(crate) use datagrams::Datagrams;

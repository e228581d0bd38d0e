//! Sources of packets: sources of datagrams, and TCP connections with the programs that write to them.

mod connection;
mod datagrams;
mod program;

pub(crate) use connection::{Connection, End};
pub(crate) use datagrams::Datagrams;
pub(crate) use program::Program;

/// The source of a flow.
pub(crate) enum Source {
    Datagrams(Datagrams),
    Connection(Box<Connection>),
}

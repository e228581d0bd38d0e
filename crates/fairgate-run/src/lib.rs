//! A run of Fairgate, for all who ask and change it, whatever forwards its packets: a status socket; an API
//! over HTTP with JSON documents, metrics for Prometheus, and a web page. [`client`] asks and changes a run,
//! from this machine or another.
//!
//! ```text
//!   client -> [ door ] -> connection -> guard -> route -> Run -> the run's threads
//!             unix or     timeouts      who is    one      what clients of the
//!             TCP + TLS   bounds        it?       module   status socket see
//! ```
//!
//! * [`Run`] answers, and changes the trees together with the reservations. Packets are forwarded by a
//!   [`Plane`](fairgate_live::Plane).
//! * [`reserve`] says which reservations are admitted.
//! * [`subscribers`] reads lists of subscribers, and makes trees of them.
//! * [`StatusServer`] lets others ask a run at a unix socket, and [`RunSocket`] asks there.
//! * [`Doors`] are the sockets that are listened at. They are opened before privileges are given up.
//! * [`LocalRun`](fairgate_run_api::LocalRun) is what is controlled. The forwarding threads know nothing of
//!   HTTP.
//! * [`Control`] is the thread that answers, and the one that keeps the history. They end on drop.
//!
//! Everything that a client can make this thread hold is bounded: connections, the time that each may take,
//! headers, bodies, and the documents that are made at the same time.

#![forbid(unsafe_code)]

mod answer;
mod api;
mod body;
pub mod client;
mod door;
mod error;
mod guard;
mod history;
mod metrics;
mod outlines;
pub mod page;
mod places;
mod precondition;
mod problem;
mod query;
pub mod rehearsal;
pub mod reserve;
mod run;
mod server;
mod shared;
mod socket;
mod streams;
mod subscribed;
pub mod subscribers;
mod tls;
mod tokens;

pub use api::openapi;
pub use door::Doors;
pub use error::ControlError;
pub use metrics::MOST_CLASSES;
pub use run::{Owner, Reserver, Run, mistakes_of};
pub use server::Control;
pub use socket::{
    FetchError, Recordings, RunSocket, StatusServer, ask_change, default_socket, fetch, running,
};
pub use subscribed::{Reading, RunningList, SubscribedRun};

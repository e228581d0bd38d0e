//! A run of Fairgate, for all who ask and change it, whatever forwards its packets: an API over HTTP with
//! JSON documents, metrics for Prometheus, and a web page. [`client`] asks and changes a run, from this
//! machine or another.
//!
//! ```text
//!   client -> [ door ] -> connection -> guard -> route -> Run -> the run's threads
//!             unix or     timeouts      who is    one
//!             TCP + TLS   bounds        it?       module
//! ```
//!
//! * [`Run`] answers, and changes the trees together with the reservations. Packets are forwarded by a
//!   [`Plane`](fairgate_live::Plane).
//! * [`reserve`] says which reservations are admitted.
//! * [`subscribers`] reads lists of subscribers, and makes trees of them.
//! * [`import`] makes such lists of what UISP and Splynx know.
//! * [`Doors`] are the sockets that are listened at: the status socket ([`default_socket`]), where the
//!   commands of this machine ask, and the endpoints of `[run]`. They are opened before privileges are given
//!   up.
//! * [`LocalRun`](fairgate_run_api::LocalRun) is what is controlled. The forwarding threads know nothing of
//!   HTTP.
//! * [`ServerHandle`] are the threads that answer, and the one that keeps the history. They end on drop.
//!
//! Everything that a client can make these threads hold is bounded: connections, the time that each may take,
//! headers, bodies, and the documents that are made at the same time.

#![forbid(unsafe_code)]

pub mod client;
mod history;
mod http;
pub mod import;
mod metrics;
pub mod rehearsal;
pub mod reserve;
mod run;
mod socket;
mod subscribed;
pub mod subscribers;

pub use history::HistoryFile;
pub use http::{ControlError, Doors, ServerHandle, openapi, page};
pub use metrics::MOST_CLASSES;
pub use run::{Owner, Reserver, Run, mistakes_of};
pub use socket::{LongPath, default_socket, running};
pub use subscribed::{RunningList, SubscribedRun};

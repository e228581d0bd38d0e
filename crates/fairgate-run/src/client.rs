//! Asks and changes a running Fairgate, on this machine or another one.
//!
//! ```text
//!   Remote --- Socket: the status socket of a run, a JSON document in one line (fairgate-live)
//!         \--- Api --- Connection: HTTP over a unix socket, or over TCP with TLS and a token
//! ```
//!
//! [`Remote`] has a method for each question. All of them wait for the answer. Both ways see the same trees
//! and the same revision, and what they change is in the same audit.
//!
//! ```no_run
//! use fairgate_run::client::{Access, Api, Remote};
//!
//! let router = Api::new("https://router:8443".parse()?, &Access {
//!     token: Some("/etc/fairgate/token".into()),
//!     ca: Some("/etc/fairgate/ca.pem".into()),
//! })?;
//! let router = Remote::from(router);
//! println!("{} has run for {} s", router, router.status(true)?.uptime_s);
//! router.change(None, &["class change 30 rate=7mbit".to_owned()], None)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod api;
mod connection;
mod error;
mod intervals;
mod problem;
mod remote;
mod tls;
mod token;

pub use address::{AddressError, ApiAddress};
pub use api::{Access, Api};
pub use error::ClientError;
pub use intervals::Intervals;
pub use remote::Remote;

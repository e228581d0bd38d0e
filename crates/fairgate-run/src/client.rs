//! Asks and changes a running Fairgate, on this machine or another one.
//!
//! ```text
//!   Remote --- HTTP --- the status socket of the run, on this machine
//!                  \--- its API: a unix socket, or TCP with TLS and a token
//! ```
//!
//! [`Remote`] has a method for each question. All of them wait for the answer.
//!
//! ```no_run
//! use fairgate_run::client::{Access, Remote};
//! use fairgate_run_api::Change;
//!
//! let router = Remote::at("https://router:8443".parse()?, &Access {
//!     token: Some("/etc/fairgate/token".into()),
//!     ca: Some("/etc/fairgate/ca.pem".into()),
//! })?;
//! println!("{} has run for {} s", router, router.status(true)?.uptime_s);
//! router.change(Change {
//!     lines: vec!["class change 30 rate=7mbit".to_owned()],
//!     ..Change::default()
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod connection;
mod error;
mod intervals;
mod problem;
mod remote;
mod routes;
mod tls;
mod token;

pub use address::{AddressError, ApiAddress};
pub use error::ClientError;
pub use intervals::Intervals;
pub use remote::{Access, Remote};

pub(crate) use address::https;
pub(crate) use connection::Destination;
pub(crate) use tls::config as tls_config;
pub(crate) use token::{secret, words as token_words};

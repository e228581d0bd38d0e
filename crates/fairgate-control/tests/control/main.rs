//! The API and the metrics, in memory and at real sockets.

mod description;
mod http;
mod names;
mod requests;
mod served;
mod subscribers;

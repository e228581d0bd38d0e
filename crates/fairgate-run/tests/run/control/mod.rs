//! The API and the metrics, in memory and at real sockets.

mod description;
mod history;
mod http;
mod names;
mod page;
mod requests;
mod served;
mod subscribers;

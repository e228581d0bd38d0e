//! A run that is asked and changed, by whichever way.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairgate_live::status::protocol::{
    Answer, Interval, ReservationStatus, ReserveOrder, Reserved, TreesStatus,
};
use fairgate_live::status::{
    FlowOrder, FlowsStatus, Status, ask_change_of, ask_reload, ask_reserve, fetch, fetch_flows,
    fetch_packets, fetch_trees, fetch_used, record,
};
use serde::Deserialize;

use crate::api::Api;
use crate::error::ClientError;
use crate::intervals::{Intervals, ended};

/// A run, and the way to it.
///
/// # Errors
/// Methods fail if the run does not answer, or if it refuses what is asked: [`ClientError::Refused`],
/// [`ClientError::Stale`] and [`ClientError::Problem`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Remote {
    /// The status socket of a run on this machine.
    Socket(PathBuf),
    /// The API of a run.
    Api(Api),
}

/// A change that was made.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Changed {
    /// The revision of the trees from now on.
    pub revision: u64,
    /// For how long nothing was forwarded, microseconds.
    pub pause_us: f64,
    /// Packets for which a new limit had no room, or whose class was removed.
    pub dropped: u64,
}

fn changed(answer: Answer) -> Result<Changed, ClientError> {
    match answer {
        Answer::Changed {
            pause_us,
            dropped,
            revision,
        } => Ok(Changed {
            revision,
            pause_us,
            dropped,
        }),
        Answer::Stale { revision } => Err(ClientError::Stale { revision }),
        Answer::Refused { errors } => Err(ClientError::Refused(errors)),
    }
}

impl Remote {
    /// Returns the status. Without what no packet has come to, this is much faster if there are thousands of
    /// classes.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn status(&self, only_used: bool) -> Result<Status, ClientError> {
        match self {
            Remote::Socket(socket) if only_used => Ok(fetch_used(socket)?),
            Remote::Socket(socket) => Ok(fetch(socket)?),
            Remote::Api(api) => api.status(only_used),
        }
    }

    /// Returns the trees, as a configuration file has them, and their revision.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn trees(&self) -> Result<TreesStatus, ClientError> {
        match self {
            Remote::Socket(socket) => Ok(fetch_trees(socket)?),
            Remote::Api(api) => api.trees(),
        }
    }

    /// Makes the changes of these lines, the words of `fairgate class`, `filter` and `queue`: all of them or
    /// none. `from` is the interface that the direction receives from. If the trees have another revision
    /// than `if_revision`, nothing is changed.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn change(
        &self,
        from: Option<&str>,
        lines: &[String],
        if_revision: Option<u64>,
    ) -> Result<Changed, ClientError> {
        match self {
            Remote::Socket(socket) => changed(ask_change_of(socket, from, lines, if_revision)?),
            Remote::Api(api) => api.change(from, lines, if_revision),
        }
    }

    /// Has the run that listens at this status socket read its configuration again. The API does not do this.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn reload(socket: &Path) -> Result<Changed, ClientError> {
        changed(ask_reload(socket)?)
    }

    /// Carries out an order about reservations. Returns the one that was added, changed or refreshed, none if
    /// it has ended, or all.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn reserve(
        &self,
        from: Option<&str>,
        order: ReserveOrder,
    ) -> Result<Vec<ReservationStatus>, ClientError> {
        match self {
            Remote::Socket(socket) => match ask_reserve(socket, from, order)? {
                Reserved::Reservations { reservations, .. } => Ok(reservations),
                Reserved::Stale { revision } => Err(ClientError::Stale { revision }),
                Reserved::Refused { errors } => Err(ClientError::Refused(errors)),
            },
            Remote::Api(api) => api.reserve(from, &order),
        }
    }

    /// Returns the first `limit` flows. The first answer takes a second.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn flows(&self, order: FlowOrder, limit: u32) -> Result<FlowsStatus, ClientError> {
        match self {
            Remote::Socket(socket) => Ok(fetch_flows(socket, order, limit)?),
            Remote::Api(api) => api.flows(order, limit),
        }
    }

    /// Returns the last packets as a capture (pcapng): those of this time before now, or all that are kept;
    /// those that this interface has received, or all.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, ClientError> {
        match self {
            Remote::Socket(socket) => match fetch_packets(socket, last, from)? {
                Ok(capture) => Ok(capture),
                Err(Answer::Refused { errors }) => Err(ClientError::Refused(errors)),
                Err(Answer::Stale { revision } | Answer::Changed { revision, .. }) => {
                    Err(ClientError::Stale { revision })
                }
            },
            Remote::Api(api) => api.packets(last, from),
        }
    }

    /// Has the run say at each interval what its classes did. The run records when this returns: the first
    /// interval, which has no rows, was received.
    #[expect(clippy::missing_errors_doc, reason = "the type says it")]
    pub fn record(&self, interval: Duration) -> Result<Intervals, ClientError> {
        let mut intervals = match self {
            Remote::Socket(socket) => Intervals::of_socket(record(socket, interval)?),
            Remote::Api(api) => api.record(interval)?,
        };
        let _first: Interval = intervals.next().unwrap_or_else(|| Err(ended()))?;
        Ok(intervals)
    }
}

impl From<Api> for Remote {
    fn from(api: Api) -> Remote {
        Remote::Api(api)
    }
}

/// The path of the socket, or the address of the API.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Socket(socket) => socket.display().fmt(f),
            Remote::Api(api) => api.fmt(f),
        }
    }
}

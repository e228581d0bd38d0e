//! A run that is asked and changed, by whichever transport.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use fairgate_run_api::{
    Answer, Ask, Change, ChangeMade, Detail, FlowOrder, FlowsStatus, Question, ReservationStatus,
    Reservations, Reserve, ReserveOrder, Status, TreesStatus, ask,
};

use super::api::Api;
use super::error::ClientError;
use super::intervals::{Intervals, ended};
use crate::socket::RunSocket;

/// A run of another process.
///
/// # Errors
/// Methods fail if the run does not answer, or if it refuses what is asked: [`ClientError::Refused`],
/// [`ClientError::Stale`] and [`ClientError::Problem`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Remote {
    /// At its status socket on this machine.
    Socket(RunSocket),
    /// At its API.
    Api(Api),
}

impl Ask for Remote {
    type Error = ClientError;
    type Recording = Intervals;

    fn ask(&self, who: &str, question: Question) -> Result<Answer, ClientError> {
        match self {
            Remote::Socket(socket) => Ok(socket.ask(who, question)?),
            Remote::Api(api) => api.ask(who, question),
        }
    }

    /// The run records when this returns: the first interval, which has no rows, was received.
    fn record(&self, interval: Duration) -> Result<Intervals, ClientError> {
        let mut intervals = match self {
            Remote::Socket(socket) => Intervals::of_socket(socket.record(interval)?),
            Remote::Api(api) => api.record(interval)?,
        };
        intervals.next().unwrap_or_else(|| Err(ended()))?;
        Ok(intervals)
    }
}

/// The questions of commands.
#[expect(clippy::missing_errors_doc, reason = "the type says it")]
impl Remote {
    /// Returns the status. Without what no packet has come to, this is much faster if there are thousands of
    /// classes.
    pub fn status(&self, only_used: bool) -> Result<Status, ClientError> {
        let detail = Detail::of(only_used);
        ask(self, "", Question::Status { detail })
    }

    /// Returns the trees, as a configuration file has them, and their revision.
    pub fn trees(&self) -> Result<TreesStatus, ClientError> {
        ask(self, "", Question::Trees)
    }

    /// Makes the changes of these lines, the words of `fairgate class`, `filter` and `queue`: all of them or
    /// none. `from` is the interface that the direction receives from. If the trees have another revision
    /// than `if_revision`, nothing is changed.
    pub fn change(
        &self,
        from: Option<&str>,
        lines: &[String],
        if_revision: Option<u64>,
    ) -> Result<ChangeMade, ClientError> {
        let change = Change {
            from: from.map(str::to_owned),
            lines: lines.to_vec(),
            if_revision,
        };
        ask(self, "", Question::Change(change))
    }

    /// Carries out an order about reservations. Returns the one that was added, changed or refreshed, none if
    /// it has ended, or all.
    pub fn reserve(
        &self,
        from: Option<&str>,
        order: ReserveOrder,
    ) -> Result<Vec<ReservationStatus>, ClientError> {
        let order = Reserve {
            from: from.map(str::to_owned),
            order,
            if_revision: None,
        };
        let Reservations { reservations, .. } = ask(self, "", Question::Reserve(order))?;
        Ok(reservations)
    }

    /// Returns the first `limit` flows. The first answer takes a second.
    pub fn flows(&self, order: FlowOrder, limit: u32) -> Result<FlowsStatus, ClientError> {
        ask(self, "", Question::Flows { order, limit })
    }

    /// Returns the last packets as a capture (pcapng): those of this time before now, or all that are kept;
    /// those that this interface has received, or all.
    pub fn packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, ClientError> {
        let from = from.map(str::to_owned);
        ask(self, "", Question::Packets { last, from })
    }
}

impl From<Api> for Remote {
    fn from(api: Api) -> Remote {
        Remote::Api(api)
    }
}

/// Returns the run at a status socket.
impl From<PathBuf> for Remote {
    fn from(socket: PathBuf) -> Remote {
        Remote::Socket(RunSocket::at(socket))
    }
}

/// The path of the socket, or the address of the API.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Socket(socket) => socket.path().display().fmt(f),
            Remote::Api(api) => api.fmt(f),
        }
    }
}

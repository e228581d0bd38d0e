//! A run that is asked and changed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairgate_run_api::{
    Change, ChangeMade, Detail, FlowOrder, FlowsStatus, NodePatch, Question, ReservationStatus, Reservations,
    Reserve, ReserveOrder, Status, SubscriberDocument, SubscriberMade, TreesStatus, ask,
};
use serde_json::{Map, Value};
use tokio_rustls::TlsConnector;

use super::address::ApiAddress;
use super::connection::{Destination, Transport};
use super::error::ClientError;
use super::{tls, token};

/// A run of another process: at its status socket on this machine, or at its API. Copies share what they have
/// read from files.
///
/// # Errors
/// Methods fail if the run does not answer, or if it refuses what is asked: [`ClientError::Refused`],
/// [`ClientError::Stale`] and [`ClientError::Problem`].
#[derive(Clone)]
pub struct Remote(Arc<Transport>);

/// What gives access to an API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The file with the token. It is needed at all addresses but unix sockets.
    pub token: Option<PathBuf>,
    /// The file with the certificates (PEM) that the host's one must lead to. Without it, those that the
    /// system trusts.
    pub ca: Option<PathBuf>,
}

impl Remote {
    /// Returns the run whose API is at an address. Nothing is asked yet.
    ///
    /// # Errors
    /// Fails if a file can't be read, if others may read the token, or if there is nobody to trust.
    pub fn at(address: ApiAddress, access: &Access) -> Result<Remote, ClientError> {
        let token = access.token.as_deref().map(token::read).transpose()?;
        Ok(Remote(Arc::new(Transport {
            name: address.to_string(),
            destination: match address {
                ApiAddress::Unix(path) => Destination::Unix(path),
                ApiAddress::Https(host) => {
                    Destination::Https(host, TlsConnector::from(tls::config(access.ca.as_deref())?))
                }
            },
            token,
        })))
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0
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
    /// than `if_revision`, nothing is changed. A change that is not [confirmed](Remote::confirm) within
    /// `confirm_within_s` seconds, if this is given, is undone.
    pub fn change(&self, change: Change) -> Result<ChangeMade, ClientError> {
        ask(self, "", Question::Change(change))
    }

    /// Keeps the change that waits for its confirmation. Returns the revision of the trees.
    pub fn confirm(&self) -> Result<u64, ClientError> {
        ask(self, "", Question::Confirm)
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

    /// Returns the list of subscribers.
    pub fn subscribers(&self) -> Result<SubscriberDocument, ClientError> {
        ask(self, "", Question::Subscribers)
    }

    /// Changes members of several subscribers, by their identifiers: of all of them or of none. Null leaves a
    /// member to the plan. With `for_s`, `down` and `up` hold for so many seconds only. If the trees have
    /// another revision than `if_revision`, nothing is changed.
    pub fn patch_subscribers(
        &self,
        patches: Vec<(String, Map<String, Value>)>,
        for_s: Option<u64>,
        if_revision: Option<u64>,
    ) -> Result<SubscriberMade, ClientError> {
        let question = Question::PatchSubscribers {
            patches,
            for_s,
            if_revision,
        };
        ask(self, "", question)
    }

    /// Changes the rates of a node of the network. If the trees have another revision than `if_revision`,
    /// nothing is changed.
    pub fn change_node(
        &self,
        name: &str,
        patch: NodePatch,
        if_revision: Option<u64>,
    ) -> Result<SubscriberMade, ClientError> {
        let name = name.to_owned();
        let question = Question::ChangeNode {
            name,
            patch,
            if_revision,
        };
        ask(self, "", question)
    }

    /// Returns the last packets as a capture (pcapng): those of this time before now, or all that are kept;
    /// those that this interface has received, or all.
    pub fn packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, ClientError> {
        let from = from.map(str::to_owned);
        ask(self, "", Question::Packets { last, from })
    }
}

/// Returns the run whose status socket this is. Nobody else is asked there than processes of this user, of
/// root, and of services that root has installed.
impl From<PathBuf> for Remote {
    fn from(socket: PathBuf) -> Remote {
        Remote(Arc::new(Transport {
            name: socket.display().to_string(),
            destination: Destination::Status(socket),
            token: None,
        }))
    }
}

/// The path of the socket, or the address of the API.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

/// Prints where it is. The token is a secret.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.0.name).finish()
    }
}

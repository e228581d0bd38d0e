//! The sockets that are listened at. They are opened, and secrets are read, while the process still has its
//! privileges.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use fairgate_live::{Address, Endpoint, Endpoints, Offer};
use nix::unistd::{Gid, Group};
use tokio_rustls::TlsAcceptor;

use crate::http::api::Routes;
use crate::http::error::ControlError;
use crate::http::guard::Rules;
use crate::http::tls;
use crate::http::tokens::Tokens;
use crate::socket::Listening;

/// Open sockets that nobody answers at yet.
#[derive(Debug)]
pub struct Doors(pub(crate) Vec<Door>);

/// A socket and its rules.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) routes: Routes,
    pub(crate) entry: Entry,
    pub(crate) rules: Rules,
}

pub(crate) enum Entry {
    Unix {
        listening: Listening,
        group: Option<Gid>,
    },
    Tcp {
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
    },
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Entry::Unix { listening, .. } => f.debug_tuple("Unix").field(listening).finish(),
            Entry::Tcp { listener, .. } => f.debug_tuple("Tcp").field(listener).finish(),
        }
    }
}

impl Doors {
    /// Opens the sockets of all endpoints. Without any, there are no doors.
    ///
    /// # Errors
    /// Fails if an endpoint would let anyone control the run, if a file can't be read or is not safe, or if
    /// an address can't be used.
    pub fn open(endpoints: &Endpoints) -> Result<Doors, ControlError> {
        let wanted = [(Offer::Api, &endpoints.api), (Offer::Metrics, &endpoints.metrics)];
        let doors = wanted
            .into_iter()
            .filter_map(|(offer, endpoint)| Some(Door::open(offer, endpoint.as_ref()?)));
        doors.collect::<Result<_, _>>().map(Doors)
    }

    /// Opens the status socket, too, where root and this user ask the run whatever else it offers. The
    /// clients of no other door can keep them waiting.
    ///
    /// # Errors
    /// Fails if another process listens there, if others could exchange the socket, or if it can't be
    /// created.
    pub fn with_status_socket(mut self, socket: &Path) -> Result<Doors, ControlError> {
        self.0.push(Door {
            routes: Routes::Questions,
            entry: Entry::Unix {
                listening: Listening::at(socket, None)?,
                group: None,
            },
            rules: Rules::default(),
        });
        Ok(self)
    }

    /// Says what is offered where, a sentence for each endpoint.
    pub fn offered(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().filter_map(Door::sentence)
    }
}

impl Door {
    fn open(offer: Offer, endpoint: &Endpoint) -> Result<Door, ControlError> {
        endpoint.check(offer)?;
        let readers = endpoint.read_token.as_deref();
        let tokens = endpoint
            .token
            .as_deref()
            .map(|path| Tokens::read(path, readers))
            .transpose()?;
        let entry = match &endpoint.address {
            Address::Unix(path) => {
                let group = endpoint.group.as_deref().map(find_group).transpose()?;
                let listening = Listening::at(path, group)?;
                Entry::Unix { listening, group }
            }
            Address::Tcp(address) => {
                let tls = match (&endpoint.certificate, &endpoint.key) {
                    (Some(certificate), Some(key)) => Some(tls::acceptor(certificate, key)?),
                    _ => None,
                };
                let listener = TcpListener::bind(address).map_err(|source| ControlError::Address {
                    address: address.to_string(),
                    source,
                })?;
                Entry::Tcp { listener, tls }
            }
        };
        Ok(Door {
            routes: Routes::Offered(offer),
            entry,
            rules: Rules {
                tokens: tokens.map(Arc::new),
                refusals: Arc::default(),
            },
        })
    }

    fn sentence(&self) -> Option<String> {
        let Routes::Offered(offer) = self.routes else {
            return None;
        };
        let place = match &self.entry {
            Entry::Unix { listening, .. } => format!("unix:{}", listening.path().display()),
            Entry::Tcp { listener, tls } => {
                let scheme = if tls.is_some() { "https" } else { "http" };
                let address = listener.local_addr();
                // The port may have been chosen by the kernel.
                address.map_or(scheme.to_owned(), |address| format!("{scheme}://{address}"))
            }
        };
        Some(match offer {
            Offer::Api => format!("The API is at {place}."),
            Offer::Metrics => format!("The metrics are at {place}/metrics."),
        })
    }
}

fn find_group(name: &str) -> Result<Gid, ControlError> {
    let found = Group::from_name(name).ok().flatten();
    let found = found.ok_or_else(|| ControlError::NoGroup(name.to_owned()))?;
    Ok(found.gid)
}

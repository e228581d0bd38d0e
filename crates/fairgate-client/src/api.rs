//! The routes of the API that have methods here.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairgate_live::status::protocol::{ReservationStatus, ReserveOrder, TermsStatus, TreesStatus};
use fairgate_live::status::{FlowOrder, FlowsStatus, Status};
use hyper::Method;
use hyper::header::ETAG;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsConnector;

use crate::address::ApiAddress;
use crate::connection::{Asked, Coming, Way};
use crate::error::ClientError;
use crate::intervals::Intervals;
use crate::remote::Changed;
use crate::{tls, token};

/// What gives access to an API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The file with the token. It is needed at all addresses but unix sockets.
    pub token: Option<PathBuf>,
    /// The file with the certificates (PEM) that the host's one must lead to. Without it, those that the
    /// system trusts.
    pub ca: Option<PathBuf>,
}

/// The API of a run. Copies share what they have read from files.
#[derive(Clone)]
pub struct Api(Arc<Way>);

#[derive(Serialize)]
struct ChangeOrder<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    lines: &'a [String],
}

#[derive(Serialize)]
struct ReservationOrder<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    terms: &'a TermsStatus,
}

#[derive(Serialize)]
struct Direction<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
}

#[derive(Deserialize)]
struct Reservations {
    reservations: Vec<ReservationStatus>,
}

impl Api {
    /// Returns the API at an address. Nothing is asked yet.
    ///
    /// # Errors
    /// Fails if a file can't be read, if others may read the token, or if there is nobody to trust.
    pub fn new(address: ApiAddress, access: &Access) -> Result<Api, ClientError> {
        let tls = match &address {
            ApiAddress::Unix(_) => None,
            ApiAddress::Https(_) => Some(TlsConnector::from(tls::config(access.ca.as_deref())?)),
        };
        let token = access.token.as_deref().map(token::read).transpose()?;
        Ok(Api(Arc::new(Way { address, tls, token })))
    }

    pub(crate) fn status(&self, only_used: bool) -> Result<Status, ClientError> {
        self.get(&format!("/v1/status?used={only_used}"))
    }

    pub(crate) fn trees(&self) -> Result<TreesStatus, ClientError> {
        self.get("/v1/trees")
    }

    /// Changes the trees. An expected revision becomes an entity tag.
    pub(crate) fn change(
        &self,
        from: Option<&str>,
        lines: &[String],
        if_revision: Option<u64>,
    ) -> Result<Changed, ClientError> {
        let tag = if_revision.map(|revision| self.tag_of(revision)).transpose()?;
        let asked = Asked {
            if_match: tag.as_deref(),
            is_long: true,
            ..sent(
                Method::POST,
                "/v1/changes".to_owned(),
                &ChangeOrder { from, lines },
            )?
        };
        understood(self.0.ask(&asked)?)
    }

    /// Returns the entity tag of the trees' revision. Only the run knows the other half of it.
    fn tag_of(&self, expected: u64) -> Result<String, ClientError> {
        let coming = self.0.ask(&got("/v1/changes"))?;
        let tag = coming.response.headers().get(ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let tag = tag.ok_or_else(|| ClientError::Unexpected("it has no entity tag".to_owned()))?;
        #[derive(Deserialize)]
        struct Revision {
            revision: u64,
        }
        match understood(coming)? {
            Revision { revision } if revision == expected => Ok(tag),
            Revision { revision } => Err(ClientError::Stale { revision }),
        }
    }

    pub(crate) fn reserve(
        &self,
        from: Option<&str>,
        order: &ReserveOrder,
    ) -> Result<Vec<ReservationStatus>, ClientError> {
        let one = |name: &str| format!("/v1/reservations/{}", escaped(name));
        let of_direction = || match from {
            Some(from) => format!("?from={}", escaped(from)),
            None => String::new(),
        };
        let asked = match order {
            ReserveOrder::List => got(&format!("/v1/reservations{}", of_direction())),
            ReserveOrder::Add(terms) => {
                let order = ReservationOrder { from, terms };
                sent(Method::POST, "/v1/reservations".to_owned(), &order)?
            }
            ReserveOrder::Change(terms) => {
                sent(Method::PUT, one(&terms.name), &ReservationOrder { from, terms })?
            }
            ReserveOrder::Withdraw { name } => Asked {
                method: Method::DELETE,
                ..got(&format!("{}{}", one(name), of_direction()))
            },
            ReserveOrder::Refresh { name } => sent(
                Method::POST,
                format!("{}/refresh", one(name)),
                &Direction { from },
            )?,
        };
        let asked = Asked {
            is_long: true,
            ..asked
        };
        let Reservations { reservations } = understood(self.0.ask(&asked)?)?;
        Ok(reservations)
    }

    pub(crate) fn flows(&self, order: FlowOrder, limit: u32) -> Result<FlowsStatus, ClientError> {
        // The words of the socket's protocol are those of the API.
        let order =
            serde_json::to_value(order).map_err(|error| ClientError::Unexpected(error.to_string()))?;
        let order = order.as_str().unwrap_or_default();
        self.get(&format!("/v1/flows?sort={order}&limit={limit}"))
    }

    pub(crate) fn packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, ClientError> {
        let mut parameters = Vec::new();
        parameters.extend(last.map(|last| format!("seconds={}", last.as_secs_f64())));
        parameters.extend(from.map(|from| format!("from={}", escaped(from))));
        self.0
            .ask(&got(&format!("/v1/packets?{}", parameters.join("&"))))?
            .whole()
    }

    pub(crate) fn record(&self, interval: Duration) -> Result<Intervals, ClientError> {
        let target = format!("/v1/intervals?interval_us={}", interval.as_micros());
        Ok(Intervals::of_api(self.0.ask(&got(&target))?, interval))
    }

    fn get<A: DeserializeOwned>(&self, target: &str) -> Result<A, ClientError> {
        understood(self.0.ask(&got(target))?)
    }
}

fn got<'a>(target: &str) -> Asked<'a> {
    Asked {
        method: Method::GET,
        target: target.to_owned(),
        body: None,
        if_match: None,
        is_long: false,
    }
}

fn sent<'a>(method: Method, target: String, body: &impl Serialize) -> Result<Asked<'a>, ClientError> {
    let body = serde_json::to_vec(body).map_err(|error| ClientError::Unexpected(error.to_string()))?;
    Ok(Asked {
        method,
        body: Some(body),
        ..got(&target)
    })
}

fn understood<A: DeserializeOwned>(coming: Coming) -> Result<A, ClientError> {
    serde_json::from_slice(&coming.whole()?).map_err(|error| ClientError::Unexpected(error.to_string()))
}

fn escaped(text: &str) -> impl fmt::Display + '_ {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.address.fmt(f)
    }
}

/// Prints the address. The token is a secret.
impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Api").field(&self.0.address).finish()
    }
}

//! The routes of the API that have methods here.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fairgate_run_api::{
    Answer, Ask, Change, ChangeMade, Detail, FlowsStatus, Question, Reservations, Reserve, ReserveOrder,
    Status, TermsStatus, TreesStatus,
};
use hyper::Method;
use hyper::header::ETAG;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsConnector;

use super::address::ApiAddress;
use super::connection::{ApiRequest, ApiResponse, Transport};
use super::error::ClientError;
use super::intervals::Intervals;
use super::{tls, token};

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
pub struct Api(Arc<Transport>);

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
struct Revision {
    revision: u64,
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
        Ok(Api(Arc::new(Transport { address, tls, token })))
    }

    /// Returns the entity tag of the trees' revision. Only the run knows the other half of it.
    fn tag_of(&self, expected: u64) -> Result<String, ClientError> {
        let response = self.0.request(&got("/v1/changes"))?;
        let tag = response.response.headers().get(ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let tag = tag.ok_or_else(|| ClientError::Unexpected("it has no entity tag".to_owned()))?;
        match understood(response)? {
            Revision { revision } if revision == expected => Ok(tag),
            Revision { revision } => Err(ClientError::Stale { revision }),
        }
    }

    /// Sends an order that the run may plan for as long as it needs. An expected revision becomes an entity
    /// tag.
    fn order<A: DeserializeOwned>(
        &self,
        asked: ApiRequest<'_>,
        if_revision: Option<u64>,
    ) -> Result<A, ClientError> {
        let tag = if_revision.map(|revision| self.tag_of(revision)).transpose()?;
        understood(self.0.request(&ApiRequest {
            if_match: tag.as_deref(),
            is_long: true,
            ..asked
        })?)
    }

    fn get<A: DeserializeOwned>(&self, target: &str) -> Result<A, ClientError> {
        understood(self.0.request(&got(target))?)
    }
}

/// The questions that commands ask.
impl Ask for Api {
    type Error = ClientError;
    type Recording = Intervals;

    fn ask(&self, _who: &str, question: Question) -> Result<Answer, ClientError> {
        Ok(match question {
            Question::Status { detail } => {
                let is_used = detail == Detail::Used;
                self.get::<Status>(&format!("/v1/status?used={is_used}"))?.into()
            }
            Question::Revision => self.get::<Revision>("/v1/changes")?.revision.into(),
            Question::Trees => self.get::<TreesStatus>("/v1/trees")?.into(),
            Question::Change(change) => {
                let if_revision = change.if_revision;
                let body = Change {
                    if_revision: None,
                    ..change
                };
                let asked = sent(Method::POST, "/v1/changes".to_owned(), &body)?;
                self.order::<ChangeMade>(asked, if_revision)?.into()
            }
            Question::Reserve(Reserve {
                from,
                order,
                if_revision,
            }) => {
                let asked = of_reservations(from.as_deref(), &order)?;
                self.order::<Reservations>(asked, if_revision)?.into()
            }
            Question::Flows { order, limit } => {
                // The words of the status socket are those of the API.
                let order = serde_json::to_value(order)
                    .map_err(|error| ClientError::Unexpected(error.to_string()))?;
                let order = order.as_str().unwrap_or_default();
                self.get::<FlowsStatus>(&format!("/v1/flows?sort={order}&limit={limit}"))?
                    .into()
            }
            Question::Packets { last, from } => {
                let mut parameters = Vec::new();
                parameters.extend(last.map(|last| format!("seconds={}", last.as_secs_f64())));
                parameters.extend(from.map(|from| format!("from={}", escaped(&from))));
                let target = format!("/v1/packets?{}", parameters.join("&"));
                self.0.request(&got(&target))?.whole()?.into()
            }
            Question::Features
            | Question::Reload
            | Question::Outline { .. }
            | Question::Place { .. }
            | Question::WhatIf(_)
            | Question::Subscribers
            | Question::Subscriber { .. }
            | Question::ChangeSubscriber { .. }
            | Question::ReplaceSubscribers { .. } => {
                return Err(ClientError::Unexpected(
                    "this client does not ask for it".to_owned(),
                ));
            }
        })
    }

    fn record(&self, interval: Duration) -> Result<Intervals, ClientError> {
        let target = format!("/v1/intervals?interval_us={}", interval.as_micros());
        Ok(Intervals::of_api(self.0.request(&got(&target))?, interval))
    }
}

/// Returns the request of an order about reservations.
fn of_reservations<'a>(from: Option<&str>, order: &ReserveOrder) -> Result<ApiRequest<'a>, ClientError> {
    let one = |name: &str| format!("/v1/reservations/{}", escaped(name));
    let of_direction = || match from {
        Some(from) => format!("?from={}", escaped(from)),
        None => String::new(),
    };
    Ok(match order {
        ReserveOrder::List => got(&format!("/v1/reservations{}", of_direction())),
        ReserveOrder::Add(terms) => {
            let order = ReservationOrder { from, terms };
            sent(Method::POST, "/v1/reservations".to_owned(), &order)?
        }
        ReserveOrder::Change(terms) => {
            sent(Method::PUT, one(&terms.name), &ReservationOrder { from, terms })?
        }
        ReserveOrder::Withdraw { name } => ApiRequest {
            method: Method::DELETE,
            ..got(&format!("{}{}", one(name), of_direction()))
        },
        ReserveOrder::Refresh { name } => sent(
            Method::POST,
            format!("{}/refresh", one(name)),
            &Direction { from },
        )?,
    })
}

fn got<'a>(target: &str) -> ApiRequest<'a> {
    ApiRequest {
        method: Method::GET,
        target: target.to_owned(),
        body: None,
        if_match: None,
        is_long: false,
    }
}

fn sent<'a>(method: Method, target: String, body: &impl Serialize) -> Result<ApiRequest<'a>, ClientError> {
    let body = serde_json::to_vec(body).map_err(|error| ClientError::Unexpected(error.to_string()))?;
    Ok(ApiRequest {
        method,
        body: Some(body),
        ..got(&target)
    })
}

fn understood<A: DeserializeOwned>(response: ApiResponse) -> Result<A, ClientError> {
    serde_json::from_slice(&response.whole()?).map_err(|error| ClientError::Unexpected(error.to_string()))
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

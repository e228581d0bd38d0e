//! The questions of commands as requests.

use std::fmt;
use std::time::Duration;

use fairgate_run_api::{
    Answer, Ask, Change, ChangeMade, Detail, FlowsStatus, Question, Reservations, Reserve, ReserveOrder,
    Status, SubscriberDocument, SubscriberMade, TermsStatus, TreesStatus,
};
use hyper::Method;
use hyper::header::ETAG;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::connection::{ApiRequest, ApiResponse, Transport};
use super::error::ClientError;
use super::intervals::{Intervals, ended};
use super::remote::Remote;

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

impl Transport {
    /// Returns the entity tag of the trees' revision. Only the run knows the other half of it.
    fn tag_of(&self, expected: u64) -> Result<String, ClientError> {
        let response = self.request(&got("/v1/changes"))?;
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
        understood(self.request(&ApiRequest {
            if_match: tag.as_deref(),
            is_long: true,
            ..asked
        })?)
    }

    fn get<A: DeserializeOwned>(&self, target: &str) -> Result<A, ClientError> {
        understood(self.request(&got(target))?)
    }
}

impl Ask for Remote {
    type Error = ClientError;
    type Recording = Intervals;

    fn ask(&self, _who: &str, question: Question) -> Result<Answer, ClientError> {
        let run = self.transport();
        Ok(match question {
            Question::Status { detail } => {
                let wanted = match detail {
                    Detail::Classes { first, last } => format!("classes={first}-{last}"),
                    Detail::Used => "used=true".to_owned(),
                    Detail::All | Detail::Counters => "used=false".to_owned(),
                };
                run.get::<Status>(&format!("/v1/status?{wanted}"))?.into()
            }
            Question::Revision => run.get::<Revision>("/v1/changes")?.revision.into(),
            Question::Trees => run.get::<TreesStatus>("/v1/trees")?.into(),
            Question::Change(change) => {
                let if_revision = change.if_revision;
                let body = Change {
                    if_revision: None,
                    ..change
                };
                let asked = sent(Method::POST, "/v1/changes".to_owned(), &body)?;
                run.order::<ChangeMade>(asked, if_revision)?.into()
            }
            Question::Reserve(Reserve {
                from,
                order,
                if_revision,
            }) => {
                let asked = of_reservations(from.as_deref(), &order)?;
                run.order::<Reservations>(asked, if_revision)?.into()
            }
            Question::Flows { order, limit } => {
                let order = serde_json::to_value(order)
                    .map_err(|error| ClientError::Unexpected(error.to_string()))?;
                let order = order.as_str().unwrap_or_default();
                run.get::<FlowsStatus>(&format!("/v1/flows?sort={order}&limit={limit}"))?
                    .into()
            }
            Question::Packets { last, from } => {
                let mut parameters = Vec::new();
                parameters.extend(last.map(|last| format!("seconds={}", last.as_secs_f64())));
                parameters.extend(from.map(|from| format!("from={}", escaped(&from))));
                let target = format!("/v1/packets?{}", parameters.join("&"));
                run.request(&got(&target))?.whole()?.into()
            }
            Question::Confirm => {
                let target = "/v1/changes/confirm".to_owned();
                let asked = sent(Method::POST, target, &serde_json::Map::new())?;
                run.order::<Revision>(asked, None)?.revision.into()
            }
            Question::Reload { because } => {
                let asked = sent(
                    Method::POST,
                    "/v1/reload".to_owned(),
                    &because.map_or(json!({}), |because| json!({ "because": because })),
                )?;
                run.order::<ChangeMade>(asked, None)?.into()
            }
            Question::Subscribers => run.get::<SubscriberDocument>("/v1/subscribers")?.into(),
            Question::PatchSubscribers {
                patches,
                for_s,
                if_revision,
            } => {
                let named = |(id, mut members): (String, Map<String, Value>)| {
                    members.insert("id".to_owned(), id.into());
                    Value::Object(members)
                };
                let subscribers: Vec<Value> = patches.into_iter().map(named).collect();
                let body = json!({ "subscribers": subscribers, "for_s": for_s });
                let asked = sent(Method::PATCH, "/v1/subscribers".to_owned(), &body)?;
                run.order::<SubscriberMade>(asked, if_revision)?.into()
            }
            Question::ChangeNode {
                name,
                patch,
                if_revision,
            } => {
                let target = format!("/v1/nodes/{}", escaped(&name));
                let asked = sent(Method::PATCH, target, &patch)?;
                run.order::<SubscriberMade>(asked, if_revision)?.into()
            }
            Question::Features
            | Question::Outline { .. }
            | Question::Place { .. }
            | Question::WhatIf(_)
            | Question::Subscriber { .. }
            | Question::ChangeSubscriber { .. }
            | Question::ReplaceSubscribers { .. } => {
                return Err(ClientError::Unexpected(
                    "this client does not ask for it".to_owned(),
                ));
            }
        })
    }

    /// The run records when this returns: the first interval, which has no rows, was received.
    fn record(&self, interval: Duration) -> Result<Intervals, ClientError> {
        let target = format!("/v1/intervals?interval_us={}", interval.as_micros());
        let mut intervals = Intervals::of(self.transport().request(&got(&target))?, interval);
        intervals.next().unwrap_or_else(|| Err(ended()))?;
        Ok(intervals)
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

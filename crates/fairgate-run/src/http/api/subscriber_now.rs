//! What a subscriber does just now, and why it is slow.

use axum::extract::State;
use axum::response::Response;
use fairgate_run_api::{
    DEFAULT_FLOWS, FlowOrder, FlowStatus, FlowsStatus, Load, Question, SubscriberStatus, Why,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::history::{ClassFigures, DirectionHistory};
use crate::http::answer::{held, json_bytes};
use crate::http::api::flows;
use crate::http::api::history::readings;
use crate::http::problem::{Kind, Problem};
use crate::http::query::Named;
use crate::http::shared::{NOBODY, Shared};

/// What a subscriber does just now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SubscriberNow {
    /// `fairgate.subscriber/1`.
    schema: &'static str,
    /// Its identifier.
    id: String,
    /// When the last reading was made, seconds since the start of the run.
    at_s: f64,
    /// What goes to it.
    down: Side,
    /// What comes from it.
    up: Side,
    /// Its flows, those with the highest rates: 100 at most.
    flows: Vec<FlowStatus>,
}

/// A direction of a subscriber.
#[derive(Debug, Serialize, ToSchema)]
struct Side {
    /// The interface that the direction receives from.
    from: String,
    /// Why it is slow, or that nothing here slows it.
    why: Why,
    /// What its class did between the last two readings of the run; nothing if no packet has come to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<ClassFigures>,
    /// The nodes of the network that it shares with others, the nearest one first.
    shared: Vec<SharedNode>,
}

/// A node of the network on the path of a subscriber.
#[derive(Debug, Default, Serialize, ToSchema)]
struct SharedNode {
    /// Its name.
    name: String,
    /// Its class.
    class: String,
    /// What left it, bits per second, of all workers together.
    rate_bps: f64,
    /// What the list lets it send at most, bits per second.
    limit_bps: Option<u64>,
}

/// What a subscriber does just now, and why it is slow
///
/// The run is read once a second, or less often if a reading takes more than 5 % of the time. The cause is
/// the first one of these: its plan, a node of the network that it shares, bursts in its queue, losses before
/// this machine, long round trips of its flows behind it.
#[utoipa::path(
    get,
    path = "/v1/subscribers/{id}/now",
    operation_id = "subscriberNow",
    tag = "subscribers",
    params(("id" = String, Path, description = "Its identifier")),
    responses(
        (status = 200, description = "What it does", body = SubscriberNow),
        (status = 404, description = "There is no such subscriber", body = Problem,
            content_type = "application/problem+json"),
        (status = "default", description = "Refused", body = Problem,
            content_type = "application/problem+json")
    )
)]
pub(super) async fn now(State(shared): State<Shared>, Named(id): Named) -> Result<Response, Problem> {
    let turn = shared.turn_to_answer().await?;
    let asked = shared.wait(move |shared| {
        let found: SubscriberStatus = shared.put(NOBODY, Question::Subscriber { id: id.clone() })?;
        let question = Question::Flows {
            order: FlowOrder::Rate,
            limit: flows::MOST,
        };
        // The kernel's runs observe none, so there are no round trips.
        let FlowsStatus { mut flows, .. } = shared.put(NOBODY, question).unwrap_or_default();
        flows.retain(|flow| flow.subscriber.as_ref().is_some_and(|one| one.id == id));
        let history = readings(shared)?;
        let [down, up] = found.directions.map(|index| history.directions.get(index));
        let (Some(down), Some(up)) = (down, up) else {
            return Err(Problem::new(
                Kind::Internal,
                "a direction of the subscriber is not read",
            ));
        };
        let document = SubscriberNow {
            schema: "fairgate.subscriber/1",
            at_s: down.at_s,
            down: side(down, &id, true, &flows),
            up: side(up, &id, false, &flows),
            id,
            flows: {
                flows.truncate(DEFAULT_FLOWS as usize);
                flows
            },
        };
        drop(history);
        json_bytes(&document)
    });
    Ok(held("application/json", asked.await??, turn))
}

fn side(direction: &DirectionHistory, id: &str, goes_down: bool, flows: &[FlowStatus]) -> Side {
    let is_its = |class: &&ClassFigures| class.subscriber.as_ref().is_some_and(|one| one.id == id);
    let figures = direction.latest.iter().find(is_its).cloned();
    let shared = shared_nodes(figures.as_ref(), &direction.nodes);
    let own = figures.as_ref().map(|class| Load {
        name: id,
        rate_bps: class.rate_bps,
        limit_bps: class.limit_bps,
        delay_ms: class.delay_ms,
    });
    let loads = shared.iter().map(|node| Load {
        name: &node.name,
        rate_bps: node.rate_bps,
        limit_bps: node.limit_bps,
        delay_ms: None,
    });
    let of_side = flows.iter().filter(|flow| flow.from == direction.from);
    let of_side: Vec<&FlowStatus> = of_side.collect();
    Side {
        from: direction.from.clone(),
        why: Why::find(goes_down, own, loads, &of_side),
        figures,
        shared,
    }
}

/// Returns the nodes above a class, the nearest one first. Several workers have a part of each.
fn shared_nodes(class: Option<&ClassFigures>, nodes: &[ClassFigures]) -> Vec<SharedNode> {
    let mut found: Vec<SharedNode> = Vec::new();
    let mut next = class.and_then(|class| class.node);
    // No path is longer than all nodes.
    while let Some(number) = next.filter(|_| found.len() < nodes.len()) {
        let number = number.to_string();
        let parts = || {
            let is_it = |node: &&ClassFigures| node.class.rsplit('/').next() == Some(&number);
            nodes.iter().filter(is_it)
        };
        let Some(node) = parts().next() else {
            break;
        };
        found.push(SharedNode {
            name: node.name.clone().unwrap_or_default(),
            class: node.class.clone(),
            rate_bps: parts().map(|part| part.rate_bps).sum(),
            limit_bps: node.limit_bps,
        });
        next = node.node;
    }
    found
}

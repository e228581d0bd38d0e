//! What the flows of one application send.

use std::time::Duration;

use crate::scenario::{Flow, Traffic};

/// What a flow sends, and what other flows of the same application send.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) forth: Traffic,
    /// The number of flows, if the application says so.
    pub(super) count: Option<u32>,
    /// The time from the start of the flow to its first packet.
    pub(super) offset: Duration,
    more: Vec<Further>,
}

/// Another flow of the same application.
#[derive(Clone)]
struct Further {
    /// What its name has behind the name of the first flow.
    suffix: String,
    traffic: Traffic,
    count: Option<u32>,
    offset: Duration,
    /// Whether it has the opposite direction.
    is_back: bool,
}

impl From<Traffic> for Sent {
    fn from(forth: Traffic) -> Sent {
        Sent {
            forth,
            count: None,
            offset: Duration::ZERO,
            more: Vec::new(),
        }
    }
}

impl Sent {
    pub(super) fn both(forth: Traffic, back: Traffic) -> Sent {
        Sent::from(forth).with_back(back, None)
    }

    pub(super) fn with_back(mut self, traffic: Traffic, count: Option<u32>) -> Sent {
        self.more.push(Further {
            suffix: " back".into(),
            traffic,
            count,
            offset: Duration::ZERO,
            is_back: true,
        });
        self
    }

    /// Returns recorded flows, each with the time of its first packet. There is at least one.
    pub(super) fn recorded(flows: Vec<(Duration, Traffic)>) -> Sent {
        let mut flows = flows.into_iter();
        let (offset, forth) = flows
            .next()
            .expect("a recording without packets is rejected before");
        let more = flows.enumerate().map(|(index, (offset, traffic))| Further {
            suffix: format!(" {}", index + 2),
            traffic,
            count: None,
            offset,
            is_back: false,
        });
        Sent {
            offset,
            more: more.collect(),
            ..Sent::from(forth)
        }
    }

    /// Whether a flow of the application has the opposite direction.
    pub(super) fn has_back(&self) -> bool {
        self.more.iter().any(|further| further.is_back)
    }

    /// Leaves out the flows of the opposite direction.
    pub(super) fn without_back(mut self) -> Sent {
        self.more.retain(|further| !further.is_back);
        self
    }

    /// Returns the other flows. `first` is the flow that the file describes, without its own offset.
    pub(super) fn others(self, first: &Flow) -> Vec<Flow> {
        let own_offset = self.offset;
        let flow = |further: Further| {
            let mut flow = Flow {
                name: format!("{}{}", first.name, further.suffix),
                group: first
                    .group
                    .as_ref()
                    .map(|group| format!("{group}{}", further.suffix)),
                traffic: further.traffic,
                count: further.count.unwrap_or(first.count),
                start: first.start - own_offset + further.offset,
                ..first.clone()
            };
            if further.is_back {
                (flow.source, flow.destination) = (flow.destination, flow.source);
                if let Some(nodes) = &mut flow.route {
                    nodes.reverse();
                }
            }
            flow
        };
        self.more.into_iter().map(flow).collect()
    }
}

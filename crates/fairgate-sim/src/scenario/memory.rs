//! Estimates how much memory a scenario needs, so that a scenario that is too large is rejected at the start.
//!
//! Packets are not included. Their number is limited during the run
//! ([`TooManyPackets`](crate::TooManyPackets)).

use fairgate_config::units::format_memory;

use crate::scenario::{Mistake, Scenario, ScenarioError, ScenarioPart, Traffic};

/// A UDP flow with its results and monitors, whose histograms of delays grow with the longest delay, bytes.
const UDP_FLOW: u64 = 200_000;
/// A TCP flow with the same, and both ends of the connection, bytes.
const TCP_FLOW: u64 = 360_000;
/// Both interfaces of a link with their monitors and results, without their queues, bytes.
const LINK: u64 = 72_000;
/// A point of the time series of a UDP flow, while it is recorded, in the results, and as text, bytes.
const UDP_POINT: u64 = 55;
const TCP_POINT: u64 = 130;
const LINK_POINT: u64 = 260;
/// The limit on every machine, bytes.
const MOST: u64 = 1 << 40;

/// A part of the memory, and how to reduce it.
struct Usage {
    part: ScenarioPart,
    field: &'static str,
    bytes: u64,
    what: String,
    remedy: &'static str,
}

impl Scenario {
    /// Returns the estimated memory of a simulation in bytes, including results. The order of magnitude is
    /// right.
    pub fn memory(&self) -> u64 {
        let parts = self.usages();
        parts
            .iter()
            .fold(LINK, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Checks that a simulation needs at most `available` bytes of memory.
    ///
    /// # Errors
    /// If it needs more, reports the part that needs the most.
    pub fn check_memory(&self, available: u64) -> Result<(), ScenarioError> {
        let needed = self.memory();
        let most = available.min(MOST);
        if needed <= most {
            return Ok(());
        }
        let largest = self.usages().into_iter().max_by_key(|part| part.bytes);
        let Some(part) = largest else { return Ok(()) };
        let what = format!(
            "the scenario needs about {} of memory, {} of it for {}, but only {} is available; {}",
            format_memory(needed),
            format_memory(part.bytes),
            part.what,
            format_memory(most),
            part.remedy
        );
        Err(Mistake::new(part.field, what).of(part.part))
    }

    fn usages(&self) -> Vec<Usage> {
        let of_flow = |udp, tcp| {
            move |flow: &crate::scenario::Flow| match flow.traffic {
                Traffic::Udp(_) => udp,
                Traffic::Tcp(_) => tcp,
            }
        };
        let (point, whole) = (of_flow(UDP_POINT, TCP_POINT), of_flow(UDP_FLOW, TCP_FLOW));
        let intervals = match self.interval.as_nanos() {
            0 => 0,
            interval => u64::try_from(self.duration.as_nanos() / interval).unwrap_or(u64::MAX),
        };
        let points = self
            .flows
            .iter()
            .fold(LINK_POINT.saturating_mul(self.links.len() as u64), |sum, flow| {
                sum.saturating_add(point(flow) * u64::from(flow.count))
            });
        let mut parts = vec![Usage {
            part: ScenarioPart::Scenario,
            field: "interval",
            bytes: intervals.saturating_mul(points),
            what: format!("{intervals} intervals of time series"),
            remedy: "choose a longer `interval`, a shorter duration, or fewer flows",
        }];
        parts.extend(self.flows.iter().enumerate().map(|(index, flow)| Usage {
            part: ScenarioPart::Flow(index),
            field: "count",
            bytes: whole(flow) * u64::from(flow.count),
            what: format!("{} flows `{}`", flow.count, flow.name),
            remedy: "lower the count",
        }));
        parts.extend(self.links.iter().enumerate().flat_map(|(index, link)| {
            [("queue_a", &link.queue_a), ("queue_b", &link.queue_b)].map(|(field, queue)| Usage {
                part: ScenarioPart::Link(index),
                field,
                bytes: queue.memory().saturating_add(LINK / 2),
                what: "this queue".to_owned(),
                remedy: "lower `flows` or `limit` of its disciplines, or `count` of its classes",
            })
        }));
        parts
    }
}

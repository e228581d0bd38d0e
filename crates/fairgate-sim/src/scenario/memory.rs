//! About how much memory a scenario takes, so that one that the machine can't hold is refused before it is begun.
//!
//! Packets are not counted: their number is bounded while the simulation runs ([`TooManyPackets`](crate::TooManyPackets)).

use fairgate_config::units::format_memory;

use crate::scenario::{Culprit, Mistake, Scenario, ScenarioError, Traffic};

/// A flow with its monitors, whose histograms of delays grow with the longest, and its results, bytes.
const UDP_FLOW: u64 = 200_000;
/// The same with both ends of a connection.
const TCP_FLOW: u64 = 360_000;
/// Both interfaces of a link, their monitors and results, without their queues.
const LINK: u64 = 72_000;
/// A point of the time series of each, while it is recorded, in the results, and as text.
const UDP_POINT: u64 = 55;
const TCP_POINT: u64 = 130;
const LINK_POINT: u64 = 260;
/// Beyond this no machine is meant.
const MOST: u64 = 1 << 40;

/// What takes memory, and what can be done about it.
struct Part {
    culprit: Culprit,
    field: &'static str,
    bytes: u64,
    what: String,
    remedy: &'static str,
}

impl Scenario {
    /// About how many bytes of memory a simulation takes, results included: right in its order of magnitude.
    pub fn memory(&self) -> u64 {
        let parts = self.parts();
        parts
            .iter()
            .fold(LINK, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Checks that a simulation would take at most `available` bytes of memory.
    ///
    /// # Errors
    /// If it would take more: of the part that takes the most.
    pub fn check_memory(&self, available: u64) -> Result<(), ScenarioError> {
        let needed = self.memory();
        let most = available.min(MOST);
        if needed <= most {
            return Ok(());
        }
        let largest = self.parts().into_iter().max_by_key(|part| part.bytes);
        let Some(part) = largest else { return Ok(()) };
        let what = format!(
            "the scenario takes about {} of memory, {} of it for {}, and {} can be had; {}",
            format_memory(needed),
            format_memory(part.bytes),
            part.what,
            format_memory(most),
            part.remedy
        );
        Err(Mistake::new(part.field, what).of(part.culprit))
    }

    fn parts(&self) -> Vec<Part> {
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
        let mut parts = vec![Part {
            culprit: Culprit::Scenario,
            field: "interval",
            bytes: intervals.saturating_mul(points),
            what: format!("{intervals} intervals of time series"),
            remedy: "take a longer `interval`, a shorter duration, or fewer flows",
        }];
        parts.extend(self.flows.iter().enumerate().map(|(index, flow)| Part {
            culprit: Culprit::Flow(index),
            field: "count",
            bytes: whole(flow) * u64::from(flow.count),
            what: format!("{} flows `{}`", flow.count, flow.name),
            remedy: "lower the count",
        }));
        parts.extend(self.links.iter().enumerate().flat_map(|(index, link)| {
            [("queue_a", &link.queue_a), ("queue_b", &link.queue_b)].map(|(field, queue)| Part {
                culprit: Culprit::Link(index),
                field,
                bytes: queue.memory().saturating_add(LINK / 2),
                what: "this queue".to_owned(),
                remedy: "lower `flows` or `limit` of its disciplines, or `count` of its classes",
            })
        }));
        parts
    }
}

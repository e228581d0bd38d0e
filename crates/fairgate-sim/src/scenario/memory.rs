//! Estimates how much memory a scenario needs, so that a scenario that is too large is rejected at the start.
//!
//! Packets are not included. Their number is limited during the run
//! ([`TooManyPackets`](crate::TooManyPackets)).

use fairgate_config::units::format_memory;

use crate::random::Distribution;
use crate::scenario::{Flow, Mistake, Scenario, ScenarioError, ScenarioPart, Traffic};

/// A UDP flow while it is there: its place, source and monitor, bytes.
const UDP_FLOW: u64 = 1_700;
/// The same for a TCP flow with both ends of the connection and its segments in the network, bytes.
const TCP_FLOW: u64 = 5_000;
/// The row of results of a UDP flow, and its text, bytes.
const UDP_ROW: u64 = 5_000;
const TCP_ROW: u64 = 6_500;
/// A group with its results, whose histograms grow with the range of delays, bytes.
const GROUP: u64 = 20_000;
/// Both interfaces of a link with their monitors and results, without their queues, bytes.
const LINK: u64 = 13_000;
/// A point of the time series of a UDP flow with a row, while it is recorded, in the results, and as text,
/// bytes.
const UDP_POINT: u64 = 35;
const TCP_POINT: u64 = 75;
const GROUP_POINT: u64 = 40;
const LINK_POINT: u64 = 170;
const OBSERVATION_POINT: u64 = 50;
/// How long a TCP flow is assumed to last that arrives at random and has no lifetime, ns. It depends on the
/// network.
const TRANSFER: f64 = 2e9;
/// MAC queues grow with the frames that are in them, which are seldom more than these.
const USUAL_MAC_QUEUE: u32 = 256;
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
    /// Returns the estimated memory of a simulation in bytes, including results. It is right
    /// within a factor of 2.
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
        let intervals = match self.interval.as_nanos() {
            0 => 0,
            interval => u64::try_from(self.duration.as_nanos() / interval).unwrap_or(u64::MAX),
        };
        let of_links = LINK_POINT.saturating_mul(self.links.len() as u64);
        let of_observations =
            OBSERVATION_POINT.saturating_mul((self.observations.len() + self.autorates.len()) as u64);
        let points = self
            .flows
            .iter()
            .fold(of_links.saturating_add(of_observations), |sum, flow| {
                let with_rows = self.population(flow).with_series;
                let of_flows = (by_transport(flow, UDP_POINT, TCP_POINT) as f64 * with_rows) as u64;
                sum.saturating_add(of_flows).saturating_add(GROUP_POINT)
            });
        let mut parts = vec![Usage {
            part: ScenarioPart::Scenario,
            field: "interval",
            bytes: intervals.saturating_mul(points),
            what: format!("{intervals} intervals of time series"),
            remedy: "choose a longer `interval`, a shorter duration, or fewer flows, or give groups of flows \
                     rows = false",
        }];
        parts.extend(self.flows.iter().enumerate().map(|(index, flow)| {
            let population = self.population(flow);
            let live = by_transport(flow, UDP_FLOW, TCP_FLOW) as f64 * population.live;
            let rows = by_transport(flow, UDP_ROW, TCP_ROW) as f64 * population.rows;
            // Copies become rows at the end, one after another. Rows of arrivals pile up beside later flows.
            let flows = match flow.arrivals {
                None => live.max(rows),
                Some(_) => live + rows,
            };
            Usage {
                part: ScenarioPart::Flow(index),
                field: if flow.arrivals.is_some() {
                    "arrivals"
                } else {
                    "count"
                },
                bytes: GROUP + flows as u64,
                what: match flow.arrivals {
                    None => format!("{} flows `{}`", flow.count, flow.name),
                    Some(_) => format!("the flows `{}`", flow.name),
                },
                remedy: match (flow.has_rows(), &flow.arrivals) {
                    (true, None) => "lower the count, or write rows = false",
                    (false, None) => "lower the count",
                    (true, Some(_)) => "lower the rate of arrivals or the duration, or write rows = false",
                    (false, Some(_)) => "lower the rate of arrivals or the lifetime",
                },
            }
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
        parts.extend(self.cells.iter().enumerate().map(|(index, cell)| {
            let stations = cell.stations.len() as u64;
            // Frames in the MAC queues of four categories in two directions, 32 bytes each.
            let frames = 8 * u64::from(cell.mac_queue.min(USUAL_MAC_QUEUE)) * 32;
            let of_stations = (cell.queue_stations.memory() + LINK / 2 + frames).saturating_mul(stations);
            Usage {
                part: ScenarioPart::Cell(index),
                field: "stations",
                bytes: cell
                    .queue_ap
                    .memory()
                    .saturating_add(LINK / 2)
                    .saturating_add(of_stations),
                what: format!("the cell `{}`", cell.name),
                remedy: "lower the number of stations, or `flows` or `limit` of its disciplines",
            }
        }));
        parts
    }

    /// Returns how many flows of a group are in memory.
    fn population(&self, flow: &Flow) -> Population {
        let duration = self.duration.as_nanos() as f64;
        let lifetime = flow.lifetime.as_ref().map(Distribution::expected);
        let (live, total) = match &flow.arrivals {
            None => (f64::from(flow.count), f64::from(flow.count)),
            Some(arrivals) => {
                // A wrong rate is reported by the scenario's check.
                let interval = arrivals
                    .mean_interval(flow.mean_payload())
                    .unwrap_or(f64::INFINITY);
                let total = duration / interval;
                let stays = lifetime.unwrap_or(TRANSFER).min(duration);
                ((stays / interval).min(total).max(1.0), total)
            }
        };
        let rows = if flow.has_rows() { total } else { 0.0 };
        let share = match (&flow.arrivals, lifetime) {
            (None, _) => 1.0,
            (Some(_), lifetime) => (lifetime.unwrap_or(TRANSFER) / duration).min(1.0),
        };
        Population {
            live,
            rows,
            with_series: rows * share,
        }
    }
}

/// How many flows of a group are in memory.
struct Population {
    /// At the same time.
    live: f64,
    /// As rows of results, at the end.
    rows: f64,
    /// As series over the whole run.
    with_series: f64,
}

fn by_transport(flow: &Flow, udp: u64, tcp: u64) -> u64 {
    match flow.traffic {
        // A connection with data both ways has two streams.
        Traffic::Tcp(_) => {
            let streams = 1 + u64::from(flow.traffic.is_opened_by_destination());
            tcp * streams * u64::from(flow.traffic.connections())
        }
        _ => udp,
    }
}

//! What was measured: `fairgate.tune/1`.

use serde::Serialize;

use crate::tune::estimate::{Framing, quantile, sorted};

/// A direction of the line, seen from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Down,
    Up,
}

impl Direction {
    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}

/// A line, in both directions.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Measured {
    pub(crate) server: String,
    /// TCP connections in each direction, and the seconds for which they loaded it.
    pub(crate) connections: u32,
    pub(crate) load_s: f64,
    /// The longest IP packet that passes in both directions, bytes.
    pub(crate) mtu: Option<u32>,
    /// A full IP packet of the load, bytes.
    pub(crate) packet: u32,
    /// Whether delays and losses are those of a direction. If not, they are those of the round trip, and
    /// count for the direction that is loaded.
    pub(crate) one_way: bool,
    pub(crate) not_measured: Vec<NotMeasured>,
    /// The congestion control with which a server of iperf3 has sent, as it says.
    pub(crate) congestion_down: Option<String>,
    /// Round trips without load, ms.
    pub(crate) round_trip_ms: Delays,
    pub(crate) down: Figures,
    pub(crate) up: Figures,
}

/// A figure that the server at the other end has no part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NotMeasured {
    /// The key that is null.
    pub(crate) key: &'static str,
    /// The figure in words.
    #[serde(skip)]
    pub(crate) figure: &'static str,
    pub(crate) why: &'static str,
}

/// A direction.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// IP packets that came through under load, bits per second.
    pub(crate) capacity_bps: f64,
    /// The same in the slowest and in the fastest tenth of half seconds.
    pub(crate) low_bps: f64,
    pub(crate) high_bps: f64,
    pub(crate) varies: bool,
    /// What the line sends for them: by its framing if it was found or named, else Ethernet frames.
    pub(crate) line_bps: f64,
    /// `None` if it is not visible.
    pub(crate) framing: Option<Framing>,
    /// What a packet waited more than the one that waited least, without load and under load, ms.
    pub(crate) idle_ms: Delays,
    pub(crate) loaded_ms: Delays,
    /// Shares of probes.
    pub(crate) loss_idle: f64,
    pub(crate) loss_loaded: f64,
    /// Round trips a minute under load.
    pub(crate) rpm: Option<f64>,
    pub(crate) over_time: OverTime,
}

/// The time under load.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct OverTime {
    pub(crate) interval_s: f64,
    /// IP packets, bits per second.
    pub(crate) rate_bps: Vec<f64>,
    /// The greatest delay of an interval, ms; null if no probe was answered.
    pub(crate) delay_ms: Vec<Option<f64>>,
}

/// Quantiles of delays, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Delays {
    pub(crate) min: f64,
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) max: f64,
}

impl Delays {
    /// Returns those of values in ms. `None` without any.
    pub(super) fn of(values: Vec<f64>) -> Option<Delays> {
        let sorted = sorted(values);
        Some(Delays {
            min: quantile(&sorted, 0.0)?,
            p50: quantile(&sorted, 0.5)?,
            p95: quantile(&sorted, 0.95)?,
            max: quantile(&sorted, 1.0)?,
        })
    }
}

impl Measured {
    /// Takes over what the line makes of packets from an earlier measurement.
    pub(crate) fn framed_as(mut self, earlier: &Measured) -> Measured {
        for (direction, earlier) in [(&mut self.down, &earlier.down), (&mut self.up, &earlier.up)] {
            direction.framing = earlier.framing;
            direction.line_bps = direction.capacity_bps * earlier.line_bps / earlier.capacity_bps;
        }
        self
    }

    /// Returns for how long a packet waits under load beyond what it waits without, ms, and beyond what no
    /// queue can spare it: three full packets, of which one is being sent here, one on the line, and one was
    /// late. 95th percentile.
    pub(crate) fn avoidable_ms(&self, way: Direction) -> f64 {
        let direction = self.of(way);
        let packet = f64::from(self.packet) * 8e3 / direction.capacity_bps;
        direction.loaded_ms.p95 - direction.idle_ms.p50 - 3.0 * packet
    }

    /// Returns whether a figure was not measured, because the server has no part in it.
    pub(crate) fn lacks(&self, key: &str) -> bool {
        self.not_measured.iter().any(|missing| missing.key == key)
    }

    /// Returns a direction.
    pub(crate) fn of(&self, way: Direction) -> &Figures {
        match way {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }
}

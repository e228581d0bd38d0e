//! The results of Wi-Fi cells.

use serde::{Deserialize, Serialize};

use crate::monitor::CellWindow;
use crate::scenario::Cell;
use crate::wifi::{AirDirection, DirectionCounters};

/// The results of a cell. Figures are of the measurement window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResults {
    /// The name.
    pub name: String,
    /// `ac` or `ax`.
    pub standard: String,
    /// The share of the time during which the channel was busy: transmissions with their acknowledgements,
    /// and collisions, but no backoff.
    pub utilisation: f64,
    /// The part of it in collisions.
    pub collision_share: f64,
    /// Transmit opportunities that began without a collision.
    pub opportunities: u64,
    /// Times that PPDUs of two or more members collided.
    pub collisions: u64,
    /// Times that two categories of the same member were due at once, and the higher one transmitted.
    pub internal_collisions: u64,
    /// One entry for each station, in the order of the scenario.
    pub stations: Vec<StationResults>,
}

/// The results of a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationResults {
    /// The name of the node.
    pub name: String,
    /// Its modulation and coding scheme.
    pub mcs: u8,
    /// From the access point to the station.
    pub down: AirResults,
    /// From the station to the access point.
    pub up: AirResults,
}

/// The results of one direction between the access point and a station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AirResults {
    /// The share of the time in its exchanges, acknowledgements included, collisions not included.
    pub airtime: f64,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets given up after the last repetition.
    pub lost: u64,
    /// PPDUs transmitted without a collision.
    pub ppdus: u64,
    /// PPDUs that collided.
    pub collided_ppdus: u64,
    /// The mean number of MPDUs in a PPDU. 0 if there were none.
    pub ampdu_frames: f64,
    /// MPDUs that had been transmitted before.
    pub retries: u64,
    /// MPDUs that arrived damaged, without those of collisions.
    pub damaged: u64,
    /// The mean time from the discipline to the receiver: in the MAC queue, on air, and in the receiver's
    /// reorder buffer. 0 if nothing was delivered.
    pub mac_delay_ns: u64,
}

impl CellResults {
    /// `names` and `mcs` are by station, `nanos` is the length of the window.
    pub(crate) fn of(
        cell: &Cell,
        names: impl Iterator<Item = String>,
        mcs: impl Fn(u32) -> u8,
        window: &CellWindow,
        nanos: u64,
    ) -> CellResults {
        let share = |part: u64| part as f64 / nanos as f64;
        let of_way = |station: u32, is_down: bool| {
            AirResults::of(
                &window.directions[AirDirection { station, is_down }.index()],
                nanos,
            )
        };
        CellResults {
            name: cell.name.clone(),
            standard: cell.standard.word().to_owned(),
            utilisation: share(window.medium.busy),
            collision_share: share(window.medium.collision),
            opportunities: window.medium.opportunities,
            collisions: window.medium.collisions,
            internal_collisions: window.medium.internal_collisions,
            stations: (0..)
                .zip(names)
                .map(|(station, name)| StationResults {
                    name,
                    mcs: mcs(station),
                    down: of_way(station, true),
                    up: of_way(station, false),
                })
                .collect(),
        }
    }
}

impl AirResults {
    fn of(counters: &DirectionCounters, nanos: u64) -> AirResults {
        AirResults {
            airtime: counters.airtime as f64 / nanos as f64,
            delivered: counters.delivered,
            lost: counters.lost,
            ppdus: counters.ppdus,
            collided_ppdus: counters.collided,
            ampdu_frames: match counters.ppdus {
                0 => 0.0,
                ppdus => counters.mpdus as f64 / ppdus as f64,
            },
            retries: counters.retries,
            damaged: counters.damaged,
            mac_delay_ns: counters
                .delay
                .checked_div(counters.delivered.into())
                .map_or(0, |mean| mean as u64),
        }
    }
}

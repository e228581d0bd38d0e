//! A Wi-Fi cell: an access point and its stations on one channel.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::random::Stream;
use crate::scenario::{ETHERNET_HEADER, Link, MOST_OVERHEAD, Mistake, NodeId, Queue, Scenario};
use crate::wifi::{
    AccessCategory, AggregateLimits, CategoryParameters, Countdown, Errors, Path, Radio, Settings, Standard,
    StationRate, Timing,
};

/// The most stations: association identifiers are from 1 to 2007 (IEEE 802.11-2020, 9.4.1.8).
pub(super) const MOST_STATIONS: usize = 2007;
/// The longest duration of a PPDU (aPPDUMaxTime).
pub(super) const LONGEST_PPDU: Duration = Duration::from_micros(5_484);
const WIDTHS: [u32; 4] = [20, 40, 80, 160];
pub(super) const MOST_STREAMS: u32 = 4;
pub(super) const MOST_RETRIES: u8 = 254;
pub(super) const MOST_MAC_QUEUE: u32 = 100_000;
/// The most bytes of a packet: an MSDU without aggregation (IEEE 802.11-2020, Table 9-25) minus LLC and SNAP.
const LONGEST_PACKET: u32 = 2304 - 8;

/// How members get access to the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// EDCA: four categories, chosen by the DSCP (RFC 8325).
    Edca,
    /// DCF: one category for all packets, one PPDU for each transmit opportunity.
    Dcf,
}

fairgate::words!(Access {
    "edca" => Access::Edca,
    "dcf" => Access::Dcf,
});

/// Where the stations are. The distance to the access point decides about the signal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Positions {
    /// Not known. The MCS must be given, and signals are never too weak.
    Unknown,
    /// The distance of each station from the access point, metres.
    Distances(Vec<f64>),
    /// Uniformly distributed in a disc around the access point.
    Disc {
        /// The radius, metres.
        radius: f64,
    },
}

/// A cell. All members hear each other. All packets go to or from the access point, so stations reach each
/// other through it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The name.
    pub name: String,
    /// The access point.
    pub access_point: NodeId,
    /// The stations.
    pub stations: Vec<NodeId>,
    /// The standard.
    pub standard: Standard,
    /// The width of the channel: 20, 40, 80 or 160 MHz.
    pub width: u32,
    /// The number of spatial streams, 1 to 4.
    pub streams: u32,
    /// The guard interval. 802.11ac: 400 or 800 ns, 802.11ax: 800, 1600 or 3200 ns.
    pub guard_interval: Duration,
    /// The modulation and coding scheme of all stations. `None`: of each station the highest whose
    /// sensitivity its signal reaches.
    pub mcs: Option<u8>,
    /// Where the stations are.
    pub positions: Positions,
    /// The transmission power of all members, dBm.
    pub power: f64,
    /// The path loss exponent, 2 in free space.
    pub path_loss_exponent: f64,
    /// The probability that an MPDU is damaged, in addition to the errors that follow from the signal.
    pub error_rate: f64,
    /// How members get access to the channel.
    pub access: Access,
    /// The most MPDUs of an A-MPDU.
    pub ampdu_frames: u32,
    /// The most bytes of an A-MPDU.
    pub ampdu_bytes: u32,
    /// The longest PPDU.
    pub ampdu_duration: Duration,
    /// How often a frame is repeated before it is given up.
    pub retries: u8,
    /// RTS and CTS go before PPDUs of at least this many bytes. `None`: never.
    pub rts_from: Option<u32>,
    /// The most frames in the MAC queue for one receiver and one category.
    pub mac_queue: u32,
    /// The bytes that framing adds to every packet, as disciplines see it.
    pub overhead: u32,
    /// The queue of the access point, for the packets to all stations.
    pub queue_ap: Queue,
    /// The queue of each station.
    pub queue_stations: Queue,
}

impl Cell {
    /// Creates a cell of 802.11ac with 80 MHz, one stream, MCS 9 and no errors.
    pub fn new(name: impl Into<String>, access_point: NodeId, stations: Vec<NodeId>) -> Cell {
        Cell {
            mcs: Some(9),
            ..Cell::of(Standard::Ac, name, access_point, stations)
        }
    }

    /// Creates a cell of this standard with its default values. It lacks the MCS or the positions.
    pub(crate) fn of(
        standard: Standard,
        name: impl Into<String>,
        access_point: NodeId,
        stations: Vec<NodeId>,
    ) -> Cell {
        Cell {
            name: name.into(),
            access_point,
            stations,
            standard,
            width: 80,
            streams: 1,
            guard_interval: Duration::from_nanos(standard.guard_intervals()[0]),
            mcs: None,
            positions: Positions::Unknown,
            power: 20.0,
            path_loss_exponent: 3.0,
            error_rate: 0.0,
            access: Access::Edca,
            ampdu_frames: standard.window(),
            ampdu_bytes: standard.longest_ampdu(),
            ampdu_duration: LONGEST_PPDU,
            retries: 7,
            rts_from: None,
            mac_queue: standard.window(),
            overhead: ETHERNET_HEADER,
            queue_ap: Queue::default(),
            queue_stations: Queue::default(),
        }
    }

    fn radio(&self) -> Radio {
        Radio {
            standard: self.standard,
            width: self.width,
            streams: self.streams.into(),
            guard_interval: self.guard_interval.as_nanos() as u64,
        }
    }

    /// The settings of the medium. The cell was checked.
    pub(crate) fn settings(&self) -> Settings {
        let (parameters, countdown) = match self.access {
            Access::Edca => (CategoryParameters::EDCA, Countdown::AtBoundary),
            Access::Dcf => (
                [CategoryParameters::DCF; AccessCategory::COUNT],
                Countdown::AfterSlot,
            ),
        };
        Settings {
            timing: Timing::ofdm(),
            limits: AggregateLimits {
                frames: self.ampdu_frames,
                bytes: self.ampdu_bytes,
                duration: self.ampdu_duration.as_nanos() as u64,
            },
            window: self.standard.window(),
            parameters,
            countdown,
            retries: Some(self.retries),
            rts_from: self.rts_from,
            queue_limit: self.mac_queue,
        }
    }

    /// The rates of the stations. Positions in a disc come from the seed. The cell was checked.
    pub(crate) fn rates(&self, seed: u64) -> Vec<StationRate> {
        let (radio, path) = (self.radio(), self.path());
        let mut stream = Stream::new(seed, "cell positions", &self.name);
        (0..self.stations.len())
            .map(|station| {
                let distance = match &self.positions {
                    Positions::Unknown => None,
                    Positions::Distances(distances) => Some(distances[station]),
                    // The area within a distance grows with its square.
                    Positions::Disc { radius } => Some(radius * libm::sqrt(stream.unit())),
                };
                match distance {
                    Some(distance) => StationRate::at(&radio, &path, distance, self.mcs, self.error_rate),
                    None => StationRate::new(
                        &radio,
                        self.mcs.expect("without positions the MCS is given"),
                        Errors {
                            of_any_mpdu: self.error_rate,
                            ..Errors::NONE
                        },
                    ),
                }
                .expect("the cell was checked")
            })
            .collect()
    }

    fn path(&self) -> Path {
        Path {
            power: self.power,
            exponent: self.path_loss_exponent,
        }
    }

    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Mistake> {
        self.check_members(scenario)?;
        self.check_radio()?;
        self.check_positions(scenario)?;
        self.check_mac()
    }

    fn wrong(&self, field: &'static str, what: String) -> Mistake {
        Mistake::new(field, format!("cell `{}`: {what}", self.name))
    }

    fn check_members(&self, scenario: &Scenario) -> Result<(), Mistake> {
        if self.stations.is_empty() || self.stations.len() > MOST_STATIONS {
            return Err(self.wrong(
                "stations",
                format!(
                    "it has {} stations, but must have from 1 to {MOST_STATIONS}",
                    self.stations.len()
                ),
            ));
        }
        let mut members = BTreeSet::from([self.access_point]);
        for &station in &self.stations {
            if !members.insert(station) {
                return Err(self.wrong(
                    "stations",
                    format!(
                        "the node `{}` is in it twice; name each station once, and not the access point",
                        scenario.node_name(station)
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_radio(&self) -> Result<(), Mistake> {
        if !WIDTHS.contains(&self.width) {
            return Err(self.wrong(
                "width",
                format!("the width is {} MHz, but must be 20, 40, 80 or 160", self.width),
            ));
        }
        if !(1..=MOST_STREAMS).contains(&self.streams) {
            return Err(self.wrong(
                "streams",
                format!(
                    "the number of streams is {}, but must be from 1 to {MOST_STREAMS}",
                    self.streams
                ),
            ));
        }
        let intervals = self.standard.guard_intervals();
        let guard_interval = self.guard_interval.as_nanos();
        if !intervals.iter().any(|&known| u128::from(known) == guard_interval) {
            let known: Vec<String> = intervals.iter().map(|nanos| format!("{nanos}ns")).collect();
            return Err(self.wrong(
                "guard_interval",
                format!(
                    "the guard interval is {:?}, but 802.11{} has {}",
                    self.guard_interval,
                    self.standard.word(),
                    known.join(" and ")
                ),
            ));
        }
        let Some(mcs) = self.mcs else { return Ok(()) };
        let last = self.standard.last_mcs();
        if mcs > last {
            return Err(self.wrong(
                "mcs",
                format!(
                    "the MCS is {mcs}, but 802.11{} has MCS 0 to {last}",
                    self.standard.word()
                ),
            ));
        }
        if self.radio().data(mcs).is_none() {
            return Err(self.wrong(
                "mcs",
                format!(
                    "802.11ac has no MCS {mcs} with {} MHz and {} streams; choose the MCS below",
                    self.width, self.streams
                ),
            ));
        }
        Ok(())
    }

    fn check_positions(&self, scenario: &Scenario) -> Result<(), Mistake> {
        let is_distance = |metres: f64| metres > 0.0 && metres <= 10_000.0;
        if !(-30.0..=40.0).contains(&self.power) {
            return Err(self.wrong(
                "power",
                format!("the power is {} dBm, but must be from -30 to 40", self.power),
            ));
        }
        if !(1.0..=10.0).contains(&self.path_loss_exponent) {
            return Err(self.wrong(
                "path_loss_exponent",
                format!(
                    "the path loss exponent is {}, but must be from 1 to 10; free space has 2",
                    self.path_loss_exponent
                ),
            ));
        }
        let out_of_reach =
            |metres: f64| self.mcs.is_none() && self.path().mcs(&self.radio(), metres).is_none();
        match &self.positions {
            Positions::Unknown if self.mcs.is_none() => Err(self.wrong(
                "name",
                "it has neither an MCS nor positions; give it `mcs`, `distances` or `radius`".into(),
            )),
            Positions::Unknown => Ok(()),
            Positions::Distances(distances) => {
                if distances.len() != self.stations.len() {
                    return Err(self.wrong(
                        "distances",
                        format!(
                            "there are {} distances for {} stations; give one distance for each station, or \
                             one number for all",
                            distances.len(),
                            self.stations.len()
                        ),
                    ));
                }
                for (&metres, &station) in distances.iter().zip(&self.stations) {
                    let node = scenario.node_name(station);
                    if !is_distance(metres) {
                        return Err(self.wrong(
                            "distances",
                            format!(
                                "the distance of `{node}` is {metres} m, but must be above 0 and at most \
                                 10000"
                            ),
                        ));
                    }
                    if out_of_reach(metres) {
                        return Err(self.wrong(
                            "distances",
                            format!(
                                "the signal of `{node}` is too weak for MCS 0 at {metres} m; lower the \
                                 distance or the width, or raise the power"
                            ),
                        ));
                    }
                }
                Ok(())
            }
            &Positions::Disc { radius } => {
                if !is_distance(radius) {
                    return Err(self.wrong(
                        "radius",
                        format!("the radius is {radius} m, but must be above 0 and at most 10000"),
                    ));
                }
                if out_of_reach(radius) {
                    return Err(self.wrong(
                        "radius",
                        format!(
                            "signals are too weak for MCS 0 at {radius} m; lower the radius or the width, or \
                             raise the power"
                        ),
                    ));
                }
                Ok(())
            }
        }
    }

    fn check_mac(&self) -> Result<(), Mistake> {
        if !(0.0..1.0).contains(&self.error_rate) {
            return Err(self.wrong(
                "error_rate",
                format!(
                    "the error rate is {}, but must be at least 0 and below 1",
                    self.error_rate
                ),
            ));
        }
        let window = self.standard.window();
        if !(1..=window).contains(&self.ampdu_frames) {
            return Err(self.wrong(
                "ampdu_frames",
                format!(
                    "an A-MPDU has at most {} frames, but must have from 1 to {window}, the size of the \
                     block acknowledgement",
                    self.ampdu_frames
                ),
            ));
        }
        let longest = self.standard.longest_ampdu();
        let shortest = Timing::ofdm().mpdu(LONGEST_PACKET);
        if !(shortest..=longest).contains(&self.ampdu_bytes) {
            return Err(self.wrong(
                "ampdu_bytes",
                format!(
                    "an A-MPDU has at most {} bytes, but the limit must be from {shortest} to {longest}",
                    self.ampdu_bytes
                ),
            ));
        }
        if self.ampdu_duration > LONGEST_PPDU || self.ampdu_duration < Duration::from_micros(100) {
            return Err(self.wrong(
                "ampdu_duration",
                format!(
                    "a PPDU takes at most {:?}, but the limit must be from 100us to 5484us",
                    self.ampdu_duration
                ),
            ));
        }
        if self.retries > MOST_RETRIES {
            return Err(self.wrong(
                "retries",
                format!(
                    "there are {} repetitions, but at most {MOST_RETRIES}",
                    self.retries
                ),
            ));
        }
        if self.overhead > MOST_OVERHEAD {
            return Err(self.wrong(
                "overhead",
                format!(
                    "the overhead is {} bytes per packet, but must be at most {MOST_OVERHEAD}; Ethernet has \
                     {ETHERNET_HEADER}",
                    self.overhead
                ),
            ));
        }
        if !(1..=MOST_MAC_QUEUE).contains(&self.mac_queue) {
            return Err(self.wrong(
                "mac_queue",
                format!(
                    "a MAC queue has {} frames, but must have from 1 to {MOST_MAC_QUEUE}",
                    self.mac_queue
                ),
            ));
        }
        Ok(())
    }
}

impl Scenario {
    /// The scenario as the router sees it: between each station and its access point there is a link without
    /// delay, after all other links. So hops over cells have numbers after those over links.
    pub(crate) fn for_routes(&self) -> Cow<'_, Scenario> {
        if self.cells.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut scenario = self.clone();
        for cell in &self.cells {
            for &station in &cell.stations {
                scenario
                    .links
                    .push(Link::unlimited(station, cell.access_point, Duration::ZERO));
            }
        }
        Cow::Owned(scenario)
    }

    /// The number of interfaces of all cells: one for each member.
    pub(crate) fn cell_interfaces(&self) -> usize {
        self.cells.iter().map(|cell| cell.stations.len() + 1).sum()
    }
}

//! Traffic from one node to another.

use std::sync::Arc;
use std::time::Duration;

use fairgate::{ClassId, Rate};

use crate::random::Distribution;
use crate::scenario::udp::check_work;
use crate::scenario::{
    Application, Arrivals, LONGEST, LONGEST_DATAGRAM, Mistake, NodeId, Pattern, Ping, Scenario, Udp, Video,
    Voice, Waypoint,
};
use crate::tcp;
use crate::traffic::RecordedPacket;

/// The maximum `count` of a flow.
pub(super) const MOST_COPIES: u32 = 1_000_000;

/// Traffic from `source` to `destination`. TCP's acknowledgements take the same path back.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The name. If `count` is above 1, the flows are called `name-1`, `name-2` and so on.
    pub name: String,
    /// The group whose results contain those of this flow. Flows of a group have the same transport, all or
    /// none of them `arrivals`, and all or none of them rows. `None`: a group of its own, with its name.
    pub group: Option<String>,
    /// The node that sends the data.
    pub source: NodeId,
    /// The node that receives the data.
    pub destination: NodeId,
    /// What is sent, and when.
    pub traffic: Traffic,
    /// When the flow begins.
    pub start: Duration,
    /// When the source stops. Packets in transit still arrive. If flows arrive at random, none arrives from
    /// then on, but those that are there go on. `None`: at the end.
    pub stop: Option<Duration>,
    /// The number of copies of this flow. Each has its own ports and random numbers.
    pub count: u32,
    /// Each copy starts this much later than the previous one.
    pub stagger: Duration,
    /// A random time before each copy starts, drawn for each and added to `start`, ns.
    pub random_start: Distribution,
    /// A random part of `stagger`, drawn for each copy but the first, ns.
    pub random_stagger: Distribution,
    /// Flows arrive for as long as the run lasts, from `start` to `stop`. `count` must then be 1: it has no
    /// effect. `None`: there are `count` flows.
    pub arrivals: Option<Arrivals>,
    /// How long each flow sends after its start, ns. `None`: until `stop`, the last transfer, or the end.
    pub lifetime: Option<Distribution>,
    /// Whether a flow ends when admission control rejects one of its packets
    /// ([`DropReason::NotAdmitted`](fairgate::DropReason::NotAdmitted)), like a user who tries again later.
    pub gives_up: bool,
    /// Whether each flow has its own row of results, instead of those of its group alone. A row takes about 4
    /// kB until the end of the run. `None`: yes, unless there are `arrivals`.
    pub rows: Option<bool>,
    /// The six DSCP bits.
    pub dscp: u8,
    /// Priority, 0 to 15.
    pub priority: u8,
    /// Whether packets are ECN-capable (ECT(0)). TCP then negotiates ECN and reacts to marks.
    pub ecn: bool,
    /// The mark, which filters can match.
    pub mark: u32,
    /// The class that packets select.
    pub class: ClassId,
    /// How long after its sending each packet wants to leave a discipline that obeys departure times: `etf`
    /// and `fq`. `None`: packets have no departure time.
    pub departs_after: Option<Duration>,
    /// The destination port. The default is 5001 for TCP and 4000 for UDP.
    pub port: Option<u16>,
    /// The nodes on the route, including both ends. A link may stand between the two nodes that it connects.
    /// The default is the path with the fewest hops, then the least delay.
    pub route: Option<Vec<Waypoint>>,
}

/// What is sent, and when.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Traffic {
    /// Datagrams at times that the network does not influence.
    Udp(Udp),
    /// A reliable stream under congestion control.
    Tcp(Box<Tcp>),
    /// A video stream in RTP packets.
    Video(Box<Video>),
    /// A call in one direction, in RTP packets.
    Voice(Box<Voice>),
    /// Echo requests, and their answers on the way back.
    Ping(Box<Ping>),
    /// Datagrams at recorded times, at most once.
    Recorded(Arc<[RecordedPacket]>),
}

/// A TCP connection and the program that writes to it.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The parameters of both ends.
    pub config: tcp::Config,
    /// The program.
    pub application: Application,
}

impl Tcp {
    /// Creates a connection that always has data to send.
    pub fn bulk(config: tcp::Config) -> Tcp {
        Tcp {
            config,
            application: Application::Bulk,
        }
    }
}

impl Traffic {
    /// Returns `udp`, `tcp` or `icmp`.
    pub fn transport(&self) -> &'static str {
        match self {
            Traffic::Udp(_) | Traffic::Video(_) | Traffic::Voice(_) | Traffic::Recorded(_) => "udp",
            Traffic::Tcp(_) => "tcp",
            Traffic::Ping(_) => "icmp",
        }
    }

    /// Returns the IP protocol number.
    pub(crate) fn protocol(&self) -> u8 {
        match self.transport() {
            "udp" => 17,
            "tcp" => 6,
            _ => 1,
        }
    }

    /// Returns the port of the end that does not open the flow. ICMP has none.
    pub(crate) fn default_port(&self) -> u16 {
        match self {
            Traffic::Udp(_) | Traffic::Recorded(_) => 4000,
            Traffic::Video(_) | Traffic::Voice(_) => 5004,
            Traffic::Tcp(tcp) => match tcp.application {
                Application::Web(_) | Application::Adaptive(_) => 443,
                _ => 5001,
            },
            Traffic::Ping(_) => 0,
        }
    }

    /// Returns whether the destination of the flow opens it, so that the source has the well-known port.
    pub(crate) fn is_opened_by_destination(&self) -> bool {
        matches!(self, Traffic::Tcp(tcp) if tcp.application.is_opened_by_destination())
    }

    /// Returns the maximum number of TCP connections at a time.
    pub(crate) fn connections(&self) -> u16 {
        match self {
            Traffic::Tcp(tcp) => tcp.application.connections(),
            _ => 0,
        }
    }

    /// Checks the traffic of a flow that sends for this long. The error has the name of the field.
    fn check(&self, sends_for: Duration) -> Result<(), (&'static str, String)> {
        let (field, checked) = match self {
            Traffic::Udp(udp) => ("udp", udp.check().and_then(|()| udp.check_work(sends_for))),
            Traffic::Tcp(tcp) => ("tcp", tcp.check()),
            Traffic::Video(video) => (
                "video",
                video
                    .check()
                    .and_then(|()| check_work(video.packets_in(sends_for.as_nanos()))),
            ),
            Traffic::Voice(voice) => (
                "voip",
                voice
                    .datagrams()
                    .and_then(|udp| udp.check().and_then(|()| udp.check_work(sends_for))),
            ),
            Traffic::Ping(ping) => {
                let udp = ping.requests();
                ("ping", udp.check().and_then(|()| udp.check_work(sends_for)))
            }
            Traffic::Recorded(packets) => ("pcap", check_recorded(packets)),
        };
        checked.map_err(|what| (field, what))
    }
}

fn check_recorded(packets: &[RecordedPacket]) -> Result<(), String> {
    if packets.is_empty() || !packets.is_sorted_by_key(|packet| packet.at) {
        return Err("a recording must have packets in the order of time; sort them".into());
    }
    if packets.iter().any(|packet| packet.payload > LONGEST_DATAGRAM) {
        return Err(format!(
            "a recorded packet has more than {LONGEST_DATAGRAM} bytes of payload; cut it"
        ));
    }
    Ok(())
}

impl From<Udp> for Traffic {
    fn from(udp: Udp) -> Traffic {
        Traffic::Udp(udp)
    }
}

impl From<Tcp> for Traffic {
    fn from(tcp: Tcp) -> Traffic {
        Traffic::Tcp(Box::new(tcp))
    }
}

impl From<Video> for Traffic {
    fn from(video: Video) -> Traffic {
        Traffic::Video(Box::new(video))
    }
}

impl From<Voice> for Traffic {
    fn from(voice: Voice) -> Traffic {
        Traffic::Voice(Box::new(voice))
    }
}

impl From<Ping> for Traffic {
    fn from(ping: Ping) -> Traffic {
        Traffic::Ping(Box::new(ping))
    }
}

impl Flow {
    /// Creates one flow for the whole duration, with default values.
    pub fn new(
        name: impl Into<String>,
        source: NodeId,
        destination: NodeId,
        traffic: impl Into<Traffic>,
    ) -> Flow {
        Flow {
            name: name.into(),
            group: None,
            source,
            destination,
            traffic: traffic.into(),
            start: Duration::ZERO,
            stop: None,
            count: 1,
            stagger: Duration::ZERO,
            random_start: Distribution::Constant(0),
            random_stagger: Distribution::Constant(0),
            arrivals: None,
            lifetime: None,
            gives_up: false,
            rows: None,
            dscp: 0,
            priority: 0,
            ecn: false,
            mark: 0,
            class: ClassId::NONE,
            departs_after: None,
            port: None,
            route: None,
        }
    }

    /// Returns the name of the group whose results contain those of this flow.
    pub fn group_name(&self) -> &str {
        self.group.as_deref().unwrap_or(&self.name)
    }

    /// Returns the name of the copy with this number, counted from 0.
    pub(crate) fn copy_name(&self, copy: u32) -> String {
        match (self.count, &self.arrivals) {
            (1, None) => self.name.clone(),
            _ => format!("{}-{}", self.name, u64::from(copy) + 1),
        }
    }

    /// Returns whether each flow has its own row of results.
    pub(crate) fn has_rows(&self) -> bool {
        self.rows.unwrap_or(self.arrivals.is_none())
    }

    /// Returns the mean number of bytes of payload that a flow offers, if it is known.
    pub(crate) fn mean_payload(&self) -> Option<f64> {
        let over_lifetime = |rate: &Rate, share: f64| {
            let lifetime = self.lifetime.as_ref()?.expected();
            Some(rate.bits_per_second() as f64 / 8e9 * share * lifetime)
        };
        match &self.traffic {
            Traffic::Udp(udp) => match &udp.pattern {
                Pattern::Constant { rate } | Pattern::Poisson { rate } => over_lifetime(rate, 1.0),
                Pattern::OnOff { rate, on, off } => {
                    let (on, off) = (on.expected(), off.expected());
                    over_lifetime(rate, on / (on + off))
                }
                Pattern::Interval { gap } => {
                    let lifetime = self.lifetime.as_ref()?.expected();
                    Some(udp.size.expected() * lifetime / gap.expected())
                }
            },
            Traffic::Tcp(tcp) => match &tcp.application {
                Application::Limited { rate, .. } => over_lifetime(rate, 1.0),
                Application::Transfers {
                    size,
                    count: Some(count),
                    ..
                } if self.lifetime.is_none() => Some(size.expected() * *count as f64),
                _ => None,
            },
            _ => None,
        }
    }

    /// Checks flows that arrive at random.
    fn check_arrivals(&self, arrivals: &Arrivals) -> Result<(), String> {
        arrivals.check(self.mean_payload())?;
        let ends = self.lifetime.is_some()
            || matches!(&self.traffic, Traffic::Tcp(tcp) if tcp.application.ends())
            || matches!(&self.traffic, Traffic::Recorded(_));
        match ends {
            true => Ok(()),
            false => Err(
                "flows that arrive at random must also end; give them a `lifetime`, or give TCP flows a \
                 `size` and transfers = 1"
                    .into(),
            ),
        }
    }

    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Mistake> {
        let mistake = |field, what: String| Err(Mistake::new(field, format!("flow `{}`: {what}", self.name)));
        if self.source == self.destination {
            let node = scenario.node_name(self.source);
            return mistake(
                "to",
                format!("it leads from `{node}` to itself; name two different nodes"),
            );
        }
        if self.count == 0 || self.count > MOST_COPIES {
            return mistake(
                "count",
                format!("the count is {}, but must be from 1 to {MOST_COPIES}", self.count),
            );
        }
        if self.dscp > 63 {
            return mistake(
                "dscp",
                format!(
                    "the DSCP is {}, but has six bits and must be at most 63",
                    self.dscp
                ),
            );
        }
        if self.priority > 15 {
            return mistake(
                "priority",
                format!("the priority is {}, but must be at most 15", self.priority),
            );
        }
        if self
            .departs_after
            .is_some_and(|wait| wait.is_zero() || wait > LONGEST)
        {
            return mistake(
                "departs_after",
                "a packet must want to leave after it is sent, and within a year; give a time above 0".into(),
            );
        }
        if self.start > LONGEST || self.stagger > LONGEST / self.count {
            return mistake(
                "start",
                "it starts after more than a year, which is the limit; start it earlier".into(),
            );
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return mistake(
                "stop",
                format!("it stops before it starts at {:?}; stop it later", self.start),
            );
        }
        for (field, times) in [
            ("start", Some(&self.random_start)),
            ("stagger", Some(&self.random_stagger)),
            ("lifetime", self.lifetime.as_ref()),
        ] {
            times
                .map_or(Ok(()), Distribution::check)
                .or_else(|what| mistake(field, what))?;
        }
        if self
            .lifetime
            .as_ref()
            .is_some_and(|lifetime| lifetime.mean() == 0)
        {
            return mistake(
                "lifetime",
                "it lasts 0 ns, so that it sends nothing; lengthen its life".into(),
            );
        }
        if let Some(arrivals) = &self.arrivals {
            if self.count != 1 || !self.stagger.is_zero() || self.random_stagger != Distribution::Constant(0)
            {
                return mistake(
                    "arrivals",
                    "it has `arrivals`, so that `count` and `stagger` have no effect; omit them".into(),
                );
            }
            self.check_arrivals(arrivals)
                .or_else(|what| mistake("arrivals", what))?;
        }
        let sends_for = self.stop.unwrap_or(scenario.duration).min(scenario.duration);
        self.traffic
            .check(sends_for)
            .or_else(|(field, what)| mistake(field, what))
    }
}

impl Tcp {
    fn check(&self) -> Result<(), String> {
        self.config.check().map_err(|mistake| mistake.what)?;
        self.application.check()
    }
}

//! Traffic from one node to another.

use std::time::Duration;

use fairgate::{ClassId, Rate};

use crate::random::Distribution;
use crate::scenario::{Application, LONGEST, Mistake, NodeId, Scenario};
use crate::tcp;

/// The length of the longest IP packet, bytes.
const LONGEST_PACKET: u64 = 65_535;
/// The length of the headers of IPv4 without options and of UDP, bytes.
pub(crate) const UDP_HEADERS: u32 = 28;
/// The maximum number of datagrams of a flow. At a million per second, this takes about a day to simulate.
const MOST_DATAGRAMS: u128 = 100_000_000_000;
/// The maximum `count` of a flow. Each copy has memory for its series and histogram.
const MOST_COPIES: u32 = 1_000_000;
/// The payload of a segment that fills the longest packet, bytes: 20 bytes are for IP, 60 for TCP with all
/// options.
const MOST_PAYLOAD: u32 = 65_535 - 80;
/// The maximum initial window, segments. It is more than a receiver's first window holds.
const MOST_INITIAL_WINDOW: u32 = 1_000;

/// Traffic from `source` to `destination`. TCP's acknowledgements take the same path back.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The name. If `count` is above 1, the flows are called `name-1`, `name-2` and so on.
    pub name: String,
    /// The node that sends the data.
    pub source: NodeId,
    /// The node that receives the data.
    pub destination: NodeId,
    /// What is sent, and when.
    pub traffic: Traffic,
    /// When the flow begins.
    pub start: Duration,
    /// When the source stops. Packets in transit still arrive. `None`: at the end.
    pub stop: Option<Duration>,
    /// The number of copies of this flow. Each has its own ports and random numbers.
    pub count: u32,
    /// Each copy starts this much later than the previous one.
    pub stagger: Duration,
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
    /// The destination port. The default is 5001 for TCP and 4000 for UDP.
    pub port: Option<u16>,
    /// The nodes on the route, including both ends. The default is the path with the fewest hops, then the
    /// least delay.
    pub route: Option<Vec<NodeId>>,
}

/// What is sent, and when.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Datagrams at times that the network does not influence.
    Udp(Udp),
    /// A reliable stream under congestion control.
    Tcp(Box<Tcp>),
}

/// Datagrams.
#[derive(Clone, Debug, PartialEq)]
pub struct Udp {
    /// The payload of each datagram, bytes.
    pub size: Distribution,
    /// When they are sent.
    pub pattern: Pattern,
}

/// When datagrams are sent. Rates are rates of payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// At a constant bit rate.
    Constant {
        /// The rate of payload.
        rate: Rate,
    },
    /// With exponentially distributed gaps.
    Poisson {
        /// The mean rate of payload.
        rate: Rate,
    },
    /// At a constant rate in bursts, with silences between them. If a silence interrupts the gap between two
    /// datagrams, the rest of the gap follows after the silence. The mean rate is therefore exact, however
    /// short the bursts are.
    OnOff {
        /// The rate of payload in a burst.
        rate: Rate,
        /// The length of bursts, ns.
        on: Distribution,
        /// The length of silences, ns.
        off: Distribution,
    },
}

/// A TCP connection and the program that writes to it.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// The parameters of both ends.
    pub config: tcp::Config,
    /// The program.
    pub application: Application,
}

impl Udp {
    /// Sends datagrams of `size` bytes of payload at a constant rate of payload.
    pub fn constant(rate: Rate, size: u32) -> Udp {
        Udp {
            size: Distribution::Constant(size.into()),
            pattern: Pattern::Constant { rate },
        }
    }

    /// Sends datagrams of `size` bytes of payload with exponentially distributed gaps.
    pub fn poisson(rate: Rate, size: u32) -> Udp {
        Udp {
            size: Distribution::Constant(size.into()),
            pattern: Pattern::Poisson { rate },
        }
    }
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
    /// Returns `udp` or `tcp`.
    pub fn transport(&self) -> &'static str {
        match self {
            Traffic::Udp(_) => "udp",
            Traffic::Tcp(_) => "tcp",
        }
    }

    /// Returns the IP protocol number.
    pub(crate) fn protocol(&self) -> u8 {
        match self {
            Traffic::Udp(_) => 17,
            Traffic::Tcp(_) => 6,
        }
    }

    pub(crate) fn default_port(&self) -> u16 {
        match self {
            Traffic::Udp(_) => 4000,
            Traffic::Tcp(_) => 5001,
        }
    }
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
            source,
            destination,
            traffic: traffic.into(),
            start: Duration::ZERO,
            stop: None,
            count: 1,
            stagger: Duration::ZERO,
            dscp: 0,
            priority: 0,
            ecn: false,
            mark: 0,
            class: ClassId::NONE,
            port: None,
            route: None,
        }
    }

    /// Returns the names of the copies.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + '_ {
        (1..=self.count).map(|number| match self.count {
            1 => self.name.clone(),
            _ => format!("{}-{number}", self.name),
        })
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
        let sends_for = self.stop.unwrap_or(scenario.duration).min(scenario.duration);
        let (field, checked) = match &self.traffic {
            Traffic::Udp(udp) => ("udp", udp.check().and_then(|()| udp.check_work(sends_for))),
            Traffic::Tcp(tcp) => ("tcp", tcp.check()),
        };
        checked.or_else(|what| mistake(field, what))
    }
}

impl Tcp {
    fn check(&self) -> Result<(), String> {
        if !(1..=MOST_PAYLOAD).contains(&self.config.mss) {
            return Err(format!(
                "segments have {} bytes of payload, but must have from 1 to {MOST_PAYLOAD}; 1448 bytes \
                 fill an Ethernet packet",
                self.config.mss
            ));
        }
        if !(1..=MOST_INITIAL_WINDOW).contains(&self.config.initial_window) {
            return Err(format!(
                "the initial window is {} segments, but must be from 1 to {MOST_INITIAL_WINDOW}; 10 is usual \
                 (RFC 6928)",
                self.config.initial_window
            ));
        }
        self.application.check()
    }
}

impl Udp {
    /// Checks that the simulation ends within a reasonable time.
    fn check_work(&self, sends_for: Duration) -> Result<(), String> {
        let (Pattern::Constant { rate } | Pattern::Poisson { rate } | Pattern::OnOff { rate, .. }) =
            self.pattern;
        let bits = u128::from(rate.bits_per_second()) * sends_for.as_nanos() / 1_000_000_000;
        let packets = bits / (8 * u128::from(self.size.mean().max(1)));
        match packets <= MOST_DATAGRAMS {
            true => Ok(()),
            false => Err(format!(
                "it would send up to {packets} datagrams, but at most {MOST_DATAGRAMS} can be simulated in a \
                 day; lower its rate, or simulate a shorter time"
            )),
        }
    }

    fn check(&self) -> Result<(), String> {
        self.size.check()?;
        let longest = LONGEST_PACKET - u64::from(UDP_HEADERS);
        if self.size.mean() == 0 || self.size.mean() > longest {
            return Err(format!(
                "the size of datagrams is {} bytes, but must be from 1 to {longest}",
                self.size.mean()
            ));
        }
        if let Pattern::OnOff { on, off, .. } = &self.pattern {
            on.check()?;
            off.check()?;
            if on.mean() == 0 {
                return Err("the mean length of bursts is 0, but must be above 0; increase it".into());
            }
        }
        Ok(())
    }

    /// Returns the payload of a datagram. A random size that is too long for an IP packet is reduced to the
    /// longest possible one.
    pub(crate) fn payload(size: u64) -> u32 {
        size.clamp(1, LONGEST_PACKET - u64::from(UDP_HEADERS)) as u32
    }
}

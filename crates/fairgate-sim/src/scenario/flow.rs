//! Traffic from one node to another.

use std::time::Duration;

use fairgate::{ClassId, Rate};

use crate::random::Distribution;
use crate::scenario::{Application, LONGEST, Mistake, NodeId, Scenario};
use crate::tcp;

/// Longest IP packet, bytes.
const LONGEST_PACKET: u64 = 65_535;
/// Header of IPv4 without options and of UDP, bytes.
pub(crate) const UDP_HEADERS: u32 = 28;
/// Most datagrams of a flow: a million a second come to about so many in a day.
const MOST_DATAGRAMS: u128 = 100_000_000_000;
/// Most flows alike: each has memory for its series and histogram.
const MOST_ALIKE: u32 = 1_000_000;
/// Payload of a segment that fills the longest packet, bytes: 20 of IP, 60 of TCP with all options.
const MOST_PAYLOAD: u32 = 65_535 - 80;
/// More than a receiver's first window holds.
const MOST_INITIAL_WINDOW: u32 = 1_000;

/// Traffic of one kind from `source` to `destination`; TCP's acknowledgements go the same way back.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name; with `count` above 1 the flows are called `name-1`, `name-2` and so on.
    pub name: String,
    /// Where data starts.
    pub source: NodeId,
    /// Where it goes.
    pub destination: NodeId,
    /// What is sent, and when.
    pub traffic: Traffic,
    /// When it begins.
    pub start: Duration,
    /// When the source falls silent; what is under way still arrives. `None`: at the end.
    pub stop: Option<Duration>,
    /// How many flows alike, each with ports and chance of its own.
    pub count: u32,
    /// Each of them starts this much later than the one before.
    pub stagger: Duration,
    /// The six DSCP bits.
    pub dscp: u8,
    /// Priority, 0 to 15.
    pub priority: u8,
    /// Whether packets are ECN-capable (ECT(0)); TCP then negotiates and answers marks.
    pub ecn: bool,
    /// Mark for filters to match.
    pub mark: u32,
    /// The class that packets name.
    pub class: ClassId,
    /// Destination port; by default 5001 for TCP, 4000 for UDP.
    pub port: Option<u16>,
    /// The nodes to pass, both ends included; by default the path of fewest hops, then of least delay.
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
    /// Payload of each, bytes.
    pub size: Distribution,
    /// When they are sent.
    pub pattern: Pattern,
}

/// When datagrams are sent. Rates count payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// At a constant bit rate.
    Constant {
        /// Rate of payload.
        rate: Rate,
    },
    /// At exponentially distributed distances.
    Poisson {
        /// Mean rate of payload.
        rate: Rate,
    },
    /// At a constant rate for a while, then not for a while. A distance between two datagrams that a silence
    /// interrupts goes on after it, so that the mean rate is exact however short the bursts.
    OnOff {
        /// Rate of payload in a burst.
        rate: Rate,
        /// Length of bursts, ns.
        on: Distribution,
        /// Length of silences, ns.
        off: Distribution,
    },
}

/// A TCP connection and the program that writes to it.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Parameters of both ends.
    pub config: tcp::Config,
    /// The program.
    pub application: Application,
}

impl Udp {
    /// Datagrams of `size` bytes of payload at a constant rate of payload.
    pub fn constant(rate: Rate, size: u32) -> Udp {
        Udp {
            size: Distribution::Constant(size.into()),
            pattern: Pattern::Constant { rate },
        }
    }

    /// Datagrams of `size` bytes of payload at exponentially distributed distances.
    pub fn poisson(rate: Rate, size: u32) -> Udp {
        Udp {
            size: Distribution::Constant(size.into()),
            pattern: Pattern::Poisson { rate },
        }
    }
}

impl Tcp {
    /// A connection that is never short of data.
    pub fn bulk(config: tcp::Config) -> Tcp {
        Tcp {
            config,
            application: Application::Bulk,
        }
    }
}

impl Traffic {
    /// `udp` or `tcp`.
    pub fn transport(&self) -> &'static str {
        match self {
            Traffic::Udp(_) => "udp",
            Traffic::Tcp(_) => "tcp",
        }
    }

    /// IP protocol number.
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
    /// One flow from the beginning to the end, without marks or wishes.
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

    /// The names of the flows alike.
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
                format!("it goes from `{node}` to itself; name two different nodes"),
            );
        }
        if self.count == 0 || self.count > MOST_ALIKE {
            return mistake(
                "count",
                format!("the count is {}, but must be from 1 to {MOST_ALIKE}", self.count),
            );
        }
        if self.dscp > 63 {
            return mistake(
                "dscp",
                format!("DSCP {} has more than six bits: at most 63", self.dscp),
            );
        }
        if self.priority > 15 {
            return mistake("priority", format!("priority {} is above 15", self.priority));
        }
        if self.start > LONGEST || self.stagger > LONGEST / self.count {
            return mistake("start", "it starts after more than a year; start earlier".into());
        }
        if self.stop.is_some_and(|stop| stop <= self.start) {
            return mistake(
                "stop",
                format!("it stops before it starts, at {:?}; stop later", self.start),
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
                "segments have {} bytes of payload, but must have from 1 to {MOST_PAYLOAD}; 1448 fill an Ethernet packet",
                self.config.mss
            ));
        }
        if !(1..=MOST_INITIAL_WINDOW).contains(&self.config.initial_window) {
            return Err(format!(
                "the initial window is {} segments, but must be from 1 to {MOST_INITIAL_WINDOW}; 10 is usual (RFC 6928)",
                self.config.initial_window
            ));
        }
        self.application.check()
    }
}

impl Udp {
    /// Whether a simulation of it ends before whoever waits for it gives up.
    fn check_work(&self, sends_for: Duration) -> Result<(), String> {
        let (Pattern::Constant { rate } | Pattern::Poisson { rate } | Pattern::OnOff { rate, .. }) =
            self.pattern;
        let bits = u128::from(rate.bits_per_second()) * sends_for.as_nanos() / 1_000_000_000;
        let packets = bits / (8 * u128::from(self.size.mean().max(1)));
        match packets <= MOST_DATAGRAMS {
            true => Ok(()),
            false => Err(format!(
                "it would send up to {packets} datagrams, and at most {MOST_DATAGRAMS} can be simulated in a day; lower its rate, \
                 or simulate for a shorter time"
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
                return Err("bursts have no length; give a mean above 0".into());
            }
        }
        Ok(())
    }

    /// The payload of a datagram. What a distribution with a long tail gives beyond an IP packet's length becomes the
    /// longest packet.
    pub(crate) fn payload(size: u64) -> u32 {
        size.clamp(1, LONGEST_PACKET - u64::from(UDP_HEADERS)) as u32
    }
}

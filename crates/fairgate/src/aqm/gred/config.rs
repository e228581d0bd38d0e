//! Parameters.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use super::Gred;
use crate::aqm::POSITIVE;
use crate::aqm::codel::ecn;
use crate::aqm::red::{self, Derive, Response, harddrop, limit_in_bytes};
use crate::error::ConfigError;
use crate::probability::Probability;
use crate::rate::Rate;
use crate::registry::{About, Children, Description, Family, Lens, Longest, Parameter, Unit, check_ranges};

/// The most virtual queues: the kernel's MAX_DPs.
pub const MOST: usize = 16;
/// The priority of a virtual queue that has none (GRED_DEF_PRIO).
const PRIORITY: u32 = MOST as u32 / 2;

/// Parameters. Each list has a number for each virtual queue, or is empty for the default of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest backlog of packets without a virtual queue, and the largest limit of one, bytes.
    pub limit: u32,
    /// The number of virtual queues, 1 to 16.
    pub queues: u32,
    /// The virtual queue, from 0, of packets whose own one is not set up.
    pub default_queue: u32,
    /// Whether the averages of virtual queues with higher priorities are added to that of a packet.
    pub grio: bool,
    /// How packets are marked; without `nodrop`.
    pub response: Response,
    /// The virtual queue of each DSCP, from 0.
    pub precedence: [u8; 64],
    /// The largest backlog of each virtual queue, bytes; 0 if it is not set up.
    pub limits: Vec<u32>,
    /// The average from which on packets are marked, bytes; 0 for a third of `max`.
    pub min: Vec<u32>,
    /// The average from which on every packet is marked, bytes; 0 for three times `min`, or a quarter of the
    /// limit.
    pub max: Vec<u32>,
    /// The length of a typical packet, bytes.
    pub avpkt: Vec<u32>,
    /// The packets that may arrive at once without a mark; 0 for `(2 min + max) / (3 avpkt)`.
    pub burst: Vec<u32>,
    /// The probability of a mark at `max`, in millionths.
    pub probability: Vec<u32>,
    /// The rate of the link, kbit/s. It converts idle time into packets.
    pub bandwidth: Vec<u32>,
    /// The priority; 1 is the highest.
    pub priority: Vec<u32>,
}

/// Three virtual queues with RED's thresholds and more marks for each next one; the first by default.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 400_000,
            queues: 3,
            default_queue: 0,
            grio: false,
            response: Response::default(),
            precedence: [0; 64],
            limits: vec![400_000; 3],
            min: vec![30_000; 3],
            max: vec![90_000; 3],
            avpkt: Vec::new(),
            burst: Vec::new(),
            probability: vec![20_000, 50_000, 100_000],
            bandwidth: Vec::new(),
            priority: Vec::new(),
        }
    }
}

/// A virtual queue that is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualQueue {
    /// RED's parameters.
    pub red: red::Config,
    /// The priority; 1 is the highest.
    pub priority: u32,
}

const fn list(
    name: &'static str,
    range: core::ops::RangeInclusive<u64>,
    doc: &'static str,
    field: Lens<Config>,
) -> Parameter<Config> {
    Parameter::new(name, Unit::Numbers(MOST), range, doc, field)
}

/// Bytes, packets or kbit/s.
const ANY: core::ops::RangeInclusive<u64> = 0..=u32::MAX as u64;

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Config>] = &[
    Parameter::bounding(
        |gred, _| Some(Longest::Length(gred.limit.into())),
        limit_in_bytes(|gred, _| &mut gred.limit),
    ),
    Parameter::new(
        "queues",
        Unit::Count("virtual queues"),
        1..=MOST as u64,
        "The number of virtual queues; tc's `vqs`.",
        |gred, _| &mut gred.queues,
    ),
    Parameter::new(
        "default_queue",
        Unit::Count("virtual queue"),
        0..=MOST as u64 - 1,
        "The virtual queue, from 0, of packets whose own one is not set up.",
        |gred, _| &mut gred.default_queue,
    ),
    Parameter::word(
        "grio",
        Unit::Flag,
        "Whether the averages of virtual queues with higher priorities count for a packet too; those with \
         one priority share an average.",
        |gred, _| &mut gred.grio,
    ),
    ecn(|gred, _| &mut gred.response.ecn),
    harddrop(|gred, _| &mut gred.response.harddrop),
    Parameter::new(
        "precedence",
        Unit::List(64),
        0..=MOST as u64 - 1,
        "The virtual queue of each DSCP, from 0.",
        |gred, _| &mut gred.precedence,
    ),
    Parameter::bounding(
        |gred, _| {
            gred.limits
                .iter()
                .copied()
                .filter(|limit| *limit > 0)
                .min()
                .map(|least| Longest::Length(least.into()))
        },
        list(
            "limits",
            ANY,
            "The largest backlog of each virtual queue in bytes; 0 for one that is not set up.",
            |gred, _| &mut gred.limits,
        ),
    ),
    list(
        "min",
        ANY,
        "For each, the average in bytes from which on packets are marked; 0 for a third of `max`.",
        |gred, _| &mut gred.min,
    ),
    list(
        "max",
        ANY,
        "For each, the average in bytes from which on every packet is marked; 0 for three times `min`, or a \
         quarter of the limit.",
        |gred, _| &mut gred.max,
    ),
    list(
        "avpkt",
        POSITIVE,
        "For each, the length of a typical packet in bytes; [] for 1000.",
        |gred, _| &mut gred.avpkt,
    ),
    list(
        "burst",
        ANY,
        "For each, the packets that may arrive at once unmarked; 0 for (2 `min` + `max`) / 3 in packets of \
         `avpkt`.",
        |gred, _| &mut gred.burst,
    ),
    list(
        "probability",
        0..=1_000_000,
        "For each, the probability of a mark at `max` in millionths; [] for 20000, which is 2 %.",
        |gred, _| &mut gred.probability,
    ),
    list(
        "bandwidth",
        POSITIVE,
        "For each, the rate of the link in kbit/s, which converts idle time into packets; [] for 10000.",
        |gred, _| &mut gred.bandwidth,
    ),
    list(
        "priority",
        0..=255,
        "For each, the priority with `grio`, of which 1 is the highest; [] for 8.",
        |gred, _| &mut gred.priority,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Config> = Description::new(
    About {
        name: "gred",
        family: Family::Aqm,
        summary: "RED with up to 16 virtual queues in one queue, each with a curve, an average and a limit \
            of its own",
        when: "To take over a gred of Linux, or for more drop precedences than the three of wred.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Config::default(),
    |config, parts| Ok(Box::new(Gred::node(config, parts.seed)?)),
)
// The virtual queues.
.with_memory(|_| 4_000);

impl Config {
    /// Returns the virtual queue of this index with all defaults, if it is set up.
    pub fn virtual_queue(&self, index: usize) -> Option<VirtualQueue> {
        let of = |list: &[u32]| list.get(index).copied();
        let limit = of(&self.limits).filter(|limit| *limit > 0 && index < self.queues as usize)?;
        let set = |list: &[u32]| of(list).filter(|number| *number > 0);
        let defaults = red::Config::default();
        let millionths = of(&self.probability).map(|part| Probability::ratio(part, 1_000_000));
        let rate = set(&self.bandwidth)
            .and_then(|kilobits| Rate::from_bits_per_second(u64::from(kilobits) * 1000).ok());
        Some(VirtualQueue {
            red: red::Config {
                limit: limit.min(self.limit),
                min: set(&self.min),
                max: set(&self.max),
                avpkt: set(&self.avpkt).unwrap_or(defaults.avpkt),
                burst: set(&self.burst),
                probability: millionths.unwrap_or(defaults.probability),
                bandwidth: rate.unwrap_or(defaults.bandwidth),
                response: self.response,
                ..defaults
            },
            priority: set(&self.priority).unwrap_or(PRIORITY),
        })
    }

    /// Whether two virtual queues have one priority, so that with `grio` all share one average, as in the
    /// kernel (`gred_wred_mode_check`).
    pub(super) fn shares_average(&self) -> bool {
        let priorities: Vec<u32> = (0..MOST)
            .filter_map(|index| Some(self.virtual_queue(index)?.priority))
            .collect();
        let repeats = |(at, priority): (usize, &u32)| priorities[..at].contains(priority);
        self.grio && priorities.iter().enumerate().any(repeats)
    }

    /// Checks the parameters, and returns those of each virtual queue as the packet path needs them.
    pub(super) fn derived(&self) -> Result<Vec<Option<(VirtualQueue, red::Derived)>>, ConfigError> {
        check_ranges(PARAMETERS, &mut self.clone())?;
        self.response.check()?;
        let conflict = |name, value: &dyn core::fmt::Display, rule: alloc::string::String, remedy| {
            Err(ConfigError::conflict(name, value, rule, remedy))
        };
        if self.default_queue >= self.queues {
            let rule = format!(
                "below `queues`, {}: virtual queues are counted from 0",
                self.queues
            );
            return conflict("default_queue", &self.default_queue, rule, "name one of them");
        }
        let lists: [(&'static str, &Vec<u32>); 8] = [
            ("limits", &self.limits),
            ("min", &self.min),
            ("max", &self.max),
            ("avpkt", &self.avpkt),
            ("burst", &self.burst),
            ("probability", &self.probability),
            ("bandwidth", &self.bandwidth),
            ("priority", &self.priority),
        ];
        for (name, list) in lists {
            if !list.is_empty() && list.len() != self.queues as usize {
                let rule = format!("as long as `queues` says, {}, or empty", self.queues);
                let length = format!("{} numbers long", list.len());
                return conflict(name, &length, rule, "write a number for each virtual queue");
            }
        }
        let derived = |queue: VirtualQueue| {
            let derived = queue.red.derived()?;
            Ok((queue, derived))
        };
        let all = (0..MOST).map(|index| self.virtual_queue(index).map(derived).transpose());
        all.collect()
    }
}

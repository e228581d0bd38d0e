//! The parameters of msfc, and the choice of a packet's class.

use alloc::boxed::Box;
use core::time::Duration;

use super::{AutoPriority, Msfc};
use crate::aqm::codel::{ControlLaw, Params, codel_parameters};
use crate::classify::{ClassMap, Classifier};
use crate::discipline::Algorithm;
use crate::error::ConfigError;
use crate::registry::{
    About, Children, Description, Family, Longest, Parameter, Placing, Unit, check_ranges,
};
use crate::rounds::codel_flows::{Limits, drop_batch, flows, limit, memory_limit, quantum};
use crate::slot::Slot;

/// The most flows of all classes together: 128 MiB of state.
const MAX_FLOWS_IN_ALL: u32 = 1 << 21;

/// The most classes.
pub const MAX_PRIOS: u8 = 16;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of priority classes, 1 to [`MAX_PRIOS`]. The class with the highest number gets the largest
    /// share.
    pub prios: u8,
    /// The number of flows in each class, 1 to 2^20; at most 2^21 in all classes together.
    pub flows: u32,
    /// The bytes that a flow may send in its turn, and that the lowest class may send in its turn; 256 to
    /// 2^20.
    pub quantum: u32,
    /// The ratio between the share of a class and that of the next lower class, at least 1.
    pub ratio: u32,
    /// Whether a class's share is for each of its active flows instead of for all of them together. With
    /// `auto_priority` it always is.
    pub flow_aware: bool,
    /// Whether and how flows change their class by their behaviour.
    pub auto_priority: Option<AutoPriority>,
    /// The largest backlog of all flows together, packets.
    pub limit: u32,
    /// The most memory that queued packets occupy ([`Packet::memory`](crate::Packet::memory)), bytes.
    pub memory_limit: u64,
    /// The most packets dropped at once when a limit is reached.
    pub drop_batch: u32,
    /// Classifies packets before [`class_by`](Config::class_by) does. `handle:n`, a filter's class `n` or a
    /// default `n` is the class of priority `n - 1`.
    pub classifier: Classifier,
    /// Classifies the packets that the classifier gives no class.
    pub class_by: ClassBy,
    /// The parameters of the control law.
    pub codel: Params,
}

/// The field of a packet that determines its class, with the class for each value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassBy {
    /// The DSCP.
    Dscp([u8; 64]),
    /// The packet's priority; only its four low bits count.
    Priority([u8; 16]),
}

impl ClassBy {
    /// The class of a packet.
    #[inline]
    pub(super) fn class_of(&self, packet: &Slot) -> u8 {
        match self {
            ClassBy::Dscp(map) => map[usize::from(packet.dscp & 63)],
            ClassBy::Priority(map) => map[usize::from(packet.priority & 15)],
        }
    }
}

/// Three classes by DSCP. Low: CS1 and LE (RFC 8622), which are marked as bulk. High: traffic that is most
/// sensitive to delay: CS4 to CS7, AF4x, VOICE-ADMIT and EF (the network control, telephony, signalling and
/// interactive classes of RFC 4594). All others are in the middle.
pub const DIFFSERV3: ClassBy = {
    let mut map = [1; 64];
    let low = [1, 8];
    let high = [32, 34, 36, 38, 40, 44, 46, 48, 56];
    let mut i = 0;
    while i < low.len() {
        map[low[i]] = 0;
        i += 1;
    }
    i = 0;
    while i < high.len() {
        map[high[i]] = 2;
        i += 1;
    }
    ClassBy::Dscp(map)
};

/// Three classes by priority, as in Linux's `pfifo_fast`: its first band is the highest class.
pub const PRIOMAP3: ClassBy = ClassBy::Priority([1, 0, 0, 0, 1, 0, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]);

/// Three classes by DSCP in the ratio 1 : 2 : 4; other values as in the thesis and fq_codel.
impl Default for Config {
    fn default() -> Config {
        Config {
            prios: 3,
            flows: 1024,
            quantum: 1514,
            ratio: 2,
            flow_aware: false,
            auto_priority: None,
            limit: 10_240,
            memory_limit: 32 << 20,
            drop_batch: 64,
            classifier: Classifier::default(),
            class_by: DIFFSERV3,
            codel: Params::default(),
        }
    }
}

/// The field of a packet that determines its class.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClassField {
    Dscp,
    Priority,
}

crate::words!(ClassField {
    "dscp" => ClassField::Dscp,
    "priority" => ClassField::Priority,
});

/// The settings of msfc as users write them: the field that determines the class, and a map for it.
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    class_by: ClassField,
    dscp_map: Option<[u8; 64]>,
    priomap: Option<[u8; 16]>,
    auto_priority: bool,
    auto_interval: Option<Duration>,
    auto_drops: Option<u32>,
}

impl Settings {
    fn of(config: &Config) -> Settings {
        let auto = config.auto_priority.as_ref();
        Settings {
            class_by: match config.class_by {
                ClassBy::Dscp(_) => ClassField::Dscp,
                ClassBy::Priority(_) => ClassField::Priority,
            },
            dscp_map: match config.class_by {
                ClassBy::Dscp(map) => Some(map),
                ClassBy::Priority(_) => None,
            },
            priomap: match config.class_by {
                ClassBy::Dscp(_) => None,
                ClassBy::Priority(map) => Some(map),
            },
            auto_priority: auto.is_some(),
            auto_interval: auto.map(|auto| auto.interval),
            auto_drops: auto.map(|auto| auto.drops),
            config: config.clone(),
        }
    }

    fn start() -> Settings {
        let config = Config::default();
        Settings {
            class_by: match config.class_by {
                ClassBy::Dscp(_) => ClassField::Dscp,
                ClassBy::Priority(_) => ClassField::Priority,
            },
            config,
            dscp_map: None,
            priomap: None,
            auto_priority: false,
            auto_interval: None,
            auto_drops: None,
        }
    }

    fn config(self) -> Result<Config, ConfigError> {
        let class_by = match (self.class_by, self.dscp_map, self.priomap) {
            (ClassField::Dscp, map, None) => map.map_or(DIFFSERV3, ClassBy::Dscp),
            (ClassField::Priority, None, map) => map.map_or(PRIOMAP3, ClassBy::Priority),
            (ClassField::Dscp, _, Some(_)) => return Err(map_of_other_field("priomap", "priority")),
            (ClassField::Priority, Some(_), _) => return Err(map_of_other_field("dscp_map", "dscp")),
        };
        Ok(Config {
            class_by,
            auto_priority: self.auto_priority()?,
            ..self.config
        })
    }

    fn auto_priority(&self) -> Result<Option<AutoPriority>, ConfigError> {
        if self.auto_priority {
            let default = AutoPriority::default();
            return Ok(Some(AutoPriority {
                interval: self.auto_interval.unwrap_or(default.interval),
                drops: self.auto_drops.unwrap_or(default.drops),
            }));
        }
        let given = [
            self.auto_interval.map(|_| "auto_interval"),
            self.auto_drops.map(|_| "auto_drops"),
        ];
        match given.into_iter().flatten().next() {
            None => Ok(None),
            Some(parameter) => Err(ConfigError::conflict(
                parameter,
                "given",
                "left out unless auto_priority is true",
                "leave it out, or write auto_priority = true",
            )),
        }
    }
}

fn map_of_other_field(parameter: &'static str, field: &str) -> ConfigError {
    ConfigError::conflict(
        parameter,
        "given",
        format!("left out unless class_by is \"{field}\""),
        format!("leave it out, or write class_by = \"{field}\""),
    )
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = codel_parameters![|msfc| msfc.config.codel;
    Parameter::new(
        "prios",
        Unit::Count("classes"),
        1..=MAX_PRIOS as u64,
        "The number of classes; the highest one gets the largest share.",
        |msfc, _| &mut msfc.config.prios,
    ),
    Parameter::new(
        "ratio",
        Unit::Count("times"),
        1..=u32::MAX as u64,
        "The ratio between the share of a class and that of the next lower class.",
        |msfc, _| &mut msfc.config.ratio,
    ),
    Parameter::word(
        "flow_aware",
        Unit::Flag,
        "Whether the ratio is between the flows of two classes instead of between the classes; with \
         auto_priority it always is.",
        |msfc, _| &mut msfc.config.flow_aware,
    ),
    Parameter::word(
        "auto_priority",
        Unit::Flag,
        "Whether flows rise by a class that trigger CoDel seldom and send below their fair share, and other \
         flows sink.",
        |msfc, _| &mut msfc.auto_priority,
    ),
    Parameter::new(
        "auto_interval",
        Unit::Time,
        10_000_000..=3_600_000_000_000,
        "The time over which drops and marks are counted; a flow that stays within its share without any \
         rises after it; none is 5s.",
        |msfc, _| &mut msfc.auto_interval,
    ),
    Parameter::new(
        "auto_drops",
        Unit::Count("packets"),
        1..=65_535,
        "The drops and marks within auto_interval with which a flow sinks; none is 2.",
        |msfc, _| &mut msfc.auto_drops,
    ),
    Parameter::word(
        "class_by",
        Unit::Choice(ClassField::WORDS),
        "The field that determines a packet's class if no filter does.",
        |msfc, _| &mut msfc.class_by,
    ),
    Parameter::new(
        "dscp_map",
        Unit::List(64),
        0..=MAX_PRIOS as u64 - 1,
        "The class, counted from 0, for each DSCP; none is 0 for CS1 and LE, 2 for EF, VA, AF4x and CS4 \
            up, else 1.",
        |msfc, _| &mut msfc.dscp_map,
    ),
    Parameter::new(
        "priomap",
        Unit::List(16),
        0..=MAX_PRIOS as u64 - 1,
        "The class, counted from 0, for each packet priority; none is the map of pfifo_fast.",
        |msfc, _| &mut msfc.priomap,
    ),
    flows(
        "The number of flow queues in each class.",
        |msfc, _| &mut msfc.config.flows,
    ),
    quantum(
        "The bytes that a flow may send in its turn, and that the lowest class may send in its turn.",
        |msfc, _| &mut msfc.config.quantum,
    ),
    limit(|msfc, _| &mut msfc.config.limit),
    memory_limit(
        |msfc, _| Some(Longest::Memory(msfc.config.memory_limit)),
        |msfc, _| &mut msfc.config.memory_limit,
    ),
    drop_batch(|msfc, _| &mut msfc.config.drop_batch),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "msfc",
        family: Family::Rounds,
        summary: "Multilevel Stochastic Fairness CoDel: classes that share in a fixed ratio, fq_codel \
            within each",
        when: "On an access line with marked traffic: interactive traffic gets more, and bulk never starves. \
            Without marks fq_codel does nearly the same.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Settings::start(),
    Settings::config,
    |config, parts| Ok(Box::new(Msfc::node(config, parts.seed)?)),
)
.with_placing(Placing::Classifier(
    |msfc| &mut msfc.config.classifier,
    |msfc| msfc.config.prios as u32,
))
.with_memory(|msfc| 65 * u64::from(msfc.config.flows_in_all()))
.with_check(|config| config.check().map(drop));

impl Config {
    pub(super) fn check(&self) -> Result<(ControlLaw, Limits), ConfigError> {
        check_ranges(PARAMETERS, &mut Settings::of(self))?;
        self.codel.check_selector()?;
        self.check_classes()?;
        if self.flows_in_all() > MAX_FLOWS_IN_ALL {
            return Err(ConfigError::conflict(
                "flows",
                self.flows,
                format!(
                    "at most {}: {MAX_FLOWS_IN_ALL} in all classes together",
                    MAX_FLOWS_IN_ALL / u32::from(self.prios)
                ),
                "set fewer flows in each class, or fewer classes",
            ));
        }
        let limits = Limits::new(self.limit, self.memory_limit, self.drop_batch);
        Ok((ControlLaw::new(&self.codel), limits))
    }

    pub(super) fn flows_in_all(&self) -> u32 {
        u32::from(self.prios) * self.flows
    }

    /// Whether the ratio is between flows. If flows find their classes by their behaviour, a class of a few
    /// flows that nobody chose must not get the share of a class.
    pub(super) fn is_flow_aware(&self) -> bool {
        self.flow_aware || self.auto_priority.is_some()
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        let largest = u64::from(self.ratio)
            .checked_pow(u32::from(self.prios) - 1)
            .and_then(|factor| factor.checked_mul(self.quantum.into()));
        let fits = largest.is_some_and(|quantum| quantum <= LARGEST_QUANTUM);
        if !fits {
            return Err(ConfigError::conflict(
                "ratio",
                self.ratio,
                format!("so small that quantum * ratio^(prios - 1) is at most {LARGEST_QUANTUM} bytes"),
                "take fewer classes or a smaller ratio, which is 2 by default",
            ));
        }
        let map: &[u8] = match &self.class_by {
            ClassBy::Dscp(map) => map,
            ClassBy::Priority(map) => map,
        };
        if let Some(class) = map.iter().find(|class| **class >= self.prios) {
            return Err(ConfigError::conflict(
                "class_by",
                format!("class {class}"),
                format!("below prios, which is {}", self.prios),
                "give another map, or raise prios",
            ));
        }
        ClassMap::new(1..=self.prios.into())?.check(&self.classifier, Msfc::NAME)
    }
}

/// The most bytes that a class may send in its turn: 3 s at 100 Mb/s. If turns grow with the number of flows,
/// it is per flow.
const LARGEST_QUANTUM: u64 = 1 << 25;

//! Fair queueing by rounds.

use std::time::Duration;

use fairgate::ConfigError;
use fairgate::classify::Classifier;
use fairgate::rounds::drr::{self, Drr, Quantum};
use fairgate::rounds::drr_classes::{self, ClassConfig, DrrClasses};
use fairgate::rounds::ets::{self, Ets};
use fairgate::rounds::fq::{self, BeyondHorizon, Fq};
use fairgate::rounds::fq_codel::{self, FqCodel};
use fairgate::rounds::fq_nagle::FqNagle;
use fairgate::rounds::fq_pie::{self, FqPie};
use fairgate::rounds::msfc::{self, AutoPriority, ClassBy, MAX_PRIOS, Msfc};
use fairgate::rounds::sfq::{self, Sfq};
use fairgate::scheduler::{Flows, classes, flows};

use super::aqm::{codel_parameters, pie_parameters};
use super::description::bounding;
use super::queues::DROP_FROM;
use super::schedulers::{self, FlatSettings, classful, flat};
use super::{About, Children, Description, Family, Longest, Parameter, Placing};
use crate::value::{Unit, choice_field};

pub(super) static SFQ: Description<sfq::Config, sfq::Config> = Description {
    about: About {
        name: "sfq",
        family: Family::Rounds,
        summary: "Stochastic fairness queueing: few queues, round robin, the longest queue pays",
        when: "For fair shares with little memory, where delay does not matter much; else take fq_codel.",
        children: Children::None,
    },
    parameters: &[
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            2..=1 << 24,
            "Most packets queued in all.",
            |sfq, _| &mut sfq.limit,
        ),
        Parameter::new(
            "depth",
            Unit::Count("packets"),
            1..=65_535,
            "Most packets of one flow.",
            |sfq, _| &mut sfq.depth,
        ),
        Parameter::new(
            "flows",
            Unit::Count("flows"),
            1..=65_408,
            "Most flows at a time.",
            |sfq, _| &mut sfq.flows,
        ),
        Parameter::new(
            "divisor",
            Unit::Count("buckets"),
            1..=65_536,
            "Buckets of the hash: a power of two. More buckets, fewer flows that share one by chance.",
            |sfq, _| &mut sfq.divisor,
        ),
        Parameter::new(
            "quantum",
            Unit::Bytes,
            64..=1 << 30,
            "Bytes that a flow may send in a round.",
            |sfq, _| &mut sfq.quantum,
        ),
        Parameter::word(
            "drop",
            DROP_FROM,
            "Which packet of the longest flow pays: the newest or the oldest.",
            |sfq, _| &mut sfq.drop_from,
        ),
        Parameter::new(
            "perturb",
            Unit::Time,
            1_000_000..=u64::MAX,
            "Time after which flows are hashed anew.",
            |sfq, _| &mut sfq.perturb,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Classifier(|sfq| &mut sfq.classifier, |sfq| sfq.divisor),
    start: |_| sfq::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Sfq::node(config, parts.seed)?)),
};

pub(super) static FQ_NAGLE: Description<FlatSettings<FqNagle>, flows::ConfigOf<FqNagle>> = Description {
    about: About {
        name: "fq_nagle",
        family: Family::Rounds,
        summary: "Packet by packet round robin over hashed flows (Nagle 1985)",
        when: "To compare with the first fair queueing there was: unfair where packets differ in length.",
        children: Children::None,
    },
    parameters: &[schedulers::flows(), schedulers::limit()],
    class_parameters: &[],
    placing: Placing::Classifier(|flat| &mut flat.config.classifier, |flat| flat.config.flows),
    start: |_| FlatSettings::start(),
    config: |flat| Ok(flat.config),
    build: |config, parts| Ok(Box::new(Flows::<FqNagle>::node(config, parts.seed)?)),
};

pub(super) static FQ_NAGLE_CLASSES: Description<classes::ConfigOf<FqNagle>, classes::ConfigOf<FqNagle>> = classful!(
    FqNagle,
    Family::Rounds,
    "Packet by packet round robin over classes, each with any discipline inside",
    "To compare with the first fair queueing there was: unfair where packets differ in length.",
    [],
    []
);

/// Without classes.
pub(super) static DRR: Description<FlatSettings<Drr>, drr::Config> = flat!(
    Drr,
    Family::Rounds,
    "Deficit round robin over hashed flows",
    "For exactly fair shares in bytes at the least cost, where delay does not matter much.",
    [
        Parameter::new(
            "quantum",
            Unit::Bytes,
            64..=1 << 30,
            "Bytes that a flow may send in a round: at least the longest packet for constant cost.",
            |flat, _| &mut flat.config.share.0,
        ),
        Parameter::new(
            "quanta",
            Unit::Numbers(4096),
            64..=1 << 30,
            "Quanta of the first flows, bytes, for filters to place packets in; the others have the common one.",
            |flat, _| &mut flat.amounts,
        ),
    ]
);

/// With classes: the same name, another discipline.
pub(super) static DRR_CLASSES: Description<drr_classes::Config, drr_classes::Config> = Description {
    about: About {
        name: "drr",
        family: Family::Rounds,
        summary: "Deficit round robin over classes, each with a quantum and any discipline inside",
        when: "To share a line between kinds of traffic, or users, in given proportions.",
        children: Children::Classes,
    },
    parameters: &[],
    class_parameters: &[Parameter::new(
        "quantum",
        Unit::Bytes,
        64..=1 << 30,
        "Bytes that the class may send in a round: its share is its part of the sum.",
        |drr, class| &mut drr.classes[class].quantum,
    )],
    placing: Placing::Classes(|drr| &mut drr.classifier, |drr| &mut drr.templates),
    start: |minors| drr_classes::Config {
        classes: minors
            .iter()
            .map(|minor| ClassConfig {
                minor: *minor,
                quantum: Quantum::default().0,
            })
            .collect(),
        ..drr_classes::Config::default()
    },
    config: Ok,
    build: |config, parts| Ok(Box::new(DrrClasses::node(config, parts.children)?)),
};

/// ets as users write it: a quantum in each band that is not strict, or none for the default.
pub(super) struct EtsSettings {
    strict: u8,
    quanta: Vec<Option<u32>>,
    priomap: Option<[u8; 16]>,
    classifier: Classifier,
}

impl EtsSettings {
    fn config(self) -> Result<ets::Config, ConfigError> {
        let bands = self.quanta.len();
        let Some((strict, sharing)) = self.quanta.split_at_checked(self.strict.into()) else {
            return Err(ConfigError::out_of_range(
                "strict",
                self.strict,
                format!("at most {bands}, the number of bands"),
                "add bands, or let fewer of them be strict",
            ));
        };
        if let Some(quantum) = strict.iter().copied().find_map(|quantum| quantum) {
            return Err(ConfigError::out_of_range(
                "quantum",
                quantum,
                format!("left out in the first {}, the strict bands", self.strict),
                "leave it out, or let fewer bands be strict",
            ));
        }
        let quanta = sharing.iter().map(|quantum| quantum.unwrap_or(ets::QUANTUM));
        let linux = ets::Config::of_bands(self.strict, quanta.collect());
        Ok(ets::Config {
            priomap: self.priomap.unwrap_or(linux.priomap),
            classifier: self.classifier,
            ..linux
        })
    }
}

pub(super) static ETS: Description<EtsSettings, ets::Config> = Description {
    about: About {
        name: "ets",
        family: Family::Rounds,
        summary: "Enhanced transmission selection: strict bands first, the others share by deficit round robin",
        when: "Where a little traffic must always go first and the rest be shared in given proportions.",
        children: Children::Bands,
    },
    parameters: &[
        Parameter::new(
            "strict",
            Unit::Count("bands"),
            0..=64,
            "How many bands, the first ones, go in strict priority.",
            |ets, _| &mut ets.strict,
        ),
        Parameter::new(
            "priomap",
            Unit::List(16),
            0..=63,
            "The band, counted from 0, for each packet priority where no filter chooses a class; none is the last band.",
            |ets, _| &mut ets.priomap,
        ),
    ],
    class_parameters: &[Parameter::new(
        "quantum",
        Unit::Bytes,
        256..=1 << 30,
        "Bytes that the band may send in a round, 1514 if none are given; not in a strict band.",
        |ets, class| &mut ets.quanta[class],
    )],
    placing: Placing::Classifier(|ets| &mut ets.classifier, |_| 64),
    start: |minors| EtsSettings {
        strict: 0,
        quanta: vec![None; minors.len()],
        priomap: None,
        classifier: Classifier::default(),
    },
    config: EtsSettings::config,
    build: |config, parts| Ok(Box::new(Ets::node(config, parts.children)?)),
};

pub(super) static FQ_CODEL: Description<fq_codel::Config, fq_codel::Config> = Description {
    about: About {
        name: "fq_codel",
        family: Family::Rounds,
        summary: "Flow queues with CoDel on each (RFC 8290): fair shares, low delay, sparse flows first",
        when: "As the first choice for an access line, inside a shaper like tbf.",
        children: Children::None,
    },
    parameters: codel_parameters![|fq_codel| fq_codel.codel;
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets queued in all flows together.",
            |fq_codel, _| &mut fq_codel.limit,
        ),
        bounding(|fq_codel, _| Some(Longest::Memory(fq_codel.memory_limit)), Parameter::new(
            "memory_limit",
            Unit::Bytes,
            1..=u64::MAX,
            "Most memory that queued packets may occupy.",
            |fq_codel, _| &mut fq_codel.memory_limit,
        )),
        Parameter::new(
            "flows",
            Unit::Count("flows"),
            1..=1 << 20,
            "Number of flow queues. More queues, fewer flows that share one by chance.",
            |fq_codel, _| &mut fq_codel.flows,
        ),
        Parameter::new(
            "quantum",
            Unit::Bytes,
            256..=1 << 20,
            "Bytes that a flow may send in a turn; 300 favours small packets on slow lines.",
            |fq_codel, _| &mut fq_codel.quantum,
        ),
        Parameter::new(
            "drop_batch",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets dropped at once when a limit is reached.",
            |fq_codel, _| &mut fq_codel.drop_batch,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Classifier(|fq_codel| &mut fq_codel.classifier, |fq_codel| fq_codel.flows),
    start: |_| fq_codel::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(FqCodel::node(config, parts.seed)?)),
};

pub(super) static FQ_PIE: Description<fq_pie::Config, fq_pie::Config> = Description {
    about: About {
        name: "fq_pie",
        family: Family::Rounds,
        summary: "Flow queues with PIE on each: fair shares, a delay held on average, drops on arrival",
        when: "Where fq_codel would do but packets must be dropped on arrival; to compare the two.",
        children: Children::None,
    },
    parameters: pie_parameters![|fq_pie| fq_pie.pie;
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets queued in all flows together.",
            |fq_pie, _| &mut fq_pie.limit,
        ),
        bounding(|fq_pie, _| Some(Longest::Memory(fq_pie.memory_limit)), Parameter::new(
            "memory_limit",
            Unit::Bytes,
            1..=u64::MAX,
            "Most memory that queued packets may occupy.",
            |fq_pie, _| &mut fq_pie.memory_limit,
        )),
        Parameter::new(
            "flows",
            Unit::Count("flows"),
            1..=1 << 20,
            "Number of flow queues. More queues, fewer flows that share one by chance.",
            |fq_pie, _| &mut fq_pie.flows,
        ),
        Parameter::new(
            "quantum",
            Unit::Bytes,
            256..=1 << 20,
            "Bytes that a flow may send in a turn.",
            |fq_pie, _| &mut fq_pie.quantum,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Classifier(|fq_pie| &mut fq_pie.classifier, |fq_pie| fq_pie.flows),
    start: |_| fq_pie::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(FqPie::node(config, parts.seed)?)),
};

/// Which field of a packet tells its class.
#[derive(Clone, Copy)]
enum Field {
    Dscp,
    Priority,
}

choice_field!(Field {
    "dscp" => Field::Dscp,
    "priority" => Field::Priority,
});

/// msfc as users write it: the field that tells the class, and a map for it.
pub(super) struct MsfcSettings {
    config: msfc::Config,
    class_by: Field,
    dscp_map: Option<[u8; 64]>,
    priomap: Option<[u8; 16]>,
    auto_priority: bool,
    auto_interval: Option<Duration>,
    auto_drops: Option<u32>,
}

impl MsfcSettings {
    fn start() -> MsfcSettings {
        let config = msfc::Config::default();
        MsfcSettings {
            class_by: match config.class_by {
                ClassBy::Dscp(_) => Field::Dscp,
                ClassBy::Priority(_) => Field::Priority,
            },
            config,
            dscp_map: None,
            priomap: None,
            auto_priority: false,
            auto_interval: None,
            auto_drops: None,
        }
    }

    fn config(self) -> Result<msfc::Config, ConfigError> {
        let class_by = match (self.class_by, self.dscp_map, self.priomap) {
            (Field::Dscp, map, None) => map.map_or(msfc::DIFFSERV3, ClassBy::Dscp),
            (Field::Priority, None, map) => map.map_or(msfc::PRIOMAP3, ClassBy::Priority),
            (Field::Dscp, _, Some(_)) => return Err(map_of_other_field("priomap", "priority")),
            (Field::Priority, Some(_), _) => return Err(map_of_other_field("dscp_map", "dscp")),
        };
        Ok(msfc::Config {
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
            Some(parameter) => Err(ConfigError::out_of_range(
                parameter,
                "given",
                "left out unless auto_priority is true",
                "leave it out, or write auto_priority = true",
            )),
        }
    }
}

fn map_of_other_field(parameter: &'static str, field: &str) -> ConfigError {
    ConfigError::out_of_range(
        parameter,
        "given",
        format!("left out unless class_by is \"{field}\""),
        format!("leave it out, or write class_by = \"{field}\""),
    )
}

pub(super) static MSFC: Description<MsfcSettings, msfc::Config> = Description {
    about: About {
        name: "msfc",
        family: Family::Rounds,
        summary: "Multilevel Stochastic Fairness CoDel: classes that share in a fixed ratio, fq_codel within each",
        when: "On an access line whose traffic is marked: interactive traffic gets more, bulk never starves.",
        children: Children::None,
    },
    parameters: codel_parameters![|msfc| msfc.config.codel;
        Parameter::new(
            "prios",
            Unit::Count("classes"),
            1..=MAX_PRIOS as u64,
            "Number of classes; the highest number gets the largest share.",
            |msfc, _| &mut msfc.config.prios,
        ),
        Parameter::new(
            "ratio",
            Unit::Count("times"),
            1..=u32::MAX as u64,
            "How many times the share of the next lower class a class gets.",
            |msfc, _| &mut msfc.config.ratio,
        ),
        Parameter::word(
            "flow_aware",
            Unit::Flag,
            "Whether the ratio is between flows by their classes, and not between classes whatever their flows.",
            |msfc, _| &mut msfc.config.flow_aware,
        ),
        Parameter::word(
            "auto_priority",
            Unit::Flag,
            "Whether flows that seldom trigger CoDel rise by a class and those that do so often sink; best without flow_aware.",
            |msfc, _| &mut msfc.auto_priority,
        ),
        Parameter::new(
            "auto_interval",
            Unit::Time,
            10_000_000..=3_600_000_000_000,
            "Time without a drop or mark after which a flow rises, and over which they are counted; none is 5s.",
            |msfc, _| &mut msfc.auto_interval,
        ),
        Parameter::new(
            "auto_drops",
            Unit::Count("packets"),
            1..=65_535,
            "Drops and marks within auto_interval with which a flow sinks; none is 2.",
            |msfc, _| &mut msfc.auto_drops,
        ),
        Parameter::word(
            "class_by",
            Unit::Choice(&["dscp", "priority"]),
            "What tells a packet's class where no filter does.",
            |msfc, _| &mut msfc.class_by,
        ),
        Parameter::new(
            "dscp_map",
            Unit::List(64),
            0..=MAX_PRIOS as u64 - 1,
            "The class, counted from 0, for each DSCP; none is 0 for CS1 and LE, 2 for EF, VA, AF4x and CS4 up, else 1.",
            |msfc, _| &mut msfc.dscp_map,
        ),
        Parameter::new(
            "priomap",
            Unit::List(16),
            0..=MAX_PRIOS as u64 - 1,
            "The class, counted from 0, for each packet priority; none is that of pfifo_fast.",
            |msfc, _| &mut msfc.priomap,
        ),
        Parameter::new(
            "flows",
            Unit::Count("flows"),
            1..=1 << 20,
            "Number of flow queues in each class.",
            |msfc, _| &mut msfc.config.flows,
        ),
        Parameter::new(
            "quantum",
            Unit::Bytes,
            256..=1 << 20,
            "Bytes that a flow may send in a turn, and the lowest class in one of its own.",
            |msfc, _| &mut msfc.config.quantum,
        ),
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets queued in all flows together.",
            |msfc, _| &mut msfc.config.limit,
        ),
        bounding(|msfc, _| Some(Longest::Memory(msfc.config.memory_limit)), Parameter::new(
            "memory_limit",
            Unit::Bytes,
            1..=u64::MAX,
            "Most memory that queued packets may occupy.",
            |msfc, _| &mut msfc.config.memory_limit,
        )),
        Parameter::new(
            "drop_batch",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets dropped at once when a limit is reached.",
            |msfc, _| &mut msfc.config.drop_batch,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Classifier(
        |msfc| &mut msfc.config.classifier,
        |msfc| msfc.config.prios as u32,
    ),
    start: |_| MsfcSettings::start(),
    config: MsfcSettings::config,
    build: |config, parts| Ok(Box::new(Msfc::node(config, parts.seed)?)),
};

choice_field!(BeyondHorizon {
    "drop" => BeyondHorizon::Drop,
    "hold" => BeyondHorizon::Hold,
});

pub(super) static FQ: Description<fq::Config, fq::Config> = Description {
    about: About {
        name: "fq",
        family: Family::Rounds,
        summary: "Fair queueing over hashed flows with pacing: by a rate for each flow, by packets' departure times",
        when: "On a machine that sends much itself, or to hold every flow to a rate; on a congested line take fq_codel or cake.",
        children: Children::None,
    },
    parameters: &[
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets queued in all.",
            |fq, _| &mut fq.limit,
        ),
        Parameter::new(
            "flow_limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets of one flow.",
            |fq, _| &mut fq.flow_limit,
        ),
        Parameter::new(
            "flows",
            Unit::Count("flows"),
            1..=1 << 20,
            "Queues that flows are hashed into.",
            |fq, _| &mut fq.flows,
        ),
        Parameter::new(
            "quantum",
            Unit::Bytes,
            256..=1 << 20,
            "Bytes that a flow may send in a turn.",
            |fq, _| &mut fq.quantum,
        ),
        Parameter::new(
            "initial_quantum",
            Unit::Bytes,
            0..=1 << 30,
            "Bytes that a new flow may send at once.",
            |fq, _| &mut fq.initial_quantum,
        ),
        Parameter::new(
            "maxrate",
            Unit::Rate,
            1..=u64::MAX,
            "The most that any flow may send.",
            |fq, _| &mut fq.maxrate,
        ),
        Parameter::new(
            "low_rate_threshold",
            Unit::Rate,
            1..=u64::MAX,
            "With a maxrate at or below this each packet is paced by its own length; above it by a quantum at a time.",
            |fq, _| &mut fq.low_rate_threshold,
        ),
        Parameter::new(
            "refill_delay",
            Unit::Time,
            0..=86_400_000_000_000,
            "A flow that was away for longer has a quantum to start with.",
            |fq, _| &mut fq.refill_delay,
        ),
        Parameter::new(
            "horizon",
            Unit::Time,
            0..=86_400_000_000_000,
            "How far ahead a packet's departure time may lie.",
            |fq, _| &mut fq.horizon,
        ),
        Parameter::word(
            "beyond_horizon",
            Unit::Choice(&["drop", "hold"]),
            "What becomes of a packet whose departure time lies further ahead: dropped, or held until the horizon.",
            |fq, _| &mut fq.beyond_horizon,
        ),
        Parameter::new(
            "ce_threshold",
            Unit::Time,
            0..=86_400_000_000_000,
            "Marks packets that leave later than they could have by more than this.",
            |fq, _| &mut fq.ce_threshold,
        ),
    ],
    class_parameters: &[],
    placing: Placing::Classifier(|fq| &mut fq.classifier, |fq| fq.flows),
    start: |_| fq::Config::default(),
    config: Ok,
    build: |config, parts| Ok(Box::new(Fq::node(config, parts.seed)?)),
};

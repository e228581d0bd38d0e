//! The parameters of the emulator: as users set them, and as the discipline needs them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use super::Netem;
use super::losses::Loss;
use super::random::{MOST_NUMBERS, SCALE, Shape};
use super::slots::{SlotConfig, SlotGap};
use crate::error::ConfigError;
use crate::probability::Probability;
use crate::rate::Rate;
use crate::registry::{
    About, Children, Description, Family, Field, Lens, Parameter, Unit, Value, check_ranges,
};

/// The longest time that a parameter allows, ns: a day.
const A_DAY: u64 = 86_400_000_000_000;

/// A random event that happens to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance {
    /// Its probability.
    pub probability: Probability,
    /// How much a random number resembles the one before.
    pub correlation: Probability,
}

/// The order in which packets leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reorder {
    /// Every `gap`-th packet may overtake those before it: it is not delayed. 0 for none.
    pub gap: u32,
    /// The probability that such a packet overtakes. If not, the next one may.
    pub chance: Chance,
}

/// A rate at which packets are sent one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRate {
    /// The rate.
    pub rate: Rate,
    /// The bytes that are added to each packet. A negative number is subtracted.
    pub packet_overhead: i32,
    /// The payload of a cell, bytes. 0 for no cells.
    pub cell_size: u32,
    /// The bytes that are added to each cell.
    pub cell_overhead: i32,
}

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most packets on their way.
    pub limit: u32,
    /// The delay of each packet.
    pub delay: Duration,
    /// The deviation of the delay.
    pub jitter: Duration,
    /// How much a delay resembles the one before.
    pub delay_correlation: Probability,
    /// The distribution of the delay.
    pub shape: Shape,
    /// The numbers of the distribution, if it is a table.
    pub table: Vec<i32>,
    /// Which packets are lost.
    pub loss: Loss,
    /// Marks ECN-capable packets instead of losing them.
    pub ecn: bool,
    /// Packets that arrive twice.
    pub duplicate: Chance,
    /// Packets with a wrong bit.
    pub corrupt: Chance,
    /// Packets that overtake others.
    pub reorder: Reorder,
    /// The rate at which packets are sent.
    pub rate: Option<LinkRate>,
    /// Slots in which packets leave.
    pub slots: Option<SlotConfig>,
}

/// Packets pass unchanged, up to 1000 at a time, as in tc.
impl Default for Config {
    fn default() -> Config {
        Config {
            limit: 1000,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            delay_correlation: Probability::ZERO,
            shape: Shape::Uniform,
            table: Vec::new(),
            loss: Loss::None,
            ecn: false,
            duplicate: Chance::default(),
            corrupt: Chance::default(),
            reorder: Reorder::default(),
            rate: None,
            slots: None,
        }
    }
}

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut Settings::of(self))?;
        self.loss.check()?;
        needs_table("distribution", "table", self.shape, &self.table)?;
        if self.jitter == Duration::ZERO && self.shape != Shape::Uniform {
            return Err(belongs_to("distribution", self.shape.name(), "jitter"));
        }
        if self.jitter == Duration::ZERO && self.delay_correlation > Probability::ZERO {
            return Err(belongs_to("delay_correlation", self.delay_correlation, "jitter"));
        }
        if self.ecn && self.loss == Loss::None {
            return Err(belongs_to("ecn", true, "loss"));
        }
        if self.reorder.gap > 0 && self.delay == Duration::ZERO {
            return Err(ConfigError::conflict(
                "delay",
                "0",
                "above 0 with `reorder` or `gap`, because a packet overtakes only those that wait",
                "give a delay",
            ));
        }
        if let Some(rate) = self.rate {
            let cell = i64::from(rate.cell_size) + i64::from(rate.cell_overhead);
            if rate.cell_size == 0 && rate.cell_overhead != 0 {
                return Err(ConfigError::conflict(
                    "cell_overhead",
                    rate.cell_overhead,
                    "left out without cells",
                    "give `cell_size`, such as 48",
                ));
            }
            if rate.cell_size > 0 && cell <= 0 {
                return Err(ConfigError::conflict(
                    "cell_overhead",
                    rate.cell_overhead,
                    "such that a cell has at least one byte",
                    "raise `cell_overhead` or `cell_size`",
                ));
            }
        }
        match &self.slots {
            Some(SlotConfig {
                gap: SlotGap::Between(least, most),
                ..
            }) if least > most => Err(ConfigError::conflict(
                "slot_max",
                format!("{most:?}"),
                format!("at least `slot_min`, {least:?}"),
                "raise `slot_max`, or leave it out if all slots are equally far apart",
            )),
            Some(SlotConfig {
                gap: SlotGap::Drawn { shape, table, .. },
                ..
            }) => needs_table("slot_distribution", "slot_table", *shape, table),
            _ => Ok(()),
        }
    }
}

/// Checks that there is a table exactly if the distribution is one.
fn needs_table(
    word: &'static str,
    parameter: &'static str,
    shape: Shape,
    table: &[i32],
) -> Result<(), ConfigError> {
    match (shape == Shape::Table, table.is_empty()) {
        (true, true) => Err(ConfigError::conflict(
            parameter,
            "empty",
            format!("at least one number if `{word}` is \"table\""),
            "give the deviations from the mean in 8192ths, in rising order",
        )),
        (false, false) => Err(ConfigError::conflict(
            word,
            shape.name(),
            format!("\"table\" beside `{parameter}`"),
            "name the table as the distribution, or leave it out",
        )),
        _ => Ok(()),
    }
}

/// The settings as users write them, one value each.
#[derive(Clone, Debug)]
pub struct Settings {
    limit: u32,
    delay: Duration,
    jitter: Duration,
    delay_correlation: Probability,
    shape: Shape,
    table: Vec<i32>,
    loss: Option<Probability>,
    loss_correlation: Probability,
    p13: Option<Probability>,
    p31: Option<Probability>,
    p32: Option<Probability>,
    p23: Option<Probability>,
    p14: Option<Probability>,
    p: Option<Probability>,
    r: Option<Probability>,
    loss_bad: Option<Probability>,
    loss_good: Option<Probability>,
    ecn: bool,
    duplicate: Chance,
    corrupt: Chance,
    reorder: Option<Probability>,
    reorder_correlation: Probability,
    gap: u32,
    rate: Option<Rate>,
    packet_overhead: i32,
    cell_size: u32,
    cell_overhead: i32,
    slot_min: Option<Duration>,
    slot_max: Option<Duration>,
    slot_delay: Option<Duration>,
    slot_jitter: Option<Duration>,
    slot_shape: Shape,
    slot_table: Vec<i32>,
    slot_packets: Option<u32>,
    slot_bytes: Option<u32>,
}

/// Returns the error for a parameter without the one that it belongs to.
fn belongs_to(parameter: &'static str, value: impl ToString, other: &str) -> ConfigError {
    ConfigError::conflict(
        parameter,
        value.to_string(),
        format!("left out without `{other}`"),
        format!("give `{other}`, or remove `{parameter}`"),
    )
}

/// Returns the error for a parameter beside one of another model.
fn excludes(parameter: &'static str, value: impl ToString, other: &str) -> ConfigError {
    ConfigError::conflict(
        parameter,
        value.to_string(),
        format!("left out beside `{other}`"),
        "choose one of the two models",
    )
}

impl Shape {
    fn name(self) -> &'static str {
        match self.read() {
            Value::Word(word) => word,
            _ => "",
        }
    }
}

impl Settings {
    fn start() -> Settings {
        Settings::of(&Config::default())
    }

    fn of(config: &Config) -> Settings {
        let mut settings = Settings {
            limit: config.limit,
            delay: config.delay,
            jitter: config.jitter,
            delay_correlation: config.delay_correlation,
            shape: config.shape,
            table: config.table.clone(),
            loss: None,
            loss_correlation: Probability::ZERO,
            p13: None,
            p31: None,
            p32: None,
            p23: None,
            p14: None,
            p: None,
            r: None,
            loss_bad: None,
            loss_good: None,
            ecn: config.ecn,
            duplicate: config.duplicate,
            corrupt: config.corrupt,
            reorder: (config.reorder.gap > 0).then_some(config.reorder.chance.probability),
            reorder_correlation: config.reorder.chance.correlation,
            gap: config.reorder.gap,
            rate: config.rate.map(|link| link.rate),
            packet_overhead: config.rate.map_or(0, |link| link.packet_overhead),
            cell_size: config.rate.map_or(0, |link| link.cell_size),
            cell_overhead: config.rate.map_or(0, |link| link.cell_overhead),
            slot_min: None,
            slot_max: None,
            slot_delay: None,
            slot_jitter: None,
            slot_shape: Shape::Uniform,
            slot_table: Vec::new(),
            slot_packets: config.slots.as_ref().map(|slots| slots.packets),
            slot_bytes: config.slots.as_ref().map(|slots| slots.bytes),
        };
        match config.loss {
            Loss::None => {}
            Loss::Random {
                probability,
                correlation,
            } => (settings.loss, settings.loss_correlation) = (Some(probability), correlation),
            Loss::FourStates {
                p13,
                p31,
                p32,
                p23,
                p14,
            } => {
                (settings.p13, settings.p31, settings.p32) = (Some(p13), Some(p31), Some(p32));
                (settings.p23, settings.p14) = (Some(p23), Some(p14));
            }
            Loss::GilbertElliott {
                p,
                r,
                loss_bad,
                loss_good,
            } => {
                (settings.p, settings.r) = (Some(p), Some(r));
                (settings.loss_bad, settings.loss_good) = (Some(loss_bad), Some(loss_good));
            }
        }
        match config.slots.as_ref().map(|slots| &slots.gap) {
            None => {}
            Some(SlotGap::Between(least, most)) => {
                (settings.slot_min, settings.slot_max) = (Some(*least), Some(*most));
            }
            Some(SlotGap::Drawn {
                mean,
                deviation,
                shape,
                table,
            }) => {
                (settings.slot_delay, settings.slot_jitter) = (Some(*mean), Some(*deviation));
                (settings.slot_shape, settings.slot_table) = (*shape, table.clone());
            }
        }
        settings
    }

    fn loss(&self) -> Result<Loss, ConfigError> {
        let four_states = [
            ("p31", self.p31),
            ("p32", self.p32),
            ("p23", self.p23),
            ("p14", self.p14),
        ];
        let bursts = [
            ("r", self.r),
            ("loss_bad", self.loss_bad),
            ("loss_good", self.loss_good),
        ];
        let first = |list: &[(&'static str, Option<Probability>)]| {
            list.iter().find_map(|(name, value)| Some((*name, (*value)?)))
        };
        if let (None, Some((name, value))) = (self.p13, first(&four_states)) {
            return Err(belongs_to(name, value, "p13"));
        }
        if let (None, Some((name, value))) = (self.p, first(&bursts)) {
            return Err(belongs_to(name, value, "p"));
        }
        if self.loss.is_none() && self.loss_correlation > Probability::ZERO {
            return Err(belongs_to("loss_correlation", self.loss_correlation, "loss"));
        }
        let rest = |of: Probability| Probability::from_parts(Probability::ONE.parts() - of.parts());
        match (self.loss, self.p13, self.p) {
            (Some(_), Some(p13), _) => Err(excludes("p13", p13, "loss")),
            (Some(_), _, Some(p)) => Err(excludes("p", p, "loss")),
            (_, Some(_), Some(p)) => Err(excludes("p", p, "p13")),
            (None, None, None) => Ok(Loss::None),
            (Some(probability), ..) => Ok(Loss::Random {
                probability,
                correlation: self.loss_correlation,
            }),
            // tc's defaults: losses in a burst are all of it, and there are no others.
            (_, Some(p13), _) => {
                let p32 = self.p32.unwrap_or(Probability::ZERO);
                Ok(Loss::FourStates {
                    p13,
                    p31: self.p31.unwrap_or(rest(p13)),
                    p32,
                    p23: self.p23.unwrap_or(Probability::ONE),
                    p14: self.p14.unwrap_or(Probability::ZERO),
                })
            }
            // tc's defaults: every packet in bad times, and none in good times (Gilbert's simple model).
            (.., Some(p)) => Ok(Loss::GilbertElliott {
                p,
                r: self.r.unwrap_or(rest(p)),
                loss_bad: self.loss_bad.unwrap_or(Probability::ONE),
                loss_good: self.loss_good.unwrap_or(Probability::ZERO),
            }),
        }
    }

    fn reorder(&self) -> Result<Reorder, ConfigError> {
        let probability = match self.reorder {
            None if self.gap == 0 => {
                return match self.reorder_correlation > Probability::ZERO {
                    true => Err(belongs_to(
                        "reorder_correlation",
                        self.reorder_correlation,
                        "reorder",
                    )),
                    false => Ok(Reorder::default()),
                };
            }
            None => return Err(belongs_to("gap", self.gap, "reorder")),
            Some(probability) => probability,
        };
        Ok(Reorder {
            gap: self.gap.max(1),
            chance: Chance {
                probability,
                correlation: self.reorder_correlation,
            },
        })
    }

    fn link_rate(&self) -> Result<Option<LinkRate>, ConfigError> {
        let Some(rate) = self.rate else {
            let overheads = [
                ("packet_overhead", i64::from(self.packet_overhead)),
                ("cell_size", self.cell_size.into()),
                ("cell_overhead", self.cell_overhead.into()),
            ];
            return match overheads.into_iter().find(|(_, value)| *value != 0) {
                Some((parameter, value)) => Err(belongs_to(parameter, value, "rate")),
                None => Ok(None),
            };
        };
        Ok(Some(LinkRate {
            rate,
            packet_overhead: self.packet_overhead,
            cell_size: self.cell_size,
            cell_overhead: self.cell_overhead,
        }))
    }

    fn slots(&self) -> Result<Option<SlotConfig>, ConfigError> {
        let shown = |time: Duration| format!("{time:?}");
        let gap = match (self.slot_min, self.slot_delay) {
            (Some(_), Some(delay)) => return Err(excludes("slot_delay", shown(delay), "slot_min")),
            (None, None) => {
                let times = [
                    ("slot_max", self.slot_max, "slot_min"),
                    ("slot_jitter", self.slot_jitter, "slot_delay"),
                ];
                for (parameter, time, other) in times {
                    if let Some(time) = time {
                        return Err(belongs_to(parameter, shown(time), other));
                    }
                }
                let counts = [
                    ("slot_packets", self.slot_packets),
                    ("slot_bytes", self.slot_bytes),
                ];
                return match counts.into_iter().find_map(|(name, count)| Some((name, count?))) {
                    Some((parameter, count)) => Err(belongs_to(parameter, count, "slot_min")),
                    None => Ok(None),
                };
            }
            (Some(least), None) => {
                if let Some(jitter) = self.slot_jitter {
                    return Err(belongs_to("slot_jitter", shown(jitter), "slot_delay"));
                }
                SlotGap::Between(least, self.slot_max.unwrap_or(least))
            }
            (None, Some(mean)) => {
                if let Some(most) = self.slot_max {
                    return Err(belongs_to("slot_max", shown(most), "slot_min"));
                }
                SlotGap::Drawn {
                    mean,
                    deviation: self.slot_jitter.unwrap_or(Duration::ZERO),
                    shape: self.slot_shape,
                    table: self.slot_table.clone(),
                }
            }
        };
        Ok(Some(SlotConfig {
            gap,
            // Linux: any number.
            packets: self.slot_packets.unwrap_or(i32::MAX as u32),
            bytes: self.slot_bytes.unwrap_or(i32::MAX as u32),
        }))
    }

    fn config(self) -> Result<Config, ConfigError> {
        Ok(Config {
            loss: self.loss()?,
            reorder: self.reorder()?,
            rate: self.link_rate()?,
            slots: self.slots()?,
            limit: self.limit,
            delay: self.delay,
            jitter: self.jitter,
            delay_correlation: self.delay_correlation,
            shape: self.shape,
            table: self.table,
            ecn: self.ecn,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
        })
    }
}

const fn time(name: &'static str, doc: &'static str, field: Lens<Settings>) -> Parameter<Settings> {
    Parameter::new(name, Unit::Time, 0..=A_DAY, doc, field)
}

const fn probability(name: &'static str, doc: &'static str, field: Lens<Settings>) -> Parameter<Settings> {
    Parameter::new(name, Unit::Probability, 0..=Probability::ONE.parts(), doc, field)
}

const fn shape(name: &'static str, doc: &'static str, field: Lens<Settings>) -> Parameter<Settings> {
    Parameter::word(name, Unit::Choice(Shape::WORDS), doc, field)
}

const fn table(name: &'static str, doc: &'static str, field: Lens<Settings>) -> Parameter<Settings> {
    // The numbers of tc's files have 16 bits.
    Parameter::new(
        name,
        Unit::SignedNumbers(MOST_NUMBERS),
        0..=4 * SCALE as u64,
        doc,
        field,
    )
}

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    Parameter::new(
        "limit",
        Unit::Count("packets"),
        1..=u32::MAX as u64,
        "The most packets that are delayed at a time.",
        |netem, _| &mut netem.limit,
    ),
    time("delay", "The delay of each packet.", |netem, _| &mut netem.delay),
    time(
        "jitter",
        "The deviation of the delay; packets may overtake each other.",
        |netem, _| &mut netem.jitter,
    ),
    probability(
        "delay_correlation",
        "The weight of the last random number in the next delay.",
        |netem, _| &mut netem.delay_correlation,
    ),
    shape("distribution", "The distribution of the delay.", |netem, _| {
        &mut netem.shape
    }),
    table(
        "table",
        "With `distribution = \"table\"`: deviations from the mean in 8192ths of the jitter, rising.",
        |netem, _| &mut netem.table,
    ),
    probability("loss", "The probability that a packet is lost.", |netem, _| {
        &mut netem.loss
    }),
    probability(
        "loss_correlation",
        "The weight of the last random number in the next decision on a loss.",
        |netem, _| &mut netem.loss_correlation,
    ),
    probability(
        "p13",
        "Losses by four states: the probability that a burst of losses begins.",
        |netem, _| &mut netem.p13,
    ),
    probability(
        "p31",
        "Losses by four states: the probability that a burst ends; by default 1 - `p13`.",
        |netem, _| &mut netem.p31,
    ),
    probability(
        "p32",
        "Losses by four states: the probability that packets go through within a burst; by default 0.",
        |netem, _| &mut netem.p32,
    ),
    probability(
        "p23",
        "Losses by four states: the probability that losses continue within a burst; by default 1.",
        |netem, _| &mut netem.p23,
    ),
    probability(
        "p14",
        "Losses by four states: the probability of a single loss; by default 0.",
        |netem, _| &mut netem.p14,
    ),
    probability(
        "p",
        "Losses by Gilbert and Elliott: the probability that bad times begin.",
        |netem, _| &mut netem.p,
    ),
    probability(
        "r",
        "Losses by Gilbert and Elliott: the probability that bad times end; by default 1 - `p`.",
        |netem, _| &mut netem.r,
    ),
    probability(
        "loss_bad",
        "Losses by Gilbert and Elliott: the probability of a loss in bad times; by default 1.",
        |netem, _| &mut netem.loss_bad,
    ),
    probability(
        "loss_good",
        "Losses by Gilbert and Elliott: the probability of a loss in good times; by default 0.",
        |netem, _| &mut netem.loss_good,
    ),
    Parameter::word(
        "ecn",
        Unit::Flag,
        "Whether an ECN-capable packet is marked instead of lost.",
        |netem, _| &mut netem.ecn,
    ),
    probability(
        "duplicate",
        "The probability that a packet arrives twice.",
        |netem, _| &mut netem.duplicate.probability,
    ),
    probability(
        "duplicate_correlation",
        "The weight of the last random number in the next decision on a duplicate.",
        |netem, _| &mut netem.duplicate.correlation,
    ),
    probability(
        "corrupt",
        "The probability that a bit of a packet is wrong.",
        |netem, _| &mut netem.corrupt.probability,
    ),
    probability(
        "corrupt_correlation",
        "The weight of the last random number in the next decision on a wrong bit.",
        |netem, _| &mut netem.corrupt.correlation,
    ),
    probability(
        "reorder",
        "The probability that a packet is not delayed, and overtakes those that wait.",
        |netem, _| &mut netem.reorder,
    ),
    probability(
        "reorder_correlation",
        "The weight of the last random number in the next decision on the order.",
        |netem, _| &mut netem.reorder_correlation,
    ),
    Parameter::new(
        "gap",
        Unit::Count("packets"),
        0..=u32::MAX as u64,
        "The least distance of packets that are not delayed, from one to the next.",
        |netem, _| &mut netem.gap,
    ),
    Parameter::new(
        "rate",
        Unit::Rate,
        8..=u64::MAX,
        "The rate at which packets are sent one after the other.",
        |netem, _| &mut netem.rate,
    ),
    Parameter::new(
        "packet_overhead",
        Unit::Signed("signed bytes", -(1 << 20)),
        0..=1 << 20,
        "The bytes that are added to each packet at the rate; negative ones are subtracted.",
        |netem, _| &mut netem.packet_overhead,
    ),
    Parameter::new(
        "cell_size",
        Unit::Bytes,
        0..=1 << 20,
        "The payload of a cell into which packets are cut at the rate; 0 for no cells.",
        |netem, _| &mut netem.cell_size,
    ),
    Parameter::new(
        "cell_overhead",
        Unit::Signed("signed bytes", -(1 << 20)),
        0..=1 << 20,
        "The bytes that are added to each cell.",
        |netem, _| &mut netem.cell_overhead,
    ),
    time("slot_min", "The least time between slots.", |netem, _| {
        &mut netem.slot_min
    }),
    time(
        "slot_max",
        "The longest time between slots; by default the least.",
        |netem, _| &mut netem.slot_max,
    ),
    time(
        "slot_delay",
        "The mean time between slots, instead of `slot_min`.",
        |netem, _| &mut netem.slot_delay,
    ),
    time(
        "slot_jitter",
        "The deviation of the time between slots.",
        |netem, _| &mut netem.slot_jitter,
    ),
    shape(
        "slot_distribution",
        "The distribution of the time between slots, with `slot_delay`.",
        |netem, _| &mut netem.slot_shape,
    ),
    table(
        "slot_table",
        "With `slot_distribution = \"table\"`: deviations from the mean, as in `table`.",
        |netem, _| &mut netem.slot_table,
    ),
    Parameter::new(
        "slot_packets",
        Unit::Count("packets"),
        1..=i32::MAX as u64,
        "The most packets of a slot.",
        |netem, _| &mut netem.slot_packets,
    ),
    Parameter::new(
        "slot_bytes",
        Unit::Bytes,
        1..=i32::MAX as u64,
        "The bytes after which a slot ends.",
        |netem, _| &mut netem.slot_bytes,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "netem",
        family: Family::Queues,
        summary: "Emulates a network: delay, jitter, loss, duplicates, wrong bits, reordering, rate, slots",
        when: "To try programs and disciplines behind a long or bad path, live or simulated.",
        children: Children::InnerOrQueue,
    },
    PARAMETERS,
    |_| Settings::start(),
    Settings::config,
    |config, mut parts| Ok(Box::new(Netem::node(config, parts.seed, parts.children.pop())?)),
)
.with_memory(|netem| netem.shape.memory(&netem.table) + netem.slot_shape.memory(&netem.slot_table))
.with_warnings(warnings);

/// Warns of packets that do not fit in the line.
fn warnings(netem: &Settings) -> Vec<String> {
    let Some(rate) = netem.rate else {
        return Vec::new();
    };
    // Packets of 1500 bytes that are sent during the delay.
    let bits = u128::from(rate.bits_per_second()) * netem.delay.as_nanos() / 1_000_000_000;
    let needed = bits / 12_000;
    match needed > netem.limit.into() {
        true => alloc::vec![format!(
            "at {rate} about {needed} packets of 1500 bytes are on their way during the delay, but `limit` \
             is {}: the others are dropped",
            netem.limit
        )],
        false => Vec::new(),
    }
}

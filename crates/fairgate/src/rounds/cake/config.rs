//! The parameters of CAKE.

use alloc::boxed::Box;
use core::time::Duration;

use super::Cake;
use super::ack_filter::AckFilter;
use super::framing::Framing;
use super::hosts::Isolation;
use super::line::Line;
use super::tins::Tins;
use crate::classify::Classifier;
use crate::error::ConfigError;
use crate::link_layer::Cells;
use crate::rate::Rate;
use crate::registry::{
    About, Children, Description, Family, Longest, Parameter, Placing, Unit, check_ranges,
};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate of the link, in the bytes that [`framing`](Config::framing) counts; `None` if something else
    /// limits the rate.
    pub bandwidth: Option<Rate>,
    /// What the link layer adds to a packet.
    pub framing: Framing,
    /// The bytes of [`Packet::length`](crate::Packet::length) before the IP header. Used if `framing` has an
    /// overhead, which is added to the IP packet.
    pub link_header: u16,
    /// The tins into which packets are classified.
    pub tins: Tins,
    /// Chooses the tin before the DSCP does. `handle:n`, a filter's class `n` or a default `n` is the tin
    /// with number `n`, counted from 1, bulk first.
    pub classifier: Classifier,
    /// The bits of a packet's mark that hold its tin number, from 1; 0 for none. They are used before the
    /// classifier.
    pub fwmark: u32,
    /// Which packets share a queue, and which hosts share the link.
    pub isolation: Isolation,
    /// Whether every packet leaves with DSCP 0.
    pub wash: bool,
    /// Whether dropped packets count for the shaper. Use this if the shaper is behind the bottleneck, because
    /// dropped packets have used the bottleneck.
    pub ingress: bool,
    /// Whether the bandwidth follows an estimate: 15/16 of the peak rate of arriving packets, adjusted at
    /// most four times a second. `bandwidth` is then the first value. Use this behind a bottleneck whose rate
    /// changes.
    pub autorate: bool,
    /// Whether acknowledgements of TCP are dropped that a later one in the queue makes redundant.
    pub ack_filter: AckFilter,
    /// The round-trip time of typical connections. It is CoDel's interval; the target is a twentieth of it.
    pub rtt: Duration,
    /// The most memory that queued packets occupy ([`Packet::memory`](crate::Packet::memory)), bytes. `None`:
    /// four `rtt` of `bandwidth`, but at least 4 MiB and at most 10240 packets of `mtu`.
    pub memory_limit: Option<u64>,
    /// The length of the longest packet, bytes; for the target and the memory limit.
    pub mtu: u32,
}

/// As in Linux: no bandwidth, lengths as they are, three tins, triple isolation, a round-trip time of 100 ms;
/// Ethernet.
impl Default for Config {
    fn default() -> Config {
        Config {
            bandwidth: None,
            framing: Framing::RAW,
            link_header: 14,
            tins: Tins::default(),
            classifier: Classifier::default(),
            fwmark: 0,
            isolation: Isolation::default(),
            wash: false,
            ingress: false,
            autorate: false,
            ack_filter: AckFilter::Off,
            rtt: Duration::from_millis(100),
            memory_limit: None,
            mtu: 1514,
        }
    }
}

/// The settings of cake as users write them: a kind of access line, and deviations from it.
#[derive(Clone, Debug)]
pub struct Settings {
    config: Config,
    line: Line,
    vlan_tags: u8,
    overhead: Option<u16>,
    mpu: Option<u16>,
    cells: Option<Cells>,
}

impl Settings {
    fn of(config: &Config) -> Settings {
        Settings {
            line: Line::Raw,
            vlan_tags: 0,
            overhead: config.framing.overhead,
            mpu: Some(config.framing.mpu),
            cells: Some(config.framing.cells),
            config: config.clone(),
        }
    }

    fn config(self) -> Config {
        let line = self.line.framing();
        let overhead = self.overhead.or(line.overhead);
        // Tags are added to the overhead of the kind of line, also if that is 0.
        let tags = 4 * u16::from(self.vlan_tags);
        Config {
            framing: Framing {
                overhead: match tags {
                    0 => overhead,
                    _ => Some(overhead.unwrap_or(0) + tags),
                },
                mpu: self.mpu.unwrap_or(line.mpu),
                cells: self.cells.unwrap_or(line.cells),
            },
            ..self.config
        }
    }
}

/// The least bandwidth, bit/s. The smallest part of it, a sixteenth, is then 64 bytes per second, the lowest
/// rate that Linux uses.
pub(super) const LEAST_BANDWIDTH: u64 = 8192;

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    Parameter::new(
        "bandwidth",
        Unit::Rate,
        LEAST_BANDWIDTH..=u64::MAX,
        "The rate of the link; none if something else limits the rate.",
        |cake, _| &mut cake.config.bandwidth,
    ),
    Parameter::word(
        "tins",
        Unit::Choice(Tins::WORDS),
        "The kinds of traffic by DSCP; filters, marks and the default count them from 1, bulk first.",
        |cake, _| &mut cake.config.tins,
    ),
    Parameter::word(
        "isolation",
        Unit::Choice(Isolation::WORDS),
        "What has its own queue, and from dual-srchost on, which hosts share the link.",
        |cake, _| &mut cake.config.isolation,
    ),
    Parameter::new(
        "rtt",
        Unit::Time,
        1_000..=3_600_000_000_000,
        "The round-trip time of typical connections; the target delay is a twentieth of it.",
        |cake, _| &mut cake.config.rtt,
    ),
    Parameter::word(
        "line",
        Unit::Choice(Line::WORDS),
        "The kind of access line, which determines what it adds to a packet; raw adds nothing.",
        |cake, _| &mut cake.line,
    ),
    Parameter::new(
        "overhead",
        Unit::Bytes,
        0..=256,
        "The bytes that the line adds to an IP packet, instead of those of its kind.",
        |cake, _| &mut cake.overhead,
    ),
    Parameter::new(
        "vlan_tags",
        Unit::Count("tags"),
        0..=4,
        "The VLAN tags that the line adds too, 4 bytes each.",
        |cake, _| &mut cake.vlan_tags,
    ),
    Parameter::new(
        "mpu",
        Unit::Bytes,
        0..=256,
        "The least bytes that a packet takes on the line, instead of those of its kind.",
        |cake, _| &mut cake.mpu,
    ),
    Parameter::word(
        "cells",
        Unit::Choice(Cells::WORDS),
        "How the line encodes packets, instead of as its kind does: ATM sends 53 bytes for 48, PTM 65 \
         for 64.",
        |cake, _| &mut cake.cells,
    ),
    Parameter::new(
        "link_header",
        Unit::Bytes,
        0..=256,
        "The bytes of a packet's length before the IP header; used if there is an overhead.",
        |cake, _| &mut cake.config.link_header,
    ),
    Parameter::reading_marks(Parameter::new(
        "fwmark",
        Unit::Count("mask"),
        0..=u32::MAX as u64,
        "The bits of a packet's mark that hold its tin number, from 1.",
        |cake, _| &mut cake.config.fwmark,
    )),
    Parameter::word(
        "wash",
        Unit::Flag,
        "Whether packets leave with DSCP 0.",
        |cake, _| &mut cake.config.wash,
    ),
    Parameter::word(
        "ingress",
        Unit::Flag,
        "Whether dropped packets count for the shaper, because they have used a bottleneck before it.",
        |cake, _| &mut cake.config.ingress,
    ),
    Parameter::word(
        "autorate",
        Unit::Flag,
        "Whether the bandwidth follows the rate of arriving packets: 15/16 of their peak rate.",
        |cake, _| &mut cake.config.autorate,
    ),
    Parameter::word(
        "ack_filter",
        Unit::Choice(AckFilter::WORDS),
        "Whether a TCP acknowledgement is dropped if a later one in the queue says the same; on keeps two, \
         aggressive one.",
        |cake, _| &mut cake.config.ack_filter,
    ),
    Parameter::bounding(
        |cake, _| Some(Longest::Memory(cake.config.memory())),
        Parameter::new(
            "memory_limit",
            Unit::Bytes,
            1..=u64::MAX,
            "The most memory that queued packets occupy; none for four rtt of the bandwidth, at least 4mb.",
            |cake, _| &mut cake.config.memory_limit,
        ),
    ),
    Parameter::new(
        "mtu",
        Unit::Bytes,
        64..=1 << 20,
        "The length of the longest packet; the target is at least the time of one and a half.",
        |cake, _| &mut cake.config.mtu,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "cake",
        family: Family::Rounds,
        summary: "Shaper, DiffServ tins, fair shares for hosts and their flows, COBALT against delay (CAKE)",
        when: "As the only setting for a home's access line: it needs only the bandwidth and the kind of \
            line.",
        children: Children::None,
    },
    PARAMETERS,
    |_| Settings {
        config: Config::default(),
        line: Line::Raw,
        vlan_tags: 0,
        overhead: None,
        mpu: None,
        cells: None,
    },
    |cake| Ok(cake.config()),
    |config, parts| Ok(Box::new(Cake::node_with(config, parts.seed, parts.tables)?)),
)
.with_placing(Placing::Classifier(
    |cake| &mut cake.config.classifier,
    |cake| cake.config.tins.count(),
))
.with_memory(|_| 325_000);

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.classifier.check()?;
        check_ranges(PARAMETERS, &mut Settings::of(self))
    }

    /// The most memory that queued packets occupy, set or derived.
    pub fn memory(&self) -> u64 {
        self.memory_at(self.bandwidth)
    }

    /// The most memory that queued packets occupy if this is the bandwidth now.
    pub(super) fn memory_at(&self, bandwidth: Option<Rate>) -> u64 {
        if let Some(given) = self.memory_limit {
            return given;
        }
        let most = 10_240 * u64::from(self.mtu);
        let Some(bandwidth) = bandwidth else {
            return most;
        };
        let of_four_rtt = u128::from(bandwidth.bits_per_second() / 8) * self.rtt.as_micros() / 250_000;
        (of_four_rtt.min(most.into()) as u64).max(4 << 20).min(most)
    }
}

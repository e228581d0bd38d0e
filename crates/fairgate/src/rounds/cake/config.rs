//! The parameters of CAKE.

use alloc::boxed::Box;
use core::time::Duration;

use super::Cake;
use super::framing::{Cells, Framing};
use super::hosts::Isolation;
use super::line::Line;
use super::tins::Tins;
use crate::classify::Classifier;
use crate::error::ConfigError;
use crate::rate::Rate;
use crate::registry::{
    About, Children, Description, Family, Longest, Parameter, Placing, Unit, check_ranges,
};

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The rate of the line, by what [`framing`](Config::framing) counts; `None` where something else limits
    /// what is sent.
    pub bandwidth: Option<Rate>,
    /// What the line adds to a packet.
    pub framing: Framing,
    /// How much of [`Packet::length`](crate::Packet::length) comes before the IP header, bytes. Of meaning
    /// where `framing` has an overhead, which is added to the IP packet.
    pub link_header: u16,
    /// Into which tins packets are sorted.
    pub tins: Tins,
    /// Chooses the tin before the DSCP does: `handle:n`, a filter's class `n` or a default `n` is the tin
    /// with number `n`, counted from 1, bulk first.
    pub classifier: Classifier,
    /// The bits of a packet's mark that number its tin, from 1; 0 for none. Goes before the classifier.
    pub fwmark: u32,
    /// What has a queue of its own, and between whom the line is shared.
    pub isolation: Isolation,
    /// Whether every packet leaves with DSCP 0.
    pub wash: bool,
    /// Whether packets that are dropped count for the shaper: where this comes after the bottleneck, they
    /// have used it.
    pub ingress: bool,
    /// Round-trip time of usual connections: the delay that is tolerated for so long. The target is a
    /// twentieth of it.
    pub rtt: Duration,
    /// Most memory occupied by queued packets ([`Packet::memory`](crate::Packet::memory)), bytes. `None`: for
    /// four `rtt` of `bandwidth`, 4 MiB at least and 10240 packets of `mtu` at most.
    pub memory_limit: Option<u64>,
    /// Length of the longest packet, bytes: for the target, and for the limit on memory.
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
            rtt: Duration::from_millis(100),
            memory_limit: None,
            mtu: 1514,
        }
    }
}

/// cake as users write it: a kind of line, and what differs from it.
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
        // A tag is beyond what the line is known to add, be that nothing.
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

/// Least bandwidth, bit/s: the least part of it, a sixteenth, is 64 bytes a second, the slowest that Linux
/// counts with.
const LEAST_BANDWIDTH: u64 = 8192;

/// The parameters as users set them.
pub const PARAMETERS: &[Parameter<Settings>] = &[
    Parameter::new(
        "bandwidth",
        Unit::Rate,
        LEAST_BANDWIDTH..=u64::MAX,
        "Rate of the line; none where something else limits what is sent.",
        |cake, _| &mut cake.config.bandwidth,
    ),
    Parameter::word(
        "tins",
        Unit::Choice(Tins::WORDS),
        "Kinds of traffic kept apart by DSCP; filters, marks and the default number them from 1, bulk first.",
        |cake, _| &mut cake.config.tins,
    ),
    Parameter::word(
        "isolation",
        Unit::Choice(Isolation::WORDS),
        "What has a queue of its own and, from dual-srchost on, between which hosts the line is shared.",
        |cake, _| &mut cake.config.isolation,
    ),
    Parameter::new(
        "rtt",
        Unit::Time,
        1_000..=3_600_000_000_000,
        "Round-trip time of usual connections; the target delay is a twentieth of it.",
        |cake, _| &mut cake.config.rtt,
    ),
    Parameter::word(
        "line",
        Unit::Choice(Line::WORDS),
        "Kind of line, for what it adds to a packet; raw counts lengths as they are.",
        |cake, _| &mut cake.line,
    ),
    Parameter::new(
        "overhead",
        Unit::Bytes,
        0..=256,
        "Bytes that the line adds to an IP packet, in place of what its kind says.",
        |cake, _| &mut cake.overhead,
    ),
    Parameter::new(
        "vlan_tags",
        Unit::Count("tags"),
        0..=4,
        "VLAN tags that the line adds besides, 4 bytes each.",
        |cake, _| &mut cake.vlan_tags,
    ),
    Parameter::new(
        "mpu",
        Unit::Bytes,
        0..=256,
        "The least that a packet weighs on the line, in place of what its kind says.",
        |cake, _| &mut cake.mpu,
    ),
    Parameter::word(
        "cells",
        Unit::Choice(Cells::WORDS),
        "How the line cuts up packets, in place of what its kind says: ATM sends 53 bytes for 48, PTM 65 \
            for 64.",
        |cake, _| &mut cake.cells,
    ),
    Parameter::new(
        "link_header",
        Unit::Bytes,
        0..=256,
        "How much of a packet's length comes before the IP header; of meaning where there is an overhead.",
        |cake, _| &mut cake.config.link_header,
    ),
    Parameter::new(
        "fwmark",
        Unit::Count("mask"),
        0..=u32::MAX as u64,
        "Bits of a packet's mark that number its tin, from 1.",
        |cake, _| &mut cake.config.fwmark,
    ),
    Parameter::word(
        "wash",
        Unit::Flag,
        "Whether packets leave with DSCP 0.",
        |cake, _| &mut cake.config.wash,
    ),
    Parameter::word(
        "ingress",
        Unit::Flag,
        "Whether dropped packets count for the shaper: they have used a bottleneck before it.",
        |cake, _| &mut cake.config.ingress,
    ),
    Parameter::bounding(
        |cake, _| Some(Longest::Memory(cake.config.memory())),
        Parameter::new(
            "memory_limit",
            Unit::Bytes,
            1..=u64::MAX,
            "Most memory that queued packets may occupy; none for four rtt of the bandwidth, at least 4mb.",
            |cake, _| &mut cake.config.memory_limit,
        ),
    ),
    Parameter::new(
        "mtu",
        Unit::Bytes,
        64..=1 << 20,
        "Length of the longest packet: the target is one and a half of it at least.",
        |cake, _| &mut cake.config.mtu,
    ),
];

/// The discipline in the registry.
pub static DESCRIPTION: Description<Settings, Config> = Description::of_settings(
    About {
        name: "cake",
        family: Family::Rounds,
        summary: "Shaper, DiffServ tins, fair shares for hosts and their flows, COBALT against delay (CAKE)",
        when: "As the one setting for a home's line: bandwidth, and the kind of line, are all that it \
            needs to know.",
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
    |config, parts| Ok(Box::new(Cake::node(config, parts.seed)?)),
)
.with_placing(Placing::Classifier(
    |cake| &mut cake.config.classifier,
    |cake| cake.config.tins.count().into(),
))
.with_memory(|_| 325_000);

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_ranges(PARAMETERS, &mut Settings::of(self))
    }

    /// Bytes per second; 0 for no bandwidth.
    pub(super) fn bytes_per_second(&self) -> u64 {
        self.bandwidth.map_or(0, |rate| rate.bits_per_second() / 8)
    }

    /// Most memory that queued packets may occupy, given or derived.
    pub fn memory(&self) -> u64 {
        if let Some(given) = self.memory_limit {
            return given;
        }
        let most = 10_240 * u64::from(self.mtu);
        if self.bandwidth.is_none() {
            return most;
        }
        let of_four_rtt = u128::from(self.bytes_per_second()) * self.rtt.as_micros() / 250_000;
        (of_four_rtt.min(most.into()) as u64).max(4 << 20).min(most)
    }
}

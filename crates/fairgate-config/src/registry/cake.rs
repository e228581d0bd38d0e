//! CAKE.

use fairgate::rounds::cake::{Cake, Cells, Config, Framing, Isolation, Tins};

use super::description::bounding;
use super::{About, Children, Description, Family, Longest, Parameter, Placing};
use crate::value::{Smallest, Unit, choice_field};

choice_field!(Tins {
    "besteffort" => Tins::Besteffort,
    "precedence" => Tins::Precedence,
    "diffserv3" => Tins::Diffserv3,
    "diffserv4" => Tins::Diffserv4,
    "diffserv8" => Tins::Diffserv8,
});

choice_field!(Isolation {
    "flowblind" => Isolation::Flowblind,
    "srchost" => Isolation::SourceHosts,
    "dsthost" => Isolation::DestinationHosts,
    "hosts" => Isolation::Hosts,
    "flows" => Isolation::Flows,
    "dual-srchost" => Isolation::DualSource,
    "dual-dsthost" => Isolation::DualDestination,
    "triple-isolate" => Isolation::Triple,
});

choice_field!(Cells { "uncut" => Cells::None, "atm" => Cells::Atm, "ptm" => Cells::Ptm });

impl Smallest for Cells {
    const SMALLEST: Cells = Cells::None;
}

/// A kind of line, by tc's word for it.
#[derive(Clone, Copy)]
enum Line {
    Raw,
    Conservative,
    Ethernet,
    Docsis,
    PppoePtm,
    BridgedPtm,
    PppoaVcmux,
    PppoaLlc,
    PppoeVcmux,
    PppoeLlcsnap,
    BridgedVcmux,
    BridgedLlcsnap,
    IpoaVcmux,
    IpoaLlcsnap,
}

const LINES: Unit = Unit::Choice(&[
    "raw",
    "conservative",
    "ethernet",
    "docsis",
    "pppoe-ptm",
    "bridged-ptm",
    "pppoa-vcmux",
    "pppoa-llc",
    "pppoe-vcmux",
    "pppoe-llcsnap",
    "bridged-vcmux",
    "bridged-llcsnap",
    "ipoa-vcmux",
    "ipoa-llcsnap",
]);

choice_field!(Line {
    "raw" => Line::Raw,
    "conservative" => Line::Conservative,
    "ethernet" => Line::Ethernet,
    "docsis" => Line::Docsis,
    "pppoe-ptm" => Line::PppoePtm,
    "bridged-ptm" => Line::BridgedPtm,
    "pppoa-vcmux" => Line::PppoaVcmux,
    "pppoa-llc" => Line::PppoaLlc,
    "pppoe-vcmux" => Line::PppoeVcmux,
    "pppoe-llcsnap" => Line::PppoeLlcsnap,
    "bridged-vcmux" => Line::BridgedVcmux,
    "bridged-llcsnap" => Line::BridgedLlcsnap,
    "ipoa-vcmux" => Line::IpoaVcmux,
    "ipoa-llcsnap" => Line::IpoaLlcsnap,
});

impl Line {
    fn framing(self) -> Framing {
        match self {
            Line::Raw => Framing::RAW,
            Line::Conservative => Framing::CONSERVATIVE,
            Line::Ethernet => Framing::ETHERNET,
            Line::Docsis => Framing::DOCSIS,
            Line::PppoePtm => Framing::PPPOE_PTM,
            Line::BridgedPtm => Framing::BRIDGED_PTM,
            Line::PppoaVcmux => Framing::PPPOA_VCMUX,
            Line::PppoaLlc => Framing::PPPOA_LLC,
            Line::PppoeVcmux => Framing::PPPOE_VCMUX,
            Line::PppoeLlcsnap => Framing::PPPOE_LLCSNAP,
            Line::BridgedVcmux => Framing::BRIDGED_VCMUX,
            Line::BridgedLlcsnap => Framing::BRIDGED_LLCSNAP,
            Line::IpoaVcmux => Framing::IPOA_VCMUX,
            Line::IpoaLlcsnap => Framing::IPOA_LLCSNAP,
        }
    }
}

/// cake as users write it: a kind of line, and what differs from it.
pub(super) struct CakeSettings {
    config: Config,
    line: Line,
    vlan_tags: u8,
    overhead: Option<u16>,
    mpu: Option<u16>,
    cells: Option<Cells>,
}

impl CakeSettings {
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

pub(super) static CAKE: Description<CakeSettings, Config> = Description {
    about: About {
        name: "cake",
        family: Family::Rounds,
        summary: "Shaper, DiffServ tins, fair shares for hosts and their flows, COBALT against delay (CAKE)",
        when: "As the one setting for a home's line: bandwidth, and the kind of line, are all that it needs to know.",
        children: Children::None,
    },
    parameters: &[
        Parameter::new(
            "bandwidth",
            Unit::Rate,
            8_192..=u64::MAX,
            "Rate of the line; none where something else limits what is sent.",
            |cake, _| &mut cake.config.bandwidth,
        ),
        Parameter::word(
            "tins",
            Unit::Choice(&["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"]),
            "Kinds of traffic kept apart by DSCP; filters, marks and the default number them from 1, bulk first.",
            |cake, _| &mut cake.config.tins,
        ),
        Parameter::word(
            "isolation",
            Unit::Choice(&[
                "flowblind",
                "srchost",
                "dsthost",
                "hosts",
                "flows",
                "dual-srchost",
                "dual-dsthost",
                "triple-isolate",
            ]),
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
            LINES,
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
            Unit::Choice(&["uncut", "atm", "ptm"]),
            "How the line cuts up packets, in place of what its kind says: ATM sends 53 bytes for 48, PTM 65 for 64.",
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
        bounding(
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
    ],
    class_parameters: &[],
    placing: Placing::Classifier(
        |cake| &mut cake.config.classifier,
        |cake| cake.config.tins.count().into(),
    ),
    start: |_| CakeSettings {
        config: Config::default(),
        line: Line::Raw,
        vlan_tags: 0,
        overhead: None,
        mpu: None,
        cells: None,
    },
    config: |cake| Ok(cake.config()),
    build: |config, parts| Ok(Box::new(Cake::node(config, parts.seed)?)),
};

//! Fairness between hosts: a flow's quantum is divided by the number of flows that keep its host backlogged.
//!
//! So hosts share a tin equally, and the flows of a host share the part of the host, in one round robin over
//! all flows (Høiland-Jørgensen, Täht, Morton 2018, section III-D). Both ends of a flow can count: then the
//! end with more flows decides. Only flows that are always backlogged count, because sparse flows are served
//! at once in any case.

use alloc::boxed::Box;

use super::ways::{ENTRIES, Found, Key, Ways};
use crate::flow::{FlowBy, FlowByHasher};
use crate::pool::{PacketId, Pool};
use crate::structures::Random;

/// Which packets share a queue, and which hosts share the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// One queue for all.
    Flowblind,
    /// A queue for each source address.
    SourceHosts,
    /// A queue for each destination address.
    DestinationHosts,
    /// A queue for each pair of addresses.
    Hosts,
    /// A queue for each flow.
    Flows,
    /// A queue for each flow. Source addresses share the link, and flows share the part of their source.
    DualSource,
    /// A queue for each flow. Destination addresses share the link, and flows share the part of their
    /// destination.
    DualDestination,
    /// A queue for each flow. The address with more flows, source or destination, determines the flow's part.
    #[default]
    Triple,
}

crate::words!(Isolation {
    "flowblind" => Isolation::Flowblind,
    "srchost" => Isolation::SourceHosts,
    "dsthost" => Isolation::DestinationHosts,
    "hosts" => Isolation::Hosts,
    "flows" => Isolation::Flows,
    "dual-srchost" => Isolation::DualSource,
    "dual-dsthost" => Isolation::DualDestination,
    "triple-isolate" => Isolation::Triple,
});

impl Isolation {
    /// The key of the queues; `None` for one queue.
    pub(super) fn queue_by(self) -> Option<FlowBy> {
        match self {
            Isolation::Flowblind => None,
            Isolation::SourceHosts => Some(FlowBy::Source),
            Isolation::DestinationHosts => Some(FlowBy::Destination),
            Isolation::Hosts => Some(FlowBy::HostPair),
            _ => Some(FlowBy::FiveTuple),
        }
    }
}

/// The indices of a flow's two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    source: u16,
    destination: u16,
}

/// The hosts of a tin, by source and by destination, as far as the isolation uses them.
#[derive(Debug)]
pub(super) struct Hosts {
    sources: Option<Side>,
    destinations: Option<Side>,
}

/// The hosts at one end of the flows.
#[derive(Debug)]
struct Side {
    hasher: FlowByHasher,
    salt: u64,
    table: HostTable,
}

/// The table of the hosts at one end.
#[derive(Debug)]
pub(super) struct HostTable {
    ways: Ways,
    /// For each host, its number of flows that are always backlogged.
    loads: Box<[u16]>,
}

/// `65535 / load`: the part of its quantum that a flow gets, in units of 2^-16.
static QUOTIENTS: [u16; ENTRIES + 1] = {
    let mut quotients = [u16::MAX; ENTRIES + 1];
    let mut load = 1;
    while load <= ENTRIES {
        quotients[load] = u16::MAX / load as u16;
        load += 1;
    }
    quotients
};

impl HostTable {
    pub(super) fn new() -> HostTable {
        HostTable {
            ways: Ways::new(),
            loads: vec![0; ENTRIES].into(),
        }
    }
}

impl Hosts {
    /// The hosts of no flow. Their tables come later.
    pub(super) fn new(isolation: Isolation, seed: u64) -> Hosts {
        let side =
            |by, isolations: [Isolation; 2]| isolations.contains(&isolation).then(|| Side::new(by, seed));
        Hosts {
            sources: side(FlowBy::Source, [Isolation::DualSource, Isolation::Triple]),
            destinations: side(
                FlowBy::Destination,
                [Isolation::DualDestination, Isolation::Triple],
            ),
        }
    }

    /// The number of ends whose hosts matter.
    pub(super) fn sides(&self) -> usize {
        usize::from(self.sources.is_some()) + usize::from(self.destinations.is_some())
    }

    /// Adds the tables, one for each of the [`sides`](Hosts::sides).
    pub(super) fn add_tables(&mut self, tables: [Option<HostTable>; 2]) {
        let sides = [&mut self.sources, &mut self.destinations];
        for (side, table) in sides.into_iter().flatten().zip(tables.into_iter().flatten()) {
            side.table = table;
        }
    }

    /// The hosts of a packet's flow.
    pub(super) fn find(&mut self, id: PacketId, pool: &Pool) -> Ends {
        let entry = |side: &mut Option<Side>| side.as_mut().map_or(0, |side| side.find(id, pool));
        Ends {
            source: entry(&mut self.sources),
            destination: entry(&mut self.destinations),
        }
    }

    /// Notes that a flow between these hosts is always backlogged from now on.
    pub(super) fn joined(&mut self, ends: Ends) {
        for load in self.loads(ends) {
            *load += 1;
        }
    }

    /// Notes that a flow between these hosts is no longer always backlogged.
    pub(super) fn left(&mut self, ends: Ends) {
        for load in self.loads(ends) {
            *load -= 1;
        }
    }

    fn loads(&mut self, ends: Ends) -> impl Iterator<Item = &mut u16> {
        let sides = [
            (&mut self.sources, ends.source),
            (&mut self.destinations, ends.destination),
        ];
        sides
            .into_iter()
            .filter_map(|(side, entry)| Some(&mut side.as_mut()?.table.loads[usize::from(entry)]))
    }

    /// The bytes that a flow between these hosts may send in a turn, for a tin with `quantum`. A random
    /// fraction makes the average right if the quotient is small.
    #[inline]
    pub(super) fn quantum(&self, ends: Ends, quantum: u32, random: &mut Random) -> u32 {
        let load = |side: &Option<Side>, entry: u16| {
            side.as_ref()
                .map_or(1, |side| side.table.loads[usize::from(entry)].max(1))
        };
        let load = load(&self.sources, ends.source).max(load(&self.destinations, ends.destination));
        (quantum * u32::from(QUOTIENTS[usize::from(load)]) + (random.bits32() >> 16)) >> 16
    }
}

impl Side {
    fn new(by: FlowBy, seed: u64) -> Side {
        Side {
            hasher: FlowByHasher::new(by, seed),
            salt: seed,
            table: HostTable {
                ways: Ways::none(),
                loads: Box::default(),
            },
        }
    }

    fn find(&mut self, id: PacketId, pool: &Pool) -> u16 {
        let key = Key::new(self.hasher.flow(id, pool), self.salt);
        let HostTable { ways, loads } = &mut self.table;
        let (Found::Own(entry) | Found::Former(entry) | Found::New(entry) | Found::Shared(entry)) =
            ways.find(key, |entry| loads[usize::from(entry)] > 0);
        entry
    }
}

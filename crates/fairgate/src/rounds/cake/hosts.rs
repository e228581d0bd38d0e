//! Fairness between hosts: a flow's quantum is divided by the number of flows that keep its host busy.
//!
//! So hosts share a tin equally, and the flows of a host what is the host's, in one round over all flows (Høiland-Jørgensen,
//! Täht, Morton 2018, section III-D). Both ends of a flow can be heeded: the busier one counts. Only flows that are
//! always backlogged count, for those that send little are served at once anyhow.

use alloc::boxed::Box;

use super::ways::{Found, Key, PLACES, Ways};
use crate::flow::{FlowBy, FlowByHasher};
use crate::pool::{PacketId, Pool};
use crate::structures::Random;

/// What has a queue of its own, and between whom the line is shared.
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
    /// A queue for each flow; source addresses share the line, flows the part of their address.
    DualSource,
    /// A queue for each flow; destination addresses share the line, flows the part of their address.
    DualDestination,
    /// A queue for each flow; of its two addresses the one with more flows decides over its part.
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
    /// What has a queue of its own; `None` for all packets together.
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

/// The places of a flow's two hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    source: u16,
    destination: u16,
}

/// The hosts of a tin, by source and by destination, as far as they are heeded.
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
    ways: Ways,
    /// Flows of each that are always backlogged.
    loads: Box<[u16]>,
}

/// `65535 / load`: the part of its quantum that a flow gets, in parts of 2^16.
static QUOTIENTS: [u16; PLACES + 1] = {
    let mut quotients = [u16::MAX; PLACES + 1];
    let mut load = 1;
    while load <= PLACES {
        quotients[load] = u16::MAX / load as u16;
        load += 1;
    }
    quotients
};

impl Hosts {
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

    /// The hosts of a packet's flow.
    pub(super) fn find(&mut self, id: PacketId, pool: &Pool) -> Ends {
        let place = |side: &mut Option<Side>| side.as_mut().map_or(0, |side| side.find(id, pool));
        Ends {
            source: place(&mut self.sources),
            destination: place(&mut self.destinations),
        }
    }

    /// A flow between these hosts is always backlogged from now on.
    pub(super) fn joined(&mut self, ends: Ends) {
        for load in self.loads(ends) {
            *load += 1;
        }
    }

    /// A flow between these hosts, which had joined, is so no longer.
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
            .filter_map(|(side, place)| Some(&mut side.as_mut()?.loads[usize::from(place)]))
    }

    /// What a flow between these hosts may send in a turn, of `quantum` bytes. A random part of a byte makes the
    /// average right where the quotient is small.
    #[inline]
    pub(super) fn quantum(&self, ends: Ends, quantum: u32, random: &mut Random) -> u32 {
        let load = |side: &Option<Side>, place: u16| {
            side.as_ref()
                .map_or(1, |side| side.loads[usize::from(place)].max(1))
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
            ways: Ways::new(),
            loads: vec![0; PLACES].into(),
        }
    }

    fn find(&mut self, id: PacketId, pool: &Pool) -> u16 {
        let key = Key::new(self.hasher.flow(id, pool), self.salt);
        let loads = &self.loads;
        let (Found::Own(place) | Found::New(place) | Found::Shared(place)) =
            self.ways.find(key, |place| loads[usize::from(place)] > 0);
        place
    }
}

//! Test cases: random operations with random packets.

use std::net::Ipv4Addr;

use fairgate::flow::{Acknowledgement, FlowHasher, FlowKey};
use fairgate::{ClassId, Ecn, Packet};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::recipe::Tree;

/// The number of flows. Few flows share queues, and enough of them collide in small hash tables.
const FLOWS: u8 = 12;

/// A test case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The discipline under test, with its children.
    pub tree: Tree,
    /// Trees that replace the disciplines of classes.
    pub replacements: Vec<Tree>,
    /// The seed of the disciplines and of the flow hash.
    pub seed: u64,
    /// The operations.
    pub operations: Vec<Operation>,
}

impl Case {
    /// Whether a discipline of the case may reorder packets.
    pub(crate) fn reorders(&self) -> bool {
        let mut reorders = false;
        for tree in std::iter::once(&self.tree).chain(&self.replacements) {
            tree.visit(&mut |tree| reorders |= tree.subject.reorders());
        }
        reorders
    }

    /// How many watchdogs may pass before a node sends a packet, beyond the usual number.
    pub(crate) fn watchdogs(&self) -> usize {
        let mut most = 0;
        for tree in std::iter::once(&self.tree).chain(&self.replacements) {
            tree.visit(&mut |tree| most = most.max(tree.subject.watchdogs()));
        }
        most
    }
}

/// One operation. An [`Index`] chooses among the nodes, classes or configurations that exist at that time.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Enqueues `count` packets.
    Enqueue {
        /// The number of the flow.
        flow: u8,
        /// The length of each packet, bytes.
        length: u32,
        /// The ECN bits of each packet.
        ecn: Ecn,
        /// The number of packets.
        count: u8,
    },
    /// Dequeues up to this many packets.
    Dequeue(u8),
    /// Peeks at the next packet.
    Peek,
    /// Advances the clock by this many ns.
    Advance(u64),
    /// Sets the clock back by this many ns. This violates the driver's side of the contract.
    SetBack(u64),
    /// Waits from watchdog to watchdog until a packet leaves.
    Wait,
    /// Flushes the root.
    Flush,
    /// Flushes a class.
    FlushClass(Index),
    /// Changes a node's parameters in place.
    Reconfigure {
        /// The node.
        node: Index,
        /// The new parameters.
        config: Index,
    },
    /// Replaces the discipline of a class by another tree.
    Replace {
        /// The class.
        class: Index,
        /// The replacement.
        with: Index,
    },
}

/// Returns random cases on random `trees`.
pub fn cases(trees: BoxedStrategy<Tree>) -> impl Strategy<Value = Case> {
    cases_of(trees, operations().boxed())
}

/// Returns random cases in which the clock is sometimes set back.
pub fn cases_with_setbacks(trees: BoxedStrategy<Tree>) -> impl Strategy<Value = Case> {
    let set_back = nanos().prop_map(Operation::SetBack);
    cases_of(trees, prop_oneof![10 => operations(), 1 => set_back].boxed())
}

fn cases_of(trees: BoxedStrategy<Tree>, operations: BoxedStrategy<Operation>) -> impl Strategy<Value = Case> {
    (
        trees.clone(),
        vec(trees, 1..3),
        any::<u64>(),
        vec(operations, 0..150),
    )
        .prop_map(|(tree, replacements, seed, operations)| Case {
            tree,
            replacements,
            seed,
            operations,
        })
}

fn operations() -> impl Strategy<Value = Operation> {
    let ecn = prop::sample::select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    prop_oneof![
        40 => (0..FLOWS, lengths(), ecn, 1u8..12)
            .prop_map(|(flow, length, ecn, count)| Operation::Enqueue { flow, length, ecn, count }),
        25 => (1u8..8).prop_map(Operation::Dequeue),
        8 => Just(Operation::Peek),
        15 => nanos().prop_map(Operation::Advance),
        6 => Just(Operation::Wait),
        1 => Just(Operation::Flush),
        1 => any::<Index>().prop_map(Operation::FlushClass),
        3 => any::<(Index, Index)>().prop_map(|(node, config)| Operation::Reconfigure { node, config }),
        2 => any::<(Index, Index)>().prop_map(|(class, with)| Operation::Replace { class, with }),
    ]
}

/// Returns lengths. Most are common on links. Some are 0, and some are those of packets before segmentation.
fn lengths() -> impl Strategy<Value = u32> {
    prop_oneof![
        1 => Just(0),
        8 => 1u32..129,
        8 => 129u32..1515,
        1 => 1515u32..65_536,
    ]
}

/// Returns durations, from less than a packet takes on a fast link to more than any timer of a queue.
fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..2_000,
        4 => 2_000u64..5_000_000,
        4 => 5_000_000u64..500_000_000,
        1 => 500_000_000u64..30_000_000_000,
        1 => 30_000_000_000u64..10_000_000_000_000,
    ]
}

/// Returns a packet of flow number `flow`. Two flows in three have headers. Everything that can select a
/// class depends only on the flow, because packets of one flow must take the same path.
pub(crate) fn packet(flow: u8, length: u32, ecn: Ecn, hasher: &FlowHasher) -> (Packet, Option<FlowKey>) {
    let source = Ipv4Addr::new(10, 0, 0, flow);
    let destination = Ipv4Addr::new(192, 0, 2, flow % 2);
    let protocol = if flow.is_multiple_of(2) { 6 } else { 17 };
    let dscp = [0, 46, 8, 34, 0, 10, 48][usize::from(flow) % 7];
    let key = FlowKey {
        traffic_class: dscp << 2 | ecn as u8,
        ..FlowKey::of(source.into(), destination.into(), protocol, 5000, u16::from(flow))
    };
    let packet = Packet {
        memory: length + 256,
        flow: hasher.five_tuple(&key),
        class: match flow % 5 {
            0 => ClassId::NONE,
            minor => ClassId::new(1, minor.into()),
        },
        mark: u32::from(flow % 3),
        priority: flow % 16,
        dscp,
        ecn,
        ..Packet::of_length(length)
    };
    (packet, (!flow.is_multiple_of(3)).then_some(key))
}

/// What a TCP packet acknowledges: its own number. Acknowledgements are cumulative. So a packet also
/// acknowledges what the packets before it in the flow have acknowledged.
pub(crate) fn acknowledgement(packet: &Packet, key: &FlowKey) -> Option<Acknowledgement> {
    const TCP: u8 = 6;
    (key.protocol == TCP).then_some(Acknowledgement {
        source: key.source,
        destination: key.destination,
        ports: [key.source_port, key.destination_port],
        number: packet.cookie as u32,
        is_valid: true,
        is_pure: packet.length.is_multiple_of(2),
        ..Acknowledgement::default()
    })
}

//! What several disciplines are built of.

mod bounds;
mod by_length;
mod cycle;
mod event_queue;
mod flow_table;
mod heap;
mod indexed_heap;
pub(crate) mod inverse;
mod keyed_heap;
mod knockout;
mod ordered_set;
pub(crate) mod random;
mod ring;
mod round;
mod run_heap;
mod slots;
mod tournament;

pub(crate) use bounds::Bounds;
pub(crate) use by_length::ByLength;
pub(crate) use cycle::{Cycle, Turn};
pub(crate) use event_queue::EventQueue;
pub(crate) use flow_table::{FlowTable, Identity};
pub(crate) use heap::{Heap, Narrow};
pub(crate) use indexed_heap::IndexedHeap;
pub(crate) use keyed_heap::KeyedHeap;
pub(crate) use knockout::Knockout;
pub(crate) use ordered_set::OrderedSet;
pub(crate) use random::Random;
pub(crate) use ring::Ring;
pub(crate) use round::{Link, Linked, Round};
pub(crate) use run_heap::RunHeap;
pub(crate) use slots::{END, SLOTS, Slots};
pub(crate) use tournament::{Rank, Tournament};

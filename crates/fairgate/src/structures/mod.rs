//! Data structures that several families of disciplines use. A structure that one family uses is in the
//! folder of that family.

mod active_list;
mod bounds;
mod boxed;
mod by_length;
mod fair_share;
mod flow_table;
pub(crate) mod heap;
mod indexed_heap;
mod prefetch;
pub(crate) mod random;

pub(crate) use active_list::{ActiveList, Linked, ListLink};
pub(crate) use bounds::Bounds;
pub(crate) use boxed::boxed;
pub(crate) use by_length::ByLength;
pub(crate) use fair_share::{FRACTION_BITS, FairShare, Reading};
pub(crate) use flow_table::{FlowTable, Identity};
pub(crate) use heap::{Heap, Narrow};
pub(crate) use indexed_heap::IndexedHeap;
pub(crate) use prefetch::prefetch;
pub(crate) use random::Random;

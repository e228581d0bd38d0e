//! Link sharing: classes in a tree, of which the leaves hold disciplines and the inner ones share out what they get.
//!
//! What all have in common: the shape of the tree and its rules, and the leaves: which one a packet goes to, and which of
//! them hold their packets back.

mod books;
mod borrowing;
pub mod cbq;
mod event_queue;
pub mod hfsc;
pub mod htb;
mod leaves;
mod ordered_set;
mod rounds;
mod tree;

use crate::discipline::Algorithm;
use crate::pool::{PacketQueue, Pool};
use crate::time::Time;

use leaves::Leaves;
use tree::ClassTree;

/// Places packets whose class is no more. They have waited since they came to the old one.
fn place_again<A: Algorithm>(discipline: &mut A, homeless: &mut PacketQueue, now: Time, pool: &mut Pool) {
    while let Some(id) = homeless.pop_front(pool) {
        let enqueued_at = pool[id].enqueued_at;
        discipline.enqueue(id, now, pool);
        pool[id].enqueued_at = enqueued_at;
    }
}

/// The parameter of a class that names the class above it.
const fn parent<S>(field: crate::registry::Lens<S>) -> crate::registry::Parameter<S> {
    crate::registry::Parameter::new(
        crate::registry::PARENT,
        crate::registry::Unit::Count("class"),
        1..=0xffff,
        "The class above this one; none is a class at the top.",
        field,
    )
}

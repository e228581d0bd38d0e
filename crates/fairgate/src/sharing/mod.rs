//! Link sharing: classes in a tree, of which the leaves hold disciplines and the inner ones share out what they get.
//!
//! What all have in common: the shape of the tree and its rules, and the leaves: which one a packet goes to, and which of
//! them hold their packets back.

pub mod htb;
mod leaves;
mod tree;

use leaves::Leaves;
use tree::ClassTree;

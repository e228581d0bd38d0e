//! The parts of a route that is given.

use crate::scenario::NodeId;

/// A part of a route that is given node by node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waypoint {
    /// The route passes this node.
    Node(NodeId),
    /// The route leads over the link with this index in
    /// [`Scenario::links`](crate::scenario::Scenario::links). It stands between the two nodes that the link
    /// connects.
    Link(usize),
}

impl From<NodeId> for Waypoint {
    fn from(node: NodeId) -> Waypoint {
        Waypoint::Node(node)
    }
}

//! Which class a subscriber or a node has. It keeps its number as long as it is in the list, so that a change
//! of one leaves the classes of all others as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fairgate::LAST_CLASS;

use super::list::List;

/// The class of the whole line.
pub(crate) const LINE: u32 = 1;

/// The class of packets of no subscriber.
pub(crate) const OTHERS: u32 = 2;

/// The class of what subscribers and routers find each other with: ARP, neighbour discovery, DHCP.
pub(crate) const NEIGHBOURS: u32 = 3;

/// The first number of a node or a subscriber. Those before are for classes of this module.
const FIRST: u32 = 16;

/// The most nodes and subscribers together.
pub const MOST: usize = (LAST_CLASS - FIRST) as usize + 1;

/// The numbers of the classes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    nodes: Arc<BTreeMap<String, u32>>,
    subscribers: Arc<BTreeMap<String, u32>>,
}

/// More nodes and subscribers than there are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany(pub(crate) usize);

impl Numbers {
    /// Numbers the classes of a list. Who had a number keeps it. The others get the lowest free ones, in the
    /// order of the list. The numbers of those that have left are given away last, so that what they have
    /// queued does not come into another class.
    pub(crate) fn of(list: &List, before: &Numbers) -> Result<Numbers, TooMany> {
        let count = list.nodes.len() + list.subscribers.len();
        if count > MOST {
            return Err(TooMany(count));
        }
        let nodes = list.nodes.iter().map(|node| node.name.as_str());
        let subscribers = list.subscribers.iter().map(|subscriber| subscriber.id.as_str());
        let are_same = count == before.nodes.len() + before.subscribers.len()
            && nodes.clone().all(|name| before.nodes.contains_key(name))
            && subscribers.clone().all(|id| before.subscribers.contains_key(id));
        if are_same {
            return Ok(before.clone());
        }
        let mut of_nodes = kept(nodes.clone(), &before.nodes);
        let mut of_subscribers = kept(subscribers.clone(), &before.subscribers);
        let taken: BTreeSet<u32> = of_nodes
            .values()
            .chain(of_subscribers.values())
            .copied()
            .collect();
        let left: BTreeSet<u32> = before.all().filter(|number| !taken.contains(number)).collect();
        let unused = (FIRST..=LAST_CLASS).filter(|number| !taken.contains(number) && !left.contains(number));
        let mut free = unused.chain(left.iter().copied());
        for (names, map) in [
            (nodes.collect::<Vec<_>>(), &mut of_nodes),
            (subscribers.collect(), &mut of_subscribers),
        ] {
            for name in names {
                if !map.contains_key(name) {
                    let number = free.next().ok_or(TooMany(count))?;
                    map.insert(name.to_owned(), number);
                }
            }
        }
        Ok(Numbers {
            nodes: of_nodes.into(),
            subscribers: of_subscribers.into(),
        })
    }

    /// Returns the class of a subscriber.
    pub fn of_subscriber(&self, id: &str) -> Option<u32> {
        self.subscribers.get(id).copied()
    }

    /// Returns the class of a node.
    pub fn of_node(&self, name: &str) -> Option<u32> {
        self.nodes.get(name).copied()
    }

    fn all(&self) -> impl Iterator<Item = u32> {
        self.nodes.values().chain(self.subscribers.values()).copied()
    }
}

/// Returns the numbers of those that had one before.
fn kept<'n>(names: impl Iterator<Item = &'n str>, before: &BTreeMap<String, u32>) -> BTreeMap<String, u32> {
    let known = names.filter_map(|name| Some((name.to_owned(), *before.get(name)?)));
    known.collect()
}

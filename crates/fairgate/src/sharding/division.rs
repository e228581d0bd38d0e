//! Which worker serves which class of a tree of htb or hfsc.
//!
//! The classes right below the line are *units*: a subscriber, or a node with all that is below it. A unit
//! belongs to one worker, so its limit and everything in it are those of one tree. Only the line is shared.
//! Filters choose classes by one address, so that the kernel can divide frames without knowing the tree.
//!
//! Packets are counted for *members*, the classes that take turns at the line. In hfsc these are the units.
//! In htb they are the leaves: a node has a turn for each leaf below it that borrows, as in Linux
//! (`htb_lookup_leaf` goes on at the line when the turns of the node are over).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::terms::{Classes, Limited, Member};
use crate::classify::{Classifier, Match, Prefix};
use crate::flow::FlowKey;
use crate::slot::Slot;

/// The address that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The source address.
    Source,
    /// The destination address.
    Destination,
}

impl Side {
    /// Returns the prefix that a condition has for this address.
    pub fn prefix(self, condition: &Match) -> Option<Prefix> {
        match self {
            Side::Source => condition.source,
            Side::Destination => condition.destination,
        }
    }
}

/// A class right below the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its number.
    pub minor: u32,
    /// What it never exceeds, bytes per second. It stands for the work that the unit makes.
    pub most: u64,
    /// The classes that packets can go to, those below it or itself, each with the member that it counts for.
    pub leaves: Vec<(u32, u32)>,
}

/// A tree of classes, of which workers can have parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The classes right below the line, by ascending number.
    pub units: Vec<Unit>,
    /// The classes that take turns.
    pub members: Vec<Member>,
    /// The classes between the line and the members.
    pub limited: Vec<Limited>,
}

/// The division of a tree of classes among workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Division {
    side: Side,
    classifier: Classifier,
    units: Vec<Unit>,
    /// The member of each leaf, by its number. 0 if there is no such leaf.
    member_of: Box<[u32]>,
    /// The worker of each unit and of each member, by its number.
    worker_of: Box<[u8]>,
    classes: Classes,
}

impl Division {
    /// Divides units among `workers` workers, up to 256. Filters of `classifier` choose leaves by the address
    /// at `side` alone. Units with high limits are dealt out first, each to the worker with the least so far.
    /// Units of `before` stay with their workers. The unit of the default class belongs to worker 0, and so
    /// do those of the leaves `without_address`, which filters choose by something else: worker 0 gets all
    /// frames without an address.
    pub fn new(
        side: Side,
        classifier: Classifier,
        parts: Parts,
        without_address: &[u32],
        workers: u16,
        before: Option<&Division>,
    ) -> Division {
        let leaves = || parts.units.iter().flat_map(|unit| &unit.leaves);
        let units = parts.units.iter().map(|unit| unit.minor);
        let highest_leaf = leaves().map(|(leaf, _)| *leaf).max().unwrap_or(0);
        let highest = leaves()
            .map(|(_, member)| *member)
            .chain(units)
            .max()
            .unwrap_or(0);
        let mut member_of = vec![0; highest_leaf as usize + 1].into_boxed_slice();
        for (leaf, member) in leaves() {
            member_of[*leaf as usize] = *member;
        }
        let mut division = Division {
            side,
            classes: Classes::new(&parts.members, &parts.limited),
            worker_of: vec![0; highest as usize + 1].into_boxed_slice(),
            classifier,
            units: parts.units,
            member_of,
        };
        division.deal_out(without_address, workers, before);
        division
    }

    fn deal_out(&mut self, without_address: &[u32], workers: u16, before: Option<&Division>) {
        let default = self.classifier.default;
        let stays = |minor: u32| {
            let before = before?;
            let is_known = before.units.binary_search_by_key(&minor, |unit| unit.minor);
            is_known.ok().map(|_| before.worker_of[minor as usize])
        };
        let mut loads = vec![0u128; usize::from(workers.max(1))];
        let mut open: Vec<&Unit> = Vec::new();
        for unit in &self.units {
            let is_of_first =
                |(leaf, _): &(u32, u32)| Some(*leaf) == default || without_address.contains(leaf);
            let worker = match unit.leaves.iter().any(is_of_first) {
                true => Some(0),
                false => stays(unit.minor),
            };
            match worker {
                Some(worker) => {
                    self.worker_of[unit.minor as usize] = worker;
                    loads[usize::from(worker)] += u128::from(unit.most);
                }
                None => open.push(unit),
            }
        }
        open.sort_by_key(|unit| (Reverse(unit.most), unit.minor));
        for unit in open {
            let worker = (0..loads.len())
                .min_by_key(|worker| loads[*worker])
                .expect("there is a worker");
            self.worker_of[unit.minor as usize] = worker as u8;
            loads[worker] += u128::from(unit.most);
        }
        for unit in &self.units {
            let worker = self.worker_of[unit.minor as usize];
            for (_, member) in &unit.leaves {
                self.worker_of[*member as usize] = worker;
            }
        }
    }

    /// Returns the address that decides.
    pub fn side(&self) -> Side {
        self.side
    }

    /// Returns the units, by ascending number.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Returns what the classes get of the line.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }

    /// Returns the member that a packet counts for: the one of the leaf that it names, else of the first
    /// filter that matches, else of the default. 0 if it has none.
    #[inline]
    pub fn member(&self, packet: &Slot, headers: Option<&FlowKey>) -> u32 {
        let of = |leaf: u32| self.member_of.get(leaf as usize).copied().unwrap_or(0);
        if let Some(named) = self.classifier.explicit(packet.class).map(of)
            && named != 0
        {
            return named;
        }
        let leaf = self.classifier.filters.find(packet, headers, None);
        leaf.or(self.classifier.default).map_or(0, of)
    }

    /// Returns the member that a packet with these headers counts for, if it names no leaf.
    #[inline]
    pub fn member_of(&self, headers: &FlowKey) -> u32 {
        self.member(&Slot::EMPTY, Some(headers))
    }

    /// Returns the worker of a unit or a member. Worker 0 has packets that count for none.
    #[inline]
    pub fn worker(&self, class: u32) -> usize {
        self.worker_of.get(class as usize).copied().unwrap_or(0).into()
    }

    /// Returns the prefixes of addresses, each with its worker.
    pub fn prefixes(&self) -> impl Iterator<Item = (Prefix, usize)> {
        self.classifier.filters.iter().filter_map(|filter| {
            let leaf = filter.outcome.class()?;
            let member = self.member_of.get(leaf as usize)?;
            Some((self.side.prefix(&filter.condition)?, self.worker(*member)))
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::String;

    use super::super::terms::Terms;
    use super::*;
    use crate::classify::Filter;
    use crate::packet::{ClassId, Packet};
    use crate::pool::Pool;

    fn unit(minor: u32, most: u64, leaves: &[u32]) -> Unit {
        Unit {
            minor,
            most,
            leaves: leaves.iter().map(|leaf| (*leaf, *leaf)).collect(),
        }
    }

    /// A filter for 10.0.LEAF.0/24.
    fn filter(leaf: u32) -> Filter {
        let prefix = Prefix::new([10, 0, leaf as u8, 0].into(), 24).unwrap();
        Filter {
            condition: Match {
                destination: Some(prefix),
                ..Match::default()
            },
            outcome: leaf.into(),
            ..Filter::default()
        }
    }

    fn division(units: Vec<Unit>, before: Option<&Division>) -> Division {
        let leaves = units.iter().flat_map(|unit| unit.leaves.clone());
        let filters = leaves
            .filter(|(leaf, _)| *leaf != 2)
            .map(|(leaf, _)| filter(leaf));
        let classifier = Classifier {
            handle: 1,
            filters: filters.collect::<Vec<_>>().into(),
            default: Some(2),
        };
        let members = units
            .iter()
            .flat_map(|unit| &unit.leaves)
            .map(|(_, minor)| Member {
                minor: *minor,
                terms: Terms::FLOW,
                above: None,
            });
        let parts = Parts {
            members: members.collect(),
            units,
            limited: Vec::new(),
        };
        Division::new(Side::Destination, classifier, parts, &[], 2, before)
    }

    #[test]
    fn units_are_dealt_out_by_their_limits() {
        let units = vec![
            unit(2, 10, &[2]),
            unit(16, 100, &[16]),
            unit(17, 300, &[18, 19]),
            unit(20, 200, &[20]),
        ];
        let first = division(units.clone(), None);
        let workers = |division: &Division| [2, 16, 17, 20].map(|unit| division.worker(unit));
        // 10 at first; 300 go to the other worker; 200 to the first; 100 to the first, which has 210.
        assert_eq!(workers(&first), [0, 0, 1, 0]);
        let prefixes: Vec<(String, usize)> = first
            .prefixes()
            .map(|(prefix, worker)| (alloc::string::ToString::to_string(&prefix), worker))
            .collect();
        let expected = [
            ("10.0.16.0/24", 0),
            ("10.0.18.0/24", 1),
            ("10.0.19.0/24", 1),
            ("10.0.20.0/24", 0),
        ];
        assert_eq!(
            prefixes,
            expected.map(|(prefix, worker)| (prefix.to_owned(), worker))
        );
        // Units stay where they are, however they and the others change.
        let mut later = units;
        later.remove(2);
        later[2].most = 5000;
        later.push(unit(30, 1, &[30]));
        let second = division(later, Some(&first));
        assert_eq!([16, 20, 30].map(|unit| second.worker(unit)), [0, 0, 1]);
    }

    #[test]
    fn a_packet_counts_for_the_member_of_its_leaf() {
        let division = division(vec![unit(2, 10, &[2]), unit(17, 300, &[18, 19])], None);
        let mut pool = Pool::with_capacity(4);
        let mut member = |class: ClassId, destination: [u8; 4]| {
            let key = FlowKey::of([10, 9, 9, 9].into(), destination.into(), 17, 1, 2);
            let packet = Packet {
                class,
                ..Packet::of_length(100)
            };
            let id = pool.insert((packet, key)).unwrap();
            division.member(&pool[id], pool.headers(id))
        };
        assert_eq!(member(ClassId::NONE, [10, 0, 19, 7]), 19);
        assert_eq!(member(ClassId::NONE, [10, 0, 20, 7]), 2, "the default");
        assert_eq!(member(ClassId::new(1, 18), [10, 0, 20, 7]), 18, "it names a leaf");
        assert_eq!(member(ClassId::new(1, 17), [10, 0, 20, 7]), 2, "it names no leaf");
    }
}

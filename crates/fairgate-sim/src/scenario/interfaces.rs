//! The interfaces of a scenario: two for each link, and one for each member of a cell.

use std::collections::BTreeMap;

use crate::scenario::{NodeId, Queue, Scenario};

impl Scenario {
    /// Returns the names of all interfaces, in the order of the results: `a->b`, and `a->b#2` for the second
    /// of several links between two nodes. Those of cells follow: `ap->cell`, then `station->ap` for each
    /// station.
    pub fn interface_names(&self) -> Vec<String> {
        let mut names = Vec::with_capacity(2 * self.links.len() + self.cell_interfaces());
        let mut links: BTreeMap<[NodeId; 2], u32> = BTreeMap::new();
        for link in &self.links {
            for [from, to] in [[link.a, link.b], [link.b, link.a]] {
                let count = links.entry([from, to]).or_default();
                *count += 1;
                let name = format!("{}->{}", self.node_name(from), self.node_name(to));
                names.push(match *count {
                    1 => name,
                    count => format!("{name}#{count}"),
                });
            }
        }
        for cell in &self.cells {
            let access_point = self.node_name(cell.access_point);
            names.push(format!("{access_point}->{}", cell.name));
            let stations = cell.stations.iter();
            names.extend(stations.map(|&station| format!("{}->{access_point}", self.node_name(station))));
        }
        names
    }

    /// Returns the queue of an interface by its position in the order of the results.
    pub(crate) fn interface_queue(&self, index: usize) -> &Queue {
        if let Some(link) = self.links.get(index / 2) {
            return [&link.queue_a, &link.queue_b][index % 2];
        }
        let mut member = index - 2 * self.links.len();
        for cell in &self.cells {
            match member {
                0 => return &cell.queue_ap,
                station if station <= cell.stations.len() => return &cell.queue_stations,
                beyond => member = beyond - cell.stations.len() - 1,
            }
        }
        unreachable!("there is no interface {index}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scenario::{Cell, Link};
    use crate::wifi::Standard;

    #[test]
    fn each_interface_has_its_own_queue() {
        let mut scenario = Scenario::new(Duration::from_secs(1));
        let [a, b, c] = ["a", "b", "c"].map(|name| scenario.node(name));
        let queue = |limit| Queue::fifo(limit);
        for limit in [10, 20] {
            scenario.links.push(
                Link::unlimited(a, b, Duration::ZERO)
                    .with_queue_a(queue(limit))
                    .with_queue_b(queue(limit + 1)),
            );
        }
        for (name, stations, limit) in [("x", vec![a, b], 30), ("y", vec![b], 40)] {
            scenario.cells.push(Cell {
                queue_ap: queue(limit),
                queue_stations: queue(limit + 1),
                mcs: Some(5),
                ..Cell::of(Standard::Ac, name, c, stations)
            });
        }
        let limit = |index| {
            let discipline = scenario.interface_queue(index).build(1).unwrap();
            let config = discipline.config();
            let config = config.downcast_ref::<fairgate::queues::fifo::Config>().unwrap();
            config.limit_packets.unwrap()
        };
        let names = scenario.interface_names();
        let found: Vec<(&str, u32)> = (0..names.len())
            .map(|index| (names[index].as_str(), limit(index)))
            .collect();
        let expected = [
            ("a->b", 10),
            ("b->a", 11),
            ("a->b#2", 20),
            ("b->a#2", 21),
            ("c->x", 30),
            ("a->c", 31),
            ("b->c", 31),
            ("c->y", 40),
            ("b->c", 41),
        ];
        assert_eq!(found, expected);
    }
}

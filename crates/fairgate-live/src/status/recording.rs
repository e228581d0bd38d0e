//! What each discipline of a run did in an interval: the difference between two readings.

use std::collections::HashMap;

use fairgate::{Statistics, Time};
use fairgate_run_api::{ClassInterval, Interval, Percentiles, SHARDED};
use hdrhistogram::Histogram;

use super::delays::{Delays, micros, quantile};
use super::path::Path;
use super::reading::{NodeReading, RunReading, TreeReading};

/// A recording. It keeps the counters of the last reading. Disciplines that no packet has come to need not be
/// read.
#[derive(Default)]
pub(crate) struct Recording {
    before: HashMap<Discipline, Before>,
    /// When the last reading was made.
    read_at: Option<Time>,
}

/// A discipline: the direction, and the path of classes to it.
type Discipline = (usize, String);

/// What a discipline had counted.
struct Before {
    at: Time,
    host: Option<String>,
    statistics: Statistics,
}

impl Recording {
    /// Returns what happened since the last reading. The first reading has no rows.
    ///
    /// A discipline has a row if packets came, left or waited there. A root always has one.
    pub(crate) fn interval(&mut self, reading: RunReading, delays: &Delays) -> Interval {
        let last = self.read_at.replace(reading.at);
        let mut before = std::mem::take(&mut self.before);
        let mut rows = Vec::new();
        for (from, direction) in reading.directions.into_iter().enumerate() {
            let mut path = Path::default();
            let delay_of_all = direction.tree.delay_of_workers(from, delays);
            for node in direction.tree.nodes {
                let place = (from, path.enter(&node).to_owned());
                let now = Before {
                    at: node.at,
                    host: node.host.clone(),
                    statistics: node.statistics.clone(),
                };
                if let Some(last) = last {
                    let row = Row {
                        from: &direction.from,
                        class: &place.1,
                        started: reading.started,
                        last,
                        before: before.remove(&place).filter(|before| before.goes_on(&node)),
                        delay: match (&delay_of_all, node.depth) {
                            (Some(all), 0) => Some(percentiles(all)),
                            _ => delays.of(node.worker, from, node.number).map(percentiles),
                        },
                    };
                    rows.extend(row.of(node));
                }
                self.before.insert(place, now);
            }
        }
        Interval {
            at_s: reading.at.nanos_since(reading.started) as f64 * 1e-9,
            missed_delays: delays.missed,
            rows,
        }
    }
}

impl Before {
    /// Returns whether the counters of a discipline go on from here. If the class was replaced, or if another
    /// host has it now, they began at 0.
    fn goes_on(&self, node: &NodeReading) -> bool {
        let (before, now) = (&self.statistics, &node.statistics);
        let has_grown = |of: fn(&Statistics) -> u64| of(before) <= of(now);
        self.host == node.host
            && has_grown(|it| it.enqueued.packets)
            && has_grown(|it| it.dequeued.packets)
            && has_grown(|it| it.dropped.packets)
            && has_grown(|it| it.sojourn)
            && has_grown(|it| it.marked)
            && has_grown(|it| it.flushed.packets)
    }
}

/// What a row is made of, besides the reading of its discipline.
struct Row<'r> {
    from: &'r str,
    class: &'r str,
    started: Time,
    /// When the last reading was made: not before, its counters began at 0 if they do not go on.
    last: Time,
    before: Option<Before>,
    delay: Option<Percentiles>,
}

impl Row<'_> {
    fn of(self, node: NodeReading) -> Option<ClassInterval> {
        let (begin, earlier) = match self.before {
            Some(before) => (before.at, before.statistics),
            None => (self.last, Statistics::default()),
        };
        let since = node.statistics.since(&earlier);
        let backlog = node.statistics.backlog();
        let is_idle = since == Statistics::default() && backlog.packets == 0;
        if is_idle && node.depth > 0 {
            return None;
        }
        Some(ClassInterval {
            from: self.from.to_owned(),
            class: self.class.to_owned(),
            discipline: node.name.into_owned(),
            host: node.host,
            at_s: node.at.nanos_since(self.started) as f64 * 1e-9,
            seconds: node.at.nanos_since(begin) as f64 * 1e-9,
            sent: since.dequeued.into(),
            mean_delay_us: since.mean_sojourn().map(|nanos| nanos / 1e3),
            delay: self.delay,
            drops: since
                .dropped_by_reason
                .iter()
                .map(|(reason, packets)| (reason.name().to_owned(), packets))
                .collect(),
            marked: since.marked,
            backlog: backlog.into(),
        })
    }
}

impl TreeReading {
    /// Returns the sojourn times in the trees of all workers, if there are several.
    fn delay_of_workers(&self, from: usize, delays: &Delays) -> Option<Histogram<u32>> {
        if self.nodes.first()?.name != SHARDED {
            return None;
        }
        let roots = self.nodes.iter().filter(|node| node.depth == 1);
        let of_workers = roots.filter_map(|root| delays.of(root.worker, from, root.number));
        of_workers.cloned().reduce(|mut all, one| {
            // It gets longer with the values of the other one.
            all.add(&one).expect("it resizes itself");
            all
        })
    }
}

fn percentiles(histogram: &Histogram<u32>) -> Percentiles {
    let at = |at| micros(quantile(histogram, at));
    Percentiles {
        packets: histogram.len(),
        p50_us: at(0.5),
        p95_us: at(0.95),
        p99_us: at(0.99),
        max_us: micros(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use fairgate::{Packet, Pool};
    use fairgate_config::Spec;

    use super::*;

    /// A discipline that was not there, or that no packet had come to, was not read before. What it did, it
    /// did since the last reading.
    #[test]
    fn what_was_not_read_before_has_done_all_since() {
        let mut root = Spec::inline("fifo").unwrap().build(1).unwrap();
        let mut pool = Pool::with_capacity(1);
        let id = pool.insert(Packet::of_length(900)).unwrap();
        root.enqueue(id, Time::ZERO, &mut pool);
        let node = TreeReading::at(Time::from_secs(7), &*root).nodes.remove(0);
        let row = Row {
            from: "a",
            class: "",
            started: Time::ZERO,
            last: Time::from_secs(5),
            before: None,
            delay: None,
        };
        let row = row.of(node).unwrap();
        assert_eq!((row.at_s, row.seconds), (7.0, 2.0));
        assert_eq!((row.sent.packets, row.backlog.packets), (0, 1));
    }
}

//! What each discipline of a run did in an interval: the difference between two readings.

use std::collections::HashMap;

use fairgate::{Statistics, Time};
use fairgate_run_api::{ClassInterval, Interval, Percentiles, SHARDED};
use hdrhistogram::Histogram;

use super::delays::{Delays, micros, quantile};
use super::path::Path;
use super::reading::{NodeReading, RunReading, TreeReading};

/// A recording. It keeps the counters of the last reading.
#[derive(Default)]
pub(crate) struct Recording {
    before: HashMap<Discipline, Before>,
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
        let is_first = self.before.is_empty();
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
                if !is_first {
                    let row = Row {
                        from: &direction.from,
                        class: &place.1,
                        started: reading.started,
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
    before: Option<Before>,
    delay: Option<Percentiles>,
}

impl Row<'_> {
    fn of(self, node: NodeReading) -> Option<ClassInterval> {
        let (begin, earlier) = match self.before {
            Some(before) => (before.at, before.statistics),
            None => (self.started, Statistics::default()),
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

//! What a class did in an interval.

use std::collections::BTreeMap;

use fairgate_run_api::{ClassInterval, Percentiles};

/// What a class did in an interval. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Bits per second that left it.
    pub(crate) rate_bps: f64,
    /// Packets that left it.
    pub(crate) packets: u64,
    /// The length of the interval.
    pub(crate) seconds: f64,
    /// Their mean delay, microseconds.
    pub(crate) mean_us: Option<f64>,
    /// Percentiles of it. Those of a sum of classes are not known.
    pub(crate) delay: Option<Percentiles>,
    /// Packets dropped, by reason.
    pub(crate) drops: BTreeMap<String, u64>,
    /// Packets marked.
    pub(crate) marked: u64,
    /// Packets that wait at the end of the interval, and their bytes.
    pub(crate) backlog: u64,
    pub(crate) backlog_bytes: u64,
}

impl Figures {
    pub(crate) fn of(row: &ClassInterval) -> Figures {
        Figures {
            rate_bps: row.rate_bps(),
            packets: row.sent.packets,
            seconds: row.seconds,
            mean_us: row.mean_delay_us,
            delay: row.delay,
            drops: row.drops.clone(),
            marked: row.marked,
            backlog: row.backlog.packets,
            backlog_bytes: row.backlog.bytes,
        }
    }

    /// Adds what another class did in the same interval.
    pub(crate) fn add(&mut self, other: &Figures) {
        let weighted = |figures: &Figures| figures.mean_us.map(|mean| mean * figures.packets as f64);
        let sum = match (weighted(self), weighted(other)) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.rate_bps += other.rate_bps;
        self.packets += other.packets;
        self.seconds = self.seconds.max(other.seconds);
        self.mean_us = sum
            .filter(|_| self.packets > 0)
            .map(|sum| sum / self.packets as f64);
        self.delay = None;
        for (reason, count) in &other.drops {
            *self.drops.entry(reason.clone()).or_default() += count;
        }
        self.marked += other.marked;
        self.backlog += other.backlog;
        self.backlog_bytes += other.backlog_bytes;
    }

    /// Returns the number of packets that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }

    /// Returns a count of the interval as events per second.
    pub(crate) fn per_second(&self, count: u64) -> f64 {
        match count {
            0 => 0.0,
            count => count as f64 / self.seconds.max(1e-9),
        }
    }

    /// Returns the delay by which classes are compared: the 99th percentile, or where there is none the mean.
    pub(crate) fn typical_us(&self) -> Option<f64> {
        self.delay.map(|delay| delay.p99_us).or(self.mean_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_a_sum_counts_packets() {
        let one = |packets, mean_us| Figures {
            packets,
            mean_us,
            seconds: 1.0,
            ..Figures::default()
        };
        let mut sum = one(1, Some(10.0));
        sum.add(&one(3, Some(30.0)));
        assert_eq!(sum.mean_us, Some(25.0));
        sum.add(&one(0, None));
        assert_eq!((sum.packets, sum.mean_us), (4, Some(25.0)));
        assert_eq!(sum.per_second(0), 0.0);
    }
}

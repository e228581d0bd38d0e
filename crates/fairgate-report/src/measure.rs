//! Counters for packets. They are small enough to keep one for each flow and discipline.

use fairgate::{Count, Time, jain_index};
use hdrhistogram::Histogram;

use crate::comparison::{Delay, Measured, Queue};
use crate::series::{Bin, Series};

/// Two significant digits make percentiles accurate to 1 %.
const DIGITS: u8 = 2;

/// The number of points of a delay distribution. A plot can't show more.
const CURVE_POINTS: usize = 120;

/// Counts the packets of a flow, of a group of flows or of a whole link.
#[derive(Clone, Debug)]
pub struct Meter {
    offered: Count,
    delivered: Count,
    dropped: Count,
    left: Count,
    marked: u64,
    delays: Histogram<u32>,
    delay_sum: u128,
    delay_max: u64,
    last_delay: Option<u64>,
    jitter_sum: u128,
    jitter_count: u64,
    delivered_over_time: Series<u64>,
}

impl Default for Meter {
    fn default() -> Meter {
        Meter {
            offered: Count::default(),
            delivered: Count::default(),
            dropped: Count::default(),
            left: Count::default(),
            marked: 0,
            delays: Histogram::new(DIGITS).expect("two digits are within the histogram's range"),
            delay_sum: 0,
            delay_max: 0,
            last_delay: None,
            jitter_sum: 0,
            jitter_count: 0,
            delivered_over_time: Series::default(),
        }
    }
}

impl Meter {
    /// Counts a packet of `bytes` that arrived at the queue.
    #[inline]
    pub fn offered(&mut self, bytes: u32) {
        self.offered.add(bytes);
    }

    /// Counts a packet that was delivered at `time`, `delay` ns after its arrival.
    #[inline]
    pub fn delivered(&mut self, time: Time, bytes: u32, delay: u64, marked: bool) {
        self.delivered.add(bytes);
        self.marked += u64::from(marked);
        self.delays += delay;
        self.delay_sum += u128::from(delay);
        self.delay_max = self.delay_max.max(delay);
        if let Some(last) = self.last_delay.replace(delay) {
            self.jitter_sum += u128::from(delay.abs_diff(last));
            self.jitter_count += 1;
        }
        *self.delivered_over_time.at(time) += u64::from(bytes);
    }

    /// Counts a dropped packet.
    #[inline]
    pub fn dropped(&mut self, bytes: u32) {
        self.dropped.add(bytes);
    }

    /// Counts a packet that was still queued at the end.
    pub fn left(&mut self, bytes: u32) {
        self.left.add(bytes);
    }

    /// Adds the counters of another flow. Jitter remains the mean over successive packets of the same flow.
    pub fn merge(&mut self, other: Meter) {
        self.offered += other.offered;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
        self.left += other.left;
        self.marked += other.marked;
        self.delays
            .add(&other.delays)
            .expect("histograms that grow by themselves take any value");
        self.delay_sum += other.delay_sum;
        self.delay_max = self.delay_max.max(other.delay_max);
        self.jitter_sum += other.jitter_sum;
        self.jitter_count += other.jitter_count;
        self.delivered_over_time.merge(other.delivered_over_time);
    }

    /// Returns the number of packets delivered so far, and their bytes.
    pub fn total_delivered(&self) -> Count {
        self.delivered
    }

    /// Returns the number of packets offered so far, and their bytes.
    pub fn total_offered(&self) -> Count {
        self.offered
    }

    /// Returns the result of a run of `duration`.
    pub fn finish(self, duration: Time) -> Measured {
        let seconds = duration.as_secs_f64();
        let per_second = |bytes: u64, seconds: f64| {
            if seconds > 0.0 {
                bytes as f64 * 8.0 / seconds
            } else {
                0.0
            }
        };
        let delay = (self.delivered.packets > 0).then(|| self.delay());
        let (width, bins) = self.delivered_over_time.finish(duration);
        Measured {
            throughput_bps: per_second(self.delivered.bytes, seconds),
            loss: self.dropped.packets as f64 / (self.offered.packets as f64).max(1.0),
            jitter_ns: (self.jitter_sum.checked_div(self.jitter_count.into())).map(|mean| mean as u64),
            delay,
            throughput_over_time_bps: rates(&bins, width, duration),
            offered: self.offered.packets,
            delivered: self.delivered.packets,
            dropped: self.dropped.packets,
            left: self.left.packets,
            offered_bytes: self.offered.bytes,
            delivered_bytes: self.delivered.bytes,
            dropped_bytes: self.dropped.bytes,
            left_bytes: self.left.bytes,
            marked: self.marked,
            completion: None,
        }
    }

    fn delay(&self) -> Delay {
        let percentile = |p: f64| self.delays.value_at_percentile(p).min(self.delay_max);
        Delay {
            mean_ns: (self.delay_sum / u128::from(self.delivered.packets)) as u64,
            p50_ns: percentile(50.0),
            p95_ns: percentile(95.0),
            p99_ns: percentile(99.0),
            max_ns: self.delay_max,
            distribution: self.distribution(),
        }
    }

    /// Returns pairs of a delay in ns and the share of packets at or below it, thinned to what a plot can
    /// show.
    fn distribution(&self) -> Vec<(u64, f64)> {
        let total = self.delays.len() as f64;
        let mut points: Vec<(u64, f64)> = Vec::new();
        let mut below = 0u64;
        for step in self.delays.iter_recorded() {
            below += step.count_since_last_iteration();
            let point = (step.value_iterated_to().min(self.delay_max), below as f64 / total);
            let visible = points.last().is_none_or(|last| {
                point.1 - last.1 >= 1.0 / CURVE_POINTS as f64 || below == self.delays.len()
            });
            if visible {
                points.push(point);
            }
        }
        points
    }
}

/// Returns the bits per second of each bin. The last bin is divided by the remaining time of the run.
fn rates(bytes: &[u64], width: u64, duration: Time) -> Vec<f64> {
    bytes
        .iter()
        .enumerate()
        .map(|(index, &bytes)| bytes as f64 * 8e9 / lasted(index, width, duration) as f64)
        .collect()
}

/// Returns how much of bin `index` is within the run, ns. It is never 0: a finished series has no bin after
/// the end of the run.
fn lasted(index: usize, width: u64, duration: Time) -> u64 {
    width.min(duration.nanos() - index as u64 * width)
}

/// The state of a queue in one bin of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueBin {
    /// Bytes queued times ns.
    byte_nanos: u128,
    most_bytes: u64,
    most_packets: u64,
}

impl Bin for QueueBin {
    fn join(self, other: QueueBin) -> QueueBin {
        QueueBin {
            byte_nanos: self.byte_nanos + other.byte_nanos,
            most_bytes: self.most_bytes.max(other.most_bytes),
            most_packets: self.most_packets.max(other.most_packets),
        }
    }
}

/// Measures the length of a queue over time: mean and maximum of each interval. It does not sample.
#[derive(Clone, Debug, Default)]
pub struct QueueMeter {
    since: Time,
    backlog: Count,
    over_time: Series<QueueBin>,
}

impl QueueMeter {
    /// Sets the backlog from `now` on. `now` must not decrease.
    #[inline]
    pub fn set(&mut self, now: Time, backlog: Count) {
        if now > self.since {
            self.pass(now);
        }
        self.backlog = backlog;
        let bin = self.over_time.at(now);
        bin.most_bytes = bin.most_bytes.max(backlog.bytes);
        bin.most_packets = bin.most_packets.max(backlog.packets);
    }

    /// Adds the current backlog for the time until `now`, bin by bin.
    fn pass(&mut self, now: Time) {
        // First widen the bins for `now`. Otherwise a long pause is processed in many narrow bins.
        self.over_time.at(now);
        while self.since < now {
            let until = self.over_time.end_of_bin(self.since).min(now);
            let bin = self.over_time.at(self.since);
            bin.byte_nanos += u128::from(self.backlog.bytes) * u128::from(until - self.since);
            bin.most_bytes = bin.most_bytes.max(self.backlog.bytes);
            bin.most_packets = bin.most_packets.max(self.backlog.packets);
            self.since = until;
        }
    }

    /// Returns the result of a run of `duration`.
    pub fn finish(mut self, duration: Time) -> Queue {
        self.pass(duration);
        let (width, bins) = self.over_time.finish(duration);
        let mean = |index: usize, bin: &QueueBin| {
            (bin.byte_nanos / u128::from(lasted(index, width, duration))) as u64
        };
        Queue {
            mean_bytes: (bins.iter().map(|bin| bin.byte_nanos).sum::<u128>()
                / u128::from(duration.nanos().max(1))) as u64,
            most_bytes: bins.iter().map(|bin| bin.most_bytes).max().unwrap_or(0),
            most_packets: bins.iter().map(|bin| bin.most_packets).max().unwrap_or(0),
            mean_bytes_over_time: bins
                .iter()
                .enumerate()
                .map(|(index, bin)| mean(index, bin))
                .collect(),
            most_bytes_over_time: bins.iter().map(|bin| bin.most_bytes).collect(),
        }
    }
}

/// Returns Jain's fairness index ([`jain_index`]). Returns `None` for fewer than two shares, or if all shares
/// are 0.
pub fn jain(shares: &[f64]) -> Option<f64> {
    (shares.len() >= 2 && shares.iter().any(|&share| share > 0.0)).then(|| jain_index(shares.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_needs_two_shares_and_one_above_0() {
        assert_eq!(jain(&[3.0, 0.0, 0.0]), Some(1.0 / 3.0));
        assert_eq!(jain(&[1.0]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn a_meter_computes_percentiles_jitter_and_loss() {
        let mut meter = Meter::default();
        for delay in 1..=100u64 {
            meter.offered(125);
            meter.delivered(Time::from_millis(delay * 10), 125, delay * 1_000_000, false);
        }
        meter.offered(125);
        meter.dropped(125);
        let measured = meter.finish(Time::from_secs(1));
        let delay = measured.delay.expect("packets were delivered");
        assert_eq!(delay.mean_ns, 50_500_000);
        assert_eq!(delay.max_ns, 100_000_000);
        for (found, exact) in [(delay.p50_ns, 50e6), (delay.p95_ns, 95e6), (delay.p99_ns, 99e6)] {
            assert!((found as f64 - exact).abs() / exact < 0.01, "{found} for {exact}");
        }
        assert_eq!(delay.distribution.last(), Some(&(100_000_000, 1.0)));
        assert_eq!(measured.jitter_ns, Some(1_000_000));
        assert!((measured.loss - 1.0 / 101.0).abs() < 1e-12);
        assert!((measured.throughput_bps - 100_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_queue_meter_integrates_over_time() {
        let mut meter = QueueMeter::default();
        let backlog = |packets| Count {
            packets,
            bytes: packets * 1000,
        };
        meter.set(Time::from_millis(250), backlog(4));
        meter.set(Time::from_millis(750), backlog(0));
        let queue = meter.finish(Time::from_secs(1));
        assert_eq!(
            (queue.mean_bytes, queue.most_bytes, queue.most_packets),
            (2000, 4000, 4)
        );
    }
}

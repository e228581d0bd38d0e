//! Measures all flows of a group together. A flow is added when it is over, so that nothing of it has to
//! stay.

use fairgate::{Count, Time};

use crate::monitor::{FlowWindow, Recorder, Tally};

/// The sums from which Jain's index follows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Shares {
    pub(crate) fn add(&mut self, share: f64) {
        self.count += 1.0;
        self.sum += share;
        self.squares += share * share;
    }

    pub(crate) fn merge(&mut self, other: Shares) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Returns Jain's index, which is 1 if there are no shares or all are 0.
    pub(crate) fn jain(&self) -> f64 {
        if self.squares == 0.0 {
            return 1.0;
        }
        self.sum * self.sum / (self.count * self.squares)
    }
}

/// The number of flows that are active, over time.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    now: u64,
    changed: Time,
    /// The integral over time, ns.
    integral: u128,
}

impl Active {
    fn advance(&mut self, now: Time) {
        self.integral += u128::from(self.now) * u128::from(now - self.changed);
        self.changed = now;
    }
}

/// What a flow contributes to its group when it is over.
pub(crate) struct Contribution<'a> {
    pub(crate) window: &'a FlowWindow,
    /// The flow's goodput while it was active in the window. `None` if it was not.
    pub(crate) goodput: Option<u64>,
    /// The flow's goodput over the window, for the sum.
    pub(crate) goodput_of_window: u64,
    /// The transfers that were completed in the window.
    pub(crate) transfers: Option<&'a Recorder>,
    pub(crate) totals: &'a Tally,
    pub(crate) in_flight: Count,
    pub(crate) acknowledgements: &'a Tally,
    pub(crate) acknowledgements_in_flight: Count,
    /// The bytes received in the interval that has not ended.
    pub(crate) interval_bytes: u64,
}

/// Measures all flows of a group together. Figures are of the measurement window, except `started`, `ended`,
/// `gave_up`, the totals and the series.
#[derive(Clone, Debug)]
pub(crate) struct GroupMonitor {
    pub(crate) started: u64,
    pub(crate) ended: u64,
    /// The flows that ended because admission control rejected a packet.
    pub(crate) gave_up: u64,
    /// The flows that started in the window, and those of them that gave up.
    pub(crate) offered: u64,
    pub(crate) blocked: u64,
    active: Active,
    /// The integral of the number of active flows over the window, ns.
    active_integral: u128,
    pub(crate) tally: Tally,
    pub(crate) delay: Recorder,
    pub(crate) transfers: Recorder,
    pub(crate) goodput: Recorder,
    /// The sum of the flows' goodput over the window.
    pub(crate) goodput_sum: u64,
    /// The jitter of flows that received at least two packets.
    pub(crate) jitter: Recorder,
    pub(crate) shares: Shares,
    /// The number of flows that received packets, and the sum of 1 / mean delay of each.
    inverse_delays: (u64, f64),
    pub(crate) totals: Tally,
    pub(crate) in_flight: Count,
    pub(crate) acknowledgements: Tally,
    pub(crate) acknowledgements_in_flight: Count,
    interval_bytes: u64,
    /// Bytes received in each past interval.
    pub(crate) series: Vec<u64>,
    /// The number of active flows at the end of each past interval.
    pub(crate) active_series: Vec<u32>,
}

impl GroupMonitor {
    pub(crate) fn new(intervals: usize) -> GroupMonitor {
        GroupMonitor {
            started: 0,
            ended: 0,
            gave_up: 0,
            offered: 0,
            blocked: 0,
            active: Active::default(),
            active_integral: 0,
            tally: Tally::default(),
            delay: Recorder::coarse(),
            transfers: Recorder::coarse(),
            goodput: Recorder::coarse(),
            goodput_sum: 0,
            jitter: Recorder::coarse(),
            shares: Shares::default(),
            inverse_delays: (0, 0.0),
            totals: Tally::default(),
            in_flight: Count::default(),
            acknowledgements: Tally::default(),
            acknowledgements_in_flight: Count::default(),
            interval_bytes: 0,
            series: Vec::with_capacity(intervals),
            active_series: Vec::with_capacity(intervals),
        }
    }

    pub(crate) fn flow_starts(&mut self, now: Time) {
        self.active.advance(now);
        self.active.now += 1;
        self.started += 1;
    }

    /// Notes that a flow has ended: its packets may still be on their way.
    pub(crate) fn flow_ends(&mut self, now: Time) {
        self.active.advance(now);
        self.active.now -= 1;
        self.ended += 1;
    }

    /// Returns the number of flows that have started and not ended.
    pub(crate) fn active(&self) -> u64 {
        self.active.now
    }

    /// Adds a flow that is over, or that is still there at the end of the run.
    pub(crate) fn add(&mut self, flow: &Contribution<'_>) {
        self.tally.add(&flow.window.tally);
        self.delay.add(&flow.window.delay);
        if flow.window.jitter_count > 0 {
            self.jitter.record(flow.window.jitter);
        }
        if let Some(goodput) = flow.goodput {
            self.goodput.record(goodput);
            self.shares.add(goodput as f64);
        }
        self.goodput_sum = self.goodput_sum.saturating_add(flow.goodput_of_window);
        if let Some(transfers) = flow.transfers {
            self.transfers.add(transfers);
        }
        let mean = flow.window.delay.mean();
        if mean > 0 {
            self.inverse_delays.0 += 1;
            self.inverse_delays.1 += 1.0 / mean as f64;
        }
        self.totals.add(flow.totals);
        self.in_flight += flow.in_flight;
        self.acknowledgements.add(flow.acknowledgements);
        self.acknowledgements_in_flight += flow.acknowledgements_in_flight;
        self.interval_bytes += flow.interval_bytes;
    }

    /// Adds bytes received in the current interval by a flow that goes on.
    pub(crate) fn add_interval_bytes(&mut self, bytes: u64) {
        self.interval_bytes += bytes;
    }

    pub(crate) fn interval_ends(&mut self) {
        self.series.push(std::mem::take(&mut self.interval_bytes));
        self.active_series.push(self.active.now as u32);
    }

    pub(crate) fn window_opens(&mut self, now: Time) {
        self.active.advance(now);
        self.active.integral = 0;
    }

    pub(crate) fn window_closes(&mut self, now: Time) {
        self.active.advance(now);
        self.active_integral = self.active.integral;
    }

    /// Returns the mean number of active flows over the window, which is `window` ns long.
    pub(crate) fn mean_active(&self, window: u64) -> f64 {
        self.active_integral as f64 / window as f64
    }

    /// Returns the harmonic mean of the flows' mean delays, ns. It is 0 if no flow received packets.
    pub(crate) fn harmonic_delay_of_flows(&self) -> u64 {
        match self.inverse_delays {
            (0, _) => 0,
            (count, sum) => (count as f64 / sum) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_active_flows_is_integrated_over_the_window() {
        let at = Time::from_nanos;
        let mut group = GroupMonitor::new(0);
        group.flow_starts(at(10));
        group.flow_starts(at(20));
        group.window_opens(at(30));
        group.flow_ends(at(50));
        group.flow_starts(at(80));
        group.flow_starts(at(80));
        group.window_closes(at(130));
        group.flow_ends(at(140));
        // Two flows for 20 ns, one for 30 ns, three for 50 ns.
        assert_eq!(group.mean_active(100), (40 + 30 + 150) as f64 / 100.0);
        assert_eq!((group.started, group.ended, group.active()), (4, 2, 2));
    }

    #[test]
    fn shares_give_jains_index() {
        let values = [1.0, 2.0, 3.0, 10.0];
        let (mut left, mut right) = (Shares::default(), Shares::default());
        values[..1].iter().for_each(|&value| left.add(value));
        values[1..].iter().for_each(|&value| right.add(value));
        left.merge(right);
        assert!((left.jain() - fairgate::jain_index(values)).abs() < 1e-12);
        assert_eq!(Shares::default().jain(), 1.0);
    }
}

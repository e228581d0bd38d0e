//! Measures one direction of a flow, with the definitions of ns-3's FlowMonitor. The delay is from the
//! source's first send to the arrival at the destination. Jitter is the difference of successive delays.
//! Bytes are those of IP packets.

use fairgate::{Count, DropCounts, DropReason};

use crate::monitor::Recorder;

/// Packets dropped on the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    pub(crate) count: Count,
    pub(crate) by_reason: DropCounts,
}

impl Lost {
    pub(crate) fn add(&mut self, bytes: u32, reason: DropReason) {
        self.count.add(bytes);
        self.by_reason.add(reason);
    }
}

/// Running totals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) sent: Count,
    pub(crate) received: Count,
    pub(crate) lost: Lost,
    /// Packets received with a congestion experienced mark.
    pub(crate) marked: u64,
    /// Payload delivered to the application, bytes.
    pub(crate) payload: u64,
}

impl Tally {
    /// Returns the difference to an earlier state.
    fn since(&self, earlier: &Tally) -> Tally {
        let count = |now: Count, then: Count| Count {
            packets: now.packets - then.packets,
            bytes: now.bytes - then.bytes,
        };
        let by_reason = self.lost.by_reason.since(&earlier.lost.by_reason);
        Tally {
            sent: count(self.sent, earlier.sent),
            received: count(self.received, earlier.received),
            lost: Lost {
                count: count(self.lost.count, earlier.lost.count),
                by_reason,
            },
            marked: self.marked - earlier.marked,
            payload: self.payload - earlier.payload,
        }
    }
}

/// Measures one direction of a flow. The network counts losses, because only it sees them. They are passed in
/// when a window opens or closes.
#[derive(Clone, Debug)]
pub(crate) struct FlowMonitor {
    tally: Tally,
    at_opening: Tally,
    delay: Recorder,
    last_delay: Option<u64>,
    jitter_sum: u128,
    jitter_count: u64,
    /// Bytes received in the current interval.
    interval_bytes: u64,
    /// Bytes received in each past interval.
    series: Vec<u64>,
}

/// The measurements of a window.
#[derive(Clone, Debug)]
pub(crate) struct FlowWindow {
    pub(crate) tally: Tally,
    pub(crate) delay: Recorder,
    pub(crate) jitter: u64,
}

impl FlowMonitor {
    pub(crate) fn new(intervals: usize) -> FlowMonitor {
        FlowMonitor {
            tally: Tally::default(),
            at_opening: Tally::default(),
            delay: Recorder::new(),
            last_delay: None,
            jitter_sum: 0,
            jitter_count: 0,
            interval_bytes: 0,
            series: Vec::with_capacity(intervals),
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.tally.sent.add(bytes);
    }

    #[inline]
    pub(crate) fn received(&mut self, bytes: u32, delay: u64, marked: bool) {
        self.tally.received.add(bytes);
        self.tally.marked += u64::from(marked);
        self.interval_bytes += u64::from(bytes);
        self.delay.record(delay);
        if let Some(last) = self.last_delay {
            self.jitter_sum += u128::from(delay.abs_diff(last));
            self.jitter_count += 1;
        }
        self.last_delay = Some(delay);
    }

    /// Counts payload that was delivered to the application since the last call.
    #[inline]
    pub(crate) fn delivered(&mut self, payload: u64) {
        self.tally.payload += payload;
    }

    pub(crate) fn interval_ends(&mut self) {
        self.series.push(std::mem::take(&mut self.interval_bytes));
    }

    pub(crate) fn window_opens(&mut self, lost: Lost) {
        self.tally.lost = lost;
        self.at_opening = self.tally;
        self.delay = Recorder::new();
        (self.jitter_sum, self.jitter_count) = (0, 0);
    }

    pub(crate) fn window_closes(&mut self, lost: Lost) -> FlowWindow {
        self.tally.lost = lost;
        FlowWindow {
            tally: self.tally.since(&self.at_opening),
            delay: std::mem::replace(&mut self.delay, Recorder::new()),
            jitter: self
                .jitter_sum
                .checked_div(self.jitter_count.into())
                .map_or(0, |mean| mean as u64),
        }
    }

    /// Returns the totals of the whole run.
    pub(crate) fn totals(&self, lost: Lost) -> Tally {
        Tally { lost, ..self.tally }
    }

    /// Returns the bytes received in each interval.
    pub(crate) fn series(&self) -> &[u64] {
        &self.series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_mean_difference_of_successive_delays() {
        let mut monitor = FlowMonitor::new(0);
        monitor.received(100, 1_000, false);
        monitor.window_opens(Lost::default());
        for delay in [4_000, 2_000, 2_000] {
            monitor.received(100, delay, false);
        }
        let window = monitor.window_closes(Lost::default());
        // 3000 relative to the packet before the window, then 2000 and 0.
        assert_eq!(window.jitter, 5_000 / 3);
        assert_eq!(window.tally.received.packets, 3);
        assert_eq!(window.delay.mean(), 8_000 / 3);
    }
}

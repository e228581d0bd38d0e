//! Measures the data packets of a flow, with the definitions of ns-3's FlowMonitor. The delay is from the
//! source's first send to the arrival at the destination. Jitter is the difference of successive delays.
//! Bytes are those of IP packets.

use fairgate::{Count, DropCounts, DropReason};

use crate::monitor::Recorder;

/// Packets lost on the path: dropped by disciplines, or lost by links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost {
    pub(crate) count: Count,
    /// `None` if nothing was lost or copied, as for most flows. It is larger than everything else here.
    details: Option<Box<LostDetails>>,
}

/// How packets were lost, and what else happened to them on the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LostDetails {
    pub(crate) by_reason: DropCounts,
    /// Packets given up on air, which no discipline has dropped.
    pub(crate) on_air: u64,
    /// Packets lost by links. They have no drop reason.
    pub(crate) on_links: u64,
    /// Copies of packets that disciplines have made. Each counts as a packet that the flow has sent.
    pub(crate) copied: Count,
}

impl Lost {
    pub(crate) fn add(&mut self, bytes: u32, reason: DropReason) {
        self.count.add(bytes);
        self.details_mut().by_reason.add(reason);
    }

    pub(crate) fn add_on_air(&mut self, bytes: u32) {
        self.count.add(bytes);
        self.details_mut().on_air += 1;
    }

    pub(crate) fn add_on_link(&mut self, bytes: u32) {
        self.count.add(bytes);
        self.details_mut().on_links += 1;
    }

    /// Counts a copy. It is not lost.
    pub(crate) fn add_copy(&mut self, bytes: u32) {
        self.details_mut().copied.add(bytes);
    }

    pub(crate) fn details(&self) -> LostDetails {
        self.details.as_deref().copied().unwrap_or_default()
    }

    /// Returns the copies.
    #[inline]
    pub(crate) fn copied(&self) -> Count {
        self.details
            .as_deref()
            .map_or(Count::default(), |details| details.copied)
    }

    fn details_mut(&mut self) -> &mut LostDetails {
        self.details.get_or_insert_default()
    }

    pub(crate) fn merge(&mut self, other: &Lost) {
        self.count += other.count;
        let Some(other) = other.details.as_deref() else {
            return;
        };
        let sum = self.details_mut();
        sum.on_air += other.on_air;
        sum.on_links += other.on_links;
        sum.copied += other.copied;
        for (reason, packets) in other.by_reason.iter() {
            sum.by_reason.set(reason, sum.by_reason.get(reason) + packets);
        }
    }

    /// Returns the difference to an earlier state.
    fn since(&self, earlier: &Lost) -> Lost {
        let (now, then) = (self.details(), earlier.details());
        let details = LostDetails {
            by_reason: now.by_reason.since(&then.by_reason),
            on_air: now.on_air - then.on_air,
            on_links: now.on_links - then.on_links,
            copied: less(now.copied, then.copied),
        };
        Lost {
            count: less(self.count, earlier.count),
            details: self.details.is_some().then(|| Box::new(details)),
        }
    }
}

/// Returns the difference to an earlier count.
fn less(now: Count, then: Count) -> Count {
    Count {
        packets: now.packets - then.packets,
        bytes: now.bytes - then.bytes,
    }
}

/// Running totals.
#[derive(Clone, Debug, Default)]
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
    pub(crate) fn add(&mut self, other: &Tally) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost.merge(&other.lost);
        self.marked += other.marked;
        self.payload += other.payload;
    }

    /// Returns the difference to an earlier state.
    fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            sent: less(self.sent, earlier.sent),
            received: less(self.received, earlier.received),
            lost: self.lost.since(&earlier.lost),
            marked: self.marked - earlier.marked,
            payload: self.payload - earlier.payload,
        }
    }
}

/// The time relative to the measurement window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The window has not opened yet.
    Before,
    /// Now is in the window.
    Within,
    /// The window has closed.
    After,
}

/// Measures the data packets of a flow. The network counts losses, because only it sees them. They are passed
/// in when a window opens or closes. What is needed for each packet comes first.
#[derive(Clone, Debug)]
pub(crate) struct FlowMonitor {
    sent: Count,
    received: Count,
    marked: u64,
    payload: u64,
    /// Bytes received in the current interval.
    interval_bytes: u64,
    last_delay: Option<u64>,
    jitter_sum: u128,
    jitter_count: u64,
    delay: Recorder,
    /// The totals when the window opened. `None` if the flow began later: they were 0.
    at_opening: Option<Box<Tally>>,
    /// What was measured in the window, once it has closed.
    window: Option<Box<FlowWindow>>,
}

/// The measurements of a window.
#[derive(Clone, Debug)]
pub(crate) struct FlowWindow {
    pub(crate) tally: Tally,
    pub(crate) delay: Recorder,
    pub(crate) jitter: u64,
    /// The number of differences that `jitter` is the mean of.
    pub(crate) jitter_count: u64,
}

impl FlowWindow {
    /// Returns the measurements of a flow that was not there.
    fn empty() -> FlowWindow {
        FlowWindow {
            tally: Tally::default(),
            delay: Recorder::coarse(),
            jitter: 0,
            jitter_count: 0,
        }
    }
}

impl FlowMonitor {
    /// Creates the monitor of a flow that begins in this phase.
    pub(crate) fn new(phase: Phase) -> FlowMonitor {
        FlowMonitor {
            sent: Count::default(),
            received: Count::default(),
            marked: 0,
            payload: 0,
            interval_bytes: 0,
            last_delay: None,
            jitter_sum: 0,
            jitter_count: 0,
            delay: Recorder::coarse(),
            at_opening: None,
            window: (phase == Phase::After).then(|| Box::new(FlowWindow::empty())),
        }
    }

    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.sent.add(bytes);
    }

    #[inline]
    pub(crate) fn received(&mut self, bytes: u32, delay: u64, marked: bool) {
        self.received.add(bytes);
        self.marked += u64::from(marked);
        self.interval_bytes += u64::from(bytes);
        self.delay.record(delay);
        if let Some(last) = self.last_delay {
            self.jitter_sum += u128::from(delay.abs_diff(last));
            self.jitter_count += 1;
        }
        self.last_delay = Some(delay);
    }

    /// Prefetches the count of the last delay. The next one is similar.
    #[inline]
    pub(crate) fn prefetch_delay(&self) {
        if let Some(last) = self.last_delay {
            self.delay.prefetch(last);
        }
    }

    /// Counts payload that was delivered to the application since the last call.
    #[inline]
    pub(crate) fn delivered(&mut self, payload: u64) {
        self.payload += payload;
    }

    /// Returns the number of packets sent and copied that have not been received.
    pub(crate) fn outstanding(&self, lost: &Lost) -> u64 {
        self.sent.packets + lost.copied().packets - self.received.packets
    }

    /// Returns the bytes received since the last call.
    pub(crate) fn interval_ends(&mut self) -> u64 {
        std::mem::take(&mut self.interval_bytes)
    }

    pub(crate) fn window_opens(&mut self, lost: Lost) {
        self.at_opening = Some(Box::new(self.totals(lost)));
        self.delay = Recorder::coarse();
        (self.jitter_sum, self.jitter_count) = (0, 0);
    }

    pub(crate) fn window_closes(&mut self, lost: Lost) {
        let totals = self.totals(lost);
        let tally = match self.at_opening.take() {
            Some(earlier) => totals.since(&earlier),
            None => totals,
        };
        self.window = Some(Box::new(FlowWindow {
            tally,
            delay: std::mem::replace(&mut self.delay, Recorder::coarse()),
            jitter: self
                .jitter_sum
                .checked_div(self.jitter_count.into())
                .map_or(0, |mean| mean as u64),
            jitter_count: self.jitter_count,
        }));
    }

    /// Returns what was measured in the window. The flow ends in this phase, so that a window that is open
    /// closes for it.
    pub(crate) fn finish(&mut self, phase: Phase, lost: Lost) -> FlowWindow {
        if phase == Phase::Within {
            self.window_closes(lost);
        }
        self.window
            .take()
            .map_or_else(FlowWindow::empty, |window| *window)
    }

    /// Returns the totals of the whole run.
    pub(crate) fn totals(&self, lost: Lost) -> Tally {
        let mut sent = self.sent;
        sent += lost.copied();
        Tally {
            sent,
            received: self.received,
            lost,
            marked: self.marked,
            payload: self.payload,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_the_mean_difference_of_successive_delays() {
        let mut monitor = FlowMonitor::new(Phase::Before);
        monitor.received(100, 1_000, false);
        monitor.window_opens(Lost::default());
        for delay in [4_000, 2_000, 2_000] {
            monitor.received(100, delay, false);
        }
        let window = monitor.finish(Phase::Within, Lost::default());
        // 3000 relative to the packet before the window, then 2000 and 0.
        assert_eq!((window.jitter, window.jitter_count), (5_000 / 3, 3));
        assert_eq!(window.tally.received.packets, 3);
        assert_eq!(window.delay.mean(), 8_000 / 3);
    }

    #[test]
    fn a_window_has_the_part_of_the_flow_that_is_in_it() {
        let packets = |phases: &[Phase], begins: Phase| {
            let mut monitor = FlowMonitor::new(begins);
            let mut now = begins;
            for &phase in phases {
                match (now, phase) {
                    (Phase::Before, Phase::Within) => monitor.window_opens(Lost::default()),
                    (Phase::Within, Phase::After) => monitor.window_closes(Lost::default()),
                    _ => {}
                }
                now = phase;
                monitor.sent(100);
                monitor.received(100, 1_000, false);
            }
            let window = monitor.finish(now, Lost::default());
            assert_eq!(window.tally.received.packets, window.delay.count());
            window.tally.sent.packets
        };
        use Phase::{After, Before, Within};
        assert_eq!(packets(&[Before, Within, Within, After], Before), 2);
        assert_eq!(packets(&[Before, Before], Before), 0);
        assert_eq!(packets(&[Before, Within], Before), 1);
        assert_eq!(packets(&[Within, Within, After], Within), 2);
        assert_eq!(packets(&[Within, Within], Within), 2);
        assert_eq!(packets(&[After], After), 0);
    }
}

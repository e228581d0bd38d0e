//! Priorities by behaviour: a flow that seldom triggers CoDel rises, and a flow that often does sinks. The
//! thesis names this as future work.
//!
//! CoDel acts on standing queues, which belong to flows that want more than their share. So drops and marks
//! identify bulk transfers, and their absence identifies calls, games and terminals. No marking of packets is
//! needed. If packets are marked, the marking gives the class in which a flow begins.
//!
//! The rule, for each flow:
//! * It begins in the class of its first packet's marking.
//! * With the `drops`-th drop or mark by CoDel within an `interval` it *sinks* by one class.
//! * After an `interval` without any it *rises* by one class.
//! * Hysteresis: each sinking doubles the time until the next rise, up to [`LONGEST`] intervals, and each
//!   rise halves it again. A flow with fewer than `drops` drops stays in its class. So a bulk flow that is
//!   quiet for a while does not rise at once, and a flow that sank by mistake rises soon.
//! * After [`LONGEST`] intervals without a packet its state is reset, because the next packet may belong to
//!   another flow.
//!
//! Defaults: 2 drops, 5 s. A TCP connection that fills its share of a link loses a packet to CoDel every
//! second or two, and on long paths every five or so. A flow below its share loses none to CoDel, because its
//! queue never stands; a burst may cause one drop in 5 s.
//!
//! Measured: 20 Mbit/s, twelve CUBIC downloads, a call, and a UDP stream of 4 Mbit/s (a fair share is 1.5)
//! that starts before them or 25 s after them; round trips of 20 and 100 ms; drops 1, 2, 4, 8 by intervals 1,
//! 2, 5, 10, 20 s.
//!
//! | | stream | p95 in the queue | call, p95 |
//! |---|---|---|---|
//! | without | 1.5 to 1.8 Mbit/s, 54 to 64 % lost | 630 to 660 ms | 8 ms |
//! | 1, 2 or 4 drops, any interval | all of its 4 Mbit/s, nothing lost | 1.2 to 2.3 ms | 0.7 to 1.9 ms |
//! | 8 drops in 1 s (20 ms, late) or 20 s (early) | as without: sinks too slowly, or none has risen | | |
//!
//! So the defaults are in the middle of the range that works. Streams of 1, 2.5 and 8 Mbit/s, also beside
//! forty downloads, also got all that they sent. With `flow_aware` a stream gets at most `ratio^p` times a
//! download's share: 4 Mbit/s beside twelve downloads only if it had risen to the top before they started,
//! and 2.5 Mbit/s beside forty downloads never.
//!
//! A flow keeps its queue through all changes and moves with it, so its packets are never reordered. It moves
//! when it is the first of its class's active list, or idle: in constant time. Drops for a limit do not
//! count, because they depend more on the limit than on the flow.
//!
//! Times are ticks of 2^20 ns (1.05 ms) in 32 bits. A flow that was idle for more than 26 days may appear
//! recently active. If the clock goes backwards, nothing changes until it has caught up.

use alloc::boxed::Box;
use core::time::Duration;

use crate::time::Time;

/// Parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoPriority {
    /// The time over which drops are counted, and after which a flow without drops rises: 10 ms to 1 h.
    pub interval: Duration,
    /// The number of drops and marks within an interval with which a flow sinks, 1 to 65535.
    pub drops: u32,
}

impl Default for AutoPriority {
    fn default() -> AutoPriority {
        AutoPriority {
            interval: Duration::from_secs(5),
            drops: 2,
        }
    }
}

/// The most intervals without a drop that a rise takes; also the intervals without a packet after which a
/// flow's state is reset.
pub const LONGEST: u32 = 1 << MOST_DOUBLINGS;
const MOST_DOUBLINGS: u8 = 3;

/// A tick is 2^20 ns.
const TICK_SHIFT: u32 = 20;

/// The history of a flow. It is separate from the hot state, and used when the flow becomes active and after
/// it was served.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// When the count of drops began.
    counting_since: u32,
    /// The time since which there was neither a drop nor a change of class.
    calm_since: u32,
    /// When it was last served or became active.
    seen: u32,
    drops: u16,
    class: u8,
    /// A rise takes an interval doubled this many times.
    doublings: u8,
}

/// The class of a flow without history.
const NO_CLASS: u8 = u8::MAX;

/// The histories of all flows.
#[derive(Debug)]
pub(super) struct Behaviour {
    records: Box<[Record]>,
    /// In ticks.
    interval: u32,
    drops: u32,
    highest: u8,
    /// How often flows rose and sank.
    pub(super) rises: u64,
    pub(super) sinks: u64,
}

impl Behaviour {
    /// Histories of `flows` flows, in classes from 0 to `prios - 1`.
    pub(super) fn new(config: &AutoPriority, flows: u32, prios: u8) -> Behaviour {
        let new = Record {
            counting_since: 0,
            calm_since: 0,
            seen: 0,
            drops: 0,
            class: NO_CLASS,
            doublings: 0,
        };
        let mut behaviour = Behaviour {
            records: vec![new; flows as usize].into(),
            interval: 0,
            drops: 0,
            highest: prios - 1,
            rises: 0,
            sinks: 0,
        };
        behaviour.change(config);
        behaviour
    }

    /// Changes the parameters in operation.
    pub(super) fn change(&mut self, config: &AutoPriority) {
        self.interval = (config.interval.as_nanos() >> TICK_SHIFT) as u32;
        self.drops = config.drops;
    }

    /// The class that a flow is in.
    #[cfg(test)]
    pub(super) fn class(&self, flow: u32) -> u8 {
        self.records[flow as usize].class
    }

    /// The class of a flow that becomes active. `marked` is the class of a new flow.
    #[inline]
    pub(super) fn class_of_arrival(&mut self, flow: u32, marked: u8, now: Time) -> u8 {
        let now = ticks(now);
        let forgotten = self.interval * LONGEST;
        let record = &mut self.records[flow as usize];
        if record.class == NO_CLASS || elapsed(record.seen, now) >= forgotten {
            *record = Record {
                counting_since: now,
                calm_since: now,
                seen: now,
                drops: 0,
                class: marked,
                doublings: 0,
            };
            return marked;
        }
        record.seen = now;
        self.rise_if_calm(flow, now);
        self.records[flow as usize].class
    }

    /// Updates a flow that was served, with this many drops and marks. Returns its class from now on.
    #[inline]
    pub(super) fn served(&mut self, flow: u32, drops: u64, now: Time) -> u8 {
        let now = ticks(now);
        self.records[flow as usize].seen = now;
        if drops > 0 {
            self.dropped(flow, drops, now);
        } else {
            self.rise_if_calm(flow, now);
        }
        self.records[flow as usize].class
    }

    #[cold]
    fn dropped(&mut self, flow: u32, drops: u64, now: u32) {
        let record = &mut self.records[flow as usize];
        if elapsed(record.counting_since, now) >= self.interval || record.drops == 0 {
            record.counting_since = now;
            record.drops = 0;
        }
        record.drops = record.drops.saturating_add(drops.min(u16::MAX.into()) as u16);
        record.calm_since = now;
        if u32::from(record.drops) >= self.drops {
            record.drops = 0;
            record.doublings = (record.doublings + 1).min(MOST_DOUBLINGS);
            self.sinks += u64::from(record.class > 0);
            record.class = record.class.saturating_sub(1);
        }
    }

    #[inline]
    fn rise_if_calm(&mut self, flow: u32, now: u32) {
        let record = &mut self.records[flow as usize];
        if elapsed(record.calm_since, now) >= self.interval << record.doublings {
            record.calm_since = now;
            record.doublings = record.doublings.saturating_sub(1);
            self.rises += u64::from(record.class < self.highest);
            record.class = (record.class + 1).min(self.highest);
        }
    }
}

fn ticks(now: Time) -> u32 {
    (now.nanos() >> TICK_SHIFT) as u32
}

/// Ticks from `since` to `now`; 0 if `since` is in the future.
#[inline]
fn elapsed(since: u32, now: u32) -> u32 {
    (now.wrapping_sub(since) as i32).max(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flow in the middle of three classes; 2 drops within a second.
    struct Subject(Behaviour);

    impl Subject {
        fn new() -> Subject {
            let config = AutoPriority {
                interval: Duration::from_secs(1),
                drops: 2,
            };
            let mut behaviour = Behaviour::new(&config, 1, 3);
            assert_eq!(behaviour.class_of_arrival(0, 1, Time::ZERO), 1);
            Subject(behaviour)
        }

        /// The class after the flow was served at `millis` ms.
        fn at(&mut self, millis: u64, drops: u64) -> u8 {
            self.0.served(0, drops, Time::from_millis(millis))
        }
    }

    #[test]
    fn a_flow_sinks_by_drops_within_an_interval() {
        let mut flow = Subject::new();
        assert_eq!(flow.at(100, 1), 1);
        assert_eq!(flow.at(1200, 1), 1, "more than an interval apart");
        assert_eq!(flow.at(1300, 1), 0);
        assert_eq!(flow.at(1400, 5), 0, "it is in the lowest class");
        assert_eq!(flow.0.sinks, 1);
    }

    #[test]
    fn a_flow_rises_after_an_interval_without_drops() {
        let mut flow = Subject::new();
        assert_eq!(flow.at(990, 0), 1);
        assert_eq!(flow.at(1010, 0), 2);
        assert_eq!(flow.at(2100, 0), 2, "it is in the highest class");
        assert_eq!(flow.0.rises, 1);
    }

    #[test]
    fn a_flow_with_few_drops_keeps_its_class() {
        let mut flow = Subject::new();
        for step in 1..20 {
            assert_eq!(flow.at(step * 900, u64::from(step % 2 == 0)), 1);
        }
    }

    #[test]
    fn each_sinking_doubles_the_time_to_rise_and_each_rise_halves_it() {
        let mut flow = Subject::new();
        let mut now = 0;
        for wait in [2000, 4000, 8000, 8000] {
            // It sinks from any class to the lowest, and once more there for the next doubling.
            now += 10;
            let before = flow.0.records[0].class;
            assert_eq!(flow.at(now, 2), before.saturating_sub(1));
            assert_eq!(
                flow.at(now + wait - 50, 0),
                before.saturating_sub(1),
                "not before {wait} ms"
            );
            now += wait - 50;
        }
        // 50 ms later the rise is due, and the next one after half of the time.
        assert_eq!(flow.at(now + 60, 0), 1);
        assert_eq!(flow.at(now + 60 + 3900, 0), 1);
        assert_eq!(flow.at(now + 60 + 4010, 0), 2);
    }

    #[test]
    fn a_long_silence_resets_a_flow_and_a_short_one_counts_as_calm() {
        let mut flow = Subject::new();
        let _ = flow.at(0, 2);
        let after = |flow: &mut Subject, millis| flow.0.class_of_arrival(0, 2, Time::from_millis(millis));
        assert_eq!(after(&mut flow, 1900), 0);
        assert_eq!(after(&mut flow, 2100), 1, "it rises after a calm time");
        assert_eq!(
            after(&mut flow, 2100 + 8010),
            2,
            "another flow, marked for class 2"
        );
    }

    #[test]
    fn a_clock_that_goes_backwards_changes_nothing() {
        let mut flow = Subject::new();
        assert_eq!(flow.at(10_000_000, 1), 1);
        assert_eq!(flow.at(1, 0), 1);
        assert_eq!(flow.0.class_of_arrival(0, 2, Time::ZERO), 1);
    }

    #[test]
    fn values_out_of_range_are_rejected_by_name() {
        let rejected = |interval, drops| {
            let config = super::super::Config {
                auto_priority: Some(AutoPriority { interval, drops }),
                ..super::super::Config::default()
            };
            config.check().unwrap_err().parameter()
        };
        assert_eq!(rejected(Duration::from_millis(9), 2), Some("auto_interval"));
        assert_eq!(rejected(Duration::from_secs(3601), 2), Some("auto_interval"));
        assert_eq!(rejected(Duration::from_secs(1), 0), Some("auto_drops"));
        assert_eq!(rejected(Duration::from_secs(1), 65_536), Some("auto_drops"));
    }
}

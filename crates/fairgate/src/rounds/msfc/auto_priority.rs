//! Priorities by behaviour: a flow that stays within its fair share and seldom triggers CoDel rises, and
//! every other flow sinks. The thesis names priorities by CoDel's drops as future work.
//!
//! CoDel acts on standing queues, which belong to flows that want more than their share. So drops and marks
//! identify bulk transfers, and their absence identifies calls, games and terminals. No marking of packets is
//! needed. If packets are marked, the marking gives the class in which a flow begins.
//!
//! Drops alone are not enough, because priority prevents them. A stream that does not react and sends more
//! than its share has no drops while the link has room. By drops alone it rises to the top, keeps the link
//! there when others come, and has no drops ever after. So each flow also has a *credit*: it grows by the
//! fair share ([`FairShare`]), up to [`BURST`] bytes, and pays for what the flow sends. A flow without credit
//! sends more than its share, wherever it gets it from.
//!
//! The rule, for each flow:
//! * It begins in the class of its first packet's marking, with full credit.
//! * With the `drops`-th drop or mark by CoDel within an `interval` it *sinks* by one class. Without credit
//!   it sinks with each packet.
//! * After an `interval` without either it *rises* by one class.
//! * Hysteresis: each sinking doubles the time until the next rise, up to [`LONGEST`] intervals, and each
//!   rise halves it again. A flow with fewer than `drops` drops stays in its class. So a bulk flow that is
//!   quiet for a while does not rise at once, and a flow that sank by mistake rises soon.
//! * After [`LONGEST`] intervals without a packet its state is reset, because the next packet may belong to
//!   another flow.
//!
//! The ratio between classes is one between flows, as with `flow_aware`. Otherwise flows that sink could
//! gain: where few flows are in the lowest class and many above it, a class's share is more than theirs. So
//! all bulk flows end in the lowest class and share equally, whether they react or not, and a flow above it
//! gets no more than its share for longer than its credit lasts.
//!
//! Defaults: 2 drops, 5 s. A TCP connection that fills its share of a link loses a packet to CoDel every
//! second or two, and on long paths every five or so. A flow below its share loses none to CoDel, because its
//! queue never stands; a burst may cause one drop in 5 s.
//!
//! A flow keeps its queue through all changes and moves with it, so its packets are never reordered. It moves
//! when it is the first of its class's active list, or idle: in constant time. Drops for a limit do not
//! count, because they depend more on the limit than on the flow.
//!
//! Times are ticks of 2^20 ns (1.05 ms) in 32 bits. A flow that was idle for more than 26 days may appear
//! recently active. If the clock goes backwards, nothing changes until it has caught up.

use alloc::boxed::Box;
use core::time::Duration;

use crate::structures::{FairShare, Reading};
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

/// The most bytes that a flow may send above its fair share before it sinks: a frame of a video call or a
/// page's first window, and less than a tenth of a second at a share of 3 Mbit/s.
const BURST: i64 = 1 << 15;

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
    /// The bytes that it may send above its fair share, below 0 for a moment and at most [`BURST`]; and the
    /// reading of its clock up to which they are counted.
    credit: i64,
    reading: Reading,
    drops: u16,
    class: u8,
    /// A rise takes an interval doubled this many times.
    doublings: u8,
}

impl Record {
    /// A flow that begins in `class`.
    const fn new(class: u8, now: u32, reading: Reading) -> Record {
        Record {
            counting_since: now,
            calm_since: now,
            seen: now,
            credit: BURST,
            reading,
            drops: 0,
            class,
            doublings: 0,
        }
    }

    /// Adds the fair share up to now, and continues with the clock of the flow's next state.
    #[inline]
    fn earn(&mut self, share: &FairShare, was_backlogged: bool, is_backlogged: bool) {
        let earned = share.read(was_backlogged).since(self.reading);
        self.credit = BURST.min(self.credit.saturating_add_unsigned(earned));
        self.reading = share.read(is_backlogged);
    }
}

/// What happened when a flow was served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    /// The length of the packet that it sent. `None` if it was empty and left the active list.
    pub(super) length: Option<u32>,
    /// The packets that CoDel dropped or marked.
    pub(super) drops: u64,
    /// The flows in the active lists, this one included.
    pub(super) active: u32,
}

/// The class of a flow without history.
const NO_CLASS: u8 = u8::MAX;

/// The histories of all flows.
#[derive(Debug)]
pub(super) struct Behaviour {
    records: Box<[Record]>,
    share: FairShare,
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
        let new = Record::new(NO_CLASS, 0, Reading::default());
        let mut behaviour = Behaviour {
            records: vec![new; flows as usize].into(),
            share: FairShare::new(),
            interval: 0,
            drops: 0,
            highest: prios - 1,
            rises: 0,
            sinks: 0,
        };
        behaviour.change(config);
        behaviour
    }

    /// Forgets all flows, and what they did.
    #[cold]
    pub(super) fn forget(&mut self) {
        self.records.fill(Record::new(NO_CLASS, 0, Reading::default()));
        self.share = FairShare::new();
        (self.rises, self.sinks) = (0, 0);
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
            *record = Record::new(marked, now, self.share.read(true));
            return marked;
        }
        record.seen = now;
        record.earn(&self.share, false, true);
        self.rise_if_calm(flow, now);
        self.records[flow as usize].class
    }

    /// Updates a flow that was served. Returns its class from now on.
    #[inline]
    pub(super) fn served(&mut self, flow: u32, service: Service, now: Time) -> u8 {
        let now = ticks(now);
        let length = service.length.unwrap_or(0);
        self.share.sent(length, service.active);
        let record = &mut self.records[flow as usize];
        record.seen = now;
        record.earn(&self.share, true, service.length.is_some());
        record.credit -= i64::from(length);
        if record.credit < 0 {
            self.overdrawn(flow, now);
        } else if service.drops > 0 {
            self.dropped(flow, service.drops, now);
        } else {
            self.rise_if_calm(flow, now);
        }
        self.records[flow as usize].class
    }

    /// The flow has sent more than its share and its credit.
    #[cold]
    fn overdrawn(&mut self, flow: u32, now: u32) {
        let record = &mut self.records[flow as usize];
        record.credit = 0;
        record.calm_since = now;
        // In the lowest class a flow gets more than its share if others do not need theirs.
        if record.class > 0 {
            self.sink(flow);
        }
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
            self.sink(flow);
        }
    }

    fn sink(&mut self, flow: u32) {
        let record = &mut self.records[flow as usize];
        record.doublings = (record.doublings + 1).min(MOST_DOUBLINGS);
        self.sinks += u64::from(record.class > 0);
        record.class = record.class.saturating_sub(1);
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

        /// The class after the flow was served at `millis` ms, alone on the link.
        fn at(&mut self, millis: u64, drops: u64) -> u8 {
            self.send(millis, drops, 100, 1)
        }

        fn send(&mut self, millis: u64, drops: u64, length: u32, active: u32) -> u8 {
            let service = Service {
                length: Some(length),
                drops,
                active,
            };
            self.0.served(0, service, Time::from_millis(millis))
        }
    }

    #[test]
    fn a_flow_above_its_share_sinks_without_a_drop_and_does_not_rise() {
        let mut flow = Subject::new();
        // Half of the link's packets are its own, and nine other flows have packets.
        let mut classes = Vec::new();
        for millis in 0..5000 {
            classes.push(flow.send(millis, 0, 1000, 10));
            flow.0.share.sent(1000, 10);
        }
        // It exceeds its share by 800 bytes each time, and its credit is 32 KiB.
        let sunk = classes.iter().position(|class| *class == 0).expect("it sinks");
        assert!((40..43).contains(&sunk), "after {sunk} packets");
        assert!(classes[sunk..].iter().all(|class| *class == 0));
        assert_eq!((flow.0.rises, flow.0.sinks), (0, 1));
    }

    #[test]
    fn a_burst_within_the_credit_does_not_sink_and_idle_time_restores_the_credit() {
        let mut flow = Subject::new();
        let idle = |flow: &mut Subject, millis| {
            let service = Service {
                length: None,
                drops: 0,
                active: 10,
            };
            let _ = flow.0.served(0, service, Time::from_millis(millis));
        };
        for burst in 0..5 {
            let start = burst * 100;
            for _ in 0..30 {
                assert_eq!(flow.send(start, 0, 1000, 10), 1, "burst {burst}");
            }
            idle(&mut flow, start);
            // Nine others have packets, so a tenth of what the link sends is due to this flow: 30 packets.
            (0..300).for_each(|_| flow.0.share.sent(1000, 9));
            assert_eq!(flow.0.class_of_arrival(0, 1, Time::from_millis(start + 99)), 1);
        }
        for _ in 0..60 {
            let _ = flow.send(500, 0, 1000, 10);
        }
        assert_eq!(flow.0.class(0), 0, "a burst of twice the credit");
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

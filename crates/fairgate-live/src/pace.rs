//! When the loop of the data plane sleeps: few wake-ups under load, no freeze, room for others.
//!
//! The thread runs before all ordinary ones (SCHED_FIFO), so that nothing on the machine makes a packet late. Left to
//! itself, such a thread does harm in three ways:
//!
//! * **It freezes.** A real-time thread that is busy for 95 % of a second is taken off its core for the rest of it
//!   (`sched_rt_runtime_us`, sched(7)): 50 ms in which nothing is forwarded. The loop rests of its own accord, for a
//!   fixed share of each millisecond ([`Pace::SHARE`]), and so never gets there.
//! * **It starves its core.** What runs there gets that rest, and not only what the kernel keeps for it.
//! * **It wakes for every packet.** Setting the timer alone took 42 % of the time at 500 Mb/s. After a few wake-ups in one
//!   millisecond ([`FREE_WAKE_UPS`]) the loop rests for [`REST`] before it looks again, and then finds several packets.
//!   Packets of a slow line, or of an idle one, never meet this. Departures are not late by it, because packets that
//!   are due within [`AHEAD`] leave at once.
//!
//! Why not an ordinary thread of high priority: the scheduler gives it its share of the core, but may let others finish
//! their slice first, which takes milliseconds. Why not SCHED_DEADLINE: it is throttled at its own
//! budget, and needs one that is right for every load.

use fairgate::Time;

/// The window in which the loop rests for its share, ns.
const WINDOW: u64 = 1_000_000;

/// Wake-ups of a window after which the loop rests before it looks again.
const FREE_WAKE_UPS: u32 = 4;

/// How long it rests then, ns.
const REST: u64 = 100_000;

/// Packets that are due within this time leave with what leaves now, ns. The rate stays exact, because the tree's
/// own time goes on with each of them; only the spacing is coarser. A line of 1 Gb/s sends 8 full-sized frames in it.
pub(crate) const AHEAD: u64 = REST;

/// A wake-up this much after its time counts as late, ns.
const LATE: u64 = 1_000_000;

/// A loop that stands still for longer than this while it has work counts as stalled, ns.
const STALL: u64 = 5_000_000;

/// What the loop should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Go on: there is work.
    Work,
    /// Sleep until something happens.
    Wait,
    /// Sleep until this time, whatever happens.
    Rest(Time),
}

/// How punctual the loop was, since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Punctuality {
    /// Wake-ups.
    pub(crate) wake_ups: u64,
    /// Wake-ups by the clock that came over [`LATE`] after their time.
    pub(crate) late: u64,
    /// The latest of all, ns after its time.
    pub(crate) latest: u64,
    /// How often the loop had work and stood still for over [`STALL`]: the processor was taken away, or a status took
    /// so long to write.
    pub(crate) stalls: u64,
    /// The longest such time, ns.
    pub(crate) longest_stall: u64,
}

/// The loop's sleep.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The share of a window to rest for, in parts of 1,024.
    share: u64,
    /// Whether to rest after many wake-ups.
    moderate: bool,
    window: Time,
    /// Slept in this window, ns.
    slept: u64,
    /// Woken in this window.
    woken: u32,
    /// When the loop last began to run, or was last known to.
    running_since: Time,
    pub(crate) punctuality: Punctuality,
}

impl Pace {
    /// The least share of a window to rest for, in parts of 1,024: 6 %. The kernel steps in below 5 %.
    pub(crate) const SHARE: u64 = 62;

    /// A loop that starts at `now`. `allowed` is the share of a core that the kernel leaves to real-time threads, in
    /// parts per million. With `moderate`, the loop rests after many wake-ups.
    pub(crate) fn new(now: Time, allowed: u64, moderate: bool) -> Pace {
        // One part in a hundred below what is allowed.
        let kept = 1024 - 1024 * allowed.min(1_000_000) / 1_000_000 + 11;
        Pace {
            share: kept.clamp(Pace::SHARE, 768),
            moderate,
            window: now,
            slept: 0,
            woken: 0,
            running_since: now,
            punctuality: Punctuality::default(),
        }
    }

    /// After a turn that ended at `now`: `busy` if there is more to do at once.
    #[inline]
    pub(crate) fn next(&mut self, now: Time, busy: bool) -> Next {
        let ran = now.nanos_since(self.running_since);
        if ran > STALL {
            self.punctuality.stalls += 1;
            self.punctuality.longest_stall = self.punctuality.longest_stall.max(ran);
        }
        self.running_since = now;
        let window = now.nanos_since(self.window);
        if window >= WINDOW {
            // A turn may end long after the window did; the window is as long as it was. To rest for `owed` makes it
            // longer by that.
            let owed = ((window * self.share) >> 10).saturating_sub(self.slept);
            let owed = owed + ((owed * self.share) >> 9);
            self.window = now;
            self.slept = 0;
            self.woken = 0;
            // Also without work at this moment: a loop that sleeps often and shortly owes as much.
            if owed > 0 {
                // It belongs to the window that is over: the new one owes its own.
                self.window = now + owed;
                return Next::Rest(now + owed);
            }
        }
        if busy {
            Next::Work
        } else if self.moderate && self.woken >= FREE_WAKE_UPS {
            Next::Rest(now + REST)
        } else {
            Next::Wait
        }
    }

    /// After a sleep from `since` to `now` that was to end at `due`, if the clock ended it.
    #[inline]
    pub(crate) fn woke(&mut self, since: Time, now: Time, due: Option<Time>) {
        let window = self.window.max(since);
        self.slept += now.nanos_since(window);
        self.woken += 1;
        self.punctuality.wake_ups += 1;
        self.running_since = now;
        if let Some(due) = due {
            let late = now.nanos_since(due);
            self.punctuality.latest = self.punctuality.latest.max(late);
            self.punctuality.late += u64::from(late > LATE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: u64 = 950_000;

    fn pace() -> Pace {
        Pace::new(Time::ZERO, MOST, true)
    }

    #[test]
    fn a_loop_with_little_to_do_waits_for_what_comes() {
        let mut pace = pace();
        for packet in 1..1000u64 {
            let now = Time::from_micros(packet * 300);
            pace.woke(Time::from_micros(packet * 300 - 290), now, None);
            assert_eq!(pace.next(now, false), Next::Wait);
        }
    }

    #[test]
    fn many_wake_ups_become_fewer() {
        let mut pace = pace();
        let (mut now, mut rests) = (Time::ZERO, 0);
        // A packet every 20 us, and 2 us to forward it, for 10 ms.
        while now < Time::from_millis(10) {
            match pace.next(now, false) {
                Next::Work => unreachable!("nothing is left to do"),
                Next::Wait => {
                    pace.woke(now, now + 18_000, None);
                    now += 20_000;
                }
                Next::Rest(until) => {
                    pace.woke(now, until, Some(until));
                    now = until + 10_000;
                    rests += 1;
                }
            }
        }
        assert!(rests >= 70, "{rests} rests");
        assert!(pace.punctuality.wake_ups < 150, "{:?}", pace.punctuality);
    }

    /// Exact departures switch the moderation off, and leave sleeps of a microsecond.
    #[test]
    fn many_short_sleeps_are_no_rest() {
        let mut pace = Pace::new(Time::ZERO, MOST, false);
        let (mut now, mut slept) = (Time::ZERO, 0);
        while now < Time::from_millis(100) {
            now += 50_000;
            let until = match pace.next(now, false) {
                Next::Work => unreachable!("nothing is left to do"),
                Next::Wait => now + 1_000,
                Next::Rest(until) => until,
            };
            pace.woke(now, until, None);
            slept += until.nanos_since(now);
            now = until;
        }
        assert!(slept >= 5_500_000, "{slept} ns of 100 ms");
    }

    #[test]
    fn what_comes_late_is_counted() {
        let mut pace = pace();
        pace.woke(Time::ZERO, Time::from_millis(3), Some(Time::from_millis(2)));
        assert_eq!(pace.punctuality.late, 0);
        pace.woke(Time::ZERO, Time::from_millis(9), Some(Time::from_millis(6)));
        assert_eq!((pace.punctuality.late, pace.punctuality.latest), (1, 3_000_000));
        pace.next(Time::from_millis(60), true);
        assert_eq!(
            (pace.punctuality.stalls, pace.punctuality.longest_stall),
            (1, 51_000_000)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// However long its turns are, a loop that always has work never takes more of the core than it is allowed,
        /// over any 100 ms.
        #[test]
        fn a_busy_loop_leaves_the_core_its_share(
            turns in proptest::collection::vec(1_000u64..900_000, 100..2000),
            allowed in prop_oneof![Just(MOST), Just(1_000_000), 500_000u64..1_000_000],
        ) {
            let mut pace = Pace::new(Time::ZERO, allowed, true);
            let (mut now, mut spans) = (Time::ZERO, Vec::new());
            for turn in turns.into_iter().cycle() {
                let begin = now;
                now += turn;
                if let Next::Rest(until) = pace.next(now, true) {
                    pace.woke(now, until, Some(until));
                    spans.push((begin, until, until.nanos_since(now)));
                    now = until;
                } else {
                    spans.push((begin, now, 0));
                }
                if now > Time::from_millis(400) {
                    break;
                }
            }
            for (first, (begin, ..)) in spans.iter().enumerate() {
                let within = spans[first..].iter().take_while(|(_, end, _)| end.nanos_since(*begin) <= 100_000_000);
                let (mut rested, mut end) = (0, *begin);
                for (_, until, rest) in within {
                    rested += rest;
                    end = *until;
                }
                if end.nanos_since(*begin) > 98_000_000 {
                    let share = 1.0 - rested as f64 / end.nanos_since(*begin) as f64;
                    prop_assert!(share <= (allowed as f64 / 1e6).min(0.95), "{share} of {allowed}");
                }
            }
        }
    }
}

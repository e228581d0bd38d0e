//! Decides when the loop of the data plane sleeps.
//!
//! The thread has a higher priority than all ordinary threads (SCHED_FIFO), so that other load does not delay
//! packets. Without further measures, such a thread causes three problems:
//!
//! * **It freezes.** The kernel takes a real-time thread that is busy for 95 % of a second off its core for
//!   the rest of that second (`sched_rt_runtime_us`, sched(7)). Nothing is forwarded for 50 ms. The loop
//!   therefore sleeps voluntarily for a fixed share of each millisecond ([`Pace::SHARE`]), and never reaches
//!   that limit.
//! * **It starves other threads on its core.** They get the time in which the loop sleeps, which is more than
//!   the kernel reserves for them.
//! * **It wakes up for every packet.** Setting the timer alone took 42 % of the time at 500 Mb/s. After a few
//!   wake-ups in one millisecond ([`FREE_WAKE_UPS`]), the loop sleeps for [`REST`] before it checks again,
//!   and then handles several packets. A slow or idle link never reaches that number of wake-ups. If packets
//!   wait for a shaper, it sleeps for [`LONG_REST`]: they wait anyway. Departures are not late, because
//!   packets that are due before the loop looks again are sent at once ([`Pace::ahead`]).
//!
//! Why not an ordinary thread of high priority: the scheduler gives it its share of the core, but may let
//! other threads finish their time slice first, which takes milliseconds. Why not SCHED_DEADLINE: it is
//! throttled at its own budget, and no budget suits every load.

use fairgate::Time;

/// The loop sleeps for its share of each window of this length, ns.
const WINDOW: u64 = 1_000_000;

/// After this many wake-ups in a window, the loop sleeps before it checks again.
const FREE_WAKE_UPS: u32 = 4;

/// How long it then sleeps, ns.
const REST: u64 = 100_000;

/// How long it then sleeps if packets wait for a shaper, ns. A link of 100 Mb/s sends four full-sized frames
/// in this time, and needs less than half of the processor time that it takes with [`REST`]
/// (docs/performance.md).
const LONG_REST: u64 = 500_000;

/// A wake-up that is later than this counts as late, ns.
const LATE: u64 = 1_000_000;

/// If the loop has work and makes no progress for longer than this, it counts as stalled, ns.
const STALL: u64 = 5_000_000;

/// What the loop should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Continue: there is work.
    Work,
    /// Sleep until an event.
    Wait,
    /// Sleep until this time and ignore events.
    Rest(Time),
}

/// How punctual the loop has been since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Punctuality {
    /// The number of wake-ups.
    pub(crate) wake_ups: u64,
    /// The number of timed wake-ups that were more than [`LATE`] late.
    pub(crate) late: u64,
    /// The largest delay of a timed wake-up, ns.
    pub(crate) latest: u64,
    /// How often the loop had work and made no progress for longer than [`STALL`], because it lost the
    /// processor.
    pub(crate) stalls: u64,
    /// The longest stall, ns.
    pub(crate) longest_stall: u64,
}

/// Decides when and how long the loop sleeps.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The share of a window to sleep for, in units of 1/1024.
    share: u64,
    /// Whether to sleep after many wake-ups.
    moderate: bool,
    window: Time,
    /// The time slept in this window, ns.
    slept: u64,
    /// The number of wake-ups in this window.
    woken: u32,
    /// How long the next sleep after many wake-ups is, ns.
    rest: u64,
    /// When the loop began to run, or was last known to run.
    running_since: Time,
    pub(crate) punctuality: Punctuality,
}

impl Pace {
    /// The smallest share of a window to sleep for, in units of 1/1024: 6 %. The kernel interferes below 5 %.
    pub(crate) const SHARE: u64 = 62;

    /// Creates the state of a loop that starts at `now`. `allowed` is the share of a core that the kernel
    /// gives to real-time threads, in parts per million. With `moderate`, the loop sleeps after many
    /// wake-ups.
    pub(crate) fn new(now: Time, allowed: u64, moderate: bool) -> Pace {
        // About one percent less than what is allowed.
        let kept = 1024 - 1024 * allowed.min(1_000_000) / 1_000_000 + 11;
        Pace {
            share: kept.clamp(Pace::SHARE, 768),
            moderate,
            window: now,
            slept: 0,
            woken: 0,
            rest: REST,
            running_since: now,
            punctuality: Punctuality::default(),
        }
    }

    /// Begins to run at `now`. What came before, such as the start of other workers, is no stall.
    pub(crate) fn begin(&mut self, now: Time) {
        self.running_since = now;
    }

    /// Returns how long before they are due packets may leave, ns: as long as the loop may sleep until it
    /// looks again. The rate stays exact, because each packet advances the tree's own time. Only the spacing
    /// becomes coarser.
    pub(crate) fn ahead(&self) -> u64 {
        if self.moderate { self.rest } else { 0 }
    }

    /// Decides what to do after a turn that ended at `now`. `busy` says that there is more work now, and
    /// `is_paced` that packets wait for a shaper.
    #[inline]
    pub(crate) fn next(&mut self, now: Time, busy: bool, is_paced: bool) -> NextStep {
        let ran = now.nanos_since(self.running_since);
        if ran > STALL {
            self.punctuality.stalls += 1;
            self.punctuality.longest_stall = self.punctuality.longest_stall.max(ran);
        }
        self.running_since = now;
        let window = now.nanos_since(self.window);
        if window >= WINDOW {
            // A turn may end long after the nominal end of the window. The window then counts with its real
            // length. Sleeping for `owed` makes it longer by `owed`.
            let owed = ((window * self.share) >> 10).saturating_sub(self.slept);
            let owed = owed + ((owed * self.share) >> 9);
            // With long rests there are few wake-ups. They end when no packet waits for a shaper any more.
            if !is_paced {
                self.rest = REST;
            }
            self.window = now;
            self.slept = 0;
            self.woken = 0;
            // This also holds if there is no work now: a loop with many short sleeps owes the same share.
            if owed > 0 {
                // This sleep belongs to the old window. The new window starts after it.
                self.window = now + owed;
                return NextStep::Rest(now + owed);
            }
        }
        if busy {
            NextStep::Work
        } else if self.moderate && self.woken >= FREE_WAKE_UPS {
            // Packets that are due within this rest have just left. A longer one is for the next turn.
            let rest = std::mem::replace(&mut self.rest, if is_paced { LONG_REST } else { REST });
            NextStep::Rest(now + rest)
        } else {
            NextStep::Wait
        }
    }

    /// Records a sleep from `since` to `now`. `due` is the time at which the clock was to end it, if the
    /// clock ended it.
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
    fn a_loop_with_little_work_waits_for_events() {
        let mut pace = pace();
        for packet in 1..1000u64 {
            let now = Time::from_micros(packet * 300);
            pace.woke(Time::from_micros(packet * 300 - 290), now, None);
            assert_eq!(pace.next(now, false, false), NextStep::Wait);
        }
    }

    #[test]
    fn the_time_before_the_loop_begins_is_no_stall() {
        let mut pace = pace();
        let begin = Time::from_millis(200);
        pace.begin(begin);
        pace.next(begin + 1_000_000, true, false);
        assert_eq!(pace.punctuality.stalls, 0);
        pace.next(begin + 9_000_000, true, false);
        assert_eq!(pace.punctuality.stalls, 1);
    }

    #[test]
    fn many_wake_ups_are_reduced() {
        let mut pace = pace();
        let (mut now, mut rests) = (Time::ZERO, 0);
        // A packet every 20 us, and 2 us to forward it, for 10 ms.
        while now < Time::from_millis(10) {
            match pace.next(now, false, false) {
                NextStep::Work => unreachable!("nothing is left to do"),
                NextStep::Wait => {
                    pace.woke(now, now + 18_000, None);
                    now += 20_000;
                }
                NextStep::Rest(until) => {
                    pace.woke(now, until, Some(until));
                    now = until + 10_000;
                    rests += 1;
                }
            }
        }
        assert!(rests >= 70, "{rests} rests");
        assert!(pace.punctuality.wake_ups < 150, "{:?}", pace.punctuality);
    }

    /// Returns how often the loop wakes up in 100 ms, if a packet is due every 120 us. No packet is late.
    fn wake_ups_of_a_shaper(is_paced: bool) -> u64 {
        let mut pace = pace();
        let (mut now, mut due) = (Time::ZERO, Time::ZERO);
        while now < Time::from_millis(100) {
            assert!(
                due.nanos_since(now) > 0 || now.nanos_since(due) < 1_000,
                "{due:?} at {now:?}"
            );
            while due <= now + pace.ahead() {
                due += 120_000;
            }
            let (until, timed) = match pace.next(now, false, is_paced) {
                NextStep::Work => unreachable!("nothing is left to do"),
                NextStep::Wait => (due, None),
                NextStep::Rest(until) => (until, Some(until)),
            };
            pace.woke(now, until, timed);
            now = until;
        }
        pace.punctuality.wake_ups
    }

    #[test]
    fn a_loop_whose_packets_wait_for_a_shaper_rests_longer() {
        let (short, long) = (wake_ups_of_a_shaper(false), wake_ups_of_a_shaper(true));
        assert!((600..1_000).contains(&short), "{short}");
        assert!((150..250).contains(&long), "{long}");
    }

    /// With exact departures the loop is not moderated, and has sleeps of one microsecond.
    #[test]
    fn many_short_sleeps_do_not_replace_the_rest() {
        let mut pace = Pace::new(Time::ZERO, MOST, false);
        let (mut now, mut slept) = (Time::ZERO, 0);
        while now < Time::from_millis(100) {
            now += 50_000;
            let until = match pace.next(now, false, false) {
                NextStep::Work => unreachable!("nothing is left to do"),
                NextStep::Wait => now + 1_000,
                NextStep::Rest(until) => until,
            };
            pace.woke(now, until, None);
            slept += until.nanos_since(now);
            now = until;
        }
        assert!(slept >= 5_500_000, "{slept} ns of 100 ms");
    }

    #[test]
    fn late_wake_ups_and_stalls_are_counted() {
        let mut pace = pace();
        pace.woke(Time::ZERO, Time::from_millis(3), Some(Time::from_millis(2)));
        assert_eq!(pace.punctuality.late, 0);
        pace.woke(Time::ZERO, Time::from_millis(9), Some(Time::from_millis(6)));
        assert_eq!((pace.punctuality.late, pace.punctuality.latest), (1, 3_000_000));
        pace.next(Time::from_millis(60), true, false);
        assert_eq!(
            (pace.punctuality.stalls, pace.punctuality.longest_stall),
            (1, 51_000_000)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A loop that always has work never takes more of the core than allowed over any 100 ms, however
        /// long its turns are.
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
                if let NextStep::Rest(until) = pace.next(now, true, false) {
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
                let within = spans[first..]
                    .iter()
                    .take_while(|(_, end, _)| end.nanos_since(*begin) <= 100_000_000);
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

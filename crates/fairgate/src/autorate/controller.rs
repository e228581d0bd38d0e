//! Sets the rate of one direction.
//!
//! At each review, by what the probes say and by the load, which is the achieved rate as a share of the rate:
//!
//! * **Congested**: the rate falls, unless it has just fallen or the queue drains already. A line before the
//!   shaper (of received packets) lets through what its capacity is, so the achieved rate is proof of it. A
//!   line behind the shaper gets what the shaper sends. How much too much that is, the delay says, and what
//!   the line has sent between two probes: the distance at which they come through. (cake-autorate goes by
//!   the delay alone.)
//! * **Draining**: at the new rate alone, which is close to the capacity, the queue that is there would stay
//!   for seconds. So the shaper gets a small part of it for as long as the queue takes to drain, and then the
//!   whole at once. The line is busy in the meantime, so this costs nothing. Probes that come back meanwhile
//!   correct what was known of queue and capacity. (cake-autorate waits.)
//! * **High load, and not congested**: the rate rises, slower if the delay comes close to the threshold, and
//!   faster when it has risen for some reviews: then the capacity is elsewhere.
//! * **Low load**: the rate goes back to the base.
//!
//! The rate rises only if the load is high, so it never gets far above what is used: it cannot wind up while
//! nobody asks for the capacity.
//!
//! A delay is that of a round trip, and the congestion may be in the other direction. So a direction that is
//! idle is left alone, and so is one that had no high load lately while another one had more: it carries the
//! acknowledgements of the other one, which is lowered. If none had more, or if that does not help for long,
//! it is lowered only so far that its load is high. Then it is known whether it is to blame. (cake-autorate
//! lowers both.)

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::autorate::delays::{Passage, Seen, part_of, share};
use crate::autorate::settings::{Bounds, Settings};
use crate::{Rate, Time};

/// For how many refractory times a direction with high load may be to blame for congestion.
const BLAMED: u32 = 6;
/// For how many refractory times of congestion only the direction with the greater load is lowered.
const SPARED: u32 = 20;
/// The number of reviews after which the rate rises faster.
const STEADY: u32 = 3;
/// By how much faster it then rises with each further review, as a part of `rise`, and at most.
const FASTER: f64 = 0.25;
const FASTEST: f64 = 1.5;
/// Of how many reviews it is remembered how much was sent before them.
const REVIEWS: usize = 128;
/// The longest time to drain a queue. Afterwards it is seen whether one is left.
const LONGEST_DRAIN: Duration = Duration::from_millis(600);

/// What the controller does with the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The load is low: the rate returns to the base.
    #[default]
    Low,
    /// The load is high: the rate rises.
    High,
    /// The line is congested: the rate falls.
    Congested,
    /// The rate has fallen, and the queue drains.
    Draining,
    /// No probe was answered for long: the rate is the base.
    Silent,
}

impl Phase {
    /// All phases.
    pub const ALL: [Phase; 5] = [
        Phase::Low,
        Phase::High,
        Phase::Congested,
        Phase::Draining,
        Phase::Silent,
    ];

    /// Returns its name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Low => "low",
            Phase::High => "high",
            Phase::Congested => "congested",
            Phase::Draining => "draining",
            Phase::Silent => "silent",
        }
    }
}

/// Sets the rate of one direction.
#[derive(Clone, Debug)]
pub struct Controller {
    settings: Settings,
    bounds: Bounds,
    /// Bit/s.
    rate: f64,
    phase: Phase,
    reviewed: Time,
    /// The bytes and the length of the interval before, ns.
    before: (u64, u64),
    /// Bit/s over the last two intervals. A single one may have missed a burst.
    achieved: f64,
    /// The bytes sent until each of the last reviews, and the start.
    sent: VecDeque<(Time, u64)>,
    /// When the rate has fallen.
    cut: Option<Time>,
    /// Until when the queue of the line drains.
    drained: Option<Time>,
    /// Whether probes told the capacity when the rate fell, so that they tell it in the drain, too.
    is_told: bool,
    /// Since when the line is congested.
    congested: Option<Time>,
    /// The number of reviews in a row in which the rate rose.
    rises: u32,
    /// When the load was high.
    loaded: Option<Time>,
    /// When the load was greatest of late, and how great.
    busiest: (Time, f64),
    /// The rate that was ordered last.
    ordered: Option<Rate>,
}

impl Controller {
    /// Returns the state at the start, `now`: the rate is the base.
    pub fn new(settings: &Settings, bounds: Bounds, now: Time) -> Controller {
        Controller {
            settings: *settings,
            bounds,
            rate: bounds.base.bits_per_second() as f64,
            phase: Phase::Low,
            reviewed: now,
            before: (0, 0),
            achieved: 0.0,
            sent: VecDeque::from([(now, 0)]),
            cut: None,
            drained: None,
            is_told: false,
            congested: None,
            rises: 0,
            loaded: None,
            busiest: (now, 0.0),
            ordered: None,
        }
    }

    /// Returns the rate. While the queue of the line drains, it is a part of the one that follows.
    pub fn rate(&self) -> Rate {
        let left = match self.is_draining(self.reviewed) {
            true => share(self.settings.drain.parts()),
            false => 1.0,
        };
        Rate::from_bits_per_second(rounded(self.rate * left))
            .unwrap_or(self.bounds.min)
            .clamp(self.bounds.min, self.bounds.max)
    }

    /// Returns the rate if the shaper should get it now: at the start, and when it differs by a hundredth
    /// from the rate that was returned last. A change of a tree costs more than such a difference is worth.
    pub fn order(&mut self) -> Option<Rate> {
        let rate = self.rate();
        let is_near = |ordered: Rate| {
            let [old, new] = [ordered, rate].map(|rate| u128::from(rate.bits_per_second()));
            old == new || old.abs_diff(new) * 100 < old && rate != self.bounds.min && rate != self.bounds.max
        };
        if self.ordered.is_some_and(is_near) {
            return None;
        }
        self.ordered = Some(rate);
        Some(rate)
    }

    /// Notes that the shaper did not get the rate that was ordered last.
    pub fn refused(&mut self) {
        self.ordered = None;
    }

    /// Returns what the last review has decided.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the rate of the bytes that were sent lately, bit/s.
    pub fn achieved(&self) -> u64 {
        self.achieved as u64
    }

    /// Returns the greatest load of late, as a share of the rate: of twenty refractory times.
    pub fn load(&self) -> f64 {
        match self.is_recent(Some(self.busiest.0), self.reviewed, SPARED) {
            true => self.busiest.1,
            false => 0.0,
        }
    }

    /// Reviews the rate. `bytes` were sent since the last review, counted as the shaper counts them.
    /// `others` is the greatest [load](Controller::load) of another direction of the same line, 0 if its rate
    /// is fixed. Returns the new rate.
    pub fn review(&mut self, now: Time, bytes: u64, seen: &Seen, others: f64) -> Rate {
        let passed = now.nanos_since(self.reviewed);
        if passed == 0 {
            return self.rate();
        }
        self.reviewed = now;
        if self.sent.len() == REVIEWS {
            self.sent.pop_front();
        }
        let total = self.sent.back().map_or(0, |(_, total)| *total);
        self.sent.push_back((now, total.saturating_add(bytes)));
        let (more, longer) = core::mem::replace(&mut self.before, (bytes, passed));
        self.achieved = (bytes + more) as f64 * 8e9 / (passed + longer) as f64;
        let load = self.achieved / self.rate;
        if load >= share(self.settings.high_load.parts()) {
            self.loaded = Some(now);
        }
        if load >= self.load() {
            self.busiest = (now, load);
        }
        self.congested = match seen.is_congested {
            true => self.congested.or(Some(now)),
            false => None,
        };
        self.phase = self.decide(now, load, seen, others);
        self.rises = match self.phase {
            Phase::High => self.rises.saturating_add(1),
            _ => 0,
        };
        match self.phase {
            Phase::Silent => self.rate = self.bounds.base.bits_per_second() as f64,
            Phase::Congested => self.fall(now, load, seen, others),
            Phase::High => self.rise(now, passed, seen.excess),
            Phase::Low => self.decay(passed),
            Phase::Draining => self.correct(now, seen),
        }
        let [min, max] = [self.bounds.min, self.bounds.max].map(|rate| rate.bits_per_second() as f64);
        self.rate = self.rate.clamp(min, max);
        self.rate()
    }

    fn decide(&self, now: Time, load: f64, seen: &Seen, others: f64) -> Phase {
        let settings = &self.settings;
        let is_spared = others > load && !self.is_blamed() && self.is_recent(self.congested, now, SPARED);
        // What the shaper sends in a drain says nothing of the load, which is that of two intervals.
        let is_over = |until: Time| u128::from(now.nanos_since(until)) > 2 * settings.interval.as_nanos();
        if seen.is_silent {
            Phase::Silent
        } else if self.is_draining(now) {
            Phase::Draining
        } else if seen.is_congested && load > share(settings.idle_load.parts()) && !is_spared {
            let has_drained = self.drained.is_none_or(is_over);
            match seen.is_draining || !has_drained || self.is_recent(self.cut, now, 1) {
                true => Phase::Draining,
                false => Phase::Congested,
            }
        } else if load >= share(settings.high_load.parts()) {
            Phase::High
        } else {
            Phase::Low
        }
    }

    /// Returns whether `event` is less than this number of refractory times ago.
    fn is_recent(&self, event: Option<Time>, now: Time, times: u32) -> bool {
        let refractory = (self.settings.refractory * times).as_nanos();
        event.is_some_and(|event| u128::from(now.nanos_since(event)) < refractory)
    }

    /// Returns whether the load was high so lately that this direction is to blame.
    fn is_blamed(&self) -> bool {
        self.is_recent(self.loaded, self.reviewed, BLAMED)
    }

    /// Returns whether the queue of the line drains.
    fn is_draining(&self, now: Time) -> bool {
        self.drained.is_some_and(|until| until > now)
    }

    fn fall(&mut self, now: Time, load: f64, seen: &Seen, others: f64) {
        let settings = &self.settings;
        let [least, most, keep, high] = [
            settings.least_cut,
            settings.most_cut,
            settings.keep,
            settings.high_load,
        ]
        .map(|part| share(part.parts()));
        let severity = between(seen.excess, settings.threshold, settings.severe);
        let by_delay = self.rate * (1.0 - least - (most - least) * severity);
        self.cut = Some(now);
        self.is_told = false;
        self.rate = if !self.is_blamed() {
            by_delay.max(self.achieved / high).min(self.rate)
        } else if load < high {
            // The line may have become slower within the last two intervals.
            let (bytes, passed) = self.before;
            let last = bytes as f64 * 8e9 / passed as f64;
            by_delay.min(self.achieved.min(last) * keep)
        } else if load >= others
            && let Some(capacity) = seen.passage.and_then(|passage| self.passed(&passage))
        {
            self.is_told = true;
            by_delay.min(capacity * keep)
        } else {
            by_delay
        };
        let drains = self.is_blamed() && share(settings.drain.parts()) < 1.0;
        self.drained = drains.then(|| now + self.draining(seen));
    }

    /// Corrects a drain by what probes have told since it began. When the rate fell, the first ones that are
    /// late were still on their way: it was not known yet how long the queue is, and how slow the line.
    fn correct(&mut self, now: Time, seen: &Seen) {
        let (Some(cut), Some(drained), Some(passage)) = (self.cut, self.drained, &seen.passage) else {
            return;
        };
        if drained <= now {
            return;
        }
        // So long was the queue when the probe was sent, and no shorter when the rate fell.
        let since = cut.max(passage.to);
        self.drained = Some(
            drained
                .max(since + self.draining(seen))
                .min(cut + LONGEST_DRAIN.as_nanos() as u64),
        );
        if self.is_told
            && let Some(capacity) = self.passed(passage)
        {
            self.rate = self.rate.min(capacity * share(self.settings.keep.parts()));
        }
    }

    /// Returns how long the queue takes to drain, ns: the line sends what it has at about the new rate, and
    /// gets `drain` of it.
    fn draining(&self, seen: &Seen) -> u64 {
        let left = share(self.settings.drain.parts());
        (seen.queue / (1.0 - left)).min(LONGEST_DRAIN.as_nanos() as f64) as u64
    }

    /// Returns at which rate the line has sent what was sent between two probes, bit/s: its capacity, if it
    /// was busy. `None` if that is too long ago.
    fn passed(&self, passage: &Passage) -> Option<f64> {
        let bytes = self.sent_until(passage.to)? - self.sent_until(passage.from)?;
        Some(bytes * 8e9 / passage.took as f64)
    }

    /// Returns the bytes sent until `then`, as if they were sent at a constant rate between two reviews.
    fn sent_until(&self, then: Time) -> Option<f64> {
        let after = self.sent.iter().position(|(review, _)| *review >= then)?;
        let (end, until) = self.sent[after];
        let (begin, before) = match after.checked_sub(1) {
            Some(place) => self.sent[place],
            None if end == then => (end, until),
            None => return None,
        };
        let part = match end.nanos_since(begin) {
            0 => 1.0,
            length => then.nanos_since(begin) as f64 / length as f64,
        };
        Some(before as f64 + (until - before) as f64 * part)
    }

    fn rise(&mut self, now: Time, passed: u64, excess: f64) {
        if self.is_recent(self.cut, now, 1) {
            return;
        }
        let settings = &self.settings;
        let room = 1.0 - between(excess, settings.calm, settings.threshold);
        // A review that comes late makes up for those that were left out, but not for more than two.
        let intervals = (passed as f64 / settings.interval.as_nanos() as f64).min(2.0);
        let faster = (f64::from(self.rises.saturating_sub(STEADY)) * FASTER).min(FASTEST - 1.0);
        self.rate *= 1.0 + share(settings.rise.parts()) * room * intervals * (1.0 + faster);
    }

    fn decay(&mut self, passed: u64) {
        let base = self.bounds.base.bits_per_second() as f64;
        self.rate += (base - self.rate) * part_of(passed, self.settings.decay);
    }
}

/// Rounds a number from 0 on to the nearest integer, halves up. `f64::round` needs the standard library.
fn rounded(number: f64) -> u64 {
    let below = number as u64;
    below + u64::from(number - below as f64 >= 0.5)
}

/// Returns where a delay in nanoseconds is between two others: 0 up to the first, 1 from the second on.
fn between(nanos: f64, low: Duration, high: Duration) -> f64 {
    let [low, high] = [low, high].map(|delay| delay.as_nanos() as f64);
    ((nanos - low) / (high - low)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autorate::delays::Delays;
    use proptest::prelude::*;

    const MBIT: f64 = 1e6;

    fn bounds(min: u64, base: u64, max: u64) -> Bounds {
        Bounds {
            min: Rate::mbit(min),
            base: Rate::mbit(base),
            max: Rate::mbit(max),
        }
    }

    /// With these reviews are 100 ms apart in the tests below.
    fn slow() -> Settings {
        Settings {
            interval: Duration::from_millis(100),
            refractory: Duration::from_millis(300),
            ..Settings::default()
        }
    }

    fn calm() -> Seen {
        Seen {
            is_congested: false,
            excess: 0.0,
            queue: 0.0,
            passage: None,
            is_draining: false,
            is_silent: false,
        }
    }

    /// Where the shaper is.
    #[derive(Clone, Copy, Debug)]
    enum Place {
        /// Behind the line, as for received packets: it sees what comes through.
        Behind,
        /// Before the line, as for sent packets: the queue of the modem takes what it sends.
        Before,
    }

    /// A line as a fluid: what is sent too much waits in a queue of at most 500 ms.
    struct Line {
        place: Place,
        /// Bits that wait.
        queue: f64,
        delays: Delays,
        controller: Controller,
        now: u64,
        number: u64,
        answers: Vec<(u64, u64)>,
        longest: f64,
        /// Bits that have come through, and how many of them had at the last review.
        through: f64,
        reviewed: f64,
    }

    impl Line {
        fn new(place: Place, bounds: Bounds) -> Line {
            let settings = Settings::default();
            Line {
                place,
                queue: 0.0,
                delays: Delays::new(&settings, 1, Time::ZERO),
                controller: Controller::new(&settings, bounds, Time::ZERO),
                now: 0,
                number: 0,
                answers: Vec::new(),
                longest: 0.0,
                through: 0.0,
                reviewed: 0.0,
            }
        }

        /// Lets 100 ms pass with this capacity and demand, bit/s. Returns what came through, bit/s.
        fn interval(&mut self, capacity: f64, demand: f64) -> f64 {
            let before = self.through;
            for _ in 0..100 {
                let rate = self.controller.rate().bits_per_second() as f64;
                // Senders behind a shaper that drops adapt to its rate with a little excess.
                let sent = match self.place {
                    Place::Before => demand.min(rate),
                    Place::Behind => demand.min(1.02 * rate),
                };
                let comes_through = match self.queue > 0.0 {
                    true => capacity,
                    false => sent.min(capacity),
                };
                self.through += match self.place {
                    Place::Before => sent,
                    Place::Behind => comes_through.min(rate),
                } / 1e3;
                self.queue += (sent - capacity) / 1e3;
                self.queue = self.queue.clamp(0.0, capacity / 2.0);
                let delay = 30.0 + 1e3 * self.queue / capacity;
                self.longest = self.longest.max(delay);
                if self.now.is_multiple_of(25) {
                    self.delays.sent(self.number, 0, Time::from_millis(self.now));
                    self.answers.push((self.now + delay as u64, self.number));
                    self.number += 1;
                }
                self.now += 1;
                self.answers.sort_unstable();
                while let Some(&(when, number)) = self.answers.first().filter(|answer| answer.0 <= self.now) {
                    self.answers.remove(0);
                    self.delays.answered(number, Time::from_millis(when));
                }
                if self.now.is_multiple_of(50) {
                    let now = Time::from_millis(self.now);
                    let bits = self.through - core::mem::replace(&mut self.reviewed, self.through);
                    let seen = self.delays.seen(now);
                    self.controller.review(now, (bits / 8.0) as u64, &seen, 0.0);
                }
            }
            (self.through - before) * 10.0
        }

        fn rate(&self) -> f64 {
            self.controller.rate().bits_per_second() as f64
        }
    }

    #[test]
    fn the_rate_comes_close_to_a_constant_capacity_from_both_sides() {
        for place in [Place::Before, Place::Behind] {
            for base in [2, 40] {
                let mut line = Line::new(place, bounds(1, base, 80));
                for _ in 0..200 {
                    line.interval(20.0 * MBIT, 100.0 * MBIT);
                }
                line.longest = 0.0;
                let (mut sum, count) = (0.0, 600);
                for _ in 0..count {
                    line.interval(20.0 * MBIT, 100.0 * MBIT);
                    sum += line.rate();
                }
                let mean = sum / f64::from(count);
                assert!(
                    (15.0 * MBIT..24.0 * MBIT).contains(&mean),
                    "{place:?} from {base}: {mean}"
                );
                assert!(line.longest < 250.0, "{place:?} from {base}: {} ms", line.longest);
            }
        }
    }

    #[test]
    fn a_line_that_gets_slower_is_followed_within_seconds() {
        for place in [Place::Before, Place::Behind] {
            let mut line = Line::new(place, bounds(1, 20, 80));
            for _ in 0..100 {
                line.interval(20.0 * MBIT, 100.0 * MBIT);
            }
            let mut sum = 0.0;
            for number in 0..40 {
                line.interval(5.0 * MBIT, 100.0 * MBIT);
                sum += if number < 30 { 0.0 } else { line.rate() };
            }
            assert!(sum < 10.0 * 6.0 * MBIT, "{place:?}: {}", sum / 10.0);
        }
    }

    #[test]
    fn the_rate_does_not_wind_up_while_nobody_uses_it() {
        let mut line = Line::new(Place::Before, bounds(1, 10, 1000));
        for _ in 0..3000 {
            line.interval(100.0 * MBIT, 15.0 * MBIT);
        }
        // Above three quarters of the rate the load is high.
        assert!(line.rate() <= 15.0 / 0.75 * 1.09 * MBIT, "{}", line.rate());
        assert!(line.rate() >= 15.0 * MBIT);
    }

    #[test]
    fn under_low_load_the_rate_returns_to_the_base() {
        for start in [2.0, 50.0] {
            let mut line = Line::new(Place::Before, bounds(1, 10, 80));
            line.controller.rate = start * MBIT;
            for _ in 0..6000 {
                line.interval(100.0 * MBIT, 0.1 * MBIT);
            }
            assert!((line.rate() - 10.0 * MBIT).abs() < 0.3 * MBIT, "{}", line.rate());
        }
    }

    #[test]
    fn a_direction_that_is_not_to_blame_is_left_alone() {
        let late = Seen {
            is_congested: true,
            excess: 200e6,
            ..calm()
        };
        let mut controller = Controller::new(&slow(), bounds(1, 10, 80), Time::ZERO);
        for number in 1..100 {
            // 0.5 Mbit/s: acknowledgements.
            controller.review(Time::from_millis(100 * number), 6_250, &late, 0.0);
        }
        assert_eq!(controller.rate(), Rate::mbit(10));
        assert_eq!(controller.phase(), Phase::Low);
        // With 4 Mbit/s it may be to blame. The rate falls until the load is high, and then further.
        let mut rates = Vec::new();
        for number in 100..200 {
            controller.review(Time::from_millis(100 * number), 50_000, &late, 0.0);
            rates.push(controller.rate().bits_per_second());
        }
        assert!(
            rates.contains(&((4.0 / 0.75 * MBIT) as u64 + 1))
                || rates.contains(&((4.0 / 0.75 * MBIT) as u64))
        );
        assert!(controller.rate() < Rate::mbit(4));
    }

    /// It may carry the acknowledgements of the other one. Only if the line stays congested, it is lowered.
    #[test]
    fn a_direction_beside_one_with_more_load_keeps_its_rate() {
        let late = Seen {
            is_congested: true,
            excess: 200e6,
            ..calm()
        };
        let settings = Settings {
            refractory: Duration::from_millis(150),
            ..slow()
        };
        let mut controller = Controller::new(&settings, bounds(1, 10, 80), Time::ZERO);
        // 4 Mbit/s for 2.9 s.
        for number in 1..30 {
            controller.review(Time::from_millis(100 * number), 50_000, &late, 0.5);
            assert_eq!(controller.rate(), Rate::mbit(10));
        }
        for number in 30..40 {
            controller.review(Time::from_millis(100 * number), 50_000, &late, 0.5);
        }
        assert!(controller.rate() < Rate::mbit(10));
        // With more load than the other one, it is lowered at once.
        let mut controller = Controller::new(&slow(), bounds(1, 10, 80), Time::ZERO);
        controller.review(Time::from_millis(100), 50_000, &late, 0.3);
        controller.review(Time::from_millis(200), 50_000, &late, 0.3);
        assert!(controller.rate() < Rate::mbit(10));
    }

    /// A queue of 140 ms is gone after 200 ms at three tenths of the rate. Then the rate is back at once.
    #[test]
    fn a_queue_is_drained_and_the_rate_is_back() {
        let late = Seen {
            is_congested: true,
            excess: 140e6,
            queue: 140e6,
            ..calm()
        };
        let mut controller = Controller::new(&slow(), bounds(1, 16, 80), Time::ZERO);
        let mut rates = Vec::new();
        for number in 1..=4 {
            let bytes = controller.rate().bits_per_second() / 80;
            let seen = if number == 1 { late } else { calm() };
            controller.review(Time::from_millis(100 * number), bytes, &seen, 0.0);
            rates.push(controller.rate().bits_per_second() / 100_000);
        }
        assert_eq!(rates, [36, 36, 120, 120]);
    }

    /// Reviews a busy direction every 50 ms, with what is seen each time. Returns the rates in 100 kbit/s.
    fn reviewed(seen: &[Seen]) -> Vec<u64> {
        let mut controller = Controller::new(&Settings::default(), bounds(1, 16, 80), Time::ZERO);
        (1..)
            .zip(seen)
            .map(|(number, seen)| {
                let bytes = controller.rate().bits_per_second() / 160;
                controller.review(Time::from_millis(50 * number), bytes, seen, 0.0);
                controller.rate().bits_per_second() / 100_000
            })
            .collect()
    }

    /// Sees a queue of so many milliseconds. What was sent in the first 10 ms took `took` milliseconds.
    fn queued(millis: u64, took: Option<u64>) -> Seen {
        let nanos = 1e6 * millis as f64;
        Seen {
            is_congested: true,
            excess: nanos,
            queue: nanos,
            passage: took.map(|took| Passage {
                from: Time::ZERO,
                to: Time::from_millis(10),
                took: took * 1_000_000,
            }),
            ..calm()
        }
    }

    /// When the rate falls, only the age of the first probe without an answer is known.
    #[test]
    fn a_queue_that_turns_out_longer_is_drained_for_longer() {
        let queues = [70, 120, 170, 170, 170, 170];
        let seen = queues.map(|queue| queued(queue, Some(10)));
        assert_eq!(reviewed(&seen), [36, 36, 36, 36, 36, 120]);
    }

    #[test]
    fn a_line_that_turns_out_slower_gets_less_while_its_queue_drains() {
        let seen = [16, 32, 32, 32].map(|took| queued(100, Some(took)));
        assert_eq!(reviewed(&seen), [27, 13, 13, 45]);
    }

    /// What was achieved counts two intervals.
    #[test]
    fn what_is_sent_in_a_drain_is_no_capacity() {
        let seen = [104; 5].map(|queue| queued(queue, None));
        assert_eq!(reviewed(&seen), [36, 36, 36, 120, 120]);
    }

    #[test]
    fn without_answers_the_rate_is_the_base() {
        let silent = Seen {
            is_silent: true,
            ..calm()
        };
        let mut controller = Controller::new(&slow(), bounds(1, 10, 80), Time::ZERO);
        for number in 1..50 {
            controller.review(Time::from_millis(100 * number), 10_000_000, &calm(), 0.0);
        }
        assert_eq!(controller.rate(), Rate::mbit(80));
        controller.review(Time::from_secs(60), 10_000_000, &silent, 0.0);
        assert_eq!(
            (controller.rate(), controller.phase()),
            (Rate::mbit(10), Phase::Silent)
        );
    }

    #[test]
    fn within_the_refractory_time_the_rate_holds() {
        let late = Seen {
            is_congested: true,
            excess: 100e6,
            ..calm()
        };
        let mut controller = Controller::new(&slow(), bounds(1, 16, 80), Time::ZERO);
        let full = |controller: &Controller| controller.rate().bits_per_second() / 80;
        let mut rates = Vec::new();
        for number in 1..=6 {
            let bytes = full(&controller);
            controller.review(Time::from_millis(100 * number), bytes, &late, 0.0);
            rates.push(controller.rate().bits_per_second() / 1_000_000);
        }
        assert_eq!(rates, [12, 12, 12, 9, 9, 9]);
        let bytes = full(&controller);
        controller.review(Time::from_millis(650), bytes, &calm(), 0.0);
        assert_eq!(controller.rate(), Rate::mbit(9));
        let bytes = full(&controller);
        controller.review(Time::from_millis(750), bytes, &calm(), 0.0);
        assert!(controller.rate() > Rate::mbit(9));
    }

    #[test]
    fn small_differences_are_not_ordered() {
        let mut controller = Controller::new(&slow(), bounds(1, 10, 80), Time::ZERO);
        assert_eq!(controller.order(), Some(Rate::mbit(10)));
        assert_eq!(controller.order(), None);
        controller.rate = 10.09 * MBIT;
        assert_eq!(controller.order(), None);
        controller.rate = 10.1 * MBIT;
        assert!(controller.order().is_some());
        controller.rate = 79.9 * MBIT;
        assert!(controller.order().is_some());
        // The bounds are reached exactly.
        controller.rate = 80.0 * MBIT;
        assert_eq!(controller.order(), Some(Rate::mbit(80)));
        controller.refused();
        assert_eq!(controller.order(), Some(Rate::mbit(80)));
    }

    proptest! {
        #[test]
        fn it_rounds_as_the_standard_library_does(number in 0f64..1e12, halves in 0u64..1_000_000) {
            for number in [number, halves as f64 / 2.0, 0.5f64.next_down(), 1e15 + number] {
                prop_assert_eq!(rounded(number), number.round() as u64);
            }
        }

        /// Whatever is observed, the rate is within its bounds, and the same calls give the same rates.
        #[test]
        fn the_rate_is_always_within_its_bounds(
            calls in prop::collection::vec(
                (
                    0u64..2_000_000_000,
                    0u64..u64::from(u32::MAX),
                    0f64..1e12,
                    any::<[bool; 3]>(),
                    prop::option::of([0u64..1 << 38, 0u64..1 << 38, 0u64..1 << 38]),
                ),
                1..300,
            ),
            [a, b, c] in any::<[u32; 3]>(),
        ) {
            let mut sorted = [a, b, c].map(|bits| u64::from(bits) + 8);
            sorted.sort_unstable();
            let [min, base, max] = sorted.map(|bits| Rate::from_bits_per_second(bits).unwrap());
            let bounds = Bounds { min, base, max };
            let mut controller = Controller::new(&Settings::default(), bounds, Time::ZERO);
            let mut twin = controller.clone();
            let mut now = Time::ZERO;
            for (wait, bytes, excess, [is_congested, is_draining, is_silent], passage) in calls {
                now += wait;
                let passage = passage.map(|[from, to, took]| Passage {
                    from: Time::from_nanos(from.min(to)),
                    to: Time::from_nanos(to),
                    took: took.max(1),
                });
                let seen = Seen { is_congested, excess, queue: excess, passage, is_draining, is_silent };
                let rate = controller.review(now, bytes, &seen, 0.0);
                prop_assert!(rate >= min && rate <= max);
                prop_assert_eq!(rate, twin.review(now, bytes, &seen, 0.0));
            }
        }
    }
}

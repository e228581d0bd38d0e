//! Rings of points whose resolution falls with their age.
//!
//! Each reading is a point of the first ring. The further rings have a point for each 10 s and each minute,
//! of all readings in that time. All classes of a direction have their points at the same times, which are
//! kept once. A class that came later has less of them: the last ones.

use std::collections::VecDeque;
use std::ops::Range;

use super::Moved;

/// The length of a step of each ring, seconds, and the number of its points: 10 minutes, 2 hours, 24 hours.
/// A point of the first ring is a reading, however long after the one before.
const TIERS: [(f64, usize); 3] = [(1.0, 600), (10.0, 720), (60.0, 1440)];

/// The longest time that is kept, seconds.
pub(crate) const SPAN_S: u64 = 24 * 3600;

/// The rings that a file keeps. The first one has the same as the second one, in smaller steps.
pub(super) const KEPT: Range<usize> = 1..TIERS.len();

/// The number of figures of a point.
pub(super) const FIGURES: usize = 7;

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    rate_bps: f32,
    /// Not a number if no packet has left.
    delay_ms: f32,
    /// Not a number if no sojourn time was counted.
    p95_ms: f32,
    p99_ms: f32,
    dropped_per_s: f32,
    marked_per_s: f32,
    backlog_bytes: f32,
}

impl Point {
    /// The time of this point was before the class.
    const MISSING: Point = Point {
        rate_bps: f32::NAN,
        delay_ms: f32::NAN,
        p95_ms: f32::NAN,
        p99_ms: f32::NAN,
        dropped_per_s: f32::NAN,
        marked_per_s: f32::NAN,
        backlog_bytes: f32::NAN,
    };

    fn of(moved: &Moved) -> Point {
        Point {
            rate_bps: moved.per_second(8 * moved.bytes) as f32,
            delay_ms: number(moved.delay_ms()),
            p95_ms: number(moved.p95_ms),
            p99_ms: number(moved.p99_ms),
            dropped_per_s: moved.per_second(moved.dropped) as f32,
            marked_per_s: moved.per_second(moved.marked) as f32,
            backlog_bytes: moved.backlog_bytes as f32,
        }
    }

    /// Returns its figures in the order of a file.
    pub(super) fn figures(&self) -> [f32; FIGURES] {
        [
            self.rate_bps,
            self.delay_ms,
            self.p95_ms,
            self.p99_ms,
            self.dropped_per_s,
            self.marked_per_s,
            self.backlog_bytes,
        ]
    }

    /// Returns the point that has these figures in the order of a file.
    pub(super) fn of_figures(figures: [f32; FIGURES]) -> Point {
        let [
            rate_bps,
            delay_ms,
            p95_ms,
            p99_ms,
            dropped_per_s,
            marked_per_s,
            backlog_bytes,
        ] = figures;
        Point {
            rate_bps,
            delay_ms,
            p95_ms,
            p99_ms,
            dropped_per_s,
            marked_per_s,
            backlog_bytes,
        }
    }
}

fn number(value: Option<f64>) -> f32 {
    value.map_or(f32::NAN, |value| value as f32)
}

/// A figure of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Rate,
    Delay,
    P95,
    P99,
    Dropped,
    Marked,
    Backlog,
}

/// Returns how many points a ring may have.
pub(super) fn most(tier: usize) -> usize {
    TIERS[tier].1
}

/// The times of the points: the ends of their intervals, seconds since the start of the run. Those of runs
/// before it are negative.
#[derive(Debug, Default)]
pub(crate) struct Axis {
    times: [VecDeque<f64>; TIERS.len()],
    /// The number of the step that is being filled, and the last reading in it.
    open: [Option<(u64, f64)>; TIERS.len()],
}

/// What ended with a reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ended {
    /// Whether the step of the ring ended before this reading.
    before: [bool; TIERS.len()],
}

impl Axis {
    /// Takes the time of a reading.
    pub(super) fn advance(&mut self, at_s: f64) -> Ended {
        let mut ended = Ended::default();
        push(&mut self.times[0], at_s, TIERS[0].1);
        for (tier, (step_s, most)) in TIERS.into_iter().enumerate().skip(1) {
            let step = (at_s / step_s) as u64;
            if let Some((before, last)) = self.open[tier]
                && before != step
            {
                push(&mut self.times[tier], last, most);
                ended.before[tier] = true;
            }
            self.open[tier] = Some((step, at_s));
        }
        ended
    }

    /// Ends the steps that are being filled: no reading follows.
    pub(super) fn close(&mut self) -> Ended {
        let mut ended = Ended::default();
        for (tier, (_, most)) in TIERS.into_iter().enumerate().skip(1) {
            if let Some((_, last)) = self.open[tier].take() {
                push(&mut self.times[tier], last, most);
                ended.before[tier] = true;
            }
        }
        ended
    }

    /// Adds the times of points that were kept.
    pub(super) fn extend(&mut self, tier: usize, times: &[f64]) {
        for time in times {
            push(&mut self.times[tier], *time, most(tier));
        }
    }

    /// Goes on in another run, whose clock shows `offset` more, and which has no points before `begun`. The
    /// time in between is a point at which nothing is known.
    pub(super) fn go_on(&mut self, offset: f64, begun: f64) {
        self.times[0] = self.times[1].iter().rev().take(most(0)).rev().copied().collect();
        for (tier, times) in self.times.iter_mut().enumerate() {
            times.iter_mut().for_each(|time| *time += offset);
            push(times, begun, most(tier));
        }
    }

    /// Returns whether there is a point.
    pub(super) fn has_points(&self) -> bool {
        !self.times[0].is_empty()
    }

    /// Returns the time of the last point of a ring.
    pub(super) fn last(&self, tier: usize) -> Option<f64> {
        self.times[tier].back().copied()
    }

    /// Returns the finest ring that goes back this many seconds, or to the first reading.
    pub(crate) fn tier(&self, seconds: f64, now: f64) -> usize {
        let reaches = |tier: &usize| {
            let times = &self.times[*tier];
            let is_whole = times.len() < TIERS[*tier].1;
            is_whole || times.front().is_some_and(|first| *first <= now - seconds)
        };
        (0..TIERS.len()).find(reaches).unwrap_or(TIERS.len() - 1)
    }

    /// Returns the length of a step of a ring, seconds.
    pub(crate) fn step_s(&self, tier: usize) -> f64 {
        TIERS[tier].0
    }

    /// Returns the times of a ring after `after`.
    pub(crate) fn times(&self, tier: usize, after: f64) -> Vec<f64> {
        let times = &self.times[tier];
        times
            .range(times.partition_point(|time| *time <= after)..)
            .copied()
            .collect()
    }
}

/// The points of a class.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    points: [VecDeque<Point>; TIERS.len()],
    open: [Option<Moved>; TIERS.len()],
}

impl Rings {
    /// Adds what the class did up to a reading, if it did anything.
    pub(super) fn add(&mut self, moved: Option<&Moved>, ended: &Ended) {
        let point = moved.map_or(Point::MISSING, Point::of);
        push(&mut self.points[0], point, TIERS[0].1);
        for tier in 1..TIERS.len() {
            if ended.before[tier] {
                self.end_step(tier);
            }
            if let Some(moved) = moved {
                self.open[tier].get_or_insert_default().add(moved);
            }
        }
    }

    /// Ends the steps that [`Axis::close`] has ended.
    pub(super) fn close(&mut self, ended: &Ended) {
        for tier in 1..TIERS.len() {
            if ended.before[tier] {
                self.end_step(tier);
            }
        }
    }

    fn end_step(&mut self, tier: usize) {
        let point = self.open[tier].take().as_ref().map_or(Point::MISSING, Point::of);
        push(&mut self.points[tier], point, most(tier));
    }

    /// Adds the points of `count` times: these ones for the last of them, and none for those before.
    pub(super) fn extend(&mut self, tier: usize, count: usize, points: impl ExactSizeIterator<Item = Point>) {
        let missing = count.saturating_sub(points.len());
        for point in std::iter::repeat_n(Point::MISSING, missing).chain(points) {
            push(&mut self.points[tier], point, most(tier));
        }
    }

    /// Goes on in another run, as [`Axis::go_on`] does.
    pub(super) fn go_on(&mut self) {
        self.points[0] = self.points[1].iter().rev().take(most(0)).rev().copied().collect();
        for (tier, points) in self.points.iter_mut().enumerate() {
            push(points, Point::MISSING, most(tier));
        }
    }

    /// Returns the last points of a ring, `count` at most.
    pub(super) fn latest(&self, tier: usize, count: usize) -> impl ExactSizeIterator<Item = &Point> {
        let points = &self.points[tier];
        points.range(points.len().saturating_sub(count)..)
    }

    /// Returns the time of the first point of a ring.
    pub(crate) fn since(&self, tier: usize, axis: &Axis) -> Option<f64> {
        let times = &axis.times[tier];
        times
            .get(times.len().saturating_sub(self.points[tier].len()))
            .copied()
    }

    /// Returns what the class has sent in the last `count` points of a ring: the seconds of each step, which
    /// ended at these times, and bytes.
    pub(super) fn sent<'r>(&'r self, tier: usize, times: &'r [f64]) -> impl Iterator<Item = (f64, u64)> + 'r {
        let points = self.latest(tier, times.len());
        let times = &times[times.len() - points.len()..];
        let before = std::iter::once(times.first().map_or(0.0, |first| first - TIERS[tier].0));
        let before = before.chain(times.iter().copied());
        points.zip(times).zip(before).map(|((point, end), begin)| {
            let seconds = (end - begin).max(0.0);
            // A float that is not a number becomes 0.
            (seconds, (f64::from(point.rate_bps) * seconds / 8.0) as u64)
        })
    }

    /// Returns the last `count` values of a figure. There is none before the class was there.
    pub(crate) fn last(&self, tier: usize, count: usize, figure: Figure) -> Vec<Option<f32>> {
        let points = &self.points[tier];
        let missing = count.saturating_sub(points.len());
        let value = |point: &Point| {
            let value = match figure {
                Figure::Rate => point.rate_bps,
                Figure::Delay => point.delay_ms,
                Figure::P95 => point.p95_ms,
                Figure::P99 => point.p99_ms,
                Figure::Dropped => point.dropped_per_s,
                Figure::Marked => point.marked_per_s,
                Figure::Backlog => point.backlog_bytes,
            };
            value.is_finite().then_some(value)
        };
        let there = points.range(points.len() + missing - count..).map(value);
        std::iter::repeat_n(None, missing).chain(there).collect()
    }

    /// Returns the sum of the rates of the last `count` points: what the class sent, in an unknown unit.
    pub(crate) fn sum(&self, tier: usize, count: usize) -> f64 {
        let points = &self.points[tier];
        let rates = points.range(points.len().saturating_sub(count)..);
        rates
            .map(|point| f64::from(point.rate_bps))
            .filter(|rate| rate.is_finite())
            .sum()
    }
}

fn push<T>(ring: &mut VecDeque<T>, value: T, most: usize) {
    if ring.len() == most {
        ring.pop_front();
    }
    // It grows by a tenth, so that a ring never takes more than a tenth too much.
    if ring.len() == ring.capacity() {
        ring.reserve_exact((most / 10).min(most - ring.len()));
    }
    ring.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(bytes: u64, packets: u64) -> Moved {
        Moved {
            seconds: 1.0,
            packets,
            bytes,
            delay_s: 0.002 * packets as f64,
            dropped: packets / 10,
            backlog_bytes: bytes / 2,
            p95_ms: Some(0.001 * bytes as f64),
            p99_ms: Some(0.002 * bytes as f64),
            ..Moved::default()
        }
    }

    /// Fills rings for so many seconds. A second s has 1000 s bytes.
    fn filled(seconds: u64) -> (Axis, Rings) {
        let (mut axis, mut rings) = (Axis::default(), Rings::default());
        for second in 1..=seconds {
            let ended = axis.advance(second as f64);
            rings.add(Some(&moved(1000 * second, 10)), &ended);
        }
        (axis, rings)
    }

    #[test]
    fn a_step_is_the_mean_of_its_readings() {
        let (axis, rings) = filled(130);
        assert_eq!(axis.times(0, 127.0), [128.0, 129.0, 130.0]);
        assert_eq!(
            rings.last(0, 2, Figure::Rate),
            [Some(8.0 * 129_000.0), Some(8.0 * 130_000.0)]
        );
        // Seconds 10 to 19 end with 19; 120 and later are not ended yet in steps of a minute.
        let times = axis.times(1, 0.0);
        assert_eq!(
            (times.len(), times[0], times[1], times[12]),
            (13, 9.0, 19.0, 129.0)
        );
        let rates = rings.last(1, 12, Figure::Rate);
        assert_eq!(rates[0], Some(8.0 * 14_500.0));
        assert_eq!(axis.times(2, 0.0), [59.0, 119.0]);
        assert_eq!(rings.last(2, 1, Figure::Rate), [Some(8.0 * 89_500.0)]);
        assert_eq!(rings.last(2, 1, Figure::Delay), [Some(2.0)]);
        assert_eq!(rings.last(2, 1, Figure::Dropped), [Some(1.0)]);
        assert_eq!(rings.last(2, 1, Figure::Marked), [Some(0.0)]);
        // The most that waited, and the highest percentiles.
        assert_eq!(rings.last(2, 1, Figure::Backlog), [Some(59_500.0)]);
        assert_eq!(rings.last(2, 1, Figure::P95), [Some(119.0)]);
        assert_eq!(rings.last(2, 1, Figure::P99), [Some(238.0)]);
    }

    /// Of a minute in which somebody looked for a while, the percentiles of that while are kept.
    #[test]
    fn percentiles_are_missing_where_nobody_looked() {
        let (mut axis, mut rings) = (Axis::default(), Rings::default());
        for second in 1..=240_u32 {
            let ended = axis.advance(f64::from(second));
            let mut of_second = moved(1000 * u64::from(second % 60), 10);
            if !(90..130).contains(&second) {
                (of_second.p95_ms, of_second.p99_ms) = (None, None);
            }
            rings.add(Some(&of_second), &ended);
        }
        assert_eq!(rings.last(2, 4, Figure::P95), [None, Some(59.0), Some(9.0), None]);
        assert_eq!(rings.last(0, 1, Figure::P95), [None]);
        assert!(rings.last(0, 1, Figure::Delay)[0].is_some());
    }

    /// After more than a day, the rings hold what they may hold and no more, and each goes back as far as it
    /// says.
    #[test]
    fn rings_are_bounded() {
        let seconds = SPAN_S + 2000;
        let (axis, rings) = filled(seconds);
        let now = seconds as f64;
        for (tier, (step, most)) in TIERS.into_iter().enumerate() {
            assert_eq!(rings.points[tier].len(), most);
            assert!(rings.points[tier].capacity() <= most + most / 10, "{tier}");
            assert!(axis.times[tier].capacity() <= most + most / 10, "{tier}");
            let span = now - axis.times[tier][0];
            assert!((span - step * most as f64).abs() <= 2.0 * step, "{tier}: {span}");
        }
        let bytes = TIERS
            .iter()
            .map(|(_, most)| most * size_of::<Point>())
            .sum::<usize>();
        assert_eq!(bytes, 77_280);
        // With the tenth that a ring may take too much, this is what the documentation says.
        let all = 2 * (super::super::MOST_SERIES + 1) * bytes * 11 / 10;
        assert!(all <= 11_100_000, "{all}");
        let tiers = [60.0, 590.0, 7000.0, 86_000.0].map(|span| axis.tier(span, now));
        assert_eq!(tiers, [0, 0, 1, 2]);
    }

    /// A young run has everything in the first ring, and a late class has nothing before it came.
    #[test]
    fn what_is_missing_is_said() {
        let (mut axis, _) = filled(100);
        assert_eq!(axis.tier(86_400.0, 100.0), 0);
        let mut late = Rings::default();
        late.add(Some(&moved(5, 0)), &axis.advance(101.0));
        late.add(None, &axis.advance(102.0));
        assert_eq!(late.last(0, 3, Figure::Rate), [None, Some(40.0), None]);
        assert_eq!(late.last(0, 3, Figure::Delay), [None, None, None]);
        assert_eq!(late.sum(0, 99), 40.0);
    }

    /// The time between two runs is a point without values, and the first ring goes on in longer steps.
    #[test]
    fn another_run_goes_on_behind_a_gap() {
        let (mut axis, mut rings) = filled(130);
        let ended = axis.close();
        rings.close(&ended);
        axis.go_on(-200.0, 0.5);
        rings.go_on();
        assert_eq!(axis.times(2, -1000.0), [-141.0, -81.0, -70.0, 0.5]);
        assert_eq!(axis.times(0, -72.0), [-71.0, -70.0, 0.5]);
        // Seconds 120 to 129, and 130.
        let rates = rings.last(0, 4, Figure::Rate);
        let rate = |bytes: f32| Some(8.0 * bytes);
        assert_eq!(rates, [rate(114_500.0), rate(124_500.0), rate(130_000.0), None]);
        assert_eq!(rings.last(2, 2, Figure::Rate), [rate(125_000.0), None]);
        let sent: Vec<_> = rings.sent(1, &axis.times(1, -75.0)).collect();
        assert_eq!(sent, [(10.0, 1_245_000), (1.0, 130_000), (70.5, 0)]);
        // Readings follow.
        let ended = axis.advance(1.5);
        rings.add(Some(&moved(10, 1)), &ended);
        assert_eq!((axis.times(0, 0.5), axis.tier(86_400.0, 1.5)), (vec![1.5], 0));
        assert_eq!(rings.last(0, 2, Figure::Rate), [None, Some(80.0)]);
    }
}

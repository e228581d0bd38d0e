//! What every class did, in long steps: a class that is not among the busiest has a history, too.
//!
//! A point has 6 bytes, because there may be tens of thousands of classes: with 24 hours, 1.7 kB for each.
//! The first [`MOST_CLASSES`] that packets come to have points, each as long as it exists.

use std::collections::VecDeque;

use super::Moved;

/// The length of a step, seconds, and the number of points: 24 hours.
pub(crate) const STEP_S: f64 = 300.0;
pub(super) const MOST_POINTS: usize = 288;

/// How many classes of a direction have points: 28 MB.
pub(crate) const MOST_CLASSES: usize = 16_384;

/// The bytes of a point in a file.
pub(super) const POINT_BYTES: usize = 6;

/// A figure in 16 bits: nothing, zero, or a number of steps of 0.06 % from the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Level(u16);

/// The least figure but zero, and the highest one: 10 Tbit/s.
const LEAST: f64 = 1e-4;
const HIGHEST: f64 = 1e13;

/// The levels of nothing and of zero. The next one is that of the least figure.
const NOTHING: u16 = 0;
const ZERO: u16 = 1;

impl Level {
    fn of(value: Option<f64>) -> Level {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return Level(NOTHING);
        };
        if value < LEAST {
            return Level(ZERO);
        }
        let steps = f64::from(u16::MAX - ZERO - 1);
        let part = (value / LEAST).ln() / (HIGHEST / LEAST).ln();
        Level(ZERO + 1 + (part.min(1.0) * steps).round() as u16)
    }

    fn value(self) -> Option<f32> {
        match self.0 {
            NOTHING => None,
            ZERO => Some(0.0),
            level => {
                let steps = f64::from(u16::MAX - ZERO - 1);
                let part = f64::from(level - ZERO - 1) / steps;
                Some((LEAST * (HIGHEST / LEAST).powf(part)) as f32)
            }
        }
    }
}

/// A point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CoarsePoint {
    rate_bps: Level,
    delay_ms: Level,
    dropped_per_s: Level,
}

impl CoarsePoint {
    fn of(moved: &Moved) -> CoarsePoint {
        CoarsePoint {
            rate_bps: Level::of(Some(moved.per_second(8 * moved.bytes))),
            delay_ms: Level::of(moved.delay_ms()),
            dropped_per_s: Level::of(Some(moved.per_second(moved.dropped))),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; POINT_BYTES] {
        let [rate, delay, dropped] = [self.rate_bps, self.delay_ms, self.dropped_per_s];
        let [[a, b], [c, d], [e, f]] = [rate, delay, dropped].map(|level| level.0.to_le_bytes());
        [a, b, c, d, e, f]
    }

    pub(super) fn of_bytes([a, b, c, d, e, f]: [u8; POINT_BYTES]) -> CoarsePoint {
        let [rate_bps, delay_ms, dropped_per_s] =
            [[a, b], [c, d], [e, f]].map(|bytes| Level(u16::from_le_bytes(bytes)));
        CoarsePoint {
            rate_bps,
            delay_ms,
            dropped_per_s,
        }
    }
}

/// A figure of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoarseFigure {
    Rate,
    Delay,
    Dropped,
}

/// The times of the points: the ends of their intervals, as those of the rings.
#[derive(Debug, Default)]
pub(crate) struct CoarseAxis {
    times: VecDeque<f64>,
    /// The number of the step that is being filled, and the last reading in it.
    open: Option<(u64, f64)>,
}

impl CoarseAxis {
    /// Takes the time of a reading. Returns whether a step has ended before it.
    pub(super) fn advance(&mut self, at_s: f64) -> bool {
        let step = (at_s / STEP_S) as u64;
        let ended = self
            .open
            .replace((step, at_s))
            .filter(|(before, _)| *before != step);
        if let Some((_, last)) = ended {
            push(&mut self.times, last);
        }
        ended.is_some()
    }

    /// Ends the step that is being filled: no reading follows. Returns whether there was one.
    pub(super) fn close(&mut self) -> bool {
        let open = self.open.take();
        if let Some((_, last)) = open {
            push(&mut self.times, last);
        }
        open.is_some()
    }

    /// Adds the times of points that were kept.
    pub(super) fn extend(&mut self, times: &[f64]) {
        times.iter().for_each(|time| push(&mut self.times, *time));
    }

    /// Goes on in another run, as the axis of the rings does.
    pub(super) fn go_on(&mut self, offset: f64, begun: f64) {
        self.times.iter_mut().for_each(|time| *time += offset);
        push(&mut self.times, begun);
    }

    pub(super) fn last(&self) -> Option<f64> {
        self.times.back().copied()
    }

    /// Returns the times after `after`.
    pub(crate) fn times(&self, after: f64) -> Vec<f64> {
        let begin = self.times.partition_point(|time| *time <= after);
        self.times.range(begin..).copied().collect()
    }
}

/// The points of a class.
#[derive(Debug, Default)]
pub(crate) struct Coarse {
    /// What tells the class from others, also in the next run.
    pub(super) identity: String,
    points: VecDeque<CoarsePoint>,
    open: Moved,
}

impl Coarse {
    pub(super) fn new(identity: String) -> Coarse {
        Coarse {
            identity,
            ..Coarse::default()
        }
    }

    /// Adds what the class did up to a reading.
    pub(super) fn add(&mut self, moved: &Moved) {
        self.open.add(moved);
    }

    /// Ends a step. If the class did not do anything in it, it was not there.
    pub(super) fn end_step(&mut self) {
        let open = std::mem::take(&mut self.open);
        let point = match open.seconds > 0.0 {
            true => CoarsePoint::of(&open),
            false => CoarsePoint::default(),
        };
        push(&mut self.points, point);
    }

    /// Adds the points of `count` times: these ones for the last of them, and none for those before.
    pub(super) fn extend(&mut self, count: usize, points: impl ExactSizeIterator<Item = CoarsePoint>) {
        let missing = count.saturating_sub(points.len());
        for point in std::iter::repeat_n(CoarsePoint::default(), missing).chain(points) {
            push(&mut self.points, point);
        }
    }

    /// Returns the last points, `count` at most.
    pub(super) fn latest(&self, count: usize) -> impl ExactSizeIterator<Item = CoarsePoint> + '_ {
        self.points
            .range(self.points.len().saturating_sub(count)..)
            .copied()
    }

    /// Returns whether anything is known.
    pub(super) fn is_known(&self) -> bool {
        let is_known = |point: &CoarsePoint| *point != CoarsePoint::default();
        self.open.seconds > 0.0 || self.points.iter().any(is_known)
    }

    /// Returns how many points there are.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns the time of the first point.
    pub(crate) fn since(&self, axis: &CoarseAxis) -> Option<f64> {
        axis.times
            .get(axis.times.len().saturating_sub(self.points.len()))
            .copied()
    }

    /// Returns the last `count` values of a figure. There is none before the class was there.
    pub(crate) fn last(&self, count: usize, figure: CoarseFigure) -> Vec<Option<f32>> {
        let points = self.latest(count);
        let missing = count - points.len();
        let there = points.map(|point| match figure {
            CoarseFigure::Rate => point.rate_bps.value(),
            CoarseFigure::Delay => point.delay_ms.value(),
            CoarseFigure::Dropped => point.dropped_per_s.value(),
        });
        std::iter::repeat_n(None, missing).chain(there).collect()
    }
}

fn push<T>(points: &mut VecDeque<T>, value: T) {
    if points.len() == MOST_POINTS {
        points.pop_front();
    }
    // It grows by two hours, so that a class does not take twice what it has.
    if points.len() == points.capacity() {
        points.reserve_exact((MOST_POINTS / 12).min(MOST_POINTS - points.len()));
    }
    points.push_back(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A figure is accurate to 0.03 %, and smaller ones have smaller levels.
        #[test]
        fn figures_are_accurate(exponent in -4.0_f64..13.0, other in -4.0_f64..13.0) {
            let value = 10_f64.powf(exponent);
            let level = Level::of(Some(value));
            let read = f64::from(level.value().unwrap());
            prop_assert!((read / value - 1.0).abs() < 3.1e-4, "{value} {read}");
            prop_assert_eq!(Level::of(Some(read)), level);
            let larger = Level::of(Some(10_f64.powf(other)));
            prop_assert!((other < exponent) == (larger.0 < level.0) || larger == level);
        }
    }

    #[test]
    fn what_is_no_number_is_nothing() {
        let read = |value| Level::of(value).value();
        assert_eq!([None, Some(f64::NAN), Some(f64::INFINITY)].map(read), [None; 3]);
        assert_eq!([Some(0.0), Some(-1.0)].map(read), [Some(0.0); 2]);
        let highest = read(Some(1e30)).unwrap();
        assert!((highest / 1e13 - 1.0).abs() < 1e-6, "{highest}");
        for level in [0, 1, 2, 3, 30_000, u16::MAX - 1, u16::MAX] {
            let point = CoarsePoint {
                rate_bps: Level(level),
                ..CoarsePoint::default()
            };
            assert_eq!(CoarsePoint::of_bytes(point.to_bytes()), point);
        }
    }

    /// A day takes what the documentation says.
    #[test]
    fn points_are_bounded() {
        let (mut axis, mut coarse) = (CoarseAxis::default(), Coarse::default());
        for reading in 1..=100_000_u32 {
            if axis.advance(f64::from(reading)) {
                coarse.end_step();
            }
            coarse.add(&Moved {
                seconds: 1.0,
                packets: 1,
                bytes: 125,
                ..Moved::default()
            });
        }
        assert_eq!((axis.times(0.0).len(), coarse.len()), (MOST_POINTS, MOST_POINTS));
        assert!(coarse.points.capacity() * size_of::<CoarsePoint>() <= 1728);
        let rates = coarse.last(2, CoarseFigure::Rate);
        assert!(
            rates.iter().all(|rate| (rate.unwrap() - 1000.0).abs() < 0.4),
            "{rates:?}"
        );
        assert!(axis.close() && !axis.close());
    }
}

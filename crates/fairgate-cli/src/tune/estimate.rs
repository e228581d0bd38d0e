//! Capacity from bytes over time, framing from delays by length, responsiveness from round trips.

use std::time::Duration;

use fairgate::cake::{Cells, Line};
use serde::Serialize;

/// The time over which a rate is taken. Within it, what a lost segment has held back comes, too.
const WINDOW: Duration = Duration::from_millis(500);
/// The windows at the beginning that are left out: senders begin slowly.
const WARM_UP: usize = 2;
/// The part at the beginning that is left out, one in so many.
const WARM_UP_PART: usize = 4;
/// The capacity varies if the 90th percentile of the windows is above the 10th by more than this share of the
/// median.
const VARIES: f64 = 0.25;
/// The senders have left the line idle at times if the mean of the windows is below this share of the median.
const BUSY: f64 = 0.97;

/// A capacity, bytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Capacity {
    /// What the direction carries.
    pub(super) rate: f64,
    /// The 10th and the 90th percentile of half seconds.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) varies: bool,
}

/// Estimates a capacity from the bytes that came through in successive bins under load. `None` if there are
/// too few.
pub(super) fn capacity(bytes: &[u64], bin: Duration) -> Option<Capacity> {
    let in_window = (WINDOW.as_nanos() / bin.as_nanos()).max(1) as usize;
    let windows: Vec<f64> = bytes
        .chunks_exact(in_window)
        .map(|window| {
            // A server may say anything, so there may be no sum in 64 bits.
            let bytes: f64 = window.iter().map(|&bytes| bytes as f64).sum();
            bytes / (bin * in_window as u32).as_secs_f64()
        })
        .collect();
    let warm_up = (windows.len() / WARM_UP_PART).max(WARM_UP);
    let steady = sorted(windows.get(warm_up..)?.to_vec());
    let (low, median, high) = (
        quantile(&steady, 0.1)?,
        quantile(&steady, 0.5)?,
        quantile(&steady, 0.9)?,
    );
    let varies = high - low > VARIES * median;
    let mean = steady.iter().sum::<f64>() / steady.len() as f64;
    Some(Capacity {
        // The mean is exact, because what comes early in one window is missing in the next. But it is too low
        // if the senders have left the line idle at times, which the median does not see.
        rate: match varies || mean < BUSY * median {
            true => median,
            false => mean,
        },
        low,
        high,
        varies,
    })
}

/// The payload of a cell of ATM, bytes.
const CELL: usize = 48;

/// What the line makes of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Framing {
    /// The kind of the line that the user has named, with a word of cake's `line`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<&'static str>,
    /// A word of cake's `cells`.
    pub(crate) cells: &'static str,
    /// The bytes that the line adds to an IP packet before it is cut into cells.
    pub(crate) overhead: u16,
    /// The least bytes of a packet with its overhead.
    pub(crate) mpu: u16,
}

impl Framing {
    pub(super) fn atm(overhead: usize) -> Framing {
        Framing {
            line: None,
            cells: Cells::Atm.word(),
            overhead: overhead as u16,
            mpu: 0,
        }
    }

    /// Returns the framing of a kind of line.
    pub(super) fn of(line: Line) -> Framing {
        let framing = line.framing();
        Framing {
            line: Some(line.word()),
            cells: framing.cells.word(),
            overhead: framing.overhead.unwrap_or(0),
            mpu: framing.mpu,
        }
    }

    /// Returns what the line sends for an IP packet, bytes.
    pub(super) fn count(self, length: u64) -> u64 {
        let cells = Cells::of_word(self.cells).expect("it is one of its words");
        cells.encode((length + u64::from(self.overhead)).max(self.mpu.into()))
    }
}

/// What lines of ATM add to an IP packet: IPoA and PPPoA by VC or LLC, bridged by VC or LLC, PPPoE by VC or
/// LLC. These are the overheads of cake's words.
const OVERHEADS: [usize; 8] = [8, 10, 14, 16, 24, 32, 40, 44];

/// The least share of the delays' deviation from a line that cells must explain.
const EXPLAINED: f64 = 0.75;
/// The steps must be so much larger than what is left unexplained, on average.
const CLEAR: f64 = 3.0;

/// The lengths of IP packets from which framing is found: one of each remainder by 48, so that the place of
/// the step is known to the byte, over five steps.
pub(super) fn lengths() -> impl Iterator<Item = usize> {
    (0..CELL).map(|index| 132 + 5 * index)
}

/// Finds framing from the least delays by the lengths of IP packets, ns. A delay of cells grows in steps, and
/// any other in proportion. `None` if no steps are visible: because there are none, or because they are
/// smaller than what else delays packets.
pub(super) fn framing(delays: &[(usize, f64)]) -> Option<Framing> {
    if delays.len() < CELL / 2 {
        return None;
    }
    let straight = Fit::of(delays.iter().map(|&(length, delay)| (length as f64, delay)));
    let by_cells = |overhead: usize| {
        let cells = |length: usize| (length + overhead).div_ceil(CELL) as f64;
        Fit::of(delays.iter().map(|&(length, delay)| (cells(length), delay)))
    };
    let best = (0..CELL).min_by(|&a, &b| by_cells(a).residual.total_cmp(&by_cells(b).residual))?;
    let fit = by_cells(best);
    let left = (fit.residual / delays.len() as f64).sqrt();
    let is_clear = fit.residual < (1.0 - EXPLAINED) * straight.residual && fit.slope > CLEAR * left;
    // Beside the right place the fit is hardly worse: then the place that is known is the right one.
    let near = |known: &&usize| by_cells(**known).residual <= fit.residual * 1.3 && known.abs_diff(best) <= 2;
    let known = OVERHEADS.iter().find(near).copied();
    is_clear.then(|| Framing::atm(known.unwrap_or(best)))
}

/// A straight line through points, by least squares.
struct Fit {
    slope: f64,
    /// The sum of the squares of what it leaves.
    residual: f64,
}

impl Fit {
    fn of(points: impl Iterator<Item = (f64, f64)> + Clone) -> Fit {
        let count = points.clone().count() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.clone().map(|point| of(&point)).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let product = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points.clone().map(|point| of(point.0 - x, point.1 - y)).sum()
        };
        let (xx, xy, yy) = (
            product(&|x, _| x * x),
            product(&|x, y| x * y),
            product(&|_, y| y * y),
        );
        let slope = if xx > 0.0 { xy / xx } else { 0.0 };
        Fit {
            slope,
            residual: (yy - slope * xy).max(0.0),
        }
    }
}

/// Returns the responsiveness under load, round trips a minute, from times in ms: of new connections until
/// they were open and until a question was answered, and of the loading connections themselves. 0 if nothing
/// was answered.
///
/// It is that of draft-ietf-ippm-responsiveness, section 4.3, for connections without TLS. The trimmed mean
/// leaves out the highest 5 %.
pub(super) fn responsiveness(opened: &[f64], answered: &[f64], own: &[f64]) -> f64 {
    let [opened, answered, own] = [opened, answered, own].map(trimmed_mean);
    let others = opened
        .zip(answered)
        .map(|(opened, answered)| opened.midpoint(answered));
    let round_trip = match (others, own) {
        (Some(others), Some(own)) => others.midpoint(own),
        (one, other) => one.or(other).unwrap_or(f64::INFINITY),
    };
    60_000.0 / round_trip
}

fn trimmed_mean(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values.to_vec());
    let kept = &sorted[..(sorted.len() * 19).div_ceil(20)];
    (!kept.is_empty()).then(|| kept.iter().sum::<f64>() / kept.len() as f64)
}

pub(super) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Returns a quantile of sorted values, the nearest one.
pub(super) fn quantile(sorted: &[f64], quantile: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((quantile * last as f64).round() as usize).copied()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    const BIN: Duration = Duration::from_millis(50);

    proptest! {
        /// A line of a fixed rate whose bins are uneven, and that idles in some windows.
        #[test]
        fn a_fixed_rate_is_found_within_three_percent(
            rate in 1e4..1e8f64,
            noise in vec(-0.2..0.2f64, 120),
            idle in vec(20usize..120, 0..2),
        ) {
            // What comes too early in a bin is missing in the next one.
            let a_bin = rate * BIN.as_secs_f64();
            let mut before = 0.0;
            let mut bytes: Vec<u64> = noise
                .iter()
                .map(|noise| {
                    let early = noise * a_bin;
                    let bytes = a_bin + early - before;
                    before = early;
                    bytes as u64
                })
                .collect();
            bytes[..8].fill(0);
            idle.iter().for_each(|&bin| bytes[bin] = 0);
            let found = capacity(&bytes, BIN).unwrap();
            prop_assert!((found.rate / rate - 1.0).abs() < 0.03, "{found:?} of {rate}");
        }

        #[test]
        fn a_rate_that_changes_is_seen(low in 1e4..1e7f64, factor in 1.6..8.0f64, every in 1usize..3) {
            let bytes: Vec<u64> = (0..160)
                .map(|bin| {
                    let is_high = bin / (10 * every) % 2 == 0;
                    (low * BIN.as_secs_f64() * if is_high { factor } else { 1.0 }) as u64
                })
                .collect();
            let found = capacity(&bytes, BIN).unwrap();
            prop_assert!(found.varies, "{found:?}");
            prop_assert!((found.low / low - 1.0).abs() < 0.01, "{found:?}");
            prop_assert!((found.high / low / factor - 1.0).abs() < 0.01, "{found:?}");
        }

        /// Whatever came through, the figures are finite and in order.
        #[test]
        fn any_bytes_have_an_estimate_or_none(bytes in vec(any::<u64>(), 0..200)) {
            match capacity(&bytes, BIN) {
                Some(found) => prop_assert!(
                    found.rate.is_finite() && 0.0 <= found.low && found.low <= found.high
                ),
                None => prop_assert!(bytes.len() < 30),
            }
        }

        /// Delays on a line of ATM, with the noise that the least of some probes has.
        #[test]
        fn cells_are_found_with_their_overhead(
            known in 0..OVERHEADS.len(), rate in 1e5..2e7f64, noise in vec(0.0..1.0f64, CELL),
            base in 0.0..1e8f64
        ) {
            let overhead = OVERHEADS[known];
            let a_cell = Cells::Atm.encode(1) as f64 * 8e9 / rate;
            let delay = |length: usize| (length + overhead).div_ceil(CELL) as f64 * a_cell;
            let delays: Vec<(usize, f64)> = lengths()
                .zip(noise)
                .map(|(length, noise)| (length, base + delay(length) + noise * a_cell / 8.0))
                .collect();
            prop_assert_eq!(framing(&delays), Some(Framing::atm(overhead)));
        }

        /// Without cells a delay grows in proportion. On a fast line noise is all that is seen.
        #[test]
        fn other_lines_have_no_cells(
            rate in 1e5..1e9f64, noise in vec(0.0..1.0f64, CELL), most_noise in 0.0..1e6f64
        ) {
            let delays: Vec<(usize, f64)> = lengths()
                .zip(noise)
                .map(|(length, noise)| (length, length as f64 * 8e9 / rate + noise * most_noise))
                .collect();
            prop_assert_eq!(framing(&delays), None);
        }
    }

    #[test]
    fn lengths_have_every_remainder() {
        let mut remainders: Vec<usize> = lengths().map(|length| length % CELL).collect();
        remainders.sort_unstable();
        assert_eq!(remainders, (0..CELL).collect::<Vec<_>>());
    }

    #[test]
    fn round_trips_a_minute_are_those_of_the_draft() {
        // 20 ms each are 3000 a minute.
        assert_eq!(responsiveness(&[20.0; 30], &[20.0; 30], &[20.0; 30]), 3000.0);
        // Half of the weight is that of the loading connections.
        assert_eq!(responsiveness(&[20.0], &[40.0], &[70.0]), 60_000.0 / 50.0);
        // One of twenty is left out.
        let one_is_late: Vec<f64> = [20.0; 19].into_iter().chain([5000.0]).collect();
        assert_eq!(responsiveness(&one_is_late, &[20.0], &[20.0]), 3000.0);
        assert_eq!(responsiveness(&[], &[], &[20.0]), 3000.0);
        assert_eq!(responsiveness(&[], &[], &[]), 0.0);
    }
}

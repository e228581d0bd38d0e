//! Random numbers with a memory, and the distributions of delays.

use alloc::vec::Vec;

use crate::probability::Probability;
use crate::structures::Random;

/// The unit of a table's numbers: this is one deviation from the mean (Linux: `NETEM_DIST_SCALE`).
pub(super) const SCALE: i32 = 8192;

/// The most numbers of a table (Linux: `NETEM_DIST_MAX`).
pub(super) const MOST_NUMBERS: usize = 16_384;

/// The numbers of a built-in table.
const NUMBERS: usize = 4096;

/// The shape of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Every value within the deviation is equally likely.
    #[default]
    Uniform,
    /// Gaussian.
    Normal,
    /// Heavy-tailed, with shape 3.
    Pareto,
    /// A quarter normal, three quarters Pareto.
    ParetoNormal,
    /// One of the numbers of a table.
    Table,
}

crate::words!(Shape {
    "uniform" => Shape::Uniform,
    "normal" => Shape::Normal,
    "pareto" => Shape::Pareto,
    "paretonormal" => Shape::ParetoNormal,
    "table" => Shape::Table,
});

/// Draws an event of this probability.
#[inline]
pub(super) fn occurs(probability: Probability, random: &mut Random) -> bool {
    u64::from(random.bits32()) < probability.parts()
}

/// A source of 32-bit numbers, each of which may resemble the one before (Linux: `get_crandom`).
#[derive(Debug)]
pub(super) struct Correlated {
    /// The weight of the last number, in units of 2^-32. 0 for independent numbers.
    weight: u64,
    last: u32,
}

impl Correlated {
    pub(super) fn new(correlation: Probability, random: &mut Random) -> Correlated {
        let rho = correlation.parts().min(u32::MAX.into());
        Correlated {
            weight: if rho == 0 { 0 } else { rho + 1 },
            last: random.bits32(),
        }
    }

    /// Returns the next number.
    #[inline]
    pub(super) fn draw(&mut self, random: &mut Random) -> u32 {
        let fresh = random.bits32();
        if self.weight == 0 {
            return fresh;
        }
        let sum = u64::from(fresh) * ((1 << 32) - self.weight) + u64::from(self.last) * self.weight;
        self.last = (sum >> 32) as u32;
        self.last
    }

    /// Draws an event of this probability. Probabilities 0 and 1 are exact.
    #[inline]
    pub(super) fn occurs(&mut self, probability: Probability, random: &mut Random) -> bool {
        probability > Probability::ZERO && u64::from(self.draw(random)) < probability.parts()
    }
}

/// A time that varies (Linux: `tabledist`).
#[derive(Debug)]
pub(super) struct Varying {
    /// The mean, ns.
    mean: i64,
    /// The deviation, ns.
    deviation: i64,
    /// Deviations in units of 1 / [`SCALE`]. Empty for a uniform distribution.
    table: Vec<i32>,
    source: Correlated,
}

impl Varying {
    /// `mean` and `deviation` are at most a day, so that products do not overflow.
    pub(super) fn new(mean: u64, deviation: u64, table: Vec<i32>, source: Correlated) -> Varying {
        Varying {
            mean: mean as i64,
            deviation: deviation as i64,
            table,
            source,
        }
    }

    /// Returns the next time, ns. It may be negative.
    #[inline]
    pub(super) fn draw(&mut self, random: &mut Random) -> i64 {
        if self.deviation == 0 {
            return self.mean;
        }
        let drawn = u128::from(self.source.draw(random));
        if self.table.is_empty() {
            let width = 2 * self.deviation as u128;
            return ((drawn * width) >> 32) as i64 - self.deviation + self.mean;
        }
        // Linux takes the remainder, which is a division and loses the correlation of successive numbers.
        let index = (drawn * self.table.len() as u128) >> 32;
        let scale = i64::from(SCALE);
        let number = i64::from(self.table[index as usize]);
        let rest = (self.deviation % scale) * number;
        let half = if rest >= 0 { scale / 2 } else { -scale / 2 };
        (rest + half) / scale + (self.deviation / scale) * number + self.mean
    }
}

impl Shape {
    /// Returns the table of a distribution with mean 0 and deviation [`SCALE`]: its quantiles in rising
    /// order. `own` is the user's table. The numbers are those of the files that tc has.
    pub(super) fn table(self, own: &[i32]) -> Vec<i32> {
        match self {
            Shape::Uniform => Vec::new(),
            Shape::Normal => normal().collect(),
            Shape::Pareto => pareto().collect(),
            Shape::ParetoNormal => {
                let both = normal().zip(pareto());
                both.map(|(normal, pareto)| clamped((normal + 3 * pareto) / 4))
                    .collect()
            }
            Shape::Table => own.to_vec(),
        }
    }

    /// The memory of the table, bytes.
    pub(super) fn memory(self, own: &[i32]) -> u64 {
        4 * match self {
            Shape::Uniform => 0,
            Shape::Table => own.len() as u64,
            _ => NUMBERS as u64,
        }
    }
}

/// The numbers of tc's files have 16 bits.
fn clamped(number: i32) -> i32 {
    number.clamp(i16::MIN.into(), i16::MAX.into())
}

fn rounded(number: f64) -> i32 {
    let half = if number >= 0.0 { 0.5 } else { -0.5 };
    (number + half) as i32
}

/// The quantiles of a normal distribution, each in the middle of the first of four parts of a 4096th, as the
/// program that made tc's file computes them. They differ from the file by at most 1.
fn normal() -> impl Iterator<Item = i32> {
    const HALF: usize = NUMBERS / 2;
    let part = |quarters: f64| quarters / (4.0 * NUMBERS as f64);
    let mut left = LowerHalf::new();
    let mut numbers: Vec<i32> = (0..HALF)
        .map(|index| left.quantile(part(4.0 * index as f64 + 0.5)))
        .collect();
    // The distribution is symmetric, and the distance to the nearer end is more exact.
    let mut right = LowerHalf::new();
    let above = (1..=HALF).map(|index| -right.quantile(part(4.0 * index as f64 - 0.5)));
    let above: Vec<i32> = above.collect();
    numbers.extend(above.into_iter().rev());
    numbers.into_iter().map(clamped)
}

/// The normal distribution function from the left end up to the mean, summed up in small steps (Simpson's
/// rule). The density of each step follows from the one before. So no exponential function is needed, whose
/// last digit differs between platforms.
struct LowerHalf {
    below: f64,
    x: f64,
    density: f64,
    /// The ratio of the next density to this one.
    ratio: f64,
}

impl LowerHalf {
    /// The distance of two densities: 2^-14.
    const STEP: f64 = 1.0 / 16_384.0;
    /// The ratio of successive ratios: exp(-STEP²).
    const BEND: f64 = 0.999_999_996_274_709_7;

    /// Starts at -6, with the distribution function, the density and its ratio there.
    fn new() -> LowerHalf {
        LowerHalf {
            below: 9.865_876_450_377_012e-10,
            x: -6.0,
            density: 6.075_882_849_823_286e-9,
            ratio: 1.000_366_276_137_584_2,
        }
    }

    /// Returns a quantile in units of 1 / [`SCALE`]. Shares are asked for in rising order, up to 1/2.
    fn quantile(&mut self, wanted: f64) -> i32 {
        loop {
            let middle = self.density * self.ratio;
            let next = self.ratio * LowerHalf::BEND;
            let end = middle * next;
            let share = (self.density + 4.0 * middle + end) * LowerHalf::STEP / 3.0;
            if self.below + share >= wanted {
                let within = (wanted - self.below) / share;
                return rounded((self.x + 2.0 * LowerHalf::STEP * within) * f64::from(SCALE));
            }
            self.below += share;
            self.x += 2.0 * LowerHalf::STEP;
            self.density = end;
            self.ratio = next * LowerHalf::BEND;
        }
    }
}

/// The quantiles of a Pareto distribution of shape 3, moved to mean 0 and scaled to a deviation near 1.
fn pareto() -> impl Iterator<Item = i32> {
    (0..NUMBERS).map(|index| {
        let inverse = NUMBERS as f64 / (NUMBERS - index) as f64;
        clamped(rounded((cube_root(inverse) - 1.5) * 4.0 / 3.0 * f64::from(SCALE)))
    })
}

/// The cube root of a number of at least 1, by Newton's method from above.
fn cube_root(number: f64) -> f64 {
    let mut root = number;
    loop {
        let next = (2.0 * root + number / (root * root)) / 3.0;
        if next >= root {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the files that tc has, and the moments of the distributions.
    #[test]
    fn tables_are_those_of_tc() {
        let normal = Shape::Normal.table(&[]);
        let of_tc = [-32768, -28307, -26871, -25967, -25298, -24765, -24320, -23937];
        let is_near = |(ours, theirs): (&i32, &i32)| (ours - theirs).abs() <= 1;
        assert!(normal.iter().zip(&of_tc).all(is_near), "{:?}", &normal[..8]);
        assert_eq!(
            Shape::Pareto.table(&[])[..8],
            [-5461, -5460, -5460, -5459, -5458, -5457, -5456, -5455]
        );
        assert_eq!(Shape::Pareto.table(&[])[NUMBERS - 1], 32767);
        // The tail of the Pareto distribution is cut off at four deviations.
        let moments = [
            (Shape::Normal, -0.0008, 1.0),
            (Shape::Pareto, -0.0335, 0.8197),
            (Shape::ParetoNormal, -0.0254, 0.8340),
        ];
        for (shape, expected_mean, expected_deviation) in moments {
            let table = shape.table(&[]);
            assert_eq!(table.len(), NUMBERS);
            assert!(table.is_sorted());
            let scaled = |number: &i32| f64::from(*number) / f64::from(SCALE);
            let mean = table.iter().map(scaled).sum::<f64>() / NUMBERS as f64;
            let square = table
                .iter()
                .map(|number| (scaled(number) - mean).powi(2))
                .sum::<f64>();
            let deviation = (square / NUMBERS as f64).sqrt();
            assert!(
                (mean - expected_mean).abs() < 0.0005 && (deviation - expected_deviation).abs() < 0.0005,
                "{shape:?} has the mean {mean} and the deviation {deviation}"
            );
        }
    }

    #[test]
    fn times_are_within_the_deviation_and_have_its_shape() {
        let mut random = Random::new(3);
        let mut varying = |shape: Shape| {
            let source = Correlated::new(Probability::ZERO, &mut random);
            let mut varying = Varying::new(100_000, 10_000, shape.table(&[]), source);
            let times: Vec<i64> = (0..200_000).map(|_| varying.draw(&mut random)).collect();
            let mean = times.iter().sum::<i64>() as f64 / times.len() as f64;
            let square: f64 = times.iter().map(|time| (*time as f64 - mean).powi(2)).sum();
            (times, mean, (square / 200_000.0).sqrt())
        };
        let (times, mean, deviation) = varying(Shape::Uniform);
        assert!(times.iter().all(|time| (90_000..110_000).contains(time)));
        assert!(
            (mean - 100_000.0).abs() < 100.0 && (deviation - 5_773.5).abs() < 100.0,
            "{mean} {deviation}"
        );
        let (_, mean, deviation) = varying(Shape::Normal);
        assert!(
            (mean - 100_000.0).abs() < 150.0 && (deviation - 10_000.0).abs() < 150.0,
            "{mean} {deviation}"
        );
    }

    /// Compares with Linux's formula in wide arithmetic.
    #[test]
    fn a_table_is_read_as_in_linux() {
        let mut random = Random::new(9);
        for deviation in [1u64, 8191, 8192, 1_000_003, 86_400_000_000_000] {
            let mut one = Varying::new(
                7,
                deviation,
                vec![-20_000],
                Correlated::new(Probability::ZERO, &mut random),
            );
            let exact = -20_000.0 * deviation as f64 / 8192.0 + 7.0;
            let drawn = one.draw(&mut random) as f64;
            assert!(
                (drawn - exact).abs() <= 0.51 + exact.abs() * 1e-15,
                "{drawn} for {exact}"
            );
        }
    }

    #[test]
    fn correlated_numbers_resemble_the_last_one() {
        let mut random = Random::new(1);
        let mut resemblance = |percent| {
            let mut source = Correlated::new(Probability::ratio(percent, 100), &mut random);
            let numbers: Vec<f64> = (0..100_000)
                .map(|_| f64::from(source.draw(&mut random)))
                .collect();
            let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
            let together: f64 = numbers
                .windows(2)
                .map(|pair| (pair[0] - mean) * (pair[1] - mean))
                .sum();
            let alone: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
            together / alone
        };
        for percent in [0, 25, 90] {
            let measured = resemblance(percent);
            assert!(
                (measured - f64::from(percent) / 100.0).abs() < 0.02,
                "{measured} for {percent} %"
            );
        }
    }
}

//! A figure of violins: the shapes of distributions, side by side. A violin is as wide as its values are
//! dense. Its widest place has the same width in all violins. A thick line reaches from the lower to the
//! upper quartile, and a circle marks the median.
//!
//! The density is estimated from percentiles with Gaussian kernels, whose bandwidth follows Silverman's rule
//! (B. W. Silverman: Density Estimation for Statistics and Data Analysis, 1986, equation 3.31). On a
//! logarithmic axis it is the density of the logarithm. A violin ends at the least and at the greatest value.

use maud::{Markup, html};

use crate::chart::Scale;
use crate::plot::{Axis, Figure, Frame, one};
use crate::units;

/// A figure of violins.
#[derive(Clone, Debug, PartialEq)]
pub struct Violins {
    /// The title.
    pub title: String,
    /// The vertical axis.
    pub y: Scale,
    /// The names of the violins in each group, such as disciplines. With several, they are in the legend, and
    /// each has a colour. With one, each group has a colour.
    pub series: Vec<String>,
    /// The groups from left to right.
    pub groups: Vec<Group>,
}

/// The violins with one name, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name.
    pub name: String,
    /// The violin of each series; `None` if there were no values.
    pub violins: Vec<Option<Quantiles>>,
}

/// A distribution: its least value, values at equal steps of the share of all values, and its greatest one.
/// The percentiles 0 to 100 are an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles(Vec<f64>);

impl Quantiles {
    /// Returns `None` if these are not at least two finite values that never fall.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Quantiles> {
        let values: Vec<f64> = values.into_iter().collect();
        let is_valid = values.len() > 1
            && values.iter().all(|value| value.is_finite())
            && values.windows(2).all(|pair| pair[0] <= pair[1]);
        is_valid.then_some(Quantiles(values))
    }

    /// Returns pairs of a share, 0 to 1, and the value that this share of all values does not exceed.
    pub fn shares(&self) -> impl Iterator<Item = (f64, f64)> {
        let last = (self.0.len() - 1) as f64;
        let pair = move |(number, &value): (usize, &f64)| (number as f64 / last, value);
        self.0.iter().enumerate().map(pair)
    }

    /// Returns the value at a share of all, from 0 to 1. Between two known ones it is interpolated.
    fn at(&self, share: f64) -> f64 {
        let place = share * (self.0.len() - 1) as f64;
        let below = (place.floor() as usize).min(self.0.len() - 2);
        let [low, high] = [self.0[below], self.0[below + 1]];
        low + (high - low) * (place - below as f64)
    }
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
/// The space for the labels of the vertical axis.
const LEFT: f64 = 62.0;
/// The number of colours in the style sheet.
const COLOURS: usize = 10;
/// The share of a group's width that violins take.
const FILLED: f64 = 0.86;
/// The number of places at which the density is computed.
const PLACES: usize = 96;
/// The least bandwidth of a kernel, in lengths of the axis, so that equal values have a visible width.
const LEAST_BANDWIDTH: f64 = 0.004;
/// The mean width of a letter of a group's name.
const LETTER: f64 = 6.2;

impl Violins {
    /// Returns the figure as an SVG file. It follows the reader's light or dark colour scheme.
    pub fn svg(&self) -> String {
        self.drawn().file()
    }

    /// Returns the figure as a part of a page.
    pub(crate) fn figure(&self) -> Markup {
        self.drawn().part()
    }

    fn drawn(&self) -> Figure<'_> {
        let frame = self.frame();
        let legend = match self.series.len() {
            0 | 1 => Vec::new(),
            _ => (0..)
                .zip(&self.series)
                .map(|(number, name)| (sample(number), name.as_str()))
                .collect(),
        };
        Figure {
            title: &self.title,
            shapes: self.shapes(&frame),
            frame,
            legend,
        }
    }

    fn frame(&self) -> Frame {
        let mut x = Axis::between("", 0.0, self.groups.len().max(1) as f64, units::plain);
        x.ticks.clear();
        Frame::new(WIDTH, HEIGHT, x, self.y.axis()).with_left(LEFT)
    }

    fn shapes(&self, frame: &Frame) -> Markup {
        let series = self.series.len().max(1);
        let slot = FILLED / series as f64;
        html! {
            @for (index, group) in self.groups.iter().enumerate() {
                (self.name(frame, index))
                @for (number, quantiles) in group.violins.iter().take(series).enumerate() {
                    @let middle = index as f64 + 0.5 + (number as f64 + 0.5) * slot - FILLED / 2.0;
                    @let half = (frame.at_x(slot) - frame.at_x(0.0)) * 0.46;
                    @let colour = if series > 1 { number } else { index } % COLOURS;
                    @let series = self.series.get(number).filter(|_| series > 1);
                    @if let Some(quantiles) = quantiles {
                        g class={ "c" (colour) } {
                            title { (group.name) @if let Some(series) = series { ", " (series) } }
                            (violin(frame, quantiles, frame.at_x(middle), half))
                        }
                    }
                }
            }
        }
    }

    /// Draws the name of a group below the axis. If names are long, every second one is lower.
    fn name(&self, frame: &Frame, index: usize) -> Markup {
        let width = frame.at_x(1.0) - frame.at_x(0.0);
        let letters = |name: &str| name.chars().count();
        let longest = self.groups.iter().map(|group| letters(&group.name)).max();
        let are_long = longest.unwrap_or(0) as f64 * LETTER > width;
        let room = if are_long { 2.0 * width } else { width };
        let most = ((room / LETTER) as usize).max(4);
        let name = &self.groups[index].name;
        let shown: String = match letters(name) > most {
            true => name.chars().take(most - 1).chain(['…']).collect(),
            false => name.clone(),
        };
        let below = if are_long && index % 2 == 1 { 28.0 } else { 15.0 };
        html! {
            text.name x=(one(frame.at_x(index as f64 + 0.5))) y=(one(frame.bottom() + below))
                text-anchor="middle" { (shown) @if shown != *name { title { (name) } } }
        }
    }
}

/// Draws the sample of a series for the legend, 26 by 12.
fn sample(number: usize) -> Markup {
    html! {
        g class={ "c" (number % COLOURS) } { rect.violin x="3" y="1" width="20" height="10" rx="5" {} }
    }
}

/// Draws a violin around a vertical line. `half` is the greatest distance from it.
fn violin(frame: &Frame, quantiles: &Quantiles, x: f64, half: f64) -> Markup {
    // Everything is computed in positions on the axis, downwards.
    let values: Vec<f64> = quantiles.0.iter().map(|&value| frame.at_y(value)).collect();
    let height = frame.bottom() - frame.at_y(f64::MAX);
    let outline = outline(&values, LEAST_BANDWIDTH * height);
    let corner = |(y, width): &(f64, f64), side: f64| format!("{} {}", one(x + side * width * half), one(*y));
    let right = outline.iter().map(|place| corner(place, 1.0));
    let left = outline.iter().rev().map(|place| corner(place, -1.0));
    let corners: Vec<String> = right.chain(left).collect();
    let [lower, median, upper] = [0.25, 0.5, 0.75].map(|share| one(frame.at_y(quantiles.at(share))));
    html! {
        path.violin d={ "M" (corners.join("L")) "Z" } {}
        line.quartiles x1=(one(x)) x2=(one(x)) y1=(lower) y2=(upper) {}
        circle.high cx=(one(x)) cy=(median) r="3" {}
    }
}

/// Returns places from the first to the last value, each with the density there. The greatest density is 1.
/// The values are quantiles at equal steps.
fn outline(values: &[f64], least_bandwidth: f64) -> Vec<(f64, f64)> {
    let middles: Vec<f64> = values.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    let bandwidth = bandwidth(&middles).max(least_bandwidth);
    // Between two quantiles there is an equal share of all values. It is spread evenly over points that are
    // so close that their kernels join. The least bandwidth limits their number.
    let points: Vec<(f64, f64)> = values
        .windows(2)
        .flat_map(|pair| {
            let [low, length] = [pair[0], pair[1] - pair[0]];
            let count = ((length.abs() / bandwidth).ceil() as usize).max(1);
            let point = move |number| low + length * (number as f64 + 0.5) / count as f64;
            (0..count).map(move |number| (point(number), 1.0 / count as f64))
        })
        .collect();
    let [mut from, mut to] = [values[0], values[values.len() - 1]];
    if (to - from).abs() < 2.0 * bandwidth {
        // Equal values have a shape that can be seen.
        let middle = (from + to) / 2.0;
        [from, to] = [middle + bandwidth, middle - bandwidth];
    }
    // The factor that makes this a density is the same everywhere.
    let kernel = |y: f64, point: f64| (-((y - point) / bandwidth).powi(2) / 2.0).exp();
    let density = |y: f64| -> f64 {
        points
            .iter()
            .map(|&(point, share)| share * kernel(y, point))
            .sum()
    };
    let places: Vec<(f64, f64)> = (0..PLACES)
        .map(|number| from + (to - from) * number as f64 / (PLACES - 1) as f64)
        .map(|y| (y, density(y)))
        .collect();
    let greatest = places
        .iter()
        .map(|place| place.1)
        .fold(f64::MIN_POSITIVE, f64::max);
    places
        .into_iter()
        .map(|(y, density)| (y, density / greatest))
        .collect()
}

/// Returns Silverman's bandwidth: 0.9 times the smaller one of the standard deviation and the interquartile
/// range divided by 1.34, divided by the fifth root of the number of points.
fn bandwidth(points: &[f64]) -> f64 {
    let count = points.len() as f64;
    let mean = points.iter().sum::<f64>() / count;
    let deviation = (points.iter().map(|point| (point - mean).powi(2)).sum::<f64>() / count).sqrt();
    let quartile = |share: f64| points[(share * (count - 1.0)).round() as usize];
    let range = (quartile(0.75) - quartile(0.25)).abs() / 1.34;
    // If half of all values are equal, the range says nothing.
    let spread = if range > 0.0 {
        deviation.min(range)
    } else {
        deviation
    };
    0.9 * spread * count.powf(-0.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles(of: impl Fn(f64) -> f64) -> Quantiles {
        Quantiles::new((0..=100).map(|percent| of(f64::from(percent) / 100.0))).unwrap()
    }

    #[test]
    fn a_violin_is_widest_where_values_are_dense() {
        // Half of the values is from 0 to 1, a half from 9 to 10.
        let quantiles = percentiles(|share| {
            if share < 0.5 {
                2.0 * share
            } else {
                8.0 + 2.0 * share
            }
        });
        let shape = outline(&quantiles.0, 0.01);
        assert_eq!((shape[0].0, shape[PLACES - 1].0), (0.0, 10.0));
        let width = |y: f64| {
            let near = shape
                .iter()
                .min_by(|a, b| (a.0 - y).abs().total_cmp(&(b.0 - y).abs()));
            near.unwrap().1
        };
        assert!(width(0.5) > 0.8 && width(9.5) > 0.8, "{shape:?}");
        assert!(width(5.0) < 0.3 * width(0.5), "{shape:?}");
    }

    #[test]
    fn the_density_of_an_exponential_distribution_falls_like_it() {
        let quantiles = percentiles(|share| -(1.0 - share.min(0.995)).ln());
        let shape = outline(&quantiles.0, 0.001);
        let width = |y: f64| shape.iter().find(|place| place.0 >= y).unwrap().1;
        // exp(-(2 - 1)) is 0.37. Kernels of this bandwidth (0.24) change it by less than a tenth.
        let ratio = width(2.0) / width(1.0);
        assert!((ratio - 0.37).abs() < 0.06, "{ratio}");
    }

    #[test]
    fn a_long_tail_has_no_gaps() {
        // The values between the last two percentiles are far apart.
        let quantiles = percentiles(|share| {
            if share < 0.985 {
                share
            } else {
                1.0 + 3000.0 * (share - 0.985)
            }
        });
        let shape = outline(&quantiles.0, 0.01);
        let tail: Vec<f64> = shape
            .iter()
            .filter(|place| place.0 > 5.0 && place.0 < 30.0)
            .map(|place| place.1)
            .collect();
        let [least, most] = [f64::min, f64::max].map(|of| tail.iter().copied().reduce(of).unwrap());
        assert!(least > 0.0 && most < 3.0 * least, "{tail:?}");
    }

    #[test]
    fn equal_values_are_drawn() {
        let shape = outline(&[5.0; 101], 0.5);
        assert_eq!(shape.len(), PLACES);
        assert!(
            shape
                .iter()
                .all(|(y, width)| (4.5..=5.5).contains(y) && *width > 0.5)
        );
    }

    #[test]
    fn quantiles_rise_and_are_finite() {
        for wrong in [
            &[][..],
            &[1.0],
            &[2.0, 1.0],
            &[0.0, f64::NAN],
            &[0.0, f64::INFINITY],
        ] {
            assert_eq!(Quantiles::new(wrong.iter().copied()), None);
        }
        let quantiles = Quantiles::new([0.0, 10.0, 40.0]).unwrap();
        assert_eq!(
            [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantiles.at(share)),
            [0.0, 5.0, 10.0, 25.0, 40.0]
        );
    }

    #[test]
    fn all_groups_and_series_are_drawn() {
        let uniform = |to: f64| Some(percentiles(|share| 1.0 + (to - 1.0) * share));
        let group = |name: &str, violins| Group {
            name: name.into(),
            violins,
        };
        let mut figure = Violins {
            title: "a & b".into(),
            y: Scale::logarithmic("ms", 1.0, 100.0),
            series: vec!["fifo".into(), "<sqf>".into()],
            groups: vec![
                group("calls", vec![uniform(10.0), uniform(2.0)]),
                group("downloads", vec![uniform(100.0), None]),
            ],
        };
        let svg = figure.svg();
        for part in [
            "a &amp; b",
            "&lt;sqf&gt;",
            ">calls<",
            ">downloads<",
            "calls, fifo",
        ] {
            assert!(svg.contains(part), "{part} is missing in {svg}");
        }
        assert_eq!(svg.matches("path class=\"violin\"").count(), 3);
        assert_eq!(svg.matches("class=\"quartiles\"").count(), 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        // The highest value of the decades 1 to 100 is at the upper end, and 10 in the middle.
        assert!(svg.contains(" 8.0L") && svg.contains(" 187.0L"), "{svg}");

        figure.series.truncate(1);
        figure.groups[1].name = "a name that is far too long for the room of one group ".repeat(4);
        let svg = figure.svg();
        assert_eq!(svg.matches("path class=\"violin\"").count(), 2);
        assert!(svg.contains('…') && svg.contains("class=\"c1\""), "{svg}");
    }
}

//! A figure of how something grows: curves over two logarithmic axes, more of them than there are colours, each with its
//! name at its end.

use maud::Markup;

use crate::plot::{Axis, Curve, Figure, Frame, curves};
use crate::units;

/// The figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// What it shows.
    pub title: String,
    /// The horizontal axis, with its unit. It ends at the least and the greatest x, and has a label at each.
    pub x: &'static str,
    /// The vertical axis, with its unit. It has whole decades, from 1 on at least.
    pub y: &'static str,
    /// In the order of their colours: curves of one place look alike in all figures, also where others have no points.
    pub curves: Vec<Series>,
}

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// By rising x, which is above 0. A y below the axis lies at its end.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 430.0;
/// Room for names at the right.
const NAMES: f64 = 92.0;

impl Scaling {
    /// As a file of its own. Light or dark as the reader's screen is.
    pub fn svg(&self) -> String {
        self.drawn().file()
    }

    /// As part of a page.
    pub(crate) fn figure(&self) -> Markup {
        self.drawn().part()
    }

    fn drawn(&self) -> Figure<'_> {
        let frame = self.frame();
        Figure {
            title: &self.title,
            shapes: self.shapes(&frame),
            frame,
            legend: Vec::new(),
        }
    }

    fn frame(&self) -> Frame {
        let x = Axis::log_at(self.x, &self.values(|point| point.0), count);
        let ys = self.values(|point| point.1);
        let least = ys.iter().copied().find(|&y| y > 0.0).unwrap_or(1.0);
        let greatest = ys.last().copied().unwrap_or(1.0);
        let y = Axis::log(self.y, least.max(1.0), greatest.max(1.0), units::decade);
        Frame::new(WIDTH, HEIGHT, x, y).with_room_for_names(NAMES)
    }

    /// All values of one coordinate, rising.
    fn values(&self, of: fn(&(f64, f64)) -> f64) -> Vec<f64> {
        let points = self.curves.iter().flat_map(|series| &series.points);
        let mut values: Vec<f64> = points.map(of).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    }

    fn shapes(&self, frame: &Frame) -> Markup {
        let shown: Vec<Curve> = self
            .curves
            .iter()
            .enumerate()
            .filter(|(_, series)| !series.points.is_empty())
            .map(|(number, series)| Curve {
                name: &series.name,
                number,
                points: &series.points,
            })
            .collect();
        curves(frame, &shown)
    }
}

/// `512`, `4 K`, `1 M`: powers of two as people write them.
fn count(value: f64) -> String {
    match value as u64 {
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} M", n >> 20),
        n if n >= 1 << 10 && n % (1 << 10) == 0 => format!("{} K", n >> 10),
        n => n.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling() -> Scaling {
        let series = |name: &str, factor: f64| Series {
            name: name.into(),
            points: [1.0, 64.0, 4096.0].map(|x: f64| (x, factor * x.sqrt())).to_vec(),
        };
        Scaling {
            title: "By <size>".into(),
            x: "flows",
            y: "ns",
            curves: vec![series("one & all", 3.0), series("two", -1.0)],
        }
    }

    #[test]
    fn the_drawing_stands_alone() {
        let svg = scaling().svg();
        assert!(
            svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""),
            "{svg}"
        );
        for part in ["By &lt;size&gt;", "one &amp; all", ">4 K<", "--c0:"] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(svg.matches("<path class=\"line").count(), 2);
    }

    #[test]
    fn nothing_measured_is_still_a_figure() {
        let mut empty = scaling();
        empty.curves.clear();
        assert!(empty.svg().ends_with("</svg>"));
    }
}

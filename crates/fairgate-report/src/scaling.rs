//! A figure that shows growth: curves over two logarithmic axes, each with its name at its end. There can be
//! more curves than colours.

use maud::Markup;

use crate::plot::{Axis, CHARACTER, Curve, Figure, Frame, curves};
use crate::units;

/// A figure of curves over two logarithmic axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// The title.
    pub title: String,
    /// The horizontal axis, with its unit. It reaches from the least to the greatest x, and has a label at
    /// each x.
    pub x: &'static str,
    /// The vertical axis, with its unit. It has whole decades and starts at 1 or above.
    pub y: &'static str,
    /// The curves. The index selects the colour, also if a curve has no points. So a curve with the same
    /// index looks the same in all figures.
    pub curves: Vec<Series>,
}

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// The points, by rising x. x must be above 0. A y below the axis is drawn at its lower end.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 430.0;
/// The least space for names at the right, and what of it is before a name.
const NAMES: f64 = 92.0;
const BEFORE: f64 = 16.0;

impl Scaling {
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
        let longest = self.curves.iter().map(|series| series.name.chars().count()).max();
        let names = BEFORE + CHARACTER * longest.unwrap_or(0) as f64;
        Frame::new(WIDTH, HEIGHT, x, y).with_room_for_names(NAMES.max(names))
    }

    /// Returns all values of one coordinate, rising.
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

/// Formats a number: `512`, `4 K`, `1 M`.
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
    fn the_svg_file_is_complete() {
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
    fn long_names_have_room() {
        let mut long = scaling();
        let right = |scaling: &Scaling| WIDTH - scaling.frame().right();
        assert_eq!(right(&long), NAMES);
        long.curves[0].name = "a discipline with settings".into();
        assert!(right(&long) > 26.0 * 6.0);
    }

    /// A title that was longer than the picture is wide was cut.
    #[test]
    fn a_long_title_has_several_lines() {
        let lines = |title: &str| {
            let svg = Scaling {
                title: title.into(),
                ..scaling()
            }
            .svg();
            svg.matches("font-weight=\"600\"").count()
        };
        assert_eq!(lines("Time of a pair"), 1);
        let long = "Time of an enqueue and a dequeue, under FULL, packets of 1000 B, the flow with the \
                    shortest backlog gets the next packet";
        assert_eq!(lines(long), 2);
    }

    #[test]
    fn a_figure_without_curves_is_complete() {
        let mut empty = scaling();
        empty.curves.clear();
        assert!(empty.svg().ends_with("</svg>"));
    }
}

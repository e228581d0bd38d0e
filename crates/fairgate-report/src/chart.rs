//! A figure of curves over two axes. It is an SVG file or a part of a [`Sheet`](crate::sheet::Sheet).
//!
//! Computed values are drawn as a line. Measured values are drawn as marks with the interval that contains
//! the true value.

use maud::{Markup, html};

use crate::plot::{Axis, Figure, Frame, Line, Mark, lines, marks};
use crate::units;

/// The number of colours in the style sheet. Higher numbers start again at the first colour.
const COLOURS: usize = 10;
/// The size in units of the view box.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
/// The space for the labels of the vertical axis.
const LEFT: f64 = 62.0;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    label: String,
    logarithmic: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// Creates a linear axis between two values.
    pub fn linear(label: impl Into<String>, from: f64, to: f64) -> Scale {
        Scale {
            label: label.into(),
            logarithmic: false,
            from,
            to,
        }
    }

    /// Creates a logarithmic axis over the whole decades around the two values. Both must be above 0. The
    /// axis has at most eight decades, and ends at the decade of the greater value.
    pub fn logarithmic(label: impl Into<String>, from: f64, to: f64) -> Scale {
        Scale {
            label: label.into(),
            logarithmic: true,
            from,
            to,
        }
    }

    pub(crate) fn axis(&self) -> Axis {
        match self.logarithmic {
            true => Axis::log(self.label.clone(), self.from, self.to, units::decade),
            false => Axis::between(self.label.clone(), self.from, self.to, units::plain),
        }
    }
}

/// A point of a [`Curve`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The horizontal position.
    pub x: f64,
    /// The vertical position.
    pub y: f64,
    /// The interval that contains the true value, if `y` was measured.
    pub interval: Option<(f64, f64)>,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// A line through the points.
    Line,
    /// The points, with their intervals.
    Marks,
    /// Both a line and marks.
    LineAndMarks,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// The number of the colour. Curves that belong together have the same one.
    pub colour: usize,
    /// The number of the dash pattern. 0 is a solid line.
    pub dash: usize,
    /// How the curve is drawn.
    pub drawn: Drawn,
    /// The points from left to right. A line has a gap at points that aren't finite.
    pub points: Vec<Point>,
}

impl Curve {
    /// Creates a computed curve.
    pub fn line(
        name: impl Into<String>,
        colour: usize,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Curve {
        Curve {
            name: name.into(),
            colour,
            dash: 0,
            drawn: Drawn::Line,
            points: points
                .into_iter()
                .map(|(x, y)| Point { x, y, interval: None })
                .collect(),
        }
    }

    /// Creates a curve of measured points.
    pub fn marks(name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = Point>) -> Curve {
        Curve {
            name: name.into(),
            colour,
            dash: 0,
            drawn: Drawn::Marks,
            points: points.into_iter().collect(),
        }
    }

    /// Returns the curve with another dash pattern.
    pub fn dashed(self, dash: usize) -> Curve {
        Curve { dash, ..self }
    }

    fn draw(&self, frame: &Frame) -> Markup {
        let colour = self.colour % COLOURS;
        let finite = || {
            self.points
                .iter()
                .filter(|point| point.x.is_finite() && point.y.is_finite())
        };
        let line = Line {
            name: &self.name,
            colour,
            dash: self.dash % COLOURS,
            points: self.points.iter().map(|point| (point.x, point.y)).collect(),
        };
        let dots: Vec<Mark> = finite()
            .map(|point| Mark {
                at: (point.x, point.y),
                interval: point.interval,
            })
            .collect();
        html! {
            @if self.drawn != Drawn::Marks && !dots.is_empty() { (lines(frame, &[line])) }
            @if self.drawn != Drawn::Line { (marks(frame, &self.name, colour, &dots)) }
        }
    }

    /// Draws the sample for the legend, 26 by 12.
    fn sample(&self) -> Markup {
        let colour = self.colour % COLOURS;
        html! {
            @if self.drawn != Drawn::Marks {
                line class={ "line c" (colour) " d" (self.dash % COLOURS) } x1="0" x2="26" y1="6" y2="6" {}
            }
            @if self.drawn != Drawn::Line {
                g class={ "c" (colour) } {
                    line.whisker x1="13" x2="13" y1="1" y2="11" {}
                    circle.low cx="13" cy="6" r="2.8" {}
                }
            }
        }
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    /// The curves in the order of the legend. Later ones are drawn above earlier ones.
    pub curves: Vec<Curve>,
}

impl Chart {
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
            legend: self
                .curves
                .iter()
                .map(|curve| (curve.sample(), curve.name.as_str()))
                .collect(),
        }
    }

    fn frame(&self) -> Frame {
        Frame::new(WIDTH, HEIGHT, self.x.axis(), self.y.axis()).with_left(LEFT)
    }

    fn shapes(&self, frame: &Frame) -> Markup {
        html! { @for curve in &self.curves { (curve.draw(frame)) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart {
        let measured = Point {
            x: 2.0,
            y: 0.5,
            interval: Some((0.4, 0.6)),
        };
        Chart {
            title: "a & b".into(),
            x: Scale::linear("x", 0.0, 4.0),
            y: Scale::logarithmic("y", 0.01, 1.0),
            curves: vec![
                Curve::line("computed <1>", 0, points.iter().copied()),
                Curve::marks("measured", 1, [measured]),
            ],
        }
    }

    #[test]
    fn a_file_has_its_curves_names_and_namespace() {
        let svg = chart(&[(0.0, 1.0), (4.0, 0.01)]).svg();
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        assert!(svg.contains("a &amp; b") && svg.contains("computed &lt;1&gt;"));
        // The curve goes from the upper left to the lower right corner.
        assert!(svg.contains("M62.0 8.0L740.0 366.0"), "{svg}");
        // The interval of the mark is a bar and two ends. The legend has one more bar.
        assert_eq!(svg.matches("class=\"whisker\"").count(), 4);
    }

    #[test]
    fn points_that_are_not_finite_are_left_out() {
        let svg = chart(&[(0.0, f64::NAN), (1.0, f64::INFINITY)]).svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    /// Nothing is known between two points beside a gap, so no line leads there.
    #[test]
    fn a_line_has_gaps() {
        let drawn = |ys: &[f64]| {
            let points: Vec<(f64, f64)> = (0_u8..).map(f64::from).zip(ys.iter().copied()).collect();
            let svg = chart(&points).svg();
            let commands = |letter: char| {
                svg.split("d=\"")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .matches(letter)
                    .count()
            };
            ['M', 'L', 'h'].map(commands)
        };
        let gap = f64::NAN;
        assert_eq!(drawn(&[1.0, 1.0, 1.0, 1.0]), [1, 3, 0]);
        assert_eq!(drawn(&[1.0, 1.0, gap, 1.0, 1.0]), [2, 2, 0]);
        assert_eq!(drawn(&[gap, 1.0, gap, gap, 1.0, 1.0, gap]), [2, 1, 1]);
    }
}

//! The frame of a plot: grid, labels, and the area in which shapes are drawn.

use std::fmt::Write;

use maud::{Markup, html};

use crate::plot::Axis;

/// The axes and the size of a plot, in units of its view box.
pub(crate) struct Frame {
    pub(crate) x: Axis,
    pub(crate) y: Option<Axis>,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
}

const TOP: f64 = 8.0;
const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 34.0;
/// The space for the name of the vertical axis, and of a character of its labels.
const NAME: f64 = 24.0;
const DIGIT: f64 = 7.0;

impl Frame {
    /// Creates a plot over two axes.
    pub(crate) fn new(width: f64, height: f64, x: Axis, y: Axis) -> Frame {
        Frame {
            x,
            y: Some(y),
            width,
            height,
            left: 46.0,
            right: RIGHT,
        }
    }

    /// Returns the frame with more space at the right, for names at the ends of curves.
    pub(crate) fn with_room_for_names(self, right: f64) -> Frame {
        Frame { right, ..self }
    }

    /// Creates a plot with a row for each name instead of a vertical axis. `left` is the space for the names.
    pub(crate) fn with_rows(width: f64, rows: usize, left: f64, x: Axis) -> Frame {
        Frame {
            x,
            y: None,
            width,
            height: TOP + BOTTOM + rows as f64 * Frame::ROW,
            left,
            right: RIGHT,
        }
    }

    /// Returns the frame with more space for the labels of the vertical axis: `least`, or what the longest
    /// label takes beside the name of the axis.
    pub(crate) fn with_left(self, least: f64) -> Frame {
        let labels = self.y.iter().flat_map(|axis| &axis.ticks);
        let longest = labels.map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        Frame {
            left: least.max(NAME + longest as f64 * DIGIT),
            ..self
        }
    }

    /// The height of a row.
    pub(crate) const ROW: f64 = 19.0;

    /// Returns the width of the whole drawing.
    pub(crate) fn width(&self) -> f64 {
        self.width
    }

    /// Returns a line through points, as the `d` attribute of a path. It has a gap at points that are not
    /// finite. A point between two gaps is a dash.
    pub(crate) fn path(&self, points: &[(f64, f64)]) -> String {
        let mut d = String::with_capacity(points.len() * 12);
        for run in points.split(|(x, y)| !x.is_finite() || !y.is_finite()) {
            if let [(x, y)] = run {
                let (x, y) = (self.at_x(*x), self.at_y(*y));
                write!(d, "M{:.1} {y:.1}h2", x - 1.0).expect("strings take any text");
                continue;
            }
            for (index, &(x, y)) in run.iter().enumerate() {
                let command = if index == 0 { 'M' } else { 'L' };
                write!(d, "{command}{:.1} {:.1}", self.at_x(x), self.at_y(y)).expect("strings take any text");
            }
        }
        d
    }

    /// Returns the horizontal coordinate of a value.
    pub(crate) fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.position(value) * (self.width - self.left - self.right)
    }

    /// Returns the vertical coordinate of a value.
    pub(crate) fn at_y(&self, value: f64) -> f64 {
        let position = self.y.as_ref().map_or(0.0, |axis| axis.position(value));
        self.bottom() - position * (self.bottom() - TOP)
    }

    /// Returns the vertical middle of a row.
    pub(crate) fn row(&self, index: usize) -> f64 {
        TOP + (index as f64 + 0.5) * Frame::ROW
    }

    /// Returns the height of the whole drawing.
    pub(crate) fn height(&self) -> f64 {
        self.height
    }

    /// Returns the vertical coordinate of the horizontal axis.
    pub(crate) fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    /// Returns the right end of the drawing area.
    pub(crate) fn right(&self) -> f64 {
        self.width - self.right
    }

    /// Returns the left end of the drawing area.
    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// Draws the plot. `description` is for screen readers. `shapes` are drawn inside the axes.
    pub(crate) fn draw(&self, description: &str, shapes: Markup) -> Markup {
        html! {
            svg viewBox={ "0 0 " (self.width) " " (format!("{:.0}", self.height)) }
                role="img" aria-label=(description) {
                (self.content(shapes))
            }
        }
    }

    /// Draws the contents of the plot: grid, labels, shapes and axis.
    pub(crate) fn content(&self, shapes: Markup) -> Markup {
        let right = self.right();
        html! {
            @for (value, label) in &self.x.ticks {
                @let x = format!("{:.1}", self.at_x(*value));
                line.grid x1=(x) x2=(x) y1=(TOP) y2=(self.bottom()) {}
                text.tick x=(x) y=(self.bottom() + 13.0) text-anchor="middle" { (label) }
            }
            @if let Some(axis) = &self.y {
                @for (value, label) in &axis.ticks {
                    @let y = format!("{:.1}", self.at_y(*value));
                    line.grid x1=(self.left) x2=(right) y1=(y) y2=(y) {}
                    text.tick x=(self.left - 5.0) y=(y) dy="3.5" text-anchor="end" { (label) }
                }
                text.label transform={ "translate(10 " ((TOP + self.bottom()) / 2.0) ") rotate(-90)" }
                    text-anchor="middle" { (axis.label) }
            }
            text.label x=((self.left + right) / 2.0) y=(self.height - 5.0)
                text-anchor="middle" { (self.x.label) }
            (shapes)
            line.axis x1=(self.left) x2=(right) y1=(self.bottom()) y2=(self.bottom()) {}
        }
    }
}

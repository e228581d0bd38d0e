//! The frame of a plot: grid, labels, and the place that shapes are drawn in.

use std::fmt::Write;

use maud::{Markup, html};

use crate::plot::Axis;

/// A plot's axes and size, in the units of its view box.
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

impl Frame {
    /// A plot over two axes.
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

    /// The same with more room to the right, for names at the ends of curves.
    pub(crate) fn with_room_for_names(self, right: f64) -> Frame {
        Frame { right, ..self }
    }

    /// A plot with a row for each name instead of a vertical axis; `left` is the room for the names.
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

    /// The same with more room for the labels of the vertical axis.
    pub(crate) fn with_left(self, left: f64) -> Frame {
        Frame { left, ..self }
    }

    /// Height of a row.
    pub(crate) const ROW: f64 = 19.0;

    /// Width of the whole.
    pub(crate) fn width(&self) -> f64 {
        self.width
    }

    /// A line through points, as the `d` of a path.
    pub(crate) fn path(&self, points: &[(f64, f64)]) -> String {
        let mut d = String::with_capacity(points.len() * 12);
        for (index, &(x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            write!(d, "{command}{:.1} {:.1}", self.at_x(x), self.at_y(y)).expect("strings take any text");
        }
        d
    }

    /// Horizontal place of a value.
    pub(crate) fn at_x(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * (self.width - self.left - self.right)
    }

    /// Vertical place of a value.
    pub(crate) fn at_y(&self, value: f64) -> f64 {
        let place = self.y.as_ref().map_or(0.0, |axis| axis.place(value));
        self.bottom() - place * (self.bottom() - TOP)
    }

    /// Vertical middle of a row.
    pub(crate) fn row(&self, index: usize) -> f64 {
        TOP + (index as f64 + 0.5) * Frame::ROW
    }

    /// Height of the whole drawing.
    pub(crate) fn height(&self) -> f64 {
        self.height
    }

    /// Where the horizontal axis lies.
    pub(crate) fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    /// Right end of the drawing area.
    pub(crate) fn right(&self) -> f64 {
        self.width - self.right
    }

    /// Left end of the drawing area.
    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// The whole drawing: `description` for those who can't see it, `shapes` inside the axes.
    pub(crate) fn draw(&self, description: &str, shapes: Markup) -> Markup {
        html! {
            svg viewBox={ "0 0 " (self.width) " " (format!("{:.0}", self.height)) } role="img" aria-label=(description) {
                (self.content(shapes))
            }
        }
    }

    /// What is in the drawing.
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
            text.label x=((self.left + right) / 2.0) y=(self.height - 5.0) text-anchor="middle" { (self.x.label) }
            (shapes)
            line.axis x1=(self.left) x2=(right) y1=(self.bottom()) y2=(self.bottom()) {}
        }
    }
}

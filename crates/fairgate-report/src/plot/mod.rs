//! Plots as SVG inside a page. Shapes have classes, and the page's style sheet gives them colours. So one
//! drawing is enough for light, dark and print. This is our own code because plotting crates write fixed
//! colours.

mod axis;
mod curves;
mod figure;
mod frame;
mod shapes;

pub(crate) use axis::Axis;
pub(crate) use curves::{Curve, curves};
pub(crate) use figure::{CHARACTER, Figure};
pub(crate) use frame::Frame;
pub(crate) use shapes::{
    Bar, Layer, Line, Mark, Range, Shape, bars, lines, marks, ranges, shape, stack, steps,
};

/// Formats a coordinate with one decimal.
pub(crate) fn one(value: f64) -> String {
    format!("{value:.1}")
}

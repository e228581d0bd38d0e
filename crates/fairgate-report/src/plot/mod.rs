//! Plots as SVG inside a page: shapes carry classes, the page's style sheet gives them colour, so that light, dark and
//! print need one drawing. Own code, since plotting crates write fixed colours.

mod axis;
mod curves;
mod figure;
mod frame;
mod shapes;

pub(crate) use axis::Axis;
pub(crate) use curves::{Curve, curves};
pub(crate) use figure::Figure;
pub(crate) use frame::Frame;
pub(crate) use shapes::{
    Bar, Layer, Line, Mark, Range, Shape, bars, lines, marks, ranges, shape, stack, steps,
};

/// A coordinate as it is written: to a tenth.
fn one(value: f64) -> String {
    format!("{value:.1}")
}

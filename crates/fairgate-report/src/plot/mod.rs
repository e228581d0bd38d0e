//! Plots as SVG inside a page: shapes carry classes, the page's style sheet gives them colour, so that light, dark and
//! print need one drawing. Own code, since plotting crates write fixed colours.

mod axis;
mod curves;
mod frame;
mod shapes;

pub(crate) use axis::Axis;
pub(crate) use curves::{Curve, curves};
pub(crate) use frame::Frame;
pub(crate) use shapes::{
    Bar, Layer, Line, Mark, Range, Shape, bars, lines, marks, ranges, shape, stack, steps,
};

//! The shapes inside a frame. `colour` is the number of a class in the style sheet, and `dash` the number of
//! a dash pattern. Lines never differ by colour alone.

use maud::{Markup, html};

use crate::plot::{Frame, one};

/// A line through points.
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: usize,
    pub(crate) dash: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws lines, each with its name as a tool tip.
pub(crate) fn lines(frame: &Frame, lines: &[Line]) -> Markup {
    html! {
        @for line in lines {
            path class={ "line c" (line.colour) " d" (line.dash) } d=(frame.path(&line.points)) {
                title { (line.name) }
            }
        }
    }
}

/// A measured point: its coordinates, and the interval that contains the true value.
pub(crate) struct Mark {
    pub(crate) at: (f64, f64),
    pub(crate) interval: Option<(f64, f64)>,
}

/// Draws points of one colour, with their intervals as bars.
pub(crate) fn marks(frame: &Frame, name: &str, colour: usize, marks: &[Mark]) -> Markup {
    html! {
        g class={ "c" (colour) } {
            title { (name) }
            @for mark in marks {
                @let (x, y) = (frame.at_x(mark.at.0), frame.at_y(mark.at.1));
                @if let Some((low, high)) = mark.interval {
                    @let (low, high) = (frame.at_y(low), frame.at_y(high));
                    line.whisker x1=(one(x)) x2=(one(x)) y1=(one(low)) y2=(one(high)) {}
                    @for end in [low, high] {
                        line.whisker x1=(one(x - 2.5)) x2=(one(x + 2.5)) y1=(one(end)) y2=(one(end)) {}
                    }
                }
                circle.low cx=(one(x)) cy=(one(y)) r="2.8" {}
            }
        }
    }
}

/// A mark that differs from the others without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Dot,
    Ring,
    Diamond,
    Cross,
    Tick,
}

impl Shape {
    /// Returns the shape of the series with this number.
    pub(crate) fn of(number: usize) -> Shape {
        [Shape::Dot, Shape::Ring, Shape::Diamond, Shape::Cross, Shape::Tick][number % 5]
    }
}

/// Draws a mark around a point, 8 wide.
pub(crate) fn shape(shape: Shape, x: f64, y: f64) -> Markup {
    let to = |dx: f64, dy: f64| format!("{:.1} {:.1}", x + dx, y + dy);
    html! {
        @match shape {
            Shape::Dot => { circle.low cx=(one(x)) cy=(one(y)) r="3.6" {} }
            Shape::Ring => { circle.ring cx=(one(x)) cy=(one(y)) r="3.8" {} }
            Shape::Diamond => {
                path.low d={ "M" (to(-4.4, 0.0)) "L" (to(0.0, -4.4))
                    "L" (to(4.4, 0.0)) "L" (to(0.0, 4.4)) "Z" } {}
            }
            Shape::Cross => {
                path.ring d={ "M" (to(-3.6, -3.6)) "L" (to(3.6, 3.6))
                    "M" (to(-3.6, 3.6)) "L" (to(3.6, -3.6)) } {}
            }
            Shape::Tick => { line.mark x1=(one(x)) x2=(one(x)) y1=(one(y - 5.5)) y2=(one(y + 5.5)) {} }
        }
    }
}

/// One layer of a stack, with its value in each interval of the stack.
pub(crate) struct Layer<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: usize,
    pub(crate) values: &'a [f64],
}

/// Draws areas on top of each other, the first at the bottom. Each value is valid from its entry in `xs` to
/// the next.
pub(crate) fn stack(frame: &Frame, xs: &[f64], layers: &[Layer]) -> Markup {
    let mut floor = vec![0.0; xs.len().saturating_sub(1)];
    html! {
        @for layer in layers {
            @let ceiling: Vec<f64> = floor.iter().zip(layer.values).map(|(low, value)| low + value).collect();
            @let mut outline = steps(xs, &ceiling);
            @let () = outline.extend(steps(xs, &floor).into_iter().rev());
            path class={ "area c" (layer.colour) } d={ (frame.path(&outline)) "Z" } { title { (layer.name) } }
            @let () = floor = ceiling;
        }
    }
}

/// A bar from low to high, with a mark between.
pub(crate) struct Range<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: usize,
    /// Median, 95th and 99th percentile; `None` if there is nothing to show.
    pub(crate) values: Option<[f64; 3]>,
    /// The values in words, or why there are none.
    pub(crate) note: String,
}

/// Draws rows with a bar from the first value to the last: a dot at the first, a tick at the middle one, a
/// ring at the last.
pub(crate) fn ranges(frame: &Frame, ranges: &[Range]) -> Markup {
    html! {
        @for (index, range) in ranges.iter().enumerate() {
            @let y = frame.row(index);
            text.name x=(frame.left() - 6.0) y=(y) dy="3.5" text-anchor="end" { (range.name) }
            @let positions = range.values.map(|values| values.map(|value| frame.at_x(value)));
            @if let Some([low, middle, high]) = positions {
                g class={ "c" (range.colour) } {
                    title { (range.name) ": " (range.note) }
                    line.reach x1=(one(low)) x2=(one(high)) y1=(y) y2=(y) {}
                    circle.low cx=(one(low)) cy=(y) r="3.5" {}
                    line.mark x1=(one(middle)) x2=(one(middle)) y1=(y - 5.0) y2=(y + 5.0) {}
                    circle.high cx=(one(high)) cy=(y) r="3.5" {}
                }
            } @else {
                text.tick x=(frame.left() + 6.0) y=(y) dy="3.5" { (range.note) }
            }
        }
    }
}

/// A row with a bar that starts at 0.
pub(crate) struct Bar<'a> {
    pub(crate) name: &'a str,
    pub(crate) colour: usize,
    pub(crate) value: f64,
    pub(crate) note: String,
}

/// Draws rows of bars, each with its value as text.
pub(crate) fn bars(frame: &Frame, bars: &[Bar]) -> Markup {
    html! {
        @for (index, bar) in bars.iter().enumerate() {
            @let y = frame.row(index);
            @let end = frame.at_x(bar.value);
            text.name x=(frame.left() - 6.0) y=(y) dy="3.5" text-anchor="end" { (bar.name) }
            rect class={ "bar c" (bar.colour) } x=(frame.left()) y=(y - 5.5)
                width=(one(end - frame.left())) height="11" {}
            text.note x=(one(end + 4.0)) y=(y) dy="3.5" { (bar.note) }
        }
    }
}

/// Returns the corners of a step function.
pub(crate) fn steps(xs: &[f64], values: &[f64]) -> Vec<(f64, f64)> {
    values
        .iter()
        .zip(xs.windows(2))
        .flat_map(|(&value, ends)| [(ends[0], value), (ends[1], value)])
        .collect()
}

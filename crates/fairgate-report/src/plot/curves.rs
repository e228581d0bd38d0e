//! Curves through measured points, each with its name at its end. There can be more curves than colours.

use maud::{Markup, html};

use crate::plot::{Frame, one};

/// A curve. Its number selects colour, dashes and marks, so that no two of the first twenty curves look
/// alike.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) number: usize,
    /// The points, by rising x.
    pub(crate) points: &'a [(f64, f64)],
}

/// The number of colours and of dash patterns in the style sheet.
const COLOURS: usize = 10;
/// The least distance between two names, in units of the view box.
const NAME_DISTANCE: f64 = 11.5;

/// Draws the curves, and their names to the right of the frame. Names that would overlap are moved apart.
pub(crate) fn curves(frame: &Frame, curves: &[Curve]) -> Markup {
    let names = name_heights(frame, curves);
    html! {
        @for (curve, name_y) in curves.iter().zip(names) {
            @let (colour, round) = (curve.number % COLOURS, curve.number / COLOURS);
            @let dash = (colour + 5 * round) % COLOURS;
            g class={ "c" (colour) } {
                title { (curve.name) }
                path class={ "line d" (dash) } d=(frame.path(curve.points)) {}
                @for &(x, y) in curve.points {
                    @let (x, y) = (frame.at_x(x), frame.at_y(y));
                    @if round % 2 == 0 {
                        circle.low cx=(one(x)) cy=(one(y)) r="2.4" {}
                    } @else {
                        rect.low x=(one(x - 2.2)) y=(one(y - 2.2)) width="4.4" height="4.4" {}
                    }
                }
                @if let Some(&(x, y)) = curve.points.last() {
                    path class="leader" d={ "M" (one(frame.at_x(x))) " " (one(frame.at_y(y)))
                        "L" (one(frame.right() + 3.0)) " " (one(frame.at_y(y)))
                        "L" (one(frame.right() + 11.0)) " " (one(name_y)) } {}
                    text.curve x=(one(frame.right() + 13.0)) y=(one(name_y)) dy="3.5" { (curve.name) }
                }
            }
        }
    }
}

/// Returns the heights of the names. A name is at the end of its curve, but at least [`NAME_DISTANCE`] from
/// the next one, and within the frame if there is enough space.
fn name_heights(frame: &Frame, curves: &[Curve]) -> Vec<f64> {
    let wanted: Vec<f64> = curves
        .iter()
        .map(|curve| curve.points.last().map_or(0.0, |&(_, y)| frame.at_y(y)))
        .collect();
    let mut order: Vec<usize> = (0..curves.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // From the top down, move each name below the one before. Then, from the bottom up, move names into the
    // frame.
    let mut heights = wanted;
    for pair in 1..order.len() {
        heights[order[pair]] = heights[order[pair]].max(heights[order[pair - 1]] + NAME_DISTANCE);
    }
    let mut ceiling = frame.bottom();
    for &index in order.iter().rev() {
        heights[index] = heights[index].min(ceiling);
        ceiling = heights[index] - NAME_DISTANCE;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Axis;

    #[test]
    fn names_do_not_overlap_and_keep_the_order_of_their_curves() {
        let x = Axis::log_at("flows", &[1.0, 100.0], |v| format!("{v}"));
        let y = Axis::log("ns", 1.0, 1000.0, |v| format!("{v}"));
        let frame = Frame::new(400.0, 200.0, x, y);
        let ends = [5.0, 5.1, 5.2, 900.0, 1.0, 1.0];
        let points: Vec<[(f64, f64); 1]> = ends.iter().map(|&end| [(100.0, end)]).collect();
        let all: Vec<Curve> = points
            .iter()
            .map(|points| Curve {
                name: "",
                number: 0,
                points,
            })
            .collect();
        let heights = name_heights(&frame, &all);
        let mut sorted = heights.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(
            sorted
                .windows(2)
                .all(|pair| pair[1] - pair[0] >= NAME_DISTANCE - 1e-9),
            "{sorted:?}"
        );
        assert!(heights[3] < heights[2] && heights[2] < heights[1] && heights[1] < heights[0]);
        assert!(sorted[5] <= frame.bottom());
    }
}

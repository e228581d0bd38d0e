//! A dot plot. It has a row for each name, and a mark for each series in every row. It can have a limit line
//! with which all marks are compared.

use maud::{Markup, html};

use crate::chart::Scale;
use crate::plot::{Figure, Frame, Shape, shape};

/// A dot plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Scale,
    /// The meaning of the marks, in the order of their colours and shapes. There are five distinct shapes.
    pub series: Vec<String>,
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
    /// A value at which a vertical line is drawn.
    pub limit: Option<f64>,
}

/// A name and its marks.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The name.
    pub name: String,
    /// The value of each series; `None` if there is no value.
    pub values: Vec<Option<f64>>,
}

const WIDTH: f64 = 760.0;
/// The number of colours in the style sheet.
const COLOURS: usize = 10;

impl Dots {
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
                .series
                .iter()
                .enumerate()
                .map(|(index, name)| (sample(index), name.as_str()))
                .collect(),
        }
    }

    fn frame(&self) -> Frame {
        let longest = self.rows.iter().map(|row| row.name.chars().count()).max();
        let room = (longest.unwrap_or(0) as f64 * 6.2 + 16.0).clamp(60.0, 380.0);
        Frame::with_rows(WIDTH, self.rows.len(), room, self.x.axis())
    }

    fn shapes(&self, frame: &Frame) -> Markup {
        html! {
            @for (index, row) in self.rows.iter().enumerate() {
                @let y = frame.row(index);
                line.grid x1=(frame.left()) x2=(frame.right()) y1=(y) y2=(y) {}
                text.name x=(frame.left() - 6.0) y=(y) dy="3.5" text-anchor="end" { (row.name) }
                @for (number, value) in row.values.iter().enumerate() {
                    @if let Some(value) = value.filter(|value| value.is_finite()) {
                        g class={ "c" (number % COLOURS) } {
                            title { (row.name) ": " (self.series.get(number).map_or("", String::as_str)) }
                            (shape(Shape::of(number), frame.at_x(value), y))
                        }
                    }
                }
            }
            @if let Some(limit) = self.limit {
                @let x = format!("{:.1}", frame.at_x(limit));
                line.limit x1=(x) x2=(x) y1="8" y2=(frame.bottom()) {}
            }
        }
    }
}

/// Draws the sample of a series for the legend, 26 by 12.
fn sample(series: usize) -> Markup {
    html! { g class={ "c" (series % COLOURS) } { (shape(Shape::of(series), 10.0, 6.0)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dots() -> Dots {
        Dots {
            title: "a & b".into(),
            x: Scale::linear("%", 0.0, 100.0),
            series: vec!["random".into(), "<worst>".into()],
            rows: vec![
                Row {
                    name: "qfq".into(),
                    values: vec![Some(20.0), Some(90.0)],
                },
                Row {
                    name: "fifo".into(),
                    values: vec![None, Some(f64::NAN)],
                },
            ],
            limit: Some(100.0),
        }
    }

    #[test]
    fn all_names_and_all_finite_values_are_drawn() {
        let svg = dots().svg();
        for part in ["a &amp; b", "&lt;worst&gt;", ">qfq<", ">fifo<", "class=\"limit\""] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(!svg.contains("NaN"), "{svg}");
        // There are two marks, and the same two in the legend.
        assert_eq!(svg.matches("class=\"c0\"").count(), 2);
        assert_eq!(svg.matches("class=\"c1\"").count(), 2);
    }
}

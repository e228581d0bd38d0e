//! A plot with its title and legend. It is an SVG file or a part of a page.

use maud::{Markup, PreEscaped, html};

use crate::page::STYLE;
use crate::plot::Frame;

/// A plot with its title and legend.
pub(crate) struct Figure<'a> {
    pub(crate) title: &'a str,
    pub(crate) frame: Frame,
    pub(crate) shapes: Markup,
    /// A sample, 26 by 12, and its name.
    pub(crate) legend: Vec<(Markup, &'a str)>,
}

/// The height of a row of a file's legend, and the number of names in a row.
const LEGEND_ROW: f64 = 17.0;
const LEGEND_COLUMNS: usize = 3;
/// The height of a file's title.
const TITLE: f64 = 26.0;

impl Figure<'_> {
    /// Returns the figure as an SVG file. It follows the reader's light or dark colour scheme.
    pub(crate) fn file(self) -> String {
        let Figure {
            title,
            frame,
            shapes,
            legend,
        } = self;
        let below = TITLE + frame.height() + 4.0;
        let legend_height = match legend.len().div_ceil(LEGEND_COLUMNS) {
            0 => 0.0,
            rows => 8.0 + rows as f64 * LEGEND_ROW,
        };
        let (width, height) = (frame.width(), TITLE + frame.height() + legend_height);
        let column = (width - frame.left()) / LEGEND_COLUMNS as f64;
        html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) role="img" aria-label=(title) {
                style { (PreEscaped(STYLE)) (PreEscaped("svg { font: 15px system-ui, sans-serif; }")) }
                rect width=(width) height=(height) fill="var(--paper)" {}
                text x="8" y="18" font-size="14" font-weight="600" { (title) }
                g transform={ "translate(0 " (TITLE) ")" } { (frame.content(shapes)) }
                @for (index, (sample, name)) in legend.iter().enumerate() {
                    @let x = frame.left() + (index % LEGEND_COLUMNS) as f64 * column;
                    @let y = below + (index / LEGEND_COLUMNS) as f64 * LEGEND_ROW;
                    g transform={ "translate(" (x) " " (y) ")" } { (sample) }
                    text.name x=(x + 33.0) y=(y + 10.0) { (name) }
                }
            }
        }
        .into_string()
    }

    /// Returns the figure as a part of a page. The page's style sheet defines the colours.
    pub(crate) fn part(self) -> Markup {
        html! {
            figure {
                figcaption { b { (self.title) } }
                (self.frame.draw(self.title, self.shapes))
                @if !self.legend.is_empty() {
                    ul.legend { @for (sample, name) in &self.legend { li {
                        svg viewBox="0 0 26 12" aria-hidden="true" { (sample) }
                        (name)
                    } } }
                }
            }
        }
    }
}

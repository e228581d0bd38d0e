//! A plot with its title and legend. It is an SVG file or a part of a page.

use fairgate::harmless;
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

/// The height of a row of a file's legend, and the maximum number of names in a row.
const LEGEND_ROW: f64 = 17.0;
const LEGEND_COLUMNS: usize = 3;
/// The width of a sample in the legend with the spaces around it, and about that of a character.
const SAMPLE: f64 = 45.0;
pub(crate) const CHARACTER: f64 = 6.5;
/// The height of a file's title of one line, of each further line, and about the width of a character.
const TITLE: f64 = 26.0;
const TITLE_LINE: f64 = 18.0;
const TITLE_CHARACTER: f64 = 8.2;

impl Figure<'_> {
    /// Returns the figure as an SVG file. It follows the reader's light or dark colour scheme.
    pub(crate) fn file(self) -> String {
        let Figure {
            title,
            frame,
            shapes,
            legend,
        } = self;
        let titles = textwrap::wrap(title, ((frame.width() - 16.0) / TITLE_CHARACTER) as usize);
        let above = TITLE + TITLE_LINE * titles.len().saturating_sub(1) as f64;
        let below = above + frame.height() + 4.0;
        let longest = legend.iter().map(|(_, name)| name.chars().count()).max();
        let needed = SAMPLE + CHARACTER * longest.unwrap_or(0) as f64;
        let columns = (((frame.width() - frame.left()) / needed) as usize).clamp(1, LEGEND_COLUMNS);
        let legend_height = match legend.len().div_ceil(columns) {
            0 => 0.0,
            rows => 8.0 + rows as f64 * LEGEND_ROW,
        };
        let (width, height) = (frame.width(), above + frame.height() + legend_height);
        let column = (width - frame.left()) / columns as f64;
        let figure = html! {
            svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) role="img" aria-label=(title) {
                style {
                    (PreEscaped(with_fixed_colours(STYLE)))
                    (PreEscaped("svg { font: 15px system-ui, sans-serif; }"))
                }
                rect.paper width=(width) height=(height) {}
                @for (number, line) in titles.iter().enumerate() {
                    @let y = 18.0 + number as f64 * TITLE_LINE;
                    text x="8" y=(y) font-size="14" font-weight="600" { (line) }
                }
                g transform={ "translate(0 " (above) ")" } { (frame.content(shapes)) }
                @for (index, (sample, name)) in legend.iter().enumerate() {
                    @let x = frame.left() + (index % columns) as f64 * column;
                    @let y = below + (index / columns) as f64 * LEGEND_ROW;
                    g transform={ "translate(" (x) " " (y) ")" } { (sample) }
                    text.name x=(x + 33.0) y=(y + 10.0) { (name) }
                }
            }
        };
        harmless::text(&figure.into_string())
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

/// Returns a style sheet in which a fixed colour stands before each use of a variable: that of the light
/// scheme. Programs that know no variables, such as Inkscape and most converters, take the fixed colour;
/// browsers take the declaration after it.
fn with_fixed_colours(style: &str) -> String {
    let light = style.split_once('}').map_or(style, |(root, _)| root);
    let colours: Vec<(String, &str)> = light
        .split([';', '{'])
        .filter_map(|declaration| declaration.trim().split_once(':'))
        .map(|(name, colour)| (format!("var({})", name.trim()), colour.trim()))
        .collect();
    let mut text = String::with_capacity(2 * style.len());
    for part in style.split_inclusive(['{', '}', ';']) {
        if part.contains("var(--") {
            let mut fixed = part.trim_end_matches(['}', ';']).trim_end().to_owned();
            for (variable, colour) in &colours {
                fixed = fixed.replace(variable.as_str(), colour);
            }
            text.push_str(&fixed);
            text.push(';');
        }
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_colour_stands_before_each_variable() {
        let style = ":root { --ink: #111; --c1: #abc; }\n@media dark { :root { --ink: #eee; } }\n\
                     .a { fill: var(--ink); border: 1px solid var(--c1) } .b { width: 2px; }";
        assert_eq!(
            with_fixed_colours(style),
            ":root { --ink: #111; --c1: #abc; }\n@media dark { :root { --ink: #eee; } }\n\
             .a { fill: #111; fill: var(--ink); border: 1px solid #abc; border: 1px solid var(--c1) } \
             .b { width: 2px; }"
        );
        let style = with_fixed_colours(STYLE);
        assert!(style.contains("fill: #1b1f24; fill: var(--ink)"), "{style}");
        assert_eq!(style.matches("var(--").count(), STYLE.matches("var(--").count());
    }
}

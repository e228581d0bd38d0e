//! A page of text, tables and charts. It has no scripts, and needs no network and no other file.

use fairgate::harmless;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::Chart;
use crate::dots::Dots;
use crate::scaling::Scaling;
use crate::violin::Violins;

/// A page of text, tables and charts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// The title.
    pub title: String,
    /// The introduction.
    pub lead: String,
    /// The parts of the page, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a [`Sheet`].
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A list of points.
    List(Vec<String>),
    /// Preformatted text.
    Code(String),
    /// A table.
    Table(Table),
    /// A figure.
    Chart(Chart),
    /// A figure that shows growth.
    Scaling(Scaling),
    /// A dot plot.
    Dots(Dots),
    /// The shapes of distributions.
    Violins(Violins),
}

/// A table. The first column names the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub head: Vec<String>,
    /// The cells of each row, as many as columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A number, aligned to the right.
    Number(String),
    /// Text, aligned to the left.
    Words(String),
    /// A number or text that is highlighted, aligned as the other cells of its column.
    Alarm(String),
    /// Text that leads to another page.
    Link {
        /// The text.
        text: String,
        /// The address of the page, relative to this one.
        to: String,
    },
}

impl Sheet {
    /// Returns the page as text.
    pub fn render(&self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    style { (PreEscaped(crate::page::STYLE)) }
                }
                body {
                    header { h1 { (self.title) } p.lead { (self.lead) } }
                    main { @for block in &self.blocks { (block.markup()) } }
                }
            }
        };
        harmless::text(&page.into_string())
    }
}

impl Block {
    fn markup(&self) -> Markup {
        match self {
            Block::Heading(text) => html! { h2 { (text) } },
            Block::Text(text) => html! { p.how { (text) } },
            Block::List(points) => html! { ul { @for point in points { li { (point) } } } },
            Block::Code(text) => html! { pre { code { (text) } } },
            Block::Table(table) => table.markup(),
            Block::Chart(chart) => chart.figure(),
            Block::Scaling(scaling) => scaling.figure(),
            Block::Dots(dots) => dots.figure(),
            Block::Violins(violins) => violins.figure(),
        }
    }
}

impl Table {
    fn markup(&self) -> Markup {
        html! {
            div.scroll { table {
                thead { tr { @for (column, name) in self.head.iter().enumerate() {
                    th class=[self.has_text(column).then_some("text")] { (name) }
                } } }
                tbody { @for row in &self.rows { tr {
                    @for (column, cell) in row.iter().enumerate() {
                        @match (column, cell) {
                            (0, Cell::Number(text)) => { th scope="row" { (text) } }
                            (0, Cell::Words(text) | Cell::Alarm(text)) => {
                                th.text scope="row" { (text) }
                            }
                            (0, Cell::Link { text, to }) => {
                                th.text scope="row" { a href=(to) { (text) } }
                            }
                            (_, Cell::Number(text)) => { td { (text) } }
                            (_, Cell::Words(text)) => { td.text { (text) } }
                            (_, Cell::Alarm(text)) if self.has_text(column) => { td.no.text { (text) } }
                            (_, Cell::Alarm(text)) => { td.no { (text) } }
                            (_, Cell::Link { text, to }) => { td.text { a href=(to) { (text) } } }
                        }
                    }
                } } }
            } }
        }
    }

    /// Whether a column has text, which is aligned to the left, or only numbers.
    fn has_text(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| matches!(cell, Cell::Words(_) | Cell::Link { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_all_blocks_and_escapes_them() {
        let page = Sheet {
            title: "q < 1".into(),
            lead: "lead".into(),
            blocks: vec![
                Block::Heading("Figures".into()),
                Block::List(vec!["one".into(), "two".into()]),
                Block::Table(Table {
                    head: ["what", "value", "verdict"].map(String::from).into(),
                    rows: vec![
                        vec![
                            Cell::Words("delay".into()),
                            Cell::Number("3 ms".into()),
                            Cell::Words("so".into()),
                        ],
                        vec![
                            Cell::Link {
                                text: "loss".into(),
                                to: "a&b.html".into(),
                            },
                            Cell::Alarm("2 %".into()),
                            Cell::Alarm("not so".into()),
                        ],
                    ],
                }),
            ],
        }
        .render();
        for part in [
            "<h1>q &lt; 1</h1>",
            "<h2>Figures</h2>",
            "<li>two</li>",
            "<th class=\"text\" scope=\"row\">delay</th><td>3 ms</td>",
            "<a href=\"a&amp;b.html\">loss</a>",
            // Headings and what is highlighted are aligned as the rest of their column.
            "<th>value</th><th class=\"text\">verdict</th>",
            "<td class=\"no\">2 %</td><td class=\"no text\">not so</td>",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
    }
}

//! A page of text, tables and charts that needs no network, no script and no other file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::Chart;
use crate::dots::Dots;
use crate::scaling::Scaling;

/// The page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Its title.
    pub title: String,
    /// What it is about.
    pub lead: String,
    /// The rest, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a [`Sheet`].
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// The heading of what follows.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Points, one below the other.
    List(Vec<String>),
    /// Text as it was typed.
    Code(String),
    /// A table.
    Table(Table),
    /// A figure.
    Chart(Chart),
    /// A figure of how something grows.
    Scaling(Scaling),
    /// A figure of names and places.
    Dots(Dots),
}

/// A table: the first column names the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Names of the columns.
    pub head: Vec<String>,
    /// The cells of each row, as many as columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A figure: to the right.
    Number(String),
    /// Words: to the left.
    Words(String),
    /// Words that should be seen.
    Alarm(String),
}

impl Sheet {
    /// The page as text.
    pub fn render(&self) -> String {
        html! {
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
        }
        .into_string()
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
        }
    }
}

impl Table {
    fn markup(&self) -> Markup {
        html! {
            div.scroll { table {
                thead { tr { @for name in &self.head { th { (name) } } } }
                tbody { @for row in &self.rows { tr {
                    @for (column, cell) in row.iter().enumerate() {
                        @match (column, cell) {
                            (0, Cell::Number(text) | Cell::Words(text) | Cell::Alarm(text)) => { th scope="row" { (text) } }
                            (_, Cell::Number(text)) => { td { (text) } }
                            (_, Cell::Words(text)) => { td.text { (text) } }
                            (_, Cell::Alarm(text)) => { td.no { (text) } }
                        }
                    }
                } } }
            } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_everything_and_escapes_it() {
        let page = Sheet {
            title: "q < 1".into(),
            lead: "lead".into(),
            blocks: vec![
                Block::Heading("Figures".into()),
                Block::List(vec!["one".into(), "two".into()]),
                Block::Table(Table {
                    head: vec!["what".into(), "value".into()],
                    rows: vec![vec![Cell::Words("delay".into()), Cell::Number("3 ms".into())]],
                }),
            ],
        }
        .render();
        for part in [
            "<h1>q &lt; 1</h1>",
            "<h2>Figures</h2>",
            "<li>two</li>",
            "<td>3 ms</td>",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
    }
}

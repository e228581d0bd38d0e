//! Tables and wrapped text.

use std::io::{self, IsTerminal};

use comfy_table::{ColumnConstraint, ContentArrangement, presets};

use super::{harmless, name};

/// A table. Its cells are names and figures: each is one line, and [`harmless`].
#[derive(Debug)]
pub struct Table(comfy_table::Table);

impl Table {
    /// Adds a row.
    pub fn add_row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.0
            .add_row(cells.into_iter().map(|cell| name(&cell.to_string())));
    }

    /// Adds a row whose cells may have several lines.
    pub fn add_block<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.0
            .add_row(cells.into_iter().map(|cell| harmless(&cell.to_string())));
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The columns, to align them.
    pub fn columns(&mut self) -> impl Iterator<Item = &mut comfy_table::Column> {
        self.0.column_iter_mut()
    }
}

/// Creates a table in the style of the program: aligned columns, no borders. Lines are wrapped only on a
/// terminal, so that `grep` finds whole rows.
pub fn table<'a>(header: impl IntoIterator<Item = &'a str>) -> Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.into_iter().map(name));
    if io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    Table(table)
}

/// The width of a page that is not printed on a terminal, in columns.
const PAGE: u16 = 100;

/// Returns the width of a page: the terminal's, if there is one.
pub fn page_width() -> u16 {
    comfy_table::Table::new().width().unwrap_or(PAGE)
}

/// Creates a table whose cells are wrapped between words so that it fits the page. The first `unbroken`
/// columns are not wrapped.
pub fn page_table<'a>(header: impl IntoIterator<Item = &'a str>, unbroken: usize) -> Table {
    let mut table = table(header);
    table
        .0
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(page_width());
    for column in table.columns().take(unbroken) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}

/// Wraps text between words to lines of at most `width` characters, for a cell of a table.
pub fn wrap(text: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

/// Returns a table as text, without spaces at the ends of lines.
pub fn table_text(table: &Table) -> String {
    table
        .0
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrap("a queue without flows", 8), "a queue\nwithout\nflows");
        assert_eq!(wrap("", 8), "");
        assert_eq!(wrap("incomprehensibilities", 8), "incomprehensibilities");
    }
}

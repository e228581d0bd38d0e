//! Tables and numbers as the document has them.

/// A table. Its first columns are text, the others are numbers.
pub(crate) struct Table {
    lines: Vec<String>,
}

impl Table {
    /// A table with these heads, of which the first `texts` are above text.
    pub(crate) fn new(texts: usize, heads: &[&str]) -> Table {
        let rule = |column| if column < texts { "---" } else { "--:" };
        let rules: Vec<&str> = (0..heads.len()).map(rule).collect();
        Table {
            lines: vec![row(heads), format!("|{}|", rules.join("|"))],
        }
    }

    pub(crate) fn add<S: AsRef<str>>(&mut self, cells: &[S]) {
        self.lines.push(row(cells));
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }
}

fn row<S: AsRef<str>>(cells: &[S]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |", cells.join(" | "))
}

/// A number to three digits or to whole ones: 1.23, 12.3, 1,234.
pub(crate) fn digits(number: f64) -> String {
    match number.abs() {
        below_10 if below_10 < 9.995 => format!("{number:.2}"),
        below_100 if below_100 < 99.95 => format!("{number:.1}"),
        _ => whole(number),
    }
}

/// A rounded number with commas: 1,234.
pub(crate) fn whole(number: f64) -> String {
    let plain = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (place, digit) in plain.chars().enumerate() {
        if place > 0 && (plain.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 && plain != "0" {
        format!("-{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_markdown() {
        let mut table = Table::new(1, &["discipline", "ns"]);
        table.add(&["fifo", "7"]);
        assert_eq!(table.text(), "| discipline | ns |\n|---|--:|\n| fifo | 7 |");
    }

    #[test]
    fn numbers_have_three_digits_or_all_that_are_whole() {
        for (number, text) in [
            (0.0, "0.00"),
            (1.234, "1.23"),
            (9.996, "10.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.5, "1,234"),
            (1_234_567.0, "1,234,567"),
            (-0.2, "-0.20"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(digits(number), text);
        }
        assert_eq!(whole(-0.2), "0");
    }
}

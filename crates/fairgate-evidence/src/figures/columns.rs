//! Rows of numbers that benchmarks print as text.

use crate::figures::Result;

/// A row: what stands before the numbers, and the numbers. What could not be measured, `-`, is `None`.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) numbers: Vec<Option<f64>>,
}

/// All lines that end in so many numbers. A percent sign behind a number does not count. Lines like the head
/// of a table do not end in numbers, and are left out.
pub(crate) fn rows(text: &str, numbers: usize) -> Result<Vec<Row>> {
    let rows: Vec<Row> = text.lines().filter_map(|line| row(line, numbers)).collect();
    match rows.is_empty() {
        true => Err(format!("no line ends in {numbers} numbers:\n{text}")),
        false => Ok(rows),
    }
}

fn row(line: &str, count: usize) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "%").collect();
    let (name, numbers) = words.split_at_checked(words.len().checked_sub(count)?)?;
    let number = |word: &&str| match *word {
        "-" => Some(None),
        word => word.trim_end_matches('%').parse().ok().map(Some),
    };
    Some(Row {
        name: name.join(" "),
        numbers: numbers.iter().map(number).collect::<Option<_>>()?,
    })
}

/// The number behind `words` in a line of its own: `driver, subtracted: 52.9`.
pub(crate) fn number_behind(text: &str, words: &str) -> Result<f64> {
    let number = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(words)?.trim().parse().ok());
    number.ok_or(format!("there is no number behind `{words}`:\n{text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_name_of_words_and_numbers() {
        let text = "filters   number ns\nnew hosts  10  12.5  -\nwildcard 1 5 50%\n64 bytes 1.0 2.0 0.5 %\n";
        let row = |name: &str, numbers: &[Option<f64>]| Row {
            name: name.to_owned(),
            numbers: numbers.to_vec(),
        };
        assert_eq!(
            rows(text, 3).unwrap(),
            [
                row("new hosts", &[Some(10.0), Some(12.5), None]),
                row("wildcard", &[Some(1.0), Some(5.0), Some(50.0)]),
                row("64 bytes", &[Some(1.0), Some(2.0), Some(0.5)]),
            ]
        );
        assert!(rows("SKIPPED: there is no valgrind", 3).is_err());
    }

    #[test]
    fn a_number_is_found_behind_its_words() {
        assert_eq!(
            number_behind("a 1\ndriver, subtracted: 52.9\n", "driver, subtracted:"),
            Ok(52.9)
        );
        assert!(number_behind("driver, subtracted: many", "driver, subtracted:").is_err());
    }
}

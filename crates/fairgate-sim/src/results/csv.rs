//! Writes tables as comma-separated values (RFC 4180). A missing value is an empty field.

use std::io::{self, Read, Write};

use crate::results::{Column, Table};

impl Table {
    /// Writes a line of column names, then one line per row.
    pub fn write_csv(&self, into: &mut dyn Write) -> io::Result<()> {
        CsvFile::new(into).add(self)
    }

    /// Reads what [`write_csv`](Table::write_csv) wrote. All columns are text. Also returns whether the last
    /// line is torn, because the file was not finished: such a line is left out.
    ///
    /// # Errors
    /// If the file can't be read, or another line has more or fewer fields than the first one.
    pub fn read_csv(mut from: impl Read) -> io::Result<(Table, bool)> {
        let mut text = Vec::new();
        from.read_to_end(&mut text)?;
        let is_torn = text.last().is_some_and(|&end| end != b'\n');
        let mut reader = csv::Reader::from_reader(&text[..]);
        let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let mut columns = vec![Vec::new(); names.len()];
        let mut lines = reader.byte_records().peekable();
        while let Some(line) = lines.next() {
            // Even with all fields, the last one may have lost its end.
            if is_torn && lines.peek().is_none() {
                break;
            }
            let line = line?;
            for (column, field) in columns.iter_mut().zip(&line) {
                let field = std::str::from_utf8(field).map_err(|error| {
                    let number = line.position().map_or(0, csv::Position::line);
                    io::Error::new(io::ErrorKind::InvalidData, format!("line {number}: {error}"))
                })?;
                column.push(field.to_owned());
            }
        }
        let columns = names.into_iter().zip(columns.into_iter().map(Column::Text));
        Ok((Table::of(columns.collect()), is_torn))
    }
}

/// A file of several tables with the same columns, one below the other.
#[derive(Debug)]
pub struct CsvFile<W: Write> {
    writer: csv::Writer<W>,
    has_names: bool,
}

impl<W: Write> CsvFile<W> {
    /// Returns a file without rows.
    pub fn new(into: W) -> CsvFile<W> {
        CsvFile {
            writer: csv::Writer::from_writer(into),
            has_names: false,
        }
    }

    /// Adds the rows of a table, and the names of the columns before the first one. Afterwards they are in
    /// the file.
    pub fn add(&mut self, table: &Table) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_names, true) {
            self.writer.write_record(table.columns().map(|(name, _)| name))?;
        }
        for row in 0..table.rows() {
            self.writer
                .write_record(table.columns().map(|(_, column)| column.field(row)))?;
        }
        self.writer.flush()
    }
}

impl Column {
    fn field(&self, row: usize) -> String {
        match self {
            Column::Text(values) => values[row].clone(),
            Column::Integer(values) => values[row].map_or_else(String::new, |value| value.to_string()),
            Column::Real(values) => values[row].map_or_else(String::new, |value| value.to_string()),
            Column::Flag(values) => values[row].to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_quoted_and_missing_values_are_empty() {
        let mut table = Table::new(2);
        table.text("flow", &["a,b", "c"], |name| name);
        table.integer("sent", &[Some(5), None], |&sent| sent);
        let mut text = Vec::new();
        table.write_csv(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "flow,sent\n\"a,b\",5\nc,\n");
    }

    proptest! {
        /// Wherever a file ends: the whole rows are read, and it is said that one is torn.
        #[test]
        fn a_file_is_read_up_to_a_torn_last_row(
            fields in prop::collection::vec(("[a,\"\n é]{0,6}", any::<Option<u64>>()), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut table = Table::new(fields.len());
            table.text("flow", &fields, |(name, _)| name);
            table.integer("sent", &fields, |(_, sent)| *sent);
            // The ends of the lines: of the names, and of each row.
            let (mut text, mut ends) = (Vec::new(), Vec::new());
            for rows in 0..=fields.len() {
                text.clear();
                let mut part = Table::new(rows);
                part.text("flow", &fields[..rows], |(name, _)| name);
                part.integer("sent", &fields[..rows], |(_, sent)| *sent);
                part.write_csv(&mut text).unwrap();
                ends.push(text.len());
            }
            let end = ends[0] + cut.index(text.len() - ends[0] + 1);
            let rows = ends.iter().filter(|&&whole| whole <= end).count() - 1;
            // A line break within a name is no end of a row, but looks like one at the end of a file.
            prop_assume!(ends[rows] == end || text[end - 1] != b'\n');
            let (read, is_torn) = Table::read_csv(&text[..end]).unwrap();
            prop_assert_eq!(is_torn, ends[rows] != end);
            prop_assert_eq!(read.rows(), rows);
            for (row, (name, _)) in fields[..rows].iter().enumerate() {
                let Some(Column::Text(names)) = read.column("flow") else { panic!() };
                prop_assert_eq!(&names[row], name);
            }
        }
    }

    #[test]
    fn a_short_row_in_the_middle_is_an_error() {
        assert!(Table::read_csv(&b"a,b\n1\n2,3\n"[..]).is_err());
        assert!(Table::read_csv(&b"a,b\n1\n2,3"[..]).is_err());
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut table = Table::new(1);
        table.integer("sent", &[1], |&sent| Some(sent));
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = table.write_csv(&mut full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }
}

//! Writes tables as comma-separated values (RFC 4180). A missing value is an empty field.

use std::io::{self, Read, Write};

use crate::results::{Column, Table};

impl Table {
    /// Writes a line of column names, then one line per row.
    pub fn write_csv(&self, into: &mut dyn Write) -> io::Result<()> {
        CsvFile::new(into).add(self)
    }

    /// Reads what [`write_csv`](Table::write_csv) wrote. All columns are text.
    ///
    /// # Errors
    /// If the file can't be read, or a line has more or fewer fields than the first one.
    pub fn read_csv(from: impl Read) -> io::Result<Table> {
        let mut reader = csv::Reader::from_reader(from);
        let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let mut columns = vec![Vec::new(); names.len()];
        for line in reader.records() {
            for (column, field) in columns.iter_mut().zip(&line?) {
                column.push(field.to_owned());
            }
        }
        let columns = names.into_iter().zip(columns.into_iter().map(Column::Text));
        Ok(Table::of(columns.collect()))
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

    #[test]
    fn names_are_quoted_and_missing_values_are_empty() {
        let mut table = Table::new(2);
        table.text("flow", &["a,b", "c"], |name| name);
        table.integer("sent", &[Some(5), None], |&sent| sent);
        let mut text = Vec::new();
        table.write_csv(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "flow,sent\n\"a,b\",5\nc,\n");
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

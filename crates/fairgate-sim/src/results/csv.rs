//! Writes tables as comma-separated values (RFC 4180). A missing value is an empty field.

use std::io::{self, Write};

use crate::results::{Column, Table};

impl Table {
    /// Writes a line of column names, then one line per row.
    pub fn write_csv(&self, into: &mut dyn Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(into);
        writer.write_record(self.columns().map(|(name, _)| name))?;
        for row in 0..self.rows() {
            writer.write_record(self.columns().map(|(_, column)| column.field(row)))?;
        }
        writer.flush()
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

//! Tables as comma-separated values (RFC 4180). What isn't there is an empty field.

use std::io::{self, Write};

use crate::results::{Column, Table};

impl Table {
    /// Writes a line of names, then a line for each row.
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
        }
    }
}

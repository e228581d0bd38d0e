//! The file of a recording.

#[cfg(feature = "parquet")]
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

#[cfg(feature = "parquet")]
use fairgate_sim::results::ParquetFile;
use fairgate_sim::results::{CsvFile, Table};

use crate::output;

/// A recording that is being written. The extension of its name decides on the format.
pub(super) enum Sink {
    Csv(CsvFile<Box<dyn Write>>),
    #[cfg(feature = "parquet")]
    Parquet(Parquet),
}

/// A Parquet file, and the rows of its next row group.
#[cfg(feature = "parquet")]
pub(super) struct Parquet {
    file: ParquetFile<File>,
    intervals: Vec<Table>,
    rows: usize,
}

/// The number of rows of a row group.
#[cfg(feature = "parquet")]
const GROUP: usize = 65_536;

impl Sink {
    /// Creates the file. Without a path, writes CSV to standard output. `empty` is a table without rows.
    pub(super) fn create(path: Option<&Path>, empty: Table) -> io::Result<Sink> {
        let Some(path) = path else {
            return Sink::csv(Box::new(io::stdout()), &empty);
        };
        #[cfg(feature = "parquet")]
        if path.extension().is_some_and(|ending| ending == "parquet") {
            return Ok(Sink::Parquet(Parquet {
                file: ParquetFile::new(&empty, output::create(path)?)?,
                intervals: Vec::new(),
                rows: 0,
            }));
        }
        Sink::csv(Box::new(output::create(path)?), &empty)
    }

    fn csv(into: Box<dyn Write>, empty: &Table) -> io::Result<Sink> {
        let mut file = CsvFile::new(into);
        file.add(empty)?;
        Ok(Sink::Csv(file))
    }

    /// Adds the rows of an interval.
    pub(super) fn add(&mut self, rows: Table) -> io::Result<()> {
        match self {
            Sink::Csv(file) => file.add(&rows),
            #[cfg(feature = "parquet")]
            Sink::Parquet(parquet) => parquet.add(rows),
        }
    }

    /// Ends the file.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Sink::Csv(_) => Ok(()),
            #[cfg(feature = "parquet")]
            Sink::Parquet(mut parquet) => {
                parquet.flush()?;
                parquet.file.finish()
            }
        }
    }
}

#[cfg(feature = "parquet")]
impl Parquet {
    fn add(&mut self, interval: Table) -> io::Result<()> {
        self.rows += interval.rows();
        self.intervals.push(interval);
        match self.rows >= GROUP {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes a row group.
    fn flush(&mut self) -> io::Result<()> {
        self.rows = 0;
        match Table::concatenated(std::mem::take(&mut self.intervals)) {
            Some(rows) => self.file.add(&rows),
            None => Ok(()),
        }
    }
}

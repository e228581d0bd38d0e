//! The file of a recording. On a full disk, it keeps all intervals that were written whole.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[cfg(feature = "parquet")]
use fairgate_sim::results::ParquetFile;
use fairgate_sim::results::{CsvFile, Table};
#[cfg(feature = "parquet")]
use nix::fcntl::{FallocateFlags, fallocate};

use crate::output;

/// A recording that is being written.
pub(super) struct Sink {
    rows: Rows,
    /// The number of intervals in it.
    intervals: u64,
    /// The file, if what was written to it can be cut off again.
    file: Option<(PathBuf, File)>,
    /// The length of a CSV file up to the last interval that was written whole.
    whole: u64,
}

enum Rows {
    Csv(CsvFile<Box<dyn Write>>),
    #[cfg(feature = "parquet")]
    Parquet(Parquet),
}

/// A Parquet file, and the rows of its next row group. Their space on the disk is allocated as they come: so
/// a full disk is noticed at once, and the file can be finished with the rows before.
#[cfg(feature = "parquet")]
struct Parquet {
    writer: ParquetFile<File>,
    file: File,
    waiting: Vec<Table>,
    /// The number of rows that wait.
    rows: usize,
    /// The bytes that are allocated: never less than those of all rows, and of the footer.
    allocated: u64,
}

/// The number of rows of a row group.
#[cfg(feature = "parquet")]
const GROUP: usize = 65_536;

impl Sink {
    /// Creates the file. The extension of its name decides on the format. Without a path, writes CSV to
    /// standard output. `empty` is a table without rows.
    pub(super) fn create(path: Option<&Path>, empty: Table) -> io::Result<Sink> {
        let (file, into): (_, Box<dyn Write>) = match path {
            None => (None, Box::new(io::stdout())),
            Some(path) => {
                let into = output::create(path)?;
                let file = into.metadata()?.is_file().then(|| into.try_clone());
                let file = file.transpose()?.map(|file| (path.to_owned(), file));
                #[cfg(feature = "parquet")]
                if path.extension().is_some_and(|ending| ending == "parquet") {
                    let parquet = Parquet::new(into, &empty);
                    return Sink::or_removed(file, parquet.map(Rows::Parquet));
                }
                (file, Box::new(into))
            }
        };
        let mut rows = CsvFile::new(into);
        let begun = rows.add(&empty);
        Sink::or_removed(file, begun.map(|()| Rows::Csv(rows)))
    }

    /// Removes a file that could not be begun.
    fn or_removed(file: Option<(PathBuf, File)>, rows: io::Result<Rows>) -> io::Result<Sink> {
        match rows {
            Ok(rows) => Ok(Sink {
                rows,
                intervals: 0,
                file,
                whole: 0,
            }),
            Err(error) => {
                remove(file);
                Err(error)
            }
        }
    }

    /// Adds the rows of an interval.
    pub(super) fn add(&mut self, rows: Table) -> io::Result<()> {
        match &mut self.rows {
            Rows::Csv(file) => {
                file.add(&rows)?;
                if let Some((_, file)) = &self.file {
                    self.whole = file.metadata()?.len();
                }
            }
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.add(rows)?,
        }
        self.intervals += 1;
        Ok(())
    }

    /// Returns the number of intervals that were added.
    pub(super) fn intervals(&self) -> u64 {
        self.intervals
    }

    /// Ends the file.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.rows {
            Rows::Csv(_) => Ok(()),
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => {
                let finished = parquet.finish();
                if finished.is_err() {
                    remove(self.file);
                }
                finished
            }
        }
    }

    /// Ends a file that could not be continued, with the intervals that it has. Returns whether it is there:
    /// one without an interval is removed.
    pub(super) fn keep_whole(self) -> bool {
        let is_whole = match self.rows {
            Rows::Csv(rows) => {
                // It tries once more to write what it could not, so it goes first.
                drop(rows);
                let cut = self.file.as_ref().map(|(_, file)| file.set_len(self.whole));
                cut.is_none_or(|cut| cut.is_ok())
            }
            #[cfg(feature = "parquet")]
            Rows::Parquet(parquet) => parquet.finish().is_ok(),
        };
        let is_kept = is_whole && self.intervals > 0;
        if !is_kept {
            remove(self.file);
        }
        is_kept
    }
}

/// Removes a file of which nothing can be read, if it still has its name.
fn remove(file: Option<(PathBuf, File)>) {
    if let Some((path, file)) = file {
        output::remove(&path, &file);
    }
}

#[cfg(feature = "parquet")]
impl Parquet {
    fn new(file: File, empty: &Table) -> io::Result<Parquet> {
        let writer = ParquetFile::new(empty, file.try_clone()?)?;
        let mut parquet = Parquet {
            writer,
            file,
            waiting: Vec::new(),
            rows: 0,
            allocated: 0,
        };
        parquet.allocate(empty.most_parquet_bytes())?;
        Ok(parquet)
    }

    fn add(&mut self, interval: Table) -> io::Result<()> {
        self.allocate(interval.most_parquet_bytes())?;
        self.rows += interval.rows();
        self.waiting.push(interval);
        match self.rows >= GROUP {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Allocates this number of bytes more. Some file systems can't: there the disk may be full at the end.
    fn allocate(&mut self, more: u64) -> io::Result<()> {
        let bytes = self.allocated + more;
        let length = i64::try_from(bytes).map_err(io::Error::other)?;
        match fallocate(&self.file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, length).map_err(io::Error::from) {
            Err(error) if is_full(&error) => return Err(error),
            _ => self.allocated = bytes,
        }
        Ok(())
    }

    /// Writes a row group.
    fn flush(&mut self) -> io::Result<()> {
        self.rows = 0;
        match Table::concatenated(std::mem::take(&mut self.waiting)) {
            Some(rows) => self.writer.add(&rows),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.writer.finish()?;
        // What was allocated and not used is free again.
        self.file.set_len(self.file.metadata()?.len())
    }
}

/// Returns whether there is no room for more bytes.
#[cfg(feature = "parquet")]
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

//! Writes tables as Apache Parquet, for notebooks. One row group, uncompressed, because results are small.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
use parquet::schema::types::Type;

use crate::results::{Column, Table};

/// What a value takes beside its own bytes, at most: its length, its number in a dictionary, its level.
const BESIDE_VALUE: usize = 4 + 4 + 1;
/// What a column of a row group takes beside its values, at most: headers of pages, statistics, its part of
/// the footer. A text in statistics has at most 64 bytes.
const BESIDE_COLUMN: usize = 2_048;

impl Table {
    /// Writes a Parquet file. Its integers are signed. That is enough, because no count, rate or time here
    /// reaches 2^63.
    pub fn write_parquet(&self, into: &mut (dyn Write + Send)) -> io::Result<()> {
        self.try_write(into, None).map_err(io_error)
    }

    /// Does the same, with a text in the footer that [`parquet_note`] finds by its name.
    pub fn write_parquet_with(
        &self,
        name: &str,
        note: String,
        into: &mut (dyn Write + Send),
    ) -> io::Result<()> {
        let note = KeyValue::new(name.to_owned(), note);
        self.try_write(into, Some(vec![note])).map_err(io_error)
    }

    fn try_write(
        &self,
        into: &mut (dyn Write + Send),
        notes: Option<Vec<KeyValue>>,
    ) -> Result<(), ParquetError> {
        let mut file = ParquetFile::start(self, into, notes)?;
        file.try_add(self)?;
        file.writer.close()?;
        Ok(())
    }

    /// Reads a file that [`write_parquet`](Table::write_parquet) or a [`ParquetFile`] wrote.
    ///
    /// # Errors
    /// If the file can't be read, is broken, or has columns of other types.
    pub fn read_parquet(file: File) -> io::Result<Table> {
        Table::try_read(file).map_err(io_error)
    }

    /// Returns an upper bound for the bytes of a Parquet file with these rows as its only row group. Another
    /// row group adds no more. The bound of several tables below one another is at most the sum of theirs.
    pub fn most_parquet_bytes(&self) -> u64 {
        let of_column = |column: &Column| match column {
            Column::Text(values) => {
                let bytes: usize = values.iter().map(String::len).sum();
                values.len() * BESIDE_VALUE + bytes
            }
            Column::Integer(values) => values.len() * (8 + BESIDE_VALUE),
            Column::Real(values) => values.len() * (8 + BESIDE_VALUE),
            Column::Flag(values) => values.len() * (1 + BESIDE_VALUE),
        };
        let of_columns = self
            .columns()
            .map(|(name, column)| of_column(column) + BESIDE_COLUMN + 3 * name.len());
        (of_columns.sum::<usize>() + BESIDE_COLUMN) as u64
    }

    fn try_read(file: File) -> Result<Table, ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let mut columns = Vec::new();
        for field in schema.columns() {
            let column = match field.physical_type() {
                Physical::BYTE_ARRAY => Column::Text(Vec::new()),
                Physical::INT64 => Column::Integer(Vec::new()),
                Physical::DOUBLE => Column::Real(Vec::new()),
                Physical::BOOLEAN => Column::Flag(Vec::new()),
                other => {
                    let name = field.name();
                    return Err(ParquetError::General(format!(
                        "the column {name} is of type {other}"
                    )));
                }
            };
            columns.push((field.name().to_owned(), column));
        }
        for row in reader.get_row_iter(None)? {
            for ((_, column), (_, field)) in columns.iter_mut().zip(row?.get_column_iter()) {
                column.push(field)?;
            }
        }
        Ok(Table::of(columns))
    }
}

/// A file of several tables with the same columns, one below the other. Readers accept it when it is
/// [finished](ParquetFile::finish).
pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> ParquetFile<W> {
    /// Returns a file without rows, for tables with the columns of this one.
    pub fn new(like: &Table, into: W) -> io::Result<ParquetFile<W>> {
        ParquetFile::start(like, into, None).map_err(io_error)
    }

    fn start(like: &Table, into: W, notes: Option<Vec<KeyValue>>) -> Result<ParquetFile<W>, ParquetError> {
        let fields = like
            .columns()
            .map(|(name, column)| column.field_type(name))
            .collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("results").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_key_value_metadata(notes).build();
        let writer = SerializedFileWriter::new(into, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetFile { writer })
    }

    /// Adds the rows of a table as a row group.
    pub fn add(&mut self, table: &Table) -> io::Result<()> {
        self.try_add(table).map_err(io_error)
    }

    fn try_add(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (_, column) in table.columns() {
            column.write(&mut group)?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer. Until then the file can't be read.
    pub fn finish(self) -> io::Result<()> {
        self.writer.close().map(drop).map_err(io_error)
    }
}

/// Prints the name of the type only.
impl<W: Write + Send> std::fmt::Debug for ParquetFile<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetFile").finish_non_exhaustive()
    }
}

/// Returns a text from the footer of a Parquet file, by its name.
///
/// # Errors
/// If the file can't be read or is broken.
pub fn parquet_note(file: File, name: &str) -> io::Result<Option<String>> {
    let reader = SerializedFileReader::new(file).map_err(io_error)?;
    let notes = reader.metadata().file_metadata().key_value_metadata();
    let found = notes.into_iter().flatten().find(|note| note.key == name);
    Ok(found.and_then(|note| note.value.clone()))
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        other => io::Error::other(other),
    }
}

impl Column {
    fn field_type(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let (physical, converted, repetition) = match self {
            Column::Text(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8, Repetition::REQUIRED),
            Column::Integer(_) => (Physical::INT64, ConvertedType::NONE, Repetition::OPTIONAL),
            Column::Real(_) => (Physical::DOUBLE, ConvertedType::NONE, Repetition::OPTIONAL),
            Column::Flag(_) => (Physical::BOOLEAN, ConvertedType::NONE, Repetition::REQUIRED),
        };
        let built = Type::primitive_type_builder(name, physical)
            .with_converted_type(converted)
            .with_repetition(repetition)
            .build()?;
        Ok(Arc::new(built))
    }

    /// Adds a value that was read.
    fn push(&mut self, field: &Field) -> Result<(), ParquetError> {
        match (self, field) {
            (Column::Text(values), Field::Str(text)) => values.push(text.clone()),
            (Column::Integer(values), Field::Long(number)) => values.push(u64::try_from(*number).ok()),
            (Column::Integer(values), Field::Null) => values.push(None),
            (Column::Real(values), Field::Double(number)) => values.push(Some(*number)),
            (Column::Real(values), Field::Null) => values.push(None),
            (Column::Flag(values), Field::Bool(flag)) => values.push(*flag),
            (_, other) => {
                return Err(ParquetError::General(format!(
                    "the value {other} is of no known type"
                )));
            }
        }
        Ok(())
    }

    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let mut writer = group
            .next_column()?
            .expect("the schema has all columns of the table");
        match self {
            Column::Text(values) => {
                let bytes: Vec<ByteArray> = values.iter().map(|value| value.as_str().into()).collect();
                writer.typed::<ByteArrayType>().write_batch(&bytes, None, None)?;
            }
            Column::Integer(values) => {
                let present: Vec<i64> = values.iter().flatten().map(|&value| value as i64).collect();
                writer
                    .typed::<Int64Type>()
                    .write_batch(&present, Some(&definitions(values)), None)?;
            }
            Column::Real(values) => {
                let present: Vec<f64> = values.iter().flatten().copied().collect();
                writer
                    .typed::<DoubleType>()
                    .write_batch(&present, Some(&definitions(values)), None)?;
            }
            Column::Flag(values) => {
                writer.typed::<BoolType>().write_batch(values, None, None)?;
            }
        }
        writer.close()
    }
}

/// Returns Parquet's definition levels: 1 for a value, 0 for a missing one.
fn definitions<T>(values: &[Option<T>]) -> Vec<i16> {
    values.iter().map(|value| i16::from(value.is_some())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::record::RowAccessor;
    use proptest::prelude::*;

    #[test]
    fn a_reader_returns_the_written_values() {
        let mut table = Table::new(2);
        table.text("flow", &["a", "b"], |name| name);
        table.integer("sent", &[Some(5), None], |&sent| sent);
        table.real("share", &[None, Some(0.25)], |&share| share);
        let mut file = tempfile::tempfile().unwrap();
        table.write_parquet(&mut file).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].get_string(0).unwrap(), "b");
        assert_eq!(rows[0].get_long(1).unwrap(), 5);
        assert!(rows[1].get_long(1).is_err(), "this value is missing");
        assert_eq!(rows[1].get_double(2).unwrap(), 0.25);
    }

    proptest! {
        /// The space that is kept for rows is enough for them, also in several row groups.
        #[test]
        fn rows_take_no_more_bytes_than_the_bound(
            rows in prop::collection::vec(
                ("[a-zé]{0,90}", any::<Option<u64>>(), any::<Option<f64>>()),
                0..400,
            ),
            group in 1usize..400,
        ) {
            let table = |rows: &[(String, Option<u64>, Option<f64>)]| {
                let mut table = Table::new(rows.len());
                table.text("flow", rows, |(name, ..)| name);
                table.integer("sent", rows, |&(_, sent, _)| sent);
                table.real("share", rows, |&(.., share)| share);
                table
            };
            let file = tempfile::tempfile().unwrap();
            let mut writer = ParquetFile::new(&table(&[]), file.try_clone().unwrap()).unwrap();
            let mut bound = table(&[]).most_parquet_bytes();
            for rows in rows.chunks(group) {
                writer.add(&table(rows)).unwrap();
                bound += table(rows).most_parquet_bytes();
            }
            writer.finish().unwrap();
            prop_assert!(file.metadata().unwrap().len() <= bound);
        }
    }

    #[test]
    fn a_note_in_the_footer_is_found_again() {
        let mut table = Table::new(1);
        table.text("flow", &["a"], |name| name);
        let table = table.with_first(vec![("ecn".to_owned(), Column::Flag(vec![true]))]);
        let mut file = tempfile::tempfile().unwrap();
        table
            .write_parquet_with("runs", "one".to_owned(), &mut file)
            .unwrap();
        let again = file.try_clone().unwrap();
        assert_eq!(parquet_note(again, "runs").unwrap().as_deref(), Some("one"));
        assert_eq!(parquet_note(file.try_clone().unwrap(), "other").unwrap(), None);
        let reader = SerializedFileReader::new(file).unwrap();
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        assert!(row.get_bool(0).unwrap());
        let mut broken = tempfile::tempfile().unwrap();
        broken.write_all(b"PAR1 broken").unwrap();
        assert!(parquet_note(broken, "runs").is_err());
    }

    #[test]
    fn tables_below_one_another_are_read_as_one() {
        let table = |sent: Option<u64>, share: Option<f64>| {
            Table::of(vec![
                (
                    "flow".to_owned(),
                    Column::Text(vec!["a".to_owned(), "b,\"".to_owned()]),
                ),
                ("sent".to_owned(), Column::Integer(vec![sent, None])),
                ("share".to_owned(), Column::Real(vec![share, Some(0.25)])),
                ("ecn".to_owned(), Column::Flag(vec![true, false])),
            ])
        };
        let parts = [table(Some(1), None), table(None, Some(0.5))];
        let file = tempfile::tempfile().unwrap();
        let mut writer = ParquetFile::new(&parts[0], file.try_clone().unwrap()).unwrap();
        let mut text = Vec::new();
        let mut csv = super::super::CsvFile::new(&mut text);
        for part in &parts {
            writer.add(part).unwrap();
            csv.add(part).unwrap();
        }
        writer.finish().unwrap();
        drop(csv);
        let whole = Table::concatenated(parts).unwrap();
        assert_eq!(Table::read_parquet(file).unwrap(), whole);
        let (from_text, _) = Table::read_csv(&text[..]).unwrap();
        assert_eq!(from_text.rows(), 4);
        for name in ["sent", "share"] {
            let numbers = |table: &Table| {
                (0..4)
                    .map(|row| table.column(name).unwrap().number(row))
                    .collect::<Vec<_>>()
            };
            assert_eq!(numbers(&from_text), numbers(&whole), "{name}");
        }
        assert_eq!(from_text.column("flow"), whole.column("flow"));
    }

    #[test]
    fn a_full_disk_is_reported() {
        let mut table = Table::new(100_000);
        let rows: Vec<u64> = (0..100_000).collect();
        table.integer("time_ns", &rows, |&row| Some(row));
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = table.write_parquet(&mut full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }
}

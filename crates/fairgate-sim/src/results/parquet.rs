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
use parquet::schema::types::Type;

use crate::results::{Column, Table};

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
        let fields = self
            .columns()
            .map(|(name, column)| column.field_type(name))
            .collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("results").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_key_value_metadata(notes).build();
        let mut file = SerializedFileWriter::new(into, Arc::new(schema), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for (_, column) in self.columns() {
            column.write(&mut group)?;
        }
        group.close()?;
        file.close()?;
        Ok(())
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
    fn a_full_disk_is_reported() {
        let mut table = Table::new(100_000);
        let rows: Vec<u64> = (0..100_000).collect();
        table.integer("time_ns", &rows, |&row| Some(row));
        let mut full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = table.write_parquet(&mut full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    }
}

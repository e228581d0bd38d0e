//! Tables in Arrow's memory layout. Python libraries read this memory without a copy, by Arrow's PyCapsule
//! interface.

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
    StructArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, ffi::FFI_ArrowSchema};
use fairgate_sim::results::{Column, Table as Figures};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// Named columns of equal length.
#[pyclass(frozen, module = "fairgate._native")]
pub(crate) struct Table {
    batch: RecordBatch,
}

/// Arrow refuses nothing that is built here.
fn bug(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(format!("there is a bug in fairgate: {error}"))
}

impl Table {
    pub(crate) fn new(figures: &Figures) -> PyResult<Table> {
        let mut fields = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for (name, column) in figures.columns() {
            let (kind, values): (_, ArrayRef) = match column {
                Column::Text(values) => (DataType::Utf8, Arc::new(StringArray::from_iter_values(values))),
                // No time or count here reaches 2^63. A sum of rates that does is the largest number.
                Column::Integer(values) => {
                    let signed =
                        |value: &Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
                    (
                        DataType::Int64,
                        Arc::new(values.iter().map(signed).collect::<Int64Array>()),
                    )
                }
                Column::Real(values) => (
                    DataType::Float64,
                    Arc::new(values.iter().copied().collect::<Float64Array>()),
                ),
                Column::Flag(values) => (DataType::Boolean, Arc::new(BooleanArray::from(values.clone()))),
            };
            fields.push(Field::new(name, kind, values.null_count() > 0));
            columns.push(values);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(bug)?;
        Ok(Table { batch })
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        let schema = self.batch.schema();
        schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns a column as a list. `None` stands for a missing value.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(column) = self.batch.column_by_name(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let column = column.as_any();
        if let Some(texts) = column.downcast_ref::<StringArray>() {
            PyList::new(py, texts.iter().collect::<Vec<_>>())
        } else if let Some(integers) = column.downcast_ref::<Int64Array>() {
            PyList::new(py, integers.iter().collect::<Vec<_>>())
        } else {
            let reals = column.downcast_ref::<Float64Array>();
            PyList::new(py, reals.into_iter().flatten().collect::<Vec<_>>())
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(bug)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// `requested_schema` may be ignored, by the specification of the interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let rows = StructArray::from(self.batch.clone());
        let (array, _): (FFI_ArrowArray, _) = to_ffi(&rows.to_data()).map_err(bug)?;
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        Ok((self.__arrow_c_schema__(py)?, array))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

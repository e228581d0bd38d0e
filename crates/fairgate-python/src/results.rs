//! The results of a run.

use std::sync::Arc;

use fairgate_sim::Results as Figures;
use fairgate_sim::results::Measure;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::errors;
use crate::table::Table;

#[pyclass(frozen, module = "fairgate._native")]
pub(crate) struct Results {
    figures: Arc<Figures>,
}

impl Results {
    pub(crate) fn new(figures: Figures) -> Results {
        Results {
            figures: Arc::new(figures),
        }
    }
}

#[pymethods]
impl Results {
    /// Reads what `json` returned, for results that come from another process.
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Results> {
        serde_json::from_str(text)
            .map(Results::new)
            .map_err(|error| errors::refused(py, &format!("these are no results of a simulation: {error}")))
    }

    /// The document of `fairgate simulate --json`, without its key `schema`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&*self.figures)
            .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
    }

    fn equals(&self, other: &Results) -> bool {
        self.figures == other.figures
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.figures.seed
    }

    #[getter]
    fn duration_ns(&self) -> u64 {
        self.figures.duration_ns
    }

    #[getter]
    fn measured_ns(&self) -> (u64, u64) {
        self.figures.measured_ns.into()
    }

    #[getter]
    fn interval_ns(&self) -> u64 {
        self.figures.interval_ns
    }

    #[getter]
    fn events(&self) -> u64 {
        self.figures.events
    }

    #[getter]
    fn packet_hops(&self) -> u64 {
        self.figures.packet_hops
    }

    #[getter]
    fn goodput_bps(&self) -> u64 {
        self.figures.goodput_bps
    }

    #[getter]
    fn jain(&self) -> f64 {
        self.figures.jain
    }

    /// A table: `flows`, `groups`, `interfaces`, `series` or `observations`.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let measure = Measure::of_word(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Table::new(&py.detach(|| measure.of(&self.figures)))
    }
}

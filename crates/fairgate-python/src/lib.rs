//! The native part of the Python package `fairgate`: thin classes over the library, the simulator and the
//! configuration language. What users see, with its documentation, is in `python/fairgate`.
//!
//! Nothing here is decided twice: checks, messages and figures are those of the crates below. Errors become
//! the exceptions of `fairgate.errors`.

#![forbid(unsafe_code)]

mod conformance;
mod discipline;
mod document;
mod errors;
mod failure;
mod files;
mod leaked;
mod packet;
mod queue;
mod registry;
mod results;
mod scenario;
mod steps;
mod table;
mod text;
mod watch;

use pyo3::pymodule;

#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::conformance::conformance;
    #[pymodule_export]
    use super::discipline::DisciplineBase;
    #[pymodule_export]
    use super::files::{create, lock_file};
    #[pymodule_export]
    use super::packet::Packet;
    #[pymodule_export]
    use super::queue::Queue;
    #[pymodule_export]
    use super::registry::register;
    #[pymodule_export]
    use super::results::Results;
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::steps::Steps;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::text::{answer, check, disciplines, from_dummynet, from_line, from_tc, identity, parameters};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

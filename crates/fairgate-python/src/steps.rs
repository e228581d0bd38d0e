//! A simulation that Python runs piece by piece: the world of an agent that sets parameters.

use std::sync::{Mutex, MutexGuard, PoisonError};

use fairgate::{Statistics, Time};
use fairgate_sim::Simulation;
use pyo3::prelude::*;

use crate::queue::{Pair, pair, spec};
use crate::scenario::Scenario;
use crate::{errors, failure};

/// A running simulation, and the interface that is looked at.
#[pyclass(frozen, module = "fairgate._native")]
pub(crate) struct Steps {
    simulation: Mutex<Simulation>,
    interface: usize,
}

impl Steps {
    fn lock(&self) -> MutexGuard<'_, Simulation> {
        self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Steps {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, seed: u64, interface: &str) -> PyResult<Steps> {
        let simulation = errors::guarded(py, || {
            failure::take();
            let simulation = Simulation::new(&scenario.with_seed(seed));
            match failure::take() {
                Some(failure) => Err(failure),
                None => simulation.map_err(|error| errors::simulation(py, &error.into())),
            }
        })?;
        let Some(number) = simulation.interface(interface) else {
            let names: Vec<&str> = simulation.interface_names().collect();
            let known = names.join(", ");
            return Err(errors::refused(
                py,
                &format!("there is no interface `{interface}`; there are {known}"),
            ));
        };
        Ok(Steps {
            simulation: Mutex::new(simulation),
            interface: number,
        })
    }

    /// Runs until this time, ns. Returns false at the end of the simulation.
    fn run_until(&self, py: Python<'_>, until: u64) -> PyResult<bool> {
        let result = errors::guarded(py, || {
            Ok(py.detach(|| {
                failure::take();
                let result = self.lock().run_until(Time::from_nanos(until));
                (failure::take(), result)
            }))
        })?;
        match result {
            (Some(failure), _) => Err(failure),
            (None, result) => result.map_err(|error| errors::simulation(py, &error)),
        }
    }

    /// Sets the parameters of the interface's queue.
    fn configure(&self, py: Python<'_>, toml: &str, name: &str) -> PyResult<()> {
        let spec = spec(py, toml, name)?;
        errors::guarded(py, || {
            let result = self.lock().reconfigure(self.interface, &spec);
            result.map_err(|error| errors::refused(py, &error.to_string()))
        })
    }

    #[getter]
    fn now(&self) -> u64 {
        self.lock().now().nanos()
    }

    /// Counts of the interface's queue since the start: enqueued, dequeued, dropped, backlog, each packets
    /// and bytes; marked packets; the sum of sojourn times, ns.
    fn statistics(&self) -> (Pair, Pair, Pair, Pair, u64, u64) {
        let statistics = self.lock().statistics(self.interface);
        (
            pair(statistics.enqueued),
            pair(statistics.dequeued),
            pair(statistics.dropped),
            pair(statistics.backlog()),
            statistics.marked,
            statistics.sojourn * Statistics::SOJOURN_UNIT,
        )
    }
}

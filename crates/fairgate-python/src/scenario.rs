//! A scenario: checked once, run with any seed.

use std::io::BufWriter;
use std::num::NonZeroUsize;
use std::path::Path;

use fairgate_config::Memory;
use fairgate_config::folder::create;
use fairgate_config::{ClassSpec, Document, FileError, Spec};
use fairgate_sim::{Batch, Error, Scenario as Described, Simulation};
use pyo3::prelude::*;

use crate::results::Results;
use crate::watch::{Watch, side_by_side};
use crate::{document, errors, failure, registry};

/// A configuration file with `[simulate]`.
#[pyclass(frozen, module = "fairgate._native")]
pub(crate) struct Scenario {
    described: Described,
    /// Whether any of its queues has a discipline written in Python.
    has_python: bool,
}

/// Reads and checks a scenario for this machine's memory.
pub(crate) fn read(document: &Document) -> Result<Described, FileError> {
    Described::read_for(document, Memory::watch().available())
}

/// Whether a tree has a discipline written in Python.
pub(crate) fn has_python(spec: &Spec) -> bool {
    let below = |class: ClassSpec<'_>| class.tree.is_some_and(has_python);
    registry::is_python(spec.entry()) || spec.classes().into_iter().any(below)
}

impl Scenario {
    /// Returns the scenario with another seed.
    pub(crate) fn with_seed(&self, seed: u64) -> Described {
        Described {
            seed,
            ..self.described.clone()
        }
    }
}

#[pymethods]
impl Scenario {
    #[new]
    fn new(py: Python<'_>, toml: &str, name: &str) -> PyResult<Scenario> {
        errors::guarded(py, || {
            let document = document::read(py, name, toml)?;
            let described = read(&document).map_err(|error| errors::input(py, &error))?;
            let has_python = document.queues().any(|(_, spec)| has_python(spec));
            Ok(Scenario {
                described,
                has_python,
            })
        })
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.described.seed
    }

    #[getter]
    fn duration_ns(&self) -> u64 {
        self.described.duration.as_nanos() as u64
    }

    /// Runs the scenario. `progress` is called about ten times a second with the simulated nanoseconds.
    /// `captures` are the files into which the captures of the scenario are written.
    #[pyo3(signature = (seed, progress, captures))]
    fn run(
        &self,
        py: Python<'_>,
        seed: Option<u64>,
        progress: Option<Py<PyAny>>,
        captures: Vec<String>,
    ) -> PyResult<Results> {
        let mut scenario = self.described.clone();
        scenario.seed = seed.unwrap_or(scenario.seed);
        let mut watch = Watch::new(progress.as_ref());
        failure::take();
        let mut run = || {
            let mut simulation = Simulation::new(&scenario)?;
            for (number, path) in captures.iter().enumerate() {
                let file = create(Path::new(path)).map_err(|error| Error::Capture {
                    interface: simulation.capture_interface(number).to_owned(),
                    what: format!("{path}: {error}"),
                })?;
                simulation.capture(number, BufWriter::new(file))?;
            }
            simulation.run_while(|now| watch.go_on(now))
        };
        // A discipline in Python is called for every packet. Then this thread stays attached to Python.
        let result = errors::guarded(py, || match self.has_python {
            true => Ok(run()),
            false => Ok(py.detach(run)),
        });
        if let Some(failure) = failure::take().or(watch.into_failure()) {
            return Err(failure);
        }
        match result? {
            Ok(figures) => Ok(Results::new(figures)),
            Err(error) => Err(errors::simulation(py, &error)),
        }
    }

    /// Runs the scenario with each seed, at most `jobs` at a time, without writing captures.
    #[pyo3(signature = (seeds, jobs, progress))]
    fn run_seeds(
        &self,
        py: Python<'_>,
        seeds: Vec<u64>,
        jobs: Option<NonZeroUsize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Results>> {
        let batch = jobs.map_or_else(Batch::default, Batch::with_jobs);
        let results = side_by_side(py, progress.as_ref(), |shared| {
            batch.map(&seeds, |&seed| {
                let scenario = Described {
                    seed,
                    captures: Vec::new(),
                    ..self.described.clone()
                };
                let mut before = 0;
                failure::take();
                let simulation = Simulation::new(&scenario).map_err(Error::from);
                let result = simulation.and_then(|simulation| {
                    simulation.run_while(|now| {
                        let simulated = now.nanos();
                        let more = simulated - std::mem::replace(&mut before, simulated);
                        shared.goes_on(more) && !failure::is_set()
                    })
                });
                (failure::take(), result)
            })
        })?;
        let result = |(failure, result): (Option<PyErr>, Result<_, Error>)| match (failure, result) {
            (Some(failure), _) => Err(failure),
            (None, Ok(figures)) => Ok(Results::new(figures)),
            (None, Err(error)) => Err(errors::simulation(py, &error)),
        };
        results.into_iter().map(result).collect()
    }

    /// The files that `[[simulate.capture]]` names.
    #[getter]
    fn captures(&self) -> Vec<String> {
        let captures = self.described.captures.iter();
        captures
            .map(|capture| capture.file.display().to_string())
            .collect()
    }
}

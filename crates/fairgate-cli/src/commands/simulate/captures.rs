//! The captures of interfaces: files that are written during the run.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use fairgate_sim::{Error, Scenario, Simulation};

use crate::failure::Failure;
use crate::output::{self, Target, Targets};

/// The files of each run, found to be writable before the simulation. They get their names at the end.
pub(super) struct Captures(Vec<Vec<Target>>);

impl Captures {
    /// Opens the files. With several seeds, each file has the seed in its name.
    pub(super) fn open(scenarios: &[Scenario], targets: &mut Targets) -> Result<Captures, Failure> {
        let mut of_runs = Vec::with_capacity(scenarios.len());
        for scenario in scenarios {
            let mut of_run = Vec::with_capacity(scenario.captures.len());
            for capture in &scenario.captures {
                let path = match scenarios.len() {
                    1 => capture.file.clone(),
                    _ => with_seed(&capture.file, scenario.seed),
                };
                of_run.push(targets.open(&path)?);
            }
            of_runs.push(of_run);
        }
        Ok(Captures(of_runs))
    }

    /// Lets the simulation with this number write its captures.
    pub(super) fn prepare(&self, run: usize, simulation: &mut Simulation) -> Result<(), Error> {
        for (number, target) in self.0[run].iter().enumerate() {
            let file = target.draft().map_err(|error| Error::Capture {
                interface: simulation.capture_interface(number).to_owned(),
                what: error.to_string(),
            })?;
            simulation.capture(number, BufWriter::new(file))?;
        }
        Ok(())
    }

    /// Gives the files their names.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let files: Vec<Target> = self.0.into_iter().flatten().collect();
        output::each(files, |target| target.write(|_| Ok(())))
    }
}

/// Returns the path with the seed before the ending: `downloads-2.pcapng`.
fn with_seed(path: &Path, seed: u64) -> PathBuf {
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = (text(path.file_stem()), text(path.extension()));
    path.with_file_name(format!("{stem}-{seed}.{ending}"))
}

//! Searches the highest rates that keep the queue here: runs our own shaper, and measures with it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use fairgate_config::units::format_rate;
use fairgate_live::testbed::{Busy, Interrupt, Process, TestbedError};
use fairgate_run::client::Remote;
use fairgate_run_api::Change;
use tempfile::TempDir;

use crate::tune::error::TuneError;
use crate::tune::file;
use crate::tune::measured::{Direction, Figures, Measured};

/// The shares of the capacity that are tried, in rising order. Above the last one the queue is in the line.
const SHARES: [f64; 7] = [0.80, 0.85, 0.90, 0.93, 0.95, 0.97, 0.99];

/// The queue is here if probes wait less than this beyond a few packets, ms. Ours lets them pass at once.
const HERE_MS: f64 = 15.0;

/// How long a run may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A run of our own shaper. When it is dropped, the line is as it was.
pub(crate) struct Shaper {
    process: Option<Process>,
    run: Remote,
    /// A signal must not end this process before the run.
    _busy: Busy,
    _folder: TempDir,
}

impl Shaper {
    /// Runs a configuration.
    pub(crate) fn start(text: &str, interrupt: &Interrupt) -> Result<Shaper, TuneError> {
        let failed = TuneError::system;
        let folder = tempfile::tempdir().map_err(failed("making a folder for the run"))?;
        let (file, socket) = (folder.path().join("tune.toml"), folder.path().join("sock"));
        fs::write(&file, text).map_err(failed("writing the configuration of the run"))?;
        let program = std::env::current_exe().map_err(failed("looking for the program `fairgate`"))?;
        let mut command = Command::new(&program);
        command
            .args(["run", "--json", "--socket"])
            .arg(&socket)
            .arg(&file);
        let busy = interrupt.busy();
        let mut process = Process::spawn(command, &program.to_string_lossy(), "fairgate").map_err(not_run)?;
        let run = Remote::from(PathBuf::from(&socket));
        let began = Instant::now();
        while run.status(true).is_err() {
            if process.has_ended() || began.elapsed() > PATIENCE {
                return Err(not_run(process.failure()));
            }
            interrupt.check().map_err(|_| TuneError::Interrupted)?;
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Shaper {
            process: Some(process),
            run,
            _busy: busy,
            _folder: folder,
        })
    }

    /// Sets the rate of a direction.
    pub(crate) fn set(&self, way: Direction, direction: &Figures, share: f64) -> Result<(), TuneError> {
        let status = self.run.status(true).map_err(refused)?;
        // What the interface receives is the first direction.
        let index = match way {
            Direction::Down => 0,
            Direction::Up => 1,
        };
        let rate = format_rate(file::rate(direction, share));
        let change = Change {
            from: status
                .directions
                .get(index)
                .map(|direction| direction.from.clone()),
            lines: vec![format!("queue change root bandwidth={rate}")],
            because: Some("fairgate tune looks for the highest rate".to_owned()),
            ..Change::default()
        };
        self.run.change(change).map(drop).map_err(refused)
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            // If it does not end, it is killed, and then the kernel has the line back, too.
            let _ = process.end();
        }
    }
}

fn not_run(error: TestbedError) -> TuneError {
    match error {
        TestbedError::Program { output, .. } => TuneError::NotRun(output),
        error => TuneError::NotRun(error.to_string()),
    }
}

fn refused(error: fairgate_run::client::ClientError) -> TuneError {
    TuneError::NotRun(error.to_string())
}

/// The search for one direction, by halving: the shares that may be the highest one.
#[derive(Clone, Copy, Debug)]
struct Halving {
    /// The highest share of which it is known that the queue is here, and the lowest of which it is not.
    here: Option<usize>,
    elsewhere: usize,
}

impl Halving {
    fn begin() -> Halving {
        Halving {
            here: None,
            elsewhere: SHARES.len(),
        }
    }

    /// Returns the next share to try. `None` if the highest one is known.
    fn next(self) -> Option<usize> {
        let first = self.here.map_or(0, |here| here + 1);
        (first < self.elsewhere).then(|| usize::midpoint(first, self.elsewhere))
    }

    fn learn(&mut self, tried: usize, is_here: bool) {
        match is_here {
            true => self.here = Some(tried),
            false => self.elsewhere = tried,
        }
    }

    /// Returns the share: the lowest if no queue was here.
    fn share(self) -> f64 {
        SHARES[self.here.unwrap_or(0)]
    }
}

/// Searches the shares of the capacity for both directions. `set` sets the rate of a direction, and `measure`
/// measures the line as it is shaped. The rate of a direction that varies follows the line, and is not
/// searched.
pub(crate) fn search(
    line: &Measured,
    mut set: impl FnMut(Direction, f64) -> Result<(), TuneError>,
    mut measure: impl FnMut([f64; 2]) -> Result<Measured, TuneError>,
) -> Result<[f64; 2], TuneError> {
    let ways = [Direction::Down, Direction::Up];
    let mut halvings = ways.map(|way| (!line.of(way).varies).then(Halving::begin));
    loop {
        let tried = halvings.map(|halving| halving.and_then(Halving::next));
        if tried == [None; 2] {
            return Ok(halvings.map(|halving| halving.map_or(file::SHARE, Halving::share)));
        }
        let mut shares = [file::SHARE; 2];
        for (index, way) in ways.into_iter().enumerate() {
            let Some(halving) = halvings[index] else {
                continue;
            };
            shares[index] = tried[index].map_or(halving.share(), |tried| SHARES[tried]);
            set(way, shares[index])?;
        }
        let measured = measure(shares)?;
        for (index, way) in ways.into_iter().enumerate() {
            if let (Some(halving), Some(tried)) = (&mut halvings[index], tried[index]) {
                halving.learn(tried, measured.avoidable_ms(way) < HERE_MS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fairgate::Rate;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::tune::measured::{Delays, OverTime};

    fn direction(bps: f64, varies: bool, waits: f64) -> Figures {
        Figures {
            capacity_bps: bps,
            low_bps: bps,
            high_bps: bps,
            varies,
            line_bps: bps,
            framing: None,
            idle_ms: Delays::default(),
            loaded_ms: Delays {
                p95: waits,
                ..Delays::default()
            },
            loss_idle: 0.0,
            loss_loaded: 0.0,
            rpm: None,
            over_time: OverTime::default(),
        }
    }

    fn line(down: Figures, up: Figures) -> Measured {
        Measured {
            server: String::new(),
            connections: 8,
            load_s: 8.0,
            mtu: None,
            packet: 1500,
            one_way: true,
            not_measured: Vec::new(),
            congestion_down: None,
            round_trip_ms: Delays::default(),
            down,
            up,
        }
    }

    /// Any wait, and what no clock can have measured.
    fn waits() -> impl Strategy<Value = f64> {
        prop_oneof![4 => 0.0..200.0f64, 1 => prop::num::f64::ANY]
    }

    proptest! {
        /// Whatever is measured, and in whichever order: the search ends after three measurements, all rates
        /// are those of its shares, and the one that it ends with was found to keep the queue here, or is the
        /// lowest.
        #[test]
        fn any_measurements_end_the_search(
            bps in (1e3..1e12f64, 1e3..1e12f64), varies: [bool; 2], measured in vec((waits(), waits()), 3)
        ) {
            let of = |waits: (f64, f64)| {
                line(direction(bps.0, varies[0], waits.0), direction(bps.1, varies[1], waits.1))
            };
            let line = of((0.0, 0.0));
            let (mut tried, mut was_here) = (Vec::new(), [Vec::new(), Vec::new()]);
            let mut answers = measured.into_iter();
            let ways = [Direction::Down, Direction::Up];
            let set = |way: Direction, share: f64| {
                tried.push((way, share));
                Ok(())
            };
            let shares = search(&line, set, |shares| {
                // A fourth measurement panics.
                let measured = of(answers.next().unwrap());
                for (index, way) in ways.into_iter().enumerate() {
                    was_here[index].push((shares[index], measured.avoidable_ms(way) < HERE_MS));
                }
                Ok(measured)
            });
            let shares = shares.unwrap();
            for (way, share) in tried {
                prop_assert!(!line.of(way).varies && SHARES.contains(&share), "{share}");
                let rate = file::rate(line.of(way), share);
                prop_assert!(rate <= Rate::from_bits_per_second(1_000_000_000_000).unwrap(), "{rate:?}");
            }
            for ((share, varies), was_here) in shares.into_iter().zip(varies).zip(&was_here) {
                match varies {
                    true => prop_assert_eq!(share, file::SHARE),
                    false => prop_assert!(share == SHARES[0] || was_here.contains(&(share, true))),
                }
            }
        }
    }

    #[test]
    fn halving_finds_the_highest_share_in_three_steps() {
        for highest in 0..=SHARES.len() {
            let mut halving = Halving::begin();
            let mut steps = 0;
            while let Some(tried) = halving.next() {
                halving.learn(tried, tried < highest);
                steps += 1;
            }
            assert!(steps <= 3, "{steps}");
            assert_eq!(halving.share(), SHARES[highest.saturating_sub(1)]);
        }
    }
}

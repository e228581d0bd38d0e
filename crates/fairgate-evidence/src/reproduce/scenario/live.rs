//! The cases of an experiment with real traffic, and beside them simulated and with a discipline of the
//! kernel's own.
//!
//! ```toml
//! [experiment.live]                  # `fairgate-lab reproduce --live` runs the experiment
//! cases = ["SQF, *", "FQ, *"]        # patterns of the cases that are run; the default is all
//! duration = "22s"                   # of the live runs and of the simulations beside them
//! measure = ["2s", "22s"]            # the default is that of the file
//! why = "..."                        # what is different from the experiment's file, and why
//!
//! [experiment.live.slow]             # cases with links so slow that they need longer, run side by side
//! cases = ["modem, *"]
//! duration = "120s"
//! measure = ["20s", "120s"]
//!
//! [experiment.live.kernel]           # one more curve, if the kernel has the discipline
//! name = "pfifo of Linux"
//! interface = "router->client"       # where the kernel's discipline takes the place of ours
//! cases = "FIFO, *"
//! script = """
//! qdisc add dev DEV root handle 1: tbf rate RATE burst BURST limit 9000000
//! qdisc add dev DEV parent 1:1 pfifo limit 50
//! """
//! ```
//!
//! Claims are judged by the live runs. A claim about a case that was not run is not judged.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fairgate_config::units::parse_duration;
use fairgate_config::{Document, FileError};
use fairgate_live::testbed::{Interrupt, TestbedError};
use fairgate_sim::{LineRate, Scenario};
use toml::Spanned;

use super::charts::{Layer, chosen, draw};
use super::measures::{self, Sample};
use super::plan::{Case, KernelSection, LiveSection, Plan, SlowSection};
use super::{Samples, Times, conditions, measurements, scenario, simulate_all};
use crate::lab::{KernelQueue, Lab, LabError, Live, Machine};
use crate::reproduce::findings::{Beside, LiveReport};
use crate::reproduce::{Findings, ReproduceError, Run};

/// The share of the time that the simulations take, for the progress bar.
const SIMULATED: f64 = 0.1;

/// How many slow cases run at once. Each has some ten threads and three network namespaces or more.
const SIDE_BY_SIDE: usize = 10;

/// Returns whether a file has `[experiment.live]`.
pub(crate) fn can_run_live(document: &Document) -> Result<bool, FileError> {
    Ok(Plan::read(document)?.live.is_some())
}

/// Runs an experiment live, and judges its claims by that.
pub(super) fn run(run: &Run<'_>, interrupt: &Interrupt) -> Result<Findings, ReproduceError> {
    let document = run.document;
    let mut plan = Plan::read(document)?;
    let Some(section) = plan.live.take() else {
        return Err(ReproduceError::NotLive {
            id: document.name().trim_end_matches(".toml").to_owned(),
        });
    };
    let all = plan.cases(document)?;
    let cases = section.cases(document, &all)?;
    let times = section.times(document)?;
    let slow = section
        .slow
        .as_ref()
        .map(|slow| slow.read(document, &all))
        .transpose()?;
    let is_slow = |case: &Case| {
        slow.as_ref()
            .is_some_and(|(names, _)| names.contains(&case.name.as_str()))
    };
    let times = |case: &Case| match &slow {
        Some((_, times)) if is_slow(case) => Some(times.clone()),
        _ => times.clone(),
    };
    let kernel = section.kernel.as_ref();
    let by_kernel = kernel.map_or(Ok(Vec::new()), |kernel| kernel.cases(document, &all, &cases))?;
    // A mistake in the last case must not cost the runs of the others.
    for case in &cases {
        let (scenario, _) = scenario(&plan, case, 1, times(case), run.conditions.quick)?;
        crate::lab::Layout::of(&scenario, &[])?;
    }

    let progress = run.conditions.progress;
    let report = |share: f64, case: &str| progress(share * SIMULATED, &format!("simulating {case}"));
    let simulated = simulate_all(run, &plan, &cases, &times, &report)?;

    let runs = Runs {
        run,
        plan: &plan,
        times: &times,
        interrupt,
        done: AtomicUsize::new(0),
        all: (cases.len() + by_kernel.len()) * run.conditions.seeds.len(),
        machines: Mutex::default(),
    };
    let live = runs.all(&cases, &is_slow)?;
    let mut by_kernel_samples = Samples::new();
    let mut refused = None;
    for case in &by_kernel {
        let kernel = kernel.expect("its cases were listed");
        match runs.case(case, Some(kernel)) {
            Ok(samples) => by_kernel_samples.push(samples),
            // The kernel does not have the discipline.
            Err(ReproduceError::Live(LabError::Testbed(TestbedError::Program { command, output }))) => {
                refused = Some(format!("{} was not run: `{command}`: {output}", kernel.name));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    let by_kernel = &by_kernel[..by_kernel_samples.len()];
    let report = LiveReport::of(&runs.machines.into_inner().expect("no thread panics with it"));

    let mut findings = Findings {
        measurements: measurements(&cases, &live),
        ..Findings::default()
    };
    let mut beside = vec![Beside {
        name: "simulated".to_owned(),
        measurements: measurements(&cases, &simulated),
    }];
    if let Some(kernel) = kernel.filter(|_| !by_kernel.is_empty()) {
        beside.push(Beside {
            name: kernel.name.clone(),
            measurements: measurements(by_kernel, &by_kernel_samples),
        });
    }
    let of_kernel = cases.iter().map(|case| {
        let place = by_kernel.iter().position(|other| other.name == case.name)?;
        by_kernel_samples[place].first()
    });
    let mut layers = vec![
        Layer::named(
            "live",
            0,
            &findings.measurements,
            live.iter().map(|each| each.first()),
        ),
        Layer::named(
            "simulated",
            1,
            &beside[0].measurements,
            simulated.iter().map(|each| each.first()),
        ),
    ];
    if let Some(kernel) = beside.get(1) {
        layers.push(Layer::named(&kernel.name, 2, &kernel.measurements, of_kernel));
    }
    findings.figures = draw(document, &plan, &all, &cases, &layers, run.published)?;
    conditions::judge(document, &all, Some(&report.idle_text()), &mut findings)?;
    findings.remark(report.text());
    section.why.into_iter().for_each(|why| findings.remark(why));
    refused.into_iter().for_each(|text| findings.remark(text));
    findings.beside = beside;
    findings.live = Some(report);
    Ok(findings)
}

impl LiveSection {
    /// Returns the cases that are run.
    fn cases<'a>(&self, document: &Document, all: &'a [Case]) -> Result<Vec<&'a Case>, FileError> {
        let Some(patterns) = &self.cases else {
            return Ok(all.iter().collect());
        };
        let names = chosen(document, patterns, all)?;
        Ok(all
            .iter()
            .filter(|case| names.contains(&case.name.as_str()))
            .collect())
    }

    /// Returns the duration and the window, if they are not those of the file.
    fn times(&self, document: &Document) -> Result<Option<Times>, FileError> {
        match (&self.duration, &self.measure) {
            (Some(duration), Some(measure)) => read_times(document, duration, measure).map(Some),
            (None, None) => Ok(None),
            (duration, measure) => {
                let at = duration.as_ref().map(Spanned::span);
                let at = at.or(measure.as_ref().map(Spanned::span));
                Err(document.error(
                    at.expect("one of them is there"),
                    "a live run has both or none of `duration` and `measure`",
                    "add the other one",
                ))
            }
        }
    }
}

impl SlowSection {
    /// Returns the names of its cases, and their duration and window.
    fn read<'a>(&self, document: &Document, all: &'a [Case]) -> Result<(Vec<&'a str>, Times), FileError> {
        let names = chosen(document, &self.cases, all)?;
        Ok((names, read_times(document, &self.duration, &self.measure)?))
    }
}

fn read_times(
    document: &Document,
    duration: &Spanned<String>,
    measure: &Spanned<[String; 2]>,
) -> Result<Times, FileError> {
    let read = |text: &str, at: std::ops::Range<usize>| -> Result<Duration, FileError> {
        parse_duration(text).map_err(|error| document.error(at, error.message, error.remedy))
    };
    let [from, to] = measure.get_ref();
    let duration = read(duration.get_ref(), duration.span())?;
    Ok((duration, read(from, measure.span())?..read(to, measure.span())?))
}

impl KernelSection {
    fn cases<'a>(
        &self,
        document: &Document,
        all: &'a [Case],
        live: &[&'a Case],
    ) -> Result<Vec<&'a Case>, FileError> {
        let Some(patterns) = &self.cases else {
            return Ok(live.to_vec());
        };
        let names = chosen(document, patterns, all)?;
        let is_chosen = |case: &&&Case| names.contains(&case.name.as_str());
        Ok(live.iter().filter(is_chosen).copied().collect())
    }

    /// Returns the kernel's queues in a case.
    fn queues(
        &self,
        document: &Document,
        plan: &Plan,
        case: &Case,
        scenario: &Scenario,
    ) -> Result<Vec<KernelQueue>, FileError> {
        let interfaces = self.interface.get_ref().list().iter();
        interfaces
            .map(|interface| self.queue(document, plan, case, scenario, interface))
            .collect()
    }

    /// Returns tc's commands for an interface in a case.
    fn queue(
        &self,
        document: &Document,
        plan: &Plan,
        case: &Case,
        scenario: &Scenario,
        interface: &str,
    ) -> Result<KernelQueue, FileError> {
        let found = scenario.links.iter().find_map(|link| {
            let [a, b] = [link.a, link.b].map(|node| scenario.nodes[node.index()].name.as_str());
            let of = |rate: &LineRate| rate.constant();
            match interface.split_once("->")? {
                (from, to) if (from, to) == (a, b) => of(&link.rate_a),
                (from, to) if (from, to) == (b, a) => of(&link.rate_b),
                _ => None,
            }
        });
        let Some(rate) = found else {
            let what = format!("no link `{interface}` has a constant rate");
            return Err(document.error(
                self.interface.span(),
                what,
                "name an interface: \"router->client\"",
            ));
        };
        let bits = rate.bits_per_second();
        let mut script = self.script.get_ref().replace("RATE", &format!("{bits}bit"));
        // At least three of the longest packets.
        let burst = (bits / 8 / 500).max(3 * 1514);
        script = script.replace("BURST", &burst.to_string());
        if let Some(share) = &self.share {
            let place = plan
                .dimensions
                .iter()
                .position(|dimension| dimension.name.get_ref() == share.get_ref());
            let x = place.and_then(|place| plan.dimensions[place].cases[case.indices[place]].x);
            let Some(percent) = x else {
                let what = format!("`{}` is not a dimension with positions", share.get_ref());
                return Err(document.error(share.span(), what, "give each of its cases an `x`"));
            };
            let bits = (bits as f64 * percent / 100.0).round();
            script = script.replace("SHARE", &format!("{bits}bit"));
        }
        Ok(KernelQueue {
            interface: interface.to_owned(),
            script,
        })
    }
}

/// Live runs.
struct Runs<'a> {
    run: &'a Run<'a>,
    plan: &'a Plan,
    times: &'a (dyn Fn(&Case) -> Option<Times> + Sync),
    interrupt: &'a Interrupt,
    /// The number of runs that have ended, and of all.
    done: AtomicUsize,
    all: usize,
    machines: Mutex<Vec<Machine>>,
}

impl Runs<'_> {
    /// Runs all cases with our disciplines: slow ones side by side, all others one after the other.
    fn all(&self, cases: &[&Case], is_slow: &dyn Fn(&Case) -> bool) -> Result<Samples, ReproduceError> {
        let slow: Vec<&Case> = cases.iter().copied().filter(|case| is_slow(case)).collect();
        let mut slow_samples = Samples::new();
        for some in slow.chunks(SIDE_BY_SIDE) {
            let ended: Vec<_> = thread::scope(|scope| {
                let running: Vec<_> = some
                    .iter()
                    .map(|case| scope.spawn(|| self.case(case, None)))
                    .collect();
                running.into_iter().map(|run| run.join()).collect()
            });
            for samples in ended {
                slow_samples.push(samples.unwrap_or_else(|panic| resume_unwind(panic))?);
            }
        }
        let mut slow_samples = slow_samples.into_iter();
        let samples = cases.iter().map(|case| match is_slow(case) {
            true => Ok(slow_samples.next().expect("each slow case was run")),
            false => self.case(case, None),
        });
        samples.collect()
    }

    /// Runs a case with all seeds, with our disciplines or with the kernel's.
    fn case(&self, case: &Case, kernel: Option<&KernelSection>) -> Result<Vec<Sample>, ReproduceError> {
        let document = self.run.document;
        let mut samples = Vec::new();
        for &seed in self.run.conditions.seeds {
            let quick = self.run.conditions.quick;
            let (scenario, factor) = scenario(self.plan, case, seed, (self.times)(case), quick)?;
            let queues = kernel
                .map(|kernel| kernel.queues(document, self.plan, case, &scenario))
                .transpose()?
                .unwrap_or_default();
            let what = match kernel {
                Some(kernel) => format!("{}, {}", case.name, kernel.name),
                None => case.name.clone(),
            };
            let progress = |share: f64| {
                let done = self.done.load(Ordering::Relaxed) as f64;
                let share = SIMULATED + (1.0 - SIMULATED) * (done + share) / self.all as f64;
                (self.run.conditions.progress)(share, &what);
            };
            progress(0.0);
            let lab = Lab {
                interrupt: self.interrupt,
                kernel: &queues,
            };
            let Live { results, machine } = lab.run(&scenario, &progress)?;
            self.machines
                .lock()
                .expect("no thread panics with it")
                .push(machine);
            self.done.fetch_add(1, Ordering::Relaxed);
            samples.push(measures::sample(document, self.plan, &results, factor)?);
        }
        Ok(samples)
    }
}

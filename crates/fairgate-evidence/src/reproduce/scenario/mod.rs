//! Experiments that are data alone: the `[simulate]` section of the file is run in several cases, and its
//! figures are judged by conditions.
//!
//! ```text
//!   <id>.toml --> plan.rs: cases --> one run for each case and seed --> measures.rs: figures
//!                                                                          |           |
//!                                                 conditions.rs: verdicts <-'           '-> charts.rs
//! ```
//!
//! ```toml
//! [[experiment.dimension]]                  # the cases are all combinations; the last one changes first
//! name = "scheduler"
//! cases = [
//!     { name = "fifo", set = { "queue.access" = { discipline = "fifo", limit = 50 } } },
//!     { name = "fq", set = { "queue.access" = { discipline = "drr", limit = 50 } } },
//! ]
//!
//! [[experiment.dimension]]
//! name = "downloads"
//! cases = [
//!     { name = "n = 1", x = 1, set = { "simulate.flow.downloads.count" = 1 } },
//!     { name = "n = 5", x = 5, set = { "simulate.flow.downloads.count" = 5 } },
//! ]
//!
//! [[experiment.measure]]                    # "loss of audio", in each case
//! figure = "loss"
//! of = ["audio", "video"]
//!
//! [[experiment.measure]]                    # "throughput of both, 5s to 10s"
//! figure = "throughput"
//! of = ["audio", "video"]
//! together = "both"                         # as one
//! during = ["5s", "10s"]                    # or several windows; the default is the measurement window
//!
//! [[experiment.measure]]                    # "rise of AFL": when the variable is first at the value
//! figure = "observed_reaches"               # of [[simulate.observe]]; see quantity.rs for all figures
//! of = ["AFL"]
//! value = 500
//!
//! [[experiment.figure]]
//! title = "Loss of audio"
//! measure = "loss of audio"
//! over = "downloads"                        # the dimension of the horizontal axis; a curve for each other
//! x = "TCP downloads"
//! cases = "fq, *"                           # a pattern or a list of them; the default is all
//!
//! [[experiment.figure]]                     # a picture for each case, of the first seed
//! title = "Delays"
//! distribution_of = ["audio"]               # or throughput_of, backlog_of, observed, observed_distribution
//! combine = true                            # all cases in one picture
//! complementary = true                      # the share above a value, over a logarithmic axis
//! formula = { name = "M/M/1", mean = "1ms" }  # an exponential distribution beside it
//!
//! [experiment]
//! priorities = 3                            # flows get random ones; groups are divided: "audio, priority 0"
//!
//! [experiment.live]                         # what `--live` runs with real traffic; see live.rs
//!
//! [[experiment.show]]
//! id = "fq"
//! text = "with FQ audio loses less than 1 %"
//! holds = [{ value = ["loss of audio", "fq, n = 5"], to = 1 }]
//! ```

mod charts;
mod conditions;
mod flent;
mod live;
mod measures;
mod pattern;
mod plan;
mod priorities;
mod quantity;
mod window;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fairgate_config::Document;
use fairgate_sim::{Batch, Scenario, Simulation};
use fairgate_theory::estimate::Estimate;

use crate::reproduce::{Conditions, Findings, Measurement, ReproduceError, Run};
use charts::{Layer, draw};
pub(crate) use live::can_run_live;
use measures::Sample;
use plan::{Case, Plan};

/// Runs the experiment of a file, and judges its claims.
pub(crate) fn run(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    if let Some(interrupt) = run.conditions.live {
        return live::run(run, interrupt);
    }
    let plan = Plan::read(run.document)?;
    let cases = plan.cases(run.document)?;
    let chosen: Vec<&Case> = cases.iter().collect();
    let samples = simulate_all(run, &plan, &chosen, &|_| None, run.conditions.progress)?;
    let mut findings = Findings {
        measurements: measurements(&chosen, &samples),
        ..Findings::default()
    };
    let layer = Layer::only(&findings.measurements, &samples);
    findings.figures = draw(run.document, &plan, &cases, &chosen, &[layer], run.published)?;
    let (beside, judged): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.is_beside);
    let is_judged = |found: &Measurement| !beside.iter().any(|case| case.name == found.case);
    let all = findings.measurements.clone();
    findings.measurements.retain(is_judged);
    conditions::judge(run.document, &judged, None, &mut findings)?;
    findings.measurements = all;
    Ok(findings)
}

/// What was measured in each case with each seed.
type Samples = Vec<Vec<Sample>>;

/// A duration and a measurement window in the place of those of the file.
type Times = (Duration, std::ops::Range<Duration>);

/// Simulates these cases with all seeds.
fn simulate_all(
    run: &Run<'_>,
    plan: &Plan,
    cases: &[&Case],
    times: &(dyn Fn(&Case) -> Option<Times> + Sync),
    progress: &(dyn Fn(f64, &str) + Sync),
) -> Result<Samples, ReproduceError> {
    let Conditions { quick, seeds, .. } = run.conditions;
    let jobs: Vec<(&Case, u64)> = cases
        .iter()
        .flat_map(|&case| seeds.iter().map(move |&seed| (case, seed)))
        .collect();
    let done = AtomicUsize::new(0);
    let samples = Batch::default().map(&jobs, |&(case, seed)| {
        let (scenario, factor) = scenario(plan, case, seed, times(case), quick)?;
        let simulation = Simulation::new(&scenario).map_err(fairgate_sim::Error::from)?;
        let results = simulation.run()?;
        let sample = measures::sample(run.document, plan, &results, factor)?;
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(done as f64 / jobs.len() as f64, &case.name);
        Ok(sample)
    });
    let mut samples = samples
        .into_iter()
        .collect::<Result<Vec<Sample>, ReproduceError>>()?
        .into_iter();
    Ok(cases
        .iter()
        .map(|_| samples.by_ref().take(seeds.len()).collect())
        .collect())
}

/// Returns the means of all measures in all cases.
fn measurements(cases: &[&Case], samples: &[Vec<Sample>]) -> Vec<Measurement> {
    let Some(first) = samples.first().and_then(|samples| samples.first()) else {
        return Vec::new();
    };
    let of_measure = first.values.iter().enumerate().flat_map(|(index, first)| {
        cases.iter().zip(samples).map(move |(case, samples)| {
            let values: Vec<f64> = samples.iter().map(|sample| sample.values[index].value).collect();
            Measurement {
                measure: first.measure.clone(),
                case: case.name.clone(),
                unit: first.unit.clone(),
                value: Estimate::of(&values).expect("there is at least one seed"),
                published: None,
            }
        })
    });
    of_measure.collect()
}

/// Returns the scenario of a case with a seed, and the factor by which its times are shorter than those of
/// the file.
fn scenario(
    plan: &Plan,
    case: &Case,
    seed: u64,
    times: Option<Times>,
    quick: bool,
) -> Result<(Scenario, f64), ReproduceError> {
    let document = Document::parse(&case.file, &case.text)?;
    let mut scenario = Scenario::read(&document)?;
    scenario.seed = seed;
    if let Some(number) = &plan.priorities {
        priorities::deal(&document, number, &mut scenario)?;
    }
    if let Some((duration, measure)) = times {
        scenario.duration = duration;
        scenario.measure = measure;
        scenario.interval = scenario.interval.min(duration);
    }
    let factor = if quick { plan.shorten(&mut scenario) } else { 1.0 };
    Ok((scenario, factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sources that share a link of 8 Mbit/s. One sends 2 Mbit/s, and the other offers 10 Mbit/s.
    const FILE: &str = r#"
[experiment]
paper = "none"
place = "nowhere"
title = "A test"
about = "A test."

[[experiment.show]]
id = "fair"
text = "with drr the slow flow loses nothing, and the fast one gets the rest"
holds = [
    { value = ["loss of slow", "drr, twice"], to = 0 },
    { value = ["goodput of fast", "drr, twice"], of = ["goodput of slow", "drr, twice"], from = 2.5 },
    { value = ["goodput of fast", "drr, twice"], of = ["goodput of slow", "drr, twice"], to = 3.1 },
]

[[experiment.show]]
id = "unfair"
text = "with a fifo the slow flow loses nothing"
holds = [{ value = ["loss of slow", "fifo, twice"], to = 0 }]

[[experiment.dimension]]
name = "scheduler"
cases = [
    { name = "fifo", set = { "queue.access" = { discipline = "fifo", limit = 50 } } },
    { name = "drr", set = { "queue.access" = { discipline = "drr", limit = 50 } } },
]

[[experiment.dimension]]
name = "load"
cases = [
    { name = "once", x = 1, set = { "simulate.flow.fast.udp.rate" = "5mbit" } },
    { name = "twice", x = 2, set = { "simulate.flow.fast.udp.rate" = "10mbit" } },
]

[[experiment.measure]]
figure = "loss"

[[experiment.measure]]
figure = "goodput"
of = ["slow", "fast"]
unit = "Mbit/s"

[[experiment.measure]]
figure = "utilisation"
of = ["left->right"]

[[experiment.figure]]
title = "Loss of the slow flow"
measure = "loss of slow"
over = "load"
x = "load of the fast flow"

[[experiment.figure]]
title = "Delays"
distribution_of = ["slow"]

[[experiment.figure]]
title = "Violins"
violins_of = ["slow", "fast"]
cases = "drr, *"

[[experiment.figure]]
title = "The queue"
backlog_of = ["left->right"]
cases = ["fifo, twice", "drr, twice"]
combine = true

[queue.access]
discipline = "codel"

[simulate]
duration = "5s"
measure = ["1s", "5s"]

[[simulate.link]]
a = "left"
b = "right"
rate = "8mbit"
delay = "1ms"
queue_a = "access"

[[simulate.flow]]
name = "slow"
from = "left"
to = "right"
udp = { rate = "2mbit", pattern = "poisson" }

[[simulate.flow]]
name = "fast"
from = "left"
to = "right"
udp = { rate = "10mbit", pattern = "poisson" }
"#;

    fn findings(text: &str) -> Result<Findings, ReproduceError> {
        let document = Document::parse("test.toml", text)?;
        run(&Run {
            document: &document,
            conditions: Conditions {
                seeds: &[1, 2, 3],
                quick: false,
                progress: &|_, _| (),
                count: None,
                live: None,
            },
            published: &[],
        })
    }

    #[test]
    fn cases_are_measured_and_judged() {
        let findings = findings(FILE).unwrap();
        let verdicts: Vec<(&str, bool)> = findings
            .verdicts
            .iter()
            .map(|verdict| (verdict.claim.as_str(), verdict.holds))
            .collect();
        assert_eq!(
            verdicts,
            [("fair", true), ("unfair", false)],
            "{:?}",
            findings.verdicts
        );
        // Loss and goodput of two groups and one utilisation, in four cases.
        assert_eq!(findings.measurements.len(), (2 + 2 + 1) * 4);
        let of = |measure: &str, case: &str| {
            let mut all = findings.measurements.iter();
            let found = all.find(|found| found.measure == measure && found.case == case);
            found
                .unwrap_or_else(|| panic!("no {measure} in {case}"))
                .value
                .mean
        };
        assert!(of("loss of slow", "fifo, twice") > 10.0);
        assert!((of("utilisation of left->right", "drr, twice") - 100.0).abs() < 1.0);
        let titles: Vec<&str> = findings.figures.iter().map(|figure| figure.title()).collect();
        assert_eq!(titles[0], "Loss of the slow flow");
        assert_eq!(titles.len(), 1 + 4 + 2, "a figure of distributions for each case");
        let of = |number: usize| findings.figures[number].points();
        assert_eq!(of(5).len(), 2 * 2 * 101, "violins of two groups in two cases");
        assert_eq!(of(6).len(), 2 * 50, "queues of two cases in 50 intervals");
        assert_eq!(findings.figures[0].points().len(), 2 * 2);
    }

    /// The statement is about every case, and the added one would break it.
    #[test]
    fn no_claim_is_judged_by_a_discipline_beside_those_of_the_experiment() {
        let every = FILE.replacen("\"drr, twice\"], to = 0", "\"*\"], to = 0", 1);
        assert_ne!(every, FILE);
        let experiment = crate::reproduce::Experiment::from_text("test", "test.toml", every, None).unwrap();
        let more = experiment.also(&["lqf".to_owned()]).unwrap().document().unwrap();
        let more = findings(more.text()).unwrap();
        let of = |findings: &Findings| {
            let all = findings.verdicts.iter();
            all.map(|verdict| (verdict.claim.clone(), verdict.found.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(&more),
            of(&findings(experiment.document().unwrap().text()).unwrap())
        );
        assert!(more.measurements.iter().any(|found| found.case == "lqf, twice"));
    }

    /// A trace of a link, for example, is beside the file, whatever the case is called.
    #[test]
    fn paths_in_a_case_begin_at_the_folder_of_the_file() {
        let text = FILE.replace("name = \"twice\"", "name = \"10 Mbit/s\"");
        let document = Document::parse("some/folder/test.toml", &text).unwrap();
        let cases = Plan::read(&document).unwrap().cases(&document).unwrap();
        assert_eq!(cases[1].file, "some/folder/test.toml [fifo, 10 Mbit per s]");
        for case in cases {
            let folder = std::path::Path::new(&case.file).parent().unwrap();
            assert_eq!(folder.to_str(), Some("some/folder"));
        }
    }

    /// What live runs leave out: a claim about a case that was not run is not judged, the others are.
    #[test]
    fn a_claim_about_a_case_that_was_not_run_is_not_judged() {
        let document = Document::parse("test.toml", FILE).unwrap();
        let cases = Plan::read(&document).unwrap().cases(&document).unwrap();
        let mut findings = findings(FILE).unwrap();
        findings.verdicts.clear();
        findings.measurements.retain(|found| found.case != "fifo, twice");
        conditions::judge(&document, &cases, Some("half idle"), &mut findings).unwrap();
        let [fair, unfair] = &findings.verdicts[..] else {
            panic!("{:?}", findings.verdicts)
        };
        assert!(fair.holds && fair.found.ends_with("; half idle"), "{fair:?}");
        assert!(!unfair.holds && !unfair.is_judged, "{unfair:?}");
        assert_eq!(unfair.found, "not run live: fifo, twice");
    }

    /// More measures for `FILE`: windows, groups together, and an observed variable.
    const MORE: &str = r#"
[[experiment.measure]]
figure = "throughput"
of = ["slow", "fast"]
together = "both"
during = [["1s", "3s"], ["3s", "5s"]]
unit = "Mbit/s"

[[experiment.measure]]
figure = "throughput_least"
of = ["slow"]
during = ["1s", "5s"]

[[experiment.measure]]
figure = "observed_most"
of = ["waiting"]

[[experiment.measure]]
figure = "observed_reaches"
of = ["waiting"]
value = 50

[[experiment.measure]]
figure = "observed_falls_to"
of = ["waiting"]
value = -1

[[experiment.figure]]
title = "Waiting"
observed = ["waiting"]
combine = true

[[simulate.observe]]
name = "waiting"
interface = "left->right"
variable = "backlog_packets"
"#;

    #[test]
    fn windows_groups_together_and_variables_are_measured() {
        let findings = findings(&format!("{FILE}{MORE}")).unwrap();
        let of = |measure: &str, case: &str| {
            let mut all = findings.measurements.iter();
            let found = all.find(|found| found.measure == measure && found.case == case);
            let found = found.unwrap_or_else(|| panic!("no {measure} in {case}"));
            (found.value.mean, found.unit.as_str())
        };
        // 8 Mbit/s with 14 bytes of framing for each packet of 1028 bytes.
        let full = 8.0 * 1028.0 / 1042.0;
        for window in ["1s to 3s", "3s to 5s"] {
            let (both, unit) = of(&format!("throughput of both, {window}"), "fifo, twice");
            assert!(
                (both / full - 1.0).abs() < 0.01 && unit == "Mbit/s",
                "{both} {unit}"
            );
        }
        let (least, unit) = of("least throughput of slow, 1s to 5s", "drr, twice");
        assert!(least > 1000.0 && least < 2060.0 && unit == "kbit/s", "{least}");
        let (most, _) = of("greatest of waiting", "fifo, twice");
        assert!((45.0..=50.0).contains(&most), "the limit is 50 packets: {most}");
        let (rise, unit) = of("rise of waiting", "fifo, once");
        assert!(
            rise == 5.0 && unit == "s",
            "7 Mbit/s do not fill the queue: {rise}"
        );
        assert_eq!(of("fall of waiting", "drr, once").0, 5.0, "never: the whole run");
        assert_eq!(findings.figures.last().unwrap().title(), "Waiting");
    }

    /// A measure's keys are checked before anything is simulated.
    #[test]
    fn a_wrong_measure_costs_no_run() {
        for (from, to) in [
            ("unit = \"Mbit/s\"", "unit = \"GB/s\""),
            (
                "of = [\"left->right\"]",
                "of = [\"left->right\"]\nunit = \"Mbit/s\"",
            ),
            ("unit = \"Mbit/s\"", "unit = \"Mbit/s\"\nvalue = 3"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let document = Document::parse("test.toml", &FILE.replacen(from, to, 1)).expect("is TOML");
            run(&Run {
                document: &document,
                conditions: Conditions {
                    seeds: &[1],
                    quick: false,
                    progress: &|_, _| panic!("a run has begun with {to}"),
                    count: None,
                    live: None,
                },
                published: &[],
            })
            .expect_err(to);
        }
    }

    #[test]
    fn wrong_names_are_reported() {
        for (from, to, message) in [
            ("of = [\"slow\", \"fast\"]", "of = [\"quick\"]", "`quick`"),
            (
                "\"simulate.flow.fast.udp.rate\" = \"5mbit\"",
                "\"simulate.flow.fats.udp.rate\" = \"5mbit\"",
                "`fats`",
            ),
            (
                "[\"loss of slow\", \"drr, twice\"]",
                "[\"loss of slow\", \"drr\"]",
                "`loss of slow` in the case `drr`",
            ),
            ("figure = \"loss\"", "figure = \"losses\"", "losses"),
            ("over = \"load\"", "over = \"road\"", "`road`"),
            (
                "cases = \"drr, *\"",
                "cases = \"qfq, *\"",
                "no case is called `qfq, *`",
            ),
            (
                "violins_of = [\"slow\"",
                "violins_of = [\"snow\"",
                "the run has no `snow`",
            ),
            (
                "of = [\"left->right\"]",
                "of = [\"left->right\"]\nduring = [\"1s\", \"2s\"]",
                "`utilisation` is measured in the whole measurement window only",
            ),
            (
                "unit = \"Mbit/s\"",
                "unit = \"Mbit/s\"\nvalue = 3",
                "`goodput` has no value to reach",
            ),
            ("unit = \"Mbit/s\"", "unit = \"GB/s\"", "`GB/s` is not a unit"),
            (
                "figure = \"loss\"",
                "figure = \"loss\"\nunit = \"Mbit/s\"",
                "only rates have a choice",
            ),
            (
                "of = [\"left->right\"]",
                "of = [\"left->right\"]\nunit = \"ms\"",
                "`ms` is not a unit",
            ),
            (
                "measure = \"loss of slow\"",
                "measure = \"loss of snow\"",
                "`loss of snow`",
            ),
        ] {
            assert!(FILE.contains(from), "{from}");
            let error = findings(&FILE.replacen(from, to, 1)).expect_err(to);
            let text = format!("{error} {error:?}");
            assert!(text.contains(message), "{to}: {text}");
        }
    }
}

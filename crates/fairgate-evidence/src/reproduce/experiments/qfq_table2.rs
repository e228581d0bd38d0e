//! Table II of the QFQ paper: end-to-end delays through three routers.
//!
//! The network is the `[simulate]` section of the file. Each flow becomes a class on every interface of every
//! router. Its weight is its reserved rate.
//!
//! **The bound.** Let `T` be a scheduler's worst-case fair index for a flow of share `phi R`. While the flow
//! has packets, the scheduler serves it at least as well as a link of rate `phi R` that starts `T` late. This
//! follows from its B-WFI, which is `phi R T` for all schedulers here. In a row of such links latencies add
//! up, and a burst is counted once (Le Boudec & Thiran 2001, section 1.4). Packets are forwarded whole, so
//! each link except the last adds `L / (phi R)` (section 1.7). A flow that sends a packet of `L` bytes every
//! `L / r`, `r <= phi R`, has a burst of one packet. So the delay of a packet is at most the delay of the
//! empty path, plus `T + L / (phi R)` for each scheduler on it. Where a host's flows share its link without a
//! scheduler, a packet waits for at most one packet of each of them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use fairgate::{ClassId, Rate};
use fairgate_config::units::parse_duration;
use fairgate_config::{Document, FileError, Spec};
use fairgate_report::chart::{Chart, Curve, Drawn, Point, Scale};
use fairgate_report::dots::{Dots, Row};
use fairgate_sim::results::{Durations, FlowResults};
use fairgate_sim::{Flow, Link, Scenario, Simulation};
use fairgate_theory::estimate::Estimate;
use fairgate_theory::guarantees::bounds::{System, kept, printed};
use fairgate_theory::guarantees::measures::Weights;
use fairgate_theory::measured::Dice;
use serde::Deserialize;

use crate::reproduce::{Figure, Findings, ReproduceError, Run};

/// The handle by which packets name their class.
const HANDLE: u16 = 1;
/// QFQ and S-KPS count as similar if their delays differ by at most this factor.
const ALIKE: f64 = 2.0;
/// DRR counts as far above the others from this factor on.
const FAR: f64 = 1.5;
/// A difference of a packet's transmission time is ignored, ms.
const A_PACKET: f64 = 0.17;
/// The duration of a short run.
const QUICK: Duration = Duration::from_secs(7);

/// The parameters in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    schedulers: Vec<String>,
    observed: Vec<String>,
    routers: Vec<String>,
    packet: u32,
    queue: u32,
    start_within: String,
    weights: BTreeMap<String, u32>,
}

/// A scheduler, and its packet length: `drr`, or `drr 1500`.
struct Case {
    /// The text in the file.
    name: String,
    discipline: String,
    /// The longest packet that the scheduler is configured for, bytes. It is DRR's quantum for the least
    /// weight.
    packet: u32,
}

/// The network, with a class for each flow.
struct Setup {
    parameters: Parameters,
    /// The scenario in the file, with every flow separate.
    scenario: Scenario,
    /// The weight of each flow.
    weights: Vec<u32>,
    cases: Vec<Case>,
    start_within: Duration,
}

/// Mean, standard deviation and maximum of the delays, ms, by run.
#[derive(Default)]
struct Delays {
    mean: Vec<f64>,
    deviation: Vec<f64>,
    max: Vec<f64>,
    /// Percentiles 0 to 100 of the first run, ms.
    percentiles: Vec<f64>,
}

/// The paper's schedulers, in the claimed order. DRR's least quantum is the longest packet of an Ethernet.
const PAPERS: [&str; 4] = ["wf2q_plus", "qfq", "s_kps", "drr 1500"];
/// The same with the least quantum that lets DRR work in O(1).
const LEAST_QUANTUM: [&str; 4] = ["wf2q_plus", "qfq", "s_kps", "drr"];
/// The three statistics of the table.
const FIGURES: [&str; 3] = ["mean", "deviation", "max"];
/// Their indices.
const MEAN: usize = 0;
const DEVIATION: usize = 1;
const MAX: usize = 2;

impl Delays {
    fn add(&mut self, delay: &Durations) {
        let millis = |nanos: u64| nanos as f64 * 1e-6;
        self.mean.push(millis(delay.mean_ns));
        self.deviation.push(millis(delay.deviation_ns));
        self.max.push(millis(delay.max_ns));
        if self.percentiles.is_empty() {
            self.percentiles = delay.percentiles_ns.iter().map(|&nanos| millis(nanos)).collect();
        }
    }

    fn figure(&self, figure: usize) -> Estimate {
        let runs = [&self.mean, &self.deviation, &self.max][figure];
        Estimate::of(runs).unwrap_or(Estimate::exact(f64::NAN))
    }

    /// Returns the longest delay of all runs, ms.
    fn longest(&self) -> f64 {
        self.max.iter().copied().fold(0.0, f64::max)
    }
}

impl Setup {
    fn read(run: &Run<'_>) -> Result<Setup, ReproduceError> {
        let parameters: Parameters = run.parameters()?;
        let bug = |what: String| ReproduceError::Bug {
            id: "qfq-table2".into(),
            what,
        };
        let start_within = parse_duration(&parameters.start_within).map_err(|error| bug(error.message))?;
        let mut scenario = Scenario::read(run.document)?;
        if run.conditions.quick {
            scenario.duration = QUICK;
            scenario.measure.end = QUICK;
        }
        let mut weights = Vec::new();
        let mut flows = Vec::new();
        for flow in &scenario.flows {
            let weight = *(parameters.weights.get(&flow.name))
                .ok_or_else(|| bug(format!("its parameters: `{}` has no weight", flow.name)))?;
            for number in 1..=flow.count {
                let name = match flow.count {
                    1 => flow.name.clone(),
                    _ => format!("{}-{number}", flow.name),
                };
                weights.push(weight);
                flows.push(Flow {
                    name,
                    count: 1,
                    class: ClassId::new(HANDLE, weights.len() as u16),
                    ..flow.clone()
                });
            }
        }
        scenario.flows = flows;
        let case = |name: &String| {
            let (discipline, packet) = name.split_once(' ').unwrap_or((name, ""));
            let packet = match packet {
                "" => Ok(parameters.packet),
                bytes => bytes.parse(),
            };
            Ok(Case {
                name: name.clone(),
                discipline: discipline.to_owned(),
                packet: packet.map_err(|_| bug(format!("its parameters: `{name}` has no length")))?,
            })
        };
        let cases = parameters.schedulers.iter().map(case);
        Ok(Setup {
            cases: cases.collect::<Result<_, ReproduceError>>()?,
            parameters,
            scenario,
            weights,
            start_within,
        })
    }

    /// Returns DRR's quanta, bytes. They are proportional to the weights, and the least is one packet.
    fn quanta(&self, packet: u32) -> Vec<u32> {
        let least = self.weights.iter().copied().min().unwrap_or(1);
        self.weights
            .iter()
            .map(|weight| packet * weight / least)
            .collect()
    }

    /// Returns the scheduler with a class for each flow.
    fn scheduler(&self, case: &Case) -> Result<Spec, FileError> {
        let name = case.discipline.as_str();
        let mut text = format!("[queue.router]\ndiscipline = \"{name}\"\nhandle = \"{HANDLE}:\"\n");
        for (index, (weight, quantum)) in self.weights.iter().zip(self.quanta(case.packet)).enumerate() {
            let share = match name {
                "drr" => format!("quantum = {quantum}"),
                "wf2q_plus" | "scfq" => format!("weight = {weight}"),
                _ => format!("weight = {weight}\nmax_packet = {}", case.packet),
            };
            let _ = write!(
                text,
                "[[queue.router.class]]\nid = {}\n{share}\ndiscipline = \"fifo\"\nlimit = {}\n",
                index + 1,
                self.parameters.queue
            );
        }
        let document = Document::parse("the routers' scheduler", &text)?;
        Ok(document.queue("router").expect("the text has this queue").clone())
    }

    fn is_router(&self, link: &Link, at_a: bool) -> bool {
        let node = if at_a { link.a } else { link.b };
        self.parameters
            .routers
            .iter()
            .any(|router| router == self.scenario.node_name(node))
    }

    fn simulate(&self, spec: &Spec, seed: u64) -> Result<Vec<FlowResults>, ReproduceError> {
        let mut scenario = self.scenario.clone();
        scenario.seed = seed;
        for flow in &mut scenario.flows {
            flow.start = self.start_within.mul_f64(Dice::new(seed, &flow.name).unit());
        }
        for (link, original) in scenario.links.iter_mut().zip(&self.scenario.links) {
            if self.is_router(original, true) {
                link.queue_a = spec.clone().into();
            }
            if self.is_router(original, false) {
                link.queue_b = spec.clone().into();
            }
        }
        let simulation = Simulation::new(&scenario).map_err(fairgate_sim::Error::from)?;
        Ok(simulation.run()?.flows)
    }

    /// Returns the bound on the delay of an observed flow, ms; see the module documentation. It follows from
    /// the T-WFI that a publication prints, or else from a corollary. `None` if there is neither.
    fn bound(&self, case: &Case, flow: usize) -> Option<f64> {
        let as_printed = printed(&case.discipline).and_then(|promises| promises.t_wfi);
        let promise = as_printed.or(kept(&case.discipline)?.t_wfi)?;
        Some(self.along_the_path(flow, |rate, scheduled| {
            if !scheduled {
                let source = self.scenario.flows[flow].source;
                let beside = self.scenario.flows.iter().filter(|flow| flow.source == source);
                return beside.count() as f64 * self.transmission(rate);
            }
            let t_wfi = (promise.of)(&self.system(case, rate), flow);
            let all: f64 = self.weights.iter().map(|&weight| f64::from(weight)).sum();
            let share = f64::from(self.weights[flow]) / all;
            *t_wfi.numer() as f64 / *t_wfi.denom() as f64 * 1e-9 + self.transmission(rate) / share
        }))
    }

    /// Returns the delay of the flow's packets in an empty network, ms.
    fn alone(&self, flow: usize) -> f64 {
        self.along_the_path(flow, |rate, _| self.transmission(rate))
    }

    /// Returns the transmission time of a packet, s.
    fn transmission(&self, rate: Rate) -> f64 {
        f64::from(self.parameters.packet) * 8.0 / rate.bits_per_second() as f64
    }

    /// Returns the sum over the links of a flow's path, ms: propagation, plus `at`, which gets the link's
    /// rate and whether a router sends.
    fn along_the_path(&self, flow: usize, at: impl Fn(Rate, bool) -> f64) -> f64 {
        let mut node = self.scenario.flows[flow].source;
        let mut seconds = 0.0;
        for link in self.path(flow) {
            let link = &self.scenario.links[link];
            let forth = link.a == node;
            let (rate, delay, next) = if forth {
                (&link.rate_a, link.delay_a, link.b)
            } else {
                (&link.rate_b, link.delay_b, link.a)
            };
            let rate = rate.constant();
            seconds += delay.as_secs_f64() + rate.map_or(0.0, |rate| at(rate, self.is_router(link, forth)));
            node = next;
        }
        seconds * 1e3
    }

    /// Returns the links of a flow's path. In this network these are the links between the routers, and those
    /// of source and destination.
    fn path(&self, flow: usize) -> Vec<usize> {
        let flow = &self.scenario.flows[flow];
        let on_path = |link: &Link| {
            let is = |node| link.a == node || link.b == node;
            let between = self.is_router(link, true) && self.is_router(link, false);
            between || is(flow.source) || is(flow.destination)
        };
        (0..self.scenario.links.len())
            .filter(|&link| on_path(&self.scenario.links[link]))
            .collect()
    }

    fn system(&self, case: &Case, rate: Rate) -> System {
        System {
            weights: Weights::new(self.weights.clone()),
            max_packets: vec![case.packet; self.weights.len()],
            quanta: self.quanta(case.packet),
            rate,
        }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.scenario.flows.iter().position(|flow| flow.name == name)
    }
}

/// The result of one flow under one scheduler.
struct Outcome<'a> {
    flow: &'a str,
    case: &'a Case,
    delays: Delays,
    /// The bound, ms.
    bound: Option<f64>,
    /// The delay of a packet in an empty network, ms.
    alone: f64,
}

impl Outcome<'_> {
    /// Returns one of [`FIGURES`], ms. Mean and maximum are reduced by the delay in an empty network.
    fn excess(&self, figure: usize) -> f64 {
        let alone = if figure == DEVIATION { 0.0 } else { self.alone };
        self.delays.figure(figure).mean - alone
    }

    fn longest(&self) -> f64 {
        self.delays.longest()
    }
}

/// All results.
struct Outcomes<'a>(Vec<Outcome<'a>>);

impl Outcomes<'_> {
    fn of(&self, flow: &str, case: &str) -> Option<&Outcome<'_>> {
        self.0
            .iter()
            .find(|outcome| outcome.flow == flow && outcome.case.name == case)
    }

    /// Returns NaN if it was not measured.
    fn excess(&self, flow: &str, case: &str, figure: usize) -> f64 {
        self.of(flow, case)
            .map_or(f64::NAN, |outcome| outcome.excess(figure))
    }
}

/// Runs the experiment.
pub(super) fn run(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let setup = Setup::read(run)?;
    let observed: Vec<(usize, &str)> = (setup.parameters.observed.iter())
        .filter_map(|name| Some((setup.index(name)?, name.as_str())))
        .collect();
    let mut outcomes = Outcomes(Vec::new());
    for &(index, flow) in &observed {
        outcomes.0.extend(setup.cases.iter().map(|case| Outcome {
            flow,
            case,
            delays: Delays::default(),
            bound: setup.bound(case, index),
            alone: setup.alone(index),
        }));
    }
    let conditions = run.conditions;
    let steps = (setup.cases.len() * conditions.seeds.len()) as f64;
    for (row, case) in setup.cases.iter().enumerate() {
        let spec = setup.scheduler(case)?;
        for (column, &seed) in conditions.seeds.iter().enumerate() {
            let done = row * conditions.seeds.len() + column;
            (conditions.progress)(done as f64 / steps, &case.name);
            let flows = setup.simulate(&spec, seed)?;
            for (position, &(index, _)) in observed.iter().enumerate() {
                let outcome = &mut outcomes.0[position * setup.cases.len() + row];
                outcome.delays.add(&flows[index].delay);
            }
        }
    }

    let mut findings = Findings::default();
    for outcome in &outcomes.0 {
        tell(&mut findings, outcome);
    }
    for &(_, flow) in &observed {
        judge_order(&mut findings, &format!("order-{flow}"), flow, PAPERS, &outcomes);
        judge_order(
            &mut findings,
            &format!("order-{flow}-least-quantum"),
            flow,
            LEAST_QUANTUM,
            &outcomes,
        );
    }
    judge_maximum(&mut findings, &outcomes);
    judge_bounds(&mut findings, &outcomes);
    judge_gap(&mut findings, &outcomes);
    remarks(&mut findings, &outcomes);
    findings.figures = vec![Figure::Dots(dots(&outcomes))];
    let charts = observed
        .iter()
        .map(|&(_, flow)| Figure::Chart(chart(flow, &outcomes)));
    findings.figures.extend(charts);
    Ok(findings)
}

fn tell(findings: &mut Findings, outcome: &Outcome<'_>) {
    let measure = |what: &str| format!("delay of {}, {what}", outcome.flow);
    for (number, figure) in FIGURES.iter().enumerate() {
        let case = outcome.case.name.clone();
        findings.measure(measure(figure), case, "ms", outcome.delays.figure(number));
    }
    if let Some(bound) = outcome.bound {
        let case = outcome.case.name.clone();
        findings.measure(measure("bound"), case, "ms", Estimate::exact(bound));
    }
}

/// Judges WF2Q+ <= QFQ ~ S-KPS << DRR, for deviation and maximum. Of means the paper says nothing but that
/// DRR's are larger, and a fair index does not bound them.
fn judge_order(findings: &mut Findings, claim: &str, flow: &str, cases: [&str; 4], outcomes: &Outcomes<'_>) {
    let mut holds = true;
    let mut found = Vec::new();
    for (figure, name) in [(MAX, "max"), (DEVIATION, "deviation")] {
        let [best, qfq, s_kps, drr] = cases.map(|case| outcomes.excess(flow, case, figure));
        let (less, more) = (qfq.min(s_kps), qfq.max(s_kps));
        let parts = [
            ("WF2Q+ <= QFQ", best <= qfq + A_PACKET),
            ("QFQ ~ S-KPS", more <= ALIKE * less + A_PACKET),
            ("QFQ << DRR", drr > FAR * more),
        ];
        let not_so: Vec<&str> = parts.iter().filter(|part| !part.1).map(|part| part.0).collect();
        holds &= not_so.is_empty();
        let verdict = match not_so.as_slice() {
            [] => String::new(),
            parts => format!(" (not {})", parts.join(", not ")),
        };
        found.push(format!(
            "{name} {best:.2}, {qfq:.2}, {s_kps:.2}, {drr:.2} ms{verdict}"
        ));
    }
    findings.judge(claim, holds, found.join("; "));
}

/// Judges that the longest delay of f1 grows from WF2Q+ to QFQ, S-KPS and DRR.
fn judge_maximum(findings: &mut Findings, outcomes: &Outcomes<'_>) {
    let delays = PAPERS.map(|case| outcomes.excess("f1", case, MAX));
    let found = delays.map(|delay| format!("{delay:.1}")).join(", ");
    findings.judge("maximum", delays.is_sorted(), format!("max {found} ms"));
}

fn judge_bounds(findings: &mut Findings, outcomes: &Outcomes<'_>) {
    let bounded: Vec<(&Outcome<'_>, f64)> = (outcomes.0.iter())
        .filter_map(|outcome| Some((outcome, outcome.bound?)))
        .collect();
    let broken: Vec<String> = (bounded.iter())
        .filter(|(outcome, bound)| outcome.longest() > *bound)
        .map(|(outcome, bound)| {
            let (case, flow, longest) = (&outcome.case.name, outcome.flow, outcome.longest());
            format!("{case}, {flow}: {longest:.2} ms above {bound:.2} ms")
        })
        .collect();
    let parts = bounded.iter().map(|(outcome, bound)| outcome.longest() / bound);
    let nearest = parts.fold(0.0, f64::max) * 100.0;
    let found = match broken.is_empty() {
        true => format!(
            "all {} hold; the nearest reaches {nearest:.0} % of its bound",
            bounded.len()
        ),
        false => broken.join("; "),
    };
    findings.judge("bounds", broken.is_empty() && !bounded.is_empty(), found);
}

/// Judges by how much QFQ's delays are above those of WF2Q+.
fn judge_gap(findings: &mut Findings, outcomes: &Outcomes<'_>) {
    let gap =
        |flow, figure| outcomes.excess(flow, "qfq", figure) - outcomes.excess(flow, "wf2q_plus", figure);
    let (slow, fast) = (gap("f1", MAX), gap("f2", MAX));
    findings.judge(
        "gap",
        slow > fast,
        format!(
            "of the maximum {slow:.2} ms for f1, {fast:.2} ms for f2; of the deviation {:.2} and {:.2} ms",
            gap("f1", DEVIATION),
            gap("f2", DEVIATION)
        ),
    );
}

/// Explains the claims that do not hold.
fn remarks(findings: &mut Findings, outcomes: &Outcomes<'_>) {
    findings.remark(
        "Table II is a picture, and our text has lost its values. The results are compared with the \
         statements of the text.",
    );
    let of_f1 = |case| outcomes.of("f1", case);
    let bound = |case| of_f1(case).and_then(|outcome| outcome.bound).unwrap_or(f64::NAN);
    let longest = |case| of_f1(case).map_or(f64::NAN, Outcome::longest);
    if longest("drr 1500") > FAR * longest("qfq") && longest("drr") < longest("qfq") {
        findings.remark(format!(
            "The paper gives neither DRR's quanta nor the packet length that QFQ is configured for, and they \
             decide the result of f1, which has the least weight. With DRR's least quantum of 1500 bytes \
             and QFQ configured for the 210 bytes that are sent, the longest delays are {:.0} and {:.0} ms. \
             With a least quantum of 210 bytes, f1 waits for one round of {:.0} ms at most, which \
             QFQ may round up to twice as much, so that its bound is {:.0} ms.",
            longest("drr 1500"),
            longest("qfq"),
            bound("drr"),
            bound("qfq"),
        ));
    }
    if outcomes.excess("f1", "wf2q_plus", MEAN) > outcomes.excess("f1", "s_kps", MEAN) {
        findings.remark(
            "The mean delay of f1 under WF2Q+ is not the least: a fair index does not bound means. WF2Q+ \
             serves by exact finish times, and a packet of the slowest flow has the latest finish time of \
             all queued packets. With rounded times it goes ahead of some of them.",
        );
    }
}

/// Draws mean, maximum and bound of each flow under each scheduler.
fn dots(outcomes: &Outcomes<'_>) -> Dots {
    let rows = outcomes.0.iter().map(|outcome| Row {
        name: format!("{}: {}", outcome.flow, outcome.case.name),
        values: vec![
            Some(outcome.delays.figure(MEAN).mean),
            Some(outcome.longest()),
            outcome.bound,
        ],
    });
    Dots {
        title: "End-to-end delay by flow and scheduler, all runs".into(),
        x: Scale::logarithmic("delay, ms", 10.0, 10_000.0),
        series: ["mean", "longest", "bound from the T-WFI"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.collect(),
        limit: None,
    }
}

/// Draws the distribution of a flow's delays in the first run, under the paper's schedulers.
fn chart(flow: &str, outcomes: &Outcomes<'_>) -> Chart {
    let of_flow = || PAPERS.iter().filter_map(|case| outcomes.of(flow, case));
    let longest = of_flow().map(Outcome::longest).fold(1.0, f64::max);
    let curves = of_flow().enumerate().map(|(colour, outcome)| Curve {
        name: outcome.case.name.clone(),
        colour,
        dash: colour,
        drawn: Drawn::Line,
        points: (outcome.delays.percentiles.iter().enumerate())
            .map(|(percent, &millis)| Point {
                x: millis,
                y: percent as f64,
                interval: None,
            })
            .collect(),
    });
    Chart {
        title: format!("Distribution of the end-to-end delay of {flow}, first run"),
        x: Scale::linear("delay, ms", 20.0, (longest / 10.0).ceil() * 10.0),
        y: Scale::linear("packets within, %", 0.0, 100.0),
        curves: curves.collect(),
    }
}

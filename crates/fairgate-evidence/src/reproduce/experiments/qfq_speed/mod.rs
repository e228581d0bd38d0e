//! Table III and Figure 9 of the QFQ paper: the cost of enqueueing and dequeueing a packet, by scheduler,
//! number of flows and load.
//!
//! Times depend on the machine and on its other load. Disturbances only add time, and the clock of a virtual
//! machine may have two speeds for seconds at a time. So each seed makes several passes over all cells, and
//! the least time of a cell counts. Claims are judged by times, as in the paper: on a busy machine they mean
//! little. With many flows a pair touches no more memory than with few flows, but less of that memory is
//! in the cache.

mod cell;
mod figures;
mod judge;

use fairgate_theory::estimate::Estimate;
use serde::Deserialize;

use self::cell::{Cell, Pass};
use self::judge::{THRICE, TWICE};
use crate::bench::{Algorithm, Job, Load, Order, Sizes, Weights, Workload};
use crate::reproduce::{Figure, Findings, ReproduceError, Run};

/// The paper's name of the controller with only a queue.
const NONE: &str = "NONE";
/// The numbers of flows and of pairs of a short run.
const QUICK_FLOWS: std::ops::RangeInclusive<u32> = 64..=512;
const QUICK_PAIRS: u64 = 2_000;

/// The parameters in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    algorithms: Vec<String>,
    flows: Vec<u32>,
    loads: Vec<String>,
    /// The number of flows of the mix of weights.
    mix: Option<u32>,
    /// The numbers of flows for which instructions are counted, under FULL.
    counted: Vec<u32>,
    /// The flow of the next packet. All cells are measured with each order.
    orders: Vec<Order>,
    /// The shortest and the longest packet, bytes: constant, or uniform in between. All cells are measured
    /// with each.
    packets: Vec<[u32; 2]>,
    /// The number of passes over all cells for each seed; the least time is used. From `long_from` flows on
    /// there is one pass, because a cycle has millions of pairs.
    passes: u32,
    long_from: u32,
    pairs: u64,
}

/// All measurements.
struct Cells {
    cells: Vec<Cell>,
}

/// Table III.
pub(super) fn table(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let mut findings = Findings::default();
    let cells = Cells::measure(run, &mut findings)?;
    cells.tell(&mut findings);
    let [shortest, random] =
        [Order::Shortest, Order::Random].map(|order| cells.with(|workload| workload.order == order));
    shortest.judge_order(&mut findings);
    shortest.judge_ratio(&mut findings, "twice", ("QFQ", "DRR"), &|ratio| ratio <= TWICE);
    shortest.judge_ratio(&mut findings, "thrice", ("S-KPS", "QFQ"), &|ratio| {
        ratio >= THRICE
    });
    random.judge_mix(&mut findings);
    shortest.judge_bursts(&mut findings);
    shortest.judge_viable(&mut findings);
    shortest.judge_unmatched(&mut findings);
    let figures = Load::ALL.into_iter().map(|load| shortest.figure(load));
    findings.figures = (figures.chain([random.figure(Load::Full)]).flatten())
        .map(Figure::Scaling)
        .collect();
    Ok(findings)
}

/// Figure 9.
pub(super) fn figure(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let mut findings = Findings::default();
    let cells = Cells::measure(run, &mut findings)?;
    cells.tell(&mut findings);
    let [constant, various] = [true, false]
        .map(|constant| cells.with(|workload| matches!(workload.sizes, Sizes::Constant(_)) == constant));
    constant.judge_flat(&mut findings);
    constant.judge_order(&mut findings);
    constant.judge_one_flow(&mut findings);
    constant.judge_budget(&mut findings);
    various.judge_logarithmic(&mut findings);
    let figures = [
        constant.figure(Load::Full),
        various.figure(Load::Full),
        various.figure_of_instructions(),
    ];
    findings.figures = figures.into_iter().flatten().map(Figure::Scaling).collect();
    Ok(findings)
}

impl Cells {
    fn measure(run: &Run<'_>, findings: &mut Findings) -> Result<Cells, ReproduceError> {
        let conditions = run.conditions;
        let mut parameters: Parameters = run.parameters()?;
        if conditions.quick {
            parameters.flows.retain(|flows| flows <= QUICK_FLOWS.end());
            parameters.mix = parameters.mix.map(|flows| flows.min(*QUICK_FLOWS.end()));
            parameters.counted.retain(|flows| QUICK_FLOWS.contains(flows));
            (parameters.passes, parameters.pairs) = (1, QUICK_PAIRS);
        }
        let mut cells = cells(&parameters)?;
        cells.retain(|cell| {
            let fits = !cell.job.is_too_big();
            if !fits {
                findings.remark(format!(
                    "{} was not measured: it needs more memory than the machine has.",
                    cell.case()
                ));
            }
            fits
        });
        time(&mut cells, run, &parameters)?;
        let counts = |cell: &Cell| {
            let job = &cell.job;
            job.workload.load == Load::Full
                && (parameters.counted.contains(&job.workload.flows) || job.weights == Weights::Mix)
        };
        if let Some(count) = conditions.count {
            let mut none: Option<(Job, f64)> = None;
            for cell in cells.iter_mut().filter(|cell| counts(cell)) {
                (conditions.progress)(1.0, &format!("instructions of {}", cell.case()));
                let of = |job: &Job| count(job).map_err(|source| cell.refused(source));
                // Cells with the same NONE are neighbours.
                let of_none = match none {
                    Some((job, instructions)) if job.workload == cell.job.workload => instructions,
                    _ => of(&cell.job.without_scheduler())?,
                };
                none = Some((cell.job, of_none));
                cell.instructions = Some(of(&cell.job)? - of_none);
            }
        }
        findings.remark(
            "Claims are judged by times, the least of all passes on this machine: run it while nothing else \
             runs. Instructions, as counted by valgrind, are the same on a busy machine. The paper's times \
             are from a desktop of about 2009 (2.1 GHz, 32 bit).",
        );
        Ok(Cells { cells })
    }

    /// Returns the cells with these workloads.
    fn with(&self, is_one: impl Fn(&Workload) -> bool) -> Cells {
        let cells = self.cells.iter().filter(|cell| is_one(&cell.job.workload));
        Cells {
            cells: cells.cloned().collect(),
        }
    }

    /// Reports the measurements, by load and then by number of flows.
    fn tell(&self, findings: &mut Findings) {
        let mut before = None;
        for cell in &self.cells {
            let setting = (cell.job.workload, cell.job.weights);
            if before.replace(setting) != Some(setting)
                && let Some(estimate) = Estimate::of(&cell.none)
            {
                findings.measure(
                    "time of a pair",
                    format!("{NONE}, {}", cell.setting()),
                    "ns",
                    estimate,
                );
            }
            if let Some(estimate) = Estimate::of(&cell.net) {
                findings.measure("time of a pair, net of NONE", cell.case(), "ns", estimate);
            }
        }
        for cell in &self.cells {
            if let Some(instructions) = cell.instructions {
                findings.measure(
                    "instructions of a pair, net of NONE",
                    cell.case(),
                    "",
                    Estimate::exact(instructions),
                );
            }
        }
    }
}

/// Measures the times of all cells with each seed.
fn time(cells: &mut [Cell], run: &Run<'_>, parameters: &Parameters) -> Result<(), ReproduceError> {
    let conditions = run.conditions;
    let works: Vec<u64> = (cells.iter())
        .map(|cell| u64::from(cell.passes(parameters)) * cell.work(parameters))
        .collect();
    let all = (works.iter().sum::<u64>() * conditions.seeds.len() as u64).max(1) as f64;
    let mut done = 0;
    for &seed in conditions.seeds {
        let mut least = vec![Pass::WITHOUT; cells.len()];
        for pass in 0..parameters.passes {
            for (cell, least) in cells.iter().zip(&mut least) {
                if pass < cell.passes(parameters) {
                    (conditions.progress)(done as f64 / all, &cell.case());
                    *least = least.least(cell.time(parameters, seed)?);
                    done += cell.work(parameters);
                }
            }
        }
        // NONE is the same for all schedulers under a workload.
        let none: Vec<f64> = (cells.iter())
            .map(|cell| {
                let beside = (cells.iter().zip(&least)).filter(|(other, _)| other.is_beside(cell));
                beside.fold(f64::INFINITY, |none, (_, pass)| none.min(pass.none))
            })
            .collect();
        for ((cell, pass), none) in cells.iter_mut().zip(least).zip(none) {
            cell.none.push(none);
            cell.net.push(pass.scheduler - none);
        }
    }
    Ok(())
}

/// Returns all cells to measure: by order of arrivals, by lengths of packets, by load, by number of flows,
/// and then by scheduler. The mix comes last.
fn cells(parameters: &Parameters) -> Result<Vec<Cell>, ReproduceError> {
    let bug = |what: String| ReproduceError::Bug {
        id: "qfq-table3".into(),
        what,
    };
    let load = |name: &String| {
        let known = Load::ALL.into_iter().find(|load| load.name() == name);
        known.ok_or_else(|| bug(format!("its parameters: there is no load `{name}`")))
    };
    let loads: Vec<Load> = parameters.loads.iter().map(load).collect::<Result<_, _>>()?;
    let algorithm = |name: &String| {
        Algorithm::by_name(name).ok_or_else(|| bug(format!("its parameters: there is no scheduler `{name}`")))
    };
    let algorithms: Vec<Algorithm> = parameters
        .algorithms
        .iter()
        .map(algorithm)
        .collect::<Result<_, _>>()?;
    let equal = parameters.flows.iter().map(|&flows| (flows, Weights::Equal));
    let mix = parameters.mix.map(|flows| (flows, Weights::Mix));
    let mut cells = Vec::new();
    let packets = |order: Order| parameters.packets.iter().map(move |packets| (order, packets));
    for (order, &[shortest, longest]) in parameters.orders.iter().copied().flat_map(packets) {
        let sizes = match shortest == longest {
            true => Sizes::Constant(longest),
            false => Sizes::Uniform(shortest, longest),
        };
        for &load in &loads {
            for (flows, weights) in equal.clone().chain(mix) {
                for &algorithm in &algorithms {
                    cells.push(Cell::new(algorithm, flows, weights, load, order, sizes));
                }
            }
        }
    }
    Ok(cells)
}

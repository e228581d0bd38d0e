//! Figures 3 and 4 of the paper on shortest queue first: the analysis of a video beside TCP.
//!
//! Four answers to each question: the paper's estimate in two readings ([`Count`]), the Markov chain that it estimates
//! ([`Exact`]), and the discipline `[queue.sqf]` itself under the traffic that the analysis assumes ([`Shared`]).

use std::fmt;
use std::time::Duration;

use fairgate_config::Spec;
use fairgate_config::units::{parse_duration, parse_rate, parse_size};
use fairgate_report::chart::{Chart, Curve, Point, Scale};
use fairgate_theory::estimate::Estimate;
use fairgate_theory::measured::{Dice, Losses, Shared};
use fairgate_theory::sqf::{Count, Exact, Sharing};
use serde::Deserialize;

use crate::{Figure, Findings, ReproduceError, Run};

/// Number of TCP flows and peak rate, bit/s, that the paper's text speaks of.
const SPOKEN_OF: (u32, f64) = (20, 6e6);
/// What "close to 0" is taken to mean.
const CLOSE_TO_0: f64 = 0.05;
/// What fair queueing allows at n = 20, by the paper's text, kbit/s, and the part by which it rounds.
const FAIR_KBIT: f64 = 480.0;
const ROUNDED: f64 = 0.02;
/// The least mean time below 6 Mbit/s, by the paper's text, min.
const SPOKEN_OF_MINUTES: f64 = 180.0;
/// Transmissions of each rate and seed after which the discipline's run for a mean time ends: some 17 minutes each million.
const MOST_TRANSMISSIONS: u64 = 20_000_000;

/// The files' parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    line: String,
    packet: String,
    buffer: u32,
    flows: Vec<u32>,
    time: Option<String>,
    from: String,
    to: String,
    step: String,
    windows: Option<u64>,
    losses: Option<u64>,
    measured: Vec<Vec<f64>>,
}

/// What both figures need.
struct Setup {
    /// Bits of a packet.
    packet: f64,
    /// By number of TCP flows.
    lines: Vec<Sharing>,
    /// Peak rates of the curves, bit/s.
    rates: Vec<f64>,
    /// Peak rates at which the discipline runs, bit/s, by line.
    measured: Vec<Vec<f64>>,
    /// The discipline.
    discipline: Option<Spec>,
    /// How long the video lasts, if that matters.
    time: Option<Duration>,
    parameters: Parameters,
}

fn wrong(what: impl fmt::Display) -> ReproduceError {
    ReproduceError::Fault {
        id: "sqf",
        what: format!("its parameters: {what}"),
    }
}

impl Setup {
    fn read(run: &Run<'_>) -> Result<Setup, ReproduceError> {
        let parameters: Parameters = run.parameters()?;
        let rate = |text: &str| match parse_rate(text) {
            Ok(rate) => Ok(rate.bits_per_second() as f64),
            Err(error) => Err(wrong(error.message)),
        };
        let packet = parse_size(&parameters.packet).map_err(|error| wrong(error.message))? as f64 * 8.0;
        let capacity = rate(&parameters.line)? / packet;
        let lines = parameters
            .flows
            .iter()
            .map(|&flows| Sharing::new(capacity, parameters.buffer, flows))
            .collect::<Result<Vec<_>, _>>()
            .map_err(wrong)?;
        let (from, to, step) = (
            rate(&parameters.from)?,
            rate(&parameters.to)?,
            rate(&parameters.step)?,
        );
        let time = parameters.time.as_deref().map(parse_duration).transpose();
        let time = time.map_err(|error| wrong(error.message))?;
        let count = ((to - from) / step).round() as u32;
        let every = if run.conditions.quick { 8 } else { 1 };
        let mut measured: Vec<Vec<f64>> = (parameters.measured.iter())
            .map(|rates| rates.iter().map(|mbit| mbit * 1e6).collect())
            .collect();
        if measured.len() != lines.len() {
            return Err(wrong("`measured` needs a list of rates for each number of flows"));
        }
        if run.conditions.quick {
            // The highest rates lose priority soonest.
            measured.iter_mut().for_each(|rates| {
                rates.drain(..rates.len().saturating_sub(1));
            });
        }
        Ok(Setup {
            packet,
            lines,
            rates: (0..=count)
                .step_by(every)
                .map(|i| from + f64::from(i) * step)
                .collect(),
            measured,
            discipline: run.document.queue("sqf").cloned(),
            time,
            parameters,
        })
    }

    /// A rate in packets a second.
    fn packets(&self, bits: f64) -> f64 {
        bits / self.packet
    }

    /// The line with as many TCP flows as the paper's text speaks of.
    fn spoken_of(&self) -> Option<&Sharing> {
        self.lines.iter().find(|line| line.flows() == SPOKEN_OF.0)
    }

    /// A curve of each line.
    fn curves(&self, name: &str, dash: usize, value: impl Fn(&Sharing, f64) -> f64) -> Vec<Curve> {
        self.lines
            .iter()
            .enumerate()
            .map(|(colour, line)| {
                let points = self
                    .rates
                    .iter()
                    .map(|&rate| (rate / 1e6, value(line, self.packets(rate))));
                Curve::line(format!("n = {}: {name}", line.flows()), colour, points).dashed(dash)
            })
            .collect()
    }

    /// Fair queueing's step of each line.
    fn steps(&self) -> Vec<Curve> {
        let ends = [self.rates[0] / 1e6, self.rates[self.rates.len() - 1] / 1e6];
        self.lines
            .iter()
            .enumerate()
            .map(|(colour, line)| {
                let fair = line.fair_rate() * self.packet / 1e6;
                let corners = [(ends[0], 0.0), (fair, 0.0), (fair, 1.0), (ends[1], 1.0)];
                Curve::line(format!("n = {}: fair queueing", line.flows()), colour, corners).dashed(2)
            })
            .collect()
    }

    /// A chart over the peak rates.
    fn chart(&self, title: &str, y: Scale, curves: Vec<Curve>) -> Figure {
        let (first, last) = (self.rates[0], self.rates[self.rates.len() - 1]);
        Figure::Chart(Chart {
            title: title.into(),
            x: Scale::linear(
                "peak rate of the video, Mbit/s",
                (first / 1e6).floor(),
                (last / 1e6).ceil(),
            ),
            y,
            curves,
        })
    }

    /// Runs the discipline at each of its rates: `play` gets line, rate in packets a second, and a fresh run by seed.
    fn measure<T>(
        &self,
        run: &Run<'_>,
        mut play: impl FnMut(&Sharing, f64, u64, &mut Shared<'_>) -> T,
    ) -> Result<Vec<Measured<T>>, ReproduceError> {
        let Some(spec) = &self.discipline else {
            return Ok(Vec::new());
        };
        let all: usize = self.measured.iter().map(Vec::len).sum();
        let mut results = Vec::with_capacity(all);
        for (colour, (line, rates)) in self.lines.iter().zip(&self.measured).enumerate() {
            for &rate in rates {
                let case = format!("n = {}, {} Mbit/s", line.flows(), rate / 1e6);
                (run.conditions.progress)(results.len() as f64 / all as f64, &case);
                let mut by_seed = Vec::with_capacity(run.conditions.seeds.len());
                for &seed in run.conditions.seeds {
                    let mut discipline = spec
                        .build(seed)
                        .map_err(|error| ReproduceError::Discipline(error.to_string()))?;
                    let dice = Dice::new(seed, &case);
                    let mut shared = Shared::new(*line, self.packets(rate), discipline.as_mut(), dice);
                    by_seed.push(play(line, self.packets(rate), seed, &mut shared));
                }
                results.push(Measured {
                    colour,
                    line: *line,
                    rate,
                    case,
                    by_seed,
                });
            }
        }
        Ok(results)
    }

    /// What fair queueing allows, and whether it is what the paper says.
    fn judge_fair_queueing(&self, findings: &mut Findings) {
        for line in &self.lines {
            let kbit = line.fair_rate() * self.packet / 1e3;
            let case = format!("n = {}", line.flows());
            findings.measure(
                "greatest peak rate under fair queueing",
                case,
                "kbit/s",
                Estimate::exact(kbit),
            );
        }
        let kbit = self
            .spoken_of()
            .map_or(f64::NAN, |line| line.fair_rate() * self.packet / 1e3);
        let holds = (kbit / FAIR_KBIT - 1.0).abs() < ROUNDED;
        findings.judge(
            "fair-queueing",
            holds,
            format!("{kbit:.0} kbit/s; the paper rounds to {FAIR_KBIT}"),
        );
    }
}

/// What the discipline did at one rate.
struct Measured<T> {
    colour: usize,
    line: Sharing,
    /// bit/s.
    rate: f64,
    case: String,
    by_seed: Vec<T>,
}

impl<T> Measured<T> {
    fn point(&self, estimate: &Estimate) -> Point {
        Point {
            x: self.rate / 1e6,
            y: estimate.mean,
            interval: Some((estimate.low, estimate.high)),
        }
    }
}

/// Whether the rate at which `value` passes `level` falls from line to line: curves from right to left.
fn from_right_to_left(setup: &Setup, level: f64, value: impl Fn(&Sharing, f64) -> f64) -> (bool, String) {
    let passes: Vec<Option<f64>> = (setup.lines.iter())
        .map(|line| {
            setup
                .rates
                .iter()
                .copied()
                .find(|&rate| value(line, setup.packets(rate)) >= level)
        })
        .collect();
    let ordered = passes.windows(2).all(|pair| pair[0] > pair[1]) && passes.iter().all(Option::is_some);
    let at: Vec<String> = passes
        .iter()
        .map(|rate| rate.map_or("nowhere".into(), |rate| format!("{:.1}", rate / 1e6)))
        .collect();
    (ordered, at.join(", "))
}

/// What the three readings of the formula give where the paper's text speaks of it.
fn measure_readings(findings: &mut Findings, measure: &str, unit: &'static str, answers: [f64; 3]) {
    let readings = ["estimate, N(t) normal", "estimate as printed", "exact"];
    for (reading, value) in readings.iter().zip(answers) {
        let case = format!("n = 20, 6 Mbit/s: {reading}");
        findings.measure(measure, case, unit, Estimate::exact(value));
    }
}

/// Figure 3.
pub(super) fn probability(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let setup = Setup::read(run)?;
    let Some(time) = setup.time else {
        return Err(wrong("there is no `time`, which the video lasts"));
    };
    let seconds = time.as_secs_f64();
    let mut findings = Findings::default();
    let normal = |line: &Sharing, rate: f64| line.estimate(rate, seconds, Count::Normal);
    let printed = |line: &Sharing, rate: f64| line.estimate(rate, seconds, Count::Poisson);
    let exact = |line: &Sharing, rate: f64| Exact::new(line, rate).probability(seconds);
    let measure = &format!("probability within {} min", seconds / 60.0);

    if let Some(line) = setup.spoken_of() {
        let rate = setup.packets(SPOKEN_OF.1);
        let answers = [normal(line, rate), printed(line, rate), exact(line, rate)];
        measure_readings(&mut findings, measure, "", answers);
        let [normal, printed, exact] = answers;
        findings.judge(
            "near-zero",
            normal < CLOSE_TO_0,
            format!(
                "Judged with N(t) normal: {normal:.4} at 6 Mbit/s. The formula as printed, N(t) Poisson, does not give it: \
                 {printed:.2}; nor does the chain that it estimates: {exact:.3}"
            ),
        );
    } else {
        findings.judge("near-zero", false, "there is no line with 20 TCP flows");
    }
    setup.judge_fair_queueing(&mut findings);
    let (ordered, at) = from_right_to_left(&setup, 0.5, normal);
    findings.judge(
        "more-flows",
        ordered,
        format!("Judged with N(t) normal: the estimate passes 0.5 at {at} Mbit/s"),
    );

    let windows = match run.conditions.quick {
        true => 1,
        false => setup.parameters.windows.unwrap_or(1),
    };
    let transmissions = (seconds * setup.lines[0].capacity()) as u64;
    let measured = setup.measure(run, |_, _, _, shared| -> Vec<Losses> {
        (0..windows).map(|_| shared.play(transmissions)).collect()
    })?;
    let (mut beyond, mut passed) = (Vec::new(), Vec::new());
    let mut agrees = 0;
    for result in &measured {
        let losses = || result.by_seed.iter().flatten();
        let share = |lost: fn(&Losses) -> bool| {
            Estimate::share(
                losses().filter(|losses| lost(losses)).count() as u64,
                losses().count() as u64,
            )
        };
        let expected = exact(&result.line, setup.packets(result.rate));
        let case = |what: &str| format!("{}: {what}", result.case);
        findings.measure(measure, case("exact"), "", Estimate::exact(expected));
        if let Some(estimate) = share(|losses| losses.beyond_limit.is_some()) {
            agrees += usize::from(estimate.holds(expected));
            findings.measure(measure, case("sqf, x >= B/(n+1)"), "", estimate);
            beyond.push((result.colour, result.point(&estimate)));
        }
        if let Some(estimate) = share(|losses| losses.passed_over.is_some()) {
            findings.measure(measure, case("sqf, passed over"), "", estimate);
            passed.push((result.colour, result.point(&estimate)));
        }
    }
    remarks(&mut findings, agrees, &measured);

    let y = || Scale::linear("probability within 10 min", 0.0, 1.0);
    let mut as_published = setup.curves("estimate, N(t) normal", 0, normal);
    as_published.extend(setup.steps());
    let mut compared = setup.curves("exact", 0, exact);
    if !run.conditions.quick {
        // Takes far longer than all else together.
        compared.extend(setup.curves("as printed, N(t) Poisson", 1, printed));
    }
    compared.extend(setup.curves("estimate, N(t) normal", 2, normal));
    compared.extend(marks(&setup, "sqf, x ≥ B/(n+1)", 0, &beyond));
    compared.extend(marks(&setup, "sqf, passed over", 5, &passed));
    findings.figures = vec![
        setup.chart(
            "Figure 3: probability that the video loses its priority",
            y(),
            as_published,
        ),
        setup.chart(
            "The same: estimate, exact, and the discipline itself",
            y(),
            compared,
        ),
    ];
    Ok(findings)
}

/// Figure 4.
pub(super) fn mean_time(run: &Run<'_>) -> Result<Findings, ReproduceError> {
    let setup = Setup::read(run)?;
    let mut findings = Findings::default();
    let normal = |line: &Sharing, rate: f64| line.estimated_time(rate, Count::Normal) / 60.0;
    let printed = |line: &Sharing, rate: f64| line.estimated_time(rate, Count::Poisson) / 60.0;
    let exact = |line: &Sharing, rate: f64| Exact::new(line, rate).mean_time() / 60.0;
    let measure = "mean time with priority";

    if let Some(line) = setup.spoken_of() {
        let rate = setup.packets(SPOKEN_OF.1);
        let answers = [normal(line, rate), printed(line, rate), exact(line, rate)];
        measure_readings(&mut findings, measure, "min", answers);
        let [normal, printed, exact] = answers;
        findings.judge(
            "mean-time",
            normal > SPOKEN_OF_MINUTES,
            format!(
                "Judged with N(t) normal: {normal:.0} min at 6 Mbit/s. The formula as printed, N(t) Poisson, does not give it: \
                 {printed:.0} min; nor does the chain that it estimates: {exact:.2} min"
            ),
        );
    } else {
        findings.judge("mean-time", false, "there is no line with 20 TCP flows");
    }
    setup.judge_fair_queueing(&mut findings);
    let (ordered, at) = from_right_to_left(&setup, -SPOKEN_OF_MINUTES, |line, rate| -normal(line, rate));
    findings.judge(
        "more-flows",
        ordered,
        format!("Judged with N(t) normal: the estimate falls below {SPOKEN_OF_MINUTES} min at {at} Mbit/s"),
    );

    let wanted = match run.conditions.quick {
        true => 3,
        false => setup.parameters.losses.unwrap_or(1),
    };
    let measured = setup.measure(run, |line, _, _, shared| {
        mean_times(shared, wanted).map(|transmissions| transmissions / line.capacity() / 60.0)
    })?;
    let (mut beyond, mut passed) = (Vec::new(), Vec::new());
    let mut agrees = 0;
    for result in &measured {
        let expected = exact(&result.line, setup.packets(result.rate));
        let case = |what: &str| format!("{}: {what}", result.case);
        findings.measure(measure, case("exact"), "min", Estimate::exact(expected));
        let of = |index: usize| {
            Estimate::of(
                &result
                    .by_seed
                    .iter()
                    .map(|times| times[index])
                    .collect::<Vec<_>>(),
            )
        };
        if let Some(estimate) = of(0) {
            agrees += usize::from(estimate.holds(expected));
            findings.measure(measure, case("sqf, x >= B/(n+1)"), "min", estimate);
            beyond.push((result.colour, result.point(&estimate)));
        }
        if let Some(estimate) = of(1) {
            findings.measure(measure, case("sqf, passed over"), "min", estimate);
            passed.push((result.colour, result.point(&estimate)));
        }
    }
    remarks(&mut findings, agrees, &measured);

    let y = || Scale::logarithmic("mean time with priority, min", 1e-3, 1e4);
    let mut compared = setup.curves("exact", 0, exact);
    compared.extend(setup.curves("as printed, N(t) Poisson", 1, printed));
    compared.extend(setup.curves("estimate, N(t) normal", 2, normal));
    compared.extend(marks(&setup, "sqf, x ≥ B/(n+1)", 0, &beyond));
    compared.extend(marks(&setup, "sqf, passed over", 5, &passed));
    let as_published = setup.curves("estimate, N(t) normal", 0, normal);
    findings.figures = vec![
        setup.chart(
            "Figure 4: mean time for which the video has priority",
            Scale::linear("mean time with priority, min", 0.0, 400.0),
            as_published,
        ),
        setup.chart(
            "The same: estimate, exact, and the discipline itself",
            y(),
            compared,
        ),
    ];
    Ok(findings)
}

/// Mean transmissions until the limit is reached, and until the video is passed over, over `wanted` losses.
fn mean_times(shared: &mut Shared<'_>, wanted: u64) -> [f64; 2] {
    let (mut sums, mut counts, mut left) = ([0u64; 2], [0u64; 2], MOST_TRANSMISSIONS);
    for _ in 0..wanted {
        let losses = shared.play(left);
        let ends = [losses.beyond_limit, losses.passed_over];
        for ((sum, count), end) in sums.iter_mut().zip(&mut counts).zip(ends) {
            // What was cut short counts as time, not as a loss: the estimate of a rate stays unbiased.
            *sum += end.unwrap_or(left);
            *count += u64::from(end.is_some());
        }
        left -= ends
            .into_iter()
            .map(|end| end.unwrap_or(left))
            .max()
            .unwrap_or(left)
            .min(left);
        if left == 0 {
            break;
        }
    }
    std::array::from_fn(|index| sums[index] as f64 / counts[index] as f64)
}

/// The discipline's points, a curve of each line.
fn marks(setup: &Setup, name: &str, shade: usize, points: &[(usize, Point)]) -> Vec<Curve> {
    let of = |colour: usize| {
        points
            .iter()
            .filter(move |point| point.0 == colour)
            .map(|point| point.1)
    };
    setup
        .lines
        .iter()
        .enumerate()
        .filter(|(colour, _)| of(*colour).next().is_some())
        .map(|(colour, line)| {
            Curve::marks(
                format!("n = {}: {name}", line.flows()),
                colour + shade,
                of(colour),
            )
        })
        .collect()
}

fn remarks<T>(findings: &mut Findings, agrees: usize, measured: &[Measured<T>]) {
    findings.remark(
        "The figures that the paper states follow from its formula only if the number of arrivals N(t) is taken as normal. As the \
         formula is printed, with N(t) Poisson, the video loses its priority far sooner, and the Markov chain that the formula \
         estimates from below says: sooner still.",
    );
    if !measured.is_empty() {
        findings.remark(format!(
            "The discipline was run at {} points; at {agrees} of them its 95 % interval holds the value of the chain. The chain \
             lets the video win until x >= B/(n+1); of whole packets n + 1 equal parts can't always be made, so some TCP flows have \
             as few packets as a video just below that, and ties are served first come first served.",
            measured.len()
        ));
    }
}

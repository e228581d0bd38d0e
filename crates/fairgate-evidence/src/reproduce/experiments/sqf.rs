//! Figures 3 and 4 of the paper on shortest queue first: the analysis of a video beside TCP.
//!
//! Each question has four answers: the paper's estimate in two readings ([`Count`]), the Markov chain that it
//! estimates ([`Exact`]), and measurements of the discipline `[queue.sqf]` under the traffic that the
//! analysis assumes ([`Shared`]). The claims are judged by the formula as the paper prints it, with a Poisson
//! number of arrivals. The other reading stands beside it as a statement of ours.

use std::fmt;
use std::time::Duration;

use fairgate_config::Spec;
use fairgate_config::units::{parse_duration, parse_rate, parse_size};
use fairgate_report::chart::{Chart, Curve, Point, Scale};
use fairgate_theory::estimate::Estimate;
use fairgate_theory::measured::{Dice, Losses, Shared};
use fairgate_theory::sqf::{Count, Exact, Sharing};
use serde::Deserialize;

use crate::reproduce::{Figure, Findings, ReproduceError, Run};

/// The number of TCP flows and the peak rate, bit/s, for which the paper's text states numbers.
const STATED_FOR: (u32, f64) = (20, 6e6);
/// The greatest probability that counts as "close to 0".
const CLOSE_TO_0: f64 = 0.05;
/// The greatest rate under fair queueing for n = 20 in the paper's text, kbit/s, and the part by which it is
/// rounded.
const FAIR_KBIT: f64 = 480.0;
const ROUNDED: f64 = 0.02;
/// The name of the curves of the paper's formula.
const AS_PRINTED: &str = "as printed, N(t) Poisson";
/// The least mean time below 6 Mbit/s in the paper's text, min.
const STATED_MINUTES: f64 = 180.0;
/// The most transmissions for each rate and seed in a measurement of the mean time. A million is about 17
/// minutes.
const MOST_TRANSMISSIONS: u64 = 20_000_000;

/// The parameters in the files.
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

/// The setup of both figures.
struct Setup {
    /// The length of a packet, bits.
    packet: f64,
    /// The shared link for each number of TCP flows.
    links: Vec<Sharing>,
    /// The peak rates of the curves, bit/s.
    rates: Vec<f64>,
    /// The peak rates at which the discipline is measured, bit/s, by link.
    measured: Vec<Vec<f64>>,
    /// The discipline to measure.
    discipline: Option<Spec>,
    /// The duration of the video, if the figure depends on it.
    time: Option<Duration>,
    parameters: Parameters,
}

fn wrong(what: impl fmt::Display) -> ReproduceError {
    ReproduceError::Bug {
        id: "sqf".into(),
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
        let links = parameters
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
        if measured.len() != links.len() {
            return Err(wrong("`measured` needs a list of rates for each number of flows"));
        }
        if run.conditions.quick {
            // Keep the highest rates: priority is lost soonest with them.
            measured.iter_mut().for_each(|rates| {
                rates.drain(..rates.len().saturating_sub(1));
            });
        }
        Ok(Setup {
            packet,
            links,
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

    /// Converts a rate to packets a second.
    fn packets(&self, bits: f64) -> f64 {
        bits / self.packet
    }

    /// Returns the link with the number of TCP flows for which the paper's text states numbers.
    fn stated_for(&self) -> Option<&Sharing> {
        self.links.iter().find(|link| link.flows() == STATED_FOR.0)
    }

    /// Returns a curve for each link.
    fn curves(&self, name: &str, dash: usize, value: impl Fn(&Sharing, f64) -> f64) -> Vec<Curve> {
        self.links
            .iter()
            .enumerate()
            .map(|(colour, link)| {
                let points = self
                    .rates
                    .iter()
                    .map(|&rate| (rate / 1e6, value(link, self.packets(rate))));
                Curve::line(format!("n = {}: {name}", link.flows()), colour, points).dashed(dash)
            })
            .collect()
    }

    /// Returns the step function of fair queueing for each link.
    fn steps(&self) -> Vec<Curve> {
        let ends = [self.rates[0] / 1e6, self.rates[self.rates.len() - 1] / 1e6];
        self.links
            .iter()
            .enumerate()
            .map(|(colour, link)| {
                let fair = link.fair_rate() * self.packet / 1e6;
                let corners = [(ends[0], 0.0), (fair, 0.0), (fair, 1.0), (ends[1], 1.0)];
                Curve::line(format!("n = {}: fair queueing", link.flows()), colour, corners).dashed(2)
            })
            .collect()
    }

    /// Creates a chart over the peak rates.
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

    /// Measures the discipline at each of its rates. `play` gets the link, the rate in packets a second, the
    /// seed, and a new run.
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
        for (colour, (link, rates)) in self.links.iter().zip(&self.measured).enumerate() {
            for &rate in rates {
                let case = format!("n = {}, {} Mbit/s", link.flows(), rate / 1e6);
                (run.conditions.progress)(results.len() as f64 / all as f64, &case);
                let mut by_seed = Vec::with_capacity(run.conditions.seeds.len());
                for &seed in run.conditions.seeds {
                    let mut discipline = spec
                        .build(seed)
                        .map_err(|error| ReproduceError::Discipline(error.to_string()))?;
                    let dice = Dice::new(seed, &case);
                    let mut shared = Shared::new(*link, self.packets(rate), discipline.as_mut(), dice);
                    by_seed.push(play(link, self.packets(rate), seed, &mut shared));
                }
                results.push(Measured {
                    colour,
                    link: *link,
                    rate,
                    case,
                    by_seed,
                });
            }
        }
        Ok(results)
    }

    /// Judges whether the greatest rate under fair queueing is the one in the paper.
    fn judge_fair_queueing(&self, findings: &mut Findings) {
        for link in &self.links {
            let kbit = link.fair_rate() * self.packet / 1e3;
            let case = format!("n = {}", link.flows());
            findings.measure(
                "greatest peak rate under fair queueing",
                case,
                "kbit/s",
                Estimate::exact(kbit),
            );
        }
        let kbit = self
            .stated_for()
            .map_or(f64::NAN, |link| link.fair_rate() * self.packet / 1e3);
        let holds = (kbit / FAIR_KBIT - 1.0).abs() < ROUNDED;
        findings.judge(
            "fair-queueing",
            holds,
            format!("{kbit:.0} kbit/s; the paper rounds to {FAIR_KBIT}"),
        );
    }
}

/// The measurements at one rate.
struct Measured<T> {
    colour: usize,
    link: Sharing,
    /// The peak rate, bit/s.
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

/// Whether the rate at which `value` reaches `level` falls from link to link, so that the curves are ordered
/// from right to left. `value` must not fall with the rate.
fn from_right_to_left(setup: &Setup, level: f64, value: impl Fn(&Sharing, f64) -> f64) -> (bool, String) {
    let passes: Vec<Option<f64>> = (setup.links.iter())
        .map(|link| {
            let is_below = |rate: &f64| value(link, setup.packets(*rate)) < level;
            let first = setup.rates.partition_point(is_below);
            setup.rates.get(first).copied()
        })
        .collect();
    let ordered = passes.windows(2).all(|pair| pair[0] > pair[1]) && passes.iter().all(Option::is_some);
    let at: Vec<String> = passes
        .iter()
        .map(|rate| rate.map_or("no rate".into(), |rate| format!("{:.1}", rate / 1e6)))
        .collect();
    (ordered, at.join(", "))
}

/// Reports the values of the three readings of the formula where the paper's text states one.
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
        return Err(wrong("`time`, the duration of the video, is missing"));
    };
    let seconds = time.as_secs_f64();
    let mut findings = Findings::default();
    let normal = |link: &Sharing, rate: f64| link.estimate(rate, seconds, Count::Normal);
    let printed = |link: &Sharing, rate: f64| link.estimate(rate, seconds, Count::Poisson);
    let exact = |link: &Sharing, rate: f64| Exact::new(link, rate).probability(seconds);
    let measure = &format!("probability within {} min", seconds / 60.0);

    if let Some(link) = setup.stated_for() {
        let rate = setup.packets(STATED_FOR.1);
        let answers = [normal(link, rate), printed(link, rate), exact(link, rate)];
        measure_readings(&mut findings, measure, "", answers);
        let [normal, printed, exact] = answers;
        findings.judge(
            "near-zero",
            normal < CLOSE_TO_0,
            format!("with N(t) normal {normal:.4} at 6 Mbit/s; close to 0 is below {CLOSE_TO_0}"),
        );
        let found = format!("{printed:.2} at 6 Mbit/s; the chain that it estimates gives {exact:.3}");
        findings.judge("near-zero-as-printed", printed < CLOSE_TO_0, found);
    } else {
        for claim in ["near-zero", "near-zero-as-printed"] {
            findings.leave_open(claim, "there is no link with 20 TCP flows");
        }
    }
    setup.judge_fair_queueing(&mut findings);
    let (ordered, at) = from_right_to_left(&setup, 0.5, printed);
    findings.judge(
        "more-flows",
        ordered,
        format!("the printed formula reaches 0.5 at {at} Mbit/s"),
    );

    let windows = match run.conditions.quick {
        true => 1,
        false => setup.parameters.windows.unwrap_or(1),
    };
    let transmissions = (seconds * setup.links[0].capacity()) as u64;
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
        let expected = exact(&result.link, setup.packets(result.rate));
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
    let if_normal = |dash| setup.curves("estimate, N(t) normal", dash, normal);
    // The printed formula takes far longer than everything else together.
    let mut as_published = match run.conditions.quick {
        true => if_normal(0),
        false => setup.curves(AS_PRINTED, 0, printed),
    };
    let mut compared = setup.curves("exact", 0, exact);
    if !run.conditions.quick {
        compared.extend(as_published.iter().cloned().map(|curve| curve.dashed(1)));
    }
    as_published.extend(setup.steps());
    compared.extend(if_normal(2));
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
    let normal = |link: &Sharing, rate: f64| link.estimated_time(rate, Count::Normal) / 60.0;
    let printed = |link: &Sharing, rate: f64| link.estimated_time(rate, Count::Poisson) / 60.0;
    let exact = |link: &Sharing, rate: f64| Exact::new(link, rate).mean_time() / 60.0;
    let measure = "mean time with priority";

    if let Some(link) = setup.stated_for() {
        let rate = setup.packets(STATED_FOR.1);
        let answers = [normal(link, rate), printed(link, rate), exact(link, rate)];
        measure_readings(&mut findings, measure, "min", answers);
        let [normal, printed, exact] = answers;
        findings.judge(
            "mean-time",
            normal > STATED_MINUTES,
            format!("with N(t) normal {normal:.0} min at 6 Mbit/s"),
        );
        let found = format!("{printed:.0} min at 6 Mbit/s; the chain that it estimates gives {exact:.2}");
        findings.judge("mean-time-as-printed", printed > STATED_MINUTES, found);
    } else {
        for claim in ["mean-time", "mean-time-as-printed"] {
            findings.leave_open(claim, "there is no link with 20 TCP flows");
        }
    }
    setup.judge_fair_queueing(&mut findings);
    let (ordered, at) = from_right_to_left(&setup, -STATED_MINUTES, |link, rate| -printed(link, rate));
    findings.judge(
        "more-flows",
        ordered,
        format!("the printed formula falls below {STATED_MINUTES} min at {at} Mbit/s"),
    );

    let wanted = match run.conditions.quick {
        true => 3,
        false => setup.parameters.losses.unwrap_or(1),
    };
    let measured = setup.measure(run, |link, _, _, shared| {
        mean_times(shared, wanted).map(|transmissions| transmissions / link.capacity() / 60.0)
    })?;
    let (mut beyond, mut passed) = (Vec::new(), Vec::new());
    let mut agrees = 0;
    for result in &measured {
        let expected = exact(&result.link, setup.packets(result.rate));
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
    compared.extend(setup.curves(AS_PRINTED, 1, printed));
    compared.extend(setup.curves("estimate, N(t) normal", 2, normal));
    compared.extend(marks(&setup, "sqf, x ≥ B/(n+1)", 0, &beyond));
    compared.extend(marks(&setup, "sqf, passed over", 5, &passed));
    let as_published = setup.curves(AS_PRINTED, 0, printed);
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

/// Returns the mean number of transmissions until the limit is reached, and until the video is passed over,
/// over `wanted` losses.
fn mean_times(shared: &mut Shared<'_>, wanted: u64) -> [f64; 2] {
    let (mut sums, mut counts, mut left) = ([0u64; 2], [0u64; 2], MOST_TRANSMISSIONS);
    for _ in 0..wanted {
        let losses = shared.play(left);
        let ends = [losses.beyond_limit, losses.passed_over];
        for ((sum, count), end) in sums.iter_mut().zip(&mut counts).zip(ends) {
            // A run that is cut short counts as time but not as a loss, so that the estimate of the rate is
            // unbiased.
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

/// Returns the measured points, as a curve for each link.
fn marks(setup: &Setup, name: &str, shade: usize, points: &[(usize, Point)]) -> Vec<Curve> {
    let of = |colour: usize| {
        points
            .iter()
            .filter(move |point| point.0 == colour)
            .map(|point| point.1)
    };
    setup
        .links
        .iter()
        .enumerate()
        .filter(|(colour, _)| of(*colour).next().is_some())
        .map(|(colour, link)| {
            Curve::marks(
                format!("n = {}: {name}", link.flows()),
                colour + shade,
                of(colour),
            )
        })
        .collect()
}

fn remarks<T>(findings: &mut Findings, agrees: usize, measured: &[Measured<T>]) {
    findings.remark(
        "The numbers that the paper states follow from its formula only if the number of arrivals N(t) is \
         normal. With N(t) Poisson, as the formula is printed, the video loses its priority far sooner. The \
         formula is a lower estimate of the Markov chain, with which the video loses its priority even \
         sooner.",
    );
    if !measured.is_empty() {
        findings.remark(format!(
            "The discipline was measured at {} points. At {agrees} of them its 95 % interval contains the \
             value of the chain. In the chain the video has priority until x >= B/(n+1). But whole packets \
             can't always be divided into n + 1 equal parts. So some TCP flows have as few packets as a \
             video just below that limit, and equal queues are served first come first served.",
            measured.len()
        ));
    }
}

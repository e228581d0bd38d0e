//! `fairgate-lab theory`: prints formulas of queueing theory, and measurements of the real code beside them.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use comfy_table::CellAlignment;
use fairgate::Rate;
use fairgate_config::units::{parse_rate, parse_size};
use fairgate_config::{BuildError, FileError, Spec};
use fairgate_report::chart::{Chart, Curve, Point, Scale};
use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::input::positive_duration;
use fairgate_report::command::output::{self, Format, Target, Targets};
use fairgate_report::command::progress;
use fairgate_theory::estimate::Estimate;
use fairgate_theory::measured::{Dice, Lengths, Shared, Streams, delays};
use fairgate_theory::queueing::{Md1, Mm1, QueueingError};
use fairgate_theory::sqf::{Count, Exact, Sharing, SharingError};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

/// The number of packets of each run whose delays are measured.
const PACKETS: u64 = 200_000;
/// The highest load at which these packets are enough. A queue forgets its initial state after about
/// `4 / (1 - load)^2` services, here 40,000 (Abate, Whitt 1987: the relaxation time of M/M/1).
const MOST_LOAD: f64 = 0.99;
/// The number of losses of priority in each run. The real code runs only if the mean time to a loss is at
/// most [`LONGEST`] transmissions, and if the work, (transmissions + buffer) times flows, is at most
/// [`MOST_WORK`].
const LOSSES: u64 = 20;
const LONGEST: f64 = 120_000.0;
const MOST_WORK: f64 = 5e6;
/// The maximum number of states of the Markov chain. Its cost is their third power.
const MOST_STATES: f64 = 256.0;
/// The number of points of a curve.
const CURVE: u32 = 100;

/// Print formulas for a queue, and measurements of the real code beside them
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab theory mm1 --load 0.9                 delays in M/M/1, and measured through a fifo
  fairgate-lab theory md1 --rate 10mbit --packet 1250b
  fairgate-lab theory pdrr --load 0.25 --greedy 5    the PDRR paper's M/M/1 curve, and its priority queue
  fairgate-lab theory sqf --flows 20                 how long a video keeps its priority beside 20 TCP flows
  fairgate-lab theory sqf --plot sqf.svg --json

Measured values are means of --seeds runs, with the interval that contains the true mean with 95 %.")]
pub(crate) struct Args {
    #[command(subcommand)]
    question: Question,
}

#[derive(clap::Subcommand)]
enum Question {
    /// Delays with Poisson arrivals and packets of exponential length, through a fifo
    Mm1(QueueArgs),
    /// Delays with Poisson arrivals and packets of one length, through a fifo
    Md1(QueueArgs),
    /// Delays of streams through PDRR, which prefers them to greedy flows, beside the M/M/1 curve of its
    /// paper
    Pdrr(QueueArgs),
    /// How long a video keeps its priority beside TCP under shortest queue first
    Sqf(SqfArgs),
}

#[derive(clap::Args)]
struct Common {
    /// Rate of the link
    #[arg(long, default_value = "10mbit", value_parser = parse_rate)]
    rate: Rate,

    /// Number of runs of the real code, with seeds 1 to N
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..=1000)
    )]
    seeds: u64,

    /// Write the figure to a file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

impl Common {
    fn plot_target(&self) -> Result<Option<Target>, Failure> {
        let mut targets = Targets::beside([]);
        self.plot.as_deref().map(|path| targets.open(path)).transpose()
    }
}

#[derive(clap::Args)]
struct QueueArgs {
    /// The streams' share of the link, above 0 and below 1
    #[arg(long, default_value_t = 0.5)]
    load: f64,

    /// Mean length of a packet
    #[arg(long, default_value = "1000b", value_parser = parse_size)]
    packet: u64,

    /// Number of greedy flows beside the streams; only for pdrr
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=400))]
    greedy: u32,

    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
struct SqfArgs {
    /// Number of TCP flows that fill the buffer
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    flows: u32,

    /// Size of the buffer, in packets
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    buffer: u32,

    /// Length of a packet
    #[arg(long, default_value = "1250b", value_parser = parse_size)]
    packet: u64,

    /// Duration of the video
    #[arg(long, default_value = "10min", value_parser = positive_duration)]
    time: Duration,

    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Error, Diagnostic)]
enum TheoryError {
    #[error(transparent)]
    #[diagnostic(help("choose a load such as 0.9"))]
    Queueing(#[from] QueueingError),
    #[error(transparent)]
    #[diagnostic(help("choose a value above 0"))]
    Sharing(#[from] SharingError),
    #[error(transparent)]
    #[diagnostic(help("choose other parameters"))]
    Build(#[from] BuildError),
    #[error("at a load of {0} the runs of {PACKETS} packets are too short to reach the steady state")]
    #[diagnostic(help("choose a load of at most {MOST_LOAD}"))]
    Load(f64),
    #[error(
        "the video's part of the buffer is {0} packets, but its Markov chain is computed for at most \
         {MOST_STATES}"
    )]
    #[diagnostic(help("choose a smaller --buffer or more --flows; the part is B / (n + 1)"))]
    States(f64),
    #[error("packets have {0} bytes, but must have from 1 to 65535")]
    #[diagnostic(help("choose for example --packet 1000b"))]
    Packet(u64),
    #[error("a fifo serves greedy flows like all others, so the streams' queue would grow without limit")]
    #[diagnostic(help("remove --greedy, or use pdrr"))]
    Greedy,
}

/// `fairgate.theory/1`.
#[derive(Serialize)]
struct Answer {
    question: &'static str,
    /// The discipline that was run.
    discipline: String,
    seeds: u64,
    /// The name of `x`, with its unit.
    x: &'static str,
    rows: Vec<Row>,
}

/// The values of formulas and of the real code at one point.
#[derive(Serialize)]
struct Row {
    x: f64,
    /// One value for each column.
    values: Vec<Value>,
}

#[derive(Serialize)]
struct Value {
    name: &'static str,
    value: f64,
    /// The ends of the 95 % interval of a measured value.
    interval: Option<[f64; 2]>,
}

impl Value {
    fn exact(name: &'static str, value: f64) -> Value {
        Value {
            name,
            value,
            interval: None,
        }
    }

    fn measured(name: &'static str, estimate: Option<Estimate>) -> Value {
        Value {
            name,
            value: estimate.map_or(f64::NAN, |estimate| estimate.mean),
            interval: estimate.map(|estimate| [estimate.low, estimate.high]),
        }
    }
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    match args.question {
        Question::Mm1(args) => queue("mm1", &args, "fifo limit=16384", format),
        Question::Md1(args) => queue("md1", &args, "fifo limit=16384", format),
        Question::Pdrr(args) => queue("pdrr", &args, "pdrr limit=16384", format),
        Question::Sqf(args) => sqf(&args, format),
    }
}

/// Computes delays by the formula, and measures them through a discipline.
fn queue(
    question: &'static str,
    args: &QueueArgs,
    discipline: &str,
    format: Format,
) -> Result<Outcome, Failure> {
    let mean = packet(args.packet)?;
    if args.greedy > 0 && question != "pdrr" {
        return Err(TheoryError::Greedy.into());
    }
    let rate = args.common.rate.bits_per_second() as f64;
    let service = f64::from(mean) * 8.0 / rate;
    let (exponential, constant) = (
        Mm1::new(args.load, service).map_err(TheoryError::from)?,
        Md1::new(args.load, service).map_err(TheoryError::from)?,
    );
    if args.load > MOST_LOAD {
        return Err(TheoryError::Load(args.load).into());
    }
    let (is_constant, name) = (
        question == "md1",
        if question == "md1" { "M/D/1" } else { "M/M/1" },
    );
    let exceeds = |time: f64| match is_constant {
        true => constant.delay_exceeds(time),
        false => exponential.delay_exceeds(time),
    };
    let spec = spec(discipline)?;
    let streams = Streams {
        rate,
        load: args.load,
        mean,
        lengths: if is_constant {
            Lengths::Constant
        } else {
            Lengths::Exponential
        },
        greedy: args.greedy,
    };
    let plot = args.common.plot_target()?;
    let bar = progress::share(format);
    bar.set_length(args.common.seeds);
    let mut runs = Vec::new();
    for seed in 1..=args.common.seeds {
        let mut root = spec.build(seed).map_err(TheoryError::from)?;
        runs.push(delays(
            &streams,
            root.as_mut(),
            PACKETS,
            &mut Dice::new(seed, question),
        ));
        bar.inc(1);
    }
    bar.finish_and_clear();

    let above = |time: f64| {
        let share =
            |run: &Vec<f64>| run.iter().filter(|&&delay| delay > time).count() as f64 / run.len() as f64;
        Estimate::of(&runs.iter().map(share).collect::<Vec<_>>())
    };
    let means: Vec<f64> = runs
        .iter()
        .map(|run| run.iter().sum::<f64>() / run.len() as f64)
        .collect();
    let formula = if is_constant {
        constant.mean_delay()
    } else {
        exponential.mean_delay()
    };
    // The curve ends where one packet in ten thousand is slower.
    let last = (1..)
        .map(|n| f64::from(n) * service)
        .find(|&time| exceeds(time) < 1e-4)
        .unwrap_or(service);
    let step = last / 15.0;
    let rows: Vec<Row> = (1..=15)
        .map(|i| f64::from(i) * step)
        .map(|time| Row {
            x: time * 1e3,
            values: vec![
                Value::exact(name, exceeds(time)),
                Value::measured("measured", above(time)),
            ],
        })
        .collect();
    let answer = Answer {
        question,
        discipline: discipline.to_owned(),
        seeds: args.common.seeds,
        x: "delay, ms",
        rows,
    };
    let line = (0..=CURVE)
        .map(|i| f64::from(i) * last / f64::from(CURVE))
        .map(|time| (time * 1e3, exceeds(time)));
    let chart = Chart {
        title: format!("Delay at load {}: {name} and {}", args.load, answer.discipline),
        x: Scale::linear("delay t, ms", 0.0, last * 1e3),
        y: Scale::logarithmic("P(delay > t)", 1e-4, 1.0),
        curves: vec![Curve::line(name, 0, line), measured_curve(&answer, "measured", 1)],
    };
    let remark = format!(
        "Mean delay: {:.4} ms by {name}, {} ms measured through {}; packets of {mean} bytes at load {}{}.",
        formula * 1e3,
        in_words(&Value::measured(
            "",
            Estimate::of(&means.iter().map(|mean| mean * 1e3).collect::<Vec<_>>())
        )),
        answer.discipline,
        args.load,
        match args.greedy {
            0 => String::new(),
            greedy => format!(", beside {greedy} greedy flows"),
        }
    );
    show(&answer, &chart, &remark, plot, format)
}

/// Computes how long a video keeps its priority: the estimate in both readings, the Markov chain, and the
/// discipline.
fn sqf(args: &SqfArgs, format: Format) -> Result<Outcome, Failure> {
    let packet = f64::from(packet(args.packet)?) * 8.0;
    let link_rate = args.common.rate.bits_per_second() as f64;
    let sharing = Sharing::new(link_rate / packet, args.buffer, args.flows).map_err(TheoryError::from)?;
    if sharing.limit() > MOST_STATES {
        return Err(TheoryError::States(sharing.limit()).into());
    }
    let discipline = format!("sqf limit={}", args.buffer);
    let spec = spec(&discipline)?;
    let seconds = args.time.as_secs_f64();
    let steps = 19u32;
    let plot = args.common.plot_target()?;
    let bar = progress::share(format);
    bar.set_length(steps.into());
    let mut rows = Vec::new();
    for step in 1..=steps {
        let part = f64::from(step) / f64::from(steps + 1);
        let rate = sharing.capacity() * part;
        let exact = Exact::new(&sharing, rate);
        let mut values = vec![
            Value::exact("P normal", sharing.estimate(rate, seconds, Count::Normal)),
            Value::exact("P printed", sharing.estimate(rate, seconds, Count::Poisson)),
            Value::exact("P exact", exact.probability(seconds)),
            Value::exact("time normal, s", sharing.estimated_time(rate, Count::Normal)),
            Value::exact("time printed, s", sharing.estimated_time(rate, Count::Poisson)),
            Value::exact("time exact, s", exact.mean_time()),
        ];
        if is_played(&sharing, exact.mean_time()) {
            let mut means = Vec::new();
            for seed in 1..=args.common.seeds {
                let mut root = spec.build(seed).map_err(TheoryError::from)?;
                let dice = Dice::new(seed, &format!("sqf {step}"));
                let mut shared = Shared::new(sharing, rate, root.as_mut(), dice);
                let sum: u64 = (0..LOSSES)
                    .filter_map(|_| shared.play(u64::MAX).beyond_limit)
                    .sum();
                means.push(sum as f64 / LOSSES as f64 / sharing.capacity());
            }
            values.push(Value::measured("time measured, s", Estimate::of(&means)));
        }
        rows.push(Row {
            x: rate * packet / 1e6,
            values,
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    let answer = Answer {
        question: "sqf",
        discipline,
        seeds: args.common.seeds,
        x: "peak rate, Mbit/s",
        rows,
    };
    let curve = |name: &'static str, dash: usize| {
        let of = |row: &Row| {
            row.values
                .iter()
                .find(|value| value.name == name)
                .map(|value| (row.x, value.value))
        };
        Curve::line(name, 0, answer.rows.iter().filter_map(of)).dashed(dash)
    };
    let chart = Chart {
        title: format!(
            "Mean time for which a video has priority beside {} TCP flows",
            args.flows
        ),
        x: Scale::linear("peak rate of the video, Mbit/s", 0.0, link_rate / 1e6),
        y: Scale::logarithmic("mean time, s", 0.1, 1e6),
        curves: vec![
            curve("time exact, s", 0),
            curve("time printed, s", 1),
            curve("time normal, s", 2),
            measured_curve(&answer, "time measured, s", 1),
        ],
    };
    let remark = format!(
        "P: probability that a video of {seconds} s loses its priority; time: mean time until it does. \
         normal: the paper's estimate with a normal distribution of N(t), from which the figures in its text \
         follow. printed: the estimate as printed, with a Poisson distribution of N(t). exact: the Markov \
         chain that it estimates. measured: the discipline itself, where the loss comes within {LONGEST} \
         transmissions. Fair queueing gives priority up to {:.3} Mbit/s.",
        sharing.fair_rate() * packet / 1e6
    );
    show(&answer, &chart, &remark, plot, format)
}

/// Returns whether losses that take `mean_time` seconds in the mean are simulated with the real code. The
/// cost depends on the transmissions, not on the seconds, and on the flows, because each fills its part of
/// the buffer.
fn is_played(sharing: &Sharing, mean_time: f64) -> bool {
    let transmissions = mean_time * sharing.capacity();
    let work = (transmissions + f64::from(sharing.buffer())) * f64::from(sharing.flows());
    transmissions < LONGEST && work < MOST_WORK
}

/// Checks the length of a packet, in bytes.
fn packet(bytes: u64) -> Result<u32, TheoryError> {
    let length = u32::try_from(bytes).ok();
    length
        .filter(|bytes| (1..=65_535).contains(bytes))
        .ok_or(TheoryError::Packet(bytes))
}

fn spec(text: &str) -> Result<Spec, FileError> {
    Spec::inline(text)
}

/// Returns the points of a measured column.
fn measured_curve(answer: &Answer, name: &'static str, colour: usize) -> Curve {
    let of = |row: &Row| {
        let value = row.values.iter().find(|value| value.name == name)?;
        Some(Point {
            x: row.x,
            y: value.value,
            interval: value.interval.map(|[low, high]| (low, high)),
        })
    };
    Curve::marks(
        format!("{name}: {}", answer.discipline),
        colour,
        answer.rows.iter().filter_map(of),
    )
}

fn show(
    answer: &Answer,
    chart: &Chart,
    remark: &str,
    plot: Option<Target>,
    format: Format,
) -> Result<Outcome, Failure> {
    let draw = |target: Target| target.write(|file| file.write_all(chart.svg().as_bytes()));
    output::deliver(
        || plot.map_or(Ok(()), draw),
        |_| match format {
            Format::Json => output::json("theory", answer),
            Format::Text => output::text(&text(answer, remark)),
        },
    )?;
    Ok(Outcome::Yes)
}

fn text(answer: &Answer, remark: &str) -> String {
    let mut names: Vec<&'static str> = Vec::new();
    for value in answer.rows.iter().flat_map(|row| &row.values) {
        if !names.contains(&value.name) {
            names.push(value.name);
        }
    }
    let mut table = output::table([answer.x].into_iter().chain(names.iter().copied()));
    for row in &answer.rows {
        let cell = |name: &&str| {
            let value = row.values.iter().find(|value| value.name == *name);
            value.map_or("–".to_owned(), in_words)
        };
        table.add_row(
            [format!("{:.3}", row.x)]
                .into_iter()
                .chain(names.iter().map(cell)),
        );
    }
    for column in table.columns() {
        column.set_padding((0, 2));
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n{}\n", output::table_text(&table), output::wrap(remark, 110))
}

/// Formats a value with three or four digits, and the half width of its interval.
fn in_words(value: &Value) -> String {
    let digits = |value: f64| match value.abs() {
        0.0 => "0".into(),
        m if !(1e-3..1e6).contains(&m) => format!("{value:.2e}"),
        m if m < 10.0 => format!("{value:.4}"),
        _ => format!("{value:.1}"),
    };
    match value.interval {
        Some([low, high]) => format!("{} ± {}", digits(value.value), digits((high - low) / 2.0)),
        None => digits(value.value),
    }
}

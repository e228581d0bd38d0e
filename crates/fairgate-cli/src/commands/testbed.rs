//! `fairgate testbed`: real traffic through a live run, between two hosts in network namespaces.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use fairgate::Rate;
use fairgate_config::Registry;
use fairgate_config::units::{UnitError, parse_duration, parse_rate};
use fairgate_live::testbed::{
    Experiment, Interrupt, Outcome as Measured, PingTimes, Scenario, Stage, TestbedError,
};
use fairgate_run::client::Remote;
use serde::Serialize;

use crate::failure::{Failure, Imbalanced, Outcome};
use crate::input;
use crate::output::{self, Format};
use crate::progress;

/// Send real TCP and ping through `fairgate run`, between two hosts in namespaces on this machine
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate testbed                                            fq_codel on a link of 20 Mbit/s, 5 ms each way
  fairgate testbed --queue fq_codel --queue 'fifo limit=1000'  two disciplines in one table
  fairgate testbed --rate 100mbit --delay 1ms --flows 8 --duration 30s
  fairgate testbed --config home.toml                         the queues of a file's [run] section

It creates network namespaces, and therefore needs root. It needs iperf3, ping (iputils-ping) and ip
(iproute2). It changes nothing outside its own namespaces, and removes them when it ends, also after Ctrl-C.
FRAMES counts Ethernet headers, as shapers do. GOODPUT is TCP payload, which is 0.956 of it with full-sized
frames.")]
pub(crate) struct Args {
    /// The queue of the bottleneck; give it several times to measure one after the other [default: fq_codel]
    #[arg(long = "queue", value_name = "DISCIPLINE", conflicts_with = "config")]
    queues: Vec<String>,

    /// Rate of the bottleneck
    #[arg(long, default_value = "20mbit", value_parser = parse_rate, conflicts_with = "config")]
    rate: Rate,

    /// Delay of the link, each way
    #[arg(long, default_value = "5ms", value_parser = parse_duration, conflicts_with = "config")]
    delay: Duration,

    /// A configuration file with a [run] section, whose interfaces are replaced by the testbed's
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Number of TCP connections
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=128))]
    flows: u32,

    /// Congestion control: cubic, reno, bbr or any other that this machine's kernel supports
    #[arg(long, default_value = "cubic", value_name = "NAME")]
    congestion: String,

    /// Duration of the measurement, in whole seconds
    #[arg(long, default_value = "10s", value_parser = whole_seconds)]
    duration: Duration,

    /// Seed of the hash key and of random decisions of the queues; the timing of the machine stays random
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// `fairgate.testbed/1`.
#[derive(Serialize)]
struct Results {
    flows: u32,
    congestion: String,
    duration_s: u64,
    seed: u64,
    outcomes: Vec<Measured>,
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error: UnitError| error.to_string())?;
    if duration.subsec_nanos() != 0 || !(1..=3600).contains(&duration.as_secs()) {
        return Err(
            "must be from 1s to 3600s, in whole seconds, because iperf3 accepts no fractions".to_owned(),
        );
    }
    Ok(duration)
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let scenarios = scenarios(&args, registry)?;
    let program = std::env::current_exe().map_err(|error| {
        Failure::environment(TestbedError::System {
            action: "looking for the program `fairgate`".to_owned(),
            reason: error.to_string(),
        })
    })?;
    let experiment = Experiment {
        program,
        flows: args.flows,
        congestion: args.congestion.clone(),
        duration: args.duration,
        seed: args.seed,
        fetch: |socket| {
            let run = Remote::from(socket.to_path_buf());
            run.status(false).map_err(io::Error::other)
        },
    };
    let interrupt = Interrupt::catch().map_err(Failure::environment)?;
    let progress = progress::stages(format);
    let mut outcomes = Vec::new();
    for (index, scenario) in scenarios.iter().enumerate() {
        let mut show = |stage| {
            progress.set_message(format!(
                "{} of {}, {}: {}",
                index + 1,
                scenarios.len(),
                output::name(&scenario.label),
                describe(stage, args.duration)
            ));
        };
        outcomes.push(
            experiment
                .run(scenario, &interrupt, &mut show)
                .map_err(Failure::environment)?,
        );
    }
    progress.finish_and_clear();
    for outcome in &outcomes {
        outcome.status.check().map_err(Imbalanced::from)?;
    }
    match format {
        Format::Json => output::json(
            "testbed",
            &Results {
                flows: args.flows,
                congestion: args.congestion,
                duration_s: args.duration.as_secs(),
                seed: args.seed,
                outcomes,
            },
        )?,
        Format::Text => output::text(&tables(&outcomes))?,
    }
    Ok(Outcome::Yes)
}

fn scenarios(args: &Args, registry: &Registry) -> Result<Vec<Scenario>, Failure> {
    if let Some(path) = &args.config {
        return Ok(vec![Scenario::file(
            &path.display().to_string(),
            &input::text(path)?,
            registry,
        )?]);
    }
    let default = ["fq_codel".to_owned()];
    let queues: &[String] = if args.queues.is_empty() {
        &default
    } else {
        &args.queues
    };
    let line = |queue: &String| Ok(Scenario::link(queue, args.rate, args.delay, registry)?);
    queues.iter().map(line).collect()
}

fn describe(stage: Stage, duration: Duration) -> String {
    match stage {
        Stage::Starting => "building hosts and router".to_owned(),
        Stage::Idle => "ping over the idle link, 1 s".to_owned(),
        Stage::WarmUp => "TCP fills the queue, 5 s".to_owned(),
        Stage::Load => format!("measuring, {} s", duration.as_secs()),
        Stage::Collecting => "collecting results".to_owned(),
    }
}

/// Returns the results as text: a row for each scenario, then a row for each flow.
fn tables(outcomes: &[Measured]) -> String {
    let mut lines = output::table([
        "QUEUE",
        "FRAMES",
        "OF RATE",
        "GOODPUT",
        "JAIN",
        "PING IDLE",
        "PING LOADED",
        "95 %",
        "MAX",
        "LOST",
        "DROPPED",
        "MARKED",
    ]);
    for outcome in outcomes {
        let tree = &outcome.status.directions[0].tree;
        lines.add_row([
            outcome.scenario.clone(),
            mbit(outcome.frames_bps),
            outcome.rate_bps.map_or("-".to_owned(), |rate| {
                format!("{:.2} %", outcome.frames_bps / rate as f64 * 100.0)
            }),
            mbit(outcome.goodput_bps),
            format!("{:.3}", outcome.jain),
            millis(outcome.ping_idle.mean_ms),
            millis(outcome.ping_load.mean_ms),
            millis(outcome.ping_load.p95_ms),
            millis(outcome.ping_load.max_ms),
            lost(&outcome.ping_load),
            tree.dropped.packets.to_string(),
            tree.marked.to_string(),
        ]);
    }
    let mut flows = output::table(["QUEUE", "FLOW", "GOODPUT", "RETRANSMITTED"]);
    for outcome in outcomes {
        for (number, flow) in outcome.flows.iter().enumerate() {
            flows.add_row([
                outcome.scenario.clone(),
                format!("tcp {}", number + 1),
                mbit(flow.goodput_bps),
                flow.retransmits.to_string(),
            ]);
        }
    }
    format!("{}\n{}", output::table_text(&lines), output::table_text(&flows))
}

fn mbit(bits_per_second: f64) -> String {
    format!("{:.3} Mbit/s", bits_per_second / 1e6)
}

/// Formats a time, or a dash if no answer came back.
fn millis(millis: f64) -> String {
    if millis.is_finite() {
        format!("{millis:.1} ms")
    } else {
        "-".to_owned()
    }
}

fn lost(ping: &PingTimes) -> String {
    format!("{:.1} %", ping.loss() * 100.0)
}

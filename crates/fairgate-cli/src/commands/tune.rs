//! `fairgate tune`: measures a line against a server of the user's, says what is wrong, and writes the
//! configuration of a run.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fairgate::cake::Line;
use fairgate_config::units::parse_duration;
use fairgate_live::testbed::Interrupt;
use nix::unistd::geteuid;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Target, Targets};
use crate::progress;
use crate::tune::error::TuneError;
use crate::tune::far::Far;
use crate::tune::file::{self, Endpoint};
use crate::tune::measure::{FramingSource, Settings, Stage, measure};
use crate::tune::measured::{Direction, Measured};
use crate::tune::page;
use crate::tune::place::{Named, resolve};
use crate::tune::search::{Shaper, search};
use crate::tune::server::Server;
use crate::tune::shown;
use crate::tune::verdict::Verdict;

/// Measure a line: capacity, delay under load, framing; and write the configuration that keeps its queue here
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate tune --serve                        on a machine beyond the line: the other end
  fairgate tune --serve 192.0.2.1:4757         the same at this address only
  fairgate tune 192.0.2.1 --dry-run            measure the line to it: nothing is changed, root is not needed
  fairgate tune 192.0.2.1 --dry-run -o home.toml    and write what to run: fairgate run home.toml
  fairgate tune 192.0.2.1 -o home.toml --page line.html    as root: also search the highest rates that keep
                                               the queue here, with a run of ours, measure again, show both
  fairgate tune 192.0.2.1 --dry-run --load 20s --connections 16    longer, with more TCP connections
  fairgate tune 192.0.2.1 -o home.toml --line docsis    a cable modem: its frames count, as behind it
  fairgate tune 192.0.2.1 --dry-run --json     for a script; exit code 1 if packets wait too long under load
  fairgate tune iperf3://192.0.2.1 --dry-run   the same against an iperf3 server, at port 5201
  fairgate tune netperf://192.0.2.1:12865 --dry-run    and against a netserver, of netperf 2.5 or later

Measure at the end of the line, by cable, while nobody else uses it. The server should be near and fast: what
is measured is the slowest part of the way to it. It measures for one client at a time, for two and a half
minutes at most, and answers probes only to whom it measures for. Its port is needed by TCP and UDP. With a
server of iperf3 or netperf some figures are missing, and the output says which.")]
pub(crate) struct Args {
    /// The server: a name or an address, and its port if it is not 4757; with `iperf3://` or `netperf://`
    /// before it if it is such a server
    #[arg(required_unless_present = "serve", conflicts_with = "serve")]
    server: Option<String>,

    /// Be the server, at this address and port
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        default_missing_value = "[::]:4757",
        conflicts_with_all = ["dry_run", "out", "dev"]
    )]
    serve: Option<SocketAddr>,

    /// Measure only; without it, our own shaper runs on the interface meanwhile, which needs root
    #[arg(long)]
    dry_run: bool,

    /// Write the configuration of a run on this line
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Write the figures and their course over time as a page
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    page: Option<PathBuf>,

    /// The interface of the line [default: the one that the server is reached by]
    #[arg(long, value_name = "INTERFACE")]
    dev: Option<String>,

    /// The kind of the line, as cake's `line` names it [default: cells of ATM are looked for]
    #[arg(long, value_name = "KIND", conflicts_with = "serve", value_parser = kinds())]
    line: Option<Line>,

    /// How long each direction is loaded, from 3s to 30s
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = load_time)]
    load: Duration,

    /// TCP connections that load a direction
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=32))]
    connections: u32,
}

/// Reads a kind of line. `raw` is none: it counts frames as this machine does.
fn kinds() -> impl TypedValueParser<Value = Line> {
    let named = Line::WORDS.iter().filter(|word| **word != Line::Raw.word());
    PossibleValuesParser::new(named).map(|word| Line::of_word(&word).expect("it is one of the words"))
}

fn load_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    match (3..=30).contains(&time.as_secs()) && time <= Duration::from_secs(30) {
        true => Ok(time),
        false => Err("must be from 3s to 30s: senders need seconds to fill a line".to_owned()),
    }
}

/// `fairgate.tune/1`.
#[derive(Serialize)]
struct Tuned {
    #[serde(flatten)]
    measured: Measured,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    shaped: Option<Shaped>,
    /// The configuration that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

/// The line with our shaper.
#[derive(Serialize)]
struct Shaped {
    /// The shares of the capacity that the shapers had.
    share_down: f64,
    share_up: f64,
    #[serde(flatten)]
    measured: Measured,
}

/// How long each direction is loaded to try a rate. Ours is the only queue then, and it fills at once.
const TRIAL: Duration = Duration::from_secs(4);

/// How long the server may take to notice that the last measurement has ended.
const FREE_AGAIN: Duration = Duration::from_secs(3);

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    match (args.serve, &args.server) {
        (Some(address), _) => serve(address, format),
        (None, Some(server)) => tune(args, server, format),
        (None, None) => unreachable!("clap asks for one of both"),
    }
}

/// What fails in the network fails in the environment. A name that can't be read is a mistake of the user's.
fn failure(error: TuneError) -> Failure {
    match error {
        TuneError::Name { .. } => error.into(),
        error => Failure::environment(error),
    }
}

fn serve(address: SocketAddr, format: Format) -> Result<Outcome, Failure> {
    // A machine without IPv6 has no address for both.
    let server = Server::listen(address).or_else(|error| match address.ip().is_unspecified() {
        true => Server::listen(SocketAddr::from(([0, 0, 0, 0], address.port()))),
        false => Err(error),
    });
    let server = server.map_err(failure)?;
    let interrupt = Interrupt::catch().map_err(Failure::environment)?;
    if format == Format::Text
        && let Ok(address) = server.address()
    {
        output::say(format_args!(
            "Answering `fairgate tune` at {address}, TCP and UDP; Ctrl-C ends it."
        ));
    }
    let served = server.serve(|| interrupt.check().is_err()).map_err(failure)?;
    match format {
        Format::Json => output::json("tune-served", &served)?,
        Format::Text => output::text(&format!(
            "{} measurements, {} connections refused\n",
            served.measurements, served.refused
        ))?,
    }
    Ok(Outcome::Yes)
}

/// Measures lines, and shows how far it is.
struct Measuring {
    server: Named,
    interrupt: Interrupt,
    format: Format,
}

fn tune(args: &Args, server: &str, format: Format) -> Result<Outcome, Failure> {
    let measuring = Measuring {
        server: resolve(server).map_err(failure)?,
        interrupt: Interrupt::catch_while_busy().map_err(Failure::environment)?,
        format,
    };
    if !args.dry_run && !geteuid().is_root() {
        return Err(failure(TuneError::Privileges));
    }
    let mut targets = Targets::beside([]);
    let mut open = |path: &Option<PathBuf>| path.as_deref().map(|path| targets.open(path)).transpose();
    let (file, page) = (open(&args.out)?, open(&args.page)?);
    let settings = Settings {
        connections: args.connections,
        load: args.load,
        framing: args.line.map_or(FramingSource::Delays, FramingSource::Line),
    };
    let far = measuring.open().map_err(failure)?;
    let needs_device = !args.dry_run || args.out.is_some();
    let device = match &args.dev {
        Some(device) => device.clone(),
        None if needs_device => far.place().interface().map_err(failure)?,
        None => String::new(),
    };
    let server = far.place().server.ip().to_canonical();
    let measured = measuring.measure(&far, settings, "").map_err(failure)?;
    // The server is free for others, and for what follows.
    drop(far);
    let place = Endpoint {
        device: &device,
        server,
    };
    // What is not wrong needs no shaper.
    let shaped = match args.dry_run || !Verdict::of(&measured, None).is_bad() {
        true => None,
        false => Some(shape(&measuring, &measured, settings, &place).map_err(failure)?),
    };
    let shares = shaped.as_ref().map(|shaped| [shaped.share_down, shaped.share_up]);
    let text = needs_device.then(|| file::text(&measured, &place, shares.unwrap_or([file::SHARE; 2])));
    let path = args.out.as_ref().map(|path| path.display().to_string());
    let tuned = Tuned {
        verdict: Verdict::of(&measured, path.as_deref()),
        file: path,
        measured,
        shaped,
    };
    deliver(tuned, text.as_deref(), file, page, format)
}

/// Writes the files and prints the result.
fn deliver(
    mut tuned: Tuned,
    configuration: Option<&str>,
    file: Option<Target>,
    page: Option<Target>,
    format: Format,
) -> Result<Outcome, Failure> {
    let after = tuned.shaped.as_ref().map(|shaped| &shaped.measured);
    let is_bad = match after {
        Some(after) => Verdict::of(after, None).is_bad(),
        None => tuned.verdict.is_bad(),
    };
    let drawn = page::page(&tuned.measured, after, &tuned.verdict, configuration);
    let texts = [(file, configuration.unwrap_or_default()), (page, &drawn)];
    let write = |(target, text): (Option<Target>, &str)| match target {
        Some(target) => target.write(|file| file.write_all(text.as_bytes())),
        None => Ok(()),
    };
    output::deliver(
        || output::each(texts.into_iter().collect(), write),
        |are_written| {
            if !are_written {
                tuned.file = None;
            }
            match format {
                Format::Json => output::json("tune", &tuned),
                Format::Text => {
                    let after = tuned.shaped.as_ref().map(|shaped| &shaped.measured);
                    let mut text = shown::text(&tuned.measured, after, &tuned.verdict);
                    if let Some(file) = &tuned.file {
                        text += &format!("\nConfiguration: {}\n", output::name(file));
                    }
                    output::text(&text)
                }
            }
        },
    )?;
    Ok(if is_bad { Outcome::No } else { Outcome::Yes })
}

/// Runs our shaper, searches its rates, and measures the line with them. Afterwards the line is as it was.
fn shape(
    measuring: &Measuring,
    line: &Measured,
    settings: Settings,
    place: &Endpoint<'_>,
) -> Result<Shaped, TuneError> {
    let first = file::text(line, place, [file::SHARE; 2]);
    let shaper = Shaper::start(&first, &measuring.interrupt)?;
    let again = |load: Duration, what: &str| {
        let far = measuring.open()?;
        let settings = Settings {
            load,
            framing: FramingSource::Earlier,
            ..settings
        };
        measuring.measure(&far, settings, what)
    };
    let set = |way, share| shaper.set(way, line.of(way), share);
    let shares = search(line, set, |[down, up]| {
        let what = format!("shaped to {:.0} % down, {:.0} % up: ", down * 100.0, up * 100.0);
        again(TRIAL.min(settings.load), &what)
    })?;
    for (way, share) in [Direction::Down, Direction::Up].into_iter().zip(shares) {
        if !line.of(way).varies {
            set(way, share)?;
        }
    }
    let measured = again(settings.load, "shaped: ")?;
    Ok(Shaped {
        share_down: shares[0],
        share_up: shares[1],
        measured: measured.framed_as(line),
    })
}

impl Measuring {
    /// Opens a measurement. The server may still end our last one.
    fn open(&self) -> Result<Far, TuneError> {
        let began = Instant::now();
        loop {
            match Far::open(&self.server) {
                Err(TuneError::Busy(_)) if began.elapsed() < FREE_AGAIN => {
                    thread::sleep(Duration::from_millis(100));
                }
                other => return other,
            }
        }
    }

    /// Measures, and shows how far it is: `what` is measured, and the stage.
    fn measure(&self, far: &Far, settings: Settings, what: &str) -> Result<Measured, TuneError> {
        let length = settings.length();
        let bar = progress::trials(length.as_millis() as u64, self.format);
        let is_over = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            scope.spawn(|| {
                let began = Instant::now();
                while !is_over.load(Ordering::Relaxed) {
                    bar.set_position(began.elapsed().min(length).as_millis() as u64);
                    thread::sleep(Duration::from_millis(50));
                }
            });
            let reached = |stage| bar.set_message(format!("{what}{}", describe(stage)));
            let result = measure(far, settings, &reached, &|| self.interrupt.check().is_err());
            is_over.store(true, Ordering::Relaxed);
            result
        });
        bar.finish_and_clear();
        result
    }
}

fn describe(stage: Stage) -> &'static str {
    match stage {
        Stage::Path => "the longest packet that passes",
        Stage::Idle => "delay without load",
        Stage::Load(Direction::Down) => "download: capacity and delay under load",
        Stage::Load(Direction::Up) => "upload: capacity and delay under load",
        Stage::Framing => "delay by the length of packets",
    }
}

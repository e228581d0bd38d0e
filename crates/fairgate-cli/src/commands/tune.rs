//! `fairgate tune`: measures a line against a server of the user's, says what is wrong, and writes the
//! configuration of a run.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fairgate_config::Registry;
use fairgate_config::units::parse_duration;
use fairgate_live::testbed::Interrupt;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format, Targets};
use crate::progress;
use crate::tune::error::TuneError;
use crate::tune::file::{self, Place};
use crate::tune::measure::{Settings, Stage, measure};
use crate::tune::measured::{Delays, Direction, Measured, Way};
use crate::tune::server::Server;
use crate::tune::session::{Session, resolve};
use crate::tune::verdict::{Verdict, ms};

/// Measure a line: capacity, delay under load, framing; and write the configuration that keeps its queue here
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate tune --serve                        on a machine beyond the line: the other end
  fairgate tune --serve 192.0.2.1:4757         the same at this address only
  fairgate tune 192.0.2.1 --dry-run            measure the line to it: nothing is changed, root is not needed
  fairgate tune 192.0.2.1 --dry-run -o home.toml    and write what to run: fairgate run home.toml
  fairgate tune 192.0.2.1 --dry-run --load 20s --connections 16    longer, with more TCP connections
  fairgate tune 192.0.2.1 --dry-run --json     for a script; exit code 1 if packets wait too long under load

Measure at the end of the line, by cable, while nobody else uses it. The server should be near and fast: what
is measured is the slowest part of the way to it. It measures for one client at a time, for two and a half
minutes at most, and answers probes only to whom it measures for. Its port is needed by TCP and UDP.")]
pub(crate) struct Args {
    /// The server: a name or an address, and its port if it is not 4757
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

    /// Measure only
    #[arg(long)]
    dry_run: bool,

    /// Write the configuration of a run on this line
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The interface of the line [default: the one that the server is reached by]
    #[arg(long, value_name = "INTERFACE")]
    dev: Option<String>,

    /// How long each direction is loaded, from 3s to 30s
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = load_time)]
    load: Duration,

    /// TCP connections that load a direction
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=32))]
    connections: u32,
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
struct Tuned<'a> {
    #[serde(flatten)]
    measured: &'a Measured,
    verdict: &'a Verdict,
    /// The configuration that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
}

pub(crate) fn run(args: &Args, _registry: &Registry, format: Format) -> Result<Outcome, Failure> {
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

fn tune(args: &Args, server: &str, format: Format) -> Result<Outcome, Failure> {
    let servers = resolve(server).map_err(failure)?;
    let target = args
        .out
        .as_deref()
        .map(|path| Targets::beside([]).open(path))
        .transpose()?;
    let settings = Settings {
        connections: args.connections,
        load: args.load,
        has_framing: true,
    };
    let session = Session::open(&servers).map_err(failure)?;
    let measured = with_progress(&session, settings, format)?;
    let verdict = Verdict::of(&measured);
    let text = match &args.out {
        Some(_) => Some(configuration(args, &session, &measured)?),
        None => None,
    };
    // The server is free for others.
    drop(session);
    let path = args.out.as_ref().map(|path| path.display().to_string());
    output::deliver(
        || match target.zip(text) {
            Some((target, text)) => target.write(|file| std::io::Write::write_all(file, text.as_bytes())),
            None => Ok(()),
        },
        |is_written| {
            let file = path.filter(|_| is_written);
            match format {
                Format::Json => output::json(
                    "tune",
                    &Tuned {
                        measured: &measured,
                        verdict: &verdict,
                        file,
                    },
                ),
                Format::Text => output::text(&shown(&measured, &verdict, file.as_deref())),
            }
        },
    )?;
    Ok(match verdict.is_bad() {
        true => Outcome::No,
        false => Outcome::Yes,
    })
}

/// Measures, and shows how far it is.
fn with_progress(session: &Session, settings: Settings, format: Format) -> Result<Measured, Failure> {
    let length = settings.length();
    let bar = progress::trials(length.as_millis() as u64, format);
    let is_over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                bar.set_position(began.elapsed().min(length).as_millis() as u64);
                thread::sleep(Duration::from_millis(50));
            }
        });
        let result = measure(session, settings, &|stage| bar.set_message(describe(stage)));
        is_over.store(true, Ordering::Relaxed);
        result
    });
    bar.finish_and_clear();
    result.map_err(failure)
}

fn describe(stage: Stage) -> &'static str {
    match stage {
        Stage::Path => "the longest packet that passes",
        Stage::Idle => "delay without load",
        Stage::Load(Way::Down) => "download: capacity and delay under load",
        Stage::Load(Way::Up) => "upload: capacity and delay under load",
        Stage::Framing => "delay by the length of packets",
    }
}

/// Returns the file for a run on the interface of the line.
fn configuration(args: &Args, session: &Session, measured: &Measured) -> Result<String, Failure> {
    let device = match &args.dev {
        Some(device) => device.clone(),
        None => session.interface().map_err(failure)?,
    };
    let place = Place {
        device: &device,
        server: session.server.ip().to_canonical(),
    };
    Ok(file::text(measured, &place, [file::SHARE; 2]))
}

/// A row of the table: its name, and how a direction shows it.
type Row = (&'static str, fn(&Direction) -> String);

const ROWS: [Row; 9] = [
    ("capacity, IP packets", |way| mbit(way.capacity_bps)),
    ("  slowest and fastest tenth", |way| {
        format!("{} to {}", mbit(way.low_bps), mbit(way.high_bps))
    }),
    ("  on the line", |way| mbit(way.line_bps)),
    ("framing", |way| match way.framing {
        Some(framing) => format!("{}, {} bytes of overhead", framing.cells, framing.overhead),
        None => "not visible".to_owned(),
    }),
    ("waiting without load", |way| waits(&way.idle_ms)),
    ("waiting under load", |way| waits(&way.loaded_ms)),
    ("loss without load", |way| percent(way.loss_idle)),
    ("loss under load", |way| percent(way.loss_loaded)),
    ("responsiveness", |way| {
        format!("{:.0} round trips a minute", way.rpm)
    }),
];

/// Returns the result for people: the figures, what is wrong, what to do.
fn shown(measured: &Measured, verdict: &Verdict, file: Option<&str>) -> String {
    let mut table = output::table(["", "DOWN", "UP"]);
    for (name, show) in ROWS {
        table.add_row([name.to_owned(), show(&measured.down), show(&measured.up)]);
    }
    let round_trip = &measured.round_trip_ms;
    let mut text = format!(
        "To {}: round trip {} without load (median; 95 %: {}), packets of up to {} bytes\n\n{}\n",
        output::name(&measured.server),
        ms(round_trip.p50),
        ms(round_trip.p95),
        measured.mtu,
        output::table_text(&table)
    );
    let width = usize::from(output::page_width());
    for sentence in [&verdict.wrong[0], &verdict.wrong[1], &verdict.remedy] {
        text += &format!("{}\n", output::wrap(sentence, width));
    }
    if let Some(file) = file {
        text += &format!("\nConfiguration: {}\n", output::name(file));
    }
    text
}

fn waits(delays: &Delays) -> String {
    format!("{}, 95 %: {}", ms(delays.p50), ms(delays.p95))
}

fn mbit(bps: f64) -> String {
    match bps {
        bps if bps < 1e7 => format!("{:.3} Mbit/s", bps / 1e6),
        bps => format!("{:.1} Mbit/s", bps / 1e6),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

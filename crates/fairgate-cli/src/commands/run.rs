//! `fairgate run`: a bump in the wire.

use std::path::{Path, PathBuf};

use fairgate_config::{Document, FileError, Registry};
use fairgate_live::status::default_socket;
use fairgate_live::{Bridge, LiveError, Plan, ReloadError, Wake};

use crate::commands::status;
use crate::exit::{self, Failure, Outcome};
use crate::input;
use crate::log::{self, Log};
use crate::output::{self, Format};

/// Schedule the live traffic between two interfaces
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate run home.toml             join the interfaces named in its [run] section, until Ctrl-C
  fairgate status                    what the run is doing, from another terminal
  kill -HUP PID                      read the file again and change the queues' parameters in place
  fairgate run --json home.toml      print the final statistics as JSON

The file's [run] section:
  [run]
  left = \"eth0\"                      # or \"tap:fg0\": a TAP device, made for the run
  right = \"eth1\"
  left_to_right = \"wan\"              # [queue.wan]; without a queue, frames pass in order of arrival
  right_to_left = \"wan\"
  name = \"home\"                      # of the status socket [default: the file's name without its ending]
  frames = 16384                     # most frames held in a direction, 64 to 1048576 [default: 16384]
  delay = \"5ms\"                      # added in each direction behind the queue, up to 10s, for tests [default: none]
  spin = \"20us\"                      # stay awake for the last part of a wait, up to 1ms [default: none]
  offloads = \"off\"                   # switch GRO and LRO off while running [default: \"keep\"]
  isolate = true                     # keep this machine's own stack away from the two interfaces [default: if it
                                     # does not use them; false: never]
  realtime = false                   # do not ask for real-time scheduling [default: true]

It needs the capabilities cap_net_raw and cap_net_admin, and cap_bpf to isolate. While it runs, this machine's own
stack neither sees frames on the two interfaces nor sends by them. Interfaces with an address, in a bridge, or with
VLANs on top are refused unless `isolate = true` says that this use may rest.")]
pub(crate) struct Args {
    /// The configuration file
    file: PathBuf,

    /// Where to answer `fairgate status` [default: NAME.sock in /run/fairgate or $XDG_RUNTIME_DIR/fairgate]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Seed of the hash's key and of what the queues leave to chance, to repeat a test [default: unknown to everybody]
    #[arg(long)]
    seed: Option<u64>,
}

/// Tells the configuration's mistakes from the machine's refusals.
pub(crate) fn failure(error: LiveError) -> Failure {
    match error {
        // By itself, so that its places are told one by one.
        LiveError::Unfit(error) => error.into(),
        error if error.is_bad_input() => Failure::Input(error.into()),
        error => Failure::environment(error),
    }
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let read = || input::document(&args.file, registry);
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => default_socket(&Plan::read(&read()?)?.name),
    };
    let name = args.file.display().to_string();
    run_document(&read, &name, &socket, args.seed, format)
}

/// Runs what `read` gives, and reads it again when asked to. `name` tells people what it is.
pub(crate) fn run_document(
    read: &dyn Fn() -> Result<Document, Failure>,
    name: &str,
    socket: &Path,
    seed: Option<u64>,
    format: Format,
) -> Result<Outcome, Failure> {
    let document = read()?;
    let plan = Plan::read(&document)?;
    let available = input::available_memory();
    let too_large = plan
        .queues
        .iter()
        .filter_map(|queue| queue.too_large_for(available));
    FileError::unless_empty(too_large.collect())?;
    let mut bridge = Bridge::open(&plan, seed).map_err(failure)?;
    bridge.watch_signals().map_err(failure)?;
    bridge.serve_status(socket).map_err(failure)?;
    // After the signals are taken over: the log's thread must not receive them.
    let (log, writer) = log::start();
    let notices = log.clone();
    bridge.on_notice(move |notice| notices.say(notice));
    warn(&bridge, &document, &log, format);
    if let Err(error) = bridge.prioritise() {
        log.say(format_args!(
            "warning: {error}; on a busy machine packets will wait for the processor"
        ));
    }
    if format == Format::Text {
        log.say(format_args!(
            "Forwarding between {} and {}; `fairgate status --socket {}` shows how, Ctrl-C ends it.",
            plan.ends[0].name(),
            plan.ends[1].name(),
            socket.display()
        ));
    }
    let ended = loop {
        match bridge.run() {
            Ok(Wake::Stop) => break Ok(()),
            Ok(Wake::Reload) => reload(&mut bridge, read, name, &log, format),
            Err(error) => break Err(failure(error)),
        }
    };
    let last = bridge.status();
    // The interfaces are given back before anything is printed: standard output may take its time.
    drop((bridge, log));
    writer.finish();
    ended?;
    match format {
        Format::Json => output::json("status", &last)?,
        Format::Text => output::text(&status::tables(&last, None))?,
    }
    Ok(Outcome::Yes)
}

/// Reads the file again. A mistake in it, or a change that can't be made in place, is said and changes nothing.
fn reload(
    bridge: &mut Bridge,
    read: &dyn Fn() -> Result<Document, Failure>,
    name: &str,
    log: &Log,
    format: Format,
) {
    let mut reload = || -> Result<(), Failure> {
        let document = read()?;
        let plan = Plan::read(&document)?;
        bridge.reload(plan).map_err(|error| match error {
            ReloadError::Unfit(error) => Failure::from(error),
            error => error.into(),
        })?;
        warn(bridge, &document, log, format);
        Ok(())
    };
    match reload() {
        Ok(()) => log.say(format_args!("Read {name} again: its queues are in force.")),
        Err(Failure::Input(report) | Failure::Environment(report)) => {
            log.say(format_args!(
                "{}\n{name} is not in force; running on as before.",
                exit::shown(&report)
            ));
        }
        Err(Failure::ReaderGone) => {}
    }
}

/// Says what is right in the queues of a file, and hardly meant to stay; a document has no place beside it.
fn warn(bridge: &Bridge, document: &Document, log: &Log, format: Format) {
    if format == Format::Text {
        let doubts = bridge.doubts();
        let doubts = doubts.iter().map(input::at_its_place);
        for warning in input::warnings(document.queues()).into_iter().chain(doubts) {
            log.say(format_args!("warning: {warning}"));
        }
    }
}

//! `fairgate run`: the live data plane, between two interfaces or on one; or a dry run (`dry`).

mod beginning;
mod dry;
mod endpoints;
mod history;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use fairgate_config::{Document, FileError, Registry};
use fairgate_live::readings::is_forwarding;
use fairgate_live::{
    Address, BackendKind, Beat, Follower, LaterFiles, LiveError, Plan, Plane, Pulse, RateSource, ReloadError,
    Security, Wake, attach_trees,
};
use fairgate_run::reserve::Refusal as NotKept;
use fairgate_run::{
    ControlError, Doors, HistoryFile, Reserver, Run, RunningList, SubscribedRun, default_socket, mistakes_of,
};
use fairgate_run_api::{Audit, AuditEntry, ChangeMade, Mistake, Refused};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::commands::compare::what_if;
use crate::commands::device::DeviceArgs;
use crate::commands::run::beginning::Begun;
use crate::commands::run::history::HistoryPlace;
use crate::commands::status;
use crate::document;
use crate::exit;
use crate::failure::{Failure, Outcome};
use crate::input::{self, Texts};
use crate::last_good::LastGood;
use crate::log::{self, Entry, Level, Log, LogFormat};
use crate::output::{self, Format};
use crate::service::{Manager, Service};
use crate::subscribers::{self, ListWriter, Watch};

/// Schedule the live traffic between two interfaces, or of one
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate run home.toml             what its [run] section says, until Ctrl-C
  fairgate run --dev eth0 --down 50mbit --up 10mbit docsis
                                     a home line on this machine's own interface, without a file: a cake for
                                     each direction, with tc's words for all of both
  fairgate status                    the state of the run, from another terminal
  fairgate class change 10 rate=9mbit   change it while it forwards; also filter, queue, change
  fairgate reload                    read the file again and change to its trees, whatever they are
  fairgate run --kernel home.toml    the same by the kernel's module sch_fairgate
  fairgate run --kernel --detach home.toml   leave them there, without a process
  fairgate run --history home.history home.toml   keep the charts of the dashboard for the next run
  fairgate run --json home.toml      print the final statistics as JSON
  fairgate run home.toml --from-left in.pcap --to-right out.pcap
                                     a dry run: a day of captured frames in seconds, no interface, no root

The file's [run] section, whose keys `fairgate list run` explains:
  [run]
  left = \"eth0\"                      # or \"tap:fg0\", \"tun:fg0\": created for the run
  right = \"eth1\"
  left_to_right = \"wan\"              # [queue.wan]; without a queue, frames pass in order of arrival
  right_to_left = \"wan\"

Or for an interface that this machine itself uses (Linux 6.6):
  [run]
  device = \"eth0\"
  ingress = \"down\"                   # [queue.down], for the frames that it receives
  egress = \"up\"                      # [queue.up], for the frames that it sends
To see its packets: tcpdump -i fairgate0, in both directions as this machine sees them.

A dry run forwards the frames of captures in the captures' time, by the same code. It needs Ethernet captures
of what the interfaces receive: tcpdump -Q in. With `device`, left is the network and right is this machine.

A live run needs the capabilities cap_net_raw and cap_net_admin, cap_bpf to isolate, and cap_ipc_lock for xdp.
If root starts it, it gives up all others before it forwards. It confines itself to the system calls and the
files that it still needs (seccomp, Landlock): it can read again only files in the folders of those that it
has read. Between two interfaces, this machine's own
network stack neither sees frames on the two interfaces nor sends through them. Interfaces with an address, in
a bridge, or with VLANs on top are rejected, unless `isolate = true` accepts that this use is suspended.")]
pub(crate) struct Args {
    /// The configuration file; with --dev, words of cake as tc has them: docsis, overhead 18, ack-filter
    #[arg(value_name = "FILE|WORDS", required_unless_present = "dev")]
    words: Vec<String>,

    #[command(flatten)]
    device: DeviceArgs,

    /// The socket for `fairgate status` [default: NAME.sock in /run/fairgate or $XDG_RUNTIME_DIR/fairgate]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Seed of the hash key and of random decisions, to repeat a test [default: random]
    #[arg(long)]
    seed: Option<u64>,

    /// How frames get to this process: packet, xdp; or kernel [default: the file's, or packet]
    #[arg(long, value_name = "NAME")]
    backend: Option<BackendKind>,

    /// Have the kernel forward the packets, with trees in its module sch_fairgate: `--backend kernel`. The
    /// run attaches, shows and changes them at `device`, or at `left` and `right`, and takes them away in the
    /// end
    #[arg(long, conflicts_with = "backend")]
    kernel: bool,

    /// Leave the trees in the kernel and end: no process is needed for them, and none answers `fairgate
    /// status`. `fairgate stop INTERFACE` takes them away, and the next run there replaces them
    #[arg(
        long,
        conflicts_with_all = [
            "socket", "seed", "log_format", "no_sandbox", "tables", "wait", "last_good", "history"
        ]
    )]
    detach: bool,

    /// How messages are written: text on standard error, or fields in systemd's journal [default: journald
    /// if standard error leads there, otherwise text]
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    log_format: Option<LogFormat>,

    /// Do not limit the run's system calls and files. Then whoever takes over this process, by a bug in it or
    /// in a library, may run programs and read all files of its user. For kernels on which the sandbox
    /// refuses too much
    #[arg(long)]
    no_sandbox: bool,

    /// Print the tables of `fairgate status` with all classes at the end. Without it, only the totals of each
    /// direction; with --json, always everything
    #[arg(long)]
    tables: bool,

    /// Wait, for ever if need be, while an interface is missing or down or can't be used yet. For services:
    /// the manager is told what the run waits for
    #[arg(long)]
    wait: bool,

    /// Keep a copy of the configuration in this file once it forwards, and begin with the copy if FILE is
    /// refused
    #[arg(long, value_name = "COPY", conflicts_with = "dev")]
    last_good: Option<PathBuf>,

    /// Keep the history that the API shows in this file, so that the next run goes on with it [default:
    /// NAME.history in $STATE_DIRECTORY, which systemd sets; without it, it ends with the run]
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,

    #[command(flatten)]
    endpoints: endpoints::EndpointArgs,

    #[command(flatten)]
    dry: dry::DryArgs,
}

/// How a run is run, apart from its configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) seed: Option<u64>,
    pub(crate) log_format: Option<LogFormat>,
    /// Why the run is not confined, if it is not.
    pub(crate) unconfined: Option<&'static str>,
    /// Whether the tables of all classes are printed at the end.
    pub(crate) tables: bool,
    /// Whether the run waits for its interfaces.
    pub(crate) wait: bool,
    /// Where the configuration that has forwarded last is.
    pub(crate) last_good: Option<LastGood>,
    /// Where its history is kept.
    pub(crate) history: HistoryPlace,
}

/// The files that a run uses after its start.
#[derive(Clone, Debug)]
pub(crate) struct Later {
    /// Files, and folders of files, that it reads again on a reload.
    pub(crate) read: Vec<PathBuf>,
    pub(crate) socket: PathBuf,
    /// The unix socket of the API.
    pub(crate) api: Option<PathBuf>,
    /// Files, and folders of files, that clients may change.
    pub(crate) written: Vec<PathBuf>,
}

/// Reads a configuration from these texts.
pub(crate) type Reading<'a> = dyn Fn(&Texts) -> Result<(Document, Plan), Failure> + Sync + 'a;

#[derive(Debug, Error, Diagnostic)]
#[error("`{0}` is for a dry run, but no capture is given")]
#[diagnostic(help("name the frames that arrive with --from-left, --from-right, or both"))]
struct NoCapture(&'static str);

/// The files of the subscribers can't be watched.
#[derive(Debug, Error, Diagnostic)]
#[error("the files of the subscribers can't be watched for changes")]
#[diagnostic(help(
    "raise fs.inotify.max_user_instances, max_user_watches or the limit of open files (`ulimit -n`), or \
     write watch = false in [subscribers]"
))]
struct Unwatched {
    source: io::Error,
}

#[derive(Debug, Error, Diagnostic)]
#[error(
    "a dry run has neither API nor metrics, nor interfaces to wait for, nor anything to keep for the next one"
)]
#[diagnostic(help(
    "leave out --api, --metrics, --wait, --last-good and --history: it ends by itself, and prints its status"
))]
struct NothingToControl;

/// There is no place for what is kept.
#[derive(Debug, Error, Diagnostic)]
#[error("there is no place for {path}")]
#[diagnostic(help("give a file in a folder of your own with {option}"))]
struct NoPlace {
    path: String,
    option: &'static str,
    source: io::Error,
}

impl NoPlace {
    fn new(path: &Path, option: &'static str, source: io::Error) -> NoPlace {
        NoPlace {
            path: path.display().to_string(),
            option,
            source,
        }
    }
}

/// Sorts errors of the API into invalid files and refusals of the machine.
fn control_failure(error: ControlError) -> Failure {
    match error.is_bad_input() {
        true => Failure::Input(error.into()),
        false => Failure::environment(error),
    }
}

/// Sorts errors into invalid configurations and refusals of the machine.
pub(crate) fn failure(error: LiveError) -> Failure {
    match error {
        // Passed on unwrapped, so that all locations in it are reported.
        LiveError::Unfit(error) => error.into(),
        error if error.is_bad_input() => Failure::Input(error.into()),
        error => Failure::environment(error),
    }
}

#[derive(Debug, Error, Diagnostic)]
#[error("`{0}` is a second file, but a run has one")]
#[diagnostic(help("words of cake need --dev: fairgate run --dev eth0 --down 50mbit --up 10mbit docsis"))]
struct SecondFile(String);

/// Returns the only file.
fn file(words: &[String]) -> Result<&str, Failure> {
    match words {
        [file] => Ok(file),
        [_, second, ..] => Err(SecondFile(second.clone()).into()),
        [] => unreachable!("clap requires a word"),
    }
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let list = RunningList::default();
    let file = match args.device.device() {
        Some(_) => None,
        None => Some(file(&args.words)?),
    };
    let backend = match args.kernel {
        true => Some(BackendKind::Kernel),
        false => args.backend,
    };
    let read = |texts: &Texts| {
        let (document, mut plan) = match (args.device.device(), file) {
            (Some(device), _) => args.device.read(device, &args.words, backend)?,
            (None, file) => {
                let file = file.expect("clap requires it without --dev");
                let document = document::of(texts, Path::new(file), registry)?;
                let document = subscribers::add_to(&list, document, registry, texts)?;
                let mut plan = Plan::read_for(&document, backend)?;
                list.name_classes(&mut plan);
                (document, plan)
            }
        };
        args.endpoints.apply(&mut plan.endpoints)?;
        Ok((document, plan))
    };
    if args.dry.is_wanted() {
        let is_kept = args.last_good.is_some() || args.history.is_some();
        if args.endpoints.is_given() || args.wait || is_kept {
            return Err(NothingToControl.into());
        }
        let (document, plan) = read(&Texts::default())?;
        plan.fits(None, input::available_memory())?;
        return dry::run(&args.dry, &document, &plan, args.seed, format);
    }
    if let Some(option) = args.dry.lonely() {
        return Err(NoCapture(option).into());
    }
    if args.detach {
        return detached(&read, format);
    }
    let later = |plan: &Plan| {
        let api = match plan.endpoints.api.as_ref().map(|api| &api.address) {
            Some(Address::Unix(path)) => Some(path.clone()),
            _ => None,
        };
        let rates = plan
            .autorate
            .as_ref()
            .and_then(|autorate| match &autorate.source {
                // It may be written later.
                RateSource::File(path) if !path.exists() => path.parent().map(Path::to_path_buf),
                RateSource::File(path) => Some(path.clone()),
                RateSource::Reflectors(_) => None,
            });
        let (lists, written) = match file {
            Some(_) => (subscribers::paths(&list), subscribers::written(&list)),
            None => Default::default(),
        };
        Later {
            read: file
                .map(PathBuf::from)
                .into_iter()
                .chain(lists)
                .chain(rates)
                .collect(),
            socket: match &args.socket {
                Some(socket) => socket.clone(),
                None => default_socket(&plan.name),
            },
            api,
            written,
        }
    };
    let last_good = |path: &PathBuf| {
        let kept = LastGood::at(path);
        kept.map_err(|source| Failure::environment(NoPlace::new(path, "--last-good", source)))
    };
    let last_good = args.last_good.as_ref().map(last_good).transpose()?;
    let manner = Manner {
        seed: args.seed,
        log_format: args.log_format,
        unconfined: args.no_sandbox.then_some("--no-sandbox was given"),
        tables: args.tables,
        wait: args.wait,
        last_good,
        history: HistoryPlace::of(args.history.as_deref()),
    };
    let name = file.unwrap_or("the command line");
    run_document(&read, name, &list, &later, &manner, registry, format)
}

/// Trees that can't be left, because this process would forward their packets.
#[derive(Debug, Error, Diagnostic)]
#[error("only the kernel forwards without a process: nothing can be left with --detach")]
#[diagnostic(help("add --kernel, or `backend = \"kernel\"` to [run]"))]
struct NothingToLeave;

/// What serves a run only as long as it has a process.
#[derive(Debug, Error, Diagnostic)]
#[error("{0} needs a process, and --detach leaves none")]
#[diagnostic(help("leave it out of the file, or run without --detach"))]
struct NeedsProcess(&'static str);

/// Has the kernel forward, and ends.
fn detached(read: &Reading<'_>, format: Format) -> Result<Outcome, Failure> {
    let (_, plan) = read(&Texts::default())?;
    if plan.backend != Some(BackendKind::Kernel) {
        return Err(NothingToLeave.into());
    }
    let needs = [
        ("`api`", plan.endpoints.api.is_some()),
        ("`metrics`", plan.endpoints.metrics.is_some()),
        ("`autorate`", plan.autorate.is_some()),
    ];
    if let Some((what, _)) = needs.iter().find(|(_, is_given)| *is_given) {
        return Err(NeedsProcess(what).into());
    }
    plan.fits(None, input::available_memory())?;
    attach_trees(&plan).map_err(failure)?;
    let sides = [0, 1].into_iter().filter(|side| plan.taken[*side]);
    let mut interfaces: Vec<&str> = sides.map(|side| plan.tree_at(side)).collect();
    interfaces.dedup();
    match format {
        Format::Json => output::json("detached", &Detached { interfaces })?,
        Format::Text => {
            let how = |interface: &&str| {
                format!(
                    "At {interface}, `fairgate-qdisc show {interface}` shows what is there, `fairgate stop \
                     {interface}` takes it away.\n"
                )
            };
            let each: String = interfaces.iter().map(how).collect();
            let missing: String = unforwarded(&plan)
                .map(|what| format!("warning: {what}\n"))
                .collect();
            output::text(&format!("{}, without a process.\n{each}{missing}", doing(&plan)))?;
        }
    }
    Ok(Outcome::Yes)
}

/// Says which directions with a tree in the kernel this machine does not forward.
fn unforwarded(plan: &Plan) -> impl Iterator<Item = String> {
    plan.ways_of_kernel()
        .filter(|[from, to]| !is_forwarding(from, to))
        .map(|[from, to]| {
            format!(
                "this machine is no router from {from} to {to}, and has no bridge of both: unless something \
                 else forwards there, no packet comes to the tree"
            )
        })
}

/// What a run has left.
#[derive(Serialize)]
struct Detached<'a> {
    interfaces: Vec<&'a str>,
}

/// Runs the plan that `read` returns with its document, and reads it again on a reload. `later` returns the
/// files that this needs, `name` is for messages. `read` notes the subscribers in `list`, if there are some.
pub(crate) fn run_document(
    read: &Reading<'_>,
    name: &str,
    list: &RunningList,
    later: &dyn Fn(&Plan) -> Later,
    manner: &Manner,
    registry: &Registry,
    format: Format,
) -> Result<Outcome, Failure> {
    // Who is told of the run is found before privileges are given up.
    let (manager, untold) = Manager::of_environment();
    let begun = match beginning::begin(read, name, manner, manager.as_ref())? {
        Some(begun) => begun,
        // A signal has ended the wait.
        None => return Ok(Outcome::Yes),
    };
    let Begun {
        document,
        plan,
        bridge,
        texts,
        destination,
        entries,
    } = begun;
    // What the kernel says of interfaces is read before the sandbox hides it.
    let unforwarded: Vec<Entry> = unforwarded(&plan).map(Entry::warning).collect();
    let history = manner.history.file(&plan)?;
    let last_good = manner.last_good.as_ref().map(|copy| copy.path().to_owned());
    let kept: Vec<PathBuf> = last_good.into_iter().chain(history.clone()).collect();
    let later = later(&plan);
    let later = LaterFiles {
        read: &later.read,
        socket: &later.socket,
        api: later.api.as_deref(),
        kept: &kept,
        written: &later.written,
    };
    let watch = Watch::start(list).map_err(|source| Failure::environment(Unwatched { source }))?;
    let (watch, watched) = watch.unzip();
    let bridge = bridge.prioritise().map_err(failure)?;
    // Ports, and files that only root may read, are opened before privileges are given up.
    let doors = Doors::open(&plan.endpoints).and_then(|doors| doors.with_status_socket(later.socket));
    let doors = doors.map_err(control_failure)?;
    let follower = Follower::open(&plan, registry).map_err(failure)?;
    let confined = bridge.confine(&plan, &later, manner.unconfined);
    let (bridge, security) = confined.map_err(failure)?;
    let Security {
        priority,
        privileges,
        confined,
    } = security;
    // The log is started after signals are handled, because its thread must not receive them.
    let (log, writer) = log::start(destination);
    let audits = log.clone();
    let audit = Audit::new(move |entry| audits.write(entry));
    let (reloads, wanted) = mpsc::channel::<Order>();
    // The thread that reads ends when this is empty.
    let reloads = Arc::new(Mutex::new(Some(reloads)));
    let asked = Arc::clone(&reloads);
    let owner = list
        .owner()
        .with_reload(move |who, because| order(&asked, who, because));
    let (mut bridge, plane) = bridge.serve().map_err(failure)?;
    let run = Run::new(Arc::clone(&plane), registry, audit.clone(), owner);
    let reserver = run.reserver().clone();
    let disciplines = registry.clone();
    let run = SubscribedRun::new(run, list.clone(), registry.clone())
        .with_files(ListWriter::new(manner.last_good.clone(), log.clone()))
        .with_what_if(move |run, question| what_if::answer(run, question, &disciplines));
    let limits = run.clone();
    let offered: Vec<String> = doors.offered().collect();
    let history = history.map(|path| {
        let (ends, log) = (
            plan.ends.each_ref().map(|end| end.title().to_owned()),
            log.clone(),
        );
        HistoryFile::new(path, ends, move |wrong| log.write(Entry::warning(wrong)))
    });
    let control = doors
        .serve(Arc::new(run), audit, history)
        .map_err(control_failure)?;
    let notices = log.clone();
    bridge.on_notice(move |notice| notices.write(notice));
    list.keep();
    for entry in entries.into_iter().chain(unforwarded) {
        log.write(entry);
    }
    warn(&*plane, &document, list, &log, format);
    if let Err(error) = priority {
        log.write(Entry::warning(format_args!(
            "{error}; on a busy machine packets will be delayed"
        )));
    }
    if let Some(untold) = untold {
        log.write(Entry::warning(untold));
    }
    if let Some(path) = privileges.exception() {
        let message = format!(
            "note: the right to use files of all users (cap_dac_override) is kept, because {} belongs to \
             another user",
            path.display()
        );
        log.write(Entry::new(Level::Notice, "privileges", message));
    }
    let sandbox = match confined {
        Ok(confined) if confined.is_whole() => {
            Entry::new(Level::Info, "sandbox", format!("Sandbox: {confined}."))
        }
        Ok(confined) => Entry::warning(format_args!("sandbox: {confined}")),
        Err(why) => Entry::warning(format_args!("no sandbox: {why}")),
    };
    if format == Format::Text || sandbox.level() == Level::Warning {
        log.write(sandbox);
    }
    let what = doing(&plan);
    if format == Format::Text {
        for choice in bridge.backends() {
            log.write(Entry::info(&choice).with("interface", &choice.interface));
        }
        let socket = later.socket.display();
        log.write(Entry::info(format_args!(
            "{what}; `fairgate status --socket {socket}` shows its state, Ctrl-C ends it."
        )));
        for place in &offered {
            log.write(Entry::info(place));
        }
    }
    let (service, attendant) = Service::of(manager);
    let order = |who: &str| {
        if let Some(reloads) = &*reloads.lock().unwrap_or_else(PoisonError::into_inner) {
            // The thread lives as long as this end.
            let _ = reloads.send(Order {
                who: who.to_owned(),
                because: None,
                answer: None,
            });
        }
    };
    let pulse = bridge.pulse();
    let ended = thread::scope(|scope| {
        let reserver = &reserver;
        if let Some(attendant) = attendant {
            let status = match plan.fallback {
                None => format!("{what}."),
                Some(_) => format!("{what}, with the last good configuration: {name} was refused."),
            };
            scope.spawn(move || attendant.attend(&pulse, &status));
        }
        let keeper = manner.last_good.as_ref().map(|last_good| Keeper {
            last_good,
            pulse: bridge.pulse(),
            log: log.clone(),
        });
        if let Some((keeper, texts)) = keeper.clone().zip(texts) {
            scope.spawn(move || keeper.keep(&texts, "the run", "its start"));
        }
        let follower_stop = follower.as_ref().map(Follower::stopper);
        if let Some(follower) = follower {
            let (reserver, pulse, log) = (reserver.clone(), bridge.pulse(), log.clone());
            let set_rate = move |side, rate| reserver.set_rate(side, rate);
            scope.spawn(move || follower.run(&set_rate, &pulse, &|notice| log.write(notice)));
        }
        scope.spawn(|| reserver.watch());
        scope.spawn(|| limits.attend_limits());
        // A thread of its own reads the file and plans the change, while this one forwards.
        let (log, told) = (log.clone(), service.clone());
        scope.spawn(move || {
            for Order { who, because, answer } in wanted {
                told.reloading();
                let texts = keeper.as_ref().map_or_else(Texts::default, |_| Texts::noted());
                let read = || read(&texts);
                let (became, result) = reload(
                    reserver,
                    &*plane,
                    &read,
                    (name, &who, because.as_deref()),
                    list,
                    &log,
                    format,
                );
                told.reloaded(became);
                let is_made = result.is_ok();
                if let Some(answer) = answer {
                    // The client may have gone.
                    let _ = answer.send(result);
                }
                if let Some(keeper) = keeper.as_ref().filter(|_| is_made) {
                    keeper.keep(&texts, &who, because.as_deref().unwrap_or(AGAIN));
                }
            }
        });
        if let Some(watch) = watch {
            let order = &order;
            scope.spawn(move || watch.attend(list, || order("a change of the list's files")));
        }
        let ended = loop {
            match bridge.run() {
                Ok(Wake::Stop) => break Ok(()),
                Ok(Wake::Reload) => order("SIGHUP"),
                Err(error) => break Err(failure(error)),
            }
        };
        service.stopping();
        // Its thread ends with this and with the thread that reads the file.
        drop((service, watched));
        reloads.lock().unwrap_or_else(PoisonError::into_inner).take();
        reserver.end();
        list.end();
        bridge.end_changes();
        if let Some(stop) = follower_stop {
            stop.stop();
        }
        ended.and_then(|()| bridge.wind_up().map_err(failure))
    });
    let last = bridge.status();
    // The interfaces are released before anything is printed, because standard output may block. Then nobody
    // answers who waits at a door. What notes changes writes into the log, too.
    drop(bridge);
    drop((control, reserver, limits, log));
    writer.finish();
    ended?;
    let Some(mut last) = last else {
        return Ok(Outcome::Yes);
    };
    match format {
        Format::Json => output::json("status", &last)?,
        Format::Text => {
            if !manner.tables {
                for direction in &mut last.directions {
                    direction.tree.classes.clear();
                    direction.tree.class_states.clear();
                }
            }
            output::text(&status::tables(&last, None))?;
        }
    }
    Ok(Outcome::Yes)
}

/// Says between what a run forwards.
fn doing(plan: &Plan) -> String {
    let [left, right] = [0, 1].map(|side: usize| plan.ends[side].name());
    match (plan.is_on_one_interface(), plan.taken) {
        (false, _) if plan.backend != Some(BackendKind::Kernel) => {
            format!("Forwarding between {left} and {right}")
        }
        (false, [true, true]) => format!("Scheduling what {left} and {right} send"),
        (false, [true, false]) => format!("Scheduling what {right} sends"),
        (false, _) => format!("Scheduling what {left} sends"),
        (true, [true, true]) => format!("Scheduling what {left} receives and sends"),
        (true, [true, false]) => format!("Scheduling what {left} receives"),
        (true, _) => format!("Scheduling what {left} sends"),
    }
}

/// Why there is a version of the files, if nobody has said so.
const AGAIN: &str = "the files were read again";

/// Reads the file again. An error in it, or a change that is not possible during a run, is reported and
/// changes nothing. It has a name, who or what caused this, and why. Returns what became of it: in a
/// sentence, and for who has asked for it.
fn reload(
    reserver: &Reserver,
    plane: &dyn Plane,
    read: &dyn Fn() -> Result<(Document, Plan), Failure>,
    (name, who, because): (&str, &str, Option<&str>),
    list: &RunningList,
    log: &Log,
    format: Format,
) -> (String, Result<ChangeMade, Refused>) {
    let mut document = None;
    let because = because.map(|why| format!(" because {why}"));
    let what = format!("read {name} again{}", because.unwrap_or_default());
    let _turn = list.turn();
    let changed = reserver.reload(|_| {
        let (read, plan) = read().map_err(Refusal)?;
        document = Some(read);
        Ok(plan)
    });
    match changed {
        Ok(changed) => {
            let reading = list.keep();
            if let Some(document) = &document {
                warn(plane, document, list, log, format);
            }
            let mut became = format!("Read {name} again: its queues are active.");
            if let Some(reading) = &reading {
                became += &format!(" {reading}.");
            }
            if changed.undone > 0 {
                became += &format!(
                    " {} changes by hand since the last reading gave way to what it says.",
                    changed.undone
                );
            }
            let pause = changed.pause.as_secs_f64() * 1e3;
            let message = format!("{became} Forwarding paused for {pause:.3} ms.");
            let mut entry = Entry::new(Level::Notice, "reload", message)
                .with("outcome", "applied")
                .with("pause_us", changed.pause.as_micros())
                .with("revision", changed.revision);
            let mut outcome = format!("made, revision {}", changed.revision);
            if let Some(difference) = &reading {
                entry = entry
                    .with("added", difference.added)
                    .with("removed", difference.removed)
                    .with("changed", difference.changed)
                    .with("subscribers", difference.count);
            }
            log.write(entry.with("undone", changed.undone));
            if let Some(reading) = &reading {
                outcome += &format!("; {reading}");
            }
            if changed.undone > 0 {
                outcome += &format!("; {} changes by hand undone", changed.undone);
            }
            log.write(&AuditEntry::new(who, &what, &outcome));
            (became, Ok(changed.into()))
        }
        Err(Refusal(failure)) => {
            let became = format!("{name} was not applied; the run continues unchanged.");
            let mut errors = Vec::new();
            match failure {
                Failure::Input(report) | Failure::Environment(report) => {
                    errors = mistakes(&report);
                    let remedy = if is_refused(&report) { ELSEWHERE } else { "" };
                    let message = format!("{}\n{remedy}{became}", exit::shown(&report, false));
                    log.write(Entry::new(Level::Error, "reload", message).with("outcome", "refused"));
                    log.write(&AuditEntry::new(who, &what, &format!("refused: {report}")));
                }
                // Reading a file prints nothing.
                Failure::ReaderGone => {}
            }
            (became, Err(Refused::Mistakes(errors)))
        }
    }
}

/// Someone wants the configuration to be read again.
struct Order {
    /// Who, or what has happened.
    who: String,
    because: Option<String>,
    answer: Option<mpsc::Sender<Result<ChangeMade, Refused>>>,
}

/// Has the configuration read again, for a client, and waits for what becomes of it.
fn order(
    reloads: &Mutex<Option<mpsc::Sender<Order>>>,
    who: &str,
    because: Option<String>,
) -> Result<ChangeMade, Refused> {
    let (answer, answered) = mpsc::channel();
    if let Some(reloads) = &*reloads.lock().unwrap_or_else(PoisonError::into_inner) {
        // The thread lives as long as this end.
        let _ = reloads.send(Order {
            who: who.to_owned(),
            because,
            answer: Some(answer),
        });
    }
    let ended = || Err(Mistake::new("the run has ended", "start it again").into());
    answered.recv().unwrap_or_else(|_| ended())
}

/// Returns what is wrong, for a client.
fn mistakes(report: &miette::Report) -> Vec<Mistake> {
    match report.downcast_ref::<FileError>() {
        Some(error) => mistakes_of(error),
        None => {
            let causes: Vec<String> = report.chain().map(ToString::to_string).collect();
            let help = report.help().map(|help| help.to_string()).unwrap_or_default();
            vec![Mistake::new(causes.join(": "), help)]
        }
    }
}

/// Keeps a copy of the configuration once it forwards.
#[derive(Clone)]
struct Keeper<'a> {
    last_good: &'a LastGood,
    pulse: Pulse,
    log: Log,
}

impl Keeper<'_> {
    /// Waits until all forwarding threads have made a turn, and keeps what was read. A copy is good if the
    /// run that was read from it forwards. `who` has brought it, and `why`.
    fn keep(&self, texts: &Texts, who: &str, why: &str) {
        if self.pulse.beat(None) != Beat::Alive {
            return;
        }
        if let Err(error) = self.last_good.keep(texts, who, why) {
            let path = self.last_good.path().display();
            self.log.write(Entry::warning(format_args!(
                "the copy {path} of the configuration can't be written: {error}; the next start can't fall \
                 back to what runs now"
            )));
        }
    }
}

/// Why a file that is there can't be read, as it seems.
const ELSEWHERE: &str = "While it forwards, a run reads only files in the folders of those that it has begun \
    with, and with fewer privileges: start it anew, or with --no-sandbox.\n";

/// Returns whether the system has refused access to a file.
fn is_refused(report: &miette::Report) -> bool {
    report.chain().any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    })
}

/// Why a change was refused.
struct Refusal(Failure);

impl From<ReloadError> for Refusal {
    fn from(error: ReloadError) -> Refusal {
        Refusal(match error {
            // Passed on unwrapped, so that all locations in it are reported.
            ReloadError::Unfit(error) => error.into(),
            error => error.into(),
        })
    }
}

impl From<NotKept> for Refusal {
    fn from(refusal: NotKept) -> Refusal {
        Refusal(match refusal {
            NotKept::Tree(error) => error.into(),
            refusal => Failure::from(Reserved {
                message: refusal.to_string(),
                help: refusal.help(),
            }),
        })
    }
}

/// A file whose trees can't hold the reservations of the run.
#[derive(Debug, Error, Diagnostic)]
#[error("the reservations of this run can't be kept: {message}")]
#[diagnostic(help("{help}"))]
struct Reserved {
    message: String,
    help: String,
}

/// Prints warnings for settings of the queues that are valid but probably not intended. A JSON document has
/// no place for them.
fn warn(plane: &dyn Plane, document: &Document, list: &RunningList, log: &Log, format: Format) {
    if format == Format::Text {
        let warnings = plane.warnings();
        let warnings = warnings.iter().map(input::at_location);
        let of_trees = input::warnings(document.queues()).into_iter();
        for warning in input::summed(of_trees.chain(warnings).chain(list.warnings())) {
            log.write(Entry::warning(warning));
        }
    }
}

//! `fairgate doctor`: reads a run, its interfaces and the machine, and says what is wrong.

use std::net::IpAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use fairgate::classify::Prefix;
use fairgate_config::Registry;
use fairgate_live::readings::{InterfaceReading, MachineReading, ProcessReading};
use fairgate_live::{BackendKind, End, Plan, too_small_at};
use fairgate_run::client::{ClientError, Remote};
use fairgate_run::running;
use fairgate_run_api::{Entry, FlowOrder, FlowsStatus, Status};
use miette::Diagnostic;
use serde::Serialize;
use thiserror::Error;

use crate::commands::status::ask;
use crate::doctor::interface::{self, Use};
use crate::doctor::run::{self, RunReading};
use crate::doctor::{Finding, Level, machine, network};
use crate::document;
use crate::failure::{Failure, Outcome};
use crate::input::{self, positive_duration};
use crate::output::{self, Format};
use crate::remote::{NoRun, failed, only_socket};
use crate::subscribers;

/// Find out what is wrong with a run, an interface or this machine
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate doctor                      all runs of this machine, for 3 seconds each, and the machine
  fairgate doctor --for 10s            the same for longer, while the line is loaded
  fairgate doctor --dev eth0           would a run on this interface work as it should?
  fairgate doctor home.toml            the same for the interfaces and trees of a file
  fairgate doctor --subscriber 1001    why is this subscriber slow?
  fairgate doctor --json               for a script; exit code 1 if there is a warning or a problem

It looks for: a rate above the line's (the queue is elsewhere then), offloads that can't be undone, buckets
below a frame, shapers of the kernel beside the run, programs and hardware that packets take past it, packets
that were lost outside of the queues, nodes of a network that are full, a slow clock, and what the kernel or
the memory limit lacks. It changes nothing. Root sees more: the runs of services, flowtables, whose program it
is.")]
pub(crate) struct Args {
    /// The file of a run that is to start
    #[arg(conflicts_with_all = ["dev", "socket", "subscriber"])]
    file: Option<PathBuf>,

    /// An interface instead of a run
    #[arg(long, value_name = "INTERFACE", conflicts_with_all = ["socket", "subscriber"])]
    dev: Option<String>,

    /// A subscriber of a run: its identifier, its name or an address of it
    #[arg(long, value_name = "WHO")]
    subscriber: Option<String>,

    /// The socket of the run [default: all runs of this machine]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// For how long to watch a run
    #[arg(long = "for", value_name = "TIME", default_value = "3s", value_parser = positive_duration)]
    watch: Duration,
}

/// How many flows of a run are asked for.
const FLOWS: u32 = 1_000;
/// The same for one subscriber: most flows are those of others.
const FLOWS_OF_ALL: u32 = 10_000;

#[derive(Debug, Error, Diagnostic)]
enum Unclear {
    #[error("no subscriber has the identifier, the name or the address `{0}`")]
    #[diagnostic(help("the list of the run says who there is: its file, or `fairgate status`"))]
    Nobody(String),
    #[error("several subscribers are called `{who}`")]
    #[diagnostic(help("give an identifier: {ids}"))]
    Several { who: String, ids: String },
    #[error("the run has no trees `down` and `up` of a list any more")]
    #[diagnostic(help("ask again: its trees change just now"))]
    NoTrees,
}

/// `fairgate.doctor/1`.
#[derive(Serialize)]
struct Examined {
    problems: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

pub(crate) fn run(args: &Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    let mut findings = match (&args.file, &args.dev, &args.subscriber) {
        (Some(file), ..) => of_file(file, registry)?,
        (_, Some(device), _) => of_interface(device, None, &of_all()),
        (.., Some(who)) => of_subscriber(args, who)?,
        (None, None, None) => of_runs(args)?,
    };
    if args.subscriber.is_none() {
        findings.extend(machine::judge(&MachineReading::read()));
    }
    findings.sort_by_key(|finding| finding.level);
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let examined = Examined {
        problems: count(Level::Problem),
        warnings: count(Level::Warning),
        findings,
    };
    match format {
        Format::Json => output::json("doctor", &examined)?,
        Format::Text => output::text(&output::harmless(&text(&examined)))?,
    }
    Ok(match examined.problems + examined.warnings {
        0 => Outcome::Yes,
        _ => Outcome::No,
    })
}

/// A run that takes packets in both directions, and has attached nothing yet.
fn of_all() -> Use {
    Use {
        taken: [true; 2],
        programs: Some(Vec::new()),
        ..Use::default()
    }
}

/// Reads an interface and judges it. What can't be used is a finding.
fn of_interface(name: &str, before: Option<&InterfaceReading>, of_run: &Use) -> Vec<Finding> {
    match InterfaceReading::of(name) {
        Ok(reading) => interface::judge(&reading, before, of_run),
        Err(error) => vec![unusable(name, &error)],
    }
}

fn unusable(name: &str, error: &fairgate_live::LiveError) -> Finding {
    let why = "A run needs the interface.";
    let finding = Finding::new(Level::Problem, "interface", name, error.to_string(), why);
    match error.help() {
        Some(help) => finding.remedy(help.to_string()),
        None => finding,
    }
}

/// Judges all runs that are asked for.
fn of_runs(args: &Args) -> Result<Vec<Finding>, Failure> {
    let sockets = match &args.socket {
        Some(socket) => vec![socket.clone()],
        None => running()
            .map_err(NoRun::Untrusted)
            .map_err(Failure::environment)?,
    };
    if sockets.is_empty() {
        let none = Finding::new(
            Level::Note,
            "runs",
            machine::MACHINE,
            "no run was found",
            "Only the machine was looked at.",
        );
        return Ok(vec![
            none.remedy("fairgate doctor --dev INTERFACE, or fairgate doctor FILE"),
        ]);
    }
    let is_named = args.socket.is_some() || sockets.len() > 1;
    let mut findings = Vec::new();
    for socket in sockets {
        let options = match is_named {
            true => format!(" --socket {}", socket.display()),
            false => String::new(),
        };
        findings.extend(of_run(&socket.into(), options, args.watch)?);
    }
    Ok(findings)
}

/// Watches a run and judges it with its interfaces.
fn of_run(run: &Remote, options: String, watch: Duration) -> Result<Vec<Finding>, Failure> {
    // The run observes flows from the first question on.
    let is_by_kernel = flows(run, 1)?.is_none();
    let before = ask(run, false)?;
    let process = ProcessReading::of(before.pid);
    let names: Vec<String> = run::interfaces(&before).into_iter().map(str::to_owned).collect();
    let is_here = process.is_here != Some(false);
    let earlier: Vec<_> = match is_here {
        true => names.iter().map(|name| InterfaceReading::of(name)).collect(),
        false => Vec::new(),
    };
    thread::sleep(watch);
    let after = ask(run, true)?;
    let flows = flows(run, FLOWS)?.unwrap_or_default();
    let mut findings = Vec::new();
    let of_run = Use {
        taken: taken(&before),
        programs: process.programs.clone(),
        is_by_kernel,
    };
    if is_by_kernel && is_here && !before.is_on_one_interface() {
        let ways = before
            .directions
            .iter()
            .filter(|way| way.tree.discipline != "fifo");
        findings.extend(ways.map(|way| interface::forwarding(&way.from, &way.to)));
    }
    let mut interfaces = Vec::new();
    for (name, reading) in names.iter().zip(earlier) {
        match reading {
            Ok(reading) => {
                findings.extend(of_interface(name, Some(&reading), &of_run));
                interfaces.push(reading);
            }
            Err(error) => findings.push(unusable(name, &error)),
        }
    }
    if !is_here {
        let where_ = format!("process {} is in another network namespace", before.pid);
        let why = "Its interfaces can't be seen from here.";
        let note = Finding::new(Level::Note, "interface", &before.name, where_, why);
        findings.push(note.remedy(format!("nsenter --net --target {} fairgate doctor", before.pid)));
    }
    findings.extend(run::buckets(&before, &interfaces));
    findings.push(machine::memory(&before.name, process.memory.as_ref()));
    findings.extend(run::judge(&RunReading {
        before,
        after,
        flows,
        options,
    }));
    Ok(findings)
}

/// Returns the largest flows of a run. `None` if it refuses: a run by the kernel observes no flows.
fn flows(run: &Remote, limit: u32) -> Result<Option<FlowsStatus>, Failure> {
    match run.flows(FlowOrder::Bytes, limit) {
        Err(ClientError::Refused(_)) => Ok(None),
        flows => flows.map(Some).map_err(failed(run)),
    }
}

/// Watches a run and says why one of its subscribers is slow.
fn of_subscriber(args: &Args, who: &str) -> Result<Vec<Finding>, Failure> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => only_socket().map_err(Failure::environment)?,
    };
    let run = Remote::from(socket);
    let id = find(&run.subscribers().map_err(failed(&run))?.subscribers, who)?;
    let trees = run.trees().map_err(failed(&run))?.directions;
    let side = |name: &str| trees.iter().position(|tree| tree.name.as_deref() == Some(name));
    let (Some(down), Some(up)) = (side("down"), side("up")) else {
        return Err(Unclear::NoTrees.into());
    };
    // The run observes flows from the first question on.
    flows(&run, 1)?;
    let before = ask(&run, true)?;
    thread::sleep(args.watch);
    let after = ask(&run, true)?;
    let flows = flows(&run, FLOWS_OF_ALL)?.unwrap_or_default();
    Ok(network::subscriber(&id, [down, up], &before, &after, &flows))
}

/// Returns the identifier of the subscriber that has it, or this name or address.
fn find(subscribers: &[Entry], who: &str) -> Result<String, Unclear> {
    let address = who.parse().ok();
    let has = |prefix: &String| address.is_some_and(|address| covers(prefix, address));
    let is_called = |one: &&Entry| one.name.as_deref() == Some(who) || one.prefixes.iter().any(has);
    let with_id = subscribers.iter().find(|one| one.id == who);
    let found: Vec<&Entry> = match with_id {
        Some(one) => vec![one],
        None => subscribers.iter().filter(is_called).collect(),
    };
    match &found[..] {
        [] => Err(Unclear::Nobody(who.to_owned())),
        [one] => Ok(one.id.clone()),
        several => Err(Unclear::Several {
            who: who.to_owned(),
            ids: several.iter().map(|one| &*one.id).collect::<Vec<_>>().join(", "),
        }),
    }
}

/// Returns whether a prefix or an address of a list has an address in it.
fn covers(prefix: &str, address: IpAddr) -> bool {
    let whole = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let (own, length) = prefix.split_once('/').unwrap_or((prefix, ""));
    let Ok(own) = own.parse::<IpAddr>() else {
        return false;
    };
    let prefixes = [
        (own, length.parse().unwrap_or(whole(own))),
        (address, whole(address)),
    ]
    .map(|(address, length)| Prefix::new(address, length));
    matches!(prefixes, [Ok(own), Ok(one)] if own.covers(&one))
}

/// Returns whether a run takes what its interfaces receive, and what this machine sends. Between two
/// interfaces the frames of each leave by the other one.
fn taken(status: &Status) -> [bool; 2] {
    match status.is_on_one_interface() {
        // A direction without a tree passes no packets.
        true => [0, 1].map(|index| {
            let direction = status.directions.get(index);
            direction
                .is_some_and(|direction| direction.sent.packets > 0 || direction.tree.discipline != "fifo")
        }),
        false => [false, true],
    }
}

/// Judges what a file wants to run.
fn of_file(file: &std::path::Path, registry: &Registry) -> Result<Vec<Finding>, Failure> {
    let document = document::read(file, registry)?;
    let (document, _) = subscribers::added_to(document, None, registry, &input::Texts::default())?;
    let plan = Plan::read(&document)?;
    let name = file.display().to_string();
    let of_run = Use {
        taken: match plan.is_on_one_interface() {
            true => plan.taken,
            false => [false, true],
        },
        is_by_kernel: plan.backend == Some(BackendKind::Kernel),
        ..of_all()
    };
    let mut findings = Vec::new();
    findings.extend(
        plan.ways_of_kernel()
            .map(|[from, to]| interface::forwarding(from, to)),
    );
    let mut mtus = Vec::new();
    for end in &plan.ends {
        // What the run makes itself has nothing to be read yet.
        let End::Interface(interface) = end else {
            continue;
        };
        match InterfaceReading::of(interface) {
            Ok(reading) => {
                findings.extend(interface::judge(&reading, None, &of_run));
                findings.extend(used(&plan, &reading));
                mtus.push(reading.mtu);
            }
            Err(error) => findings.push(unusable(interface, &error)),
        }
    }
    let mtu = mtus.into_iter().max().unwrap_or(1500);
    findings.extend(run::bursts(
        &name,
        too_small_at(&plan.queues, plan.backend, mtu),
        mtu,
    ));
    findings.push(match plan.fits(None, input::available_memory()) {
        Ok(()) => Finding::ok("memory", &name, "there is enough for the trees"),
        Err(error) => Finding::new(
            Level::Problem,
            "memory",
            &name,
            error.to_string(),
            "A run of this file does not start.",
        ),
    });
    Ok(findings)
}

/// Finds what this machine uses an interface for that is only to bridge frames.
fn used(plan: &Plan, reading: &InterfaceReading) -> Option<Finding> {
    let is_bridged = !plan.is_on_one_interface() && plan.backend != Some(BackendKind::Kernel);
    let is_refused = is_bridged && plan.isolate == fairgate_live::Isolate::Unused;
    let (used_for, remedy) = reading.used_for.as_ref().filter(|_| is_refused)?;
    let why = "This machine would answer or forward frames past the queue, so the run does not start.";
    Some(
        Finding::new(Level::Problem, "interface", &reading.name, used_for.clone(), why)
            .remedy(remedy.clone()),
    )
}

/// The findings as a table, and below it what to do about those that are not fine.
fn text(examined: &Examined) -> String {
    let mut table = output::page_table(["LEVEL", "CHECK", "OF", "SEEN"], 3);
    for finding in &examined.findings {
        table.add_row([finding.level.name(), finding.check, &finding.of, &finding.seen]);
    }
    let mut text = output::table_text(&table);
    for finding in &examined.findings {
        let Some(why) = &finding.why else {
            continue;
        };
        let head = format!("{}: {} of {}", finding.level.name(), finding.check, finding.of);
        text.push_str(&format!("\n{head}\n"));
        let width = usize::from(output::page_width()).saturating_sub(2);
        for line in output::wrap(why, width).lines() {
            text.push_str(&format!("  {line}\n"));
        }
        // A command is copied, so it is not wrapped.
        if let Some(remedy) = &finding.remedy {
            text.push_str(&format!("  -> {remedy}\n"));
        }
    }
    let summary = match (examined.problems, examined.warnings) {
        (0, 0) => "\nNothing is wrong.\n".to_owned(),
        (problems, warnings) => format!(
            "\n{} and {}.\n",
            crate::doctor::counted(problems as u64, "problem"),
            crate::doctor::counted(warnings as u64, "warning")
        ),
    };
    text + &summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_is_found_by_identifier_name_or_address() {
        let entry = |id: &str, name: &str, prefixes: &[&str]| Entry {
            id: id.to_owned(),
            name: Some(name.to_owned()),
            prefixes: prefixes.iter().map(|&prefix| prefix.to_owned()).collect(),
            ..Entry::default()
        };
        let list = [
            entry("1001", "Ada", &["192.0.2.7", "2001:db8:7::/56"]),
            entry("1002", "Ben", &["192.0.2.8/31"]),
            entry("1003", "Ben", &["192.0.2.10"]),
            // A name that is another one's identifier.
            entry("1004", "1001", &[]),
        ];
        for (who, id) in [
            ("1001", "1001"),
            ("Ada", "1001"),
            ("192.0.2.7", "1001"),
            ("2001:db8:7:12::3", "1001"),
            ("192.0.2.9", "1002"),
        ] {
            assert_eq!(find(&list, who).unwrap(), id, "{who}");
        }
        for nobody in ["100", "ada", "192.0.2.1", "2001:db8:8::1", "::", ""] {
            assert!(matches!(find(&list, nobody), Err(Unclear::Nobody(_))), "{nobody}");
        }
        let several = find(&list, "Ben").unwrap_err();
        assert!(matches!(&several, Unclear::Several { ids, .. } if ids == "1002, 1003"));
    }
}

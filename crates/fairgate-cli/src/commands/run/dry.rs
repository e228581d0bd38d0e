//! `fairgate run --from-left`: a dry run, from captures to captures.

use std::path::{Path, PathBuf};

use fairgate_config::Document;
use fairgate_live::{Captures, DryRun, DryRunError, Plan};

use crate::commands::status;
use crate::failure::{Failure, Imbalanced, Outcome};
use crate::input;
use crate::output::{self, Format, Target, Targets};
use crate::progress;

/// How many arrivals and departures there are between two looks at the progress.
const EVENTS: usize = 4096;

/// The captures of a dry run.
#[derive(clap::Args)]
#[command(next_help_heading = "Dry run")]
pub(crate) struct DryArgs {
    /// Forward the frames of this capture instead of those that arrive at the left interface
    #[arg(long, value_name = "PCAP", conflicts_with_all = ["socket", "backend", "kernel"])]
    from_left: Option<PathBuf>,

    /// The same for the right interface, or for what this machine sends
    #[arg(long, value_name = "PCAP", conflicts_with_all = ["socket", "backend", "kernel"])]
    from_right: Option<PathBuf>,

    /// Write the frames that the left interface would send [default: they are only counted]
    #[arg(long, value_name = "PCAP")]
    to_left: Option<PathBuf>,

    /// The same for the right interface
    #[arg(long, value_name = "PCAP")]
    to_right: Option<PathBuf>,

    /// Read the captures this many times, one after the other [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    repeat: Option<u64>,
}

impl DryArgs {
    /// Returns whether the run is a dry one.
    pub(super) fn is_wanted(&self) -> bool {
        self.from_left.is_some() || self.from_right.is_some()
    }

    /// Returns an option that only a dry run has, if one is given.
    pub(super) fn lonely(&self) -> Option<&'static str> {
        [
            ("--to-left", self.to_left.is_some()),
            ("--to-right", self.to_right.is_some()),
            ("--repeat", self.repeat.is_some()),
        ]
        .into_iter()
        .find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// Sorts errors into bad input and refusals of the machine.
fn failure(error: DryRunError) -> Failure {
    match error {
        DryRunError::Plan(error) => super::failure(error),
        error @ DryRunError::Unwritten { .. } => Failure::environment(error),
        error => error.into(),
    }
}

pub(super) fn run(
    args: &DryArgs,
    document: &Document,
    plan: &Plan,
    seed: Option<u64>,
    format: Format,
) -> Result<Outcome, Failure> {
    let received = [&args.from_left, &args.from_right];
    let mut targets = Targets::beside(received.into_iter().flatten().map(PathBuf::as_path));
    let mut open = |path: &Option<PathBuf>| -> Result<Option<Target>, Failure> {
        path.as_deref().map(|path| targets.open(path)).transpose()
    };
    let sent = [open(&args.to_left)?, open(&args.to_right)?];
    let draft = |side: usize, path: &Option<PathBuf>| match &sent[side] {
        Some(target) => target.draft().map(Some).map_err(|source| {
            let path = path.as_deref().unwrap_or(Path::new("")).display().to_string();
            Failure::environment(output::Unwritten::Nothing { path, source })
        }),
        None => Ok(None),
    };
    let captures = Captures {
        received: received.map(Clone::clone),
        sent: [draft(0, &args.to_left)?, draft(1, &args.to_right)?],
        passes: args.repeat.unwrap_or(1),
    };
    let mut dry_run = DryRun::open(plan, captures, seed).map_err(failure)?;
    if format == Format::Text {
        for warning in input::warnings(document.queues()) {
            output::say(format_args!("warning: {warning}"));
        }
    }
    forward(&mut dry_run, args.repeat.unwrap_or(1), format)?;
    dry_run.finish().map_err(failure)?;
    let last = dry_run.status();
    last.check().map_err(Imbalanced::from)?;
    let sent: Vec<Target> = sent.into_iter().flatten().collect();
    output::each(sent, |target| target.write(|_| Ok(())))?;
    match format {
        Format::Json => output::json("status", &last)?,
        Format::Text => {
            note(&dry_run);
            output::text(&status::tables_of_dry_run(&last))?;
        }
    }
    Ok(Outcome::Yes)
}

/// Forwards all frames.
fn forward(dry_run: &mut DryRun, passes: u64, format: Format) -> Result<(), Failure> {
    let (_, size) = dry_run.position();
    let bar = progress::bytes(size.map(|size| size.saturating_mul(passes)), format);
    while dry_run.go_on(EVENTS).map_err(failure)? {
        let (position, _) = dry_run.position();
        let done = passes - 1 - dry_run.passes_left();
        bar.set_position(size.map_or(position, |size| {
            done.saturating_mul(size).saturating_add(position)
        }));
    }
    bar.finish_and_clear();
    Ok(())
}

/// Says what was done to frames of the captures.
fn note(dry_run: &DryRun) {
    let adapted = dry_run.adapted();
    if adapted.completed > 0 {
        output::say(format_args!(
            "note: {} frames were captured in part; zeros replace their missing bytes (tcpdump -s 0 captures \
             all of them)",
            adapted.completed
        ));
    }
    if adapted.cut > 0 {
        output::say(format_args!(
            "note: {} frames had been merged by an offload of the machine that captured them; they were cut \
             into packets for an MTU of 1500 bytes",
            adapted.cut
        ));
    }
    if adapted.out_of_order > 0 {
        output::say(format_args!(
            "note: {} frames had an earlier time than a frame before them, by up to {:.6} s; they arrived at \
             the latest time so far",
            adapted.out_of_order,
            adapted.furthest_back as f64 / 1e9
        ));
    }
}

//! `fairgate bench`: what things cost on this machine.

mod arguments;
mod document;
mod schedulers;

use clap::Subcommand;

use crate::exit::{Failure, Outcome};
use crate::output::Format;

/// Measure what schedulers cost on this machine
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate bench schedulers                                  all schedulers, 1 to 32K flows, a minute or two
  fairgate bench schedulers --algorithms drr,qfq --flows 512 two of them at one number of flows
  fairgate bench schedulers --help                           all that can be measured")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Schedulers(schedulers::Args),
    /// Runs so many cycles and ends: what the process does that instructions are counted of
    #[command(hide = true)]
    Cycles(schedulers::CyclesArgs),
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    match args.what {
        What::Schedulers(args) => schedulers::run(args, format),
        What::Cycles(args) => schedulers::run_cycles(&args),
    }
}

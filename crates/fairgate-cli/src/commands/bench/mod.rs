//! `fairgate bench`: what things cost on this machine.

mod arguments;
mod document;
mod schedulers;

use clap::Subcommand;
use fairgate_bench::callgrind;
use fairgate_bench::{Job, JobError};

use crate::exit::{Failure, Outcome};
use crate::output::{self, Format};

/// Measure what schedulers cost on this machine
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate bench schedulers                                   all schedulers, 1 to 32K flows, a minute or two
  fairgate bench schedulers --algorithms drr,qfq --flows 512  two of them at one number of flows
  fairgate bench schedulers --help                            all that can be measured")]
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

/// Instructions of a pair of a job, the controller's own included: this program runs again under valgrind.
///
/// # Errors
/// If there is no valgrind, or the run fails.
pub(super) fn instructions(job: &Job) -> Result<f64, JobError> {
    Ok(schedulers::instructions(job)?)
}

/// The same, where there is a valgrind; if not it is said, once, on standard error.
pub(super) fn counter() -> Option<fairgate_reproduce::Count<'static>> {
    match callgrind::check() {
        Ok(()) => Some(&instructions),
        Err(error) => {
            output::say(format_args!(
                "{error}; what is judged by instructions is judged by times"
            ));
            None
        }
    }
}

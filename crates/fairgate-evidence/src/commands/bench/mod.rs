//! `fairgate-lab bench`: measures costs on this machine.

mod arguments;
mod document;
mod schedulers;

use clap::Subcommand;
use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::{self, Format};

use crate::bench::callgrind;
use crate::bench::{Job, JobError};

/// Measure the cost of schedulers on this machine
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate-lab bench schedulers                                   all schedulers, 1 to 32K flows: 2 minutes
  fairgate-lab bench schedulers --algorithms drr,qfq --flows 512  two of them with one number of flows
  fairgate-lab bench schedulers --help                            all options")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Schedulers(schedulers::Args),
    /// Runs a number of cycles and ends. The process whose instructions are counted runs this command
    #[command(hide = true)]
    Cycles(schedulers::CyclesArgs),
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    match args.what {
        What::Schedulers(args) => schedulers::run(args, format),
        What::Cycles(args) => schedulers::run_cycles(&args),
    }
}

/// Returns the instructions of one enqueue and one dequeue in a job, including the controller's own. It runs
/// this program again under valgrind.
///
/// # Errors
/// If valgrind is not installed, or the run fails.
pub(super) fn instructions(job: &Job) -> Result<f64, JobError> {
    Ok(schedulers::instructions(job)?)
}

/// Returns the function that counts instructions if valgrind is installed. Otherwise prints a message.
pub(super) fn counter() -> Option<crate::reproduce::Count<'static>> {
    match callgrind::check() {
        Ok(()) => Some(&instructions),
        Err(error) => {
            output::say(format_args!("{error}; times are used instead of instructions"));
            None
        }
    }
}

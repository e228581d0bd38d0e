//! The program `fairgate-lab`. Each command is a file, with its arguments and a function `run`.

mod bench;
mod bounds;
mod figures;
mod replay;
mod reproduce;
mod tc_testing;
mod theory;
mod validate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fairgate_report::command::embedded::{self, Answer};
use fairgate_report::command::exit;
use fairgate_report::command::failure::{Failure, Outcome};
use fairgate_report::command::output::Format;

const EXAMPLES: &str = "\
Examples:
  fairgate-lab reproduce sqf-fig3       an experiment of a paper, measured beside published values
  fairgate-lab bounds                   do schedulers keep their published guarantees?
  fairgate-lab theory sqf               a formula, and a measurement of the real code beside it
  fairgate-lab replay traces            do our disciplines decide as those recorded from Linux?
  fairgate-lab validate kernel-tcp      does simulated TCP behave like recorded Linux TCP?
  fairgate-lab bench schedulers         the cost of each scheduler on this machine

Exit codes: 0 success; 1 the answer is no; 2 invalid input or usage; 3 the system refused; 4 a bug.";

/// Disciplines and simulator beside papers, textbooks, kernels and real traffic.
#[derive(Parser)]
#[command(name = "fairgate-lab", version, propagate_version = true, after_help = EXAMPLES)]
struct Cli {
    /// Print one JSON document on standard output instead of text: the result, or the error.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Reproduce(reproduce::Args),
    Bounds(bounds::Args),
    Theory(theory::Args),
    Replay(replay::Args),
    Validate(validate::Args),
    Bench(bench::Args),
    Figures(figures::Args),
    TcTesting(tc_testing::Args),
}

impl Command {
    fn run(self, format: Format) -> Result<Outcome, Failure> {
        match self {
            Command::Reproduce(args) => reproduce::run(args, format),
            Command::Bounds(args) => bounds::run(args, format),
            Command::Theory(args) => theory::run(args, format),
            Command::Replay(args) => replay::run(args, format),
            Command::Validate(args) => validate::run(args, format),
            Command::Bench(args) => bench::run(args, format),
            Command::Figures(args) => figures::run(&args, format),
            Command::TcTesting(args) => tc_testing::run(&args, format),
        }
    }
}

/// Runs the program with the arguments of this process, and returns its exit code.
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => {
            let format = Format::from_json_flag(cli.json);
            exit::finish(cli.command.run(format), format)
        }
        Err(error) => exit::usage(&error),
    }
}

/// Runs a command with `--json` within another program. `arguments` are those behind the program's name.
/// Nothing is printed. The command's own files are written.
pub fn answer<S: AsRef<str>>(arguments: &[S]) -> Answer {
    let words = ["fairgate-lab", "--json"].into_iter();
    let words = words.chain(arguments.iter().map(AsRef::as_ref));
    embedded::answer(|| match Cli::try_parse_from(words) {
        Ok(cli) => cli.command.run(Format::Json),
        Err(error) => Err(exit::usage_failure(&error)),
    })
}

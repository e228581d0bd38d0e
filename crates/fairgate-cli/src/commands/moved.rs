//! Commands that were in this program once. They say where they are.

use miette::{Report, miette};

use crate::failure::{Failure, Outcome};

/// What was given to the command. It is not looked at.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Says where `command` is.
pub(crate) fn run(command: &str, args: &Args) -> Result<Outcome, Failure> {
    let words = args.words.join(" ");
    let call = format!("cargo run --release -p fairgate-evidence -- {command} {words}");
    let report: Report = miette!(
        help = format!("in a clone of the repository: {}", call.trim_end()),
        "`{command}` is a command of the program `fairgate-lab`, which has all experiments"
    );
    Err(Failure::Input(report))
}

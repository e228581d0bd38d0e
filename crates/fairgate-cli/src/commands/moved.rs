//! Commands that are not in this program, or not in this build of it. They say where they are.

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

/// Says which build has a command. This one does not know the names of the others, so every unknown word gets
/// this answer.
#[cfg(not(feature = "live"))]
pub(crate) fn left_out(words: &[String]) -> Result<Outcome, Failure> {
    let command = words.first().map_or("", String::as_str);
    Err(Failure::Input(miette!(
        help = "build all of it: cargo build --release -p fairgate-cli",
        "there is no command `{command}` in this build, which only simulates and compares"
    )))
}

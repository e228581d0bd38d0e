//! `fairgate completions`: what a shell needs to complete the program's arguments.

use clap_complete::Shell;
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};

/// Print the completions of this program for a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate completions bash > /usr/local/share/bash-completion/completions/fairgate
  fairgate completions zsh > ~/.zfunc/_fairgate
  fairgate completions fish > ~/.config/fish/completions/fairgate.fish

`make install` installs them for bash, zsh and fish.")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Printed {
    shell: String,
    script: String,
}

pub(crate) fn run(args: Args, mut program: clap::Command, format: Format) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "fairgate", &mut script);
    let script = String::from_utf8(script).expect("the help is text");
    match format {
        Format::Text => output::exact(&script)?,
        Format::Json => {
            let shell = args.shell.to_string();
            output::json("completions", &Printed { shell, script })?;
        }
    }
    Ok(Outcome::Yes)
}

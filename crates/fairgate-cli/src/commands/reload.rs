//! `fairgate reload`: has a run read its file again, and waits for what becomes of it.

use std::path::PathBuf;

use fairgate_run::client::Remote;
use fairgate_run_api::{ChangeMade, Question, ask};

use crate::commands::change::Changed;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::remote::{failed, only_socket};

/// Have a run read its file again while it forwards, and say what became of it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate reload                             the only run of this machine
  fairgate reload --socket /run/fairgate/home.sock
  fairgate reload --because 'a new line, ticket 17'

The exit code is 2 if the file was refused: the run continues unchanged. Like SIGHUP, but with an answer.")]
pub(crate) struct Args {
    /// The socket of the run; optional if there is only one
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Why, for the log of the run and for `fairgate rollback`
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let socket = match args.socket {
        Some(socket) => socket,
        None => only_socket().map_err(Failure::environment)?,
    };
    let run = Remote::from(socket);
    let because = args.because;
    let made: ChangeMade = ask(&run, "", Question::Reload { because }).map_err(failed(&run))?;
    let changed = Changed::from(made);
    match format {
        Format::Json => output::json("change", &changed)?,
        Format::Text => output::text(&format!("{changed}\n"))?,
    }
    Ok(Outcome::Yes)
}

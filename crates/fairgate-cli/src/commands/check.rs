//! `fairgate check`: is a configuration file right?

use std::path::PathBuf;

use serde::Serialize;

use crate::exit::{Failure, Outcome};
use crate::input;
use crate::output::{self, Format};

/// Check a configuration file and show the trees in it
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate check home.toml          what is wrong, or the trees as they will be built
  fairgate check --json home.toml   the same for a script; exit code 2 if something is wrong")]
pub(crate) struct Args {
    /// The file to check
    file: PathBuf,
}

/// `fairgate.check/1`.
#[derive(Serialize)]
struct Checked {
    file: String,
    queues: Vec<Queue>,
    sections: Vec<String>,
}

#[derive(Serialize)]
struct Queue {
    name: String,
    tree: String,
}

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let document = input::document(&args.file)?;
    let checked = Checked {
        file: document.name().to_owned(),
        queues: document
            .queues()
            .map(|(name, spec)| Queue {
                name: name.to_owned(),
                tree: spec.to_string(),
            })
            .collect(),
        sections: document.sections().map(str::to_owned).collect(),
    };
    match format {
        Format::Json => output::json("check", &checked)?,
        Format::Text => {
            let mut text = String::new();
            for queue in &checked.queues {
                text.push_str(&format!("queue {}\n", queue.name));
                text.extend(queue.tree.lines().map(|line| format!("  {line}\n")));
            }
            text.push_str(&format!("{} is right.\n", checked.file));
            output::text(&text)?;
        }
    }
    Ok(Outcome::Yes)
}

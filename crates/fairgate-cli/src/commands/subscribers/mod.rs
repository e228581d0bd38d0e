//! `fairgate subscribers`: the list of a run, beside its files, changes of it, and where its files come from.

mod diff;
mod import;
mod node;
mod set;

use fairgate_config::Registry;

use crate::failure::{Failure, Outcome};
use crate::output::Format;

/// Change subscribers and nodes of a run, see what a list would change in it, or import the list
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate subscribers set 1001 1002 down=50mbit     what would change; with --yes it does
  fairgate subscribers set --plan home down=120mbit --yes
  fairgate subscribers node 'AP 3' down=200mbit up=50mbit --yes
  fairgate subscribers diff isp.toml                 what a reload would do
  fairgate subscribers import uisp https://uisp.example.com isp.toml --token-file token

`fairgate help subscribers set`, `node`, `diff` and `import` say more.")]
pub(crate) struct Args {
    #[command(subcommand)]
    how: How,
}

#[derive(clap::Subcommand)]
enum How {
    Diff(diff::Args),
    Import(import::Args),
    Node(node::Args),
    Set(set::Args),
}

pub(crate) fn run(args: &Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    match &args.how {
        How::Diff(args) => diff::run(args, registry, format),
        How::Import(args) => import::run(args, registry, format),
        How::Node(args) => node::run(args, format),
        How::Set(args) => set::run(args, format),
    }
}

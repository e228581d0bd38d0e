//! `fairgate top`: a live screen of a run.

use std::sync::Arc;
use std::time::Duration;

use fairgate_config::Registry;
use fairgate_run::client::Remote;
use fairgate_run_api::Change;
use miette::Diagnostic;
use thiserror::Error;

use crate::commands::change;
use crate::commands::status::ask;
use crate::exit;
use crate::failure::{Failure, Imbalanced, Outcome};
use crate::input::positive_duration;
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed};
use crate::top::{self, Answered, Order, Settings, Sort, Start, TopError};

/// The shortest interval. Nobody reads figures that change faster.
const SHORTEST: Duration = Duration::from_millis(100);

/// Watch a run: classes, rates, delays, drops
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate top                                the only run of this machine; ? shows the keys
  fairgate top --interval 250ms --sort rate   the busiest classes first, four times a second
  fairgate top --from eth1 --filter 10.0.0    hosts of a network, in the other direction
  fairgate top --once                         one screen as text, both directions; also in a pipe
  fairgate top --socket /run/fairgate/home.sock
  fairgate top --api https://router:8443 --token-file token    a run on another machine

The screen has the tree of classes of a direction with rates, delay percentiles, drops, marks and queues of
the last interval, and details of the selected class with its last intervals as curves. `r` changes a rate as
`fairgate class change` does, after a question. If the run ends, the screen waits for it. --once prints at
most 60 lines of each direction.")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// The time between two readings, at least 100ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive_duration)]
    interval: Duration,

    /// Wait for one interval, print one screen as text, and end
    #[arg(long)]
    once: bool,

    /// The direction to begin with, by the interface that it receives from
    #[arg(long, value_name = "INTERFACE")]
    from: Option<String>,

    /// The order of classes: class, rate, delay, drops or backlog
    #[arg(long, value_name = "ORDER", default_value_t)]
    sort: Sort,

    /// Show only classes with this in their name, host or discipline; class:20 is a number
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    filter: String,
}

#[derive(Debug, Error, Diagnostic)]
enum Unusable {
    #[error("`fairgate top` is a screen, and no JSON document")]
    #[diagnostic(help("`fairgate status --json` has the figures, and `fairgate record` those of intervals"))]
    Json,
    #[error("an interval of {0:?} is too short for a screen")]
    #[diagnostic(help("write at least 100ms; `fairgate record` has intervals from 1ms"))]
    TooShort(Duration),
    #[error("no direction is from `{from}`")]
    #[diagnostic(help("name {names}"))]
    NoDirection { from: String, names: String },
}

pub(crate) fn run(args: Args, registry: &Registry, format: Format) -> Result<Outcome, Failure> {
    if format == Format::Json {
        return Err(Unusable::Json.into());
    }
    if args.interval < SHORTEST {
        return Err(Unusable::TooShort(args.interval).into());
    }
    if !args.once && !top::has_terminal() {
        return Err(TopError::NoTerminal.into());
    }
    let run = args.run.find()?;
    // A run that does not answer is an error, and not an empty screen.
    let status = ask(&run, true)?;
    if let Some(from) = &args.from
        && !status.directions.iter().any(|direction| direction.from == *from)
    {
        let names: Vec<&str> = status
            .directions
            .iter()
            .map(|direction| &*direction.from)
            .collect();
        return Err(Unusable::NoDirection {
            from: from.clone(),
            names: names.join(" or "),
        }
        .into());
    }
    let settings = Settings {
        run,
        interval: args.interval,
        registry: registry.clone(),
        start: Start {
            from: args.from,
            sort: args.sort,
            filter: args.filter,
            colour: output::colour::for_stdout(),
            options: args.run.words(),
        },
    };
    if args.once {
        let page = top::once(&settings, output::page_width());
        output::text(&page.map_err(|error| failure(error, &settings.run))?)?;
        return Ok(Outcome::Yes);
    }
    let to = settings.run.clone();
    let changer = Arc::new(move |order: &Order| make(&to, order));
    top::run(&settings, changer).map_err(|error| failure(error, &settings.run))?;
    Ok(Outcome::Yes)
}

/// Has the run make a change, as `fairgate change` does.
fn make(run: &Remote, order: &Order) -> Answered {
    let change = Change {
        from: Some(order.from.clone()),
        lines: vec![order.line.clone()],
        if_revision: order.revision,
        ..Change::default()
    };
    match change::make(run, change) {
        Ok(changed) => Answered::Made(changed.to_string()),
        Err(Failure::Input(report) | Failure::Environment(report)) => {
            let causes: Vec<String> = report.chain().map(ToString::to_string).collect();
            Answered::Refused {
                message: causes.join(": "),
                help: exit::help(&report)
                    .map(|help| help.to_string())
                    .unwrap_or_default(),
            }
        }
        // Only commands that print have this failure.
        Err(Failure::ReaderGone) => Answered::Refused {
            message: "nothing was changed".to_owned(),
            help: String::new(),
        },
    }
}

fn failure(error: TopError, run: &Remote) -> Failure {
    match error {
        TopError::NoAnswer(source) => failed(run)(source),
        TopError::Imbalance(imbalance) => Imbalanced::from(imbalance).into(),
        TopError::NoTerminal => error.into(),
        error => Failure::environment(error),
    }
}

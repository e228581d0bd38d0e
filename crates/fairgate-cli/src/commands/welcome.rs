//! `fairgate` without words, in a terminal: what it can do for whom, and which runs are on this machine.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use fairgate_run::client::Remote;
use fairgate_run::running;
use fairgate_run_api::{DirectionStatus, Status};

use crate::commands::status::{ask, delay, megabits};
use crate::failure::{Failure, Outcome};
use crate::output;

const COMMANDS: &str = "\
Fairgate: packet scheduling and queue management

Operators: what would it do to my line, and then run it
  fairgate compare --trace my.pcap --rate 20mbit    your own traffic under each discipline
  fairgate tune 192.0.2.1 --dry-run                 what is wrong with my line, and what to run
  fairgate run --dev eth0 --down 50mbit --up 10mbit docsis    a home's line, without a file
  fairgate top                                      rates, delays and drops of every class
  fairgate doctor                                   what is wrong with a run, or with this machine

Researchers: the same digits from the same seed
  fairgate simulate dumbbell.toml --seeds 20        a network in one file: means with intervals
  fairgate sweep many.toml                          all combinations of values
  fairgate plot results.json                        draws what was simulated

Engineers: a queue in your program
  fairgate list fq_codel                            parameters, units, defaults, ranges
  fairgate check tree.toml                          is this tree valid?
  fairgate schema                                   what a file may have, for an editor

fairgate --help has all commands.
";

/// The time between two statuses: rates and delays are measured over it.
const INTERVAL: Duration = Duration::from_millis(500);

/// Returns whether this is to be shown: there are no words, and somebody sees it.
pub(crate) fn is_wanted() -> bool {
    std::env::args_os().len() == 1 && io::stdout().is_terminal()
}

pub(crate) fn run() -> Result<Outcome, Failure> {
    output::exact(COMMANDS)?;
    let runs: Vec<Remote> = running()
        .unwrap_or_default()
        .into_iter()
        .map(Remote::from)
        .collect();
    if runs.is_empty() {
        output::exact("\nNo run of yours is on this machine.\n")?;
        return Ok(Outcome::Yes);
    }
    let before: Vec<Option<Status>> = runs.iter().map(|run| ask(run, true).ok()).collect();
    thread::sleep(INTERVAL);
    let mut table = output::table(["RUN", "DIRECTIONS", "MBIT/S", "BACKLOG", "DELAY", "DROPPED"]);
    for (run, before) in runs.iter().zip(before) {
        table.add_row(match (ask(run, true), before) {
            (Ok(after), Some(before)) => row(&before, &after),
            _ => [run.to_string(), "does not answer".to_owned()]
                .into_iter()
                .chain((0..4).map(|_| String::new()))
                .collect(),
        });
    }
    let rows = output::harmless(&output::table_text(&table));
    output::exact(&format!("\nRuns on this machine\n{rows}"))?;
    Ok(Outcome::Yes)
}

/// The row of a run: its directions one after the other, with what they have done meanwhile.
fn row(before: &Status, after: &Status) -> Vec<String> {
    let seconds = after.uptime_s - before.uptime_s;
    let each = |cell: &dyn Fn(&DirectionStatus, &DirectionStatus) -> String| {
        let pairs = before.directions.iter().zip(&after.directions);
        let cells: Vec<String> = pairs.map(|(before, after)| cell(before, after)).collect();
        cells.join(" / ")
    };
    vec![
        after.name.clone(),
        each(&|_, after| format!("{} -> {}", after.from, after.to)),
        each(&|before, after| megabits(after.sent.bytes, before.sent.bytes, seconds)),
        each(&|_, after| after.tree.backlog.packets.to_string()),
        each(&|before, after| delay(&after.tree, Some(&before.tree))),
        each(&|before, after| {
            let dropped = after.tree.dropped.packets;
            dropped.saturating_sub(before.tree.dropped.packets).to_string()
        }),
    ]
}

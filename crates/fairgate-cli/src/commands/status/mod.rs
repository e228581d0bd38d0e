//! `fairgate status`: prints the state of a run.

mod rows;

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use fairgate_run::client::Remote;
use fairgate_run_api::{
    AutorateStatus, DirectionStatus, NatStatus, NodeStatus, PassedByStatus, ProcessorStatus, Status,
};

use crate::failure::{Failure, Imbalanced, Outcome};
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed};

/// Show the state of a `fairgate run`
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate status                             the only run of this machine
  fairgate status --used                      only disciplines that packets have come to
  fairgate status --follow                    again every second; with --json a document in each line
  fairgate status --socket /run/fairgate/home.sock --json
  fairgate status --api https://router:8443 --token-file token    a run on another machine")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// Show it again every second, until Ctrl-C
    #[arg(long, alias = "watch")]
    follow: bool,

    /// Leave out what no packet has come to: with thousands of classes this is much faster
    #[arg(long)]
    used: bool,
}

/// How much of the name of a subscriber is shown, characters. A JSON document has the whole name.
pub(crate) const NAME: usize = 32;

/// The time between two statuses. Rates and delays are measured over it.
const INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(args: Args, format: Format) -> Result<Outcome, Failure> {
    let run = args.run.find()?;
    // A JSON document has counts only. Its reader can compute rates.
    let mut before = match format {
        Format::Json => None,
        Format::Text => Some(ask(&run, args.used)?),
    };
    loop {
        if before.is_some() {
            thread::sleep(INTERVAL);
        }
        let status = ask(&run, args.used)?;
        match format {
            Format::Json if args.follow => output::json_line("status", &status)?,
            Format::Json => output::json("status", &status)?,
            Format::Text => {
                // Cursor home and clear, so that the tables stay in place.
                let clear = if args.follow && io::stdout().is_terminal() {
                    "\x1b[H\x1b[2J"
                } else {
                    ""
                };
                output::exact(&format!("{clear}{}", tables(&status, before.as_ref())))?;
            }
        }
        if !args.follow {
            return Ok(Outcome::Yes);
        }
        if format == Format::Json {
            thread::sleep(INTERVAL);
        } else {
            before = Some(status);
        }
    }
}

/// Returns the status of a run, perhaps without what no packet has come to.
pub(crate) fn ask(run: &Remote, only_used: bool) -> Result<Status, Failure> {
    let status = run.status(only_used).map_err(failed(run))?;
    status.check().map_err(Imbalanced::from)?;
    Ok(status)
}

/// Returns the status as text. Rates and delays are since `before`, or since the start.
pub(crate) fn tables(status: &Status, before: Option<&Status>) -> String {
    let before = before.filter(|before| before.pid == status.pid && before.uptime_s < status.uptime_s);
    let seconds = status.uptime_s - before.map_or(0.0, |before| before.uptime_s);
    let mut text = format!(
        "{}: process {}, running for {:.1} s\n",
        status.name, status.pid, status.uptime_s
    );
    if let Some(fallback) = &status.fallback {
        let _ = writeln!(text, "NOT what the file says: {fallback}");
    }
    if let Some(left) = status.changes.unconfirmed_s {
        let _ = writeln!(
            text,
            "the last change is undone in {left:.0} s, unless you keep it: fairgate change --confirm"
        );
    }
    text.push_str(&processor_text(&status.processor));
    text.push_str(&passed_by_text(status));
    text.push_str(&nat_text(status));
    // On one interface the stack is an end of the run.
    if !status.isolated && !status.is_on_one_interface() {
        text.push_str("this machine's own network stack is not kept away from these interfaces\n");
    }
    if let Some(autorate) = &status.autorate {
        text.push_str(&autorate_text(autorate));
    }
    let _ = match before {
        Some(_) => writeln!(text, "rates and delays are for the last {seconds:.1} s"),
        None => writeln!(text, "rates and delays are since the start"),
    };
    text.push_str(&directions_text(status, before, seconds));
    output::harmless(&text)
}

/// Returns the same of a dry run, which has no process and no interfaces.
pub(crate) fn tables_of_dry_run(status: &Status) -> String {
    let head = format!(
        "{}: {:.1} s in the time of the captures\n",
        status.name, status.uptime_s
    );
    output::harmless(&(head + &directions_text(status, None, status.uptime_s)))
}

fn directions_text(status: &Status, before: Option<&Status>, seconds: f64) -> String {
    let mut text = String::new();
    for (index, direction) in status.directions.iter().enumerate() {
        let before = before.and_then(|before| before.directions.get(index));
        text.push('\n');
        text.push_str(&direction_text(direction, before, seconds));
    }
    text
}

/// Returns what the rates that follow the line are.
fn autorate_text(autorate: &AutorateStatus) -> String {
    let mut text = String::new();
    if let (Some(baseline), Some(excess)) = (autorate.baseline_us, autorate.excess_us) {
        let _ = writeln!(
            text,
            "autorate: round trip of the line {}, at the moment {} more",
            millis(baseline),
            millis(excess)
        );
    }
    for direction in &autorate.directions {
        let mbit = |bits: u64| bits as f64 / 1e6;
        let _ = writeln!(
            text,
            "autorate of {}: {:.3} Mbit/s ({:.3} to {:.3}), {}; {:.3} Mbit/s used",
            direction.from,
            mbit(direction.rate_bps),
            mbit(direction.min_bps),
            mbit(direction.max_bps),
            direction.state,
            mbit(direction.achieved_bps)
        );
    }
    text
}

/// Returns whether packets had to wait for the processor; nothing if they never had to.
fn processor_text(processor: &ProcessorStatus) -> String {
    let mut causes = Vec::new();
    if processor.late_wake_ups > 0 {
        causes.push(format!(
            "{} of {} wake-ups were more than 1 ms late, at most {}",
            processor.late_wake_ups,
            processor.wake_ups,
            millis(processor.latest_us)
        ));
    }
    if processor.stalls > 0 {
        causes.push(format!(
            "{} stalls of more than 5 ms, at most {}",
            processor.stalls,
            millis(processor.longest_stall_us)
        ));
    }
    match causes.is_empty() {
        true => String::new(),
        false => format!("processor: {}\n", causes.join("; ")),
    }
}

/// Returns what is known of translated addresses; nothing if no tree looks them up.
fn nat_text(status: &Status) -> String {
    let Some(NatStatus {
        translations,
        no_room,
    }) = status.nat
    else {
        return String::new();
    };
    let missing = match no_room {
        0 => String::new(),
        _ => format!("; there was no room for {no_room}, whose packets count as this router's"),
    };
    format!("nat: {translations} translations of this router are known{missing}\n")
}

/// Returns what went past the run; nothing if nothing ever did.
fn passed_by_text(status: &Status) -> String {
    let PassedByStatus { times, seconds } = status.passed_by;
    if times == 0 {
        return String::new();
    }
    let counts: Vec<String> = status
        .directions
        .iter()
        .map(|direction| format!("{} from {}", direction.passed_by, direction.from))
        .collect();
    format!(
        "packets went past this run, unshaped, for {seconds:.1} s in all: {}\n",
        counts.join(", ")
    )
}

fn direction_text(direction: &DirectionStatus, before: Option<&DirectionStatus>, seconds: f64) -> String {
    let sojourn = &direction.sojourn;
    let mut text = format!(
        "{} -> {}: {} packets, {} bytes sent, {} Mbit/s\n",
        direction.from,
        direction.to,
        direction.sent.packets,
        direction.sent.bytes,
        megabits(
            direction.sent.bytes,
            before.map_or(0, |before| before.sent.bytes),
            seconds
        )
    );
    let _ = writeln!(
        text,
        "sojourn times since the start: mean {}, median {}, 95 % {}, 99 % {}, longest {}",
        millis(sojourn.mean_us),
        millis(sojourn.p50_us),
        millis(sojourn.p95_us),
        millis(sojourn.p99_us),
        millis(sojourn.max_us)
    );
    if direction.super_packets > 0 {
        let _ = writeln!(
            text,
            "{} super-packets were scheduled as one packet each",
            direction.super_packets
        );
    }
    let lost: Vec<String> = direction
        .lost
        .by_reason()
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    if !lost.is_empty() {
        let _ = writeln!(text, "lost outside of the queues: {}", lost.join(", "));
    }
    text.push_str(&rows::table(
        &direction.tree,
        before.map(|before| &before.tree),
        seconds,
    ));
    text
}

/// Returns the rate of the bytes since `before`, in Mbit/s.
pub(crate) fn megabits(bytes: u64, before: u64, seconds: f64) -> String {
    let rate = (bytes - before.min(bytes)) as f64 * 8e-6 / seconds.max(1e-9);
    format!("{rate:.3}")
}

/// Returns the mean sojourn time of the packets that left since `before`, or a dash if there are none.
pub(crate) fn delay(node: &NodeStatus, before: Option<&NodeStatus>) -> String {
    let packets = node.dequeued.packets - before.map_or(0, |before| before.dequeued.packets);
    let sojourn_s = node.sojourn_s - before.map_or(0.0, |before| before.sojourn_s);
    match packets {
        0 => "-".to_owned(),
        packets => millis(sojourn_s.max(0.0) * 1e6 / packets as f64),
    }
}

/// Formats microseconds as milliseconds.
fn millis(micros: f64) -> String {
    format!("{:.3} ms", micros / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_between_two_statuses() {
        assert_eq!(megabits(2_500_000, 0, 1.0), "20.000");
        assert_eq!(megabits(2_500_000, 1_250_000, 2.0), "5.000");
    }
}

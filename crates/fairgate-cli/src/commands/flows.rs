//! `fairgate flows`: the flows of a run.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use fairgate_run_api::{FlowOrder, FlowsStatus};

use super::status::NAME;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed};

/// Show the flows of a run: rates, delays, drops, round trip times
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate flows                              the 20 with the highest rate, of the only run of this machine
  fairgate flows --sort round-trip --top 5    the five with the longest round trip
  fairgate flows --follow                     again every second
  fairgate flows --json --top 1000            one document for programs

A flow is what has the same addresses, ports and protocol, in one direction. Flows are observed while somebody
asks for them, so the first answer takes a second. A run with a `packet_log` knows those of its last packets.
DELAY is the time in the tree, of about the last 16 packets. ROUND TRIP is the median of the last 16, from
behind the queue to the destination and back: TCP echoes its timestamps. A flow that has had no packet for a
minute is left out.")]
pub(crate) struct Args {
    #[command(flatten)]
    run: RunArgs,

    /// The order, the largest first
    #[arg(long, value_enum, default_value = "rate")]
    sort: Sort,

    /// The number of flows
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    top: u32,

    /// Show them again every second, until Ctrl-C
    #[arg(long)]
    follow: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sort {
    /// The rate over the last second
    Rate,
    /// The bytes that were sent
    Bytes,
    /// The delay in the tree
    Delay,
    /// The packets that were dropped
    Dropped,
    /// The round trip time
    RoundTrip,
}

impl Sort {
    fn order(self) -> FlowOrder {
        match self {
            Sort::Rate => FlowOrder::Rate,
            Sort::Bytes => FlowOrder::Bytes,
            Sort::Delay => FlowOrder::Delay,
            Sort::Dropped => FlowOrder::Dropped,
            Sort::RoundTrip => FlowOrder::RoundTrip,
        }
    }
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let run = args.run.find()?;
    loop {
        let flows = run.flows(args.sort.order(), args.top).map_err(failed(&run))?;
        match format {
            Format::Json if args.follow => output::json_line("flows", &flows)?,
            Format::Json => output::json("flows", &flows)?,
            Format::Text => {
                // Cursor home and clear, so that the table stays in place.
                let clear = match args.follow && io::stdout().is_terminal() {
                    true => "\x1b[H\x1b[2J",
                    false => "",
                };
                output::exact(&format!("{clear}{}", output::harmless(&text(&flows))))?;
            }
        }
        if !args.follow {
            return Ok(Outcome::Yes);
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// The column of subscribers, in a run that has some.
const SUBSCRIBER: usize = 3;

fn text(status: &FlowsStatus) -> String {
    if status.flows.is_empty() {
        return "No packet has passed since the flows are observed.\n".to_owned();
    }
    let has_subscribers = status.flows.iter().any(|flow| flow.subscriber.is_some());
    let mut head = vec![
        "FROM",
        "FLOW",
        "CLASS",
        "RATE",
        "SENT",
        "DROPPED",
        "MARKED",
        "DELAY",
        "ROUND TRIP",
        "IDLE",
    ];
    if has_subscribers {
        head.insert(SUBSCRIBER, "SUBSCRIBER");
    }
    let mut table = output::table(head);
    for flow in &status.flows {
        let mut row = vec![
            flow.from.clone(),
            flow.to_string(),
            // The class of a subscriber has its name beside it.
            match flow.class.is_empty() || flow.subscriber.is_some() {
                true => flow.discipline.clone(),
                false => format!("{} {}", flow.class, flow.discipline),
            },
            format!("{:.2} Mbit/s", flow.rate_bps / 1e6),
            format!("{:.1} kB", flow.bytes as f64 / 1e3),
            flow.dropped.to_string(),
            flow.marked.to_string(),
            format!("{:.2} ms", flow.delay_ms),
            match flow.round_trip_ms {
                Some(round_trip) => format!("{:.1} ms", round_trip.median),
                None => String::new(),
            },
            format!("{:.0} s", flow.idle_s),
        ];
        if has_subscribers {
            let subscriber = flow.subscriber.as_ref();
            let name = subscriber.map_or(String::new(), |subscriber| subscriber.brief(NAME));
            row.insert(SUBSCRIBER, name);
        }
        table.add_row(row);
    }
    let mut text = output::table_text(&table);
    let others = status.active - status.flows.len() as u64;
    if others > 0 {
        text.push_str(&format!("{others} more flows; --top N shows them.\n"));
    }
    if status.forgotten > 0 {
        text.push_str(&format!(
            "{} flows were forgotten, because there was no room for more.\n",
            status.forgotten
        ));
    }
    if status.missed_packets > 0 {
        text.push_str(&format!(
            "{} packets are missing: the run was too busy to note them.\n",
            status.missed_packets
        ));
    }
    text
}

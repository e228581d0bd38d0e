//! `fairgate reserve`: reserves a rate and a delay in a run.

use std::time::Duration;

use fairgate::Rate;
use fairgate_config::units::{format_rate, parse_rate, parse_size};
use fairgate_run_api::{ExcessStatus, ReservationStatus, ReserveOrder, TermsStatus};
use serde::Serialize;

use crate::failure::{Failure, Outcome};
use crate::input::positive_duration;
use crate::output::{self, Format};
use crate::remote::{RunArgs, failed, unchanged};

/// Reserve a rate and a delay for a flow of a run
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  fairgate reserve add call --rate 100kbit --burst 1kb --delay 20ms destination_port=5004 protocol=udp
  fairgate reserve change call --rate 200kbit --burst 1kb --delay 20ms destination_port=5004 protocol=udp
  fairgate reserve add film --rate 4mbit --peak 8mbit --burst 60kb --delay 40ms source=192.0.2.7
  fairgate reserve add sensor --rate 64kbit --burst 2kb --excess drop dscp=CS5
  fairgate reserve refresh call                  it lives for another lifetime from now on
  fairgate reserve withdraw call
  fairgate reserve list

The flow gets a class of its own. Packets within its token buckets are in the tree for no longer than the
promised delay, whatever else is sent. Packets beyond them go to the default class, where others may overtake
them, or are dropped. What can't be promised is refused: exit code 2, with what is left. A reservation ends by
itself when its lifetime is over. C and D are the error terms of RFC 2212: summed along a path, they bound the
delay of the path.
docs/reservations.md says which trees can hold reservations, and where the bounds come from.")]
pub(crate) struct Args {
    #[command(subcommand)]
    how: How,
}

#[derive(clap::Subcommand)]
enum How {
    /// Add a reservation
    Add(Terms),
    /// Give a reservation other terms; if they are refused, the old ones hold
    Change(Terms),
    /// End a reservation
    Withdraw(Named),
    /// Let a reservation live for another lifetime from now on
    Refresh(Named),
    /// List the reservations
    List(Run),
}

#[derive(clap::Args)]
struct Run {
    #[command(flatten)]
    run: RunArgs,

    /// The direction, by the interface that it receives from; optional if reservations are possible in one
    /// direction only
    #[arg(long, value_name = "INTERFACE")]
    from: Option<String>,
}

#[derive(clap::Args)]
struct Named {
    #[command(flatten)]
    run: Run,

    /// The name of the reservation
    name: String,
}

#[derive(clap::Args)]
struct Terms {
    #[command(flatten)]
    named: Named,

    /// What the flow sends in the long run, with Ethernet headers
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Rate,

    /// What it may send at once: the size of its token bucket
    #[arg(long, value_name = "SIZE", value_parser = size)]
    burst: u64,

    /// Its peak rate: how fast a burst comes at most; shortens the delay that can be promised [default: a
    /// burst may come at once]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    peak: Option<Rate>,

    /// Shorter packets count as packets of this length [default: 60 bytes, as on an Ethernet cable]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    min_packet: Option<u64>,

    /// Its longest packet; longer ones are excess [default: the longest one of the interfaces]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_packet: Option<u64>,

    /// The longest acceptable delay [default: what the rate gives]
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    delay: Option<Duration>,

    /// What happens to packets beyond the token buckets
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Excess::BestEffort)]
    excess: Excess,

    /// How long the reservation exists unless it is refreshed
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = positive_duration)]
    lifetime: Duration,

    /// The conditions by which its packets are found, as of `fairgate filter add`
    #[arg(required = true, num_args = 1.., value_name = "CONDITIONS")]
    filter: Vec<String>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Excess {
    /// They go to the scheduler's default class
    #[value(name = "best_effort")]
    BestEffort,
    /// They are dropped
    Drop,
}

fn rate(text: &str) -> Result<Rate, String> {
    parse_rate(text).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

impl Terms {
    fn read(&self) -> TermsStatus {
        // A longer one than that is refused by the run.
        let packet = |size: u64| u32::try_from(size).unwrap_or(u32::MAX);
        TermsStatus {
            name: self.named.name.clone(),
            rate_bps: self.rate.bits_per_second(),
            burst_bytes: self.burst,
            peak_bps: self.peak.map(Rate::bits_per_second),
            min_packet_bytes: self.min_packet.map(packet),
            max_packet_bytes: self.max_packet.map(packet),
            delay_us: self.delay.map(|delay| delay.as_micros() as u64),
            filter: self.filter.join(" "),
            excess: Some(match self.excess {
                Excess::BestEffort => ExcessStatus::BestEffort,
                Excess::Drop => ExcessStatus::Drop,
            }),
            lifetime_ms: self.lifetime.as_millis() as u64,
        }
    }
}

/// The reservations, as JSON.
#[derive(Serialize)]
struct Document {
    reservations: Vec<ReservationStatus>,
}

pub(crate) fn run(args: &Args, format: Format) -> Result<Outcome, Failure> {
    let named = |named: &Named| named.name.clone();
    let (run, order, done) = match &args.how {
        How::Add(terms) => (&terms.named.run, ReserveOrder::Add(terms.read()), "Reserved."),
        How::Change(terms) => (&terms.named.run, ReserveOrder::Change(terms.read()), "Changed."),
        How::Withdraw(it) => (&it.run, ReserveOrder::Withdraw { name: named(it) }, "Withdrawn."),
        How::Refresh(it) => (&it.run, ReserveOrder::Refresh { name: named(it) }, "Refreshed."),
        How::List(run) => (run, ReserveOrder::List, ""),
    };
    let remote = run.run.find()?;
    let is_change = !matches!(order, ReserveOrder::List);
    let reserved = remote.reserve(run.from.as_deref(), order);
    let reservations = reserved.map_err(|error| match is_change {
        true => unchanged(&remote)(error),
        false => failed(&remote)(error),
    })?;
    match format {
        Format::Json => output::json("reservations", &Document { reservations })?,
        Format::Text => output::text(&text(&reservations, done))?,
    }
    Ok(Outcome::Yes)
}

fn text(reservations: &[ReservationStatus], done: &str) -> String {
    let mut text = match done {
        "" if reservations.is_empty() => "There are no reservations.\n".to_owned(),
        "" => String::new(),
        done => format!("{done}\n"),
    };
    if reservations.is_empty() {
        return text;
    }
    let head = [
        "NAME",
        "FROM",
        "CLASS",
        "TOKEN RATE",
        "BURST",
        "PEAK",
        "EXCESS",
        "RESERVED",
        "PROMISED DELAY",
        "C",
        "D",
        "ENDS IN",
        "FILTER",
    ];
    let mut table = output::table(head);
    let bits = |bits: u64| Rate::from_bits_per_second(bits).map_or(bits.to_string(), format_rate);
    let mut without = Vec::new();
    for reservation in reservations {
        let terms = &reservation.terms;
        let (c, d) = match reservation.error_terms {
            Some(errors) => (format!("{} B", errors.c_bytes), format!("{} us", errors.d_us)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        if let (None, Some(why)) = (reservation.error_terms, &reservation.no_error_terms) {
            without.push(format!("{} has no C and D: {why}.\n", terms.name));
        }
        table.add_row([
            terms.name.clone(),
            reservation.from.clone(),
            reservation.class.clone(),
            bits(terms.rate_bps),
            format!("{} B", terms.burst_bytes),
            terms.peak_bps.map_or("-".to_owned(), bits),
            match terms.excess {
                Some(ExcessStatus::Drop) => "drop",
                _ => "best_effort",
            }
            .to_owned(),
            bits(reservation.reserved_bps),
            format!("{:.3} ms", reservation.promised_us / 1e3),
            c,
            d,
            format!("{:.1} s", reservation.expires_s),
            terms.filter.clone(),
        ]);
    }
    text.push_str(&output::table_text(&table));
    text.extend(without);
    text
}

//! The figures of a measurement as text: for the terminal and for the page.

use crate::output;
use crate::tune::measured::{Delays, Figures, Measured};
use crate::tune::verdict::{Verdict, ms};

/// A row of the table: its name, and how a direction shows it.
pub(crate) type Row = (&'static str, fn(&Figures) -> String);

const ROWS: [Row; 9] = [
    ("capacity, IP packets", |way| mbit(way.capacity_bps)),
    ("  slowest and fastest tenth", |way| {
        format!("{} to {}", mbit(way.low_bps), mbit(way.high_bps))
    }),
    ("  on the line", |way| mbit(way.line_bps)),
    ("framing", |way| match way.framing {
        Some(framing) => match framing.line {
            Some(line) => format!("{line}, as given"),
            None => format!("{}, {} bytes of overhead", framing.cells, framing.overhead),
        },
        None => "not visible".to_owned(),
    }),
    ("waiting without load", |way| waits(&way.idle_ms)),
    ("waiting under load", |way| waits(&way.loaded_ms)),
    ("loss without load", |way| percent(way.loss_idle)),
    ("loss under load", |way| percent(way.loss_loaded)),
    ("responsiveness", |way| {
        format!("{:.0} round trips a minute", way.rpm)
    }),
];

/// Returns the rows of the table.
pub(crate) fn rows() -> &'static [Row] {
    &ROWS
}

/// Returns the result for the terminal: the figures, what is wrong, what to do. `after` is the line as it was
/// shaped.
pub(crate) fn text(before: &Measured, after: Option<&Measured>, verdict: &Verdict) -> String {
    let round_trip = &before.round_trip_ms;
    let mut text = format!(
        "To {}: round trip {} without load (median; 95 %: {}), packets of up to {} bytes\n\n{}\n",
        output::name(&before.server),
        ms(round_trip.p50),
        ms(round_trip.p95),
        before.mtu,
        table(before)
    );
    let width = usize::from(output::page_width());
    for sentence in verdict.sentences() {
        text += &format!("{}\n", output::wrap(sentence, width));
    }
    if let Some(after) = after {
        text += &format!("\nThe same line, shaped\n\n{}", table(after));
    }
    text
}

fn table(measured: &Measured) -> String {
    let mut table = output::table(["", "DOWN", "UP"]);
    for (name, show) in ROWS {
        table.add_row([name.to_owned(), show(&measured.down), show(&measured.up)]);
    }
    output::table_text(&table)
}

fn waits(delays: &Delays) -> String {
    format!("{}, 95 %: {}", ms(delays.p50), ms(delays.p95))
}

pub(super) fn mbit(bps: f64) -> String {
    match bps {
        bps if bps < 1e7 => format!("{:.3} Mbit/s", bps / 1e6),
        bps => format!("{:.1} Mbit/s", bps / 1e6),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

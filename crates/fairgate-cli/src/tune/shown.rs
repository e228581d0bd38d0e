//! The figures of a measurement as text: for the terminal and for the page.

use crate::output;
use crate::tune::measured::{Delays, Figures, Measured};
use crate::tune::verdict::{Verdict, ms};

/// A row of the table: its name, and how a direction shows it.
pub(crate) type Row = (&'static str, fn(&Measured, &Figures) -> String);

const ROUND_TRIP: &str = "Waiting and loss are of the round trip, of TCP connections that were opened \
                          meanwhile. They count for the direction that is loaded.";
const MAY_NOT_FILL: &str = "and may not fill a deep queue: in other downloads packets may wait longer.";
const NOT_MEASURED: &str = "not measured";

const ROWS: [Row; 9] = [
    ("capacity, IP packets", |_, way| mbit(way.capacity_bps)),
    ("  slowest and fastest tenth", |_, way| {
        format!("{} to {}", mbit(way.low_bps), mbit(way.high_bps))
    }),
    ("  on the line", |_, way| mbit(way.line_bps)),
    ("framing", |measured, way| match way.framing {
        Some(framing) => match framing.line {
            Some(line) => format!("{line}, as given"),
            None => format!("{}, {} bytes of overhead", framing.cells, framing.overhead),
        },
        None if measured.lacks("framing") => NOT_MEASURED.to_owned(),
        None => "not visible".to_owned(),
    }),
    ("waiting without load", |_, way| waits(&way.idle_ms)),
    ("waiting under load", |_, way| waits(&way.loaded_ms)),
    ("loss without load", |_, way| percent(way.loss_idle)),
    ("loss under load", |_, way| percent(way.loss_loaded)),
    ("responsiveness", |_, way| match way.rpm {
        Some(rpm) => format!("{rpm:.0} round trips a minute"),
        None => NOT_MEASURED.to_owned(),
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
        "To {}: round trip {} without load (median; 95 %: {}), packets of {}\n\n{}\n",
        output::name(&before.server),
        ms(round_trip.p50),
        ms(round_trip.p95),
        match before.mtu {
            Some(mtu) => format!("up to {mtu} bytes"),
            None => format!("{} bytes", before.packet),
        },
        table(before)
    );
    let width = usize::from(output::page_width());
    for note in notes(before) {
        text += &format!("{}\n\n", output::wrap(&note, width));
    }
    for sentence in verdict.sentences() {
        text += &format!("{}\n", output::wrap(sentence, width));
    }
    if let Some(after) = after {
        text += &format!("\nThe same line, shaped\n\n{}", table(after));
    }
    text
}

/// Returns what a reader of the figures has to know of the way they were measured: nothing with a server of
/// ours.
pub(crate) fn notes(measured: &Measured) -> Vec<String> {
    let mut notes = Vec::new();
    let congestion = measured.congestion_down.as_deref();
    if !measured.one_way {
        notes.push(ROUND_TRIP.to_owned());
        if congestion != Some("reno") {
            let named = congestion.map_or("a congestion control that it does not name".into(), output::name);
            notes.push(format!("The server sends with {named}, {MAY_NOT_FILL}"));
        }
    }
    let missing: Vec<String> = measured
        .not_measured
        .iter()
        .map(|missing| format!("{} ({})", missing.figure, missing.why))
        .collect();
    if !missing.is_empty() {
        notes.push(format!("Not measured: {}.", missing.join("; ")));
    }
    notes
}

fn table(measured: &Measured) -> String {
    let mut table = output::table(["", "DOWN", "UP"]);
    for (name, show) in ROWS {
        table.add_row([
            name.to_owned(),
            show(measured, &measured.down),
            show(measured, &measured.up),
        ]);
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

//! The tables of one run, for people.

use comfy_table::CellAlignment;
use fairgate_sim::Results;
use fairgate_sim::results::{ClassQueue, ClassResults, ConnectionResults};

use crate::output;

/// The maximum number of flows in the table. If there are more, groups are shown too.
const MOST_ROWS: usize = 40;

pub(super) fn tables(results: &Results) -> String {
    let [from, to] = results.measured_ns.map(|nanos| nanos as f64 / 1e9);
    let mut text = format!(
        "Measured from {from} s to {to} s, seed {}: goodput {}, Jain's index {:.3}.\n\n",
        results.seed,
        mbit(results.goodput_bps),
        results.jain
    );
    text.push_str(&flow_table(results));
    text.push('\n');
    text.push_str(&queue_table(results));
    text.push_str(&class_table(results));
    text.push_str(&observation_table(results));
    text.push_str(&cell_tables(results));
    text.push_str(&format!(
        "\n{} packet-hops, {} events.\n",
        results.packet_hops, results.events
    ));
    text
}

fn flow_table(results: &Results) -> String {
    let mut text = String::new();
    if !results.flows.is_empty() {
        text.push_str(&row_table(results));
    }
    if results.flows.len() != results.groups.len() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&group_table(results));
    }
    text
}

/// Returns a table with a row for each flow.
fn row_table(results: &Results) -> String {
    let header = [
        "FLOW", "GOODPUT", "SENT", "LOST", "MARKED", "DELAY", "P95", "P99", "MAX", "JITTER", "RESENT",
    ];
    let mut table = output::table(header);
    for flow in results.flows.iter().take(MOST_ROWS) {
        let delay = &flow.delay;
        table.add_row([
            flow.name.clone(),
            mbit(flow.goodput_bps),
            flow.sent.to_string(),
            percent(flow.loss_ratio),
            flow.marked.to_string(),
            millis(delay.mean_ns),
            millis(delay.p95_ns),
            millis(delay.p99_ns),
            millis(delay.max_ns),
            millis(flow.jitter_ns),
            flow.connection
                .as_ref()
                .map_or_else(String::new, |connection: &ConnectionResults| {
                    connection.retransmissions.to_string()
                }),
        ]);
    }
    align(&mut table, 1);
    let mut text = output::table_text(&table);
    if results.flows.len() > MOST_ROWS {
        text.push_str(&format!(
            "... and {} more; --json and --out have all\n",
            results.flows.len() - MOST_ROWS
        ));
    }
    text
}

/// Returns a table with a row for each group of flows. If transfers were completed, a second one has their
/// response times.
fn group_table(results: &Results) -> String {
    let mut table = output::table([
        "GROUP", "FLOWS", "ACTIVE", "GOODPUT", "A FLOW", "JAIN", "SENT", "LOST", "DELAY", "P95", "P99",
        "JITTER",
    ]);
    for group in &results.groups {
        table.add_row([
            group.name.clone(),
            group.flows.to_string(),
            format!("{:.1}", group.active_mean),
            mbit(group.goodput_bps),
            mbit(group.goodput.mean_bps),
            format!("{:.3}", group.jain),
            group.sent.to_string(),
            percent(group.loss_ratio),
            millis(group.delay_mean_ns),
            millis(group.delay.p95_ns),
            millis(group.delay.p99_ns),
            millis(group.jitter_ns),
        ]);
    }
    align(&mut table, 1);
    let mut text = output::table_text(&table);
    if results.groups.iter().all(|group| group.transfers.count == 0) {
        return text;
    }
    let mut table = output::table(["GROUP", "TRANSFERS", "RESPONSE TIME", "P50", "P95", "P99", "MAX"]);
    for group in results.groups.iter().filter(|group| group.transfers.count > 0) {
        let transfers = &group.transfers;
        table.add_row([
            group.name.clone(),
            transfers.count.to_string(),
            millis(transfers.mean_ns),
            millis(transfers.p50_ns),
            millis(transfers.p95_ns),
            millis(transfers.p99_ns),
            millis(transfers.max_ns),
        ]);
    }
    align(&mut table, 1);
    text.push('\n');
    text.push_str(&output::table_text(&table));
    text
}

/// Returns a table of the interfaces that packets passed.
fn queue_table(results: &Results) -> String {
    let header = [
        "INTERFACE",
        "DISCIPLINE",
        "RATE",
        "USED",
        "SENT",
        "DROPPED",
        "MARKED",
        "SOJOURN",
        "P95",
        "P99",
        "MAX",
    ];
    let mut table = output::table(header);
    let passed: Vec<_> = results
        .interfaces
        .iter()
        .filter(|interface| interface.enqueued > 0)
        .collect();
    for interface in passed.iter().take(MOST_ROWS) {
        let sojourn = &interface.sojourn;
        table.add_row([
            interface.name.clone(),
            interface.discipline.clone(),
            interface.rate_bps.map_or_else(String::new, mbit),
            interface
                .utilisation
                .map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share)),
            interface.transmitted.to_string(),
            interface.dropped.to_string(),
            interface.marked.to_string(),
            millis(sojourn.mean_ns),
            millis(sojourn.p95_ns),
            millis(sojourn.p99_ns),
            millis(sojourn.max_ns),
        ]);
    }
    align(&mut table, 2);
    let mut text = output::table_text(&table);
    if passed.len() > MOST_ROWS {
        text.push_str(&format!(
            "... and {} more; --json and --out have all\n",
            passed.len() - MOST_ROWS
        ));
    }
    let lossy: Vec<String> = passed
        .iter()
        .filter(|interface| interface.lost > 0)
        .map(|interface| format!("{} {}", interface.name, interface.lost))
        .collect();
    if !lossy.is_empty() {
        text.push_str(&format!(
            "\nPackets transmitted, but lost on links: {}.\n",
            lossy.join(", ")
        ));
    }
    text
}

/// Returns a table of the classes that packets passed, of interfaces with several classes.
fn class_table(results: &Results) -> String {
    let with_classes = results.interfaces.iter().filter(|at| at.classes.len() > 1);
    let passed: Vec<(&str, &ClassResults)> = with_classes
        .flat_map(|at| at.classes.iter().map(|class| (at.name.as_str(), class)))
        .filter(|(_, class)| {
            let enqueued = class.queue.as_ref().map_or(0, |queue| queue.enqueued);
            class.sent > 0 || enqueued > 0
        })
        .collect();
    if passed.is_empty() {
        return String::new();
    }
    let mut table = output::table([
        "CLASS AT",
        "CLASS",
        "DISCIPLINE",
        "RATE",
        "SENT",
        "DROPPED",
        "MARKED",
        "QUEUED",
        "SOJOURN",
    ]);
    let [from, to] = results.measured_ns;
    let seconds = (to - from) as f64 * 1e-9;
    let mut above = "";
    for (interface, class) in passed.iter().take(MOST_ROWS) {
        let of_queue =
            |figure: fn(&ClassQueue) -> String| class.queue.as_ref().map_or_else(String::new, figure);
        let number = match &class.host {
            None => class.class.clone(),
            Some(host) => format!("{} ({host})", class.class),
        };
        table.add_row([
            if *interface == above {
                String::new()
            } else {
                (*interface).to_owned()
            },
            number,
            of_queue(|queue| queue.discipline.clone()),
            mbit((class.sent_bytes as f64 * 8.0 / seconds) as u64),
            class.sent.to_string(),
            of_queue(|queue| queue.dropped.to_string()),
            of_queue(|queue| queue.marked.to_string()),
            of_queue(|queue| queue.backlog_packets.to_string()),
            of_queue(|queue| millis(queue.sojourn_mean_ns)),
        ]);
        above = interface;
    }
    align(&mut table, 3);
    let mut text = format!("\n{}", output::table_text(&table));
    if passed.len() > MOST_ROWS {
        text.push_str(&format!(
            "... and {} more classes; --json has all\n",
            passed.len() - MOST_ROWS
        ));
    }
    text
}

/// Returns a table of the observed variables.
fn observation_table(results: &Results) -> String {
    if results.observations.is_empty() {
        return String::new();
    }
    let mut table = output::table([
        "OBSERVED", "AT", "MEAN", "LEAST", "P5", "P50", "P95", "MOST", "UNIT",
    ]);
    for observation in results.observations.iter().take(MOST_ROWS) {
        let figures = match observation.count {
            0 => vec!["-".to_owned(); 6],
            _ => {
                let [p5, p50, p95] = [5, 50, 95].map(|percent| observation.percentiles[percent]);
                let figures = [
                    observation.mean,
                    observation.least,
                    p5,
                    p50,
                    p95,
                    observation.most,
                ];
                figures.iter().map(|&value| plain(value)).collect()
            }
        };
        let mut row = vec![
            observation.name.clone(),
            place(&observation.interface, observation.class.as_deref()),
        ];
        row.extend(figures);
        row.push(observation.unit.clone());
        table.add_row(row);
    }
    for column in table.columns().skip(2).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = format!("\n{}", output::table_text(&table));
    if results.observations.len() > MOST_ROWS {
        text.push_str(&format!(
            "... and {} more; --json and --out have all\n",
            results.observations.len() - MOST_ROWS
        ));
    }
    text
}

/// Returns an interface and a class of it.
pub(super) fn place(interface: &str, class: Option<&str>) -> String {
    match class {
        None => interface.to_owned(),
        Some(class) => format!("{interface} class {class}"),
    }
}

/// Returns a number with at most three digits after the point.
fn plain(value: f64) -> String {
    format!("{}", (value * 1e3).round() / 1e3)
}

/// Returns a line and a table for each Wi-Fi cell: two rows for each station.
fn cell_tables(results: &Results) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let mut text = String::new();
    for cell in &results.cells {
        text.push_str(&format!(
            "\nCell {} (802.11{}): busy {}, {} of it in {} collisions.\n",
            cell.name,
            cell.standard,
            percent(cell.utilisation),
            percent(cell.collision_share / cell.utilisation.max(f64::MIN_POSITIVE)),
            cell.collisions
        ));
        let mut table = output::table([
            "STATION",
            "",
            "MCS",
            "AIRTIME",
            "DELIVERED",
            "LOST",
            "PPDUS",
            "COLLIDED",
            "A-MPDU",
            "RETRIES",
            "MAC DELAY",
        ]);
        for station in cell.stations.iter().take(MOST_ROWS / 2) {
            for (name, direction, way) in [
                (station.name.as_str(), "down", &station.down),
                ("", "up", &station.up),
            ] {
                table.add_row([
                    name.to_owned(),
                    direction.to_owned(),
                    station.mcs.to_string(),
                    percent(way.airtime),
                    way.delivered.to_string(),
                    way.lost.to_string(),
                    way.ppdus.to_string(),
                    way.collided_ppdus.to_string(),
                    format!("{:.1}", way.ampdu_frames),
                    way.retries.to_string(),
                    millis(way.mac_delay_ns),
                ]);
            }
        }
        align(&mut table, 2);
        text.push_str(&output::table_text(&table));
        if cell.stations.len() > MOST_ROWS / 2 {
            text.push_str(&format!(
                "... and {} more stations; --json and --out have all\n",
                cell.stations.len() - MOST_ROWS / 2
            ));
        }
    }
    text
}

/// Right-aligns the columns from this one on, which hold numbers.
pub(super) fn align(table: &mut output::Table, from: usize) {
    for column in table.columns().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

pub(super) fn mbit(bits_per_second: u64) -> String {
    format!("{:.3} Mbit/s", bits_per_second as f64 * 1e-6)
}

pub(super) fn millis(nanos: u64) -> String {
    format!("{:.3} ms", nanos as f64 * 1e-6)
}

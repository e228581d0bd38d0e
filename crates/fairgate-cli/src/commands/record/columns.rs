//! The rows of a recording as a table.

use fairgate::DropReason;
use fairgate_run_api::{ClassInterval, Percentiles};
use fairgate_sim::results::{Column, Table};

/// Returns a row for each discipline of an interval.
pub(super) fn table(rows: &[ClassInterval]) -> Table {
    let text =
        |of: fn(&ClassInterval) -> &str| Column::Text(rows.iter().map(|row| of(row).to_owned()).collect());
    let count =
        |of: &dyn Fn(&ClassInterval) -> u64| Column::Integer(rows.iter().map(|row| Some(of(row))).collect());
    let real = |of: &dyn Fn(&ClassInterval) -> Option<f64>| {
        Column::Real(rows.iter().map(|row| of(row).map(shortened)).collect())
    };
    let delay = |of: fn(&Percentiles) -> f64| real(&|row| row.delay.as_ref().map(|delay| of(delay) / 1e3));
    let columns = [
        ("time_s", real(&|row| Some(row.at_s))),
        ("from", text(|row| &row.from)),
        ("class", text(|row| &row.class)),
        ("discipline", text(|row| &row.discipline)),
        ("host", text(|row| row.host.as_deref().unwrap_or_default())),
        ("seconds", real(&|row| Some(row.seconds))),
        ("rate_bps", count(&|row| row.rate_bps().round() as u64)),
        ("packets", count(&|row| row.sent.packets)),
        ("bytes", count(&|row| row.sent.bytes)),
        ("delay_ms", real(&|row| Some(row.mean_delay_us? / 1e3))),
        ("delay_p50_ms", delay(|delay| delay.p50_us)),
        ("delay_p95_ms", delay(|delay| delay.p95_us)),
        ("delay_p99_ms", delay(|delay| delay.p99_us)),
        ("delay_max_ms", delay(|delay| delay.max_us)),
        ("dropped", count(&|row| row.drops.values().sum())),
        ("marked", count(&|row| row.marked)),
        ("backlog_packets", count(&|row| row.backlog.packets)),
        ("backlog_bytes", count(&|row| row.backlog.bytes)),
    ];
    let reasons = DropReason::ALL
        .iter()
        .filter(|&&reason| reason != DropReason::Flushed);
    let dropped = reasons.map(|reason| {
        let of_reason = |row: &ClassInterval| row.drops.get(reason.name()).copied().unwrap_or(0);
        (format!("dropped_{}", reason.name()), count(&of_reason))
    });
    let columns = columns.map(|(name, column)| (name.to_owned(), column));
    Table::of(columns.into_iter().chain(dropped).collect())
}

/// Six decimals of seconds and milliseconds are more than clocks and percentiles have.
fn shortened(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

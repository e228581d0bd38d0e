//! Live traffic: `forward`, `precision`, `hostile`, and `fairgate testbed`.

use serde_json::Value;

use super::Blocks;
use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::columns::{Row, rows};
use crate::figures::markdown::{Table, digits};

const QUEUES: [&str; 3] = ["fq_codel", "msfc", "fifo limit=1000"];

pub(super) fn measure(bench: &Bench) -> Result<Blocks> {
    let packets = bench.bench("fairgate-live", "forward", &[])?;
    let shaped = bench.bench("fairgate-live", "precision", &[])?;
    let attacks = bench.bench("fairgate-live", "hostile", &[])?;
    let duration = if bench.is_quick { "1s" } else { "20s" };
    let mut arguments = vec!["testbed", "--duration", duration];
    arguments.extend(QUEUES.iter().flat_map(|queue| ["--queue", queue]));
    let link = bench.fairgate(&arguments)?;
    Ok(vec![
        ("packets", packet_table(&packets)?),
        ("shaped", shaped_table(&shaped)?),
        ("attacks", attack_table(&attacks)?),
        ("link", link_table(&link)?),
    ])
}

/// Million packets a second offered and at the sink, per cent lost, ns of the forwarding thread for a packet.
fn packet_table(text: &str) -> Result<String> {
    let heads = [
        "what forwards",
        "offered, million a second",
        "at the sink",
        "lost",
        "its thread, ns a packet",
    ];
    let mut table = Table::new(1, &heads);
    for Row { name, numbers } in rows(text, 4)? {
        let number = |at: usize| numbers[at].map_or(String::new(), digits);
        table.add(&[name, number(0), number(1), format!("{} %", number(2)), number(3)]);
    }
    Ok(table.text())
}

/// Per cent of the rate, ms of gap, burst and the latest wake-up, per cent of a core.
fn shaped_table(text: &str) -> Result<String> {
    let heads = [
        "tree",
        "of the rate",
        "longest gap, ms",
        "longest burst, ms",
        "latest wake-up, ms",
        "of a core",
    ];
    let mut table = Table::new(1, &heads);
    for Row { name, numbers } in rows(text, 5)? {
        let number =
            |at: usize, unit: &str| numbers[at].map_or(String::new(), |number| format!("{number:.2}{unit}"));
        table.add(&[
            name,
            number(0, " %"),
            number(1, ""),
            number(2, ""),
            number(3, ""),
            number(4, " %"),
        ]);
    }
    Ok(table.text())
}

/// Million frames a second, per cent of pings lost, ms of a ping, MiB.
fn attack_table(text: &str) -> Result<String> {
    let heads = [
        "attack, tree",
        "million frames a second",
        "pings lost",
        "mean ping, ms",
        "memory grew, MiB",
    ];
    let mut table = Table::new(1, &heads);
    for Row { name, numbers } in rows(text, 4)? {
        let number = |at: usize| numbers[at].map_or(String::new(), digits);
        let lost = format!("{} %", number(1));
        table.add(&[name, number(0), lost, number(2), number(3)]);
    }
    Ok(table.text())
}

fn link_table(document: &Value) -> Result<String> {
    let outcomes = document["outcomes"]
        .as_array()
        .ok_or("the testbed's document has no `outcomes`")?;
    let heads = [
        "queue",
        "of the rate",
        "goodput, Mbit/s",
        "Jain's index",
        "idle ping, ms",
        "ping, mean",
        "ping, 95 %",
        "retransmits",
    ];
    let mut table = Table::new(1, &heads);
    for outcome in outcomes {
        let number = |pointer: &str| {
            let number = outcome.pointer(pointer).and_then(Value::as_f64);
            number.ok_or(format!("an outcome of the testbed has no number at `{pointer}`"))
        };
        let scenario = outcome["scenario"]
            .as_str()
            .ok_or("an outcome of the testbed has no `scenario`")?;
        let flows = outcome["flows"]
            .as_array()
            .ok_or("an outcome of the testbed has no `flows`")?;
        let retransmits: u64 = flows.iter().filter_map(|flow| flow["retransmits"].as_u64()).sum();
        table.add(&[
            scenario.to_owned(),
            format!("{:.2} %", 100.0 * number("/frames_bps")? / number("/rate_bps")?),
            digits(number("/goodput_bps")? / 1e6),
            format!("{:.3}", number("/jain")?),
            digits(number("/ping_idle/mean_ms")?),
            digits(number("/ping_load/mean_ms")?),
            digits(number("/ping_load/p95_ms")?),
            retransmits.to_string(),
        ]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_from_what_the_benchmark_prints() {
        let text = packet_table(include_str!("../recorded/forward.txt")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 1 + 2 * 4, "{text}");
        assert!(lines[2].starts_with("| kernel's bridge | "), "{text}");
        assert!(
            lines[2].ends_with(" % |  |"),
            "a bridge of the kernel has no thread: {text}"
        );
        assert!(
            lines[10].starts_with("| tbf 10gbit / fq_codel, AF_XDP | "),
            "{text}"
        );
        assert!(packet_table("SKIPPED: nothing was measured").is_err());
    }

    #[test]
    fn shaped_rates_are_read_from_what_the_benchmark_prints() {
        let text = shaped_table(include_str!("../recorded/precision.txt")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 4 * 4 + 1, "{text}");
        assert!(lines[2].starts_with("| tbf / fq_codel, 1mbit | "), "{text}");
        assert!(lines[18].starts_with("| no traffic |  |  |  |  | "), "{text}");
    }

    #[test]
    fn attacks_are_read_from_what_the_benchmark_prints() {
        let text = attack_table(include_str!("../recorded/hostile.txt")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + 2 * 4, "{text}");
        assert!(lines[2].starts_with("| malformed, fq_codel | "), "{text}");
        assert!(
            lines[9].starts_with("| new flows, tbf 100mbit / fq_codel, two workers | "),
            "{text}"
        );
    }

    #[test]
    fn the_link_is_read_from_the_testbeds_document() {
        let document: Value = serde_json::from_str(include_str!("../recorded/testbed.json")).unwrap();
        let text = link_table(&document).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2 + QUEUES.len(), "{text}");
        for (line, queue) in lines[2..].iter().zip(QUEUES) {
            assert!(line.starts_with(&format!("| {queue} | ")), "{line}");
        }
        assert!(
            link_table(&serde_json::json!({ "outcomes": [{}] }))
                .unwrap_err()
                .contains("scenario")
        );
    }
}

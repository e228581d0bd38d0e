//! The metrics by name. `docs/metrics.md` lists them.

use std::fmt;

use fairgate_run_api::{DirectionStatus, Status};
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use super::classes::{Row, Rows};
use super::figures::Figures;
use super::network::NodeRow;

/// Encodes the metrics of the whole run.
pub(super) fn of_run(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let version = [
        ("name", status.name.as_str()),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    encoder
        .encode_descriptor("run", "The run", None, MetricType::Info)?
        .encode_info(&version)?;
    let mut run = Run(encoder);
    let (processor, changes, passed_by) = (&status.processor, &status.changes, &status.passed_by);
    run.gauge(
        "uptime",
        "Time since the start of the run",
        Some(Unit::Seconds),
        status.uptime_s,
    )?;
    let isolated = i64::from(status.isolated);
    run.gauge(
        "isolated",
        "1 if this machine's own stack is kept away",
        None,
        isolated,
    )?;
    run.gauge("revision", "Revision of the trees", None, status.revision as i64)?;
    run.counter(
        "changes_applied",
        "Changes of the trees that were made",
        changes.applied,
    )?;
    run.counter(
        "changes_refused",
        "Changes of the trees that were refused",
        changes.refused,
    )?;
    run.counter(
        "changes_dropped_packets",
        "Packets that changes have dropped",
        changes.dropped,
    )?;
    let longest = changes.longest_pause_us * 1e-6;
    let help = "Longest time for which a change stopped forwarding";
    run.gauge("changes_longest_pause", help, Some(Unit::Seconds), longest)?;
    let realtime = i64::from(processor.realtime);
    run.gauge(
        "processor_realtime",
        "1 if forwarding has real-time priority",
        None,
        realtime,
    )?;
    run.counter(
        "processor_wake_ups",
        "Wake-ups of the forwarding threads",
        processor.wake_ups,
    )?;
    let late = processor.late_wake_ups;
    run.counter(
        "processor_late_wake_ups",
        "Wake-ups that were more than 1 ms late",
        late,
    )?;
    let latest = processor.latest_us * 1e-6;
    run.gauge(
        "processor_latest_wake_up",
        "Latest wake-up",
        Some(Unit::Seconds),
        latest,
    )?;
    let help = "Times without progress for more than 5 ms although there was work";
    run.counter("processor_stalls", help, processor.stalls)?;
    let longest = processor.longest_stall_us * 1e-6;
    run.gauge(
        "processor_longest_stall",
        "Longest stall",
        Some(Unit::Seconds),
        longest,
    )?;
    let help = "Times in which packets went past the run, unshaped";
    run.counter("passed_by", help, passed_by.times)?;
    let help = "Time in which packets went past the run, unshaped";
    run.gauge("passed_by", help, Some(Unit::Seconds), passed_by.seconds)
}

/// Encodes metrics without labels.
struct Run<'e, 'w>(&'e mut DescriptorEncoder<'w>);

impl Run<'_, '_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), fmt::Error> {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        encoder.encode_counter::<NoLabelSet, u64, u64>(&value, None)
    }

    fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        value: impl EncodeGaugeValue,
    ) -> Result<(), fmt::Error> {
        let mut encoder = self
            .0
            .encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        encoder.encode_gauge(&value)
    }
}

/// Encodes what is counted outside of the trees, by direction.
pub(super) fn of_directions(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    type Value = fn(&DirectionStatus) -> u64;
    let counters: [(&str, &str, Value); 5] = [
        (
            "sent_bytes",
            "Bytes handed to the kernel, with Ethernet headers",
            |it| it.sent.bytes,
        ),
        ("sent_packets", "Frames handed to the kernel", |it| {
            it.sent.packets
        }),
        (
            "socket_full",
            "Times that a socket had no room; nothing is lost by this",
            |it| it.socket_full,
        ),
        (
            "super_packets",
            "Super-packets that were scheduled as one packet each; the tree counts each as one",
            |it| it.super_packets,
        ),
        (
            "passed_by_packets",
            "Packets that went past the run, unshaped; the tree does not count them",
            |it| it.passed_by,
        ),
    ];
    for (name, help, value) in counters {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for direction in &status.directions {
            counter(&mut family, &labels(direction), value(direction))?;
        }
    }
    let help = "Frames lost outside of the trees";
    let mut family = encoder.encode_descriptor("lost_packets", help, None, MetricType::Counter)?;
    for direction in &status.directions {
        let lost = &direction.lost;
        let reasons = [
            ("ring_full", lost.ring_full),
            ("no_frame", lost.no_frame),
            ("truncated", lost.truncated),
            ("too_long", lost.too_long),
            ("unsupported_offload", lost.unsupported_offload),
            ("tiny_segments", lost.tiny_segments),
            ("refused", lost.refused),
        ];
        for (reason, packets) in reasons {
            let [from, to] = labels(direction);
            counter(&mut family, &[from, to, ("reason", reason)], packets)?;
        }
    }
    let help = "Frames between tree and socket";
    let mut family = encoder.encode_descriptor("in_line_packets", help, None, MetricType::Gauge)?;
    for direction in &status.directions {
        gauge(&mut family, &labels(direction), direction.in_line as i64)?;
    }
    let help = "Time in the tree since the start of the run";
    let seconds = Some(&Unit::Seconds);
    let mut family = encoder.encode_descriptor("delay_percentile", help, seconds, MetricType::Gauge)?;
    for direction in &status.directions {
        let delay = &direction.sojourn;
        let percentiles = [
            ("50", delay.p50_us),
            ("95", delay.p95_us),
            ("99", delay.p99_us),
            ("100", delay.max_us),
        ];
        for (percentile, micros) in percentiles {
            let [from, to] = labels(direction);
            gauge(
                &mut family,
                &[from, to, ("percentile", percentile)],
                micros * 1e-6,
            )?;
        }
    }
    Ok(())
}

/// Encodes the rates that follow the line, if there are any.
pub(super) fn of_autorate(status: &Status, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let autorate = status.autorate.as_ref();
    let directions = || autorate.iter().flat_map(|autorate| &autorate.directions);
    let help = "Rate that follows the line";
    let mut family =
        encoder.encode_descriptor("autorate_rate_bits_per_second", help, None, MetricType::Gauge)?;
    for direction in directions() {
        gauge(
            &mut family,
            &[("from", &direction.from)],
            direction.rate_bps as i64,
        )?;
    }
    let help = "1 for what is done with this rate";
    let mut family = encoder.encode_descriptor("autorate_state", help, None, MetricType::Gauge)?;
    for direction in directions() {
        gauge(
            &mut family,
            &[("from", &direction.from), ("state", &direction.state)],
            1,
        )?;
    }
    let delays: [(&str, &str, Option<f64>); 2] = [
        (
            "autorate_baseline",
            "Round trip of a line without load",
            autorate.and_then(|autorate| autorate.baseline_us),
        ),
        (
            "autorate_excess",
            "How much longer the last round trips were",
            autorate.and_then(|autorate| autorate.excess_us),
        ),
    ];
    for (name, help, micros) in delays {
        let mut family = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Gauge)?;
        if let Some(micros) = micros {
            family.encode_gauge(&(micros * 1e-6))?;
        }
    }
    let counts: [(&str, &str, Option<u64>); 2] = [
        (
            "autorate_changes",
            "Times that a tree has got another rate",
            autorate.map(|autorate| autorate.changes),
        ),
        (
            "autorate_refused",
            "Times that a tree has refused a rate",
            autorate.map(|autorate| autorate.refused),
        ),
    ];
    for (name, help, count) in counts {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        if let Some(count) = count {
            family.encode_counter::<NoLabelSet, u64, u64>(&count, None)?;
        }
    }
    Ok(())
}

fn labels(direction: &DirectionStatus) -> [(&str, &str); 2] {
    [("from", &direction.from), ("to", &direction.to)]
}

/// Encodes what the disciplines have counted, by class.
pub(super) fn of_classes(rows: &Rows, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    type Value = fn(&Figures) -> u64;
    let counters: [(&str, &str, Value); 5] = [
        ("class_sent_bytes", "Bytes that have left the class", |it| {
            it.sent.bytes
        }),
        ("class_sent_packets", "Packets that have left the class", |it| {
            it.sent.packets
        }),
        (
            "class_dropped_bytes",
            "Bytes that were dropped in the class",
            |it| it.dropped.bytes,
        ),
        (
            "class_marked_packets",
            "Packets marked with Congestion Experienced",
            |it| it.marked,
        ),
        (
            "class_overlimits",
            "Times that nothing could be sent although packets waited",
            |it| it.overlimits,
        ),
    ];
    for (name, help, value) in counters {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for row in &rows.rows {
            counter(&mut family, &row.labels(), value(&row.figures))?;
        }
    }
    let help = "Packets that were dropped in the class, by reason";
    let mut family = encoder.encode_descriptor("class_dropped_packets", help, None, MetricType::Counter)?;
    for row in &rows.rows {
        for (reason, packets) in &row.figures.drops {
            let mut labels = row.labels();
            labels.push(("reason", reason));
            counter(&mut family, &labels, *packets)?;
        }
    }
    let help = "Sum of the times that packets have spent in the class";
    let seconds = Some(&Unit::Seconds);
    let mut family = encoder.encode_descriptor("class_delay", help, seconds, MetricType::Counter)?;
    for row in &rows.rows {
        let labels = row.labels();
        let mut one = family.encode_family(&labels)?;
        one.encode_counter::<NoLabelSet, f64, u64>(&(row.figures.delay_ns as f64 * 1e-9), None)?;
    }
    let gauges: [(&str, &str, Value); 2] = [
        ("class_backlog_bytes", "Bytes that wait in the class", |it| {
            it.backlog.bytes
        }),
        ("class_backlog_packets", "Packets that wait in the class", |it| {
            it.backlog.packets
        }),
    ];
    for (name, help, value) in gauges {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for row in &rows.rows {
            gauge(&mut family, &row.labels(), value(&row.figures) as i64)?;
        }
    }
    let help = "What the class of a subscriber sends at most";
    let mut family =
        encoder.encode_descriptor("class_limit_bits_per_second", help, None, MetricType::Gauge)?;
    for row in &rows.rows {
        if let Some(limit) = row.listed.limit_bps {
            gauge(&mut family, &row.labels(), limit as i64)?;
        }
    }
    let help = "Classes that packets have come to and that have series of their own";
    let mut family = encoder.encode_descriptor("classes", help, None, MetricType::Gauge)?;
    for (from, named, _) in &rows.counts {
        gauge(&mut family, &[("from", from.as_str())], *named as i64)?;
    }
    let help = "Classes that packets have come to and that are summed up in class=\"other\"";
    let mut family = encoder.encode_descriptor("classes_summed", help, None, MetricType::Gauge)?;
    for (from, _, summed) in &rows.counts {
        gauge(&mut family, &[("from", from.as_str())], *summed as i64)?;
    }
    let help = "Classes of a direction that have series of their own at most";
    Run(encoder).gauge("classes_limit", help, None, rows.most as i64)
}

/// Encodes what the nodes of a network have sent, and what is below them.
pub(super) fn of_nodes(rows: &Rows, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    type Value = fn(&NodeRow) -> u64;
    let counters: [(&str, &str, Value); 4] = [
        ("node_sent_bytes", "Bytes that have left the node", |it| {
            it.sent.bytes
        }),
        ("node_sent_packets", "Packets that have left the node", |it| {
            it.sent.packets
        }),
        (
            "node_dropped_packets",
            "Packets that were dropped below the node",
            |it| it.figures.dropped.packets,
        ),
        (
            "node_marked_packets",
            "Packets below the node that were marked with Congestion Experienced",
            |it| it.figures.marked,
        ),
    ];
    for (name, help, value) in counters {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for row in &rows.nodes {
            counter(&mut family, &row.labels(), value(row))?;
        }
    }
    let help = "Sum of the times that packets have spent below the node";
    let seconds = Some(&Unit::Seconds);
    let mut family = encoder.encode_descriptor("node_delay", help, seconds, MetricType::Counter)?;
    for row in &rows.nodes {
        let labels = row.labels();
        let mut one = family.encode_family(&labels)?;
        one.encode_counter::<NoLabelSet, f64, u64>(&(row.figures.delay_ns as f64 * 1e-9), None)?;
    }
    let gauges: [(&str, &str, Value); 2] = [
        ("node_backlog_bytes", "Bytes that wait below the node", |it| {
            it.figures.backlog.bytes
        }),
        (
            "node_limit_bits_per_second",
            "What the node sends at most",
            |it| it.limit_bps,
        ),
    ];
    for (name, help, value) in gauges {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for row in &rows.nodes {
            gauge(&mut family, &row.labels(), value(row) as i64)?;
        }
    }
    Ok(())
}

impl NodeRow {
    fn labels(&self) -> [(&str, &str); 4] {
        [
            ("from", &self.from),
            ("class", &self.class),
            ("node", &self.name),
            ("above", &self.above),
        ]
    }
}

impl Row {
    fn labels(&self) -> Vec<(&str, &str)> {
        let own = [
            ("from", &self.from),
            ("class", &self.class),
            ("depth", &self.depth),
            ("discipline", &self.discipline),
        ];
        let listed = self.listed.labels.iter().map(|(label, value)| (*label, value));
        let all = own.into_iter().chain(listed);
        all.map(|(label, value)| (label, value.as_str())).collect()
    }
}

fn counter(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: u64,
) -> Result<(), fmt::Error> {
    let mut one = family.encode_family(labels)?;
    one.encode_counter::<NoLabelSet, u64, u64>(&value, None)
}

fn gauge(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    value: impl EncodeGaugeValue,
) -> Result<(), fmt::Error> {
    family.encode_family(labels)?.encode_gauge(&value)
}

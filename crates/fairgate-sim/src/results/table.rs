//! Results as tables, for files that other programs read.

use crate::results::{Durations, Results};

/// A column with one value per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Text, such as names.
    Text(Vec<String>),
    /// Integers: counts, bits per second, nanoseconds.
    Integer(Vec<Option<u64>>),
    /// Real numbers, such as ratios.
    Real(Vec<Option<f64>>),
}

/// Named columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<(String, Column)>,
    rows: usize,
}

impl Table {
    pub(super) fn new(rows: usize) -> Table {
        Table {
            columns: Vec::new(),
            rows,
        }
    }

    /// Returns the columns in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn text<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> &str) {
        let values = rows.iter().map(|row| value(row).to_owned()).collect();
        self.columns.push((name.to_owned(), Column::Text(values)));
    }

    pub(super) fn integer<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<u64>) {
        let values = rows.iter().map(value).collect();
        self.columns.push((name.to_owned(), Column::Integer(values)));
    }

    pub(super) fn real<T>(&mut self, name: &str, rows: &[T], value: impl Fn(&T) -> Option<f64>) {
        let values = rows.iter().map(value).collect();
        self.columns.push((name.to_owned(), Column::Real(values)));
    }

    fn durations<T>(&mut self, prefix: &str, rows: &[T], value: impl Fn(&T) -> &Durations) {
        type Field = fn(&Durations) -> u64;
        let fields: [(&str, Field); 8] = [
            ("mean", |durations| durations.mean_ns),
            ("deviation", |durations| durations.deviation_ns),
            ("min", |durations| durations.min_ns),
            ("p50", |durations| durations.p50_ns),
            ("p95", |durations| durations.p95_ns),
            ("p99", |durations| durations.p99_ns),
            ("p999", |durations| durations.p999_ns),
            ("max", |durations| durations.max_ns),
        ];
        for (name, field) in fields {
            self.integer(&format!("{prefix}_{name}_ns"), rows, |row| {
                Some(field(value(row)))
            });
        }
    }
}

/// A point of a time series.
struct Point<'a> {
    time_ns: u64,
    subject: &'a str,
    quantity: &'static str,
    value: u64,
}

impl Results {
    /// Returns a table with one row per flow.
    pub fn flow_table(&self) -> Table {
        let flows = &self.flows;
        let mut table = Table::new(flows.len());
        table.text("flow", flows, |flow| &flow.name);
        table.text("group", flows, |flow| &flow.group);
        table.text("source", flows, |flow| &flow.source);
        table.text("destination", flows, |flow| &flow.destination);
        table.text("transport", flows, |flow| &flow.transport);
        table.integer("sent", flows, |flow| Some(flow.sent));
        table.integer("received", flows, |flow| Some(flow.received));
        table.integer("lost", flows, |flow| Some(flow.lost));
        table.real("loss_ratio", flows, |flow| Some(flow.loss_ratio));
        table.integer("marked", flows, |flow| Some(flow.marked));
        table.integer("throughput_bps", flows, |flow| Some(flow.throughput_bps));
        table.integer("goodput_bps", flows, |flow| Some(flow.goodput_bps));
        table.durations("delay", flows, |flow| &flow.delay);
        table.integer("jitter_ns", flows, |flow| Some(flow.jitter_ns));
        table.integer("retransmissions", flows, |flow| {
            flow.connection
                .as_ref()
                .map(|connection| connection.retransmissions)
        });
        table.integer("timeouts", flows, |flow| {
            flow.connection.as_ref().map(|connection| connection.timeouts)
        });
        table
    }

    /// Returns a table with one row per interface.
    pub fn interface_table(&self) -> Table {
        let interfaces = &self.interfaces;
        let mut table = Table::new(interfaces.len());
        table.text("interface", interfaces, |interface| &interface.name);
        table.text("discipline", interfaces, |interface| &interface.discipline);
        table.integer("rate_bps", interfaces, |interface| interface.rate_bps);
        table.real("utilisation", interfaces, |interface| interface.utilisation);
        table.integer("enqueued", interfaces, |interface| Some(interface.enqueued));
        table.integer("transmitted", interfaces, |interface| Some(interface.transmitted));
        table.integer("transmitted_bytes", interfaces, |interface| {
            Some(interface.transmitted_bytes)
        });
        table.integer("dropped", interfaces, |interface| Some(interface.dropped));
        table.integer("marked", interfaces, |interface| Some(interface.marked));
        table.durations("sojourn", interfaces, |interface| &interface.sojourn);
        table
    }

    /// Returns a table with one row per point of each time series. `time_ns` is the end of the interval.
    pub fn series_table(&self) -> Table {
        let mut points = Vec::new();
        let mut add = |subject, quantity, values: &mut dyn Iterator<Item = u64>| {
            for (index, value) in values.enumerate() {
                points.push(Point {
                    time_ns: (index as u64 + 1) * self.interval_ns,
                    subject,
                    quantity,
                    value,
                });
            }
        };
        for flow in &self.flows {
            let throughput = &flow.throughput_series_bps;
            add(&flow.name, "throughput_bps", &mut throughput.iter().copied());
            if let Some(connection) = &flow.connection {
                let window = &connection.window_series_segments;
                add(
                    &flow.name,
                    "window_segments",
                    &mut window.iter().map(|&value| value.into()),
                );
                add(
                    &flow.name,
                    "rtt_ns",
                    &mut connection.rtt_series_ns.iter().copied(),
                );
            }
        }
        for interface in &self.interfaces {
            for (quantity, values) in [
                ("backlog_packets", &interface.backlog_series_packets),
                ("backlog_bytes", &interface.backlog_series_bytes),
                ("sojourn_ns", &interface.sojourn_series_ns),
            ] {
                add(&interface.name, quantity, &mut values.iter().copied());
            }
        }
        let mut table = Table::new(points.len());
        table.integer("time_ns", &points, |point| Some(point.time_ns));
        table.text("subject", &points, |point| point.subject);
        table.text("quantity", &points, |point| point.quantity);
        table.integer("value", &points, |point| Some(point.value));
        table
    }
}

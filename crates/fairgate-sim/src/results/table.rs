//! Results as tables, for files that other programs read.

use crate::results::{Durations, ObservationResults, Rates, Results};

/// A column with one value per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Text, such as names.
    Text(Vec<String>),
    /// Integers: counts, bits per second, nanoseconds.
    Integer(Vec<Option<u64>>),
    /// Real numbers, such as ratios.
    Real(Vec<Option<f64>>),
    /// Flags, such as a parameter that a sweep switches.
    Flag(Vec<bool>),
}

impl Column {
    /// Returns the number of values, missing ones included.
    fn len(&self) -> usize {
        match self {
            Column::Text(values) => values.len(),
            Column::Integer(values) => values.len(),
            Column::Real(values) => values.len(),
            Column::Flag(values) => values.len(),
        }
    }

    /// Returns the value in a row as a number. Text is read as a number, because all columns of a CSV file
    /// are text. Returns `None` if the value is missing or no number.
    pub fn number(&self, row: usize) -> Option<f64> {
        match self {
            Column::Text(values) => values[row].parse().ok(),
            Column::Integer(values) => values[row].map(|value| value as f64),
            Column::Real(values) => values[row],
            Column::Flag(values) => Some(values[row].into()),
        }
    }

    /// Appends the rows of a column of the same type.
    fn append(&mut self, other: Column) {
        match (self, other) {
            (Column::Text(all), Column::Text(more)) => all.extend(more),
            (Column::Integer(all), Column::Integer(more)) => all.extend(more),
            (Column::Real(all), Column::Real(more)) => all.extend(more),
            (Column::Flag(all), Column::Flag(more)) => all.extend(more),
            _ => panic!("tables with the same columns have the same types"),
        }
    }
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

    /// Returns a table of these columns.
    ///
    /// # Panics
    /// If they have different lengths.
    pub fn of(columns: Vec<(String, Column)>) -> Table {
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        assert!(
            columns.iter().all(|(_, column)| column.len() == rows),
            "the columns of a table have the same length"
        );
        Table { columns, rows }
    }

    /// Returns the column of this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns()
            .find(|(known, _)| *known == name)
            .map(|(_, column)| column)
    }

    /// Returns the columns in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Column)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the rows of all tables, which have the same columns. A first column, `name`, holds the number
    /// of each row's table.
    pub fn stacked(name: &str, tables: impl IntoIterator<Item = (u64, Table)>) -> Table {
        let numbered = tables.into_iter().map(|(number, table)| {
            let numbers = Column::Integer(vec![Some(number); table.rows]);
            table.with_first(vec![(name.to_owned(), numbers)])
        });
        let empty = || Table {
            columns: vec![(name.to_owned(), Column::Integer(Vec::new()))],
            rows: 0,
        };
        Table::concatenated(numbered).unwrap_or_else(empty)
    }

    /// Returns the rows of all tables, which have the same columns. Returns none if there is no table.
    pub fn concatenated(tables: impl IntoIterator<Item = Table>) -> Option<Table> {
        tables.into_iter().reduce(|mut all, more| {
            all.rows += more.rows;
            for ((_, all), (_, more)) in all.columns.iter_mut().zip(more.columns) {
                all.append(more);
            }
            all
        })
    }

    /// Returns the table with more columns, of as many rows, before its own.
    pub fn with_first(self, mut columns: Vec<(String, Column)>) -> Table {
        columns.extend(self.columns);
        Table {
            columns,
            rows: self.rows,
        }
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

impl Table {
    fn rates<T>(&mut self, prefix: &str, rows: &[T], value: impl Fn(&T) -> &Rates) {
        type Field = fn(&Rates) -> u64;
        let fields: [(&str, Field); 7] = [
            ("mean", |rates| rates.mean_bps),
            ("deviation", |rates| rates.deviation_bps),
            ("min", |rates| rates.min_bps),
            ("p5", |rates| rates.p5_bps),
            ("p50", |rates| rates.p50_bps),
            ("p95", |rates| rates.p95_bps),
            ("max", |rates| rates.max_bps),
        ];
        for (name, field) in fields {
            self.integer(&format!("{prefix}_{name}_bps"), rows, |row| {
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
        table.integer("started_ns", flows, |flow| Some(flow.started_ns));
        table.integer("ended_ns", flows, |flow| flow.ended_ns);
        table
    }

    /// Returns a table with one row per group of flows.
    pub fn group_table(&self) -> Table {
        let groups = &self.groups;
        let mut table = Table::new(groups.len());
        table.text("group", groups, |group| &group.name);
        table.text("transport", groups, |group| &group.transport);
        table.integer("flows", groups, |group| Some(group.flows));
        table.integer("started", groups, |group| Some(group.started));
        table.integer("ended", groups, |group| Some(group.ended));
        table.integer("gave_up", groups, |group| Some(group.gave_up));
        table.integer("offered", groups, |group| Some(group.offered));
        table.integer("blocked", groups, |group| Some(group.blocked));
        table.integer("active", groups, |group| Some(group.active));
        table.real("active_mean", groups, |group| Some(group.active_mean));
        table.integer("sent", groups, |group| Some(group.sent));
        table.integer("received", groups, |group| Some(group.received));
        table.integer("lost", groups, |group| Some(group.lost));
        table.real("loss_ratio", groups, |group| Some(group.loss_ratio));
        table.integer("marked", groups, |group| Some(group.marked));
        table.integer("throughput_bps", groups, |group| Some(group.throughput_bps));
        table.integer("goodput_bps", groups, |group| Some(group.goodput_bps));
        table.real("jain", groups, |group| Some(group.jain));
        table.rates("flow_goodput", groups, |group| &group.goodput);
        table.durations("delay", groups, |group| &group.delay);
        table.integer("delay_harmonic_ns", groups, |group| Some(group.delay_harmonic_ns));
        table.integer("delay_harmonic_of_flows_ns", groups, |group| {
            Some(group.delay_harmonic_of_flows_ns)
        });
        table.durations("flow_jitter", groups, |group| &group.jitter);
        table.integer("transfers", groups, |group| Some(group.transfers.count));
        table.durations("transfer", groups, |group| &group.transfers);
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
        table.integer("lost", interfaces, |interface| Some(interface.lost));
        table.durations("sojourn", interfaces, |interface| &interface.sojourn);
        table
    }

    /// Returns a table with one row per observed value. `time_ns` is the end of the interval.
    pub fn observation_table(&self) -> Table {
        let observations = self.observations.iter();
        let points: Vec<(u64, &ObservationResults, f64)> = observations
            .flat_map(|observation| {
                let values = (1..).zip(&observation.series);
                values.filter_map(move |(number, value)| Some((number, observation, (*value)?)))
            })
            .collect();
        let mut table = Table::new(points.len());
        table.integer("time_ns", &points, |(number, _, _)| {
            Some(number * self.interval_ns)
        });
        table.text("observation", &points, |(_, observation, _)| &observation.name);
        table.text("interface", &points, |(_, observation, _)| &observation.interface);
        table.text("class", &points, |(_, observation, _)| {
            observation.class.as_deref().unwrap_or_default()
        });
        table.text("variable", &points, |(_, observation, _)| &observation.variable);
        table.text("unit", &points, |(_, observation, _)| &observation.unit);
        table.real("value", &points, |(_, _, value)| Some(*value));
        table
    }

    /// Returns a table with one row per point of each time series. `time_ns` is the end of the interval.
    pub fn series_table(&self) -> Table {
        let mut points = Vec::new();
        let mut add = |subject, quantity, from_ns: u64, values: &mut dyn Iterator<Item = u64>| {
            for (index, value) in values.enumerate() {
                points.push(Point {
                    time_ns: from_ns + (index as u64 + 1) * self.interval_ns,
                    subject,
                    quantity,
                    value,
                });
            }
        };
        for flow in &self.flows {
            let throughput = &flow.throughput_series_bps;
            let from = flow.series_from_ns;
            add(
                &flow.name,
                "throughput_bps",
                from,
                &mut throughput.iter().copied(),
            );
            if let Some(connection) = &flow.connection {
                let window = &connection.window_series_segments;
                add(
                    &flow.name,
                    "window_segments",
                    from,
                    &mut window.iter().map(|&value| value.into()),
                );
                add(
                    &flow.name,
                    "rtt_ns",
                    from,
                    &mut connection.rtt_series_ns.iter().copied(),
                );
            }
        }
        // A group of one flow has the flow's name and series.
        for (group, flows) in self.groups.iter().zip(self.flows_by_group()) {
            if flows.first().is_some_and(|flow| flow.name == group.name) {
                continue;
            }
            let throughput = &group.throughput_series_bps;
            add(&group.name, "throughput_bps", 0, &mut throughput.iter().copied());
            let mut active = group.active_series.iter().map(|&flows| flows.into());
            add(&group.name, "active_flows", 0, &mut active);
        }
        for interface in &self.interfaces {
            for (quantity, values) in [
                ("backlog_packets", &interface.backlog_series_packets),
                ("backlog_bytes", &interface.backlog_series_bytes),
                ("sojourn_ns", &interface.sojourn_series_ns),
            ] {
                add(&interface.name, quantity, 0, &mut values.iter().copied());
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

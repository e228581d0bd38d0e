//! A qdisc or a class with its options and statistics.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::json::as_map;
use crate::tc::amount::rate as rate_text;
use crate::tc::display::{Amount, Detail, EstimatedRate, Id, Shown, State, TreeState};

/// A qdisc or a class. Its JSON form has tc's keys for a qdisc, in tc's order.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    kind: &'static str,
    handle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dev: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<bool>,
    /// Only of a root: one reference from the device's single queue, and one from the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    refcnt: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leaf: Option<String>,
    /// Only of a class that is assigned to a host.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    options: Map<String, Value>,
    #[serde(flatten)]
    counters: Counters,
    /// Counters that only this kind has.
    #[serde(flatten)]
    own: Map<String, Value>,
    #[serde(skip)]
    is_class: bool,
    #[serde(skip)]
    text: Text,
}

/// The counters that all qdiscs and classes have.
#[derive(Clone, Debug, Serialize)]
struct Counters {
    bytes: u64,
    packets: u64,
    drops: u64,
    overlimits: u64,
    requeues: u64,
    /// Of an estimator, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u64>,
    /// Of an estimator, packets per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pps: Option<u64>,
    backlog: u64,
    qlen: u64,
}

/// The text of a line that depends on its kind.
#[derive(Clone, Debug)]
struct Text {
    options: String,
    statistics: Vec<String>,
}

const ROOT_REFERENCES: u8 = 2;

impl Line {
    /// Returns one line, or one line for each host if the path leads through a class for hosts. A qdisc
    /// inside such a class has no handle, because there are many of it.
    pub(super) fn all_of(
        shown: &Shown,
        tree: &TreeState,
        device: Option<&str>,
        in_detail: bool,
    ) -> Vec<Line> {
        let line = |state: &State, rate| Line::of(shown, device, state, rate, in_detail);
        let Some(hosts) = &shown.hosts else {
            let state = match shown.is_class {
                true => tree.class(&shown.path),
                false => tree.at(&shown.path).map(|node| node.state.clone()),
            };
            let rate = tree.rate(&shown.path, shown.is_class);
            return vec![line(&state.unwrap_or_default(), rate)];
        };
        let (above, below) = shown.path.split_at(hosts.depth);
        let Some(holder) = above.split_last().and_then(|(_, path)| tree.at(path)) else {
            return Vec::new();
        };
        let of_host = |(number, class): (&u32, &TreeState)| {
            let found = class.at(below).map(|node| node.state.clone());
            let rate = match (shown.is_class, below.is_empty()) {
                (true, true) => holder.class_rates.get(number).copied(),
                (is_class, _) => class.rate(below, is_class),
            };
            let mut line = line(&found.unwrap_or_default(), rate);
            line.leaf = None;
            line.host.clone_from(&class.host);
            let own = |id: Id| Id { class: *number, ..id }.to_string();
            match (shown.is_class, below.is_empty()) {
                (true, true) => line.handle = own(shown.id),
                (false, true) => line.parent = shown.parent.map(own),
                (_, false) => {}
            }
            if !shown.is_class {
                line.handle = "0:".to_owned();
            }
            line
        };
        holder
            .children
            .range(hosts.classes.clone())
            .map(of_host)
            .collect()
    }

    fn of(
        shown: &Shown,
        device: Option<&str>,
        state: &State,
        rate: Option<EstimatedRate>,
        in_detail: bool,
    ) -> Line {
        let handle = |major: u16| format!("{major:x}:");
        let options = shown.options(state, in_detail);
        let rows = shown.statistics(state);
        // Until the first sample it is 0.
        let rate = shown.has_estimator.then(|| rate.unwrap_or_default());
        let is_root = shown.parent.is_none();
        let statistics = &state.statistics;
        Line {
            kind: shown.kind,
            handle: shown.id.to_string(),
            dev: device.map(str::to_owned),
            root: is_root.then_some(true),
            refcnt: (is_root && !shown.is_class).then_some(ROOT_REFERENCES),
            parent: shown.parent.map(|parent| parent.to_string()),
            leaf: shown.leaf.map(handle),
            host: None,
            options: as_map(&options),
            counters: Counters {
                bytes: statistics.dequeued.bytes,
                packets: statistics.dequeued.packets,
                drops: statistics.dropped.packets,
                // A qdisc of htb counts how often its classes were stopped (`htb_dump` in sch_htb.c).
                overlimits: state.number("class_overlimits").unwrap_or(statistics.overlimits),
                requeues: 0,
                rate: rate.map(|rate| rate.bytes),
                pps: rate.map(|rate| rate.packets),
                backlog: statistics.backlog().bytes,
                qlen: statistics.backlog().packets,
            },
            own: rows.iter().flat_map(|row| as_map(&row.details)).collect(),
            is_class: shown.is_class,
            text: Text {
                options: words(&options),
                statistics: rows
                    .iter()
                    .map(|row| match &row.text {
                        Some(text) => text.clone(),
                        None => format!("{}{}", row.indent, words(&row.details)),
                    })
                    .collect(),
            },
        }
    }

    /// Appends the line as tc prints it, with the statistics below it if they are asked for (`-s`).
    pub fn add_to(&self, text: &mut String, with_statistics: bool) {
        let object = if self.is_class { "class" } else { "qdisc" };
        let _ = write!(text, "{object} {} {}", self.kind, self.handle);
        let mut word = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                let _ = write!(text, " {name} {value}");
            }
        };
        word("dev", &self.dev);
        match (&self.parent, self.refcnt) {
            (Some(_), _) => word("parent", &self.parent),
            (None, Some(references)) => word("root refcnt", &Some(references.to_string())),
            (None, None) => text.push_str(" root"),
        }
        let mut word = |name: &str, value: &Option<String>| {
            if let Some(value) = value {
                let _ = write!(text, " {name} {value}");
            }
        };
        word("leaf", &self.leaf);
        // tc ends every part of the line with a space.
        let _ = write!(text, " {}", self.text.options);
        if self.text.options.is_empty() {
            text.pop();
        }
        if let Some(host) = &self.host {
            let _ = write!(text, " host {host}");
        }
        text.push_str(" \n");
        if !with_statistics {
            return;
        }
        let Counters {
            bytes,
            packets,
            drops,
            overlimits,
            requeues,
            rate,
            pps,
            backlog,
            qlen,
        } = self.counters;
        let backlog = Amount::Size(backlog).text().unwrap_or_default();
        let _ = writeln!(
            text,
            " Sent {bytes} bytes {packets} pkt (dropped {drops}, overlimits {overlimits} \
             requeues {requeues}) "
        );
        if let Some((rate, pps)) = rate.zip(pps) {
            let _ = write!(text, " rate {} {pps}pps", rate_text(rate.saturating_mul(8)));
        }
        let _ = writeln!(text, " backlog {backlog} {qlen}p requeues {requeues}");
        for line in &self.text.statistics {
            let _ = writeln!(text, "{line}");
        }
        // tc of iproute2 6.1 and later ends a class with an empty line.
        if self.is_class {
            text.push('\n');
        }
    }

    /// Returns the class as `tc -s -j class show` does: options beside the class, and statistics in an object
    /// of their own (`print_class` in iproute2's tc_class.c).
    pub fn class_json(&self) -> Value {
        let mut object = Map::new();
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                object.insert(key.to_owned(), value);
            }
        };
        add("class", Some(json!(self.kind)));
        add("handle", Some(json!(self.handle)));
        add("dev", self.dev.as_ref().map(|dev| json!(dev)));
        add("root", self.root.map(Value::from));
        add("parent", self.parent.as_ref().map(|parent| json!(parent)));
        let leaf = self
            .leaf
            .as_ref()
            .map(|leaf| json!(format!("0x{}", leaf.trim_end_matches(':'))));
        add("leaf", leaf);
        add("host", self.host.as_ref().map(|host| json!(host)));
        for (key, value) in &self.options {
            add(key, Some(value.clone()));
        }
        let mut statistics = match json!(self.counters) {
            Value::Object(counters) => counters,
            _ => Map::new(),
        };
        statistics.extend(self.own.clone());
        object.insert("stats".to_owned(), Value::Object(statistics));
        Value::Object(object)
    }
}

fn words(details: &[Detail]) -> String {
    let words: Vec<String> = details.iter().filter_map(Detail::text).collect();
    words.join(" ")
}

//! Readings for tests.

use std::collections::BTreeMap;

use fairgate_run_api::{ClassInterval, CountStatus, NodeStatus};

pub(crate) const NOTHING: CountStatus = CountStatus { packets: 0, bytes: 0 };

/// What a class did in a second in which it sent one packet.
pub(crate) fn row(class: &str, rate_bps: f64) -> ClassInterval {
    ClassInterval {
        from: "eth0".to_owned(),
        class: class.to_owned(),
        discipline: "fifo".to_owned(),
        host: None,
        at_s: 1.0,
        seconds: 8.0,
        sent: CountStatus {
            packets: 1,
            bytes: rate_bps as u64,
        },
        mean_delay_us: Some(100.0),
        delay: None,
        drops: BTreeMap::new(),
        marked: 0,
        backlog: NOTHING,
    }
}

/// The status of a discipline that no packet has come to.
pub(crate) fn status(discipline: &str) -> NodeStatus {
    NodeStatus {
        discipline: discipline.to_owned(),
        class: None,
        name: None,
        node: None,
        limit_bps: None,
        host: None,
        subscriber: None,
        enqueued: NOTHING,
        dequeued: NOTHING,
        dropped: NOTHING,
        flushed: NOTHING,
        backlog: NOTHING,
        drops: BTreeMap::new(),
        marked: 0,
        overlimits: 0,
        sojourn_s: 0.0,
        variables: BTreeMap::new(),
        at_s: 1.0,
        classes: Vec::new(),
        class_states: Vec::new(),
        estimated: None,
        estimated_classes: Vec::new(),
    }
}

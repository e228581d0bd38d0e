//! A run of an access provider, as it tells what it does.

use std::collections::BTreeMap;

use fairgate_cli::top::{Event, Trees};
use fairgate_config::Registry;
use fairgate_run_api::{
    ChangesStatus, ClassInterval, ClassStatus, CountStatus, DirectionStatus, FlowStatus, FlowsStatus,
    Interval, Losses, NodeStatus, PassedByStatus, Percentiles, ProcessorStatus, RoundTripStatus, Sojourn,
    Status, TreeStatus, TreesStatus, ValueStatus,
};

use super::testing::{NOTHING, row, status as node};

pub(crate) const PROVIDER: &str = "[queue.tree]
discipline = \"htb\"
default = 9

[[queue.tree.class]]
id = 1
rate = \"1gbit\"

[[queue.tree.class]]
id = 9
parent = 1
rate = \"10mbit\"
ceil = \"1gbit\"
discipline = \"fq_codel\"

[[queue.tree.class]]
id = 20
parent = 1
rate = \"40mbit\"
discipline = \"drr\"

[[queue.tree.class.class]]
id = 1
discipline = \"fifo\"

[[queue.tree.class.class]]
id = 2
discipline = \"codel\"

[[queue.tree.class]]
id = 100
each = \"destination\"
count = 2000
overflow = 9
parent = 1
rate = \"2mbit\"
ceil = \"50mbit\"
discipline = \"fq_codel\"
";

pub(crate) const HOME: &str = "[queue.tree]
discipline = \"tbf\"
rate = \"4750kbit\"
burst = \"3kb\"
inner = { discipline = \"fq_codel\" }
";

pub(crate) fn trees(revision: u64) -> Event {
    let tree = |from: &str, to: &str, queue: &str| TreeStatus {
        name: None,
        from: from.to_owned(),
        to: to.to_owned(),
        queue: queue.to_owned(),
        names: BTreeMap::new(),
        workers: None,
    };
    let status = TreesStatus {
        revision,
        directions: vec![tree("eth0", "eth1", PROVIDER), tree("eth1", "eth0", HOME)],
    };
    Event::Trees(Trees::read(&status, &Registry::builtin()))
}

/// A row with a delay of so many milliseconds in the median.
fn busy(class: &str, discipline: &str, mbit: f64, millis: f64) -> ClassInterval {
    let mut row = row(class, 0.0);
    row.discipline = discipline.to_owned();
    row.seconds = 1.0;
    row.sent = CountStatus {
        packets: (mbit * 1e6 / 8.0 / 1250.0) as u64,
        bytes: (mbit * 1e6 / 8.0) as u64,
    };
    row.mean_delay_us = Some(millis * 1.1e3);
    row.delay = Some(Percentiles {
        packets: row.sent.packets,
        p50_us: millis * 1e3,
        p95_us: millis * 2e3,
        p99_us: millis * 3e3,
        max_us: millis * 4e3,
    });
    row
}

fn of_host(mut row: ClassInterval, host: &str) -> ClassInterval {
    row.host = Some(host.to_owned());
    row
}

/// What the run did in second `number`. Its rates go up and down.
pub(crate) fn interval(number: u64) -> Event {
    let factor = 1.0 + (number % 8) as f64 / 8.0;
    let mut anna = of_host(busy("100", "fq_codel", 24.5 * factor, 8.0), "100.64.0.1");
    anna.drops = BTreeMap::from([("aqm".to_owned(), 12), ("memory_limit".to_owned(), 3)]);
    anna.marked = 40;
    anna.backlog = CountStatus {
        packets: 31,
        bytes: 46_500,
    };
    // The sum of its classes.
    let mut root = busy("", "htb", 25.564 + 54.5 * factor, 5.0);
    root.drops = anna.drops.clone();
    (root.marked, root.backlog) = (anna.marked, anna.backlog);
    let mut back = vec![busy("", "tbf", 1.25, 0.4), busy("1", "fq_codel", 1.25, 0.4)];
    back.iter_mut().for_each(|row| row.from = "eth1".to_owned());
    let rows = [
        root,
        busy("9", "fq_codel", 0.5, 0.1),
        busy("20", "drr", 30.0 * factor, 2.0),
        busy("20/2", "codel", 30.0 * factor, 2.0),
        anna,
        of_host(busy("101", "fq_codel", 25.0, 1.5), "100.64.0.2"),
        of_host(busy("102", "fq_codel", 0.064, 0.2), "100.64.0.3"),
    ];
    Event::Interval(Interval {
        at_s: 3_700.0 + number as f64,
        missed_delays: 0,
        rows: rows.into_iter().chain(back).collect(),
    })
}

fn below(class: u32, mut node: NodeStatus) -> NodeStatus {
    node.class = Some(class);
    let sent = CountStatus {
        packets: 1_000_000,
        bytes: 1_250_000_000,
    };
    (node.enqueued, node.dequeued) = (sent, sent);
    node
}

pub(crate) fn status(pid: u32, uptime_s: f64) -> Event {
    let mut root = node("htb");
    let mut drr = below(20, node("drr"));
    drr.classes = vec![below(2, node("codel"))];
    root.classes = vec![below(9, node("fq_codel")), drr];
    for (class, host) in [(100, "100.64.0.1"), (101, "100.64.0.2"), (102, "100.64.0.3")] {
        let mut of_host = below(class, node("fq_codel"));
        of_host.host = Some(host.to_owned());
        of_host.drops = BTreeMap::from([("aqm".to_owned(), 4_711)]);
        of_host.variables = BTreeMap::from([
            ("new_flows".to_owned(), ValueStatus::Integer(3)),
            ("target".to_owned(), ValueStatus::Nanos(5_000_000)),
            ("old_flows".to_owned(), ValueStatus::Unset),
        ]);
        root.classes.push(of_host);
    }
    root.class_states = vec![ClassStatus {
        class: 1,
        name: None,
        node: None,
        limit_bps: None,
        sent: CountStatus {
            packets: 9,
            bytes: 9_000,
        },
        overlimits: 0,
        variables: BTreeMap::from([("lent".to_owned(), ValueStatus::Integer(7))]),
        at_s: 1.0,
    }];
    let direction = |from: &str, to: &str, tree: NodeStatus, ring_full: u64| DirectionStatus {
        from: from.to_owned(),
        to: to.to_owned(),
        sent: NOTHING,
        rate_bps: 0.0,
        in_line: 0,
        lost: Losses {
            ring_full,
            ..Losses::default()
        },
        socket_full: 0,
        super_packets: 0,
        passed_by: 0,
        sojourn: Sojourn::default(),
        tree,
        queue: String::new(),
    };
    let mut home = node("tbf");
    home.classes = vec![below(1, node("fq_codel"))];
    Event::Status(Box::new(Status {
        name: "provider".to_owned(),
        pid,
        uptime_s,
        isolated: true,
        processor: ProcessorStatus {
            stalls: 2,
            longest_stall_us: 7_500.0,
            ..ProcessorStatus::default()
        },
        changes: ChangesStatus::default(),
        revision: 3,
        fallback: None,
        autorate: None,
        passed_by: PassedByStatus::default(),
        nat: None,
        directions: vec![
            direction("eth0", "eth1", root, 17),
            direction("eth1", "eth0", home, 0),
        ],
    }))
}

/// Downloads of a host, an upload over IPv6, and pings.
pub(crate) fn flows() -> Event {
    let download = |number: u16| FlowStatus {
        from: "eth0".to_owned(),
        source: "198.51.100.7".to_owned(),
        source_port: 443,
        destination: "100.64.0.1".to_owned(),
        destination_port: 50_000 + number,
        lan: None,
        protocol: "tcp".to_owned(),
        class: "100".to_owned(),
        discipline: "fq_codel".to_owned(),
        subscriber: None,
        rate_bps: 24e6 / f64::from(number),
        bytes: 125_000_000 / u64::from(number),
        packets: 84_000,
        dropped: 12,
        marked: 40,
        delay_ms: 8.8,
        round_trip_ms: Some(RoundTripStatus {
            latest: 1.9,
            minimum: 1.2,
            median: 2.25,
        }),
        lost_before: None,
        age_s: 60.0,
        idle_s: 0.0,
    };
    let upload = FlowStatus {
        from: "eth1".to_owned(),
        source: "2001:db8:0:10::7".to_owned(),
        destination: "2001:db8:ffff::1:25".to_owned(),
        class: String::new(),
        rate_bps: 1.25e6,
        round_trip_ms: None,
        marked: 0,
        ..download(1)
    };
    let pings = FlowStatus {
        protocol: "icmp".to_owned(),
        source_port: 0,
        destination_port: 0,
        rate_bps: 0.0,
        bytes: 980,
        round_trip_ms: None,
        ..download(1)
    };
    let mut flows: Vec<FlowStatus> = (1..=30).map(download).collect();
    flows.push(upload);
    flows.push(pings);
    Event::Flows(Box::new(FlowsStatus {
        observed_s: 60.0,
        active: 812,
        forgotten: 0,
        missed_packets: 0,
        flows,
    }))
}

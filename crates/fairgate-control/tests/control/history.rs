//! The history over HTTP, of a run whose counters the test sets.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairgate_control::rehearsal::{Rehearsal, Reply, Stage};
use fairgate_control::{Recorder, Run, WhatIf, WhatIfRefused};
use fairgate_live::status::protocol::{Answer, ReserveOrder, Reserved, TreesStatus};
use fairgate_live::status::{Detail, FlowOrder, FlowsStatus, NoPackets, NodeStatus, Status};
use serde_json::Value;

/// A rehearsal with a status that the test makes.
#[derive(Clone)]
struct Played {
    rehearsal: Rehearsal,
    status: Arc<Mutex<Status>>,
}

impl Run for Played {
    fn status(&self, _detail: Detail) -> Option<Status> {
        Some(self.status.lock().unwrap().clone())
    }

    fn trees(&self) -> TreesStatus {
        self.rehearsal.trees()
    }

    fn change(&self, who: &str, from: Option<&str>, lines: &[String], if_revision: Option<u64>) -> Answer {
        self.rehearsal.change(who, from, lines, if_revision)
    }

    fn reserve(
        &self,
        who: &str,
        from: Option<&str>,
        order: ReserveOrder,
        if_revision: Option<u64>,
    ) -> Reserved {
        self.rehearsal.reserve(who, from, order, if_revision)
    }

    fn flows(&self, order: FlowOrder, limit: usize) -> Option<FlowsStatus> {
        self.rehearsal.flows(order, limit)
    }

    fn record(&self) -> Recorder {
        self.rehearsal.record()
    }

    fn keeps_packets(&self) -> bool {
        self.rehearsal.keeps_packets()
    }

    fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, NoPackets> {
        self.rehearsal.last_packets(last, from)
    }

    fn what_if(&self, question: &WhatIf) -> Result<String, WhatIfRefused> {
        self.rehearsal.what_if(question)
    }
}

impl Played {
    /// Sets the time, and what each class of the first direction has counted since the start: packets of 125
    /// bytes, each of which waited for 4 ms. A tenth of them was dropped besides. The first class has others
    /// below it.
    fn set(&self, at_s: f64, classes: &[(u16, u64)]) {
        let mut status = self.status.lock().unwrap();
        status.uptime_s = at_s;
        let root = &mut status.directions[0].tree;
        let empty = {
            let mut empty = root.clone();
            empty.classes.clear();
            empty
        };
        let count = |node: &mut NodeStatus, packets: u64| {
            node.at_s = at_s;
            node.dequeued.packets = packets;
            node.dequeued.bytes = 125 * packets;
            node.sojourn_s = 0.004 * packets as f64;
            node.dropped.packets = packets / 10;
            node.backlog.bytes = packets;
        };
        root.classes = classes
            .iter()
            .map(|&(number, packets)| {
                let mut class = empty.clone();
                class.class = Some(number);
                count(&mut class, packets);
                class
            })
            .collect();
        if let Some(first) = root.classes.first_mut() {
            let mut below = first.clone();
            below.class = Some(7);
            first.classes.push(below);
        }
        let all = classes.iter().map(|(_, packets)| packets).sum();
        count(root, all);
    }
}

fn played() -> (Played, Stage) {
    let rehearsal = Rehearsal::new("fifo").unwrap();
    let status = rehearsal.status(Detail::Used).unwrap();
    let run = Played {
        rehearsal,
        status: Arc::new(Mutex::new(status)),
    };
    run.set(0.0, &[]);
    let stage = Stage::new(run.clone());
    (run, stage)
}

fn get(stage: &Stage, target: &str) -> Reply {
    stage.ask("GET", target, &[], b"").unwrap()
}

fn json(stage: &Stage, target: &str) -> Value {
    let reply = get(stage, target);
    assert_eq!(reply.status, 200, "{target}: {reply:?}");
    serde_json::from_slice(&reply.body).unwrap()
}

fn names(document: &Value, list: &str) -> Vec<String> {
    let members = document[list].as_array().unwrap();
    members
        .iter()
        .map(|it| it["class"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_classes_did_is_shown() {
    let (run, stage) = played();
    for second in 1..=30 {
        // Class 2 sends twice as much as class 1, and class 3 comes later.
        let mut classes = vec![(1, 100 * second), (2, 200 * second)];
        if second > 20 {
            classes.push((3, 50 * (second - 20)));
        }
        run.set(second as f64, &classes);
        stage.read();
    }
    let document = json(&stage, "/v1/history?from=left&seconds=20");
    assert_eq!(document["schema"], "fairgate.history/1");
    assert_eq!(
        (&document["step_s"], &document["now_s"]),
        (&1.0.into(), &30.0.into())
    );
    // Class 1 has a class below it, which counts the same.
    assert_eq!(names(&document, "series"), ["root", "1/7", "2", "3"]);
    assert_eq!(document["at_s"].as_array().unwrap().len(), 20);
    let series = &document["series"];
    assert_eq!(series[2]["rate_bps"][19], 200_000.0);
    assert_eq!(series[2]["delay_ms"][19], 4.0);
    assert_eq!(series[2]["dropped_per_s"][19], 20.0);
    assert_eq!(series[2]["backlog_bytes"][19], 6000.0);
    let rates: Vec<&Value> = series[3]["rate_bps"].as_array().unwrap().iter().collect();
    assert!(
        rates[..10].iter().all(|rate| rate.is_null()) && rates[10..].iter().all(|rate| **rate == 50_000.0)
    );

    // Two of them, one of them, and what is new.
    let two = json(&stage, "/v1/history?from=left&limit=1");
    assert_eq!(names(&two, "series"), ["root", "2"]);
    let one = json(&stage, "/v1/history?from=left&class=1&after=28");
    assert_eq!(
        (names(&one, "series"), &one["at_s"]),
        (vec!["1".to_owned()], &serde_json::json!([29.0, 30.0]))
    );
    let idle = json(&stage, "/v1/history?from=right");
    assert_eq!(names(&idle, "series"), ["root"]);

    let now = json(&stage, "/v1/classes?from=left&limit=2");
    assert_eq!(names(&now, "classes"), ["root", "2", "1/7"]);
    assert_eq!((&now["count"], &now["seconds"]), (&5.into(), &1.0.into()));
    assert_eq!(now["classes"][0]["rate_bps"], 350_000.0);

    // Class 2 is removed, and class 1 begins anew.
    run.set(31.0, &[(1, 10), (3, 550)]);
    stage.read();
    let after = json(&stage, "/v1/history?from=left&after=30");
    assert_eq!(names(&after, "series"), ["root", "1/7", "3"]);
    assert_eq!(after["series"][1]["rate_bps"][0], 10_000.0);
    let reply = get(&stage, "/v1/history?from=left&class=2");
    assert_eq!(reply.status, 404);
}

/// Of many classes, the first ones have a history, and all are seen now.
#[test]
fn the_number_of_classes_is_bounded() {
    let (run, stage) = played();
    let many = |packets: u64| -> Vec<(u16, u64)> { (1..=500).map(|class| (class, packets)).collect() };
    for second in 1..=3 {
        run.set(second as f64, &many(second));
        stage.read();
    }
    let document = json(&stage, "/v1/history?from=left&limit=1000");
    assert_eq!(
        (&document["classes"], &document["classes_limit"]),
        (&64.into(), &64.into())
    );
    let now = json(&stage, "/v1/classes?from=left&limit=1000");
    assert_eq!(now["classes"].as_array().unwrap().len(), 502);
    let reply = get(&stage, "/v1/history?from=left&class=500");
    assert_eq!(reply.status, 404, "{reply:?}");
}

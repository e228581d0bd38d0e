//! The history over HTTP, of a run whose counters the test sets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fairgate_run::rehearsal::{Rehearsal, Reply, Stage};
use fairgate_run_api::{
    Answer, Ask, ClassInterval, ClassStatus, Detail, Entry, FlowStatus, FlowsStatus, Interval, Mistake,
    NodeStatus, PassedByStatus, Percentiles, Question, Recorder, Refused, RoundTripStatus, Shaped, Status,
    SubscriberName, SubscriberStatus, ask,
};
use serde_json::Value;

/// A rehearsal with a status that the test makes.
#[derive(Clone)]
struct Played {
    rehearsal: Rehearsal,
    status: Arc<Mutex<Status>>,
    /// Whether the next question for the status fails, although the run goes on.
    is_unread: Arc<AtomicBool>,
    /// Each recorder has a copy of it as long as it exists, besides the test and the API.
    recorders: Arc<()>,
}

impl Ask for Played {
    type Error = Refused;
    type Recording = Recorder;

    fn ask(&self, who: &str, question: Question) -> Result<Answer, Refused> {
        match question {
            Question::Status { .. } if self.is_unread.swap(false, Ordering::Relaxed) => {
                let mistake = Mistake::new("the kernel does not say what is in the queue", "ask again");
                Err(Refused::Unread(mistake))
            }
            Question::Status { .. } => Ok(self.status.lock().unwrap().clone().into()),
            Question::Subscriber { id } if id == "18" || id == "19" => Ok(SubscriberStatus {
                class: id.parse().unwrap(),
                directions: [0, 1],
                shaped: Shaped::default(),
                subscriber: Entry {
                    id,
                    ..Entry::default()
                },
            }
            .into()),
            Question::Flows { .. } => {
                let flow = |id: &str| FlowStatus {
                    from: "left".to_owned(),
                    rate_bps: 5.0,
                    subscriber: Some(SubscriberName {
                        id: id.to_owned(),
                        ..SubscriberName::default()
                    }),
                    round_trip_ms: Some(RoundTripStatus {
                        latest: 300.0,
                        minimum: 300.0,
                        median: 300.0,
                    }),
                    ..FlowStatus::default()
                };
                Ok(FlowsStatus {
                    flows: vec![flow("18"), flow("19"), FlowStatus::default()],
                    ..FlowsStatus::default()
                }
                .into())
            }
            question => self.rehearsal.ask(who, question),
        }
    }

    fn record(&self, _interval: Duration) -> Result<Recorder, Refused> {
        let run = self.clone();
        let mut is_first = true;
        Ok(Box::new(std::iter::from_fn(move || {
            let rows = match std::mem::replace(&mut is_first, false) {
                true => Vec::new(),
                false => run.rows(),
            };
            Some(Interval {
                at_s: run.status.lock().unwrap().uptime_s,
                missed_delays: 3,
                rows,
            })
        })))
    }
}

impl Played {
    /// Sets the time, and what each class of the first direction has counted since the start: packets of 125
    /// bytes, each of which waited for 4 ms. A tenth of them was dropped besides. The first class has others
    /// below it. Class 2 belongs to a subscriber.
    fn set(&self, at_s: f64, classes: &[(u32, u64)]) {
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
                class.subscriber = (number == 2).then(|| SubscriberName {
                    id: "1002".to_owned(),
                    ..SubscriberName::default()
                });
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

    /// What a recorder has of the root and of each class of the first direction: the delay of a class is its
    /// number in milliseconds, and grows with time.
    fn rows(&self) -> Vec<ClassInterval> {
        let status = self.status.lock().unwrap();
        let direction = &status.directions[0];
        let row = |class: &NodeStatus, number: u32| ClassInterval {
            from: direction.from.clone(),
            class: class.class.map(|number| number.to_string()).unwrap_or_default(),
            discipline: class.discipline.clone(),
            host: None,
            at_s: class.at_s,
            seconds: 1.0,
            sent: class.dequeued,
            mean_delay_us: None,
            delay: Some(Percentiles {
                packets: 1,
                p50_us: 1.0,
                p95_us: 1e3 * f64::from(number) + status.uptime_s,
                p99_us: 2e3 * f64::from(number),
                max_us: 9e3,
            }),
            drops: BTreeMap::new(),
            marked: 0,
            backlog: class.backlog,
        };
        let classes = direction.tree.classes.iter();
        classes
            .map(|class| row(class, class.class.unwrap()))
            .chain([row(&direction.tree, 50)])
            .collect()
    }
}

fn played() -> (Played, Stage) {
    let rehearsal = Rehearsal::new("fifo").unwrap();
    let detail = Detail::Used;
    let status: Status = ask(&rehearsal, "", Question::Status { detail }).unwrap();
    let run = Played {
        rehearsal,
        status: Arc::new(Mutex::new(status)),
        is_unread: Arc::default(),
        recorders: Arc::default(),
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
    // All subscribers are counted, also those that are not among the first.
    let first = json(&stage, "/v1/classes?from=left&limit=0");
    assert_eq!(
        (names(&first, "classes"), &first["subscribers"]),
        (vec!["root".to_owned()], &1.into())
    );
    assert_eq!(now["classes"][1]["subscriber"], serde_json::json!({"id": "1002"}));

    // Class 2 is removed, and class 1 begins anew.
    run.set(31.0, &[(1, 10), (3, 550)]);
    stage.read();
    let after = json(&stage, "/v1/history?from=left&after=30");
    assert_eq!(names(&after, "series"), ["root", "1/7", "3"]);
    assert_eq!(after["series"][1]["rate_bps"][0], 10_000.0);
    let reply = get(&stage, "/v1/history?from=left&class=2");
    assert_eq!(reply.status, 404);
}

/// A status that can't be read is told as that, once, and does not end the history.
#[test]
fn a_reading_that_fails_does_not_end_the_run() {
    let (run, stage) = played();
    run.set(1.0, &[(1, 100)]);
    stage.read();
    run.is_unread.store(true, Ordering::Relaxed);
    let reply = get(&stage, "/v1/status");
    let problem: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(
        (reply.status, &problem["type"]),
        (503, &"urn:fairgate:problem:silent".into())
    );
    let said = "the kernel does not say what is in the queue; ask again";
    assert_eq!(problem["detail"], said);
    assert_eq!(problem["errors"][0]["help"], "ask again");
    run.set(2.0, &[(1, 200)]);
    run.is_unread.store(true, Ordering::Relaxed);
    stage.read();
    run.set(3.0, &[(1, 300)]);
    stage.read();
    let document = json(&stage, "/v1/history?from=left&class=1");
    assert_eq!(document["now_s"], 3.0);
    assert_eq!(json(&stage, "/v1/status")["uptime_s"], 3.0);
}

/// The next run goes on with the history of this one: what is new, and before it a point at which nothing is
/// known. A subscriber is found again although its class has another number.
#[test]
fn the_next_run_goes_on_with_the_history() {
    let (run, stage) = played();
    assert_eq!(stage.kept(), None, "there are no points yet");
    for second in 1..=30 {
        run.set(
            second as f64,
            &[(1, 100 * second), (2, 200 * second), (3, 50 * second)],
        );
        stage.read();
    }
    let kept = stage.kept().unwrap();

    let (next, stage) = played();
    stage.recall(&kept).unwrap();
    // Class 2 is another one, and the subscriber has class 4. No packet has come to class 3 yet.
    let go_on = |second: u64, classes: &[(u32, u64)]| {
        next.set(second as f64, classes);
        for class in &mut next.status.lock().unwrap().directions[0].tree.classes {
            class.subscriber = (class.class == Some(4)).then(|| SubscriberName {
                id: "1002".to_owned(),
                ..SubscriberName::default()
            });
        }
        stage.read();
    };
    go_on(1, &[(1, 10), (2, 20), (4, 40)]);
    let document = json(&stage, "/v1/history?from=left");
    assert_eq!(names(&document, "series"), ["root", "1/7", "2", "4"]);
    let times: Vec<f64> = serde_json::from_value(document["at_s"].clone()).unwrap();
    assert!(
        times.is_sorted() && times[2] < 0.0 && times[3..] == [0.0, 1.0],
        "{times:?}"
    );
    assert!((times[2] - times[0] - 20.0).abs() < 1e-6, "{times:?}");
    let rates = |class: usize| &document["series"][class]["rate_bps"];
    // Packets of 1000 bits. Seconds 1 to 9, then 10 each.
    let all = serde_json::json!([350_000.0, 350_000.0, 350_000.0, null, 70_000.0]);
    assert_eq!(rates(0), &all);
    assert_eq!(rates(2), &serde_json::json!([null, null, null, null, 20_000.0]));
    assert_eq!(
        rates(3),
        &serde_json::json!([200_000.0, 200_000.0, 200_000.0, null, 40_000.0])
    );
    assert_eq!(document["series"][3]["delay_ms"][0], 4.0);
    let reply = get(&stage, "/v1/history?from=left&class=3");
    assert_eq!(reply.status, 404);

    // It comes after all.
    for second in 2..=40 {
        let of_third = 7 * second * u64::from(second > 20);
        let classes = [
            (1, 10 * second),
            (2, 20 * second),
            (3, of_third),
            (4, 40 * second),
        ];
        go_on(second, &classes[..]);
    }
    let third = json(&stage, "/v1/history?from=left&class=3");
    let rates = third["series"][0]["rate_bps"].as_array().unwrap();
    assert_eq!(
        (&rates[0], &rates[3], rates.len()),
        (&50_000.0.into(), &Value::Null, 44)
    );
    assert_eq!(rates[43], 7000.0);

    // A third run has all of it, and two gaps.
    let kept = stage.kept().unwrap();
    let (last, stage) = played();
    stage.recall(&kept).unwrap();
    last.set(1.0, &[(1, 10)]);
    stage.read();
    let document = json(&stage, "/v1/history?from=left&seconds=86400");
    let rates = document["series"][0]["rate_bps"].as_array().unwrap();
    let gaps = rates.iter().filter(|rate| rate.is_null()).count();
    assert_eq!((rates.len(), gaps), (10, 2), "{document}");
}

/// A class that is not among the busiest has points of five minutes, also in the next run.
#[test]
fn every_class_has_a_history_in_long_steps() {
    let (run, stage) = played();
    // A hundred classes that send alike: the first 64 have short steps.
    let all = |second: u64, times: u64| -> Vec<(u32, u64)> {
        (1..=100)
            .map(|class| (class, 10 * second * if class == 90 { times } else { 1 }))
            .collect()
    };
    let go_on = |run: &Played, stage: &Stage, second: u64, times: u64| {
        run.set(second as f64, &all(second, times));
        stage.read();
    };
    let rates = |document: &Value| -> Vec<Option<i64>> {
        let rates = document["series"][0]["rate_bps"].as_array().unwrap().iter();
        // In hundreds: they are accurate to 0.03 %.
        rates
            .map(|rate| rate.as_f64().map(|rate| (rate / 100.0).round() as i64))
            .collect()
    };
    let day = |stage: &Stage, class: u32| {
        json(
            stage,
            &format!("/v1/history?from=left&class={class}&seconds=86400"),
        )
    };
    for second in (10..300).step_by(10) {
        go_on(&run, &stage, second, 1);
    }
    let early = get(&stage, "/v1/history?from=left&class=90");
    assert_eq!(early.status, 404, "{early:?}");
    for second in (300..=700).step_by(10) {
        go_on(&run, &stage, second, 1);
    }
    assert_eq!(day(&stage, 1)["step_s"], 1.0);
    let document = day(&stage, 90);
    assert_eq!(
        (&document["step_s"], &document["now_s"]),
        (&300.0.into(), &700.0.into())
    );
    assert_eq!(document["at_s"], serde_json::json!([290.0, 590.0]));
    assert_eq!(rates(&document), [Some(100), Some(100)]);
    assert_eq!(document["series"][0]["discipline"], "fifo");
    let delay = document["series"][0]["delay_ms"][1].as_f64().unwrap();
    assert!((delay - 4.0).abs() < 0.002, "{delay}");
    assert_eq!(
        document["series"][0]["highest_p95_ms"],
        serde_json::json!([null, null])
    );
    let new = json(&stage, "/v1/history?from=left&class=90&seconds=86400&after=290");
    assert_eq!(new["at_s"], serde_json::json!([590.0]));

    // It is one of the busiest then. What it did before is in the long steps.
    for second in (710..=910).step_by(10) {
        go_on(&run, &stage, second, 5);
    }
    let minute = json(&stage, "/v1/history?from=left&class=90&seconds=60");
    assert_eq!((&minute["step_s"], rates(&minute)[0]), (&1.0.into(), Some(500)));
    assert_eq!(day(&stage, 90)["step_s"], 300.0);

    let kept = stage.kept().unwrap();
    let (next, stage) = played();
    stage.recall(&kept).unwrap();
    go_on(&next, &stage, 10, 1);
    let document = day(&stage, 89);
    assert_eq!(document["step_s"], 300.0);
    assert_eq!(rates(&document), [Some(100), Some(100), Some(100), None]);
    for second in (20..=310).step_by(10) {
        go_on(&next, &stage, second, 1);
    }
    assert_eq!(
        rates(&day(&stage, 89)),
        [Some(100), Some(100), Some(100), None, Some(100)]
    );
}

/// Class 2 gets another subscriber while the run goes on: what the old one did is not the new one's.
#[test]
fn a_number_that_is_given_anew_has_no_past() {
    let (run, stage) = played();
    for second in 1..=10 {
        run.set(second as f64, &[(2, 200 * second)]);
        {
            let mut status = run.status.lock().unwrap();
            status.revision = u64::from(second > 5);
            let class = &mut status.directions[0].tree.classes[0];
            class.subscriber.as_mut().unwrap().id = (1000 + u64::from(second > 5)).to_string();
        }
        stage.read();
    }
    let document = json(&stage, "/v1/history?from=left&class=2");
    let rates = document["series"][0]["rate_bps"].as_array().unwrap();
    let missing = rates.iter().take_while(|rate| rate.is_null()).count();
    assert_eq!((rates.len(), missing), (10, 5));
}

/// Whatever has become of a file, it is said, and what is whole is used.
#[test]
fn a_file_that_is_damaged_is_told() {
    let (run, stage) = played();
    for second in 1..=30 {
        run.set(second as f64, &[(1, 100 * second)]);
        stage.read();
    }
    let kept = stage.kept().unwrap();
    let (_, stage) = played();
    let told = |file: &[u8]| stage.recall(file).unwrap_err();
    for length in 0..kept.len() {
        match length {
            // The head without any block.
            19 => stage.recall(&kept[..length]).unwrap(),
            0..19 => assert!(told(&kept[..length]).contains("byte"), "{length}"),
            _ => assert!(told(&kept[..length]).contains("byte 19: "), "{length}"),
        }
        let mut damaged = kept.clone();
        damaged[length] ^= 0x10;
        told(&damaged);
    }
    assert!(told(b"[run]\nleft = 5\n").contains("stays as it is"));
    assert!(told(b"fairgate history 2\nsomething else").contains("another version"));
    // What is behind whole blocks does not spoil them.
    let mut longer = kept.clone();
    longer.extend(b"torn");
    assert!(told(&longer).contains(&format!("byte {}: ", kept.len())));
}

/// The page warns of what is not as the file says.
#[test]
fn a_fallback_and_what_went_past_the_run_are_shown() {
    let (run, stage) = played();
    let now = json(&stage, "/v1/classes?from=left");
    assert!(now["fallback"].is_null(), "{now}");
    assert_eq!(now["passed_by"], serde_json::json!({"times": 0, "seconds": 0.0}));
    {
        let mut status = run.status.lock().unwrap();
        status.fallback = Some("line 3: no such discipline".to_owned());
        status.passed_by = PassedByStatus {
            times: 2,
            seconds: 1.5,
        };
    }
    stage.read();
    let now = json(&stage, "/v1/classes?from=left");
    assert_eq!(now["fallback"], "line 3: no such discipline");
    assert_eq!(now["passed_by"], serde_json::json!({"times": 2, "seconds": 1.5}));
}

/// The run counts sojourn times only as long as somebody asks for what the classes did.
#[test]
fn percentiles_cost_nothing_when_nobody_looks() {
    let (run, stage) = played();
    let begun = Instant::now();
    let after = |seconds| begun + Duration::from_secs(seconds);
    let recorders = || Arc::strong_count(&run.recorders) - 2;
    let mut second = 0;
    let mut go_on = |now: Instant| {
        second += 1;
        run.set(second as f64, &[(1, 100 * second), (2, 200 * second)]);
        stage.read_at(now);
    };
    for _ in 0..5 {
        go_on(Instant::now());
    }
    assert_eq!(recorders(), 0);
    let silent = json(&stage, "/v1/classes?from=left");
    assert!(silent["missed_delays"].is_null() && silent["classes"][0]["p95_ms"].is_null());

    // Somebody has asked. The first interval has nothing yet.
    go_on(Instant::now());
    assert_eq!(recorders(), 1);
    go_on(Instant::now());
    let now = json(&stage, "/v1/classes?from=left&sort=p95");
    assert_eq!((&now["missed_delays"], &now["seconds"]), (&3.into(), &1.0.into()));
    assert_eq!(names(&now, "classes"), ["root", "2", "1", "1/7"]);
    let figures = |place: usize| (&now["classes"][place]["p95_ms"], &now["classes"][place]["p99_ms"]);
    assert_eq!(figures(0), (&50.007.into(), &100.0.into()));
    assert_eq!(figures(1), (&2.007.into(), &4.0.into()));
    assert_eq!(figures(3), (&Value::Null, &Value::Null));

    // The history is a reason, too. In steps of 10 s, the highest percentiles remain.
    for _ in 0..20 {
        go_on(Instant::now());
    }
    let history = json(&stage, "/v1/history?from=left&class=2");
    let series = &history["series"][0];
    assert_eq!(series["highest_p99_ms"].as_array().unwrap().len(), 27);
    let p95 = series["highest_p95_ms"].as_array().unwrap();
    assert!(
        p95[..6].iter().all(Value::is_null) && !p95[6..].iter().any(Value::is_null),
        "{p95:?}"
    );
    assert!((p95[26].as_f64().unwrap() - 2.027).abs() < 1e-6);

    // Nobody asks for a minute.
    go_on(after(50));
    assert_eq!(recorders(), 1);
    go_on(after(7200));
    assert_eq!(recorders(), 0);
    let last = json(&stage, "/v1/history?from=left&class=2&after=27");
    assert_eq!(
        last["series"][0]["highest_p95_ms"],
        serde_json::json!([2.028, null])
    );
    assert_eq!(last["series"][0]["delay_ms"], serde_json::json!([4.0, 4.0]));
}

/// Of many classes, those that send most have a history, and all are seen now.
#[test]
fn the_number_of_classes_is_bounded() {
    let (run, stage) = played();
    // From the fifth second on, class 400 sends a hundred times as much as another one.
    let many = |second: u64| -> Vec<(u32, u64)> {
        let packets = |class| match class {
            400 => 10 * second + 1000 * second.saturating_sub(5),
            _ => 10 * second,
        };
        (1..=500).map(|class| (class, packets(class))).collect()
    };
    for second in 1..=3 {
        run.set(second as f64, &many(second));
        stage.read();
    }
    let reply = get(&stage, "/v1/history?from=left&class=400");
    assert_eq!(reply.status, 404, "{reply:?}");
    for second in 4..=100 {
        run.set(second as f64, &many(second));
        stage.read();
    }
    // It has the place of one that sent as much as the others. Its past is missing.
    let newcomer = json(&stage, "/v1/history?from=left&class=400");
    let rates = newcomer["series"][0]["rate_bps"].as_array().unwrap();
    let missing = rates.iter().take_while(|rate| rate.is_null()).count();
    assert!(rates.len() == 100 && (50..70).contains(&missing), "{missing}");
    assert!(rates[missing..].iter().all(|rate| *rate == 1_010_000.0));
    let busiest = json(&stage, "/v1/history?from=left&limit=1");
    assert_eq!(names(&busiest, "series"), ["root", "400"]);
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

/// Subscribers 18 and 19 are connected to an access point, whose figures are their sums.
#[test]
fn a_node_does_what_is_below_it() {
    let (run, stage) = played();
    let name = || {
        let mut status = run.status.lock().unwrap();
        let root = &mut status.directions[0].tree;
        for class in &mut root.classes {
            class.name = Some(format!("name {}", class.class.unwrap()));
            class.node = Some(16);
            class.limit_bps = Some(1_000_000);
            class.subscriber = Some(SubscriberName {
                id: class.class.unwrap().to_string(),
                ..SubscriberName::default()
            });
        }
        root.class_states = vec![ClassStatus {
            class: 16,
            name: Some("Tower".to_owned()),
            node: None,
            limit_bps: Some(9_000_000),
            sent: root.dequeued,
            overlimits: 0,
            variables: BTreeMap::new(),
            at_s: 0.0,
        }];
    };
    for second in 1..4 {
        run.set(second as f64, &[(18, 1000 * second), (19, 500 * second)]);
        name();
        stage.read();
    }
    let document = json(&stage, "/v1/classes?from=left");
    let node = &document["nodes"][0];
    assert_eq!(document["nodes"].as_array().unwrap().len(), 1);
    assert_eq!((&node["class"], &node["name"]), (&"16".into(), &"Tower".into()));
    assert_eq!(node["limit_bps"], 9_000_000);
    assert_eq!(node["rate_bps"], 1_500_000.0);
    assert_eq!(node["dropped_per_s"], 150.0);
    assert_eq!(node["p95_ms"], Value::Null);
    assert_eq!(document["classes"].as_array().unwrap().len(), 4);
    // That which uses most of its limit is first.
    let sorted = json(&stage, "/v1/classes?from=left&sort=use&limit=1");
    assert_eq!(sorted["classes"][1]["name"], "name 18");
    let now = json(&stage, "/v1/subscribers/18/now");
    assert_eq!(now["down"]["figures"]["rate_bps"], 1_000_000.0);
    assert_eq!(now["down"]["shared"][0]["name"], "Tower");
    assert_eq!(now["down"]["shared"][0]["rate_bps"], 1_500_000.0);
    assert_eq!(now["down"]["why"]["cause"], "plan");
    let text = "Its plan is used up: 1.00 Mbit/s of 1.00 Mbit/s. A packet waits 4.00 ms here.";
    assert_eq!(now["down"]["why"]["text"], text);
    // No packet has come to its other direction.
    assert_eq!(now["up"]["why"]["cause"], "idle");
    assert!(now["up"].get("figures").is_none());
    assert_eq!(now["flows"][0]["rate_bps"], 5.0);
    assert_eq!(now["flows"].as_array().unwrap().len(), 1);
    let slower = json(&stage, "/v1/subscribers/19/now");
    assert_eq!(slower["down"]["why"]["cause"], "devices", "its flow takes 300 ms");
    let nobody = get(&stage, "/v1/subscribers/20/now");
    assert_eq!(nobody.status, 404, "{nobody:?}");
}

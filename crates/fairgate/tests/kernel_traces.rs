//! codel and fq_codel against the traces of Linux 6.1, operation by operation.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::Duration;

use fairgate::aqm::codel;
use fairgate::classify::Classifier;
use fairgate::rounds::fq_codel;
use fairgate::{ClassId, Discipline, Ecn, Packet, Pool, Time, Value, Verdict};
use serde_json::Value as Json;

fn traces() -> Option<PathBuf> {
    let shared = std::env::var_os("FAIRGATE_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let traces = shared.join("data/kernel-traces");
    if traces.is_dir() {
        return Some(traces);
    }
    eprintln!(
        "SKIPPED: no kernel traces in {}; set FAIRGATE_SHARED",
        traces.display()
    );
    None
}

fn number(line: &Json, field: &str) -> u64 {
    line[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no number `{field}` in {line}"))
}

fn ids(line: &Json) -> BTreeSet<u64> {
    line["drops"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|id| id.as_u64().unwrap())
        .collect()
}

fn replay(name: &str, discipline: &mut dyn Discipline) {
    let Some(traces) = traces() else { return };
    let file = std::fs::File::open(traces.join(name).with_extension("jsonl.gz")).unwrap();
    let mut pool = Pool::with_capacity(20_000);
    let mut origin = 0;
    for (row, line) in BufReader::new(flate2::read::GzDecoder::new(file))
        .lines()
        .enumerate()
    {
        let line: Json = serde_json::from_str(&line.unwrap()).unwrap();
        let place = format!("{name} line {}: {line}", row + 1);
        let op = line["op"].as_str().unwrap();
        let now = || Time::from_nanos(origin + number(&line, "t"));
        match op {
            "origin" => origin = number(&line, "ktime_ns"),
            "note" => {}
            "enq" => {
                let (major, minor) = line["prio"].as_str().unwrap().split_once(':').unwrap();
                let hex = |text| u16::from_str_radix(text, 16).unwrap();
                let packet = Packet {
                    memory: number(&line, "mem") as u32,
                    cookie: number(&line, "seq"),
                    class: ClassId::new(hex(major), hex(minor)),
                    ecn: Ecn::from_bits(number(&line, "ecn") as u8),
                    ..Packet::of_length(number(&line, "size") as u32)
                };
                let id = pool.insert(packet).unwrap();
                let rc = match discipline.enqueue(id, now(), &mut pool) {
                    Verdict::Queued => 0,
                    Verdict::Dropped => 1,
                    Verdict::Congested => 2,
                    Verdict::Unclassified => 0x20000,
                };
                assert_eq!(rc, number(&line, "rc"), "{place}");
            }
            _ => match discipline.dequeue(now(), &mut pool) {
                Some(id) => {
                    let packet = pool.release(id);
                    assert_eq!(op, "deq", "{place}");
                    assert_eq!(packet.cookie, number(&line, "seq"), "{place}");
                    assert_eq!(packet.ecn as u64, number(&line, "ecn"), "{place}");
                }
                None => assert_eq!(op, "none", "{place}"),
            },
        }
        let mut dropped = BTreeSet::new();
        while let Some((id, _)) = pool.take_returned() {
            dropped.insert(pool.release(id).cookie);
        }
        assert_eq!(dropped, ids(&line), "{place}");
        if matches!(op, "origin" | "note") {
            continue;
        }
        assert_eq!(discipline.backlog().packets, number(&line, "qlen"), "{place}");
        assert_eq!(discipline.backlog().bytes, number(&line, "backlog"), "{place}");
        discipline.visit_variables(&mut |name, value| {
            let Some(recorded) = line[name].as_i64() else {
                return;
            };
            let ours = match value {
                Value::Unset => -1,
                Value::Flag(flag) => flag.into(),
                Value::Integer(ticks) if matches!(name, "first_above" | "drop_next") => {
                    ticks - (origin >> 10) as i64
                }
                Value::Integer(integer) => integer,
                Value::Nanos(_) => panic!("no variable here is in ns"),
            };
            assert_eq!(ours, recorded, "{name}, {place}");
        });
    }
}

fn codel(trace: &str, change: impl FnOnce(&mut codel::Config)) {
    let mut config = codel::Config::default();
    change(&mut config);
    replay(
        &format!("codel/{trace}"),
        &mut codel::Codel::node(config).unwrap(),
    );
}

fn fq_codel(trace: &str, change: impl FnOnce(&mut fq_codel::Config)) {
    let mut config = fq_codel::Config {
        classifier: Classifier {
            handle: 0x10,
            ..Classifier::default()
        },
        flows: 64,
        ..fq_codel::Config::default()
    };
    change(&mut config);
    replay(
        &format!("fq_codel/{trace}"),
        &mut fq_codel::FqCodel::node(config, 1).unwrap(),
    );
}

#[test]
fn codel_decides_as_linux_does() {
    codel("small", |_| {});
    codel("bulk", |_| {});
    codel("bulk_ecn", |config| config.codel.ecn = true);
    codel("ce_threshold", |config| {
        config.codel.ecn = true;
        config.codel.ce_threshold = Some(Duration::from_millis(2));
    });
    codel("mixed", |config| {
        config.codel.ecn = true;
        config.codel.target = Duration::from_millis(3);
        config.codel.interval = Duration::from_millis(40);
    });
    codel("onoff", |_| {});
    codel("overload", |config| config.limit = 60);
}

#[test]
fn fq_codel_decides_as_linux_does() {
    fq_codel("small", |config| config.flows = 16);
    fq_codel("mixed", |config| config.flows = 1024);
    fq_codel("codel_drops", |config| config.codel.ecn = false);
    fq_codel("ecn", |_| {});
    fq_codel("ce_threshold", |config| {
        config.codel.ce_threshold = Some(Duration::from_millis(1))
    });
    fq_codel("overload", |config| config.limit = 100);
    fq_codel("overload_batch", |config| {
        config.limit = 60;
        config.drop_batch = 8;
    });
    fq_codel("overload_memory", |config| config.memory_limit = 150_000);
}

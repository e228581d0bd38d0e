//! The traces that were recorded from Linux 6.1 (`tests/data/kernel-traces`), through the object: the same
//! packets leave and are dropped as in Linux. The replay of `fairgate-evidence` drives a tree, and this a
//! program; its reader can't be used here, because that crate depends on this one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use fairgate::Time;
use fairgate_scripts::tc;
use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::{Arrival, Trace, assert_equal, outcome_of, program};
use crate::Plan;
use crate::convert::tree_of;

/// The traces of the folder. A part that is missing must not pass unseen.
const TRACES: usize = 75;

fn traces() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kernel-traces");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    };
    let folders = entries(&all).into_iter().filter(|path| path.is_dir());
    let mut traces: Vec<PathBuf> = folders
        .flat_map(|folder| entries(&folder))
        .filter(|path| path.to_string_lossy().ends_with(".jsonl.gz"))
        .collect();
    traces.sort();
    assert_eq!(traces.len(), TRACES);
    traces
}

/// Returns the tree that the tc commands beside a trace build.
fn plan_of(trace: &Path) -> Plan {
    let path = trace.with_extension("").with_extension("json");
    let setup: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let commands: Vec<&str> = (setup["setup"].as_array().unwrap().iter())
        .map(|command| command.as_str().unwrap())
        .collect();
    let number = |key: &str| setup["device"][key].as_u64().unwrap() as u32;
    let device = tc::Device {
        mtu: number("mtu"),
        txqueuelen: number("txqueuelen"),
        hard_header_len: number("hard_header_len"),
        ..tc::Device::default()
    };
    let script = tc::Script::parse(&path.display().to_string(), &commands.join("\n"), device).unwrap();
    Plan {
        // Three times the default limit of fq_codel, which is the largest.
        slots: 1 << 15,
        cuts: false,
        tree: tree_of(&script.spec().unwrap()).unwrap(),
    }
}

/// What Linux did in a call: the packet that left, with a mark, and the packets that were dropped.
#[derive(Debug, Default, PartialEq, Eq)]
struct Call {
    left: Option<(u64, bool)>,
    dropped: BTreeSet<u64>,
}

/// UDP from the flow's port. The traffic class has the ECN bits only.
fn headers(flow: u64, ecn: u8) -> Vec<u8> {
    let mut head = vec![0x45, ecn, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0];
    head.extend([192, 0, 2, 1, 198, 51, 100, 9]);
    head.extend(((1000 + flow % 60_000) as u16).to_be_bytes());
    head.extend([0, 53, 0, 20, 0, 0]);
    head
}

/// Makes the calls of a recorded trace. Returns what Linux did in each.
fn repeat(path: &Path, trace: &mut Trace) -> Vec<Call> {
    let mut queue = trace.begin(&plan_of(path), 1);
    let lines = BufReader::new(MultiGzDecoder::new(File::open(path).unwrap())).lines();
    let (mut origin, mut calls, mut arrived) = (0, Vec::new(), Vec::new());
    for line in lines {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let number = |key: &str| line[key].as_u64().unwrap();
        let operation = line["op"].as_str().unwrap();
        let mut call = Call {
            left: None,
            dropped: (line["drops"].as_array().into_iter().flatten())
                .map(|number| number.as_u64().unwrap())
                .collect(),
        };
        match operation {
            "origin" => {
                origin = number("ktime_ns");
                continue;
            }
            "enq" => {
                let (major, minor) = line["prio"].as_str().unwrap().split_once(':').unwrap();
                let [major, minor] = [major, minor].map(|part| u64::from_str_radix(part, 16).unwrap());
                let ecn = number("ecn") as u8;
                let arrival = Arrival {
                    number: number("seq"),
                    length: number("size"),
                    memory: number("mem"),
                    priority: major << 16 | minor,
                    head: headers(number("flow"), ecn),
                };
                // Packets are numbered from 0, in the order in which they arrive.
                arrived.push(ecn);
                trace.enqueue(&mut queue, &arrival, Time::from_nanos(origin + number("t")));
            }
            "deq" => {
                let is_marked = number("ecn") == 3 && arrived[number("seq") as usize] != 3;
                call.left = Some((number("seq"), is_marked));
                trace.dequeue(&mut queue, Time::from_nanos(origin + number("t")));
            }
            "none" => trace.dequeue(&mut queue, Time::from_nanos(origin + number("t"))),
            _ => continue,
        }
        calls.push(call);
    }
    calls
}

/// Reads what the object did, as its program prints it.
fn calls_of(outcome: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for line in outcome.lines().filter(|line| *line != "new") {
        let words: Vec<&str> = line.split(' ').collect();
        let number = || words[1].parse().unwrap();
        if words[0] == "dropped" {
            calls.last_mut().unwrap().dropped.insert(number());
            continue;
        }
        let left = (words[0] == "out").then(|| (number(), words[2] == "1"));
        calls.push(Call {
            left,
            ..Call::default()
        });
    }
    calls
}

#[test]
#[ignore = "needs the object, FAIRGATE_OBJECT: scripts/kernel/test runs it"]
fn the_object_does_what_linux_did() {
    let program = program();
    let mut calls = 0;
    for path in traces() {
        let mut trace = Trace::default();
        let linux = repeat(&path, &mut trace);
        let outcome = outcome_of(&program, &trace.operations);
        let name = path.display().to_string();
        assert_equal(&name, &outcome, &trace.outcome);
        let ours = calls_of(&outcome);
        for (at, (ours, linux)) in ours.iter().zip(&linux).enumerate() {
            assert_eq!(ours, linux, "{name}: call {at}, the object's and Linux'");
        }
        assert_eq!(ours.len(), linux.len(), "{name}");
        calls += ours.len();
    }
    eprintln!("{calls} calls of {TRACES} recorded traces are equal");
}

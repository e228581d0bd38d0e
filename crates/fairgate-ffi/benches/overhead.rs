//! What a call through the C ABI costs beyond a call of the library.
//!
//! A program in C and the loop below do the same work in turns, so that both see the same machine. The table
//! has the medians, and the median of the differences. `cargo bench -p fairgate-ffi`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use fairgate::{Egress, FlowHash, Next, Packet, Pool, Time};
use fairgate_config::Spec;

const PAIRS: u64 = 2_000_000;
const BACKLOG: u64 = 64;
const ROUNDS: usize = 15;

fn main() {
    // `cargo test --benches` only compiles it.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let program = compiled();
    println!(
        "{:<12} {:>10} {:>10} {:>14}",
        "ns a call", "library", "C ABI", "difference"
    );
    for tree in ["fifo limit=1000", "fq_codel", "qfq"] {
        let mut rounds: Vec<(f64, f64)> = (0..ROUNDS)
            .map(|_| (through_library(tree), through_c(&program, tree)))
            .collect();
        let differences = rounds.iter().map(|(library, c)| c - library).collect();
        let library = median(rounds.iter().map(|(library, _)| *library).collect());
        let c = median(rounds.drain(..).map(|(_, c)| c).collect());
        let name = tree.split(' ').next().unwrap_or(tree);
        println!(
            "{name:<12} {library:>10.2} {c:>10.2} {:>14.2}",
            median(differences)
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn through_library(tree: &str) -> f64 {
    let spec = Spec::inline(tree).expect("a tree");
    let mut egress = Egress::new(spec.build(1).expect("a tree that can be built"));
    let mut pool = Pool::with_capacity(BACKLOG as u32 + 1);
    let mut packet = Packet::of_length(1514);
    let flow = |number: u64| FlowHash::from_raw((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for number in 0..BACKLOG {
        packet.flow = flow(number);
        let id = pool.insert(packet).expect("room");
        let _ = egress.enqueue(id, Time::ZERO, &mut pool);
    }
    let begin = Instant::now();
    for number in 0..PAIRS {
        packet.flow = flow(number % BACKLOG);
        packet.cookie = number;
        let now = Time::from_nanos(number);
        let id = pool.insert(std::hint::black_box(packet)).expect("room");
        std::hint::black_box(egress.enqueue(id, now, &mut pool));
        match egress.dequeue(now, &mut pool) {
            Next::Packet(id) => std::hint::black_box(pool.release(id)),
            Next::Wait(_) | Next::Idle => panic!("packets are queued"),
        };
    }
    begin.elapsed().as_nanos() as f64 / (2 * PAIRS) as f64
}

fn through_c(program: &PathBuf, tree: &str) -> f64 {
    let output = Command::new(program)
        .args([tree, &PAIRS.to_string(), &BACKLOG.to_string()])
        .output()
        .expect("the program runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let printed = String::from_utf8_lossy(&output.stdout);
    printed.trim().parse().expect("a number")
}

/// Compiles the program in C against the shared library of this build.
fn compiled() -> PathBuf {
    let here = std::env::current_exe().expect("a path");
    let libraries = here.parent().expect("a folder");
    let program = libraries.join("overhead-c");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/overhead.c");
    let status = Command::new("cc")
        .args(["-O2", "-std=c11", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(source)
        .args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include")])
        .arg(format!("-Wl,-rpath,{}", libraries.display()))
        .arg("-L")
        .arg(libraries)
        .arg("-lfairgate_ffi")
        .status()
        .expect("cc is installed");
    assert!(status.success(), "the program in C compiles");
    // The library is found by its name for the dynamic linker.
    let name = libraries.join("libfairgate.so.1");
    let _ = std::fs::remove_file(&name);
    std::os::unix::fs::symlink(libraries.join("libfairgate_ffi.so"), name).expect("a link");
    program
}

//! The counts that the repository keeps (`instructions.csv`), so that one that grows does so by intention.
//!
//! Counts depend on the compiler. The table names the one that it was written with, and nothing is compared
//! under another one.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What is counted: the path that all share, and what is used most or has grown before.
const PINNED: [&str; 14] = [
    "fifo",
    "prio",
    "tbf",
    "codel",
    "drr",
    "fq_codel",
    "msfc",
    "cake",
    "qfq",
    "wf2q_plus",
    "sqf",
    "htb",
    "hfsc",
    "cbq",
];
const FLOWS: u32 = 64;
/// The part by which a count must grow to fail, or fall to be worth writing down.
const TOLERANCE: f64 = 0.02;
const REWRITE: &str = "make pin-instructions";
const COMPILER: &str = "# compiler: ";

/// Compares with the table. `count` returns the instructions of a pair of a discipline.
pub(crate) fn check(count: impl Fn(&str, u32) -> f64 + Sync) -> ExitCode {
    let path = path();
    let table = match fs::read_to_string(&path) {
        Ok(table) => table,
        Err(error) => {
            eprintln!("{}: {error}; `{REWRITE}` writes it", path.display());
            return ExitCode::FAILURE;
        }
    };
    let (own, written_with) = (
        compiler(),
        table.lines().find_map(|line| line.strip_prefix(COMPILER)),
    );
    if written_with != Some(&own) {
        eprintln!(
            "SKIPPED: instructions are not compared: {} was written with {}, and this is {own}; \
             `{REWRITE}` writes it anew",
            path.display(),
            written_with.unwrap_or("no compiler"),
        );
        return ExitCode::SUCCESS;
    }
    let pinned: Vec<(&str, f64)> = table.lines().filter_map(row).collect();
    let names: Vec<&str> = pinned.iter().map(|(name, _)| *name).collect();
    if names != PINNED {
        eprintln!(
            "{}: it has other disciplines than `PINNED`; `{REWRITE}` writes it anew",
            path.display()
        );
        return ExitCode::FAILURE;
    }
    let mut has_grown = false;
    for ((name, before), now) in pinned.into_iter().zip(count_all(&names, count)) {
        let percent = 100.0 * (now / before - 1.0);
        println!("{name:12}{before:>10.1}{now:>10.1}{percent:>+8.1} %");
        if now >= before * (1.0 + TOLERANCE) {
            has_grown = true;
            eprintln!(
                "{name}: a pair takes {now:.1} instructions, {percent:.1} % more than the {before:.1} in {}. \
                 If what the change gives is worth them, say so in it, and run `{REWRITE}`",
                path.display()
            );
        } else if now <= before * (1.0 - TOLERANCE) {
            eprintln!("HINT: {name} takes fewer instructions than before; `{REWRITE}` keeps what was gained");
        }
    }
    match has_grown {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Writes the table.
pub(crate) fn write(count: impl Fn(&str, u32) -> f64 + Sync) -> ExitCode {
    let mut table = format!(
        "# Instructions of a pair, one packet in and one out, with {FLOWS} flows. `{REWRITE}` writes this.\n\
         {COMPILER}{}\n",
        compiler()
    );
    for (name, count) in PINNED.into_iter().zip(count_all(&PINNED, count)) {
        writeln!(table, "{name},{count:.1}").expect("a string takes all");
    }
    print!("{table}");
    match fs::write(path(), table) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", path().display());
            ExitCode::FAILURE
        }
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.csv")
}

fn row(line: &str) -> Option<(&str, f64)> {
    let (name, count) = line.split_once(',').filter(|_| !line.starts_with('#'))?;
    Some((name, count.parse().ok()?))
}

/// Counts several disciplines, as many at once as there are processors.
fn count_all(names: &[&str], count: impl Fn(&str, u32) -> f64 + Sync) -> Vec<f64> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut counts = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = names.get(place) else {
                return counts;
            };
            counts.push((place, count(name, FLOWS)));
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut counts: Vec<(usize, f64)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..processors).map(|_| scope.spawn(work)).collect();
        let join =
            |worker: thread::ScopedJoinHandle<'_, Vec<(usize, f64)>>| worker.join().expect("it counts");
        workers.into_iter().flat_map(join).collect()
    });
    counts.sort_unstable_by_key(|(place, _)| *place);
    counts.into_iter().map(|(_, count)| count).collect()
}

/// Returns the compiler and the code generator behind it, without the day on which they were built.
fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .arg("-vV")
        .output()
        .expect("cargo has just called it");
    let output = String::from_utf8_lossy(&output.stdout);
    let field = |name: &str| {
        output
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or("?")
    };
    format!(
        "rustc {}, LLVM {}, {}",
        field("release: "),
        field("LLVM version: "),
        field("host: ")
    )
}

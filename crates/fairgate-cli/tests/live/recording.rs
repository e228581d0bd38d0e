//! `fairgate record`: what a run did, class by class.

use std::fs;
use std::path::Path;
use std::process::Command;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::changes::change;
use crate::common::program::Program;
use crate::common::{live, output, until};
use crate::harness::ping;
use crate::run::Run;

/// A class with a queue of two packets behind a shaper of 100 kbit/s, and one without a limit.
const TREE: &str = "[queue.line]\ndiscipline = \"drr\"\ndefault = 2\n\n\
    [[queue.line.class]]\nid = 1\ndiscipline = \"tbf\"\nrate = \"100kbit\"\nburst = \"2kb\"\n\
    inner = { discipline = \"fifo\", limit = 2 }\n\n\
    [[queue.line.class]]\nid = 2\ndiscipline = \"fifo\"\n\n\
    [run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"line\"\nright_to_left = \"line\"\n";

/// Starts a recording into this file, and waits until it has rows.
fn record(run: &Run, file: &Path, words: &[&str]) -> Program {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    command
        .args(["record", "--interval", "50ms", "--socket"])
        .arg(&run.socket);
    command.arg("-o").arg(file).args(words);
    Program::start(&mut command)
}

/// The rows of a CSV file, by the names of the columns.
struct Rows {
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    fn read(file: &Path) -> Rows {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.ends_with('\n'), "the last row is not whole");
        let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let names = fields(text.lines().next().unwrap());
        let rows: Vec<Vec<String>> = text.lines().skip(1).map(fields).collect();
        assert!(rows.iter().all(|row| row.len() == names.len()), "{text}");
        Rows { names, rows }
    }

    fn of<'r>(&'r self, row: &'r [String], name: &str) -> &'r str {
        let place = self.names.iter().position(|known| known == name);
        &row[place.unwrap_or_else(|| panic!("there is no column {name}"))]
    }

    fn of_class<'r>(&'r self, class: &'r str) -> impl Iterator<Item = &'r Vec<String>> {
        let is_it =
            move |row: &&Vec<String>| self.of(row, "from") == "left" && self.of(row, "class") == class;
        self.rows.iter().filter(is_it)
    }

    fn sum(&self, class: &str, name: &str) -> u64 {
        self.of_class(class)
            .map(|row| self.of(row, name).parse::<u64>().unwrap())
            .sum()
    }
}

/// Rates, delays and drops of a recording add up, class by class, through a change. A page is drawn of it.
#[test]
fn a_recording_has_what_each_class_did() {
    let Some(_watched) = live("a_recording_has_what_each_class_did") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let (file, page) = (run.folder.path().join("r.csv"), run.folder.path().join("r.html"));
    let recording = record(&run, &file, &["--plot", page.to_str().unwrap()]);
    until("it records", || {
        fs::read_to_string(&file).is_ok_and(|text| text.lines().count() > 1)
    });
    assert!(ping(&network, Network::RIGHT));
    change(&run, "class add 3 / codel");
    change(&run, "filter add class=3 protocol=icmp");
    assert!(ping(&network, Network::RIGHT));
    change(&run, "filter change 1 class=1");
    // Of 30 pings of a kilobyte at once, most find no room in class 1.
    let words = [
        "-n",
        "-q",
        "-c",
        "30",
        "-i",
        "0.002",
        "-s",
        "1000",
        "-W",
        "1",
        Network::RIGHT,
    ];
    output(network.left.command("ping").args(words));
    until("the drops are recorded", || {
        Rows::read(&file).sum("1", "dropped") > 0
    });
    recording.signal(Signal::SIGINT);
    let ended = recording.output();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");

    let rows = Rows::read(&file);
    assert!(rows.sum("3", "packets") >= 3);
    let before: u64 = rows.sum("2", "packets");
    assert!(before >= 3, "{before}");
    assert!(
        rows.of_class("3")
            .all(|row| rows.of(row, "discipline") == "codel")
    );
    let tree = &run.status().directions[0].tree;
    assert!(rows.sum("", "packets") <= tree.dequeued.packets);
    let of_class: u64 = ["1", "2", "3"]
        .map(|class| rows.sum(class, "packets"))
        .iter()
        .sum();
    assert!(
        rows.sum("", "packets").abs_diff(of_class) <= 2,
        "the root sent what its classes sent"
    );
    assert_eq!(rows.sum("1/1", "dropped"), rows.sum("1/1", "dropped_queue_limit"));
    assert_eq!(rows.sum("1", "dropped"), tree.classes[0].dropped.packets);
    assert_eq!(rows.sum("3", "dropped"), 0);
    // Two packets wait in class 1, each for 80 ms and more; class 2 holds nothing back.
    let percentile = |class: &str, name: &str| {
        let values = rows
            .of_class(class)
            .filter_map(|row| rows.of(row, name).parse::<f64>().ok());
        values.fold(0.0, f64::max)
    };
    assert!(percentile("1", "delay_p99_ms") > 60.0);
    for row in &rows.rows {
        let names = ["delay_p50_ms", "delay_p95_ms", "delay_p99_ms", "delay_max_ms"];
        let values: Vec<f64> = names
            .iter()
            .filter_map(|name| rows.of(row, name).parse().ok())
            .collect();
        assert!(values.is_sorted(), "{row:?}");
        assert!(values.is_empty() || rows.of(row, "packets") != "0", "{row:?}");
    }
    let page = fs::read_to_string(page).unwrap();
    for part in [
        "Rates",
        "Queues",
        "Packet delays",
        "Drops",
        "left 1 tbf, 99 %",
        "left drr",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    run.stop();
}

/// A Parquet file is complete after Ctrl-C, and draws the same figure as CSV of the same intervals would.
#[test]
fn a_recording_is_drawn_from_parquet() {
    let Some(_watched) = live("a_recording_is_drawn_from_parquet") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    let file = run.folder.path().join("r.parquet");
    let recording = record(&run, &file, &["--for", "2s"]);
    assert!(ping(&network, Network::RIGHT));
    let ended = recording.output();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let figure = run.folder.path().join("delay.svg");
    let mut plot = Command::new(env!("CARGO_BIN_EXE_fairgate"));
    plot.arg("plot")
        .arg(&file)
        .args(["--of", "delay", "--out"])
        .arg(&figure);
    let drawn = output(&mut plot);
    assert_eq!(drawn.status.code(), Some(0), "{drawn:?}");
    let svg = fs::read_to_string(&figure).unwrap();
    assert!(
        svg.contains("left 2 fifo, median") && !svg.contains("NaN"),
        "{svg}"
    );
    run.stop();
}

/// On a full disk a recording has all intervals before, and can be drawn. One that has none leaves no file.
#[test]
fn a_recording_survives_a_full_disk() {
    let Some(_watched) = live("a_recording_survives_a_full_disk") else {
        return;
    };
    let network = Network::build().unwrap();
    let run = Run::start(&network.router, TREE);
    // The last size has no room for a first interval.
    for (file, size) in [("r.csv", "16k"), ("r.parquet", "256k"), ("r.parquet", "32k")] {
        let (disk, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let script = "mount -t tmpfs -o size=$1 none $2 || exit 99
            $4 record --interval 10ms --socket $3 -o $2/$6
            echo \"code $?\"
            ls -A $2
            cp $2/* $5
            ! test -e $2/$6 || $4 plot $2/$6 -o $5/r.svg";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh", size]);
        command.arg(disk.path()).arg(&run.socket);
        command
            .arg(env!("CARGO_BIN_EXE_fairgate"))
            .arg(out.path())
            .arg(file);
        let ended = output(&mut command);
        let (said, shown) = (
            String::from_utf8_lossy(&ended.stderr),
            String::from_utf8_lossy(&ended.stdout),
        );
        assert!(said.contains("No space left"), "{file} {size}: {said}");
        if size == "32k" {
            assert_eq!(shown, "code 3\n", "{said}");
            continue;
        }
        assert!(shown.starts_with(&format!("code 3\n{file}\n")), "{shown}");
        assert!(
            said.contains("intervals before") && !said.contains("torn"),
            "{said}"
        );
        let figure = fs::read_to_string(out.path().join("r.svg")).unwrap();
        assert!(figure.contains("left drr"), "{figure}");
        if file == "r.csv" {
            assert!(Rows::read(&out.path().join(file)).of_class("").count() > 1);
        }
    }
    run.stop();
}

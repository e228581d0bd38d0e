//! `fairgate plot` as users run it.

use std::path::PathBuf;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_fairgate");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/dumbbell.toml");

struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates a folder with the results of the example.
    fn with_results(arguments: &[&str]) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
        let simulate = [
            &["simulate", EXAMPLE, "--duration", "8s", "--out", "results.json"],
            arguments,
        ]
        .concat();
        assert!(folder.run(&simulate).status.success());
        folder
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut program = Command::new(PROGRAM);
        program.args(arguments).current_dir(self.0.path());
        program.output().expect("the program starts")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn svg(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the figure was written")
    }
}

#[test]
fn each_quantity_is_drawn() {
    let folder = Folder::with_results(&[]);
    for (quantity, name) in [
        ("throughput", "download-1"),
        ("window", "download-4"),
        ("rtt", "download-2"),
        ("delay", "video"),
        ("backlog", "provider-&gt;home"),
        ("sojourn", "provider-&gt;home"),
    ] {
        let output = folder.run(&["plot", "results.json", "--of", quantity]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let svg = folder.svg(&format!("{quantity}.svg"));
        assert!(svg.starts_with("<svg ") && svg.contains(name), "{quantity}");
        assert!(!svg.contains("NaN") && svg.contains("<path"), "{quantity}: {svg}");
    }
}

#[test]
fn a_page_has_every_quantity_or_the_one_that_is_named() {
    let folder = Folder::with_results(&["--seeds", "2"]);
    let figures = |arguments: &[&str]| {
        let page = [
            &["plot", "results.json", "--out", "page.html", "--json"],
            arguments,
        ]
        .concat();
        let output = folder.run(&page);
        let drawing: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
        assert_eq!(drawing["quantity"], "page");
        let page = folder.svg("page.html");
        assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("NaN"));
        let figures = drawing["curves"].as_array().expect("names of figures").clone();
        assert_eq!(page.matches("<figure").count(), figures.len());
        figures
    };
    let all = [
        "throughput",
        "violins",
        "delay",
        "backlog",
        "sojourn",
        "window",
        "rtt",
    ];
    assert_eq!(figures(&["--log"]), all);
    assert_eq!(figures(&["--of", "rtt"]), ["rtt"]);
}

#[test]
fn names_choose_the_curves() {
    let folder = Folder::with_results(&["--seeds", "2"]);
    let output = folder.run(&[
        "plot",
        "results.json",
        "--only",
        "download",
        "--seed",
        "2",
        "--json",
    ]);
    let drawing: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(drawing["schema"], "fairgate.plot/1");
    let names = ["download-1", "download-2", "download-3", "download-4"];
    assert_eq!(drawing["curves"], serde_json::json!(names));
    assert!(folder.svg("throughput.svg").contains("seed 2"));
}

#[test]
fn mistakes_are_reported_and_leave_no_file() {
    let folder = Folder::with_results(&[]);
    std::fs::write(folder.path("broken.json"), "{\"schema\": \"fairgate.list/1\"}").unwrap();
    for (arguments, message) in [
        (&["absent.json"][..], "can't read absent.json"),
        (&["broken.json"], "not a result of `fairgate simulate`"),
        (&["results.json", "--only", "nobody"], "`nobody` in its name"),
        (&["results.json", "--seed", "9"], "no results of seed 9"),
    ] {
        let output = folder.run(&[&["plot"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message), "{error}");
    }
    assert!(!folder.path("throughput.svg").exists());
}

const CLASSES: &str = r#"
[queue.tree]
discipline = "drr"
class = [{ id = 10, discipline = "codel" }, { id = 20, discipline = "fifo" }]
default = 10
filter = [{ dscp = "EF", class = 20 }]

[simulate]
duration = "5s"
[[simulate.link]]
a = "a"
b = "b"
rate = "2mbit"
delay = "5ms"
queue = "tree"
[[simulate.flow]]
name = "download"
from = "a"
to = "b"
count = 2
tcp = {}
[[simulate.flow]]
name = "call"
from = "a"
to = "b"
dscp = 46
udp = { rate = "64kbit", size = "160b" }
[[simulate.observe]]
name = "queue"
interface = "a->b"
class = "10"
variable = "backlog_packets"
[[simulate.observe]]
name = "next drop"
interface = "a->b"
class = "10"
variable = "drop_next"
"#;

#[test]
fn several_results_are_side_by_side() {
    let folder = Folder(tempfile::tempdir().expect("a temporary folder"));
    for (name, text) in [
        ("codel", CLASSES.to_owned()),
        (
            "fifo",
            CLASSES
                .replace("\"codel\"", "\"fifo\"")
                .replace("drop_next", "limit_packets"),
        ),
    ] {
        std::fs::write(folder.path("file.toml"), text).expect("the file can be written");
        let output = folder.run(&["simulate", "file.toml", "--out", &format!("{name}.json")]);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let plot = |arguments: &[&str]| {
        let output = folder.run(&[&["plot", "--json"], arguments].concat());
        let text = if output.status.success() {
            &output.stdout
        } else {
            &output.stderr
        };
        serde_json::from_slice::<serde_json::Value>(text)
            .or_else(|_| serde_json::from_slice(&output.stdout))
            .expect("one JSON document")
    };
    let drawing = plot(&["codel.json", "fifo.json", "--of", "violins", "--log"]);
    assert_eq!(drawing["curves"], serde_json::json!(["download", "call"]));
    let svg = folder.svg("violins.svg");
    assert_eq!(
        svg.matches("path class=\"violin\"").count(),
        4,
        "two groups with two disciplines"
    );
    assert!(
        svg.contains(">codel<") && svg.contains(">fifo<") && svg.contains(">call<"),
        "{svg}"
    );

    let drawing = plot(&["codel.json", "fifo.json", "--of", "classes"]);
    assert_eq!(
        drawing["curves"],
        serde_json::json!(["a->b class 10", "a->b class 20", "b->a class 10"])
    );

    let drawing = plot(&["codel.json", "--of", "observed"]);
    assert_eq!(
        drawing["curves"],
        serde_json::json!(["queue"]),
        "the other one has another unit"
    );
    assert!(folder.svg("observed.svg").contains("Observed, packets"));
    let drawing = plot(&["fifo.json", "--of", "observed", "--only", "drop"]);
    assert_eq!(drawing["curves"], serde_json::json!(["next drop"]));

    for (arguments, message) in [
        (
            &["codel.json", "fifo.json"][..],
            "`--of throughput` draws one file, but 2 are given",
        ),
        (
            &["codel.json", "--log"],
            "`--log` is for the delays of `--of violins`",
        ),
        (
            &["codel.json", "--of", "observed", "--only", "zzz"],
            "there is nothing to draw: no observation with `zzz` in its name has a value",
        ),
    ] {
        assert_eq!(plot(arguments)["errors"][0]["message"], message, "{arguments:?}");
    }
}

/// A recording that was cut off is drawn up to its last whole row. No message says to overwrite a file.
#[test]
fn a_torn_recording_is_drawn() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let names = "time_s,from,class,discipline,rate_bps,bytes,dropped\n";
    let row = "1,left,,fifo,8000,1000,0\n";
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for torn in ["2,left,,fi", "2,left,,fifo,8000,1000,0"] {
        std::fs::write(folder.path("r.csv"), format!("{names}{row}{row}{torn}")).unwrap();
        let output = folder.run(&["plot", "r.csv", "-o", "r.svg"]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(said(&output).contains("warning: the last row of r.csv is torn"));
        assert!(folder.svg("r.svg").contains("left fifo"));
    }
    let files = [
        ("short.csv", format!("{names}1,left\n{row}")),
        ("columns.csv", "time_s,from\n1,left\n".to_owned()),
        ("r.parquet", "PAR1 and no end".to_owned()),
        ("empty.csv", String::new()),
        ("results.json", "{}".to_owned()),
    ];
    for (name, content) in files {
        std::fs::write(folder.path(name), content).unwrap();
        let output = folder.run(&["plot", name, "-o", "r.svg"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let said = said(&output);
        for way in ["-o ", "--out "] {
            assert!(!said.contains(&format!("{way}{name}")), "{said}");
        }
    }
}

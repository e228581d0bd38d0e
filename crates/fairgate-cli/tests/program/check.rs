//! `fairgate check` with valid files: the examples, and files that give warnings.

use std::path::PathBuf;

use super::{ends, folder, json};

/// Writes a file with this text. The folder is removed when the first value is dropped.
fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("the folder is writable");
    let path = path.to_str().expect("an ordinary path").to_owned();
    (folder, path)
}

fn examples(extension: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder("../../examples")).expect("the project has examples");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let of_kind = paths.filter(|path| path.extension().is_some_and(|found| found == extension));
    let text = |path: PathBuf| path.to_str().expect("an ordinary path").to_owned();
    of_kind.map(text).collect()
}

/// The examples are valid and give no warning.
#[test]
fn every_example_is_valid() {
    let files = examples("toml");
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let (stdout, stderr) = ends(&["check", &path], 0);
        assert!(stdout.contains("is valid"), "{stdout}");
        assert_eq!(stderr, "", "{path}");
        let document = json(&["check", "--json", &path], 0);
        assert_eq!(document["schema"], "fairgate.check/1");
        let text = std::fs::read_to_string(&path).expect("a file");
        let has = |section: &str| {
            let sections = document["sections"].as_array().expect("a list");
            sections.iter().any(|other| other == section)
        };
        for command in ["run", "simulate", "sweep"] {
            let is_named = text.contains(&format!("fairgate {command} examples/"));
            assert_eq!(
                has(command),
                is_named,
                "{path} mentions `fairgate {command}` if it has the section"
            );
        }
    }
    for (language, extension) in [("tc", "tc"), ("dummynet", "ipfw")] {
        let files = examples(extension);
        assert!(!files.is_empty());
        for path in files {
            let (_, stderr) = ends(&[language, "--tree", &path], 0);
            assert_eq!(stderr, "", "{path}");
        }
    }
}

#[test]
fn a_bucket_below_a_full_sized_frame_is_a_warning() {
    let (_folder, path) = file(
        "small.toml",
        "[queue.wan]\ndiscipline = 'tbf'\nrate = '1mbit'\nburst = '1000b'\ninner = { discipline = 'fifo' }\n",
    );
    let expected = format!(
        "{path}:4:9: `burst` of `tbf` is 1000b, but a full frame at an MTU of 1500 is 1514b: each one would \
         be dropped; raise `burst` to 1514b or more, or lower the interfaces' MTU, so that frames are shorter"
    );
    let (stdout, stderr) = ends(&["check", &path], 0);
    assert!(stdout.contains("is valid"), "{stdout}");
    assert_eq!(stderr, format!("warning: {expected}\n"));
    let document = json(&["check", "--json", &path], 0);
    assert_eq!(document["warnings"], serde_json::json!([expected]));
}

/// A simulated packet can have a mark, and a real frame cannot.
#[test]
fn a_filter_on_a_mark_is_a_warning_if_the_tree_is_to_be_run() {
    let tree = "[queue.wan]\ndiscipline = 'drr'\ndefault = 1\nclass = [{ id = 1, discipline = 'fifo' }]\n\
                filter = [{ class = 1, mark = 7 }]\n";
    let (_folder, path) = file("marks.toml", tree);
    assert_eq!(ends(&["check", &path], 0).1, "");
    let run = format!("{tree}[run]\nleft = 'a'\nright = 'b'\nleft_to_right = 'wan'\n");
    let (_folder, path) = file("marks.toml", &run);
    let (_, stderr) = ends(&["check", &path], 0);
    assert!(
        stderr.starts_with(&format!(
            "warning: {path}:5:31: filter 1 of `drr` asks for a mark"
        )),
        "{stderr}"
    );
    assert!(stderr.ends_with("`fairgate run` rejects this\n"), "{stderr}");

    let script = "qdisc add dev e root handle 1: drr\nclass add dev e parent 1: classid 1:1 drr\n\
                  filter add dev e parent 1: handle 7 fw flowid 1:1";
    let (_, stderr) = ends(&["tc", script], 0);
    assert!(
        stderr.starts_with("warning: command line:3:35: filter 1 of `drr` asks for a mark"),
        "{stderr}"
    );
}

/// These runs must not start. They would be killed for lack of memory, or make the machine unusable.
#[test]
fn what_does_not_fit_the_memory_is_rejected_with_its_location() {
    let scenario = "[simulate]\nduration = '60s'\ninterval = '100ms'\n\
                    [[simulate.link]]\na = 'a'\nb = 'b'\nrate = '1mbit'\n\
                    [[simulate.flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\ncount = 2\ntcp = {}\n";
    let (_folder, path) = file("fine.toml", &scenario.replace("100ms", "1ns"));
    for command in ["check", "simulate"] {
        let (_, stderr) = ends(&[command, &path], 2);
        assert!(stderr.contains("fine.toml:3:12"), "{stderr}");
        assert!(
            stderr.contains("60000000000 intervals of time series"),
            "{stderr}"
        );
        assert!(stderr.contains("choose a longer `interval`"), "{stderr}");
    }
    let (_, stderr) = ends(&["simulate", &path, "--duration", "1us"], 0);
    assert_eq!(stderr, "");

    // Together these flows need more memory than any machine has.
    let group =
        |n| format!("[[simulate.flow]]\nname = 'g{n}'\nfrom = 'a'\nto = 'b'\ncount = 1000000\ntcp = {{}}\n");
    let groups: String = (0..4).map(group).collect();
    let few_points = scenario.replace("100ms", "60s");
    let (_folder, path) = file("many.toml", &format!("{few_points}{groups}"));
    for command in ["check", "simulate"] {
        let errors = json(&[command, "--json", &path], 2);
        let message = errors["errors"][0]["message"].as_str().expect("a message");
        assert!(message.contains("1000000 flows `g"), "{message}");
        assert_eq!(
            errors["errors"][0]["help"],
            "lower the count, or write rows = false"
        );
    }

    let (_folder, path) = file(
        "hosts.toml",
        "[queue.wan]\ndiscipline = 'htb'\ndefault = 1\n\
         [[queue.wan.class]]\nid = 1\nrate = '1mbit'\ndiscipline = 'fifo'\n\
         [[queue.wan.class]]\nid = 2\nrate = '1mbit'\neach = 'destination'\ncount = 60000\n\
         discipline = 'fq_codel'\nflows = 1048576\n",
    );
    let errors = json(&["check", "--json", &path], 2);
    let error = &errors["errors"][0];
    let message = error["message"].as_str().expect("a message");
    assert!(
        message.contains("3.7 TiB of memory, most of it 60000 times this `fq_codel`"),
        "{message}"
    );
    assert_eq!((&error["line"], &error["column"]), (&13.into(), &14.into()));
}

/// What is wrong is named as it was written: the option, and the list.
#[test]
fn mistakes_are_named_as_they_were_written() {
    for option in ["--down", "--up"] {
        let (_, said) = ends(&["run", "--dev", "eth0", option, "10"], 2);
        let expected = format!(
            "invalid value '10' for '{option} <RATE>': 10bit is less than a line can have: without a unit \
             it is bit/s; write 10mbit for Mbit/s"
        );
        assert!(said.contains(&expected), "{said}");
        let (_, said) = ends(&["run", "--dev", "eth0", option, "1kbit"], 2);
        assert!(
            said.contains("1Kbit is less than a line can have: write the rate"),
            "{said}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("isp.toml");
    let text = "[subscribers]\nfile = \"gone.csv\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\
                [run]\nleft = \"a\"\nright = \"b\"\nleft_to_right = \"down\"\nright_to_left = \"up\"\n";
    std::fs::write(&file, text).unwrap();
    let (_, said) = ends(&["check", file.to_str().unwrap()], 2);
    let words: Vec<&str> = said
        .split_whitespace()
        .filter(|word| *word != "\u{2502}")
        .collect();
    let said = words.join(" ");
    assert!(
        said.contains("gone.csv: it was deleted or moved, or its name is wrong"),
        "{said}"
    );
    assert!(said.contains("a run keeps the list that it has"), "{said}");
}

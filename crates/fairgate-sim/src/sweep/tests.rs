use super::*;

const SCENARIO: &str = r#"
[queue.wan]
discipline = "fq_codel"

[simulate]
duration = "200ms"
seed = 3

[[simulate.link]]
a = "server"
b = "home"
rate = "10mbit"
delay = "5ms"
queue_a = "wan"

[[simulate.flow]]
name = "downloads"
from = "server"
to = "home"
tcp = {}
"#;

fn with_sweep<R>(section: &str, look: impl FnOnce(Result<Sweep<'_>, FileError>) -> R) -> R {
    let text = format!("{SCENARIO}\n[sweep]\n{section}\n");
    let registry = Registry::builtin();
    let document = Document::parse("sweep.toml", &text).unwrap();
    look(Sweep::read(&document, &registry, u64::MAX))
}

/// Returns the message, the remedy, and the text at the location.
fn mistake(section: &str) -> (String, String, String) {
    let text = format!("{SCENARIO}\n[sweep]\n{section}\n");
    with_sweep(section, |read| {
        let error = read.expect_err("there is a mistake");
        let problem = &error.problems()[0];
        (
            problem.message.clone(),
            problem.help.clone(),
            text[problem.span.clone()].to_owned(),
        )
    })
}

#[test]
fn all_combinations_are_run_with_all_seeds() {
    let section = r#"
        seeds = 2
        [sweep.grid]
        simulate.flow.downloads.count = [1, 2]
        "queue.wan.target" = ["1ms", "5ms", "20ms"]
    "#;
    with_sweep(section, |sweep| {
        let sweep = sweep.unwrap();
        assert_eq!(sweep.runs(), 12);
        assert_eq!(sweep.measure(), Measure::Groups);
        let paths: Vec<&str> = sweep.axes().iter().map(|axis| axis.path.as_str()).collect();
        assert_eq!(paths, ["simulate.flow.downloads.count", "queue.wan.target"]);
        let runs: Vec<Run> = (0..12).map(|number| sweep.run(number)).collect();
        let seen: Vec<(u64, String)> = runs
            .iter()
            .map(|run| {
                let values: Vec<String> = sweep.values_of(run).iter().map(ToString::to_string).collect();
                (run.scenario.seed, values.join(" "))
            })
            .collect();
        assert_eq!(seen[0], (3, "1 \"1ms\"".to_owned()));
        assert_eq!(seen[1], (4, "1 \"1ms\"".to_owned()));
        assert_eq!(seen[11], (4, "2 \"20ms\"".to_owned()));
        let counts: Vec<u32> = runs.iter().map(|run| run.scenario.flows[0].count).collect();
        assert_eq!(counts, [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
        let mut ids: Vec<&String> = runs.iter().map(|run| &run.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 12);
    });
}

#[test]
fn a_queue_and_an_entry_of_a_list_can_be_values() {
    let section = r#"
        seeds = [9, 4]
        measure = "flows"
        [sweep.grid]
        queue.wan = [{ discipline = "fifo" }, { discipline = "sfq" }]
        simulate.link.0.rate = ["5mbit"]
    "#;
    with_sweep(section, |sweep| {
        let sweep = sweep.unwrap();
        assert_eq!((sweep.runs(), sweep.measure()), (4, Measure::Flows));
        assert_eq!(sweep.run(3).scenario.seed, 4);
    });
}

#[test]
fn a_table_is_where_its_first_key_is() {
    let section = r#"
        [sweep.grid]
        simulate.interval = ["100ms"]
        queue.wan.target = ["1ms"]
        simulate.duration = ["200ms"]
        queue.wan.limit = [100]
        "queue.wan.flows" = [16]
    "#;
    with_sweep(section, |sweep| {
        let sweep = sweep.unwrap();
        let paths: Vec<&str> = sweep.axes().iter().map(|axis| axis.path.as_str()).collect();
        let expected = [
            "simulate.interval",
            "simulate.duration",
            "queue.wan.target",
            "queue.wan.limit",
            "queue.wan.flows",
        ];
        assert_eq!(paths, expected);
    });
}

#[test]
fn without_a_grid_only_the_seeds_vary() {
    with_sweep("seeds = 3", |sweep| assert_eq!(sweep.unwrap().runs(), 3));
    with_sweep("", |sweep| assert_eq!(sweep.unwrap().runs(), 1));
}

#[test]
fn a_mistake_is_where_it_is_written() {
    let grid = |line: &str| format!("[sweep.grid]\n{line}");
    let cases = [
        (
            grid("queue.wan.target = [\"5ms\", \"5 apples\"]"),
            "`target`",
            "\"5 apples\"",
        ),
        (grid("queue.wan.targte = [\"5ms\"]"), "targte", "\"5ms\""),
        (
            grid("queue.lan.target = [\"5ms\"]"),
            "`queue` has `wan`",
            "\"5ms\"",
        ),
        (
            grid("simulate.flow.calls.count = [1]"),
            "not one of the names `downloads`",
            "1",
        ),
        (grid("simulate.duration.x = [1]"), "leads into a value", "1"),
        (grid("queue.wan.target = \"5ms\""), "a single value", "\"5ms\""),
        (grid("queue.wan.target = []"), "an empty list", "[]"),
        (grid("queue.wan.limit = [100, -1]"), "limit", "-1"),
        (grid("queue.wan.limit = [nan]"), "limit", "nan"),
        ("seeds = -1".to_owned(), "`seeds` is -1", "-1"),
        ("seeds = 0".to_owned(), "at least one", "0"),
        ("seeds = [1, 2, 1]".to_owned(), "1 is listed twice", "[1, 2, 1]"),
        ("seeds = []".to_owned(), "empty", "[]"),
        ("seeds = \"5\"".to_owned(), "`seeds` is", "\"5\""),
        ("seeds = 99999999999".to_owned(), "at most", "99999999999"),
        (
            "measure = \"colours\"".to_owned(),
            "`measure` can't be `colours`",
            "\"colours\"",
        ),
        ("gird = 1".to_owned(), "`gird` is no key of [sweep]", "gird"),
    ];
    for (section, message, place) in cases {
        let found = mistake(&section);
        assert!(found.0.contains(message), "{section}\n{found:?}");
        assert_eq!(found.2, place, "{found:?}");
        assert!(!found.1.is_empty(), "{found:?}");
    }
}

#[test]
fn values_that_are_only_wrong_together_are_found_before_the_first_run() {
    let section = r#"
        [sweep.grid]
        simulate.duration = ["200ms", "1s"]
        simulate.measure = [["0ms", "200ms"], ["100ms", "150ms"]]
        simulate.interval = ["100ms"]
    "#;
    with_sweep(section, |sweep| assert_eq!(sweep.unwrap().runs(), 4));
    let section = r#"
        [sweep.grid]
        simulate.duration = ["200ms", "100ms"]
        simulate.measure = [["0ms", "50ms"], ["0ms", "150ms"]]
    "#;
    let (message, ..) = mistake(section);
    assert!(message.contains("together"), "{message}");
    assert!(message.contains("simulate.duration = \"100ms\""), "{message}");
}

#[test]
fn too_many_runs_are_refused() {
    let numbers: Vec<String> = (1..=4000).map(|number| number.to_string()).collect();
    let list = numbers.join(", ");
    let section =
        format!("seeds = 1000\n[sweep.grid]\nqueue.wan.limit = [{list}]\nqueue.wan.flows = [{list}]");
    assert!(mistake(&section).0.contains("more than 10000000 runs"));
}

#[test]
fn a_file_without_the_section_is_refused() {
    let document = Document::parse("sweep.toml", SCENARIO).unwrap();
    let registry = Registry::builtin();
    let error = Sweep::read(&document, &registry, u64::MAX).unwrap_err();
    assert_eq!(error.problems()[0].message, "there is no [sweep] section");
}

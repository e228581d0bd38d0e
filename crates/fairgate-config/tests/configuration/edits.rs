//! Changes of a description in words.

use fairgate_config::{FileError, Registry, Spec};

const TREE: &str = "htb handle=1 default=20 { 1 rate=10mbit { 10 rate=6mbit ceil=10mbit / tbf rate=1mbit \
    burst=5kb / codel; 15 rate=2mbit { 16 rate=1mbit prio=3 / fifo }; 20 rate=2mbit / drr { 1 / fifo; \
    2 / fifo } } }";

fn edited(tree: &str, lines: &str) -> Result<Spec, FileError> {
    Spec::inline(tree).unwrap().edited(lines, &Registry::builtin())
}

/// The tree after the changes is the one in the second line.
fn becomes(lines: &str, wanted: &str) {
    let tree = edited(TREE, lines).unwrap_or_else(|error| panic!("{lines}: {error:?}"));
    assert_eq!(tree, Spec::inline(wanted).unwrap(), "{lines}: {tree}");
}

#[test]
fn no_line_changes_nothing() {
    becomes("", TREE);
    becomes("\n  # a remark\n\n", TREE);
}

#[test]
fn classes_are_added_changed_moved_and_deleted() {
    becomes(
        "class add 30 parent=1 rate=1mbit / fq_codel",
        &TREE.replace("20 rate=2mbit /", "30 rate=1mbit / fq_codel; 20 rate=2mbit /"),
    );
    becomes(
        "class add 20/3 quantum=3000 / sfq",
        &TREE.replace("2 / fifo }", "2 / fifo; 3 quantum=3000 / sfq }"),
    );
    becomes(
        "class change 10 rate=5mbit ceil=",
        &TREE.replace("rate=6mbit ceil=10mbit", "rate=5mbit"),
    );
    becomes(
        "class change 10 estimator=1s,8s\nqueue change 10 estimator=250ms,8s\n\
         class change 16 estimator=1s,8s\nclass change 16 estimator=",
        &TREE
            .replace("ceil=10mbit /", "ceil=10mbit estimator=1s,8s /")
            .replace("burst=5kb", "burst=5kb estimator=250ms,8s"),
    );
    becomes(
        "class change 16 prio= / codel",
        &TREE.replace("prio=3 / fifo", "/ codel"),
    );
    becomes(
        "class change 20/2 / codel",
        &TREE.replace("2 / fifo }", "2 / codel }"),
    );
    becomes(
        "class move 16 parent=1\nclass delete 15",
        &TREE.replace(
            "15 rate=2mbit { 16 rate=1mbit prio=3 / fifo }",
            "16 rate=1mbit prio=3 / fifo",
        ),
    );
    becomes(
        "class delete 20/1",
        &TREE.replace("1 / fifo; 2 / fifo }", "2 / fifo }"),
    );
    becomes(
        "class add 40 rate=3mbit { 41 rate=1mbit / fifo }",
        &format!(
            "{} 40 rate=3mbit {{ 41 rate=1mbit / fifo }} }}",
            TREE.strip_suffix('}').unwrap().trim_end().to_owned() + ";"
        ),
    );
}

#[test]
fn disciplines_are_changed_added_moved_and_deleted() {
    becomes(
        "queue change 10/1 fq_codel target=7ms",
        &TREE.replace("/ codel", "/ fq_codel target=7ms"),
    );
    becomes(
        "queue change 10 rate=2mbit",
        &TREE.replace("tbf rate=1mbit", "tbf rate=2mbit"),
    );
    becomes(
        "queue change root default=10",
        &TREE.replace("default=20", "default=10"),
    );
    becomes("queue change root fifo limit=7", "fifo limit=7");
    becomes(
        "queue add root tbf rate=9mbit burst=5kb",
        &format!("tbf rate=9mbit burst=5kb / {TREE}"),
    );
    becomes(
        "queue add 16 red limit=90000",
        &TREE.replace("prio=3 / fifo", "prio=3 / red limit=90000 / fifo"),
    );
    becomes(
        "queue delete 10",
        &TREE.replace("tbf rate=1mbit burst=5kb / codel", "codel"),
    );
    becomes(
        "queue move 20/1 10/1",
        &TREE
            .replace("/ codel", "/ fifo")
            .replace("1 / fifo; 2", "1 / codel; 2"),
    );
}

/// Filters have no form in one line. So the printed tree is compared.
#[test]
fn filters_are_added_changed_moved_and_deleted() {
    let filters = |lines: &str| {
        let toml = edited(TREE, lines)
            .unwrap_or_else(|error| panic!("{lines}: {error:?}"))
            .to_toml("q");
        let lines = toml
            .lines()
            .filter(|line| line.starts_with("dscp") || line.starts_with("destination_port"));
        lines.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let two = "filter add class=10 dscp=EF\nfilter add class=20 destination_port=5000-5100\n";
    assert_eq!(filters(two), "dscp = \"EF\" destination_port = \"5000-5100\"");
    assert_eq!(
        filters(&format!("{two}filter move 2 1")),
        "destination_port = \"5000-5100\" dscp = \"EF\""
    );
    assert_eq!(
        filters(&format!("{two}filter delete 1")),
        "destination_port = \"5000-5100\""
    );
    assert_eq!(
        filters(&format!("{two}filter change 1 dscp=AF41 class=16")),
        "dscp = \"AF41\" destination_port = \"5000-5100\""
    );
    assert_eq!(filters("filter add in=20 class=2 dscp=CS1"), "dscp = \"CS1\"");
}

/// What a filter measures and computes, in words: each key of a table by itself.
#[test]
fn tables_of_a_filter_are_set_in_words() {
    let filters = |lines: &str| {
        let toml = edited(TREE, lines)
            .unwrap_or_else(|error| panic!("{lines}: {error:?}"))
            .to_toml("q");
        let lines = toml
            .lines()
            .filter(|line| line.starts_with("police") || line.starts_with("class = "));
        lines.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let one = "filter add class=10 dscp=EF police.rate=2mbit police.burst=20kb police.exceed=default\n";
    let measured = "class = 10 police = { rate = \"2mbit\", burst = \"20kb\", exceed = \"default\" }";
    assert_eq!(filters(one), measured);
    assert_eq!(
        filters(&format!("{one}filter change 1 police.rate=3mbit police.exceed=")),
        "class = 10 police = { rate = \"3mbit\", burst = \"20kb\" }"
    );
    assert_eq!(filters(&format!("{one}filter change 1 police=")), "class = 10");
    let gone = "filter change 1 police.rate= police.burst= police.exceed=";
    assert_eq!(filters(&format!("{one}{gone}")), "class = 10");
    assert_eq!(
        filters("filter add dscp=EF class=10 police.packets=100 police.burst_packets=9 police.longest=1000"),
        "class = 10 police = { packets = 100, burst_packets = 9, longest = \"1000b\" }"
    );
    assert_eq!(
        filters("filter add dscp=EF class=10 police.rate=8mbit police.burst=20kb police.exact=true"),
        "class = 10 police = { rate = \"8mbit\", burst = \"20kb\", exact = true }"
    );
    let hashed = "filter add class.hash=source,destination class.first=10 class.count=2 dscp=EF\n";
    assert_eq!(
        filters(hashed),
        "class = { hash = [\"source\", \"destination\"], first = 10, count = 2 }"
    );
    assert_eq!(
        filters(&format!("{hashed}filter change 1 class=10")),
        "class = 10"
    );
}

/// Each mistake names the place, the rule and the remedy.
#[test]
fn mistakes_are_located_in_the_line() {
    let cases = [
        ("clas add 3", "`clas` is not something that changes", 1, 1),
        ("class put 3", "`put` is not a way to change", 1, 7),
        ("class add", "a path is missing", 1, 1),
        (
            "# first\nclass add 10 rate=1mbit / fifo",
            "there is a class 10 already",
            2,
            11,
        ),
        ("class change 11 rate=1mbit", "`htb` has no class 11", 1, 14),
        ("class change 20/7 quantum=2000", "`drr` has no class 7", 1, 17),
        ("class change 10 rate=fast", "`rate`", 1, 22),
        ("class change 10 rats=1mbit", "no parameter `rats`", 1, 17),
        (
            "class delete 1",
            "class 1 has classes below it: 10, 15, 20",
            1,
            14,
        ),
        ("class move 10 rate=1mbit", "the new place is missing", 1, 15),
        ("filter delete 1", "there is no filter `1`: there are none", 1, 15),
        ("filter add class=99 dscp=EF", "no class 99", 1, 18),
        (
            "filter add class=10 police.rat=1mbit police.burst=5kb",
            "a policer has no parameter `rat`",
            1,
            28,
        ),
        ("filter add class=10 police.rate=fast", "`rate`", 1, 33),
        ("filter add class=10 police.rate=1mbit", "`burst`", 1, 33),
        ("filter add class=10 police=1mbit", "`police` is text", 1, 28),
        ("queue change 1 fifo", "class 1 holds no discipline", 1, 14),
        ("queue delete 16", "it holds no discipline", 1, 14),
        ("queue move 20 20/1", "can't change places", 1, 15),
        (
            "queue add 16 tbf rate=1mbit burst=5kb / fifo",
            "holds something already",
            1,
            14,
        ),
        ("queue change 16 fifo }", "the change ended before this", 1, 22),
    ];
    for (lines, message, line, column) in cases {
        let error = edited(TREE, lines).expect_err(lines);
        let problem = &error.problems()[0];
        assert!(problem.message.contains(message), "{lines}: {}", problem.message);
        assert_eq!(
            (problem.file(), problem.position()),
            ("the change", (line, column)),
            "{lines}"
        );
        assert!(!problem.help.is_empty(), "{lines}");
    }
}

/// A class is named by its path. Whoever names its number alone is told the path.
#[test]
fn a_class_further_down_is_offered() {
    const DEEP: &str = "drr { 1 / htb default=21 { 20 rate=1mbit / fifo; 21 rate=1mbit / fifo }; \
                        2 / tbf rate=1mbit burst=5kb / drr { 7 / fifo; 20 / fifo } }";
    for (line, message, help, word) in [
        ("class change 21 rate=2mbit", "`drr` has no class 21", "1/21", 3),
        ("class delete 7", "`drr` has no class 7", "2/1/7", 3),
        (
            "class change 20 rate=2mbit",
            "`drr` has no class 20",
            "1/20 or 2/1/20",
            3,
        ),
        ("queue change 1/7 codel", "`htb` has no class 7", "2/1/7", 3),
        (
            "class change 99 rate=2mbit",
            "`drr` has no class 99",
            "it has the classes 1, 2",
            3,
        ),
        ("filter add dscp=EF class=21", "`drr` has no class 21", "in=1", 4),
        (
            "filter add in=2/1 class=21 dscp=EF",
            "`drr` has no class 21",
            "in=1",
            4,
        ),
    ] {
        let error = Spec::inline(DEEP)
            .unwrap()
            .edited(line, &Registry::builtin())
            .expect_err(line);
        let problem = &error.problems()[0];
        assert_eq!(problem.message, message, "{line}");
        assert!(problem.help.contains(help), "{line}: {}", problem.help);
        assert_eq!(problem.word(), word, "{line}");
    }
}

/// A change that leaves the rest of the tree without sense is located there.
#[test]
fn a_tree_that_becomes_invalid_is_refused_at_its_place() {
    let error = edited(TREE, "class delete 20").expect_err("it is the default");
    assert_eq!(
        error.problems()[0].message,
        "class 20 is the default, but `htb` has no class 20"
    );
    assert_eq!(error.problems()[0].file(), "the changed tree");
}

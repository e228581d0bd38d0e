//! Every mistake is reported with its location, its rule and a remedy, and all mistakes of a file are
//! reported at once.

use fairgate_config::run::RUN;
use fairgate_config::{Document, FileError, Registry, Spec};

/// Reads a file of a program that has one section besides the queues.
fn parse(name: &str, text: &str) -> Result<Document, FileError> {
    Document::parse_with(name, text, &Registry::builtin().with_sections([&RUN]))
}

/// Returns the mistakes in a text: the marked location, the message, the remedy.
fn found(text: &str) -> Vec<(String, String, String)> {
    let error = parse("test.toml", text).expect_err("the text has a mistake");
    describe(&error, text)
}

fn describe(error: &FileError, text: &str) -> Vec<(String, String, String)> {
    let describe = |problem: &fairgate_config::Problem| {
        let location = text[problem.span.clone()].to_owned();
        (location, problem.message.clone(), problem.help.clone())
    };
    error.problems().iter().map(describe).collect()
}

/// Expects one mistake with this location and message; the remedy must contain `remedy`.
#[track_caller]
fn one(text: &str, location: &str, message: &str, remedy: &str) {
    let found = found(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].0.as_str(), found[0].1.as_str()), (location, message));
    assert!(found[0].2.contains(remedy), "the remedy is: {}", found[0].2);
}

/// Expects one mistake below `[queue.wan]`.
#[track_caller]
fn in_queue(body: &str, location: &str, message: &str, remedy: &str) {
    one(&format!("[queue.wan]\n{body}"), location, message, remedy);
}

#[test]
fn text_that_is_not_toml() {
    one("[queue.wan\n", "", "unclosed table, expected `]`", "");
    let both = found("[queue.wan]\nrate = 20mbit\nlimit = \n");
    assert!(both.len() >= 2, "both lines are reported: {both:?}");
}

#[test]
fn sections() {
    one(
        "[queu.wan]\n",
        "queu",
        "there is no section `queu`",
        "did you mean `queue`?",
    );
    one("run = 1\n", "1", "`run` is integer, but must be a table", "[run]");
    one(
        "[queue]\nwan = 1\n",
        "wan",
        "`wan` under `queue` is integer",
        "[queue.wan]",
    );
}

#[test]
fn names() {
    in_queue(
        "discipline = \"fq_code\"",
        "\"fq_code\"",
        "there is no discipline `fq_code`",
        "did you mean `fq_codel`?",
    );
    in_queue(
        "limit = 5",
        "wan",
        "no `discipline` is named",
        "add a line like discipline =",
    );
    in_queue(
        "discipline = 5",
        "5",
        "`discipline` is integer, but must be text",
        "`fairgate list`",
    );
    in_queue(
        "discipline = \"codel\"\ntarjet = \"5ms\"",
        "tarjet",
        "`codel` has no parameter `tarjet`",
        "did you mean `target`?",
    );
    in_queue(
        "discipline = \"fifo\"\ndrop = \"hed\"",
        "\"hed\"",
        "`drop` can't be `hed`",
        "did you mean `head`?",
    );
}

#[test]
fn values() {
    in_queue(
        "discipline = \"fifo\"\nlimit = 0",
        "0",
        "`limit` is 0, but must be at least 1, or none",
        "a plain number of packets",
    );
    in_queue(
        "discipline = \"fifo\"\nlimit = \"1000\"",
        "\"1000\"",
        "`limit` is text, but must be a plain number",
        "like 1000",
    );
    in_queue(
        "discipline = \"codel\"\ntarget = 5",
        "5",
        "`target`: `5` is a duration without a unit",
        "like 5ms",
    );
    in_queue(
        "discipline = \"codel\"\ntarget = \"5 parsecs\"",
        " parsecs",
        "`target`: ` parsecs` is not a unit of a duration",
        "ms",
    );
    in_queue(
        "discipline = \"fq_codel\"\nflows = 1048577",
        "1048577",
        "`flows` is 1048577, but must be 1 to 1048576",
        "fewer flows share a queue by chance",
    );
    in_queue(
        "discipline = \"fq_codel\"\necn = \"yes\"",
        "\"yes\"",
        "`ecn` is text, but must be a flag",
        "true or false",
    );
    in_queue(
        "discipline = \"sfq\"\ndivisor = 1000",
        "1000",
        "`divisor` is 1000, but must be a power of two up to 65536",
        "take 1024",
    );
    in_queue(
        "discipline = \"msfc\"\npriomap = [0, 1]",
        "[0, 1]",
        "`priomap` has 2 numbers, but must have 16",
        "16 numbers",
    );
}

#[test]
fn a_rate_of_zero() {
    in_queue(
        "discipline = \"tbf\"\nrate = \"0mbit\"\nburst = \"5kb\"\nlimit = \"64kb\"",
        "0mbit",
        "`rate`: a rate must be above 0, because nothing is sent at 0 bit/s",
        "remove the shaper",
    );
}

#[test]
fn missing_settings() {
    let both = found("[queue.wan]\ndiscipline = \"tbf\"\nlimit = \"64kb\"");
    let messages: Vec<_> = both.iter().map(|(_, message, _)| message.as_str()).collect();
    assert_eq!(messages, ["`tbf` needs `rate`", "`tbf` needs `burst`"]);
    in_queue(
        "discipline = \"tbf\"\nrate = \"1mbit\"\nburst = \"5kb\"",
        "\"tbf\"",
        "`limit` is missing, but must be given if there is no inner discipline",
        "give a limit or a latency",
    );
    in_queue(
        "discipline = \"prio\"",
        "\"prio\"",
        "`prio` needs classes, and has none",
        "[[queue.NAME.class]]",
    );
}

#[test]
fn settings_that_contradict_one_another() {
    let tbf = "discipline = \"tbf\"\nrate = \"1mbit\"\nburst = \"5kb\"\n";
    let in_tbf = |body: &str, location: &str, message: &str, remedy: &str| {
        in_queue(&format!("{tbf}{body}"), location, message, remedy);
    };
    in_tbf(
        "limit = 9000\nlatency = \"50ms\"",
        "\"50ms\"",
        "`latency` is 50ms, but must be left out beside `limit`",
        "either as bytes or as time",
    );
    in_tbf(
        "limit = 9000\npeakrate = \"2mbit\"",
        "\"2mbit\"",
        "`peakrate` is 2Mbit, but must be given together with `mtu`",
        "mtu = ",
    );
    in_tbf(
        "limit = 9000\ninner = { discipline = \"fifo\" }",
        "9000",
        "`limit` is 9000, but must be left out where there is an inner discipline",
        "inner discipline instead",
    );
    in_queue(
        "discipline = \"msfc\"\nclass_by = \"priority\"\n\
         dscp_map = [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,\
         0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]",
        "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,\
         0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]",
        "`dscp_map` is given, but must be left out unless class_by is \"dscp\"",
        "class_by = \"dscp\"",
    );
}

#[test]
fn settings_that_a_discipline_does_not_have() {
    in_queue(
        "discipline = \"fifo\"\ninner = { discipline = \"fifo\" }",
        "inner",
        "`fifo` holds no inner discipline",
        "shaper",
    );
    in_queue(
        "discipline = \"codel\"\nclass = [{ id = 1, discipline = \"fifo\" }]",
        "{ id = 1, discipline = \"fifo\" }",
        "`codel` holds no classes",
        "`prio` or `drr`",
    );
    in_queue(
        "discipline = \"codel\"\nhandle = 10",
        "10",
        "10 is not a handle",
        "handle = \"10\"",
    );
    in_queue(
        "discipline = \"fifo\"\ndefault = 1",
        "default",
        "`fifo` takes no `default`: it has no classes",
        "",
    );
    in_queue(
        "discipline = \"tbf\"\ninner = 5\nrate = 1\nburst = 1\nlimit = 1",
        "5",
        "`inner` is integer, but must be a table",
        "",
    );
}

const TREE: &str =
    "discipline = \"drr\"\nclass = [{ id = 1, discipline = \"fifo\" }, { id = 7, discipline = \"fifo\" }]\n";

#[test]
fn classes() {
    let in_drr = |classes: &str, location: &str, message: &str, remedy: &str| {
        in_queue(
            &format!("discipline = \"drr\"\nclass = [{classes}]"),
            location,
            message,
            remedy,
        );
    };
    in_drr(
        "{ discipline = \"fifo\" }",
        "{ discipline = \"fifo\" }",
        "the class has no `id`",
        "id = 1",
    );
    in_drr(
        "{ id = 1 }",
        "{ id = 1 }",
        "no `discipline` is named",
        "discipline = \"fifo\"",
    );
    in_drr(
        "{ id = 0, discipline = \"fifo\" }",
        "0",
        "`id` is 0, but must be 1 to 262143",
        "a plain number",
    );
    in_drr(
        "{ id = 1, discipline = \"fifo\" }, { id = 1, discipline = \"fifo\" }",
        "1",
        "`drr` has class 1 twice",
        "a number of its own",
    );
    in_drr(
        "{ id = 1, discipline = \"fifo\", limit_byte = 1 }",
        "limit_byte",
        "`fifo` has no parameter `limit_byte`",
        "`limit_bytes`",
    );
    in_drr(
        "{ id = 1, limit = 7, inner = { discipline = \"fifo\" } }",
        "limit",
        "a class has no parameter `limit`",
        "into `inner`",
    );
    in_queue(
        "discipline = \"prio\"\npriomap = [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]\n\
         class = [{ id = 2, discipline = \"fifo\" }]",
        "2",
        "`prio` has class 2, but no class 1",
        "without a gap",
    );
    in_queue(
        &format!("{TREE}quantum = 1"),
        "quantum",
        "`drr` with classes has no parameter `quantum`",
        "class",
    );
    in_queue(
        &format!("{TREE}default = 2"),
        "2",
        "class 2 is the default, but `drr` has no class 2",
        "(1, 7)",
    );
}

#[test]
fn filters() {
    let in_filter = |filter: &str, location: &str, message: &str, remedy: &str| {
        in_queue(
            &format!("{TREE}filter = [{{ {filter} }}]"),
            location,
            message,
            remedy,
        );
    };
    in_filter("class = 2, mark = 1", "2", "`drr` has no class 2", "(1, 7)");
    in_filter("mark = 1", "{ mark = 1 }", "the filter has no class", "class = 1");
    in_filter(
        "class = 1",
        "{ class = 1 }",
        "the filter matches every packet",
        "`default`",
    );
    in_filter(
        "class = 1, prot = 6",
        "prot",
        "a filter has no condition `prot`",
        "did you mean `protocol`?",
    );
    in_filter(
        "class = 1, protocol = \"tpc\"",
        "\"tpc\"",
        "`tpc` is not a protocol",
        "did you mean \"tcp\"?",
    );
    in_filter("class = 1, dscp = 64", "64", "there is no DSCP 64", "\"EF\"");
    in_filter(
        "class = 1, dscp = \"AF44\"",
        "\"AF44\"",
        "`AF44` is not a DSCP",
        "did you mean \"AF4",
    );
    in_filter(
        "class = 1, source_port = \"9-8\"",
        "\"9-8\"",
        "the range from 9 to 8 is empty",
        "\"8-9\"",
    );
    in_filter(
        "class = 1, source_port = 65536",
        "65536",
        "there is no port 65536",
        "5060",
    );
    in_filter(
        "class = 1, source = \"10.0.0\"",
        "\"10.0.0\"",
        "`10.0.0` is not an address",
        "192.0.2.1",
    );
    in_filter(
        "class = 1, source = \"10.0.0.0/33\"",
        "\"10.0.0.0/33\"",
        "`10.0.0.0/33` is not a prefix: its length must be 0 to 32",
        "",
    );
    in_filter(
        "class = 1, source = \"10.0.0.1/8\"",
        "\"10.0.0.1/8\"",
        "`10.0.0.1/8` has bits set after the first 8",
        "\"10.0.0.0/8\"",
    );
    in_filter(
        "class = 1, priority = true",
        "true",
        "true is not a priority",
        "0 to 15",
    );
    in_queue(
        "discipline = \"msfc\"\nfilter = [{ class = 4, mark = 1 }]",
        "4",
        "`msfc` has no class 4",
        "1 to 3",
    );
    in_queue(
        "discipline = \"drr\"\nhandle = 10",
        "10",
        "10 is not a handle",
        "handle = \"10\"",
    );
}

#[test]
fn all_mistakes_of_a_file_at_once_in_their_order() {
    let text = "[queue.a]\ndiscipline = \"fifo\"\nlimt = 1\ndrop = \"hed\"\n\
                [queue.b]\ndiscipline = \"fif\"\n[simulat]\n\
                [run]\nlefft = \"a\"\nframes = 1\nautorate = { tuning = { late = 0 } }\n";
    let places: Vec<String> = found(text).into_iter().map(|(location, ..)| location).collect();
    assert_eq!(
        places,
        ["limt", "\"hed\"", "\"fif\"", "simulat", "lefft", "1", "0"]
    );
}

#[test]
fn the_command_line() {
    let one = |text: &str, location: &str, message: &str| {
        let found = describe(&Spec::inline(text).expect_err("the text has a mistake"), text);
        assert_eq!((found[0].0.as_str(), found[0].1.as_str()), (location, message));
    };
    one(
        "fq_codel target=5",
        "5",
        "`target`: `5` is a duration without a unit",
    );
    one("fq_codel target", "target", "`target` is not a setting");
    one("fq_codle", "fq_codle", "there is no discipline `fq_codle`");
    one("fifo limit=1 limit=2", "limit", "`limit` is given twice");
    one(
        "tbf rate=1mbit burst=5kb /",
        "tbf rate=1mbit burst=5kb /",
        "no discipline is named",
    );
    one("fifo / fifo", "fifo", "`fifo` holds no inner discipline");
    one(
        "fifo limit=many",
        "many",
        "`limit` is a word, but must be a plain number",
    );
    one("", "", "no discipline is named");
    let deep = vec!["fifo"; 20_000].join(" / ");
    one(&deep, &deep, "the tree is more than 80 disciplines deep");
    one(
        "prio { 1 / fifo; 2 / fif }",
        "fif",
        "there is no discipline `fif`",
    );
    one("prio { 1 / fifo; }", "}", "a class is missing here");
    one("prio { 1 / fifo 2 / fifo }", "2", "`2` is not a setting");
    one("prio { 1 / fifo", "{", "these classes are not closed");
    one("prio { 1 / fifo } }", "}", "the tree ended before this");
    one(
        "prio { one / fifo }",
        "one",
        "`id` is a word, but must be a plain number",
    );
    one(
        "htb { 1 rate=1kbit burst=1mb / fifo }",
        "1mb",
        "`burst` of class 1 is 1048576, but must be at most 274 s at 1Kbit",
    );
    one(
        "hfsc { 1 rt=1mbit:5ms / fifo }",
        "1mbit:5ms",
        "`rt`: `1mbit:5ms` has 2 parts, not 1 or 3",
    );
    one(
        "hfsc { 1 rt=1mbit:5:1mbit / fifo }",
        "5",
        "`rt`: `5` is a duration without a unit",
    );
    one(
        "hfsc rate=1mbit { 1 rt=1500b:1ms:1mbit / fifo }",
        "1mbit",
        "`rate` is 1Mbit, but must be enough for the real-time curves of all classes, which need \
         12000000bit/s",
    );
    let nested = "prio { 1 / ".repeat(90);
    let found = describe(&Spec::inline(&nested).expect_err("too deep"), &nested);
    assert_eq!(found[0].1, "the tree is more than 80 disciplines deep");
}

#[test]
fn settings_of_schedulers() {
    in_queue(
        "discipline = \"qfq\"\nweights = [1, 0, 3]",
        "0",
        "a number in `weights` is 0, but must be 1 to 65536",
        "write a list of numbers, like [4, 2, 1]",
    );
    let weights = vec!["65536"; 1025].join(", ");
    in_queue(
        &format!("discipline = \"frr\"\nflows = 2000\nweights = [{weights}]"),
        &format!("[{weights}]"),
        "`weight` is 65536, but must be at most 67108864 together with all other weights",
        "divide all weights by the same number",
    );
    let class = |id: u32, setting: &str| {
        format!("[[queue.wan.class]]\nid = {id}\n{setting}\ndiscipline = \"fifo\"\n")
    };
    let classes = [
        class(3, "quantum = 2000"),
        class(1, "quantum = 3000"),
        class(2, ""),
    ]
    .concat();
    in_queue(
        &format!("discipline = \"ets\"\nstrict = 1\n{classes}"),
        "3000",
        "`quantum` of class 1 is 3000, but must be left out in the first 1, the strict bands",
        "make fewer bands strict",
    );
    in_queue(
        &format!("discipline = \"s_kps\"\n{}", class(1, "weight = 0")),
        "0",
        "`weight` is 0, but must be 1 to 65536",
        "its share is its part",
    );
    in_queue(
        "discipline = \"pdrr\"\nfair_rate = \"1mbit\"",
        "\"1mbit\"",
        "`fair_rate` is given, but must be absent unless admission is true",
        "write admission = true",
    );
}

/// Expects one mistake in a tree of classes.
#[track_caller]
fn in_classes(classes: &[&str], rest: &str, location: &str, message: &str, remedy: &str) {
    let classes: String = classes
        .iter()
        .map(|class| format!("[[queue.wan.class]]\n{}\n", class.replace(", ", "\n")))
        .collect();
    in_queue(
        &format!("discipline = \"htb\"\n{rest}\n{classes}"),
        location,
        message,
        remedy,
    );
}

#[test]
fn trees_of_classes() {
    let top = "id = 1, rate = \"10mbit\"";
    let leaf = "id = 10, parent = 1, rate = \"4mbit\", discipline = \"fifo\"";
    in_classes(
        &[
            top,
            "id = 10, parent = 7, rate = \"4mbit\", discipline = \"fifo\"",
            leaf.replace("10,", "11,").as_str(),
        ],
        "",
        "7",
        "`parent` of class 10 is 7, but must be the number of another class",
        "name an existing class",
    );
    in_classes(
        &[
            top,
            leaf,
            "id = 2, parent = 3, rate = \"1mbit\"",
            "id = 3, parent = 2, rate = \"1mbit\"",
        ],
        "",
        "3",
        "`parent` of class 2 is 3, but must be a class that is not below this one",
        "form a circle",
    );
    in_queue(
        "discipline = \"htb\"\ndefault = 0",
        "0",
        "`default` is 0, but must be 1 to 262143",
        "class",
    );
    in_queue(
        "discipline = \"htb\"\nfilter = [{ class = 12, mark = 5 }]",
        "12",
        "`htb` has no class 12",
        "there is none yet",
    );
    in_classes(
        &[top, leaf],
        "default = 11",
        "11",
        "class 11 is the default, but `htb` has no class 11",
        "name one of its classes (10)",
    );
    in_classes(
        &[top, leaf],
        "default = 1",
        "1",
        "class 1 of `htb` has classes below it, and holds no packets",
        "name one of the leaves below it",
    );
    in_classes(
        &[top, leaf],
        "filter = [{ class = 1, mark = 5 }]",
        "1",
        "class 1 of `htb` has classes below it, and holds no packets",
        "name one of the leaves below it",
    );
    in_classes(
        &["id = 1, rate = \"10mbit\", discipline = \"codel\"", leaf],
        "",
        "\"codel\"",
        "class 1 has classes below it, and holds no discipline",
        "put it into a class",
    );
    // Whether the word belongs to the class or to the discipline in it is not known.
    in_classes(
        &["id = 1, rate = \"10mbit\", priority = 2, discipline = \"fifo\""],
        "",
        "priority",
        "`fifo` has no parameter `priority`",
        "did you mean `prio` of the class?",
    );
    in_classes(
        &["id = 1, rate = \"10mbit\", priority = 2, inner = { discipline = \"fifo\" }"],
        "",
        "priority",
        "a class has no parameter `priority`",
        "did you mean `prio`?",
    );
    in_classes(
        &["id = 1, rate = \"10mbit\", celi = \"20mbit\"", leaf],
        "",
        "celi",
        "a class of `htb` has no parameter `celi`",
        "did you mean `ceil`?",
    );
    in_classes(
        &[top, "id = 10, parent = 1, discipline = \"fifo\""],
        "",
        "10",
        "the class needs `rate`",
        "20mbit",
    );
    in_classes(
        &[top, "id = 10, parent = 1, rate = \"4mbit\""],
        "",
        "[[queue.wan.class]]",
        "no `discipline` is named",
        "discipline = \"fifo\"",
    );
    let chain: Vec<String> = (1..=9)
        .map(|id| match id {
            1 => top.to_owned(),
            9 => "id = 9, parent = 8, rate = \"1mbit\", discipline = \"fifo\"".to_owned(),
            _ => format!("id = {id}, parent = {}, rate = \"1mbit\"", id - 1),
        })
        .collect();
    let chain: Vec<&str> = chain.iter().map(String::as_str).collect();
    in_classes(
        &chain,
        "",
        "8",
        "`parent` of class 9 is 8, but must be a class with fewer than 7 above it",
        "at most 8 levels",
    );
}

/// Expects one mistake in a template beside other classes.
#[track_caller]
fn in_template(template: &str, location: &str, message: &str, remedy: &str) {
    let link = "id = 1, rate = \"1gbit\"";
    let others = "id = 9, parent = 1, rate = \"1mbit\", discipline = \"fifo\"";
    let template = format!("id = 100, rate = \"1mbit\", discipline = \"fifo\", {template}");
    in_classes(&[link, others, &template], "", location, message, remedy);
}

#[test]
fn classes_for_hosts() {
    let right = "parent = 1, each = \"destination\", count = 50, overflow = 9";
    let with = |from: &str, to: &str| right.replace(from, to);
    in_template(
        &with(", count = 50", ""),
        "100",
        "class 100 is given to hosts, but has no `count`",
        "count = 1000",
    );
    in_template(
        &with("50", "0"),
        "0",
        "`count` is 0, but must be 1 to 262143",
        "plain number",
    );
    in_template(
        &with("50", "262100"),
        "262100",
        "`count` is 262100, but class numbers end at 262143",
        "lower it",
    );
    in_template(
        &with(", overflow = 9", ""),
        "[[queue.wan.class]]",
        "class 100 is given to hosts, but has no `overflow`",
        "overflow = 9",
    );
    in_template(
        &with("overflow = 9", "overflow = 8"),
        "8",
        "class 8 is the `overflow`, but `htb` has no class 8",
        "(9, 100)",
    );
    in_template(
        &with("overflow = 9", "overflow = 1"),
        "1",
        "class 1 of `htb` has classes below it, and holds no packets",
        "name one of the leaves below it",
    );
    in_template(
        &with("overflow = 9", "overflow = 100"),
        "100",
        "class 100 of `htb` is given to hosts",
        "without `each`",
    );
    in_template(
        &with("each = \"destination\", ", ""),
        "count",
        "`count` is only for a class that is given to hosts",
        "each = \"destination\"",
    );
    in_template(
        &with("\"destination\"", "\"destinatoin\""),
        "\"destinatoin\"",
        "`destinatoin` is not a field that distinguishes hosts",
        "did you mean `destination`?",
    );
    in_template(
        &with("\"destination\"", "\"mark/0\""),
        "\"mark/0\"",
        "`mark/0` is not a field that distinguishes hosts",
        "mark",
    );
    in_template(
        &with("\"destination\"", "\"mark/0x0\""),
        "\"mark/0x0\"",
        "`mark/0x0` has no mask of 32 bits",
        "mark/0xff",
    );
    in_template(
        &with("\"destination\"", "[]"),
        "[]",
        "no field is named",
        "each = ",
    );
    in_template(
        &with("\"destination\"", "[\"vlan\",\"vlan\"]"),
        "\"vlan\"",
        "`vlan` is named twice",
        "each = ",
    );
    in_template(
        &format!("{right}, ipv4 = 33"),
        "33",
        "`ipv4` is 33, but must be 0 to 32",
        "leading bits",
    );
    in_template(
        &format!("{right}, ipv6 = 129"),
        "129",
        "`ipv6` is 129, but must be 0 to 128",
        "leading bits",
    );
    in_template(
        &format!("{}, ipv6 = 64", with("destination", "vlan")),
        "64",
        "these hosts are not distinguished by an address",
        "remove it",
    );
    in_template(
        &with("parent = 1", "parent = 120"),
        "120",
        "class 120 is given to hosts, and has no classes below it",
        "without `each`",
    );
}

#[test]
fn classes_for_hosts_beside_others() {
    let link = "id = 1, rate = \"1gbit\"";
    let leaf = |id: u32, parent: u32| {
        format!("id = {id}, parent = {parent}, rate = \"1mbit\", discipline = \"fifo\"")
    };
    let template = format!("{}, each = \"source\", count = 50, overflow = 9", leaf(100, 1));
    in_classes(
        &[link, &leaf(9, 1), &template, &leaf(149, 1)],
        "",
        "50",
        "the classes of template 100 are 100 to 149, and 149 is another class",
        "at most 49",
    );
    in_classes(
        &[link, &leaf(9, 1), &template, &leaf(200, 100)],
        "",
        "100",
        "class 100 is given to hosts, and has no classes below it",
        "without `each`",
    );
    in_classes(
        &[link, &leaf(9, 1), &template],
        "default = 149",
        "149",
        "class 149 of `htb` is one of the classes that are given to hosts",
        "name the first of them, 100",
    );
    in_classes(
        &[link, &leaf(9, 1), &template],
        "filter = [{ class = 101, mark = 5 }]",
        "101",
        "class 101 of `htb` is one of the classes that are given to hosts",
        "name the first of them, 100",
    );
    in_queue(
        "discipline = \"prio\"\n\
         class = [{ id = 1, each = \"vlan\", count = 3, overflow = 2, discipline = \"fifo\" }]",
        "each",
        "`prio` gives no classes to hosts",
        "like `htb`",
    );
}

/// Returns the error as the program prints it.
fn drawn(error: &fairgate_config::FileError) -> String {
    let mut text = String::new();
    let theme = miette::GraphicalTheme::unicode_nocolor();
    let handler = miette::GraphicalReportHandler::new_themed(theme).with_width(200);
    handler
        .render_report(&mut text, error)
        .expect("every location can be drawn");
    text
}

/// The length of an error is bounded, and so is the search for suggestions, whatever the length of the text.
#[test]
fn an_error_about_a_long_text_is_short() {
    let long = "ü".repeat(200_000);
    for text in [
        format!("[queue.a]\ndiscipline = '{long}'"),
        format!("[queue.'{long}']\ndiscipline = 'fifo'"),
        format!("[queue.a]\ndiscipline = 'fifo'\n'{long}' = 5"),
        format!("['{long}']"),
        format!("[queue.a]\ndiscipline = 'fifo'\ndrop = '{long}'"),
        format!("[queue.a]\ndiscipline = 'tbf'\nrate = '{long}'\nburst = 5000\nlatency = '5ms'"),
        format!(
            "[queue.a]\ndiscipline = 'tbf'\nrate = '1mbit'\nburst = 1{}\nlatency = '5ms'",
            "0".repeat(200_000)
        ),
        format!("[queue.a]\ndiscipline = 'fifo' {long}"),
        format!("a = {}", "[".repeat(200_000)),
        format!(
            "[queue.a]\ndiscipline = 'fifo'\n{}",
            (0..5_000).map(|n| format!("k{n} = 1\n")).collect::<String>()
        ),
        format!("[queue.a{}]", ".inner".repeat(50_000)),
    ] {
        let error = parse("long.toml", &text).expect_err("it is wrong");
        for problem in error.problems() {
            let longest = [&problem.message, &problem.label, &problem.help];
            assert!(
                longest.iter().all(|text| text.chars().count() < 1100),
                "{}",
                problem.message
            );
        }
        assert!(error.problems().len() <= 50);
        let drawn = drawn(&error);
        assert!(drawn.len() < 100_000, "{} bytes: {}", drawn.len(), &drawn[..2000]);
    }
}

#[test]
fn the_first_of_many_mistakes_are_shown_and_all_are_counted() {
    let keys: String = (0..120).map(|n| format!("k{n} = 1\n")).collect();
    let error = Document::parse("many.toml", &format!("[queue.a]\ndiscipline = 'fifo'\n{keys}"))
        .expect_err("it is wrong");
    assert_eq!((error.problems().len(), error.more()), (50, 70));
    assert_eq!(
        error.to_string(),
        "many.toml has 120 errors; the first 50 are shown"
    );
    assert_eq!(error.problems()[49].position().0, 52);
}

/// A location is correct even in a line that is too long to be shown completely.
#[test]
fn a_location_in_a_long_line_is_drawn() {
    let limits: String = (0..2000)
        .map(|n| format!("{{ id = {}, discipline = 'fifo' }}, ", n + 1))
        .collect();
    let text =
        format!("[queue.a]\ndiscipline = 'drr'\nclass = [{limits} {{ id = 3000, discipline = 'fifi' }}]");
    let error = Document::parse("long.toml", &text).expect_err("there is no fifi");
    let drawn = drawn(&error);
    let column = text
        .lines()
        .nth(2)
        .and_then(|line| line.find("'fifi'"))
        .expect("it is there")
        + 1;
    assert!(drawn.contains(&format!("long.toml:3:{column}")), "{drawn}");
    let lines: Vec<&str> = drawn.lines().collect();
    let shown = lines
        .iter()
        .position(|line| line.starts_with(" 3 │"))
        .expect("the line is shown");
    let at = |line: &str, what: &str| line.find(what).map(|at| line[..at].chars().count());
    let underlined = at(lines[shown + 1], "──").expect("it is underlined");
    assert_eq!(at(lines[shown], "'fifi'"), Some(underlined), "{drawn}");
}

#[test]
fn estimators() {
    let of_fifo = |times: &str| format!("discipline = \"fifo\"\nestimator = {times}");
    in_queue(
        &of_fifo("\"300ms 8s\""),
        "\"300ms 8s\"",
        "`estimator`: the time of a sample is 300ms, but must be 250ms, 500ms, 1s, 2s, 4s or 8s",
        "like \"250ms 8s\"",
    );
    in_queue(
        &of_fifo("\"1s 1s\""),
        "\"1s 1s\"",
        "`estimator`: the time constant is 1s, but must be 1443ms to 1073741823500ms for samples of 1s",
        "several samples",
    );
    in_queue(
        &of_fifo("8"),
        "8",
        "`estimator` is a number, but must be two times",
        "like \"250ms 8s\"",
    );
    in_queue(
        "discipline = \"drr\"\nclass = [{ id = 1, estimator = \"8s\", discipline = \"fifo\" }]",
        "\"8s\"",
        "`estimator`: `8s` is not the time of a sample and a time constant",
        "like \"250ms 8s\"",
    );
}

/// In the table of a class it is the class's. The discipline's is in `inner`.
#[test]
fn an_estimator_beside_a_class_is_that_of_the_class() {
    let text = "[queue.wan]\ndiscipline = \"drr\"\n[[queue.wan.class]]\nid = 1\nestimator = \"1s 8s\"\n\
                inner = { discipline = \"fifo\", estimator = \"250ms 8s\" }";
    let document = Document::parse("test.toml", text).expect("it is valid");
    let spec = document.queue("wan").expect("it is described");
    assert_eq!(
        spec.to_string(),
        "drr\n└─ 1 estimator=1s,8s: fifo estimator=250ms,8s"
    );
    let line = "drr { 1 estimator=1s,8s / fifo estimator=250ms,8s }";
    assert_eq!(&Spec::inline(line).expect("it is valid"), spec);
    let twice = Spec::inline("fifo estimator=1s,8s estimator=1s,8s").expect_err("it is given twice");
    assert_eq!(twice.problems()[0].message, "`estimator` is given twice");
}

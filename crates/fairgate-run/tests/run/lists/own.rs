//! Our own format.

use fairgate_config::{Document, Registry};
use fairgate_run::subscribers::{Settings, Subscribers};

use super::{mistakes, read, read_with, settings, text};

const LIST: &str = "\
# Our subscribers
id,name,prefixes,down,up,plan
17,Ann,192.0.2.17 2001:db8:0:1100::/56,,,home
18,\"Bob, the builder\",\"192.0.2.18, 192.0.2.19\",300mbit,,business
19,,198.51.100.0/24,30mbit,10mbit,
";

#[test]
fn a_list_has_rates_of_its_own_or_of_a_plan() {
    let read = read("list.csv", LIST, None).unwrap();
    let list = &read.list().subscribers;
    let rates = |place: usize| list[place].rates.map(|rates| (rates.least, rates.most));
    assert_eq!(rates(0), [(None, Some(100_000_000)), (None, Some(20_000_000))]);
    assert_eq!(
        rates(1),
        [
            (Some(50_000_000), Some(300_000_000)),
            (Some(50_000_000), Some(200_000_000))
        ]
    );
    assert_eq!(rates(2), [(None, Some(30_000_000)), (None, Some(10_000_000))]);
    assert_eq!(list[1].name, "Bob, the builder");
    assert_eq!(list[0].prefixes.len(), 2);
}

#[test]
fn json_says_the_same_as_csv() {
    let json = r#"{"revision": 3, "shaped": {}, "nodes": [], "is_changeable": true, "subscribers": [
        {"id": "17", "name": "Ann", "prefixes": ["192.0.2.17", "2001:db8:0:1100::/56"], "plan": "home"},
        {"id": 18, "name": "Bob, the builder", "prefixes": ["192.0.2.18", "192.0.2.19"],
         "down": "300mbit", "plan": "business", "up": null},
        {"id": "19", "prefixes": "198.51.100.0/24", "down": "30mbit", "up": 10000000}
    ]}"#;
    let (json, csv) = (
        read("list.json", json, None).unwrap(),
        read("list.csv", LIST, None).unwrap(),
    );
    assert_eq!(json.list(), csv.list());
    assert_eq!(json.trees(), csv.trees());
}

/// What the API answers is read as the same list.
#[test]
fn documents_are_read_back() {
    let csv = read("list.csv", LIST, None).unwrap();
    let documents: Vec<String> = csv
        .entries()
        .iter()
        .map(|entry| {
            let field = |key: &str, value: &Option<String>| {
                let value = value.as_ref()?;
                Some(format!("\"{key}\": \"{value}\""))
            };
            let prefixes: Vec<String> = entry
                .prefixes
                .iter()
                .map(|prefix| format!("\"{prefix}\""))
                .collect();
            let prefixes = format!("\"prefixes\": [{}]", prefixes.join(", "));
            let fields = [
                field("id", &Some(entry.id.clone())),
                field("name", &entry.name),
                field("down", &entry.down),
                field("up", &entry.up),
                field("down_min", &entry.down_min),
                field("up_min", &entry.up_min),
                field("plan", &entry.plan),
                Some(prefixes),
            ];
            format!(
                "{{{}}}",
                fields.into_iter().flatten().collect::<Vec<_>>().join(", ")
            )
        })
        .collect();
    let json = read("list.json", &format!("[{}]", documents.join(",\n")), None).unwrap();
    assert_eq!(json.list(), csv.list());
}

#[test]
fn all_mistakes_of_a_list_are_reported_with_their_places() {
    let list = "\
id,name,prefixes,down,up,plan
17,Ann,192.0.2.17,,,hom
17,Ann,192.0.2.0/24,10mbit,10mbit,
18,Bob,192.0.2.18,fast,10mbit,
,Nobody,192.0.3.1,1mbit,1mbit,
19,Carl,,10mbit,10mbit,
20,Dora,192.0.2.300,10mbit,10mbit,
21,Ed,10.0.0.1/8,10mbit,10mbit,
22,Eve,10.1.0.1,10mbit,,
23,Finn,10.2.0.1,1kbit,10mbit,
24,Gus,10.3.0.1,10mbit
";
    let expected = [
        "list.csv:2:21: there is no plan `hom`",
        "list.csv:4:19: `down`: `fast` is not a rate",
        "list.csv:5:1: the subscriber has no `id`",
        "list.csv:6:1: the subscriber has no `prefixes`",
        "list.csv:7:9: `192.0.2.300` is not an address",
        "list.csv:8:7: `10.0.0.1/8` has bits set after the first 8",
        "list.csv:9:1: the subscriber has no rate `up`",
        "list.csv:10:18: `down` is 1000 bit/s, but must be at least 10000",
        "list.csv:11:1: this line has 4 fields, but the line of names has 6",
    ];
    let found = mistakes(read("list.csv", list, None));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        // The rest of a message about a rate is that of the units.
        assert!(
            found.starts_with(&expected[..expected.len().min(45)]),
            "{found}\n{expected}"
        );
    }
}

#[test]
fn identifiers_and_addresses_belong_to_one_subscriber() {
    let settings = settings("file = \"folder\"");
    let texts = [
        text(
            "a.csv",
            "id,prefixes,plan\n1,10.0.0.0/24,home\n2,10.0.1.1 10.0.1.1,home\n",
        ),
        text(
            "b.json",
            "[{\"id\": \"1\", \"prefixes\": [\"10.0.2.1\"], \"plan\": \"home\"},\n {\"id\": \"3\", \
            \"prefixes\": [\"10.0.0.7\"], \"plan\": \"home\"}]",
        ),
    ];
    let found = mistakes(read_with(settings, &texts, None));
    assert_eq!(
        found,
        [
            "a.csv:3:12: 10.0.1.1/32 overlaps with 10.0.1.1/32 of subscriber `2`",
            "b.json:1:2: subscriber `1` is given twice",
            "b.json:2:27: 10.0.0.7/32 overlaps with 10.0.0.0/24 of subscriber `1`",
        ]
    );
}

#[test]
fn files_that_are_no_lists_are_refused() {
    let cases = [
        ("a.csv", "", "a.csv:1:1: the list is empty"),
        ("a.csv", "id,name\n", "a.csv:1:1: there is no column `prefixes`"),
        (
            "a.csv",
            "id,prefixes,colour\n",
            "a.csv:1:13: a subscriber has no column `colour`",
        ),
        (
            "a.csv",
            "id,prefixes,id\n",
            "a.csv:1:13: there are two columns `id`",
        ),
        (
            "a.csv",
            "id,prefixes\n1,\"10.0.0.1\n",
            "a.csv:2:3: a quotation mark is not closed",
        ),
        ("a.json", "", "a.json:1:1: a value is missing"),
        ("a.json", "17", "a.json:1:1: the list of subscribers is a number"),
        ("a.json", "{}", "a.json:1:1: the object has no list `subscribers`"),
        ("a.json", "[17]", "a.json:1:2: a subscriber is a number"),
        (
            "a.json",
            "[{\"id\": true, \"prefixes\": [1]}]",
            "a.json:1:9: `id` is true or false, but must be text",
        ),
        (
            "a.json",
            "[{\"ip\": 1}]",
            "a.json:1:3: a subscriber has no member `ip`",
        ),
    ];
    for (name, content, expected) in cases {
        let found = mistakes(read(name, content, None));
        assert!(
            found.iter().any(|found| found == expected),
            "{content}: {found:?}"
        );
    }
}

#[test]
fn sections_with_mistakes_are_refused() {
    let cases = [
        (
            "[plans.home]\ndown = \"1mbit\"",
            "there are plans, but no subscribers",
        ),
        ("[subscribers]\nup = \"1gbit\"", "`down` is missing"),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"9\"",
            "`up` is \"9\", but must be at least 10kbit",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nshaper = \"tbf\"",
            "`shaper` can't be `tbf`",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nshaper = \"cake\"\nleaf = \"fifo\"",
            "with shaper = \"cake\" each subscriber has a cake, not `fifo`",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nleaf = \"cake bandwidth=3mbit\"",
            "`bandwidth` of cake is each subscriber's own rate",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nwatch = true",
            "`watch` is for files, but the list has none",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nfile = \"a\"\n\
             libreqos = { devices = \"b\", network = \"c\" }",
            "both `file` and `libreqos` say where the list is",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n[queue.down]\ndiscipline = \"fifo\"",
            "`down` is the tree of the subscribers, but there is a [queue.down]",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n[plans.a]\ndown = \"1mbit\"\n\
             down_min = \"2mbit\"",
            "2000000 bit/s are guaranteed, but the plan allows 1000000",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\nshaper = \"hfsc\"\n[plans.a]\n\
             up_burst = { rate = \"2mbit\", threshold = \"1mbit\", time = \"8s\" }",
            "only classes of htb have bursts for a time",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n[plans.a]\n\
             up_burst = { rate = \"2mbit\", threshold = \"2mbit\", time = \"8s\" }",
            "the threshold is not below the rate of the burst, which would never end",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n[plans.a]\ndown = \"2mbit\"\n\
             down_burst = { rate = \"2mbit\", threshold = \"1mbit\", time = \"8s\" }",
            "the rate of the burst is not above that of the plan",
        ),
        (
            "[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n[plans.a]\n\
             down_burst = { rate = \"2mbit\", threshold = \"1mbit\", time = \"1ms\" }",
            "`time` is \"1ms\", but must be 16ms to 3600s",
        ),
    ];
    for (content, expected) in cases {
        let document = Document::parse("isp.toml", content).unwrap();
        let error = Settings::read(&document, &Registry::builtin()).unwrap_err();
        assert_eq!(error.problems()[0].message, expected, "{content}");
    }
    // All mistakes are reported at once.
    let text = "[subscribers]\ndown = \"9\"\nwatsh = true\n[plans.a]\nup_burst = { rate = 1 }\n";
    let document = Document::parse("isp.toml", text).unwrap();
    let error = Settings::read(&document, &Registry::builtin()).unwrap_err();
    let found: Vec<String> = error.problems().iter().map(ToString::to_string).collect();
    let expected = [
        "`up` is missing",
        "`down` is \"9\", but must be at least 10kbit",
        "`watsh` is no key of [subscribers]",
        "`threshold` is missing",
        "`time` is missing",
        "`rate` is 1, but must be at least 10kbit",
    ];
    assert_eq!(found, expected);
    let remedy = "a number alone is bit/s; for Mbit/s write 9mbit";
    assert!(error.problems()[1].help.starts_with(remedy));
    let unused = Document::parse("isp.toml", "[run]\nleft = \"a\"\n").unwrap();
    assert!(Settings::read(&unused, &Registry::builtin()).unwrap().is_none());
}

/// Returns a list of so many subscribers.
fn of_length(count: usize) -> String {
    let line = |number: usize| format!("{number},10.0.{}.{},home\n", number >> 8, number & 255);
    "id,prefixes,plan\n".to_owned() + &(0..count).map(line).collect::<String>()
}

/// A file that was cut off is a valid list: what it would remove decides. A confirmed number is accepted, and
/// no other one.
#[test]
fn a_reading_that_removes_too_many_is_refused() {
    let before = read("list.csv", &of_length(1000), None).unwrap();
    let with = |keys: &str, count: usize, before: &Subscribers| {
        let settings = settings(&format!("file = \"list.csv\"\n{keys}"));
        read_with(settings, &[text("list.csv", &of_length(count))], Some(before))
    };
    for (count, removed) in [(0, 1000), (499, 501), (899, 101)] {
        let error = with("", count, &before).expect_err("too many are removed");
        let problem = &error.problems()[0];
        let words = format!(
            "{removed} of the 1000 subscribers that run are not in the list any more (0 subscribers added, \
             {removed} removed, 0 changed; there are {count})"
        );
        assert!(problem.message.contains(&words), "{problem}");
        assert!(
            problem.help.contains(&format!("confirmed_removed = {removed} ")),
            "{}",
            problem.help
        );
        let confirmed = with(&format!("confirmed_removed = {removed}"), count, &before).unwrap();
        assert_eq!(confirmed.since(&before).removed, removed);
        assert!(with(&format!("confirmed_removed = {}", removed - 1), count, &before).is_err());
        assert!(with("most_removed = 100", count, &before).is_ok());
        assert!(with("most_removed = 0", count, &before).is_err());
    }
    assert!(with("", 900, &before).is_ok());
    assert!(with("most_removed = 0", 999, &before).is_err());
    // One of a few may leave, but not the last one.
    let few = read("list.csv", &of_length(3), None).unwrap();
    assert!(with("", 2, &few).is_ok());
    assert!(with("", 1, &few).is_err());
    let one = read("list.csv", &of_length(1), None).unwrap();
    assert!(with("", 0, &one).is_err());
}

#[test]
fn an_empty_list_is_a_warning() {
    let empty = read("list.csv", "id,prefixes,plan\n", None).unwrap();
    let warnings = empty.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("list.csv: the list is empty"),
        "{warnings:?}"
    );
    let of_api = read_with(settings(""), &[], None).unwrap();
    assert_eq!(of_api.warnings(), Vec::<String>::new());
}

#[test]
fn what_a_list_may_remove_is_a_percentage() {
    let refused = |keys: &str| {
        let text = format!("[subscribers]\ndown = \"1gbit\"\nup = \"1gbit\"\n{keys}\n");
        let document = Document::parse("isp.toml", &text).unwrap();
        let error = Settings::read(&document, &Registry::builtin()).expect_err("a key is wrong");
        error.problems()[0].message.clone()
    };
    assert!(
        refused("file = \"l.csv\"\nmost_removed = 101")
            .contains("`most_removed` is 101, but must be 0 to 100")
    );
    assert!(refused("confirmed_removed = 20").contains("`confirmed_removed` is for files"));
}

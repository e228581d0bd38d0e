//! Changes of a list, as they are written into its texts.

use fairgate_config::Registry;
use fairgate_run::subscribers::{Changes, DOWN, Edited, Limit, Subscribers, Text, UP};
use fairgate_run_api::Entry;

use super::{mistakes, read, read_with, settings, text};

const LIST: &str = "\
# Our subscribers\r
id,name,prefixes,down,up,plan\r
17,Ann,192.0.2.17 2001:db8:0:1100::/56,,,home\r
\r
18,\"Bob, the builder\",\"192.0.2.18, 192.0.2.19\",300mbit,,business  \r
# the last one\r
19,,198.51.100.0/24, 30mbit ,10mbit,\r
";
pub(super) const DEVICES: &str = include_str!("ShapedDevices.csv");
/// A list of no device.
pub(super) const NO_DEVICE: &str = "\
Circuit ID,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps\n";
const NETWORK: &str = include_str!("network.json");

pub(super) fn list(content: &str) -> Subscribers {
    read("list.csv", content, None).unwrap()
}

pub(super) fn circuits(devices: &str) -> Subscribers {
    let settings = settings("libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }");
    let texts = [text("ShapedDevices.csv", devices), text("network.json", NETWORK)];
    read_with(settings, &texts, None).unwrap()
}

/// Changes members of a subscriber.
pub(super) fn changed(
    list: &Subscribers,
    id: &str,
    change: impl FnOnce(&mut Entry),
) -> (String, Option<Entry>) {
    let mut entry = Entry::from(list.list().find(id).unwrap());
    change(&mut entry);
    (id.to_owned(), Some(entry))
}

pub(super) fn rate(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Makes changes, and returns the new content of the only text that changes.
fn content(list: &Subscribers, changes: Changes) -> String {
    let Edited { list: new, texts } = list.with(changes, &Registry::builtin()).unwrap();
    let [changed] = texts[..] else {
        panic!("{texts:?}");
    };
    let others = |texts: &[Text]| -> Vec<Text> {
        let others = texts.iter().enumerate().filter(|(number, _)| *number != changed);
        others.map(|(_, text)| text.clone()).collect()
    };
    assert_eq!(others(new.texts()), others(list.texts()));
    new.texts()[changed].content.clone()
}

fn refused(list: &Subscribers, changes: Changes) -> Vec<String> {
    mistakes(list.with(changes, &Registry::builtin()).map(|edited| edited.list))
}

/// Cells change; spaces, comments, quotation marks and line ends stay.
#[test]
fn only_the_cells_that_change_are_written() {
    let before = list(LIST);
    let faster = changed(&before, "17", |entry| entry.down = rate("150mbit"));
    assert_eq!(
        content(&before, vec![faster]),
        LIST.replace("::/56,,,home", "::/56,150mbit,,home")
    );
    let named = changed(&before, "19", |entry| {
        entry.name = Some("C \"x\", #1".to_owned());
        entry.down = rate("40mbit");
        entry.prefixes = vec!["198.51.100.0/25".to_owned(), "203.0.113.7/32".to_owned()];
    });
    let cells = "19,\"C \"\"x\"\", #1\",198.51.100.0/25 203.0.113.7, 40mbit ,10mbit,";
    assert_eq!(
        content(&before, vec![named]),
        LIST.replace("19,,198.51.100.0/24, 30mbit ,10mbit,", cells)
    );
    let of_plan = changed(&before, "19", |entry| {
        (entry.down, entry.up, entry.plan) = (None, None, Some("home".to_owned()));
    });
    assert_eq!(
        content(&before, vec![of_plan]),
        LIST.replace(" 30mbit ,10mbit,", "  ,,home")
    );
    let removed = content(&before, vec![("17".to_owned(), None), ("19".to_owned(), None)]);
    let kept = |line: &&str| !line.starts_with("17,") && !line.starts_with("19,");
    assert_eq!(
        removed,
        LIST.split_inclusive('\n').filter(kept).collect::<String>()
    );
    let new = Entry {
        id: "#20".to_owned(),
        prefixes: vec!["203.0.113.9".to_owned()],
        plan: Some("home".to_owned()),
        ..Entry::default()
    };
    let added = content(&before, vec![("#20".to_owned(), Some(new))]);
    assert_eq!(added, format!("{LIST}\"#20\",,203.0.113.9,,,home\r\n"));
    // What says the same is no change.
    let same = changed(&before, "18", |entry| {
        entry.prefixes = vec!["192.0.2.18".to_owned(), "192.0.2.19/32".to_owned()];
        entry.down = rate("300000kbit");
    });
    assert_eq!(
        before.with(vec![same], &Registry::builtin()).unwrap().texts,
        [0; 0]
    );
}

/// The trees and the numbers of the others stay as they are.
#[test]
fn one_subscriber_changes_by_its_document() {
    let registry = Registry::builtin();
    let with = |list: &Subscribers, changes| list.with(changes, &registry).unwrap().list;
    let before = list(LIST);
    let faster = changed(&before, "17", |entry| entry.down = rate("150mbit"));
    let now = with(&before, vec![faster]);
    assert_eq!(now.list().find("17").unwrap().rates[DOWN].most, Some(150_000_000));
    assert_eq!(now.trees()[UP], before.trees()[UP]);
    assert_eq!(now.numbers(), before.numbers());
    let new = Entry {
        id: "20".to_owned(),
        prefixes: vec!["203.0.113.0/24".to_owned()],
        plan: Some("home".to_owned()),
        ..Entry::default()
    };
    let added = with(&now, vec![("20".to_owned(), Some(new))]);
    assert_eq!(added.list().subscribers.len(), 4);
    assert_eq!(
        added.numbers().of_subscriber("17"),
        before.numbers().of_subscriber("17")
    );
    let removed = with(&added, vec![("20".to_owned(), None)]);
    assert_eq!(removed.trees(), now.trees());
    assert_eq!(removed.texts(), now.texts());
    let overlapping = changed(&before, "17", |entry| {
        entry.prefixes.push("198.51.100.7".to_owned())
    });
    assert_eq!(
        refused(&before, vec![overlapping]),
        ["list.csv:3:40: 198.51.100.7/32 overlaps with 198.51.100.0/24 of subscriber `19`"]
    );
    let wrong = changed(&before, "17", |entry| {
        entry.prefixes = vec!["fast".to_owned()];
        entry.plan = Some("none".to_owned());
    });
    let found = refused(&before, vec![wrong.clone(), wrong]);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].starts_with("the request:1:"), "{found:?}");
    let faster = changed(&before, "17", |entry| entry.down = rate("150mbit"));
    let found = refused(&before, vec![faster.clone(), faster]);
    assert_eq!(found, ["the request:2:1: subscriber `17` is given twice"]);
}

/// A list has the columns that somebody needed once. Another one comes behind them.
#[test]
fn a_column_that_is_missing_is_added() {
    let short = "id,prefixes,plan\n1,10.0.0.1,home\n2,10.0.0.2,\"home\" \n3,10.0.0.3,home";
    let before = list(short);
    let faster = changed(&before, "2", |entry| {
        (entry.down, entry.name) = (rate("5mbit"), Some("a, b".to_owned()));
    });
    assert_eq!(
        content(&before, vec![faster]),
        "id,prefixes,plan,name,down\n1,10.0.0.1,home,,\n2,10.0.0.2,\"home\",\"a, b\",5mbit \n\
         3,10.0.0.3,home,,"
    );
    let new = Entry {
        id: "4".to_owned(),
        prefixes: vec!["10.0.0.4".to_owned()],
        down: rate("1mbit"),
        up: rate("1mbit"),
        ..Entry::default()
    };
    assert_eq!(
        content(&before, vec![("4".to_owned(), Some(new)), ("3".to_owned(), None)]),
        "id,prefixes,plan,down,up\n1,10.0.0.1,home,,\n2,10.0.0.2,\"home\",, \n\n4,10.0.0.4,,1mbit,1mbit"
    );
}

#[test]
fn objects_change_in_their_places() {
    let json = "{\"subscribers\": [\n  {\"id\": 1, \"prefixes\": \"10.0.0.1\", \"plan\": \"home\"},\n  \
        {\"id\": \"2\", \"prefixes\": [\"10.0.0.2\"],\n   \"down\": \"5mbit\", \"up\": 1000000 }\n], \
        \"revision\": 3}\n";
    let before = read("list.json", json, None).unwrap();
    let faster = changed(&before, "1", |entry| entry.down = rate("50mbit"));
    assert_eq!(
        content(&before, vec![faster.clone()]),
        json.replace("\"home\"}", "\"home\", \"down\": \"50mbit\"}")
    );
    let of_plan = changed(&before, "2", |entry| {
        (entry.down, entry.up, entry.plan) = (None, None, Some("home".to_owned()));
        entry.prefixes.push("fd00::/56".to_owned());
    });
    assert_eq!(
        content(&before, vec![of_plan]),
        json.replace("[\"10.0.0.2\"]", "[\"10.0.0.2\",\"fd00::/56\"]")
            .replace(
                "\"5mbit\", \"up\": 1000000",
                "null, \"up\": null, \"plan\": \"home\""
            )
    );
    let new = Entry {
        id: "a \"b\"".to_owned(),
        prefixes: vec!["10.0.0.3".to_owned()],
        plan: Some("home".to_owned()),
        ..Entry::default()
    };
    let object = "{\"id\": \"a \\\"b\\\"\", \"prefixes\": [\"10.0.0.3\"], \"plan\": \"home\"}";
    let all = |one: Option<Entry>, two: Option<Entry>| {
        vec![
            ("1".to_owned(), one),
            ("2".to_owned(), two),
            ("a \"b\"".to_owned(), Some(new.clone())),
        ]
    };
    let entries: Vec<Option<Entry>> = before.entries().into_iter().map(Some).collect();
    assert_eq!(
        content(&before, all(entries[0].clone(), entries[1].clone())),
        json.replace("1000000 }", &format!("1000000 }},\n  {object}"))
    );
    assert_eq!(
        content(&before, all(None, None)),
        format!("{{\"subscribers\": [\n  {object}\n], \"revision\": 3}}\n")
    );
    let rest = content(&before, vec![("2".to_owned(), None)]);
    assert_eq!(
        rest,
        "{\"subscribers\": [\n  {\"id\": 1, \"prefixes\": \"10.0.0.1\", \"plan\": \"home\"}\n], \
         \"revision\": 3}\n"
    );
}

/// In a folder, those files change that have them. New ones are added to the last file.
#[test]
fn a_change_is_for_the_files_that_have_it() {
    let texts = [
        text("lists/a.csv", "id,prefixes,plan,down\n1,10.0.0.1,home,\n"),
        text(
            "lists/b.json",
            "[{\"id\": \"2\", \"prefixes\": [\"10.0.0.2\"], \"plan\": \"home\"}]",
        ),
    ];
    let before = read_with(settings("file = \"lists\""), &texts, None).unwrap();
    let [one, two] = ["1", "2"].map(|id| changed(&before, id, |entry| entry.down = rate("5mbit")));
    assert_eq!(
        content(&before, vec![one.clone()]),
        texts[0].content.replace("home,", "home,5mbit")
    );
    let both = before.with(vec![one, two], &Registry::builtin()).unwrap();
    assert_eq!(both.texts, [0, 1]);
    let now: Vec<&str> = both
        .list
        .texts()
        .iter()
        .map(|text| text.content.as_str())
        .collect();
    assert_eq!(
        now,
        [
            texts[0].content.replace("home,", "home,5mbit"),
            texts[1]
                .content
                .replace("\"home\"", "\"home\", \"down\": \"5mbit\""),
        ]
    );
    let new = Entry {
        id: "3".to_owned(),
        prefixes: vec!["10.0.0.3".to_owned()],
        plan: Some("home".to_owned()),
        ..Entry::default()
    };
    let added = content(&before, vec![("3".to_owned(), Some(new))]);
    assert!(added.contains("\"3\""), "{added}");
}

/// Of ShapedDevices.csv the cells of a circuit change, in all lines of it. Its columns, comments and the
/// commas in them stay.
#[test]
fn circuits_of_libreqos_change_in_their_lines() {
    let before = circuits(DEVICES);
    let two = changed(&before, "2794", |entry| {
        (entry.down, entry.up_min) = (rate("120mbit"), rate("1500kbit"));
    });
    assert_eq!(
        content(&before, vec![two]),
        DEVICES.replace(",1,1,105,18,two devices,", ",1,1.5,120,18,two devices,")
    );
    // A comment with a comma, and addresses between quotation marks.
    let school = changed(&before, "10", |entry| {
        entry.prefixes = vec![
            "100.64.0.12/32".to_owned(),
            "100.64.9.0/24".to_owned(),
            "fd00::/56".to_owned(),
        ];
        entry.name = Some("School, new".to_owned());
        entry.up = rate("60mbit");
    });
    assert_eq!(
        content(&before, vec![school]),
        DEVICES.replace(
            "10,School,12,Router 12,AP_A,,100.64.0.12,,50,20,200,50,",
            "10,\"School, new\",12,Router 12,AP_A,,\"100.64.0.12, 100.64.9.0/24\",fd00::/56,50,20,200,60,"
        )
    );
    // Those that stay are left at their device, and new ones are the first one's.
    let moved = changed(&before, "2794", |entry| {
        entry.prefixes = [
            "100.64.0.70/32",
            "2001:db8:0:600::/56",
            "100.64.0.5/32",
            "fd00::/56",
        ]
        .map(str::to_owned)
        .into();
    });
    assert_eq!(
        content(&before, vec![moved]),
        DEVICES
            .replace(
                "\"100.64.0.5,100.64.8.0/24\",2001:db8:0:500::/56",
                "\"100.64.0.5, 100.64.0.70\",fd00::/56"
            )
            .replace(",100.64.0.6,", ",,")
    );
    // Another order is no change.
    let turned = changed(&before, "2794", |entry| entry.prefixes.reverse());
    assert_eq!(
        before.with(vec![turned], &Registry::builtin()).unwrap().texts,
        [0; 0]
    );
    let removed = content(&before, vec![("2794".to_owned(), None)]);
    let kept = |line: &&str| !line.starts_with("2794,");
    assert_eq!(
        removed,
        DEVICES.split_inclusive('\n').filter(kept).collect::<String>()
    );
    let new = Entry {
        id: "12".to_owned(),
        name: Some("Mill".to_owned()),
        prefixes: vec!["100.64.0.99".to_owned()],
        down: rate("50mbit"),
        up: rate("2500kbit"),
        down_min: rate("1mbit"),
        up_min: rate("1mbit"),
        plan: None,
    };
    // Another device is called 12.
    assert_eq!(
        content(&before, vec![("12".to_owned(), Some(new.clone()))]),
        format!("{DEVICES}12,Mill,12-2,Mill,,,100.64.0.99,,1,1,50,2.5,,\n")
    );
    let cases = [
        (
            changed(&before, "1", |entry| entry.plan = Some("home".to_owned())),
            "the request:1:1: `plan` is `home`, but circuits of LibreQoS have no plan",
        ),
        (
            changed(&before, "1", |entry| entry.down = None),
            "the request:1:1: `down` is missing: circuits of LibreQoS have no plan that gives it",
        ),
        (
            changed(&before, "1", |entry| entry.down_min = rate("200mbit")),
            "ShapedDevices.csv:5:92: 200000000 bit/s are guaranteed, but `download max Mbps` allows \
             155000000",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(refused(&before, vec![change]), [expected]);
    }
}

/// For a time a subscriber has other rates. The list stays as it is, and so decides afterwards.
#[test]
fn a_limit_holds_for_a_time() {
    let registry = Registry::builtin();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let limit = |down: Option<u64>, until_s: u64| {
        Some(Limit {
            rates: [down, None],
            until_s,
        })
    };
    let before = list(LIST);
    let changes = vec![
        ("18".to_owned(), limit(Some(5_000_000), now + 600)),
        ("19".to_owned(), limit(Some(900_000_000), now + 60)),
    ];
    let Edited { list: limited, texts } = before.with_limits(changes, &registry).unwrap();
    assert_eq!((texts, limited.texts().len()), (vec![1], 2));
    assert_eq!(limited.texts()[0], before.texts()[0]);
    assert_eq!(limited.texts()[1].name, ".list.csv.limits");
    let rates = |list: &Subscribers, id: &str| {
        let shaped = &list.shaped()[id];
        (
            shaped.down_bps,
            shaped.up_bps,
            shaped.down_min_bps,
            shaped.limited_until_s,
        )
    };
    // What is guaranteed is never more than the limit.
    assert_eq!(
        rates(&limited, "18"),
        (5_000_000, 200_000_000, Some(5_000_000), Some(now + 600))
    );
    assert_eq!(
        rates(&limited, "19"),
        (900_000_000, 10_000_000, None, Some(now + 60))
    );
    assert_eq!(limited.entries(), before.entries());
    assert_eq!(limited.next_end_s(), Some(now + 60));
    // It is read again, and an edit of the list leaves it as it is.
    let again = read_with(before.settings().clone(), limited.texts(), None).unwrap();
    assert_eq!(again.list(), limited.list());
    let faster = changed(&limited, "18", |entry| entry.up = rate("60mbit"));
    let Edited { list: edited, texts } = limited.with(vec![faster], &registry).unwrap();
    assert_eq!(
        (texts, edited.texts()[1].clone()),
        (vec![0], limited.texts()[1].clone())
    );
    assert_eq!(rates(&edited, "18").0, 5_000_000);
    // What has ended is not there any more, and is forgotten with the next change.
    let ended = vec![
        ("18".to_owned(), limit(Some(5_000_000), now - 1)),
        ("19".to_owned(), None),
    ];
    let ended = limited.with_limits(ended, &registry).unwrap().list;
    assert_eq!(ended.shaped(), before.shaped());
    assert_eq!(ended.trees(), before.trees());
    assert!(
        !ended.texts()[1].content.contains("\"18\""),
        "{:?}",
        ended.texts()[1]
    );
    for broken in ["{", "{\"schema\": \"fairgate.limits/2\", \"limits\": []}"] {
        let texts = [before.texts()[0].clone(), text_of_limits(broken)];
        let found = mistakes(read_with(before.settings().clone(), &texts, None));
        assert!(found[0].starts_with(".list.csv.limits:1:1: "), "{found:?}");
    }
    // A list without a file has them, too.
    let of_api = read_with(settings(""), &[], None).unwrap();
    let of_api = of_api.with_all(before.entries(), None, &registry).unwrap().list;
    let changes = vec![("18".to_owned(), limit(Some(5_000_000), now + 600))];
    let of_api = of_api.with_limits(changes, &registry).unwrap().list;
    assert_eq!(rates(&of_api, "18").0, 5_000_000);
    let other = changed(&of_api, "19", |entry| entry.down = rate("1mbit"));
    let of_api = of_api.with(vec![other], &registry).unwrap().list;
    assert_eq!(rates(&of_api, "18").0, 5_000_000);
}

fn text_of_limits(content: &str) -> Text {
    text(".list.csv.limits", content)
}

/// Of network.json two values change, in the way in which they are written.
#[test]
fn rates_of_a_node_change_in_their_places() {
    let registry = Registry::builtin();
    let before = circuits(DEVICES);
    let with = |name: &str, rates| before.with_node(name, rates, &registry).unwrap();
    let Edited { list, texts } = with("AP_9", [Some(130_000_000), Some(62_500_000)]);
    assert_eq!(texts, [1]);
    let expected = NETWORK
        .replace("120.5,", "130,")
        .replace("\"uploadBandwidthMbps\":60,", "\"uploadBandwidthMbps\":62.5,");
    assert_eq!(list.texts()[1].content, expected);
    assert_eq!(list.texts()[0], before.texts()[0]);
    let node = list.nodes().into_iter().find(|node| node.name == "AP_9").unwrap();
    assert_eq!((node.down_bps, node.up_bps), (130_000_000, 62_500_000));
    assert_eq!(list.numbers(), before.numbers());
    assert_eq!(list.list().subscribers, before.list().subscribers);
    // What is the same already is not written.
    assert_eq!(with("AP_9", [Some(120_500_000), None]).texts, [0; 0]);
    // A rate as text, a name with an escape, a member that is given twice: the last one counts.
    let odd = "{\"AP \\u0041\" : {\"uploadBandwidthMbps\": \"50\",\"downloadBandwidthMbps\":1,\r\n\
               \"downloadBandwidthMbps\":\t20.50 , \"x\": [\"uploadBandwidthMbps\", 7]}}\r\n";
    let settings = before.settings().clone();
    let texts = [text("ShapedDevices.csv", NO_DEVICE), text("network.json", odd)];
    let before = read_with(settings, &texts, None).unwrap();
    let edited = before
        .with_node("AP A", [Some(10_000_000), Some(1_000_001)], &registry)
        .unwrap();
    assert_eq!(
        edited.list.texts()[1].content,
        odd.replace("20.50", "10").replace("\"50\"", "\"1.000001\"")
    );
    let too_low = before.with_node("AP A", [Some(9_999), None], &registry);
    assert_eq!(
        mistakes(too_low.map(|edited| edited.list)),
        ["network.json:2:26: `downloadBandwidthMbps` is 9999 bit/s, but must be at least 10000"]
    );
    // A list of our own has no nodes.
    let own = read("list.csv", LIST, None).unwrap();
    assert_eq!(
        own.with_node("AP A", [Some(1_000_000), None], &registry)
            .unwrap()
            .texts,
        [0; 0]
    );
}

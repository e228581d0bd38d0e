//! Lists made of the answers of UISP and Splynx, in `tests/recorded`.

use std::collections::{BTreeMap, BTreeSet};

use fairgate_run::import::{Answers, Imported, Kind, LeftOut, Program, Reason, Wishes, read};
use fairgate_run::subscribers::{DOWN, Subscribers, UP};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{read_with, settings, text};

/// The answers of a folder, by what was asked.
macro_rules! recorded {
    ($folder:literal, $($name:literal),+) => {
        BTreeMap::from([$((
            $name,
            vec![include_bytes!(concat!("../../recorded/", $folder, "/", $name, ".json")).to_vec()],
        )),+])
    };
}

fn uisp() -> Answers {
    recorded!("uisp", "sites", "devices", "links")
}

fn splynx() -> Answers {
    recorded!(
        "splynx",
        "tariffs",
        "customers",
        "services",
        "sessions",
        "devices",
        "sites",
        "routers",
        "sectors"
    )
}

fn imported(program: Program, answers: &Answers) -> Imported {
    read(program, answers, &Wishes::default(), None).unwrap()
}

/// Reads the files as a run does.
fn list(imported: &Imported) -> Subscribers {
    let settings = settings("libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }");
    let texts = [
        text("ShapedDevices.csv", &imported.devices_text),
        text("network.json", &imported.network_text),
    ];
    read_with(settings, &texts, None).unwrap()
}

/// Each subscriber: name, node, prefixes, and rates in kbit/s, guaranteed and at most.
fn subscribers(list: &Subscribers) -> Vec<String> {
    let all = list.list().subscribers.iter();
    all.map(|one| {
        let prefixes: Vec<String> = one.prefixes.iter().map(ToString::to_string).collect();
        let [down, up] = [DOWN, UP].map(|side| {
            let rates = one.rates[side];
            format!("{}-{}", rates.least.unwrap() / 1000, rates.most.unwrap() / 1000)
        });
        let node = one.node.as_deref().unwrap_or("-");
        format!("{}|{node}|{}|{down}|{up}", one.name, prefixes.join(" "))
    })
    .collect()
}

/// Each node: name, the one above, rates in kbit/s.
fn nodes(list: &Subscribers) -> Vec<String> {
    let all = list.list().nodes.iter();
    all.map(|node| {
        let above = node.above.as_deref().unwrap_or("-");
        format!(
            "{}|{above}|{}|{}",
            node.name,
            node.rates[DOWN] / 1000,
            node.rates[UP] / 1000
        )
    })
    .collect()
}

fn left_out(imported: &Imported) -> Vec<(Kind, &str, Option<&str>, Reason)> {
    let of = |one: &'_ LeftOut| (one.of, one.reason);
    let all = imported.left_out.iter();
    all.map(|one| (of(one).0, one.name.as_str(), one.address.as_deref(), of(one).1))
        .collect()
}

#[test]
fn endpoints_of_uisp_are_subscribers() {
    let imported = imported(Program::Uisp, &uisp());
    let list = list(&imported);
    assert_eq!(
        subscribers(&list),
        [
            "Anna Berg|Tower North|100.64.0.11/32|10-100000|10-20000",
            "Cole, Ben|Tower North|100.64.0.12/32 100.64.0.13/32 2001:db8:12::2/128 2001:db8:12:100::/56|\
             10-50000|10-10000",
            // By its data link.
            "Finn Gast|Tower South|100.64.0.16/32|10-25000|10-5000",
            "Gwen Haas|Mill Hill|100.64.0.17/32|10-25000|10-5000",
            "Hugo Imhof|Mill Hill|100.64.0.18/32|10-250000|10-50000",
        ]
    );
    assert_eq!(
        nodes(&list),
        [
            "Mill Hill|-|100000000|100000000",
            "Water Tower|Mill Hill|100000000|100000000",
            "Tower North|Water Tower|187000|91000",
            // It reports a capacity of 0.
            "Tower South|Water Tower|100000000|100000000",
        ]
    );
    assert_eq!(
        left_out(&imported),
        [
            (Kind::Subscriber, "Carla Dietz", None, Reason::Suspended),
            (Kind::Subscriber, "Dora Eck", None, Reason::NoRates),
            (Kind::Subscriber, "Emil Frank", None, Reason::NoAddress),
            (Kind::Address, "Finn Gast", Some("100.64.3.1/32"), Reason::Shared),
            (Kind::Address, "Gwen Haas", Some("100.64.3.1/32"), Reason::Shared),
            (Kind::Device, "Spare CPE", None, Reason::NoSite),
        ]
    );
    assert_eq!(
        (imported.subscribers, imported.devices, imported.addresses),
        (5, 6, 8)
    );
    assert_eq!((imported.nodes, imported.on_line), (4, 0));
}

#[test]
fn services_of_splynx_are_subscribers() {
    let imported = imported(Program::Splynx, &splynx());
    let list = list(&imported);
    assert_eq!(
        subscribers(&list),
        [
            "Anna Berg|Hill North|100.64.1.93/32|10240-102400|2048-20480",
            "Cole \"Ben\" Ltd|Business|100.64.1.94/32 100.64.200.0/29 100.64.201.8/30 2001:db8:94::/64 \
             2001:db8:9400::/56|50000-250000|25000-250000",
            // Its addresses are those of its session.
            "Emil Frank|Edge 1|100.64.7.97/32 2001:db8:97::/64|10240-102400|2048-20480",
            "Anna Berg|-|100.64.1.102/32|10240-102400|2048-20480",
        ]
    );
    assert_eq!(
        nodes(&list),
        [
            "Edge 1|-|100000000|100000000",
            "Business|Edge 1|400000|200500",
            "Mill Hill|-|100000000|100000000",
            "Hill North|Mill Hill|100000000|100000000",
            "Hill Router|Mill Hill|100000000|100000000",
            "Hill South|Hill Router|100000000|100000000",
        ]
    );
    assert_eq!(
        left_out(&imported),
        [
            (Kind::Subscriber, "Carla Dietz", None, Reason::Suspended),
            (Kind::Subscriber, "Dora Eck", None, Reason::NoRates),
            (Kind::Subscriber, "Finn Gast", None, Reason::NoAddress),
        ]
    );
    assert_eq!(imported.on_line, 1);
}

#[test]
fn suspended_customers_may_have_a_rate_of_their_own() {
    let wishes = Wishes {
        suspended: Some(256_000),
        ..Wishes::default()
    };
    for (program, answers) in [(Program::Uisp, uisp()), (Program::Splynx, splynx())] {
        let imported = read(program, &answers, &wishes, None).unwrap();
        let slow = subscribers(&list(&imported));
        let slow = slow.iter().find(|one| one.starts_with("Carla Dietz|")).unwrap();
        assert!(slow.ends_with("|10-256|10-256"), "{slow}");
        assert!(
            imported
                .left_out
                .iter()
                .all(|one| one.reason != Reason::Suspended)
        );
    }
}

#[test]
fn networks_that_are_ignored_are_a_wish() {
    let wishes = Wishes {
        ignored: Vec::new(),
        ..Wishes::default()
    };
    let imported = read(Program::Uisp, &uisp(), &wishes, None).unwrap();
    assert!(imported.devices_text.contains("192.168.172.1"));
    assert!(
        !self::imported(Program::Uisp, &uisp())
            .devices_text
            .contains("192.168.")
    );
}

#[test]
fn the_rates_of_a_node_that_is_fixed_stay() {
    let first = imported(Program::Uisp, &uisp());
    let mut network: Value = serde_json::from_str(&first.network_text).unwrap();
    let hill = &mut network["Mill Hill"];
    hill["downloadBandwidthMbps"] = json!(800);
    hill["uploadBandwidthMbps"] = json!(300.5);
    hill["fixed"] = json!(true);
    let tower = &mut hill["children"]["Water Tower"];
    tower["virtual"] = json!(true);
    tower["fixed"] = json!(true);
    // This one is not fixed.
    tower["children"]["Tower North"]["downloadBandwidthMbps"] = json!(1);
    // The site was renamed since.
    let mut answers = uisp();
    let sites = String::from_utf8(answers["sites"][0].clone()).unwrap();
    answers.insert(
        "sites",
        vec![sites.replace("\"Mill Hill\"", "\"Mill Peak\"").into_bytes()],
    );
    let again = read(
        Program::Uisp,
        &answers,
        &Wishes::default(),
        Some(&network.to_string()),
    )
    .unwrap();
    assert_eq!(
        nodes(&list(&again)),
        [
            "Mill Peak|-|800000|300500",
            "Tower North|Mill Peak|187000|91000",
            "Tower South|Mill Peak|100000000|100000000",
        ]
    );
    // And so it goes on.
    let third = read(
        Program::Uisp,
        &answers,
        &Wishes::default(),
        Some(&again.network_text),
    )
    .unwrap();
    assert_eq!(third.network_text, again.network_text);
    let broken = read(Program::Uisp, &answers, &Wishes::default(), Some("{"));
    assert!(broken.unwrap_err().is_bad_input());
}

#[test]
fn the_order_of_the_answers_does_not_matter() {
    for (program, answers) in [(Program::Uisp, uisp()), (Program::Splynx, splynx())] {
        let first = imported(program, &answers);
        let turned = answers.iter().map(|(name, pages)| {
            let mut rows: Vec<Value> = serde_json::from_slice(&pages[0]).unwrap();
            rows.reverse();
            (*name, vec![serde_json::to_vec(&rows).unwrap()])
        });
        let turned = imported(program, &turned.collect());
        assert_eq!(turned.devices_text, first.devices_text);
        assert_eq!(turned.network_text, first.network_text);
        assert_eq!(turned.left_out, first.left_out);
    }
}

/// A chain of sites, with an endpoint at the last one.
fn chain(length: usize, is_circle: bool) -> Answers {
    let site = |number: usize| {
        let above = match number {
            0 => is_circle.then(|| length - 1),
            _ => Some(number - 1),
        };
        let parent = above.map(|above| json!({"id": format!("s{above}")}));
        json!({"identification":
            {"id": format!("s{number}"), "name": format!("Site {number}"), "type": "site", "parent": parent}})
    };
    let mut sites: Vec<Value> = (0..length).map(site).collect();
    sites.push(json!({
        "identification":
            {"id": "e", "name": "Ann", "type": "endpoint", "parent": {"id": format!("s{}", length - 1)}},
        "qos": {"downloadSpeed": 5e6, "uploadSpeed": 1e6}
    }));
    let device = json!([{"identification": {"id": "d", "site": {"id": "e"}}, "ipAddress": "100.64.0.1"}]);
    BTreeMap::from([
        ("sites", vec![Value::Array(sites).to_string().into_bytes()]),
        ("devices", vec![device.to_string().into_bytes()]),
    ])
}

#[test]
fn of_too_many_sites_above_one_another_the_lowest_shape() {
    let imported = imported(Program::Uisp, &chain(9, false));
    let list = list(&imported);
    let names: Vec<&str> = list.list().nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names,
        ["Site 3", "Site 4", "Site 5", "Site 6", "Site 7", "Site 8"]
    );
    assert_eq!(list.list().subscribers[0].node.as_deref(), Some("Site 8"));
    let too_deep = imported
        .left_out
        .iter()
        .filter(|one| one.reason == Reason::TooDeep);
    let too_deep: Vec<&str> = too_deep.map(|one| one.name.as_str()).collect();
    assert_eq!(too_deep, ["Site 0", "Site 1", "Site 2"]);
    // A circle is cut somewhere: here Site 0 is below the site of the endpoint.
    let circle = self::list(&self::imported(Program::Uisp, &chain(4, true)));
    assert_eq!(circle.list().nodes.len(), 3);
    // A chain as long as no stack is.
    let long = self::imported(Program::Uisp, &chain(50_000, false));
    assert_eq!(long.nodes, 6);
}

#[test]
fn names_are_those_of_one_node_each() {
    let sites = json!([
        {"identification": {"id": "aaaaaaaa-1", "name": "Hill", "type": "site"}},
        {"identification": {"id": "bbbbbbbb-2", "name": " Hill\u{200b} ", "type": "site"}},
        {"identification": {"id": "cccccccc-3", "name": "None", "type": "site"}},
        {"identification": {"id": "dddddddd-4", "name": "", "type": "site"}},
        {"identification": {"id": "e1", "name": "#1, \"A\"\n\u{7}x", "type": "endpoint",
            "parent": {"id": "aaaaaaaa-1"}},
         "qos": {"downloadSpeed": "25000000", "uploadSpeed": 1500000.0}},
        {"identification": {"id": "e2", "name": "B", "type": "endpoint", "parent": {"id": "bbbbbbbb-2"}},
         "qos": {"downloadSpeed": 25000000, "uploadSpeed": 5000000}},
        {"identification": {"id": "e3", "name": "C", "type": "endpoint", "parent": {"id": "cccccccc-3"}},
         "qos": {"downloadSpeed": 25000000, "uploadSpeed": 5000000}},
        {"identification": {"id": "e4", "name": "D", "type": "endpoint", "parent": {"id": "dddddddd-4"}},
         "qos": {"downloadSpeed": 25000000, "uploadSpeed": 5000000}}
    ]);
    let device = |number: usize| {
        json!({"identification": {"id": format!("d{number}"), "site": {"id": format!("e{number}")}},
            "ipAddress": format!("100.64.0.{number}")})
    };
    let devices = Value::Array((1..=4).map(device).collect());
    let answers = BTreeMap::from([
        ("sites", vec![sites.to_string().into_bytes()]),
        ("devices", vec![devices.to_string().into_bytes()]),
    ]);
    let list = list(&imported(Program::Uisp, &answers));
    let names: Vec<&str> = list.list().nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "(dddddddd)",
            "Hill (aaaaaaaa)",
            "Hill (bbbbbbbb)",
            "None (cccccccc)"
        ]
    );
    let all = subscribers(&list);
    assert_eq!(
        all[0],
        "#1, \"A\" x|Hill (aaaaaaaa)|100.64.0.1/32|10-25000|10-1500"
    );
    assert_eq!(
        list.list().subscribers[2].node.as_deref(),
        Some("None (cccccccc)")
    );
}

/// Addresses that overlap often.
fn address() -> impl Strategy<Value = String> {
    let four = (0u8..4, 0u8..8, prop::option::of(20u8..=33))
        .prop_map(|(third, last, length)| with_length(format!("100.64.{third}.{last}"), length));
    let six = (0u8..3, prop::option::of(40u8..=129))
        .prop_map(|(part, length)| with_length(format!("2001:db8:{part}00::"), length));
    let odd = prop::sample::select(vec![
        "",
        "x",
        "fe80::1/64",
        "192.168.1.1/24",
        "0.0.0.0",
        "300.1.1.1/8",
    ]);
    prop_oneof![4 => four, 2 => six, 1 => odd.prop_map(str::to_owned)]
}

fn with_length(address: String, length: Option<u8>) -> String {
    length.map_or(address.clone(), |length| format!("{address}/{length}"))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("Hill".to_owned()),
        Just("none".to_owned()),
        "\\PC{0,12}",
        any::<String>()
    ]
}

/// Name, whether it is an endpoint, parent, rate.
fn site() -> impl Strategy<Value = (String, bool, usize, Option<u64>)> {
    (name(), any::<bool>(), 0usize..14, prop::option::of(0u64..1 << 50))
}

/// Site, name, addresses, access point.
fn device() -> impl Strategy<Value = (usize, String, Vec<String>, usize)> {
    (
        0usize..14,
        name(),
        prop::collection::vec(address(), 0..5),
        0usize..14,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the sites and devices are: the files are valid, every circuit is in them or is left out, and
    /// no address is in two of them.
    #[test]
    fn whatever_uisp_has_is_a_valid_list(
        sites in prop::collection::vec(site(), 1..14),
        devices in prop::collection::vec(device(), 0..14),
    ) {
        let rows = sites.iter().enumerate().map(|(number, (name, is_endpoint, parent, rate))| json!({
            "identification": {
                "id": format!("s{number}"), "name": name, "parent": {"id": format!("s{parent}")},
                "type": if *is_endpoint { "endpoint" } else { "site" }
            },
            "qos": {"downloadSpeed": rate, "uploadSpeed": rate}
        }));
        let site_rows = Value::Array(rows.collect());
        let rows = devices.iter().enumerate().map(|(number, (site, name, addresses, ap))| json!({
            "identification": {"id": format!("d{number}"), "name": name, "site": {"id": format!("s{site}")}},
            "attributes": {"apDevice": {"id": format!("d{ap}")}},
            "interfaces": [
                {"addresses": addresses.iter().map(|cidr| json!({"cidr": cidr})).collect::<Vec<_>>()}
            ]
        }));
        let device_rows = Value::Array(rows.collect());
        let answers = BTreeMap::from([
            ("sites", vec![site_rows.to_string().into_bytes()]),
            ("devices", vec![device_rows.to_string().into_bytes()]),
        ]);
        let imported = imported(Program::Uisp, &answers);
        let list = list(&imported);
        prop_assert_eq!(list.list().subscribers.len(), imported.subscribers);
        prop_assert_eq!(list.list().nodes.len(), imported.nodes);
        let prefixes = list.list().subscribers.iter().map(|one| one.prefixes.len()).sum::<usize>();
        prop_assert_eq!(prefixes, imported.addresses);
        let endpoints = sites.iter().filter(|(_, is_endpoint, ..)| *is_endpoint).count();
        let out: BTreeSet<&str> = imported
            .left_out
            .iter()
            .filter(|one| one.of == Kind::Subscriber)
            .map(|one| one.id.as_str())
            .collect();
        prop_assert_eq!(list.list().subscribers.len() + out.len(), endpoints);
        // The same again is the same.
        let again = read(Program::Uisp, &answers, &Wishes::default(), Some(&imported.network_text)).unwrap();
        prop_assert_eq!(again.network_text, imported.network_text);
        prop_assert_eq!(again.devices_text, imported.devices_text);
    }
}

//! Compares translated `u32` filters with what Linux does with them: `kernel_u32.txt`.

use std::collections::BTreeMap;

use fairgate::flow::{FlowHasher, HeaderBytes, LinkType, dissect};
use fairgate::{Arrival, Pool, Time};
use fairgate_config::FileError;

use crate::tc::{Device, Script};

const RECORDED: &str = include_str!("kernel_u32.txt");

/// The default class.
const DEFAULT: u32 = 0x99;

/// The classes of the recording, each with a fifo.
fn script(filters: &[&str]) -> String {
    let mut script = String::from("qdisc add dev e root handle 1: htb default 99\n");
    script += "class add dev e parent 1: classid 1:1 htb rate 1000mbit\n";
    for class in ["10", "20", "30", "99"] {
        script += &format!("class add dev e parent 1:1 classid 1:{class} htb rate 100mbit\n");
    }
    for filter in filters {
        script += &format!("filter add dev e {filter}\n");
    }
    script
}

/// Returns the class of each packet.
fn classes(script: &str, packets: &BTreeMap<&str, Vec<u8>>) -> Result<BTreeMap<String, u32>, FileError> {
    let spec = Script::parse("kernel.tc", script, Device::default())?.spec()?;
    let mut root = spec.build(1).expect("the tree can be built");
    let mut pool = Pool::with_capacity(1);
    pool.keep(root.needs());
    let mut found = BTreeMap::new();
    for (name, frame) in packets {
        let headers = dissect(frame, LinkType::Ethernet);
        let packet = headers.packet(frame.len() as u32, &FlowHasher::new([1, 2]));
        let arrival = Arrival {
            bytes: Some(HeaderBytes::of_frame(frame, LinkType::Ethernet)),
            ..Arrival::from((packet, headers.key))
        };
        let id = pool.insert(arrival).expect("a free slot");
        root.enqueue(id, Time::ZERO, &mut pool);
        let mut class = 0;
        root.visit_classes(&mut |leaf| {
            if leaf.discipline.backlog().packets > 0 {
                class = leaf.minor;
            }
        });
        found.insert((*name).to_owned(), class);
        root.flush(&mut pool);
        while let Some((id, _)) = pool.take_returned() {
            pool.release(id);
        }
    }
    Ok(found)
}

/// Reads `name:class` in hexadecimal.
fn outcomes(text: &str) -> impl Iterator<Item = (String, u32)> {
    text.split_whitespace().map(|outcome| {
        let (name, class) = outcome.split_once(':').expect("a name and a class");
        (name.to_owned(), u32::from_str_radix(class, 16).unwrap_or(0))
    })
}

#[test]
fn u32_filters_select_what_linux_selects() {
    let frame = |line: &'static str| {
        let (name, digits) = line.strip_prefix("packet ")?.split_once(' ')?;
        let octets = (0..digits.len()).step_by(2);
        let octets = octets.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits"));
        Some((name, octets.collect()))
    };
    let packets: BTreeMap<&str, Vec<u8>> = RECORDED.lines().filter_map(frame).collect();
    assert_eq!(packets.len(), 16);
    let mut compared = 0;
    for case in RECORDED.split("\n\n").skip(1) {
        let lines = |start: &'static str| case.lines().filter_map(move |line| line.strip_prefix(start));
        let filters: Vec<&str> = case.lines().filter(|line| line.starts_with("parent")).collect();
        let here: Vec<&str> = lines("here ").collect();
        let found = classes(&script(&filters), &packets);
        if here.contains(&"refused") || lines("refused").next().is_some() {
            assert!(found.is_err(), "{case}");
            continue;
        }
        let found = found.unwrap_or_else(|error| panic!("{case}: {:?}", error.problems()));
        let mut expected: BTreeMap<String, u32> =
            packets.keys().map(|name| ((*name).to_owned(), DEFAULT)).collect();
        expected.extend(lines("=>").flat_map(outcomes));
        expected.extend(here.into_iter().flat_map(outcomes));
        assert_eq!(found, expected, "{case}");
        compared += packets.len();
    }
    assert!(compared > 700, "{compared} packets");
}

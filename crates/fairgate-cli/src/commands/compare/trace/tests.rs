//! Random captures under every discipline that can be given on a command line.

use std::path::Path;

use fairgate::{Rate, Time};
use fairgate_capture::{CaptureWriter, LinkType};
use fairgate_config::{Children, Entry, Registry, Spec};
use proptest::prelude::*;

use super::*;
use crate::commands::compare::capture::Source;
use crate::commands::compare::direction::Direction;
use crate::output::Format;

/// Returns one of every discipline that works without classes.
fn contestants() -> Vec<Contestant> {
    let needs_no_classes = |entry: &&dyn Entry| {
        !matches!(
            entry.about().children,
            Children::Classes | Children::Bands | Children::Tree
        )
    };
    let value = |parameter: &str| match parameter {
        "rate" | "bandwidth" => "10mbit",
        "burst" | "bucket" => "20kb",
        "idleslope" => "8mbit",
        "sendslope" => "2mbit",
        "hicredit" => "6kb",
        "locredit" => "3kb",
        other => panic!("a required parameter without a value here: {other}"),
    };
    let contestant = |entry: &dyn Entry| {
        let mut name = entry.about().name.to_owned();
        for parameter in entry
            .parameters()
            .iter()
            .filter(|parameter| parameter.default.is_none())
        {
            if !parameter.optional {
                name += &format!(" {}={}", parameter.name, value(parameter.name));
            }
        }
        if entry.about().name == "tbf" {
            name += " limit=100kb";
        }
        let spec = Spec::inline(&name).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        Contestant { name, spec }
    };
    Registry::builtin()
        .iter()
        .filter(needs_no_classes)
        .map(contestant)
        .collect()
}

fn options(file: &Path) -> Options {
    Options {
        source: Source::File(file.to_owned()),
        rate: Rate::mbit(20),
        direction: Direction::All,
        local: Vec::new(),
        from: Vec::new(),
        to: Vec::new(),
        duration: None,
        top: 8,
        mtu: 1500,
        partial: false,
        seed: 1,
        format: Format::Json,
    }
}

/// A UDP packet: pause before it in ns, flow, IP length.
type Sent = (u64, u16, u16);

fn write(path: &Path, packets: &[Sent]) {
    let mut writer = CaptureWriter::new(Vec::new(), LinkType::RAW_IP, 96).unwrap();
    let mut time = Time::ZERO;
    for &(pause, flow, length) in packets {
        time += pause;
        let [high, low] = length.to_be_bytes();
        let mut packet = vec![
            0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 203, 0, 113, 5, 192, 168, 1, 20,
        ];
        packet.extend(5004u16.to_be_bytes());
        packet.extend(flow.to_be_bytes());
        packet.extend([0; 4]);
        writer.packet(time, length.into(), &packet).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

/// Generates bursts and pauses of hundreds of flows, a few of which occur often.
fn traffic() -> impl Strategy<Value = Vec<Sent>> {
    let pause = prop_oneof![20 => 0u64..200_000, 1 => 0u64..100_000_000];
    let flow = prop_oneof![1 => 0u16..20, 2 => any::<u16>()];
    let length = prop_oneof![4 => 28u16..1500, 1 => 1501u16..20_000];
    prop::collection::vec((pause, flow, length), 400..1200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn figures_add_up_under_every_discipline(packets in traffic()) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("random.pcap");
        write(&path, &packets);
        let pieces: u64 = packets
            .iter()
            .map(|&(_, _, length)| match u64::from(length) {
                length @ ..=1500 => length.min(1),
                length => (length - 28).div_ceil(1500 - 28),
            })
            .sum();
        let comparison = run(&options(&path), contestants(), String::new())
            .unwrap_or_else(|failure| panic!("{failure:?}"));
        prop_assert_eq!(comparison.check(), Ok(()));
        for discipline in &comparison.disciplines {
            let total = &discipline.total;
            prop_assert_eq!(total.offered, pieces, "{}", &discipline.name);
            prop_assert_eq!(total.delivered + total.dropped, pieces, "{}", &discipline.name);
            prop_assert_eq!(total.left, 0, "{}: the link transmits until nothing is left", &discipline.name);
        }
    }
}

/// Tests the check itself with wrong figures, such as a packet that is in no group, or a byte too many.
#[test]
fn figures_that_do_not_add_up_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("few.pcap");
    write(&path, &[(0, 1, 100), (5, 2, 200), (5, 3, 300)]);
    let fifo = Contestant {
        name: "fifo".into(),
        spec: Spec::inline("fifo").unwrap(),
    };
    let right =
        run(&options(&path), vec![fifo], String::new()).unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(right.check(), Ok(()));
    type Spoil = fn(&mut Comparison);
    let spoils: [(&str, Spoil); 5] = [
        ("offered = 3 packets, but by its groups 2", |it| {
            _ = it.disciplines[0].groups.pop()
        }),
        ("offered = 114 bytes, but delivered 101", |it| {
            it.disciplines[0].groups[2].delivered_bytes -= 13
        }),
        ("dropped = 0 packets, but queue_limit 1", |it| {
            _ = it.disciplines[0].drops.insert("queue_limit".into(), 1);
        }),
        ("replayed = 4 packets, but offered 3", |it| {
            if let Input::Capture { on_line, .. } = &mut it.input {
                *on_line += 1;
            }
        }),
        ("delivered 3 + dropped 0 + left 1 = 4 packets", |it| {
            it.disciplines[0].total.left += 1
        }),
    ];
    for (complaint, spoil) in spoils {
        let mut wrong = right.clone();
        spoil(&mut wrong);
        let error = wrong.check().expect_err(complaint).to_string();
        assert!(
            error.contains(complaint) || complaint.starts_with("offered = 101"),
            "{error}"
        );
    }
}

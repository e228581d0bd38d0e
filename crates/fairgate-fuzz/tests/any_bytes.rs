//! Runs the fuzzer's checks on random bytes and on damaged seeds in every test run.

use std::path::PathBuf;

use fairgate_config::Document;
use fairgate_scripts::tc::{Device, Printed, Script, import};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Returns the seeds of a fuzz target.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder that can be listed").path())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no seeds in {}", folder.display());
    files
        .iter()
        .map(|file| std::fs::read(file).expect("a seed that can be read"))
        .collect()
}

#[derive(Clone, Debug)]
enum Damage {
    Overwrite(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    /// Copies a part to another position.
    Copy(Index, Index, usize),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        8 => any::<(Index, u8)>().prop_map(|(at, byte)| Damage::Overwrite(at, byte)),
        2 => (any::<Index>(), vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        2 => (any::<Index>(), 1usize..20).prop_map(|(at, count)| Damage::Remove(at, count)),
        2 => (any::<Index>(), any::<Index>(), 1usize..40)
            .prop_map(|(from, to, count)| Damage::Copy(from, to, count)),
        1 => any::<Index>().prop_map(Damage::Cut),
    ]
}

fn inflict(bytes: &mut Vec<u8>, damage: &Damage) {
    let at = |index: &Index| index.index(bytes.len() + 1);
    match damage {
        Damage::Overwrite(position, byte) => {
            let position = at(position);
            if let Some(target) = bytes.get_mut(position) {
                *target = *byte;
            }
        }
        Damage::Insert(position, inserted) => {
            let position = at(position);
            bytes.splice(position..position, inserted.iter().copied());
        }
        Damage::Remove(position, count) => {
            let position = at(position);
            bytes.drain(position..(position + count).min(bytes.len()));
        }
        Damage::Copy(from, to, count) => {
            let (from, to) = (at(from), at(to));
            let copied = bytes[from..(from + count).min(bytes.len())].to_vec();
            bytes.splice(to..to, copied);
        }
        Damage::Cut(position) => bytes.truncate(at(position)),
    }
}

/// Returns seeds with up to five damages, and random bytes.
fn inputs(target: &str) -> impl Strategy<Value = Vec<u8>> {
    let damaged = (select(seeds(target)), vec(damage(), 0..6)).prop_map(|(mut bytes, damages)| {
        damages.iter().for_each(|damage| inflict(&mut bytes, damage));
        bytes
    });
    prop_oneof![9 => damaged, 1 => vec(any::<u8>(), 0..300)]
}

/// A rejected seed tests only a part of the reader. So all seeds of these targets must be valid.
#[test]
fn seeds_are_valid() {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
    for seed in seeds("configuration").into_iter().map(text) {
        let outcome = Document::parse("seed.toml", &seed).err();
        assert!(outcome.is_none(), "{outcome:?}");
    }
    for seed in seeds("script").into_iter().map(text) {
        let trees = Script::translate_all("seed.tc", &seed, Device::default());
        assert!(trees.is_ok(), "{trees:?}");
    }
    for seed in seeds("listing").into_iter().map(text) {
        let printed = Printed {
            device: "eth0",
            parent: "1:",
            text: &seed,
        };
        let commands = import(&[printed]);
        assert!(
            commands.as_ref().is_ok_and(|commands| !commands.is_empty()),
            "{commands:?}"
        );
    }
    for seed in seeds("dummynet").into_iter().map(text) {
        let script = fairgate_scripts::dummynet::Script::parse("seed.ipfw", &seed, Device::default());
        let trees = script.and_then(|script| script.trees());
        assert!(trees.is_ok(), "{trees:?}");
    }
    for seed in seeds("api").into_iter().map(text) {
        for request in seed.split("\n---\n") {
            let (method, rest) = request.split_once(' ').expect("a method");
            assert!(
                ["GET", "HEAD", "POST", "PUT", "DELETE"].contains(&method),
                "{method}"
            );
            assert!(rest.starts_with('/'), "{rest}");
        }
    }
    for seed in seeds("subscribers") {
        assert!(fairgate_fuzz::subscribers(&seed), "{}", text(seed));
    }
    for seed in seeds("import") {
        assert!(fairgate_fuzz::import(&seed), "{}", String::from_utf8_lossy(&seed));
    }
    for seed in seeds("tune") {
        assert!(fairgate_fuzz::tune(&seed), "{}", String::from_utf8_lossy(&seed));
    }
    for seed in seeds("history") {
        assert!(fairgate_fuzz::history(&seed));
    }
    for seed in seeds("netlink") {
        let plan = fairgate_kernel::Plan::from_bytes(&seed).expect("a plan");
        assert!(
            fairgate_kernel::Prepared::new(plan.clone(), 1).is_ok(),
            "{plan:?}"
        );
    }
    for file in seeds("capture") {
        let source = std::io::Cursor::new(file);
        let mut capture = fairgate_capture::Capture::from_reader(Box::new(source)).expect("a capture");
        while capture.next_record().expect("a valid record").is_some() {}
        assert!(capture.counts().packets > 0);
    }
    for frame in seeds("link") {
        let (number, data) = frame.split_first_chunk().expect("the number of a link type");
        let record = fairgate_capture::Record {
            time: fairgate::Time::ZERO,
            link: fairgate_capture::LinkType::from_number(u16::from_be_bytes(*number)).expect("a known link"),
            length: data.len() as u32,
            data,
            check_sequence: 0,
        };
        let headers = record.headers();
        let is_encrypted = headers.dissection.key.ethertype == 0 && headers.dissection.key.source != [0; 16];
        assert!(headers.packet.is_some() || is_encrypted, "{frame:02x?}");
    }
}

proptest! {
    #[test]
    fn api(bytes in inputs("api")) {
        fairgate_fuzz::api(&bytes);
    }

    #[test]
    fn headers(bytes in inputs("headers")) {
        fairgate_fuzz::headers(&bytes);
    }

    #[test]
    fn history(bytes in inputs("history")) {
        fairgate_fuzz::history(&bytes);
    }

    #[test]
    fn link(bytes in inputs("link")) {
        fairgate_fuzz::link(&bytes);
    }

    #[test]
    fn capture(bytes in inputs("capture")) {
        fairgate_fuzz::capture(&bytes);
    }

    #[test]
    fn configuration(bytes in inputs("configuration")) {
        fairgate_fuzz::configuration(&bytes);
    }

    #[test]
    fn script(bytes in inputs("script")) {
        fairgate_fuzz::script(&bytes);
    }

    #[test]
    fn listing(bytes in inputs("listing")) {
        fairgate_fuzz::listing(&bytes);
    }

    #[test]
    fn dummynet(bytes in inputs("dummynet")) {
        fairgate_fuzz::dummynet(&bytes);
    }

    #[test]
    fn subscribers(bytes in inputs("subscribers")) {
        fairgate_fuzz::subscribers(&bytes);
    }

    #[test]
    fn answers_of_others(bytes in inputs("import")) {
        fairgate_fuzz::import(&bytes);
    }

    #[test]
    fn netlink(bytes in inputs("netlink")) {
        fairgate_fuzz::netlink(&bytes);
    }

    #[test]
    fn trace(bytes in inputs("trace")) {
        fairgate_fuzz::trace(&bytes);
    }

    #[test]
    fn tune(bytes in inputs("tune")) {
        fairgate_fuzz::tune(&bytes);
    }
}

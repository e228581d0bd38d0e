//! Class-based queueing, as in Linux before 6.3, which removed it.

use std::slice;

use fairgate::sharing::cbq;
use fairgate_config::language::Given;
use toml::Spanned;

use super::{
    Children, ClassSpec, Detail, Kind, Look, Opt, PLAIN, Reads, Seen, Unreadable, frame, means, option, same,
    show_as,
};
use crate::script::Word;
use crate::tc::command::read_class_id;
use crate::tc::display::{Amount, plain, rate};

pub(super) const CBQ: Kind = Kind {
    name: "cbq",
    discipline: "cbq",
    options: &[
        &[
            option("bandwidth", "bandwidth", BANDWIDTH),
            option("rate", "bandwidth", BANDWIDTH),
            option("avpkt", "packet", PACKET),
        ],
        OF_BOTH,
    ],
    children: Children::Tree {
        options: &[
            &[
                same("rate", "rate"),
                option("prio", "priority", Reads::CountedDown(8)),
                same("weight", "weight"),
                same("maxburst", "maxburst"),
                same("minburst", "minburst"),
                means("bounded", "borrow", "false"),
                means("borrow", "borrow", "true"),
                // A class always lends here.
                means("sharing", "", ""),
                option(
                    "isolated",
                    "",
                    Reads::Noted("a class lends its unused rate to others, and counts in the class above it"),
                ),
                // There is one link with one bandwidth.
                option("bandwidth", "", BANDWIDTH),
                option("avpkt", "", PACKET),
                // `translate/split.rs` reads both.
                option("split", "", Reads::Several(split)),
                option("defmap", "", Reads::Several(defmap)),
                option(
                    "estimator",
                    "",
                    Reads::Refused("`fairgate status` shows rates: leave it out"),
                ),
                option(
                    "est",
                    "",
                    Reads::Refused("`fairgate status` shows rates: leave it out"),
                ),
                option(
                    "minidle",
                    "",
                    Reads::Refused("the debt is at most one packet of maximum length: leave it out"),
                ),
            ],
            OF_BOTH,
        ],
        // A class without a priority goes last.
        defaults: |_| vec![("priority", "0".to_owned())],
        settle: |_| {},
        unclassified: Some(&[("rate", "bandwidth")]),
    },
    defaults: |device| vec![("max_packet", frame(device).to_string())],
    look: Look {
        options: &[&[show_as("rate", "bandwidth", rate)]],
        complete_class,
        ..PLAIN
    },
};

const BANDWIDTH: Reads = Reads::Common("bandwidth");
const PACKET: Reads = Reads::Common("avpkt");

/// Options of the qdisc and its classes.
const OF_BOTH: &[Opt] = &[
    option("ewma", "", Reads::Only("5", "the average is over 2^5 packets")),
    // The shares depend only on the weights: a common factor cancels out.
    option("allot", "", Reads::Common("allot")),
    // The resolution of the kernel's tables of transmission times. Times are exact here.
    option("cell", "", Reads::Unneeded),
    option("mpu", "", Reads::NotedValue(LENGTH)),
    option("overhead", "", Reads::NotedValue(LENGTH)),
    option("linklayer", "", Reads::Only("ethernet", LENGTH)),
];

const LENGTH: &str = "the length of a packet is that of its frame";

/// Reads a class, for `translate/split.rs`.
fn split(
    _: &Word,
    words: &mut slice::Iter<'_, Word>,
) -> Result<Vec<(&'static str, Spanned<Given>)>, Unreadable> {
    let word = words.next().ok_or(Unreadable::Missing)?;
    match read_class_id(word) {
        Some(_) => Ok(Vec::new()),
        None => Err(Unreadable::Wrong {
            location: word.span(),
            message: format!("`{}` is no class", word.get_ref()),
            help: "write the handle of the qdisc, like 1:0".to_owned(),
        }),
    }
}

/// Reads a map of priorities, for `translate/split.rs`.
fn defmap(
    _: &Word,
    words: &mut slice::Iter<'_, Word>,
) -> Result<Vec<(&'static str, Spanned<Given>)>, Unreadable> {
    let word = words.next().ok_or(Unreadable::Missing)?;
    match default_map(word.get_ref()) {
        Some(_) => Ok(Vec::new()),
        None => Err(Unreadable::Wrong {
            location: word.span(),
            message: format!("`{}` is no map of priorities", word.get_ref()),
            help: "write hexadecimal bits, and perhaps a mask: ff or c0/ff".to_owned(),
        }),
    }
}

/// Returns the bits of a map and its mask: `%08x/%08x` in q_cbq.c.
pub(in crate::tc) fn default_map(text: &str) -> Option<(u32, u32)> {
    let bits = |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    match text.split_once('/') {
        Some((map, mask)) => bits(map).zip(bits(mask)),
        None => bits(text).map(|map| (map, u32::MAX)),
    }
}

fn complete_class(seen: &Seen<'_>, class: &ClassSpec<'_>, details: &mut Vec<Detail>) {
    let config = seen.config::<cbq::Config>();
    let Some(settings) = config.classes.iter().find(|other| other.minor == class.minor) else {
        return;
    };
    details.push(Detail::new("rate", Amount::Rate(settings.rate)));
    if !settings.borrow {
        details.push(Detail::bare("(bounded)", "bounded", None));
    }
    details.push(Detail::new("prio", plain((8 - settings.priority).into())));
}

#[cfg(test)]
mod tests {
    use crate::tc::{Device, Script};

    /// The example of the Linux Advanced Routing and Traffic Control HOWTO (section 9.5.4), the origin of
    /// most scripts.
    const HOWTO: &str = "tc qdisc add dev eth0 root handle 1:0 cbq bandwidth 100Mbit avpkt 1000 cell 8\n\
        tc class add dev eth0 parent 1:0 classid 1:1 cbq bandwidth 100Mbit rate 6Mbit weight 0.6Mbit prio 8 \
        allot 1514 cell 8 maxburst 20 avpkt 1000 bounded\n\
        tc class add dev eth0 parent 1:1 classid 1:3 cbq bandwidth 100Mbit rate 5Mbit weight 0.5Mbit prio 5 \
        allot 1514 cell 8 maxburst 20 avpkt 1000\n\
        tc class add dev eth0 parent 1:1 classid 1:4 cbq bandwidth 100Mbit rate 3Mbit weight 0.3Mbit prio 5 \
        allot 1514 cell 8 maxburst 20 avpkt 1000\n\
        tc qdisc add dev eth0 parent 1:3 handle 30: sfq\n\
        tc qdisc add dev eth0 parent 1:4 handle 40: sfq\n";

    fn tree(text: &str) -> String {
        let script = Script::parse("test.tc", text, Device::default()).expect("the lines fit together");
        script
            .spec()
            .expect("the options can be carried over")
            .to_string()
    }

    fn mistake(text: &str) -> String {
        let script = Script::parse("test.tc", text, Device::default()).expect("the lines fit together");
        let error = script.spec().expect_err("there is a mistake");
        error.problems()[0].message.clone()
    }

    #[test]
    fn the_example_of_the_howto_becomes_a_tree() {
        let tree = tree(HOWTO);
        for part in [
            "bandwidth=100mbit",
            "packet=1000b",
            "1 rate=6mbit priority=0 borrow=false weight=600kbit maxburst=20",
            "3 rate=5mbit priority=3 weight=500kbit maxburst=20",
        ] {
            assert!(tree.contains(part), "{part} in {tree}");
        }
    }

    #[test]
    fn unclassified_packets_go_last_at_the_rate_of_the_link() {
        assert!(tree(HOWTO).contains("default=65535"));
        assert!(tree(HOWTO).contains("65535 rate=100mbit priority=0: fifo"));
        let with_default = format!("{HOWTO}tc filter add dev eth0 parent 1: prio 9 matchall classid 1:4");
        assert!(tree(&with_default).contains("default=4"));
        assert!(!tree(&with_default).contains("65535"));
        let taken = format!(
            "{HOWTO}tc class add dev eth0 parent 1:1 classid 1:ffff cbq rate 1mbit weight 100kbit prio 3"
        );
        assert!(tree(&taken).contains("default=65534"));
    }

    /// The classes by priority of packets that no filter matches; 0 is best effort, and that of all others.
    /// The rate limit of one host in the HOWTO (section 15.10).
    #[test]
    fn what_has_no_effect_has_a_warning() {
        let lines = HOWTO.replacen("bounded", "bounded isolated mpu 64", 1);
        let trees = Script::translate_all("test.tc", &lines, Device::default()).expect("it is taken");
        let notes: Vec<&str> = trees[0].warnings.iter().map(|note| note.text.as_str()).collect();
        for option in ["isolated", "mpu"] {
            assert!(
                notes.iter().any(|note| note.contains(&format!("`{option}`"))),
                "{notes:?}"
            );
        }
    }

    #[test]
    fn split_and_defmap_are_defaults_by_priority() {
        let mapped = HOWTO
            .replacen("prio 5", "split 1:0 defmap 41 prio 5", 1)
            .replacen("3Mbit weight", "3Mbit split 1: defmap 0xc0 weight", 1);
        let toml = |text: &str| {
            let script = Script::parse("test.tc", text, Device::default()).expect("the lines fit together");
            script.spec().expect("it can be carried over").to_toml("q")
        };
        let tree = toml(&mapped);
        assert!(tree.contains("default = 3"), "{tree}");
        for filter in ["class = 3\npriority = 6\n", "class = 4\npriority = 7\n"] {
            assert!(tree.contains(filter), "{tree}");
        }
        assert!(!tree.contains("65535"), "{tree}");
        let with_filter = format!("{mapped}tc filter add dev eth0 parent 1: prio 9 matchall classid 1:4");
        assert!(toml(&with_filter).contains("default = 4"));
        let elsewhere = HOWTO.replacen("prio 5", "split 1:1 defmap 1 prio 5", 1);
        assert_eq!(mistake(&elsewhere), "`split` of class 1:3 is not at 1:0");
        let wrong = HOWTO.replacen("prio 5", "defmap x prio 5", 1);
        assert_eq!(mistake(&wrong), "`x` is no map of priorities");
    }

    #[test]
    fn unsupported_options_are_rejected() {
        let with = |before: &str, after: &str| mistake(&HOWTO.replacen(before, after, 1));
        assert_eq!(with("prio 5", "prio 9"), "`prio` must be 1 to 8");
        assert_eq!(with("prio 5", "prio 0"), "`prio` must be 1 to 8");
        assert_eq!(with("cell 8", "cell x"), "`cell` must be a number");
        assert_eq!(
            with("cell 8", "ewma 7"),
            "`ewma` must be 5: the average is over 2^5 packets"
        );
        assert_eq!(
            with("allot 1514", "allot 3000"),
            "`allot` must be 3000, as before; the qdisc and its classes share this value"
        );
        assert_eq!(
            with("bandwidth 100Mbit avpkt", "bandwidth 10Mbit avpkt"),
            "`bandwidth` must be 10Mbit, as before; the qdisc and its classes share this value"
        );
        assert_eq!(
            with("rate 5Mbit", "rate 7Mbit"),
            "`rate` of class 1:3 is 7Mbit, but must be at most 6Mbit, the rate of its parent"
        );
    }
}

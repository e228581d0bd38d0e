//! The lines of a script together.

use std::sync::Arc;

use fairgate::ClassId;
use miette::NamedSource;
use toml::Spanned;

use super::command::{Action, Command, Word};
use super::{kinds, translate};
use crate::error::{FileError, Problems};
use crate::spec::{Spec, check};

/// What tc and the kernel take defaults from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Longest IP packet, bytes.
    pub mtu: u32,
    /// Default limit of fifos, packets.
    pub txqueuelen: u32,
    /// Bytes of the link-layer header.
    pub hard_header_len: u32,
}

/// An Ethernet device as Linux sets it up.
impl Default for Device {
    fn default() -> Device {
        Device {
            mtu: 1500,
            txqueuelen: 1000,
            hard_header_len: 14,
        }
    }
}

/// A script whose lines fit together: one device, one root, every parent before its children.
pub struct Script {
    source: Arc<NamedSource<String>>,
    pub(super) device: Device,
    pub(super) qdiscs: Vec<Qdisc>,
    pub(super) classes: Vec<Class>,
}

/// A line that attaches a qdisc.
pub(super) struct Qdisc {
    pub(super) parent: Option<ClassId>,
    pub(super) handle: Option<u16>,
    pub(super) kind: Word,
    pub(super) options: Vec<Word>,
}

/// A line that adds a class.
pub(super) struct Class {
    /// The qdisc, or a class of it, that the class is in.
    pub(super) parent: ClassId,
    pub(super) id: Spanned<ClassId>,
    pub(super) kind: Word,
    pub(super) options: Vec<Word>,
}

impl Script {
    /// Reads a script; `name` stands in messages. All mistakes are reported at once.
    ///
    /// ```
    /// use fairgate_config::tc::{Device, Script};
    /// let script = Script::parse(
    ///     "home.tc",
    ///     "tc qdisc add dev eth0 root handle 1: tbf rate 20mbit burst 5kb latency 50ms",
    ///     Device::default(),
    /// )?;
    /// assert_eq!(script.spec()?.discipline(), "tbf");
    /// # Ok::<(), fairgate_config::FileError>(())
    /// ```
    ///
    /// # Errors
    /// If a line can't be understood, or the lines don't fit together.
    pub fn parse(name: &str, text: &str, device: Device) -> Result<Script, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let mut script = Script {
            source,
            device,
            qdiscs: Vec::new(),
            classes: Vec::new(),
        };
        let mut first_device: Option<Word> = None;
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let range = start..start + line.len();
            start = range.end;
            let Some(command) = Command::read(text, range, &mut problems) else {
                continue;
            };
            let device = first_device.get_or_insert_with(|| command.device.clone());
            if device.get_ref() != command.device.get_ref() {
                let message = format!("this line is for device `{}`", command.device.get_ref());
                let help = format!(
                    "a script describes one device; the others are for `{}`",
                    device.get_ref()
                );
                problems.add(command.device.span(), message, "another device", help);
            }
            script.add(command, &mut problems);
        }
        if script.qdiscs.is_empty() && problems.count() == 0 {
            let help = "begin with a line like tc qdisc add dev eth0 root handle 1: fq_codel";
            problems.add(
                0..text.len(),
                "no qdisc is attached to the root",
                "nothing here",
                help,
            );
        }
        problems.unless_any(script)
    }

    /// The first qdisc that there is no discipline for, if there is one, in words.
    pub fn unsupported(&self) -> Option<String> {
        let kinds = self.qdiscs.iter().map(|qdisc| &qdisc.kind);
        let missing = kinds
            .map(Spanned::get_ref)
            .find(|kind| kinds::find(kind).is_none())?;
        Some(format!("there is no `{missing}` here yet"))
    }

    /// The description of the tree.
    ///
    /// # Errors
    /// If an option or its value can't be carried over.
    pub fn spec(&self) -> Result<Spec, FileError> {
        let mut problems = Problems::new(Arc::clone(&self.source));
        let draft = translate::tree(self, &mut problems);
        // What was left out would only be reported once more as missing.
        let draft = draft.filter(|_| problems.count() == 0);
        match draft.and_then(|draft| check(&draft, &mut problems)) {
            Some(spec) => problems.unless_any(spec),
            None => Err(problems.into_error()),
        }
    }

    /// The qdisc attached to `class`.
    pub(super) fn attached_to(&self, class: ClassId) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == Some(class))
    }

    /// The qdiscs attached to classes of `qdisc`.
    pub(super) fn attached_below<'s>(&'s self, qdisc: &Qdisc) -> impl Iterator<Item = &'s Qdisc> + use<'s> {
        let handle = qdisc.handle;
        let major = |other: &Qdisc| other.parent.map(ClassId::major);
        let is_below = move |other: &&Qdisc| handle.is_some() && major(other) == handle;
        self.qdiscs.iter().filter(is_below)
    }

    /// The classes added to `qdisc`.
    pub(super) fn classes_of<'s>(&'s self, qdisc: &Qdisc) -> impl Iterator<Item = &'s Class> + use<'s> {
        let handle = qdisc.handle;
        let is_of = move |class: &&Class| Some(class.id.get_ref().major()) == handle;
        self.classes.iter().filter(is_of)
    }

    fn add(&mut self, command: Command, problems: &mut Problems) {
        let Command {
            kind,
            options,
            action,
            ..
        } = command;
        match action {
            Action::Qdisc { parent, handle } => {
                if let Some(mistake) = self.misplaced(parent.as_ref(), handle) {
                    let span = parent.map_or(kind.span(), |parent| parent.span());
                    problems.add(span, mistake, "can't be attached here", ORDER);
                    return;
                }
                self.qdiscs.push(Qdisc {
                    parent: parent.map(Spanned::into_inner),
                    handle,
                    kind,
                    options,
                });
            }
            Action::Class { parent, class } => {
                let id = *class.get_ref();
                let mistake = if self.with_handle(id.major()).is_none() {
                    Some(format!("no qdisc has the handle {:x}:", id.major()))
                } else if parent.get_ref().major() != id.major() {
                    Some(format!(
                        "class {id} can't be below {}, a class of another qdisc",
                        parent.get_ref()
                    ))
                } else if id.minor() == 0 || self.classes.iter().any(|class| *class.id.get_ref() == id) {
                    Some(format!("class {id} is not a new one"))
                } else {
                    None
                };
                if let Some(mistake) = mistake {
                    problems.add(class.span(), mistake, "can't be added", ORDER);
                    return;
                }
                self.classes.push(Class {
                    parent: *parent.get_ref(),
                    id: class,
                    kind,
                    options,
                });
            }
        }
    }

    fn with_handle(&self, handle: u16) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.handle == Some(handle))
    }

    /// What is wrong with attaching a qdisc to `parent`, or the root, under `handle`.
    fn misplaced(&self, parent: Option<&Spanned<ClassId>>, handle: Option<u16>) -> Option<String> {
        if let Some(handle) = handle.filter(|&handle| self.with_handle(handle).is_some()) {
            return Some(format!("the handle {handle:x}: is taken"));
        }
        let Some(parent) = parent.map(Spanned::get_ref) else {
            return (!self.qdiscs.is_empty()).then(|| "there is a root already".to_owned());
        };
        if self.attached_to(*parent).is_some() {
            return Some(format!("class {parent} has a qdisc already"));
        }
        let Some(holder) = self.with_handle(parent.major()) else {
            return Some(format!("no qdisc has the handle {:x}:", parent.major()));
        };
        let declared = self.classes.iter().any(|class| class.id.get_ref() == parent);
        let wants_declaration =
            kinds::find(holder.kind.get_ref()).is_some_and(|kind| kind.declares_classes());
        (wants_declaration && !declared).then(|| format!("there is no class {parent}"))
    }
}

const ORDER: &str = "a script attaches one root first, then adds classes, then what they hold, each once";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, FileError> {
        Script::parse("test.tc", text, Device::default())
    }

    /// The tree as people see it.
    fn tree(text: &str) -> String {
        let script = parse(text).expect("the lines fit together");
        script
            .spec()
            .expect("the options can be carried over")
            .to_string()
    }

    /// The first mistake: line, column, message.
    fn mistake(text: &str) -> (usize, usize, String) {
        let error = match parse(text) {
            Ok(script) => script.spec().expect_err("there is a mistake"),
            Err(error) => error,
        };
        let problem = &error.problems()[0];
        let (line, column) = problem.position();
        (line, column, problem.message.clone())
    }

    #[test]
    fn the_kernels_defaults_follow_the_device() {
        let root = "tc qdisc add dev e root handle 1: ";
        assert!(tree(&format!("{root}pfifo")).contains("limit=1000"));
        assert!(tree(&format!("{root}bfifo")).contains("limit=none limit_bytes=1514000b"));
        assert!(tree(&format!("{root}pfifo_head_drop limit 5")).contains("limit=5"));
        assert!(tree(&format!("{root}sfq")).contains("perturb=none"));
        let jumbo = Device {
            mtu: 9000,
            ..Device::default()
        };
        let script = Script::parse("test.tc", &format!("{root}fq_codel"), jumbo).unwrap();
        assert!(script.spec().unwrap().to_string().contains("quantum=9014b"));
    }

    #[test]
    fn times_have_the_units_of_tc() {
        let text = tree("qdisc add dev e root codel target 5000 interval 80ms ce_threshold 0.2ms ecn # fast");
        assert!(text.contains("target=5ms"), "{text}");
        assert!(text.contains("interval=80ms"), "{text}");
        assert!(text.contains("ce_threshold=200us"), "{text}");
        assert!(tree("qdisc add dev e root sfq perturb 10").contains("perturb=10s"));
    }

    #[test]
    fn probabilities_are_decimals_or_hundredths_as_in_tc() {
        assert!(tree("qdisc add dev e root red probability 0.1 burst 60").contains("probability=0.1"));
        for (percent, ours) in [("5", "0.05"), ("50", "0.5"), ("100", "1")] {
            let text = tree(&format!("qdisc add dev e root fq_pie ecn ecn_prob {percent}"));
            assert!(text.contains(&format!("ecn_prob={ours}")), "{text}");
        }
        let (_, _, message) = mistake("qdisc add dev e root fq_pie ecn_prob 101");
        assert_eq!(message, "`ecn_prob`: `101` is above 1");
    }

    #[test]
    fn dualpi2_has_its_weights_in_256ths() {
        let text =
            tree("qdisc add dev e root dualpi2 alpha 0.16 beta 3.2 classic_protection 20% any_ect overflow");
        for setting in [
            "alpha=40",
            "beta=819",
            "classic_protection=20",
            "any_ect=true",
            "drop_overload=false",
        ] {
            assert!(text.contains(setting), "{setting} in {text}");
        }
        let (_, _, message) = mistake("qdisc add dev e root dualpi2 alpha much");
        assert!(message.contains("`alpha`"), "{message}");
        assert!(tree("qdisc add dev e root choke limit 400 bandwidth 10mbit").contains("choke limit=400"));
    }

    #[test]
    fn classes_hold_what_is_attached_or_a_fifo() {
        let drr = "tc qdisc add dev e root handle 10: drr
            tc class add dev e parent 10: classid 10:1 drr quantum 300

            tc class add dev e parent 10: classid 10:a drr
            tc qdisc add dev e parent 10:a fq_codel quantum 700";
        let text = tree(drr);
        assert!(text.contains("quantum=300b"), "{text}");
        assert!(text.contains("quantum=1514b"), "{text}");
        assert!(text.contains("fifo limit=1000"), "{text}");
        assert!(text.contains("quantum=700b"), "{text}");
        let prio = tree("qdisc add dev e root handle 1: prio bands 4\nqdisc add dev e parent 1:4 codel");
        assert_eq!(prio.matches("fifo").count(), 3, "{prio}");
        assert_eq!(prio.matches("codel").count(), 1, "{prio}");
    }

    #[test]
    fn ets_completes_its_bands_quanta_and_priomap() {
        let ets = "tc qdisc add dev e root handle 1: ets ";
        let text = tree(&format!(
            "{ets}bands 4 strict 1 quanta 4500 3000 priomap 0 2\n\
            tc qdisc add dev e parent 1:4 pfifo limit 7"
        ));
        assert!(text.contains("strict=1"), "{text}");
        assert!(
            text.contains("priomap=[0, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]"),
            "{text}"
        );
        let quanta: Vec<_> = ["quantum=4500b", "quantum=3000b", "quantum=1514b"]
            .map(|quantum| text.find(quantum))
            .into();
        assert!(quanta.is_sorted() && quanta[0].is_some(), "{text}");
        assert_eq!(text.matches("fifo limit=1000").count(), 3, "{text}");
        assert_eq!(text.matches("fifo limit=7").count(), 1, "{text}");
        assert_eq!(tree(&format!("{ets}strict 2")).matches("fifo").count(), 2);
        assert_eq!(
            tree(&format!("{ets}quanta 300 300 300")).matches("fifo").count(),
            3
        );
    }

    #[test]
    fn classes_of_htb_are_a_tree() {
        let htb = "qdisc add dev e root handle 1: htb default 12 r2q 5
            class add dev e parent 1: classid 1:1 htb rate 10mbit burst 3000
            class add dev e parent 1:1 classid 1:10 htb rate 6mbit ceil 8mbit prio 2
            class add dev e parent 1:1 classid 1:12 htb rate 2mbit quantum 3000
            qdisc add dev e parent 1:10 codel";
        assert_eq!(
            tree(htb),
            "htb handle=1: default=18 r2q=5 direct_qlen=1000
└─ 1 rate=10mbit burst=3000b cburst=1600b
   ├─ 16 rate=6mbit ceil=8mbit burst=1600b cburst=1600b prio=2: codel
   └─ 18 rate=2mbit burst=1600b cburst=1600b quantum=3000b: fifo limit=1000"
        );
        assert!(!tree(&htb.replace("default 12", "default 0")).contains("default"));
        let (line, column, message) = mistake(&htb.replace("default 12", "default 1"));
        assert_eq!((line, column), (1, 44), "{message}");
        let (line, _, message) = mistake(&htb.replace("parent 1:10 codel", "parent 1:1 codel"));
        assert_eq!(
            (line, message.as_str()),
            (5, "class 1:1 has classes below it, and holds no qdisc")
        );
        let (line, _, message) = mistake(&htb.replace("rate 2mbit", "rate 12mbit"));
        assert_eq!(line, 4, "{message}");
    }

    #[test]
    fn classes_of_hfsc_have_curves() {
        let hfsc = "qdisc add dev e root handle 1: hfsc default 11
            class add dev e parent 1: classid 1:1 hfsc ls m2 10mbit ul rate 10mbit
            class add dev e parent 1:1 classid 1:10 hfsc sc m1 4mbit d 10ms m2 1mbit
            class add dev e parent 1:1 classid 1:11 hfsc rt umax 1500b dmax 20ms rate 200kbit
            class add dev e parent 1:1 classid 1:12 hfsc ls d 5000 m2 1mbit";
        assert_eq!(
            tree(hfsc),
            "hfsc handle=1: default=17
└─ 1 ls=10mbit ul=10mbit
   ├─ 16 rt=4mbit:10ms:1mbit ls=4mbit:10ms:1mbit: fifo limit=1000
   ├─ 17 rt=600kbit:20ms:200kbit ls=none: fifo limit=1000
   └─ 18 ls=0bit:5ms:1mbit: fifo limit=1000"
        );
        let (line, _, message) = mistake(&hfsc.replace("sc m1 4mbit d 10ms m2 1mbit", "sc m1 4mbit"));
        assert_eq!((line, message.as_str()), (3, "`sc` has no value, or too few"));
    }

    #[test]
    fn what_is_attached_to_tbf_replaces_its_fifo() {
        let tbf = "qdisc add dev e root handle 1: tbf rate 1mbit burst 5kb limit 9000";
        assert!(tree(tbf).contains("limit=9000b"));
        let text = tree(&format!("{tbf}\nqdisc add dev e parent 1:1 pfifo limit 7"));
        assert!(!text.contains("9000b") && text.contains("fifo limit=7"), "{text}");
    }

    #[test]
    fn mistakes_have_their_places() {
        let at = |line, column, message: &str| (line, column, message.to_owned());
        assert_eq!(
            mistake("tc qdisc add dev e root codel\ntc filter add dev e"),
            at(2, 4, "`filter` stands where `qdisc` or `class` is expected")
        );
        assert_eq!(
            mistake("tc qdisc add dev e root"),
            at(1, 24, "the line ends where a kind of qdisc is expected")
        );
        assert_eq!(
            mistake("tc qdisc add dev e parent 1:zz pfifo"),
            at(
                1,
                27,
                "`1:zz` stands where a class like 1:10, in hexadecimal, is expected"
            )
        );
        assert_eq!(
            mistake("tc qdisc add dev e parent 1:1 pfifo"),
            at(1, 27, "no qdisc has the handle 1:")
        );
        assert_eq!(
            mistake("qdisc add dev e root codel\nqdisc add dev e root pfifo"),
            at(2, 22, "there is a root already")
        );
        assert_eq!(
            mistake("qdisc add dev e root handle 1: drr\nqdisc add dev e parent 1:1 pfifo"),
            at(2, 24, "there is no class 1:1")
        );
        assert_eq!(
            mistake("qdisc add dev e root codel\nqdisc add dev f root codel"),
            at(2, 15, "this line is for device `f`")
        );
        assert_eq!(
            mistake("qdisc add dev e root codel limit 1 flows 5"),
            at(1, 36, "the option `flows` can't be carried over")
        );
        assert_eq!(
            mistake("qdisc add dev e root codel target"),
            at(1, 28, "`target` has no value, or too few")
        );
        assert_eq!(
            mistake("qdisc add dev e root handle 1: prio bands 65"),
            at(1, 43, "`bands` must be 1 to 64")
        );
        assert_eq!(
            mistake("qdisc add dev e root handle 1: prio\nqdisc add dev e parent 1:4 pfifo"),
            at(2, 28, "a `prio` has no class 4 to hold this")
        );
        assert_eq!(
            mistake("qdisc add dev e root handle 1: pfifo\nclass add dev e parent 1: classid 1:1 drr"),
            at(2, 35, "no classes can be added to a `pfifo`")
        );
        let drr = "qdisc add dev e root handle 1: drr\n";
        assert_eq!(
            mistake(&format!("{drr}class add dev e parent 1:1 classid 1:2 drr")),
            at(2, 36, "a `drr` has no classes within classes")
        );
        assert_eq!(
            mistake(&format!("{drr}class add dev e parent 1: classid 1:2 htb")),
            at(2, 39, "`htb` is no class of a `drr`")
        );
        let ets = "qdisc add dev e root handle 1: ets";
        assert_eq!(
            mistake(ets),
            at(1, 32, "`bands`, or `strict` and `quanta` together, are 0")
        );
        assert_eq!(
            mistake(&format!("{ets} bands 3 strict 2 quanta 300 300")),
            at(1, 32, "4 strict bands and quanta are more than 3 bands")
        );
        assert_eq!(
            mistake(&format!("{ets} strict 65")),
            at(1, 43, "`strict` must be at most 64")
        );
        assert_eq!(
            mistake(&format!("{ets} bands 2 quanta 300 255")),
            at(1, 55, "`quantum` is 255, but must be 256b to 1gb, or none")
        );
        assert_eq!(
            mistake(&format!("{ets} quanta")),
            at(1, 36, "`quanta` has no value, or too few")
        );
        assert_eq!(
            mistake("# nothing\n\n"),
            at(1, 1, "no qdisc is attached to the root")
        );
    }

    #[test]
    fn values_are_checked_like_those_of_a_file() {
        let (line, column, message) = mistake("qdisc add dev e root tbf rate 5 Mbit burst 5kb latency 50ms");
        assert_eq!((line, column), (1, 33), "{message}");
        let (line, column, message) = mistake("qdisc add dev e root fq_codel flows 2000000");
        assert_eq!((line, column), (1, 37), "{message}");
        assert!(message.contains("`flows` is 2000000"), "{message}");
    }

    #[test]
    fn a_qdisc_that_is_not_here_is_named() {
        let script = parse("qdisc add dev e root handle 1: netem delay 10ms").unwrap();
        assert_eq!(
            script.unsupported().as_deref(),
            Some("there is no `netem` here yet")
        );
        assert!(script.spec().is_err());
    }
}

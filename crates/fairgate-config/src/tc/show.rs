//! A description as `tc -s -d qdisc show` and `tc class show` would name it: kinds, handles, parents and options in their words and
//! units. The numbers of packets are the caller's.
//!
//! A qdisc without a handle of its own gets one as from the kernel, from 8001: on. A discipline that tc has no name for keeps its own,
//! and its parameters are shown as they are written here.

use fairgate::{ClassId, Rate};

pub use super::amount::Amount;
use super::kinds::{self, Children, Kind, Show};
use crate::registry::{PARENT, ParameterInfo, Setting};
use crate::spec::{ClassSpec, Spec};
use crate::value::Value;

/// A qdisc, or a class.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// tc's kind.
    pub kind: &'static str,
    /// The handle of a qdisc, with minor number 0, or the class.
    pub id: ClassId,
    /// `None` for the root, and for classes that the kernel calls its children.
    pub parent: Option<ClassId>,
    /// Of a class, the handle of what it holds, if it has no classes below it.
    pub leaf: Option<u16>,
    /// Options in tc's order.
    pub options: Vec<Detail>,
    /// The numbers of the classes on the way from the root.
    pub path: Vec<u16>,
}

/// An option as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// In text.
    pub word: &'static str,
    /// In JSON; empty for what is only in text.
    pub key: &'static str,
    /// Its value.
    pub amount: Amount,
}

impl Detail {
    pub(super) fn new(word: &'static str, amount: Amount) -> Detail {
        Detail::keyed(word, word, amount)
    }

    pub(super) fn keyed(word: &'static str, key: &'static str, amount: Amount) -> Detail {
        Detail { word, key, amount }
    }

    /// A word that says all.
    pub(super) fn bare(word: &'static str, key: &'static str, json: Option<&'static str>) -> Detail {
        Detail::keyed(word, key, Amount::Bare(json))
    }

    /// As tc prints it; `None` for a flag that is not set.
    pub fn text(&self) -> Option<String> {
        let amount = self.amount.text()?;
        Some(format!("{} {amount}", self.word).trim().to_owned())
    }
}

pub(super) fn packets(number: u64) -> Amount {
    Amount::Count(number, "p")
}

pub(super) fn bytes(number: u64) -> Amount {
    Amount::Count(number, "b")
}

pub(super) fn plain(number: u64) -> Amount {
    Amount::Count(number, "")
}

pub(super) fn size(bytes: u64) -> Amount {
    Amount::Size(bytes)
}

pub(super) fn rate(bits: u64) -> Amount {
    Rate::from_bits_per_second(bits).map_or_else(|_| plain(bits), Amount::Rate)
}

/// A discipline that is shown.
pub(super) struct Seen<'s> {
    spec: &'s Spec,
    parameters: Vec<(ParameterInfo, Value)>,
}

impl<'s> Seen<'s> {
    fn new(spec: &'s Spec) -> Seen<'s> {
        let parameters = spec.parameters();
        Seen { spec, parameters }
    }

    /// The parameter `name`, if it is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        match value(&self.parameters, name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The parameter `name`, if it is a word.
    pub(super) fn word(&self, name: &str) -> Option<&'static str> {
        match value(&self.parameters, name)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Whether the parameter `name` is this word.
    pub(super) fn is_word(&self, name: &str, word: &str) -> bool {
        self.word(name) == Some(word)
    }

    fn is_none(&self, name: &str) -> bool {
        value(&self.parameters, name) == Some(&Value::None)
    }

    pub(super) fn classes(&self) -> Vec<ClassSpec<'s>> {
        self.spec.classes()
    }

    pub(super) fn number_of_classes(&self, word: &'static str) -> Detail {
        Detail::new(word, plain(self.classes().len() as u64))
    }

    pub(super) fn default_class(&self) -> Option<u16> {
        self.spec.classifier().default
    }

    /// The discipline's own parameters, with the rules for those that are left out.
    pub(super) fn config<C: 'static>(&self) -> C {
        let config = self.spec.entry.config(&self.spec.settings);
        let config = config.expect("the description was checked");
        *config.downcast().expect("a kind knows its discipline")
    }

    /// tc's kind: the fifos differ by their parameters.
    fn kind(&self) -> Option<&'static Kind> {
        let kind = match self.spec.discipline() {
            "fifo" => {
                let (is_by_packets, is_by_bytes) = (!self.is_none("limit"), !self.is_none("limit_bytes"));
                match (is_by_packets, is_by_bytes, self.is_word("drop", "tail")) {
                    (true, false, true) => kinds::find("pfifo"),
                    (false, true, true) => kinds::find("bfifo"),
                    (true, false, false) => kinds::find("pfifo_head_drop"),
                    _ => None,
                }
            }
            name => kinds::of_discipline(name),
        };
        let has_classes = !self.classes().is_empty();
        kind.filter(|kind| has_classes || !matches!(kind.children, Children::Classes { .. }))
    }

    fn options(&self, kind: Option<&Kind>) -> Vec<Detail> {
        let Some(kind) = kind else {
            return own_details(self.spec, &self.parameters);
        };
        let mut details = details(kind.look.options, &self.parameters);
        (kind.look.complete)(self, &mut details);
        details
    }

    fn class_options(&self, kind: Option<&Kind>, class: &ClassSpec<'_>) -> Vec<Detail> {
        let Some(kind) = kind else {
            return class.parameters.iter().filter_map(own_detail).collect();
        };
        let mut details = details(kind.look.class_options, &class.parameters);
        (kind.look.complete_class)(self, class, &mut details);
        details
    }
}

fn value<'p>(parameters: &'p [(ParameterInfo, Value)], name: &str) -> Option<&'p Value> {
    let parameter = parameters.iter().find(|(info, _)| info.name == name);
    parameter.map(|(_, value)| value)
}

/// The qdiscs of a tree, the root first, and their classes.
pub fn show(spec: &Spec) -> (Vec<Shown>, Vec<Shown>) {
    let mut shown = Showing {
        qdiscs: Vec::new(),
        classes: Vec::new(),
        next_handle: 0x8001,
    };
    shown.qdisc(spec, None, &mut Vec::new());
    (shown.qdiscs, shown.classes)
}

struct Showing {
    qdiscs: Vec<Shown>,
    classes: Vec<Shown>,
    next_handle: u16,
}

impl Showing {
    /// Shows a discipline with all that it holds, and tells its handle.
    fn qdisc(&mut self, spec: &Spec, parent: Option<ClassId>, path: &mut Vec<u16>) -> u16 {
        let handle = match spec.classifier().handle {
            0 => {
                self.next_handle = self.next_handle.wrapping_add(1);
                self.next_handle.wrapping_sub(1)
            }
            given => given,
        };
        let seen = Seen::new(spec);
        let kind = seen.kind();
        let name = kind.map_or(spec.discipline(), Kind::name);
        self.qdiscs.push(Shown {
            kind: name,
            id: ClassId::new(handle, 0),
            parent,
            leaf: None,
            options: seen.options(kind),
            path: path.clone(),
        });
        let own = ClassId::new(handle, 0);
        let top = (!kind.is_some_and(|kind| kind.look.has_classes_at_root)).then_some(own);
        for class in spec.classes() {
            let id = ClassId::new(handle, class.minor);
            path.push(class.minor);
            let place = self.classes.len();
            let leaf = class.tree.map(|tree| self.qdisc(tree, Some(id), path));
            let above = match value(&class.parameters, PARENT) {
                Some(Value::Number(minor)) => Some(ClassId::new(handle, *minor as u16)),
                _ => top,
            };
            let shown = Shown {
                kind: name,
                id,
                parent: above,
                leaf,
                options: seen.class_options(kind, &class),
                path: path.clone(),
            };
            self.classes.insert(place, shown);
            path.pop();
        }
        handle
    }
}

/// What tc has no words for: what is not at its default, as it is written here.
fn own_details(spec: &Spec, parameters: &[(ParameterInfo, Value)]) -> Vec<Detail> {
    let is_set = |place: usize| {
        spec.settings
            .own
            .iter()
            .any(|(other, _): &Setting| *other == place)
    };
    let set = parameters.iter().enumerate().filter(|(place, _)| is_set(*place));
    set.filter_map(|(_, parameter)| own_detail(parameter)).collect()
}

/// A parameter as it is written here, unless it is none.
fn own_detail((info, value): &(ParameterInfo, Value)) -> Option<Detail> {
    let is_shown = *value != Value::None && info.name != PARENT;
    is_shown.then(|| Detail::new(info.name, Amount::Text(info.unit.show(value))))
}

fn details(known: &[Show], parameters: &[(ParameterInfo, Value)]) -> Vec<Detail> {
    let detail = |show: &Show| {
        let amount = match value(parameters, show.parameter)? {
            Value::Number(number) => (show.form)(*number),
            Value::Flag(flag) => Amount::Flag(*flag),
            Value::Word(word) => Amount::Text((*word).to_owned()),
            Value::List(numbers) => Amount::Numbers(numbers.clone()),
            Value::None => return None,
        };
        Some(Detail::keyed(show.word, show.key, amount))
    };
    known.iter().filter_map(detail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::{Device, Script};

    fn shown(script: &str) -> Vec<String> {
        let script = Script::parse("test.tc", script, Device::default()).unwrap();
        let (qdiscs, classes) = show(&script.spec().unwrap());
        let line = |what: &str, shown: &Shown| {
            let place = shown
                .parent
                .map_or("root".to_owned(), |parent| format!("parent {parent}"));
            let options: Vec<String> = shown.options.iter().filter_map(Detail::text).collect();
            format!("{what} {} {} {place} {}", shown.kind, shown.id, options.join(" "))
                .trim_end()
                .to_owned()
        };
        let qdiscs = qdiscs.iter().map(|shown| line("qdisc", shown));
        qdiscs
            .chain(classes.iter().map(|shown| line("class", shown)))
            .collect()
    }

    #[test]
    fn a_tree_is_shown_in_tcs_words() {
        let drr = "qdisc add dev e root handle 1: drr\n\
            class add dev e parent 1: classid 1:1 drr quantum 300\n\
            class add dev e parent 1: classid 1:a drr\n\
            qdisc add dev e parent 1:a handle 5: fq_codel ecn target 5ms memory_limit 4Mb";
        assert_eq!(
            shown(drr),
            [
                "qdisc drr 1:0 root",
                "qdisc pfifo 8001:0 parent 1:1 limit 1000p",
                "qdisc fq_codel 5:0 parent 1:a limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms \
                 memory_limit 4Mb ecn drop_batch 64",
                "class drr 1:1 root quantum 300b",
                "class drr 1:a root quantum 1514b",
            ]
        );
        assert_eq!(
            shown("qdisc add dev e root tbf rate 2mbit burst 3000 limit 1000000"),
            ["qdisc tbf 8001:0 root rate 2Mbit burst 3000b lat 3.99s"]
        );
        assert_eq!(
            shown(
                "qdisc add dev e root handle 1: tbf rate 1mbit burst 5kb limit 9000 peakrate 2mbit mtu 1540"
            ),
            ["qdisc tbf 1:0 root rate 1Mbit burst 5Kb peakrate 2Mbit minburst 1540b lat 31ms"]
        );
        assert_eq!(
            shown("qdisc add dev e root handle 1: ets strict 1 quanta 4500 300")[0],
            "qdisc ets 1:0 root bands 3 strict 1 quanta 4500 300 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2"
        );
        let cbq = "qdisc add dev e root handle 1:0 cbq bandwidth 10mbit avpkt 1000\n\
            class add dev e parent 1:0 classid 1:1 cbq rate 6mbit prio 5 bounded\n\
            filter add dev e parent 1: matchall classid 1:1";
        assert_eq!(
            shown(cbq),
            [
                "qdisc cbq 1:0 root rate 10Mbit",
                "qdisc pfifo 8001:0 parent 1:1 limit 1000p",
                "class cbq 1:1 parent 1:0 rate 6Mbit (bounded) prio 5",
            ]
        );
        assert_eq!(
            shown("qdisc add dev e root cake bandwidth 20mbit dual-srchost docsis ether-vlan wash"),
            [
                "qdisc cake 8001:0 root bandwidth 20Mbit diffserv3 dual-srchost nonat wash no-ack-filter no-split-gso \
                 rtt 100ms noatm overhead 22 mpu 64"
            ]
        );
        assert_eq!(
            shown("qdisc add dev e root cake fwmark 0xff metro besteffort memlimit 1mb"),
            [
                "qdisc cake 8001:0 root bandwidth unlimited besteffort triple-isolate nonat nowash no-ack-filter \
                 no-split-gso rtt 10ms raw overhead 0 memlimit 1Mb fwmark 0xff"
            ]
        );
        assert_eq!(
            shown("qdisc add dev e root bfifo limit 9000"),
            ["qdisc bfifo 8001:0 root limit 9000b"]
        );
        assert_eq!(
            shown("qdisc add dev e root pfifo_head_drop limit 9"),
            ["qdisc pfifo_head_drop 8001:0 root limit 9p"]
        );
    }

    #[test]
    fn trees_of_classes_are_shown_with_what_follows_for_them() {
        let htb = "qdisc add dev e root handle 1: htb default 11\n\
            class add dev e parent 1: classid 1:1 htb rate 10mbit\n\
            class add dev e parent 1:1 classid 1:10 htb rate 6mbit ceil 10mbit prio 2 burst 15k\n\
            class add dev e parent 1:1 classid 1:11 htb rate 64kbit quantum 3000\n\
            qdisc add dev e parent 1:10 handle 10: red limit 400kb min 30kb max 90kb avpkt 1000 burst 55 \
            bandwidth 10mbit ecn adaptive\n\
            qdisc add dev e parent 1:11 handle 11: pfifo";
        assert_eq!(
            shown(htb),
            [
                "qdisc htb 1:0 root r2q 10 default 0x11 direct_qlen 1000",
                "qdisc red 10:0 parent 1:10 limit 400Kb min 30Kb max 90Kb ecn adaptive",
                "qdisc pfifo 11:0 parent 1:11 limit 1000p",
                "class htb 1:1 root rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b level 7",
                "class htb 1:10 parent 1:1 prio 2 quantum 75000 rate 6Mbit ceil 10Mbit burst 15Kb cburst 1600b level 0",
                "class htb 1:11 parent 1:1 prio 0 quantum 3000 rate 64Kbit ceil 64Kbit burst 1600b cburst 1600b level 0",
            ]
        );
        let hfsc = "qdisc add dev e root handle 1: hfsc default 11\n\
            class add dev e parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit\n\
            class add dev e parent 1:1 classid 1:10 hfsc sc m1 4mbit d 10ms m2 1mbit\n\
            class add dev e parent 1:1 classid 1:11 hfsc rt m2 500kbit ls m2 2500kbit";
        let all = shown(hfsc);
        assert_eq!(all[0], "qdisc hfsc 1:0 root default 0x11");
        assert_eq!(
            all[3..],
            [
                "class hfsc 1:1 parent 1:0 ls m1 0bit d 0us m2 10Mbit ul m1 0bit d 0us m2 10Mbit",
                "class hfsc 1:10 parent 1:1 sc m1 4Mbit d 10ms m2 1Mbit",
                "class hfsc 1:11 parent 1:1 rt m1 0bit d 0us m2 500Kbit ls m1 0bit d 0us m2 2500Kbit",
            ]
        );
    }

    #[test]
    fn every_kind_has_its_words() {
        let cases = [
            ("pfifo_fast", "bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
            (
                "pie ecn",
                "limit 1000p target 15ms tupdate 15ms alpha 2 beta 20 ecn",
            ),
            (
                "fq_pie bytemode ecn_prob 29",
                "limit 10240p flows 1024 target 15ms tupdate 15ms alpha 2 beta 20 quantum 1514b memory_limit 32Mb \
                 ecn_prob 29 bytemode",
            ),
            (
                "choke limit 400 bandwidth 10mbit ecn",
                "limit 400p min 33p max 100p ecn",
            ),
            (
                "fq maxrate 5mbit horizon_cap",
                "limit 10000p flow_limit 100p buckets 1024 quantum 3028b initial_quantum 15140b maxrate 5Mbit \
                 low_rate_threshold 550Kbit refill_delay 40ms horizon 10s horizon_cap",
            ),
            (
                "dualpi2",
                "limit 10000p target 15ms tupdate 16ms alpha 0.160156 beta 3.199219 step_thresh 1ms min_qlen_step 0p \
                 coupling_factor 2 drop_on_overload drop_dequeue classic_protection 10% l4s_ect no_split_gso",
            ),
            (
                "sfq headdrop perturb 10",
                "limit 127p quantum 1514b depth 127 flows 127 divisor 1024 perturb 10sec headdrop",
            ),
        ];
        for (options, text) in cases {
            let kind = options.split(' ').next().unwrap();
            assert_eq!(
                shown(&format!("qdisc add dev e root handle a: {options}")),
                [format!("qdisc {kind} a:0 root {text}")]
            );
        }
    }

    #[test]
    fn what_tc_does_not_know_is_shown_in_our_words() {
        let (qdiscs, _) = show(&Spec::inline("sqf limit=50").unwrap());
        assert_eq!(qdiscs[0].kind, "sqf");
        let limit = Detail::new("limit", Amount::Text("50".to_owned()));
        assert_eq!(qdiscs[0].options, [limit]);
    }
}

//! The lines of a script together: what there is after the last one.

use std::sync::Arc;

use fairgate::ClassId;
use miette::NamedSource;
use toml::Spanned;

use super::command::{Command, FilterHead, Object, Verb};
use super::{kinds, translate};
use crate::error::{FileError, Problems};
use crate::script::{Word, lines};
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

/// What the lines for one device leave there: every parent before its children.
pub struct Script {
    source: Arc<NamedSource<String>>,
    name: Word,
    pub(super) device: Device,
    pub(super) qdiscs: Vec<Qdisc>,
    pub(super) classes: Vec<Class>,
    pub(super) filters: Vec<Filter>,
}

/// A qdisc.
pub(super) struct Qdisc {
    pub(super) parent: Option<ClassId>,
    pub(super) handle: Option<u16>,
    pub(super) kind: Word,
    /// Of the line that added it, and of each that changed it.
    pub(super) options: Vec<Vec<Word>>,
}

/// A class.
pub(super) struct Class {
    /// The qdisc, or a class of it, that the class is in.
    pub(super) parent: ClassId,
    pub(super) id: Spanned<ClassId>,
    pub(super) kind: Word,
    pub(super) options: Vec<Vec<Word>>,
}

/// A filter.
pub(super) struct Filter {
    /// The qdisc that it is attached to; `None` for the root.
    pub(super) parent: Option<ClassId>,
    pub(super) preference: u16,
    pub(super) head: FilterHead,
    pub(super) kind: Word,
    pub(super) options: Vec<Word>,
}

impl Script {
    /// Reads a script for one device; `name` stands in messages. All mistakes are reported at once.
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
    /// If a line can't be understood, the lines don't fit together, or they are for several devices.
    pub fn parse(name: &str, text: &str, device: Device) -> Result<Script, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let mut scripts = Script::read(text, device, &source, &mut problems);
        let first = (!scripts.is_empty()).then(|| scripts.remove(0));
        if let (Some(first), Some(other)) = (&first, scripts.first()) {
            let message = format!("this line is for device `{}`", other.device_name());
            let help = format!(
                "leave one of the devices out; the first is `{}`",
                first.device_name()
            );
            problems.add(other.name.span(), message, "another device", help);
        }
        match first {
            Some(first) => problems.unless_any(first),
            None => Err(problems.into_error()),
        }
    }

    /// Reads a script for any number of devices, in the order in which they are named first.
    ///
    /// # Errors
    /// If a line can't be understood, or the lines don't fit together.
    pub fn parse_all(name: &str, text: &str, device: Device) -> Result<Vec<Script>, FileError> {
        let source = Arc::new(NamedSource::new(name, text.to_owned()));
        let mut problems = Problems::new(Arc::clone(&source));
        let scripts = Script::read(text, device, &source, &mut problems);
        problems.unless_any(scripts)
    }

    /// What there is on each device. Reports if there is nothing.
    fn read(
        text: &str,
        device: Device,
        source: &Arc<NamedSource<String>>,
        problems: &mut Problems,
    ) -> Vec<Script> {
        let mut scripts: Vec<Script> = Vec::new();
        for (words, end) in lines(text, &["tc"]) {
            let Some(command) = Command::read(words, end, problems) else {
                continue;
            };
            let name = command.device.get_ref();
            let at = scripts.iter().position(|script| script.device_name() == name);
            let at = at.unwrap_or_else(|| {
                scripts.push(Script {
                    source: Arc::clone(source),
                    name: command.device.clone(),
                    device,
                    qdiscs: Vec::new(),
                    classes: Vec::new(),
                    filters: Vec::new(),
                });
                scripts.len() - 1
            });
            scripts[at].run(command, problems);
        }
        scripts.retain(|script| !script.qdiscs.is_empty());
        if scripts.is_empty() && problems.count() == 0 {
            let help = "begin with a line like tc qdisc add dev eth0 root handle 1: fq_codel";
            problems.add(
                0..text.len(),
                "no qdisc is attached to the root",
                "nothing here",
                help,
            );
        }
        scripts
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        self.name.get_ref()
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

    /// The filters of `qdisc` in the order in which they are tried.
    pub(super) fn filters_of(&self, qdisc: &Qdisc) -> Vec<&Filter> {
        let is_of = |filter: &&Filter| match filter.parent {
            Some(parent) => Some(parent.major()) == qdisc.handle,
            None => qdisc.parent.is_none(),
        };
        let mut filters: Vec<&Filter> = self.filters.iter().filter(is_of).collect();
        filters.sort_by_key(|filter| filter.preference);
        filters
    }

    fn run(&mut self, command: Command, problems: &mut Problems) {
        let Command {
            verb,
            object,
            kind,
            options,
            ..
        } = command;
        let done = match object {
            Object::Qdisc { parent, handle } => self.run_qdisc(&verb, parent, handle, kind, options),
            Object::Class { parent, class } => self.run_class(&verb, parent, class, kind, options),
            Object::Filter(head) => self.run_filter(&verb, head, kind, options),
        };
        if let Err(Misfit { at, message }) = done {
            problems.add(at, message, "doesn't fit", ORDER);
        }
    }

    fn run_qdisc(
        &mut self,
        verb: &Spanned<Verb>,
        parent: Option<Spanned<ClassId>>,
        handle: Option<u16>,
        kind: Option<Word>,
        options: Vec<Word>,
    ) -> Result<(), Misfit> {
        let class = parent.as_ref().map(|parent| *parent.get_ref());
        let present = self.qdiscs.iter().position(|qdisc| qdisc.parent == class);
        let Some(kind) = kind.filter(|_| *verb.get_ref() != Verb::Delete) else {
            return match (present, &parent) {
                (Some(present), _) => {
                    self.remove(present);
                    Ok(())
                }
                // Scripts begin so, for an earlier run.
                (None, None) => Ok(()),
                (None, Some(parent)) => misfit(parent, format!("class {} holds no qdisc", parent.get_ref())),
            };
        };
        let is_same = |qdisc: &Qdisc| {
            qdisc.kind.get_ref() == kind.get_ref() && (handle.is_none() || handle == qdisc.handle)
        };
        match (verb.get_ref(), present) {
            (Verb::Change | Verb::Replace, Some(present)) if is_same(&self.qdiscs[present]) => {
                self.qdiscs[present].options.push(options);
                return Ok(());
            }
            (Verb::Change, _) => {
                return misfit(&kind, format!("there is no `{}` here to change", kind.get_ref()));
            }
            (Verb::Replace, Some(present)) => self.remove(present),
            _ => {}
        }
        if let Some(message) = self.misplaced(parent.as_ref(), handle) {
            let at = parent.map_or(kind.span(), |parent| parent.span());
            return Err(Misfit { at, message });
        }
        self.qdiscs.push(Qdisc {
            parent: class,
            handle,
            kind,
            options: vec![options],
        });
        Ok(())
    }

    fn run_class(
        &mut self,
        verb: &Spanned<Verb>,
        parent: Option<Spanned<ClassId>>,
        class: Spanned<ClassId>,
        kind: Option<Word>,
        options: Vec<Word>,
    ) -> Result<(), Misfit> {
        let id = *class.get_ref();
        let present = self.classes.iter().position(|class| *class.id.get_ref() == id);
        if *verb.get_ref() == Verb::Delete {
            let Some(present) = present else {
                return misfit(&class, format!("there is no class {id}"));
            };
            if self.classes.iter().any(|other| other.parent == id) {
                return misfit(&class, format!("class {id} has classes"));
            }
            self.classes.remove(present);
            if let Some(held) = self.qdiscs.iter().position(|qdisc| qdisc.parent == Some(id)) {
                self.remove(held);
            }
            return Ok(());
        }
        match (verb.get_ref(), present) {
            (Verb::Change | Verb::Replace, Some(present)) => {
                self.classes[present].options.push(options);
                return Ok(());
            }
            (Verb::Change, None) => return misfit(&class, format!("there is no class {id}")),
            _ => {}
        }
        let parent = parent.map_or(ClassId::new(id.major(), 0), Spanned::into_inner);
        let Some(kind) = kind else {
            return misfit(&class, "a kind is missing".to_owned());
        };
        if self.with_handle(id.major()).is_none() {
            return misfit(&class, format!("no qdisc has the handle {:x}:", id.major()));
        }
        if parent.major() != id.major() {
            return misfit(
                &class,
                format!("class {id} can't be below {parent}, a class of another qdisc"),
            );
        }
        if id.minor() == 0 || present.is_some() {
            return misfit(&class, format!("class {id} is not a new one"));
        }
        self.classes.push(Class {
            parent,
            id: class,
            kind,
            options: vec![options],
        });
        Ok(())
    }

    fn run_filter(
        &mut self,
        verb: &Spanned<Verb>,
        head: FilterHead,
        kind: Option<Word>,
        options: Vec<Word>,
    ) -> Result<(), Misfit> {
        let parent = head.parent.as_ref().map(|parent| *parent.get_ref());
        let holder = match &head.parent {
            Some(parent) => self.with_handle(parent.get_ref().major()).ok_or_else(|| Misfit {
                at: parent.span(),
                message: format!("no qdisc has the handle {:x}:", parent.get_ref().major()),
            }),
            None => self.qdiscs.first().ok_or_else(|| Misfit {
                at: verb.span(),
                message: "there is no root to attach a filter to".to_owned(),
            }),
        }?;
        // The root is known by two names.
        let parent = parent.filter(|parent| holder.parent.is_some() || parent.minor() != 0);
        let Some(kind) = kind.filter(|_| *verb.get_ref() != Verb::Delete) else {
            return self.delete_filters(verb, parent, &head);
        };
        if *verb.get_ref() == Verb::Change {
            let message = "a filter can't be changed".to_owned();
            return misfit(verb, message);
        }
        let mut others = self.filters.iter().filter(|filter| filter.parent == parent);
        let preference = match &head.preference {
            Some(preference) => {
                let same = others.find(|filter| filter.preference == *preference.get_ref());
                let protocol = |head: &FilterHead| head.protocol.as_ref().map(|word| word.get_ref().clone());
                if same.is_some_and(|same| protocol(&same.head) != protocol(&head)) {
                    let message = format!("priority {} is another protocol's", preference.get_ref());
                    return misfit(preference, message);
                }
                *preference.get_ref()
            }
            // As in the kernel: a filter without one goes before all that came without one, and behind those below 0x8000.
            None => others
                .map(|filter| filter.preference)
                .filter(|preference| *preference >= 0x8000)
                .min()
                .map_or(0xc000, |lowest| lowest - 1),
        };
        self.filters.push(Filter {
            parent,
            preference,
            head,
            kind,
            options,
        });
        Ok(())
    }

    fn delete_filters(
        &mut self,
        verb: &Spanned<Verb>,
        parent: Option<ClassId>,
        head: &FilterHead,
    ) -> Result<(), Misfit> {
        let preference = head.preference.as_ref().map(|preference| *preference.get_ref());
        let handle = head.handle.as_ref().map(Spanned::get_ref);
        let is_meant = |filter: &Filter| {
            filter.parent == parent
                && preference.is_none_or(|preference| preference == filter.preference)
                && handle
                    .is_none_or(|handle| filter.head.handle.as_ref().map(Spanned::get_ref) == Some(handle))
        };
        let before = self.filters.len();
        self.filters.retain(|filter| !is_meant(filter));
        match before == self.filters.len() && (preference.is_some() || handle.is_some()) {
            true => misfit(verb, "there is no such filter".to_owned()),
            false => Ok(()),
        }
    }

    /// Takes a qdisc away, with its classes and filters and all that they hold.
    fn remove(&mut self, at: usize) {
        let mut gone = vec![self.qdiscs.remove(at)];
        while let Some(qdisc) = gone.pop() {
            if qdisc.parent.is_none() {
                self.filters.retain(|filter| filter.parent.is_some());
            }
            let Some(handle) = qdisc.handle else { continue };
            self.classes.retain(|class| class.id.get_ref().major() != handle);
            self.filters
                .retain(|filter| filter.parent.map(ClassId::major) != Some(handle));
            let is_below = |other: &mut Qdisc| other.parent.map(ClassId::major) == Some(handle);
            gone.extend(self.qdiscs.extract_if(.., is_below));
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

/// A line that does not fit to those before it.
struct Misfit {
    at: std::ops::Range<usize>,
    message: String,
}

fn misfit<T, W>(word: &Spanned<W>, message: String) -> Result<T, Misfit> {
    let at = word.span();
    Err(Misfit { at, message })
}

const ORDER: &str = "a script attaches one root first, then adds classes, then what they hold and filters, each once; \
     what there is already can be changed, replaced or deleted";

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
        assert!(
            tree("qdisc add dev e root dualpi2 step_thresh 3p split_gso")
                .ends_with("step_packets=3 mtu=1514b")
        );
        assert!(tree("qdisc add dev e root dualpi2 step_thresh 300").contains("step_thresh=300us"));
        let by_round_trips = |options: &str| tree(&format!("qdisc add dev e root dualpi2 {options}"));
        // As tc says that it configures them.
        for (options, parameters) in [
            (
                "max_rtt 100ms",
                "target=16666us tupdate=16666us alpha=42 beta=768",
            ),
            ("typical_rtt 15000", "target=15ms tupdate=15ms alpha=47 beta=853"),
            (
                "max_rtt 100ms typical_rtt 50ms",
                "target=50ms tupdate=33333us alpha=85 beta=768",
            ),
        ] {
            assert!(
                by_round_trips(options).contains(parameters),
                "{}",
                by_round_trips(options)
            );
        }
        let refused = |options: &str| mistake(&format!("qdisc add dev e root dualpi2 {options}")).2;
        assert_eq!(
            refused("max_rtt 1ms typical_rtt 2ms"),
            "the typical round trip is longer than the longest"
        );
        assert_eq!(
            refused("max_rtt 1ms alpha 1"),
            "`alpha` beside round trips: tc would ignore it"
        );
        assert!(refused("max_rtt 60s").contains("would be 0") && refused("max_rtt 0ms").contains("is none"));
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
            mistake("tc qdisc add dev e root codel\ntc action add dev e"),
            at(
                2,
                4,
                "`action` stands where `qdisc`, `class` or `filter` is expected"
            )
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
        let htb = "qdisc add dev e root handle 1: htb default 12\nclass add dev e parent 1: classid 1:";
        assert_eq!(
            mistake(&format!("{htb}11 htb rate 1mbit")),
            at(1, 44, "`htb` has no class 1:12")
        );
        assert_eq!(
            mistake(&format!("{htb}12 htb rate 2mbit ceil 1mbit")),
            at(
                2,
                60,
                "`ceil` of class 1:12 is 1Mbit, but must be at least 2Mbit, the rate of the class"
            )
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
    fn later_lines_change_replace_and_delete() {
        let root =
            "qdisc add dev e root handle 1: drr\nclass add dev e parent 1: classid 1:1 drr quantum 300\n";
        let after = |lines: &str| tree(&format!("{root}{lines}"));
        assert!(after("class change dev e classid 1:1 drr quantum 600").contains("quantum=600b"));
        assert!(
            after("class replace dev e parent 1: classid 1:2 drr quantum 700").contains("2 quantum=700b")
        );
        let two = "class add dev e parent 1: classid 1:2 drr\nqdisc add dev e parent 1:2 handle 20: codel\n";
        let text = after(&format!("{two}class del dev e classid 1:2"));
        assert!(!text.contains("codel") && !text.contains("├"), "{text}");
        let text = after(&format!(
            "{two}qdisc change dev e parent 1:2 codel limit 7\nqdisc change dev e parent 1:2 codel target 9ms"
        ));
        assert!(text.contains("limit=7 target=9ms"), "{text}");
        let text = after(&format!("{two}qdisc replace dev e parent 1:2 pfifo limit 5"));
        assert!(text.contains("2 quantum=1514b: fifo limit=5"), "{text}");
        assert_eq!(
            after("qdisc replace dev e root handle 2: pfifo limit 3"),
            "fifo handle=2: limit=3"
        );
        assert_eq!(
            after("qdisc del dev e root 2>/dev/null || true\nqdisc add dev e root pfifo limit 2"),
            "fifo limit=2"
        );
        assert_eq!(
            tree("tc qdisc del dev e root\ntc qdisc add dev e root pfifo limit 2"),
            "fifo limit=2"
        );
        let wrong = |lines: &str| mistake(&format!("{root}{lines}"));
        let at = |column, message: &str| (3, column, message.to_owned());
        assert_eq!(
            wrong("class change dev e classid 1:9 drr"),
            at(28, "there is no class 1:9")
        );
        assert_eq!(
            wrong("class del dev e classid 1:9"),
            at(25, "there is no class 1:9")
        );
        assert_eq!(
            wrong("qdisc change dev e root handle 1: prio"),
            at(35, "there is no `prio` here to change")
        );
        assert_eq!(
            wrong("qdisc del dev e parent 1:1"),
            at(24, "class 1:1 holds no qdisc")
        );
        assert_eq!(
            wrong("class add dev e parent 1: classid 1:1 drr"),
            at(35, "class 1:1 is not a new one")
        );
    }

    #[test]
    fn trees_may_be_deep_but_not_too_deep() {
        let nested = |depth: u32| {
            let shaper = |n: u32| {
                let place = if n == 1 {
                    "root".to_owned()
                } else {
                    format!("parent {:x}:1", n - 1)
                };
                format!("qdisc add dev e {place} handle {n:x}: tbf rate 1mbit burst 5kb limit 9000\n")
            };
            (1..=depth).map(shaper).collect::<String>()
        };
        let spec = parse(&nested(32)).unwrap().spec().unwrap();
        assert_eq!(
            crate::Document::parse("printed", &spec.to_toml("e"))
                .unwrap()
                .queue("e"),
            Some(&spec)
        );
        assert_eq!(
            mistake(&nested(33)).2,
            "more than 32 qdiscs are within each other"
        );
    }

    #[test]
    fn each_device_has_a_tree() {
        let text = "qdisc add dev a root pfifo limit 1\nqdisc add dev b root pfifo limit 2\nqdisc add dev c root pfifo\nqdisc del dev c root";
        let scripts = Script::parse_all("test.tc", text, Device::default()).unwrap();
        let shown = scripts
            .iter()
            .map(|script| format!("{} {}", script.device_name(), script.spec().unwrap()));
        assert_eq!(shown.collect::<Vec<_>>(), ["a fifo limit=1", "b fifo limit=2"]);
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

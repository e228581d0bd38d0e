//! Translates filters: the conditions on a packet, and the class.
//!
//! The filters of a qdisc become the filters of the discipline, in the order in which the kernel tries them.
//! If the last filter has no conditions, it becomes the default class. Filters after one without conditions
//! are never tried, and are an error.
//!
//! The kernel compares a filter's `protocol` with the EtherType of the frame. For a frame with a VLAN tag
//! that is the tag's, so `protocol ip` matches only frames without a tag. This is the condition
//! `outer_ethertype`.
//!
//! The result is the same for all regular packets. u32 reads ports at a fixed offset even in packets with IP
//! options, in fragments and in protocols without ports. Here only packets that have ports match conditions
//! on ports. And in the kernel a packet that is too short for one `u32` filter matches no other one of the
//! same priority; here it does.

mod actions;
mod chains;
mod ematch;
mod flow;
mod flower;
mod keys;
mod mirred;
mod u32;

use std::collections::BTreeSet;
use std::ops::Range;

use actions::{Actions, End};
use fairgate::ClassId;
use fairgate_config::language::{Draft, FilterDraft, Given, Problems, Written};
use fairgate_config::suggest;
use flow::Computed;
use toml::Spanned;

use super::abbreviations::full;
use super::command::class_id;
use super::estimator::Estimated;
use super::hook;
use super::kinds;
use super::objects::{Filter, Qdisc};
use super::script::Script;
use crate::script::notes::Notes;
use crate::script::{self, Word, no_value, number, setting};

/// A filter: its conditions, and what becomes of the packets that match.
pub(super) struct Rule {
    entries: Vec<Written>,
    class: Option<Spanned<ClassId>>,
    /// How the class is computed, if it is. `class` is then the first one.
    computed: Option<Computed>,
    /// The device that packets are redirected to.
    pub(super) redirect: Option<Word>,
    actions: Actions,
}

/// What filters depend on besides their words.
pub(super) struct Context {
    /// The handle of their qdisc.
    pub(super) handle: Option<u16>,
    /// Whether packets may have marks.
    pub(super) has_marks: bool,
}

/// Where packets go that a filter takes.
pub(super) enum Goal {
    /// To the class with this minor number.
    Class(Spanned<u16>),
    /// To the class that the filter computes, from this minor number on.
    Computed(Spanned<u16>),
    /// Where they would go if no filter had matched.
    Default(Range<usize>),
}

impl Goal {
    fn entry(&self, key: &str, computed: Option<&Computed>) -> Written {
        match self {
            Goal::Computed(first) if let Some(computed) = computed => computed.written(key, *first.get_ref()),
            Goal::Class(class) | Goal::Computed(class) => class_entry(key, class),
            Goal::Default(location) => setting(location, key, Given::Text("default".to_owned())),
        }
    }
}

/// Whether a filter sets a mark.
fn sets_mark(filter: &Filter) -> bool {
    let mut words = filter.options.iter().map(|word| word.get_ref().as_str());
    words.any(|word| word == "skbedit") && words.any(|word| word == "mark")
}

/// Leaves out filters by a mark: they match no packet if no packet has one.
fn without_marks<'f>(filters: Vec<&'f Filter>, notes: &mut Notes) -> Vec<&'f Filter> {
    let asks = |filter: &&Filter| {
        let handle = filter.head.handle.as_ref().map(|handle| handle.get_ref());
        let value = handle.map(|handle| number(handle.split('/').next().unwrap_or_default()));
        filter.kind.get_ref() == "fw" && value.is_none_or(|value| value.is_some_and(|value| value != 0))
    };
    let (asking, others): (Vec<&Filter>, Vec<&Filter>) = filters.into_iter().partition(asks);
    for filter in asking {
        let text = "this filter matches nothing: a frame from an interface has no mark of the firewall";
        notes.add(filter.kind.span(), text.to_owned());
    }
    others
}

/// Adds the filters of `qdisc` to the draft. Filters that can't be translated are reported.
pub(super) fn translate(
    script: &Script,
    qdisc: &Qdisc,
    draft: &mut Draft,
    problems: &mut Problems,
    notes: &mut Notes,
) {
    let mut filters = script.filters_of(qdisc);
    let has_marks = script.device.has_marks || filters.iter().any(|filter| sets_mark(filter));
    if !has_marks {
        filters = without_marks(filters, notes);
    }
    let context = Context {
        handle: qdisc.handle,
        has_marks,
    };
    let has_filters = |class: ClassId| filters.iter().any(|filter| filter.parent == Some(class));
    let is_inner = |class: ClassId| script.classes_of(qdisc).any(|other| other.parent == class);
    let mut inner = Notes::default();
    let goal = |filter: &Filter, rule: &Rule, problems: &mut Problems| {
        if rule.class.is_none() && rule.redirect.is_none() && rule.actions.are_any {
            return Some(Goal::Default(filter.kind.span()));
        }
        let class = rule.class_of(filter, problems)?;
        let id = *class.get_ref();
        // A qdisc without declared classes looks only at the minor number.
        let is_minor_alone =
            id.major() == 0 && kinds::find(qdisc.kind.get_ref()).is_some_and(|kind| !kind.declares_classes());
        if Some(id.major()) != qdisc.handle && !is_minor_alone {
            let message = format!("class {id} is not a class of this qdisc");
            let help = match (id.major(), qdisc.handle) {
                (0, Some(handle)) => format!(
                    "write flowid {}: in Linux class {id} does not exist, and such packets go to the default \
                     class",
                    ClassId::new(handle, id.minor())
                ),
                _ => "name a class of the qdisc that the filter is attached to; a qdisc in it can have \
                      further filters"
                    .to_owned(),
            };
            problems.add(class.span(), message, "class of another qdisc", help);
            return None;
        }
        if rule.computed.is_some() {
            return Some(Goal::Computed(Spanned::new(class.span(), id.minor())));
        }
        // Those of prio, ets and drr that do not exist are bands that are missed, or drops.
        let has_default = matches!(qdisc.kind.get_ref().as_str(), "htb" | "hfsc" | "cbq");
        let mut classes = script.classes_of(qdisc).peekable();
        if has_default
            && id.minor() != 0
            && classes.peek().is_some()
            && !classes.any(|other| *other.id.get_ref() == id)
        {
            let text = format!(
                "class {id} does not exist: as in Linux, these packets go where unclassified ones go"
            );
            inner.add(class.span(), text);
            return Some(Goal::Default(class.span()));
        }
        if id.minor() != 0 && is_inner(id) && !has_filters(id) {
            let text = format!(
                "class {id} has classes below it and no filters of its own: as in Linux, these packets go \
                 where unclassified ones go"
            );
            inner.add(class.span(), text);
            return Some(Goal::Default(class.span()));
        }
        Some(Goal::Class(Spanned::new(class.span(), id.minor())))
    };
    let takes_all = add(&filters, &context, draft, problems, notes, goal);
    notes.add_all(&inner);
    if !takes_all {
        drop_others(qdisc, draft, notes);
    }
}

/// With filters, qdiscs that hash drop what no filter matches (`fq_codel_classify`, `sfq_classify`).
fn drop_others(qdisc: &Qdisc, draft: &mut Draft, notes: &mut Notes) {
    let hashes = matches!(qdisc.kind.get_ref().as_str(), "fq_codel" | "fq_pie" | "sfq");
    let has_default = draft.settings.iter().any(|(key, _)| key.get_ref() == "default");
    if !hashes || draft.filters.is_empty() || has_default {
        return;
    }
    let location = qdisc.kind.span();
    let text = format!(
        "as in Linux, a `{}` with filters drops the packets that no filter matches",
        qdisc.kind.get_ref()
    );
    notes.add(location.clone(), text);
    draft.filters.push(FilterDraft {
        header: location.clone(),
        entries: vec![setting(&location, "drop", Given::Flag(true))],
    });
}

/// Adds filters to the draft. `goal` returns where the packets of a filter go, or reports why they can't.
/// Returns whether the filters take all packets.
pub(super) fn add(
    filters: &[&Filter],
    context: &Context,
    draft: &mut Draft,
    problems: &mut Problems,
    notes: &mut Notes,
    mut goal: impl FnMut(&Filter, &Rule, &mut Problems) -> Option<Goal>,
) -> bool {
    let tables = u32::Tables::read(filters, context, problems, notes);
    chains::check(filters, notes);
    let mut filters = filters.to_vec();
    filters.sort_by_key(|filter| {
        (
            filter.preference,
            if filter.is_u32() { tables.rank(filter) } else { 0 },
        )
    });
    // The filters that take all packets, at the qdisc and at its classes.
    let mut final_ones: Vec<&Filter> = Vec::new();
    let mut default = None;
    for filter in filters {
        let at = filter.class();
        let place = (at, filter.chain());
        // Others are in tables to which these lead.
        if filter.is_u32() && !tables.begin_with(filter) {
            continue;
        }
        if let Some(earlier) = final_ones
            .iter()
            .find(|earlier| (earlier.class(), earlier.chain()) == place)
        {
            let text = format!(
                "this filter is never tried: one before it, of priority {}, matches every packet",
                earlier.preference
            );
            notes.add(filter.kind.span(), text);
            continue;
        }
        let mut seen = BTreeSet::new();
        let rules = match filter.is_u32() {
            true => tables.rules(filter, problems, notes),
            false => read(filter, context, problems, notes)
                .into_iter()
                .map(|rule| (filter, rule))
                .collect(),
        };
        for (index, (filter, mut rule)) in rules.into_iter().enumerate() {
            if index > 0 && rule.actions.police() && !seen.insert(filter.kind.span().start) {
                let message = "this filter becomes several ones, and each would have a policer of its own";
                let help = "write filters with fewer conditions, and a policer (the discipline) in the class";
                problems.add(filter.kind.span(), message, "one policer for all", help);
                break;
            }
            seen.insert(filter.kind.span().start);
            let has_conditions = !rule.entries.is_empty();
            let at_place =
                |key: &str, number: u32| setting(&filter.kind.span(), key, Given::Integer(number.into()));
            rule.entries.extend(at.map(|class| at_place("at", class.into())));
            rule.entries
                .extend((filter.chain() != 0).then(|| at_place("chain", filter.chain())));
            let target = match rule.actions.end() {
                End::Class => match goal(filter, &rule, problems) {
                    Some(goal) => Some(goal.entry("class", rule.computed.as_ref())),
                    None => continue,
                },
                End::Drop => Some(setting(&filter.kind.span(), "drop", Given::Flag(true))),
                End::Chain(chain) => Some(setting(&filter.kind.span(), "goto", Given::Integer(chain.into()))),
                End::Filter => None,
            };
            let is_sure = rule.computed.as_ref().is_none_or(|computed| computed.is_sure);
            if !has_conditions && rule.actions.are_final() && is_sure {
                final_ones.push(filter);
                if place == (None, 0)
                    && rule.actions.are_none()
                    && rule.computed.is_none()
                    && let Some(target) = target
                {
                    default = Some(target);
                    continue;
                }
            }
            push(draft, filter, &rule, target.as_ref());
        }
    }
    // A filter that takes all packets to the qdisc's own default changes nothing.
    if let Some((key, value)) = default
        && matches!(value.get_ref(), Given::Integer(_))
    {
        draft.settings.retain(|(key, _)| key.get_ref() != "default");
        draft
            .settings
            .push((Spanned::new(key.span(), "default".to_owned()), value));
    }
    final_ones
        .iter()
        .any(|filter| (filter.class(), filter.chain()) == (None, 0))
}

/// Adds a filter, or several if its actions need them.
fn push(draft: &mut Draft, filter: &Filter, rule: &Rule, target: Option<&Written>) {
    let stages = rule.actions.filters();
    let last = stages.len() - 1;
    for (number, stage) in stages.into_iter().enumerate() {
        let target = target.filter(|_| number == last);
        if target.is_none() && stage.is_empty() {
            // A filter that only continues does nothing.
            continue;
        }
        let mut entries: Vec<Written> = target.into_iter().cloned().collect();
        entries.extend(rule.entries.iter().cloned());
        entries.extend(stage);
        draft.filters.push(FilterDraft {
            header: filter.kind.span(),
            entries,
        });
    }
}

/// Reports what can't be translated in a filter whose qdisc is missing.
pub(super) fn check(filter: &Filter, problems: &mut Problems) {
    let is_of_hook = filter.parent.is_some_and(|parent| parent.major() == hook::HANDLE);
    let notes = &mut Notes::default();
    let context = &Context {
        handle: filter.parent.map(ClassId::major),
        has_marks: true,
    };
    let rules = match filter.is_u32() {
        true => {
            let tables = u32::Tables::read(&[filter], context, problems, notes);
            tables
                .rules(filter, problems, notes)
                .into_iter()
                .map(|(_, rule)| rule)
                .collect()
        }
        false => read(filter, context, problems, notes),
    };
    for rule in rules {
        if !is_of_hook && !rule.actions.are_any {
            let _ = rule.class_of(filter, problems);
        }
    }
}

impl Filter {
    /// Returns the class that it is attached to. `None`: a qdisc or a hook.
    fn class(&self) -> Option<u16> {
        self.parent
            .filter(|parent| parent.minor() != 0 && parent.major() != hook::HANDLE)
            .map(ClassId::minor)
    }
}

impl Rule {
    /// Returns the class of packets that leave.
    fn class_of(&self, filter: &Filter, problems: &mut Problems) -> Option<&Spanned<ClassId>> {
        if let Some(device) = &self.redirect {
            let name = device.get_ref();
            let message = format!("packets that leave can't be redirected to `{name}`");
            let help = format!(
                "they would wait in the queue of `{name}` and then in the device's own, but each direction \
                 has one tree: attach the tree of `{name}` to the device itself"
            );
            problems.add(device.span(), message, "only arriving packets", help);
            return None;
        }
        if self.class.is_none() {
            let help = "add flowid and a class, like flowid 1:10";
            let message = "the filter has no class";
            problems.add(filter.kind.span(), message, "`flowid` is missing", help);
        }
        self.class.as_ref()
    }
}

fn class_entry(key: &str, class: &Spanned<u16>) -> Written {
    setting(&class.span(), key, Given::Integer((*class.get_ref()).into()))
}

/// What the options of a filter say.
#[derive(Clone)]
struct Parsed {
    outer: Option<Ethertype>,
    inner: Option<Ethertype>,
    entries: Vec<Written>,
    class: Option<Spanned<ClassId>>,
    computed: Option<Computed>,
    redirect: Option<Word>,
    actions: Actions,
    /// Sets of further conditions, one of which must hold.
    alternatives: Vec<Vec<Written>>,
}

impl Parsed {
    /// Reads a filter. `read` reads its options. Returns `None` after a problem.
    fn read<'f>(
        filter: &'f Filter,
        context: &Context,
        problems: &mut Problems,
        notes: &mut Notes,
        read: impl FnOnce(&mut Reader<'f, '_>),
    ) -> Option<Parsed> {
        let before = problems.count();
        let mut reader = Reader {
            words: filter.options.iter(),
            context,
            outer: outer(filter, problems),
            inner: None,
            entries: Vec::new(),
            class: None,
            computed: None,
            redirect: None,
            actions: Actions::default(),
            estimator: filter.head.estimator.as_ref(),
            alternatives: vec![Vec::new()],
            problems,
            notes,
        };
        read(&mut reader);
        reader.estimator_is_used(filter);
        let Reader {
            outer,
            inner,
            entries,
            class,
            computed,
            redirect,
            actions,
            alternatives,
            problems,
            ..
        } = reader;
        (problems.count() == before).then(|| Parsed {
            outer,
            inner,
            entries,
            class,
            computed,
            redirect: redirect.cloned(),
            actions,
            alternatives,
        })
    }

    fn rule(&self, entries: Vec<Written>) -> Rule {
        Rule {
            entries,
            class: self.class.clone(),
            computed: self.computed.clone(),
            redirect: self.redirect.clone(),
            actions: self.actions.clone(),
        }
    }
}

/// The words that all kinds of filters have.
const COMMON: [&str; 4] = ["classid", "flowid", "action", "police"];

/// Reads a filter of any kind but `u32`: a rule for each set of conditions. Returns none after a problem.
fn read(filter: &Filter, context: &Context, problems: &mut Problems, notes: &mut Notes) -> Vec<Rule> {
    let parsed = Parsed::read(filter, context, problems, notes, |reader| {
        match filter.kind.get_ref().as_str() {
            "flower" => flower::read(reader),
            "fw" => reader.mark(filter),
            "flow" => reader.flow(&filter.kind, filter.head.handle.is_some()),
            "matchall" => reader.rest(&[]),
            "basic" => reader.basic(),
            kind => {
                let why = match kind {
                    "cgroup" => ": it selects by the process that sends, which a bridge can't know",
                    "bpf" => ": it runs a program in the kernel",
                    "route" => ": it selects by the route, which a bridge does not look up",
                    _ => "",
                };
                let help = suggest::remedy(
                    kind,
                    "understood are",
                    ["u32", "fw", "flower", "flow", "basic", "matchall"],
                );
                let message = format!("a filter of the kind `{kind}` can't be carried over{why}");
                reader
                    .problems
                    .add(filter.kind.span(), message, "unknown here", help);
            }
        }
    });
    let Some(parsed) = parsed else {
        return Vec::new();
    };
    let rule = |alternative: &Vec<Written>| {
        let mut entries = [&parsed.entries[..], alternative].concat();
        let has_address = entries
            .iter()
            .any(|(key, _)| matches!(key.get_ref().as_str(), "source" | "destination"));
        if let Some(inner) = &parsed.inner
            && !has_address
        {
            entries.push(setting(&inner.location, "ethertype", inner.given.clone()));
        }
        entries.extend(parsed.outer.as_ref().map(Ethertype::written));
        parsed.rule(entries)
    };
    parsed.alternatives.iter().map(rule).collect()
}

/// An EtherType that a filter names, and where.
#[derive(Clone)]
struct Ethertype {
    given: Given,
    location: Range<usize>,
}

impl Ethertype {
    fn named(name: &str, location: Range<usize>) -> Ethertype {
        Ethertype {
            given: Given::Text(name.to_owned()),
            location,
        }
    }

    fn written(&self) -> Written {
        setting(&self.location, "outer_ethertype", self.given.clone())
    }

    fn is(&self, name: &str) -> bool {
        matches!(&self.given, Given::Text(text) if text == name)
    }

    /// Whether it is that of a VLAN tag.
    fn is_tag(&self) -> bool {
        self.is("802.1q") || self.is("802.1ad")
    }
}

/// Reads a filter's `protocol`. Returns `None` if it is for all.
fn outer(filter: &Filter, problems: &mut Problems) -> Option<Ethertype> {
    let word = filter.head.protocol.as_ref()?;
    let name = word.get_ref().to_lowercase();
    let known = |name: &str| Some(Ethertype::named(name, word.span()));
    match (name.as_str(), name.strip_prefix("0x").and_then(|_| number(&name))) {
        ("all", _) | (_, Some(3)) => None,
        ("ip" | "ipv4", _) | (_, Some(0x0800)) => known("ipv4"),
        ("ipv6", _) | (_, Some(0x86dd)) => known("ipv6"),
        ("arp", _) | (_, Some(0x0806)) => known("arp"),
        ("802.1q", _) | (_, Some(0x8100)) => known("802.1q"),
        ("802.1ad", _) | (_, Some(0x88a8)) => known("802.1ad"),
        (_, Some(number @ 0x0600..=0xffff)) => Some(Ethertype {
            given: Given::Integer(number.into()),
            location: word.span(),
        }),
        _ => {
            let message = format!("`{}` is not a known protocol", word.get_ref());
            let help = "write all, ip, ipv6, arp, 802.1q, 802.1ad, or an EtherType like 0x0800";
            problems.add(word.span(), message, "unknown here", help);
            None
        }
    }
}

/// A filter that is being read.
struct Reader<'f, 'p> {
    words: std::slice::Iter<'f, Word>,
    context: &'p Context,
    /// The EtherType of the frame. `None` is any.
    outer: Option<Ethertype>,
    /// The EtherType of the payload after VLAN tags, where the conditions imply it.
    inner: Option<Ethertype>,
    entries: Vec<Written>,
    class: Option<Spanned<ClassId>>,
    /// How the class is computed.
    computed: Option<Computed>,
    /// The device that packets are redirected to.
    redirect: Option<&'f Word>,
    actions: Actions,
    /// How policers of the filter estimate the average rate.
    estimator: Option<&'f Estimated>,
    /// Sets of further conditions, one of which must hold.
    alternatives: Vec<Vec<Written>>,
    problems: &'p mut Problems,
    notes: &'p mut Notes,
}

impl<'f> Reader<'f, '_> {
    /// Whether the payload is of this EtherType in all frames that the filter matches.
    fn is_of(&self, name: &str) -> bool {
        let mut ethertypes = self.inner.iter().chain(&self.outer);
        ethertypes.any(|ethertype| ethertype.is(name))
    }

    /// Takes the next word, the value of `option`. Reports if there is none.
    fn value(&mut self, option: &Word) -> Option<&'f Word> {
        let word = self.words.next();
        if word.is_none() {
            no_value(option, self.problems);
        }
        word
    }

    fn add(&mut self, key: &str, location: Range<usize>, value: Given) {
        self.entries.push(setting(&location, key, value));
    }

    /// Reads `classid`, `flowid` or `action`. Reports any other word.
    fn common(&mut self, word: &'f Word, known: &[&str]) {
        match full(word.get_ref(), &COMMON).unwrap_or(word.get_ref()) {
            "action" => self.action(word),
            "police" => self.police(word),
            // Actions follow one another also without the word before them (`parse_action`).
            _ if self.actions.are_any && actions::is_kind(word) => self.action_of_kind(word),
            // There is no hardware, and an action's cookie is only for the user.
            "skip_hw" => {}
            "cookie" if self.actions.are_any => {
                let Some(cookie) = self.value(word) else { return };
                let text = cookie.get_ref();
                if text.len() > 32 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    self.refuse(
                        cookie,
                        "such a cookie",
                        "write at most 32 hexadecimal digits, or leave it out",
                    );
                }
            }
            "classid" | "flowid" => {
                if let Some(value) = self.value(word) {
                    self.class = class_id(value, self.problems);
                }
            }
            name => {
                let message = format!("`{name}` of a filter can't be carried over");
                let known = known.iter().copied().chain(["flowid", "action", "police"]);
                let help = suggest::remedy(name, "understood are", known);
                self.problems.add(word.span(), message, "unknown here", help);
                // The next words belong to it.
                self.words = [].iter();
            }
        }
    }

    /// Says what the kernel does differently from what `estimator` says.
    fn estimator_is_used(&mut self, filter: &Filter) {
        let Some(given) = &filter.head.estimator else {
            return;
        };
        let text = match self.actions.average() {
            true => given.note(),
            false => {
                Some("`estimator` of a filter has no effect: no policer with avrate asks for it".to_owned())
            }
        };
        if let Some(text) = text {
            self.notes.add(given.word.span(), text);
        }
    }

    /// Reads `match` and an expression.
    fn basic(&mut self) {
        while let Some(word) = self.words.next() {
            match full(word.get_ref(), &["match"]).unwrap_or_default() {
                "match" => self.ematch(word),
                _ => self.common(word, &["match"]),
            }
        }
    }

    /// Reads a filter that has only a class.
    fn rest(&mut self, known: &[&str]) {
        while let Some(word) = self.words.next() {
            self.common(word, known);
        }
    }

    fn mark(&mut self, filter: &'f Filter) {
        match &filter.head.handle {
            Some(handle) => {
                let (value, mask) = handle
                    .get_ref()
                    .split_once('/')
                    .unwrap_or((handle.get_ref(), "0xffffffff"));
                match number(value).zip(number(mask)) {
                    // As in the kernel, no mark of which only these bits count is this one.
                    Some((value, mask)) if value & !mask != 0 => {
                        let text = "this filter matches nothing: the mark has bits outside of its mask";
                        self.notes.add(handle.span(), text.to_owned());
                        self.alternatives.clear();
                    }
                    Some((value, mask)) => {
                        let text = format!("{value:#x}/{mask:#x}");
                        self.add("mark", handle.span(), Given::Text(text));
                    }
                    None => self.refuse(
                        handle,
                        "a mark like this",
                        "write a number, or a number and a mask: 0x10/0xf0",
                    ),
                }
            }
            None => return self.class_is_mark(&filter.kind),
        }
        if self.words.len() == 0 {
            let message = "`fw` with a mark needs a class or an action";
            let help = "write flowid and a class after it";
            self.problems
                .add(filter.kind.span(), message, "nothing follows", help);
        }
        self.rest(&[]);
    }

    fn refuse(&mut self, word: &Word, what: &str, help: &str) {
        let message = format!("{what} can't be carried over: `{}`", word.get_ref());
        self.problems.add(word.span(), message, "not here", help);
    }

    /// Adds a condition on some bits of a port: a range, if these are the upper bits.
    fn port(&mut self, key: &str, location: Range<usize>, value: u16, mask: u16) {
        let free = !mask;
        let value = value & mask;
        if free & free.wrapping_add(1) != 0 {
            let offset = if key == "source_port" { 0 } else { 2 };
            let text = format!("transport+{offset} u16 {value:#x}/{mask:#x}");
            self.add("bytes", location, Given::Text(text));
        } else if free == 0 {
            self.add(key, location, Given::Integer(value.into()));
        } else if mask != 0 {
            self.add(key, location, Given::Text(format!("{value}-{}", value | free)));
        }
    }

    /// Adds a condition on some bits of the traffic class.
    fn traffic_class(&mut self, location: Range<usize>, value: u8, mask: u8) {
        self.entries.extend(keys::traffic_class(&location, value, mask));
    }

    /// Adds a condition on an address or a prefix. As in tc, bits after the prefix are ignored.
    fn prefix(&mut self, key: &str, word: &Word) {
        let text = word.get_ref();
        match script::prefix(text) {
            Some(prefix) if prefix.length() == 0 => {}
            Some(prefix) => self.add(key, word.span(), Given::Text(prefix.to_string())),
            None if matches!(text.as_str(), "any" | "all" | "default") => {}
            None => self.refuse(
                word,
                "an address like this",
                "write it as in 192.0.2.1 or 2001:db8::/32",
            ),
        }
    }
}

#[cfg(test)]
mod kernel;
#[cfg(test)]
mod tests;

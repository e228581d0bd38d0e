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
//! on ports.

mod flower;
mod mirred;
mod selector;

use std::ops::Range;

use fairgate::ClassId;
use fairgate_config::language::{Draft, FilterDraft, Given, Problems, Written};
use fairgate_config::suggest;
use toml::Spanned;

use super::command::class_id;
use super::hook;
use super::kinds;
use super::script::{Filter, Qdisc, Script};
use crate::script::{self, Word, no_value, number, setting};

/// A filter: its conditions, and what becomes of the packets that match.
pub(super) struct Rule {
    entries: Vec<Written>,
    class: Option<Spanned<ClassId>>,
    /// The device that packets are redirected to.
    pub(super) redirect: Option<Word>,
}

/// Adds the filters of `qdisc` to the draft. Filters that can't be translated are reported.
pub(super) fn translate(script: &Script, qdisc: &Qdisc, draft: &mut Draft, problems: &mut Problems) {
    add(
        &script.filters_of(qdisc),
        draft,
        problems,
        |filter, rule, problems| {
            let class = rule.class_of(filter, problems)?;
            // A qdisc without declared classes looks only at the minor number.
            let is_minor_alone = class.get_ref().major() == 0
                && kinds::find(qdisc.kind.get_ref()).is_some_and(|kind| !kind.declares_classes());
            if Some(class.get_ref().major()) == qdisc.handle || is_minor_alone {
                return Some(Spanned::new(class.span(), class.get_ref().minor()));
            }
            let message = format!("class {} is not a class of this qdisc", class.get_ref());
            let help = match (class.get_ref().major(), qdisc.handle) {
            (0, Some(handle)) => format!(
                "write flowid {}: in Linux class {} does not exist, and such packets go to the default class",
                ClassId::new(handle, class.get_ref().minor()),
                class.get_ref()
            ),
            _ => "name a class of the qdisc that the filter is attached to; a qdisc in it can have further \
                  filters"
                .to_owned(),
        };
            problems.add(class.span(), message, "class of another qdisc", help);
            None
        },
    );
}

/// Adds filters to the draft. `class` returns the minor number for a filter, or reports why there is none.
pub(super) fn add(
    filters: &[&Filter],
    draft: &mut Draft,
    problems: &mut Problems,
    mut class: impl FnMut(&Filter, &Rule, &mut Problems) -> Option<Spanned<u16>>,
) {
    let mut catch_all: Option<(&Filter, Spanned<u16>)> = None;
    for filter in filters {
        if let Some((earlier, _)) = &catch_all {
            let message = "this filter is never tried: one before it matches every packet";
            let help = format!("leave it out, or give it a priority below {}", earlier.preference);
            problems.add(filter.kind.span(), message, "never tried", help);
            continue;
        }
        let Some(rule) = read(filter, problems) else {
            continue;
        };
        let Some(class) = class(filter, &rule, problems) else {
            continue;
        };
        let mut entries = rule.entries;
        if entries.is_empty() {
            catch_all = Some((filter, class));
            continue;
        }
        entries.insert(0, class_entry("class", &class));
        draft.filters.push(FilterDraft {
            header: filter.kind.span(),
            entries,
        });
    }
    if let Some((_, class)) = catch_all {
        draft.settings.retain(|(key, _)| key.get_ref() != "default");
        draft.settings.push(class_entry("default", &class));
    }
}

/// Reports what can't be translated in a filter whose qdisc is missing.
pub(super) fn check(filter: &Filter, problems: &mut Problems) {
    let is_of_hook = filter.parent.is_some_and(|parent| parent.major() == hook::HANDLE);
    if let Some(rule) = read(filter, problems)
        && !is_of_hook
    {
        let _ = rule.class_of(filter, problems);
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

/// Reads a filter. Returns `None` after a problem.
fn read(filter: &Filter, problems: &mut Problems) -> Option<Rule> {
    let before = problems.count();
    if let Some(parent) = filter
        .head
        .parent
        .as_ref()
        .filter(|parent| parent.get_ref().minor() != 0 && parent.get_ref().major() != hook::HANDLE)
    {
        let message = format!("a filter on class {} can't be carried over", parent.get_ref());
        let help = format!(
            "attach it to {:x}: with the conditions of all filters on the path, and name the last class",
            parent.get_ref().major()
        );
        problems.add(parent.span(), message, "not the qdisc itself", help);
    }
    let mut reader = Reader {
        words: filter.options.iter(),
        outer: outer(filter, problems),
        inner: None,
        entries: Vec::new(),
        class: None,
        redirect: None,
        problems,
    };
    let kind = filter.kind.get_ref().as_str();
    if let Some(handle) = &filter.head.handle
        && kind != "fw"
    {
        reader.refuse(
            handle,
            "a handle of a filter",
            "leave it out: filters have no handles here",
        );
    }
    match kind {
        "u32" => selector::read(&mut reader),
        "flower" => flower::read(&mut reader),
        "fw" => reader.mark(filter),
        "matchall" | "basic" => reader.rest(&[]),
        _ => {
            let help = suggest::remedy(
                kind,
                "understood are",
                ["u32", "fw", "flower", "basic", "matchall"],
            );
            let message = format!("a filter of the kind `{kind}` can't be carried over");
            reader
                .problems
                .add(filter.kind.span(), message, "unknown here", help);
        }
    }
    let Reader {
        outer,
        inner,
        mut entries,
        class,
        redirect,
        problems,
        ..
    } = reader;
    let has_address = entries
        .iter()
        .any(|(key, _)| matches!(key.get_ref().as_str(), "source" | "destination"));
    if let Some(Ethertype { given, location }) = inner
        && !has_address
    {
        entries.push(setting(&location, "ethertype", given));
    }
    if let Some(Ethertype { given, location }) = outer {
        entries.push(setting(&location, "outer_ethertype", given));
    }
    (problems.count() == before).then(|| Rule {
        entries,
        class,
        redirect: redirect.cloned(),
    })
}

/// An EtherType that a filter names, and where.
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
    /// The EtherType of the frame. `None` is any.
    outer: Option<Ethertype>,
    /// The EtherType of the payload after VLAN tags, where the conditions imply it.
    inner: Option<Ethertype>,
    entries: Vec<Written>,
    class: Option<Spanned<ClassId>>,
    /// The device that packets are redirected to.
    redirect: Option<&'f Word>,
    problems: &'p mut Problems,
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
        match word.get_ref().as_str() {
            "action" => self.action(word),
            "classid" | "flowid" => {
                if let Some(value) = self.value(word) {
                    self.class = class_id(value, self.problems);
                }
            }
            name => {
                let message = format!("`{name}` of a filter can't be carried over");
                let known = known.iter().copied().chain(["flowid", "action"]);
                let help = suggest::remedy(name, "understood are", known);
                self.problems.add(word.span(), message, "unknown here", help);
                // The next words belong to it.
                self.words = [].iter();
            }
        }
    }

    /// Reads a filter that has only a class.
    fn rest(&mut self, known: &[&str]) {
        while let Some(word) = self.words.next() {
            self.common(word, known);
        }
    }

    fn mark(&mut self, filter: &Filter) {
        match &filter.head.handle {
            Some(handle) => {
                let (value, mask) = handle
                    .get_ref()
                    .split_once('/')
                    .unwrap_or((handle.get_ref(), "0xffffffff"));
                match number(value).zip(number(mask)) {
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
            None => {
                let message = "`fw` without a mark can't be carried over";
                let help = "write the mark before it, handle 6 fw, for each class";
                self.problems.add(filter.kind.span(), message, "no handle", help);
            }
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
            let message = format!("the mask {mask:#06x} of a port can't be carried over");
            let help = "match single ports or ranges: a mask is a range if its zeros are the lowest bits";
            self.problems.add(location, message, "not a range", help);
        } else if free == 0 {
            self.add(key, location, Given::Integer(value.into()));
        } else if mask != 0 {
            self.add(key, location, Given::Text(format!("{value}-{}", value | free)));
        }
    }

    /// Adds a condition on some bits of the traffic class.
    fn traffic_class(&mut self, location: Range<usize>, value: u8, mask: u8) {
        let value = value & mask;
        match mask {
            0 => {}
            0xfc => self.add("dscp", location, Given::Integer((value >> 2).into())),
            _ => self.add(
                "traffic_class",
                location,
                Given::Text(format!("{value:#x}/{mask:#x}")),
            ),
        }
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
mod tests;

//! `flow` filters, which compute the class from fields of the packet, and `fw` filters without a mark, whose
//! class is the mark (cls_flow.c, cls_fw.c; the words are those of f_flow.c).
//!
//! The fields are those of a frame that a bridge forwards. It belongs to no socket and no route, and its
//! connection is unknown: as in the kernel, the fields of the connection are then those of the packet.

use std::ops::Range;

use fairgate::ClassId;
use fairgate_config::language::{Given, Written};
use toml::Spanned;

use super::{Context, Reader};
use crate::script::{Word, number, setting};
use crate::tc::command::class_id;

/// A class that is computed.
#[derive(Clone)]
pub(super) struct Computed {
    location: Range<usize>,
    /// The keys of the table in Fairgate's notation, without the first class.
    entries: Vec<Written>,
    /// Whether each packet gets a class.
    pub(super) is_sure: bool,
}

impl Computed {
    /// Returns the class as a setting. `first` is the class of number 0.
    pub(super) fn written(&self, key: &str, first: u16) -> Written {
        let mut entries = self.entries.clone();
        entries.push(setting(&self.location, "first", Given::Integer(first.into())));
        setting(&self.location, key, Given::Table(entries))
    }
}

/// What a key of tc is here.
enum Key {
    Field(&'static str),
    /// It is not known. The next best field takes its place, for this reason.
    Instead(&'static str, &'static str),
    /// It is 0 in all packets of a bridge, for this reason.
    Zero(&'static str),
}

const NO_CONNECTION: &str = "the connection is known only to the machine's own connection tracking: as in \
    Linux without it, this is the field of the packet";

/// Returns what a key is.
fn key(name: &str, context: &Context) -> Option<Key> {
    Some(match name {
        "src" => Key::Field("source"),
        "dst" => Key::Field("destination"),
        "proto" => Key::Field("protocol"),
        "proto-src" => Key::Field("source_port"),
        "proto-dst" => Key::Field("destination_port"),
        "iif" => Key::Field("interface"),
        "priority" => Key::Field("priority"),
        "mark" if context.has_marks => Key::Field("mark"),
        "mark" => Key::Zero("a frame from an interface has no mark of the firewall"),
        "vlan-tag" => Key::Field("vlan"),
        "rxhash" => Key::Field("flow"),
        "nfct" => Key::Instead(
            "flow",
            "the connection is known only to the machine's own connection tracking: here its addresses, \
             ports and protocol stand for it",
        ),
        "nfct-src" => Key::Instead("source", NO_CONNECTION),
        "nfct-dst" => Key::Instead("destination", NO_CONNECTION),
        "nfct-proto-src" => Key::Instead("source_port", NO_CONNECTION),
        "nfct-proto-dst" => Key::Instead("destination_port", NO_CONNECTION),
        "rt-classid" => Key::Zero("a bridge looks up no route"),
        "sk-uid" | "sk-gid" => Key::Zero("a frame that is forwarded belongs to no socket"),
        _ => return None,
    })
}

const KEYS: [&str; 18] = [
    "src",
    "dst",
    "proto",
    "proto-src",
    "proto-dst",
    "iif",
    "priority",
    "mark",
    "nfct",
    "nfct-src",
    "nfct-dst",
    "nfct-proto-src",
    "nfct-proto-dst",
    "rt-classid",
    "sk-uid",
    "sk-gid",
    "vlan-tag",
    "rxhash",
];

const FORM: &str =
    "write handle 1 flow hash keys src,dst divisor 1024, or handle 1 flow map key dst and 0xff";

/// The options of a filter as far as they were read.
struct Options<'f> {
    hashes: bool,
    keys: Vec<(&'f str, Key)>,
    keys_at: Option<&'f Word>,
    and: u32,
    xor: u32,
    shift: u32,
    add: u32,
    divisor: Option<u32>,
    perturb: u32,
    base: Option<Spanned<ClassId>>,
    /// A word that belongs to `map` alone.
    of_map: Option<&'f Word>,
}

impl<'f> Reader<'f, '_> {
    /// Reads a `flow` filter.
    pub(super) fn flow(&mut self, kind: &'f Word, has_handle: bool) {
        if !has_handle {
            let message = "`flow` needs a handle";
            return self.problem(
                kind,
                message,
                "write handle 1 before it: each filter of a priority has one",
            );
        }
        let mut options = Options {
            hashes: false,
            keys: Vec::new(),
            keys_at: None,
            and: u32::MAX,
            xor: 0,
            shift: 0,
            add: 0,
            divisor: None,
            perturb: 0,
            base: None,
            of_map: None,
        };
        while let Some(word) = self.words.next() {
            if self.flow_option(word, &mut options).is_none() {
                return;
            }
        }
        self.computed_from(kind, options);
    }

    fn flow_option(&mut self, word: &'f Word, options: &mut Options<'f>) -> Option<()> {
        let name = word.get_ref().as_str();
        if matches!(name, "and" | "or" | "xor" | "rshift" | "addend") {
            options.of_map = Some(word);
        }
        match name {
            "map" => options.hashes = false,
            "hash" => options.hashes = true,
            "key" | "keys" => {
                let value = self.value(word)?;
                options.keys_at = Some(value);
                options.keys.clear();
                for name in value.get_ref().split(',') {
                    let Some(key) = key(name, self.context) else {
                        let help = fairgate_config::suggest::remedy(name, "keys are", KEYS);
                        self.problem(value, &format!("`{name}` is no key of `flow`"), &help);
                        return None;
                    };
                    options.keys.push((name, key));
                }
            }
            // Several of them are combined (`transfer_bitop`).
            "and" => options.combine(self.flow_number(word)?, 0),
            "or" => {
                let bits = self.flow_number(word)?;
                options.combine(!bits, bits);
            }
            "xor" => options.combine(u32::MAX, self.flow_number(word)?),
            "rshift" => {
                options.shift = self.flow_number(word)?;
                if options.shift > 31 {
                    self.problem(word, "a number is shifted by at most 31 bits", FORM);
                    return None;
                }
            }
            "addend" => {
                let value = self.value(word)?;
                let Some(added) = addend(value.get_ref()) else {
                    self.problem(
                        value,
                        "this can't be added",
                        "write a number or an address, perhaps after -",
                    );
                    return None;
                };
                options.add = added;
            }
            "divisor" => options.divisor = Some(self.flow_number(word)?),
            "perturb" => {
                let value = self.value(word)?;
                let digits = value.get_ref().trim_end_matches("sec");
                let Some(seconds) = number(digits) else {
                    self.problem(value, "this is not a number of seconds", FORM);
                    return None;
                };
                options.perturb = seconds;
            }
            "baseclass" => {
                let value = self.value(word)?;
                let base = class_id(value, self.problems)?;
                if base.get_ref().minor() == 0 {
                    self.problem(value, "a class has a number above 0", "write baseclass 1:1");
                    return None;
                }
                options.base = Some(base);
            }
            "match" => self.ematch(word),
            _ => self.common(word, &["hash", "map", "keys", "divisor", "baseclass", "match"]),
        }
        Some(())
    }

    fn flow_number(&mut self, option: &'f Word) -> Option<u32> {
        let value = self.value(option)?;
        let found = number(value.get_ref());
        if found.is_none() {
            self.problem(value, &format!("`{}` needs a number", option.get_ref()), FORM);
        }
        found
    }

    /// Adds the class that the options describe.
    fn computed_from(&mut self, kind: &'f Word, options: Options<'f>) {
        let Some(at) = options.keys_at else {
            return self.problem(kind, "`flow` has no keys", FORM);
        };
        if !options.hashes && options.keys.len() > 1 {
            return self.problem(at, "`map` has one key", FORM);
        }
        if options.perturb > 0 && !options.hashes {
            return self.problem(kind, "`perturb` changes a hash, and `map` has none", FORM);
        }
        let location = at.span();
        let mut fields = Vec::new();
        for (name, key) in &options.keys {
            let field = match key {
                Key::Field("interface") if !options.hashes => {
                    let help = "write a filter with the class itself: all packets of a direction come from \
                        one interface";
                    let message = "the kernel draws the number of an interface when it is made, so it is not \
                        known here";
                    return self.problem(at, message, help);
                }
                Key::Field(field) => field,
                Key::Instead(field, why) => {
                    self.notes.add(location.clone(), format!("`{name}`: {why}"));
                    field
                }
                Key::Zero(why) => {
                    self.notes.add(location.clone(), format!("`{name}` is 0: {why}"));
                    continue;
                }
            };
            fields.push(Spanned::new(location.clone(), Given::Text((*field).to_owned())));
        }
        let base = options.base.unwrap_or_else(|| {
            let major = self.context.handle.unwrap_or(0);
            Spanned::new(location.clone(), ClassId::new(major, 1))
        });
        let count = options.divisor.filter(|count| *count > 0);
        let entry = |key: &str, given| setting(&location, key, given);
        let integer = |key: &str, number: u32| entry(key, Given::Integer(number.into()));
        let mut entries = Vec::new();
        match (fields.pop(), options.hashes) {
            (Some(last), true) => {
                if let Some(word) = options.of_map {
                    let text = format!("`{}` has no effect on a hash", word.get_ref());
                    self.notes.add(word.span(), text);
                }
                fields.push(last);
                entries.push(entry("hash", Given::List(fields)));
                if options.perturb > 0 {
                    entries.push(entry("perturb", Given::Meant(format!("{}s", options.perturb))));
                }
            }
            (Some(field), false) => {
                entries.push(entry("number", field.into_inner()));
                entries.extend((options.and != u32::MAX).then(|| integer("and", options.and)));
                entries.extend((options.xor != 0).then(|| integer("xor", options.xor)));
                entries.extend((options.shift != 0).then(|| integer("shift", options.shift)));
                entries.extend((options.add != 0).then(|| integer("add", options.add)));
            }
            (None, true) => {
                let message = "all packets of a bridge have the same hash by these keys";
                let help = "add keys that packets differ in, like src, dst, proto, proto-src and proto-dst";
                return self.problem(at, message, help);
            }
            (None, false) => {
                let added = (options.xor >> options.shift).wrapping_add(options.add);
                let number = count.map_or(added, |count| added % count);
                let minor = base.get_ref().minor().wrapping_add(number as u16);
                let class = ClassId::new(base.get_ref().major(), minor);
                self.class = Some(Spanned::new(location, class));
                return;
            }
        }
        entries.extend(count.map(|count| integer("count", count)));
        let first = u32::from(base.get_ref().minor());
        // The numbers of classes begin at 0 again after 0xffff, and 0 is none.
        let is_sure = first > 0 && count.is_some_and(|count| first + (count - 1) <= 0xffff);
        self.class = Some(base);
        self.computed = Some(Computed {
            location,
            entries,
            is_sure,
        });
    }

    /// Reads a `fw` filter without a mark: the class is the mark, if the mark is the number of a class or a
    /// class of this qdisc.
    pub(super) fn class_is_mark(&mut self, kind: &'f Word) {
        self.rest(&[]);
        let location = kind.span();
        let Some(handle) = self.context.handle else {
            let help = "give the qdisc a handle: the upper half of such a mark is that of its qdisc";
            return self.problem(kind, "`fw` without a mark needs a qdisc with a handle", help);
        };
        if self.class.is_some() || self.actions.are_any {
            let help = "write the mark before it, handle 6 fw, or leave out what follows";
            return self.problem(kind, "`fw` without a mark takes the class from the mark", help);
        }
        let of_major = |major: u16| {
            let text = format!("{:#x}/0xffff0000", u32::from(major) << 16);
            vec![setting(&location, "mark", Given::Text(text))]
        };
        self.alternatives = vec![of_major(0), of_major(handle)];
        self.class = Some(Spanned::new(location.clone(), ClassId::new(handle, 0)));
        self.computed = Some(Computed {
            entries: vec![
                setting(&location, "number", Given::Text("mark".to_owned())),
                setting(&location, "and", Given::Integer(0xffff)),
            ],
            location,
            is_sure: false,
        });
    }
}

impl Options<'_> {
    fn combine(&mut self, and: u32, xor: u32) {
        self.xor = xor ^ (self.xor & and);
        self.and &= and;
    }
}

/// Reads a number or an address, perhaps after a minus sign (`get_addend`).
fn addend(text: &str) -> Option<u32> {
    let (text, is_negative) = match text.strip_prefix('-') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let added = number(text).or_else(|| match text.parse().ok()? {
        std::net::IpAddr::V4(address) => Some(address.to_bits()),
        std::net::IpAddr::V6(address) => Some(address.to_bits() as u32),
    })?;
    Some(if is_negative { added.wrapping_neg() } else { added })
}

#[cfg(test)]
mod tests;

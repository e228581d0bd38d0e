//! `u32` filters and their hash tables.
//!
//! A filter in a table can lead to another table, in which a hash of some bytes selects a bucket
//! (`u32_classify` in cls_u32.c). Each path from the first table to a filter with a class becomes a filter of
//! its own, in the order in which the kernel tries them. Its conditions are those of all filters on the path,
//! and the hash: these are bits of the packet as well. The classifier's index then finds one of thousands as
//! fast as the tables did.

use std::collections::BTreeMap;
use std::ops::Range;

use fairgate::ClassId;
use fairgate_config::language::Problems;

use super::keys::{Compared, Header, Key, Spot, mask_of, offset};
use super::{Context, Ethertype, Parsed, Reader, Rule};
use crate::script::notes::Notes;
use crate::script::{Word, number, setting};
use crate::tc::abbreviations::full;
use crate::tc::objects::Filter;

/// The number of tables on a path (TC_U32_MAXDEPTH).
const DEEPEST: usize = 8;

/// The largest number of paths.
const MOST_PATHS: usize = 1 << 18;

/// The number of the first table that the kernel makes for a priority.
const FIRST_ROOT: u32 = 0x800;

/// The kernel numbers filters without a number from this one on.
const UNNUMBERED: u32 = 0x800;

/// How a filter leads to another table.
#[derive(Clone, Debug)]
struct Link {
    table: u32,
    /// The mask of the bytes that are hashed, and their offset.
    hash: (u32, i32),
    jump: Jump,
    location: Range<usize>,
}

/// Where the next header begins.
#[derive(Clone, Copy, Debug, Default)]
struct Jump {
    /// Bytes after the present one.
    plus: Option<i32>,
    /// After the IP header, whose length is in it.
    by_length: bool,
    /// Whether offsets count from there in the next table. Otherwise only those of `nexthdr` do.
    eats: bool,
}

/// A filter.
struct Node<'f> {
    filter: &'f Filter,
    keys: Vec<Key>,
    link: Option<Link>,
    /// Its table, bucket and number. The number is `None` if the kernel chooses it.
    place: (Option<u32>, u32, Option<u32>),
    parsed: Parsed,
}

/// The class, the chain and the priority of filters.
type Priority = (Option<ClassId>, u32, u16);

/// All `u32` filters of a qdisc, which share their tables.
#[derive(Default)]
pub(super) struct Tables<'f> {
    nodes: Vec<Node<'f>>,
    /// By number: how many buckets a table has, and the filters in each.
    tables: BTreeMap<u32, (u32, BTreeMap<u32, Vec<usize>>)>,
    /// The first table of each priority of each chain.
    roots: Vec<(Priority, u32)>,
}

/// What a line says besides its matches.
#[derive(Default)]
struct Line {
    keys: Vec<Key>,
    divisor: Option<u32>,
    place: Option<(u32, u32, u32)>,
    bucket: Option<u32>,
    link: Option<(u32, Range<usize>)>,
    hash: (u32, i32),
    jump: Jump,
}

impl<'f> Tables<'f> {
    /// Reads all `u32` filters of a qdisc.
    pub(super) fn read(
        filters: &[&'f Filter],
        context: &Context,
        problems: &mut Problems,
        notes: &mut Notes,
    ) -> Tables<'f> {
        let mut filters: Vec<&Filter> = filters.iter().copied().filter(|filter| filter.is_u32()).collect();
        filters.sort_by_key(|filter| filter.kind.span().start);
        let mut tables = Tables::default();
        for filter in filters {
            let key = (filter.parent, filter.chain(), filter.preference);
            let root = match tables.roots.iter().find(|(other, _)| *other == key) {
                Some((_, root)) => *root,
                None => {
                    let root = FIRST_ROOT + tables.roots.len() as u32;
                    tables.roots.push((key, root));
                    tables.tables.insert(root, (1, BTreeMap::new()));
                    root
                }
            };
            let mut line = Line::default();
            let Some(parsed) = Parsed::read(filter, context, problems, notes, |reader| line.read(reader))
            else {
                continue;
            };
            tables.add(filter, line, parsed, root, problems);
        }
        for (_, buckets) in tables.tables.values_mut() {
            for bucket in buckets.values_mut() {
                bucket.sort_by_key(|node| tables.nodes[*node].place.2.unwrap_or(UNNUMBERED));
            }
        }
        tables
    }

    fn add(&mut self, filter: &'f Filter, line: Line, parsed: Parsed, root: u32, problems: &mut Problems) {
        let handle = filter.head.handle.as_ref();
        let (table, bucket, number) = match handle.map(|handle| (handle, place(handle.get_ref()))) {
            Some((handle, None)) => {
                let help = "write a table, a bucket and a number, hexadecimal: 800::1, or a table: 1:";
                return problems.add(handle.span(), "this is not a handle of `u32`", "not here", help);
            }
            Some((_, Some((table, bucket, number)))) => (
                Some(table).filter(|table| *table != 0),
                bucket,
                Some(number).filter(|number| *number != 0),
            ),
            None => (None, 0, None),
        };
        if let Some(divisor) = line.divisor {
            if let Some(handle) = handle.filter(|_| bucket != 0 || number.is_some()) {
                let help = "write only the table before u32 divisor 256: handle 1:";
                return problems.add(
                    handle.span(),
                    "a divisor is that of a whole table",
                    "not here",
                    help,
                );
            }
            let Some(table) = table else {
                let help = "write handle 1: before u32 divisor 256";
                return problems.add(filter.kind.span(), "the table has no number", "no handle", help);
            };
            self.tables.insert(table, (divisor, BTreeMap::new()));
            return;
        }
        let (table, bucket) = match line.place {
            Some((table, bucket, _)) => (Some(table).filter(|table| *table != 0), bucket),
            None => (table, bucket),
        };
        let bucket = line.bucket.unwrap_or(bucket);
        let in_table = table.unwrap_or(root);
        let Some((divisor, buckets)) = self.tables.get_mut(&in_table) else {
            let message = format!("there is no table {in_table:x}:");
            let help = "add it first: filter add ... handle 1: u32 divisor 256";
            return problems.add(filter.kind.span(), message, "no such table", help);
        };
        if bucket >= *divisor {
            let message = format!("table {in_table:x}: has no bucket {bucket:x}");
            let help = format!("it has {divisor:#x}");
            return problems.add(filter.kind.span(), message, "no such bucket", help);
        }
        buckets.entry(bucket).or_default().push(self.nodes.len());
        let link = line.link.map(|(table, location)| Link {
            table,
            hash: line.hash,
            jump: line.jump,
            location,
        });
        self.nodes.push(Node {
            filter,
            keys: line.keys,
            link,
            place: (table, bucket, number),
            parsed,
        });
    }

    /// Returns the place of a filter among the nodes, which are in the order of the script.
    fn place_of(&self, filter: &Filter) -> Option<usize> {
        let start = |filter: &Filter| filter.kind.span().start;
        self.nodes
            .binary_search_by_key(&start(filter), |node| start(node.filter))
            .ok()
    }

    /// Whether a filter is in the first table of its priority.
    pub(super) fn begin_with(&self, filter: &Filter) -> bool {
        let key = (filter.parent, filter.chain(), filter.preference);
        let root = self.roots.iter().find(|(other, _)| *other == key);
        let node = self.place_of(filter).map(|place| &self.nodes[place]);
        node.zip(root)
            .is_some_and(|(node, (_, root))| node.place.0.is_none_or(|table| table == *root))
    }

    /// The order of a filter among those of its priority.
    pub(super) fn rank(&self, filter: &Filter) -> u32 {
        let number = self.place_of(filter).and_then(|place| self.nodes[place].place.2);
        number.unwrap_or(UNNUMBERED)
    }

    /// Returns what a filter in the first table of its priority does: a rule for each path.
    pub(super) fn rules(
        &self,
        filter: &Filter,
        problems: &mut Problems,
        notes: &mut Notes,
    ) -> Vec<(&'f Filter, Rule)> {
        let Some(start) = self.place_of(filter) else {
            return Vec::new();
        };
        let mut walk = Walk {
            tables: self,
            outer: self.nodes[start].parsed.outer.as_ref(),
            rules: Vec::new(),
            passed: 0,
            problems,
            notes,
        };
        let path = Path {
            compared: Compared::default(),
            version: None,
            here: Spot::IP,
            next: Spot::IP,
            entries: Vec::new(),
        };
        walk.node(start, path, 0);
        walk.rules
    }
}

/// What the filters on the way to a table compare.
#[derive(Clone)]
struct Path {
    compared: Compared,
    version: Option<&'static str>,
    /// Where offsets count from.
    here: Spot,
    /// Where those of `nexthdr` count from.
    next: Spot,
    /// Other conditions.
    entries: Vec<fairgate_config::language::Written>,
}

struct Walk<'t, 'f, 'p> {
    tables: &'t Tables<'f>,
    outer: Option<&'t Ethertype>,
    rules: Vec<(&'f Filter, Rule)>,
    /// The filters passed so far.
    passed: usize,
    problems: &'p mut Problems,
    notes: &'p mut Notes,
}

impl<'f> Walk<'_, 'f, '_> {
    fn node(&mut self, index: usize, mut path: Path, depth: usize) {
        let tables = self.tables;
        let node = &tables.nodes[index];
        for key in &node.keys {
            let spot = if key.is_of_next { path.next } else { path.here }.plus(key.at);
            path.version = path.version.or(key.version);
            if key.is_of_next && spot.header == Header::Network && path.next == path.here && key.mask != 0 {
                let text = "without a link to a table with `offset`, tcp, udp, icmp and nexthdr count from \
                    the IP header, as in Linux: this compares its bytes; for ports write match ip dport";
                self.notes.add(key.location.clone(), text.to_owned());
            }
            if !path.compared.add(key, spot) {
                if depth == 0 {
                    let help = "remove one of the two: no packet matches both";
                    let message = "this contradicts an earlier match";
                    self.problems
                        .add(key.location.clone(), message, "impossible", help);
                }
                return;
            }
        }
        path.entries.extend(node.parsed.entries.iter().cloned());
        if let Some(link) = &node.link {
            self.link(link, &path, depth);
        }
        // A filter without class and actions leads nowhere (TC_U32_TERMINAL).
        let parsed = &node.parsed;
        if parsed.class.is_none() && parsed.redirect.is_none() && !parsed.actions.are_any {
            if node.link.is_none() {
                let text = "a filter without a class and without actions is never matched, as in Linux";
                self.notes.add(node.filter.kind.span(), text.to_owned());
            }
            return;
        }
        self.end(node.filter, parsed, path);
    }

    fn link(&mut self, link: &Link, path: &Path, depth: usize) {
        let Some((divisor, buckets)) = self.tables.tables.get(&link.table) else {
            let message = format!("there is no table {:x}:", link.table);
            let help = "add it first: filter add ... handle 1: u32 divisor 256";
            return self
                .problems
                .add(link.location.clone(), message, "no such table", help);
        };
        if depth + 1 > DEEPEST {
            let help = "a packet passes at most eight tables in Linux";
            return self
                .problems
                .add(link.location.clone(), "too many tables", "one more", help);
        }
        let (mask, at) = link.hash;
        let shift = mask.trailing_zeros().min(31);
        let jumped = match (link.jump.by_length, link.jump.plus) {
            (false, None) => None,
            // The kernel rounds up to whole words.
            (false, Some(plus)) => Some(path.here.plus((plus + 3) & !3)),
            (true, plus) => {
                if path.here != Spot::IP {
                    let help =
                        "only the length of the IP header can be read here: offset at 0 mask 0f00 shift 6";
                    let message = "an offset from the length of another header can't be carried over";
                    return self
                        .problems
                        .add(link.location.clone(), message, "not the IP header", help);
                }
                let transport = Spot {
                    header: Header::Transport,
                    offset: 0,
                };
                Some(transport.plus((plus.unwrap_or(0) + 3) & !3))
            }
        };
        let next = jumped.unwrap_or(path.next);
        for (bucket, nodes) in buckets {
            let mut path = path.clone();
            let key = Key {
                at,
                is_of_next: false,
                width: 4,
                value: bucket << shift,
                mask: mask & ((divisor - 1) << shift),
                version: None,
                is_port: false,
                location: link.location.clone(),
            };
            // Without a hash, all packets are in bucket 0.
            if *divisor > 1 {
                let is_reached = key.value & !key.mask == 0;
                if !is_reached || !path.compared.add(&key, path.here.plus(at)) {
                    continue;
                }
            }
            (path.here, path.next) = match link.jump.eats {
                true => (next, next),
                false => (path.here, next),
            };
            for node in nodes {
                self.passed += 1;
                if self.passed > MOST_PATHS {
                    let help = "link each table from one place";
                    return self.problems.add(
                        link.location.clone(),
                        "too many ways through the tables",
                        "here",
                        help,
                    );
                }
                self.node(*node, path.clone(), depth + 1);
            }
        }
    }

    fn end(&mut self, filter: &'f Filter, parsed: &Parsed, path: Path) {
        let outer = self.outer;
        let mut entries = path.entries;
        let is_open = outer.is_none_or(Ethertype::is_tag);
        let named = ["ipv4", "ipv6"]
            .into_iter()
            .find(|name| outer.is_some_and(|outer| outer.is(name)));
        if let (Some(named), Some(of_names)) = (named, path.version)
            && named != of_names
        {
            let text = format!(
                "names of {of_names} in a filter for {named}: as in Linux, this compares the same bytes of \
                 the {named} header"
            );
            self.notes.add(filter.kind.span(), text);
        }
        // The name `ip` says nothing about the packet if no bit is compared.
        let inferred = path.version.filter(|_| is_open && !path.compared.is_empty());
        entries.extend(path.compared.conditions(named.or(inferred), self.problems));
        let is_address = |key: &str| matches!(key, "source" | "destination");
        if let Some(version) = inferred
            && !entries.iter().any(|(key, _)| is_address(key.get_ref()))
        {
            let location = entries.first().map_or(filter.kind.span(), |(key, _)| key.span());
            let given = fairgate_config::language::Given::Text(version.to_owned());
            entries.push(setting(&location, "ethertype", given));
        }
        entries.extend(outer.map(Ethertype::written));
        self.rules.push((filter, parsed.rule(entries)));
    }
}

impl Line {
    fn read<'f>(&mut self, reader: &mut Reader<'f, '_>) {
        const WORDS: [&str; 9] = [
            "match", "offset", "hashkey", "divisor", "order", "link", "ht", "sample", "eat",
        ];
        while let Some(word) = reader.words.next() {
            match full(word.get_ref(), &WORDS).unwrap_or(word.get_ref()) {
                "match" => reader.keys(word, &mut self.keys),
                "divisor" => {
                    let Some(value) = reader.value(word) else { return };
                    match number(value.get_ref()) {
                        Some(number) if number.is_power_of_two() && number <= 256 => {
                            self.divisor = Some(number)
                        }
                        _ => {
                            let help = "write 1, 2, 4, ... or 256";
                            return reader.refuse(value, "a table of this size", help);
                        }
                    }
                }
                "ht" => {
                    let Some(value) = reader.value(word) else { return };
                    self.place = place(value.get_ref());
                    if self.place.is_none() {
                        return reader.refuse(value, "a table like this", "write it as in 1: or 1:2a:");
                    }
                }
                "link" => {
                    let Some(value) = reader.value(word) else { return };
                    match place(value.get_ref()) {
                        Some((table, 0, 0)) => self.link = Some((table, value.span())),
                        _ => return reader.refuse(value, "a table like this", "write it as in 1:"),
                    }
                }
                "hashkey" => self.hashkey(word, reader),
                "offset" => self.offset(word, reader),
                "eat" => self.jump.eats = true,
                "sample" => self.sample(word, reader),
                "order" => {
                    let _ = reader.value(word);
                }
                "skip_hw" => {}
                _ => reader.common(
                    word,
                    &["match", "divisor", "ht", "link", "hashkey", "offset", "sample"],
                ),
            }
        }
    }

    fn hashkey<'f>(&mut self, option: &'f Word, reader: &mut Reader<'f, '_>) {
        while let [word, ..] = reader.words.as_slice() {
            match word.get_ref().as_str() {
                "mask" => {
                    reader.words.next();
                    let Some(value) = reader.value(option) else { return };
                    match mask_of(value.get_ref()) {
                        Some(mask) => self.hash.0 = mask,
                        None => return reader.refuse(value, "a mask like this", "write it as in 0x000000ff"),
                    }
                }
                "at" => {
                    reader.words.next();
                    let Some(value) = reader.value(option) else { return };
                    match offset(value.get_ref()) {
                        Some((at, false)) => self.hash.1 = at,
                        _ => return reader.refuse(value, "an offset like this", "write a number of bytes"),
                    }
                }
                _ => break,
            }
        }
    }

    fn offset<'f>(&mut self, option: &'f Word, reader: &mut Reader<'f, '_>) {
        let (mut at, mut mask, mut shift) = (None, 0, 0);
        let mut last = option;
        while let [word, ..] = reader.words.as_slice() {
            let name = word.get_ref().as_str();
            if name == "eat" {
                self.jump.eats = true;
                reader.words.next();
                continue;
            }
            if !matches!(name, "at" | "mask" | "shift" | "plus") {
                break;
            }
            reader.words.next();
            let Some(value) = reader.value(word) else { return };
            last = value;
            let parsed = match name {
                "mask" => mask_of(value.get_ref()),
                _ => number(value.get_ref()),
            };
            let Some(parsed) = parsed.filter(|number| *number < 1 << 16) else {
                return reader.refuse(value, "a number like this", "write offset at 0 mask 0f00 shift 6");
            };
            match name {
                "at" => at = Some(parsed),
                "mask" => mask = parsed,
                "shift" => shift = parsed,
                _ => self.jump.plus = Some(parsed as i32),
            }
        }
        match (at, mask, shift) {
            (None, ..) => {}
            (Some(0), 0x0f00, 6) => self.jump.by_length = true,
            _ => {
                let help = "only the length of the IP header can be read here: offset at 0 mask 0f00 shift 6";
                reader.refuse(last, "an offset that is computed like this", help);
            }
        }
    }

    /// Reads a match whose value selects the bucket, as tc computes it.
    fn sample<'f>(&mut self, option: &'f Word, reader: &mut Reader<'f, '_>) {
        let mut keys = Vec::new();
        reader.keys(option, &mut keys);
        let mut divisor = 0x100;
        if let [word, ..] = reader.words.as_slice()
            && word.get_ref() == "divisor"
        {
            reader.words.next();
            let Some(value) = reader.value(word) else { return };
            match number(value.get_ref()) {
                Some(number) if number.is_power_of_two() && number <= 256 => divisor = number,
                _ => return reader.refuse(value, "a table of this size", "write 1, 2, 4, ... or 256"),
            }
        }
        match &keys[..] {
            [key] if key.mask != 0 => {
                self.bucket = Some(((key.value & key.mask) >> key.mask.trailing_zeros()) % divisor);
            }
            _ => {
                let help = "write one match, as in sample ip dst 192.0.2.7 0x000000ff";
                reader.problem(option, "`sample` needs one match", help);
            }
        }
    }
}

/// Reads a handle: a table, a bucket and a number, hexadecimal. Missing ones are 0.
pub(super) fn place(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.splitn(3, ':');
    let mut next = |most: u32| match parts.next() {
        None | Some("") => Some(0),
        Some(digits) => mask_of(digits).filter(|number| *number <= most),
    };
    let place = (next(0xfff)?, next(0xff)?, next(0xfff)?);
    text.contains(':').then_some(place)
}

impl Filter {
    pub(super) fn is_u32(&self) -> bool {
        self.kind.get_ref() == "u32"
    }
}

//! Parses a rule: `tcp from 192.0.2.0/24 to any 80,443 out via em0`.

use fairgate::classify::Prefix;
use fairgate_config::language::{Given, Problems, Written};
use fairgate_config::suggest;
use toml::Spanned;

use super::command::Action;
use super::complement::{Family, complement};
use super::tables::Tables;
use crate::script::notes::Notes;
use crate::script::{Line, Word, no_value, prefix, setting};

/// A rule.
pub(crate) struct Rule {
    pub(super) number: u32,
    /// The set that it belongs to.
    pub(super) set: u32,
    pub(crate) action: Action,
    pub(crate) direction: Option<Spanned<Direction>>,
    pub(crate) interface: Option<Word>,
    /// Whether it is for all frames that are not IP.
    pub(super) is_for_others: bool,
    /// The alternatives, of which one must match with all its conditions. A single empty one matches every
    /// packet.
    pub(crate) alternatives: Vec<Vec<Written>>,
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// They arrive through the interface.
    In,
    /// They leave through the interface.
    Out,
}

/// The largest number of filters for one rule.
const MOST: usize = 1024;

const KEYWORDS: [&str; 20] = [
    "layer2",
    "mac-type",
    "in",
    "out",
    "via",
    "xmit",
    "recv",
    "dscp",
    "iptos",
    "ipversion",
    "proto",
    "src-ip",
    "dst-ip",
    "src-port",
    "dst-port",
    "tcpflags",
    "setup",
    "established",
    "iplen",
    "//",
];

const ADDRESSES: &str =
    "write any, an address, a prefix like 192.0.2.0/24, or several of them, separated by commas";
const PORTS: &str = "write a port like 80, a range like 5000-5100, or several of them, separated by commas";
const LENGTHS: &str = "write a length in bytes like 40, a range like 1-200, or several, separated by commas";
const FLAGS: &str = "write fin, syn, rst, psh, ack or urg, or several, separated by commas, and a ! before \
    those that must not be set";

/// Parses the part after the action. Returns `None` after a problem, and if the rule matches nothing.
pub(super) fn read(
    number: u32,
    action: Action,
    line: Line,
    tables: &Tables,
    problems: &mut Problems,
    notes: &mut Notes,
) -> Option<Rule> {
    let before = problems.count();
    let mut reader = Reader {
        tables,
        rule: Rule {
            number,
            set: 0,
            action,
            direction: None,
            interface: None,
            is_for_others: false,
            alternatives: vec![Vec::new()],
        },
        line,
        problems,
        notes,
    };
    reader.body();
    let Reader { rule, problems, .. } = reader;
    let matches_something = !rule.alternatives.is_empty();
    (problems.count() == before && matches_something).then_some(rule)
}

struct Reader<'p> {
    tables: &'p Tables,
    rule: Rule,
    line: Line,
    problems: &'p mut Problems,
    notes: &'p mut Notes,
}

impl Reader<'_> {
    fn body(&mut self) -> Option<()> {
        let is_keyword = |word: &Word| KEYWORDS.contains(&word.get_ref().as_str());
        if self.line.peek().is_some_and(|word| !is_keyword(word)) {
            let protocol = self.line.take()?;
            let protocol = self.alternatives(protocol)?;
            self.protocol(&protocol)?;
            self.expect("from")?;
            self.end("source")?;
            self.expect("to")?;
            self.end("destination")?;
        }
        while let Some(word) = self.line.take() {
            self.option(&word)?;
        }
        Some(())
    }

    /// Takes a word that must be the expected one.
    fn expect(&mut self, expected: &str) -> Option<()> {
        let quoted = format!("`{expected}`");
        let word = self.line.next(&quoted, self.problems)?;
        match word.get_ref() == expected {
            true => Some(()),
            false => self.line.unexpected(&word, &quoted, self.problems),
        }
    }

    fn value(&mut self, option: &Word) -> Option<Word> {
        let value = self.line.take();
        if value.is_none() {
            no_value(option, self.problems);
        }
        value
    }

    fn refuse<T>(&mut self, word: &Word, what: &str, help: &str) -> Option<T> {
        let message = format!("{what} can't be carried over: `{}`", word.get_ref());
        self.problems.add(word.span(), message, "not here", help);
        None
    }

    /// Parses the address at one end, and its ports, if there are any.
    fn end(&mut self, key: &str) -> Option<()> {
        let address = self.address()?;
        self.addresses(key, &address)?;
        let is_port = |word: &&Word| word.get_ref().starts_with(|first: char| first.is_ascii_digit());
        if let Some(ports) = self.line.peek().filter(is_port).cloned() {
            self.line.take();
            self.ports(&format!("{key}_port"), &ports)?;
        }
        Some(())
    }

    /// Takes an address, with the `not` before it.
    fn address(&mut self) -> Option<Address> {
        let word = self.line.next("an address", self.problems)?;
        let is_not = word.get_ref() == "not";
        let word = match is_not {
            true => self.line.next("an address", self.problems)?,
            false => word,
        };
        let word = self.alternatives(word)?;
        Some(Address { word, is_not })
    }

    /// Returns the words of an or-block, `{ 192.0.2.1 or 192.0.2.2 }`, as a list with commas. Every other
    /// word stays as it is.
    fn alternatives(&mut self, first: Word) -> Option<Word> {
        if !first.get_ref().starts_with('{') {
            return Some(first);
        }
        let mut location = first.span();
        let mut text = first.get_ref().clone();
        while !text.ends_with('}') {
            let word = self.line.next("`}`", self.problems)?;
            location.end = word.span().end;
            text.push(' ');
            text.push_str(word.get_ref());
        }
        let words = text.trim_matches(['{', '}']).split_whitespace();
        let parts: Vec<&str> = words.filter(|word| *word != "or").collect();
        Some(Spanned::new(location, parts.join(",")))
    }

    fn option(&mut self, word: &Word) -> Option<()> {
        match word.get_ref().as_str() {
            // The tree sees frames. Rules for packets apply to those that are IP.
            "layer2" => Some(()),
            "mac-type" => {
                let value = self.value(word)?;
                self.each(
                    "ethertype",
                    &value,
                    "write names or numbers like 0x888e",
                    |name| {
                        let number = name
                            .strip_prefix("0x")
                            .map(|digits| u16::from_str_radix(digits, 16));
                        Some(match (name, number) {
                            ("ip" | "ipv4", _) => Given::Text("ipv4".to_owned()),
                            ("ipv6", _) => Given::Text("ipv6".to_owned()),
                            ("arp", _) => Given::Integer(0x0806),
                            ("rarp", _) => Given::Integer(0x8035),
                            ("vlan", _) => Given::Integer(0x8100),
                            (_, Some(Ok(number))) => Given::Integer(number.into()),
                            _ => return None,
                        })
                    },
                )
            }
            "not" => self.negated(word),
            "in" => self.direction(word, Direction::In),
            "out" => self.direction(word, Direction::Out),
            "via" => self.interface(word),
            "xmit" => {
                // A packet that leaves a bridge by one of its interfaces has come in by the other one.
                if self.is_by("recv") {
                    (self.rule.direction, self.rule.interface) = (None, None);
                }
                self.direction(word, Direction::Out)?;
                self.interface(word)
            }
            "recv" if self.is_by("xmit") => self.value(word).map(|_| ()),
            "recv" => {
                self.direction(word, Direction::In)?;
                self.interface(word)
            }
            "dscp" => {
                let value = self.value(word)?;
                self.each("dscp", &value, "", |name| {
                    match name.to_ascii_lowercase().as_str() {
                        "be" => Some(Given::Integer(0)),
                        "va" => Some(Given::Integer(44)),
                        _ => Some(match name.parse() {
                            Ok(number) => Given::Integer(number),
                            Err(_) => Given::Text(name.to_owned()),
                        }),
                    }
                })
            }
            "iptos" => {
                let value = self.value(word)?;
                self.type_of_service(&value)
            }
            "ipversion" => {
                let value = self.value(word)?;
                let family = match value.get_ref().as_str() {
                    "4" => "ipv4",
                    "6" => "ipv6",
                    _ => return self.refuse(&value, "such a version", "write 4 or 6"),
                };
                self.all("ethertype", &value, Given::Text(family.to_owned()))
            }
            "proto" => {
                let value = self.value(word)?;
                self.protocol(&value)
            }
            "src-ip" | "dst-ip" => {
                let value = self.address()?;
                let key = if word.get_ref() == "src-ip" {
                    "source"
                } else {
                    "destination"
                };
                self.addresses(key, &value)
            }
            "src-port" | "dst-port" => {
                let value = self.value(word)?;
                let key = if word.get_ref() == "src-port" {
                    "source_port"
                } else {
                    "destination_port"
                };
                self.ports(key, &value)
            }
            "tcpflags" => {
                let value = self.value(word)?;
                let Some((set, compared)) = tcp_flags(value.get_ref()) else {
                    return self.refuse(&value, "such flags", FLAGS);
                };
                self.all(
                    "tcp_flags",
                    &value,
                    Given::Text(format!("{set:#x}/{compared:#x}")),
                )
            }
            // ipfw(8): the first segment of a connection, and every later one.
            "setup" => self.flags(word, &["0x02/0x12"]),
            "established" => self.flags(word, &["0x10/0x10", "0x04/0x04"]),
            "iplen" => {
                let value = self.value(word)?;
                self.ranges("length", &value, LENGTHS)
            }
            // A comment, up to the end of the line.
            "//" => {
                while self.line.take().is_some() {}
                Some(())
            }
            name => {
                let message = format!("`{name}` of a rule can't be carried over");
                let help = suggest::remedy(
                    name,
                    "understood are",
                    KEYWORDS.into_iter().filter(|known| *known != "//"),
                );
                self.problems.add(word.span(), message, "unknown here", help);
                None
            }
        }
    }

    /// Whether the direction comes from this word.
    fn is_by(&self, word: &str) -> bool {
        let expected = if word == "xmit" {
            Direction::Out
        } else {
            Direction::In
        };
        let length = word.len();
        let direction = self.rule.direction.as_ref();
        direction.is_some_and(|found| *found.get_ref() == expected && found.span().len() == length)
    }

    /// Parses an option after `not`.
    fn negated(&mut self, not: &Word) -> Option<()> {
        let word = self.value(not)?;
        match word.get_ref().as_str() {
            "src-ip" | "dst-ip" => {
                let address = self.address()?;
                let key = if word.get_ref() == "src-ip" {
                    "source"
                } else {
                    "destination"
                };
                let is_not = !address.is_not;
                self.addresses(key, &Address { is_not, ..address })
            }
            // One of the flags differs: a filter for each.
            "tcpflags" => {
                let value = self.value(&word)?;
                self.each("tcp_flags", &value, FLAGS, |flag| {
                    let (set, compared) = tcp_flags(flag)?;
                    Some(Given::Text(format!("{:#x}/{compared:#x}", !set & compared)))
                })
            }
            // The only list that rules exclude: nothing but IP passes.
            "mac-type" => {
                let value = self.value(&word)?;
                match value.get_ref().as_str() {
                    "ip,ipv6" | "ipv6,ip" => {
                        self.rule.is_for_others = true;
                        Some(())
                    }
                    _ => self.refuse(&word, "such a `not`", "write a rule for each"),
                }
            }
            _ => self.refuse(
                &word,
                "a `not` of this",
                "write the conditions of the other packets",
            ),
        }
    }

    /// Adds the condition that the flags of TCP are one of these.
    fn flags(&mut self, word: &Word, flags: &[&str]) -> Option<()> {
        let given = flags.iter().map(|text| Given::Text((*text).to_owned()));
        self.add("tcp_flags", word, given.collect())
    }

    /// Makes the rule one that matches nothing, and says why.
    fn nothing(&mut self, word: &Word, why: &str) -> Option<()> {
        let text = format!("this rule matches nothing: {why}");
        self.notes.add(word.span(), text);
        self.rule.alternatives.clear();
        Some(())
    }

    fn direction(&mut self, word: &Word, direction: Direction) -> Option<()> {
        if self
            .rule
            .direction
            .as_ref()
            .is_some_and(|other| *other.get_ref() != direction)
        {
            let help = "remove one of the two: a tree is for one direction";
            return self.refuse(word, "a second direction", help);
        }
        self.rule.direction = Some(Spanned::new(word.span(), direction));
        Some(())
    }

    fn interface(&mut self, option: &Word) -> Option<()> {
        let name = self.value(option)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if !name.get_ref().chars().all(is_name) || prefix(name.get_ref()).is_some() || name.get_ref() == "any"
        {
            return self.refuse(
                &name,
                "interfaces other than by name",
                "write the name of one interface",
            );
        }
        if self.rule.interface.is_some() {
            return self.refuse(&name, "a second interface", "remove one of the two");
        }
        self.rule.interface = Some(name);
        Some(())
    }

    fn protocol(&mut self, word: &Word) -> Option<()> {
        match word.get_ref().to_ascii_lowercase().as_str() {
            "ip" | "all" | "any" => Some(()),
            "ip4" | "ipv4" => self.all("ethertype", word, Given::Text("ipv4".to_owned())),
            "ip6" | "ipv6" => self.all("ethertype", word, Given::Text("ipv6".to_owned())),
            "ipv6-icmp" | "icmp6" => self.all("protocol", word, Given::Text("icmpv6".to_owned())),
            "not" => self.refuse(word, "a `not` here", "write a rule for each"),
            "pfsync" => self.all("protocol", word, Given::Integer(240)),
            "carp" | "vrrp" => self.all("protocol", word, Given::Integer(112)),
            list => {
                let given = list.split(',').map(|name| match name.parse() {
                    Ok(number) => Given::Integer(number),
                    Err(_) => Given::Text(name.to_owned()),
                });
                self.add("protocol", word, given.collect())
            }
        }
    }

    fn type_of_service(&mut self, word: &Word) -> Option<()> {
        let (mut value, mut mask) = (0u8, 0u8);
        for name in word.get_ref().split(',') {
            let (name, is_set) = name.strip_prefix('!').map_or((name, true), |name| (name, false));
            let bit = match name {
                "lowdelay" => 0x10,
                "throughput" => 0x08,
                "reliability" => 0x04,
                "mincost" => 0x02,
                _ => {
                    let help = "known are lowdelay, throughput, reliability, mincost, each optionally with a \
                        `!` before it";
                    return self.refuse(word, "such a type of service", help);
                }
            };
            mask |= bit;
            value |= if is_set { bit } else { 0 };
        }
        self.all(
            "traffic_class",
            word,
            Given::Text(format!("{value:#x}/{mask:#x}")),
        )
    }

    fn addresses(&mut self, key: &str, address: &Address) -> Option<()> {
        let Address { word, is_not } = address;
        match word.get_ref().as_str() {
            "any" if *is_not => return self.nothing(word, "`not any` is no address"),
            "any" => return Some(()),
            // Packets of the firewall itself do not pass a bridge. All others match `not me`.
            "me" | "me6" if *is_not => return Some(()),
            "me" | "me6" => {
                let why = "a bridge has no address; write the firewall's if its packets pass here";
                return self.nothing(word, why);
            }
            _ => {}
        }
        let mut prefixes = Vec::new();
        for text in word.get_ref().split(',') {
            match text.strip_prefix("table(").map(|rest| rest.strip_suffix(')')) {
                None => match with_mask(text) {
                    Some(prefix) => prefixes.push(prefix),
                    None => return self.refuse(word, "a list like this", ADDRESSES),
                },
                Some(name) => {
                    let Some(addresses) = name.and_then(|name| self.tables.addresses(name)) else {
                        let help =
                            "fill it with a line like table 1 add 192.0.2.0/24; values can't be compared";
                        return self.refuse(word, "a table that has no lines", help);
                    };
                    prefixes.extend(addresses.iter().filter_map(|address| prefix(address)));
                }
            }
        }
        let every = prefixes.iter().any(|prefix| prefix.length() == 0);
        if *is_not {
            if every {
                return self.nothing(word, "`not` of all addresses is none");
            }
            return self.others(key, word, &prefixes);
        }
        if every {
            return Some(());
        }
        if prefixes.is_empty() {
            return self.nothing(word, "the table is empty");
        }
        let given = prefixes.iter().map(|prefix| Given::Text(prefix.to_string()));
        self.add(key, word, given.collect())
    }

    /// Adds the condition that an address is in none of these prefixes. It is that it is in one of the
    /// prefixes that cover all other addresses of its family, or of the other family.
    fn others(&mut self, key: &str, word: &Word, prefixes: &[Prefix]) -> Option<()> {
        let mut values = Vec::new();
        for family in [Family::V4, Family::V6] {
            values.extend(
                complement(prefixes, family)
                    .iter()
                    .map(|prefix| Given::Text(prefix.to_string())),
            );
        }
        self.add(key, word, values)
    }

    fn ports(&mut self, key: &str, word: &Word) -> Option<()> {
        if word.get_ref() == "any" {
            return Some(());
        }
        self.ranges(key, word, PORTS)
    }

    /// Adds a condition on a number: numbers and ranges, separated by commas.
    fn ranges(&mut self, key: &str, word: &Word, help: &str) -> Option<()> {
        let number = |text: &str| text.parse::<u16>().ok();
        self.each(key, word, help, |text| match text.split_once('-') {
            Some((first, last)) => {
                let (first, last) = number(first).zip(number(last))?;
                (first <= last).then(|| Given::Text(format!("{first}-{last}")))
            }
            None => Some(Given::Integer(number(text)?.into())),
        })
    }

    /// Adds a condition to all alternatives.
    fn all(&mut self, key: &str, word: &Word, given: Given) -> Option<()> {
        self.add(key, word, vec![given])
    }

    /// Replaces each alternative by one for each item of a list separated by commas. `help` is the remedy for
    /// an item that is not understood.
    fn each(
        &mut self,
        key: &str,
        word: &Word,
        help: &str,
        read: impl Fn(&str) -> Option<Given>,
    ) -> Option<()> {
        let values: Option<Vec<Given>> = word.get_ref().split(',').map(read).collect();
        match values {
            Some(values) => self.add(key, word, values),
            None => self.refuse(word, "a list like this", help),
        }
    }

    fn add(&mut self, key: &str, word: &Word, values: Vec<Given>) -> Option<()> {
        let alternatives = &self.rule.alternatives;
        if alternatives.is_empty() {
            return Some(());
        }
        if alternatives
            .iter()
            .any(|one| one.iter().any(|(other, _)| other.get_ref() == key))
        {
            return self.refuse(word, "a second condition of this kind", "remove one of the two");
        }
        if alternatives.len() * values.len() > MOST {
            let message = format!("the rule would need more than {MOST} filters");
            self.problems.add(
                word.span(),
                message,
                "too many",
                "use prefixes and ranges, or write several rules",
            );
            return None;
        }
        let with = |one: &Vec<Written>, value: &Given| {
            let mut one = one.clone();
            one.push(setting(&word.span(), key, value.clone()));
            one
        };
        let product = alternatives
            .iter()
            .flat_map(|one| values.iter().map(move |value| with(one, value)));
        self.rule.alternatives = product.collect();
        Some(())
    }
}

/// An address, or a list of addresses, in a rule.
struct Address {
    word: Word,
    is_not: bool,
}

/// Parses an address in ipfw's notation: with a length, or with a mask after a colon.
fn with_mask(text: &str) -> Option<Prefix> {
    let with_length = || {
        let (address, mask) = text.split_once(':')?;
        let mask = u32::from(mask.parse::<std::net::Ipv4Addr>().ok()?);
        let length = mask.leading_ones();
        (mask.checked_shl(length).unwrap_or(0) == 0).then(|| format!("{address}/{length}"))
    };
    prefix(text).or_else(|| prefix(&with_length()?))
}

/// Reads flags of TCP, like `syn,!ack`: those that must be set, and all that are compared.
fn tcp_flags(text: &str) -> Option<(u8, u8)> {
    text.split(',').try_fold((0, 0), |(set, compared), word| {
        let (name, is_set) = match word.strip_prefix('!') {
            Some(name) => (name, false),
            None => (word, true),
        };
        let bit = match name {
            "fin" => 0x01,
            "syn" => 0x02,
            "rst" => 0x04,
            "psh" => 0x08,
            "ack" => 0x10,
            "urg" => 0x20,
            _ => return None,
        };
        Some((set | if is_set { bit } else { 0 }, compared | bit))
    })
}

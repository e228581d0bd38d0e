//! The keys of `u32` filters: bytes of the packet with masks, at fixed places. Bytes of header fields become
//! conditions on these fields; all others become conditions on bytes.
//!
//! Offsets count from the IP header. `nexthdr` is the same place, unless a link to another table has computed
//! where the next header begins (`u32_classify` in cls_u32.c): a `match tcp dst` in a filter without such a
//! link compares bytes of the IP header. Linux 6.18 does so.

use std::collections::BTreeMap;
use std::ops::Range;

use fairgate::flow::HeaderBytes;
use fairgate_config::language::{Given, Problems, Written};
use toml::Spanned;

use super::Reader;
use crate::script::{Word, number, setting};

/// What offsets count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Header {
    Network,
    Transport,
}

/// A place in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    pub(super) header: Header,
    pub(super) offset: i32,
}

impl Spot {
    pub(super) const IP: Spot = Spot {
        header: Header::Network,
        offset: 0,
    };

    pub(super) fn plus(self, offset: i32) -> Spot {
        Spot {
            offset: self.offset.saturating_add(offset),
            ..self
        }
    }
}

/// A match of a filter.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) at: i32,
    /// Whether the offset counts from the next header.
    pub(super) is_of_next: bool,
    /// The number of bytes, up to 4.
    pub(super) width: usize,
    pub(super) value: u32,
    pub(super) mask: u32,
    /// The IP version of the field's name.
    pub(super) version: Option<&'static str>,
    /// Whether the field is named as a port.
    pub(super) is_port: bool,
    pub(super) location: Range<usize>,
}

impl Key {
    fn of_port(self) -> Key {
        Key {
            is_port: true,
            ..self
        }
    }
}

/// A byte with the bits that must match.
#[derive(Clone, Debug, Default)]
struct Byte {
    value: u8,
    mask: u8,
    is_port: bool,
    /// The location of the match.
    location: Range<usize>,
}

/// The bytes that a filter and the filters that lead to it compare.
#[derive(Clone, Debug, Default)]
pub(super) struct Compared(BTreeMap<Spot, Byte>);

impl Compared {
    /// Whether nothing is compared.
    pub(super) fn is_empty(&self) -> bool {
        self.0.values().all(|byte| byte.mask == 0)
    }

    /// Adds a key, whose bytes begin at `spot`. Returns false if it contradicts another one.
    pub(super) fn add(&mut self, key: &Key, spot: Spot) -> bool {
        let (value, mask) = ((key.value & key.mask).to_be_bytes(), key.mask.to_be_bytes());
        for index in 0..key.width {
            let (value, mask) = (value[4 - key.width + index], mask[4 - key.width + index]);
            if mask == 0 {
                continue;
            }
            let byte = self.0.entry(spot.plus(index as i32)).or_default();
            if (byte.value ^ value) & byte.mask & mask != 0 {
                return false;
            }
            byte.value |= value;
            byte.mask |= mask;
            byte.is_port |= key.is_port;
            byte.location = key.location.clone();
        }
        true
    }

    fn get(&self, header: Header, offset: i32) -> (u8, u8) {
        let byte = self.0.get(&Spot { header, offset });
        byte.map_or((0, 0), |byte| (byte.value, byte.mask))
    }

    fn take(&mut self, header: Header, offset: i32) -> Range<usize> {
        let byte = self.0.remove(&Spot { header, offset });
        byte.map_or(0..0, |byte| byte.location)
    }

    /// Returns the conditions for packets of an IP version; `None`: of any protocol.
    pub(super) fn conditions(mut self, version: Option<&str>, problems: &mut Problems) -> Vec<Written> {
        let mut entries = Vec::new();
        match version {
            Some("ipv4") => self.of_v4(&mut entries),
            Some("ipv6") => self.of_v6(&mut entries),
            _ => {}
        }
        self.rest(&mut entries, problems);
        entries
    }

    fn of_v4(&mut self, entries: &mut Vec<Written>) {
        let (value, mask) = self.get(Header::Network, 1);
        if mask != 0 {
            let location = self.take(Header::Network, 1);
            entries.extend(traffic_class(&location, value, mask));
        }
        self.version_nibble(4);
        let protocol = self.protocol(9, entries);
        self.address("source", 12, 4, entries);
        self.address("destination", 16, 4, entries);
        self.ports(Header::Network, 20, protocol, entries);
        self.ports(Header::Transport, 0, protocol, entries);
    }

    fn of_v6(&mut self, entries: &mut Vec<Written>) {
        let ((high, high_mask), (low, low_mask)) =
            (self.get(Header::Network, 0), self.get(Header::Network, 1));
        let mask = high_mask << 4 | low_mask >> 4;
        if mask != 0 {
            let value = (high << 4 | low >> 4) & mask;
            let spot = |offset| Spot {
                header: Header::Network,
                offset,
            };
            let mut location = 0..0;
            for (offset, bits) in [(0, 0x0f), (1, 0xf0)] {
                if let Some(byte) = self.0.get_mut(&spot(offset)).filter(|byte| byte.mask & bits != 0) {
                    byte.mask &= !bits;
                    byte.value &= !bits;
                    location = byte.location.clone();
                }
            }
            entries.extend(traffic_class(&location, value, mask));
        }
        self.version_nibble(6);
        let protocol = self.protocol(6, entries);
        self.address("source", 8, 16, entries);
        self.address("destination", 24, 16, entries);
        self.ports(Header::Network, 40, protocol, entries);
    }

    /// Removes a comparison with the IP version, which the filter's protocol implies.
    fn version_nibble(&mut self, version: u8) {
        let spot = Spot::IP;
        if let Some(byte) = self.0.get_mut(&spot)
            && byte.value & 0xf0 == version << 4 & byte.mask
        {
            byte.mask &= 0x0f;
            byte.value &= 0x0f;
        }
    }

    fn protocol(&mut self, at: i32, entries: &mut Vec<Written>) -> Option<u8> {
        let (value, mask) = self.get(Header::Network, at);
        (mask == 0xff).then(|| {
            let location = self.take(Header::Network, at);
            entries.push(setting(&location, "protocol", Given::Integer(value.into())));
            value
        })
    }

    /// Adds a condition on an address, if the mask is a prefix.
    fn address(&mut self, key: &str, at: i32, width: i32, entries: &mut Vec<Written>) {
        let (mut value, mut mask) = (0u128, 0u128);
        for offset in at..at + width {
            let byte = self.get(Header::Network, offset);
            value = value << 8 | u128::from(byte.0);
            mask = mask << 8 | u128::from(byte.1);
        }
        let free = !mask & (u128::MAX >> (128 - 8 * width));
        if mask == 0 || free & free.wrapping_add(1) != 0 {
            return;
        }
        let address: std::net::IpAddr = match width {
            4 => std::net::Ipv4Addr::from(value as u32).into(),
            _ => std::net::Ipv6Addr::from(value).into(),
        };
        let text = format!("{address}/{}", mask.count_ones());
        let locations: Vec<_> = (at..at + width)
            .filter(|offset| self.get(Header::Network, *offset).1 != 0)
            .collect();
        let location = locations
            .into_iter()
            .map(|offset| self.take(Header::Network, offset))
            .last()
            .unwrap_or(0..0);
        entries.push(setting(&location, key, Given::Text(text)));
    }

    /// Adds conditions on ports, if both bytes are compared and the mask is a range. ICMP has none there.
    fn ports(&mut self, header: Header, at: i32, protocol: Option<u8>, entries: &mut Vec<Written>) {
        if matches!(protocol, Some(protocol) if !matches!(protocol, 6 | 17 | 33 | 132 | 136)) {
            return;
        }
        for (key, at) in [("source_port", at), ("destination_port", at + 2)] {
            let (high, low) = (self.get(header, at), self.get(header, at + 1));
            let both = |high: u8, low: u8| u16::from_be_bytes([high, low]);
            let (value, mask) = (both(high.0, low.0), both(high.1, low.1));
            let free = !mask;
            let spot = Spot { header, offset: at };
            let is_named = self.0.get(&spot).is_some_and(|byte| byte.is_port);
            // A mask of a single byte may be meant for the type of an ICMP message.
            let is_whole = low.1 != 0 || protocol.is_some() || is_named;
            let is_port = mask != 0 && free & free.wrapping_add(1) == 0 && is_whole;
            if !is_port {
                continue;
            }
            let location = self.take(header, at);
            self.take(header, at + 1);
            let given = match free {
                0 => Given::Integer(value.into()),
                _ => Given::Text(format!("{value}-{}", value | free)),
            };
            entries.push(setting(&location, key, given));
        }
    }

    /// Adds conditions on all other bytes.
    fn rest(&mut self, entries: &mut Vec<Written>, problems: &mut Problems) {
        let mut conditions: Vec<Spanned<Given>> = Vec::new();
        let mut bytes = std::mem::take(&mut self.0)
            .into_iter()
            .filter(|(_, byte)| byte.mask != 0)
            .peekable();
        while let Some((spot, byte)) = bytes.next() {
            let mut run = vec![byte];
            while run.len() < 4
                && let Some((_, next)) = bytes.next_if(|(next, _)| *next == spot.plus(run.len() as i32))
            {
                run.push(next);
            }
            let location = run[0].location.clone();
            let (low, most) = match spot.header {
                Header::Network => (-14, HeaderBytes::REACH as i32),
                Header::Transport => (0, 64),
            };
            if spot.offset < low || spot.offset + run.len() as i32 > most {
                let message = "the bytes at this offset are out of reach";
                let help = format!(
                    "match bytes {low} to {} of the IP packet; before it is the Ethernet header",
                    most - 1
                );
                problems.add(location, message, "out of reach", help);
                continue;
            }
            let mut at = 0;
            while at < run.len() {
                let width = match run.len() - at {
                    4.. => 4,
                    2..4 => 2,
                    _ => 1,
                };
                let part = &run[at..at + width];
                let number = |bits: fn(&Byte) -> u8| {
                    part.iter()
                        .fold(0u32, |number, byte| number << 8 | u32::from(bits(byte)))
                };
                let (value, mask) = (number(|byte| byte.value), number(|byte| byte.mask));
                let offset = spot.offset + at as i32;
                let place = match spot.header {
                    Header::Network => format!("network{offset:+}"),
                    Header::Transport => format!("transport+{offset}"),
                };
                let mask = match mask == u32::MAX >> (32 - 8 * width) {
                    true => String::new(),
                    false => format!("/{mask:#x}"),
                };
                let text = format!("{place} u{} {value:#x}{mask}", 8 * width);
                conditions.push(Spanned::new(part[0].location.clone(), Given::Text(text)));
                at += width;
            }
        }
        if let Some(first) = conditions.first() {
            let location = first.span();
            entries.push(setting(&location, "bytes", Given::List(conditions)));
        }
    }
}

/// Returns a condition on some bits of the traffic class.
pub(super) fn traffic_class(location: &Range<usize>, value: u8, mask: u8) -> Option<Written> {
    let value = value & mask;
    match mask {
        0 => None,
        0xfc => Some(setting(location, "dscp", Given::Integer((value >> 2).into()))),
        _ => Some(setting(
            location,
            "traffic_class",
            Given::Text(format!("{value:#x}/{mask:#x}")),
        )),
    }
}

impl<'f> Reader<'f, '_> {
    /// Reads what follows `match`, as iproute2's f_u32.c does.
    pub(super) fn keys(&mut self, keyword: &'f Word, keys: &mut Vec<Key>) {
        let Some(kind) = self.value(keyword) else { return };
        let mut named =
            |reader: &mut Reader<'f, '_>, version, is_of_next, fields: &[(&'static str, usize, i32)]| {
                let Some(field) = reader.value(kind) else { return };
                let name = field.get_ref().as_str();
                match fields.iter().find(|(known, ..)| *known == name) {
                    Some((_, width, at)) => keys.extend(reader.key(field, *width, *at, is_of_next, version)),
                    None => unknown(field, fields.iter().map(|(known, ..)| *known), reader),
                }
            };
        match kind.get_ref().as_str() {
            "u32" => keys.extend(self.key(kind, 4, 0, false, None)),
            "u16" => keys.extend(self.key(kind, 2, 0, false, None)),
            "u8" => keys.extend(self.key(kind, 1, 0, false, None)),
            "ip" => self.ip_field(kind, keys),
            "ip6" => self.ip6_field(kind, keys),
            "tcp" | "udp" => named(self, None, true, &[("src", 2, 0), ("dst", 2, 2)]),
            "icmp" => named(self, None, true, &[("type", 1, 0), ("code", 1, 1)]),
            "ether" => self.ether(kind, keys),
            "mark" => self.mark_key(kind),
            _ => unknown(
                kind,
                [
                    "ip", "ip6", "tcp", "udp", "icmp", "ether", "mark", "u8", "u16", "u32",
                ],
                self,
            ),
        }
    }

    fn ip_field(&mut self, kind: &'f Word, keys: &mut Vec<Key>) {
        let Some(field) = self.value(kind) else { return };
        let version = Some("ipv4");
        let fixed = |value: u32, mask: u32| {
            Some(Key {
                at: 6,
                is_of_next: false,
                width: 2,
                value,
                mask,
                version,
                is_port: false,
                location: field.span(),
            })
        };
        let key = match field.get_ref().as_str() {
            name @ ("src" | "dst") => {
                if let Some(address) = self.value(field) {
                    self.address_keys(address, if name == "src" { 12 } else { 16 }, true, keys);
                }
                return;
            }
            "sport" => self.key(field, 2, 20, false, version).map(Key::of_port),
            "dport" => self.key(field, 2, 22, false, version).map(Key::of_port),
            "icmp_type" => self.key(field, 1, 20, false, version),
            "icmp_code" => self.key(field, 1, 21, false, version),
            "protocol" => self.key(field, 1, 9, false, version),
            "tos" | "dsfield" | "precedence" => self.key(field, 1, 1, false, version),
            "ihl" => self.key(field, 1, 0, false, version),
            "nofrag" => fixed(0, 0x3fff),
            "firstfrag" => fixed(0x2000, 0x3fff),
            "df" => fixed(0x4000, 0x4000),
            "mf" => fixed(0x2000, 0x2000),
            _ => {
                let known = [
                    "src",
                    "dst",
                    "sport",
                    "dport",
                    "protocol",
                    "tos",
                    "dsfield",
                    "ihl",
                    "nofrag",
                    "firstfrag",
                    "df",
                    "mf",
                    "icmp_type",
                    "icmp_code",
                ];
                return unknown(field, known, self);
            }
        };
        keys.extend(key);
    }

    fn ip6_field(&mut self, kind: &'f Word, keys: &mut Vec<Key>) {
        let Some(field) = self.value(kind) else { return };
        let version = Some("ipv6");
        let key = match field.get_ref().as_str() {
            name @ ("src" | "dst") => {
                if let Some(address) = self.value(field) {
                    self.address_keys(address, if name == "src" { 8 } else { 24 }, false, keys);
                }
                return;
            }
            "sport" => self.key(field, 2, 40, false, version).map(Key::of_port),
            "dport" => self.key(field, 2, 42, false, version).map(Key::of_port),
            "icmp_type" => self.key(field, 1, 40, false, version),
            "icmp_code" => self.key(field, 1, 41, false, version),
            "protocol" => self.key(field, 1, 6, false, version),
            "flowlabel" => self.key(field, 4, 0, false, version).map(|key| Key {
                value: key.value & 0xf_ffff,
                mask: key.mask & 0xf_ffff,
                ..key
            }),
            "priority" | "dsfield" => {
                let Some(key) = self.key(field, 1, 0, false, version) else {
                    return;
                };
                Some(Key {
                    width: 4,
                    value: key.value << 20,
                    mask: key.mask << 20,
                    ..key
                })
            }
            _ => {
                let known = [
                    "src",
                    "dst",
                    "sport",
                    "dport",
                    "protocol",
                    "priority",
                    "flowlabel",
                    "icmp_type",
                    "icmp_code",
                ];
                return unknown(field, known, self);
            }
        };
        keys.extend(key);
    }

    /// Reads an address or a prefix of one IP version. As in tc, bits after the prefix are ignored.
    fn address_keys(&mut self, word: &'f Word, at: i32, is_v4: bool, keys: &mut Vec<Key>) {
        if matches!(word.get_ref().as_str(), "any" | "all" | "default") {
            return;
        }
        let prefix = crate::script::prefix(word.get_ref());
        let Some(prefix) = prefix.filter(|prefix| prefix.address().is_ipv4() == is_v4) else {
            let help = match is_v4 {
                true => "write it as in 192.0.2.1 or 192.0.2.0/24",
                false => "write it as in 2001:db8::1 or 2001:db8::/32",
            };
            return self.refuse(word, "an address like this", help);
        };
        let (octets, version) = match prefix.address() {
            std::net::IpAddr::V4(address) => (address.octets().to_vec(), "ipv4"),
            std::net::IpAddr::V6(address) => (address.octets().to_vec(), "ipv6"),
        };
        let length = u32::from(prefix.length());
        for (index, octets) in octets.chunks(4).enumerate() {
            let covered = length.saturating_sub(32 * index as u32).min(32);
            keys.push(Key {
                at: at + 4 * index as i32,
                is_of_next: false,
                width: 4,
                value: u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]),
                mask: if covered == 0 {
                    0
                } else {
                    u32::MAX << (32 - covered)
                },
                version: Some(version),
                is_port: false,
                location: word.span(),
            });
        }
    }

    /// Reads `ether src|dst ADDRESS MASK`.
    fn ether(&mut self, kind: &'f Word, keys: &mut Vec<Key>) {
        let Some(side) = self.value(kind) else { return };
        let at = match side.get_ref().as_str() {
            "src" => -8,
            "dst" => -14,
            _ => return unknown(side, ["src", "dst"], self),
        };
        let Some(word) = self.value(side) else { return };
        let octets = |text: &str| {
            let octets: Option<Vec<u8>> = text
                .split(':')
                .map(|octet| u8::from_str_radix(octet, 16).ok())
                .collect();
            octets.filter(|octets| octets.len() == 6)
        };
        let mask = match self.words.as_slice() {
            [mask, ..] if octets(mask.get_ref()).is_some() => self.words.next(),
            _ => None,
        };
        let mask = mask.map_or(Some(vec![0xff; 6]), |mask| octets(mask.get_ref()));
        let Some((value, mask)) = octets(word.get_ref()).zip(mask) else {
            return self.refuse(
                word,
                "an Ethernet address like this",
                "write it as in 02:00:00:00:00:01",
            );
        };
        let number = |octets: &[u8]| {
            octets
                .iter()
                .fold(0, |number, octet| number << 8 | u32::from(*octet))
        };
        for (part, width) in [(0..4, 4), (4..6, 2)] {
            keys.push(Key {
                at: at + part.start as i32,
                is_of_next: false,
                width,
                value: number(&value[part.clone()]),
                mask: number(&mask[part]),
                version: None,
                is_port: false,
                location: word.span(),
            });
        }
    }

    fn mark_key(&mut self, kind: &'f Word) {
        let value = self.value(kind);
        let mask = value.and_then(|_| self.value(kind));
        let Some((value, mask)) = value.zip(mask) else {
            return;
        };
        match number(value.get_ref()).zip(number(mask.get_ref())) {
            Some((bits, bits_mask)) => {
                let text = format!("{bits:#x}/{bits_mask:#x}");
                self.add("mark", value.span().start..mask.span().end, Given::Text(text));
            }
            None => self.refuse(
                value,
                "a mark like this",
                "write a number and a mask: match mark 0x10 0xf0",
            ),
        }
    }

    /// Reads a value and a mask, and perhaps `at` and an offset.
    fn key(
        &mut self,
        option: &'f Word,
        width: usize,
        at: i32,
        is_of_next: bool,
        version: Option<&'static str>,
    ) -> Option<Key> {
        let (value, mask, location) = value_and_mask(option, self)?;
        let (mut at, mut is_of_next) = (at, is_of_next);
        if let [word, ..] = self.words.as_slice()
            && word.get_ref() == "at"
        {
            self.words.next();
            let word = self.value(word)?;
            (at, is_of_next) = match offset(word.get_ref()) {
                Some(offset) => offset,
                None => {
                    let help = "write an offset in bytes from the start of the IP header, or nexthdr+0";
                    self.refuse(word, "an offset like this", help);
                    return None;
                }
            };
        }
        let most = u32::MAX >> (32 - 8 * width as u32);
        if value > most || mask > most {
            let message = format!("{width} byte(s) hold at most {most:#x}");
            let help = "write a smaller number, or match u32";
            self.problems.add(location, message, "too large", help);
            return None;
        }
        // tc packs each key into a word of four bytes. It silently reads u16 at an odd offset one byte later.
        if at.rem_euclid(width as i32) != 0 {
            let message =
                format!("offset {at} is not a multiple of {width}, as a match of {width} bytes needs");
            let help = "write a match for each byte";
            self.problems.add(location, message, "not aligned", help);
            return None;
        }
        Some(Key {
            at,
            is_of_next,
            width,
            value,
            mask,
            version,
            is_port: false,
            location,
        })
    }
}

/// Reads `at`'s offset: a number, or `nexthdr+N`.
pub(super) fn offset(text: &str) -> Option<(i32, bool)> {
    let (text, is_of_next) = match text.strip_prefix("nexthdr+") {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (digits, is_negative) = match text.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let offset = number(digits)?.min(1 << 16) as i32;
    Some((if is_negative { -offset } else { offset }, is_of_next))
}

/// Reads the two numbers after `option`: the value in C's notation, the mask in hexadecimal.
pub(super) fn value_and_mask<'f>(
    option: &'f Word,
    reader: &mut Reader<'f, '_>,
) -> Option<(u32, u32, Range<usize>)> {
    let value = reader.value(option)?;
    let mask = reader.value(option)?;
    let bits = number(value.get_ref());
    let location = value.span().start..mask.span().end;
    match bits.zip(mask_of(mask.get_ref())) {
        Some((bits, mask)) => Some((bits, mask, location)),
        None => {
            let message = format!(
                "`{} {}` is not a value and a mask",
                value.get_ref(),
                mask.get_ref()
            );
            let help = "write a number and, in hexadecimal, the mask of the bits that count: 22 0xffff";
            reader
                .problems
                .add(location, message, "expected two numbers", help);
            None
        }
    }
}

/// Reads a mask, which is hexadecimal with and without `0x`.
pub(super) fn mask_of(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches("0x");
    match digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => u32::from_str_radix(digits, 16).ok(),
        false => None,
    }
}

fn unknown(word: &Word, known: impl IntoIterator<Item = &'static str>, reader: &mut Reader<'_, '_>) {
    let name = word.get_ref();
    let message = format!("a match on `{name}` can't be carried over");
    let help = fairgate_config::suggest::remedy(name, "understood are", known);
    reader.problems.add(word.span(), message, "unknown here", help);
    reader.words = [].iter();
}

//! Translates `u32` filters: bytes of the packet with masks. The bytes are collected as in the kernel, and
//! then mapped to header fields.

use std::ops::Range;

use fairgate_config::language::Given;

use super::{Ethertype, Reader};
use crate::script::{Word, number};

/// The number of bytes from the start of the IP header that can be matched: IPv6, and the ports after it.
const REACH: usize = 44;

/// A byte with the bits that must match.
#[derive(Clone, Default)]
struct Byte {
    value: u8,
    mask: u8,
    /// The location of the match.
    location: Range<usize>,
}

struct Selector {
    header: Vec<Byte>,
    /// The bytes after the IP header, independent of its length: the ports.
    transport: Vec<Byte>,
    /// The IP version of the field names, and the location of a match with such a name.
    version: Option<(&'static str, Range<usize>)>,
}

pub(super) fn read(reader: &mut Reader<'_, '_>) {
    let mut selector = Selector {
        header: vec![Byte::default(); REACH],
        transport: vec![Byte::default(); 4],
        version: None,
    };
    while let Some(word) = reader.words.next() {
        match word.get_ref().as_str() {
            "match" => selector.read_match(word, reader),
            _ => reader.common(word, &["match"]),
        }
    }
    selector.convert(reader);
}

/// The offset of bytes in a packet.
#[derive(Clone, Copy)]
enum Offset {
    Header(i32),
    Transport(i32),
}

impl Selector {
    fn read_match(&mut self, keyword: &Word, reader: &mut Reader<'_, '_>) {
        let Some(kind) = reader.value(keyword) else { return };
        match kind.get_ref().as_str() {
            "u32" => self.numbers(kind, 4, Offset::Header(0), reader),
            "u16" => self.numbers(kind, 2, Offset::Header(0), reader),
            "u8" => self.numbers(kind, 1, Offset::Header(0), reader),
            "ip" => self.field(kind, "ipv4", reader),
            "ip6" => self.field(kind, "ipv6", reader),
            "tcp" | "udp" => {
                let Some(field) = reader.value(kind) else { return };
                match field.get_ref().as_str() {
                    "src" => self.numbers(field, 2, Offset::Transport(0), reader),
                    "dst" => self.numbers(field, 2, Offset::Transport(2), reader),
                    _ => unknown(field, "src, dst", reader),
                }
            }
            "mark" => {
                let value = reader.value(kind);
                let mask = value.and_then(|_| reader.value(kind));
                let Some((value, mask)) = value.zip(mask) else {
                    return;
                };
                match number(value.get_ref()).zip(number(mask.get_ref())) {
                    Some((bits, bits_mask)) => {
                        let text = format!("{bits:#x}/{bits_mask:#x}");
                        reader.add("mark", value.span().start..mask.span().end, Given::Text(text));
                    }
                    None => reader.refuse(
                        value,
                        "a mark like this",
                        "write a number and a mask: match mark 0x10 0xf0",
                    ),
                }
            }
            _ => unknown(kind, "ip, ip6, tcp, udp, mark, u8, u16, u32", reader),
        }
    }

    fn field(&mut self, kind: &Word, version: &'static str, reader: &mut Reader<'_, '_>) {
        if let Some((other, _)) = &self.version
            && *other != version
        {
            reader.refuse(kind, "a match on both IP versions", "write a filter for each");
            return;
        }
        self.version = Some((version, kind.span()));
        let is_v4 = version == "ipv4";
        let Some(field) = reader.value(kind) else { return };
        let at = |v4: i32, v6: i32| Offset::Header(if is_v4 { v4 } else { v6 });
        match field.get_ref().as_str() {
            name @ ("src" | "dst") => {
                let key = if name == "src" { "source" } else { "destination" };
                if let Some(address) = reader.value(field) {
                    reader.prefix(key, address);
                }
            }
            "sport" => self.numbers(field, 2, at(20, 40), reader),
            "dport" => self.numbers(field, 2, at(22, 42), reader),
            "protocol" => self.numbers(field, 1, at(9, 6), reader),
            "tos" | "dsfield" | "precedence" if is_v4 => self.numbers(field, 1, at(1, 0), reader),
            "priority" | "dsfield" if !is_v4 => {
                let Some((value, mask, location)) = value_and_mask(field, reader) else {
                    return;
                };
                if value > 0xff || mask > 0xff {
                    reader.problems.add(
                        location,
                        "a traffic class has 8 bits",
                        "too large",
                        "write it as in 0xb8 0xfc",
                    );
                    return;
                }
                self.require(Offset::Header(0), 4, value << 20, mask << 20, &location, reader);
            }
            _ if is_v4 => unknown(field, "src, dst, sport, dport, protocol, tos, dsfield", reader),
            _ => unknown(field, "src, dst, sport, dport, protocol, priority", reader),
        }
    }

    /// Reads a value and a mask, and perhaps `at` and an offset.
    fn numbers(&mut self, option: &Word, width: usize, offset: Offset, reader: &mut Reader<'_, '_>) {
        let Some((value, mask, location)) = value_and_mask(option, reader) else {
            return;
        };
        let mut offset = offset;
        if reader
            .words
            .as_slice()
            .first()
            .is_some_and(|word| word.get_ref() == "at")
        {
            let Some(at) = reader.words.next() else { return };
            let Some(word) = reader.value(at) else { return };
            let (text, is_transport) = match word.get_ref().strip_prefix("nexthdr+") {
                Some(rest) => (rest, true),
                None => (word.get_ref().as_str(), false),
            };
            offset = match (number(text), is_transport) {
                (Some(number), true) => Offset::Transport(number.min(1 << 16) as i32),
                (Some(number), false) => Offset::Header(number.min(1 << 16) as i32),
                (None, _) => {
                    reader.refuse(
                        word,
                        "an offset like this",
                        "write an offset in bytes from the start of the IP header, or nexthdr+0",
                    );
                    return;
                }
            };
        }
        self.require(offset, width, value, mask, &location, reader);
    }

    fn require(
        &mut self,
        offset: Offset,
        width: usize,
        value: u32,
        mask: u32,
        location: &Range<usize>,
        reader: &mut Reader<'_, '_>,
    ) {
        let most = u32::MAX >> (32 - 8 * width as u32);
        if value > most || mask > most {
            let message = format!("{width} byte(s) hold at most {most:#x}");
            reader.problems.add(
                location.clone(),
                message,
                "too large",
                "write a smaller number, or match u32",
            );
            return;
        }
        let (bytes, at) = match offset {
            Offset::Header(at) => (&mut self.header, at),
            Offset::Transport(at) => (&mut self.transport, at),
        };
        let (value, mask) = ((value & mask).to_be_bytes(), mask.to_be_bytes());
        for index in 0..width {
            let (value, mask) = (value[4 - width + index], mask[4 - width + index]);
            if mask == 0 {
                continue;
            }
            let Some(byte) = bytes.get_mut(at as usize + index) else {
                let message = "the bytes at this offset are not a field that filters support";
                let help = "match addresses, protocol, type of service or ports";
                reader.problems.add(location.clone(), message, "too far", help);
                return;
            };
            if (byte.value ^ value) & byte.mask & mask != 0 {
                let help = "remove one of the two: no packet matches both";
                reader.problems.add(
                    location.clone(),
                    "this contradicts an earlier match",
                    "impossible",
                    help,
                );
                return;
            }
            byte.value |= value;
            byte.mask |= mask;
            byte.location = location.clone();
        }
    }

    /// Converts the bytes to conditions.
    fn convert(mut self, reader: &mut Reader<'_, '_>) {
        // Without bits that must match, a name like `ip` says nothing about the packet.
        if let Some((version, location)) = &self.version
            && self.compares(reader)
        {
            match &reader.outer {
                Some(outer) if outer.is(version) => {}
                Some(outer) if !outer.is_tag() => {
                    let message = format!("fields of {version} in a filter for another protocol");
                    reader.problems.add(
                        location.clone(),
                        message,
                        "never matches",
                        "write protocol ip with ip, and protocol ipv6 with ip6",
                    );
                    return;
                }
                _ => reader.inner = Some(Ethertype::named(version, location.clone())),
            }
        }
        let matched = self
            .header
            .iter()
            .find(|byte| byte.mask != 0)
            .map(|byte| byte.location.clone());
        match (reader.is_of("ipv4"), reader.is_of("ipv6"), matched) {
            (true, ..) => self.convert_v4(reader),
            (_, true, _) => self.convert_v6(reader),
            (_, _, Some(location)) => {
                let message = "the protocol that these bytes belong to is not given";
                reader.problems.add(
                    location,
                    message,
                    "ip or ipv6?",
                    "add protocol ip or protocol ipv6 before `u32`",
                );
            }
            _ => {}
        }
        self.ports(0, reader);
    }

    /// Whether some bit of a packet must match.
    fn compares(&self, reader: &Reader<'_, '_>) -> bool {
        let is_address = |key: &str| matches!(key, "source" | "destination");
        self.header
            .iter()
            .chain(&self.transport)
            .any(|byte| byte.mask != 0)
            || reader.entries.iter().any(|(key, _)| is_address(key.get_ref()))
    }

    fn convert_v4(&mut self, reader: &mut Reader<'_, '_>) {
        let class = std::mem::take(&mut self.header[1]);
        reader.traffic_class(class.location, class.value, class.mask);
        self.protocol(9, reader);
        for (key, at) in [("source", 12), ("destination", 16)] {
            self.address(key, at, 4, reader);
        }
        self.move_ports(20);
        self.nothing_else("IPv4", reader);
    }

    fn convert_v6(&mut self, reader: &mut Reader<'_, '_>) {
        let [high, low] = [0, 1].map(|at| self.header[at].clone());
        let location = if low.mask == 0 {
            high.location.clone()
        } else {
            low.location.clone()
        };
        reader.traffic_class(
            location,
            high.value << 4 | low.value >> 4,
            high.mask << 4 | low.mask >> 4,
        );
        // The filter's protocol implies the version.
        if high.value & high.mask & 0xf0 == 0x60 & high.mask {
            self.header[0].mask = 0;
        }
        self.header[1].mask &= 0x0f;
        self.protocol(6, reader);
        for (key, at) in [("source", 8), ("destination", 24)] {
            self.address(key, at, 16, reader);
        }
        self.move_ports(40);
        self.nothing_else("IPv6", reader);
    }

    fn protocol(&mut self, at: usize, reader: &mut Reader<'_, '_>) {
        if self.header[at].mask == 0xff {
            let byte = std::mem::take(&mut self.header[at]);
            reader.add("protocol", byte.location, Given::Integer(byte.value.into()));
        }
    }

    /// Adds a condition on an address, if the mask is a prefix.
    fn address(&mut self, key: &str, at: usize, width: usize, reader: &mut Reader<'_, '_>) {
        let bytes = &mut self.header[at..at + width];
        let bits = |byte: fn(&Byte) -> u8| {
            bytes
                .iter()
                .fold(0u128, |bits, next| bits << 8 | u128::from(byte(next)))
        };
        let (value, mask) = (bits(|byte| byte.value), bits(|byte| byte.mask));
        let free = !mask & (u128::MAX >> (128 - 8 * width));
        if mask == 0 || free & free.wrapping_add(1) != 0 {
            return;
        }
        let address: std::net::IpAddr = match width {
            4 => std::net::Ipv4Addr::from(value as u32).into(),
            _ => std::net::Ipv6Addr::from(value).into(),
        };
        let text = format!("{address}/{}", mask.count_ones());
        let matched = bytes.iter().find(|byte| byte.mask != 0);
        let location = matched.map_or(0..0, |byte| byte.location.clone());
        bytes.fill(Byte::default());
        reader.add(key, location, Given::Text(text));
    }

    /// Moves ports at the fixed offset after a header without options.
    fn move_ports(&mut self, at: usize) {
        for (byte, header) in self.transport.iter_mut().zip(&mut self.header[at..at + 4]) {
            if header.mask != 0 {
                *byte = std::mem::take(header);
            }
        }
    }

    fn ports(&self, at: usize, reader: &mut Reader<'_, '_>) {
        for (key, at) in [("source_port", at), ("destination_port", at + 2)] {
            let (high, low) = (&self.transport[at], &self.transport[at + 1]);
            let both = |high: u8, low: u8| u16::from_be_bytes([high, low]);
            let location = if high.mask == 0 {
                low.location.clone()
            } else {
                high.location.clone()
            };
            reader.port(
                key,
                location,
                both(high.value, low.value),
                both(high.mask, low.mask),
            );
        }
    }

    fn nothing_else(&self, header: &str, reader: &mut Reader<'_, '_>) {
        if let Some((at, byte)) = self.header.iter().enumerate().find(|(_, byte)| byte.mask != 0) {
            let message = format!(
                "bits {:#04x} of byte {at} of an {header} header are not a field that filters support",
                byte.mask
            );
            let help = "match whole fields: addresses by prefix, protocol, type of service, ports";
            reader
                .problems
                .add(byte.location.clone(), message, "can't be carried over", help);
        }
    }
}

/// Reads the two numbers after `option`: the value in C's notation, the mask in hexadecimal.
fn value_and_mask(option: &Word, reader: &mut Reader<'_, '_>) -> Option<(u32, u32, Range<usize>)> {
    let value = reader.value(option)?;
    let mask = reader.value(option)?;
    let bits = number(value.get_ref());
    let mask_text = mask.get_ref().trim_start_matches("0x");
    let mask_bits = match mask_text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => u32::from_str_radix(mask_text, 16).ok(),
        false => None,
    };
    let location = value.span().start..mask.span().end;
    match bits.zip(mask_bits) {
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

fn unknown(word: &Word, known: &'static str, reader: &mut Reader<'_, '_>) {
    let name = word.get_ref();
    let message = format!("a match on `{name}` can't be carried over");
    let help = fairgate_config::suggest::remedy(name, "understood are", known.split(", "));
    reader.problems.add(word.span(), message, "unknown here", help);
    reader.words = [].iter();
}

//! Translates `flower` filters, which name fields.

use super::{Ethertype, Reader};
use crate::script::{Word, number};
use fairgate_config::language::Given;

const KNOWN: [&str; 16] = [
    "ip_proto",
    "ip_tos",
    "ip_ttl",
    "ip_flags",
    "src_ip",
    "dst_ip",
    "src_port",
    "dst_port",
    "tcp_flags",
    "type",
    "code",
    "src_mac",
    "dst_mac",
    "vlan_id",
    "vlan_ethtype",
    "skip_hw",
];

pub(super) fn read<'f>(reader: &mut Reader<'f, '_>) {
    while let Some(word) = reader.words.next() {
        match word.get_ref().as_str() {
            // "Not in hardware". There is no hardware offload here.
            "skip_hw" => {}
            name if KNOWN.contains(&name) => {
                if let Some(value) = reader.value(word) {
                    reader.field(name, word, value);
                }
            }
            name => match why_not(name) {
                Some(why) => {
                    let message = format!("`{name}` can't be carried over: {why}");
                    let help = format!("understood are {}", KNOWN.join(", "));
                    reader.problem(word, &message, &help);
                }
                None => reader.common(word, &KNOWN),
            },
        }
    }
}

/// Returns why a key of flower has no equivalent.
fn why_not(name: &str) -> Option<&'static str> {
    Some(match name {
        _ if name.starts_with("enc_") => {
            "it matches the header of a tunnel that the machine itself has removed"
        }
        _ if name.starts_with("ct_") => "it needs the machine's own connection tracking",
        _ if name.starts_with("mpls") => "labels are skipped when the headers are read",
        _ if name.starts_with("cvlan") || name == "num_of_vlans" => "only the outer tag of a frame is kept",
        _ if name.starts_with("arp_") => "the addresses in ARP packets are not kept",
        "vlan_prio" => "only the identifier of the tag is kept",
        "indev" => {
            "a direction has one interface that packets come from; for others write `interface` in TOML"
        }
        "skip_sw" => "there is no hardware that could do it",
        _ => return None,
    })
}

impl Reader<'_, '_> {
    fn field(&mut self, name: &str, option: &Word, value: &Word) {
        let text = value.get_ref().as_str();
        match name {
            "src_ip" => self.prefix("source", value),
            "dst_ip" => self.prefix("destination", value),
            "src_port" => self.flower_port("source_port", value),
            "dst_port" => self.flower_port("destination_port", value),
            "ip_proto" => match u8::from_str_radix(text.trim_start_matches("0x"), 16) {
                Ok(number) => self.add("protocol", value.span(), Given::Integer(number.into())),
                Err(_) => self.add("protocol", value.span(), Given::Text(text.to_owned())),
            },
            "ip_tos" => {
                let byte = |text: &str| u8::from_str_radix(text.trim_start_matches("0x"), 16).ok();
                let (tos, mask) = text.split_once('/').unwrap_or((text, "ff"));
                match byte(tos).zip(byte(mask)) {
                    Some((tos, mask)) => self.traffic_class(value.span(), tos, mask),
                    None => self.refuse(
                        value,
                        "a type of service like this",
                        "write two hexadecimal digits, and a mask: 0xb8/0xfc",
                    ),
                }
            }
            "tcp_flags" => match masked(text, 0xfff).filter(|(_, mask)| *mask <= 0xfff) {
                Some((flags, mask)) => {
                    let text = format!("{:#x}/{mask:#x}", flags & mask);
                    self.add("tcp_flags", value.span(), Given::Text(text));
                }
                None => self.refuse(
                    value,
                    "a set of flags like this",
                    "write flags and a mask: 0x2/0x17",
                ),
            },
            "type" | "code" => match number(text).filter(|number| *number <= 0xff) {
                Some(number) => self.add(
                    &format!("icmp_{name}"),
                    value.span(),
                    Given::Integer(number.into()),
                ),
                None => self.refuse(value, "a number like this", "write one number: type 8"),
            },
            "src_mac" => self.add("source_mac", value.span(), Given::Text(text.to_owned())),
            "dst_mac" => self.add("destination_mac", value.span(), Given::Text(text.to_owned())),
            "ip_ttl" => match masked(text, 0xff) {
                Some((ttl, 0xff)) => self.add("ttl", value.span(), Given::Integer(ttl.into())),
                Some((ttl, mask)) if mask <= 0xff && !mask & 0xff & ((!mask & 0xff) + 1) == 0 => {
                    let (first, last) = (ttl & mask, ttl & mask | !mask & 0xff);
                    self.add("ttl", value.span(), Given::Text(format!("{first}-{last}")));
                }
                _ => self.refuse(
                    value,
                    "a TTL like this",
                    "write a number, or a mask of its upper bits: 64/0xc0",
                ),
            },
            "ip_flags" => {
                let bytes = match text {
                    "nofrag" => "network+6 u16 0x0/0x3fff",
                    "frag" => "network+6 u16 0x1-0x3fff/0x3fff",
                    "firstfrag" => "network+6 u16 0x2000/0x3fff",
                    "nofirstfrag" => "network+6 u16 0x1-0x1fff/0x1fff",
                    _ => return self.refuse(value, "a flag like this", "write frag, nofrag or firstfrag"),
                };
                if !self.is_of("ipv4") {
                    let help = "write protocol ip: IPv6 has fragments in an extension header";
                    return self.refuse(value, "a flag of IPv4 in a filter for another protocol", help);
                }
                self.add("bytes", value.span(), Given::Text(bytes.to_owned()));
            }
            "vlan_id" => match text.parse::<u16>() {
                Ok(id) => self.add("vlan", value.span(), Given::Integer(id.into())),
                Err(_) => self.refuse(value, "a VLAN like this", "write a number from 1 to 4094"),
            },
            _ => {
                let name = match text {
                    "ip" | "ipv4" | "0x0800" => "ipv4",
                    "ipv6" | "0x86dd" => "ipv6",
                    _ => {
                        self.refuse(value, "an EtherType like this", "write ipv4 or ipv6");
                        return;
                    }
                };
                self.inner = Some(Ethertype::named(name, option.span()));
            }
        }
    }

    /// Reads a port, a range, or a port and a mask.
    fn flower_port(&mut self, key: &str, word: &Word) {
        let text = word.get_ref().as_str();
        let port = |text: &str| number(text).and_then(|number| u16::try_from(number).ok());
        let range = text
            .split_once('-')
            .map(|(first, last)| (port(first), port(last)));
        let masked = text
            .split_once('/')
            .map(|(value, mask)| (port(value), port(mask)));
        match (range, masked, port(text)) {
            (Some((Some(first), Some(last))), ..) if first < last => {
                self.add(key, word.span(), Given::Text(format!("{first}-{last}")));
            }
            (_, Some((Some(value), Some(mask))), _) => self.port(key, word.span(), value, mask),
            (.., Some(port)) => self.add(key, word.span(), Given::Integer(port.into())),
            _ => self.refuse(word, "a port like this", "write 80, 8000-8100, or 0x1f90/0xfff0"),
        }
    }
}

/// Reads a number, and after a slash its mask.
fn masked(text: &str, all: u32) -> Option<(u32, u32)> {
    match text.split_once('/') {
        Some((value, mask)) => number(value).zip(number(mask)),
        None => number(text).map(|value| (value, all)),
    }
}

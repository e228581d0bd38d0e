//! Translates `flower` filters, which name fields.

use super::{Ethertype, Reader};
use crate::script::{Word, number};
use fairgate_config::language::Given;

const KNOWN: [&str; 9] = [
    "ip_proto",
    "ip_tos",
    "src_ip",
    "dst_ip",
    "src_port",
    "dst_port",
    "vlan_id",
    "vlan_ethtype",
    "skip_hw",
];

pub(super) fn read(reader: &mut Reader<'_, '_>) {
    while let Some(word) = reader.words.next() {
        match word.get_ref().as_str() {
            // "Not in hardware". There is no hardware offload here.
            "skip_hw" => {}
            name if KNOWN.contains(&name) => {
                if let Some(value) = reader.value(word) {
                    reader.field(name, word, value);
                }
            }
            _ => reader.common(word, &KNOWN),
        }
    }
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

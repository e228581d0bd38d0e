//! `ifconfig` and `route`, which old scripts ask for addresses.

use std::io;
use std::net::IpAddr;

use super::Answer;
use crate::record::machine::{Device, Stored};

pub(super) fn ifconfig(words: &[String], machine: &Stored) -> io::Result<Answer> {
    let mut words = words.iter().filter(|word| !word.starts_with('-'));
    let name = words.next();
    let changes: Vec<&String> = words.collect();
    if let (Some(name), false) = (name, changes.is_empty()) {
        machine.change(|machine| {
            let device = machine.find_or_add(name);
            for (at, word) in changes.iter().enumerate() {
                let number = || changes.get(at + 1).and_then(|number| number.parse().ok());
                match word.as_str() {
                    "up" => device.is_up = true,
                    "down" => device.is_up = false,
                    "mtu" => device.mtu = number().unwrap_or(device.mtu),
                    "txqueuelen" => device.txqueuelen = number().unwrap_or(device.txqueuelen),
                    _ => {}
                }
            }
        })?;
        return Ok(Answer::default());
    }
    let all = machine.read()?.devices;
    match name {
        Some(name) => Ok(match all.iter().find(|device| device.name == *name) {
            Some(device) => Answer::output(shown(device)),
            None => Answer::error(
                1,
                format!("{name}: error fetching interface information: Device not found\n"),
            ),
        }),
        None => Ok(Answer::output(all.iter().map(shown).collect::<String>())),
    }
}

fn shown(device: &Device) -> String {
    let Device {
        name,
        mtu,
        address,
        txqueuelen,
        ..
    } = device;
    let flags = device.flags().replace(",LOWER_UP", ",RUNNING");
    let mut text = format!("{name}: flags=4163<{flags}>  mtu {mtu}\n");
    for (ip, length) in &device.addresses {
        match ip {
            IpAddr::V4(four) => {
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                let broadcast = IpAddr::from((four.to_bits() | !mask).to_be_bytes());
                let mask = IpAddr::from(mask.to_be_bytes());
                text += &format!("        inet {four}  netmask {mask}  broadcast {broadcast}\n");
            }
            IpAddr::V6(six) => {
                text += &format!("        inet6 {six}  prefixlen {length}  scopeid 0x0<global>\n")
            }
        }
    }
    text + &format!("        ether {address}  txqueuelen {txqueuelen}  (Ethernet)\n\n")
}

pub(super) fn route(machine: &Stored) -> io::Result<Answer> {
    let mut text =
        "Kernel IP routing table\nDestination     Gateway         Genmask         Flags Metric Ref    Use \
                    Iface\n"
            .to_owned();
    if let Some((gateway, device)) = machine.read()?.gateway {
        let gateway = gateway.to_string();
        text += &format!("0.0.0.0         {gateway:<15} 0.0.0.0         UG    0      0        0 {device}\n");
    }
    Ok(Answer::output(text))
}

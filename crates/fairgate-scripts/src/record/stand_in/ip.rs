//! `ip`: links and addresses as in the recording's machine, in iproute2's formats.

use std::io;

use serde_json::{Value, json};

use super::Answer;
use crate::record::machine::{Device, Machine, Stored};

/// How to show something.
#[derive(Clone, Copy, Debug, Default)]
struct Format {
    is_one_line: bool,
    is_brief: bool,
    is_json: bool,
}

pub(super) fn answer(words: &[String], machine: &Stored) -> io::Result<Answer> {
    let mut format = Format::default();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(option) = words.next_if(|word| word.starts_with('-')) {
        match option.trim_start_matches('-') {
            "V" | "Version" => return Ok(Answer::output("ip utility, iproute2-6.1.0, libbpf 1.1.2\n")),
            "o" | "oneline" => format.is_one_line = true,
            "br" | "brief" => format.is_brief = true,
            "j" | "json" => format.is_json = true,
            "f" | "family" | "n" | "netns" | "b" | "batch" | "rc" | "l" | "loops" => {
                words.next();
            }
            _ => {}
        }
    }
    let object = words.next().unwrap_or_default();
    let verb = words.next().unwrap_or("show");
    let rest: Vec<&str> = words.collect();
    let is = |word: &str, names: &[&str]| !word.is_empty() && names.iter().any(|name| name.starts_with(word));
    if is(object, &["link"]) {
        return match verb {
            verb if is(verb, &["show", "list", "lst"]) => show(&rest, format, false, machine),
            verb if is(verb, &["add"]) => add(&rest, machine),
            verb if is(verb, &["delete"]) => delete(&rest, machine),
            verb if is(verb, &["set"]) => set(&rest, machine),
            _ => Ok(Answer::default()),
        };
    }
    if is(object, &["address"]) {
        return match verb {
            verb if is(verb, &["show", "list", "lst"]) => show(&rest, format, true, machine),
            verb if is(verb, &["add"]) => address(&rest, machine),
            _ => Ok(Answer::default()),
        };
    }
    if is(object, &["route"]) {
        let machine = machine.read()?;
        return Ok(match verb {
            verb if is(verb, &["show", "list", "lst"]) => Answer::output(routes(&machine, &rest)),
            verb if is(verb, &["get"]) => route_to(&machine, &rest),
            _ => Answer::default(),
        });
    }
    Ok(Answer::default())
}

/// Returns the values after some words, and the first word that is no such word: the name.
fn read<'w>(rest: &[&'w str], with_value: &[&str]) -> (Option<&'w str>, Vec<(&'w str, &'w str)>) {
    let (mut name, mut values) = (None, Vec::new());
    let mut words = rest.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "dev" | "name" => name = words.next().or(name),
            word if with_value.contains(&word) => values.push((word, words.next().unwrap_or_default())),
            word if name.is_none() => name = Some(word),
            word => values.push((word, "")),
        }
    }
    (name, values)
}

fn add(rest: &[&str], machine: &Stored) -> io::Result<Answer> {
    // What follows the type belongs to it, except for the name of a veth's other end.
    let kind = rest.iter().position(|word| *word == "type");
    let (before, kind) = match kind {
        Some(at) => (&rest[..at], rest.get(at + 1).copied().unwrap_or_default()),
        None => (rest, "dummy"),
    };
    let (name, values) = read(
        before,
        &[
            "link",
            "mtu",
            "txqueuelen",
            "txqlen",
            "qlen",
            "address",
            "index",
            "numtxqueues",
            "numrxqueues",
            "group",
        ],
    );
    let peer = rest
        .windows(3)
        .find(|words| words[..2] == ["peer", "name"])
        .map(|words| words[2]);
    machine.change(|machine| {
        let name = match name {
            Some(name) => name.to_owned(),
            // The kernel numbers interfaces without a name.
            None => (0..)
                .map(|index| format!("{kind}{index}"))
                .find(|name| machine.find(name).is_none())
                .expect("some number is free"),
        };
        if machine.find(&name).is_some() {
            return Answer::error(2, "RTNETLINK answers: File exists\n");
        }
        let mut device = Device::new(&name, kind);
        for (word, value) in values {
            change(&mut device, word, value);
        }
        machine.devices.push(device);
        if let Some(peer) = peer {
            machine.devices.push(Device::new(peer, kind));
        }
        Answer::default()
    })
}

fn delete(rest: &[&str], machine: &Stored) -> io::Result<Answer> {
    let (name, _) = read(rest, &["type", "link"]);
    machine.change(|machine| match name {
        Some(name) if machine.find(name).is_some() => {
            machine.devices.retain(|device| device.name != name);
            Answer::default()
        }
        _ => Answer::error(
            1,
            format!("Cannot find device \"{}\"\n", name.unwrap_or_default()),
        ),
    })
}

fn set(rest: &[&str], machine: &Stored) -> io::Result<Answer> {
    let with_value = [
        "mtu",
        "txqueuelen",
        "txqlen",
        "qlen",
        "address",
        "name",
        "master",
        "netns",
        "alias",
        "type",
        "group",
    ];
    let renamed = rest
        .windows(2)
        .rposition(|words| words[0] == "name")
        .map(|at| rest[at + 1]);
    let words: Vec<&str> = match renamed {
        Some(_) => {
            let at = rest.iter().rposition(|word| *word == "name").unwrap_or_default();
            rest[..at].iter().chain(&rest[at + 2..]).copied().collect()
        }
        None => rest.to_vec(),
    };
    let (name, values) = read(&words, &with_value);
    let Some(name) = name else {
        return Ok(Answer::error(
            255,
            "Not enough information: \"dev\" argument is required.\n",
        ));
    };
    machine.change(|machine| {
        let device = machine.find_or_add(name);
        for (word, value) in values {
            change(device, word, value);
        }
        if let Some(renamed) = renamed {
            renamed.clone_into(&mut device.name);
        }
    })?;
    Ok(Answer::default())
}

fn change(device: &mut Device, word: &str, value: &str) {
    match word {
        "up" => device.is_up = true,
        "down" => device.is_up = false,
        "mtu" => device.mtu = value.parse().unwrap_or(device.mtu),
        "txqueuelen" | "txqlen" | "qlen" => device.txqueuelen = value.parse().unwrap_or(device.txqueuelen),
        "address" => value.clone_into(&mut device.address),
        "numtxqueues" => device.queues = value.parse().unwrap_or(device.queues),
        _ => {}
    }
}

fn address(rest: &[&str], machine: &Stored) -> io::Result<Answer> {
    let at = rest.iter().position(|word| *word == "dev");
    let device = at.and_then(|at| rest.get(at + 1));
    let (Some(device), Some(address)) = (device, rest.first()) else {
        return Ok(Answer::default());
    };
    let (ip, length) = address.split_once('/').unwrap_or((address, ""));
    if let Ok(ip) = ip.parse::<std::net::IpAddr>() {
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        let length = length.parse().unwrap_or(longest);
        machine.change(|machine| machine.find_or_add(device).addresses.push((ip, length)))?;
    }
    Ok(Answer::default())
}

fn show(rest: &[&str], format: Format, with_addresses: bool, machine: &Stored) -> io::Result<Answer> {
    let machine = machine.read()?;
    let (name, values) = read(rest, &["type", "master", "scope", "to", "label", "group"]);
    let (only_up, name) = match name {
        Some("up") => (true, None),
        name => (values.iter().any(|(word, _)| *word == "up"), name),
    };
    let kind = values
        .iter()
        .find(|(word, _)| *word == "type")
        .map(|(_, kind)| *kind);
    if let Some(name) = name.filter(|name| machine.find(name).is_none()) {
        return Ok(Answer::error(1, format!("Device \"{name}\" does not exist.\n")));
    }
    let shown = machine.devices.iter().filter(|device| {
        name.is_none_or(|name| device.name == name)
            && kind.is_none_or(|kind| device.kind == kind)
            && (!only_up || device.is_up)
    });
    if format.is_json {
        let values: Vec<Value> = shown
            .map(|device| document(&machine, device, with_addresses))
            .collect();
        return Ok(Answer::output(Value::from(values).to_string() + "\n"));
    }
    let text: String = shown
        .map(|device| line(&machine, device, format, with_addresses))
        .collect();
    Ok(Answer::output(text))
}

fn line(machine: &Machine, device: &Device, format: Format, with_addresses: bool) -> String {
    let Device {
        name,
        mtu,
        txqueuelen,
        address,
        ..
    } = device;
    let (index, flags, state) = (machine.index(device), device.flags(), device.state());
    let addresses = || {
        device
            .addresses
            .iter()
            .map(|(ip, length)| format!("{ip}/{length}"))
    };
    if format.is_brief {
        let about = if with_addresses {
            addresses().collect::<Vec<_>>().join(" ")
        } else {
            format!("{address} <{flags}>")
        };
        return format!("{name:<16} {state:<14} {about} \n");
    }
    let family = |ip: &str| if ip.contains(':') { "inet6" } else { "inet" };
    let lifetime = "valid_lft forever preferred_lft forever";
    if with_addresses && format.is_one_line {
        return addresses()
            .map(|ip| {
                format!(
                    "{index}: {name}    {} {ip} scope global {name}\\       {lifetime}\n",
                    family(&ip)
                )
            })
            .collect();
    }
    let link = if device.is_loopback { "loopback" } else { "ether" };
    let mode = if with_addresses { "" } else { " mode DEFAULT" };
    let broadcast = if device.is_loopback {
        "00:00:00:00:00:00"
    } else {
        "ff:ff:ff:ff:ff:ff"
    };
    let end = if format.is_one_line { "\\" } else { "\n" };
    let mut text = format!(
        "{index}: {name}: <{flags}> mtu {mtu} qdisc {} state {state}{mode} group default \
         qlen {txqueuelen}{end}    link/{link} {address} brd {broadcast}\n",
        device.default_qdisc()
    );
    if with_addresses {
        for ip in addresses() {
            text += &format!(
                "    {} {ip} scope global {name}\n       {lifetime}\n",
                family(&ip)
            );
        }
    }
    text
}

fn document(machine: &Machine, device: &Device, with_addresses: bool) -> Value {
    let flags = device.flags();
    let mut document = json!({
        "ifindex": machine.index(device),
        "ifname": device.name,
        "flags": flags.split(',').collect::<Vec<_>>(),
        "mtu": device.mtu,
        "qdisc": device.default_qdisc(),
        "operstate": device.state(),
        "group": "default",
        "txqlen": device.txqueuelen,
        "link_type": if device.is_loopback { "loopback" } else { "ether" },
        "address": device.address,
    });
    if with_addresses {
        let address = |(ip, length): &(std::net::IpAddr, u32)| {
            let family = if ip.is_ipv4() { "inet" } else { "inet6" };
            json!({ "family": family, "local": ip.to_string(), "prefixlen": length, "scope": "global" })
        };
        document["addr_info"] = device.addresses.iter().map(address).collect();
    }
    document
}

/// The default route, and the networks of the interfaces.
fn routes(machine: &Machine, rest: &[&str]) -> String {
    let mut text = String::new();
    if let Some((gateway, device)) = &machine.gateway {
        text += &format!("default via {gateway} dev {device} \n");
    }
    let only_default = rest
        .iter()
        .any(|word| matches!(*word, "default" | "0/0" | "0.0.0.0/0"));
    if !only_default {
        for device in machine.devices.iter().filter(|device| !device.is_loopback) {
            for (ip, length) in &device.addresses {
                if let std::net::IpAddr::V4(four) = ip {
                    let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                    let network = std::net::Ipv4Addr::from_bits(four.to_bits() & mask);
                    let name = &device.name;
                    text += &format!("{network}/{length} dev {name} proto kernel scope link src {ip} \n");
                }
            }
        }
    }
    text
}

fn route_to(machine: &Machine, rest: &[&str]) -> Answer {
    let target = rest.iter().find(|word| !matches!(**word, "to" | "from"));
    match (&machine.gateway, target) {
        (Some((gateway, name)), Some(target)) => {
            let addresses = machine.find(name).map(|device| device.addresses.as_slice());
            let own = addresses.unwrap_or_default().iter().find(|(ip, _)| ip.is_ipv4());
            let source = own.map_or(String::new(), |(ip, _)| format!("src {ip} "));
            Answer::output(format!(
                "{target} via {gateway} dev {name} {source}uid 0 \n    cache \n"
            ))
        }
        _ => Answer::error(2, "RTNETLINK answers: Network is unreachable\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_added_shown_changed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, sys) = (folder.path().join("machine.json"), folder.path().join("sys"));
        let stored = Stored {
            file: &file,
            sys: &sys,
        };
        stored
            .create(&Machine {
                devices: vec![Device::new("eth0", "")],
                gateway: None,
            })
            .unwrap();
        let ask = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            answer(&words, &stored).unwrap()
        };
        assert_eq!(ask("link show ifb4eth0").code, 1);
        assert_eq!(ask("link add name ifb4eth0 type ifb"), Answer::default());
        assert_eq!(
            ask("link add ifb4eth0 type ifb").error,
            "RTNETLINK answers: File exists\n"
        );
        assert_eq!(ask("link set dev ifb4eth0 txqueuelen 100 up"), Answer::default());
        let shown = ask("-o link show dev ifb4eth0").output;
        assert!(
            shown.starts_with("2: ifb4eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500"),
            "{shown}"
        );
        assert!(shown.contains("qlen 100\\    link/ether"), "{shown}");
        assert!(sys.join("class/net/ifb4eth0").is_dir());
        ask("addr add 192.0.2.1/24 dev eth0");
        assert!(
            ask("-4 addr show eth0")
                .output
                .contains("    inet 192.0.2.1/24 scope global eth0\n")
        );
        let json: Value = serde_json::from_str(&ask("-j addr show dev eth0").output).unwrap();
        assert_eq!(json[0]["addr_info"][0]["local"], "192.0.2.1");
        assert_eq!(ask("link set eth0 name wan").code, 0);
        assert_eq!(ask("link del dev ifb4eth0"), Answer::default());
        assert_eq!(ask("link show type ifb").output, "");
        assert!(
            ask("-br link")
                .output
                .starts_with("wan              UP             02:00:")
        );
        assert!(
            ask("route")
                .output
                .contains("192.0.2.0/24 dev wan proto kernel scope link src 192.0.2.1")
        );
    }
}

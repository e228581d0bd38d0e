//! Circuits, as both programs have them, become lines of `ShapedDevices.csv`, or are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use fairgate::classify::Prefix;

use super::Wishes;
use super::left_out::{Kind, LeftOut, Reason};
use super::name::shown;
use super::network::{Nodes, RATES};
use crate::subscribers::{LEAST, csv, mbit_text};

/// LibreQoS' line of names.
const NAMES: [&str; 13] = [
    "Circuit ID",
    "Circuit Name",
    "Device ID",
    "Device Name",
    "Parent Node",
    "MAC",
    "IPv4",
    "IPv6",
    "Download Min Mbps",
    "Upload Min Mbps",
    "Download Max Mbps",
    "Upload Max Mbps",
    "Comment",
];

/// What a customer has: an endpoint of UISP, an internet service of Splynx.
#[derive(Clone, Debug, Default)]
pub(crate) struct Circuit {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The key of the node that it is connected to.
    pub(crate) node: Option<String>,
    /// Down and up.
    pub(crate) rates: [Rate; 2],
    /// Why it may not send, if it may not.
    pub(crate) barred: Option<Reason>,
    pub(crate) devices: Vec<Device>,
}

/// Bit/s, `None`: not known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    pub(crate) least: Option<u64>,
    pub(crate) most: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Device {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) mac: String,
    /// As the server writes them.
    pub(crate) addresses: Vec<String>,
}

/// Returns the line of the report about a circuit that is left out.
fn left_out_circuit(circuit: &Circuit, reason: Reason) -> LeftOut {
    LeftOut {
        of: Kind::Subscriber,
        id: circuit.id.clone(),
        name: shown(&circuit.name),
        reason,
        address: None,
    }
}

fn left_out_address(circuit: &Circuit, address: impl ToString, reason: Reason) -> LeftOut {
    LeftOut {
        of: Kind::Address,
        address: Some(address.to_string()),
        ..left_out_circuit(circuit, reason)
    }
}

/// What was made of the circuits.
pub(crate) struct Table {
    /// `ShapedDevices.csv`.
    pub(crate) text: String,
    pub(crate) circuits: usize,
    pub(crate) devices: usize,
    pub(crate) addresses: usize,
    /// Circuits without a node.
    pub(crate) on_line: usize,
}

/// Writes the circuits that can be taken. The others go to `left_out`.
pub(crate) fn table(
    circuits: Vec<Circuit>,
    nodes: &Nodes,
    wishes: &Wishes,
    left_out: &mut Vec<LeftOut>,
) -> Table {
    let mut seen = BTreeSet::new();
    let mut taken = Vec::new();
    for mut circuit in circuits {
        if let Some(reason) = refusal(&mut circuit, wishes, &mut seen) {
            left_out.push(left_out_circuit(&circuit, reason));
            continue;
        }
        let prefixes = prefixes(&circuit, wishes, left_out);
        taken.push((circuit, prefixes));
    }
    // Whatever the order of the answers is.
    taken.sort_by(|(one, _), (other, _)| (one.id.len(), &one.id).cmp(&(other.id.len(), &other.id)));
    keep_apart(&mut taken, left_out);
    let mut table = Table {
        text: csv::line(NAMES.into_iter()) + "\n",
        circuits: 0,
        devices: 0,
        addresses: 0,
        on_line: 0,
    };
    for (circuit, prefixes) in &taken {
        if prefixes.iter().all(Vec::is_empty) {
            left_out.push(left_out_circuit(circuit, Reason::NoAddress));
            continue;
        }
        let node = circuit.node.as_deref().and_then(|key| nodes.name(key));
        table.circuits += 1;
        table.on_line += usize::from(node.is_none());
        for (device, prefixes) in circuit.devices.iter().zip(prefixes) {
            if !prefixes.is_empty() {
                table.devices += 1;
                table.addresses += prefixes.len();
                table.text += &line(circuit, device, node, prefixes);
                table.text.push('\n');
            }
        }
    }
    table
}

/// Returns why a circuit can't be taken, whatever its addresses are. Gives it the rate of those who are
/// suspended.
fn refusal(circuit: &mut Circuit, wishes: &Wishes, seen: &mut BTreeSet<String>) -> Option<Reason> {
    if !seen.insert(circuit.id.clone()) {
        return Some(Reason::Twice);
    }
    match (circuit.barred, wishes.suspended) {
        (Some(reason), None) => return Some(reason),
        (Some(_), Some(most)) => {
            circuit.rates = [Rate {
                least: None,
                most: Some(most),
            }; 2];
        }
        (None, _) => {}
    }
    let is_rate = |rate: &Rate| rate.most.is_some_and(|most| RATES.contains(&most));
    (!circuit.rates.iter().all(is_rate)).then_some(Reason::NoRates)
}

/// Returns the prefixes of each device of a circuit. None of them is in another one.
fn prefixes(circuit: &Circuit, wishes: &Wishes, left_out: &mut Vec<LeftOut>) -> Vec<Vec<Prefix>> {
    let mut all: Vec<(usize, Prefix)> = Vec::new();
    for (device, addresses) in circuit.devices.iter().map(|device| &device.addresses).enumerate() {
        for address in addresses {
            let Some(prefix) = prefix(address) else {
                left_out.push(left_out_address(circuit, shown(address), Reason::NoPrefix));
                continue;
            };
            let is_ignored = wishes.ignored.iter().any(|ignored| ignored.covers(&prefix));
            if !is_ignored && !is_local(prefix.address()) {
                all.push((device, prefix));
            }
        }
    }
    // A prefix comes before what is in it, and of equal ones the first stays.
    let mut sorted: Vec<usize> = (0..all.len()).collect();
    sorted.sort_by_key(|place| (order(&all[*place].1), *place));
    let mut widest: Option<Prefix> = None;
    let mut kept = BTreeSet::new();
    for place in sorted {
        let prefix = all[place].1;
        if !widest.is_some_and(|widest| widest.covers(&prefix)) {
            widest = Some(prefix);
            kept.insert(place);
        }
    }
    let mut of_devices = vec![Vec::new(); circuit.devices.len()];
    for place in kept {
        let (device, prefix) = all[place];
        of_devices[device].push(prefix);
    }
    of_devices
}

/// Reads an address, perhaps with the length of the network around it: `100.64.3.9/24` is one host. An
/// address that is the first of the network is the network.
fn prefix(text: &str) -> Option<Prefix> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length.trim().parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.trim().parse().ok()?;
    let host = Prefix::new(address, if address.is_ipv4() { 32 } else { 128 }).ok()?;
    let Some(length) = length else {
        return Some(host);
    };
    let network = Prefix::new(address, length).ok()?;
    // Both addresses of a link may be hosts (RFC 3021, RFC 6164).
    let is_network = network.address() == address && length + 1 < host.length();
    Some(if is_network { network } else { host })
}

/// Returns whether an address says nothing about where packets go: every device has such ones.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_unspecified()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            v6.is_unspecified() || v6.is_loopback() || v6.is_unicast_link_local() || v6.is_multicast()
        }
    }
}

/// Removes prefixes that do not say whose they are: those of several circuits, and those that contain others.
fn keep_apart(all: &mut [(Circuit, Vec<Vec<Prefix>>)], left_out: &mut Vec<LeftOut>) {
    let mut owners: BTreeMap<Order, usize> = BTreeMap::new();
    for prefix in all.iter().flat_map(|(_, prefixes)| prefixes.iter().flatten()) {
        *owners.entry(order(prefix)).or_default() += 1;
    }
    // A prefix comes before what is in it. Then it contains another one if it contains the next one.
    let sorted: Vec<Order> = owners.keys().copied().collect();
    let contains = |place: usize| {
        let (is_six, first, length) = sorted[place];
        let bits = if is_six { 128 } else { 32 };
        sorted.get(place + 1).is_some_and(|(next_is_six, next, _)| {
            let within = (next ^ first).checked_shr(bits - u32::from(length)).unwrap_or(0);
            *next_is_six == is_six && within == 0
        })
    };
    let reasons: BTreeMap<Order, Reason> = (0..sorted.len())
        .filter_map(|place| {
            let reason = match (owners[&sorted[place]], contains(place)) {
                (2.., _) => Reason::Shared,
                (_, true) => Reason::Contains,
                _ => return None,
            };
            Some((sorted[place], reason))
        })
        .collect();
    for (circuit, prefixes) in all {
        for prefix in prefixes.iter().flatten() {
            if let Some(reason) = reasons.get(&order(prefix)) {
                left_out.push(left_out_address(circuit, prefix, *reason));
            }
        }
        for prefixes in prefixes {
            prefixes.retain(|prefix| !reasons.contains_key(&order(prefix)));
        }
    }
}

/// The family, the first address and the length.
type Order = (bool, u128, u8);

fn order(prefix: &Prefix) -> Order {
    match prefix.address() {
        IpAddr::V4(v4) => (false, u128::from(v4.to_bits()), prefix.length()),
        IpAddr::V6(v6) => (true, v6.to_bits(), prefix.length()),
    }
}

fn line(circuit: &Circuit, device: &Device, node: Option<&str>, prefixes: &[Prefix]) -> String {
    let family = |is_six: bool| {
        let of_family = prefixes
            .iter()
            .filter(|prefix| prefix.address().is_ipv6() == is_six);
        let texts: Vec<String> = of_family.map(text).collect();
        texts.join(", ")
    };
    let [least_down, least_up] = circuit.rates.map(|rate| {
        let most = rate.most.unwrap_or(LEAST);
        mbit_text(rate.least.unwrap_or(LEAST).clamp(LEAST, most))
    });
    let [down, up] = circuit.rates.map(|rate| mbit_text(rate.most.unwrap_or(LEAST)));
    let values = [
        &circuit.id,
        &shown(&circuit.name),
        &shown(&device.id),
        &shown(&device.name),
        node.unwrap_or_default(),
        &shown(&device.mac),
        &family(false),
        &family(true),
        &least_down,
        &least_up,
        &down,
        &up,
        "",
    ];
    csv::line(values.into_iter())
}

/// Writes a prefix as LibreQoS does: a host without its length.
fn text(prefix: &Prefix) -> String {
    let address = prefix.address();
    match prefix.length() == if address.is_ipv4() { 32 } else { 128 } {
        true => address.to_string(),
        false => prefix.to_string(),
    }
}

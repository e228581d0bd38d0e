//! UISP: sites, endpoints, devices and data links become circuits and places.
//!
//! * A site of the type `endpoint` is a circuit. `qos.downloadSpeed` and `uploadSpeed` are bit/s. UISP has
//!   bursts too, for which `ShapedDevices.csv` has no column.
//! * Its addresses are those of all interfaces of its devices: UISP does not say which of them is the
//!   customer's.
//! * Its node is the access point of one of its devices (`attributes.apDevice`), or the device at the other
//!   end of a data link, or the site that it belongs to.
//! * `overview.downlinkCapacity` and `uplinkCapacity` of an access point are bit/s.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::answer::{flag, list, number, text};
use super::circuits::{Circuit, Device, Rate};
use super::error::ImportError;
use super::left_out::{Kind, LeftOut, Reason};
use super::name::shown;
use super::network::Place;
use super::{Answers, Found, rows};

/// A site or an endpoint.
struct Site {
    name: String,
    is_endpoint: bool,
    parent: Option<String>,
    rates: [Option<u64>; 2],
    is_suspended: bool,
}

/// A device. Those without a site are left out.
struct Held {
    device: Device,
    site: String,
    access_point: Option<String>,
    capacities: [Option<u64>; 2],
}

pub(crate) fn read(answers: &Answers) -> Result<Found, ImportError> {
    let mut found = Found::default();
    let mut sites = BTreeMap::new();
    rows(answers, "sites", |row| {
        let id = text(row, "/identification/id").or_else(|| text(row, "/id"));
        if let Some(id) = id.map(|id| shown(&id)).filter(|id| !id.is_empty()) {
            sites.entry(id).or_insert_with(|| site(row));
        }
    })?;
    let mut devices: BTreeMap<String, Held> = BTreeMap::new();
    rows(answers, "devices", |row| {
        let Some(id) = text(row, "/identification/id") else {
            return;
        };
        let device = device(row, &id);
        match text(row, "/identification/site/id").map(|site| shown(&site)) {
            Some(site) => {
                devices.entry(id).or_insert_with(|| Held {
                    device,
                    site,
                    access_point: text(row, "/attributes/apDevice/id"),
                    capacities: ["downlink", "uplink"].map(|way| {
                        // Whole Mbit/s: the digits behind them change with every answer.
                        let bits = number(row, &format!("/overview/{way}Capacity"))?;
                        Some(bits / 1_000_000 * 1_000_000)
                    }),
                });
            }
            // It belongs to nobody yet.
            None => found.left_out.push(LeftOut {
                of: Kind::Device,
                name: shown(&device.name),
                id: device.id,
                reason: Reason::NoSite,
                address: None,
            }),
        }
    })?;
    let links = links(answers, &sites)?;
    let mut at_site: BTreeMap<&str, Vec<(&String, &Held)>> = BTreeMap::new();
    for (id, held) in &devices {
        at_site.entry(&held.site).or_default().push((id, held));
    }
    let mut used = BTreeSet::new();
    for (id, site) in sites.iter().filter(|(_, site)| site.is_endpoint) {
        let held = at_site.get(id.as_str()).map_or(&[][..], Vec::as_slice);
        let above = access_point(id, held, links.get(id), &devices);
        let node = match above {
            Some(device) => {
                used.insert(device);
                Some(device_key(device))
            }
            None => site.parent.as_deref().map(site_key),
        };
        found.circuits.push(Circuit {
            id: id.clone(),
            name: site.name.clone(),
            node,
            rates: site.rates.map(|most| Rate { least: None, most }),
            barred: site.is_suspended.then_some(Reason::Suspended),
            devices: held.iter().map(|(_, held)| held.device.clone()).collect(),
        });
    }
    for (id, site) in sites.iter().filter(|(_, site)| !site.is_endpoint) {
        let place = Place {
            name: site.name.clone(),
            kind: "Site",
            above: site.parent.as_deref().map(site_key),
            rates: [None, None],
        };
        found.places.insert(site_key(id), place);
    }
    for id in used {
        let held = &devices[id];
        // An access point at a customer, for others, belongs to the site of that customer.
        let site = match sites.get(&held.site).filter(|site| site.is_endpoint) {
            Some(endpoint) => endpoint.parent.as_deref(),
            None => Some(held.site.as_str()),
        };
        let place = Place {
            name: held.device.name.clone(),
            kind: "AP",
            above: site.map(site_key),
            rates: held.capacities,
        };
        found.places.insert(device_key(id), place);
    }
    Ok(found)
}

fn site(row: &Value) -> Site {
    Site {
        name: text(row, "/identification/name").unwrap_or_default(),
        is_endpoint: text(row, "/identification/type").as_deref() == Some("endpoint"),
        parent: text(row, "/identification/parent/id").map(|parent| shown(&parent)),
        rates: ["download", "upload"].map(|way| number(row, &format!("/qos/{way}Speed"))),
        is_suspended: flag(row, "/identification/suspended"),
    }
}

fn device(row: &Value, id: &str) -> Device {
    let interfaces = list(row, "/interfaces").iter();
    let of_interfaces = interfaces.flat_map(|interface| list(interface, "/addresses"));
    let of_interfaces = of_interfaces.filter_map(|address| text(address, "/cidr"));
    let names = ["name", "displayName", "hostname"];
    let name = names
        .iter()
        .find_map(|name| text(row, &format!("/identification/{name}")));
    Device {
        id: shown(id),
        name: name.unwrap_or_default(),
        mac: text(row, "/identification/mac").unwrap_or_default(),
        addresses: text(row, "/ipAddress").into_iter().chain(of_interfaces).collect(),
    }
}

/// Returns the devices at the other ends of the data links of each endpoint.
fn links(
    answers: &Answers,
    sites: &BTreeMap<String, Site>,
) -> Result<BTreeMap<String, Vec<String>>, ImportError> {
    let mut links: BTreeMap<String, Vec<String>> = BTreeMap::new();
    rows(answers, "links", |row| {
        for [own, other] in [["from", "to"], ["to", "from"]] {
            let site_of =
                |end: &str| text(row, &format!("/{end}/site/identification/id")).map(|id| shown(&id));
            let device = text(row, &format!("/{other}/device/identification/id"));
            let (Some(site), Some(device)) = (site_of(own), device) else {
                continue;
            };
            let is_endpoint = sites.get(&site).is_some_and(|site| site.is_endpoint);
            if is_endpoint && site_of(other).as_ref() != Some(&site) {
                links.entry(site).or_default().push(device);
            }
        }
    })?;
    // The order of the answer is no order.
    for devices in links.values_mut() {
        devices.sort_unstable();
    }
    Ok(links)
}

/// Returns the device that an endpoint is connected to. It is at another site.
fn access_point<'d>(
    endpoint: &str,
    held: &[(&String, &Held)],
    links: Option<&Vec<String>>,
    devices: &'d BTreeMap<String, Held>,
) -> Option<&'d str> {
    let own = held.iter().filter_map(|(_, held)| held.access_point.as_ref());
    let mut candidates = own.chain(links.into_iter().flatten());
    candidates.find_map(|id| {
        let (id, device) = devices.get_key_value(id)?;
        (device.site != endpoint).then_some(id.as_str())
    })
}

fn site_key(id: &str) -> String {
    format!("uisp:site:{id}")
}

fn device_key(id: &str) -> String {
    format!("uisp:device:{id}")
}

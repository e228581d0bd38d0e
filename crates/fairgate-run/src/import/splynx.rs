//! Splynx: customers, internet services, tariffs and hardware become circuits and places.
//!
//! * An internet service that is active is a circuit, if its customer is.
//! * Its rates are those of its tariff, kbit/s. `speed_limit_at` percent of them are guaranteed if
//!   `speed_limit_type` is `percent`, and those of `speed_limit_fixed_*` if it is `fixed`. Bursts and
//!   contention (`aggregation`) have no column in `ShapedDevices.csv`.
//! * Its addresses are `ipv4`, `ipv4_route`, `ipv6` and `ipv6_delegated`. If they have none of a family,
//!   those of its session count: addresses of a pool.
//! * Its node is its access device, or the sector of its router, or this router. A device is below its
//!   network site, or the device above it. A sector has rates, kbit/s.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::{number, reference, text};
use super::circuits::{Circuit, Device, Rate};
use super::error::ImportError;
use super::left_out::Reason;
use super::name::shown;
use super::network::{Place, Places};
use super::{Answers, Found, rows};

/// The addresses of sessions, by service: IPv4, IPv6.
type Sessions = BTreeMap<String, [Vec<String>; 2]>;

pub(crate) fn read(answers: &Answers) -> Result<Found, ImportError> {
    let mut tariffs: BTreeMap<String, [Rate; 2]> = BTreeMap::new();
    rows(answers, "tariffs", |row| {
        if let Some(id) = text(row, "/id") {
            tariffs.insert(id, ["down", "up"].map(|way| rate(row, way)));
        }
    })?;
    // Whether they may send, with their names.
    let mut customers: BTreeMap<String, (bool, String)> = BTreeMap::new();
    rows(answers, "customers", |row| {
        if let Some(id) = text(row, "/id") {
            let is_active = text(row, "/status").as_deref() == Some("active");
            customers.insert(id, (is_active, text(row, "/name").unwrap_or_default()));
        }
    })?;
    let sessions = sessions(answers)?;
    let places = places(answers)?;
    // Pages overlap, so a service may be there twice.
    let mut services: BTreeMap<String, Circuit> = BTreeMap::new();
    rows(answers, "services", |row| {
        let Some(id) = text(row, "/id").map(|id| shown(&id)).filter(|id| !id.is_empty()) else {
            return;
        };
        // The search asks for those that are active, and the status says it again.
        let is_active = text(row, "/status").is_none_or(|status| status == "active");
        let customer = reference(row, "/customer_id").and_then(|id| customers.get(&id));
        let (may_send, name) = customer.cloned().unwrap_or((true, String::new()));
        let tariff = reference(row, "/tariff_id").and_then(|id| tariffs.get(&id));
        services.insert(
            id.clone(),
            Circuit {
                node: node(row, &places),
                rates: tariff.copied().unwrap_or_default(),
                barred: (!is_active || !may_send).then_some(Reason::Suspended),
                devices: vec![Device {
                    id: format!("splynx_service_{id}"),
                    name: text(row, "/description").unwrap_or_else(|| name.clone()),
                    mac: text(row, "/mac").unwrap_or_default(),
                    addresses: addresses(row, sessions.get(&id)),
                }],
                id,
                name,
            },
        );
    })?;
    Ok(Found {
        circuits: services.into_values().collect(),
        places,
        left_out: Vec::new(),
    })
}

/// Reads a rate of a tariff, `down` or `up`.
fn rate(row: &Value, way: &str) -> Rate {
    let kbit = |key: &str| Some(number(row, key)?.saturating_mul(1000));
    let most = kbit(&format!("/speed_{way}load"));
    let least = match text(row, "/speed_limit_type").as_deref() {
        Some("percent") => number(row, "/speed_limit_at")
            .zip(most)
            .map(|(percent, most)| (u128::from(most) * u128::from(percent.min(100)) / 100) as u64),
        Some("fixed") => kbit(&format!("/speed_limit_fixed_{way}")),
        _ => None,
    };
    Rate { least, most }
}

fn sessions(answers: &Answers) -> Result<Sessions, ImportError> {
    let mut sessions = Sessions::new();
    rows(answers, "sessions", |row| {
        if let Some(service) = reference(row, "/service_id") {
            let known = sessions.entry(service).or_default();
            for (family, key) in ["/ipv4", "/ipv6"].into_iter().enumerate() {
                known[family].extend(parts(row, key));
            }
        }
    })?;
    Ok(sessions)
}

/// Returns the addresses of a service.
fn addresses(row: &Value, session: Option<&[Vec<String>; 2]>) -> Vec<String> {
    let own = [["/ipv4", "/ipv4_route"], ["/ipv6", "/ipv6_delegated"]];
    let of_family = |(family, keys): (usize, [&str; 2])| {
        let given: Vec<String> = keys.into_iter().flat_map(|key| parts(row, key)).collect();
        match given.is_empty() {
            true => session.map(|session| session[family].clone()).unwrap_or_default(),
            false => given,
        }
    };
    own.into_iter().enumerate().flat_map(of_family).collect()
}

/// Returns the addresses in a text, between commas.
fn parts(row: &Value, key: &str) -> Vec<String> {
    let text = text(row, key).unwrap_or_default();
    let parts = text.split([',', ';', ' ']).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn places(answers: &Answers) -> Result<Places, ImportError> {
    let mut places = Places::new();
    let name = |row: &Value| text(row, "/title").unwrap_or_default();
    let unknown = [None, None];
    let mut add = |answer: &'static str, kind: &'static str, place: &dyn Fn(&Value) -> Place| {
        rows(answers, answer, |row| {
            if let Some(id) = text(row, "/id") {
                places.insert(key(kind, &id), place(row));
            }
        })
    };
    add("sites", "site", &|row| Place {
        name: name(row),
        kind: "Site",
        above: None,
        rates: unknown,
    })?;
    add("devices", "device", &|row| Place {
        name: name(row),
        kind: "AP",
        above: reference(row, "/network_site_id")
            .map(|site| key("site", &site))
            .or_else(|| Some(key("device", &reference(row, "/parent_id")?))),
        rates: unknown,
    })?;
    add("routers", "router", &|row| Place {
        name: name(row),
        kind: "Site",
        above: None,
        rates: unknown,
    })?;
    add("sectors", "sector", &|row| Place {
        name: name(row),
        kind: "AP",
        above: reference(row, "/router_id").map(|router| key("router", &router)),
        rates: ["/speed_down", "/speed_up"].map(|way| Some(number(row, way)?.saturating_mul(1000))),
    })?;
    Ok(places)
}

/// Returns the key of the node of a service.
fn node(row: &Value, places: &Places) -> Option<String> {
    let candidates = [
        ("/access_device", "device"),
        ("/sector_id", "sector"),
        ("/router_id", "router"),
    ];
    candidates.into_iter().find_map(|(pointer, kind)| {
        let key = key(kind, &reference(row, pointer)?);
        places.contains_key(&key).then_some(key)
    })
}

fn key(kind: &str, id: &str) -> String {
    format!("splynx:{kind}:{id}")
}

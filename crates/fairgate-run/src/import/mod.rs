//! Lists of subscribers from servers of others: UISP of Ubiquiti (NMS API v2.1) and Splynx (API 2.0).
//!
//! ```text
//!   Server --- answers, JSON ---> uisp.rs, splynx.rs --- circuits ---> circuits.rs: ShapedDevices.csv
//!     |                                             \--- places -----> network.rs: network.json
//!     HTTP over TLS: one question after the other
//! ```
//!
//! What is made are LibreQoS' files: they have nodes, and a run reads them as they are. [`read`] does no
//! input and output. What can't be taken is left out and named, so one customer without an address stops
//! nobody. The texts are checked like any other list before they are written.
//!
//! Sources: Splynx' public document of its API (splynx.docs.apiary.io), the types of UISP's swagger.json, and
//! what LibreQoS' integrations of both ask and had to learn in the field.
//!
//! ```
//! use std::collections::BTreeMap;
//! use fairgate_run::import::{Program, Wishes, read};
//!
//! let site = br#"[{"identification": {"id": "e1", "name": "Ann", "type": "endpoint"},
//!     "qos": {"downloadSpeed": 100000000, "uploadSpeed": 20000000}}]"#;
//! let device = br#"[{"identification": {"id": "d1", "site": {"id": "e1"}}, "ipAddress": "100.64.0.1/24"}]"#;
//! let answers = BTreeMap::from([("sites", vec![site.to_vec()]), ("devices", vec![device.to_vec()])]);
//! let imported = read(Program::Uisp, &answers, &Wishes::default(), None)?;
//! assert_eq!(imported.subscribers, 1);
//! assert!(imported.devices_text.contains("e1,Ann,d1,,,,100.64.0.1,,0.01,0.01,100,20,"));
//! # Ok::<(), fairgate_run::import::ImportError>(())
//! ```

mod answer;
mod circuits;
mod error;
mod left_out;
mod name;
mod network;
mod questions;
mod server;
mod splynx;
mod uisp;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use fairgate::classify::Prefix;

pub use error::ImportError;
pub use left_out::{Kind, LeftOut, Reason};
pub use questions::Program;
pub use server::Server;

use circuits::{Circuit, table};
use network::{Nodes, Places};

/// The answers of a server, by the names of its questions. An answer may have several pages.
pub type Answers = BTreeMap<&'static str, Vec<Vec<u8>>>;

/// What an operator wants of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// What those who are suspended get, bit/s. `None`: they are left out.
    pub suspended: Option<u64>,
    /// Addresses that are none of subscribers.
    pub ignored: Vec<Prefix>,
}

impl Wishes {
    /// 192.168.0.0/16: the networks behind the routers of customers. They are the same at many of them.
    pub fn ignored() -> Vec<Prefix> {
        let home = Prefix::new(IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16);
        vec![home.expect("16 bits of 32")]
    }
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes {
            suspended: None,
            ignored: Wishes::ignored(),
        }
    }
}

/// What was made of the answers.
#[derive(Clone, Debug)]
pub struct Imported {
    /// `ShapedDevices.csv`.
    pub devices_text: String,
    /// `network.json`.
    pub network_text: String,
    /// How many subscribers the list has.
    pub subscribers: usize,
    /// Devices with addresses.
    pub devices: usize,
    /// Addresses and prefixes.
    pub addresses: usize,
    /// Nodes.
    pub nodes: usize,
    /// Subscribers that are connected to no node, but to the line.
    pub on_line: usize,
    /// What the list does not have.
    pub left_out: Vec<LeftOut>,
}

/// What a program has, in the same terms for both.
#[derive(Debug, Default)]
struct Found {
    circuits: Vec<Circuit>,
    places: Places,
    left_out: Vec<LeftOut>,
}

/// Makes the list of the answers. `network` is `network.json` as it is now: the rates of nodes that are
/// `fixed` there stay.
///
/// # Errors
/// If an answer is no list, or if `network` is no JSON.
pub fn read(
    program: Program,
    answers: &Answers,
    wishes: &Wishes,
    network: Option<&str>,
) -> Result<Imported, ImportError> {
    let Found {
        circuits,
        places,
        mut left_out,
    } = match program {
        Program::Uisp => uisp::read(answers)?,
        Program::Splynx => splynx::read(answers)?,
    };
    // Of all circuits, so that a node stays if nobody at it has an address just now.
    let used = circuits.iter().filter_map(|circuit| circuit.node.as_deref());
    let (nodes, network_text) =
        Nodes::of(&places, used, network, &mut left_out).map_err(ImportError::Network)?;
    let table = table(circuits, &nodes, wishes, &mut left_out);
    left_out.sort_by(|one, other| {
        (one.of, one.reason, &one.id, &one.address).cmp(&(other.of, other.reason, &other.id, &other.address))
    });
    Ok(Imported {
        devices_text: table.text,
        network_text,
        subscribers: table.circuits,
        devices: table.devices,
        addresses: table.addresses,
        nodes: nodes.len(),
        on_line: table.on_line,
        left_out,
    })
}

/// Calls `each` with all rows of an answer. One that is missing has none.
fn rows(
    answers: &Answers,
    name: &'static str,
    mut each: impl FnMut(&serde_json::Value),
) -> Result<(), ImportError> {
    for page in answers.get(name).into_iter().flatten() {
        answer::rows(page, &mut each).map_err(|why| ImportError::Answer {
            what: name.to_owned(),
            why,
        })?;
    }
    Ok(())
}

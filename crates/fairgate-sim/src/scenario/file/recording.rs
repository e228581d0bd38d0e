//! A capture as a source: its packets are sent when they were captured. Nothing reacts.
//!
//! ```toml
//! pcap = { file = "home.pcap" }                                  # every IP packet
//! pcap = { file = "home.pcap.gz", to = "192.168.1.0/24", flows = 50 }
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use fairgate::FlowKey;
use fairgate::classify::Prefix;
use fairgate::registry::{Parameter, Section, Unit};
use fairgate_capture::{Capture, CaptureError};
use fairgate_config::{FileError, Table};
use toml::Spanned;

use super::sent::Sent;
use super::{Reader, place};
use crate::scenario::{LONGEST_DATAGRAM, Traffic, UDP_HEADERS};
use crate::traffic::RecordedPacket;

/// The most flows that are separate.
const MOST_FLOWS: u64 = 10_000;

pub(super) const PCAP: Section = Section::new("pcap", "packets of a capture at their times", || {
    Parameter::infos(&KEYS, Keys::default())
});

struct Keys {
    /// Texts are read with their places, by [`Table::text`].
    texts: [String; 3],
    flows: usize,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys {
            texts: Default::default(),
            flows: 20,
        }
    }
}

static KEYS: [Parameter<Keys>; 4] = [
    Parameter::required_word(
        "file",
        Unit::Text("file"),
        "A pcap or pcapng file, compressed or not; its path begins at the folder of this file.",
        |keys, _| &mut keys.texts[0],
    ),
    Parameter::word(
        "from",
        Unit::Text("addresses"),
        "Only packets from these addresses, \"192.168.1.0/24\"; default: all.",
        |keys, _| &mut keys.texts[1],
    ),
    Parameter::word(
        "to",
        Unit::Text("addresses"),
        "Only packets to these addresses; default: all.",
        |keys, _| &mut keys.texts[2],
    ),
    Parameter::new(
        "flows",
        Unit::Count("flows"),
        1..=MOST_FLOWS,
        "How many flows are separate, those with most bytes; all others are one more flow.",
        |keys, _| &mut keys.flows,
    ),
];

/// The packets of a flow, with their times in the capture.
#[derive(Default)]
struct Flow {
    packets: Vec<RecordedPacket>,
    bytes: u64,
}

/// Reads the packets by flow. Times are from the first packet of the capture.
fn read_flows(
    path: &std::path::Path,
    is_wanted: impl Fn(&FlowKey) -> bool,
) -> Result<Vec<Flow>, CaptureError> {
    let mut capture = Capture::open(path)?;
    let mut index: HashMap<FlowKey, usize> = HashMap::new();
    let mut flows: Vec<Flow> = Vec::new();
    let mut begin = None;
    while let Some(record) = capture.next_record()? {
        let at = record.time - *begin.get_or_insert(record.time);
        let headers = record.headers();
        let Some(packet) = headers.packet.filter(|_| is_wanted(&headers.dissection.key)) else {
            continue;
        };
        let five_tuple = FlowKey {
            traffic_class: 0,
            vlan: 0,
            flow_label: 0,
            interface: 0,
            ..headers.dissection.key
        };
        let place = *index.entry(five_tuple).or_insert_with(|| {
            flows.push(Flow::default());
            flows.len() - 1
        });
        flows[place].bytes += u64::from(packet.length);
        // The simulator adds IPv4 and UDP headers, so that the length of the IP packet is that of the
        // capture.
        flows[place].packets.push(RecordedPacket {
            at,
            payload: packet.length.saturating_sub(UDP_HEADERS).min(LONGEST_DATAGRAM),
        });
    }
    Ok(flows)
}

/// Returns the flows with most bytes, and the others as one flow, each with the time of its first packet.
fn sources(mut flows: Vec<Flow>, separate: usize) -> Vec<(Duration, Traffic)> {
    // The sort is stable: flows with equal bytes stay in the order of their first packets.
    flows.sort_by_key(|flow| Reverse(flow.bytes));
    if flows.len() > separate {
        let others = flows.split_off(separate);
        let mut packets: Vec<RecordedPacket> = others.into_iter().flat_map(|flow| flow.packets).collect();
        packets.sort_by_key(|packet| packet.at);
        flows.push(Flow { packets, bytes: 0 });
    }
    let source = |flow: Flow| {
        let begin = flow.packets[0].at;
        let packets = flow.packets.into_iter().map(|packet| RecordedPacket {
            at: packet.at - begin,
            ..packet
        });
        (Duration::from_nanos(begin), Traffic::Recorded(packets.collect()))
    };
    flows.into_iter().map(source).collect()
}

impl Reader<'_> {
    pub(super) fn recorded(&self, table: &Table) -> Result<Sent, FileError> {
        let Keys {
            texts: [file, ..],
            flows: separate,
        } = table.read(&KEYS, Keys::default());
        let prefix = |key| table.text(key).map(|text| self.prefix(&text)).transpose();
        let (from, to) = (prefix("from")?, prefix("to")?);
        let is_wanted = |key: &FlowKey| {
            let within = |prefix: &Option<Prefix>, address: &[u8; 16]| {
                prefix
                    .as_ref()
                    .is_none_or(|prefix| prefix.contains(address, key.ethertype))
            };
            within(&from, &key.source) && within(&to, &key.destination)
        };
        let flows = read_flows(&self.folder().join(&file), is_wanted).map_err(|error| {
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            self.document.error(
                place(table, "file"),
                format!("{file}: {error}{cause}"),
                "give a pcap or pcapng file; the path begins at the folder of this file",
            )
        })?;
        if flows.is_empty() {
            return Err(self.document.error(
                place(table, "file"),
                format!("{file} has no IP packets with these addresses"),
                "change `from` and `to`, or omit them",
            ));
        }
        Ok(Sent::recorded(sources(flows, separate)))
    }

    /// Reads an address with an optional prefix length.
    fn prefix(&self, text: &Spanned<String>) -> Result<Prefix, FileError> {
        let (address, length) = match text.get_ref().split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text.get_ref().as_str(), None),
        };
        let parsed = address.parse::<IpAddr>().ok().and_then(|address| {
            let whole = if address.is_ipv4() { 32 } else { 128 };
            let length = length.map_or(Some(whole), |length| length.parse().ok())?;
            Prefix::new(address, length).ok()
        });
        parsed.ok_or_else(|| {
            self.document.error(
                text.span(),
                format!("`{}` is not an address with a prefix length", text.get_ref()),
                "write for example \"192.168.1.0/24\" or \"2001:db8::/32\"",
            )
        })
    }
}

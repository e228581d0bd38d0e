//! Selects the packets of a capture that crossed the link in the wanted direction. A link has a queue at each
//! end, and a capture shows the packets of both.
//!
//! The local side is derived from the beginning of the capture, for IPv4 and IPv6 separately. If at least
//! half of the bytes pass between private and public addresses, private addresses are local (a capture on a
//! home network or its router). Otherwise the address (IPv6: the /64) with most bytes is local (a capture on
//! a host).

use std::collections::HashMap;
use std::net::IpAddr;

use fairgate::FlowKey;
use fairgate::classify::Prefix;

/// The bytes of an address in a [`FlowKey`].
type Octets = [u8; 16];

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// The direction whose queue is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Direction {
    /// The direction with more bytes at the beginning of the capture
    Auto,
    /// Towards the local side
    Down,
    /// Away from the local side
    Up,
    /// Every packet, as if all passed one queue
    All,
}

/// How a view classifies a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Taken,
    /// The other direction.
    Opposite,
    /// Not on the link: between local addresses, between remote ones, multicast, or not IP.
    Elsewhere,
}

/// The addresses on the local side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// Private and link-local addresses.
    Private,
    /// These prefixes.
    Prefixes(Vec<(String, Prefix)>),
}

impl Local {
    fn has(&self, address: &Octets, ethertype: u16) -> bool {
        match self {
            Local::Private => is_private(address),
            Local::Prefixes(prefixes) => within(prefixes, address, ethertype),
        }
    }

    fn describe(&self) -> String {
        match self {
            Local::Private => "private addresses".to_owned(),
            Local::Prefixes(prefixes) => prefixes
                .iter()
                .map(|(text, _)| text.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        }
    }
}

/// A selection of packets.
#[derive(Clone, Debug)]
pub(super) enum View {
    /// By direction across the link.
    Across {
        v4: Local,
        v6: Local,
        /// Whether towards the local side, or away from it.
        down: bool,
    },
    /// By source and destination, as given by the user. An empty list matches every address.
    Between {
        from: Vec<(String, Prefix)>,
        to: Vec<(String, Prefix)>,
    },
    All,
}

impl View {
    pub(super) fn side(&self, key: &FlowKey) -> Side {
        match self {
            View::All => Side::Taken,
            View::Between { from, to } => {
                let within = |prefixes: &[(String, Prefix)], address: &Octets| {
                    prefixes.is_empty() || within(prefixes, address, key.ethertype)
                };
                if within(from, &key.source) && within(to, &key.destination) {
                    Side::Taken
                } else if within(from, &key.destination) && within(to, &key.source) {
                    Side::Opposite
                } else {
                    Side::Elsewhere
                }
            }
            View::Across { v4, v6, down } => {
                let local = match key.ethertype {
                    IPV4 => v4,
                    IPV6 => v6,
                    _ => return Side::Elsewhere,
                };
                if is_group(&key.source) || is_group(&key.destination) {
                    return Side::Elsewhere;
                }
                match (
                    local.has(&key.source, key.ethertype),
                    local.has(&key.destination, key.ethertype),
                ) {
                    (false, true) if *down => Side::Taken,
                    (true, false) if !down => Side::Taken,
                    (true, false) | (false, true) => Side::Opposite,
                    (true, true) | (false, false) => Side::Elsewhere,
                }
            }
        }
    }

    /// Returns a description such as `download: packets to private addresses from elsewhere`.
    pub(super) fn describe(&self) -> String {
        let list = |prefixes: &[(String, Prefix)]| match prefixes {
            [] => "anywhere".to_owned(),
            some => some
                .iter()
                .map(|(text, _)| text.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        };
        match self {
            View::All => "every packet of the capture through one queue".to_owned(),
            View::Between { from, to } => format!("packets from {} to {}", list(from), list(to)),
            View::Across { v4, v6, down } => {
                let local = match (v4.describe(), v6.describe()) {
                    (v4, v6) if v4 == v6 => v4,
                    (v4, v6) => format!("{v4} (IPv4) and {v6} (IPv6)"),
                };
                match down {
                    true => format!("download: packets to {local} from elsewhere"),
                    false => format!("upload: packets from {local} to elsewhere"),
                }
            }
        }
    }
}

fn within(prefixes: &[(String, Prefix)], address: &Octets, ethertype: u16) -> bool {
    prefixes
        .iter()
        .any(|(_, prefix)| prefix.contains(address, ethertype))
}

/// Statistics of the beginning of a capture, from which the local side is derived.
#[derive(Debug, Default)]
pub(super) struct Survey {
    v4: Family,
    v6: Family,
    /// Bytes by source and destination, to find the direction with more bytes.
    pairs: HashMap<(Octets, Octets), (FlowKey, u64)>,
}

#[derive(Debug, Default)]
struct Family {
    /// All bytes between single hosts.
    bytes: u64,
    /// The bytes between a private and a public address.
    crossing: u64,
    /// Bytes sent and received by address (IPv6: by /64).
    hosts: HashMap<Octets, (u64, u64)>,
}

impl Family {
    fn local(&self, prefix_length: u8) -> Local {
        let busiest = self.hosts.iter().max_by_key(|(octets, (sent, received))| {
            // If two are equal, the one that received more, as people mostly download. Then by address, so
            // that the result is always the same.
            (sent + received, *received, **octets)
        });
        match busiest {
            Some((octets, _)) if self.crossing * 2 < self.bytes => {
                let address = std::net::Ipv6Addr::from(*octets).to_canonical();
                let prefix =
                    Prefix::new(address, prefix_length).expect("32 and 64 bits are in every address's range");
                let text = if prefix_length == 32 {
                    address.to_string()
                } else {
                    format!("{address}/{prefix_length}")
                };
                Local::Prefixes(vec![(text, prefix)])
            }
            _ => Local::Private,
        }
    }
}

impl Survey {
    /// Counts a packet.
    pub(super) fn add(&mut self, key: &FlowKey, bytes: u32) {
        if is_group(&key.source) || is_group(&key.destination) {
            return;
        }
        let (family, kept) = match key.ethertype {
            IPV4 => (&mut self.v4, 16),
            IPV6 => (&mut self.v6, 8),
            _ => return,
        };
        let bytes = u64::from(bytes);
        let network = |octets: Octets| {
            let mut network = [0; 16];
            network[..kept].copy_from_slice(&octets[..kept]);
            network
        };
        family.bytes += bytes;
        family.crossing += bytes * u64::from(is_private(&key.source) != is_private(&key.destination));
        family.hosts.entry(network(key.source)).or_default().0 += bytes;
        family.hosts.entry(network(key.destination)).or_default().1 += bytes;
        self.pairs
            .entry((key.source, key.destination))
            .or_insert((*key, 0))
            .1 += bytes;
    }

    /// Returns the view for `direction`. The local side is as given, or else derived from the survey.
    pub(super) fn view(&self, direction: Direction, given: &[(String, Prefix)]) -> View {
        let across = |down| match given {
            [] => View::Across {
                v4: self.v4.local(32),
                v6: self.v6.local(64),
                down,
            },
            given => {
                let local = Local::Prefixes(given.to_vec());
                View::Across {
                    v4: local.clone(),
                    v6: local,
                    down,
                }
            }
        };
        match direction {
            Direction::All => View::All,
            Direction::Down => across(true),
            Direction::Up => across(false),
            Direction::Auto => {
                let down = across(true);
                let bytes = |side| -> u64 {
                    self.pairs
                        .values()
                        .filter(|(key, _)| down.side(key) == side)
                        .map(|(_, bytes)| bytes)
                        .sum()
                };
                if bytes(Side::Opposite) > bytes(Side::Taken) {
                    across(false)
                } else {
                    down
                }
            }
        }
    }
}

/// Parses `192.168.1.0/24`, or an address alone.
pub(super) fn parse_prefix(text: &str) -> Result<(String, Prefix), String> {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address
        .parse()
        .map_err(|_| format!("`{address}` is not an IP address; write 192.168.1.0/24 or 2001:db8::/32"))?;
    let length = match length {
        Some(length) => length
            .parse()
            .map_err(|_| format!("`/{length}` is not a prefix length"))?,
        None if address.is_ipv4() => 32,
        None => 128,
    };
    let prefix = Prefix::new(address, length).map_err(|error| error.to_string())?;
    Ok((text.to_owned(), prefix))
}

/// Returns whether an address is not routed on the Internet: RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC
/// 4291, loopback.
fn is_private(octets: &Octets) -> bool {
    match std::net::Ipv6Addr::from(*octets).to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_private() || v4.is_link_local() || v4.is_loopback() || (a == 100 && b & 0xc0 == 64)
        }
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_loopback(),
    }
}

/// Returns whether an address is multicast, broadcast or unspecified.
fn is_group(octets: &Octets) -> bool {
    match std::net::Ipv6Addr::from(*octets).to_canonical() {
        IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unspecified(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: &str, destination: &str) -> FlowKey {
        FlowKey::of(source.parse().unwrap(), destination.parse().unwrap(), 6, 1, 2)
    }

    fn survey(packets: &[(&str, &str, u32)]) -> Survey {
        let mut survey = Survey::default();
        for (source, destination, bytes) in packets {
            survey.add(&key(source, destination), *bytes);
        }
        survey
    }

    #[test]
    fn private_addresses_are_the_local_side_of_a_home_network() {
        let survey = survey(&[
            ("8.8.8.8", "192.168.1.5", 1000),
            ("192.168.1.5", "8.8.8.8", 100),
            ("192.168.1.5", "192.168.1.9", 500),
        ]);
        let view = survey.view(Direction::Auto, &[]);
        assert_eq!(view.side(&key("1.1.1.1", "192.168.1.7")), Side::Taken);
        assert_eq!(view.side(&key("192.168.1.7", "1.1.1.1")), Side::Opposite);
        assert_eq!(view.side(&key("192.168.1.7", "192.168.1.8")), Side::Elsewhere);
        assert_eq!(view.side(&key("1.1.1.1", "239.255.255.250")), Side::Elsewhere);
        assert_eq!(
            view.describe(),
            "download: packets to private addresses from elsewhere"
        );
    }

    #[test]
    fn the_busiest_address_is_local_and_the_larger_direction_is_taken() {
        let survey = survey(&[
            ("203.0.113.1", "198.51.100.1", 9000),
            ("203.0.113.1", "198.51.100.2", 9000),
            ("198.51.100.1", "203.0.113.1", 300),
        ]);
        let view = survey.view(Direction::Auto, &[]);
        assert_eq!(view.side(&key("203.0.113.1", "8.8.8.8")), Side::Taken);
        assert_eq!(
            view.describe(),
            "upload: packets from 203.0.113.1 (IPv4) and private addresses (IPv6) to elsewhere"
        );
    }

    #[test]
    fn of_two_private_hosts_the_one_that_receives_more_is_local() {
        let survey = survey(&[("10.0.0.1", "10.0.0.2", 5000), ("10.0.0.2", "10.0.0.1", 100)]);
        let view = survey.view(Direction::Auto, &[]);
        assert_eq!(view.side(&key("10.0.0.1", "10.0.0.2")), Side::Taken);
    }

    #[test]
    fn the_busiest_64_is_local_for_ipv6() {
        let survey = survey(&[
            ("2001:db8:1::1", "2001:db8:2:3::a", 3000),
            ("2001:db8:9::1", "2001:db8:2:3::b", 3000),
        ]);
        let view = survey.view(Direction::Down, &[]);
        assert_eq!(view.side(&key("2001:db8:7::1", "2001:db8:2:3::c")), Side::Taken);
    }

    #[test]
    fn given_prefixes_override_the_survey() {
        let local = parse_prefix("203.0.113.0/24").unwrap();
        let view = Survey::default().view(Direction::Up, &[local]);
        assert_eq!(view.side(&key("203.0.113.9", "10.0.0.1")), Side::Taken);
        assert!(parse_prefix("203.0.113.0/33").is_err());
        assert!(parse_prefix("home").is_err());
    }
}

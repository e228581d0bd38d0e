//! A filter: the conditions that must match, and the class of matching packets.

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::NonZeroU8;
use core::ops::RangeInclusive;

use crate::classify::bytes::Bytes;
use crate::classify::computed::{Field, Rule};
use crate::classify::masked::Masked;
use crate::classify::outcome::{Edit, Outcome};
use crate::classify::police::{Control, Police};
use crate::error::ConfigError;
use crate::flow::ethertype::{IPV4, IPV6};
use crate::flow::{FlowKey, HeaderBytes};
use crate::slot::Slot;

/// An address prefix of one family. `::/0` contains no IPv4 address.
///
/// It takes 18 bytes, also as an option: a list of subscribers has tens of thousands, in several places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address in the form of [`FlowKey`]. All other bits are 0.
    address: [u8; 16],
    /// One more than the number of bits that must match of the 128.
    fixed: NonZeroU8,
    is_v4: bool,
}

impl Prefix {
    /// Creates a prefix of the first `length` bits of `address`: 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub fn new(address: IpAddr, length: u8) -> Result<Prefix, ConfigError> {
        let address_is_v4 = address.is_ipv4();
        let (longest, address, offset) = match address {
            IpAddr::V4(v4) => (32, u128::from(v4.to_ipv6_mapped()), 96),
            IpAddr::V6(v6) => (128, u128::from(v6), 0),
        };
        if length > longest {
            return Err(ConfigError::conflict(
                "prefix",
                format!("/{length}"),
                format!("at most /{longest} for this family"),
                "reduce it to the number of leading bits that must match",
            ));
        }
        let fixed = NonZeroU8::MIN.saturating_add(length + offset);
        Ok(Prefix {
            address: (address & mask_of(fixed)).to_be_bytes(),
            fixed,
            is_v4: address_is_v4,
        })
    }

    fn mask(&self) -> u128 {
        mask_of(self.fixed)
    }

    fn ethertype(&self) -> u16 {
        if self.is_v4 { IPV4 } else { IPV6 }
    }

    /// Returns the first address of the prefix: all other bits are 0.
    pub fn address(&self) -> IpAddr {
        let bits = u128::from_be_bytes(self.address);
        match self.is_v4 {
            true => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
            false => IpAddr::V6(Ipv6Addr::from_bits(bits)),
        }
    }

    /// Returns the number of bits that must match.
    pub fn length(&self) -> u8 {
        let offset = if self.is_v4 { 96 } else { 0 };
        self.fixed.get() - 1 - offset
    }

    /// Returns address, mask and EtherType. The address is in the form of [`FlowKey`].
    pub(super) fn bits(&self) -> (u128, u128, u16) {
        (u128::from_be_bytes(self.address), self.mask(), self.ethertype())
    }

    /// Returns whether all addresses of `other` are in this prefix.
    pub fn covers(&self, other: &Prefix) -> bool {
        let ((own, mask, _), (other_address, ..)) = (self.bits(), other.bits());
        self.is_v4 == other.is_v4 && self.fixed <= other.fixed && other_address & mask == own
    }

    /// Returns whether `address` is in this prefix. `address` is in the form of [`FlowKey`] and from a packet
    /// with this EtherType.
    pub fn contains(&self, address: &[u8; 16], ethertype: u16) -> bool {
        let (own, mask, own_type) = self.bits();
        ethertype == own_type && u128::from_be_bytes(*address) & mask == own
    }
}

/// Returns the mask of so many bits, less one.
fn mask_of(fixed: NonZeroU8) -> u128 {
    match fixed.get() - 1 {
        0 => 0,
        bits => u128::MAX << (128 - u32::from(bits)),
    }
}

/// Written like `192.0.2.0/24`.
impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address(), self.length())
    }
}

/// Conditions, all of which must hold. A condition that is left out holds for every packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// The source address.
    pub source: Option<Prefix>,
    /// The destination address.
    pub destination: Option<Prefix>,
    /// The source port. It fails for packets without ports: fragments, and protocols other than TCP, UDP,
    /// UDP-Lite, SCTP and DCCP.
    pub source_port: Option<RangeInclusive<u16>>,
    /// The destination port, with the same rule.
    pub destination_port: Option<RangeInclusive<u16>>,
    /// The IP protocol number.
    pub protocol: Option<u8>,
    /// The EtherType: 0x0800 for IPv4, 0x86dd for IPv6.
    pub ethertype: Option<u16>,
    /// The EtherType in the frame's own header: 0x8100 for a frame with a VLAN tag, whatever it contains.
    pub outer_ethertype: Option<u16>,
    /// The VLAN identifier.
    pub vlan: Option<u16>,
    /// The DSCP.
    pub dscp: Option<RangeInclusive<u8>>,
    /// Bits of the traffic class (DSCP and ECN) that the packet has when it is classified.
    pub traffic_class: Option<Masked<u8>>,
    /// The priority, 0 to 15.
    pub priority: Option<RangeInclusive<u8>>,
    /// The driver's mark.
    pub mark: Option<Masked<u32>>,
    /// The driver's number of the interface that received the packet.
    pub interface: Option<u16>,
    /// Bytes of the headers. They fail for a packet whose bytes the pool does not keep.
    pub bytes: Vec<Bytes>,
}

impl Match {
    /// Returns whether all conditions hold. A condition on header fields fails for a packet without headers,
    /// and one on header bytes for a packet without bytes.
    pub fn matches(&self, packet: &Slot, headers: Option<&FlowKey>, bytes: Option<&HeaderBytes>) -> bool {
        self.matches_fields(packet, headers) && self.matches_bytes(bytes)
    }

    fn matches_bytes(&self, bytes: Option<&HeaderBytes>) -> bool {
        match bytes {
            Some(bytes) => self.bytes.iter().all(|condition| condition.matches(bytes)),
            None => self.bytes.is_empty(),
        }
    }

    fn matches_fields(&self, packet: &Slot, headers: Option<&FlowKey>) -> bool {
        let stamped = within(&self.dscp, packet.dscp)
            && within(&self.priority, packet.priority)
            && self
                .traffic_class
                .is_none_or(|bits| bits.matches(packet.traffic_class()))
            && self.mark.is_none_or(|mark| mark.matches(packet.mark));
        if !stamped {
            return false;
        }
        match headers {
            Some(key) => self.matches_headers(key),
            None => !self.needs_headers(),
        }
    }

    fn matches_headers(&self, key: &FlowKey) -> bool {
        self.protocol.is_none_or(|protocol| protocol == key.protocol)
            && self.ethertype.is_none_or(|ethertype| ethertype == key.ethertype)
            && self
                .outer_ethertype
                .is_none_or(|ethertype| ethertype == key.outer_ethertype)
            && self.vlan.is_none_or(|vlan| vlan == key.vlan)
            && self.interface.is_none_or(|number| number == key.interface)
            && (!self.needs_ports() || key.has_ports())
            && within(&self.source_port, key.source_port)
            && within(&self.destination_port, key.destination_port)
            && self
                .source
                .is_none_or(|prefix| prefix.contains(&key.source, key.ethertype))
            && self
                .destination
                .is_none_or(|prefix| prefix.contains(&key.destination, key.ethertype))
    }

    fn needs_headers(&self) -> bool {
        self.protocol.is_some()
            || self.ethertype.is_some()
            || self.outer_ethertype.is_some()
            || self.vlan.is_some()
            || self.interface.is_some()
            || self.needs_ports()
            || self.source.is_some()
            || self.destination.is_some()
    }

    fn needs_ports(&self) -> bool {
        self.source_port.is_some() || self.destination_port.is_some()
    }
}

fn within<T: PartialOrd>(range: &Option<RangeInclusive<T>>, value: T) -> bool {
    range.as_ref().is_none_or(|range| range.contains(&value))
}

/// Conditions, and what becomes of packets that match them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Filters with a lower preference are tried first (tc's `pref`). Equal ones are tried in the order of
    /// the list.
    pub preference: u16,
    /// The inner class at which the filter is tried, in a discipline with a tree of classes. `None`: at the
    /// discipline itself.
    pub at: Option<u32>,
    /// The chain in which the filter is tried (tc's `chain`). Packets are first classified by chain 0. Only
    /// [`Outcome::Chain`] leads to others.
    pub chain: u32,
    /// The conditions.
    pub condition: Match,
    /// The policer that packets pass before anything else happens to them.
    pub police: Option<Police>,
    /// The fields that change in packets that the policer passes.
    pub edit: Edit,
    /// What becomes of packets that the policer passes.
    pub outcome: Outcome,
}

impl Filter {
    /// Whether the class is computed from this field.
    pub fn computes_from(&self, field: Field) -> bool {
        self.outcome
            .computed()
            .is_some_and(|computed| match computed.rule() {
                Rule::Hash { fields, .. } => fields.contains(field),
                Rule::Number { field: only, .. } => only == field,
            })
    }

    /// Whether all that a filter does is to choose a class.
    pub(super) fn only_classifies(&self) -> bool {
        self.police.is_none() && self.edit.is_empty() && self.outcome.class().is_some_and(|class| class != 0)
    }

    /// Whether other filters may be tried after it has matched.
    pub(super) fn may_continue(&self) -> bool {
        matches!(self.outcome, Outcome::Continue | Outcome::Computed(_))
            || self.police.is_some_and(|police| police.may(Control::Continue))
    }

    /// Checks the policer and the values that the filter sets.
    fn check(&self) -> Result<(), ConfigError> {
        if let Some(police) = &self.police {
            police.check()?;
        }
        let too_high = |parameter, value: Option<u8>, most: u8, help| match value {
            Some(value) if value > most => Err(ConfigError::out_of_range(
                parameter,
                value,
                format!("0 to {most}"),
                help,
            )),
            _ => Ok(()),
        };
        too_high(
            "set_priority",
            self.edit.priority,
            15,
            "set a lower one, or name a class",
        )?;
        too_high("set_dscp", self.edit.dscp, 63, "leave out the two bits of ECN")
    }

    /// Checks what `filters` set and measure. Every discipline that takes filters does. Who makes
    /// [`Filters`](super::Filters) of numbers that nobody has checked must do it before.
    ///
    /// # Errors
    /// Names the parameter and the rule.
    pub fn check_all(filters: &[Filter]) -> Result<(), ConfigError> {
        filters.iter().try_for_each(Filter::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::ethertype::VLAN;
    use crate::packet::{Ecn, Packet};
    use proptest::prelude::*;

    fn address() -> impl Strategy<Value = IpAddr> {
        // Few distinct bits, so that prefixes match. IPv6 addresses are also chosen from the mapped ones.
        prop_oneof![
            any::<[bool; 4]>().prop_map(|bits| Ipv4Addr::from(bits.map(|bit| u8::from(bit) * 129)).into()),
            any::<[bool; 16]>().prop_map(|bits| Ipv6Addr::from(bits.map(|bit| u8::from(bit) * 129)).into()),
            any::<[bool; 4]>().prop_map(|bits| Ipv4Addr::from(bits.map(|bit| u8::from(bit) * 129))
                .to_ipv6_mapped()
                .into()),
        ]
    }

    fn bits(address: IpAddr) -> Vec<bool> {
        let octets = match address {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        octets
            .iter()
            .flat_map(|octet| (0..8).rev().map(move |bit| octet >> bit & 1 == 1))
            .collect()
    }

    fn udp() -> FlowKey {
        FlowKey {
            outer_ethertype: VLAN,
            vlan: 7,
            interface: 3,
            ..FlowKey::of([10, 1, 2, 3].into(), [192, 0, 2, 1].into(), 17, 5000, 53)
        }
    }

    /// Returns whether `condition` holds for a packet with `key`, DSCP 46, ECT(0), priority 6 and mark 9.
    fn holds(condition: &Match, key: Option<&FlowKey>) -> bool {
        let packet = Packet {
            dscp: 46,
            priority: 6,
            mark: 9,
            ecn: Ecn::Ect0,
            ..Packet::of_length(100)
        };
        condition.matches(&packet.into(), key, None)
    }

    proptest! {
        /// Compares bit by bit, for addresses and prefixes of both families.
        #[test]
        fn a_prefix_matches_its_leading_bits(network in address(), host in address(), length in 0u8..=130) {
            let longest = if network.is_ipv4() { 32 } else { 128 };
            let Ok(prefix) = Prefix::new(network, length) else {
                prop_assert!(length > longest);
                return Ok(());
            };
            prop_assert!(length <= longest);
            let leading = usize::from(length);
            let key = FlowKey::of(host, host, 6, 1, 1);
            let expected =
                host.is_ipv4() == network.is_ipv4() && bits(host)[..leading] == bits(network)[..leading];
            prop_assert_eq!(prefix.contains(&key.source, key.ethertype), expected);
        }

        #[test]
        fn ranges_include_both_ends(from in 0u16..20, to in 0u16..20, port in 1u16..20) {
            let key = FlowKey { source_port: port, ..udp() };
            let condition = Match { source_port: Some(from..=to), ..Match::default() };
            prop_assert_eq!(holds(&condition, Some(&key)), from <= port && port <= to);
        }

        /// All conditions must hold. Each is chosen from a pair of which only the first holds.
        #[test]
        fn all_conditions_must_hold(chosen in any::<[Option<bool>; 13]>()) {
            let prefix = |address: [u8; 4]| Prefix::new(address.into(), 24).expect("24 bits");
            let choose = |index: usize| chosen[index];
            let bits = |value: u32, mask: u32| {
                Masked::<u32>::new(value & mask, mask).expect("the value is within the mask")
            };
            let condition = Match {
                source: choose(0).map(|holds| prefix(if holds { [10, 1, 2, 0] } else { [10, 1, 3, 0] })),
                destination: choose(1)
                    .map(|holds| prefix(if holds { [192, 0, 2, 0] } else { [10, 1, 2, 0] })),
                source_port: choose(2).map(|holds| if holds { 5000..=5000 } else { 1..=4999 }),
                destination_port: choose(3).map(|holds| if holds { 1..=1023 } else { 54..=u16::MAX }),
                protocol: choose(4).map(|holds| if holds { 17 } else { 6 }),
                ethertype: choose(5).map(|holds| if holds { IPV4 } else { IPV6 }),
                vlan: choose(6).map(|holds| if holds { 7 } else { 0 }),
                interface: choose(7).map(|holds| if holds { 3 } else { 0 }),
                outer_ethertype: choose(8).map(|holds| if holds { VLAN } else { IPV4 }),
                dscp: choose(9).map(|holds| if holds { 46..=46 } else { 0..=45 }),
                priority: choose(10).map(|holds| if holds { 0..=15 } else { 7..=15 }),
                mark: choose(11).map(|holds| bits(if holds { 8 } else { 4 }, 0xc)),
                traffic_class: choose(12)
                    .map(|holds| Masked::<u8>::new(if holds { 2 } else { 1 }, 3).expect("two bits")),
                bytes: Vec::new(),
            };
            let all = chosen.iter().all(|choice| *choice != Some(false));
            prop_assert_eq!(holds(&condition, Some(&udp())), all);

            let of_headers = chosen[..9].iter().any(Option::is_some);
            let stamped = chosen[9..].iter().all(|choice| *choice != Some(false));
            prop_assert_eq!(holds(&condition, None), stamped && !of_headers, "without headers");
        }
    }

    #[test]
    fn a_prefix_that_is_too_long_is_rejected() {
        let error = Prefix::new([10, 0, 0, 0].into(), 33).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`prefix` is /33, but must be at most /32 for this family; reduce it to the number of leading \
             bits that must match"
        );
    }

    #[test]
    fn a_condition_on_ports_fails_without_ports() {
        let any_port = Match {
            source_port: Some(0..=u16::MAX),
            ..Match::default()
        };
        let fragment = FlowKey {
            source_port: 0,
            destination_port: 0,
            ..udp()
        };
        let echo = FlowKey {
            protocol: 1,
            destination_port: 0,
            ..udp()
        };
        assert!(holds(&any_port, Some(&udp())));
        assert!(!holds(&any_port, Some(&fragment)));
        assert!(
            !holds(&any_port, Some(&echo)),
            "the identifier of an echo is not a port"
        );
    }
}

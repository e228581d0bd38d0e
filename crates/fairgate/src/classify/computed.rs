//! A class that is computed from fields of the packet: a hash of some fields, or a number from one of them
//! (Linux's `cls_flow.c`).
//!
//! Numbers are Linux's. An IPv6 address counts as its four words, combined by exclusive or. A field that the
//! packet does not have is 0. Hashes are Linux's only in their effect: the key is random, here as there.

use alloc::boxed::Box;
use core::num::NonZeroU32;
use core::time::Duration;

use siphasher::sip::SipHasher13;

use crate::error::ConfigError;
use crate::flow::FlowKey;
use crate::flow::ethertype::IPV6;
use crate::packet::ClassId;
use crate::slot::Slot;
use crate::structures::random::Random;
use crate::time::Time;

/// A field of a packet, as a number of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The source address.
    Source,
    /// The destination address.
    Destination,
    /// The IP protocol.
    Protocol,
    /// The source port of a protocol with ports.
    SourcePort,
    /// The destination port of a protocol with ports.
    DestinationPort,
    /// The driver's number of the interface that received the packet.
    Interface,
    /// The priority. For a packet that names a class it is the class, as in Linux.
    Priority,
    /// The driver's mark.
    Mark,
    /// The VLAN identifier.
    Vlan,
    /// The driver's hash of the flow.
    Flow,
}

impl Field {
    /// All fields, in the order of their values.
    pub const ALL: [Field; 10] = [
        Field::Source,
        Field::Destination,
        Field::Protocol,
        Field::SourcePort,
        Field::DestinationPort,
        Field::Interface,
        Field::Priority,
        Field::Mark,
        Field::Vlan,
        Field::Flow,
    ];

    /// Returns the field of a packet.
    fn of(self, packet: &Slot, headers: Option<&FlowKey>) -> u32 {
        let of_headers = |field: fn(&FlowKey) -> u32| headers.map_or(0, field);
        let port = |key: &FlowKey, port: u16| if key.has_ports() { port.into() } else { 0 };
        match self {
            Field::Source => of_headers(|key| address(&key.source, key.ethertype)),
            Field::Destination => of_headers(|key| address(&key.destination, key.ethertype)),
            Field::Protocol => of_headers(|key| key.protocol.into()),
            Field::SourcePort => headers.map_or(0, |key| port(key, key.source_port)),
            Field::DestinationPort => headers.map_or(0, |key| port(key, key.destination_port)),
            Field::Interface => of_headers(|key| key.interface.into()),
            Field::Priority if packet.class != ClassId::NONE => {
                u32::from(packet.class.major()) << 16 | u32::from(packet.class.minor())
            }
            Field::Priority => packet.priority.into(),
            Field::Mark => packet.mark,
            Field::Vlan => of_headers(|key| key.vlan.into()),
            Field::Flow => (packet.flow.raw() >> 32) as u32,
        }
    }
}

/// Returns an address in the form of [`FlowKey`] as a number.
fn address(octets: &[u8; 16], ethertype: u16) -> u32 {
    let word = |at: usize| u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
    match ethertype {
        IPV6 => word(0) ^ word(4) ^ word(8) ^ word(12),
        _ => word(12),
    }
}

/// A set of fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields(u16);

impl Fields {
    /// Whether it has this field.
    pub fn contains(self, field: Field) -> bool {
        self.0 & 1 << field as u16 != 0
    }

    /// Whether it has no field.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns its fields, in the order of [`Field::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Field> {
        Field::ALL.into_iter().filter(move |field| self.contains(*field))
    }
}

impl FromIterator<Field> for Fields {
    fn from_iter<I: IntoIterator<Item = Field>>(fields: I) -> Fields {
        Fields(fields.into_iter().fold(0, |set, field| set | 1 << field as u16))
    }
}

/// How the number of a packet is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A hash of fields, at least one. With `perturb` its key changes each time this period has passed.
    Hash {
        /// The fields.
        fields: Fields,
        /// How often the key changes.
        perturb: Option<Duration>,
    },
    /// A number from one field: `(((field & and) ^ xor) >> shift) + add`, modulo 2^32.
    Number {
        /// The field.
        field: Field,
        /// The bits that count.
        and: u32,
        /// The bits that are inverted.
        xor: u32,
        /// How far it is shifted to the right, 0 to 31.
        shift: u8,
        /// What is added.
        add: u32,
    },
}

/// Computes the class of a packet: `first`, plus the number of the packet modulo `count`. Only the lower 16
/// bits count. 0 is no class: then the next filters are tried.
///
/// The class may not exist. The packet is then treated like one that names a class that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computed {
    first: u16,
    count: Option<Count>,
    rule: Rule,
}

/// A divisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    number: NonZeroU32,
    /// 2^64 divided by the number, rounded up.
    inverse: u64,
}

impl Count {
    fn new(number: NonZeroU32) -> Count {
        Count {
            number,
            inverse: (u64::MAX / u64::from(number.get())).wrapping_add(1),
        }
    }

    /// Returns the remainder, without a division (Lemire, Kaser, Kurz 2019). It is exact for all numbers.
    #[inline]
    fn remainder(self, number: u32) -> u32 {
        let fraction = self.inverse.wrapping_mul(number.into());
        ((u128::from(fraction) * u128::from(self.number.get())) >> 64) as u32
    }
}

impl Computed {
    /// Creates a computation. Without `count` all numbers are used as they are.
    ///
    /// # Errors
    /// If a hash has no fields or changes all the time, or if a number is shifted by more than 31 bits.
    pub fn new(first: u16, count: Option<NonZeroU32>, rule: Rule) -> Result<Computed, ConfigError> {
        match rule {
            Rule::Hash { fields, .. } if fields.is_empty() => Err(ConfigError::conflict(
                "hash",
                "empty",
                "at least one field",
                "name the fields that packets of one class have in common",
            )),
            Rule::Hash {
                perturb: Some(Duration::ZERO),
                ..
            } => Err(ConfigError::conflict(
                "perturb",
                "0",
                "above 0",
                "leave it out if the hash stays the same",
            )),
            Rule::Number { shift, .. } if shift > 31 => Err(ConfigError::out_of_range(
                "shift",
                shift,
                "0 to 31",
                "a number has 32 bits",
            )),
            _ => Ok(Computed {
                first,
                count: count.map(Count::new),
                rule,
            }),
        }
    }

    /// Returns the class of number 0.
    pub fn first(&self) -> u16 {
        self.first
    }

    /// Returns how many numbers there are; `None`: as many as there are classes.
    pub fn count(&self) -> Option<NonZeroU32> {
        self.count.map(|count| count.number)
    }

    /// Returns how numbers are found.
    pub fn rule(&self) -> Rule {
        self.rule
    }

    /// Returns the same computation with another class of number 0.
    #[must_use]
    pub fn starting_at(self, first: u16) -> Computed {
        Computed { first, ..self }
    }

    /// Whether it hashes.
    pub(super) fn hashes(&self) -> bool {
        matches!(self.rule, Rule::Hash { .. })
    }

    /// Returns the class of a packet. `key` is that of the hash.
    pub(super) fn class(&self, packet: &Slot, headers: Option<&FlowKey>, key: Option<&HashKey>) -> u16 {
        let number = match self.rule {
            Rule::Hash { fields, .. } => key.map_or(0, |key| key.hash(fields, packet, headers)),
            Rule::Number {
                field,
                and,
                xor,
                shift,
                add,
            } => (((field.of(packet, headers) & and) ^ xor) >> shift).wrapping_add(add),
        };
        let number = self.count.map_or(number, |count| count.remainder(number));
        self.first.wrapping_add(number as u16)
    }
}

/// The key of a hash.
#[derive(Clone, Debug)]
pub(super) struct HashKey {
    hasher: SipHasher13,
    /// When it changes. Set by the first packet.
    changes_at: Option<Time>,
}

impl HashKey {
    /// Draws a key for each of `count` filters.
    pub(super) fn draw(count: usize, random: &mut Random) -> Box<[HashKey]> {
        (0..count).map(|_| HashKey::new(random)).collect()
    }

    fn new(random: &mut Random) -> HashKey {
        HashKey {
            hasher: SipHasher13::new_with_keys(random.bits(), random.bits()),
            changes_at: None,
        }
    }

    /// Changes the key if it is time to.
    pub(super) fn keep_fresh(&mut self, computed: &Computed, now: Time, random: &mut Random) {
        let Rule::Hash {
            perturb: Some(period),
            ..
        } = computed.rule
        else {
            return;
        };
        match self.changes_at {
            Some(at) if now < at => return,
            Some(_) => *self = HashKey::new(random),
            None => {}
        }
        self.changes_at = Some(now + period);
    }

    fn hash(&self, fields: Fields, packet: &Slot, headers: Option<&FlowKey>) -> u32 {
        let mut bytes = [0; 4 * Field::ALL.len()];
        let mut end = 0;
        for field in fields.iter() {
            bytes[end..end + 4].copy_from_slice(&field.of(packet, headers).to_ne_bytes());
            end += 4;
        }
        (self.hasher.hash(&bytes[..end]) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowHash;
    use crate::packet::Packet;
    use proptest::prelude::*;

    fn number(field: Field) -> Rule {
        Rule::Number {
            field,
            and: u32::MAX,
            xor: 0,
            shift: 0,
            add: 0,
        }
    }

    proptest! {
        #[test]
        fn the_remainder_is_exact(number: u32, divisor in prop_oneof![1u32..1000, 1u32..]) {
            let count = Count::new(NonZeroU32::new(divisor).expect("above 0"));
            prop_assert_eq!(count.remainder(number), number % divisor);
        }

        /// The order of the steps is that of `flow_classify`.
        #[test]
        fn numbers_are_linuxs(
            mark: u32, and: u32, xor: u32, shift in 0u8..32, add: u32, first: u16, count in 0u32..70_000,
        ) {
            let rule = Rule::Number { field: Field::Mark, and, xor, shift, add };
            let computed = Computed::new(first, NonZeroU32::new(count), rule).expect("it is right");
            let mut expected = ((mark & and) ^ xor) >> shift;
            expected = expected.wrapping_add(add);
            if count > 0 {
                expected %= count;
            }
            let expected = u32::from(first).wrapping_add(expected) & 0xffff;
            let packet = Slot::from(Packet { mark, ..Packet::of_length(100) });
            prop_assert_eq!(u32::from(computed.class(&packet, None, None)), expected);
        }

        /// Packets that agree in the fields have the same class, below the count; others spread.
        #[test]
        fn a_hash_depends_on_its_fields_alone(
            chosen in proptest::sample::subsequence(Field::ALL.to_vec(), 1..=10),
            changed in proptest::sample::select(Field::ALL.to_vec()),
            seed: u64,
        ) {
            let fields: Fields = chosen.iter().copied().collect();
            let count = NonZeroU32::new(1 << 15);
            let rule = Rule::Hash { fields, perturb: None };
            let computed = Computed::new(1, count, rule).expect("it is right");
            let key = HashKey::new(&mut Random::new(seed));
            let (packet, headers) = packet(None);
            let (other, other_headers) = self::packet(Some(changed));
            let class = computed.class(&packet, Some(&headers), Some(&key));
            let of_other = computed.class(&other, Some(&other_headers), Some(&key));
            prop_assert!((1..=1 << 15).contains(&class));
            if !fields.contains(changed) {
                prop_assert_eq!(class, of_other);
            }
        }
    }

    /// Returns a packet, or one in which a field is different.
    fn packet(changed: Option<Field>) -> (Slot, FlowKey) {
        let is = |field| u8::from(changed == Some(field));
        let mut key = FlowKey::of(
            [10, 0, 0, is(Field::Source)].into(),
            [10, 0, 1, is(Field::Destination)].into(),
            if changed == Some(Field::Protocol) { 6 } else { 17 },
            5000 + u16::from(is(Field::SourcePort)),
            53 + u16::from(is(Field::DestinationPort)),
        );
        key.vlan = 7 + u16::from(is(Field::Vlan));
        key.interface = 1 + u16::from(is(Field::Interface));
        let packet = Packet {
            mark: is(Field::Mark).into(),
            priority: is(Field::Priority),
            flow: FlowHash::from_raw(u64::from(is(Field::Flow)) << 32),
            ..Packet::of_length(100)
        };
        (packet.into(), key)
    }

    /// The hash of 512 packets that differ in one field fills most of 64 classes.
    #[test]
    fn a_hash_spreads_packets() {
        let fields = [Field::Mark].into_iter().collect();
        let rule = Rule::Hash {
            fields,
            perturb: None,
        };
        let computed = Computed::new(1, NonZeroU32::new(64), rule).expect("it is right");
        let key = HashKey::new(&mut Random::new(5));
        let class = |mark| {
            let packet = Slot::from(Packet {
                mark,
                ..Packet::of_length(100)
            });
            computed.class(&packet, None, Some(&key))
        };
        let classes: alloc::collections::BTreeSet<u16> = (0..512).map(class).collect();
        assert!(classes.len() > 60, "{classes:?}");
    }

    #[test]
    fn fields_are_read_as_linux_reads_them() {
        let of = |field, key: &FlowKey| {
            let computed = Computed::new(0, None, number(field)).expect("it is right");
            computed.class(&Slot::from(Packet::of_length(100)), Some(key), None)
        };
        let v4 = FlowKey::of([10, 1, 2, 3].into(), [192, 0, 2, 1].into(), 17, 5000, 53);
        assert_eq!(of(Field::Source, &v4), 0x0203);
        assert_eq!(of(Field::DestinationPort, &v4), 53);
        let v6 = |text: &str| text.parse::<core::net::IpAddr>().expect("an address");
        let v6 = FlowKey::of(v6("2001:db8::1:2"), v6("::5"), 1, 77, 0);
        assert_eq!(of(Field::Source, &v6), 0x0db8 ^ 0x0002);
        assert_eq!(of(Field::SourcePort, &v6), 0, "ICMP has no ports");
        let named = Slot::from(Packet {
            class: ClassId::new(1, 5),
            priority: 3,
            ..Packet::of_length(100)
        });
        let priority = Computed::new(0, None, number(Field::Priority)).expect("it is right");
        assert_eq!(priority.class(&named, None, None), 5);
    }

    #[test]
    fn what_can_not_be_computed_is_refused() {
        let refused = |rule| Computed::new(1, None, rule).expect_err("refused").to_string();
        let hash = |fields: Fields, perturb| Rule::Hash { fields, perturb };
        assert!(refused(hash(Fields::default(), None)).contains("at least one field"));
        let fields = [Field::Source].into_iter().collect();
        assert!(refused(hash(fields, Some(Duration::ZERO))).contains("above 0"));
        let shifted = Rule::Number {
            field: Field::Mark,
            and: 0,
            xor: 0,
            shift: 32,
            add: 0,
        };
        assert!(refused(shifted).contains("0 to 31"));
    }

    #[test]
    fn the_key_changes_when_the_period_has_passed() {
        let mut random = Random::new(9);
        let fields = [Field::Source].into_iter().collect();
        let rule = Rule::Hash {
            fields,
            perturb: Some(Duration::from_secs(10)),
        };
        let computed = Computed::new(1, None, rule).expect("it is right");
        let mut key = HashKey::new(&mut random);
        let (packet, headers) = packet(None);
        let mut hash = |seconds| {
            key.keep_fresh(&computed, Time::ZERO + Duration::from_secs(seconds), &mut random);
            key.hash(fields, &packet, Some(&headers))
        };
        let first = hash(3);
        assert_eq!(hash(12), first);
        let second = hash(13);
        assert_ne!(second, first);
        assert_eq!(hash(22), second);
        assert_ne!(hash(23), second);
    }
}

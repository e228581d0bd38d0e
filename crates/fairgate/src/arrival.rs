//! What a driver says of a packet that arrives, and what a tree of disciplines needs to be told.

use core::ops::{BitOr, BitOrAssign};

use crate::flow::{Acknowledgement, FlowKey, HeaderBytes};
use crate::packet::Packet;

/// A packet that arrives: its descriptor, and what was read of its headers.
///
/// A [`Packet`] alone, or one with its header fields, is an arrival, too.
///
/// ```
/// use fairgate::{Arrival, FlowKey, Packet, Pool};
///
/// let mut pool = Pool::with_capacity(2);
/// pool.insert(Packet::of_length(1514))?;
/// let id = pool.insert((Packet::of_length(98), FlowKey::default()))?;
/// assert!(pool.headers(id).is_some());
/// # Ok::<(), fairgate::PoolFull>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The descriptor.
    pub packet: Packet,
    /// The header fields that filters match. Without them no filter on addresses matches.
    pub headers: Option<FlowKey>,
    /// What it acknowledges, if it is a TCP packet
    /// ([`Dissection::acknowledgement`](crate::Dissection::acknowledgement)). Ignored unless
    /// [needed](Needs::acknowledgements).
    pub acknowledgement: Option<Acknowledgement>,
    /// The bytes of its headers. Ignored unless [needed](Needs::bytes). A packet that has header fields, but
    /// no bytes, gets those that the fields imply ([`HeaderBytes::of_fields`]).
    pub bytes: Option<HeaderBytes>,
}

impl From<Packet> for Arrival {
    #[inline]
    fn from(packet: Packet) -> Arrival {
        Arrival {
            packet,
            headers: None,
            acknowledgement: None,
            bytes: None,
        }
    }
}

impl From<(Packet, FlowKey)> for Arrival {
    #[inline]
    fn from((packet, headers): (Packet, FlowKey)) -> Arrival {
        Arrival {
            headers: Some(headers),
            ..Arrival::from(packet)
        }
    }
}

/// What the disciplines of a tree read of a packet besides its descriptor and its header fields
/// ([`Inspect::needs`](crate::Inspect::needs)). What no discipline needs costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// What TCP packets acknowledge.
    pub acknowledgements: bool,
    /// The bytes of headers, for filters that match bytes.
    pub bytes: bool,
}

impl BitOr for Needs {
    type Output = Needs;

    fn bitor(self, other: Needs) -> Needs {
        Needs {
            acknowledgements: self.acknowledgements | other.acknowledgements,
            bytes: self.bytes | other.bytes,
        }
    }
}

impl BitOrAssign for Needs {
    fn bitor_assign(&mut self, other: Needs) {
        *self = *self | other;
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;
    use core::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::cake::AckFilter;
    use crate::classify::{Bytes, BytesOf, Classifier, Filter, Match, Outcome};
    use crate::discipline::{Discipline, Inspect};
    use crate::flow::LinkType;
    use crate::time::Time;
    use crate::{Cake, Fifo, Link, Prio, cake, fifo, prio};

    fn band() -> Box<dyn Discipline> {
        Fifo::node(fifo::Config::default()).unwrap().into()
    }

    /// Bands of which a filter on the TTL chooses the first one.
    fn by_bytes() -> prio::Config {
        let ttl = Bytes::new(BytesOf::Network(8), 1, 0xff, 64, 64).unwrap();
        let filter = Filter {
            condition: Match {
                bytes: vec![ttl],
                ..Match::default()
            },
            outcome: Outcome::Class(1),
            ..Filter::default()
        };
        prio::Config {
            classifier: Classifier {
                filters: vec![filter].into(),
                default: Some(2),
                ..Classifier::default()
            },
            priomap: [1; 16],
        }
    }

    #[test]
    fn a_tree_needs_what_its_disciplines_need() {
        let filtering = cake::Config {
            ack_filter: AckFilter::On,
            ..cake::Config::default()
        };
        let filtering: Box<dyn Discipline> = Cake::node(filtering, 1).unwrap().into();
        let tree = Prio::node(by_bytes(), vec![band(), filtering]).unwrap();
        let both = Needs {
            acknowledgements: true,
            bytes: true,
        };
        assert_eq!(tree.needs(), both);
        let mut link: Link<()> = Link::new(tree, 10);
        assert_eq!(link.needs(), both);
        link.change(|root, pool| root.replace_class(2, band(), Time::ZERO, pool))
            .unwrap();
        assert_eq!(
            link.needs(),
            Needs {
                acknowledgements: false,
                ..both
            }
        );
    }

    /// Nobody has to ask for the bytes: the link keeps what its tree needs.
    #[test]
    fn a_filter_on_bytes_matches_what_header_fields_imply_and_what_the_driver_read() {
        let mut link: Link<u32> = Link::new(Prio::node(by_bytes(), vec![band(), band()]).unwrap(), 10);
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let key = FlowKey::of(address, address, 17, 1, 2);
        let with_ttl = |ttl: u8| {
            let header = [
                0x45, 0, 0, 100, 0, 0, 0, 0, ttl, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1,
            ];
            Arrival {
                bytes: Some(HeaderBytes::of_frame(&header, LinkType::RawIp)),
                ..Arrival::from((Packet::of_length(114), key))
            }
        };
        link.enqueue(with_ttl(63), 0, Time::ZERO).unwrap();
        link.enqueue((Packet::of_length(114), key), 1, Time::ZERO)
            .unwrap();
        link.enqueue(with_ttl(64), 2, Time::ZERO).unwrap();
        let mut next = || link.dequeue(Time::ZERO).packet().unwrap().payload;
        assert_eq!([next(), next(), next()], [1, 2, 0]);
    }
}

//! Strategies for random headers around random packets.

use proptest::collection::vec;
use proptest::prelude::*;

use super::wire::{Stack, Transport, Tunnel, Version, Wrap};

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V4), Just(Version::V6)]
}

fn tunnel() -> impl Strategy<Value = (u16, Tunnel)> {
    let geneve =
        (0u8..64, any::<bool>()).prop_map(|(options, ethernet)| Tunnel::Geneve { options, ethernet });
    prop_oneof![
        (prop_oneof![Just(4789), Just(8472)], Just(Tunnel::Vxlan)),
        (Just(4789), Just(Tunnel::VxlanPolicy)),
        (Just(4790), Just(Tunnel::VxlanIp)),
        (Just(6081), geneve),
        (Just(6080), prop_oneof![Just(Tunnel::Gue), Just(Tunnel::Ip)]),
        (Just(4754), Just(Tunnel::Gre)),
        (Just(6635), Just(Tunnel::Mpls)),
    ]
}

/// A header around an IP packet.
fn around_ip() -> impl Strategy<Value = Wrap> {
    let gre =
        (version(), any::<(bool, bool, bool)>()).prop_map(|(over, (key, checksum, ethernet))| Wrap::Gre {
            over,
            key,
            checksum,
            sequence: false,
            ethernet,
        });
    let udp = (version(), any::<bool>(), tunnel()).prop_map(|(over, checksum, (port, tunnel))| Wrap::Udp {
        over,
        checksum,
        port,
        tunnel,
    });
    prop_oneof![
        2 => version().prop_map(Wrap::Ip),
        3 => gre,
        6 => udp,
        1 => Just(Wrap::Segments),
    ]
}

/// Up to three nested tunnels, with VLAN tags and other outer headers.
pub(super) fn stack() -> impl Strategy<Value = Stack> {
    let outermost = prop_oneof![
        4 => Just(None),
        1 => (1u8..4).prop_map(|labels| Some(Wrap::Mpls { labels })),
        1 => Just(Some(Wrap::Pppoe)),
    ];
    let transport = prop_oneof![3 => Just(Transport::Tcp), 1 => Just(Transport::Udp)];
    let seed = prop_oneof![4 => any::<u16>(), 1 => Just(0)];
    (
        0u8..3,
        outermost,
        vec((around_ip(), any::<bool>()), 0..4),
        version(),
        transport,
        seed,
        any::<bool>(),
    )
        .prop_map(
            |(tags, outermost, tunnels, version, transport, seed, ip_options)| {
                let mut wraps = Vec::from_iter(outermost);
                for (wrap, labelled) in tunnels {
                    wraps.push(wrap);
                    if carries_labels(wrap, labelled) {
                        wraps.push(Wrap::Mpls { labels: 2 });
                    }
                }
                Stack {
                    tags,
                    wraps,
                    version,
                    transport,
                    seed,
                    ip_options,
                    constant: false,
                }
            },
        )
}

/// Whether MPLS labels follow: where they must, and where they are wanted and can be announced.
fn carries_labels(wrap: Wrap, wanted: bool) -> bool {
    match wrap {
        Wrap::Udp { tunnel, .. } => match tunnel {
            Tunnel::Mpls => true,
            Tunnel::Gue | Tunnel::Ip => false,
            _ => wanted,
        },
        Wrap::Gre { .. } => wanted,
        _ => false,
    }
}

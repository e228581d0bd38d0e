use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    IcmpEchoHeader, Icmpv4Type, Icmpv6Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::flow::ethertype::{self, IPV4, IPV6};
use crate::flow::numbers::protocol::{HOST_IDENTITY, MOBILITY, SHIM6};

/// A whole IP packet with TCP or UDP, and its key.
fn packet() -> impl Strategy<Value = (Vec<u8>, FlowKey)> {
    let addresses = prop_oneof![
        any::<([u8; 4], [u8; 4])>().prop_map(|(s, d)| (Ipv4Addr::from(s).into(), Ipv4Addr::from(d).into())),
        any::<([u8; 16], [u8; 16])>().prop_map(|(s, d)| (Ipv6Addr::from(s).into(), Ipv6Addr::from(d).into())),
    ];
    (
        addresses,
        any::<bool>(),
        any::<(u16, u16)>(),
        any::<u8>(),
        0u32..1 << 20,
        0usize..40,
    )
        .prop_map(|(addresses, tcp, ports, traffic_class, flow_label, payload)| {
            build(addresses, tcp, ports, traffic_class, flow_label, payload)
        })
}

fn build(
    (source, destination): (IpAddr, IpAddr),
    tcp: bool,
    ports: (u16, u16),
    traffic_class: u8,
    flow_label: u32,
    payload: usize,
) -> (Vec<u8>, FlowKey) {
    let protocol = if tcp { 6 } else { 17 };
    let mut key = FlowKey::of(source, destination, protocol, ports.0, ports.1);
    key.traffic_class = traffic_class;
    let headers = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header =
                etherparse::Ipv4Header::new(0, 64, protocol.into(), source.octets(), destination.octets())
                    .expect("no payload is not too long");
            header.dscp = (traffic_class >> 2).try_into().expect("six bits");
            header.ecn = (traffic_class & 3).try_into().expect("two bits");
            etherparse::IpHeaders::Ipv4(header, Default::default())
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            key.flow_label = flow_label;
            let header = etherparse::Ipv6Header {
                traffic_class,
                flow_label: flow_label.try_into().expect("twenty bits"),
                hop_limit: 64,
                source: source.octets(),
                destination: destination.octets(),
                ..Default::default()
            };
            etherparse::IpHeaders::Ipv6(header, Default::default())
        }
        _ => unreachable!("both of one family"),
    };
    let payload = vec![0xa5; payload];
    let builder = PacketBuilder::ip(headers);
    let mut bytes = Vec::new();
    if tcp {
        builder.tcp(ports.0, ports.1, 1, 1000).write(&mut bytes, &payload)
    } else {
        builder.udp(ports.0, ports.1).write(&mut bytes, &payload)
    }
    .expect("a vector takes every byte");
    (bytes, key)
}

fn ethertype_of(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 { IPV4 } else { IPV6 }.to_be_bytes()
}

fn ethernet(tags: &[u8], packet: &[u8]) -> Vec<u8> {
    [&[0x0a; 12], tags, &ethertype_of(packet), packet].concat()
}

/// Returns the packet in frames of all link layers, each with the VLAN identifier to be found.
fn links(packet: &[u8]) -> Vec<(&'static str, LinkType, Vec<u8>, u16)> {
    use LinkType::*;
    let version_4 = packet[0] >> 4 == 4;
    let ppp: &[u8] = if version_4 { &[0x00, 0x21] } else { &[0x00, 0x57] };
    let ethertype = ethertype_of(packet);
    vec![
        ("raw", RawIp, packet.to_vec(), 0),
        ("ethernet", Ethernet, ethernet(&[], packet), 0),
        ("802.1Q", Ethernet, ethernet(&[0x81, 0, 0xa0, 7], packet), 7),
        (
            "802.1ad",
            Ethernet,
            ethernet(&[0x88, 0xa8, 0x01, 0x02, 0x81, 0, 0x0f, 0xff], packet),
            0x102,
        ),
        ("old 802.1ad", Ethernet, ethernet(&[0x91, 0, 0, 9], packet), 9),
        (
            "MPLS",
            Ethernet,
            [&[0x0a; 12][..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64], packet].concat(),
            0,
        ),
        (
            "PPPoE in 802.1Q",
            Ethernet,
            [
                &[0x0a; 12][..],
                &[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 1, 0, 99],
                ppp,
                packet,
            ]
            .concat(),
            7,
        ),
        (
            "PPP, its protocol in one byte",
            Ethernet,
            [&[0x0a; 12][..], &[0x88, 0x0b], &ppp[1..], packet].concat(),
            0,
        ),
        (
            "SNAP in 802.3",
            Ethernet,
            [
                &[0x0a; 12][..],
                &[0, 99, 0xaa, 0xaa, 3, 0, 0, 0],
                &ethertype,
                packet,
            ]
            .concat(),
            0,
        ),
        (
            "bridged SNAP in 802.1Q",
            Ethernet,
            [
                &[0x0a; 12][..],
                &[0x81, 0, 0, 7, 5, 0xdc, 0xaa, 0xaa, 3, 0, 0, 0xf8],
                &ethertype,
                packet,
            ]
            .concat(),
            7,
        ),
    ]
}

/// Returns `inner` in every kind of tunnel over IPv4 or IPv6, with DSCP 10 and ECT(0) in the outer header.
fn tunnels(inner: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let v4 = |protocol: u8, payload: &[u8]| {
        let header = [
            0x45, 0x2a, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        [&header, payload].concat()
    };
    let v6 = |protocol: u8, payload: &[u8]| {
        let mut header = [7; 40];
        header[..8].copy_from_slice(&[0x62, 0xa0, 0, 0, 0, 0, protocol, 64]);
        [&header, payload].concat()
    };
    let ethertype = ethertype_of(inner);
    let protocol = if inner[0] >> 4 == 4 { 4 } else { 41 };
    let gre = |flags: u8, options: &[u8]| [&[flags, 0], &ethertype[..], options, inner].concat();
    let bridged = [&[0, 0, 0x65, 0x58][..], &ethernet(&[0x81, 0, 0, 3], inner)].concat();
    let udp = [0x30, 0, 0x12, 0xb5, 0, 0, 0, 0];
    let vxlan = [&udp[..], &[8, 0, 0, 0, 0, 0, 42, 0], &ethernet(&[], inner)].concat();
    vec![
        ("IP in IPv4", v4(protocol, inner)),
        ("IP in IPv6", v6(protocol, inner)),
        ("GRE", v4(47, &gre(0, &[]))),
        ("GRE with key and sequence", v6(47, &gre(0x30, &[0; 8]))),
        ("GRE with checksum", v4(47, &gre(0x80, &[0; 4]))),
        ("GRE with Ethernet", v4(47, &bridged)),
        ("VXLAN", v4(17, &vxlan)),
        ("VXLAN over IPv6", v6(17, &vxlan)),
    ]
}

/// Computes the Internet checksum of an IPv4 header from scratch (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let mut sum: u32 = header
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the EtherType in the frame's own header, or 0 if a length is there.
fn announced(frame: &[u8], link: LinkType) -> u16 {
    match link {
        LinkType::RawIp => u16::from_be_bytes(ethertype_of(frame)),
        LinkType::Ethernet => Some(u16::from_be_bytes([frame[12], frame[13]]))
            .filter(|ethertype| *ethertype >= 0x600)
            .unwrap_or(0),
    }
}

/// Returns the key that `etherparse` reads, if it accepts the whole frame.
fn reference(frame: &[u8]) -> Option<FlowKey> {
    let sliced = SlicedPacket::from_ethernet(frame).ok()?;
    let vlan = sliced.vlan_ids().first().map_or(0, |id| id.value());
    let outer_ethertype = announced(frame, LinkType::Ethernet);
    let mut key = match sliced.net? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            FlowKey {
                traffic_class: header.dcp().value() << 2 | header.ecn().value(),
                ..FlowKey::of(
                    header.source_addr().into(),
                    header.destination_addr().into(),
                    ip.payload_ip_number().0,
                    0,
                    0,
                )
            }
        }
        // `etherparse` continues after the fragment header, where only the first fragment has more headers.
        NetSlice::Ipv6(ip) if ip.is_payload_fragmented() => return None,
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            FlowKey {
                traffic_class: header.traffic_class(),
                flow_label: header.flow_label().value(),
                ..FlowKey::of(
                    header.source_addr().into(),
                    header.destination_addr().into(),
                    ip.payload().ip_number.0,
                    0,
                    0,
                )
            }
        }
        NetSlice::Arp(_) => FlowKey {
            ethertype: 0x0806,
            ..FlowKey::default()
        },
    };
    if [33, 132, 136].contains(&key.protocol) {
        return None; // `etherparse` does not read DCCP, SCTP and UDP-Lite.
    }
    if key.ethertype == IPV6 && [MOBILITY, HOST_IDENTITY, SHIM6].contains(&key.protocol) {
        return None; // `etherparse` does not continue after these extensions.
    }
    (key.vlan, key.outer_ethertype) = (vlan, outer_ethertype);
    (key.source_port, key.destination_port) = match sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
        Some(TransportSlice::Icmpv4(icmp)) => match icmp.icmp_type() {
            Icmpv4Type::EchoRequest(IcmpEchoHeader { id, .. })
            | Icmpv4Type::EchoReply(IcmpEchoHeader { id, .. }) => (id, 0),
            _ => return None,
        },
        Some(TransportSlice::Icmpv6(icmp)) => match icmp.icmp_type() {
            Icmpv6Type::EchoRequest(IcmpEchoHeader { id, .. })
            | Icmpv6Type::EchoReply(IcmpEchoHeader { id, .. }) => (id, 0),
            _ => (0, 0),
        },
        _ => (0, 0),
    };
    Some(key)
}

proptest! {
    #[test]
    fn the_link_layer_does_not_change_the_flow((packet, key) in packet()) {
        for (name, link, frame, vlan) in links(&packet) {
            let dissection = dissect(&frame, link);
            let outer_ethertype = announced(&frame, link);
            prop_assert_eq!(dissection.key, FlowKey { vlan, outer_ethertype, ..key }, "{}", name);
            prop_assert_eq!(dissection.network_offset, Some((frame.len() - packet.len()) as u16), "{}", name);
            prop_assert_eq!(dissect_tunnelled(&frame, link), dissection, "{}", name);
        }
    }

    #[test]
    fn a_tunnel_has_the_inner_flow_and_the_outer_traffic_class((inner, key) in packet()) {
        for (name, outer) in tunnels(&inner) {
            for (link_name, link, frame, vlan) in links(&outer) {
                let outer_ethertype = announced(&frame, link);
                let expected = FlowKey { vlan, outer_ethertype, traffic_class: 0x2a, ..key };
                prop_assert_eq!(dissect_tunnelled(&frame, link).key, expected, "{} over {}", name, link_name);
                prop_assert_ne!(dissect(&frame, link).key.source, key.source, "{} over {}", name, link_name);
            }
        }
    }

    #[test]
    fn cutting_a_frame_only_clears_fields((packet, _) in packet(), cut in any::<Index>()) {
        for (name, link, mut frame, _) in links(&packet) {
            let whole = dissect(&frame, link);
            frame.truncate(cut.index(frame.len()));
            let part = dissect(&frame, link);
            let cleared = |part: u16, whole: u16| part == whole || part == 0;
            prop_assert!(cleared(part.key.source_port, whole.key.source_port), "{}", name);
            prop_assert!(cleared(part.key.destination_port, whole.key.destination_port), "{}", name);
            prop_assert!(cleared(part.key.protocol.into(), whole.key.protocol.into()), "{}", name);
            prop_assert!(cleared(part.key.vlan, whole.key.vlan), "{}", name);
            match part.network_offset {
                Some(_) => {
                    prop_assert_eq!(part.network_offset, whole.network_offset);
                    prop_assert_eq!(part.key.source, whole.key.source);
                    prop_assert_eq!(part.key.traffic_class, whole.key.traffic_class);
                }
                None => prop_assert_eq!(
                    part.key,
                    FlowKey {
                        ethertype: part.key.ethertype,
                        outer_ethertype: part.key.outer_ethertype,
                        vlan: part.key.vlan,
                        ..FlowKey::default()
                    }
                ),
            }
        }
    }

    /// Valid headers with a few changed bytes get deep into the dissector. If `etherparse` finds no error in
    /// the frame, both must read the same.
    #[test]
    fn etherparse_agrees(
        (packet, _) in packet(),
        tags in prop_oneof![
            Just(vec![]),
            Just(vec![0x81, 0, 0, 7]),
            Just(vec![0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]),
        ],
        changes in vec((any::<Index>(), any::<u8>()), 0..4),
    ) {
        let mut frame = ethernet(&tags, &packet);
        for (position, value) in changes {
            let position = position.index(frame.len());
            frame[position] = value;
        }
        if let Some(key) = reference(&frame) {
            prop_assert_eq!(dissect(&frame, LinkType::Ethernet).key, key);
        }
    }

    #[test]
    fn etherparse_agrees_on_ipv6_extensions(
        extensions in vec((prop::sample::select(vec![0u8, 43, 44, 51, 60]), 0u8..3, any::<[u8; 8]>()), 1..6),
        ports in any::<[u8; 4]>(),
    ) {
        let mut frame = [&[0x0a; 12][..], &IPV6.to_be_bytes()].concat();
        let mut payload = Vec::new();
        for (index, &(protocol, length, content)) in extensions.iter().enumerate() {
            let next = extensions.get(index + 1).map_or(17, |following| following.0);
            let size = match protocol {
                44 => 8,
                51 => (usize::from(length) + 2) * 4,
                _ => (usize::from(length) + 1) * 8,
            };
            let mut header = vec![0; size];
            header[2..8.min(size)].copy_from_slice(&content[2..8.min(size)]);
            header[0] = next;
            header[1] = if protocol == 44 { 0 } else { length };
            payload.extend(header);
        }
        payload.extend([&ports[..], &[0, 8, 0, 0]].concat());
        let length = (payload.len() as u16).to_be_bytes();
        frame.extend([0x60, 0, 0, 0, length[0], length[1], extensions[0].0, 64]);
        frame.extend([7; 32]);
        frame.extend(&payload);
        if let Some(key) = reference(&frame) {
            prop_assert_eq!(dissect(&frame, LinkType::Ethernet).key, key);
        }
    }

    #[test]
    fn no_frame_causes_a_panic(mut frame in vec(any::<u8>(), 0..200)) {
        for link in LinkType::ALL {
            let dissection = dissect_tunnelled(&frame, link);
            prop_assert!(dissection.network_offset.is_none_or(|offset| usize::from(offset) < frame.len()));
            set_ce(&mut frame, link);
        }
    }

    /// Random bytes after each header that leads to another parser.
    #[test]
    fn no_broken_tunnel_causes_a_panic(
        (inner, _) in packet(),
        changes in vec((any::<Index>(), any::<u8>()), 1..6),
        cut in any::<Index>(),
    ) {
        for (_, outer) in tunnels(&inner) {
            for (_, link, mut frame, _) in links(&outer) {
                for (position, value) in &changes {
                    let position = position.index(frame.len());
                    frame[position] = *value;
                }
                frame.truncate(cut.index(frame.len() + 1));
                let dissection = dissect_tunnelled(&frame, link);
                let could_mark = set_ce(&mut frame, link);
                prop_assert!(!could_mark || dissection.network_offset.is_some());
            }
        }
    }

    #[test]
    fn a_mark_changes_two_bits_and_updates_the_checksum((packet, key) in packet()) {
        for (name, link, mut frame, _) in links(&packet) {
            let before = frame.clone();
            let marked = set_ce(&mut frame, link);
            prop_assert_eq!(marked, key.traffic_class & 3 != 0, "{}", name);
            let after = dissect(&frame, link);
            if !marked {
                prop_assert_eq!(frame, before);
                continue;
            }
            prop_assert_eq!(after.ecn(), Ecn::Ce);
            let offset = usize::from(after.network_offset.expect("an IP packet"));
            let changed = before.iter().zip(&frame).filter(|(old, new)| old != new).count();
            if key.ethertype == IPV4 {
                prop_assert_eq!(checksum(&frame[offset..offset + 20]), 0, "{}", name);
                prop_assert!(changed <= 3);
            } else {
                prop_assert!(changed <= 1);
            }
            let without_class = |key: FlowKey| FlowKey { traffic_class: 0, ..key };
            prop_assert_eq!(without_class(after.key), without_class(dissect(&before, link).key));
        }
    }
}

#[test]
fn all_fragments_of_a_datagram_are_one_flow() {
    let (whole, key) = build(
        (
            Ipv4Addr::new(10, 0, 0, 1).into(),
            Ipv4Addr::new(10, 0, 0, 2).into(),
        ),
        false,
        (5000, 5001),
        0,
        0,
        32,
    );
    let without_ports = FlowKey {
        source_port: 0,
        destination_port: 0,
        ..key
    };
    let flow_of = |flags_and_offset: u16| {
        let mut fragment = whole.clone();
        fragment[6..8].copy_from_slice(&flags_and_offset.to_be_bytes());
        dissect(&fragment, LinkType::RawIp).key
    };
    assert_eq!(flow_of(0x2000), without_ports, "the first fragment");
    assert_eq!(flow_of(0x2003), without_ports, "a middle fragment");
    assert_eq!(flow_of(0x0004), without_ports, "the last fragment");
    assert_eq!(flow_of(0x4000), key, "don't fragment");
}

#[test]
fn ipv6_fragments_keep_their_label_and_a_single_one_its_ports() {
    let mut packet = vec![0; 40 + 8 + 8];
    packet[..8].copy_from_slice(&[0x60, 0x0a, 0xbc, 0xde, 0, 16, 44, 64]);
    packet[40] = 17;
    packet[48..52].copy_from_slice(&[0x13, 0x88, 0x13, 0x89]);
    let lone = dissect(&packet, LinkType::RawIp).key;
    assert_eq!(
        (lone.protocol, lone.source_port, lone.destination_port),
        (17, 5000, 5001)
    );
    packet[43] = 1;
    let first = dissect(&packet, LinkType::RawIp).key;
    packet[42..44].copy_from_slice(&[0x01, 0x00]);
    let last = dissect(&packet, LinkType::RawIp).key;
    assert_eq!(first, last);
    assert_eq!(
        (first.protocol, first.source_port, first.flow_label),
        (17, 0, 0xabcde)
    );
    let hasher = FlowHasher::new([3, 4]);
    let other_label = FlowKey {
        flow_label: 1,
        ..first
    };
    assert_eq!(hasher.five_tuple(&first), hasher.five_tuple(&last));
    assert_ne!(
        hasher.five_tuple(&first),
        hasher.five_tuple(&other_label),
        "the label distinguishes them"
    );
    let relabelled = FlowKey {
        flow_label: 1,
        ..lone
    };
    assert_eq!(
        hasher.five_tuple(&lone),
        hasher.five_tuple(&relabelled),
        "the label does not matter if there are ports"
    );
}

#[test]
fn ports_are_read_of_all_transports_and_after_options() {
    for protocol in [6, 17, 33, 132, 136] {
        let mut packet = vec![0; 24 + 8];
        packet[..20].copy_from_slice(&[
            0x46, 0, 0, 32, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        packet[24..28].copy_from_slice(&[0, 7, 0, 9]);
        let key = dissect(&packet, LinkType::RawIp).key;
        assert_eq!(
            (key.protocol, key.source_port, key.destination_port),
            (protocol, 7, 9)
        );
    }
}

#[test]
fn padding_is_not_read_as_ports() {
    let mut packet = vec![0xff; 60];
    packet[..20].copy_from_slice(&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    assert_eq!(dissect(&packet, LinkType::RawIp).key.source_port, 0);
}

#[test]
fn frames_without_ip_have_the_flow_of_their_ethertype() {
    let arp = [&[0xff; 12][..], &[0x08, 0x06], &[1; 28]].concat();
    let dissection = dissect(&arp, LinkType::Ethernet);
    let expected = FlowKey {
        ethertype: 0x0806,
        outer_ethertype: 0x0806,
        ..FlowKey::default()
    };
    assert_eq!((dissection.key, dissection.network_offset), (expected, None));
    let spanning_tree = [&[0xff; 12][..], &[0, 38], &[0x42; 38]].concat();
    assert_eq!(
        dissect(&spanning_tree, LinkType::Ethernet).key,
        FlowKey::default()
    );
    let cisco = [
        &[0xff; 12][..],
        &[0, 38, 0xaa, 0xaa, 3, 0, 0, 0x0c, 0x08, 0],
        &[0x45; 38],
    ]
    .concat();
    assert_eq!(dissect(&cisco, LinkType::Ethernet).key, FlowKey::default());
    let no_length = [
        &[0xff; 12][..],
        &[0x05, 0xdd, 0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0],
        &[0x45; 38],
    ]
    .concat();
    assert_eq!(dissect(&no_length, LinkType::Ethernet).key, FlowKey::default());
    // A pseudo-wire over MPLS begins with a control word whose first nibble is 0.
    let pseudo_wire = [&[0xff; 12][..], &[0x88, 0x47, 0, 1, 1, 64], &[0; 40]].concat();
    assert_eq!(dissect(&pseudo_wire, LinkType::Ethernet).key.ethertype, 0x8847);
}

/// IP directly after LLC, over its own service access point. It is rare, and for IPv4 only.
#[test]
fn ip_may_follow_llc_directly() {
    let (packet, key) = build(
        (
            Ipv4Addr::new(10, 0, 0, 1).into(),
            Ipv4Addr::new(10, 0, 0, 2).into(),
        ),
        true,
        (5000, 80),
        0,
        0,
        3,
    );
    let frame = [&[0x0a; 12][..], &[0, 46, 6, 6, 3], &packet].concat();
    let expected = FlowKey {
        outer_ethertype: 0,
        ..key
    };
    assert_eq!(dissect(&frame, LinkType::Ethernet).key, expected);
}

#[test]
fn a_payload_is_dissected_by_its_ethertype() {
    let (packet, key) = build(
        (
            Ipv4Addr::new(10, 0, 0, 1).into(),
            Ipv4Addr::new(10, 0, 0, 2).into(),
        ),
        true,
        (5000, 80),
        0,
        0,
        3,
    );
    let tagged = [&[0, 7, 8, 0][..], &packet].concat();
    let dissection = dissect_payload(&tagged, ethertype::VLAN);
    assert_eq!(
        (dissection.key, dissection.network_offset),
        (
            FlowKey {
                vlan: 7,
                outer_ethertype: ethertype::VLAN,
                ..key
            },
            Some(4)
        )
    );
    assert_eq!(
        dissect_payload(&packet, IPV6).network_offset,
        None,
        "it says IPv4"
    );
    assert_eq!(dissect_payload(&packet, 0).key, FlowKey::default());
}

#[test]
fn the_number_of_tags_and_extensions_is_limited() {
    let mut tags = vec![0x0a; 12];
    tags.extend([0x81, 0, 0, 1].repeat(10_000));
    assert_eq!(dissect(&tags, LinkType::Ethernet).key.ethertype, 0x8100);
    let mut extensions = vec![0; 40 + 8 * 5000];
    extensions[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, 60, 64]);
    for header in extensions[40..].chunks_mut(8) {
        header[0] = 60;
    }
    let dissection = dissect(&extensions, LinkType::RawIp);
    assert_eq!((dissection.key.protocol, dissection.key.source_port), (60, 0));
}

/// The table `ip_tos2prio` of Linux's net/ipv4/route.c, indexed by bits 1 to 4 of the type of service.
#[test]
fn priorities_equal_those_of_linux() {
    let table = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
    for traffic_class in 0..=255u8 {
        let mut dissection = Dissection::default();
        dissection.key.traffic_class = traffic_class;
        let index = usize::from(traffic_class & 0x1e) >> 1;
        assert_eq!(
            dissection.priority(),
            table[index],
            "traffic class {traffic_class:#x}"
        );
    }
}

#[test]
fn a_key_has_the_documented_size() {
    assert_eq!(size_of::<FlowKey>(), 52);
}

/// One wrong byte at every place. Unlike random changes, this tests every value of every field.
#[test]
fn etherparse_agrees_whatever_the_value_of_one_byte() {
    let v4 = (
        Ipv4Addr::new(192, 0, 2, 1).into(),
        Ipv4Addr::new(198, 51, 100, 7).into(),
    );
    let v6 = (Ipv6Addr::LOCALHOST.into(), Ipv6Addr::from([7; 16]).into());
    let mut compared = 0;
    for (addresses, tcp, payload) in [
        (v4, false, 0),
        (v4, true, 33),
        (v6, false, 0),
        (v6, true, 33),
        (v6, false, 1),
    ] {
        let (packet, _) = build(addresses, tcp, (22_784, 1), 0x2a, 5, payload);
        let mut frame = ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8], &packet);
        for position in 0..frame.len() {
            let original = frame[position];
            for value in 0..=u8::MAX {
                frame[position] = value;
                if let Some(key) = reference(&frame) {
                    assert_eq!(
                        dissect(&frame, LinkType::Ethernet).key,
                        key,
                        "byte {position} is {value}"
                    );
                    compared += 1;
                }
            }
            frame[position] = original;
        }
    }
    assert!(compared > 80_000, "{compared}");
}

//! Kinds of tunnels, and the devices that make the kernel merge their packets.

use crate::wire::{Stack, Transport, Tunnel, Version, Wrap};

/// Whether the kernel merges packets of a kind.
pub(crate) enum Merged {
    /// The kernel always merges.
    Always,
    /// The kernel merges if a device of this kind receives such packets. The value is arguments of `ip`.
    With(&'static [&'static str]),
    /// The kernel does not merge. The packets pass unchanged.
    Never,
    /// It depends on the kernel.
    Perhaps,
}

/// A kind of packet.
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) stack: Stack,
    pub(crate) merged: Merged,
}

const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

fn kind(name: String, wraps: Vec<Wrap>, version: Version, merged: Merged) -> Kind {
    Kind {
        name: format!("{name} around TCP over {version:?}"),
        stack: Stack {
            tags: 0,
            wraps,
            version,
            transport: Transport::Tcp,
            seed: 1000,
            ip_options: false,
            constant: false,
        },
        merged,
    }
}

/// Returns all kinds. The devices get no address: the router does not receive the packets, its kernel only
/// learns the port.
pub(crate) fn all() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for inner in VERSIONS {
        kinds.push(kind("nothing".into(), vec![], inner, Merged::Always));
        for over in VERSIONS {
            let wrap = Wrap::Ip(over);
            kinds.push(kind(
                format!("IP in IP over {over:?}"),
                vec![wrap],
                inner,
                Merged::Always,
            ));
            kinds.extend(gre(over, inner));
            kinds.extend(udp(over, inner));
            let nested = vec![Wrap::Ip(over), wrap];
            let name = format!("IP in IP in IP over {over:?}");
            kinds.push(kind(name, nested, inner, Merged::Never));
        }
        let routed = vec![Wrap::Segments];
        kinds.push(kind("segment routing".into(), routed, inner, Merged::Perhaps));
        kinds.push(kind("PPPoE".into(), vec![Wrap::Pppoe], inner, Merged::Perhaps));
        let labels = vec![Wrap::Mpls { labels: 2 }];
        kinds.push(kind("MPLS".into(), labels, inner, Merged::Perhaps));
    }
    for version in VERSIONS {
        let mut datagrams = kind("UDP".into(), vec![], version, Merged::Always);
        datagrams.name = format!("UDP over {version:?}");
        datagrams.stack.transport = Transport::Udp;
        kinds.push(datagrams);
    }
    for (name, wraps) in [("nothing", vec![]), ("IP in IP", vec![Wrap::Ip(Version::V4)])] {
        for seed in [0, 1000] {
            let name = format!("{name} with constant identification {seed}");
            let mut constant = kind(name, wraps.clone(), Version::V4, Merged::Always);
            constant.stack.seed = seed;
            constant.stack.constant = true;
            kinds.push(constant);
        }
    }
    kinds
}

fn gre(over: Version, inner: Version) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (name, key, checksum, sequence, ethernet) in [
        ("GRE", false, false, false, false),
        ("GRE with key", true, false, false, false),
        ("GRE with checksum", false, true, false, false),
        ("GRE with key and checksum", true, true, false, false),
        ("GRE with key and sequence", true, false, true, false),
        ("Ethernet in GRE", false, false, false, true),
        ("Ethernet in GRE with checksum", true, true, false, true),
    ] {
        let wrap = Wrap::Gre {
            over,
            key,
            checksum,
            sequence,
            ethernet,
        };
        // Every packet has its own sequence number, which a super-packet cannot carry.
        let merged = if sequence { Merged::Never } else { Merged::Always };
        kinds.push(kind(format!("{name} over {over:?}"), vec![wrap], inner, merged));
    }
    kinds
}

fn udp(over: Version, inner: Version) -> Vec<Kind> {
    const VXLAN: [&[&str]; 2] = [
        &[
            "link", "add", "vx4", "type", "vxlan", "id", "42", "local", "10.9.0.9", "dstport", "4789",
        ],
        &[
            "link", "add", "vx6", "type", "vxlan", "id", "43", "local", "fd09::9", "dstport", "4789",
        ],
    ];
    const VXLAN_ELSEWHERE: [&[&str]; 2] = [
        &[
            "link", "add", "ve4", "type", "vxlan", "id", "44", "local", "10.9.0.9", "dstport", "9999",
        ],
        &[
            "link", "add", "ve6", "type", "vxlan", "id", "45", "local", "fd09::9", "dstport", "9999",
        ],
    ];
    const VXLAN_POLICY: [&[&str]; 2] = [
        &[
            "link", "add", "vp4", "type", "vxlan", "id", "46", "local", "10.9.0.9", "dstport", "9998", "gbp",
        ],
        &[
            "link", "add", "vp6", "type", "vxlan", "id", "47", "local", "fd09::9", "dstport", "9998", "gbp",
        ],
    ];
    // A VXLAN-GPE device receives the packets of both IP versions.
    const VXLAN_GENERIC: &[&str] = &[
        "link", "add", "vg", "type", "vxlan", "dstport", "4790", "gpe", "external",
    ];
    const GENEVE: &[&str] = &[
        "link", "add", "gn", "type", "geneve", "dstport", "6081", "external",
    ];
    const GUE: [&[&str]; 2] = [
        &["fou", "add", "port", "6080", "gue"],
        &["fou", "add", "port", "6080", "gue", "-6"],
    ];
    const FOU: [&[&str]; 2] = [
        &["fou", "add", "port", "9997", "ipproto", "4"],
        &["fou", "add", "port", "9997", "ipproto", "4", "-6"],
    ];
    const FOU_GRE: [&[&str]; 2] = [
        &["fou", "add", "port", "4754", "ipproto", "47"],
        &["fou", "add", "port", "4754", "ipproto", "47", "-6"],
    ];
    const BARE: &[&str] = &[
        "link",
        "add",
        "bu",
        "type",
        "bareudp",
        "dstport",
        "6635",
        "ethertype",
        "mpls_uc",
    ];
    let of = |devices: [&'static [&'static str]; 2]| match over {
        Version::V4 => Merged::With(devices[0]),
        Version::V6 => Merged::With(devices[1]),
    };
    let geneve = |ethernet| Tunnel::Geneve { options: 3, ethernet };
    let mut kinds = Vec::new();
    for checksum in [false, true] {
        let mut add = |name: &str, port, tunnel, merged| {
            let wrap = Wrap::Udp {
                over,
                checksum,
                port,
                tunnel,
            };
            let with = if checksum { " with checksum" } else { "" };
            kinds.push(kind(
                format!("{name}{with} over {over:?}"),
                vec![wrap],
                inner,
                merged,
            ));
        };
        add("VXLAN", 4789, Tunnel::Vxlan, of(VXLAN));
        add("VXLAN on port 9999", 9999, Tunnel::Vxlan, of(VXLAN_ELSEWHERE));
        add("VXLAN with policy", 9998, Tunnel::VxlanPolicy, of(VXLAN_POLICY));
        add("VXLAN-GPE", 4790, Tunnel::VxlanIp, Merged::With(VXLAN_GENERIC));
        add("GENEVE", 6081, geneve(true), Merged::With(GENEVE));
        add("GENEVE around IP", 6081, geneve(false), Merged::With(GENEVE));
        add("GUE", 6080, Tunnel::Gue, of(GUE));
        if inner == Version::V4 {
            add("FOU", 9997, Tunnel::Ip, of(FOU));
        }
        add("GRE in UDP", 4754, Tunnel::Gre, of(FOU_GRE));
    }
    let wrap = Wrap::Udp {
        over,
        checksum: true,
        port: 6635,
        tunnel: Tunnel::Mpls,
    };
    let wraps = vec![wrap, Wrap::Mpls { labels: 1 }];
    kinds.push(kind(
        format!("MPLS in UDP over {over:?}"),
        wraps,
        inner,
        Merged::With(BARE),
    ));
    kinds
}

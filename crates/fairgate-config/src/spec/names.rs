//! Names of numbers in packet headers.

/// IP protocols that carry common traffic (IANA, Assigned Internet Protocol Numbers).
pub(crate) const PROTOCOLS: &[(&str, u64)] = &[
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("udp", 17),
    ("dccp", 33),
    ("ipv6", 41),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("ospf", 89),
    ("sctp", 132),
    ("udplite", 136),
];

/// DiffServ code points: class selectors and default (RFC 2474), assured forwarding (RFC 2597), expedited
/// forwarding (RFC 3246), voice admit (RFC 5865), lower effort (RFC 8622).
pub(crate) const DSCPS: &[(&str, u64)] = &[
    ("CS0", 0),
    ("DF", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VOICE-ADMIT", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

/// EtherTypes (IEEE 802).
pub(crate) const ETHERTYPES: &[(&str, u64)] = &[
    ("ipv4", 0x0800),
    ("arp", 0x0806),
    ("802.1q", 0x8100),
    ("ipv6", 0x86dd),
    ("802.1ad", 0x88a8),
];

//! Well-known names of ports and protocols. They are fixed here, so that a result does not depend on the
//! lists of the machine.

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Returns the service at `port`, or the number.
pub(super) fn service(protocol: u8, port: u16) -> String {
    let name = match (protocol, port) {
        (TCP | UDP, 53) => "dns",
        (TCP, 20) => "ftp-data",
        (TCP, 21) => "ftp",
        (TCP, 22) => "ssh",
        (TCP, 25) => "smtp",
        (TCP, 80) => "http",
        (TCP, 110) => "pop3",
        (TCP, 143) => "imap",
        (TCP, 443) => "https",
        (TCP, 465 | 587) => "submission",
        (TCP, 853) => "dns-over-tls",
        (TCP, 993) => "imaps",
        (TCP, 1935) => "rtmp",
        (TCP, 3389) => "rdp",
        (TCP, 5201) => "iperf3",
        (UDP, 67 | 68) => "dhcp",
        (UDP, 123) => "ntp",
        (UDP, 443) => "quic",
        (UDP, 500 | 4500) => "ipsec",
        (UDP, 1194) => "openvpn",
        (UDP, 1900) => "ssdp",
        (UDP, 3074) => "game",
        (UDP, 3478 | 3479) => "stun",
        (UDP, 5004) => "rtp",
        (UDP, 5060) => "sip",
        (UDP, 5353) => "mdns",
        (UDP, 27015) => "game",
        (UDP, 51820) => "wireguard",
        (TCP | UDP, 6881..=6889) => "bittorrent",
        _ => return port.to_string(),
    };
    name.to_owned()
}

/// Returns the name of an IP protocol, or its number.
pub(super) fn protocol(number: u8) -> String {
    let name = match number {
        1 => "ICMP",
        2 => "IGMP",
        TCP => "TCP",
        UDP => "UDP",
        41 => "IPv6 in IPv4",
        47 => "GRE",
        50 => "ESP",
        58 => "ICMPv6",
        132 => "SCTP",
        136 => "UDP-Lite",
        other => return format!("IP protocol {other}"),
    };
    name.to_owned()
}

//! Builds packets as a sender without any offload sends them, and the super-packets that replace several of
//! them. It shares nothing with the code under test. The tests of live traffic also send these packets.

/// A header around the innermost packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrap {
    /// An IPv4 or IPv6 header around an IP packet.
    Ip(Version),
    Gre {
        over: Version,
        key: bool,
        checksum: bool,
        /// With a sequence number, so that packets can't be merged.
        sequence: bool,
        ethernet: bool,
    },
    Udp {
        over: Version,
        checksum: bool,
        port: u16,
        tunnel: Tunnel,
    },
    Mpls {
        labels: u8,
    },
    Pppoe,
    /// Extension headers between an IPv6 header and its payload.
    Segments,
}

/// The tunnel format in UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tunnel {
    Vxlan,
    VxlanPolicy,
    VxlanIp,
    Geneve { options: u8, ethernet: bool },
    Gue,
    Mpls,
    Gre,
    Ip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

/// All header fields that are the same in every segment.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    /// The number of VLAN tags of the outermost frame.
    pub(super) tags: u8,
    /// The outer headers, from the outermost.
    pub(super) wraps: Vec<Wrap>,
    pub(super) version: Version,
    pub(super) transport: Transport,
    /// An offset for all numbers that count up with the segments.
    pub(super) seed: u16,
    /// Whether the innermost IPv4 header has four bytes of options.
    pub(super) ip_options: bool,
    /// Whether the IPv4 identification is constant where fragments are forbidden.
    pub(super) constant: bool,
}

/// The fields that differ from segment to segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentFields<'a> {
    pub(super) index: u16,
    pub(super) offset: u32,
    pub(super) flags: u8,
    pub(super) payload: &'a [u8],
    /// True for a super-packet: its checksum fields hold the sum of the pseudo header.
    pub(super) unfinished: bool,
}

/// Returns the sum of RFC 1071, word by word in network order, not complemented.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn put(packet: &mut [u8], at: usize, word: u16) {
    packet[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

fn addresses(version: Version, level: usize) -> Vec<u8> {
    let level = level as u8;
    match version {
        Version::V4 => [[10, level, 0, 1], [10, level, 0, 2]].concat(),
        Version::V6 => {
            let address = |last| [0xfd, level, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, last];
            [address(1), address(2)].concat()
        }
    }
}

/// Returns the sum of a pseudo header.
fn pseudo(version: Version, level: usize, protocol: u8, length: usize) -> u16 {
    let mut bytes = addresses(version, level);
    bytes.extend((length as u32).to_be_bytes());
    bytes.extend([0, protocol]);
    sum(&bytes)
}

impl Stack {
    /// Builds the frame. Returns it with the offset of its innermost transport header.
    pub(super) fn build(&self, fields: SegmentFields<'_>) -> (Vec<u8>, usize) {
        let innermost = self.wraps.len();
        let mut packet = self.transport(fields);
        let transport_length = packet.len();
        let protocol = match self.transport {
            Transport::Tcp => 6,
            Transport::Udp => 17,
        };
        packet = self.ip(self.version, innermost, protocol, packet, fields);
        let mut version = self.version;
        for (level, wrap) in self.wraps.iter().enumerate().rev() {
            packet = self.wrap(*wrap, level, &mut version, packet, fields);
        }
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for tag in 0..self.tags {
            frame.extend([[0x88, 0xa8], [0x81, 0x00]][usize::from(tag & 1)]);
            frame.extend([0, tag]);
        }
        frame.extend(self.ethertype(0, version).to_be_bytes());
        frame.extend(packet);
        let start = frame.len() - transport_length;
        (frame, start)
    }

    /// Returns the EtherType of the header at this level. `version` is that of the IP packet inside.
    fn ethertype(&self, level: usize, version: Version) -> u16 {
        match (self.wraps.get(level), version) {
            (Some(Wrap::Mpls { .. }), _) => 0x8847,
            (Some(Wrap::Pppoe), _) => 0x8864,
            (_, Version::V4) => 0x0800,
            (_, Version::V6) => 0x86dd,
        }
    }

    /// Every other level of IPv4 forbids fragments.
    fn forbids_fragments(&self, level: usize) -> bool {
        level.is_multiple_of(2)
    }

    /// Returns the identification. It counts up, from a different start at each level. It is constant where
    /// fragments are forbidden and it is zero or `constant` is set.
    fn identification(&self, level: usize, index: u16) -> u16 {
        let first = self.seed.wrapping_mul(level as u16 + 1);
        if self.forbids_fragments(level) && (self.constant || first == 0) {
            first
        } else {
            first.wrapping_add(index)
        }
    }

    fn transport(&self, fields: SegmentFields<'_>) -> Vec<u8> {
        let (mut header, field, protocol) = match self.transport {
            Transport::Tcp => {
                let sequence = (u32::MAX - 2000).wrapping_add(fields.offset);
                let mut header = vec![16, 146, 0, 80];
                header.extend(sequence.to_be_bytes());
                header.extend([0, 0, 0, 77, 0x80, fields.flags, 3, 232, 0, 0, 0, 0]);
                header.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
                (header, 16, 6)
            }
            Transport::Udp => {
                let mut header = vec![0, 1, 0, 2];
                header.extend((fields.payload.len() as u16 + 8).to_be_bytes());
                header.extend([0, 0]);
                (header, 6, 17)
            }
        };
        header.extend(fields.payload);
        let pseudo = pseudo(self.version, self.wraps.len(), protocol, header.len());
        let checksum = if fields.unfinished {
            pseudo
        } else {
            let checksum = !sum(&[&pseudo.to_be_bytes()[..], &header].concat());
            if checksum == 0 && protocol == 17 {
                0xffff
            } else {
                checksum
            }
        };
        put(&mut header, field, checksum);
        header
    }

    fn ip(
        &self,
        version: Version,
        level: usize,
        protocol: u8,
        inside: Vec<u8>,
        fields: SegmentFields<'_>,
    ) -> Vec<u8> {
        let mut header = match version {
            Version::V4 => {
                let options = if self.ip_options && level == self.wraps.len() {
                    &[1, 1, 1, 0][..]
                } else {
                    &[]
                };
                let words = 5 + options.len() as u8 / 4;
                let length = (usize::from(words) * 4 + inside.len()) as u16;
                let flags = if self.forbids_fragments(level) { 0x40 } else { 0 };
                let mut header = vec![0x40 | words, 0];
                header.extend(length.to_be_bytes());
                header.extend(self.identification(level, fields.index).to_be_bytes());
                header.extend([flags, 0, 64, protocol, 0, 0]);
                header.extend(addresses(version, level));
                header.extend(options);
                let checksum = !sum(&header);
                put(&mut header, 10, checksum);
                header
            }
            Version::V6 => {
                let mut header = vec![0x60, 0, 0, 0];
                header.extend((inside.len() as u16).to_be_bytes());
                header.extend([protocol, 64]);
                header.extend(addresses(version, level));
                header
            }
        };
        header.extend(inside);
        header
    }

    /// Adds a header to `packet`, an IP packet of `version`, and sets `version` to that of the result.
    fn wrap(
        &self,
        wrap: Wrap,
        level: usize,
        version: &mut Version,
        packet: Vec<u8>,
        fields: SegmentFields<'_>,
    ) -> Vec<u8> {
        let inner = self.ethertype(level + 1, *version);
        let ethernet = |packet: Vec<u8>| {
            let mut frame = vec![2, 1, 0, 0, 0, 1, 2, 1, 0, 0, 0, 2];
            frame.extend(inner.to_be_bytes());
            frame.extend(packet);
            frame
        };
        let protocol = match *version {
            Version::V4 => 4,
            Version::V6 => 41,
        };
        match wrap {
            Wrap::Ip(over) => {
                *version = over;
                self.ip(over, level, protocol, packet, fields)
            }
            Wrap::Segments => {
                // Hop-by-hop options (padding) and a segment routing header with one segment (RFC 8754).
                let mut extended = vec![43, 0, 1, 4, 0, 0, 0, 0];
                extended.extend([protocol, 2, 4, 0, 0, 0, 0, 0]);
                extended.extend(&addresses(Version::V6, level)[16..]);
                extended.extend(packet);
                *version = Version::V6;
                self.ip(Version::V6, level, 0, extended, fields)
            }
            Wrap::Gre {
                over,
                key,
                checksum,
                sequence,
                ethernet: whole,
            } => {
                let (inner, packet) = if whole {
                    (0x6558, ethernet(packet))
                } else {
                    (inner, packet)
                };
                let packet = gre(inner, [checksum, key, sequence], packet, fields);
                *version = over;
                self.ip(over, level, 47, packet, fields)
            }
            Wrap::Udp {
                over,
                checksum,
                port,
                tunnel,
            } => {
                let packet = match tunnel {
                    Tunnel::Vxlan => [vec![8, 0, 0, 0, 0, 0, 42, 0], ethernet(packet)].concat(),
                    Tunnel::VxlanPolicy => [vec![0x88, 0x48, 1, 2, 0, 0, 42, 0], ethernet(packet)].concat(),
                    Tunnel::VxlanIp => {
                        let protocol = match inner {
                            0x0800 => 1,
                            0x86dd => 2,
                            _ => 5,
                        };
                        [vec![0x0c, 0, 0, protocol, 0, 0, 42, 0], packet].concat()
                    }
                    Tunnel::Geneve {
                        options,
                        ethernet: whole,
                    } => {
                        let (inner, packet) = if whole {
                            (0x6558, ethernet(packet))
                        } else {
                            (inner, packet)
                        };
                        let mut header = vec![options, 0];
                        header.extend(u16::to_be_bytes(inner));
                        header.extend([0, 0, 42, 0]);
                        header.extend((0..options).flat_map(|option| [1, 2, 0, option]));
                        [header, packet].concat()
                    }
                    Tunnel::Gue => [vec![0, protocol, 0, 0], packet].concat(),
                    Tunnel::Gre => gre(inner, [false; 3], packet, fields),
                    Tunnel::Mpls | Tunnel::Ip => packet,
                };
                let mut header = vec![0xc0, 0x01];
                header.extend(port.to_be_bytes());
                header.extend((packet.len() as u16 + 8).to_be_bytes());
                header.extend([0, 0]);
                header.extend(packet);
                if checksum {
                    let pseudo = pseudo(over, level, 17, header.len());
                    let checksum = if fields.unfinished {
                        pseudo
                    } else {
                        !sum(&[&pseudo.to_be_bytes()[..], &header].concat())
                    };
                    put(&mut header, 6, if checksum == 0 { 0xffff } else { checksum });
                }
                *version = over;
                self.ip(over, level, 17, header, fields)
            }
            Wrap::Mpls { labels } => {
                let stack = (1..=labels).flat_map(|label| [0, label, u8::from(label == labels), 64]);
                stack.chain(packet).collect()
            }
            Wrap::Pppoe => {
                let protocol = match *version {
                    Version::V4 => 0x21,
                    Version::V6 => 0x57,
                };
                let mut header = vec![0x11, 0, 0, 9];
                header.extend((packet.len() as u16 + 2).to_be_bytes());
                header.extend([0, protocol]);
                header.extend(packet);
                header
            }
        }
    }
}

fn gre(
    inner: u16,
    [checksum, key, sequence]: [bool; 3],
    packet: Vec<u8>,
    fields: SegmentFields<'_>,
) -> Vec<u8> {
    let flags = u8::from(checksum) << 7 | u8::from(key) << 5 | u8::from(sequence) << 4;
    let mut header = vec![flags, 0];
    header.extend(inner.to_be_bytes());
    if checksum {
        header.extend([0; 4]);
    }
    if key {
        header.extend([0, 0, 0xbe, 0xef]);
    }
    if sequence {
        header.extend(u32::from(fields.index).to_be_bytes());
    }
    header.extend(packet);
    if checksum && !fields.unfinished {
        let checksum = !sum(&header);
        put(&mut header, 4, checksum);
    }
    header
}

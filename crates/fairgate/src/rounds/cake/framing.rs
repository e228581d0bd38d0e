//! The bytes that a packet takes on the link behind a modem. The modem's framing is invisible to the host.
//! Headers are added to the IP packet, which is then cut into cells: tc-cake(8).

use crate::link_layer::Cells;

/// What the link layer adds to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// The bytes added to each IP packet. `None`: the length is that of the driver, with the headers that it
    /// counts.
    pub overhead: Option<u16>,
    /// The least bytes of a packet, before it is cut into cells.
    pub mpu: u16,
    /// How the link encodes packets.
    pub cells: Cells,
}

impl Framing {
    const fn of(overhead: u16, mpu: u16, cells: Cells) -> Framing {
        Framing {
            overhead: Some(overhead),
            mpu,
            cells,
        }
    }

    /// The length as the driver counts it.
    pub const RAW: Framing = Framing {
        overhead: None,
        mpu: 0,
        cells: Cells::None,
    };
    /// More than any link adds: an ATM cell, and ATM framing. For unknown links.
    pub const CONSERVATIVE: Framing = Framing::of(48, 0, Cells::Atm);
    /// Ethernet, including preamble and gap.
    pub const ETHERNET: Framing = Framing::of(38, 84, Cells::None);
    /// Cable, as DOCSIS counts it.
    pub const DOCSIS: Framing = Framing::of(18, 64, Cells::None);
    /// VDSL2 with PPPoE.
    pub const PPPOE_PTM: Framing = Framing::of(30, 0, Cells::Ptm);
    /// VDSL2 with plain Ethernet.
    pub const BRIDGED_PTM: Framing = Framing::of(22, 0, Cells::Ptm);
    /// ADSL: IP over ATM, VC multiplexed.
    pub const IPOA_VCMUX: Framing = Framing::of(8, 0, Cells::Atm);
    /// ADSL: IP over ATM, LLC/SNAP.
    pub const IPOA_LLCSNAP: Framing = Framing::of(16, 0, Cells::Atm);
    /// ADSL: Ethernet over ATM, VC multiplexed.
    pub const BRIDGED_VCMUX: Framing = Framing::of(24, 0, Cells::Atm);
    /// ADSL: Ethernet over ATM, LLC/SNAP.
    pub const BRIDGED_LLCSNAP: Framing = Framing::of(32, 0, Cells::Atm);
    /// ADSL: PPP over ATM, VC multiplexed.
    pub const PPPOA_VCMUX: Framing = Framing::of(10, 0, Cells::Atm);
    /// ADSL: PPP over ATM, LLC.
    pub const PPPOA_LLC: Framing = Framing::of(14, 0, Cells::Atm);
    /// ADSL: PPP over Ethernet over ATM, VC multiplexed.
    pub const PPPOE_VCMUX: Framing = Framing::of(32, 0, Cells::Atm);
    /// ADSL: PPP over Ethernet over ATM, LLC/SNAP.
    pub const PPPOE_LLCSNAP: Framing = Framing::of(40, 0, Cells::Atm);

    /// The bytes on the link for a packet of `length` bytes, of which `link_header` come before the IP
    /// header.
    pub fn on_the_link(&self, length: u32, link_header: u16) -> u64 {
        self.encode(self.network_bytes(length, link_header))
    }

    /// The bytes to which the overhead is added.
    #[inline]
    pub(super) fn network_bytes(&self, length: u32, link_header: u16) -> u64 {
        match self.overhead {
            Some(_) => u64::from(length).saturating_sub(link_header.into()),
            None => length.into(),
        }
    }

    /// The bytes on the link for [`network_bytes`](Framing::network_bytes).
    #[inline]
    pub(super) fn encode(&self, network_bytes: u64) -> u64 {
        let bytes = network_bytes + u64::from(self.overhead.unwrap_or(0));
        self.cells.encode(bytes.max(self.mpu.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IP packet of `bytes` bytes behind an Ethernet header.
    fn weight(framing: Framing, bytes: u32) -> u64 {
        framing.on_the_link(bytes + 14, 14)
    }

    #[test]
    fn raw_framing_keeps_the_length_of_the_driver() {
        assert_eq!(weight(Framing::RAW, 1500), 1514);
        assert_eq!(weight(Framing::RAW, 0), 14);
    }

    /// tc-cake(8): "the ATM cell framing: 48 bytes of payload in 53".
    #[test]
    fn atm_sends_whole_cells() {
        // 1500 + 40 = 32 cells and 4 bytes.
        assert_eq!(weight(Framing::PPPOE_LLCSNAP, 1500), 33 * 53);
        assert_eq!(weight(Framing::IPOA_VCMUX, 40), 53);
        assert_eq!(weight(Framing::IPOA_VCMUX, 41), 2 * 53);
        // An acknowledgement with time stamps over PPP over ATM: 52 + 10.
        assert_eq!(weight(Framing::PPPOA_VCMUX, 52), 2 * 53);
        assert_eq!(weight(Framing::CONSERVATIVE, 1500), 1548u64.div_ceil(48) * 53);
    }

    #[test]
    fn ptm_sends_65_bytes_for_64() {
        assert_eq!(weight(Framing::PPPOE_PTM, 1500), 1530 + 24);
        assert_eq!(weight(Framing::BRIDGED_PTM, 42), 64 + 1);
        assert_eq!(weight(Framing::BRIDGED_PTM, 43), 65 + 2);
    }

    #[test]
    fn short_packets_take_the_least_bytes() {
        assert_eq!(weight(Framing::ETHERNET, 1500), 1538);
        assert_eq!(weight(Framing::ETHERNET, 20), 84);
        assert_eq!(weight(Framing::DOCSIS, 40), 64);
        assert_eq!(weight(Framing::DOCSIS, 1500), 1518);
    }

    #[test]
    fn a_packet_shorter_than_its_header_is_all_overhead() {
        assert_eq!(Framing::ETHERNET.on_the_link(6, 14), 84);
        assert_eq!(Framing::IPOA_VCMUX.on_the_link(6, 14), 53);
    }
}

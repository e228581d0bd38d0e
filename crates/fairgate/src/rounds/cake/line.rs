//! The kinds of access lines, and the framing of each.

use super::framing::Framing;

/// A kind of access line, named as in tc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The length as the driver counts it.
    Raw,
    /// Unknown: more than any link adds.
    Conservative,
    /// Ethernet, as over fibre.
    Ethernet,
    /// Cable.
    Docsis,
    /// VDSL2 with PPPoE.
    PppoePtm,
    /// VDSL2 with plain Ethernet.
    BridgedPtm,
    /// ADSL: PPP over ATM, VC multiplexed.
    PppoaVcmux,
    /// ADSL: PPP over ATM, LLC.
    PppoaLlc,
    /// ADSL: PPP over Ethernet over ATM, VC multiplexed.
    PppoeVcmux,
    /// ADSL: PPP over Ethernet over ATM, LLC/SNAP.
    PppoeLlcsnap,
    /// ADSL: Ethernet over ATM, VC multiplexed.
    BridgedVcmux,
    /// ADSL: Ethernet over ATM, LLC/SNAP.
    BridgedLlcsnap,
    /// ADSL: IP over ATM, VC multiplexed.
    IpoaVcmux,
    /// ADSL: IP over ATM, LLC/SNAP.
    IpoaLlcsnap,
}

crate::words!(Line {
    "raw" => Line::Raw,
    "conservative" => Line::Conservative,
    "ethernet" => Line::Ethernet,
    "docsis" => Line::Docsis,
    "pppoe-ptm" => Line::PppoePtm,
    "bridged-ptm" => Line::BridgedPtm,
    "pppoa-vcmux" => Line::PppoaVcmux,
    "pppoa-llc" => Line::PppoaLlc,
    "pppoe-vcmux" => Line::PppoeVcmux,
    "pppoe-llcsnap" => Line::PppoeLlcsnap,
    "bridged-vcmux" => Line::BridgedVcmux,
    "bridged-llcsnap" => Line::BridgedLlcsnap,
    "ipoa-vcmux" => Line::IpoaVcmux,
    "ipoa-llcsnap" => Line::IpoaLlcsnap,
});

impl Line {
    /// Returns what the line adds to a packet.
    pub fn framing(self) -> Framing {
        match self {
            Line::Raw => Framing::RAW,
            Line::Conservative => Framing::CONSERVATIVE,
            Line::Ethernet => Framing::ETHERNET,
            Line::Docsis => Framing::DOCSIS,
            Line::PppoePtm => Framing::PPPOE_PTM,
            Line::BridgedPtm => Framing::BRIDGED_PTM,
            Line::PppoaVcmux => Framing::PPPOA_VCMUX,
            Line::PppoaLlc => Framing::PPPOA_LLC,
            Line::PppoeVcmux => Framing::PPPOE_VCMUX,
            Line::PppoeLlcsnap => Framing::PPPOE_LLCSNAP,
            Line::BridgedVcmux => Framing::BRIDGED_VCMUX,
            Line::BridgedLlcsnap => Framing::BRIDGED_LLCSNAP,
            Line::IpoaVcmux => Framing::IPOA_VCMUX,
            Line::IpoaLlcsnap => Framing::IPOA_LLCSNAP,
        }
    }
}

//! The kinds of access lines, and the framing of each.

use super::framing::Framing;

/// A kind of access line, named as in tc.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line {
    Raw,
    Conservative,
    Ethernet,
    Docsis,
    PppoePtm,
    BridgedPtm,
    PppoaVcmux,
    PppoaLlc,
    PppoeVcmux,
    PppoeLlcsnap,
    BridgedVcmux,
    BridgedLlcsnap,
    IpoaVcmux,
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
    pub(super) fn framing(self) -> Framing {
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

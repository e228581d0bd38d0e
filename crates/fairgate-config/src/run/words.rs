//! What the keys of `[run]` can be.

use std::str::FromStr;

use fairgate::registry::Smallest;
use fairgate::words;

/// What to do about receive offloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offloads {
    /// Keep them enabled. Merged packets are cut into the original packets.
    #[default]
    Keep,
    /// Disable them during the run.
    Off,
}

words!(Offloads { "keep" => Offloads::Keep, "off" => Offloads::Off });

/// Whether trees get super-packets whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuperPackets {
    /// Trees that take them get each as one packet
    /// ([`takes_super_packets`](crate::Spec::takes_super_packets)). Other trees get the packets of the link.
    #[default]
    Whole,
    /// Every tree gets the packets of the link.
    Cut,
}

words!(SuperPackets { "whole" => SuperPackets::Whole, "cut" => SuperPackets::Cut });

/// The trees that see hosts in the LAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nat {
    /// That of received frames.
    Ingress,
    /// That of sent frames.
    Egress,
    /// Each that there is.
    Both,
}

words!(Nat { "ingress" => Nat::Ingress, "egress" => Nat::Egress, "both" => Nat::Both });

/// What several workers divide among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Divide {
    /// Flows.
    #[default]
    Flow,
    /// The hosts on the left side: the sources from left to right, and the destinations from right to left.
    Left,
    /// The hosts on the right side.
    Right,
    /// The classes of the trees: subscribers.
    Class,
}

words!(Divide {
    "flow" => Divide::Flow,
    "left" => Divide::Left,
    "right" => Divide::Right,
    "class" => Divide::Class,
});

/// A way to receive from and send to an existing interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// AF_PACKET sockets. They work with every Ethernet interface.
    Packet,
    /// AF_XDP sockets. They need native XDP in the driver, and take the frames from the kernel.
    Xdp,
    /// None: the kernel forwards the packets itself, with trees in its module `sch_fairgate`.
    Kernel,
}

words!(BackendKind {
    "packet" => BackendKind::Packet,
    "xdp" => BackendKind::Xdp,
    "kernel" => BackendKind::Kernel,
});

/// The error for a name that no back end has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no back end `{name}`; the back ends are: {}",
    BackendKind::WORDS.join(", ")
)]
pub struct UnknownBackend {
    name: String,
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(text: &str) -> Result<BackendKind, UnknownBackend> {
        BackendKind::of_word(text).ok_or_else(|| UnknownBackend {
            name: text.to_owned(),
        })
    }
}

impl Smallest for Nat {
    const SMALLEST: Nat = Nat::Ingress;
}

impl Smallest for BackendKind {
    const SMALLEST: BackendKind = BackendKind::Packet;
}

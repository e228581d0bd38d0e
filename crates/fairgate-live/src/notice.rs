//! Events that users may want to know about while frames are forwarded.

use fairgate::Rate;
use fairgate_config::Problem;
use thiserror::Error;

use crate::error::LiveError;

/// An event that users may want to know about while frames are forwarded.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Notice {
    /// Longer frames are forwarded from now on.
    #[error("the MTU of `{interface}` was raised to {mtu}: longer frames are forwarded now")]
    MtuRaised {
        /// The interface whose MTU was raised.
        interface: String,
        /// The new MTU, bytes.
        mtu: usize,
    },
    /// Longer frames don't fit the memory of the run.
    #[error(
        "the MTU of `{interface}` was raised to {mtu}, but this run has no room for it: frames are lost if \
         they are longer than an MTU of {most} allows, until the run is started again"
    )]
    MtuTooLarge {
        /// The interface whose MTU was raised.
        interface: String,
        /// The new MTU, bytes.
        mtu: usize,
        /// The largest MTU for which there is room, bytes.
        most: usize,
    },
    /// The interface takes no longer frames from now on.
    #[error("the MTU of `{interface}` was lowered to {mtu}: longer frames to it are lost")]
    MtuLowered {
        /// The interface whose MTU was lowered.
        interface: String,
        /// The new MTU, bytes.
        mtu: usize,
    },
    /// Frames of the new length don't fit a tree, so that it drops all of them.
    #[error("{0}; {help}", help = .0.help)]
    TooSmall(Problem),
    /// The interface can't send at the moment.
    #[error("`{interface}` {what}: packets to it wait in their queue until it is back")]
    Lost {
        /// The interface.
        interface: String,
        /// "went down", "has no carrier" or "was removed".
        what: &'static str,
    },
    /// The interface can send again.
    #[error("`{interface}` is back: forwarding goes on")]
    Back {
        /// The interface.
        interface: String,
    },
    /// Frames pass by the run from now on.
    #[error(
        "packets of `{interface}` go past this run, unshaped, until `{device}` can be used again; if it is \
         down: ip link set {device} up"
    )]
    PassingBy {
        /// The interface of the run.
        interface: String,
        /// The TAP device behind which the host's stack is.
        device: String,
    },
    /// Frames have passed by the run.
    #[error(
        "{received} received and {sent} sent packets of `{interface}` went past this run, unshaped, in {} s: \
         it took none meanwhile; now it does",
        *.millis as f64 / 1e3
    )]
    PassedBy {
        /// The interface of the run.
        interface: String,
        /// How many packets that the interface received.
        received: u64,
        /// How many packets that the host sent.
        sent: u64,
        /// For how long, ms.
        millis: u64,
    },
    /// The interface has another name.
    #[error("`{from}` was renamed to `{to}`: forwarding goes on")]
    Renamed {
        /// The name until now.
        from: String,
        /// The new name.
        to: String,
    },
    /// The probes of autorate are not answered.
    #[error("no reflector answers: the rates are the base rates until one does")]
    ProbesUnanswered,
    /// They are answered again.
    #[error("reflectors answer: the rates follow the line")]
    ProbesAnswered,
    /// The file that says the rates can't be read, or is wrong.
    #[error("{what}; the rates stay")]
    RateFileWrong {
        /// What is wrong.
        what: String,
    },
    /// The file is right again.
    #[error("the rates are those of the file again")]
    RateFileRight,
    /// A tree can't have the rate that follows the line.
    #[error("the rate of `{direction}` can't follow: {what}")]
    RateRefused {
        /// The direction, as `[run]` names it.
        direction: &'static str,
        /// Why not.
        what: String,
    },
    /// It can have it again.
    #[error("the rate of `{direction}` follows again")]
    RateAccepted {
        /// The direction, as `[run]` names it.
        direction: &'static str,
    },
    /// A run that was killed, with the children that restore settings, had left something disabled.
    #[error("a killed run had left {what} of `{interface}` off; that was undone")]
    Restored {
        /// The interface.
        interface: String,
        /// The offloads, as ethtool(8) names them.
        what: String,
    },
    /// The same, and it is not known what it was, or the system refuses.
    #[error(
        "what a killed run left off at `{interface}` can't be turned on again: {why}; look at `ethtool -k \
         {interface}`, and turn on what is missing, as in `ethtool -K {interface} gro on`"
    )]
    NotRestored {
        /// The interface.
        interface: String,
        /// Why not.
        why: String,
    },
    /// The kernel has a shaper of its own at the interface.
    #[error("{}", other_shaper(.interface, .device, .kind, *.rate, *.is_past))]
    OtherShaper {
        /// The interface.
        interface: String,
        /// The device that has the shaper: the interface, or the one to which it redirects what it receives.
        device: String,
        /// The qdisc, like `cake`.
        kind: String,
        /// Its rate.
        rate: Option<Rate>,
        /// Whether it shapes what the interface sends, which goes past it. Otherwise it shapes what the
        /// interface receives, as the run does.
        is_past: bool,
    },
    /// The kernel has caught a panic of a tree.
    #[error(
        "the kernel has caught a panic of a tree at `{interface}`: its packets pass in the order of their \
         arrival until the tree is changed; the kernel's log says where (dmesg)"
    )]
    KernelPanicked {
        /// The interface.
        interface: String,
    },
    /// The interface is there again, but can't be used.
    #[error("`{interface}` is there again, but can't be used: {reason}")]
    NotTaken {
        /// The interface.
        interface: String,
        /// Why not. It is tried again each second.
        reason: LiveError,
    },
}

fn other_shaper(interface: &str, device: &str, kind: &str, rate: Option<Rate>, is_past: bool) -> String {
    let rate = rate.map_or(String::new(), |rate| format!(" at {rate}"));
    match is_past {
        true => format!(
            "`{interface}` has a shaper of the kernel already, {kind}{rate}: what this run sends goes past \
             it; stop what has set it up, SQM for example, or remove it: tc qdisc del dev {interface} root"
        ),
        false => format!(
            "what `{interface}` receives is also shaped by the kernel, by {kind}{rate} on `{device}`: the \
             lower rate decides, and packets wait there, too; stop what has set it up, SQM for example, or \
             remove it: tc filter del dev {interface} ingress"
        ),
    }
}

impl Notice {
    /// Returns the interface that the notice is about, if it is about one.
    pub fn interface(&self) -> Option<&str> {
        match self {
            Notice::MtuRaised { interface, .. }
            | Notice::MtuTooLarge { interface, .. }
            | Notice::MtuLowered { interface, .. }
            | Notice::Lost { interface, .. }
            | Notice::Back { interface }
            | Notice::PassingBy { interface, .. }
            | Notice::PassedBy { interface, .. }
            | Notice::OtherShaper { interface, .. }
            | Notice::Restored { interface, .. }
            | Notice::NotRestored { interface, .. }
            | Notice::KernelPanicked { interface }
            | Notice::Renamed { to: interface, .. }
            | Notice::NotTaken { interface, .. } => Some(interface),
            Notice::TooSmall(_)
            | Notice::ProbesUnanswered
            | Notice::ProbesAnswered
            | Notice::RateFileWrong { .. }
            | Notice::RateFileRight
            | Notice::RateRefused { .. }
            | Notice::RateAccepted { .. } => None,
        }
    }
}

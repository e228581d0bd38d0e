//! What can go wrong between a configuration and the wire: what, why, and as help what to do about it.

use std::path::PathBuf;

use fairgate_config::{ApplyError, BuildError, FileError};
use miette::Diagnostic;
use nix::errno::Errno;
use thiserror::Error;

use crate::sys::interface::Unusable;

/// An error of the live data plane.
#[derive(Clone, Debug, Error, Diagnostic)]
pub enum LiveError {
    /// A tree of disciplines can't be built.
    #[error(transparent)]
    #[diagnostic(help("this is a setting that the check of the file let through; change it"))]
    Build(#[from] BuildError),
    /// A tree that would drop every full frame of these interfaces, or asks for what no frame carries.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unfit(#[from] FileError),
    /// No interface of that name in this network namespace.
    #[error("there is no interface `{interface}` in this network namespace")]
    #[diagnostic(help("`ip -brief link` lists the interfaces"))]
    NoInterface {
        /// Its name.
        interface: String,
    },
    /// The interface is administratively down.
    #[error("interface `{interface}` is down")]
    #[diagnostic(help("set it up first: `ip link set {interface} up`"))]
    InterfaceDown {
        /// Its name.
        interface: String,
    },
    /// Not an Ethernet interface.
    #[error("interface `{interface}` has no Ethernet headers")]
    #[diagnostic(help("a bump in the wire joins Ethernet interfaces: choose another one, or a TAP device"))]
    NotEthernet {
        /// Its name.
        interface: String,
    },
    /// The same interface twice.
    #[error("`left` and `right` are both `{interface}`")]
    #[diagnostic(help("a bump in the wire needs two interfaces"))]
    SameInterface {
        /// Its name.
        interface: String,
    },
    /// Frames of one side would not fit the other.
    #[error(
        "`{left}` has an MTU of {left_mtu} and `{right}` one of {right_mtu}: long frames that arrive at `{larger}` \
         could not leave"
    )]
    #[diagnostic(help("give both the same: `ip link set {larger} mtu {smaller_mtu}`"))]
    MtuMismatch {
        /// Left interface.
        left: String,
        /// Its MTU.
        left_mtu: usize,
        /// Right interface.
        right: String,
        /// Its MTU.
        right_mtu: usize,
        /// Name of the one with the larger MTU.
        larger: String,
        /// The smaller MTU.
        smaller_mtu: usize,
    },
    /// Frames would not fit a slot of the ring.
    #[error("`{interface}` has an MTU of {mtu}, but frames of at most {most} bytes fit the receive ring")]
    #[diagnostic(help("lower it: `ip link set {interface} mtu {most}`"))]
    MtuTooLarge {
        /// Its name.
        interface: String,
        /// Its MTU.
        mtu: usize,
        /// The largest possible MTU.
        most: usize,
    },
    /// Merged packets that can't be taken apart again.
    #[error("`{interface}` has large receive offload on, which merges packets for good")]
    #[diagnostic(help(
        "write `offloads = \"off\"` in [run], or switch it off: `ethtool -K {interface} lro off`"
    ))]
    LargeReceiveOffload {
        /// Its name.
        interface: String,
    },
    /// The kernel's own stack uses the interface, and would forward, answer or route beside the bridge.
    #[error(
        "`{interface}` {used_for}: this machine would pass frames there beside the queue, or answer them itself"
    )]
    #[diagnostic(help(
        "take it away: `{remedy}`; or write `isolate = true` in [run]: while it runs, this machine neither sees \
         frames on the two interfaces nor sends by them, and does not answer at its addresses there"
    ))]
    Used {
        /// Its name.
        interface: String,
        /// What for, to follow its name.
        used_for: String,
        /// The command that ends the use.
        remedy: String,
    },
    /// This kernel can't keep its stack away from the interface.
    #[error("this kernel can't be kept away from `{interface}`: that needs Linux 6.6 with BPF")]
    #[diagnostic(help(
        "leave `isolate = true` out of [run], and take addresses, bridges and VLANs off the interface"
    ))]
    NoIsolation {
        /// Its name.
        interface: String,
    },
    /// Another bridge forwards from the interface.
    #[error("{process} already forwards from `{interface}`: every frame would pass twice")]
    #[diagnostic(help("stop that `fairgate run`, or choose another interface"))]
    InterfaceInUse {
        /// Its name.
        interface: String,
        /// Who.
        process: String,
    },
    /// The kernel refused for lack of privileges.
    #[error("{action} needs privileges that this process does not have")]
    #[diagnostic(help(
        "run it as root, or allow it to the program: `setcap cap_net_raw,cap_net_admin,cap_bpf+ep PATH-OF-FAIRGATE`"
    ))]
    Privileges {
        /// What was tried.
        action: String,
    },
    /// The interface went down or away while frames passed through it.
    #[error("interface `{interface}` {what}, so nothing passes between `{left}` and `{right}` any more")]
    #[diagnostic(help("the other interface is as it was before; start again when both are there"))]
    Lost {
        /// The lost one.
        interface: String,
        /// "went down" or "disappeared".
        what: &'static str,
        /// Left interface.
        left: String,
        /// Right interface.
        right: String,
    },
    /// The status can't be served there.
    #[error("{0}")]
    #[diagnostic(help("give another place, with --socket"))]
    Socket(String),
    /// Something that is no socket is where the status socket should be.
    #[error("{path} is there already, and is no socket", path = .path.display())]
    #[diagnostic(help("nothing was removed; give another path, with --socket"))]
    NoSocket {
        /// What is there.
        path: PathBuf,
    },
    /// Another process listens at the status socket.
    #[error("another process answers at {path}", path = .path.display())]
    #[diagnostic(help("stop that run, or give this one another `name` in [run] or another --socket"))]
    SocketInUse {
        /// The socket.
        path: PathBuf,
    },
    /// Any other refusal of the system's.
    #[error("{action} failed: {reason}", reason = .source.desc())]
    #[diagnostic(help("the kernel refused with {source:?}"))]
    System {
        /// What was tried.
        action: String,
        /// What the kernel said.
        source: Errno,
    },
}

impl LiveError {
    /// Whether the configuration is at fault, and not the machine.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            LiveError::Build(_) | LiveError::Unfit(_) | LiveError::SameInterface { .. }
        )
    }

    /// A system call's error, with privileges told apart.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(Errno) -> LiveError {
        let action = action.into();
        move |source| match source {
            Errno::EPERM | Errno::EACCES => LiveError::Privileges { action },
            source => LiveError::System { action, source },
        }
    }

    /// An I/O error, as [`LiveError::system`].
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> LiveError {
        let convert = LiveError::system(action);
        move |error| convert(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Why the interface `name` can't be used.
    pub(crate) fn unusable(name: &str) -> impl FnOnce(Unusable) -> LiveError {
        let interface = name.to_string();
        move |why| match why {
            Unusable::Missing => LiveError::NoInterface { interface },
            Unusable::Down => LiveError::InterfaceDown { interface },
            Unusable::NotEthernet => LiveError::NotEthernet { interface },
            Unusable::System(errno) => LiveError::system(format!("asking about `{interface}`"))(errno),
        }
    }
}

/// Why a changed configuration can't be taken over while running. Nothing has changed.
#[derive(Clone, Debug, Error, Diagnostic)]
pub enum ReloadError {
    /// Something that is fixed at the start.
    #[error("`{key}` in [run] has changed")]
    #[diagnostic(help(
        "only parameters of queues change in place; stop the run and start it again for this"
    ))]
    Fixed {
        /// The key.
        key: &'static str,
    },
    /// A tree that would drop every full frame of these interfaces, or asks for what no frame carries.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unfit(#[from] FileError),
    /// The tree has another shape, or a discipline refuses.
    #[error("the queue from `{from}`: {source}")]
    #[diagnostic(help("stop the run and start it again to replace disciplines"))]
    Tree {
        /// The interface that the direction receives from.
        from: String,
        /// What differs.
        source: Box<ApplyError>,
    },
}

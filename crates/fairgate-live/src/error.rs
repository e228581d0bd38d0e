//! Errors of the live data plane. Each says what is wrong and why. Its help text says what to do.

use std::path::PathBuf;

use fairgate_config::{BuildError, ChangeError, FileError};
use miette::Diagnostic;
use nix::errno::Errno;
use thiserror::Error;

use crate::sys::bpf::may_use_programs;
use crate::sys::interface::Unusable;
use fairgate_config::folder::Unsafe;

/// An error of the live data plane.
#[derive(Clone, Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum LiveError {
    /// A tree of disciplines can't be built.
    #[error(transparent)]
    #[diagnostic(help("the check of the file did not find this setting; change it"))]
    Build(#[from] BuildError),
    /// A tree would drop every full-sized frame of these interfaces, filters on something that no frame
    /// carries, or has a discipline that the kernel refuses.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unfit(#[from] FileError),
    /// There is no interface with this name in this network namespace.
    #[error("there is no interface `{interface}` in this network namespace")]
    #[diagnostic(help("`ip -brief link` lists the interfaces"))]
    NoInterface {
        /// The interface's name.
        interface: String,
    },
    /// The kernel does not divide the frames of an interface among sockets.
    #[error("this kernel can't divide the frames of `{interface}` among several workers")]
    #[diagnostic(help("use one worker: remove `workers`; several need Linux 5.16"))]
    NoFanout {
        /// The interface's name.
        interface: String,
    },
    /// The interface is administratively down.
    #[error("interface `{interface}` is down")]
    #[diagnostic(help("enable it first: `ip link set {interface} up`"))]
    InterfaceDown {
        /// The interface's name.
        interface: String,
    },
    /// The interface is not an Ethernet interface.
    #[error("interface `{interface}` has no Ethernet headers")]
    #[diagnostic(help(
        "the bridge joins Ethernet interfaces; choose another interface, or a TAP device; if this machine \
         itself uses the line, `fairgate run --dev {interface}` takes TUN devices, WireGuard, PPP and raw IP"
    ))]
    NotEthernet {
        /// The interface's name.
        interface: String,
    },
    /// An interface with Ethernet headers has come back without them, or the other way round.
    #[error("interface `{interface}` is of another kind than the one that was removed")]
    #[diagnostic(help("restart the run: it begins anew with the interface that is there"))]
    OtherKind {
        /// The interface's name.
        interface: String,
    },
    /// Both ends name the same interface.
    #[error("`left` and `right` are both `{interface}`")]
    #[diagnostic(help("the bridge joins two different interfaces; change one of them"))]
    SameInterface {
        /// The interface's name.
        interface: String,
    },
    /// The MTUs differ, so that one side's frames would not fit the other side.
    #[error(
        "`{left}` has an MTU of {left_mtu} and `{right}` has an MTU of {right_mtu}, but they must be equal: \
         long frames that arrive at `{larger}` could not be sent"
    )]
    #[diagnostic(help("set both to the same MTU: `ip link set {larger} mtu {smaller_mtu}`"))]
    MtuMismatch {
        /// The left interface.
        left: String,
        /// The MTU of the left interface.
        left_mtu: usize,
        /// The right interface.
        right: String,
        /// The MTU of the right interface.
        right_mtu: usize,
        /// The name of the interface with the larger MTU.
        larger: String,
        /// The smaller MTU.
        smaller_mtu: usize,
    },
    /// Full-sized frames would not fit a slot of the receive ring.
    #[error("`{interface}` has an MTU of {mtu}, but the receive ring allows at most {most}")]
    #[diagnostic(help("lower it: `ip link set {interface} mtu {most}`"))]
    MtuTooLarge {
        /// The interface's name.
        interface: String,
        /// The interface's MTU.
        mtu: usize,
        /// The largest possible MTU.
        most: usize,
    },
    /// The interface merges packets in a way that can't be undone.
    #[error(
        "`{interface}` has large receive offload enabled, which merges packets in a way that can't be undone"
    )]
    #[diagnostic(help(
        "write `offloads = \"off\"` in [run], or disable it: `ethtool -K {interface} lro off`"
    ))]
    LargeReceiveOffload {
        /// The interface's name.
        interface: String,
    },
    /// The kernel's own stack uses the interface, and would forward, answer or route frames without the
    /// queue.
    #[error(
        "`{interface}` {used_for}: this machine would forward frames past the queue, or answer them itself"
    )]
    #[diagnostic(help(
        "if this machine itself uses the line, as a router does, write `device = \"{interface}\"` in [run] \
         instead of `left` and `right`, or use `fairgate run --dev {interface}`. If it is only to bridge \
         frames, end that use: `{remedy}`; or write `isolate = true` in [run]: then, while the bridge runs, \
         this machine neither receives nor sends frames on the two interfaces, and does not answer at its \
         addresses there"
    ))]
    Used {
        /// The interface's name.
        interface: String,
        /// The use, as a phrase that follows the interface's name.
        used_for: String,
        /// The command that ends this use.
        remedy: String,
    },
    /// This kernel can't isolate its stack from the interface.
    #[error("this kernel can't isolate `{interface}` from its network stack: that needs Linux 6.6 with BPF")]
    #[diagnostic(help(
        "leave `isolate = true` out of [run], and remove addresses, bridges and VLANs from the interface"
    ))]
    NoIsolation {
        /// The interface's name.
        interface: String,
    },
    /// This kernel can't take frames of an interface from its network stack.
    #[error("this kernel can't take the frames of `{interface}`: that needs Linux 6.6 with BPF")]
    #[diagnostic(help("run between two interfaces instead: `left` and `right` in [run]"))]
    NoDiversion {
        /// The interface's name.
        interface: String,
    },
    /// This machine's table of connections can't be read.
    #[error("`nat` needs this machine's table of connections, which can't be read: {why}")]
    #[diagnostic(help(
        "it needs `cap_net_admin`, and a kernel with ctnetlink (`modprobe nf_conntrack_netlink`); or run on \
         the interface of the LAN, where hosts have their own addresses, with the rates exchanged: `fairgate \
         run --dev LAN --down UPLOAD --up DOWNLOAD`; or leave `nat` out: its hosts are one then"
    ))]
    NoConnections {
        /// What the system said.
        why: String,
    },
    /// AF_XDP does not work with the interface.
    #[error("AF_XDP does not work on `{interface}`: {reason}")]
    #[diagnostic(help("{remedy}; or use packet sockets: `backend = \"packet\"`"))]
    NoXdp {
        /// The interface's name.
        interface: String,
        /// Why not.
        reason: String,
        /// What would make it work.
        remedy: String,
    },
    /// AF_XDP sees only frames that arrive at an interface, but a run on one interface also needs others.
    #[error(
        "the back end `xdp` can't run on `{interface}` alone: it takes all received frames from this machine"
    )]
    #[diagnostic(help("use `backend = \"packet\"`, or run between two interfaces: `left` and `right`"))]
    XdpOnOneInterface {
        /// The interface's name.
        interface: String,
    },
    /// The kernel should see all frames, but AF_XDP takes them.
    #[error("the back end `xdp` takes all received frames from the kernel, but `isolate` is false")]
    #[diagnostic(help("remove `isolate = false` from [run], or use `backend = \"packet\"`"))]
    XdpNotIsolated,
    /// An AF_XDP socket receives all frames of a queue: nothing divides them among workers.
    #[error(
        "the back end `xdp` has one worker, but `workers` in [run] is {workers}: AF_XDP does not divide the \
         frames of an interface by flows"
    )]
    #[diagnostic(help("use `backend = \"packet\"`, or remove `workers`"))]
    XdpWorkers {
        /// The number of workers.
        workers: u16,
    },
    /// The module is not there.
    #[error("this kernel has no qdisc `fairgate`")]
    #[diagnostic(help(
        "load the module: `modprobe sch_fairgate`; docs/kernel.md says how to build it; without --kernel and \
         `backend = \"kernel\"` the run needs no module"
    ))]
    NoModule,
    /// A tree can't be attached.
    #[error("the queue from `{from}` can't be attached in the kernel: {said}")]
    #[diagnostic(help(
        "`ingress` needs the modules ifb, cls_matchall and act_mirred; the kernel's log may say more (dmesg)"
    ))]
    NotAttached {
        /// Where the packets of the direction come from.
        from: String,
        /// What the kernel said.
        said: String,
    },
    /// The kernel refuses a tree.
    #[error("the kernel refuses the queue from `{from}`: {said}")]
    #[diagnostic(help(
        "change that queue, or run in user space: without --kernel and `backend = \"kernel\"` in [run]"
    ))]
    KernelRefused {
        /// Where the packets of the direction come from.
        from: String,
        /// What the kernel said.
        said: String,
    },
    /// Another qdisc is there that somebody has set up.
    #[error("`{interface}` has a qdisc already that somebody has set up: {kind}")]
    #[diagnostic(help("stop what has set it up, or remove it: tc qdisc del dev {interface} root"))]
    OtherQdisc {
        /// The interface's name.
        interface: String,
        /// The kind of the qdisc.
        kind: String,
    },
    /// A qdisc of the run is not there any more.
    #[error("a qdisc of this run at `{interface}` is gone: {said}")]
    #[diagnostic(help(
        "the interface was removed, or something has replaced the qdisc or its ifb device; start the run \
         again"
    ))]
    QdiscGone {
        /// The interface's name.
        interface: String,
        /// What the kernel said.
        said: String,
    },
    /// The kernel was to forward, but this is for frames in this process.
    #[error("the back end `kernel` takes no frames from the kernel")]
    #[diagnostic(help("use `backend = \"packet\"`"))]
    KernelForwards,
    /// The kernel chooses random numbers itself.
    #[error("the random numbers of the kernel's trees can't be repeated")]
    #[diagnostic(help("leave --seed out, or run in user space"))]
    KernelSeed,
    /// Another bridge already forwards from the interface.
    #[error("{process} already forwards from `{interface}`: every frame would be forwarded twice")]
    #[diagnostic(help("stop that `fairgate run`, or choose another interface"))]
    InterfaceInUse {
        /// The interface's name.
        interface: String,
        /// The other process.
        process: String,
    },
    /// The kernel refused because privileges are missing.
    #[error("{action} needs privileges that this process does not have")]
    #[diagnostic(help(
        "run it as root, or give the program the capabilities: \
         `setcap cap_net_raw,cap_net_admin,cap_bpf+ep PATH-OF-FAIRGATE`"
    ))]
    Privileges {
        /// The action that was tried.
        action: String,
    },
    /// The kernel refused a program (bpf(2)) although the privileges are there.
    #[error(
        "{action} was refused although this process has the capabilities for it: the call bpf is blocked"
    )]
    #[diagnostic(help(
        "a filter of system calls (seccomp), a security module or the kernel's lockdown refuses it: allow \
         bpf in the seccomp profile of a container, or by SystemCallFilter=bpf in a unit of systemd"
    ))]
    Blocked {
        /// The action that was tried.
        action: String,
    },
    /// Privileges that are not needed any more could not be given up.
    #[error("giving up privileges failed: {0}")]
    #[diagnostic(help(
        "give the program only the capabilities that it needs, and no root: \
         `setcap cap_net_raw,cap_net_admin,cap_bpf+ep PATH-OF-FAIRGATE`"
    ))]
    KeptPrivileges(String),
    /// A further worker is less confined than the first one.
    #[error("the kernel does not confine all threads of this run alike")]
    #[diagnostic(help("look for a lack of memory or descriptors; --no-sandbox runs without confinement"))]
    Unconfined,
    /// The status socket can't be created.
    #[error("{0}")]
    #[diagnostic(help("give another path: --socket is that of the status, --api that of the API"))]
    Socket(String),
    /// The path of the status socket exists, but is not a socket.
    #[error("{path} exists already and is not a socket", path = .path.display())]
    #[diagnostic(help(
        "nothing was removed; give another path: --socket is that of the status, --api that of the API"
    ))]
    NoSocket {
        /// The path.
        path: PathBuf,
    },
    /// Other users could exchange the socket.
    #[error(transparent)]
    #[diagnostic(transparent)]
    UnsafeFolder(#[from] Unsafe),
    /// Another process listens at the status socket.
    #[error("another process answers at {path}", path = .path.display())]
    #[diagnostic(help("stop that run, or give this one another `name` in [run] or another --socket"))]
    SocketInUse {
        /// The path of the socket.
        path: PathBuf,
    },
    /// The system refused for another reason.
    #[error("{action} failed: {reason}", reason = .source.desc())]
    #[diagnostic(help("the kernel refused with {source:?}"))]
    System {
        /// The action that was tried.
        action: String,
        /// The kernel's error code.
        source: Errno,
    },
}

impl LiveError {
    /// Returns whether the error is in the configuration, and not in the machine.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            LiveError::Build(_)
                | LiveError::Unfit(_)
                | LiveError::SameInterface { .. }
                | LiveError::XdpOnOneInterface { .. }
                | LiveError::XdpNotIsolated
                | LiveError::XdpWorkers { .. }
                | LiveError::KernelRefused { .. }
                | LiveError::KernelForwards
                | LiveError::KernelSeed
        )
    }

    /// Returns whether the error is in the state of an interface, so that it may go away by itself or by a
    /// setting of the interface.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            LiveError::NoInterface { .. }
                | LiveError::InterfaceDown { .. }
                | LiveError::NotEthernet { .. }
                | LiveError::OtherKind { .. }
                | LiveError::MtuMismatch { .. }
                | LiveError::MtuTooLarge { .. }
                | LiveError::LargeReceiveOffload { .. }
                | LiveError::Used { .. }
                | LiveError::InterfaceInUse { .. }
        )
    }

    /// Converts the error of a system call. Missing privileges become an error of their own.
    pub(crate) fn system(action: impl Into<String>) -> impl FnOnce(Errno) -> LiveError {
        let action = action.into();
        move |source| match source {
            Errno::EPERM | Errno::EACCES => LiveError::Privileges { action },
            source => LiveError::System { action, source },
        }
    }

    /// Converts the error of a call of bpf(2). If the privileges are there, something else has refused it.
    pub(crate) fn bpf(action: impl Into<String>) -> impl FnOnce(Errno) -> LiveError {
        let action = action.into();
        move |source| match source {
            Errno::EPERM | Errno::EACCES if may_use_programs() => LiveError::Blocked { action },
            source => LiveError::system(action)(source),
        }
    }

    /// Returns a function that converts an I/O error. `action` says what was tried.
    pub fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> LiveError {
        let convert = LiveError::system(action);
        move |error| convert(Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO)))
    }

    /// Converts the reason why the interface `name` can't be used.
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

/// Why a changed configuration can't be applied to a running bridge. If it is returned, nothing was changed.
#[derive(Clone, Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ReloadError {
    /// A setting changed that is fixed when the run starts.
    #[error("`{key}` in [run] has changed")]
    #[diagnostic(help("only queues can change during a run; stop the run and start it again"))]
    Fixed {
        /// The key.
        key: &'static str,
    },
    /// A tree would drop every full-sized frame of these interfaces, filters on something that no frame
    /// carries, or has a discipline that the kernel refuses.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unfit(#[from] FileError),
    /// The kernel's table of classes and workers can't be changed.
    #[error("can't divide the frames of `{interface}` anew: {source}")]
    #[diagnostic(help(
        "nothing was changed; before Linux 5.19 it needs `sysctl kernel.unprivileged_bpf_disabled=0`, or one \
         worker"
    ))]
    Divide {
        /// The interface whose frames are divided.
        interface: String,
        /// The kernel's error.
        source: Errno,
    },
    /// A discipline rejects its new parameters.
    #[error("the queue from `{from}`: {source}")]
    #[diagnostic(help("nothing was changed; choose other parameters"))]
    Tree {
        /// The interface that the direction receives from.
        from: String,
        /// What can't be applied.
        source: Box<ChangeError>,
    },
    /// The kernel rejects a tree.
    #[error("the kernel refuses the queue from `{from}`: {said}")]
    #[diagnostic(help(
        "nothing was changed; choose another tree, or stop the run and start it again with it"
    ))]
    Kernel {
        /// Where the packets of the direction come from.
        from: String,
        /// What the kernel said.
        said: String,
    },
    /// The trees have changed since somebody looked at them.
    #[error("the trees have revision {revision} by now")]
    #[diagnostic(help("nothing was changed; read the trees again"))]
    Stale {
        /// Their revision.
        revision: u64,
    },
    /// The bridge forwards nothing any more.
    #[error("the run has ended")]
    #[diagnostic(help("start it again"))]
    Ended,
}

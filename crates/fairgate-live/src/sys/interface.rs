//! Properties of an interface: index, MTU, state, and the offloads that merge packets.

use std::fmt;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::ethernet;
use crate::sys::guardian::{FIRST_KEPT, Guardian};

/// What an interface carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Ethernet frames.
    Ethernet,
    /// IP packets without a header in front: TUN devices, WireGuard, PPP, raw IP of modems.
    Ip,
}

impl Layer {
    /// Returns what interfaces of a hardware type (linux/if_arp.h) carry, if that is known here.
    fn of(kind: libc::sa_family_t) -> Option<Layer> {
        /// Modems that do not pretend to be Ethernet.
        const ARPHRD_RAWIP: libc::sa_family_t = 519;
        match kind {
            libc::ARPHRD_ETHER => Some(Layer::Ethernet),
            libc::ARPHRD_NONE | libc::ARPHRD_PPP | ARPHRD_RAWIP => Some(Layer::Ip),
            _ => None,
        }
    }

    /// Returns the bytes of the Ethernet header that the interface does not carry. Inside of the data plane
    /// every frame has one.
    pub(crate) const fn missing(self) -> usize {
        match self {
            Layer::Ethernet => 0,
            Layer::Ip => ethernet::HEADER,
        }
    }
}

/// An interface that is up.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) layer: Layer,
    /// The MTU: the largest payload of a frame. A frame is up to 18 bytes longer.
    pub(crate) mtu: usize,
}

/// The state of an existing interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) name: String,
    pub(crate) mtu: usize,
    pub(crate) is_up: bool,
    pub(crate) has_carrier: bool,
}

/// Why an interface can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Missing,
    Down,
    NotEthernet,
    System(Errno),
}

impl Interface {
    /// The maximum length of a name, without the terminating zero.
    pub(crate) const LONGEST_NAME: usize = libc::IFNAMSIZ - 1;

    /// Looks up an Ethernet interface in the network namespace of this thread.
    pub(crate) fn lookup(name: &str) -> Result<Interface, Unusable> {
        match Interface::lookup_any(name)? {
            interface if interface.layer == Layer::Ethernet => Ok(interface),
            _ => Err(Unusable::NotEthernet),
        }
    }

    /// Looks up an interface that carries Ethernet frames or IP packets in the same way.
    pub(crate) fn lookup_any(name: &str) -> Result<Interface, Unusable> {
        let control = &control_socket().map_err(Unusable::System)?;
        let mut request = request(name).ok_or(Unusable::Missing)?;
        let system = |errno| match errno {
            Errno::ENODEV => Unusable::Missing,
            errno => Unusable::System(errno),
        };
        ioctl(control, libc::SIOCGIFINDEX as libc::Ioctl, &mut request).map_err(system)?;
        // SAFETY: SIOCGIFINDEX has filled `ifru_ifindex`.
        let index = unsafe { request.ifr_ifru.ifru_ifindex } as u32;
        ioctl(control, libc::SIOCGIFHWADDR as libc::Ioctl, &mut request).map_err(system)?;
        // SAFETY: SIOCGIFHWADDR has filled `ifru_hwaddr`.
        let kind = unsafe { request.ifr_ifru.ifru_hwaddr.sa_family };
        let layer = Layer::of(kind).ok_or(Unusable::NotEthernet)?;
        if flags(control, &mut request).map_err(system)? & libc::IFF_UP as i16 == 0 {
            return Err(Unusable::Down);
        }
        ioctl(control, libc::SIOCGIFMTU as libc::Ioctl, &mut request).map_err(system)?;
        // SAFETY: SIOCGIFMTU has filled `ifru_mtu`.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu } as usize;
        Ok(Interface {
            name: name.to_string(),
            index,
            layer,
            mtu,
        })
    }

    /// Queries the interface with this index, whatever its name is now. Returns `None` if it was removed.
    pub(crate) fn condition(control: &OwnedFd, index: u32) -> Result<Option<Condition>, Errno> {
        loop {
            let Some(name) = name_of(control, index)? else {
                return Ok(None);
            };
            match condition_by(control, &name) {
                // It was renamed or removed in between.
                Err(Errno::ENODEV) => {}
                result => return result.map(|condition| Some(Condition { name, ..condition })),
            }
        }
    }

    /// Returns the index of an interface, in the network namespace of this thread.
    pub(crate) fn index_of(name: &str) -> Result<u32, Errno> {
        nix::net::if_::if_nametoindex(name)
    }

    /// Enables an interface (IFF_UP).
    pub(crate) fn set_up(name: &str) -> Result<(), Errno> {
        let control = control_socket()?;
        let mut request = request(name).ok_or(Errno::ENODEV)?;
        let flags = flags(&control, &mut request)?;
        request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as i16;
        ioctl(&control, libc::SIOCSIFFLAGS as libc::Ioctl, &mut request)
    }
}

/// An offload that merges several received packets into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Merging {
    /// Generic receive offload. It is exact: cutting restores the packets.
    Gro,
    /// Large receive offload. It loses the packet boundaries, so nothing can restore the packets.
    Lro,
}

/// Enables merging again when it is dropped, or when this process dies.
#[derive(Debug)]
pub(crate) struct MergingGuardian {
    _guardian: Guardian,
}

impl MergingGuardian {
    /// Starts a guardian that enables the offloads of [`Merging::ALL`] for which `on` is true, and then
    /// writes `done` at `place` of each of the files `notes`. It holds the locks of these files until then,
    /// so that no other run reads the offloads before.
    pub(crate) fn start(
        interface: u32,
        on: [bool; 2],
        notes: &[BorrowedFd<'_>],
        (place, done): (u64, &[u8]),
    ) -> Result<MergingGuardian, Errno> {
        let count = notes.len() as RawFd;
        let work = || {
            let mut is_restored = true;
            for (_, merging) in on.iter().zip(Merging::ALL).filter(|(is_on, _)| **is_on) {
                // The interface may no longer exist; then there is nothing to restore.
                is_restored &= matches!(merging.set(interface, true), Ok(()) | Err(Errno::ENODEV));
            }
            for note in (FIRST_KEPT..FIRST_KEPT + count).filter(|_| is_restored) {
                // SAFETY: system calls with a descriptor of this process and live memory.
                unsafe {
                    libc::lseek(note, place as libc::off_t, libc::SEEK_SET);
                    libc::write(note, done.as_ptr().cast(), done.len());
                }
            }
        };
        // SAFETY: `Merging::set` creates a socket and calls `ioctl` with structures on its stack. It does not
        // allocate, lock or unwrap. The rest are system calls.
        let guardian = unsafe { Guardian::start(notes, work) }?;
        Ok(MergingGuardian { _guardian: guardian })
    }
}

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// `struct ethtool_channels` (linux/ethtool.h).
#[repr(C)]
#[derive(Debug, Default)]
struct EthtoolChannels {
    command: u32,
    /// The largest numbers of each kind that the driver allows.
    _most: [u32; 4],
    receive: u32,
    send: u32,
    _other: u32,
    combined: u32,
}

const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GGRO: u32 = 0x2b;
const ETHTOOL_SGRO: u32 = 0x2c;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_FLAG_LRO: u32 = 1 << 15;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;

impl Merging {
    /// Both offloads.
    pub(crate) const ALL: [Merging; 2] = [Merging::Gro, Merging::Lro];

    /// Returns whether the offload is enabled. It is not, if the driver does not support the query.
    pub(crate) fn is_on(self, interface: u32) -> Result<bool, Errno> {
        let answer = match self {
            Merging::Gro => ethtool_at(interface, ETHTOOL_GGRO, 0)? != 0,
            Merging::Lro => ethtool_at(interface, ETHTOOL_GFLAGS, 0)? & ETH_FLAG_LRO != 0,
        };
        Ok(answer)
    }

    /// Enables or disables the offload. The interface may have been renamed meanwhile.
    pub(crate) fn set(self, interface: u32, on: bool) -> Result<(), Errno> {
        match self {
            Merging::Gro => ethtool_at(interface, ETHTOOL_SGRO, u32::from(on))?,
            Merging::Lro => {
                let others = ethtool_at(interface, ETHTOOL_GFLAGS, 0)? & !ETH_FLAG_LRO;
                ethtool_at(
                    interface,
                    ETHTOOL_SFLAGS,
                    others | if on { ETH_FLAG_LRO } else { 0 },
                )?
            }
        };
        Ok(())
    }
}

/// The names of the offloads in messages and notes, as ethtool(8) has them.
impl fmt::Display for Merging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Merging::Gro => "gro",
            Merging::Lro => "lro",
        })
    }
}

/// Returns the cookie of the network namespace of this thread: a number that no other namespace has until the
/// next boot. Kernels before Linux 5.14 have none; it is 0 then.
pub(crate) fn namespace_cookie() -> Result<u64, Errno> {
    let control = control_socket()?;
    let mut cookie = 0u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the option is a u64, for which there is room.
    let result = unsafe {
        libc::getsockopt(
            control.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    match Errno::result(result) {
        Err(Errno::ENOPROTOOPT) => Ok(0),
        result => result.map(|_| cookie),
    }
}

/// Returns whether the interface takes VLAN tags out of received frames and reports them beside the frames.
pub(crate) fn strips_tags(interface: &str) -> Result<bool, Errno> {
    Ok(ethtool(interface, ETHTOOL_GFLAGS, 0)? & ETH_FLAG_RXVLAN != 0)
}

/// Returns the number of an interface's queues: an AF_XDP socket can be bound to each. It is 1 if the driver
/// can't tell.
pub(crate) fn queues_of(interface: &str) -> Result<u32, Errno> {
    let mut request = request(interface).ok_or(Errno::ENODEV)?;
    let mut channels = EthtoolChannels {
        command: ETHTOOL_GCHANNELS,
        ..EthtoolChannels::default()
    };
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    match ioctl(&control_socket()?, libc::SIOCETHTOOL as libc::Ioctl, &mut request) {
        Ok(()) => Ok((channels.receive.max(channels.send) + channels.combined).max(1)),
        Err(Errno::EOPNOTSUPP) => Ok(1),
        Err(errno) => Err(errno),
    }
}

/// Sets or queries a value in the network namespace of this thread. It is 0 if the driver does not
/// support it.
fn ethtool(interface: &str, command: u32, data: u32) -> Result<u32, Errno> {
    match ethtool_by(&control_socket()?, interface, command, data) {
        Err(Errno::EOPNOTSUPP) => Ok(0),
        result => result,
    }
}

/// Does the same by the interface's index, without allocating.
fn ethtool_at(interface: u32, command: u32, data: u32) -> Result<u32, Errno> {
    let control = control_socket()?;
    let mut request = named(&control, interface)?;
    match ethtool_of(&control, &mut request, command, data) {
        Err(Errno::EOPNOTSUPP) => Ok(0),
        result => result,
    }
}

fn ethtool_by(control: &OwnedFd, interface: &str, command: u32, data: u32) -> Result<u32, Errno> {
    let mut request = request(interface).ok_or(Errno::ENODEV)?;
    ethtool_of(control, &mut request, command, data)
}

fn ethtool_of(control: &OwnedFd, request: &mut libc::ifreq, command: u32, data: u32) -> Result<u32, Errno> {
    let mut value = EthtoolValue { command, data };
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    ioctl(control, libc::SIOCETHTOOL as libc::Ioctl, request).map(|()| value.data)
}

/// Returns the name of the interface with this index, or `None` if there is none.
fn name_of(control: &OwnedFd, index: u32) -> Result<Option<String>, Errno> {
    match named(control, index) {
        Ok(request) => Ok(Some(name_in(&request))),
        Err(Errno::ENODEV) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Returns a request about the interface with this index.
fn named(control: &OwnedFd, index: u32) -> Result<libc::ifreq, Errno> {
    // SAFETY: `ifreq` consists of integers and a pointer, for which all-zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_ifru.ifru_ifindex = index as libc::c_int;
    ioctl(control, libc::SIOCGIFNAME as libc::Ioctl, &mut request)?;
    Ok(request)
}

/// Returns the name in a request.
pub(crate) fn name_in(request: &libc::ifreq) -> String {
    let bytes = request.ifr_name.iter().map(|&byte| byte as u8);
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sets the offloads of a TAP device: flags `TUN_F_`.
pub(crate) fn set_offloads(device: &impl AsRawFd, offloads: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: the argument of TUNSETOFFLOAD is a number, not a pointer.
    let result = unsafe {
        libc::ioctl(
            device.as_raw_fd(),
            libc::TUNSETOFFLOAD,
            libc::c_ulong::from(offloads),
        )
    };
    Errno::result(result).map(drop)
}

/// Queries an interface by its name. The name in the result is empty.
fn condition_by(control: &OwnedFd, name: &str) -> Result<Condition, Errno> {
    let mut request = request(name).ok_or(Errno::ENODEV)?;
    let is_up = flags(control, &mut request)? & libc::IFF_UP as i16 != 0;
    ioctl(control, libc::SIOCGIFMTU as libc::Ioctl, &mut request)?;
    // SAFETY: SIOCGIFMTU has filled `ifru_mtu`.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu } as usize;
    let has_carrier = match ethtool_by(control, name, ETHTOOL_GLINK, 0) {
        Ok(carrier) => carrier != 0,
        // The driver can't tell. Sending will.
        Err(Errno::EOPNOTSUPP) => true,
        Err(errno) => return Err(errno),
    };
    Ok(Condition {
        name: String::new(),
        mtu,
        is_up,
        has_carrier,
    })
}

/// Returns a socket for queries about interfaces. Any socket works (netdevice(7)). One of this family needs
/// no protocol stack, and a service may be kept from the others.
pub(crate) fn control_socket() -> Result<OwnedFd, Errno> {
    socket(
        AddressFamily::Unix,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
}

/// Returns a request about the interface `name`, or `None` if no interface can have this name.
pub(crate) fn request(name: &str) -> Option<libc::ifreq> {
    if name.is_empty() || name.len() > Interface::LONGEST_NAME || name.contains('\0') {
        return None;
    }
    // SAFETY: `ifreq` consists of integers and a pointer, for which all-zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some(request)
}

fn flags(control: &OwnedFd, request: &mut libc::ifreq) -> Result<i16, Errno> {
    ioctl(control, libc::SIOCGIFFLAGS as libc::Ioctl, request)?;
    Ok(flags_in(request))
}

/// Returns the flags that an ioctl has filled in.
pub(crate) fn flags_in(request: &libc::ifreq) -> i16 {
    // SAFETY: any bytes are valid for an integer, and all bytes of an `ifreq` are initialised when it is
    // made.
    unsafe { request.ifr_ifru.ifru_flags }
}

/// Calls an ioctl whose argument is an `ifreq`.
pub(crate) fn ioctl(fd: &impl AsRawFd, number: libc::Ioctl, request: &mut libc::ifreq) -> Result<(), Errno> {
    // SAFETY: all numbers that this crate passes take a pointer to an `ifreq`, which is live and exclusively
    // borrowed. A data pointer inside it points to a live value of the type that the number requires.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number, std::ptr::from_mut(request)) };
    Errno::result(result).map(drop)
}

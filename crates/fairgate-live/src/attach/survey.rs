//! Finds out what else this machine uses an interface for, and what kind of interface it is.

use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use crate::error::LiveError;
use crate::sys::interface::Interface;

/// The bytes read at once. The kernel sends at most 32 KiB (`NLMSG_GOODSIZE` and its callers).
const ANSWER: usize = 64 * 1024;

/// How the kernel's stack uses an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Addresses, as `address/prefix`. Link-local IPv6 addresses (fe80::/10) are left out, because every
    /// interface has one.
    addresses: Vec<String>,
    /// The bridge, bond or VRF that the interface belongs to.
    controller: Option<String>,
    /// Interfaces on top of this one: VLANs, MACVLANs, tunnels.
    above: Vec<String>,
}

impl Survey {
    /// Queries the kernel, in the network namespace of this thread.
    pub(crate) fn of(interface: &Interface) -> Result<Survey, LiveError> {
        let asking = || LiveError::io(format!("querying what `{}` is used for", interface.name));
        let links = dump(RouteNetlinkMessage::GetLink(LinkMessage::default())).map_err(asking())?;
        let addresses = dump(RouteNetlinkMessage::GetAddress(AddressMessage::default())).map_err(asking())?;
        let links: Vec<Link> = links.iter().filter_map(Link::of).collect();
        let own = links.iter().find(|link| link.index == interface.index);
        let controller = own.and_then(|own| own.controller);
        let name = |index: u32| {
            links
                .iter()
                .find(|link| link.index == index)
                .map(|link| link.name.clone())
        };
        Ok(Survey {
            addresses: addresses
                .iter()
                .filter_map(|message| address_of(message, interface.index))
                .collect(),
            controller: controller.map(|index| name(index).unwrap_or_else(|| format!("interface {index}"))),
            above: links
                .iter()
                .filter(|link| link.below == Some(interface.index))
                .map(|link| link.name.clone())
                .collect(),
        })
    }

    /// Describes the use in words. Returns `None` if there is none.
    pub(crate) fn used_for(&self) -> Option<String> {
        if let Some(controller) = &self.controller {
            Some(format!("is a port of `{controller}`"))
        } else if !self.addresses.is_empty() {
            Some(format!("has the address {}", self.addresses.join(" and ")))
        } else if !self.above.is_empty() {
            Some(format!("carries `{}`", self.above.join("`, `")))
        } else {
            None
        }
    }

    /// Returns the command that ends this use.
    pub(crate) fn remedy(&self, interface: &str) -> String {
        if self.controller.is_some() {
            format!("ip link set {interface} nomaster")
        } else if !self.addresses.is_empty() {
            format!("ip address flush dev {interface}")
        } else {
            let deletions: Vec<String> = self
                .above
                .iter()
                .map(|name| format!("ip link del {name}"))
                .collect();
            deletions.join("; ")
        }
    }
}

/// Returns the kind of a virtual interface as `ip -d link` calls it: `veth`, `tun`, `macvlan`. Returns `None`
/// for hardware.
pub(crate) fn kind_of(interface: &Interface) -> Result<Option<String>, LiveError> {
    let asking = LiveError::io(format!("querying the kind of `{}`", interface.name));
    let links = dump(RouteNetlinkMessage::GetLink(LinkMessage::default())).map_err(asking)?;
    let own = links.iter().filter_map(Link::of);
    Ok(own
        .filter(|link| link.index == interface.index)
        .find_map(|link| link.kind))
}

/// Returns the name of the interface with this index, in the network namespace of this thread.
pub(crate) fn name_of_link(index: u32) -> std::io::Result<Option<String>> {
    let links = dump(RouteNetlinkMessage::GetLink(LinkMessage::default()))?;
    let mut links = links.iter().filter_map(Link::of);
    Ok(links.find(|link| link.index == index).map(|link| link.name))
}

/// The needed properties of a kernel link.
struct Link {
    index: u32,
    name: String,
    controller: Option<u32>,
    /// The interface in this namespace that this one is on top of.
    below: Option<u32>,
    kind: Option<String>,
}

impl Link {
    fn of(message: &RouteNetlinkMessage) -> Option<Link> {
        let RouteNetlinkMessage::NewLink(message) = message else {
            return None;
        };
        let mut link = Link {
            index: message.header.index,
            name: String::new(),
            controller: None,
            below: None,
            kind: None,
        };
        let mut is_elsewhere = false;
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::Controller(index) => link.controller = Some(*index),
                LinkAttribute::Link(index) => link.below = Some(*index),
                LinkAttribute::LinkNetNsId(_) => is_elsewhere = true,
                // The link of a veth or netkit pair is its peer, which is not below it.
                LinkAttribute::LinkInfo(infos) => {
                    let kind = infos.iter().find_map(|info| match info {
                        LinkInfo::Kind(kind) => Some(kind),
                        _ => None,
                    });
                    is_elsewhere |= matches!(kind, Some(InfoKind::Veth | InfoKind::Netkit));
                    link.kind = kind.map(ToString::to_string);
                }
                _ => {}
            }
        }
        if is_elsewhere {
            link.below = None;
        }
        Some(link)
    }
}

fn address_of(message: &RouteNetlinkMessage, index: u32) -> Option<String> {
    let RouteNetlinkMessage::NewAddress(message) = message else {
        return None;
    };
    if message.header.index != index {
        return None;
    }
    let mut address: Option<IpAddr> = None;
    for attribute in &message.attributes {
        match attribute {
            // For IPv4 this is the interface's own address. `Address` may be that of the peer.
            AddressAttribute::Local(ip) => address = Some(*ip),
            AddressAttribute::Address(ip) => address = address.or(Some(*ip)),
            _ => {}
        }
    }
    let address = address?;
    let every_interface_has_it = address.is_ipv6() && message.header.scope == AddressScope::Link;
    (!every_interface_has_it).then(|| format!("{address}/{}", message.header.prefix_len))
}

/// Sends a request and returns all answers.
pub(crate) fn dump(request: RouteNetlinkMessage) -> std::io::Result<Vec<RouteNetlinkMessage>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(request));
    message.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;

    let mut answers = Vec::new();
    let mut buffer = vec![0; ANSWER];
    loop {
        let length = socket.recv(&mut &mut buffer[..], 0)?;
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            let header = NetlinkBuffer::new_checked(&rest)
                .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))?;
            let length = header.length() as usize;
            match NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest).map(|message| message.payload) {
                Ok(NetlinkPayload::Done(_)) => return Ok(answers),
                Ok(NetlinkPayload::Error(error)) => return Err(error.to_io()),
                Ok(NetlinkPayload::InnerMessage(answer)) => answers.push(answer),
                // A kind of interface that the netlink crate can't parse: not ours.
                Ok(_) | Err(_) => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

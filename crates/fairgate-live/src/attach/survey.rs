//! What this machine does with an interface beside the bridge.

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

/// Bytes of an answer that is read at once; the kernel sends at most 32 KiB (`NLMSG_GOODSIZE` and its callers).
const ANSWER: usize = 64 * 1024;

/// An interface as the kernel's stack uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Addresses, each as `address/prefix`. Those that every interface has (fe80::/10) are left out.
    addresses: Vec<String>,
    /// The bridge, bond or VRF that it is a port of.
    controller: Option<String>,
    /// Interfaces on top of it: VLANs, MACVLANs, tunnels.
    above: Vec<String>,
}

impl Survey {
    /// Asks the kernel, in the network namespace of this thread.
    pub(crate) fn of(interface: &Interface) -> Result<Survey, LiveError> {
        let asking = || LiveError::io(format!("asking what `{}` is used for", interface.name));
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

    /// What it is used for, in words; none if nothing.
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

    /// What ends this use.
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

/// What is needed of a link.
struct Link {
    index: u32,
    name: String,
    controller: Option<u32>,
    /// The interface of this namespace that it is on top of.
    below: Option<u32>,
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
        };
        let mut is_elsewhere = false;
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => link.name.clone_from(name),
                LinkAttribute::Controller(index) => link.controller = Some(*index),
                LinkAttribute::Link(index) => link.below = Some(*index),
                LinkAttribute::LinkNetNsId(_) => is_elsewhere = true,
                // The link of a pair is its other end, which lies beside it and not below.
                LinkAttribute::LinkInfo(infos) => {
                    is_elsewhere |= infos
                        .iter()
                        .any(|info| matches!(info, LinkInfo::Kind(InfoKind::Veth | InfoKind::Netkit)));
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
            // IPv4: the own address. `Address` is that of the other end where there is one.
            AddressAttribute::Local(ip) => address = Some(*ip),
            AddressAttribute::Address(ip) => address = address.or(Some(*ip)),
            _ => {}
        }
    }
    let address = address?;
    let every_interface_has_it = address.is_ipv6() && message.header.scope == AddressScope::Link;
    (!every_interface_has_it).then(|| format!("{address}/{}", message.header.prefix_len))
}

/// All answers to a question.
fn dump(question: RouteNetlinkMessage) -> std::io::Result<Vec<RouteNetlinkMessage>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut request = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(question));
    request.header.flags = NLM_F_DUMP | NLM_F_REQUEST;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
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
                // A kind of interface that this crate can't read yet: not ours.
                Ok(_) | Err(_) => {}
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

//! What an interface has that a run depends on.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, LinkXdp, Stats64};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcStats2};

use super::flowtables::{self, Flowtable};
use crate::attach::{Shaper, Survey, dump, kind, name_of_link, shaper_on, shapers_at};
use crate::error::LiveError;
use crate::sys::features;
use crate::sys::interface::{Interface, Merging};

/// What was read of an interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceReading {
    /// Its name.
    pub name: String,
    /// Its MTU, bytes.
    pub mtu: usize,
    /// What else this machine uses it for, as a phrase behind the name, and the command that ends that.
    pub used_for: Option<(String, String)>,
    /// The kernel's shapers of what it receives and of what it sends.
    pub shapers: [Option<Shaper>; 2],
    /// Its root qdisc.
    pub qdisc: Option<Qdisc>,
    /// The interface that it is on top of, such as the one of a VLAN.
    pub below: Option<Below>,
    /// Whether GRO and LRO are on.
    pub merges: [bool; 2],
    /// The features that are on, by the names that ethtool(8) shows. `None` if the kernel does not say.
    pub features: Option<Vec<String>>,
    /// The longest packet into which received ones are merged, bytes.
    pub longest_merged: u32,
    /// The numbers of the XDP programs at it.
    pub programs: Vec<u32>,
    /// The flowtables that have it. `None` if they can't be seen: that needs `cap_net_admin`.
    pub flowtables: Option<Vec<Flowtable>>,
    /// What it has counted.
    pub counters: Counters,
}

/// An interface below another one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Below {
    /// Its name.
    pub name: String,
    /// The kernel's shaper of what it sends.
    pub shaper: Option<Shaper>,
    /// Its root qdisc.
    pub qdisc: Option<Qdisc>,
}

/// The root qdisc of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Its kind: `fq_codel`.
    pub kind: String,
    /// The packets that wait in it.
    pub backlog: u32,
    /// The packets that it has dropped.
    pub drops: u32,
}

/// The counters of an interface, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that it received.
    pub received: u64,
    /// Packets that it lost because nobody fetched them in time.
    pub missed: u64,
    /// Packets that it or the kernel did not send.
    pub unsent: u64,
}

impl InterfaceReading {
    /// Reads an interface that is up, in the network namespace of this thread.
    ///
    /// # Errors
    /// Fails if there is no such interface, if it is down, or if the kernel refuses.
    pub fn of(name: &str) -> Result<InterfaceReading, LiveError> {
        let interface = Interface::lookup_any(name).map_err(LiveError::unusable(name))?;
        let link = link(&interface)?;
        let used = Survey::of(&interface)?;
        let merges = Merging::ALL.map(|merging| merging.is_on(interface.index).unwrap_or(false));
        let has_it = |table: &Flowtable| table.devices.iter().any(|device| device == name);
        let mut reading = InterfaceReading {
            name: name.to_owned(),
            mtu: interface.mtu,
            used_for: used.used_for().map(|what| (what, used.remedy(name))),
            shapers: shapers_at(&interface, [true; 2]),
            qdisc: qdisc(interface.index),
            merges,
            features: features::active(name).ok(),
            flowtables: flowtables::all()
                .ok()
                .map(|all| all.into_iter().filter(has_it).collect()),
            ..InterfaceReading::default()
        };
        reading.take(&link);
        Ok(reading)
    }

    /// Takes what is in the kernel's message about the link.
    fn take(&mut self, link: &LinkMessage) {
        let mut is_elsewhere = false;
        let mut below = None;
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Stats64(stats) => self.counters = Counters::of(stats),
                LinkAttribute::GroMaxSize(size) => self.longest_merged = *size,
                LinkAttribute::Xdp(xdp) => self.programs = xdp.iter().filter_map(program).collect(),
                LinkAttribute::Link(index) => below = Some(*index),
                // The other end of a veth pair, or the lower interface of a container: not here.
                LinkAttribute::LinkNetNsId(_) => is_elsewhere = true,
                LinkAttribute::LinkInfo(infos) => is_elsewhere |= is_pair(infos),
                _ => {}
            }
        }
        self.programs.sort_unstable();
        self.programs.dedup();
        let below = below.filter(|_| !is_elsewhere);
        self.below = below.and_then(|index| {
            let name = name_of_link(index).ok().flatten()?;
            Some(Below {
                shaper: shaper_on(&name, index).ok().flatten(),
                qdisc: qdisc(index),
                name,
            })
        });
    }
}

/// Returns whether this is one end of a pair, whose link is the other end.
fn is_pair(infos: &[netlink_packet_route::link::LinkInfo]) -> bool {
    use netlink_packet_route::link::{InfoKind, LinkInfo};
    infos
        .iter()
        .any(|info| matches!(info, LinkInfo::Kind(InfoKind::Veth | InfoKind::Netkit)))
}

fn program(attribute: &LinkXdp) -> Option<u32> {
    match attribute {
        LinkXdp::ProgId(id) | LinkXdp::DrvProgId(id) | LinkXdp::SkbProgId(id) | LinkXdp::HwProgId(id) => {
            Some(*id)
        }
        _ => None,
    }
}

fn link(interface: &Interface) -> Result<LinkMessage, LiveError> {
    let asking = LiveError::io(format!("asking about `{}`", interface.name));
    let links = dump(RouteNetlinkMessage::GetLink(LinkMessage::default())).map_err(asking)?;
    let own = links.into_iter().find_map(|message| match message {
        RouteNetlinkMessage::NewLink(link) if link.header.index == interface.index => Some(link),
        _ => None,
    });
    own.ok_or_else(|| LiveError::NoInterface {
        interface: interface.name.clone(),
    })
}

/// Returns the root qdisc of an interface. A kernel without traffic control has none.
fn qdisc(index: u32) -> Option<Qdisc> {
    let request = TcMessage::with_index(index as i32);
    let answers = dump(RouteNetlinkMessage::GetQueueDiscipline(request)).ok()?;
    answers.iter().find_map(|answer| match answer {
        RouteNetlinkMessage::NewQueueDiscipline(qdisc)
            if qdisc.header.index == index as i32 && qdisc.header.parent == TcHandle::ROOT =>
        {
            Some(read_qdisc(qdisc))
        }
        _ => None,
    })
}

fn read_qdisc(message: &TcMessage) -> Qdisc {
    let mut qdisc = Qdisc {
        kind: kind(message).unwrap_or_default().to_owned(),
        ..Qdisc::default()
    };
    let statistics = message.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Stats2(statistics) => Some(statistics),
        _ => None,
    });
    for statistics in statistics.flatten() {
        if let TcStats2::Queue(queue) = statistics {
            (qdisc.backlog, qdisc.drops) = (queue.qlen, queue.drops);
        }
    }
    qdisc
}

impl Counters {
    fn of(stats: &Stats64) -> Counters {
        Counters {
            received: stats.rx_packets,
            missed: stats.rx_missed_errors + stats.rx_fifo_errors,
            unsent: stats.tx_dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_read() {
        let nothing = InterfaceReading::of("no interface").unwrap_err();
        assert!(matches!(nothing, LiveError::NoInterface { .. }), "{nothing}");
        // It has no type of hardware that a run could use.
        let loopback = InterfaceReading::of("lo").unwrap_err();
        assert!(
            matches!(
                loopback,
                LiveError::NotEthernet { .. } | LiveError::InterfaceDown { .. }
            ),
            "{loopback}"
        );
    }
}

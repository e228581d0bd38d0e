//! What a run changes in the kernel: its trees become qdiscs of interfaces.
//!
//! ```text
//!   between two interfaces  root of the interface that sends: the tree
//!   on one, sent            the same
//!   on one, received        clsact of the interface -> filter that redirects all -> ifb device, at its root:
//!                           the tree
//! ```
//!
//! The kernel forwards packets whether this process lives or not. What a run has left, because it was killed
//! or told to, is replaced by the next one, which knows its device by the name, and what else it made by the
//! device's alias.

use fairgate_kernel::Plan as KernelPlan;
use fairgate_kernel::client::{
    self, CLSACT, Counters, Failed, Make, Message, Place, ROOT, Socket, attribute, text, word,
};
use fairgate_kernel::convert::tree_of;

use crate::config::Plan;
use crate::sys::interface::Interface;

/// The handles of our qdiscs. A new run takes the one that is free, so that the kernel replaces what is there
/// instead of changing it.
const HANDLES: [u32; 2] = [0xfa1_0000, 0xfa2_0000];

/// The preference of the filter. Those that others have made come first.
const PREFERENCE: u32 = 49_000;

/// The qdisc of an interface that has filters.
const FILTERS: &str = "clsact";

/// The alias of an ifb device whose run has also made the qdisc for the filter.
const MADE_ALL: &str = "fairgate run: ifb, redirect and clsact";
/// The alias of one whose run has found it.
const MADE_SOME: &str = "fairgate run: ifb and redirect";

/// The trees of a run in the kernel, until this is dropped.
#[derive(Debug)]
pub(super) struct Attached {
    socket: Socket,
    /// Where the trees from the end at each side are.
    places: [Option<Place>; 2],
    redirect: Option<Redirect>,
}

/// What brings received packets to their tree.
#[derive(Debug)]
struct Redirect {
    interface: u32,
    device: u32,
    /// Whether the qdisc for the filter is ours.
    made_clsact: bool,
}

/// Returns what the kernel runs in the direction from the end at `side`.
pub(super) fn kernel_plan(plan: &Plan, side: usize) -> Result<KernelPlan, Failed> {
    let tree = tree_of(&plan.queues[side])?;
    Ok(KernelPlan {
        slots: plan.frames,
        cuts: !plan.takes_super_packets(side),
        tree,
    })
}

/// Returns what `tc` prints of a tree.
fn shown(plan: &Plan, side: usize) -> String {
    let queue = plan.queue_names[side].as_deref().unwrap_or("changed by hand");
    format!("fairgate run {}: {queue}", plan.name)
}

/// Returns the kind of a qdisc at the root of an interface that somebody else has set up, if there is one.
/// Those that the kernel itself has chosen have no handle.
pub(super) fn other_root(interface: &Interface) -> Result<Option<String>, Failed> {
    let mut socket = Socket::open(libc::NETLINK_ROUTE)?;
    let roots = client::list(&mut socket, interface.index)?.into_iter();
    let mut others = roots.filter(|qdisc| {
        let Place { parent, handle, .. } = qdisc.place;
        parent == ROOT && handle != 0 && (qdisc.kind != "fairgate" || !HANDLES.contains(&handle))
    });
    Ok(others.next().map(|qdisc| qdisc.kind))
}

impl Attached {
    /// Attaches the trees of a plan to the interfaces that are its [outer ends](Plan::outer_ends).
    pub(super) fn attach(plan: &Plan, interfaces: &[Interface]) -> Result<Attached, (usize, Failed)> {
        let socket = Socket::open(libc::NETLINK_ROUTE).map_err(|error| (0, error.into()))?;
        let mut attached = Attached {
            socket,
            places: [None; 2],
            redirect: None,
        };
        for side in [1, 0] {
            if plan.taken[side] {
                attached
                    .attach_from(plan, side, interfaces)
                    .map_err(|failed| (side, failed))?;
            }
        }
        Ok(attached)
    }

    /// Attaches the tree of the direction from the end at `side`. The other end sends its packets, and before
    /// the host's own stack an ifb device does.
    fn attach_from(&mut self, plan: &Plan, side: usize, interfaces: &[Interface]) -> Result<(), Failed> {
        match interfaces.get(1 - side) {
            Some(sender) => self.put_new(plan, side, sender.index),
            None => {
                let device = self.device(&interfaces[0])?;
                self.put_new(plan, side, device)?;
                self.redirect(interfaces[0].index, device)
            }
        }
    }

    /// Returns what a run that did not take its trees away has left on an interface, if that is something.
    pub(super) fn left(interface: &Interface) -> Result<Option<Attached>, Failed> {
        let mut attached = Attached {
            socket: Socket::open(libc::NETLINK_ROUTE)?,
            places: [None; 2],
            redirect: None,
        };
        let there = client::list(&mut attached.socket, interface.index)?.into_iter();
        let mut own = there.filter(|qdisc| {
            qdisc.place.parent == ROOT && qdisc.kind == "fairgate" && HANDLES.contains(&qdisc.place.handle)
        });
        attached.places[1] = own.next().map(|qdisc| qdisc.place);
        attached.redirect = attached
            .left_device(&device_name(interface))?
            .map(|(device, alias)| Redirect {
                interface: interface.index,
                device,
                made_clsact: alias == MADE_ALL,
            });
        let has_something = attached.places[1].is_some() || attached.redirect.is_some();
        Ok(has_something.then_some(attached))
    }

    /// Gives an interface a new tree, in the place of whatever is there.
    fn put_new(&mut self, plan: &Plan, side: usize, index: u32) -> Result<(), Failed> {
        let there = client::list(&mut self.socket, index)?;
        let is_free = |handle: &&u32| there.iter().all(|qdisc| qdisc.place.handle != **handle);
        let handle = HANDLES.iter().find(is_free).unwrap_or(&HANDLES[0]);
        let place = Place::root(index, *handle);
        let tree = kernel_plan(plan, side)?;
        client::put(&mut self.socket, &place, Make::Replace, &tree, &shown(plan, side))?;
        self.places[side] = Some(place);
        Ok(())
    }

    /// Returns the index of the ifb device for an interface. One that a killed run has left is used.
    fn device(&mut self, interface: &Interface) -> Result<u32, Failed> {
        let name = device_name(interface);
        let (device, alias) = match self.left_device(&name)? {
            Some(left) => left,
            // Somebody else's of this name is an error.
            None => {
                self.make_ifb(&name, interface.mtu)?;
                self.find_link(&name)?
            }
        };
        self.redirect = Some(Redirect {
            interface: interface.index,
            device,
            made_clsact: alias == MADE_ALL,
        });
        Ok(device)
    }

    /// Returns index and alias of the ifb device of this name that a run has left.
    fn left_device(&mut self, name: &str) -> Result<Option<(u32, String)>, Failed> {
        match self.find_link(name) {
            Err(failed) if failed.errno == libc::ENODEV => Ok(None),
            found => Ok(Some(found?).filter(|(_, alias)| [MADE_ALL, MADE_SOME].contains(&alias.as_str()))),
        }
    }

    /// Returns index and alias of an interface.
    fn find_link(&mut self, name: &str) -> Result<(u32, String), Failed> {
        let mut request = link(libc::RTM_GETLINK, 0, 0, false);
        request.text(libc::IFLA_IFNAME, name);
        let mut found = None;
        self.socket.find(request, &mut |_, payload| {
            let index = word(payload, 4).map(u32::from_ne_bytes);
            let alias = attribute(payload.get(LINK..).unwrap_or_default(), libc::IFLA_IFALIAS);
            found = index.zip(Some(alias.map(text).unwrap_or_default()));
            Ok(())
        })?;
        found.ok_or_else(|| Failed::of(libc::ENODEV))
    }

    fn make_ifb(&mut self, name: &str, mtu: usize) -> Result<(), Failed> {
        let mut message = link(libc::RTM_NEWLINK, 0, libc::NLM_F_CREATE | libc::NLM_F_EXCL, true);
        message.text(libc::IFLA_IFNAME, name);
        message.number(libc::IFLA_MTU, u32::try_from(mtu).unwrap_or(u32::MAX));
        let info = message.begin(libc::IFLA_LINKINFO);
        message.text(libc::IFLA_INFO_KIND, "ifb");
        message.end(info);
        self.socket.ask(message)
    }

    /// Has all that an interface receives go through the device.
    fn redirect(&mut self, interface: u32, device: u32) -> Result<(), Failed> {
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut message = clsact(interface).message(libc::RTM_NEWQDISC, flags);
        message.text(libc::TCA_KIND, FILTERS);
        let made = match self.socket.ask(message) {
            Ok(()) => true,
            Err(failed) if failed.errno == libc::EEXIST => false,
            Err(failed) => return Err(failed),
        };
        let redirect = self.redirect.as_mut().expect("its device is there");
        redirect.made_clsact |= made;
        let mut message = link(libc::RTM_NEWLINK, device, 0, true);
        let alias = if redirect.made_clsact { MADE_ALL } else { MADE_SOME };
        message.bytes(libc::IFLA_IFALIAS, alias.as_bytes());
        self.socket.ask(message)?;
        // A filter of the same preference, of a killed run, is the same one.
        let _ = self.socket.ask(filter(libc::RTM_DELTFILTER, interface, 0));
        self.socket.ask(redirecting(interface, device))
    }

    /// Returns whether an interface has filters of what it receives or sends.
    fn has_filters(&mut self, interface: u32) -> Result<bool, Failed> {
        let mut found = false;
        for parent in [RECEIVED, SENT] {
            let place = Place {
                parent,
                ..Place::root(interface, 0)
            };
            self.socket
                .dump(place.message(libc::RTM_GETTFILTER, 0), &mut |_, _| {
                    found = true;
                    Ok(())
                })?;
        }
        Ok(found)
    }

    /// Changes to the trees of a plan. If one is refused, `running` is what all have again.
    pub(super) fn change(&mut self, running: &Plan, plan: &Plan) -> Result<Vec<Counters>, (usize, Failed)> {
        let differs = |side: &usize| {
            running.queues[*side] != plan.queues[*side]
                || running.queue_names[*side] != plan.queue_names[*side]
        };
        let sides: Vec<usize> = [0, 1].into_iter().filter(differs).collect();
        let mut counters = Vec::new();
        for (done, side) in sides.iter().enumerate() {
            match self.put_changed(plan, *side) {
                Ok(counted) => counters.extend(counted),
                Err(failed) => {
                    for side in &sides[..done] {
                        self.put_changed(running, *side)
                            .map_err(|failed| (*side, failed))?;
                    }
                    return Err((*side, failed));
                }
            }
        }
        Ok(counters)
    }

    fn put_changed(&mut self, plan: &Plan, side: usize) -> Result<Option<Counters>, Failed> {
        let Some(place) = self.places[side] else {
            return Ok(None);
        };
        let tree = kernel_plan(plan, side)?;
        client::put(&mut self.socket, &place, Make::Change, &tree, &shown(plan, side))?;
        self.counters(side)
    }

    /// Returns where the tree of a direction is, if it has one.
    pub(super) fn place(&self, side: usize) -> Option<Place> {
        self.places[side]
    }

    /// Returns what a direction counts. Fails with `ENOENT` if its qdisc is not there any more.
    pub(super) fn counters(&mut self, side: usize) -> Result<Option<Counters>, Failed> {
        let Some(place) = self.places[side] else {
            return Ok(None);
        };
        let there = client::list(&mut self.socket, place.index)?;
        let own = there.into_iter().find(|qdisc| qdisc.place.handle == place.handle);
        match own.and_then(|qdisc| qdisc.counters) {
            Some(counters) => Ok(Some(counters)),
            None => Err(Failed::of(libc::ENOENT)),
        }
    }

    /// Leaves everything in the kernel.
    pub(super) fn leave(mut self) {
        self.places = [None; 2];
        self.redirect = None;
    }

    /// Takes everything away. What somebody else has replaced or removed meanwhile is left as it is.
    pub(super) fn detach(&mut self) -> Result<(), Failed> {
        let mut result = Ok(());
        let mut note = |done: Result<(), Failed>| match done {
            Err(failed) if !is_gone(&failed) && result.is_ok() => result = Err(failed),
            _ => {}
        };
        if let Some(redirect) = self.redirect.take() {
            let Redirect {
                interface, device, ..
            } = redirect;
            // Packets pass by before the device goes.
            note(self.socket.ask(filter(libc::RTM_DELTFILTER, interface, 0)));
            // Somebody else may have added filters to it.
            if redirect.made_clsact && self.has_filters(interface) == Ok(false) {
                note(client::delete(&mut self.socket, &clsact(interface), FILTERS));
            }
            note(self.socket.ask(link(libc::RTM_DELLINK, device, 0, false)));
            self.places[0] = None;
        }
        for place in self.places.iter_mut().filter_map(Option::take) {
            note(client::delete(&mut self.socket, &place, "fairgate"));
        }
        result
    }
}

/// Returns the name of the ifb device for what an interface receives.
fn device_name(interface: &Interface) -> String {
    format!("fg-in-{}", interface.index)
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.detach();
    }
}

/// Whether it says that what is to be taken away is not there, or is somebody else's.
fn is_gone(failed: &Failed) -> bool {
    matches!(failed.errno, libc::ENOENT | libc::EINVAL | libc::ENODEV)
}

/// The length of `struct ifinfomsg`.
const LINK: usize = 16;

/// Begins a request about an interface.
fn link(kind: u16, index: u32, flags: i32, is_up: bool) -> Message {
    let up = if is_up { libc::IFF_UP as u32 } else { 0 };
    Message::with(kind, flags, &[0, index, up, up])
}

/// The classes of clsact that have the filters of received and of sent packets: `TC_H_MIN_INGRESS`,
/// `TC_H_MIN_EGRESS`.
const RECEIVED: u32 = CLSACT & 0xffff_0000 | 0xfff2;
const SENT: u32 = CLSACT & 0xffff_0000 | 0xfff3;

/// Returns the place of the qdisc that has the filters of an interface.
fn clsact(interface: u32) -> Place {
    Place {
        parent: CLSACT,
        ..Place::root(interface, CLSACT & 0xffff_0000)
    }
}

/// Begins a request about our filter of what an interface receives.
fn filter(kind: u16, interface: u32, flags: i32) -> Message {
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    let place = Place {
        index: interface,
        handle: 0,
        parent: RECEIVED,
        info: PREFERENCE << 16 | u32::from(protocol),
    };
    let mut message = place.message(kind, flags);
    message.text(libc::TCA_KIND, "matchall");
    message
}

/// `TCA_MATCHALL_ACT`, `TCA_ACT_KIND`, `TCA_ACT_OPTIONS`, `TCA_MIRRED_PARMS`.
const MATCHALL_ACTIONS: u16 = 2;
const ACTION_KIND: u16 = 1;
const ACTION_OPTIONS: u16 = 2;
const MIRRED_PARAMETERS: u16 = 2;
/// `TC_ACT_STOLEN`, `TCA_EGRESS_REDIR`.
const STOLEN: u32 = 4;
const REDIRECT: u32 = 1;

/// Returns the request for a filter that sends everything to a device.
fn redirecting(interface: u32, device: u32) -> Message {
    let mut message = filter(
        libc::RTM_NEWTFILTER,
        interface,
        libc::NLM_F_CREATE | libc::NLM_F_EXCL,
    );
    let options = message.begin(libc::TCA_OPTIONS);
    let actions = message.begin(MATCHALL_ACTIONS);
    let first = message.begin(1);
    message.text(ACTION_KIND, "mirred");
    let of_action = message.begin(ACTION_OPTIONS);
    // `struct tc_mirred`: index, capabilities, action, two counts of references, what is done, and where to.
    message.numbers(MIRRED_PARAMETERS, &[0, 0, STOLEN, 0, 0, REDIRECT, device]);
    for at in [of_action, first, actions, options] {
        message.end(at);
    }
    message
}

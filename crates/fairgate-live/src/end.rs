//! Finds the ends of a run, and prepares them: interface, attachment and back end.

use crate::attach::{Attachment, Hooks, Lock, Switch, Word, no_diversion};
use crate::backend::packet::Member;
use crate::backend::xdp::Lease;
use crate::backend::{self, BackendKind, Choice, Device};
use crate::config::{End, Plan};
use crate::error::LiveError;
use crate::sys::interface::{Interface, Layer};
use crate::sys::socket::Receive;
use crate::sys::tun_tap::TunTap;

/// The name of the TAP or TUN device behind which the host's stack is. The kernel chooses the number.
const HOST_END: &str = "fairgate%d";

/// An end that exists.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) interface: Interface,
    created: Option<(TunTap, Layer)>,
    /// The programs on the TAP device behind which the host's stack is.
    host_end: Option<Hooks>,
}

/// An end from which frames can be received as soon as its device is started.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) interface: Interface,
    pub(crate) device: Device,
    pub(crate) choice: Choice,
    pub(crate) attachment: Option<Attachment>,
    pub(crate) lock: Option<Lock>,
    pub(crate) host_end: Option<Hooks>,
}

/// Creates a device that the configuration names.
fn create(kind: &str, name: &str, layer: Layer) -> Result<(TunTap, Layer), LiveError> {
    let failed = LiveError::system(format!("creating the {kind} device `{name}`"));
    TunTap::open(name, layer)
        .map(|device| (device, layer))
        .map_err(failed)
}

impl Found {
    /// Finds the interface, or creates the device. A device behind which the host's stack is gets the MTU and
    /// the layer of the interface `beside` it.
    pub(crate) fn find(
        end: &End,
        plan: &Plan,
        beside: Option<&Interface>,
        switch: Option<&Switch>,
    ) -> Result<Found, LiveError> {
        match end {
            End::Interface(name) => {
                let found = match plan.is_on_one_interface() {
                    true => Interface::lookup_any(name),
                    false => Interface::lookup(name),
                };
                Ok(Found {
                    interface: found.map_err(LiveError::unusable(name))?,
                    created: None,
                    host_end: None,
                })
            }
            End::Tap(name) => {
                let created = create("TAP", name, Layer::Ethernet)?;
                Ok(Found {
                    interface: Interface::lookup(name).map_err(LiveError::unusable(name))?,
                    created: Some(created),
                    host_end: None,
                })
            }
            End::Tun(name) => {
                let created = create("TUN", name, Layer::Ip)?;
                Ok(Found {
                    interface: Interface::lookup_any(name).map_err(LiveError::unusable(name))?,
                    created: Some(created),
                    host_end: None,
                })
            }
            End::Host(device) => {
                let create = || LiveError::system(format!("creating a device for the packets of `{device}`"));
                let Interface { layer, mtu, .. } = *beside.expect("the interface is found first");
                let (tap, name) = TunTap::for_host(HOST_END, layer, mtu).map_err(create())?;
                let index = Interface::index_of(&name).map_err(create())?;
                let switch = switch.ok_or_else(|| LiveError::NoDiversion {
                    interface: device.clone(),
                })?;
                // The programs come first, so that the kernel sends nothing of its own when the device is up.
                let hooks = Hooks::host_end(index, switch).map_err(|errno| no_diversion(errno, device))?;
                Interface::set_up(&name).map_err(create())?;
                switch.set(Word::HostEnd, index);
                Ok(Found {
                    interface: Interface::lookup_any(&name).map_err(LiveError::unusable(&name))?,
                    created: Some((tap, layer)),
                    host_end: Some(hooks),
                })
            }
        }
    }

    /// Returns the interface, unless this run has created it.
    pub(crate) fn existing(&self) -> Option<&Interface> {
        self.created.is_none().then_some(&self.interface)
    }

    /// Prepares everything as `plan` says. `member` is for one of several workers, `lease` for AF_XDP
    /// sockets. An interface that has come back has its `lock` still.
    pub(crate) fn prepare(
        self,
        plan: &Plan,
        switch: Option<&Switch>,
        member: Option<Member<'_>>,
        lease: Option<&Lease>,
        lock: Option<Lock>,
    ) -> Result<Prepared, LiveError> {
        let Found {
            interface,
            created,
            host_end,
        } = self;
        // The first worker has the interface.
        let is_ours = host_end.is_none() && member.is_none_or(|member| member.is_first);
        let lock = match lock {
            None if is_ours => Some(Lock::take(&interface)?),
            lock => lock,
        };
        let (attachment, receive) = match (switch, &lock) {
            _ if host_end.is_some() => (None, Receive::Nothing),
            // The first worker has the lock, too.
            (_, None) => (None, Receive::All),
            (Some(switch), Some(lock)) if plan.is_on_one_interface() => {
                let receive = if plan.taken[0] {
                    let program = Hooks::receiver(switch);
                    Receive::Chosen(program.map_err(|errno| no_diversion(errno, &interface.name))?)
                } else {
                    Receive::Nothing
                };
                (
                    Some(Attachment::take_from_host(&interface, lock, plan, switch)?),
                    receive,
                )
            }
            (switch, Some(lock)) => {
                let attachment = Attachment::take(&interface, lock, created.is_some(), plan, switch)?;
                (Some(attachment), Receive::All)
            }
        };
        let (device, backend, reason) = match created {
            Some((device, layer)) => (
                Device::TunTap(device),
                backend::tun_tap::title(layer),
                match host_end {
                    Some(_) => "the host's own stack is the other end",
                    None => "the configuration names it",
                },
            ),
            None => match backend::choose(plan.backend) {
                (BackendKind::Xdp, _) => {
                    let lease = lease.expect("the frame stores of such a run are shared");
                    let sockets = backend::xdp::prepare(&interface, switch, lease)?;
                    let (title, reason) = (sockets.title(), sockets.reason());
                    (Device::Xdp(Box::new(sockets)), title, reason)
                }
                (BackendKind::Kernel, _) => return Err(LiveError::KernelForwards),
                (BackendKind::Packet, reason) => {
                    let sockets = backend::packet::prepare(&interface, receive, member)?;
                    (Device::Packet(Box::new(sockets)), backend::packet::TITLE, reason)
                }
            },
        };
        let choice = Choice {
            interface: interface.name.clone(),
            backend,
            reason,
        };
        Ok(Prepared {
            interface,
            device,
            choice,
            attachment,
            lock,
            host_end,
        })
    }
}

//! Prepares an interface before a run receives from it, and undoes the changes when the run ends.
//!
//! ```text
//!   lock        allows one run per interface
//!   survey      what else this machine uses it for: addresses, bridges, VLANs
//!   hooks       programs that take frames away from the kernel's own stack
//!   switch      turns these programs on and off at once
//!   merging     receive offloads
//!   shapers     the kernel's own shapers, which a run goes past
//! ```
//!
//! A packet socket receives copies. Without the programs, the kernel also answers, routes and bridges the
//! same frames, and these bypass the queue and the shaper.

mod hooks;
mod lock;
mod merging;
mod shapers;
mod survey;
mod switch;

use nix::errno::Errno;

use crate::config::{Isolate, Plan};
use crate::error::LiveError;
use crate::notice::Notice;
use crate::sys::interface::Interface;

pub(crate) use hooks::{Hooks, mark_of};
pub(crate) use lock::Lock;
use merging::MergingGuard;
pub use shapers::Shaper;
pub(crate) use shapers::{kind, shaper_on, shapers_at};
pub(crate) use survey::{Survey, dump, kind_of, name_of_link};
pub(crate) use switch::{PATIENCE, Switch, Word};

/// What a run has changed at an interface that it has [locked](Lock), until this is dropped.
#[derive(Debug)]
pub(crate) struct Attachment {
    _merging: MergingGuard,
    /// What users should know of its beginning.
    untold: Vec<Notice>,
    _hooks: Option<Hooks>,
    is_isolated: bool,
    pushes_tags: bool,
}

impl Attachment {
    /// Prepares an interface of a bump in the wire as `plan` says.
    ///
    /// `lock` is that of the interface. `is_tap` says that this is a TAP device. The kernel is then an
    /// ordinary neighbour: it keeps its addresses on the device and is not isolated.
    pub(crate) fn take(
        interface: &Interface,
        lock: &Lock,
        is_tap: bool,
        plan: &Plan,
        switch: Option<&Switch>,
    ) -> Result<Attachment, LiveError> {
        let hooks = if is_tap {
            None
        } else {
            isolate(interface, plan.isolate, switch)?
        };
        let (merging, untold) = MergingGuard::apply(interface, lock, plan.offloads)?;
        let shapers = shapers_at(interface, [false, true]);
        let untold = untold.into_iter().chain(told(interface, shapers));
        Ok(Attachment {
            _merging: merging,
            untold: untold.collect(),
            is_isolated: hooks.is_some(),
            pushes_tags: hooks.is_some(),
            _hooks: hooks,
        })
    }

    /// Prepares an interface that the host itself uses.
    pub(crate) fn take_from_host(
        interface: &Interface,
        lock: &Lock,
        plan: &Plan,
        switch: &Switch,
    ) -> Result<Attachment, LiveError> {
        switch.set(Word::Interface, interface.index);
        let hooks = Hooks::divert(interface.index, plan.taken, switch);
        let hooks = hooks.map_err(|errno| no_diversion(errno, &interface.name))?;
        let (merging, untold) = MergingGuard::apply(interface, lock, plan.offloads)?;
        let shapers = shapers_at(interface, plan.taken);
        let untold = untold.into_iter().chain(told(interface, shapers));
        Ok(Attachment {
            _merging: merging,
            untold: untold.collect(),
            is_isolated: false,
            pushes_tags: plan.taken[1],
            _hooks: Some(hooks),
        })
    }

    /// Returns what users should know of what was found here, once.
    pub(crate) fn untold(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.untold)
    }

    /// Returns whether the interface is isolated from the kernel's own stack.
    pub(crate) fn is_isolated(&self) -> bool {
        self.is_isolated
    }

    /// Returns whether a program at the interface's egress pushes VLAN tags.
    pub(crate) fn pushes_tags(&self) -> bool {
        self.pushes_tags
    }
}

/// Tells of the kernel's shapers of what an interface receives and of what it sends.
fn told(interface: &Interface, [received, sent]: [Option<Shaper>; 2]) -> impl Iterator<Item = Notice> {
    let notice = |shaper: Shaper, is_past: bool| Notice::OtherShaper {
        interface: interface.name.clone(),
        device: shaper.device,
        kind: shaper.kind,
        rate: shaper.rate,
        is_past,
    };
    let sent = sent.map(|shaper| notice(shaper, true));
    sent.into_iter()
        .chain(received.map(|shaper| notice(shaper, false)))
}

/// Converts the error of an interface whose frames can't be taken from the host.
pub(crate) fn no_diversion(errno: Errno, interface: &str) -> LiveError {
    if is_unsupported(errno) {
        LiveError::NoDiversion {
            interface: interface.to_owned(),
        }
    } else {
        LiveError::bpf(format!("attaching to `{interface}`"))(errno)
    }
}

/// Returns whether this kernel lacks the command or the hook, or has no BPF.
fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP)
}

fn isolate(
    interface: &Interface,
    isolate: Isolate,
    switch: Option<&Switch>,
) -> Result<Option<Hooks>, LiveError> {
    let attach = || {
        let hooks = switch
            .ok_or(Errno::ENOSYS)
            .and_then(|switch| Hooks::isolate(interface.index, switch));
        hooks.map_err(|errno| match errno {
            errno if is_unsupported(errno) => LiveError::NoIsolation {
                interface: interface.name.clone(),
            },
            errno => LiveError::bpf(format!("isolating `{}`", interface.name))(errno),
        })
    };
    match isolate {
        Isolate::Never => Ok(None),
        Isolate::Always => attach().map(Some),
        Isolate::Unused => {
            let survey = Survey::of(interface)?;
            if let Some(used_for) = survey.used_for() {
                return Err(LiveError::Used {
                    interface: interface.name.clone(),
                    used_for,
                    remedy: survey.remedy(&interface.name),
                });
            }
            match attach() {
                Ok(hooks) => Ok(Some(hooks)),
                // An older kernel. Nothing uses the interface, so isolation matters little.
                Err(LiveError::NoIsolation { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }
    }
}

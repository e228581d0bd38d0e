//! A run whose packets the kernel forwards: its trees are qdiscs of the module `sch_fairgate`
//! (`docs/kernel.md`). This process attaches, reads and changes them, and takes them away in the end.

mod attach;
mod plane;
mod reading;

use std::os::fd::AsFd;
use std::sync::Arc;

use fairgate::Time;
use fairgate_config::FileError;
use fairgate_kernel::client::Failed;
use fairgate_run_api::Status;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::attach::Lock;
use crate::backend::Choice;
use crate::clock;
use crate::config::{End, Plan};
use crate::error::LiveError;
use crate::fitness;
use crate::kernel::attach::Attached;
use crate::kernel::plane::{KernelPlane, Shared};
use crate::notice::Notice;
use crate::plane::Plane;
use crate::pulse::Pulse;
use crate::signals::{Signals, Wake};
use crate::sys::interface::Interface;

/// How often what the kernel sends is looked at, ms: the rates that are shown are those of tenths of seconds.
const LOOK: u16 = 100;

/// A run whose packets the kernel forwards.
pub(crate) struct KernelRun {
    shared: Arc<Shared>,
    signals: Option<Signals>,
    notify: Box<dyn FnMut(Notice) + Send>,
    has_panicked: [bool; 2],
    /// The status at the end.
    last: Option<Status>,
    _locks: Vec<Lock>,
}

impl KernelRun {
    /// Attaches the trees of a plan. From now on the kernel schedules packets with them.
    pub(crate) fn open(plan: &Plan, seed: Option<u64>) -> Result<KernelRun, LiveError> {
        if seed.is_some() {
            return Err(LiveError::KernelSeed);
        }
        let find = |end: &End| Interface::lookup_any(end.name()).map_err(LiveError::unusable(end.name()));
        let interfaces: Vec<Interface> = plan.outer_ends().iter().map(find).collect::<Result<_, _>>()?;
        let mtu = interfaces.iter().map(|interface| interface.mtu).max();
        let mtu = mtu.expect("there is an interface");
        fitness::check(plan, mtu)?;
        let locks = interfaces.iter().map(Lock::take).collect::<Result<_, _>>()?;
        for side in 0..2 {
            let Some(sender) = interfaces.get(1 - side).filter(|_| plan.taken[side]) else {
                continue;
            };
            if let Some(kind) = attach::other_root(sender).map_err(|failed| refused(plan, side, failed))? {
                return Err(LiveError::OtherQdisc {
                    interface: sender.name.clone(),
                    kind,
                });
            }
        }
        let attached =
            Attached::attach(plan, &interfaces).map_err(|(side, failed)| refused(plan, side, failed))?;
        let shared = Shared::new(plan, mtu, attached).map_err(|failed| refused(plan, 0, failed))?;
        Ok(KernelRun {
            shared: Arc::new(shared),
            signals: None,
            notify: Box::new(|_| {}),
            has_panicked: [false; 2],
            last: None,
            _locks: locks,
        })
    }

    /// Handles signals of this thread from now on.
    pub(crate) fn watch_signals(&mut self) -> Result<(), LiveError> {
        self.signals = Some(Signals::watch()?);
        Ok(())
    }

    /// Returns what asks and changes the run from other threads.
    pub(crate) fn observe(&self) -> Arc<dyn Plane> {
        Arc::new(KernelPlane::of(&self.shared))
    }

    /// Sets the function to be called with each notice.
    pub(crate) fn on_notice(&mut self, notify: Box<dyn FnMut(Notice) + Send>) {
        self.notify = notify;
    }

    /// Says what forwards packets.
    pub(crate) fn backends(&self) -> Vec<Choice> {
        let plan = self.shared.plan();
        let choice = |end: &End| Choice {
            interface: end.name().to_owned(),
            backend: "the kernel's qdisc `fairgate`",
            reason: "the configuration names it",
        };
        plan.outer_ends().iter().map(choice).collect()
    }

    /// Returns a handle by which other threads ask whether this run forwards.
    pub(crate) fn pulse(&self) -> Pulse {
        Pulse::of(Arc::clone(&self.shared) as Arc<_>)
    }

    /// Waits for a signal, and looks at what the kernel sends meanwhile.
    pub(crate) fn run(&mut self) -> Result<Wake, LiveError> {
        loop {
            let signals = self.signals.as_ref().expect("signals are watched before");
            let mut watched = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
            let wait = wait(self.shared.look_at_estimators(), clock::now());
            match poll(&mut watched, PollTimeout::from(wait)) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(LiveError::system("waiting for a signal")(errno)),
            }
            if let Some(wake) = signals.read()? {
                return Ok(wake);
            }
            self.look()?;
        }
    }

    fn look(&mut self) -> Result<(), LiveError> {
        let found = self
            .shared
            .look()
            .map_err(|(side, failed)| gone(&self.shared.plan(), side, &failed))?;
        for (side, has_panicked) in found.into_iter().enumerate() {
            if has_panicked && !self.has_panicked[side] {
                let interface = self.shared.plan().tree_at(side).to_owned();
                (self.notify)(Notice::KernelPanicked { interface });
            }
            self.has_panicked[side] = has_panicked;
        }
        Ok(())
    }

    /// Ends all changes, and takes the trees away. What is queued in them is dropped.
    pub(crate) fn wind_up(&mut self) -> Result<(), LiveError> {
        self.last = self.shared.status(fairgate_run_api::Detail::All).ok();
        let plan = self.shared.plan();
        self.shared.detach().map_err(|failed| refused(&plan, 0, failed))
    }

    /// Returns the status: the last one, if the run has ended.
    pub(crate) fn status(&self) -> Option<Status> {
        match &self.last {
            Some(last) => Some(last.clone()),
            None => self.shared.status(fairgate_run_api::Detail::All).ok(),
        }
    }
}

/// Returns how long nothing is looked at, ms: until the next sample of estimators is due. One that is due
/// already waits for a tree that can't be read now.
fn wait(next_sample: Option<Time>, now: Time) -> u16 {
    let millis = next_sample.map(|due| due.nanos_since(now).div_ceil(1_000_000));
    match millis.and_then(|millis| u16::try_from(millis).ok()) {
        Some(millis @ 1..LOOK) => millis,
        _ => LOOK,
    }
}

/// Attaches the trees of a plan to its interfaces, and leaves them there: the kernel schedules packets with
/// them until [`detach_trees`], or the next run on the interfaces.
///
/// # Errors
/// Fails if an interface can't be used, or the kernel refuses a tree. Then nothing is left.
pub fn attach_trees(plan: &Plan) -> Result<(), LiveError> {
    KernelRun::open(plan, None)?.shared.leave();
    Ok(())
}

/// Takes away what [`attach_trees`], or a run that was killed, has left on an interface. Packets that wait
/// there are dropped. Returns whether there was something.
///
/// # Errors
/// Fails if there is no such interface, a run uses it, or the kernel refuses.
pub fn detach_trees(interface: &str) -> Result<bool, LiveError> {
    let interface = Interface::lookup_any(interface).map_err(LiveError::unusable(interface))?;
    let _lock = Lock::take(&interface)?;
    let failed = |failed: Failed| {
        let action = format!("taking away the trees of `{}`", interface.name);
        LiveError::system(action)(Errno::from_raw(failed.errno))
    };
    match Attached::left(&interface).map_err(failed)? {
        Some(mut left) => left.detach().map(|()| true).map_err(failed),
        None => Ok(false),
    }
}

/// What it has not taken away yet is taken away: other threads may still have copies of what they ask.
impl Drop for KernelRun {
    fn drop(&mut self) {
        let _ = self.shared.detach();
    }
}

/// Returns the mistake that the kernel has found in the tree from the end at `side`, at its place, if it says
/// which discipline has it.
fn mistake(plan: &Plan, side: usize, failed: &Failed, help: &str) -> Option<FileError> {
    let number = failed.place.filter(|_| failed.is_bad_input())?;
    let why = failed.said.as_deref().unwrap_or("it does not say why");
    let problem = plan.queues[side].refused_by(number, "the kernel", why, help)?;
    Some(problem.into())
}

/// Converts what the kernel said about the direction from the end at `side`.
fn refused(plan: &Plan, side: usize, failed: Failed) -> LiveError {
    const HELP: &str =
        "change it, or run in user space: without --kernel and `backend = \"kernel\"` in [run]";
    if let Some(mistake) = mistake(plan, side, &failed, HELP) {
        return mistake.into();
    }
    let interface = plan.tree_at(side);
    match failed.errno {
        libc::EPERM | libc::EACCES => LiveError::Privileges {
            action: format!("attaching a qdisc to `{interface}`"),
        },
        libc::ENOENT => LiveError::NoModule,
        _ if failed.is_bad_input() => LiveError::KernelRefused {
            from: plan.ends[side].title().to_owned(),
            said: failed.to_string(),
        },
        _ => LiveError::NotAttached {
            from: plan.ends[side].title().to_owned(),
            said: failed.to_string(),
        },
    }
}

/// Converts the error of a qdisc that can't be read any more.
fn gone(plan: &Plan, side: usize, failed: &Failed) -> LiveError {
    LiveError::QdiscGone {
        interface: plan.tree_at(side).to_owned(),
        said: failed.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_not_missed_and_one_that_waits_makes_no_haste() {
        let (now, millis) = (Time::from_secs(5), 1_000_000);
        for (due, waits) in [
            (None, LOOK),
            (Some(now + 20 * millis), 20),
            (Some(now + 20 * millis + 1), 21),
            (Some(now + 250 * millis), LOOK),
            (Some(now), LOOK),
            (Some(Time::from_secs(4)), LOOK),
        ] {
            assert_eq!(wait(due, now), waits, "{due:?}");
        }
    }
}

//! A run's forwarding threads, and the one that leads them.
//!
//! Each thread is a [`Worker`], with two ports and one direction each way. Worker 0 is on the thread that
//! calls [`Bridge::run`], which also looks after what concerns the run as a whole: signals, and those who
//! want its status. The others have threads of their own ([`helpers`]).
//!
//! The status is read in steps, one a turn ([`reading`]). Threads of their own make the document.

mod changes;
mod helpers;
mod observer;
mod pulse;
mod reading;
mod wind_up;
mod worker;

pub use changes::Changer;

use std::os::fd::AsFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::attach::Switch;
use crate::backend::{self, Choice};
use crate::bridge::changes::Orders;
use crate::bridge::helpers::Helpers;
use crate::bridge::observer::{Observer, Readings};
use crate::bridge::reading::Awaited;
use crate::bridge::worker::{Token, Worker, lease};
use crate::config::{End, Isolate, Plan};
use crate::direction::Direction;
use crate::end::Found;
use crate::error::LiveError;
use crate::ethernet::longest_frame;
use crate::fitness;
use crate::links::LinkChanges;
use crate::nat::{self, Tracking};
use crate::notice::Notice;
use crate::plane::Plane;
use crate::port::{Membership, Port};
use crate::randomness::Randomness;
use crate::signals::{Signals, Wake};
use crate::sys::priority::set_realtime;
use crate::workers::WorkerSlot;

/// Stops a running bridge from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<EventFd>);

impl Stopper {
    /// Makes [`Bridge::run`] return [`Wake::Stop`].
    pub fn stop(&self) {
        self.0.write(1).expect("a counter of 64 bits has room for a 1");
    }
}

/// Forwards frames between two interfaces, through a tree of disciplines in each direction: it leads the
/// workers of a run, of which one is on its own thread.
pub struct Bridge {
    /// Dropped first, so that the kernel has its frames back at once.
    worker: Worker,
    has_taken_over: bool,
    /// The further workers, if there are several.
    helpers: Option<Helpers>,
    signals: Option<Signals>,
    /// The translations of this machine, if trees get hosts in the LAN.
    nat: Option<Tracking>,
    /// Where readings go, for those who ask the run.
    readings: Option<Readings>,
    /// The readings of the workers that are awaited.
    awaited: Option<Awaited>,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").finish_non_exhaustive()
    }
}

impl Bridge {
    /// Opens both ends and builds the trees. [`Bridge::run`] takes the frames from the kernel and forwards
    /// them.
    ///
    /// `seed` sets the key of the flow hash and the random numbers of the trees, to make a test repeatable.
    /// Without a seed they come from the system, because an outsider who knows the key can cause hash
    /// collisions.
    ///
    /// # Errors
    /// Fails if an interface is missing, down or unsuitable, or if privileges are missing.
    pub fn open(plan: &Plan, seed: Option<u64>) -> Result<Bridge, LiveError> {
        backend::check(plan)?;
        // Before the interfaces are queried, so that no change is missed.
        let links = LinkChanges::subscribe().map_err(LiveError::io("watching the interfaces"))?;
        let switch = switch(plan)?;
        let left_end = Found::find(&plan.ends[0], plan, None, switch.as_ref())?;
        let left = left_end.interface.clone();
        let right_end = Found::find(&plan.ends[1], plan, Some(&left), switch.as_ref())?;
        let right = right_end.interface.clone();
        if left.index == right.index {
            return Err(LiveError::SameInterface { interface: left.name });
        }
        if left.mtu != right.mtu {
            let larger = if left.mtu > right.mtu { &left } else { &right };
            return Err(LiveError::MtuMismatch {
                larger: larger.name.clone(),
                smaller_mtu: left.mtu.min(right.mtu),
                left_mtu: left.mtu,
                right_mtu: right.mtu,
                left: left.name,
                right: right.name,
            });
        }
        fitness::check(plan, left.mtu)?;
        let mut randomness = Randomness::new(seed);
        let mut plan = plan.clone();
        // The trees may have changed since it was read.
        plan.divide(None).map_err(LiveError::from)?;
        let plan = &plan;
        let slot = WorkerSlot::first(plan, &mut randomness).map_err(LiveError::system("dividing frames"))?;
        let nat = nat::track(plan, &mut randomness)?;
        let stores = backend::frame_stores(plan, left.mtu, [left_end.existing(), right_end.existing()])?;
        let mut direction =
            |side, store| Direction::of_plan(plan, side, store, &mut randomness, slot.as_ref());
        let [to_right, to_left] = stores;
        let mut directions = [direction(0, to_right)?, direction(1, to_left)?];
        if let Some(nat) = &nat {
            for (direction, sees_lan) in directions.iter_mut().zip(plan.nat) {
                if sees_lan {
                    direction.set_translations(nat.translations());
                }
            }
        }
        let mut port = |side: usize, found: Found| {
            let membership = slot.as_ref().map(|slot| slot.membership(side, false));
            let member = membership.as_ref().map(Membership::member);
            Port::new(
                &plan.ends[side],
                found.prepare(
                    plan,
                    switch.as_ref(),
                    member,
                    lease(&mut directions, side).as_ref(),
                    None,
                )?,
                membership,
            )
        };
        let ports = [port(0, left_end)?, port(1, right_end)?];
        let plan = Arc::new(plan.clone());
        let mtu = ports[0].interface.mtu.max(ports[1].interface.mtu);
        let fanouts = slot.as_ref().map(|slot| slot.fanouts.clone());
        let orders = Orders::new(Arc::clone(&plan), mtu, randomness.seed(), fanouts)?;
        let news = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LiveError::system("preparing the event loop"))?;
        let mut worker = Worker::assemble(plan, 0, links, ports, directions, orders, Arc::new(news))?;
        worker.switch = switch;
        worker.watch(worker.news.as_fd(), EpollFlags::EPOLLIN, Token::News)?;
        let helpers = slot.map(|slot| Helpers::prepare(&worker, &slot, &mut randomness));
        Ok(Bridge {
            helpers: helpers.transpose()?,
            worker,
            has_taken_over: false,
            signals: None,
            nat,
            readings: None,
            awaited: None,
        })
    }

    /// Handles SIGINT, SIGTERM and SIGHUP of this thread. From now on they make [`Bridge::run`] return. Other
    /// threads that were started before would receive the signals.
    pub(crate) fn watch_signals(&mut self) -> Result<(), LiveError> {
        let signals = Signals::watch()?;
        self.worker
            .watch(signals.as_fd(), EpollFlags::EPOLLIN, Token::Signal)?;
        self.signals = Some(signals);
        Ok(())
    }

    /// Returns what asks and changes the forwarding threads from other threads. Call it once.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn observe(&mut self) -> Result<Arc<dyn Plane>, LiveError> {
        let longest = u32::try_from(longest_frame(self.worker.mtu())).unwrap_or(u32::MAX);
        let translations = self.nat.as_ref().map(Tracking::translations);
        let (observer, readings, mut taps) =
            Observer::new(self.changer(), longest, &self.worker.plan, translations)?;
        self.worker
            .watch(readings.wanted(), EpollFlags::EPOLLIN, Token::Status)?;
        self.readings = Some(readings);
        self.worker.logs = Some(taps.remove(0));
        if let Some(helpers) = &mut self.helpers {
            helpers.give(taps);
        }
        Ok(Arc::new(observer))
    }

    /// Gives the calling thread, which then has to call [`Bridge::run`], a higher priority than all ordinary
    /// threads, unless the plan disables this. Otherwise the thread would wait for tens of milliseconds on a
    /// busy machine. That is longer than a shaper's bucket can compensate, and delays all packets.
    ///
    /// # Errors
    /// Fails if the kernel refuses. Forwarding works without the priority, but less punctually.
    pub fn prioritise(&mut self) -> Result<(), LiveError> {
        if self.worker.plan.realtime {
            set_realtime().map_err(LiveError::system("asking for real-time scheduling"))?;
            if let Some(helpers) = &mut self.helpers {
                helpers.prioritise()?;
            }
            self.worker.realtime = true;
        }
        Ok(())
    }

    /// Sets the function to be called with each notice while frames are forwarded. It is called on the
    /// forwarding thread and must not block.
    pub fn on_notice(&mut self, notify: impl FnMut(Notice) + Send + 'static) {
        self.worker.notify = Box::new(notify);
    }

    /// Returns the back ends of the left and the right end, and why they were chosen.
    pub fn backends(&self) -> [Choice; 2] {
        [0, 1].map(|side: usize| self.worker.ports[side].choice().clone())
    }

    /// Returns a handle that stops this bridge from another thread.
    pub fn stopper(&self) -> Stopper {
        self.worker.stopper()
    }

    /// Takes the frames from the kernel, if that has not happened. Until the sockets receive, frames are
    /// lost, so everything slow was done before.
    pub(crate) fn take_over(&mut self) -> Result<(), LiveError> {
        if std::mem::replace(&mut self.has_taken_over, true) {
            return Ok(());
        }
        if let Some(nat) = &mut self.nat {
            nat.start()?;
        }
        let stopper = self.stopper();
        if let Some(helpers) = &mut self.helpers {
            helpers.start(&stopper)?;
        }
        if let Some(switch) = &self.worker.switch {
            switch.turn_on();
        }
        if let Some(helpers) = &mut self.helpers {
            helpers.take_over();
        }
        self.worker.take_over()
    }

    /// Forwards frames until a signal or a [`Stopper`] ends it. It may be called again.
    ///
    /// If an interface goes down or loses its carrier, packets to it wait in their queue until it is back. If
    /// it is removed, the run looks for a new one of its name in the network namespace of this thread.
    ///
    /// # Errors
    /// Fails if the kernel refuses for another reason.
    pub fn run(&mut self) -> Result<Wake, LiveError> {
        self.take_over()?;
        self.worker.begin()?;
        loop {
            let happened = self.worker.turn()?;
            if happened.status && self.readings.as_ref().is_some_and(Readings::is_wanted) {
                self.ask_workers();
            } else if happened.change && self.awaited.is_some() {
                // All workers have changed. What some of them have read does not fit what the others read.
                self.ask_workers();
            }
            if happened.news {
                self.gather();
            }
            if happened.signal
                && let Some(reason) = self.read_signal()?
            {
                return Ok(reason);
            }
            if happened.stop {
                return Ok(Wake::Stop);
            }
        }
    }

    fn read_signal(&self) -> Result<Option<Wake>, LiveError> {
        let signals = self.signals.as_ref();
        signals.expect("only the signal descriptor has this token").read()
    }
}

/// Returns the switch of the programs that the plan needs, if this kernel has them.
fn switch(plan: &Plan) -> Result<Option<Switch>, LiveError> {
    let is_created = |end: &End| matches!(end, End::Tap(_) | End::Tun(_));
    if plan.ends.iter().all(is_created) || plan.isolate == Isolate::Never {
        return Ok(None);
    }
    match Switch::new() {
        Ok(switch) => Ok(Some(switch)),
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => Ok(None),
        Err(errno) => {
            let interface = plan.ends[0].name();
            Err(LiveError::bpf(format!("taking the frames of `{interface}`"))(
                errno,
            ))
        }
    }
}

#[cfg(test)]
mod tests;

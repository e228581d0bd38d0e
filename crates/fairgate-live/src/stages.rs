//! The stages of a run until it forwards. Each gives the next one, so that nothing happens too early or too
//! late: what needs privileges happens before they are given up, and nobody is served before the run is
//! confined.
//!
//! ```text
//! Opened -> Prioritised -> ConfinedRun -> Serving
//! ```

use std::fmt;
use std::sync::Arc;

use fairgate_run_api::Status;

use crate::backend::{BackendKind, Choice};
use crate::bridge::Bridge;
use crate::config::Plan;
use crate::error::LiveError;
use crate::kernel::KernelRun;
use crate::notice::Notice;
use crate::plane::Plane;
use crate::privileges::{LaterFiles, Privileges, drop_privileges};
use crate::pulse::Pulse;
use crate::sandbox::{Confined, Sandbox};
use crate::signals::Wake;

/// What forwards the packets of a run: threads of this process, or the kernel.
enum Forwarder {
    Threads(Box<Bridge>),
    Kernel(Box<KernelRun>),
}

/// A run whose interfaces are open.
pub struct Opened(Forwarder);

/// A run that handles signals and has its priority. What else needs privileges is opened now. No other thread
/// has been started.
pub struct Prioritised {
    forwarder: Forwarder,
    priority: Result<(), LiveError>,
}

/// A run that has given up its privileges, and is confined. Its threads inherit both: they may be started
/// now.
pub struct ConfinedRun(Forwarder);

/// What a run was given and what was taken from it before it forwards.
#[derive(Debug)]
pub struct Security {
    /// Why it has no real-time priority, if it was to have it: forwarding works without, less punctually.
    pub priority: Result<(), LiveError>,
    /// What it has kept.
    pub privileges: Privileges,
    /// What it is confined to, or why not.
    pub confined: Result<Confined, &'static str>,
}

/// A run that can be asked, and that forwards when it is told to.
pub struct Serving(Forwarder);

impl Opened {
    /// Opens the interfaces of a plan, as of [`Bridge::open`]. If the kernel is to forward, it does so from
    /// now on.
    ///
    /// # Errors
    /// As of [`Bridge::open`]; or if the kernel refuses a tree.
    pub fn open(plan: &Plan, seed: Option<u64>) -> Result<Opened, LiveError> {
        Ok(Opened(match plan.backend {
            Some(BackendKind::Kernel) => Forwarder::Kernel(Box::new(KernelRun::open(plan, seed)?)),
            _ => Forwarder::Threads(Box::new(Bridge::open(plan, seed)?)),
        }))
    }

    /// Handles SIGINT, SIGTERM and SIGHUP of this thread from now on, and gives it its priority.
    ///
    /// # Errors
    /// Fails if signals can't be handled.
    pub fn prioritise(mut self) -> Result<Prioritised, LiveError> {
        let priority = match &mut self.0 {
            Forwarder::Threads(bridge) => {
                bridge.watch_signals()?;
                bridge.prioritise()
            }
            // No thread of it forwards.
            Forwarder::Kernel(run) => run.watch_signals().map(|()| Ok(()))?,
        };
        Ok(Prioritised {
            priority,
            forwarder: self.0,
        })
    }
}

impl Prioritised {
    /// Gives up all privileges but those that a run of `plan` needs until its end, and confines this thread
    /// to the system calls and the files that it needs, unless `unconfined` says why it is not to be.
    ///
    /// # Errors
    /// Fails if the kernel refuses to take the privileges.
    pub fn confine(
        mut self,
        plan: &Plan,
        later: &LaterFiles<'_>,
        unconfined: Option<&'static str>,
    ) -> Result<(ConfinedRun, Security), LiveError> {
        let privileges = drop_privileges(plan, later)?;
        let confined = match unconfined {
            None => Ok(match &mut self.forwarder {
                Forwarder::Threads(bridge) => bridge.confine(Sandbox::new(plan, later)),
                Forwarder::Kernel(_) => Sandbox::new(plan, later).enter(),
            }),
            Some(why) => Err(why),
        };
        let security = Security {
            priority: self.priority,
            privileges,
            confined,
        };
        Ok((ConfinedRun(self.forwarder), security))
    }
}

impl ConfinedRun {
    /// Lets the run be asked. Returns what is asked, too.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn serve(mut self) -> Result<(Serving, Arc<dyn Plane>), LiveError> {
        let plane = match &mut self.0 {
            Forwarder::Threads(bridge) => bridge.observe()?,
            Forwarder::Kernel(run) => run.observe(),
        };
        Ok((Serving(self.0), plane))
    }
}

impl Serving {
    /// Sets the function to be called with each notice. It must not block.
    pub fn on_notice(&mut self, notify: impl FnMut(Notice) + Send + 'static) {
        match &mut self.0 {
            Forwarder::Threads(bridge) => bridge.on_notice(notify),
            Forwarder::Kernel(run) => run.on_notice(Box::new(notify)),
        }
    }

    /// Returns how packets get to what forwards them, and why so.
    pub fn backends(&self) -> Vec<Choice> {
        match &self.0 {
            Forwarder::Threads(bridge) => bridge.backends().into(),
            Forwarder::Kernel(run) => run.backends(),
        }
    }

    /// Returns a handle by which other threads ask whether this run forwards.
    pub fn pulse(&self) -> Pulse {
        match &self.0 {
            Forwarder::Threads(bridge) => bridge.pulse(),
            Forwarder::Kernel(run) => run.pulse(),
        }
    }

    /// Forwards until a signal comes. It may be called again.
    ///
    /// # Errors
    /// As of [`Bridge::run`]; or if the kernel forwards and a qdisc of the run is gone.
    pub fn run(&mut self) -> Result<Wake, LiveError> {
        match &mut self.0 {
            Forwarder::Threads(bridge) => bridge.run(),
            Forwarder::Kernel(run) => run.run(),
        }
    }

    /// Ends all changes: who waits for one gets an error.
    pub fn end_changes(&mut self) {
        match &mut self.0 {
            Forwarder::Threads(bridge) => bridge.end_changes(),
            // A change does not wait for the thread that runs it.
            Forwarder::Kernel(_) => {}
        }
    }

    /// Ends forwarding, and gives the interfaces back to the kernel.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub fn wind_up(&mut self) -> Result<(), LiveError> {
        match &mut self.0 {
            Forwarder::Threads(bridge) => bridge.wind_up(),
            Forwarder::Kernel(run) => run.wind_up(),
        }
    }

    /// Returns the status, with all counters since the start. `None` if the kernel has forgotten them.
    pub fn status(&mut self) -> Option<Status> {
        match &mut self.0 {
            Forwarder::Threads(bridge) => Some(bridge.status()),
            Forwarder::Kernel(run) => run.status(),
        }
    }
}

/// Print the names of the types only.
macro_rules! named {
    ($($stage:ident),*) => {
        $(impl fmt::Debug for $stage {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($stage)).finish_non_exhaustive()
            }
        })*
    };
}

named!(Opened, Prioritised, ConfinedRun, Serving);

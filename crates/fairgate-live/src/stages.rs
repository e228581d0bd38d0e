//! The stages of a run until it forwards. Each gives the next one, so that nothing happens too early or too
//! late: what needs privileges happens before they are given up, and nobody is served before the run is
//! confined.
//!
//! ```text
//! Opened -> Prioritised -> ConfinedRun -> Serving
//! ```

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::bridge::Bridge;
use crate::config::Plan;
use crate::error::LiveError;
use crate::plane::Plane;
use crate::privileges::{LaterFiles, Privileges, drop_privileges};
use crate::sandbox::{Confined, Sandbox};

/// A run whose interfaces are open.
pub struct Opened(Bridge);

/// A run that handles signals and has its priority. What else needs privileges is opened now. No other thread
/// has been started.
pub struct Prioritised {
    bridge: Bridge,
    priority: Result<(), LiveError>,
}

/// A run that has given up its privileges, and is confined. Its threads inherit both: they may be started
/// now.
pub struct ConfinedRun(Bridge);

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
pub struct Serving(Bridge);

impl Opened {
    /// Opens the interfaces of a plan, as of [`Bridge::open`].
    ///
    /// # Errors
    /// As of [`Bridge::open`].
    pub fn open(plan: &Plan, seed: Option<u64>) -> Result<Opened, LiveError> {
        Bridge::open(plan, seed).map(Opened)
    }

    /// Handles SIGINT, SIGTERM and SIGHUP of this thread from now on, and gives it its priority.
    ///
    /// # Errors
    /// Fails if signals can't be handled.
    pub fn prioritise(mut self) -> Result<Prioritised, LiveError> {
        self.0.watch_signals()?;
        Ok(Prioritised {
            priority: self.0.prioritise(),
            bridge: self.0,
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
            None => Ok(self.bridge.confine(Sandbox::new(plan, later))),
            Some(why) => Err(why),
        };
        let security = Security {
            priority: self.priority,
            privileges,
            confined,
        };
        Ok((ConfinedRun(self.bridge), security))
    }
}

impl ConfinedRun {
    /// Lets the run be asked. Returns what is asked, too.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub fn serve(mut self) -> Result<(Serving, Arc<dyn Plane>), LiveError> {
        let plane = self.0.observe()?;
        Ok((Serving(self.0), plane))
    }
}

impl Deref for Serving {
    type Target = Bridge;

    fn deref(&self) -> &Bridge {
        &self.0
    }
}

impl DerefMut for Serving {
    fn deref_mut(&mut self) -> &mut Bridge {
        &mut self.0
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

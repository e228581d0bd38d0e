//! A simulation that a program runs piece by piece, and changes in between.

use fairgate::{Statistics, Time};
use fairgate_config::{ChangeError, Spec};

use super::{Error, Handled, Simulation};

impl Simulation {
    /// Handles the events before `until`, and the first one from then on. Returns false at the end of the
    /// simulation, after which this must not be called again.
    ///
    /// # Errors
    /// As [`run`](Simulation::run).
    pub fn run_until(&mut self, until: Time) -> Result<bool, Error> {
        while self.events.now() < until {
            if let Handled::End = self.handle_next()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.events.now()
    }

    /// Returns the number of the interface of a link with this name, as the results have it: `a->b`.
    pub fn interface(&self, name: &str) -> Option<usize> {
        self.interface_names().position(|other| other == name)
    }

    /// Returns the names of all interfaces of links.
    pub fn interface_names(&self) -> impl Iterator<Item = &str> {
        let of_links = self.network.of_links().iter();
        of_links.map(|interface| interface.name.as_str())
    }

    /// Returns the statistics of an interface's queue since the start.
    ///
    /// # Panics
    /// If there is no such interface.
    pub fn statistics(&self, interface: usize) -> Statistics {
        self.network.interfaces[interface].egress.root().statistics()
    }

    /// Changes the tree of an interface to any other tree, as [`Spec::change_to`] does. Packets stay
    /// queued. The statistics of the root go on.
    ///
    /// # Errors
    /// If a discipline refuses the change. Nothing has changed then.
    ///
    /// # Panics
    /// If there is no such interface.
    pub fn reconfigure(&mut self, interface: usize, spec: &Spec) -> Result<(), ChangeError> {
        self.network.reconfigure(interface as u32, spec, &mut self.events)
    }
}

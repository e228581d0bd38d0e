//! Whether frames pass by the run of a worker ([`Bypass`](crate::bypass::Bypass)).

use fairgate::Time;
use nix::sys::epoll::EpollTimeout;

use super::Worker;
use crate::attach::{PATIENCE, Switch, Word};
use crate::clock;
use crate::config::End;
use crate::notice::Notice;

/// The longest sleep of a run that frames can pass by, ms. A frame that the programs have given to it can get
/// lost on the way, and then nothing wakes the thread, which could tell that it is alive.
const LONGEST_SLEEP: u16 = 1_000;

impl Worker {
    /// Tells the programs that this thread has taken what they gave to it, and looks whether frames passed by
    /// meanwhile.
    #[inline]
    pub(in crate::bridge) fn look_at_bypass(&mut self, now: Time) {
        if let Some(since) = self.switch.as_ref().and_then(Switch::take_note)
            && now.nanos_since(since) > PATIENCE
        {
            self.was_late(now.nanos_since(since) - PATIENCE);
        }
    }

    #[cold]
    fn was_late(&mut self, nanos: u64) {
        self.count_passed();
        // While the device can't be used, that is why frames pass.
        if self.bypass.since.is_none()
            && let Some(notice) = self.bypass.end(&self.ports[0].interface.name, nanos)
        {
            (self.notify)(notice);
        }
    }

    /// Reads how many frames have passed by.
    pub(in crate::bridge) fn count_passed(&mut self) {
        if let Some(switch) = &self.switch {
            self.bypass.passed = switch.passed();
        }
    }

    /// Lets frames pass by while the TAP device behind which the host's stack is can't be used. Call it
    /// whenever the ports were queried.
    pub(in crate::bridge) fn follow_host_end(&mut self) {
        let (Some(switch), [_, End::Host(_)]) = (&self.switch, &self.plan.ends) else {
            return;
        };
        let port = &self.ports[1];
        match (port.is_within_reach(), self.bypass.since) {
            (true, None) | (false, Some(_)) => {}
            (false, None) => {
                switch.set(Word::HostEnd, 0);
                self.bypass.since = Some(clock::now());
                (self.notify)(Notice::PassingBy {
                    interface: self.ports[0].interface.name.clone(),
                    device: port.interface.name.clone(),
                });
            }
            (true, Some(since)) => {
                switch.set(Word::HostEnd, port.interface.index);
                self.count_passed();
                self.bypass.since = None;
                let nanos = clock::now().nanos_since(since);
                if let Some(notice) = self.bypass.end(&self.ports[0].interface.name, nanos) {
                    (self.notify)(notice);
                }
            }
        }
    }

    /// Returns how long this thread may sleep.
    pub(in crate::bridge) fn longest_sleep(&self) -> EpollTimeout {
        match self.plan.is_on_one_interface() {
            true => LONGEST_SLEEP.into(),
            false => EpollTimeout::NONE,
        }
    }
}

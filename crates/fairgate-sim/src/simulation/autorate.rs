//! Lets the rates of interfaces follow lines: hands pings to the algorithm, and its rates to the trees.

use fairgate::Time;
use fairgate::autorate::{Controller, Delays};
use fairgate::registry::Registry;
use fairgate_config::autorate::RootRate;

use super::{Error, Simulation};
use crate::events::{Event, Events, time};
use crate::monitor::Observer;
use crate::results::ObservationResults;
use crate::scenario::{Mistake, Observation, Scenario, ScenarioError, ScenarioPart};

/// An interface whose rate follows a line.
pub(super) struct Follower {
    interface: u32,
    /// The index of the flow that pings.
    probe: u32,
    /// Between two reviews, ns.
    interval: u64,
    delays: Delays,
    controller: Controller,
    /// What had left the tree at the last review, bytes.
    sent: u64,
    observation: Observation,
    observer: Observer,
}

/// Builds the followers, and schedules their first reviews: at the start each gets its base rate.
pub(super) fn followers(
    scenario: &Scenario,
    events: &mut Events,
    intervals: usize,
) -> Result<Vec<Follower>, ScenarioError> {
    let followed = scenario.followed()?;
    let follower =
        |(index, (followed, autorate)): (u32, (crate::scenario::Followed, &crate::scenario::Autorate))| {
            events.schedule(Time::ZERO, Event::Review(index));
            Follower {
                interface: followed.interface as u32,
                probe: followed.probe,
                interval: time(followed.settings.interval).nanos(),
                delays: Delays::new(&followed.settings, 1, Time::ZERO),
                controller: Controller::new(&followed.settings, autorate.rate, Time::ZERO),
                sent: 0,
                observation: Observation::new(autorate.observation(), autorate.interface.clone(), "autorate"),
                observer: Observer::of_rate(followed.interface, intervals),
            }
        };
    Ok((0..)
        .zip(followed.into_iter().zip(&scenario.autorates))
        .map(follower)
        .collect())
}

impl Follower {
    /// Notes a ping of a flow that leaves its source.
    pub(super) fn ping(&mut self, flow: u32, number: u64, now: Time) {
        if flow == self.probe {
            self.delays.sent(number, 0, now);
        }
    }

    /// Notes the answer to a ping of a flow.
    pub(super) fn answered(&mut self, flow: u32, number: u64, now: Time) {
        if flow == self.probe {
            self.delays.answered(number, now);
        }
    }

    /// Notes the rate at the end of an interval of the time series.
    pub(super) fn interval_ends(&mut self) {
        self.observer
            .note(self.controller.rate().bits_per_second() as f64);
    }

    /// Returns the rate over time.
    pub(super) fn results(&self, interval: u64, measured: [u64; 2]) -> ObservationResults {
        ObservationResults::of(&self.observation, &self.observer, interval, measured)
    }
}

impl Simulation {
    /// Reviews the rate of a follower, and changes its tree if the rate differs.
    pub(super) fn review(&mut self, index: u32) -> Result<(), Error> {
        let now = self.events.now();
        let probe = self.followers[index as usize].probe;
        let is_other =
            |(other, follower): &(usize, &Follower)| *other != index as usize && follower.probe == probe;
        let others = (self.followers.iter().enumerate().filter(is_other))
            .map(|(_, follower)| follower.controller.load())
            .fold(0.0, f64::max);
        let follower = &mut self.followers[index as usize];
        let interface = &self.network.interfaces[follower.interface as usize];
        let sent = interface.egress.root().statistics().dequeued.bytes;
        let bytes = sent - std::mem::replace(&mut follower.sent, sent);
        let seen = follower.delays.seen(now);
        follower.controller.review(now, bytes, &seen, others);
        let spec = interface.spec.as_ref();
        // A program may have given the interface a tree without a rate. Then there is nothing to set.
        let root = spec.and_then(|spec| Some((RootRate::of(spec).ok()?, spec)));
        if let Some((root, spec)) = root
            && let Some(rate) = follower.controller.order()
        {
            let wanted = root.set(spec, rate, &Registry::builtin()).map_err(|error| {
                let what = format!("the tree can't have a rate of {rate}: {error}");
                Mistake::new("rate", what).of(ScenarioPart::Autorate(index as usize))
            })?;
            self.network
                .reconfigure(follower.interface, &wanted, &mut self.events)?;
        }
        let interval = self.followers[index as usize].interval;
        self.events.schedule(now + interval, Event::Review(index));
        Ok(())
    }
}

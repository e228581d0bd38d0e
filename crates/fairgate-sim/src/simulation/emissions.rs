//! What a scenario sends, for a driver that sends it itself: when its flows start, and when they send which
//! datagrams. Equal seeds give the same as in a simulation.

use std::time::Duration;

use fairgate::Time;

use crate::random::{Distribution, Stream};
use crate::scenario::{Flow, Scenario, Traffic};
use crate::simulation::build::datagrams;
use crate::simulation::starts::Starts;
use crate::traffic::Datagrams;

/// The datagrams of a flow in the order of time: the time since the flow's start, and the payload in bytes.
/// It does not end by itself unless the datagrams are recorded.
#[derive(Clone, Debug)]
pub struct Emissions {
    source: Datagrams,
    /// When the next one is due, since the start.
    next: Time,
}

impl Iterator for Emissions {
    type Item = (Duration, u32);

    fn next(&mut self) -> Option<(Duration, u32)> {
        if self.next == Time::MAX {
            return None;
        }
        let at = self.next;
        let (payload, next) = self.source.next(at);
        self.next = next;
        Some((Duration::from_nanos(at.nanos()), payload))
    }
}

/// Random numbers of a driver's own, from the scenario's seed.
#[derive(Clone, Debug)]
pub struct Draws(Stream);

impl Draws {
    /// Begins the numbers for a purpose. Different purposes and names have independent numbers.
    pub fn new(seed: u64, purpose: &str, name: &str) -> Draws {
        Draws(Stream::new(seed, purpose, name))
    }

    /// Draws the next value.
    pub fn draw(&mut self, distribution: &Distribution) -> u64 {
        distribution.sample(&mut self.0)
    }
}

impl Scenario {
    /// Returns when the copies of a flow start, with their names, in the order of time. `None` if flows
    /// arrive at random for as long as the run lasts.
    pub fn starts(&self, flow: &Flow) -> Option<Vec<(Duration, String)>> {
        if flow.arrivals.is_some() {
            return None;
        }
        let mut starts = Starts::new(self, flow);
        let each = std::iter::from_fn(|| starts.take());
        let named = each.map(|start| (Duration::from_nanos(start.at.nanos()), flow.copy_name(start.copy)));
        Some(named.collect())
    }

    /// Returns the datagrams of a flow's copy, by its name. `None` if the flow is a TCP connection.
    pub fn emissions(&self, flow: &Flow, name: &str) -> Option<Emissions> {
        match &flow.traffic {
            Traffic::Tcp(_) => None,
            traffic => Some(Emissions {
                source: datagrams(self, traffic, name),
                next: Time::ZERO,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Udp;
    use fairgate::Rate;

    #[test]
    fn a_driver_is_told_what_a_simulation_sends() {
        let mut scenario = Scenario::new(Duration::from_secs(1));
        let (a, b) = (scenario.node("a"), scenario.node("b"));
        let mut flow = Flow::new("call", a, b, Udp::constant(Rate::mbit(1), 125));
        flow.count = 2;
        flow.stagger = Duration::from_millis(3);
        let names = scenario.starts(&flow).unwrap();
        let millis = Duration::from_millis;
        assert_eq!(
            names,
            [(millis(0), "call-1".to_owned()), (millis(3), "call-2".to_owned())]
        );
        let sent: Vec<_> = scenario.emissions(&flow, "call-1").unwrap().take(3).collect();
        assert_eq!(sent, [(millis(0), 125), (millis(1), 125), (millis(2), 125)]);
    }
}

//! The life of a flow: it starts, it ends, and it is over when its last packet has left the network.

use fairgate::{Count, Time};

use crate::events::Event;
use crate::monitor::{FlowSeries, Lost, Phase};
use crate::scenario::{Flow, Scenario, Traffic};
use crate::simulation::flows::LiveFlow;
use crate::simulation::{Error, Simulation};

/// The maximum number of flows that arrive at random and are there at the same time. They need several
/// gigabytes.
const MOST_ARRIVALS: u32 = 1 << 20;

/// After this many intervals without a packet a flow releases memory.
const QUIET: u32 = 2;

/// At the end of an interval, the state of the flow so many places ahead is prefetched: so many bytes.
const AHEAD: u32 = 8;
const BEGINNING: usize = 192;

/// More flows arrive than end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {MOST_ARRIVALS} flows that arrived at random are in the network at {at}: more arrive than \
     end; lower the rate of arrivals, or give the flows a `lifetime`"
)]
pub struct TooManyFlows {
    /// The simulated time.
    pub at: Time,
}

/// Returns how many places the flows of a scenario may take.
pub(super) fn most_places(scenario: &Scenario) -> u32 {
    let copies = |flow: &Flow| if flow.arrivals.is_some() { 0 } else { flow.count };
    let copies: u32 = scenario.flows.iter().map(copies).sum();
    copies.saturating_add(MOST_ARRIVALS).min(Event::INDICES)
}

impl Simulation {
    /// Starts the next flow of an entry.
    pub(super) fn flow_starts(&mut self, index: u32) -> Result<(), Error> {
        let now = self.events.now();
        let entry = &mut self.entries[index as usize];
        let start = entry
            .starts
            .take()
            .expect("an event is scheduled for a flow that is to start");
        entry.schedule_start(index, &mut self.events);
        let place = self.flows.vacancy();
        if place >= self.most_places {
            return Err(TooManyFlows { at: now }.into());
        }
        let entry = &mut self.entries[index as usize];
        let mut flow = self
            .builder
            .build(&self.scenario, (index, entry), start, place, self.phase);
        flow.series = self.series(&flow).map(Box::new);
        let monitor = &mut self.groups[flow.group as usize].monitor;
        monitor.flow_starts(now);
        monitor.offered += u64::from(self.phase == Phase::Within);
        let stops_at_once = flow.stop <= now;
        let has_stop = !stops_at_once && flow.stop <= self.events.end();
        if has_stop {
            self.entries[index as usize].schedule_stop(&flow, &mut self.events);
        }
        self.network.count_losses_of(2 * (place as usize + 1));
        self.flows.insert(flow);
        if has_stop {
            self.flows.event_scheduled(place);
        }
        if stops_at_once {
            self.flow_stops(place);
            return Ok(());
        }
        Ok(self.source_turn(place)?)
    }

    /// Returns the empty series of a flow that starts or never starts, if it has a row of results.
    pub(super) fn series(&self, flow: &LiveFlow) -> Option<FlowSeries> {
        let entry = &self.entries[flow.entry as usize];
        if !entry.rows {
            return None;
        }
        if entry.starts.are_arrivals() {
            return Some(FlowSeries::from(self.intervals));
        }
        let window = match &self.scenario.flows[flow.entry as usize].traffic {
            Traffic::Tcp(tcp) => Some(tcp.config.initial_window),
            _ => None,
        };
        let all = (self.schedule.duration.nanos() / self.schedule.interval) as usize;
        Some(FlowSeries::padded(self.intervals, window, all))
    }

    /// Stops the source of a flow.
    pub(super) fn flow_stops(&mut self, place: u32) {
        let Some(flow) = self.flows.get(place) else {
            return;
        };
        flow.source.stop();
        self.flow_ends(place);
        self.leave_if_over(place);
    }

    /// Ends the flows that give up because admission control has rejected a packet.
    #[cold]
    pub(super) fn rejected_flows_give_up(&mut self) {
        let [opens, closes] = self.window_ends();
        let mut rejected = std::mem::take(&mut self.network.rejected);
        for place in rejected.drain(..) {
            let Some(flow) = self.flows.get(place) else {
                continue;
            };
            let gives_up = self.entries[flow.entry as usize].gives_up && flow.ended.is_none();
            if gives_up {
                flow.stop = self.events.now();
                let monitor = &mut self.groups[flow.group as usize].monitor;
                monitor.gave_up += 1;
                monitor.blocked += u64::from((opens..closes).contains(&flow.started));
                self.flow_stops(place);
            }
        }
        // The list keeps its memory.
        self.network.rejected = rejected;
    }

    /// Notes that a flow has ended. Its packets may still be on their way.
    pub(super) fn flow_ends(&mut self, place: u32) {
        let now = self.events.now();
        let flow = self.flows.owner(place);
        if flow.ended.is_none() {
            flow.ended = Some(now);
            self.groups[flow.group as usize].monitor.flow_ends(now);
        }
    }

    /// Frees the place of a flow that is over, and keeps its results.
    #[inline]
    pub(super) fn leave_if_over(&mut self, place: u32) {
        let flow = self.flows.owner(place);
        if flow.ended.is_some() && flow.is_over(&self.network.lost) {
            self.leave(place);
        }
    }

    #[cold]
    fn leave(&mut self, place: u32) {
        let flow = self.flows.remove(place).expect("the flow was just seen");
        let lost = [false, true].map(|back| self.take_lost(&flow, back));
        self.lost_before += lost.iter().map(|lost| lost.count.packets).sum::<u64>();
        self.finish(*flow, lost, [Count::default(); 2]);
    }

    /// Returns what a flow has lost, and counts from 0 again.
    pub(super) fn take_lost(&mut self, flow: &LiveFlow, back: bool) -> Lost {
        let template = if back { &flow.acknowledgements } else { &flow.data };
        std::mem::take(&mut self.network.lost[template.origin.index()])
    }

    /// Ends an interval of the flows' series. Flows whose last packet was dropped are found to be over here.
    pub(super) fn flows_pass_interval(&mut self) {
        for place in 0..self.flows.places() as u32 {
            let Some(flow) = self.flows.get(place) else {
                continue;
            };
            let bytes = flow.monitor.interval_ends();
            self.groups[flow.group as usize].monitor.add_interval_bytes(bytes);
            flow.add_point(bytes);
            flow.quiet_intervals = match bytes {
                0 => flow.quiet_intervals.saturating_add(1),
                _ => 0,
            };
            // Not at once, because a flow of a few packets a second would then allocate for each of them.
            // Again later, because not everything can be released while packets are outstanding.
            if flow.quiet_intervals >= QUIET && flow.quiet_intervals.is_power_of_two() {
                flow.source.release_memory();
            }
            self.flows.prefetch(place + AHEAD, BEGINNING);
            self.leave_if_over(place);
        }
    }
}

impl LiveFlow {
    /// Appends a point to the series: the bytes received in an interval, and the state at its end.
    pub(super) fn add_point(&mut self, bytes: u64) {
        let Some(series) = &mut self.series else {
            return;
        };
        series.bytes.push(bytes);
        if let Some((window, rtt)) = self.source.state() {
            series.windows.push(window);
            series.round_trips.push(rtt.map_or(0, |micros| micros * 1_000));
        }
    }
}

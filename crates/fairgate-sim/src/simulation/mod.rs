//! Runs a scenario: builds the network, then handles one event after the other until the end.

mod build;
mod collect;

use fairgate::balance::Imbalance;
use fairgate::{Ecn, PacketId, Time};
use thiserror::Error;

use crate::events::{Event, Events, Ticket};
use crate::monitor::{FlowMonitor, FlowWindow, InterfaceWindow};
use crate::network::{Network, Template, TooManyPackets};
use crate::results::Results;
use crate::scenario::{Scenario, ScenarioError, UDP_HEADERS};
use crate::tcp::{Segment, SenderCounters};
use crate::traffic::{Connection, End, Source};
use build::time;

/// Why a simulation has no results.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The packets do not fit into memory.
    #[error(transparent)]
    TooManyPackets(#[from] TooManyPackets),
    /// The simulator has lost a packet, or counted one twice. This is a bug.
    #[error("the simulator has a bug")]
    Imbalance(#[from] Imbalance),
    /// There are so many events in one nanosecond that the simulation would never end.
    #[error(
        "simulated time stands still at {at}: there are more than {MOST_AT_ONCE} events in one nanosecond; \
         give the links rates and delays, and give the flows realistic rates"
    )]
    StandsStill {
        /// The simulated time.
        at: Time,
    },
}

/// The maximum number of events in one nanosecond. A burst of one packet from each of the most flows is a
/// quarter of it.
const MOST_AT_ONCE: u64 = 1 << 24;

/// A scenario that is ready to run.
pub struct Simulation {
    scenario: Scenario,
    events: Events,
    network: Network,
    flows: Vec<RunningFlow>,
    /// The TCP segment of each packet, by slot of the pool.
    segments: Vec<Segment>,
    /// By [`Origin::index`](crate::network::Origin::index).
    monitors: Vec<FlowMonitor>,
    schedule: Schedule,
    events_taken: u64,
    measured: Measured,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

/// The state of a flow during the run.
struct RunningFlow {
    name: String,
    /// The index in the scenario's flows.
    group: usize,
    data: Template,
    acknowledgements: Template,
    start: Time,
    stop: Time,
    source: Source,
}

/// The events that are not about packets. Their tickets come first, so that intervals and the measurement
/// window are half open: they do not include what happens at their end.
struct Schedule {
    interval: u64,
    interval_ticket: Ticket,
    duration: Time,
}

/// The measurements of the window.
#[derive(Default)]
struct Measured {
    /// By [`Origin::index`](crate::network::Origin::index).
    flows: Vec<FlowWindow>,
    interfaces: Vec<InterfaceWindow>,
    /// The counters of TCP senders when the window opened and when it closed, by flow. `None` for UDP.
    opening: Vec<Option<SenderCounters>>,
    closing: Vec<Option<SenderCounters>>,
}

impl Simulation {
    /// Checks a scenario and builds its network. Rejects a scenario that needs more memory than any machine
    /// has. To check it against a particular machine, call [`Scenario::check_memory`] first.
    pub fn new(scenario: &Scenario) -> Result<Simulation, ScenarioError> {
        scenario.check()?;
        scenario.check_memory(u64::MAX)?;
        let mut events = Events::until(time(scenario.duration));
        let schedule = Schedule {
            interval: time(scenario.interval).nanos(),
            interval_ticket: events.ticket(),
            duration: time(scenario.duration),
        };
        events.schedule_with(schedule.interval_ticket, time(scenario.interval), Event::Interval);
        events.schedule(time(scenario.measure.start), Event::Opening);
        events.schedule(time(scenario.measure.end), Event::Closing);
        events.schedule(schedule.duration, Event::End);

        let intervals = (schedule.duration.nanos() / schedule.interval) as usize;
        let count: usize = scenario.flows.iter().map(|flow| flow.count as usize).sum();
        let mut network = Network::new(build::interfaces(scenario, intervals)?, 2 * count);
        let flows = build::flows(scenario, &mut network)?;
        for (index, flow) in flows.iter().enumerate() {
            events.schedule(flow.start, Event::Source(index as u32));
            if flow.stop < Time::MAX {
                events.schedule(flow.stop, Event::Stop(index as u32));
            }
        }
        Ok(Simulation {
            scenario: scenario.clone(),
            events,
            network,
            segments: Vec::new(),
            monitors: vec![FlowMonitor::new(intervals); 2 * flows.len()],
            flows,
            schedule,
            events_taken: 0,
            measured: Measured::default(),
        })
    }

    /// Runs to the end and returns the results.
    pub fn run(self) -> Result<Results, Error> {
        self.run_with(|_| ())
    }

    /// Runs to the end. Calls `progress` with the simulated time after each interval of the time series.
    pub fn run_with(mut self, mut progress: impl FnMut(Time)) -> Result<Results, Error> {
        let (mut before, mut at_once) = (Time::ZERO, 0);
        loop {
            let event = self.events.next().expect("the end is always scheduled");
            self.events_taken += 1;
            let now = self.events.now();
            at_once = if now == before { at_once + 1 } else { 0 };
            before = now;
            if at_once > MOST_AT_ONCE {
                return Err(Error::StandsStill { at: now });
            }
            match event {
                Event::Arrival(interface) => {
                    let id = self.network.arrive(interface, &mut self.events);
                    if !self.network.forward(id, &mut self.events) {
                        self.receive(id)?;
                    }
                }
                Event::Wake(interface) => self.network.wake(interface, &mut self.events),
                Event::Source(flow) => self.source_turn(flow)?,
                Event::SenderTimer(flow) => self.timer(flow, End::Sender)?,
                Event::ReceiverTimer(flow) => self.timer(flow, End::Receiver)?,
                Event::Stop(flow) => {
                    if let Source::Connection(connection) = &mut self.flows[flow as usize].source {
                        connection.stop();
                    }
                }
                Event::Interval => {
                    self.interval_ends();
                    progress(self.events.now());
                }
                Event::Opening => self.window_opens(),
                Event::Closing => self.window_closes(),
                Event::End => return Ok(self.results()?),
            }
        }
    }

    /// Lets a flow's source send or write what is due.
    #[inline]
    fn source_turn(&mut self, index: u32) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let flow = &mut self.flows[index as usize];
        if now >= flow.stop {
            return Ok(());
        }
        match &mut flow.source {
            Source::Datagrams(datagrams) => {
                let (payload, next) = datagrams.next(now);
                let length = payload + UDP_HEADERS;
                let id = self.network.create(&flow.data, length, now)?;
                self.monitors[flow.data.origin.index()].sent(length);
                self.events.schedule(next, Event::Source(index));
                self.network.forward(id, &mut self.events);
                Ok(())
            }
            Source::Connection(connection) => {
                if let Some(next) = connection.turn(now) {
                    self.events.schedule(next, Event::Source(index));
                }
                self.transmit(index, End::Sender)
            }
        }
    }

    /// Handles a timer of a TCP connection that is due.
    fn timer(&mut self, index: u32, end: End) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        connection(&mut self.flows[index as usize].source).on_alarm(end, now);
        self.transmit(index, end)
    }

    /// Sends all that an end of a TCP connection has to send, and sets its timer.
    fn transmit(&mut self, index: u32, end: End) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let flow = &mut self.flows[index as usize];
        let template = match end {
            End::Sender => &flow.data,
            End::Receiver => &flow.acknowledgements,
        };
        let connection = connection(&mut flow.source);
        while let Some(segment) = connection.poll_transmit(end, now) {
            let length = segment.ip_length();
            let id = self.network.create(template, length, now)?;
            self.network.pool[id].ecn = segment.ecn;
            if self.segments.len() <= id.index() {
                let slots = self.network.pool.capacity() as usize;
                self.segments.resize(slots, Segment::default());
            }
            self.segments[id.index()] = segment;
            self.monitors[template.origin.index()].sent(length);
            self.network.forward(id, &mut self.events);
        }
        connection.set_alarm(end, index, &mut self.events);
        Ok(())
    }

    /// Handles a packet that has reached the end of its route.
    #[inline]
    fn receive(&mut self, id: PacketId) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let journey = *self.network.journey(id);
        let packet = self.network.pool.release(id);
        let monitor = &mut self.monitors[journey.origin.index()];
        monitor.received(journey.length, now - journey.sent_at, packet.ecn == Ecn::Ce);
        let flow = journey.origin.flow;
        let connection = match &mut self.flows[flow as usize].source {
            Source::Datagrams(_) => {
                monitor.delivered(u64::from(journey.length - UDP_HEADERS));
                return Ok(());
            }
            Source::Connection(connection) => connection,
        };
        let segment = Segment {
            ecn: packet.ecn,
            ..self.segments[id.index()]
        };
        if journey.origin.back {
            connection.on_segment(End::Sender, &segment, now);
            return self.transmit(flow, End::Sender);
        }
        connection.on_segment(End::Receiver, &segment, now);
        let (payload, turn) = connection.take_delivered(now);
        monitor.delivered(payload);
        if let Some(at) = turn {
            self.events.schedule(at, Event::Source(flow));
        }
        self.transmit(flow, End::Receiver)
    }

    fn interval_ends(&mut self) {
        for monitor in &mut self.monitors {
            monitor.interval_ends();
        }
        for interface in &mut self.network.interfaces {
            interface.monitor.interval_ends(interface.egress.backlog());
        }
        for flow in &mut self.flows {
            if let Source::Connection(connection) = &mut flow.source {
                connection.interval_ends();
            }
        }
        let next = self.events.now() + self.schedule.interval;
        self.events
            .schedule_with(self.schedule.interval_ticket, next, Event::Interval);
    }

    fn window_opens(&mut self) {
        for (monitor, lost) in self.monitors.iter_mut().zip(&self.network.lost) {
            monitor.window_opens(*lost);
        }
        for interface in &mut self.network.interfaces {
            interface
                .monitor
                .window_opens(interface.egress.root().statistics());
        }
        self.measured.opening = self.sender_counters();
    }

    fn window_closes(&mut self) {
        self.measured.flows = self
            .monitors
            .iter_mut()
            .zip(&self.network.lost)
            .map(|(monitor, lost)| monitor.window_closes(*lost))
            .collect();
        self.measured.interfaces = self
            .network
            .interfaces
            .iter_mut()
            .map(|interface| {
                interface
                    .monitor
                    .window_closes(interface.egress.root().statistics())
            })
            .collect();
        self.measured.closing = self.sender_counters();
    }

    fn sender_counters(&self) -> Vec<Option<SenderCounters>> {
        self.flows
            .iter()
            .map(|flow| match &flow.source {
                Source::Datagrams(_) => None,
                Source::Connection(connection) => Some(connection.sender.counters()),
            })
            .collect()
    }
}

/// Returns the connection of a flow. The flow must be a TCP flow.
fn connection(source: &mut Source) -> &mut Connection {
    match source {
        Source::Connection(connection) => connection,
        Source::Datagrams(_) => unreachable!("only TCP connections have timers and segments"),
    }
}

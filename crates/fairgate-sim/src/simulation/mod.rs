//! Runs a scenario: builds the network, then handles one event after the other until the end.

mod autorate;
mod build;
mod collect;
mod emissions;
mod flows;
mod life;
mod starts;
mod steps;

use std::io::{self, Write};

use fairgate::balance::Imbalance;
use fairgate::{Ecn, PacketId, Time};
use fairgate_config::ChangeError;
use thiserror::Error;

use crate::events::{Event, Events, Ticket, time};
use crate::monitor::{InterfaceWindow, Observer, Phase};
use crate::network::{Network, Origin, Tap, TooManyPackets};
use crate::results::Results;
use crate::scenario::{Scenario, ScenarioError, UDP_HEADERS};
use crate::tcp::Segment;
use crate::traffic::{End, Source};
use autorate::Follower;
use build::{Entry, FlowBuilder, Group};
use collect::Row;
pub use emissions::{Draws, Emissions};
use flows::{LiveFlow, LiveFlows};
pub use life::TooManyFlows;

/// Why a simulation has no results.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// The scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The packets do not fit into memory.
    #[error(transparent)]
    TooManyPackets(#[from] TooManyPackets),
    /// More flows arrive than end.
    #[error(transparent)]
    TooManyFlows(#[from] TooManyFlows),
    /// A tree refuses the rate that follows a line.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A capture cannot be written.
    #[error("the capture of {interface} can't be written: {what}")]
    Capture {
        /// The name of the interface.
        interface: String,
        /// The error of the system.
        what: String,
    },
    /// The simulator has lost a packet, or counted one twice. This is a bug.
    #[error("the simulator has a bug")]
    Imbalance(#[from] Imbalance),
    /// The caller asked the simulation to stop ([`Simulation::run_while`]).
    #[error("the simulation was stopped at {at}, before its end")]
    Stopped {
        /// The simulated time.
        at: Time,
    },
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

impl Error {
    fn capture(interface: &str, error: &io::Error) -> Error {
        Error::Capture {
            interface: interface.to_owned(),
            what: error.to_string(),
        }
    }
}

/// The maximum number of events in one nanosecond. A burst of one packet from each of the most flows is a
/// quarter of it.
const MOST_AT_ONCE: u64 = 1 << 24;

/// With fewer flows, their state is in the processor's caches.
const FLOWS_IN_CACHE: usize = 64;

/// After how many events [`Simulation::run_while`] asks whether to go on: a power of two, a few milliseconds
/// of work.
const EVENTS_BETWEEN: u64 = 1 << 14;

/// A scenario that is ready to run.
pub struct Simulation {
    scenario: Scenario,
    events: Events,
    network: Network,
    builder: FlowBuilder,
    entries: Vec<Entry>,
    groups: Vec<Group>,
    flows: LiveFlows,
    /// How many places `flows` may have.
    most_places: u32,
    schedule: Schedule,
    /// The time of the last event, and how many events had been taken with the first one of this time.
    before: Time,
    taken_before: u64,
    phase: Phase,
    /// The number of intervals that have ended.
    intervals: usize,
    /// What was measured at interfaces in the window.
    interfaces: Vec<InterfaceWindow>,
    /// Variables of disciplines that are sampled at the end of each interval.
    observers: Vec<Observer>,
    /// The interfaces whose rates follow lines.
    followers: Vec<Follower>,
    /// The results of flows that are over.
    rows: Vec<Row>,
    /// The packets lost by flows that are over.
    lost_before: u64,
}

/// Prints the name of the type only.
impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").finish_non_exhaustive()
    }
}

/// What the next event was.
enum Handled {
    Event,
    /// An interval of the time series has ended.
    Interval,
    /// The simulation is over.
    End,
}

/// The events that are not about packets. Their tickets come first, so that intervals and the measurement
/// window are half open: they do not include what happens at their end.
struct Schedule {
    interval: u64,
    interval_ticket: Ticket,
    duration: Time,
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
        let mut network = build::network(scenario, intervals)?;
        let groups = build::groups(scenario, intervals);
        let entries = build::entries(scenario, &mut network, &mut events, &groups)?;
        for (index, entry) in (0..).zip(&entries) {
            entry.schedule_start(index, &mut events);
        }
        let followers = autorate::followers(scenario, &mut events, intervals)?;
        Ok(Simulation {
            events,
            network,
            builder: FlowBuilder::new(scenario),
            entries,
            groups,
            flows: LiveFlows::default(),
            most_places: life::most_places(scenario),
            schedule,
            before: Time::ZERO,
            taken_before: 0,
            phase: Phase::Before,
            intervals: 0,
            interfaces: Vec::new(),
            observers: build::observers(scenario, intervals)?,
            followers,
            rows: Vec::new(),
            lost_before: 0,
            scenario: scenario.clone(),
        })
    }

    /// Runs to the end and returns the results.
    pub fn run(self) -> Result<Results, Error> {
        self.run_with(|_| ())
    }

    /// Runs to the end. Calls `progress` with the simulated time after each interval of the time series.
    pub fn run_with(self, progress: impl FnMut(Time)) -> Result<Results, Error> {
        self.drive(progress, |_| true)
    }

    /// Runs to the end, or until `go_on` returns false. It is called with the simulated time every few
    /// milliseconds of real time, however long the intervals of the time series are: for a program that
    /// must react to its user.
    ///
    /// # Errors
    /// [`Error::Stopped`] if `go_on` has returned false.
    pub fn run_while(self, go_on: impl FnMut(Time) -> bool) -> Result<Results, Error> {
        self.drive(|_| (), go_on)
    }

    fn drive(
        mut self,
        mut progress: impl FnMut(Time),
        mut go_on: impl FnMut(Time) -> bool,
    ) -> Result<Results, Error> {
        loop {
            match self.handle_next()? {
                Handled::Event => {}
                Handled::Interval => progress(self.events.now()),
                Handled::End => return self.over(),
            }
            if self.events.taken().is_multiple_of(EVENTS_BETWEEN) && !go_on(self.events.now()) {
                return Err(Error::Stopped {
                    at: self.events.now(),
                });
            }
        }
    }

    /// Handles the next event.
    #[inline(always)]
    fn handle_next(&mut self) -> Result<Handled, Error> {
        let event = self.events.next().expect("the end is always scheduled");
        let (now, taken) = (self.events.now(), self.events.taken());
        if now != self.before {
            self.before = now;
            self.taken_before = taken;
        } else if taken - self.taken_before > MOST_AT_ONCE {
            return Err(Error::StandsStill { at: now });
        }
        let mut handled = Handled::Event;
        match event {
            Event::Arrival(interface) => {
                if let Some(id) = self.network.arrive(interface, &mut self.events) {
                    self.expect_arrivals(interface);
                    self.receive(id)?;
                }
            }
            Event::Medium(cell) => {
                self.network.advance_medium(cell, &mut self.events);
                while let Some(id) = self.network.take_delivered(cell) {
                    if let Some(id) = self.network.receive_over_air(id, &mut self.events) {
                        self.receive(id)?;
                    }
                }
            }
            Event::Processed(processor) => self.network.processed(processor, &mut self.events),
            Event::Wake(interface) => self.network.wake(interface, &mut self.events),
            Event::Source(flow) => {
                self.flows.event_occurred(flow);
                self.source_turn(flow)?;
            }
            Event::SenderTimer(flow) => self.timer(flow, End::Sender)?,
            Event::ReceiverTimer(flow) => self.timer(flow, End::Receiver)?,
            Event::Start(entry) => self.flow_starts(entry)?,
            Event::Stop(flow) => {
                self.flows.event_occurred(flow);
                self.flow_stops(flow);
            }
            Event::Interval => {
                self.interval_ends();
                handled = Handled::Interval;
            }
            Event::Opening => self.window_opens(),
            Event::Closing => self.window_closes(),
            Event::Review(follower) => self.review(follower)?,
            Event::End => return Ok(Handled::End),
        }
        if !self.network.rejected.is_empty() {
            self.rejected_flows_give_up();
        }
        Ok(handled)
    }

    /// Returns the results at the end.
    fn over(mut self) -> Result<Results, Error> {
        self.finish_captures()?;
        Ok(self.results()?)
    }

    /// Writes the capture with this number of the scenario to `into` during the run.
    ///
    /// # Errors
    /// If the header of the capture can't be written.
    ///
    /// # Panics
    /// If the scenario has no such capture.
    pub fn capture(&mut self, number: usize, into: impl Write + Send + 'static) -> Result<(), Error> {
        let capture = &self.scenario.captures[number];
        let names = self.network.interfaces.iter();
        let index = names
            .map(|interface| &interface.name)
            .position(|name| *name == capture.interface);
        let interface = &mut self.network.interfaces[index.expect("the scenario was checked")];
        let tap = Tap::new(Box::new(into), capture.snap, &capture.interface);
        interface.tap = Some(Box::new(
            tap.map_err(|error| Error::capture(&capture.interface, &error))?,
        ));
        Ok(())
    }

    /// Returns the interface of the capture with this number.
    ///
    /// # Panics
    /// If the scenario has no such capture.
    pub fn capture_interface(&self, number: usize) -> &str {
        &self.scenario.captures[number].interface
    }

    fn finish_captures(&mut self) -> Result<(), Error> {
        for interface in &mut self.network.interfaces {
            if let Some(tap) = interface.tap.take() {
                tap.finish()
                    .map_err(|error| Error::capture(&interface.name, &error))?;
            }
        }
        Ok(())
    }

    /// Lets a flow's source send or write what is due.
    #[inline]
    fn source_turn(&mut self, place: u32) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let Some(flow) = self.flows.get(place) else {
            return Ok(());
        };
        if now >= flow.stop {
            return Ok(());
        }
        match &mut flow.source {
            Source::Datagrams(datagrams) => {
                let number = datagrams.number(now);
                let (payload, next) = datagrams.next(now);
                let length = payload + UDP_HEADERS;
                let id = self.network.create(&flow.data, length, now)?;
                if let Some(number) = number {
                    let carried = Segment {
                        seq: number,
                        ..Segment::default()
                    };
                    self.network.attach(id, carried);
                    for follower in &mut self.followers {
                        follower.ping(flow.entry, number, now);
                    }
                }
                flow.monitor.sent(length);
                match next {
                    Time::MAX => self.flow_ends(place),
                    next => self.schedule_turn(place, next),
                }
                self.network.forward(id, &mut self.events);
                Ok(())
            }
            Source::Connection(connection) => {
                let (end, next) = connection.turn(now);
                if let Some(next) = next {
                    self.schedule_turn(place, next);
                }
                self.transmit(place, end)
            }
            Source::Browser(browser) => {
                browser.turn(now);
                if let Some(next) = browser.next_turn(now) {
                    self.schedule_turn(place, next);
                }
                self.transmit(place, End::Receiver)?;
                self.transmit(place, End::Sender)
            }
        }
    }

    /// Schedules the next turn of a flow's source.
    #[inline]
    fn schedule_turn(&mut self, place: u32, at: Time) {
        if at <= self.events.end() {
            self.flows.event_scheduled(place);
            self.events.schedule(at, Event::Source(place));
        }
    }

    /// Handles a timer of a TCP connection that is due. If another flow has the place now, this does nothing.
    fn timer(&mut self, place: u32, end: End) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let Some(flow) = self.flows.get(place) else {
            return Ok(());
        };
        for connection in flow.source.connections() {
            connection.on_alarm(end, now);
        }
        self.transmit(place, end)
    }

    /// Sends all that an end of a flow's TCP connections has to send, and sets their timers.
    fn transmit(&mut self, place: u32, end: End) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let flow = self.flows.owner(place);
        for (number, connection) in flow.source.connections().iter_mut().enumerate() {
            let template = match (number.checked_sub(1), end) {
                (None, End::Sender) => &flow.data,
                (None, End::Receiver) => &flow.acknowledgements,
                (Some(further), end) => &flow.more[further][end as usize],
            };
            while let Some(mut segment) = connection.poll_transmit(end, now) {
                let length = segment.ip_length();
                let id = self.network.create(template, length, now)?;
                self.network.pool[id].ecn = segment.ecn;
                segment.connection = number as u16;
                self.network.attach(id, segment);
                match end {
                    End::Sender => flow.monitor.sent(length),
                    End::Receiver => flow.acknowledged.sent.add(length),
                }
                self.network.forward(id, &mut self.events);
            }
            connection.set_alarm(end, place, &mut self.events);
        }
        Ok(())
    }

    /// Prefetches the state of the flows whose packets arrive next over the link of this interface. What was
    /// prefetched for the third packet tells where the rest is when the packet is the second one, and that
    /// tells where its lists are when it is the first one.
    #[inline]
    fn expect_arrivals(&self, interface: u32) {
        if self.flows.places() < FLOWS_IN_CACHE {
            return;
        }
        let [first, second, third] = self.network.next_arrivals(interface);
        let end = |origin: Origin| match origin.back {
            true => End::Sender,
            false => End::Receiver,
        };
        if let Some(origin) = third {
            self.flows.prefetch(origin.flow, LiveFlow::HOT);
        }
        if let Some(origin) = second {
            self.flows.prefetch_source(origin.flow, end(origin));
        }
        if let Some(origin) = first {
            self.flows.prefetch_lists(origin.flow, end(origin));
        }
    }

    /// Handles a packet that has reached the end of its route.
    #[inline]
    fn receive(&mut self, id: PacketId) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let journey = *self.network.journey(id);
        let packet = self.network.pool.release(id);
        let place = journey.origin.flow;
        let flow = self.flows.owner(place);
        let (length, delay) = (journey.length, now - journey.sent_at);
        let end = match journey.origin.back {
            true => End::Sender,
            false => End::Receiver,
        };
        match end {
            End::Sender => flow.acknowledged.received.add(length),
            End::Receiver => flow.monitor.received(length, delay, packet.ecn == Ecn::Ce),
        }
        if let Source::Datagrams(datagrams) = &mut flow.source {
            if end == End::Receiver {
                flow.monitor.delivered(u64::from(length - UDP_HEADERS));
            }
            if datagrams.has_numbers() {
                let carried = self.network.segment(id);
                if journey.origin.back {
                    for follower in &mut self.followers {
                        follower.answered(flow.entry, carried.seq, now);
                    }
                }
                if datagrams.arrived(journey.origin.back, carried.seq, delay, now) {
                    self.answer(place, length, carried)?;
                }
            }
        } else {
            self.receive_segment(place, end, id, packet.ecn)?;
        }
        self.leave_if_over(place);
        Ok(())
    }

    /// Handles a TCP segment that has arrived at an end of a flow, with these ECN bits.
    #[inline]
    fn receive_segment(
        &mut self,
        place: u32,
        end: End,
        id: PacketId,
        ecn: Ecn,
    ) -> Result<(), TooManyPackets> {
        let now = self.events.now();
        let flow = self.flows.owner(place);
        let segment = self.network.segment_mut(id);
        segment.ecn = ecn;
        let number = usize::from(segment.connection);
        flow.source.connections()[number].on_segment(end, segment, now);
        let (payload, turn) = match &mut flow.source {
            Source::Datagrams(_) => (0, None),
            Source::Connection(connection) => connection.take_delivered(end, now),
            Source::Browser(browser) => {
                let payload = browser.take_delivered(number, end, now);
                (payload, browser.next_turn(now))
            }
        };
        if end == End::Receiver {
            flow.monitor.delivered(payload);
        }
        let is_complete = payload > 0 && flow.source.is_complete();
        if let Some(at) = turn {
            self.schedule_turn(place, at);
        }
        self.transmit(place, end)?;
        if is_complete {
            self.flow_ends(place);
        }
        Ok(())
    }

    /// Sends the answer to a datagram of this length back to the source.
    fn answer(&mut self, place: u32, length: u32, carried: Segment) -> Result<(), TooManyPackets> {
        let flow = self.flows.owner(place);
        let id = self
            .network
            .create(&flow.acknowledgements, length, self.events.now())?;
        self.network.attach(id, carried);
        flow.acknowledged.sent.add(length);
        self.network.forward(id, &mut self.events);
        Ok(())
    }

    fn interval_ends(&mut self) {
        self.intervals += 1;
        self.flows_pass_interval();
        for group in &mut self.groups {
            group.monitor.interval_ends();
        }
        for interface in &mut self.network.interfaces {
            interface.monitor.interval_ends(interface.egress.backlog());
        }
        for observer in &mut self.observers {
            observer.interval_ends(self.network.interfaces[observer.interface].egress.root());
        }
        for follower in &mut self.followers {
            follower.interval_ends();
        }
        let next = self.events.now() + self.schedule.interval;
        self.events
            .schedule_with(self.schedule.interval_ticket, next, Event::Interval);
    }

    fn window_opens(&mut self) {
        self.phase = Phase::Within;
        for flow in self.flows.iter_mut() {
            let lost = self.network.lost[flow.data.origin.index()].clone();
            flow.monitor.window_opens(lost);
            flow.source.window_opens();
        }
        for group in &mut self.groups {
            group.monitor.window_opens(self.events.now());
        }
        for interface in &mut self.network.interfaces {
            interface.monitor.window_opens(interface.egress.root());
        }
        let now = self.events.now();
        for cell in &mut self.network.cells {
            cell.window_opens(now);
        }
    }

    fn window_closes(&mut self) {
        self.phase = Phase::After;
        for flow in self.flows.iter_mut() {
            let lost = self.network.lost[flow.data.origin.index()].clone();
            flow.monitor.window_closes(lost);
            flow.source.window_closes();
        }
        for group in &mut self.groups {
            group.monitor.window_closes(self.events.now());
        }
        let close = |interface: &mut crate::network::Interface| {
            interface.monitor.window_closes(interface.egress.root())
        };
        self.interfaces = self.network.interfaces.iter_mut().map(close).collect();
        let now = self.events.now();
        for cell in &mut self.network.cells {
            cell.window_closes(now);
        }
    }
}

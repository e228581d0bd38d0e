//! The bridge: two ports, one direction each way, one thread.
//!
//! A turn of the loop receives frames, sends the frames that are due, and sleeps until a frame arrives or the
//! earliest departure is due. The sleep is an `epoll_wait` with a timer of nanosecond resolution. Late
//! wake-ups (milliseconds in virtual machines) don't change the rate, because shapers count tokens by the
//! clock and not by wake-ups. If there are many wake-ups, [`Pace`] makes the sleep longer.
//!
//! If the run has several workers, this is worker 0, and each of the others is a bridge like it ([`crew`]).
//!
//! The same `epoll_wait` also reports signals, and that a client wants the status. Each is checked at most
//! once a turn. The status is read in steps, one a turn ([`reading`]); threads of their own make the document
//! and send it.

mod bypass;
mod changes;
mod crew;
mod estimators;
mod pulse;
mod wind_up;

pub(crate) use bypass::Bypass;
pub(crate) use changes::Kind;
pub use changes::{Changed, Changer};
pub use pulse::{Beat, Pulse};

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use fairgate::Time;
use fairgate_config::Registry;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use crate::attach::Switch;
use crate::backend::xdp::Lease;
use crate::backend::{self, Choice};
use crate::bridge::changes::Orders;
use crate::bridge::crew::Crew;
use crate::bridge::reading::Reading;
use crate::clock;
use crate::config::{End, Isolate, Plan};
use crate::direction::{Direction, TooLong, Turn};
use crate::end::Found;
use crate::error::LiveError;
use crate::ethernet::longest_frame;
use crate::fitness;
use crate::links::LinkChanges;
use crate::nat::{self, Tracking};
use crate::notice::Notice;
use crate::pace::{Next, Pace};
use crate::packets::PacketTap;
use crate::port::{Membership, Port};
use crate::randomness::Randomness;
use crate::reserve::Reserver;
use crate::status::{Audit, Control, DelayTap, Estimators, Inside, Owner, Server};
use crate::sys::priority::{realtime_share, set_realtime};
use crate::workers::Seat;

/// The maximum number of frames received from a port in one turn. The other port has to wait for that long.
const RECEIVE_TURN: usize = 64;

/// How long to wait for room in a full socket, ns. At 10 Gb/s, half of its buffer is sent in 0.2 ms.
const RETRY: u64 = 50_000;
/// The minimum time between two checks of the MTUs, ns.
const BETWEEN_MTU_CHECKS: u64 = 100_000_000;

/// Why [`Bridge::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// SIGINT, SIGTERM or a [`Stopper`].
    Stop,
    /// SIGHUP: the configuration should be read again.
    Reload,
}

/// The sources of epoll events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Token {
    Left,
    Right,
    Timer,
    Signal,
    Stop,
    Status,
    Links,
    Change,
    News,
}

/// The tokens of the left and the right port.
const PORTS: [Token; 2] = [Token::Left, Token::Right];

/// Stops a running bridge from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<EventFd>);

impl Stopper {
    /// Makes [`Bridge::run`] return [`Wake::Stop`].
    pub fn stop(&self) {
        self.0.write(1).expect("a counter of 64 bits has room for a 1");
    }
}

/// Forwards frames between two interfaces, through a tree of disciplines in each direction.
pub struct Bridge {
    /// Dropped first, so that the kernel has its frames back at once.
    switch: Option<Switch>,
    has_taken_over: bool,
    /// What has passed by this run.
    bypass: Bypass,
    /// The number of this worker.
    worker: usize,
    ports: [Port; 2],
    /// The directions from left to right and from right to left.
    directions: [Direction; 2],
    /// The rates of disciplines and classes in both trees.
    estimators: [Estimators; 2],
    epoll: Epoll,
    timer: TimerFd,
    /// The time that the timer is set to.
    armed: Option<Time>,
    signals: Option<SignalFd>,
    stop: Arc<EventFd>,
    server: Option<Server>,
    /// The translations of this machine, if trees get hosts in the LAN.
    nat: Option<Tracking>,
    /// The log of sojourn times for recordings.
    delays: Option<DelayTap>,
    /// The log of packets.
    packets: Option<PacketTap>,
    /// What other threads have ordered.
    orders: Orders,
    /// The state that is being read.
    reading: Option<Reading>,
    /// The further workers, if this is worker 0 of several.
    crew: Option<Crew>,
    /// Tells worker 0 that this other worker has read its state.
    lead_news: Option<Arc<EventFd>>,
    /// The configuration that is running.
    plan: Arc<Plan>,
    pace: Pace,
    /// Whether this thread has real-time priority.
    realtime: bool,
    /// The earliest time at which the MTUs are checked again.
    next_mtu_check: Time,
    links: LinkChanges,
    /// When a removed interface is looked for again, if one is missing.
    next_attempt: Option<Time>,
    notify: Box<dyn FnMut(Notice) + Send>,
    started: Time,
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
        let seat = Seat::first(plan, &mut randomness).map_err(LiveError::system("dividing frames"))?;
        let nat = nat::track(plan, &mut randomness)?;
        let stores = backend::frame_stores(plan, left.mtu, [left_end.existing(), right_end.existing()])?;
        let mut direction =
            |side, store| Direction::of_plan(plan, side, store, &mut randomness, seat.as_ref());
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
            let membership = seat.as_ref().map(|seat| seat.membership(side, false));
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
        let fanouts = seat.as_ref().map(|seat| seat.fanouts.clone());
        let orders = Orders::new(Arc::clone(&plan), mtu, randomness.seed(), fanouts)?;
        let mut bridge = Bridge::assemble(plan, 0, links, ports, directions, orders)?;
        bridge.switch = switch;
        bridge.nat = nat;
        if let Some(seat) = seat {
            let crew = Crew::prepare(&bridge, &seat, &mut randomness)?;
            bridge.watch(crew.news(), EpollFlags::EPOLLIN, Token::News)?;
            bridge.crew = Some(crew);
        }
        Ok(bridge)
    }

    /// Makes a bridge of its parts. It has no switch and no further workers yet.
    fn assemble(
        plan: Arc<Plan>,
        worker: usize,
        links: LinkChanges,
        ports: [Port; 2],
        directions: [Direction; 2],
        orders: Orders,
    ) -> Result<Bridge, LiveError> {
        let system = || LiveError::system("preparing the event loop");
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system())?;
        let timer = TimerFd::new(
            timerfd::ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )
        .map_err(system())?;
        let stop = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(system())?;
        let bridge = Bridge {
            switch: None,
            has_taken_over: false,
            bypass: Bypass::default(),
            worker,
            ports,
            directions,
            estimators: [0, 1].map(|side| Estimators::of(plan.tree_of(side, worker))),
            epoll,
            timer,
            armed: None,
            signals: None,
            stop: Arc::new(stop),
            server: None,
            nat: None,
            delays: None,
            packets: None,
            orders,
            reading: None,
            crew: None,
            lead_news: None,
            pace: Pace::new(clock::now(), realtime_share(), plan.spin.is_zero()),
            realtime: false,
            next_mtu_check: Time::ZERO,
            links,
            next_attempt: None,
            notify: Box::new(drop),
            started: clock::now(),
            plan,
        };
        bridge.watch(bridge.orders.wanted.as_fd(), EpollFlags::EPOLLIN, Token::Change)?;
        bridge.watch(bridge.ports[0].receiver(), EpollFlags::EPOLLIN, Token::Left)?;
        bridge.watch(bridge.ports[1].receiver(), EpollFlags::EPOLLIN, Token::Right)?;
        // Edge-triggered: setting the timer again clears the event, so the timer is never read.
        bridge.watch(
            bridge.timer.as_fd(),
            EpollFlags::EPOLLIN | EpollFlags::EPOLLET,
            Token::Timer,
        )?;
        bridge.watch(bridge.stop.as_fd(), EpollFlags::EPOLLIN, Token::Stop)?;
        bridge.watch(bridge.links.descriptor(), EpollFlags::EPOLLIN, Token::Links)?;
        Ok(bridge)
    }

    /// Handles SIGINT, SIGTERM and SIGHUP of this thread. From now on they make [`Bridge::run`] return. Call
    /// this before other threads are started, because they would otherwise receive the signals.
    pub fn watch_signals(&mut self) -> Result<(), LiveError> {
        let system = || LiveError::system("watching for signals");
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().map_err(system())?;
        let signals =
            SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(system())?;
        self.watch(signals.as_fd(), EpollFlags::EPOLLIN, Token::Signal)?;
        self.signals = Some(signals);
        Ok(())
    }

    /// Serves the status, and changes of the trees, at a unix socket
    /// ([`protocol`](crate::status::protocol)). Changes may name the disciplines of `registry`. The socket is
    /// removed with the bridge.
    ///
    /// The trees may hold reservations from now on. So change them with the returned [`Reserver`] only.
    /// `audit` is told of each change that a client asks for, there or by [`Bridge::inside`].
    ///
    /// # Errors
    /// Fails if another process listens there, or if the socket can't be created.
    pub fn serve(
        &mut self,
        path: &Path,
        registry: &Registry,
        audit: Audit,
        owner: Owner,
    ) -> Result<Reserver, LiveError> {
        let longest = u32::try_from(longest_frame(self.mtu())).unwrap_or(u32::MAX);
        let reserver = Reserver::new(self.changer(), registry.clone(), longest);
        let control = Control {
            reserver: reserver.clone(),
            audit,
            owner,
        };
        let translations = self.nat.as_ref().map(Tracking::translations);
        let (server, mut taps) = Server::bind(path, control, &self.plan, translations)?;
        self.watch(server.wanted(), EpollFlags::EPOLLIN, Token::Status)?;
        self.server = Some(server);
        let own = taps.remove(0);
        (self.delays, self.packets) = (Some(own.delays), Some(own.packets));
        if let Some(crew) = &mut self.crew {
            crew.give(taps);
        }
        Ok(reserver)
    }

    /// Returns a handle by which other threads of this process ask what clients ask at the socket. There is
    /// none before [`Bridge::serve`].
    pub fn inside(&self) -> Option<Inside> {
        self.server.as_ref().map(Server::inside)
    }

    /// Gives the calling thread, which then has to call [`Bridge::run`], a higher priority than all ordinary
    /// threads, unless the plan disables this. Otherwise the thread would wait for tens of milliseconds on a
    /// busy machine. That is longer than a shaper's bucket can compensate, and delays all packets.
    ///
    /// # Errors
    /// Fails if the kernel refuses. Forwarding works without the priority, but less punctually.
    pub fn prioritise(&mut self) -> Result<(), LiveError> {
        if self.plan.realtime {
            set_realtime().map_err(LiveError::system("asking for real-time scheduling"))?;
            if let Some(crew) = &mut self.crew {
                crew.prioritise()?;
            }
            self.realtime = true;
        }
        Ok(())
    }

    /// Sets the function to be called with each notice while frames are forwarded. It is called on the
    /// forwarding thread and must not block.
    pub fn on_notice(&mut self, notify: impl FnMut(Notice) + Send + 'static) {
        self.notify = Box::new(notify);
    }

    /// Returns the back ends of the left and the right end, and why they were chosen.
    pub fn backends(&self) -> [Choice; 2] {
        [0, 1].map(|side: usize| self.ports[side].choice().clone())
    }

    /// Returns a handle that stops this bridge from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
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
        if let Some(crew) = &mut self.crew {
            crew.start(&stopper)?;
        }
        if let Some(switch) = &self.switch {
            switch.turn_on();
        }
        if let Some(crew) = &mut self.crew {
            crew.take_over();
        }
        for port in &mut self.ports {
            port.start()?;
        }
        // An interface may have changed since, or may have no carrier from the start.
        self.check_links().map(drop)
    }

    /// Forwards frames until a signal or a [`Stopper`] ends it. It may be called again.
    ///
    /// If an interface goes down or loses its carrier, packets to it wait in their queue until it is back. If
    /// it is removed, the run looks for a new one of its name in the network namespace of this thread.
    ///
    /// # Errors
    /// Fails if the kernel refuses for another reason.
    pub fn run(&mut self) -> Result<Wake, LiveError> {
        // By default the kernel rounds this thread's timers up by 50 us.
        prctl::set_timerslack(1).map_err(LiveError::system("asking for exact timers"))?;
        self.take_over()?;
        let spin = self.plan.spin.as_nanos() as u64;
        self.pace.begin(clock::now());
        loop {
            let arrived = clock::now();
            self.attempt(arrived)?;
            self.look_at_estimators(arrived);
            for direction in &mut self.directions {
                direction.exchange(arrived);
            }
            let mut busy = self.receive(0, arrived)?;
            busy |= self.receive(1, arrived)?;
            // After receiving: a frame that is given later wakes this thread.
            self.look_at_bypass(arrived);

            let now = clock::now();
            let mut wake = self.next_attempt.into_iter().chain(self.next_sample()).min();
            let ahead = self.pace.ahead();
            for from in 0..2 {
                let next = match self.send(from, now, ahead)? {
                    Turn::Done => self.directions[from].next_departure(),
                    Turn::More => Some(now),
                    Turn::Waiting => None,
                    Turn::Blocked => Some(now + RETRY),
                };
                wake = [wake, next].into_iter().flatten().min();
            }
            busy |= wake.is_some_and(|wake| wake.nanos_since(now) <= spin);
            self.log_packets(now);
            if self.reading.is_some() {
                busy |= self.read_on();
            }
            let is_paced = self.directions.iter().any(Direction::is_paced);
            let reason = match self.pace.next(now, busy, is_paced) {
                Next::Work => self.poll(EpollTimeout::ZERO)?,
                Next::Wait => self.wait(now, wake)?,
                Next::Rest(until) => self.rest(now, until)?,
            };
            if let Some(reason) = reason {
                return Ok(reason);
            }
        }
    }

    /// Receives the frames that have arrived at a port. Returns true if there may be more.
    fn receive(&mut self, from: usize, now: Time) -> Result<bool, LiveError> {
        for _ in 0..RECEIVE_TURN {
            let exchange = match self.ports[from].front() {
                Ok(Some(received)) => {
                    let direction = &mut self.directions[from];
                    // A frame may have come after this turn began. It must not leave early by as much.
                    let arrived = match direction.keeps_times() {
                        true => clock::now(),
                        false => now,
                    };
                    match direction.accept(&received, arrived) {
                        Ok(exchange) => exchange,
                        // Try again if there is room now.
                        Err(TooLong) if self.follow_mtu(now)? => continue,
                        Err(TooLong) => {
                            self.directions[from].counters.too_long += 1;
                            None
                        }
                    }
                }
                Ok(None) => return Ok(false),
                Err(errno) => return self.failed(from, errno).map(|()| false),
            };
            self.ports[from].release(exchange);
        }
        Ok(true)
    }

    /// Checks whether an MTU was raised, which the kernel may not have reported yet. Returns true if so.
    #[cold]
    fn follow_mtu(&mut self, now: Time) -> Result<bool, LiveError> {
        // Frames longer than the MTU must not cost a system call each.
        if now < self.next_mtu_check {
            return Ok(false);
        }
        self.next_mtu_check = now + BETWEEN_MTU_CHECKS;
        self.check_links()
    }

    /// Returns the larger of the two MTUs.
    fn mtu(&self) -> usize {
        self.ports[0].interface.mtu.max(self.ports[1].interface.mtu)
    }

    fn send(&mut self, from: usize, now: Time, ahead: u64) -> Result<Turn, LiveError> {
        let to = 1 - from;
        if !self.ports[to].can_send() {
            // The packets stay in their tree, which limits them. `check_links` ends this.
            return Ok(Turn::Waiting);
        }
        match self.directions[from].send(now, ahead, &mut self.ports[to]) {
            Ok(turn) => Ok(turn),
            Err(errno) => self.failed(to, errno).map(|()| Turn::Blocked),
        }
    }

    /// Sleeps until an event, but not past `wake`.
    fn wait(&mut self, since: Time, wake: Option<Time>) -> Result<Option<Wake>, LiveError> {
        // A timer that is set too early costs one turn without work. That is cheaper than a system call to
        // clear it.
        if let Some(wake) = wake
            && self.armed != Some(wake)
        {
            self.set_timer(wake)?;
            self.armed = Some(wake);
        }
        let armed = self.armed;
        let reason = self.poll(self.longest_sleep())?;
        // If the timer ended the sleep, handling its event has reset `armed`.
        let due = armed.filter(|_| self.armed.is_none());
        self.pace.woke(since, clock::now(), due);
        Ok(reason)
    }

    /// Sleeps until `until` and then handles events.
    fn rest(&mut self, since: Time, until: Time) -> Result<Option<Wake>, LiveError> {
        // A signal may end the sleep early. That is harmless: its event is handled next.
        let _ = clock_nanosleep(
            ClockId::CLOCK_MONOTONIC,
            ClockNanosleepFlags::TIMER_ABSTIME,
            &time_spec(until),
        );
        self.pace.woke(since, clock::now(), Some(until));
        self.poll(EpollTimeout::ZERO)
    }

    /// Handles the pending events, or waits for events until `timeout`.
    fn poll(&mut self, timeout: EpollTimeout) -> Result<Option<Wake>, LiveError> {
        let mut events = [EpollEvent::empty(); 8];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(LiveError::system("waiting for events")(errno)),
        };
        let mut reason = None;
        for event in &events[..count] {
            reason = reason.or(self.handle(event)?);
        }
        Ok(reason)
    }

    fn handle(&mut self, event: &EpollEvent) -> Result<Option<Wake>, LiveError> {
        let token = event.data();
        let failed = event
            .events()
            .intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
        if token <= Token::Right as u64 && failed {
            let port = token as usize;
            let errno = self.ports[port].take_error().unwrap_or(Errno::ENETDOWN);
            self.failed(port, errno)?;
        } else if token == Token::Links as u64 {
            self.links.discard();
            self.check_links()?;
        } else if token == Token::Signal as u64 {
            return self.read_signal();
        } else if token == Token::Stop as u64 {
            self.stop.read().map_err(LiveError::system("stopping"))?;
            return Ok(Some(Wake::Stop));
        } else if token == Token::Status as u64 {
            if self.server.as_ref().is_some_and(Server::is_wanted) {
                self.read_for_server();
            }
        } else if token == Token::News as u64 {
            // The next turn looks at it.
            if let Some(crew) = &self.crew {
                crew.hear();
            }
        } else if token == Token::Change as u64 {
            self.take_orders();
        } else if token == Token::Timer as u64 {
            self.armed = None;
        }
        Ok(None)
    }

    /// Sets the timer to `wake`, minus the time for which the thread may spin.
    fn set_timer(&self, wake: Time) -> Result<(), LiveError> {
        // Zero would disarm the timer.
        let nanos = wake
            .nanos()
            .saturating_sub(self.plan.spin.as_nanos() as u64)
            .max(1);
        let at = time_spec(Time::from_nanos(nanos));
        self.timer
            .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .map_err(LiveError::system("setting the timer"))
    }

    fn read_signal(&self) -> Result<Option<Wake>, LiveError> {
        let signals = self
            .signals
            .as_ref()
            .expect("only the signal descriptor has this token");
        let signal = signals
            .read_signal()
            .map_err(LiveError::system("reading a signal"))?;
        Ok(signal.map(|signal| {
            if signal.ssi_signo == Signal::SIGHUP as u32 {
                Wake::Reload
            } else {
                Wake::Stop
            }
        }))
    }

    /// Looks whether anybody wants the sojourn times and the packets of this turn.
    #[inline]
    fn log_packets(&mut self, now: Time) {
        if let Some(packets) = &mut self.packets {
            packets.look_at(&mut self.directions, now);
        }
        if let Some(delays) = &mut self.delays {
            for (from, direction) in self.directions.iter_mut().enumerate() {
                delays.look_at(from, &mut direction.link);
            }
        }
    }

    fn watch(&self, descriptor: impl AsFd, flags: EpollFlags, token: Token) -> Result<(), LiveError> {
        self.epoll
            .add(descriptor, EpollEvent::new(flags, token as u64))
            .map_err(LiveError::system("preparing the event loop"))
    }
}

/// Returns what AF_XDP sockets of the port at `side` use of the frame stores. It must have none at the
/// moment.
fn lease(directions: &mut [Direction; 2], side: usize) -> Option<Lease> {
    let [to_right, to_left] = directions;
    let (received, sent) = match side {
        0 => (to_right, to_left),
        _ => (to_left, to_right),
    };
    Lease::of(received.frames(), sent.frames())
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

fn time_spec(time: Time) -> TimeSpec {
    let nanos = time.nanos();
    TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64)
}

mod links;
mod reading;
#[cfg(test)]
mod tests;

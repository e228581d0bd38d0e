//! The bump in the wire: two ports, a direction each way, one thread.
//!
//! A turn: take what has arrived, send what may leave, sleep until a frame arrives or the earliest departure. The
//! sleep is an `epoll_wait` with a timer set to the nanosecond; late wake-ups (virtual machines: milliseconds) don't
//! change the rate, because shapers count tokens by the clock and not wake-ups. [`Pace`] makes it longer when there
//! are many.
//!
//! The same sleep watches for signals and for clients that ask for the status; neither is looked at more than once a
//! turn.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use fairgate::{FlowHasher, Time};
use fairgate_config::{Problem, Spec};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thiserror::Error;

use crate::attach::Attachment;
use crate::clock;
use crate::config::Plan;
use crate::direction::{Direction, TooLong, Turn};
use crate::error::{LiveError, ReloadError};
use crate::fitness;
use crate::pace::{AHEAD, Next, Pace};
use crate::port::{Port, longest_frame, longest_frame_at};
use crate::status::{DirectionStatus, ProcessorStatus, Server, Status};
use crate::sys::priority::{realtime_share, set_realtime};

/// Most frames received from a port in one turn: what arrives meanwhile on the other side waits for so long.
const RECEIVE_TURN: usize = 64;

/// How long to wait for room in a full socket. Half of its buffer leaves in 0.2 ms at 10 Gb/s.
const RETRY: u64 = 50_000;
/// Shortest time between two looks at the MTUs, ns.
const BETWEEN_MTU_LOOKS: u64 = 100_000_000;

/// By which filters know the left port and the right one.
const INTERFACES: [u16; 2] = [1, 2];

/// Why [`Bridge::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// SIGINT, SIGTERM or a [`Stopper`].
    Stop,
    /// SIGHUP: the configuration should be read again.
    Reload,
}

/// What happened while frames were forwarded that people may want to know.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum Notice {
    /// Longer frames are forwarded from now on.
    #[error("the MTU of `{interface}` is {mtu} now: frames of that length pass")]
    MtuRaised {
        /// Whose.
        interface: String,
        /// The new one, bytes.
        mtu: usize,
    },
    /// Frames of the new length don't fit a tree: it drops them all.
    #[error("warning: {0}; {help}", help = .0.help)]
    TooSmall(Problem),
}

/// What the events of the epoll are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Token {
    Left,
    Right,
    Timer,
    Signal,
    Stop,
    Listener,
    Client,
}

/// Stops a running bridge from another thread.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<EventFd>);

impl Stopper {
    /// Makes [`Bridge::run`] return [`Wake::Stop`].
    pub fn stop(&self) {
        self.0.write(1).expect("a counter of 64 bits has room for a 1");
    }
}

/// Two interfaces and what lies between them.
pub struct Bridge {
    ports: [Port; 2],
    /// From left to right, from right to left.
    directions: [Direction; 2],
    epoll: Epoll,
    timer: TimerFd,
    /// What the timer is set to.
    armed: Option<Time>,
    signals: Option<SignalFd>,
    stop: Arc<EventFd>,
    server: Option<Server>,
    /// What is running.
    plan: Plan,
    pace: Pace,
    /// Whether this thread is a real-time one.
    realtime: bool,
    /// Not before then are MTUs looked at again.
    next_mtu_look: Time,
    notify: Box<dyn FnMut(Notice) + Send>,
    started: Time,
    /// Dropped after the ports: the kernel gets the interfaces back when nothing is received any more.
    attachments: [Attachment; 2],
}

impl Bridge {
    /// Opens both ends and builds the trees. Frames are received from now on, and forwarded by [`Bridge::run`].
    ///
    /// The key of the flows' hash and what the trees leave to chance come from `seed`, to repeat a test; without one from the
    /// system, for an outsider who knows the key can aim collisions.
    ///
    /// # Errors
    /// If an interface is missing, down or unfit, or privileges are.
    pub fn open(plan: &Plan, seed: Option<u64>) -> Result<Bridge, LiveError> {
        let (left, left_tap) = Port::find(&plan.ends[0])?;
        let (right, right_tap) = Port::find(&plan.ends[1])?;
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
        fitness::check(&plan.queues, left.mtu)?;
        let attachments = [
            Attachment::take(&left, left_tap.is_some(), plan)?,
            Attachment::take(&right, right_tap.is_some(), plan)?,
        ];
        let longest = longest_frame(&left);
        let mut chance = match seed {
            Some(seed) => Xoshiro256PlusPlus::seed_from_u64(seed),
            None => Xoshiro256PlusPlus::from_seed(rand::random()),
        };
        let hasher = FlowHasher::new([chance.next_u64(), chance.next_u64()]);
        let mut direction = |side: usize| -> Result<Direction, LiveError> {
            let tree = plan.queues[side].build(chance.next_u64())?;
            let delay = plan.delay.as_nanos() as u64;
            // Who asks for exact departures gets them.
            let ahead = if plan.spin.is_zero() { AHEAD } else { 0 };
            Ok(Direction::new(
                INTERFACES[side],
                tree,
                hasher,
                plan.frames,
                longest,
                delay,
                ahead,
            ))
        };
        let directions = [direction(0)?, direction(1)?];
        let ports = [
            Port::open(left, left_tap, &attachments[0])?,
            Port::open(right, right_tap, &attachments[1])?,
        ];

        let system = || LiveError::system("preparing the event loop");
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system())?;
        let timer = TimerFd::new(
            timerfd::ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )
        .map_err(system())?;
        let stop = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(system())?;
        let bridge = Bridge {
            ports,
            directions,
            epoll,
            timer,
            armed: None,
            signals: None,
            stop: Arc::new(stop),
            server: None,
            plan: plan.clone(),
            pace: Pace::new(clock::now(), realtime_share(), plan.spin.is_zero()),
            realtime: false,
            next_mtu_look: Time::ZERO,
            notify: Box::new(drop),
            started: clock::now(),
            attachments,
        };
        bridge.watch(bridge.ports[0].receiver(), EpollFlags::EPOLLIN, Token::Left)?;
        bridge.watch(bridge.ports[1].receiver(), EpollFlags::EPOLLIN, Token::Right)?;
        // Edge-triggered: setting the timer again clears it, so that it is never read.
        bridge.watch(
            bridge.timer.as_fd(),
            EpollFlags::EPOLLIN | EpollFlags::EPOLLET,
            Token::Timer,
        )?;
        bridge.watch(bridge.stop.as_fd(), EpollFlags::EPOLLIN, Token::Stop)?;
        Ok(bridge)
    }

    /// Takes SIGINT, SIGTERM and SIGHUP of this thread over: from now on they end [`Bridge::run`]. To be called before
    /// other threads are started, which would otherwise receive them.
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

    /// Answers at a socket with the status, in JSON, whoever connects. The socket is removed with the bridge.
    ///
    /// # Errors
    /// If another process answers there, or the socket can't be made.
    pub fn serve_status(&mut self, path: &Path) -> Result<(), LiveError> {
        let server = Server::bind(path)?;
        self.watch(server.listener(), EpollFlags::EPOLLIN, Token::Listener)?;
        self.server = Some(server);
        Ok(())
    }

    /// Puts the calling thread, which is to call [`Bridge::run`], before all ordinary ones of this machine, unless the
    /// plan says otherwise. On a busy machine it would else wait for tens of milliseconds, longer than a shaper's
    /// bucket makes up for, and every packet would wait with it.
    ///
    /// # Errors
    /// If the kernel refuses. Forwarding works without, less punctually.
    pub fn prioritise(&mut self) -> Result<(), LiveError> {
        if self.plan.realtime {
            set_realtime().map_err(LiveError::system("asking for real-time scheduling"))?;
            self.realtime = true;
        }
        Ok(())
    }

    /// Has `notify` told what happens while frames are forwarded. It is called on the forwarding thread and must not
    /// wait for anything.
    pub fn on_notice(&mut self, notify: impl FnMut(Notice) + Send + 'static) {
        self.notify = Box::new(notify);
    }

    /// What stops this bridge from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Forwards frames until a signal or a [`Stopper`] ends it. May be called again.
    ///
    /// # Errors
    /// If an interface goes down or away.
    pub fn run(&mut self) -> Result<Wake, LiveError> {
        // The kernel rounds this thread's timers up by 50 us unless told otherwise.
        prctl::set_timerslack(1).map_err(LiveError::system("asking for exact timers"))?;
        let spin = self.plan.spin.as_nanos() as u64;
        loop {
            let arrived = clock::now();
            let mut busy = self.receive(0, arrived)?;
            busy |= self.receive(1, arrived)?;

            let now = clock::now();
            let mut wake: Option<Time> = None;
            for from in 0..2 {
                let next = match self.send(from, now)? {
                    Turn::Done => self.directions[from].next_departure(),
                    Turn::More => Some(now),
                    Turn::Blocked => Some(now + RETRY),
                };
                wake = [wake, next].into_iter().flatten().min();
            }
            busy |= wake.is_some_and(|wake| wake.nanos_since(now) <= spin);
            let reason = match self.pace.next(now, busy) {
                Next::Work => self.look(EpollTimeout::ZERO)?,
                Next::Wait => self.wait(now, wake)?,
                Next::Rest(until) => self.rest(now, until)?,
            };
            if let Some(reason) = reason {
                return Ok(reason);
            }
        }
    }

    /// Takes in what has arrived at a port. True if there may be more.
    fn receive(&mut self, from: usize, now: Time) -> Result<bool, LiveError> {
        for _ in 0..RECEIVE_TURN {
            match self.ports[from].front() {
                Ok(Some(received)) => {
                    if let Err(TooLong) = self.directions[from].accept(&received, now) {
                        if self.follow_mtu(now) {
                            // Once more, with room.
                            continue;
                        }
                        self.directions[from].books.too_long += 1;
                    }
                }
                Ok(None) => return Ok(false),
                Err(errno) => return Err(self.lost(from, errno)),
            }
            self.ports[from].release();
        }
        Ok(true)
    }

    /// Looks whether someone has raised an MTU, and makes room for frames of that length. True if so.
    #[cold]
    fn follow_mtu(&mut self, now: Time) -> bool {
        // Long frames that nobody allowed must not cost a system call each.
        if now < self.next_mtu_look {
            return false;
        }
        self.next_mtu_look = now + BETWEEN_MTU_LOOKS;
        let mut has_grown = false;
        for port in &mut self.ports {
            if port.has_grown() {
                has_grown = true;
                let (interface, mtu) = (port.interface.name.clone(), port.interface.mtu);
                (self.notify)(Notice::MtuRaised { interface, mtu });
            }
        }
        if has_grown {
            let longest = longest_frame_at(self.mtu());
            for direction in &mut self.directions {
                direction.grow(longest);
            }
            if let Err(error) = fitness::check(&self.plan.queues, self.mtu()) {
                for problem in error.problems() {
                    (self.notify)(Notice::TooSmall(problem.clone()));
                }
            }
        }
        has_grown
    }

    /// The larger of the two MTUs.
    fn mtu(&self) -> usize {
        self.ports[0].interface.mtu.max(self.ports[1].interface.mtu)
    }

    /// Places of the trees where full frames pass, and those that carry a VLAN tag do not.
    pub fn doubts(&self) -> Vec<Problem> {
        fitness::doubts(&self.plan.queues, self.mtu())
    }

    fn send(&mut self, from: usize, now: Time) -> Result<Turn, LiveError> {
        let to = 1 - from;
        self.directions[from]
            .send(now, &mut self.ports[to])
            .map_err(|errno| self.lost(to, errno))
    }

    /// Sleeps until something happens, but not past `wake`.
    fn wait(&mut self, since: Time, wake: Option<Time>) -> Result<Option<Wake>, LiveError> {
        // One that is set too early costs a turn without work, and is not worth a system call to clear.
        if let Some(wake) = wake
            && self.armed != Some(wake)
        {
            self.set_timer(wake)?;
            self.armed = Some(wake);
        }
        let armed = self.armed;
        let reason = self.look(EpollTimeout::NONE)?;
        // The timer's event has cleared it, if it was the timer.
        let due = armed.filter(|_| self.armed.is_none());
        self.pace.woke(since, clock::now(), due);
        Ok(reason)
    }

    /// Sleeps until `until`, then looks what has happened.
    fn rest(&mut self, since: Time, until: Time) -> Result<Option<Wake>, LiveError> {
        // A signal ends the sleep early, which does no harm: it is looked at next.
        let _ = clock_nanosleep(
            ClockId::CLOCK_MONOTONIC,
            ClockNanosleepFlags::TIMER_ABSTIME,
            &time_spec(until),
        );
        self.pace.woke(since, clock::now(), Some(until));
        self.look(EpollTimeout::ZERO)
    }

    /// Handles the events that are there, or the first that come before `timeout`.
    fn look(&mut self, timeout: EpollTimeout) -> Result<Option<Wake>, LiveError> {
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
            return Err(self.lost(port, errno));
        } else if token == Token::Signal as u64 {
            return self.read_signal();
        } else if token == Token::Stop as u64 {
            self.stop.read().map_err(LiveError::system("stopping"))?;
            return Ok(Some(Wake::Stop));
        } else if token == Token::Listener as u64 || token == Token::Client as u64 {
            self.answer(token == Token::Listener as u64)?;
        } else if token == Token::Timer as u64 {
            self.armed = None;
        }
        Ok(None)
    }

    /// Sets the timer so that the thread is awake at `wake`, early by the time it may spin.
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
            .expect("a signal's token comes from its descriptor");
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

    /// Lets clients of the status in, and goes on writing to those that are slow.
    fn answer(&mut self, arrived: bool) -> Result<(), LiveError> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        if arrived {
            let answer = serde_json::to_vec(&self.status()).expect("a status is a tree of plain values");
            if let Some(slow) = server.accept(answer) {
                self.watch(slow, EpollFlags::EPOLLOUT, Token::Client)?;
            }
        } else {
            server.write_on();
        }
        self.server = Some(server);
        Ok(())
    }

    /// What has happened since the start.
    pub fn status(&mut self) -> Status {
        let now = clock::now();
        let names = [0, 1].map(|side: usize| self.ports[side].interface.name.clone());
        let missed = [0, 1].map(|side: usize| self.ports[side].missed());
        let directions = [0, 1].map(|from: usize| {
            let direction = &mut self.directions[from];
            let queue = &self.plan.queues[from];
            DirectionStatus::of(
                direction,
                now,
                queue,
                &names[from],
                &names[1 - from],
                missed[from],
            )
        });
        Status {
            name: self.plan.name.clone(),
            pid: std::process::id(),
            uptime_s: now.nanos_since(self.started) as f64 * 1e-9,
            isolated: self.attachments.iter().all(Attachment::is_isolated),
            processor: ProcessorStatus::of(&self.pace.punctuality, self.realtime),
            directions: directions.into(),
        }
    }

    /// Changes the parameters of both trees to those of `plan`, in place: packets stay queued.
    ///
    /// # Errors
    /// If the plan differs in more than that. Everything then runs on as it was.
    pub fn reload(&mut self, plan: Plan) -> Result<(), ReloadError> {
        if let Some(key) = self.plan.fixed_difference(&plan) {
            return Err(ReloadError::Fixed { key });
        }
        fitness::check(&plan.queues, self.mtu())?;
        self.apply(0, &plan.queues[0])?;
        if let Err(error) = self.apply(1, &plan.queues[1]) {
            let before = self.plan.queues[0].clone();
            self.apply(0, &before)
                .expect("a tree takes back the parameters that it had");
            return Err(error);
        }
        self.plan = plan;
        Ok(())
    }

    fn apply(&mut self, from: usize, queue: &Spec) -> Result<(), ReloadError> {
        let direction = &mut self.directions[from];
        let now = direction.tree_time(clock::now());
        let result = direction
            .link
            .change(|tree, pool| queue.apply_to(tree, now, pool));
        direction.free_dropped();
        result.map_err(|source| ReloadError::Tree {
            from: self.ports[from].interface.name.clone(),
            source: Box::new(source),
        })
    }

    fn watch(&self, descriptor: impl AsFd, flags: EpollFlags, token: Token) -> Result<(), LiveError> {
        self.epoll
            .add(descriptor, EpollEvent::new(flags, token as u64))
            .map_err(LiveError::system("preparing the event loop"))
    }

    fn lost(&self, port: usize, errno: Errno) -> LiveError {
        let ends = [&*self.ports[0].interface.name, &*self.ports[1].interface.name];
        self.ports[port].describe(errno, ends)
    }
}

fn time_spec(time: Time) -> TimeSpec {
    let nanos = time.nanos();
    TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64)
}

#[cfg(test)]
mod tests;

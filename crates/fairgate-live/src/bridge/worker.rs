//! A forwarding thread: two ports, one direction each way.
//!
//! A turn of its loop receives frames, sends the frames that are due, and sleeps until a frame arrives or the
//! earliest departure is due. The sleep is an `epoll_wait` with a timer of nanosecond resolution. Late
//! wake-ups (milliseconds in virtual machines) don't change the rate, because shapers count tokens by the
//! clock and not by wake-ups. If there are many wake-ups, [`Pace`] makes the sleep longer.
//!
//! All workers of a run are equal. What concerns the run as a whole, a turn tells the
//! [`Bridge`](super::Bridge) that leads them: [`Happened`].

mod bypass;
mod estimators;
mod links;
mod orders;
mod reading;

use std::os::fd::AsFd;
use std::sync::Arc;

use fairgate::Time;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::prctl;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{self, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};

use super::Stopper;
use super::changes::Orders;
use super::observer::Taps;
use crate::attach::Switch;
use crate::backend::xdp::Lease;
use crate::bypass::Bypass;
use crate::clock;
use crate::config::Plan;
use crate::direction::{Direction, TooLong, Turn};
use crate::error::LiveError;
use crate::links::LinkChanges;
use crate::notice::Notice;
use crate::pace::{NextStep, Pace};
use crate::port::Port;
use crate::status::Estimators;
use crate::sys::priority::realtime_share;
use reading::Reading;

/// The maximum number of frames received from a port in one turn. The other port has to wait for that long.
const RECEIVE_TURN: usize = 64;

/// How long to wait for room in a full socket, ns. At 10 Gb/s, half of its buffer is sent in 0.2 ms.
pub(super) const RETRY: u64 = 50_000;

/// The minimum time between two checks of the MTUs, ns.
const BETWEEN_MTU_CHECKS: u64 = 100_000_000;

/// The sources of epoll events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Token {
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
pub(super) const PORTS: [Token; 2] = [Token::Left, Token::Right];

/// What has happened in a turn that concerns the run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Happened {
    /// The worker is to stop.
    pub(super) stop: bool,
    /// A signal has come.
    pub(super) signal: bool,
    /// Somebody wants a reading of the run.
    pub(super) status: bool,
    /// A worker has read its state for the run.
    pub(super) news: bool,
    /// The trees have changed: what was read of them may not fit any more.
    pub(super) change: bool,
}

/// A forwarding thread.
pub(super) struct Worker {
    /// Dropped first, so that the kernel has its frames back at once.
    pub(super) switch: Option<Switch>,
    /// What has passed by this run.
    pub(super) bypass: Bypass,
    /// Its number.
    pub(super) number: usize,
    pub(super) ports: [Port; 2],
    /// The directions from left to right and from right to left.
    pub(super) directions: [Direction; 2],
    /// The rates of disciplines and classes in both trees.
    pub(super) estimators: [Estimators; 2],
    pub(super) epoll: Epoll,
    timer: TimerFd,
    /// The time that the timer is set to.
    armed: Option<Time>,
    pub(super) stop: Arc<EventFd>,
    /// The logs of packets and of their sojourn times, once the run can be asked.
    pub(super) logs: Option<Taps>,
    /// What other threads have ordered.
    pub(super) orders: Orders,
    /// The state that is being read.
    pub(super) reading: Option<Reading>,
    /// Tells the run that this worker has read its state.
    pub(super) news: Arc<EventFd>,
    /// The configuration that is running.
    pub(super) plan: Arc<Plan>,
    pub(super) pace: Pace,
    /// How long the last part of a wait may be busy, ns.
    spin: u64,
    /// Whether this thread has real-time priority.
    pub(super) realtime: bool,
    /// The earliest time at which the MTUs are checked again.
    next_mtu_check: Time,
    pub(super) links: LinkChanges,
    /// When a removed interface is looked for again, if one is missing.
    pub(super) next_attempt: Option<Time>,
    pub(super) notify: Box<dyn FnMut(Notice) + Send>,
    pub(super) started: Time,
    /// What has happened in this turn.
    pub(super) happened: Happened,
}

impl Worker {
    /// Makes a worker of its parts. It has no switch yet. `news` tells the run that it has read its state.
    pub(super) fn assemble(
        plan: Arc<Plan>,
        number: usize,
        links: LinkChanges,
        ports: [Port; 2],
        directions: [Direction; 2],
        orders: Orders,
        news: Arc<EventFd>,
    ) -> Result<Worker, LiveError> {
        let system = || LiveError::system("preparing the event loop");
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system())?;
        let timer = TimerFd::new(
            timerfd::ClockId::CLOCK_MONOTONIC,
            TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC,
        )
        .map_err(system())?;
        let stop = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(system())?;
        let worker = Worker {
            switch: None,
            bypass: Bypass::default(),
            number,
            ports,
            directions,
            estimators: [0, 1].map(|side| Estimators::of(plan.tree_of(side, number))),
            epoll,
            timer,
            armed: None,
            stop: Arc::new(stop),
            logs: None,
            orders,
            reading: None,
            news,
            spin: plan.spin.as_nanos() as u64,
            pace: Pace::new(clock::now(), realtime_share(), plan.spin.is_zero()),
            realtime: false,
            next_mtu_check: Time::ZERO,
            links,
            next_attempt: None,
            notify: Box::new(drop),
            started: clock::now(),
            happened: Happened::default(),
            plan,
        };
        worker.watch(worker.orders.wanted.as_fd(), EpollFlags::EPOLLIN, Token::Change)?;
        worker.watch(worker.ports[0].receiver(), EpollFlags::EPOLLIN, Token::Left)?;
        worker.watch(worker.ports[1].receiver(), EpollFlags::EPOLLIN, Token::Right)?;
        // Edge-triggered: setting the timer again clears the event, so the timer is never read.
        worker.watch(
            worker.timer.as_fd(),
            EpollFlags::EPOLLIN | EpollFlags::EPOLLET,
            Token::Timer,
        )?;
        worker.watch(worker.stop.as_fd(), EpollFlags::EPOLLIN, Token::Stop)?;
        worker.watch(worker.links.descriptor(), EpollFlags::EPOLLIN, Token::Links)?;
        Ok(worker)
    }

    /// Returns a handle that stops it from another thread.
    pub(super) fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Takes the frames of this worker from the kernel.
    pub(super) fn take_over(&mut self) -> Result<(), LiveError> {
        for port in &mut self.ports {
            port.start()?;
        }
        // An interface may have changed since, or may have no carrier from the start.
        self.check_links().map(drop)
    }

    /// Prepares this thread to take turns.
    pub(super) fn begin(&mut self) -> Result<(), LiveError> {
        // By default the kernel rounds this thread's timers up by 50 us.
        prctl::set_timerslack(1).map_err(LiveError::system("asking for exact timers"))?;
        self.pace.begin(clock::now());
        Ok(())
    }

    /// Receives and sends once, and sleeps until there is something to do. Returns what concerns the run.
    ///
    /// # Errors
    /// Fails if the kernel refuses what no change of an interface explains.
    pub(super) fn turn(&mut self) -> Result<Happened, LiveError> {
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
        busy |= wake.is_some_and(|wake| wake.nanos_since(now) <= self.spin);
        self.log_packets(now);
        if self.reading.is_some() {
            busy |= self.read_on();
        }
        let is_paced = self.directions.iter().any(Direction::is_paced);
        match self.pace.next(now, busy, is_paced) {
            NextStep::Work => self.poll(EpollTimeout::ZERO)?,
            NextStep::Wait => self.wait(now, wake)?,
            NextStep::Rest(until) => self.rest(now, until)?,
        }
        Ok(std::mem::take(&mut self.happened))
    }

    /// Receives the frames that have arrived at a port. Returns true if there may be more.
    pub(super) fn receive(&mut self, from: usize, now: Time) -> Result<bool, LiveError> {
        // At most `RECEIVE_TURN` classes get their first packets until the next time.
        self.directions[from].link.refill();
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
    pub(super) fn mtu(&self) -> usize {
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
    fn wait(&mut self, since: Time, wake: Option<Time>) -> Result<(), LiveError> {
        // A timer that is set too early costs one turn without work. That is cheaper than a system call to
        // clear it.
        if let Some(wake) = wake
            && self.armed != Some(wake)
        {
            self.set_timer(wake)?;
            self.armed = Some(wake);
        }
        let armed = self.armed;
        self.poll(self.longest_sleep())?;
        // If the timer ended the sleep, handling its event has reset `armed`.
        let due = armed.filter(|_| self.armed.is_none());
        self.pace.woke(since, clock::now(), due);
        Ok(())
    }

    /// Sleeps until `until` and then handles events.
    fn rest(&mut self, since: Time, until: Time) -> Result<(), LiveError> {
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
    fn poll(&mut self, timeout: EpollTimeout) -> Result<(), LiveError> {
        let mut events = [EpollEvent::empty(); 8];
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(LiveError::system("waiting for events")(errno)),
        };
        events[..count].iter().try_for_each(|event| self.handle(event))
    }

    fn handle(&mut self, event: &EpollEvent) -> Result<(), LiveError> {
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
            self.happened.signal = true;
        } else if token == Token::Stop as u64 {
            self.stop.read().map_err(LiveError::system("stopping"))?;
            self.happened.stop = true;
        } else if token == Token::Status as u64 {
            self.happened.status = true;
        } else if token == Token::News as u64 {
            let _ = self.news.read();
            self.happened.news = true;
        } else if token == Token::Change as u64 {
            self.take_orders()?;
        } else if token == Token::Timer as u64 {
            self.armed = None;
        }
        Ok(())
    }

    /// Sets the timer to `wake`, minus the time for which the thread may spin.
    fn set_timer(&self, wake: Time) -> Result<(), LiveError> {
        // Zero would disarm the timer.
        let nanos = wake.nanos().saturating_sub(self.spin).max(1);
        let at = time_spec(Time::from_nanos(nanos));
        self.timer
            .set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            .map_err(LiveError::system("setting the timer"))
    }

    /// Looks whether anybody wants the sojourn times and the packets of this turn.
    #[inline]
    fn log_packets(&mut self, now: Time) {
        if let Some(Taps { delays, packets }) = &mut self.logs {
            packets.look_at(&mut self.directions, now);
            for (from, direction) in self.directions.iter_mut().enumerate() {
                delays.look_at(from, &mut direction.link);
            }
        }
    }

    /// Has the events of a descriptor wake this thread.
    pub(super) fn watch(
        &self,
        descriptor: impl AsFd,
        flags: EpollFlags,
        token: Token,
    ) -> Result<(), LiveError> {
        self.epoll
            .add(descriptor, EpollEvent::new(flags, token as u64))
            .map_err(LiveError::system("preparing the event loop"))
    }
}

/// Returns what AF_XDP sockets of the port at `side` use of the frame stores. It must have none at the
/// moment.
pub(super) fn lease(directions: &mut [Direction; 2], side: usize) -> Option<Lease> {
    let [to_right, to_left] = directions;
    let (received, sent) = match side {
        0 => (to_right, to_left),
        _ => (to_left, to_right),
    };
    Lease::of(received.frames(), sent.frames())
}

fn time_spec(time: Time) -> TimeSpec {
    let nanos = time.nanos();
    TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64)
}

//! The thread that follows the line.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use fairgate::autorate::{Controller, Delays};
use fairgate::registry::Registry;
use fairgate::{Rate, Time};
use fairgate_config::FileError;
use fairgate_config::autorate::RootRate;
use fairgate_run_api::{AutorateDirection, AutorateStatus};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::file;
use super::probes::Probes;
use crate::clock;
use crate::config::{Autorate, Plan, RateSource, rate_names};
use crate::error::{LiveError, ReloadError};
use crate::notice::Notice;
use crate::plane::Changed;
use crate::pulse::{Heart, Pulse};
use crate::status::before_review;

/// How late a probe or a review may be before the missed ones are left out, ns.
const LATEST: u64 = 1_000_000_000;

/// Lets the rates of a run follow its line.
pub struct Follower {
    autorate: Autorate,
    names: [&'static str; 2],
    probes: Option<Probes>,
    stop: Arc<EventFd>,
}

/// Ends a [`Follower`] from another thread.
#[derive(Clone, Debug)]
pub struct AutorateStop(Arc<EventFd>);

impl AutorateStop {
    /// Makes [`Follower::run`] return.
    pub fn stop(&self) {
        self.0.write(1).expect("a counter of 64 bits has room for a 1");
    }
}

/// Prints the name of the type only.
impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").finish_non_exhaustive()
    }
}

impl Follower {
    /// Prepares what a plan says of autorate, and opens its sockets. `None` if the rates are fixed. Call it
    /// before privileges are given up.
    ///
    /// # Errors
    /// Fails if a tree can't have the least or the greatest rate, or if the kernel refuses a socket.
    pub fn open(plan: &Plan, registry: &Registry) -> Result<Option<Follower>, LiveError> {
        let Some(autorate) = &plan.autorate else {
            return Ok(None);
        };
        for (tree, bounds) in plan.queues.iter().zip(&autorate.bounds) {
            if let (Some(bounds), Ok(root)) = (bounds, RootRate::of(tree)) {
                for rate in [bounds.min, bounds.max] {
                    root.set(tree, rate, registry)?;
                }
            }
        }
        let probes = match &autorate.source {
            RateSource::Reflectors(reflectors) => Some(Probes::open(reflectors)?),
            RateSource::File(_) => None,
        };
        let stop = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(LiveError::system("preparing autorate"))?;
        Ok(Some(Follower {
            autorate: autorate.clone(),
            names: rate_names(plan.is_on_one_interface()),
            probes,
            stop: Arc::new(stop),
        }))
    }

    /// Returns a handle that ends [`run`](Follower::run).
    pub fn stopper(&self) -> AutorateStop {
        AutorateStop(Arc::clone(&self.stop))
    }

    /// Follows the line until it is stopped or the run ends. Call it on a thread of its own. `set_rate` gives
    /// the tree of a direction, 0 from the left, another rate ([`Plan::with_rate`]). `notify` is told what
    /// users may want to know: when something begins to be wrong and when it is right again.
    pub fn run(self, set_rate: &SetRate, pulse: &Pulse, notify: &dyn Fn(Notice)) {
        let mut following = Following::new(&self, set_rate, pulse, notify);
        let probe_interval = nanos(self.autorate.settings.probe_interval);
        let interval = nanos(self.autorate.settings.interval);
        let mut next_probe = self.probes.as_ref().map(|_| clock::now());
        let mut next_review = clock::now();
        loop {
            let now = clock::now();
            if let Some(probes) = &self.probes {
                following.hear(probes);
                if let Some(at) = next_probe.filter(|at| *at <= now) {
                    following.probe(probes);
                    next_probe = Some(following_turn(at, probe_interval, now));
                }
            }
            if next_review <= now {
                if !following.review() {
                    return;
                }
                next_review = following_turn(next_review, interval, now);
            }
            let next = next_probe.map_or(next_review, |probe| probe.min(next_review));
            if self.is_stopped_before(next) {
                return;
            }
        }
    }

    /// Waits until `next`, or until an answer comes. Returns true if the follower was stopped.
    fn is_stopped_before(&self, next: Time) -> bool {
        let mut watched = vec![PollFd::new(self.stop.as_fd(), PollFlags::POLLIN)];
        for socket in self.probes.iter().flat_map(Probes::sockets) {
            watched.push(PollFd::new(socket, PollFlags::POLLIN));
        }
        // Rounded up: a wait that ends too early would be a busy loop for the rest of the millisecond.
        let millis = next.nanos_since(clock::now()).div_ceil(1_000_000);
        let timeout = PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX);
        match poll(&mut watched, timeout) {
            Ok(_) => watched[0].any().unwrap_or(false),
            // A signal.
            Err(_) => false,
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns when something that was due at `at` is due again. What was missed is left out.
fn following_turn(at: Time, interval: u64, now: Time) -> Time {
    match now.nanos_since(at) > LATEST.max(interval) {
        true => now + interval,
        false => at + interval,
    }
}

/// The state of the thread.
struct Following<'f> {
    follower: &'f Follower,
    set_rate: &'f SetRate,
    heart: &'f dyn Heart,
    notify: &'f dyn Fn(Notice),
    delays: Delays,
    number: u64,
    sides: [Side; 2],
    status: AutorateStatus,
    /// The plan that ran at the last review.
    plan: Arc<Plan>,
    is_silent: bool,
    /// What is wrong with the file.
    wrong_file: Option<String>,
}

/// A direction.
struct Side {
    /// `None` if its rate is fixed.
    controller: Option<Controller>,
    /// What had left the tree at the last review, bytes.
    sent: u64,
    /// The rate that the file says.
    written: Option<Rate>,
    /// The rate that the tree has got.
    ordered: Option<Rate>,
    /// Why the last change was refused.
    refusal: Option<String>,
}

impl<'f> Following<'f> {
    fn new(
        follower: &'f Follower,
        set_rate: &'f SetRate,
        pulse: &'f Pulse,
        notify: &'f dyn Fn(Notice),
    ) -> Following<'f> {
        let now = clock::now();
        let autorate = &follower.autorate;
        let reflectors = match &autorate.source {
            RateSource::Reflectors(reflectors) => reflectors.len(),
            RateSource::File(_) => 0,
        };
        let heart = pulse.heart();
        Following {
            follower,
            set_rate,
            heart,
            notify,
            delays: Delays::new(&autorate.settings, reflectors, now),
            number: 0,
            sides: autorate.bounds.map(|bounds| Side {
                controller: bounds.map(|bounds| Controller::new(&autorate.settings, bounds, now)),
                sent: 0,
                written: None,
                ordered: None,
                refusal: None,
            }),
            status: before_review(&autorate.source),
            plan: heart.plan(),
            is_silent: false,
            wrong_file: None,
        }
    }

    /// Sends the next probe.
    fn probe(&mut self, probes: &Probes) {
        let reflector = (self.number % self.delays.reflectors() as u64) as usize;
        self.delays.sent(self.number, reflector, clock::now());
        probes.send(self.number, reflector);
        self.number += 1;
    }

    /// Takes the answers that have come.
    fn hear(&mut self, probes: &Probes) {
        while let Some(number) = probes.receive() {
            self.delays.answered(number, clock::now());
        }
    }

    /// Reviews the rates, and changes the trees whose rates differ. Returns false if the run has ended.
    fn review(&mut self) -> bool {
        let Some(sent) = self.heart.sent() else {
            return false;
        };
        if let RateSource::File(path) = &self.follower.autorate.source {
            let read = file::read(path, self.follower.names, &self.follower.autorate.bounds);
            self.note_file(read);
        }
        let now = clock::now();
        let seen = self.delays.seen(now);
        self.notice_changes_of_others();
        for (side, sent) in sent.into_iter().enumerate() {
            let other = self.sides[1 - side].controller.as_ref();
            let others = other.map_or(0.0, Controller::load);
            let state = &mut self.sides[side];
            let bytes = sent.saturating_sub(std::mem::replace(&mut state.sent, sent));
            let Some(controller) = &mut state.controller else {
                continue;
            };
            // With a file the controller only measures what is achieved.
            controller.review(now, bytes, &seen, others);
            let ordered = match self.follower.probes {
                Some(_) => controller.order(),
                None => state.written.filter(|rate| Some(*rate) != state.ordered),
            };
            if let Some(rate) = ordered
                && !self.change(side, rate)
            {
                return false;
            }
        }
        if self.follower.probes.is_some() && self.is_silent != seen.is_silent {
            self.is_silent = seen.is_silent;
            (self.notify)(match seen.is_silent {
                true => Notice::ProbesUnanswered,
                false => Notice::ProbesAnswered,
            });
        }
        self.show(seen.excess);
        true
    }

    /// Takes over what the file says, or keeps the rates and tells what is wrong with it.
    fn note_file(&mut self, read: Result<[Option<Rate>; 2], String>) {
        let wrong = match read {
            Ok(rates) => {
                for (side, rate) in self.sides.iter_mut().zip(rates) {
                    side.written = rate.or(side.written);
                }
                None
            }
            Err(what) => Some(what),
        };
        if wrong != self.wrong_file {
            (self.notify)(match &wrong {
                Some(what) => Notice::RateFileWrong { what: what.clone() },
                None => Notice::RateFileRight,
            });
            self.wrong_file = wrong;
        }
        // Until the file says something the rate is the base.
        for side in &mut self.sides {
            if side.written.is_none() {
                side.written = side.controller.as_ref().map(Controller::rate);
            }
        }
    }

    /// Sees whether another change has given a tree another rate. It gets its rate back.
    fn notice_changes_of_others(&mut self) {
        let plan = self.heart.plan();
        if Arc::ptr_eq(&plan, &self.plan) {
            return;
        }
        for (side, tree) in self.sides.iter_mut().zip(&plan.queues) {
            let rate = RootRate::of(tree).ok().and_then(|root| root.get(tree));
            if rate != side.ordered {
                side.ordered = None;
                if let Some(controller) = &mut side.controller {
                    controller.refused();
                }
            }
        }
        self.plan = plan;
    }

    /// Gives the tree of a direction another rate. Returns false if the run has ended.
    fn change(&mut self, side: usize, rate: Rate) -> bool {
        let changed = (self.set_rate)(side, rate);
        let state = &mut self.sides[side];
        let refusal = match changed {
            Ok(changed) => {
                let pause = changed.pause.as_nanos() as f64 / 1e3;
                self.status.changes += 1;
                self.status.longest_pause_us = self.status.longest_pause_us.max(pause);
                state.ordered = Some(rate);
                None
            }
            Err(RateRefused::Ended) => return false,
            Err(RateRefused::Because(what)) => {
                self.status.refused += 1;
                state.ordered = None;
                if let Some(controller) = &mut state.controller {
                    controller.refused();
                }
                Some(what)
            }
        };
        if refusal.is_some() != state.refusal.is_some() {
            let direction = self.follower.names[side];
            (self.notify)(match &refusal {
                Some(what) => Notice::RateRefused {
                    direction,
                    what: what.clone(),
                },
                None => Notice::RateAccepted { direction },
            });
        }
        state.refusal = refusal;
        self.plan = self.heart.plan();
        true
    }

    /// Shows the state to whom it may concern.
    fn show(&mut self, excess: f64) {
        let has_probes = self.follower.probes.is_some();
        let status = &mut self.status;
        let baseline = self.delays.baseline();
        status.baseline_us = baseline.map(|baseline| baseline.as_nanos() as f64 / 1e3);
        status.excess_us = has_probes.then_some(excess / 1e3);
        status.directions.clear();
        for (side, state) in self.sides.iter().enumerate() {
            let (Some(controller), Some(bounds)) = (&state.controller, self.follower.autorate.bounds[side])
            else {
                continue;
            };
            let rate = state.ordered.unwrap_or(bounds.base);
            let phase = match (&state.refusal, has_probes) {
                (Some(_), _) => "refused",
                (None, true) => controller.phase().name(),
                (None, false) => "file",
            };
            status.directions.push(AutorateDirection {
                from: self.plan.ends[side].title().to_owned(),
                rate_bps: rate.bits_per_second(),
                min_bps: bounds.min.bits_per_second(),
                base_bps: bounds.base.bits_per_second(),
                max_bps: bounds.max.bits_per_second(),
                achieved_bps: controller.achieved(),
                state: phase.to_owned(),
            });
        }
        self.heart.board().write(status.clone());
    }
}

/// Gives the tree of a direction a rate.
pub type SetRate = dyn Fn(usize, Rate) -> Result<Changed, RateRefused>;

/// Why a tree does not get a rate.
#[derive(Debug)]
pub enum RateRefused {
    /// The run has ended.
    Ended,
    /// What is wrong, as a sentence.
    Because(String),
}

impl Plan {
    /// Returns the plan with another rate at the root of the tree of a direction.
    ///
    /// # Errors
    /// Fails if that tree has no rate, or can't have this one.
    pub fn with_rate(&self, side: usize, rate: Rate, registry: &Registry) -> Result<Plan, RateRefused> {
        let tree = &self.queues[side];
        let root =
            RootRate::of(tree).map_err(|[what, remedy]| RateRefused::Because(format!("{what}; {remedy}")))?;
        let mut plan = self.clone();
        plan.queues[side] = root.set(tree, rate, registry)?;
        Ok(plan)
    }
}

impl From<ReloadError> for RateRefused {
    fn from(error: ReloadError) -> RateRefused {
        match error {
            ReloadError::Ended => RateRefused::Ended,
            error => RateRefused::Because(error.to_string()),
        }
    }
}

impl From<FileError> for RateRefused {
    fn from(error: FileError) -> RateRefused {
        RateRefused::Because(error.problems()[0].message.clone())
    }
}

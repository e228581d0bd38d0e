//! What those see who ask and change a run whose packets the kernel forwards.

use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use fairgate::Time;
use fairgate_config::{Memory, Problem};
use fairgate_kernel::client::{Contents, Failed, Reader};
use fairgate_run_api::{Detail, FlowOrder, FlowsStatus, Mistake, ProcessorStatus, Recorder, Refused, Status};

use super::attach::Attached;
use super::mistake;
use super::reading;
use crate::bypass::Bypass;
use crate::clock;
use crate::config::Plan;
use crate::error::ReloadError;
use crate::ethernet::longest_frame;
use crate::fitness;
use crate::plane::{Changed, Kind, Plane};
use crate::pulse::{Beat, Heart};
use crate::rate::RateWindow;
use crate::status::delays::Delays;
use crate::status::{Board, DirectionReading, Estimators, Recording, RunReading, TreeReading, status_of};
use crate::tally::Tally;

/// How often a recording tries to read the kernel, and how long it waits in between.
const ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// A run, for its threads.
pub(super) struct Shared {
    /// The configuration that is running. It is locked for the whole of a change.
    plan: Mutex<Arc<Plan>>,
    /// Locked while the kernel is asked. `None` after the end.
    kernel: Mutex<Option<InKernel>>,
    tally: Tally,
    board: Board,
    memory: Memory,
    mtu: usize,
    started: Time,
}

/// The trees of a run, and what reads them.
struct InKernel {
    attached: Attached,
    reader: Reader,
    sent: [Sent; 2],
    estimators: [Estimators; 2],
}

/// What a direction has sent.
#[derive(Default)]
struct Sent {
    window: RateWindow,
    /// Never less than before: after a panic the kernel may know less.
    bytes: u64,
}

impl InKernel {
    /// A tree that can't be read forwards, as far as is known.
    fn beat(&mut self) -> Beat {
        let is_gone = |side| matches!(self.attached.counters(side), Err(failed) if means_gone(&failed));
        match (0..2).any(is_gone) {
            true => Beat::Ended,
            false => Beat::Alive,
        }
    }

    /// Returns what the kernel says of a direction. `None` if it has no tree.
    fn read(&mut self, side: usize) -> Option<Result<Contents, Failed>> {
        let place = self.attached.place(side)?;
        Some(self.reader.read(place.index, place.handle))
    }

    /// Returns the tree of a direction, if the kernel can be asked for it.
    fn tree(&mut self, side: usize) -> Option<TreeReading> {
        let contents = self.read(side)?.ok()?;
        Some(reading::tree(clock::now(), contents))
    }

    /// Takes the samples that are due. Those of a tree that can't be read wait.
    fn look_at_estimators(&mut self) {
        for side in 0..2 {
            let now = clock::now();
            if self.estimators[side].due().is_some_and(|due| due <= now)
                && let Some(tree) = self.tree(side)
            {
                self.estimators[side].look_at(&tree, now);
            }
        }
    }

    /// Notes what was sent until now, because the trees are going to change.
    fn hold_estimators(&mut self) {
        for side in 0..2 {
            if self.estimators[side].due().is_some()
                && let Some(tree) = self.tree(side)
            {
                self.estimators[side].hold(&tree);
            }
        }
    }

    /// Goes on with the estimators of a changed plan.
    fn change_estimators(&mut self, plan: &Plan) {
        for side in 0..2 {
            self.estimators[side].change_to(&mut estimators_of(plan, side), clock::now());
            if self.estimators[side].due().is_some()
                && let Some(tree) = self.tree(side)
            {
                self.estimators[side].resume(&tree);
            }
        }
    }
}

fn estimators_of(plan: &Plan, side: usize) -> Estimators {
    Estimators::of(&plan.queues[side])
}

impl Sent {
    fn rate(&mut self, now: Time, bytes: u64) -> f64 {
        self.bytes = self.bytes.max(bytes);
        self.window.bits_per_second(now, self.bytes)
    }
}

impl Shared {
    pub(super) fn new(plan: &Plan, mtu: usize, attached: Attached) -> Result<Shared, Failed> {
        Ok(Shared {
            plan: Mutex::new(Arc::new(plan.clone())),
            kernel: Mutex::new(Some(InKernel {
                attached,
                reader: Reader::open()?,
                sent: Default::default(),
                estimators: [0, 1].map(|side| estimators_of(plan, side)),
            })),
            tally: Tally::default(),
            board: Board::default(),
            memory: Memory::watch(),
            mtu,
            started: clock::now(),
        })
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn kernel(&self) -> MutexGuard<'_, Option<InKernel>> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what the kernel has sent. Returns which directions are plain fifos since a panic. Fails if a
    /// tree is not there any more.
    pub(super) fn look(&self) -> Result<[bool; 2], (usize, Failed)> {
        let mut has_panicked = [false; 2];
        if let Some(kernel) = &mut *self.kernel() {
            for (side, panicked) in has_panicked.iter_mut().enumerate() {
                match kernel.attached.counters(side) {
                    Ok(Some(counters)) => {
                        kernel.sent[side].rate(clock::now(), counters.statistics.dequeued.bytes);
                        *panicked = counters.has_panicked;
                    }
                    Err(failed) if means_gone(&failed) => return Err((side, failed)),
                    // The packets go on. Who asks for the status is told.
                    Ok(None) | Err(_) => {}
                }
            }
        }
        Ok(has_panicked)
    }

    /// Takes samples of estimators, and returns when the next one is due.
    pub(super) fn look_at_estimators(&self) -> Option<Time> {
        let mut kernel = self.kernel();
        let kernel = kernel.as_mut()?;
        kernel.look_at_estimators();
        kernel.estimators.iter().filter_map(Estimators::due).min()
    }

    /// Takes the trees away. Nobody can ask the run any more.
    pub(super) fn detach(&self) -> Result<(), Failed> {
        match self.kernel().take() {
            Some(mut kernel) => kernel.attached.detach(),
            None => Ok(()),
        }
    }

    /// Leaves the trees in the kernel. Nobody can ask the run any more.
    pub(super) fn leave(&self) {
        if let Some(kernel) = self.kernel().take() {
            kernel.attached.leave();
        }
    }

    fn reading(&self) -> Result<RunReading, Refused> {
        // The plan first: a change holds its lock, too, while it asks the kernel.
        let running = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let plan = Arc::clone(&running);
        let mut kernel = self.kernel();
        let kernel = kernel.as_mut().ok_or(Refused::Ended)?;
        let ends = plan.ends.each_ref().map(|end| end.title());
        let mut direction = |side: usize| -> Result<DirectionReading, Refused> {
            let contents = kernel.read(side).transpose();
            let contents = contents.map_err(|failed| unread(ends[side], &failed))?;
            let now = clock::now();
            let sent = contents
                .as_ref()
                .map_or(0, |contents| contents.counters.statistics.dequeued.bytes);
            let mut direction = reading::direction([ends[side], ends[1 - side]], now, contents);
            direction.rate_bps = kernel.sent[side].rate(now, sent);
            direction.rates = kernel.estimators[side].rates();
            Ok(direction)
        };
        Ok(RunReading {
            changes: self.tally.status(),
            isolated: false,
            processor: ProcessorStatus::default(),
            started: self.started,
            at: clock::now(),
            sent: Vec::new(),
            board: self.board.clone(),
            bypass: Bypass::default(),
            nat: None,
            directions: [direction(0)?, direction(1)?],
            plan,
        })
    }

    /// Reads the run for a recording, which a failed attempt does not end. Returns nothing if the run has
    /// ended, or can't be read for a while.
    fn reading_with_patience(&self) -> Option<RunReading> {
        for _ in 0..ATTEMPTS {
            match self.reading() {
                Ok(reading) => return Some(reading),
                Err(Refused::Unread(_)) => thread::sleep(PAUSE),
                Err(_) => return None,
            }
        }
        None
    }

    pub(super) fn status(&self, detail: Detail) -> Result<Status, Refused> {
        Ok(status_of(self.reading()?, detail))
    }

    fn change(
        &self,
        kind: Kind,
        new: &mut dyn FnMut(&Plan) -> Result<Plan, ReloadError>,
    ) -> Result<Changed, ReloadError> {
        let mut running = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = new(&running).and_then(|mut plan| {
            plan.revision = running.revision + u64::from(kind == Kind::Trees);
            let changed = self.apply(kind, &running, &plan)?;
            *running = Arc::new(plan);
            Ok(changed)
        });
        self.tally.note(kind, &changed);
        changed
    }

    fn apply(&self, kind: Kind, running: &Plan, plan: &Plan) -> Result<Changed, ReloadError> {
        if let Some(key) = running.fixed_difference(plan) {
            return Err(ReloadError::Fixed { key });
        }
        fitness::check(plan, self.mtu)?;
        if kind == Kind::Trees {
            plan.fits(Some(running), self.memory.available())?;
        }
        let mut kernel = self.kernel();
        let kernel = kernel.as_mut().ok_or(ReloadError::Ended)?;
        kernel.hold_estimators();
        let changed = kernel.attached.change(running, plan);
        const HELP: &str = "nothing was changed; choose another discipline, or run in user space";
        let counters = changed.map_err(|(side, failed)| match mistake(plan, side, &failed, HELP) {
            Some(mistake) => mistake.into(),
            None => ReloadError::Kernel {
                from: plan.ends[side].title().to_owned(),
                said: failed.to_string(),
            },
        })?;
        kernel.change_estimators(plan);
        let pause = counters.iter().map(|counters| counters.change_ns).max();
        Ok(Changed {
            pause: Duration::from_nanos(pause.unwrap_or_default()),
            dropped: counters.iter().map(|counters| counters.change_dropped).sum(),
            ..Changed::of(plan.revision)
        })
    }
}

impl Heart for Shared {
    /// The kernel forwards as long as the qdiscs are there.
    fn beat(&self, _patience: Option<Duration>) -> Beat {
        match &mut *self.kernel() {
            Some(kernel) => kernel.beat(),
            None => Beat::Ended,
        }
    }

    fn plan(&self) -> Arc<Plan> {
        Shared::plan(self)
    }

    fn board(&self) -> &Board {
        &self.board
    }

    fn sent(&self) -> Option<[u64; 2]> {
        self.look().ok()?;
        let kernel = self.kernel();
        Some(kernel.as_ref()?.sent.each_ref().map(|sent| sent.bytes))
    }
}

/// What asks and changes a run. Copies are the same.
#[derive(Clone)]
pub(super) struct KernelPlane(Arc<Shared>);

impl KernelPlane {
    pub(super) fn of(shared: &Arc<Shared>) -> KernelPlane {
        KernelPlane(Arc::clone(shared))
    }
}

/// Whether it says that a tree, or its interface, is not there any more.
fn means_gone(failed: &Failed) -> bool {
    matches!(failed.errno, libc::ENOENT | libc::ENODEV)
}

/// Says that the tree from an interface can't be read, which does not end the run.
fn unread(from: &str, failed: &Failed) -> Refused {
    let help = match failed.errno {
        libc::EIO => "the run goes on; ask again, and report what the kernel's log says of fairgate (dmesg)",
        libc::EPROTO => {
            "the run goes on; end it, load the module of this program's version, and start the run again"
        }
        _ if means_gone(failed) => "the run ends; docs/kernel.md says when a run loses its qdisc",
        _ => "the run goes on; ask again",
    };
    let message = format!("the kernel does not say what is in the queue from `{from}`: {failed}");
    Refused::Unread(Mistake::new(message, help))
}

/// Says that something needs the packets in this process.
fn needs_user_space(what: &str) -> Refused {
    Refused::missing(
        format!("{what} only where this process forwards the packets: here the kernel does"),
        "start the run in user space: without --kernel and without backend = \"kernel\" in [run]",
    )
}

impl Plane for KernelPlane {
    fn plan(&self) -> Arc<Plan> {
        self.0.plan()
    }

    fn change(
        &self,
        kind: Kind,
        new: &mut dyn FnMut(&Plan) -> Result<Plan, ReloadError>,
    ) -> Result<Changed, ReloadError> {
        self.0.change(kind, new)
    }

    fn warnings(&self) -> Vec<Problem> {
        fitness::warnings(&self.0.plan(), self.0.mtu)
    }

    fn status(&self, detail: Detail) -> Result<Status, Refused> {
        self.0.status(detail)
    }

    /// Sojourn times of single classes are not recorded: the kernel keeps their sums only. An interval in
    /// which the kernel can't be read is a part of the next one.
    fn record(&self) -> Recorder {
        let shared = Arc::clone(&self.0);
        let mut recording = Recording::default();
        Box::new(iter::from_fn(move || {
            let reading = shared.reading_with_patience()?;
            Some(recording.interval(reading, &Delays::default()))
        }))
    }

    fn flows(&self, _order: FlowOrder, _limit: usize) -> Result<FlowsStatus, Refused> {
        Err(needs_user_space("flows are observed"))
    }

    fn last_packets(&self, _last: Option<Duration>, _from: Option<&str>) -> Result<Vec<u8>, Refused> {
        Err(needs_user_space("the last packets are kept"))
    }

    fn longest(&self) -> u32 {
        u32::try_from(longest_frame(self.0.mtu)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_reading_says_what_failed_and_what_to_do() {
        for (errno, word) in [
            (libc::EIO, "dmesg"),
            (libc::EPROTO, "module"),
            (libc::EAGAIN, "again"),
        ] {
            let failed = Failed {
                said: Some("it panicked".to_owned()),
                ..Failed::of(errno)
            };
            assert!(!means_gone(&failed));
            let said = unread("wan", &failed).to_string();
            for part in ["`wan`", "it panicked", "goes on", word] {
                assert!(said.contains(part), "{said}");
            }
        }
        assert!(means_gone(&Failed::of(libc::ENOENT)));
    }
}

//! What other threads ask and change of a run's forwarding threads. These are only asked for a reading of
//! their counters, which they make in steps. The documents are made of it on the threads that ask.

use std::iter;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fairgate_config::Problem;
use fairgate_run_api::{Detail, FlowOrder, FlowsStatus, Recorder, Refused, Status};
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::changes::Changer;
use crate::clock;
use crate::config::Plan;
use crate::error::{LiveError, ReloadError};
use crate::nat::Translations;
use crate::packets::{self, PacketKeeper, PacketTap};
use crate::plane::{Changed, Kind, Plane};
use crate::status::delays::{self, DelayCounter, DelayTap};
use crate::status::{QueueNames, Recording, RunReading, status_of};

/// What other threads ask and change of a run's forwarding threads. Copies are the same.
#[derive(Clone)]
pub(super) struct Observer(Arc<Observed>);

struct Observed {
    wanted: Arc<EventFd>,
    detail: Arc<Mutex<Detail>>,
    /// Locked while a reading is made, so that there is one at a time.
    made: Mutex<Receiver<RunReading>>,
    changer: Changer,
    longest: u32,
    delays: Arc<DelayCounter>,
    packets: Arc<PacketKeeper>,
}

/// The forwarding thread's end.
#[derive(Debug)]
pub(super) struct Readings {
    /// Readable when a reading is wanted.
    wanted: Arc<EventFd>,
    /// How much is wanted.
    detail: Arc<Mutex<Detail>>,
    made: Sender<RunReading>,
}

/// The ends of a worker's logs.
#[derive(Debug)]
pub(super) struct Taps {
    /// The log of sojourn times for recordings.
    pub(super) delays: DelayTap,
    /// The log of packets.
    pub(super) packets: PacketTap,
}

impl Observer {
    /// Returns an observer of the workers of `plan`, the end of the thread that leads them, and the logs of
    /// each. `longest` is the length of the longest packet, bytes. `translations` tell who is behind the
    /// addresses of flows.
    ///
    /// # Errors
    /// Fails if the system refuses a thread.
    pub(super) fn new(
        changer: Changer,
        longest: u32,
        plan: &Plan,
        translations: Option<Arc<Translations>>,
    ) -> Result<(Observer, Readings, Vec<Taps>), LiveError> {
        let system = || LiveError::system("preparing to be asked");
        let workers = usize::from(plan.workers);
        let wanted = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(system())?;
        let wanted = Arc::new(wanted);
        let detail = Arc::new(Mutex::new(Detail::All));
        let (readings, made) = mpsc::channel();
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = thread::Builder::new().name(name.to_owned());
            thread.spawn(work).map_err(LiveError::io("preparing to be asked"))
        };
        let (delay_taps, delays, count) = delays::ends(workers);
        start("delays", Box::new(count))?;
        let (packet_taps, packets, take_in) = packets::ends(workers, plan.packet_log, translations);
        start("packets", Box::new(take_in))?;
        let taps = delay_taps.into_iter().zip(packet_taps);
        let taps = taps.map(|(delays, packets)| Taps { delays, packets }).collect();
        let observer = Observer(Arc::new(Observed {
            wanted: Arc::clone(&wanted),
            detail: Arc::clone(&detail),
            made: Mutex::new(made),
            changer,
            longest,
            delays,
            packets,
        }));
        let readings = Readings {
            wanted,
            detail,
            made: readings,
        };
        Ok((observer, readings, taps))
    }

    /// Waits until all is taken in that the workers had noted before a reading.
    fn wait_for_packets(&self, reading: &RunReading) {
        let sent: Vec<u64> = reading.sent.iter().map(|sent| sent.packets).collect();
        self.0.packets.wait(&sent);
    }

    /// Has the forwarding thread read at least what is wanted. Returns `None` if the run has ended.
    fn reading(&self, detail: Detail) -> Option<RunReading> {
        let made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        *self.0.detail.lock().unwrap_or_else(PoisonError::into_inner) = detail;
        self.0.wanted.write(1).ok()?;
        made.recv().ok()
    }
}

impl Readings {
    /// Returns the descriptor that is readable when a reading is wanted.
    pub(super) fn wanted(&self) -> BorrowedFd<'_> {
        self.wanted.as_fd()
    }

    /// Returns how much is wanted.
    pub(super) fn detail(&self) -> Detail {
        *self.detail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of the wish for a reading.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.read().is_ok()
    }

    /// Hands over a reading that was wanted.
    pub(super) fn hand_over(&self, reading: RunReading) {
        // The run may not be observed any more.
        let _ = self.made.send(reading);
    }
}

impl Plane for Observer {
    fn plan(&self) -> Arc<Plan> {
        self.0.changer.plan()
    }

    fn change(
        &self,
        kind: Kind,
        new: &mut dyn FnMut(&Plan) -> Result<Plan, ReloadError>,
    ) -> Result<Changed, ReloadError> {
        self.0.changer.change(kind, new)
    }

    fn warnings(&self) -> Vec<Problem> {
        self.0.changer.warnings()
    }

    fn status(&self, detail: Detail) -> Result<Status, Refused> {
        Ok(status_of(self.reading(detail).ok_or(Refused::Ended)?, detail))
    }

    fn record(&self) -> Recorder {
        let observer = self.clone();
        let delays = self.0.delays.subscribe();
        let mut recording = Recording::default();
        Box::new(iter::from_fn(move || {
            let reading = observer.reading(Detail::Used)?;
            let sent: Vec<u64> = reading.sent.iter().map(|sent| sent.delays).collect();
            let delays = delays.take(&sent);
            Some(recording.interval(reading, &delays))
        }))
    }

    fn flows(&self, order: FlowOrder, limit: usize) -> Result<FlowsStatus, Refused> {
        self.0.packets.observe_flows();
        let reading = self.reading(Detail::Used).ok_or(Refused::Ended)?;
        self.wait_for_packets(&reading);
        let queues = QueueNames::of(&reading);
        let ends = reading.ends();
        Ok(self.0.packets.flows(order, limit, ends, &|worker, side, node| {
            queues.name(worker, side, node)
        }))
    }

    fn last_packets(&self, last: Option<Duration>, from: Option<&str>) -> Result<Vec<u8>, Refused> {
        if !self.0.packets.keeps_packets() {
            return Err(Refused::no_packets());
        }
        let reading = self.reading(Detail::Used).ok_or(Refused::Ended)?;
        self.wait_for_packets(&reading);
        let queues = QueueNames::of(&reading);
        let ends = reading.ends();
        if let Some(from) = from
            && !ends.contains(&from)
        {
            return Err(Refused::no_direction(from, ends));
        }
        let now = clock::now();
        let capture = packets::pcapng(
            &self.0.packets.last_packets(last, now),
            &reading.plan.name,
            ends,
            from,
            &|worker, side, node| queues.name(worker, side, node),
            clock::since_epoch(now),
        );
        Ok(capture.expect("memory takes all bytes"))
    }

    fn longest(&self) -> u32 {
        self.0.longest
    }
}

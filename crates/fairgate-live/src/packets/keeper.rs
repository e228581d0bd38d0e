//! The end of the threads that serve clients: the last packets, and the flows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fairgate::Time;
use fairgate_run_api::{FlowOrder, FlowsStatus};

use super::flows::{Flows, Names};
use super::log::{Record, records};
use super::tap::{BUFFERS, Empty, Filled, PacketTap, ROOM};
use crate::clock;
use crate::config::PacketLog;
use crate::exchange::{Ends, Progress, Suppliers, exchange};
use crate::nat::Translations;

/// How long flows are observed after somebody has asked for them.
const INTEREST: Duration = Duration::from_secs(30);

/// How long flows are observed before the first answer: the rates are those of a second.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// How often what is old is forgotten.
const BETWEEN_CHECKS: Duration = Duration::from_secs(1);

/// What is known of the packets of a run.
#[derive(Debug)]
pub(crate) struct PacketKeeper {
    /// The number of those who want records: the packet log, and the flows.
    wanted: Arc<AtomicUsize>,
    suppliers: Suppliers<Empty>,
    progress: Progress,
    /// How much is kept. `None` if there is no packet log.
    kept: Option<PacketLog>,
    /// Who is behind the addresses of flows, if this router translates them.
    translations: Option<Arc<Translations>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    has_buffers: bool,
    /// The last packets. The oldest are at the front.
    chunks: VecDeque<Chunk>,
    /// The bytes of all chunks.
    bytes: usize,
    observed: Option<Observed>,
    /// Packets that were not noted while somebody wanted them.
    missed: u64,
}

/// Flows that are observed.
#[derive(Debug)]
struct Observed {
    since: Instant,
    until: Instant,
    missed_before: u64,
    flows: Flows,
}

/// What a worker has noted, without room for more.
#[derive(Clone, Debug)]
struct Chunk {
    worker: usize,
    sides: [Arc<[u8]>; 2],
    /// When the last of its packets ended.
    newest: Time,
}

/// Some of the last packets.
pub(crate) struct LastPackets {
    chunks: Vec<Chunk>,
    /// They ended since this time.
    pub(super) since: Time,
    /// Packets that are missing, because the run was too busy to note them.
    pub(super) missed: u64,
}

/// Returns an end for each worker, the other end, and a function that takes in what the workers note. Call it
/// on a thread of its own. It ends when all workers' ends are dropped.
pub(crate) fn ends(
    workers: usize,
    kept: Option<PacketLog>,
    translations: Option<Arc<Translations>>,
) -> (Vec<PacketTap>, Arc<PacketKeeper>, impl FnOnce() + Send + 'static) {
    let Ends {
        workers: ends,
        suppliers,
        filled,
        progress,
    } = exchange(workers, BUFFERS);
    let wanted = Arc::new(AtomicUsize::new(0));
    let taps = ends
        .into_iter()
        .map(|end| PacketTap::new(Arc::clone(&wanted), end));
    let taps = taps.collect();
    let keeper = Arc::new(PacketKeeper {
        wanted,
        suppliers,
        progress,
        kept,
        translations,
        state: Mutex::default(),
    });
    if keeper.kept.is_some() {
        keeper.want(&mut keeper.lock());
    }
    let taking = Arc::clone(&keeper);
    (taps, keeper, move || {
        let mut checked = Instant::now();
        loop {
            match filled.recv_timeout(BETWEEN_CHECKS) {
                Ok((worker, filled)) => taking.take_in(worker, filled),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if checked.elapsed() >= BETWEEN_CHECKS {
                checked = Instant::now();
                taking.lock().forget(checked, clock::now(), &taking);
            }
        }
    })
}

impl PacketKeeper {
    /// Returns whether the last packets are kept.
    pub(crate) fn keeps_packets(&self) -> bool {
        self.kept.is_some()
    }

    /// Waits until that many buffers of each worker were taken in.
    pub(crate) fn wait(&self, sent: &[u64]) {
        self.progress.wait(sent);
    }

    /// Returns the packets that ended in the last time of this length.
    pub(crate) fn last_packets(&self, last: Option<Duration>, now: Time) -> LastPackets {
        let kept = self.kept.map_or(Duration::ZERO, |kept| kept.duration);
        let last = last.unwrap_or(kept).min(kept);
        let state = self.lock();
        LastPackets {
            chunks: state.chunks.iter().cloned().collect(),
            since: Time::from_nanos(now.nanos().saturating_sub(last.as_nanos() as u64)),
            missed: state.missed,
        }
    }

    /// Begins to observe the flows, unless they are observed. Returns when there is something to show, which
    /// may take a second.
    pub(crate) fn observe_flows(&self) {
        let began = self.lock().observe(self);
        thread::sleep(FIRST_LOOK.saturating_sub(began.elapsed()));
    }

    /// Returns the first `limit` flows.
    pub(crate) fn flows(
        &self,
        order: FlowOrder,
        limit: usize,
        ends: [&str; 2],
        names: &Names<'_>,
    ) -> FlowsStatus {
        let mut state = self.lock();
        let missed = state.missed;
        let Some(observed) = &mut state.observed else {
            return FlowsStatus::default();
        };
        FlowsStatus {
            observed_s: observed.since.elapsed().as_secs_f64(),
            missed_packets: missed - observed.missed_before,
            ..observed.flows.status(clock::now(), order, limit, ends, names)
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn want(&self, state: &mut State) {
        if !std::mem::replace(&mut state.has_buffers, true) {
            self.suppliers
                .fill(BUFFERS, || [(); 2].map(|()| Vec::with_capacity(ROOM)));
        }
        self.wanted.fetch_add(1, Ordering::Relaxed);
    }

    fn take_in(&self, worker: usize, filled: Filled) {
        let mut state = self.lock();
        let missed = filled.iter().map(|taken| taken.missed).sum::<u64>();
        state.missed += missed;
        let mut newest = Time::ZERO;
        for (side, record) in in_time(filled.each_ref().map(|taken| &taken.bytes[..])) {
            newest = newest.max(record.ended);
            if let Some(observed) = &mut state.observed {
                observed.flows.note(worker, side, &record);
            }
        }
        if let Some(observed) = state.observed.as_mut().filter(|_| missed > 0) {
            observed.flows.note_missed();
        }
        if let Some(kept) = self.kept {
            let sides = filled.each_ref().map(|taken| Arc::from(&taken.bytes[..]));
            let chunk = Chunk {
                worker,
                sides,
                newest,
            };
            state.bytes += chunk.bytes();
            state.chunks.push_back(chunk);
            state.keep(kept, newest);
        }
        drop(state);
        self.progress.note(worker);
        self.suppliers.give(worker, filled.map(|taken| taken.bytes));
    }
}

impl State {
    /// Observes the flows for another while, with the packets that are kept. Returns since when they are
    /// observed.
    fn observe(&mut self, keeper: &PacketKeeper) -> Instant {
        let now = Instant::now();
        if self.observed.is_none() {
            let flows = Flows::new(keeper.translations.clone());
            let (flows, age) = self.flows_of_kept(flows, clock::now());
            self.observed = Some(Observed {
                since: now.checked_sub(age).unwrap_or(now),
                until: now,
                missed_before: self.missed,
                flows,
            });
            keeper.want(self);
        }
        let observed = self.observed.as_mut().expect("it was put there");
        observed.until = now + INTEREST;
        observed.since
    }

    /// Returns the flows of the packets that are kept, and for how long these are.
    fn flows_of_kept(&self, mut flows: Flows, now: Time) -> (Flows, Duration) {
        let mut first = None;
        for chunk in &self.chunks {
            for (side, record) in in_time(chunk.sides.each_ref().map(|bytes| &bytes[..])) {
                first.get_or_insert(record.ended);
                flows.note(chunk.worker, side, &record);
            }
        }
        let age = first.map_or(0, |first| now.nanos_since(first));
        (flows, Duration::from_nanos(age))
    }

    /// Forgets the oldest packets.
    fn keep(&mut self, kept: PacketLog, now: Time) {
        let oldest = now.nanos().saturating_sub(kept.duration.as_nanos() as u64);
        while let Some(first) = self.chunks.front()
            && (self.bytes > kept.memory || first.newest.nanos() < oldest)
        {
            self.bytes -= first.bytes();
            self.chunks.pop_front();
        }
    }

    /// Forgets what is old, and ends the observation of flows that nobody asks for.
    fn forget(&mut self, instant: Instant, now: Time, keeper: &PacketKeeper) {
        if let Some(kept) = keeper.kept {
            self.keep(kept, now);
        }
        if let Some(observed) = &mut self.observed {
            if instant > observed.until && keeper.kept.is_none() {
                self.observed = None;
                keeper.wanted.fetch_sub(1, Ordering::Relaxed);
            } else {
                observed.flows.expire(now);
            }
        }
    }
}

impl Chunk {
    fn bytes(&self) -> usize {
        self.sides[0].len() + self.sides[1].len()
    }
}

impl LastPackets {
    /// Returns the packets in the order of their arrival, with the worker and the side that they came from.
    pub(super) fn by_arrival(&self) -> Vec<(usize, usize, Record<'_>)> {
        let mut all = Vec::new();
        for chunk in &self.chunks {
            for (side, bytes) in chunk.sides.iter().enumerate() {
                let ended = records(bytes).filter(|record| record.ended >= self.since);
                all.extend(ended.map(|record| (chunk.worker, side, record)));
            }
        }
        all.sort_by_key(|(_, _, record)| record.arrived);
        all
    }
}

/// Returns the records of both sides, merged by the times at which the packets ended.
fn in_time(sides: [&[u8]; 2]) -> impl Iterator<Item = (usize, Record<'_>)> {
    let [mut left, mut right] = sides.map(|bytes| records(bytes).peekable());
    std::iter::from_fn(move || {
        let is_left = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) => one.ended <= other.ended,
            (one, _) => one.is_some(),
        };
        match is_left {
            true => left.next().map(|record| (0, record)),
            false => right.next().map(|record| (1, record)),
        }
    })
}

#[cfg(test)]
mod tests {
    use fairgate::NodeNumber;

    use super::*;
    use crate::packets::QueueName;
    use crate::packets::log::tests::slot;
    use crate::packets::log::{Log, Outcome, Taken};

    /// What a worker has noted: packets that arrived at these times and ended 1 ms later.
    fn noted(times: [&[u64]; 2]) -> Filled {
        times.map(|times| {
            let mut log = Log::default();
            log.exchange(Vec::with_capacity(ROOM));
            for &millis in times {
                let ended = Time::from_millis(millis + 1);
                let slot = slot(Time::from_millis(millis));
                log.note(&slot, NodeNumber::NONE, Outcome::Sent, ended, &[0; 60]);
            }
            log.exchange(Vec::new())
        })
    }

    fn arrivals(keeper: &PacketKeeper, last: Option<u64>, now: u64) -> Vec<(usize, u64)> {
        let last = keeper.last_packets(last.map(Duration::from_millis), Time::from_millis(now));
        let of = |(_, side, record): &(usize, usize, Record<'_>)| (*side, record.arrived.nanos() / 1_000_000);
        last.by_arrival().iter().map(of).collect()
    }

    #[test]
    fn the_last_packets_are_kept_for_their_time() {
        let kept = PacketLog {
            duration: Duration::from_millis(100),
            memory: 1 << 20,
        };
        let (_taps, keeper, _) = ends(1, Some(kept), None);
        keeper.take_in(0, noted([&[10, 30], &[20]]));
        keeper.take_in(0, noted([&[50], &[40, 60]]));
        assert_eq!(
            arrivals(&keeper, None, 61),
            [(0, 10), (1, 20), (0, 30), (1, 40), (0, 50), (1, 60)]
        );
        assert_eq!(arrivals(&keeper, Some(20), 61), [(1, 40), (0, 50), (1, 60)]);
        keeper.take_in(0, noted([&[150], &[]]));
        assert_eq!(arrivals(&keeper, None, 151), [(0, 50), (1, 60), (0, 150)]);
        keeper
            .lock()
            .forget(Instant::now(), Time::from_millis(400), &keeper);
        assert_eq!((arrivals(&keeper, None, 400).len(), keeper.lock().bytes), (0, 0));
    }

    #[test]
    fn memory_is_bounded() {
        let kept = PacketLog {
            duration: Duration::from_secs(1_000),
            memory: 10_000,
        };
        let (_taps, keeper, _) = ends(1, Some(kept), None);
        for millis in 0..1_000 {
            keeper.take_in(0, noted([&[millis], &[millis]]));
            assert!(keeper.lock().bytes <= 10_000);
        }
        // A record of 60 bytes takes 32 + 64.
        assert_eq!(arrivals(&keeper, None, 1_001).len(), 2 * (10_000 / 192));
    }

    /// Nobody asks for the flows any more: the forwarding threads note nothing.
    #[test]
    fn flows_are_observed_while_somebody_asks() {
        let (_taps, keeper, _) = ends(2, None, None);
        let wanted = || keeper.wanted.load(Ordering::Relaxed);
        assert_eq!((wanted(), keeper.keeps_packets()), (0, false));
        let names = |_, _, _| QueueName::default();
        let shown = || keeper.flows(FlowOrder::Rate, 10, ["a", "b"], &names);
        assert_eq!(shown(), FlowsStatus::default());
        keeper.observe_flows();
        keeper.observe_flows();
        assert_eq!(wanted(), 1);
        let mut filled = noted([&[10], &[]]);
        filled[1].missed = 7;
        keeper.take_in(1, filled);
        assert_eq!(keeper.lock().chunks.len(), 0, "no packets are kept");
        let status = shown();
        assert_eq!((status.missed_packets, status.observed_s >= 1.0), (7, true));
        let later = Instant::now() + 2 * INTEREST;
        keeper.lock().forget(later, Time::from_millis(20), &keeper);
        assert_eq!((wanted(), shown()), (0, FlowsStatus::default()));
    }

    /// The packets that are kept belong to the flows, too.
    #[test]
    fn flows_begin_with_the_packets_that_are_kept() {
        let kept = PacketLog {
            duration: Duration::from_secs(100),
            memory: 1 << 20,
        };
        let (_taps, keeper, _) = ends(1, Some(kept), None);
        let now = clock::now().nanos() / 1_000_000;
        keeper.take_in(0, noted([&[now - 30, now - 20], &[]]));
        keeper.observe_flows();
        keeper.take_in(0, noted([&[now], &[]]));
        let names = |_, _, _| QueueName::default();
        let status = keeper.flows(FlowOrder::Rate, 10, ["a", "b"], &names);
        assert_eq!((status.active, status.flows[0].packets), (1, 3));
        assert!(status.observed_s >= 1.0, "{status:?}");
    }

    #[test]
    fn both_directions_are_merged_by_time() {
        let noted = noted([&[1, 4, 5], &[2, 4, 9]]);
        let sides = noted.each_ref().map(|Taken { bytes, .. }| &bytes[..]);
        let merged: Vec<(usize, u64)> = in_time(sides)
            .map(|(side, record)| (side, record.arrived.nanos() / 1_000_000))
            .collect();
        assert_eq!(merged, [(0, 1), (1, 2), (0, 4), (1, 4), (0, 5), (1, 9)]);
    }
}

//! Sojourn times on their way from the packets to the recordings.
//!
//! The forwarding thread fills a buffer while a recording runs, and exchanges it for an empty one when it is
//! half full ([`exchange`](crate::exchange)). A thread of ordinary priority counts what is in it, and returns
//! the buffer. If that thread is too slow, sojourn times are missed, and the recording says how many.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairgate::{Delay, Link, NodeNumber, Statistics, TakenDelays};
use hdrhistogram::Histogram;

use crate::exchange::{Ends, Progress, Suppliers, WorkerEnd, exchange};

/// How many sojourn times a buffer has room for. In a turn of the loop a direction adds one for each of 256
/// packets and each node that a packet leaves.
const ROOM: usize = 16_384;
/// The number of buffers: 4 MB, allocated with the first recording.
const BUFFERS: usize = 32;

/// The forwarding thread's end.
#[derive(Debug)]
pub(crate) struct DelayTap {
    recordings: Arc<AtomicUsize>,
    end: WorkerEnd<Vec<Delay>, Filled>,
}

/// A direction of a worker.
type Source = (usize, usize);

/// A buffer of the direction from a side.
type Filled = (usize, TakenDelays);

/// The end of the threads that serve clients.
#[derive(Debug)]
pub(crate) struct DelayCounter {
    recordings: Arc<AtomicUsize>,
    /// Buffers go back to the worker that sent them.
    suppliers: Suppliers<Vec<Delay>>,
    progress: Progress,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    has_buffers: bool,
    next_key: u64,
    /// What each recording has not taken yet.
    recordings: Vec<(u64, Delays)>,
}

/// The sojourn times of an interval.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// By direction and node. Only nodes that packets have left are here.
    nodes: HashMap<(Source, NodeNumber), Histogram<u32>>,
    /// Sojourn times that no buffer had room for.
    pub(super) missed: u64,
}

/// A recording that gets sojourn times as long as this exists.
#[derive(Debug)]
pub(crate) struct Subscription {
    counter: Arc<DelayCounter>,
    key: u64,
}

/// Returns an end for each worker, the other end, and a function that counts until all workers' ends are
/// dropped. Call it on a thread of its own.
pub(crate) fn ends(workers: usize) -> (Vec<DelayTap>, Arc<DelayCounter>, impl FnOnce() + Send + 'static) {
    let recordings = Arc::new(AtomicUsize::new(0));
    let Ends {
        workers: ends,
        suppliers,
        filled,
        progress,
    } = exchange(workers, BUFFERS);
    let tap = |end| DelayTap {
        recordings: Arc::clone(&recordings),
        end,
    };
    let taps = ends.into_iter().map(tap).collect();
    let counter = Arc::new(DelayCounter {
        recordings,
        suppliers,
        progress,
        counted: Mutex::default(),
    });
    let counting = Arc::clone(&counter);
    (taps, counter, move || {
        filled
            .iter()
            .for_each(|(worker, (from, taken))| counting.count((worker, from), taken))
    })
}

impl DelayTap {
    /// Begins and ends the log of the direction `from`, and sends it if it is half full. Called in each turn.
    #[inline]
    pub(crate) fn look_at(&mut self, from: usize, link: &mut Link<()>) {
        let is_wanted = self.recordings.load(Ordering::Relaxed) > 0;
        if link.keeps_delays() != is_wanted || link.delays_kept() >= ROOM / 2 {
            self.exchange(from, link, is_wanted);
        }
    }

    /// Sends what the log of the direction has. Returns how many buffers were sent until now.
    pub(crate) fn flush(&mut self, from: usize, link: &mut Link<()>) -> u64 {
        if link.delays_kept() > 0 {
            self.exchange(from, link, true);
        }
        self.end.sent()
    }

    #[cold]
    fn exchange(&mut self, from: usize, link: &mut Link<()>, is_wanted: bool) {
        let empty = match is_wanted {
            false => Vec::new(),
            true => match self.end.empty() {
                Some(empty) => empty,
                // All buffers wait to be counted. The log fills up meanwhile.
                None => return,
            },
        };
        let taken = link.keep_delays(empty);
        if taken.delays.capacity() > 0 {
            self.end.send((from, taken));
        }
    }
}

impl DelayCounter {
    /// Begins to count for one more recording.
    pub(crate) fn subscribe(self: &Arc<DelayCounter>) -> Subscription {
        let mut counted = self.lock();
        if !std::mem::replace(&mut counted.has_buffers, true) {
            self.suppliers.fill(BUFFERS, || Vec::with_capacity(ROOM));
        }
        counted.next_key += 1;
        let key = counted.next_key;
        counted.recordings.push((key, Delays::default()));
        self.recordings.fetch_add(1, Ordering::Relaxed);
        Subscription {
            counter: Arc::clone(self),
            key,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, source: Source, mut taken: TakenDelays) {
        let mut counted = self.lock();
        for (_, recording) in &mut counted.recordings {
            recording.missed += taken.missed;
            recording.add(source, &taken.delays);
        }
        drop(counted);
        self.progress.note(source.0);
        taken.delays.clear();
        self.suppliers.give(source.0, taken.delays);
    }
}

impl Subscription {
    /// Returns the sojourn times since the last call. Waits until that many buffers of each worker are
    /// counted.
    pub(crate) fn take(&self, buffers: &[u64]) -> Delays {
        self.counter.progress.wait(buffers);
        let mut counted = self.counter.lock();
        let mut recordings = counted.recordings.iter_mut();
        let own = recordings.find(|(key, _)| *key == self.key);
        std::mem::take(&mut own.expect("the subscription has not ended").1)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.counter.recordings.fetch_sub(1, Ordering::Relaxed);
        self.counter.lock().recordings.retain(|(key, _)| *key != self.key);
    }
}

impl Delays {
    fn add(&mut self, source: Source, delays: &[Delay]) {
        let new = || Histogram::new(1).expect("one digit is valid");
        for delay in delays {
            let histogram = self.nodes.entry((source, delay.node)).or_insert_with(new);
            // It gets longer with the values: one that is saturated would stay short.
            let counted = histogram.record(delay.units.into());
            counted.expect("it resizes itself");
        }
    }

    /// Returns the sojourn times at a node of a worker's direction `from`, if packets have left it.
    pub(super) fn of(&self, worker: usize, from: usize, node: NodeNumber) -> Option<&Histogram<u32>> {
        self.nodes.get(&((worker, from), node))
    }
}

/// Returns a quantile of a histogram, within its extremes: a value stands for all that are near it.
pub(super) fn quantile<C: hdrhistogram::Counter>(histogram: &Histogram<C>, quantile: f64) -> u64 {
    let value = histogram.value_at_quantile(quantile);
    value.min(histogram.max()).max(histogram.min())
}

/// Returns the mean of a histogram, within its extremes.
pub(super) fn mean<C: hdrhistogram::Counter>(histogram: &Histogram<C>) -> f64 {
    let mean = histogram.mean();
    mean.min(histogram.max() as f64).max(histogram.min() as f64)
}

/// Converts a value of the histograms to microseconds.
pub(super) fn micros(units: u64) -> f64 {
    units as f64 * Statistics::SOJOURN_UNIT as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use std::thread;

    use fairgate::{Packet, Time};
    use fairgate_config::Spec;

    use super::*;

    #[test]
    fn figures_lie_within_the_extremes() {
        for values in [vec![0; 5], vec![0, 700], vec![1_000_000, 1_000_300]] {
            let mut histogram = Histogram::<u64>::new_with_bounds(1_000, 1 << 40, 2).unwrap();
            values.iter().for_each(|value| histogram.record(*value).unwrap());
            let (least, most) = (histogram.min(), histogram.max());
            for at in [0.01, 0.5, 0.95, 0.99] {
                assert!((least..=most).contains(&quantile(&histogram, at)), "{values:?}");
            }
            assert!(
                (least as f64..=most as f64).contains(&mean(&histogram)),
                "{values:?}"
            );
        }
    }

    /// Sends packets with these sojourn times through a direction, with a look at its log after each.
    fn pass(link: &mut Link<()>, tap: &mut DelayTap, micros: impl IntoIterator<Item = u64>) {
        for micros in micros {
            link.enqueue(Packet::of_length(100), (), Time::ZERO).unwrap();
            let sent = link.dequeue(Time::from_micros(micros));
            assert!(sent.packet().is_some());
            tap.look_at(1, link);
        }
    }

    #[test]
    fn each_recording_gets_what_was_sent_since_it_asked() {
        let (mut taps, counter, count) = ends(1);
        let mut tap = taps.remove(0);
        let counting = thread::spawn(count);
        let tree = Spec::inline("fifo").unwrap().build(1).unwrap();
        let mut link = Link::new(tree, 4);
        pass(&mut link, &mut tap, [1, 2, 3]);
        assert_eq!((tap.flush(1, &mut link), link.keeps_delays()), (0, false));
        let first = counter.subscribe();
        // The first look begins the log.
        pass(&mut link, &mut tap, [9; 1]);
        pass(&mut link, &mut tap, (0..40_000).map(|_| 2_048));
        let taken = first.take(&[tap.flush(1, &mut link)]);
        let number = link.root().number();
        assert_eq!((taken.of(0, 0, number), taken.missed), (None, 0));
        let histogram = taken.of(0, 1, number).unwrap();
        assert_eq!(histogram.len(), 40_000);
        let half = micros(histogram.value_at_quantile(0.5));
        assert!((half / 2_048.0 - 1.0).abs() < 0.065, "{half}");

        let second = counter.subscribe();
        pass(&mut link, &mut tap, [5_000; 10]);
        let sent = tap.flush(1, &mut link);
        for recording in [first, second] {
            let taken = recording.take(&[sent]);
            assert_eq!(taken.of(0, 1, number).map(Histogram::len), Some(10));
        }
        pass(&mut link, &mut tap, [1]);
        assert!(!link.keeps_delays(), "no recording is left");
        drop(tap);
        counting.join().unwrap();
    }

    /// Nobody counts: the buffers are used up, and then sojourn times are missed and counted as missed.
    #[test]
    fn what_finds_no_buffer_is_missed_and_not_forgotten() {
        let (mut taps, counter, count) = ends(1);
        let mut tap = taps.remove(0);
        let recording = counter.subscribe();
        let tree = Spec::inline("fifo").unwrap().build(1).unwrap();
        let mut link = Link::new(tree, 4);
        let packets = (ROOM * (BUFFERS + 2)) as u64;
        pass(&mut link, &mut tap, 0..packets);
        let counting = thread::spawn(count);
        recording.counter.progress.wait(&[BUFFERS as u64 - 1]);
        // A buffer is empty by now or soon.
        let sent = tap.end.sent();
        while tap.flush(1, &mut link) == sent {
            thread::yield_now();
        }
        let taken = recording.take(&[tap.end.sent()]);
        let counted = taken.of(0, 1, link.root().number()).unwrap().len();
        assert!(taken.missed > 0);
        // The first packet left before the log began.
        assert_eq!(counted + taken.missed, packets - 1);
        drop(tap);
        counting.join().unwrap();
    }
}

//! What clients ask for, inside and outside of the process: readings of the run, and what is made of them.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::eventfd::EventFd;
use thiserror::Error;

use super::control::Control;
use super::delays::{DelayDesk, Subscription};
use super::protocol::Interval;
use super::queue_names::QueueNames;
use super::reading::RunReading;
use super::recording::Recording;
use crate::clock;
use crate::packets::{self, FlowOrder, FlowsStatus, PacketDesk};

/// Why there are no last packets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoPackets {
    /// The run does not keep them.
    #[error("the run keeps no packets")]
    NotKept,
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
    /// No direction is from this interface.
    #[error("no direction is from `{from}`")]
    NoDirection {
        /// The interface.
        from: String,
        /// The interfaces that there are.
        ends: [String; 2],
    },
}

impl NoPackets {
    /// Returns what to do.
    pub fn remedy(&self) -> String {
        match self {
            NoPackets::NotKept => "start the run again, with packet_log = \"30s\" in [run], or with \
                                   `--packet-log 30s` beside --dev"
                .to_owned(),
            NoPackets::Ended => "start it again".to_owned(),
            NoPackets::NoDirection { ends, .. } => format!("name {} or {}", ends[0], ends[1]),
        }
    }
}

/// What the threads of clients share.
pub(super) struct Desk {
    wanted: Arc<EventFd>,
    /// Locked while a reading is made, so that there is one at a time.
    made: Mutex<Receiver<RunReading>>,
    pub(super) control: Control,
    delays: Arc<DelayDesk>,
    packets: Arc<PacketDesk>,
}

impl Desk {
    pub(super) fn new(
        wanted: Arc<EventFd>,
        made: Receiver<RunReading>,
        control: Control,
        delays: Arc<DelayDesk>,
        packets: Arc<PacketDesk>,
    ) -> Desk {
        Desk {
            wanted,
            made: Mutex::new(made),
            control,
            delays,
            packets,
        }
    }

    /// Begins a recording.
    pub(super) fn recorder(self: &Arc<Desk>) -> Recorder {
        Recorder {
            desk: Arc::clone(self),
            delays: self.delays.subscribe(),
            recording: Recording::default(),
        }
    }

    pub(super) fn flows(&self, order: FlowOrder, limit: usize) -> Option<FlowsStatus> {
        self.packets.observe_flows();
        let reading = self.reading()?;
        self.wait_for_packets(&reading);
        let queues = QueueNames::of(&reading);
        let [left, right] = &reading.directions;
        let ends = [left.from.as_str(), right.from.as_str()];
        Some(self.packets.flows(order, limit, ends, &|worker, side, node| {
            queues.name(worker, side, node)
        }))
    }

    pub(super) fn keeps_packets(&self) -> bool {
        self.packets.keeps_packets()
    }

    /// Waits until all is taken in that the workers had noted before a reading.
    fn wait_for_packets(&self, reading: &RunReading) {
        let sent: Vec<u64> = reading.sent.iter().map(|sent| sent.packets).collect();
        self.packets.wait(&sent);
    }

    pub(super) fn last_packets(
        &self,
        last: Option<Duration>,
        from: Option<&str>,
    ) -> Result<Vec<u8>, NoPackets> {
        if !self.packets.keeps_packets() {
            return Err(NoPackets::NotKept);
        }
        let reading = self.reading().ok_or(NoPackets::Ended)?;
        self.wait_for_packets(&reading);
        let queues = QueueNames::of(&reading);
        let [left, right] = &reading.directions;
        let ends = [left.from.as_str(), right.from.as_str()];
        if let Some(from) = from
            && !ends.contains(&from)
        {
            return Err(NoPackets::NoDirection {
                from: from.to_owned(),
                ends: ends.map(str::to_owned),
            });
        }
        let now = clock::now();
        let capture = packets::pcapng(
            &self.packets.last_packets(last, now),
            &reading.plan.name,
            ends,
            from,
            &|worker, side, node| queues.name(worker, side, node),
            clock::since_epoch(now),
        );
        Ok(capture.expect("memory takes all bytes"))
    }

    /// Has the forwarding thread make a reading. Returns `None` if the run has ended.
    pub(super) fn reading(&self) -> Option<RunReading> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.write(1).ok()?;
        made.recv().ok()
    }
}

/// Says what the classes of a run did between its calls. The run notes sojourn times as long as this exists.
pub struct Recorder {
    desk: Arc<Desk>,
    delays: Subscription,
    recording: Recording,
}

impl Recorder {
    /// Returns what each class did since the last call. The first interval has no rows. Waits for the
    /// forwarding threads. Returns nothing if the run has ended.
    pub fn interval(&mut self) -> Option<Interval> {
        let reading = self.desk.reading()?;
        let sent: Vec<u64> = reading.sent.iter().map(|sent| sent.delays).collect();
        let delays = self.delays.take(&sent);
        Some(self.recording.interval(reading, &delays))
    }
}

/// Prints the name of the type only.
impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

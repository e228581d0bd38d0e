//! One direction of the bump: frames in, through the tree of disciplines, frames out.
//!
//! ```text
//!   slot of the ring -> finish offloads -> frame store -> dissect -> tree -> CE mark -> line -> socket
//!                       (the one copy)                    descriptors only            frame numbers only
//! ```
//!
//! A tree that neither shapes nor counts packets gets a super-packet as one packet, whose frames follow one
//! another in the store. Other trees get each of its segments as a packet.
//!
//! An AF_XDP socket receives a frame into memory of the store. Then there is no copy: the socket gets another
//! chunk in exchange.
//!
//! Nothing is allocated on this path. A frame that has left the tree is never lost: it stays in the delay
//! line until the socket takes it.

use std::ops::AddAssign;
use std::sync::Arc;

use fairgate::flow::{HeaderBytes, LinkType, dissect, set_ce, set_dscp};
use fairgate::sharding::{Division, Limit};
use fairgate::{Arrival, Count, Departure, Discipline, FlowHasher, Link, Next, Time};
use hdrhistogram::Histogram;
use nix::errno::Errno;

use crate::config::Plan;
use crate::delay_line::DelayLine;
use crate::error::LiveError;
use crate::nat::Translations;
use crate::offload::{Allowance, Identifications, Segments};
use crate::outgoing::Exit;
use crate::packets::{Log, Outcome};
use crate::randomness::Randomness;
use crate::rate::RateWindow;
use crate::received::Received;
use crate::sys::batch::BATCH;
use crate::sys::frames::FrameStore;
use crate::vlan::Tag;
use crate::workers::{Shard, WorkerSlot};

/// Longest sojourn time that is told apart, ns.
const LONGEST_SOJOURN: u64 = 100_000_000_000;

/// Returns an empty histogram of sojourn times, ns.
pub(crate) fn no_sojourns() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, LONGEST_SOJOURN, 2).expect("the bounds are in order")
}

/// What became of frames outside of the tree of disciplines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Handed to the kernel.
    pub(crate) sent: Count,
    /// Lost on arrival: all frames of the store were in use.
    pub(crate) no_frame: u64,
    /// Lost on arrival: the kernel did not hand over all of it.
    pub(crate) truncated: u64,
    /// Lost on arrival: longer than the MTU allows.
    pub(crate) too_long: u64,
    /// Lost on arrival: an offload that can't be done in software.
    pub(crate) unsupported_offload: u64,
    /// Lost on arrival: super-packets of more tiny segments than the bytes that have arrived allow.
    pub(crate) tiny_segments: u64,
    /// Lost on departure: the other interface does not take such a frame.
    pub(crate) refused: u64,
    /// How often the socket had no room; the frames waited.
    pub(crate) socket_full: u64,
    /// Super-packets that were one packet of the tree.
    pub(crate) super_packets: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.sent += other.sent;
        self.no_frame += other.no_frame;
        self.truncated += other.truncated;
        self.too_long += other.too_long;
        self.unsupported_offload += other.unsupported_offload;
        self.tiny_segments += other.tiny_segments;
        self.refused += other.refused;
        self.socket_full += other.socket_full;
        self.super_packets += other.super_packets;
    }
}

/// A frame that is longer than the MTU allowed when the store was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// The most segments of a super-packet that are one packet of the tree. A super-packet of 64 KiB has 43 full
/// ones. One with more becomes several packets, so that each fits into a batch.
const MOST_SEGMENTS: usize = 64;

/// The frames of a packet for the tree.
#[derive(Clone, Copy, Debug)]
struct Frames {
    first: u32,
    last: u32,
    count: u32,
    /// The bytes of all of them on the link.
    length: u32,
}

impl Frames {
    fn one(number: u32, length: u32) -> Frames {
        Frames {
            first: number,
            last: number,
            count: 1,
            length,
        }
    }
}

/// How a turn of sending ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing more may leave now.
    Done,
    /// More may leave now.
    More,
    /// The socket has no room.
    Blocked,
    /// The interface can't send.
    Waiting,
}

/// A tree of disciplines between a receiving and a sending port.
pub(crate) struct Direction {
    /// The tree and its packets. A packet's cookie is the number of its first frame.
    pub(crate) link: Link<()>,
    pub(crate) counters: Counters,
    /// Time from arrival to departure from the tree, ns.
    pub(crate) sojourn: Histogram<u64>,
    pub(crate) rate: RateWindow,
    /// What became of packets, if somebody wants to know.
    pub(crate) log: Log,
    frames: FrameStore,
    delay_line: DelayLine,
    hasher: FlowHasher,
    identifications: Identifications,
    allowance: Allowance,
    /// The number of the last super-packet that was cut.
    super_packets: u32,
    /// What filters know the receiving port by.
    interface: u16,
    /// The bytes that are added to each frame's length as the tree counts it.
    overhead: i32,
    /// Whether the segments of a super-packet are one packet of the tree.
    takes_super_packets: bool,
    /// Whether no packet may leave before its time.
    keeps_times: bool,
    /// The hosts behind translated addresses, if the tree gets these instead.
    translations: Option<Arc<Translations>>,
    /// The tree's own time: that of its last packet, which may be ahead of the clock.
    time: Time,
    /// The books of one of several workers.
    shard: Option<Shard>,
}

/// The numbers by which filters select the left port and the right one.
const INTERFACES: [u16; 2] = [1, 2];

impl Direction {
    /// Builds the direction from the port at `side` (0 is left) as `plan` says, with an empty store.
    pub(crate) fn of_plan(
        plan: &Plan,
        side: usize,
        frames: FrameStore,
        randomness: &mut Randomness,
        slot: Option<&WorkerSlot>,
    ) -> Result<Direction, LiveError> {
        let queue = plan.tree_of(side, slot.map_or(0, |slot| slot.worker));
        let tree = queue.build_for_refills(randomness.seed())?;
        let delay = plan.delay.as_nanos() as u64;
        let (port, hasher) = (INTERFACES[side], randomness.hasher);
        let mut direction = Direction::new(port, tree, hasher, frames, delay);
        direction.overhead = plan.overhead;
        direction.set_super_packets(plan.takes_super_packets(side));
        direction.set_times(plan.keeps_times(side));
        direction.shard = slot.map(|slot| slot.shard(plan, side, randomness));
        Ok(direction)
    }

    /// Returns a direction from the port of this number. It holds as many frames as `frames`, which is empty,
    /// and delays them by `delay` ns.
    pub(crate) fn new(
        interface: u16,
        tree: Box<dyn Discipline>,
        hasher: FlowHasher,
        frames: FrameStore,
        delay: u64,
    ) -> Direction {
        let mut link = Link::new(tree, frames.most());
        link.allow_copies();
        Direction {
            link,
            counters: Counters::default(),
            sojourn: no_sojourns(),
            rate: RateWindow::default(),
            log: Log::default(),
            delay_line: DelayLine::new(delay, frames.most() as usize),
            frames,
            hasher,
            identifications: Identifications::default(),
            allowance: Allowance::new(),
            super_packets: 0,
            interface,
            overhead: 0,
            takes_super_packets: false,
            keeps_times: false,
            translations: None,
            time: Time::ZERO,
            shard: None,
        }
    }

    /// One of several workers gets its next rate, if it is time. Call it before frames are received.
    #[inline]
    pub(crate) fn exchange(&mut self, now: Time) {
        if let Some(shard) = &mut self.shard {
            shard.exchange(self.link.backlog().packets, now);
        }
    }

    /// The tree gets the addresses of hosts in the LAN from now on.
    pub(crate) fn set_translations(&mut self, translations: Arc<Translations>) {
        self.translations = Some(translations);
    }

    /// Changes what several workers share, together with the tree.
    pub(crate) fn set_shares(&mut self, limit: Option<Limit>, division: Option<&Arc<Division>>) {
        if let Some(shard) = &mut self.shard {
            shard.set_shares(limit, division);
        }
    }

    /// The tree's time at `now`: it never goes back.
    #[inline]
    pub(crate) fn tree_time(&mut self, now: Time) -> Time {
        self.time = self.time.max(now);
        self.time
    }

    /// Takes a received frame in: into the tree, as the one or many packets that the wire would carry.
    /// Returns the chunk that the socket gets in exchange, if the frame stays in the chunk that it was
    /// received into.
    ///
    /// # Errors
    /// If it is longer than the store has room for. Nothing has happened then.
    #[inline]
    pub(crate) fn accept(&mut self, received: &Received<'_>, now: Time) -> Result<Option<u32>, TooLong> {
        self.allowance.earn(received.bytes.len());
        if received.bytes.len() < received.length || received.bytes.len() < Tag::POSITION {
            self.counters.truncated += 1;
        } else if !received.offload.is_complete() {
            return self.accept_unfinished(received, now).map(|()| None);
        } else if received.bytes.len() > self.frames.longest() {
            return Err(TooLong);
        } else if received.tag.is_none() && self.frames.has(received.bytes) {
            let adopted = self.frames.adopt(received.bytes);
            self.enqueue_frame(adopted.map(|adopted| adopted.number), now);
            return Ok(adopted.map(|adopted| adopted.exchange));
        } else {
            let bytes = received.bytes;
            let stored = self.frames.store(received.tag, |out| {
                out[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            });
            self.enqueue_frame(stored, now);
        }
        Ok(None)
    }

    fn accept_unfinished(&mut self, received: &Received<'_>, now: Time) -> Result<(), TooLong> {
        let segments = Segments::new(received.bytes, received.offload, &mut self.identifications);
        let Ok(mut segments) = segments else {
            self.counters.unsupported_offload += 1;
            return Ok(());
        };
        if segments.longest() > self.frames.longest() {
            return Err(TooLong);
        }
        if segments.paid_by(&mut self.allowance).is_err() {
            self.counters.tiny_segments += 1;
            return Ok(());
        }
        self.super_packets = self.super_packets.wrapping_add(1);
        let most = match self.takes_super_packets {
            true => MOST_SEGMENTS as u32,
            false => 1,
        };
        let mut packet: Option<Frames> = None;
        while !segments.is_finished() {
            let part = match received.tag {
                None => segments.next_part(self.super_packets),
                Some(_) => None,
            };
            let stored = self.frames.store(received.tag, |out| segments.write_next(out));
            let Some(number) = stored else {
                // The rest of the super-packet finds no room either; it counts as one.
                self.counters.no_frame += 1;
                break;
            };
            if part.is_some() {
                self.frames.set_part(number, part);
            }
            let frames = match packet.take() {
                None => Frames::one(number, self.counted_length(number)),
                Some(before) => {
                    self.frames.append(before.last, number);
                    Frames {
                        last: number,
                        count: before.count + 1,
                        length: before.length + self.counted_length(number),
                        ..before
                    }
                }
            };
            match frames.count == most {
                true => self.enqueue(frames, now),
                false => packet = Some(frames),
            }
        }
        if let Some(rest) = packet {
            self.enqueue(rest, now);
        }
        Ok(())
    }

    /// Returns the length of a frame as the tree counts it.
    #[inline]
    fn counted_length(&self, number: u32) -> u32 {
        (self.frames.get(number).len() as u32).saturating_add_signed(self.overhead)
    }

    /// Makes room for frames of up to `longest` bytes.
    ///
    /// # Errors
    /// Fails if there is not enough memory. Nothing is lost.
    pub(crate) fn grow(&mut self, longest: usize) -> Result<(), Errno> {
        self.frames.grow(longest)
    }

    /// Returns the store.
    pub(crate) fn frames(&mut self) -> &mut FrameStore {
        &mut self.frames
    }

    /// Enqueues the frame with this number, or counts that there was no room to store it.
    #[inline]
    fn enqueue_frame(&mut self, stored: Option<u32>, now: Time) {
        match stored {
            Some(number) => self.enqueue(Frames::one(number, self.counted_length(number)), now),
            None => self.counters.no_frame += 1,
        }
    }

    /// Enqueues a packet. All of its frames are handled as the first one.
    #[inline]
    fn enqueue(&mut self, frames: Frames, now: Time) {
        let number = frames.first;
        self.counters.super_packets += u64::from(frames.count > 1);
        let frame = self.frames.get(number);
        let mut headers = dissect(frame, LinkType::Ethernet);
        headers.key.interface = self.interface;
        if let Some(translations) = &self.translations {
            translations.undo(&mut headers.key, self.interface == INTERFACES[0]);
        }
        let mut packet = headers.packet(frames.length, &self.hasher);
        packet.cookie = u64::from(number);
        packet.memory = self.frames.chunk() * frames.count;
        if let Some(shard) = &mut self.shard {
            shard.arrived(number, &headers.key, packet.flow);
        }
        let needs = self.link.needs();
        let arrival = Arrival {
            packet,
            headers: Some(headers.key),
            acknowledgement: match needs.acknowledgements {
                true => headers.acknowledgement(frame),
                false => None,
            },
            bytes: match needs.bytes {
                true => Some(HeaderBytes::of_frame(frame, LinkType::Ethernet)),
                false => None,
            },
        };
        let time = self.tree_time(now);
        // The verdict is for senders that can be told; these are on another machine.
        self.link
            .enqueue(arrival, (), time)
            .expect("there are as many packets as frames, and a frame was free");
        self.enqueue_copies(time);
        self.free_dropped();
    }

    /// Copies the frames of packets that the last call to the tree has duplicated, and enqueues the copies.
    /// Returns whether there were any.
    #[inline]
    fn enqueue_copies(&mut self, time: Time) -> bool {
        let (frames, counters) = (&mut self.frames, &mut self.counters);
        self.link.enqueue_copies(time, |original, ()| {
            let copy = frames.duplicate(original as u32);
            counters.no_frame += u64::from(copy.is_none());
            copy.map(|number| (number.into(), ()))
        })
    }

    /// Says whether super-packets are packets of the tree from now on.
    pub(crate) fn set_super_packets(&mut self, are_taken: bool) {
        self.takes_super_packets = are_taken;
    }

    /// Says whether packets have times before which they may not leave, from now on.
    pub(crate) fn set_times(&mut self, are_kept: bool) {
        self.keeps_times = are_kept;
    }

    /// Returns whether packets have times before which they may not leave.
    #[inline]
    pub(crate) fn keeps_times(&self) -> bool {
        self.keeps_times
    }

    /// Prepares a change of the tree. If the next tree does not take super-packets, and some may be queued,
    /// all packets move to the line, in the order in which the tree sends them. A tree that takes
    /// super-packets holds nothing back, so all of them may leave now.
    #[cold]
    pub(crate) fn before_change(&mut self, will_take_super_packets: bool, now: Time) {
        if self.takes_super_packets && !will_take_super_packets {
            while let Some(departure) = self.next_packet(now, 0) {
                self.enter_line(&departure, now);
            }
        }
    }

    /// Enqueues the copies and frees the frames that a change of the tree has left.
    pub(crate) fn settle(&mut self, time: Time) {
        self.enqueue_copies(time);
        self.free_dropped();
    }

    /// Frees the frames of packets that the last call to the tree dropped.
    #[inline]
    pub(crate) fn free_dropped(&mut self) {
        while let Some(dropped) = self.link.take_dropped() {
            let number = dropped.slot.cookie as u32;
            if let Some(shard) = &mut self.shard {
                shard.dropped(number);
            }
            let mut rest = Some(number);
            while let Some(number) = rest {
                if self.log.is_kept() {
                    let (frame, outcome) = (self.frames.get(number), Outcome::Dropped(dropped.reason));
                    self.log
                        .note(&dropped.slot, dropped.node, outcome, self.time, frame);
                }
                rest = self.frames.following(number);
                self.frames.free(number);
            }
        }
    }

    /// Sends what may leave by `now`, and what its tree lets leave within `ahead` ns after that.
    pub(crate) fn send(&mut self, now: Time, ahead: u64, port: &mut impl Exit) -> Result<Turn, Errno> {
        self.rate.update(now, self.counters.sent.bytes);
        while let Some(number) = port.completed() {
            self.frames.take_back(number);
        }
        if !self.empty_line(now, port)? {
            return Ok(Turn::Blocked);
        }
        // One batch in a turn, so that the other direction gets its own.
        let moved = self.fill_line(now, ahead);
        if !self.empty_line(now, port)? {
            return Ok(Turn::Blocked);
        }
        Ok(match moved >= self.most_moved() {
            true => Turn::More,
            false => Turn::Done,
        })
    }

    /// The number of frames at which a turn ends.
    fn most_moved(&self) -> usize {
        match self.takes_super_packets {
            true => BATCH - (MOST_SEGMENTS - 1),
            false => BATCH,
        }
    }

    /// Moves up to a batch of frames from the tree to the line; returns how many. They may leave by `now`, or
    /// within `ahead` ns after that if packets have no times.
    #[inline]
    pub(crate) fn fill_line(&mut self, now: Time, ahead: u64) -> usize {
        let ahead = if self.keeps_times { 0 } else { ahead };
        let mut moved = 0;
        while moved < self.most_moved()
            && let Some(departure) = self.next_packet(now, ahead)
        {
            moved += self.enter_line(&departure, now);
        }
        if !self.takes_super_packets {
            // Segments that leave together are joined if they are neighbours. Flows take turns in most trees.
            let frames = &self.frames;
            self.delay_line
                .gather(moved, |number| frames.part(number).map(|part| part.super_packet));
        }
        moved
    }

    /// The next packet that may leave now, or is due within `ahead` ns: another wake-up is not worth it.
    #[inline]
    fn next_packet(&mut self, now: Time, ahead: u64) -> Option<Departure<()>> {
        let mut time = self.tree_time(now);
        loop {
            if let Some(shard) = &mut self.shard
                && self.link.backlog().packets > 0
                && let Err(due) = shard.may_send(time)
            {
                if due > now + ahead {
                    return None;
                }
                time = self.tree_time(due);
                continue;
            }
            let next = self.link.dequeue(time);
            let is_copied = self.enqueue_copies(time);
            self.free_dropped();
            if let Some(shard) = &mut self.shard {
                match &next {
                    Next::Packet(departure) => {
                        shard.sent(departure.slot.cookie as u32, departure.slot.length);
                    }
                    Next::Wait(_) => shard.throttled(),
                    Next::Idle => {}
                }
            }
            time = match next {
                Next::Packet(departure) => return Some(departure),
                // The copies may leave now.
                _ if is_copied => time,
                Next::Wait(due) if due <= now + ahead => self.tree_time(due),
                Next::Wait(_) | Next::Idle => return None,
            };
        }
    }

    /// Writes what the tree changed into a packet's frames, and puts the frames into the line. Returns how
    /// many they are.
    #[inline]
    fn enter_line(&mut self, departure: &Departure<()>, now: Time) -> usize {
        let packet = &departure.slot;
        let mut rest = Some(packet.cookie as u32);
        let mut count = 0;
        while let Some(number) = rest {
            if self.log.is_kept() {
                // Before the frame is changed.
                let frame = self.frames.get(number);
                self.log.note(packet, departure.node, Outcome::Sent, now, frame);
            }
            if packet.is_marked() {
                set_ce(self.frames.get_mut(number), LinkType::Ethernet);
            }
            if packet.is_remarked() {
                set_dscp(self.frames.get_mut(number), LinkType::Ethernet, packet.dscp);
            }
            if packet.is_corrupted() {
                let frame = self.frames.get_mut(number);
                if let Some(bit) = packet.corrupted_bit(frame.len()) {
                    frame[(bit / 8) as usize] ^= 1 << (bit % 8);
                }
                // Joined, it would get a new checksum.
                self.frames.set_part(number, None);
            }
            self.delay_line.push(number, now);
            rest = self.frames.following(number);
            count += 1;
        }
        self.sojourn
            .saturating_record_n(now.nanos_since(packet.enqueued_at), count);
        count as usize
    }

    /// Sends the frames that have come out of the line. False if the socket has no room for the next one.
    #[inline]
    fn empty_line(&mut self, now: Time, port: &mut impl Exit) -> Result<bool, Errno> {
        loop {
            let frames = &self.frames;
            let (sent, result) = port.send(self.delay_line.due(now).map(|number| frames.outgoing(number)));
            let keeps = port.keeps_sent();
            for _ in 0..sent {
                let (number, length) = self.leave_line();
                self.counters.sent.add(length);
                match keeps {
                    true => self.frames.lend(number),
                    false => self.frames.free(number),
                }
            }
            match result {
                Ok(()) if sent < BATCH => return Ok(true),
                Ok(()) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                    self.counters.socket_full += 1;
                    return Ok(false);
                }
                Err(Errno::EMSGSIZE) => self.send_long(now, port),
                // A runt, a TAP device that is down for the moment: goes on without it.
                Err(Errno::EINVAL | Errno::EIO) => {
                    let (number, _) = self.leave_line();
                    self.frames.free(number);
                    self.counters.refused += 1;
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// Sends the frame at the end of the line, which is longer than the MTU: by its tag, or it is lost.
    #[cold]
    fn send_long(&mut self, now: Time, port: &mut impl Exit) {
        let frames = &self.frames;
        let frame = self.delay_line.due(now).next().map(|number| frames.get(number));
        let sent = port.send_tagged(frame.expect("the port was handed this frame"));
        let (number, length) = self.leave_line();
        self.frames.free(number);
        match sent {
            Ok(()) => self.counters.sent.add(length),
            Err(_) => self.counters.refused += 1,
        }
    }

    /// Takes the frame at the end of the line; returns its number and its length.
    #[inline]
    fn leave_line(&mut self) -> (u32, u32) {
        let number = self
            .delay_line
            .pop()
            .expect("a frame from the line was handed to the port");
        (number, self.frames.get(number).len() as u32)
    }

    /// Moves all packets from the tree to the line, in the order of their flows.
    #[cold]
    pub(crate) fn end_waiting(&mut self, now: Time) {
        let mut departures = Vec::with_capacity(self.link.backlog().packets as usize);
        self.link.drain(|departure| departures.push(departure));
        for departure in &departures {
            self.enter_line(departure, now);
        }
    }

    /// Sends the frames of the line, whatever its delay.
    #[cold]
    pub(crate) fn send_waiting(&mut self, port: &mut impl Exit) -> Result<Turn, Errno> {
        Ok(match self.empty_line(Time::MAX, port)? {
            true => Turn::Done,
            false => Turn::Blocked,
        })
    }

    /// When [`Direction::send`] will have something to do, if nothing arrives before.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        let is_backlogged = self.link.backlog().packets > 0;
        let watchdog = is_backlogged.then(|| self.link.root().watchdog()).flatten();
        let watchdog = match &self.shard {
            Some(shard) => shard.next(watchdog, is_backlogged),
            None => watchdog,
        };
        match (watchdog, self.delay_line.next_due()) {
            (Some(tree), Some(line)) => Some(tree.min(line)),
            (tree, line) => tree.or(line),
        }
    }

    /// Returns whether the tree has packets and none may leave now: a shaper waits, or the worker for its
    /// part of the rate. A tree that keeps times does not count: its packets must not wait any longer.
    pub(crate) fn is_paced(&self) -> bool {
        if self.keeps_times {
            return false;
        }
        let is_held_back = || self.shard.as_ref().is_some_and(Shard::is_held_back);
        self.link.backlog().packets > 0 && (self.link.root().watchdog().is_some() || is_held_back())
    }

    /// Frames between tree and socket.
    pub(crate) fn in_delay_line(&self) -> usize {
        self.delay_line.len()
    }
}

#[cfg(test)]
mod super_packet_tests;
#[cfg(test)]
mod tests;

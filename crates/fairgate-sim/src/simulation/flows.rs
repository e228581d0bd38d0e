//! The flows that are there now.
//!
//! A flow has a place from its start until it is over: until it has ended and none of its packets is in the
//! network. Events name the place. A place is given to another flow only when no event that starts or stops
//! the last one is left, so that these events always reach the flow that they were made for. The event of a
//! timer may reach a later flow. It does nothing there, because a flow knows when its own timers are due.

use std::mem::offset_of;

use fairgate::{Count, Time};

use crate::monitor::{FlowMonitor, FlowSeries, Lost};
use crate::network::{Origin, Template};
use crate::prefetch::{Start, prefetch};
use crate::traffic::{End, Source};

/// A flow that is there now. What is needed for each packet comes first.
#[repr(C)]
pub(super) struct LiveFlow {
    pub(super) start: Start,
    /// When its source stopped, or its last transfer arrived.
    pub(super) ended: Option<Time>,
    pub(super) monitor: FlowMonitor,
    /// How many intervals have passed since a packet arrived.
    pub(super) quiet_intervals: u32,
    /// Acknowledgement packets.
    pub(super) acknowledged: Acknowledged,
    pub(super) source: Source,
    pub(super) data: Template,
    pub(super) acknowledgements: Template,
    /// The same two of further connections.
    pub(super) more: Vec<[Template; 2]>,
    /// The index in the scenario's flows.
    pub(super) entry: u32,
    /// The index of the group.
    pub(super) group: u32,
    /// The number among the copies of the entry, from 0.
    pub(super) copy: u32,
    pub(super) started: Time,
    pub(super) stop: Time,
    /// `None` if it has no row of results.
    pub(super) series: Option<Box<FlowSeries>>,
}

/// The acknowledgement packets of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acknowledged {
    pub(super) sent: Count,
    pub(super) received: Count,
}

impl LiveFlow {
    /// The length of what each packet needs, from the start on, bytes.
    pub(super) const HOT: usize = offset_of!(LiveFlow, more);

    /// Returns whether nothing of the flow is left: it has ended, no packet of it is in the network, and none
    /// follows.
    pub(super) fn is_over(&self, lost: &[Lost]) -> bool {
        let of_data = &lost[self.data.origin.index()];
        let of_acknowledgements = &lost[self.acknowledgements.origin.index()];
        let acknowledged = self.acknowledged.sent.packets + of_acknowledgements.copied().packets;
        self.ended.is_some()
            && self.monitor.outstanding(of_data) == of_data.count.packets
            && acknowledged - self.acknowledged.received.packets == of_acknowledgements.count.packets
            && self.source.is_quiet()
    }
}

/// A place for a flow.
#[derive(Default)]
struct FlowSlot {
    flow: Option<Box<LiveFlow>>,
    /// The number of future events that start or stop what is here.
    events: u32,
}

/// The flows that are there now, by place.
#[derive(Default)]
pub(super) struct LiveFlows {
    places: Vec<FlowSlot>,
    /// The places without a flow or events.
    free: Vec<u32>,
}

impl LiveFlows {
    /// Returns the place of the next flow.
    pub(super) fn vacancy(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.places.len() as u32)
    }

    /// Returns the number of places that were ever taken.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Puts a flow at the [`vacancy`](LiveFlows::vacancy).
    pub(super) fn insert(&mut self, flow: LiveFlow) {
        let place = self.vacancy() as usize;
        debug_assert_eq!(
            flow.data.origin,
            Origin {
                flow: place as u32,
                back: false
            }
        );
        if self.free.pop().is_none() {
            self.places.push(FlowSlot::default());
        }
        self.places[place].flow = Some(Box::new(flow));
    }

    /// Returns the flow at a place, if one is there.
    #[inline]
    pub(super) fn get(&mut self, place: u32) -> Option<&mut LiveFlow> {
        self.places[place as usize].flow.as_deref_mut()
    }

    /// Returns the flow that a packet belongs to.
    #[inline]
    pub(super) fn owner(&mut self, place: u32) -> &mut LiveFlow {
        self.get(place)
            .expect("a flow stays until its packets have left the network")
    }

    /// Prefetches the first `bytes` bytes of a flow's state. The place may be empty.
    #[inline]
    pub(super) fn prefetch(&self, place: u32, bytes: usize) {
        if let Some(flow) = self
            .places
            .get(place as usize)
            .and_then(|place| place.flow.as_deref())
        {
            prefetch(&flow.start, 0, bytes);
        }
    }

    /// Prefetches what an end of a flow's source needs for a packet.
    #[inline]
    pub(super) fn prefetch_source(&self, place: u32, end: End) {
        if let Some(flow) = self.places[place as usize].flow.as_deref() {
            flow.source.prefetch(end);
        }
    }

    /// Prefetches the lists in which an end looks for a packet.
    #[inline]
    pub(super) fn prefetch_lists(&self, place: u32, end: End) {
        let Some(flow) = self.places[place as usize].flow.as_deref() else {
            return;
        };
        match end {
            End::Sender => flow.source.prefetch_outstanding(),
            End::Receiver => flow.monitor.prefetch_delay(),
        }
    }

    /// Takes a flow out.
    pub(super) fn remove(&mut self, place: u32) -> Option<Box<LiveFlow>> {
        let flow = self.places[place as usize].flow.take()?;
        self.free_unless_used(place);
        Some(flow)
    }

    /// Notes that an event which starts or stops the flow at this place was scheduled.
    #[inline]
    pub(super) fn event_scheduled(&mut self, place: u32) {
        self.places[place as usize].events += 1;
    }

    /// Notes that such an event has occurred.
    #[inline]
    pub(super) fn event_occurred(&mut self, place: u32) {
        let place_now = &mut self.places[place as usize];
        place_now.events -= 1;
        if place_now.flow.is_none() {
            self.free_unless_used(place);
        }
    }

    fn free_unless_used(&mut self, place: u32) {
        if self.places[place as usize].events == 0 {
            self.free.push(place);
        }
    }

    /// Returns all flows, by place.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LiveFlow> {
        self.places
            .iter_mut()
            .filter_map(|place| place.flow.as_deref_mut())
    }
}

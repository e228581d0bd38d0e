//! The workload of the benchmarks: one packet in and one packet out, with two packets of each flow always
//! queued.
//!
//! A packet of 1000 bytes arrives every 100 ns. It belongs to the flow whose packet was dequeued last. Flows
//! are distinguished by their hash alone. There are four times as many queues as flows, so that few flows
//! share a queue. Limits are never reached and CoDel's target is a second, so nothing is dropped. Disciplines
//! are called as drivers call them, through `Box<dyn Discipline>`.

mod subjects;

use std::hint::black_box;

use fairgate::{ClassId, Discipline, FlowHash, Packet, PacketId, Pool, Time};

use subjects::LEAD;
pub(crate) use subjects::{SUBJECTS, Subject};

/// The numbers of flows to measure.
pub(crate) const FLOWS: [u32; 4] = [1, 64, 1024, 16_384];

/// A driver of one discipline.
pub(crate) struct Pairs {
    pool: Pool,
    root: Box<dyn Discipline>,
    now: Time,
    /// How long after its arrival a packet wants to depart, ns; 0 for a discipline without departure times.
    lead: u64,
    /// The flow of the next packet, which is the flow of the packet dequeued last.
    flow: u64,
}

impl Pairs {
    /// Creates the driver with two packets queued for each flow.
    pub(crate) fn new(subject: Subject, flows: u32) -> Pairs {
        let mut pairs = Pairs {
            pool: Pool::with_capacity(2 * flows + 1),
            root: subject.1(flows),
            now: Time::from_secs(1),
            lead: if subject.0 == "etf" {
                LEAD.as_nanos() as u64
            } else {
                0
            },
            flow: 0,
        };
        for _ in 0..2 {
            for flow in 0..flows {
                pairs.flow = flow.into();
                let id = pairs.arrive();
                pairs.root.enqueue(id, pairs.now, &mut pairs.pool);
            }
        }
        pairs
    }

    /// Enqueues one packet and dequeues one.
    #[inline]
    pub(crate) fn step(&mut self) {
        let id = self.arrive();
        self.root.enqueue(id, self.now, &mut self.pool);
        let sent = self
            .root
            .dequeue(self.now, &mut self.pool)
            .expect("there is a backlog and nothing is throttled");
        self.leave(sent);
    }

    /// Runs the driver's own part of a step.
    #[inline]
    pub(crate) fn step_without_discipline(&mut self) {
        let id = self.arrive();
        // Without this, the compiler would see both ends and remove the code between them.
        black_box(&mut self.pool);
        self.leave(id);
    }

    #[inline]
    fn arrive(&mut self) -> PacketId {
        self.now += 100;
        let packet = Packet {
            flow: FlowHash::from_raw((self.flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            cookie: self.flow,
            stamp: if self.lead > 0 {
                self.now.nanos() + self.lead
            } else {
                0
            },
            priority: (self.flow % 16) as u8,
            class: ClassId::new(1, self.flow as u16 + 1),
            ..Packet::of_length(1000)
        };
        self.pool.insert(packet).expect("there is a slot for each packet")
    }

    #[inline]
    fn leave(&mut self, id: PacketId) {
        assert!(self.pool.take_returned().is_none(), "nothing is dropped");
        self.flow = black_box(self.pool.release(id).cookie);
    }
}

//! A packet as Python sees it: in a discipline written in Python, or one that a program enqueues by hand.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU8, Ordering};

use fairgate::flow::FlowHasher;
use fairgate::{ClassId, Ecn, FlowHash, FlowKey, Packet as Descriptor, PacketId, Slot};
use pyo3::prelude::*;

use crate::errors;

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Place {
    /// In the discipline that it was enqueued at.
    Queued,
    /// The discipline dropped it.
    Dropped,
    /// The discipline returned it from `dequeue`.
    Dequeued,
    /// It was taken away: by a flush, or because the discipline was replaced.
    Flushed,
    /// A program has made it, and no discipline has it.
    Outside,
}

/// The bits of a DSCP.
const DSCP: u8 = 63;

#[pyclass(frozen, module = "fairgate")]
pub(crate) struct Packet {
    /// Its slot, while it is in a discipline written in Python.
    id: Option<PacketId>,
    /// Which discipline has it. 0: none.
    pub(crate) owner: u64,
    place: AtomicU8,
    /// Its number, from 1 in the order of arrival at a discipline, or as the program chose.
    #[pyo3(get)]
    pub(crate) number: u64,
    #[pyo3(get)]
    length: u32,
    #[pyo3(get)]
    flow: u64,
    #[pyo3(get)]
    mark: u32,
    #[pyo3(get)]
    priority: u8,
    dscp: AtomicU8,
    ecn: AtomicU8,
    class: ClassId,
    key: Option<FlowKey>,
}

impl Packet {
    /// Returns the packet in a slot.
    pub(crate) fn of_slot(
        id: PacketId,
        slot: &Slot,
        key: Option<FlowKey>,
        owner: u64,
        number: u64,
    ) -> Packet {
        Packet {
            id: Some(id),
            owner,
            place: AtomicU8::new(Place::Queued as u8),
            number,
            length: slot.length,
            flow: slot.flow.raw(),
            mark: slot.mark,
            priority: slot.priority,
            dscp: AtomicU8::new(slot.dscp),
            ecn: AtomicU8::new(slot.ecn as u8),
            class: slot.class,
            key,
        }
    }

    /// Returns the slot.
    ///
    /// # Panics
    /// If the packet is in no discipline written in Python.
    pub(crate) fn id(&self) -> PacketId {
        self.id.expect("a packet of this discipline has a slot")
    }

    pub(crate) fn place(&self) -> Place {
        match self.place.load(Ordering::Relaxed) {
            0 => Place::Queued,
            1 => Place::Dropped,
            2 => Place::Dequeued,
            3 => Place::Flushed,
            _ => Place::Outside,
        }
    }

    pub(crate) fn put(&self, place: Place) {
        self.place.store(place as u8, Ordering::Relaxed);
    }

    /// Returns a packet of its own with the same content, as `netem` makes a duplicate.
    pub(crate) fn copy(&self) -> Packet {
        Packet {
            id: None,
            owner: 0,
            place: AtomicU8::new(Place::Outside as u8),
            dscp: AtomicU8::new(self.dscp.load(Ordering::Relaxed)),
            ecn: AtomicU8::new(self.ecn.load(Ordering::Relaxed)),
            ..*self
        }
    }

    /// Takes over what a discipline has changed.
    pub(crate) fn update(&self, slot: &Slot) {
        self.dscp.store(slot.dscp, Ordering::Relaxed);
        self.ecn.store(slot.ecn as u8, Ordering::Relaxed);
    }

    /// Returns the descriptor for a discipline, and the header fields if the packet has any.
    pub(crate) fn descriptor(&self, hasher: &FlowHasher) -> (Descriptor, Option<FlowKey>) {
        let hash = match &self.key {
            Some(key) => hasher.five_tuple(key),
            None => self.hash(hasher),
        };
        let descriptor = Descriptor {
            flow: hash,
            cookie: self.number,
            class: self.class,
            mark: self.mark,
            priority: self.priority,
            dscp: self.dscp.load(Ordering::Relaxed),
            ecn: Ecn::from_bits(self.ecn.load(Ordering::Relaxed)),
            ..Descriptor::of_length(self.length)
        };
        (descriptor, self.key)
    }

    /// Returns the keyed hash of a flow that is only a number.
    fn hash(&self, hasher: &FlowHasher) -> FlowHash {
        let [high, low] = [self.flow >> 32, self.flow & u64::from(u32::MAX)].map(|half| half as u32);
        let addresses = [high, low].map(|bits| IpAddr::from(bits.to_be_bytes()));
        hasher.five_tuple(&FlowKey::of(addresses[0], addresses[1], 0, 0, 0))
    }
}

#[pymethods]
impl Packet {
    #[new]
    #[pyo3(signature = (
        length, *, flow = 0, number = 0, mark = 0, priority = 0, dscp = 0, ecn = 0, class_id = None,
        source = None, destination = None, protocol = 17, source_port = 0, destination_port = 0
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        length: &Bound<'_, PyAny>,
        flow: u64,
        number: u64,
        mark: u32,
        priority: u8,
        dscp: u8,
        ecn: u8,
        class_id: Option<(u16, u16)>,
        source: Option<IpAddr>,
        destination: Option<IpAddr>,
        protocol: u8,
        source_port: u16,
        destination_port: u16,
    ) -> PyResult<Packet> {
        let length = match length.extract::<u32>() {
            Ok(length) if (1..=1 << 24).contains(&length) => length,
            _ => {
                let message = format!("the length is {length}, but must be from 1 to 16777216 bytes");
                return Err(errors::refused(py, &message));
            }
        };
        let checks = [
            ("priority", priority, 15),
            ("DSCP", dscp, DSCP),
            ("ECN field", ecn, 3),
        ];
        for (name, value, most) in checks {
            if value > most {
                let message = format!("the {name} is {value}, but must be from 0 to {most}");
                return Err(errors::refused(py, &message));
            }
        }
        let key = match (source, destination) {
            (Some(from), Some(to)) if from.is_ipv4() == to.is_ipv4() => {
                let mut key = FlowKey::of(from, to, protocol, source_port, destination_port);
                key.traffic_class = dscp << 2 | ecn;
                Some(key)
            }
            (None, None) => None,
            _ => {
                let message =
                    "a packet has two addresses of one family, or none; give source and destination";
                return Err(errors::refused(py, message));
            }
        };
        Ok(Packet {
            id: None,
            owner: 0,
            place: AtomicU8::new(Place::Outside as u8),
            number,
            length,
            flow,
            mark,
            priority,
            dscp: AtomicU8::new(dscp),
            ecn: AtomicU8::new(ecn),
            class: class_id.map_or(ClassId::NONE, |(major, minor)| ClassId::new(major, minor)),
            key,
        })
    }

    #[getter]
    fn dscp(&self) -> u8 {
        self.dscp.load(Ordering::Relaxed)
    }

    #[getter]
    fn ecn(&self) -> u8 {
        self.ecn.load(Ordering::Relaxed)
    }

    #[getter]
    fn class_id(&self) -> Option<(u16, u16)> {
        (self.class != ClassId::NONE).then(|| (self.class.major(), self.class.minor()))
    }

    #[getter]
    fn source(&self) -> Option<IpAddr> {
        self.key.as_ref().and_then(|key| address(key, key.source))
    }

    #[getter]
    fn destination(&self) -> Option<IpAddr> {
        self.key.as_ref().and_then(|key| address(key, key.destination))
    }

    #[getter]
    fn source_port(&self) -> Option<u16> {
        self.key.as_ref().map(|key| key.source_port)
    }

    #[getter]
    fn destination_port(&self) -> Option<u16> {
        self.key.as_ref().map(|key| key.destination_port)
    }

    #[getter]
    fn protocol(&self) -> Option<u8> {
        self.key.as_ref().map(|key| key.protocol)
    }

    fn __repr__(&self) -> String {
        let (number, length, flow) = (self.number, self.length, self.flow);
        format!("<packet {number} of {length} bytes, flow {flow:x}>")
    }
}

fn address(key: &FlowKey, octets: [u8; 16]) -> Option<IpAddr> {
    match key.ethertype {
        0x0800 => Some(IpAddr::from(octets).to_canonical()),
        0x86dd => Some(IpAddr::from(octets)),
        _ => None,
    }
}

//! A packet as Python sees it: in a discipline written in Python, or one that a program enqueues by hand.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use fairgate::flow::FlowHasher;
use fairgate::{ClassId, Ecn, FlowHash, FlowKey, Packet as Descriptor, PacketId, Slot};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::errors;

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum PacketState {
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

/// No bit is wrong.
const NO_BIT: u64 = u64::MAX;

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
    /// The number of the wrong bit, or [`NO_BIT`].
    corrupted_bit: AtomicU64,
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
            place: AtomicU8::new(PacketState::Queued as u8),
            number,
            length: slot.length,
            flow: slot.flow.raw(),
            mark: slot.mark,
            priority: slot.priority,
            dscp: AtomicU8::new(slot.dscp),
            ecn: AtomicU8::new(slot.ecn as u8),
            corrupted_bit: AtomicU64::new(slot.corrupted_bit(slot.length as usize).unwrap_or(NO_BIT)),
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

    pub(crate) fn place(&self) -> PacketState {
        match self.place.load(Ordering::Relaxed) {
            0 => PacketState::Queued,
            1 => PacketState::Dropped,
            2 => PacketState::Dequeued,
            3 => PacketState::Flushed,
            _ => PacketState::Outside,
        }
    }

    pub(crate) fn put(&self, place: PacketState) {
        self.place.store(place as u8, Ordering::Relaxed);
    }

    /// Returns a packet of its own with the same content, as `netem` makes a duplicate.
    pub(crate) fn copy(&self) -> Packet {
        Packet {
            id: None,
            owner: 0,
            place: AtomicU8::new(PacketState::Outside as u8),
            dscp: AtomicU8::new(self.dscp.load(Ordering::Relaxed)),
            ecn: AtomicU8::new(self.ecn.load(Ordering::Relaxed)),
            corrupted_bit: AtomicU64::new(NO_BIT),
            ..*self
        }
    }

    /// Takes over what a discipline has changed.
    pub(crate) fn update(&self, slot: &Slot) {
        self.dscp.store(slot.dscp, Ordering::Relaxed);
        self.ecn.store(slot.ecn as u8, Ordering::Relaxed);
        let bit = slot.corrupted_bit(slot.length as usize).unwrap_or(NO_BIT);
        self.corrupted_bit.store(bit, Ordering::Relaxed);
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
        length, *, flow = None, number = None, mark = None, priority = None, dscp = None, ecn = None,
        class_id = None, source = None, destination = None, protocol = None, source_port = None,
        destination_port = None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        length: &Bound<'_, PyAny>,
        flow: Option<&Bound<'_, PyAny>>,
        number: Option<&Bound<'_, PyAny>>,
        mark: Option<&Bound<'_, PyAny>>,
        priority: Option<&Bound<'_, PyAny>>,
        dscp: Option<&Bound<'_, PyAny>>,
        ecn: Option<&Bound<'_, PyAny>>,
        class_id: Option<&Bound<'_, PyAny>>,
        source: Option<&Bound<'_, PyAny>>,
        destination: Option<&Bound<'_, PyAny>>,
        protocol: Option<&Bound<'_, PyAny>>,
        source_port: Option<&Bound<'_, PyAny>>,
        destination_port: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Packet> {
        let py = length.py();
        let length = number_in("length", length, 1..=1 << 24)? as u32;
        let whole = |name, value: Option<&Bound<'_, PyAny>>, most| {
            value.map_or(Ok(0), |value| number_in(name, value, 0..=most))
        };
        let flow = whole("flow", flow, u64::MAX)?;
        let number = whole("number", number, u64::MAX)?;
        let mark = whole("mark", mark, u32::MAX.into())? as u32;
        let priority = whole("priority", priority, 15)? as u8;
        let dscp = whole("DSCP", dscp, DSCP.into())? as u8;
        let ecn = whole("ECN field", ecn, 3)? as u8;
        let protocol = protocol.map_or(Ok(UDP), |value| {
            number_in("protocol", value, 0..=u8::MAX.into()).map(|number| number as u8)
        })?;
        let port = |name, value| whole(name, value, u16::MAX.into()).map(|port| port as u16);
        let source_port = port("source port", source_port)?;
        let destination_port = port("destination port", destination_port)?;
        let class = class_id.map_or(Ok(ClassId::NONE), class_of)?;
        let (source, destination) = (
            source.map(|value| address_of("source", value)).transpose()?,
            destination
                .map(|value| address_of("destination", value))
                .transpose()?,
        );
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
            place: AtomicU8::new(PacketState::Outside as u8),
            number,
            length,
            flow,
            mark,
            priority,
            dscp: AtomicU8::new(dscp),
            ecn: AtomicU8::new(ecn),
            corrupted_bit: AtomicU64::new(NO_BIT),
            class,
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
    fn corrupted_bit(&self) -> Option<u64> {
        let bit = self.corrupted_bit.load(Ordering::Relaxed);
        (bit != NO_BIT).then_some(bit)
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

/// The number of UDP, the protocol of a packet that names none.
const UDP: u8 = 17;

/// Returns a whole number within a range. A flag is no number.
fn number_in(name: &str, value: &Bound<'_, PyAny>, range: RangeInclusive<u64>) -> PyResult<u64> {
    match value.extract::<u64>() {
        Ok(number) if range.contains(&number) && !value.is_instance_of::<PyBool>() => Ok(number),
        _ => {
            let (least, most) = range.into_inner();
            let message = format!("the {name} is {value}, but must be a whole number from {least} to {most}");
            Err(errors::refused(value.py(), &message))
        }
    }
}

fn class_of(value: &Bound<'_, PyAny>) -> PyResult<ClassId> {
    match value.extract::<(u16, u16)>() {
        Ok((major, minor)) => Ok(ClassId::new(major, minor)),
        Err(_) => {
            let message = format!(
                "the class is {value}, but must be (handle, number), each from 0 to 65535, such as (1, 20)"
            );
            Err(errors::refused(value.py(), &message))
        }
    }
}

fn address_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<IpAddr> {
    value.extract().map_err(|_| {
        let message = format!("the {name} is {value}, but must be an address of `ipaddress`, or its text");
        errors::refused(value.py(), &message)
    })
}

fn address(key: &FlowKey, octets: [u8; 16]) -> Option<IpAddr> {
    match key.ethertype {
        0x0800 => Some(IpAddr::from(octets).to_canonical()),
        0x86dd => Some(IpAddr::from(octets)),
        _ => None,
    }
}

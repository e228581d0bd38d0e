//! The flows of a run: what each of them sends, how long its packets wait, and its round trip times.
//!
//! A flow is known by addresses, ports and protocol, in one direction. One that has had no packet for a
//! minute is forgotten. If there are too many, the one that is forgotten is the longest idle one of a few, so
//! that a flood of small flows does not replace those that last.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use fairgate::Time;
use fairgate::flow::{FlowKey, LinkType, dissect};
use fairgate_run_api::{
    FlowOrder, FlowStatus, FlowsStatus, LanStatus, LossStatus, RoundTripStatus, SubscriberName,
};

use super::log::{Outcome, Record};
use super::losses::{Data, Losses};
use super::round_trips::{Measured, RoundTrips};
use crate::nat::{Endpoint, Translations};
use crate::rate::RateWindow;

/// The maximum number of flows: 16 MB.
const MOST: usize = 16_384;

/// How long a flow is kept after its last packet, ns.
const IDLE: u64 = 60_000_000_000;

/// How many flows are looked at to find one that makes room.
const PROBES: usize = 8;

/// A new delay counts by one part of this many.
const SMOOTHING: f64 = 16.0;

/// A flow of the direction from a side.
type FlowId = (usize, FlowKey);

/// The flows.
#[derive(Debug, Default)]
pub(super) struct Flows {
    places: HashMap<FlowId, usize>,
    flows: Vec<Flow>,
    /// Where the next search for an idle flow begins.
    hand: usize,
    forgotten: u64,
    /// Who is behind their addresses, if this router translates them.
    translations: Option<Arc<Translations>>,
}

#[derive(Debug)]
struct Flow {
    id: FlowId,
    /// The place in the LAN whose flow this is, if its address is translated.
    lan: Option<Endpoint>,
    first: Time,
    last: Time,
    packets: u64,
    bytes: u64,
    dropped: u64,
    marked: u64,
    /// The smoothed delay, ns.
    delay: f64,
    /// The worker and the number of the queue that the last packet was in.
    place: (usize, u32),
    rate: RateWindow,
    trips: RoundTrips,
    losses: Losses,
}

/// Names the queues of a run: that of a worker's node with this number, in the direction from a side.
pub(super) type Names<'n> = dyn Fn(usize, usize, u32) -> QueueName + 'n;

/// What users call a queue. All is empty if it is not there any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueName {
    /// The numbers of the classes to it, like `20/3`. Empty for the root.
    pub(crate) class: String,
    pub(crate) discipline: Cow<'static, str>,
    pub(crate) subscriber: Option<SubscriberName>,
}

impl Flows {
    /// Without flows. `translations` tell who is behind their addresses.
    pub(super) fn new(translations: Option<Arc<Translations>>) -> Flows {
        Flows {
            translations,
            ..Flows::default()
        }
    }

    /// Notes what became of a packet of a worker. Records come in the order in which they ended.
    pub(super) fn note(&mut self, worker: usize, side: usize, record: &Record<'_>) {
        let headers = dissect(record.bytes, LinkType::Ethernet);
        let key = identity(headers.key);
        let place = self.place((side, key), record.arrived);
        let flow = &mut self.flows[place];
        // The first packet of a connection may come before the kernel tells of it.
        if flow.lan.is_none()
            && let Some(translations) = &self.translations
        {
            flow.lan = translations.lan_of(&key, side == 0);
        }
        flow.last = record.ended;
        flow.place = (worker, record.node.raw());
        flow.marked += u64::from(record.is_marked);
        match record.outcome {
            Outcome::Dropped(_) => flow.dropped += 1,
            Outcome::Sent => {
                flow.packets += 1;
                let sojourn = record.sojourn() as f64;
                flow.delay += match flow.packets {
                    1 => sojourn,
                    _ => (sojourn - flow.delay) / SMOOTHING,
                };
                flow.rate.update(record.ended, flow.bytes);
                flow.bytes += u64::from(record.length);
            }
        }
        let Some(segment) = headers.acknowledgement(record.bytes) else {
            return;
        };
        // It is behind the first header: a tunnel's own one is in the way.
        let packet = headers
            .network_offset
            .and_then(|at| record.bytes.get(usize::from(at)..));
        if let Some(data) = packet.and_then(Data::of) {
            flow.losses.arrived(data, record.arrived);
        }
        let Some(timestamps) = segment.timestamps else {
            return;
        };
        if record.outcome == Outcome::Sent && !segment.is_pure {
            flow.trips.sent(timestamps.value, record.ended);
        }
        if segment.is_valid
            && let Some(&place) = self.places.get(&(1 - side, reversed(key)))
        {
            self.flows[place].trips.echoed(timestamps.echo, record.arrived);
        }
    }

    /// Notes that packets are missing among those that were noted: gaps in their numbers mean nothing.
    pub(super) fn note_missed(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.losses.begin_anew());
    }

    /// Returns the place of a flow. A new one gets one.
    fn place(&mut self, id: FlowId, now: Time) -> usize {
        if let Some(&place) = self.places.get(&id) {
            return place;
        }
        let flow = Flow {
            id,
            lan: None,
            first: now,
            last: now,
            packets: 0,
            bytes: 0,
            dropped: 0,
            marked: 0,
            delay: 0.0,
            place: (0, 0),
            rate: RateWindow::default(),
            trips: RoundTrips::default(),
            losses: Losses::default(),
        };
        let place = match self.flows.len() {
            MOST => {
                let place = self.longest_idle();
                self.places.remove(&self.flows[place].id);
                self.flows[place] = flow;
                self.forgotten += 1;
                place
            }
            next => {
                self.flows.push(flow);
                next
            }
        };
        self.places.insert(id, place);
        place
    }

    /// Returns the longest idle one of the next few flows.
    fn longest_idle(&mut self) -> usize {
        let probed = (0..PROBES).map(|step| (self.hand + step) % self.flows.len());
        let found = probed.min_by_key(|&place| self.flows[place].last);
        self.hand = (self.hand + PROBES) % self.flows.len();
        found.expect("some are looked at")
    }

    /// Forgets the flows that have had no packet for a minute.
    pub(super) fn expire(&mut self, now: Time) {
        let mut place = 0;
        while let Some(flow) = self.flows.get(place) {
            if now.nanos_since(flow.last) <= IDLE {
                place += 1;
                continue;
            }
            self.places.remove(&flow.id);
            self.flows.swap_remove(place);
            if let Some(moved) = self.flows.get(place) {
                self.places.insert(moved.id, place);
            }
        }
    }

    /// Returns the first `limit` flows of an order. `names` are those of the ends.
    pub(super) fn status(
        &mut self,
        now: Time,
        order: FlowOrder,
        limit: usize,
        ends: [&str; 2],
        names: &Names<'_>,
    ) -> FlowsStatus {
        self.expire(now);
        let mut sorted: Vec<(f64, usize)> = (0..self.flows.len())
            .map(|place| (self.flows[place].weight(order, now), place))
            .collect();
        sorted.sort_by(|(one, at), (other, after)| other.total_cmp(one).then(at.cmp(after)));
        sorted.truncate(limit);
        let flows = sorted
            .into_iter()
            .map(|(_, place)| self.flows[place].status(now, ends, names))
            .collect();
        FlowsStatus {
            observed_s: 0.0,
            active: self.flows.len() as u64,
            forgotten: self.forgotten,
            missed_packets: 0,
            flows,
        }
    }
}

impl Flow {
    fn weight(&mut self, order: FlowOrder, now: Time) -> f64 {
        match order {
            FlowOrder::Rate => self.rate.bits_per_second(now, self.bytes),
            FlowOrder::Bytes => self.bytes as f64,
            FlowOrder::Delay => self.delay,
            FlowOrder::Dropped => self.dropped as f64,
            FlowOrder::RoundTrip => self.trips.measured().map_or(0.0, |trips| trips.median as f64),
        }
    }

    fn status(&mut self, now: Time, ends: [&str; 2], names: &Names<'_>) -> FlowStatus {
        let (side, key) = self.id;
        let (worker, node) = self.place;
        let queue = names(worker, side, node);
        let [source, destination] = key.addresses().map(|address| address.to_string());
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let trips = |trips: Measured| RoundTripStatus {
            latest: millis(trips.latest),
            minimum: millis(trips.minimum),
            median: millis(trips.median),
        };
        FlowStatus {
            from: ends[side].to_owned(),
            source,
            source_port: key.source_port,
            destination,
            destination_port: key.destination_port,
            lan: self.lan.map(|lan| LanStatus {
                address: Ipv6Addr::from(lan.address).to_canonical().to_string(),
                port: lan.port,
            }),
            protocol: protocol(&key),
            class: queue.class,
            discipline: queue.discipline.into_owned(),
            subscriber: queue.subscriber,
            rate_bps: self.rate.bits_per_second(now, self.bytes),
            bytes: self.bytes,
            packets: self.packets,
            dropped: self.dropped,
            marked: self.marked,
            delay_ms: self.delay / 1e6,
            round_trip_ms: self.trips.measured().map(trips),
            lost_before: Some(self.losses.recent(now))
                .filter(|counted| counted.segments > 0)
                .map(|counted| LossStatus {
                    segments: counted.segments,
                    lost: counted.lost,
                }),
            age_s: now.nanos_since(self.first) as f64 / 1e9,
            idle_s: now.nanos_since(self.last) as f64 / 1e9,
        }
    }
}

/// Returns what identifies the flow of a packet: addresses, ports and protocol.
fn identity(key: FlowKey) -> FlowKey {
    FlowKey {
        flow_label: 0,
        traffic_class: 0,
        interface: 0,
        ..key
    }
}

/// Returns the flow in the opposite direction.
fn reversed(key: FlowKey) -> FlowKey {
    FlowKey {
        source: key.destination,
        destination: key.source,
        source_port: key.destination_port,
        destination_port: key.source_port,
        ..key
    }
}

/// Returns the name of the protocol above IP, or that of what is not IP.
fn protocol(key: &FlowKey) -> String {
    match (key.ethertype, key.protocol) {
        (0x0800 | 0x86dd, number) => match number {
            1 => "icmp".to_owned(),
            2 => "igmp".to_owned(),
            6 => "tcp".to_owned(),
            17 => "udp".to_owned(),
            33 => "dccp".to_owned(),
            47 => "gre".to_owned(),
            50 => "esp".to_owned(),
            58 => "icmpv6".to_owned(),
            132 => "sctp".to_owned(),
            136 => "udplite".to_owned(),
            number => number.to_string(),
        },
        (0x0806, _) => "arp".to_owned(),
        (ethertype, _) => format!("0x{ethertype:04x}"),
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{PacketBuilder, TcpOptionElement};
    use fairgate::{DropReason, NodeNumber};

    use super::*;

    const LEFT: [u8; 4] = [192, 0, 2, 1];
    const RIGHT: [u8; 4] = [198, 51, 100, 7];

    /// A segment with timestamps, from the left host or to it.
    fn segment(is_from_left: bool, value: u32, echo: u32, payload: usize) -> Vec<u8> {
        let (source, destination, ports) = match is_from_left {
            true => (LEFT, RIGHT, [50_000, 443]),
            false => (RIGHT, LEFT, [443, 50_000]),
        };
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(source, destination, 64)
            .tcp(ports[0], ports[1], 1, 1000)
            .ack(77)
            .options(&[TcpOptionElement::Timestamp(value, echo)])
            .unwrap()
            .write(&mut frame, &vec![0; payload])
            .unwrap();
        frame
    }

    fn udp(source: [u8; 4], port: u16) -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(source, RIGHT, 64)
            .udp(port, 53)
            .write(&mut frame, &[0; 100])
            .unwrap();
        frame
    }

    fn record(frame: &[u8], arrived: u64, ended: u64, outcome: Outcome) -> Record<'_> {
        Record {
            arrived: Time::from_millis(arrived),
            ended: Time::from_millis(ended),
            node: NodeNumber::from_raw(3),
            length: frame.len() as u32,
            outcome,
            is_marked: false,
            bytes: frame,
        }
    }

    fn status(flows: &mut Flows, millis: u64, order: FlowOrder) -> FlowsStatus {
        let names = |worker, side, node| QueueName {
            class: format!("{worker}/{side}/{node}"),
            discipline: "fq_codel".into(),
            subscriber: None,
        };
        flows.status(Time::from_millis(millis), order, 100, ["eth0", "eth1"], &names)
    }

    /// A download: data from the right, acknowledgements from the left. The queue towards the left takes
    /// 10 ms, the way from here to the left host and back 2 ms.
    #[test]
    fn a_flow_shows_what_it_sends_and_its_round_trip() {
        let mut flows = Flows::default();
        for number in 0..20 {
            let began = 1_000 + 40 * u64::from(number);
            let data = segment(false, 500 + number, 900, 1_000);
            let outcome = match number {
                5 => Outcome::Dropped(DropReason::Aqm),
                _ => Outcome::Sent,
            };
            flows.note(1, 1, &record(&data, began, began + 10, outcome));
            if number != 5 {
                let acknowledgement = segment(true, 901, 500 + number, 0);
                flows.note(
                    1,
                    0,
                    &record(&acknowledgement, began + 12, began + 13, Outcome::Sent),
                );
            }
        }
        let status = status(&mut flows, 1_900, FlowOrder::Bytes);
        assert_eq!(status.active, 2);
        let [down, up] = &status.flows[..] else {
            panic!("there are two directions")
        };
        let length = segment(false, 1, 1, 1_000).len() as u64;
        assert_eq!((down.from.as_str(), down.protocol.as_str()), ("eth1", "tcp"));
        assert_eq!(
            (down.source.as_str(), down.destination.as_str()),
            ("198.51.100.7", "192.0.2.1")
        );
        assert_eq!((down.source_port, down.destination_port), (443, 50_000));
        assert_eq!((down.packets, down.bytes, down.dropped), (19, 19 * length, 1));
        assert_eq!(
            (down.class.as_str(), down.discipline.as_str()),
            ("1/1/3", "fq_codel")
        );
        assert!((down.delay_ms - 10.0).abs() < 1e-9, "{}", down.delay_ms);
        assert!(
            (down.rate_bps - 19.0 * 8.0 * length as f64).abs() < 1.0,
            "{}",
            down.rate_bps
        );
        let trips = down.round_trip_ms.unwrap();
        assert_eq!([trips.latest, trips.minimum, trips.median], [2.0; 3]);
        // The left host sends no data, so nobody acknowledges its packets.
        assert_eq!((up.round_trip_ms, up.packets), (None, 19));
    }

    #[test]
    fn a_flood_of_new_flows_leaves_those_that_go_on() {
        let mut flows = Flows::default();
        let lasting = udp(LEFT, 7);
        for number in 0..200_000_u32 {
            let millis = u64::from(number / 100);
            if number % 100 == 0 {
                flows.note(0, 0, &record(&lasting, millis, millis, Outcome::Sent));
            }
            let [_, b, c, d] = number.to_be_bytes();
            let flood = udp([10, b, c, d], 9);
            flows.note(0, 0, &record(&flood, millis, millis, Outcome::Sent));
            assert!(flows.flows.len() <= MOST && flows.places.len() == flows.flows.len());
        }
        let status = status(&mut flows, 2_000, FlowOrder::Rate);
        assert_eq!(status.active as usize, MOST);
        assert_eq!(status.forgotten as usize, 200_001 - MOST);
        assert_eq!((status.flows[0].source_port, status.flows[0].packets), (7, 2_000));
    }

    #[test]
    fn a_flow_is_forgotten_after_a_minute() {
        let mut flows = Flows::default();
        for port in 1..=5 {
            flows.note(
                0,
                0,
                &record(
                    &udp(LEFT, port),
                    1_000 * u64::from(port),
                    1_000 * u64::from(port),
                    Outcome::Sent,
                ),
            );
        }
        let seen = status(&mut flows, 62_500, FlowOrder::Bytes);
        let mut ports: Vec<u16> = seen.flows.iter().map(|flow| flow.source_port).collect();
        ports.sort_unstable();
        assert_eq!(ports, [3, 4, 5]);
        for (id, &place) in &flows.places {
            assert_eq!(flows.flows[place].id, *id);
        }
    }
}

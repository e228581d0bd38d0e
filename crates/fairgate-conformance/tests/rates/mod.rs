//! Every discipline that shapes or polices keeps to its rate: from 1 kbit/s to 100 Gbit/s, with packets of 64
//! to 9000 bytes, over every interval. Each ceiling is derived from what the discipline documents.

use std::collections::BTreeSet;
use std::time::Duration;

use fairgate::classify::{Classifier, Filter, Measure, Outcome, Police};
use fairgate::queues::token_bucket::{Peak, Profile};
use fairgate::queues::{busy_link, cbs, fifo, leaky_bucket, netem, policer, prio, tbf};
use fairgate::registry::{Registry, Unit};
use fairgate::rounds::{cake, fq};
use fairgate::sharding::{self, Sharded};
use fairgate::sharing::{cbq, hfsc, htb};
use fairgate::{ClassId, Discipline, LinkLayer, Packet, Rate};
use fairgate_conformance::proptest::option;
use fairgate_conformance::proptest::prelude::*;
use fairgate_conformance::{Ceiling, LONGEST, Traffic, check_ceilings, traffic};

/// The longest packet, bytes.
const PACKET: u64 = LONGEST as u64;

/// Returns a rate from 1 kbit/s to 100 Gbit/s. Each order of magnitude is equally likely, and so are both
/// ends.
fn rates() -> impl Strategy<Value = Rate> {
    rates_from(3)
}

/// The same from 10^`digits` bit/s on.
fn rates_from(digits: u32) -> impl Strategy<Value = Rate> {
    let bits = prop_oneof![
        1 => Just(10u64.pow(digits)),
        8 => (digits..11, 100u64..=1000).prop_map(|(digits, first)| first * 10u64.pow(digits) / 100),
        1 => Just(100_000_000_000),
    ];
    bits.prop_map(super::configs::rate)
}

/// Returns the depth of a bucket that holds the longest packet.
fn bursts() -> impl Strategy<Value = u32> {
    LONGEST..4 * LONGEST
}

fn ceiling(rate: Rate, bytes: u64, nanos: u64) -> Ceiling {
    Ceiling { rate, bytes, nanos }
}

fn queue() -> Box<dyn Discipline> {
    Box::new(fifo::Fifo::node(fifo::Config::default()).expect("these settings are allowed"))
}

fn boxed(discipline: impl Discipline + 'static) -> Box<dyn Discipline> {
    Box::new(discipline)
}

fn times(rate: Rate, factor: u64) -> Rate {
    super::configs::rate(rate.bits_per_second() * factor)
}

/// A packet of class 1, for trees whose leaf is that class.
fn packet() -> Packet {
    Packet {
        class: ClassId::new(1, 1),
        ..Packet::of_length(LONGEST)
    }
}

fn classifier() -> Classifier {
    Classifier {
        handle: 1,
        ..Classifier::default()
    }
}

/// Two buckets of a profile, which pay before a packet leaves.
fn ceilings_of(profile: &Profile) -> Vec<Ceiling> {
    let of_rate = ceiling(profile.rate, profile.burst.into(), 0);
    let of_peak = profile.peak.map(|peak| ceiling(peak.rate, peak.mtu.into(), 0));
    [of_rate].into_iter().chain(of_peak).collect()
}

fn profiles() -> impl Strategy<Value = Profile> {
    (rates(), bursts(), option::of((2u64..20, bursts()))).prop_map(|(rate, burst, peak)| Profile {
        peak: peak.map(|(factor, mtu)| Peak {
            rate: times(rate, factor),
            mtu,
        }),
        ..Profile::new(rate, burst)
    })
}

proptest! {
    #[test]
    fn tbf(profile in profiles(), traffic in traffic()) {
        let config = tbf::Config { profile, limit: Some(tbf::Limit::Bytes(1 << 40)) };
        let shaper = boxed(tbf::Tbf::node(config, None).unwrap());
        check_ceilings(shaper, packet(), profile.rate, &traffic, &ceilings_of(&profile));
    }

    #[test]
    fn policer(profile in profiles(), traffic in traffic()) {
        let config = policer::Config { profile, exceed: policer::Exceed::Drop };
        let policer = boxed(policer::Policer::node(config, queue()).unwrap());
        check_ceilings(policer, packet(), profile.rate, &traffic, &ceilings_of(&profile));
    }

    #[test]
    fn policer_of_a_filter(profile in profiles(), is_exact in any::<bool>(), traffic in traffic()) {
        let measure = if is_exact { Measure::ExactBytes(profile) } else { Measure::Bytes(profile) };
        let filter = Filter {
            police: Some(Police { measure, ..Police::of(profile) }),
            outcome: Outcome::Class(1),
            ..Filter::default()
        };
        let mut config = prio::Config { priomap: [0; 16], ..prio::Config::default() };
        config.classifier.filters = vec![filter].into();
        let bands = boxed(prio::Prio::node(config, vec![queue()]).unwrap());
        check_ceilings(bands, Packet::of_length(LONGEST), profile.rate, &traffic, &ceilings_of(&profile));
    }

    /// No burst: a packet leaves when the one before it has been sent.
    #[test]
    fn leaky_bucket(rate in rates(), traffic in traffic()) {
        let config = leaky_bucket::Config { rate, bucket: 1 << 40 };
        let shaper = boxed(leaky_bucket::LeakyBucket::node(config).unwrap());
        check_ceilings(shaper, packet(), rate, &traffic, &[ceiling(rate, PACKET, 0)]);
    }

    /// A packet leaves while the credit is not negative, and it is at most `hicredit`.
    #[test]
    fn cbs(rate in rates(), port in 2u64..1000, hicredit in 0..LONGEST, traffic in traffic()) {
        let config = cbs::Config {
            idleslope: rate,
            sendslope: times(rate, port - 1),
            hicredit,
            locredit: LONGEST,
        };
        let shaper = boxed(cbs::Cbs::node(config, Some(queue())).unwrap());
        let bytes = PACKET + u64::from(hicredit);
        check_ceilings(shaper, packet(), rate, &traffic, &[ceiling(rate, bytes, 0)]);
    }

    /// Packets arrive in time; those that a late driver finds leave together.
    #[test]
    fn netem(rate in rates(), traffic in traffic()) {
        let link = netem::LinkRate { rate, packet_overhead: 0, cell_size: 0, cell_overhead: 0 };
        let config = netem::Config { rate: Some(link), ..netem::Config::default() };
        let network = boxed(netem::Netem::node(config, 1, None).unwrap());
        check_ceilings(network, packet(), rate, &traffic, &[ceiling(rate, PACKET, Traffic::latest(rate))]);
    }

    /// The same, and after an idle time a packet begins earlier by the time of the burst.
    #[test]
    fn busy_link(rate in rates(), burst in 0..4 * LONGEST, traffic in traffic()) {
        let config = busy_link::Config { burst, ..busy_link::Config::of_rate(rate) };
        let link = boxed(busy_link::BusyLink::node(config, 1, queue()).unwrap());
        let bytes = PACKET + u64::from(burst);
        check_ceilings(link, packet(), rate, &traffic, &[ceiling(rate, bytes, Traffic::latest(rate))]);
    }

    /// A flow at a low rate is paced from its first packet on. After a late packet a pause is shorter by at
    /// most half.
    #[test]
    fn fq_at_a_low_rate(rate in rates(), traffic in traffic()) {
        let config = fq::Config {
            maxrate: Some(rate),
            low_rate_threshold: Some(rate),
            flow_limit: 1000,
            ..fq::Config::default()
        };
        let flows = boxed(fq::Fq::node(config, 1).unwrap());
        check_ceilings(flows, packet(), rate, &traffic, &[ceiling(rate, PACKET + PACKET / 2, 0)]);
    }

    /// At a higher rate a flow sends a quantum, exceeded by a packet, for each pause. It is not paced while
    /// it has credit: the initial quantum, again after three seconds, and a quantum after `refill_delay`. So
    /// it has these rates beside `maxrate`.
    #[test]
    fn fq_at_a_high_rate(rate in rates(), quantum in bursts(), traffic in traffic()) {
        let config = fq::Config {
            maxrate: Some(rate),
            low_rate_threshold: None,
            flow_limit: 1000,
            quantum,
            initial_quantum: 2 * quantum,
            refill_delay: Duration::from_nanos(rate.transmission_nanos(u64::from(quantum) + PACKET)),
            ..fq::Config::default()
        };
        let flows = boxed(fq::Fq::node(config, 1).unwrap());
        let initial = 2 * u64::from(quantum);
        let bytes = initial + 2 * (u64::from(quantum) + PACKET);
        let with_credit = super::configs::rate(2 * rate.bits_per_second() + (initial * 8).div_ceil(3));
        check_ceilings(flows, packet(), rate, &traffic, &[ceiling(with_credit, bytes, 0)]);
    }

    /// During a backlog the time that a late driver loses is regained. The lowest bandwidth is 8192 bit/s.
    #[test]
    fn cake(rate in rates_from(4), traffic in traffic()) {
        let config = cake::Config { bandwidth: Some(rate), ..cake::Config::default() };
        let cake = boxed(cake::Cake::node(config, 1).unwrap());
        check_ceilings(cake, packet(), rate, &traffic, &[ceiling(rate, PACKET, Traffic::latest(rate))]);
    }

    /// A leaf that borrows keeps to its ceil, and one that does not to both. A packet leaves while there are
    /// tokens, and is paid for then. Depths are rounded to ticks of 64 ns, and are a minute at most. With a
    /// burst for a time, its rate takes the place of the ceil.
    #[test]
    fn htb(
        rate in rates(), factor in 1u64..8, borrows in any::<bool>(), burst in 64..4 * LONGEST,
        cburst in 64..4 * LONGEST, for_a_time in option::of((2u64..5, 1u64..100, 16u64..4000)),
        traffic in traffic(),
    ) {
        let ceil = times(rate, factor);
        let most = for_a_time.map_or(ceil, |(factor, ..)| times(ceil, factor));
        let within_a_minute = |burst: u32, rate: Rate| {
            burst.min(u32::try_from(rate.bits_per_second() / 8 * 59).unwrap_or(u32::MAX))
        };
        let (burst, cburst) = (within_a_minute(burst, rate), within_a_minute(cburst, ceil));
        let mut classes = vec![htb::ClassConfig {
            ceil: Some(ceil),
            burst: Some(burst),
            cburst: Some(cburst),
            burst_rate: for_a_time.map(|_| most),
            burst_threshold: for_a_time
                .map(|(_, percent, _)| super::configs::rate(most.bits_per_second() * percent / 100)),
            burst_time: for_a_time.map(|(.., millis)| Duration::from_millis(millis)),
            ..htb::ClassConfig::of_rate(1, borrows.then_some(2), rate)
        }];
        if borrows {
            classes.push(htb::ClassConfig::of_rate(2, None, times(ceil, 2)));
        }
        let config = htb::Config { classifier: classifier(), classes, ..htb::Config::default() };
        let tree = boxed(htb::Htb::node(config, vec![queue()]).unwrap());
        let mut ceilings = vec![ceiling(most, u64::from(cburst) + PACKET, 64)];
        if !borrows {
            ceilings.push(ceiling(rate, u64::from(burst) + PACKET, 64));
        }
        check_ceilings(tree, packet(), rate, &traffic, &ceilings);
    }

    /// Times are ticks of 64 ns and slopes have 24 binary digits, rounded up.
    #[test]
    fn hfsc(rate in rates(), traffic in traffic()) {
        let limit = hfsc::ServiceCurve::linear(rate.bits_per_second());
        let class = hfsc::ClassConfig { ul: Some(limit), ..hfsc::ClassConfig::of_rate(1, None, rate) };
        let own = hfsc::Config::default();
        let config = hfsc::Config { classifier: classifier(), classes: vec![class], ..own };
        let tree = boxed(hfsc::Hfsc::node(config, vec![queue()]).unwrap());
        let bytes = rate.bits_per_second().div_ceil(8);
        let ticks = 1_000_000_000 / 64;
        let slope = (u128::from(bytes) << 24).div_ceil(ticks);
        let rounded = super::configs::rate((slope * ticks * 8).div_ceil(1 << 24) as u64);
        let nanos = Traffic::latest(rate) + 2 * 64;
        check_ceilings(tree, packet(), rate, &traffic, &[ceiling(rounded, PACKET, nanos)]);
    }

    /// A class that may not borrow. The highest average is a burst. It is a limit after a packet was charged,
    /// so the first packet after a pause costs nothing, and a packet leaves while the average is above 0. Of
    /// a debt the average forgets a 32nd at each packet, so the class waits for 31 of 32 parts of it. The end
    /// of transmissions is computed up to 16 of the longest packets ahead of the clock.
    #[test]
    fn cbq(
        rate in rates(), factor in 1u64..1000, maxburst in 1u16..20, minburst in 1u16..20,
        traffic in traffic(),
    ) {
        let bandwidth = times(rate, factor);
        let class = cbq::ClassConfig {
            borrow: false,
            maxburst: Some(maxburst.max(minburst)),
            minburst: Some(minburst),
            ..cbq::ClassConfig::of_rate(1, None, rate)
        };
        let config = cbq::Config {
            classifier: classifier(),
            classes: vec![class],
            packet: 1514,
            max_packet: LONGEST,
            ..cbq::Config::of_bandwidth(bandwidth)
        };
        let tree = boxed(cbq::Cbq::node(config, vec![queue()]).unwrap());
        let waited = super::configs::rate((rate.bits_per_second() * 32).div_ceil(31));
        let (on_link, at_rate) = (bandwidth.transmission_nanos(1514), rate.transmission_nanos(1514));
        let grown = (32f64 / 31.0).powi(maxburst.max(minburst).into()) - 1.0;
        let average = (32.0 * at_rate as f64 * grown) as u64 + on_link;
        let nanos = average + 16 * bandwidth.transmission_nanos(PACKET);
        check_ceilings(tree, packet(), rate, &traffic, &[ceiling(waited, 2 * PACKET, nanos)]);
    }

    /// The burst, an interval, and a packet of each shard, which is paid for after it was sent. (It is called
    /// a hundred times a second, which takes the test too long at lower rates.)
    #[test]
    fn sharded(rate in rates_from(6), burst in 0..LONGEST, traffic in traffic()) {
        const SHARDS: u64 = 3;
        let limit = sharding::Limit { rate, burst, lengths: sharding::Lengths::LinkLayer(LinkLayer::NONE) };
        let config = sharding::Config { limit, key: sharding::Key::Flows(fairgate::flow::FlowBy::FiveTuple) };
        let trees = (0..SHARDS).map(|_| queue()).collect();
        let shards = boxed(Sharded::node(config, trees, 1).unwrap());
        let nanos = Traffic::latest(rate) + sharding::interval(rate);
        check_ceilings(shards, packet(), rate, &traffic, &[
            ceiling(rate, u64::from(burst) + SHARDS * PACKET, nanos),
        ]);
    }
}

/// Every parameter that is a rate or a curve is a ceiling of a test above, or is no ceiling.
#[test]
fn no_rate_is_forgotten() {
    let kept = [
        "tbf.rate",
        "tbf.peakrate",
        "policer.rate",
        "policer.peakrate",
        "leaky_bucket.rate",
        "cbs.idleslope",
        "netem.rate",
        "busy_link.rate",
        "fq.maxrate",
        "cake.bandwidth",
        "htb.rate",
        "htb.ceil",
        "htb.burst_rate",
        "hfsc.ul",
        "cbq.rate",
    ];
    let no_ceilings = [
        // The rate of the port is the sum of the two slopes.
        "cbs.sendslope",
        // The average up to which a burst goes on.
        "htb.burst_threshold",
        // The rate from which on fq counts in quanta.
        "fq.low_rate_threshold",
        // Rates of a link that something else limits: for idle times, loads and virtual times.
        "red.bandwidth",
        "ared.bandwidth",
        "rred.bandwidth",
        "wred.bandwidth",
        "choke.bandwidth",
        "cbq.bandwidth",
        "wfq.rate",
        "hfsc.rate",
        "pdrr.rate",
        "admission.rate",
        // Thresholds below which new flows are refused.
        "pdrr.fair_rate",
        "admission.fair_rate",
        // Shares and guarantees.
        "cbq.weight",
        "hfsc.ls",
        "hfsc.rt",
    ];
    let registry = Registry::builtin();
    let found: BTreeSet<String> = registry
        .iter()
        .flat_map(|entry| {
            let parameters = entry.parameters().into_iter().chain(entry.class_parameters());
            parameters
                .filter(|parameter| matches!(parameter.unit, Unit::Rate | Unit::Curve))
                .map(|parameter| format!("{}.{}", entry.about().name, parameter.name))
        })
        .collect();
    let listed: BTreeSet<String> = kept
        .iter()
        .chain(&no_ceilings)
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(found, listed);
}

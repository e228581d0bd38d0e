//! Shares, budgets and the wrap. The order itself is held against the kernel's traces in `fairgate-replay`.

use super::*;
use crate::classify::Classifier;
use crate::scheduler::{Flows, flows};
use crate::testing::{Driver, in_class};
use crate::{Node, Verdict};
use proptest::prelude::*;

fn qfq_plus(shares: &[Share], origin: u64) -> Driver<Flows<QfqPlus>> {
    let config = flows::ConfigOf::<QfqPlus> {
        flows: shares.len() as u32,
        shares: shares.to_vec(),
        classifier: Classifier {
            handle: 1,
            ..Classifier::default()
        },
        ..flows::Config::default()
    };
    Driver::new(Node::new(Flows::starting_at(config, 0, origin).unwrap()))
}

fn share(weight: u32, max_packet: u32) -> Share {
    Share { weight, max_packet }
}

#[test]
fn an_aggregate_is_a_cache_line_and_a_flow_a_quarter() {
    assert_eq!(size_of::<Flow>(), 16);
    assert_eq!(size_of::<Aggregate>(), 64);
}

#[test]
fn flows_of_equal_share_take_turns_packet_by_packet() {
    let mut driver = qfq_plus(&[share(1, 1000); 3], 0);
    for flow in [1, 1, 1, 2, 2, 2, 3, 3] {
        assert_eq!(driver.offer(in_class(flow, 1000), Time::ZERO), Verdict::Queued);
    }
    assert_eq!(driver.drain(Time::ZERO), [0, 3, 6, 1, 4, 7, 2, 5]);
}

#[test]
fn a_longer_packet_than_was_said_is_sent_all_the_same() {
    let mut driver = qfq_plus(&[share(1, 100), share(7, 100)], 0);
    for (flow, length) in [(1, 100), (2, 9000), (1, 5000), (2, 100)] {
        let _ = driver.offer(in_class(flow, length), Time::ZERO);
    }
    let mut sent = driver.drain(Time::ZERO);
    sent.sort_unstable();
    assert_eq!(sent, [0, 1, 2, 3]);
}

#[test]
fn shares_out_of_range_are_refused() {
    let refused = |share: Share| {
        let mut scheduler = QfqPlus::new(&(), 0).unwrap();
        scheduler.add_flow(&share).unwrap_err().parameter()
    };
    assert_eq!(refused(share(0, 1500)), Some("weight"));
    assert_eq!(refused(share(1, 0)), Some("max_packet"));
    assert_eq!(refused(share(1, MAX_PACKET + 1)), Some("max_packet"));
}

proptest! {
    /// While two flows are busy their service, each over its weight, differs by at most a few budgets of their aggregates,
    /// on both sides of virtual time's wrap.
    #[test]
    fn busy_flows_share_by_weight(
        weights in prop::collection::vec(1u32..20, 2..20),
        lengths in prop::collection::vec(1u32..1515, 40),
        before_wrap in prop::option::of(0u64..ONE * 5000),
    ) {
        let shares: Vec<_> = weights.iter().map(|&weight| share(weight, 1514)).collect();
        let mut driver = qfq_plus(&shares, before_wrap.map_or(0, |before| 0u64.wrapping_sub(before)));
        let mut lengths = lengths.iter().cycle();
        let mut offered = Vec::new();
        let mut served = vec![0f64; weights.len()];
        let mut next = 0;
        for step in 0..2000 {
            let arriving = if step == 0 { (0..weights.len()).chain(0..weights.len()).collect() } else { vec![next] };
            for flow in arriving {
                let length = *lengths.next().unwrap();
                offered.push((flow, length));
                let _ = driver.offer(in_class(flow as u16 + 1, length), Time::ZERO);
            }
            let (flow, length) = offered[driver.next(Time::ZERO).unwrap() as usize];
            next = flow;
            served[flow] += f64::from(length) / f64::from(weights[flow]);
            for (a, &of_a) in served.iter().enumerate() {
                for (b, &of_b) in served.iter().enumerate() {
                    // sigma is below twice a longest packet's time; theorem of the relative fairness of QFQ, for each side
                    // three slots and a budget of the aggregate.
                    let bound = (6.0 + 2.0) * 1514.0 * (1.0 / f64::from(weights[a]) + 1.0 / f64::from(weights[b]));
                    prop_assert!((of_a - of_b).abs() <= bound + 1.0, "{served:?} at weights {weights:?}");
                }
            }
        }
    }
}

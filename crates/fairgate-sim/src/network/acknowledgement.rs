//! What a simulated segment acknowledges, for disciplines that drop redundant acknowledgements.

use fairgate::FlowKey;
use fairgate::flow::{Acknowledgement, SackRanges, Timestamps};

use crate::tcp::{Flags, Segment};

/// Returns what a segment acknowledges, as its header would say it. Sequence numbers keep their lower 32
/// bits.
pub(super) fn acknowledgement(segment: &Segment, key: &FlowKey) -> Acknowledgement {
    let has = |flag| segment.flags.contains(flag);
    let [is_synchronising, is_valid] = [Flags::SYN, Flags::ACK].map(has);
    let is_control = is_synchronising || has(Flags::FIN) || has(Flags::PSH);
    // The counter of AccECN takes the place of three flags. The highest one is reserved in RFC 9293.
    let counter = match is_synchronising {
        true => 0,
        false => segment.accurate_ecn.packets() as u8,
    };
    let ecn_flags = u8::from(has(Flags::ECE)) << 6 | u8::from(has(Flags::CWR)) << 7 | counter << 6;
    let has_unknown_parts = counter & 4 != 0 || segment.accurate_ecn.bytes().is_some();
    let mut sack = SackRanges::default();
    for block in segment.sack.as_slice() {
        sack.push(block.start as u32, block.end as u32);
    }
    Acknowledgement {
        source: key.source,
        destination: key.destination,
        // The connections of a flow have the same ports here.
        ports: [
            key.source_port.wrapping_add(segment.connection),
            key.destination_port,
        ],
        number: segment.ack as u32,
        timestamps: Some(Timestamps {
            value: segment.timestamp,
            echo: segment.echo,
        }),
        sack,
        ecn_flags,
        is_valid: is_valid && !is_synchronising,
        is_pure: is_valid && !is_control && !has_unknown_parts && segment.length == 0,
    }
}

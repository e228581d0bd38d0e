//! Frames, as [`fairgate::flow::dissect()`] reads them and [`set_ce`] writes into them.

use fairgate::Ecn;
use fairgate::flow::{Dissection, FlowKey, LinkType, dissect, dissect_tunnelled, set_ce};

/// The first byte chooses the link type, the rest is the frame.
pub fn headers(bytes: &[u8]) {
    let Some((&choice, frame)) = bytes.split_first() else {
        return;
    };
    let link = LinkType::ALL[usize::from(choice) % LinkType::ALL.len()];
    let seen = dissect(frame, link);
    assert_eq!(dissect(frame, link), seen, "the same frame has the same flow");
    check_fields(&seen, frame);

    let inside = dissect_tunnelled(frame, link);
    check_fields(&inside, frame);
    assert_eq!(
        inside.network_offset, seen.network_offset,
        "the outer header is what can be marked"
    );
    assert_eq!(inside.key.traffic_class, seen.key.traffic_class);

    check_mark(frame, link, &seen);
}

fn check_fields(dissection: &Dissection, frame: &[u8]) {
    let key = dissection.key;
    match dissection.network_offset {
        Some(offset) => assert!(
            usize::from(offset) + 20 <= frame.len(),
            "an IP header has 20 bytes at least"
        ),
        None => assert_eq!(
            key,
            FlowKey {
                ethertype: key.ethertype,
                vlan: key.vlan,
                ..FlowKey::default()
            },
            "without an IP header nothing else is known"
        ),
    }
    assert!(key.vlan < 1 << 12 && key.flow_label < 1 << 20 && dissection.dscp() < 1 << 6);
}

/// A mark says CE afterwards, changes nothing else of the flow, and leaves a right checksum right.
fn check_mark(frame: &[u8], link: LinkType, before: &Dissection) {
    let mut marked = frame.to_vec();
    let done = set_ce(&mut marked, link);
    assert_eq!(done, before.network_offset.is_some() && before.ecn().is_capable());
    if !done {
        assert_eq!(marked, frame, "what can't be marked stays as it is");
        return;
    }
    let after = dissect(&marked, link);
    assert_eq!(after.ecn(), Ecn::Ce);
    let without_class = |dissection: &Dissection| FlowKey {
        traffic_class: dissection.key.traffic_class | Ecn::Ce as u8,
        ..dissection.key
    };
    assert_eq!(without_class(&after), without_class(before));
    let offset = usize::from(before.network_offset.expect("it was marked"));
    let header = |frame: &[u8]| checksum(&frame[offset..offset + 20]);
    if frame[offset] == 0x45 && header(frame) == 0 {
        assert_eq!(header(&marked), 0, "the checksum follows the mark");
    }
}

/// The Internet checksum (RFC 1071) of a header of even length: 0 if the checksum in it is right.
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

//! Checks frames with [`fairgate::flow::dissect()`], and changes of frames by [`set_ce`].

use fairgate::Ecn;
use fairgate::flow::{Dissection, FlowKey, LinkType, dissect, dissect_tunnelled, set_ce, set_dscp};

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
        "only the outer header can be marked"
    );
    assert_eq!(inside.key.traffic_class, seen.key.traffic_class);

    check_mark(frame, link, &seen);
    check_remark(frame, link, &seen);
}

fn check_fields(dissection: &Dissection, frame: &[u8]) {
    let key = dissection.key;
    match dissection.network_offset {
        Some(offset) => assert!(
            usize::from(offset) + 20 <= frame.len(),
            "an IP header has at least 20 bytes"
        ),
        None => assert_eq!(
            key,
            FlowKey {
                ethertype: key.ethertype,
                outer_ethertype: key.outer_ethertype,
                vlan: key.vlan,
                ..FlowKey::default()
            },
            "without an IP header no other field is known"
        ),
    }
    assert!(key.vlan < 1 << 12 && key.flow_label < 1 << 20 && dissection.dscp() < 1 << 6);
}

/// Checks that [`set_dscp`] changes the DSCP and no other field of the flow. A valid checksum must stay
/// valid.
fn check_remark(frame: &[u8], link: LinkType, before: &Dissection) {
    let mut remarked = frame.to_vec();
    let dscp = before.dscp() ^ 42;
    let done = set_dscp(&mut remarked, link, dscp);
    assert_eq!(done, before.network_offset.is_some());
    if !done {
        assert_eq!(remarked, frame, "a frame without a DSCP must not change");
        return;
    }
    let after = dissect(&remarked, link);
    assert_eq!((after.dscp(), after.ecn()), (dscp, before.ecn()));
    let rest = |dissection: &Dissection| FlowKey {
        traffic_class: 0,
        ..dissection.key
    };
    assert_eq!(rest(&after), rest(before));
    check_checksum(frame, &remarked, before);
}

/// Checks that [`set_ce`] sets CE and changes no other field of the flow. A valid checksum must stay valid.
fn check_mark(frame: &[u8], link: LinkType, before: &Dissection) {
    let mut marked = frame.to_vec();
    let done = set_ce(&mut marked, link);
    assert_eq!(done, before.network_offset.is_some() && before.ecn().is_capable());
    if !done {
        assert_eq!(marked, frame, "a frame that can't be marked must not change");
        return;
    }
    let after = dissect(&marked, link);
    assert_eq!(after.ecn(), Ecn::Ce);
    let without_class = |dissection: &Dissection| FlowKey {
        traffic_class: dissection.key.traffic_class | Ecn::Ce as u8,
        ..dissection.key
    };
    assert_eq!(without_class(&after), without_class(before));
    check_checksum(frame, &marked, before);
}

/// Checks that the checksum of an IPv4 header without options is still valid after a change, if it was valid
/// before.
fn check_checksum(frame: &[u8], changed: &[u8], before: &Dissection) {
    let offset = usize::from(before.network_offset.expect("the header was changed"));
    let header = |frame: &[u8]| checksum(&frame[offset..offset + 20]);
    if frame[offset] == 0x45 && header(frame) == 0 {
        assert_eq!(header(changed), 0, "the checksum must include the change");
    }
}

/// Returns the Internet checksum (RFC 1071) of a header of even length. It is 0 if the checksum in the header
/// is valid.
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

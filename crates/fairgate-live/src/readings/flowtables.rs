//! The flowtables of nftables, by netlink (linux/netfilter/nf_tables.h). The kernel forwards packets of known
//! connections by them, past its own stack. With the flag `offload` the hardware does, past the whole
//! machine.

use std::io;

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

use crate::nat::attributes;

/// `NFNL_SUBSYS_NFTABLES`, and the messages of flowtables.
const SUBSYSTEM: u16 = 10;
const NEW_FLOWTABLE: u16 = SUBSYSTEM << 8 | 22;
const GET_FLOWTABLE: u16 = SUBSYSTEM << 8 | 23;

/// Attributes of a flowtable, of its hook, and of the list of devices in that.
const TABLE: u16 = 1;
const NAME: u16 = 2;
const HOOK: u16 = 3;
const FLAGS: u16 = 7;
const HOOK_DEVICES: u16 = 3;
/// `NFT_FLOWTABLE_HW_OFFLOAD`
const OFFLOAD: u32 = 1;

/// The length of `struct nlmsghdr`, and of `struct nfgenmsg` after it.
const HEADER: usize = 16;
const GENERIC: usize = 4;
/// The longest answer of a dump (linux/netlink.h, `NLMSG_GOODSIZE`), and some room.
const LONGEST: usize = 64 << 10;

/// A flowtable of nftables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flowtable {
    /// The family of its table, as nft(8) calls it.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// The interfaces whose packets it forwards.
    pub devices: Vec<String>,
    /// Whether the hardware may forward them.
    pub is_offloaded: bool,
}

/// Returns all flowtables of this thread's network namespace. It needs `cap_net_admin`.
pub(super) fn all() -> io::Result<Vec<Flowtable>> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    let mut request = [0; HEADER + GENERIC];
    let length = request.len() as u32;
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&GET_FLOWTABLE.to_ne_bytes());
    let flags = netlink_packet_core::NLM_F_REQUEST | netlink_packet_core::NLM_F_DUMP;
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    // The family of `nfgenmsg` is 0: all families.
    socket.send_to(&request, &SocketAddr::new(0, 0), 0)?;
    let mut found = Vec::new();
    loop {
        let mut buffer = Vec::with_capacity(LONGEST);
        socket.recv(&mut buffer, 0)?;
        if is_complete(&buffer, &mut found)? {
            return Ok(found);
        }
    }
}

/// Reads messages. Returns whether the last one ends the dump.
fn is_complete(mut bytes: &[u8], found: &mut Vec<Flowtable>) -> io::Result<bool> {
    while let Some((kind, body, rest)) = first(bytes) {
        bytes = rest;
        let error = body.first_chunk().map_or(0, |error| i32::from_ne_bytes(*error));
        match kind {
            NEW_FLOWTABLE => found.extend(flowtable(body)),
            netlink_packet_core::NLMSG_DONE | netlink_packet_core::NLMSG_ERROR if error < 0 => {
                return Err(io::Error::from_raw_os_error(-error));
            }
            netlink_packet_core::NLMSG_DONE => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// Returns the kind and the body of the first message, and what follows it.
fn first(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(HEADER..length)?;
    Some((
        kind,
        body,
        bytes.get(length.next_multiple_of(4)..).unwrap_or_default(),
    ))
}

fn flowtable(body: &[u8]) -> Option<Flowtable> {
    let text = |bytes: &[u8]| {
        let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let mut found = Flowtable {
        family: family(*body.first()?),
        ..Flowtable::default()
    };
    for (kind, value) in attributes(body.get(GENERIC..)?) {
        match kind {
            TABLE => found.table = text(value),
            NAME => found.name = text(value),
            FLAGS => {
                let flags = value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
                found.is_offloaded = flags & OFFLOAD != 0;
            }
            HOOK => {
                let lists = attributes(value).filter(|(kind, _)| *kind == HOOK_DEVICES);
                let names = lists.flat_map(|(_, list)| attributes(list));
                found.devices = names.map(|(_, name)| text(name)).collect();
            }
            _ => {}
        }
    }
    Some(found)
}

/// Returns what nft(8) calls a family (`NFPROTO_`).
fn family(number: u8) -> String {
    match number {
        1 => "inet".to_owned(),
        2 => "ip".to_owned(),
        10 => "ip6".to_owned(),
        number => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = 4 + value.len();
        let mut bytes = (length as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(length.next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes
    }

    /// The flag of a nested attribute is set by the kernel.
    const NESTED: u16 = 1 << 15;

    #[test]
    fn flowtables_are_read() {
        let devices = [attribute(1, b"wan\0"), attribute(1, b"lan0\0")].concat();
        let hook = [attribute(1, &[0; 4]), attribute(NESTED | HOOK_DEVICES, &devices)].concat();
        let body = [
            vec![1, 0, 0, 0],
            attribute(TABLE, b"fw4\0"),
            attribute(NAME, b"ft\0"),
            attribute(NESTED | HOOK, &hook),
            attribute(FLAGS, &1u32.to_be_bytes()),
        ]
        .concat();
        let mut bytes = message(NEW_FLOWTABLE, &body);
        bytes.extend(message(netlink_packet_core::NLMSG_DONE, &[0; 4]));
        let mut found = Vec::new();
        assert!(is_complete(&bytes, &mut found).unwrap());
        let expected = Flowtable {
            family: "inet".to_owned(),
            table: "fw4".to_owned(),
            name: "ft".to_owned(),
            devices: vec!["wan".to_owned(), "lan0".to_owned()],
            is_offloaded: true,
        };
        assert_eq!(found, [expected]);
        let refused = message(netlink_packet_core::NLMSG_ERROR, &(-1i32).to_ne_bytes());
        assert_eq!(
            is_complete(&refused, &mut found).unwrap_err().raw_os_error(),
            Some(1)
        );
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_damaged(bytes in proptest::collection::vec(0u8.., 0..200)) {
            let body = message(NEW_FLOWTABLE, &bytes);
            let _ = is_complete(&body, &mut Vec::new());
            let _ = is_complete(&bytes, &mut Vec::new());
        }
    }
}

//! Reads everything in a qdisc of the kind `fairgate`, by generic netlink: `fairgate_netlink.h`.

use std::string::ToString;
use std::vec::Vec;

use super::failed::Failed;
use super::message::{Message, attribute, attributes, word};
use super::qdisc::Counters;
use super::socket::Socket;
use crate::nodes::{Record, records};

/// `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`, `CTRL_ATTR_VERSION`.
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const FAMILY_VERSION: u16 = 3;
/// `CTRL_CMD_GETFAMILY`.
const GET_FAMILY: u8 = 3;

/// `FAIRGATE_GENL_VERSION`.
const VERSION: u32 = 2;
const READ: u8 = 1;
const DEVICE: u16 = 1;
const HANDLE: u16 = 2;
const STATS: u16 = 3;
const PART: u16 = 4;

/// The length of `struct genlmsghdr`.
const COMMAND: usize = 4;

/// How often a reading begins anew because the tree has changed.
const ATTEMPTS: usize = 10;

/// A socket to the module.
#[derive(Debug)]
pub struct Reader {
    socket: Socket,
    family: u16,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// The counters of the qdisc.
    pub counters: Counters,
    /// What is in it. After a panic there is nothing.
    pub records: Vec<Record>,
}

impl Reader {
    /// Opens a socket, in the network namespace of this thread.
    ///
    /// # Errors
    /// With `ENOENT` if the module is not loaded. If its records have another form than this program reads.
    pub fn open() -> Result<Reader, Failed> {
        let mut socket = Socket::open(libc::NETLINK_GENERIC)?;
        let mut request = Message::new(libc::GENL_ID_CTRL as u16, 0, &[GET_FAMILY, 1, 0, 0]);
        request.text(FAMILY_NAME, "fairgate");
        let mut family = None;
        socket.find(request, &mut |_, payload| {
            let of = |wanted| attribute(payload.get(COMMAND..).unwrap_or_default(), wanted);
            let id = of(FAMILY_ID).and_then(|id| word(id, 0)).map(u16::from_ne_bytes);
            let version = of(FAMILY_VERSION).and_then(|version| word(version, 0));
            family = id.zip(version.map(u32::from_ne_bytes));
            Ok(())
        })?;
        let (family, version) = family.ok_or_else(|| Failed::damaged("the family has no number"))?;
        if version != VERSION {
            let said = format!("form {version} is not {VERSION}: update program and module together");
            return Err(Failed::said(libc::EPROTO, &said));
        }
        Ok(Reader { socket, family })
    }

    /// Reads the qdisc of an interface.
    ///
    /// # Errors
    /// With `ENOENT` if there is no such qdisc.
    pub fn read(&mut self, index: u32, handle: u32) -> Result<Contents, Failed> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.read_once(index, handle) {
                Err(failed) if failed.errno == libc::EAGAIN && attempts < ATTEMPTS => {}
                result => return result,
            }
        }
    }

    fn read_once(&mut self, index: u32, handle: u32) -> Result<Contents, Failed> {
        let mut request = Message::new(self.family, 0, &[READ, 1, 0, 0]);
        request.number(DEVICE, index);
        request.number(HANDLE, handle);
        let mut counters = None;
        let mut all = Vec::new();
        self.socket.dump(request, &mut |_, payload| {
            for (kind, bytes) in attributes(payload.get(COMMAND..).unwrap_or_default()) {
                match kind {
                    STATS => counters = Some(Counters::read(bytes)?),
                    PART => {
                        all.extend(records(bytes).map_err(|refused| Failed::damaged(&refused.to_string()))?);
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        let is_in_order = match all.first() {
            None => true,
            Some(Record::Node(node)) => node.depth == 0 && is_in_order(&all),
            Some(_) => false,
        };
        match counters {
            Some(counters) if is_in_order => Ok(Contents {
                counters,
                records: all,
            }),
            _ => Err(Failed::damaged("a part is missing")),
        }
    }
}

/// Whether no discipline is deeper than in a class of the one before it, and there is one root.
fn is_in_order(records: &[Record]) -> bool {
    let mut depths = records.iter().filter_map(|record| match record {
        Record::Node(node) => Some(node.depth),
        _ => None,
    });
    let mut above = depths.next();
    depths.all(|depth| {
        let fits = depth > 0 && above.is_some_and(|above| depth <= above + 1);
        above = Some(depth);
        fits
    })
}

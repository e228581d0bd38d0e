//! Qdiscs of the kind `fairgate`, by rtnetlink(7).

use std::string::String;
use std::vec::Vec;

use fairgate::{Count, DropCounts, DropReason, Statistics};

use super::failed::Failed;
use super::message::{HEADER, Message, attribute, text, word};
use super::socket::Socket;
use crate::tree::Plan;

/// `TC_H_ROOT`.
pub const ROOT: u32 = u32::MAX;

/// `TC_H_CLSACT`: the place of the qdisc that has the filters of an interface.
pub const CLSACT: u32 = 0xffff_fff1;

/// The length of `struct tcmsg`.
const TC: usize = 20;

/// Attributes in `TCA_OPTIONS`: `fairgate_netlink.h`.
const PLAN: u16 = 1;
const TEXT: u16 = 2;

/// The longest text that the kernel takes, bytes.
const MOST_TEXT: usize = 4000;

/// `TCA_STATS2`, and `TCA_STATS_APP` in it.
const STATS2: u16 = 7;
const STATS_APP: u16 = 4;

/// Where a qdisc or a filter is: `struct tcmsg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The index of the interface.
    pub index: u32,
    /// Its handle; 0 for any.
    pub handle: u32,
    /// The class above, or [`ROOT`].
    pub parent: u32,
    /// For filters: priority and protocol.
    pub info: u32,
}

impl Place {
    /// Returns the root of an interface.
    pub fn root(index: u32, handle: u32) -> Place {
        Place {
            index,
            handle,
            parent: ROOT,
            info: 0,
        }
    }

    /// Begins a request about it.
    pub fn message(&self, kind: u16, flags: i32) -> Message {
        Message::with(kind, flags, &[0, self.index, self.handle, self.parent, self.info])
    }
}

/// How a qdisc comes to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Make {
    /// It is made where none is.
    Add,
    /// The one that is there is changed.
    Change,
    /// It takes the place of whatever is there. One of the same handle is changed.
    Replace,
}

/// Sends a plan. `shown` is what `tc` prints of it.
///
/// # Errors
/// If the kernel refuses it. Then nothing was changed.
pub fn put(socket: &mut Socket, place: &Place, make: Make, plan: &Plan, shown: &str) -> Result<(), Failed> {
    let flags = match make {
        Make::Add => libc::NLM_F_CREATE | libc::NLM_F_EXCL,
        Make::Change => 0,
        Make::Replace => libc::NLM_F_CREATE | libc::NLM_F_REPLACE,
    };
    let mut message = place.message(libc::RTM_NEWQDISC, flags);
    message.text(libc::TCA_KIND, "fairgate");
    let plan = plan.to_bytes();
    // Behind the headers of two attributes.
    let begin = message.length() + 8;
    message.bytes(libc::TCA_OPTIONS, &options_with(&plan, shown)?);
    socket.ask(message).map_err(|failed| Failed {
        place: failed.place.and_then(|place| node_of(place, begin, plan.len())),
        ..failed
    })
}

/// Returns what is in the attribute `TCA_OPTIONS` of a request with this plan, for another program that sends
/// it.
///
/// # Errors
/// If it is too large for a message.
pub fn options(plan: &Plan, shown: &str) -> Result<Vec<u8>, Failed> {
    options_with(&plan.to_bytes(), shown)
}

fn options_with(plan: &[u8], shown: &str) -> Result<Vec<u8>, Failed> {
    let mut message = Message::new(0, 0, &[]);
    message.bytes(PLAN, plan);
    message.text(TEXT, &shown[..shown.floor_char_boundary(MOST_TEXT)]);
    Ok(message.finished(0)?.split_off(HEADER))
}

/// Returns the number of a discipline of a plan from its place in the request: `fairgate_netlink.h`.
fn node_of(place: u32, begin: usize, length: usize) -> Option<u32> {
    let node = place.checked_sub(u32::try_from(begin).ok()?)?;
    (node < u32::try_from(length).ok()?).then_some(node)
}

/// Deletes a qdisc of this kind.
///
/// # Errors
/// If there is none, or the kernel refuses.
pub fn delete(socket: &mut Socket, place: &Place, kind: &str) -> Result<(), Failed> {
    let mut message = place.message(libc::RTM_DELQDISC, 0);
    message.text(libc::TCA_KIND, kind);
    socket.ask(message)
}

/// A qdisc that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Qdisc {
    /// Where it is.
    pub place: Place,
    /// Its kind.
    pub kind: String,
    /// The tree, as whoever made it has written it. Empty for other kinds.
    pub text: String,
    /// What it counts, if it is ours.
    pub counters: Option<Counters>,
}

/// Lists the qdiscs of an interface.
///
/// # Errors
/// If the kernel refuses.
pub fn list(socket: &mut Socket, index: u32) -> Result<Vec<Qdisc>, Failed> {
    let request = Place {
        parent: 0,
        ..Place::root(index, 0)
    };
    let mut found = Vec::new();
    socket.dump(request.message(libc::RTM_GETQDISC, 0), &mut |_, payload| {
        // Kernels before Linux 6.0 answer with those of all interfaces.
        found.extend(Qdisc::read(payload)?.filter(|qdisc| qdisc.place.index == index));
        Ok(())
    })?;
    Ok(found)
}

impl Qdisc {
    fn read(payload: &[u8]) -> Result<Option<Qdisc>, Failed> {
        let number = |at| word(payload, at).map(u32::from_ne_bytes);
        let (Some(index), Some(handle), Some(parent), Some(info), Some(left)) =
            (number(4), number(8), number(12), number(16), payload.get(TC..))
        else {
            return Err(Failed::damaged("a qdisc is cut off"));
        };
        let Some(kind) = attribute(left, libc::TCA_KIND).map(text) else {
            return Ok(None);
        };
        let inner = |outer, wanted| attribute(attribute(left, outer)?, wanted);
        let is_ours = kind == "fairgate";
        let counters = inner(STATS2, STATS_APP).filter(|_| is_ours).map(Counters::read);
        Ok(Some(Qdisc {
            place: Place {
                index,
                handle,
                parent,
                info,
            },
            text: inner(libc::TCA_OPTIONS, TEXT)
                .filter(|_| is_ours)
                .map(text)
                .unwrap_or_default(),
            kind,
            counters: counters.transpose()?,
        }))
    }
}

/// What a qdisc counts: `struct fairgate_stats`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Whether it is a plain fifo since a panic.
    pub has_panicked: bool,
    /// The statistics of its tree, and of those that panicked.
    pub statistics: Statistics,
    /// The packets that wait.
    pub backlog: Count,
    /// The sum of all sojourn times, ns.
    pub sojourn_ns: u64,
    /// Packets for which no slot was free.
    pub refused: Count,
    /// Merged packets that were cut.
    pub cut: u64,
    /// Packets that the plain fifo sent.
    pub passed: u64,
    /// How long the last change held the lock of the queue, ns.
    pub change_ns: u64,
    /// Packets for which it had no room.
    pub change_dropped: u64,
}

impl Counters {
    const VERSION: u32 = 2;
    /// `FGK_REASONS`.
    const REASONS: usize = 24;
    const LENGTH: usize = 8 * (1 + 13 + Counters::REASONS + 6);

    pub(super) fn read(bytes: &[u8]) -> Result<Counters, Failed> {
        let version = word(bytes, 0).map(u32::from_ne_bytes);
        if version != Some(Counters::VERSION) || bytes.len() < Counters::LENGTH {
            return Err(Failed::damaged(
                "its counters are of another version of the module",
            ));
        }
        // Behind version and panics.
        let number = |at: usize| word(bytes, 8 + 8 * at).map_or(0, u64::from_ne_bytes);
        let count = |at: usize| Count {
            packets: number(at),
            bytes: number(at + 1),
        };
        let mut dropped_by_reason = DropCounts::default();
        for (place, reason) in DropReason::ALL.iter().enumerate().take(Counters::REASONS) {
            dropped_by_reason.set(*reason, number(13 + place));
        }
        let more = 13 + Counters::REASONS;
        Ok(Counters {
            has_panicked: word(bytes, 4) != Some([0; 4]),
            statistics: Statistics {
                enqueued: count(0),
                dequeued: count(2),
                dropped: count(4),
                flushed: count(6),
                dropped_by_reason,
                marked: number(10),
                overlimits: number(11),
                sojourn: number(12) / Statistics::SOJOURN_UNIT,
            },
            backlog: count(8),
            sojourn_ns: number(12),
            refused: count(more),
            cut: number(more + 2),
            passed: number(more + 3),
            change_ns: number(more + 4),
            change_dropped: number(more + 5),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn counters_are_read_from_their_places() {
        let mut bytes = Vec::from([2, 0, 0, 0, 1, 0, 0, 0]);
        for number in 0..(13 + Counters::REASONS + 6) as u64 {
            bytes.extend((number * 1024).to_ne_bytes());
        }
        let counters = Counters::read(&bytes).unwrap();
        assert!(counters.has_panicked);
        let count = |packets: u64| Count {
            packets: packets * 1024,
            bytes: (packets + 1) * 1024,
        };
        let statistics = &counters.statistics;
        assert_eq!((statistics.enqueued, statistics.flushed), (count(0), count(6)));
        assert_eq!((counters.backlog, counters.refused), (count(8), count(37)));
        assert_eq!((statistics.sojourn, counters.sojourn_ns), (12, 12 * 1024));
        assert_eq!(statistics.dropped_for(DropReason::ALL[3]), 16 * 1024);
        assert_eq!((counters.cut, counters.passed), (39 * 1024, 40 * 1024));
        assert_eq!(
            (counters.change_ns, counters.change_dropped),
            (41 * 1024, 42 * 1024)
        );
        assert!(Counters::read(&bytes[..bytes.len() - 1]).is_err());
        bytes[0] = 1;
        assert!(
            Counters::read(&bytes)
                .unwrap_err()
                .to_string()
                .contains("version")
        );
    }

    #[test]
    fn a_qdisc_is_read_and_what_is_cut_off_is_not() {
        let place = Place {
            index: 3,
            handle: 0x10000,
            parent: ROOT,
            info: 2,
        };
        let mut message = place.message(libc::RTM_NEWQDISC, 0);
        message.text(libc::TCA_KIND, "fairgate");
        let options = message.begin(libc::TCA_OPTIONS);
        message.text(TEXT, "fq_codel");
        message.end(options);
        let bytes = message.finished(1).unwrap();
        let read = Qdisc::read(&bytes[16..]).unwrap().unwrap();
        assert_eq!(
            (read.place, read.kind.as_str(), read.text.as_str()),
            (place, "fairgate", "fq_codel")
        );
        for end in 0..TC {
            assert!(Qdisc::read(&bytes[16..16 + end]).is_err());
        }
        for end in TC..bytes.len() - 16 {
            assert!(Qdisc::read(&bytes[16..16 + end]).is_ok());
        }
    }
}

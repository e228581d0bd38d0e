//! Finds the kernel's own shapers at an interface: what a run sends goes past them, or what it receives is
//! shaped by both.
//!
//! Scripts like SQM shape what an interface sends by a qdisc on it. What it receives they redirect to another
//! device, an ifb, and shape it there.

use std::io;

use fairgate::Rate;
use netlink_packet_core::{Nla, NlasIterator};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAction, TcActionAttribute, TcActionMirrorOption, TcActionOption, TcAttribute, TcFilterFlowerOption,
    TcFilterMatchAllOption, TcFilterU32Option, TcHandle, TcMessage, TcOption,
};

use super::survey::{dump, name_of_link};
use crate::sys::interface::Interface;

/// A shaper of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shaper {
    /// The device that it is on.
    pub device: String,
    /// Its qdisc: `cake`.
    pub kind: String,
    /// The rate to which it shapes everything, if it has one.
    pub rate: Option<Rate>,
}

impl Shaper {
    /// Describes it in words: `cake at 20Mbit on ifb0`.
    pub fn words(&self) -> String {
        let rate = self
            .rate
            .map_or(String::new(), |rate: Rate| format!(" at {rate}"));
        format!("{}{rate} on {}", self.kind, self.device)
    }
}

/// Returns the shapers of what an interface receives and of what it sends, of those that are `wanted`. A
/// kernel without traffic control has none.
pub(crate) fn shapers_at(interface: &Interface, wanted: [bool; 2]) -> [Option<Shaper>; 2] {
    let [received, sent] = wanted;
    [
        received.then(|| of_received(interface).ok().flatten()).flatten(),
        sent.then(|| shaper_on(&interface.name, interface.index).ok().flatten())
            .flatten(),
    ]
}

/// Returns the shaper to which what an interface receives is redirected.
fn of_received(interface: &Interface) -> io::Result<Option<Shaper>> {
    let mut request = TcMessage::with_index(interface.index as i32);
    request.header.parent = TcHandle {
        major: u16::MAX,
        minor: TcHandle::MIN_INGRESS,
    };
    for answer in dump(RouteNetlinkMessage::GetTrafficFilter(request))? {
        let RouteNetlinkMessage::NewTrafficFilter(filter) = answer else {
            continue;
        };
        let targets = options(&filter).filter_map(actions).flatten().filter_map(target);
        for target in targets {
            let Some(name) = name_of_link(target)? else {
                continue;
            };
            if let Some(shaper) = shaper_on(&name, target)? {
                return Ok(Some(shaper));
            }
        }
    }
    Ok(None)
}

/// Returns the shaper of what a device sends.
pub(crate) fn shaper_on(name: &str, index: u32) -> io::Result<Option<Shaper>> {
    // Kernels before Linux 6.0 answer with those of all devices.
    let is_ours = |message: &TcMessage| message.header.index == index as i32;
    let request = TcMessage::with_index(index as i32);
    for answer in dump(RouteNetlinkMessage::GetQueueDiscipline(request))? {
        let RouteNetlinkMessage::NewQueueDiscipline(qdisc) = answer else {
            continue;
        };
        let Some(kind) = kind(&qdisc).filter(|_| is_ours(&qdisc)) else {
            continue;
        };
        let rate = match kind {
            "cake" | "cake_mq" | "tbf" => rate_of(&qdisc, kind),
            "htb" | "hfsc" => of_classes(index, qdisc.header.handle.major, kind)?,
            _ => continue,
        };
        // A cake without bandwidth, and an hfsc without an upper limit, do not shape.
        if rate.is_some_and(|rate| rate > 0) || kind == "htb" {
            return Ok(Some(Shaper {
                device: name.to_owned(),
                kind: kind.to_owned(),
                rate: rate.and_then(|bytes| Rate::from_bits_per_second(bytes.saturating_mul(8)).ok()),
            }));
        }
    }
    Ok(None)
}

/// Attributes of linux/pkt_sched.h.
const CAKE_BASE_RATE: u16 = 2;
const TBF_PARAMETERS: u16 = 1;
const TBF_RATE: u16 = 4;
const HTB_PARAMETERS: u16 = 1;
const HTB_CEIL: u16 = 7;
const HFSC_UPPER_LIMIT: u16 = 3;

/// The place of the rate in `struct tc_ratespec`, and the length of this structure.
const RATE: usize = 8;
const RATE_SPEC: usize = 12;
/// The place of the long-term rate in `struct tc_service_curve`.
const M2: usize = 8;

/// Returns the highest rate of the classes at the root of a qdisc, bytes per second.
fn of_classes(index: u32, qdisc: u16, kind: &str) -> io::Result<Option<u64>> {
    let request = TcMessage::with_index(index as i32);
    let answers = dump(RouteNetlinkMessage::GetTrafficClass(request))?;
    let rate = |answer: &RouteNetlinkMessage| {
        let RouteNetlinkMessage::NewTrafficClass(class) = answer else {
            return None;
        };
        let parent = class.header.parent;
        let is_at_root =
            parent == TcHandle::ROOT || kind == "hfsc" && parent.major == qdisc && parent.minor == 0;
        if class.header.handle.major != qdisc || !is_at_root {
            return None;
        }
        rate_of(class, kind)
    };
    Ok(answers.iter().filter_map(rate).max())
}

/// Returns the rate of a qdisc, or of a class of one, bytes per second.
fn rate_of(message: &TcMessage, kind: &str) -> Option<u64> {
    let wide = |attribute| {
        nested(message, attribute).and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?)))
    };
    let narrow = |attribute, at: usize| {
        let bytes = nested(message, attribute)?;
        let rate = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(rate).into())
    };
    match kind {
        "cake" | "cake_mq" => wide(CAKE_BASE_RATE),
        "tbf" => wide(TBF_RATE).or_else(|| narrow(TBF_PARAMETERS, RATE)),
        "htb" => wide(HTB_CEIL).or_else(|| narrow(HTB_PARAMETERS, RATE_SPEC + RATE)),
        "hfsc" => narrow(HFSC_UPPER_LIMIT, M2),
        _ => None,
    }
}

/// Returns the kind of a qdisc: `fq_codel`.
pub(crate) fn kind(message: &TcMessage) -> Option<&str> {
    message.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.as_str()),
        _ => None,
    })
}

fn options(message: &TcMessage) -> impl Iterator<Item = &TcOption> {
    let options = message.attributes.iter().filter_map(|attribute| match attribute {
        TcAttribute::Options(options) => Some(options),
        _ => None,
    });
    options.flatten()
}

/// Returns a nested attribute of the options of a kind that the netlink crate does not know.
fn nested(message: &TcMessage, wanted: u16) -> Option<Vec<u8>> {
    let raw = options(message).find_map(|option| match option {
        TcOption::Other(raw) => Some(raw),
        _ => None,
    })?;
    let mut bytes = vec![0; raw.value_len()];
    raw.emit_value(&mut bytes);
    NlasIterator::new(&bytes[..])
        .filter_map(Result::ok)
        .find(|attribute| attribute.kind() == wanted)
        .map(|attribute| attribute.value().to_vec())
}

fn actions(option: &TcOption) -> Option<&[TcAction]> {
    match option {
        TcOption::U32(TcFilterU32Option::Action(actions))
        | TcOption::MatchAll(TcFilterMatchAllOption::Action(actions))
        | TcOption::Flower(TcFilterFlowerOption::Actions(actions)) => Some(actions),
        _ => None,
    }
}

/// Returns the device to which an action redirects packets.
fn target(action: &TcAction) -> Option<u32> {
    let options = action.attributes.iter().filter_map(|attribute| match attribute {
        TcActionAttribute::Options(options) => Some(options),
        _ => None,
    });
    options.flatten().find_map(|option| match option {
        TcActionOption::Mirror(TcActionMirrorOption::Parms(mirror)) => Some(mirror.ifindex),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use netlink_packet_core::{DefaultNla, Emitable};

    use super::*;

    fn message(attributes: &[(u16, &[u8])]) -> TcMessage {
        let attributes: Vec<DefaultNla> = attributes
            .iter()
            .map(|(kind, value)| DefaultNla::new(*kind, value.to_vec()))
            .collect();
        let mut options = vec![0; attributes.as_slice().buffer_len()];
        attributes.as_slice().emit(&mut options);
        let mut message = TcMessage::default();
        let options = TcOption::Other(DefaultNla::new(2, options));
        message.attributes.push(TcAttribute::Options(vec![options]));
        message
    }

    /// The structures of linux/pkt_sched.h, also of kinds that not every test machine has.
    #[test]
    fn rates_are_where_the_kernel_puts_them() {
        let spec = |rate: u32| [&[0; RATE][..], &rate.to_ne_bytes()].concat();
        let wide = 2_500_000_000u64.to_ne_bytes();
        let tbf = [spec(2_500_000), vec![0; 24]].concat();
        let htb = [spec(1), spec(2_500_000), vec![0; 20]].concat();
        for (kind, attributes, rate) in [
            ("cake", vec![(1, &[0; 4][..]), (2, &wide)], Some(2_500_000_000)),
            ("cake", vec![(2, &[0; 8])], Some(0)),
            ("tbf", vec![(1, &tbf)], Some(2_500_000)),
            ("tbf", vec![(1, &tbf), (4, &wide)], Some(2_500_000_000)),
            ("htb", vec![(1, &htb)], Some(2_500_000)),
            (
                "htb",
                vec![(1, &htb), (6, &[1; 8]), (7, &wide)],
                Some(2_500_000_000),
            ),
            (
                "hfsc",
                vec![(1, &[9; 12]), (3, &spec(2_500_000))],
                Some(2_500_000),
            ),
            ("hfsc", vec![(2, &spec(2_500_000))], None),
            ("tbf", vec![(1, &tbf[..9])], None),
            ("htb", vec![(7, &wide[..4])], None),
        ] {
            assert_eq!(
                rate_of(&message(&attributes), kind),
                rate,
                "{kind} {attributes:?}"
            );
        }
    }
}

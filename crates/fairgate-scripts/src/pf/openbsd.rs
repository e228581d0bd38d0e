//! Queues as OpenBSD has them since 5.5: hierarchical fair service curves, and queues of hashed flows.

use fairgate_config::language::Problems;
use toml::Spanned;

use super::amount::Bandwidth;
use super::queue::{Interface, Queue, Scheduler};
use crate::script::Line;

/// Reads `3M`, or `3M burst 9M for 200ms`.
pub(super) fn curve(line: &mut Line, problems: &mut Problems) -> Option<super::queue::Curve> {
    let word = line.next("a bandwidth like 2M", problems)?;
    let Some(rate) = Bandwidth::read(word.get_ref()) else {
        return line.unexpected(&word, "a bandwidth like 2M", problems);
    };
    let first = burst(line, problems)?;
    Some(super::queue::Curve { first, rate })
}

/// Reads `burst 9M for 200ms`, if it is there: the rate at first, and the time in milliseconds.
pub(super) fn burst(line: &mut Line, problems: &mut Problems) -> Option<Option<(Bandwidth, u64)>> {
    if line.peek().is_none_or(|word| word.get_ref() != "burst") {
        return Some(None);
    }
    line.take();
    let word = line.next("a bandwidth like 9M", problems)?;
    let Some(rate) = Bandwidth::read(word.get_ref()) else {
        return line.unexpected(&word, "a bandwidth like 9M", problems);
    };
    let keyword = line.next("`for` and a time", problems)?;
    if keyword.get_ref() != "for" {
        return line.unexpected(&keyword, "`for` and a time", problems);
    }
    let word = line.next("a time like 200ms", problems)?;
    let time = word
        .get_ref()
        .strip_suffix("ms")
        .and_then(|digits| digits.parse::<u64>().ok());
    match time {
        Some(time) => Some(Some((rate, time))),
        None => line.unexpected(&word, "a time like 200ms", problems),
    }
}

/// Returns the interfaces of these queues.
pub(super) fn interfaces(queues: Vec<Queue>, problems: &mut Problems) -> Vec<Interface> {
    let mut interfaces: Vec<Interface> = Vec::new();
    for mut queue in queues {
        let name = queue.name.get_ref().clone();
        let parent = queue.parent.clone();
        let (interface, whole) = match (&parent, &queue.on) {
            (None, Some(on)) => {
                if interfaces
                    .iter()
                    .any(|other| other.name.get_ref() == on.get_ref())
                {
                    let message = format!("{} has a queue at the top already", on.get_ref());
                    let help = "write parent and its name";
                    problems.add(queue.name.span(), message, "a second one", help);
                    continue;
                }
                interfaces.push(Interface {
                    name: on.clone(),
                    scheduler: Scheduler::Hfsc,
                    rate: None,
                    bucket: 0,
                    queues: Vec::new(),
                });
                (interfaces.last_mut(), u64::MAX)
            }
            (None, None) => {
                let message = format!("queue `{name}` names neither an interface nor a queue above it");
                let help =
                    "write on and an interface, or parent and a queue; ALTQ's queues need a line altq on";
                problems.add(queue.name.span(), message, "where?", help);
                continue;
            }
            (Some(parent), on) => {
                let is_above = |queue: &Queue| queue.name.get_ref() == parent;
                let mut found = interfaces.iter_mut().filter(|interface| {
                    let is_here = on
                        .as_ref()
                        .is_none_or(|on| on.get_ref() == interface.name.get_ref());
                    is_here && interface.queues.iter().any(is_above)
                });
                let Some(interface) = found.next() else {
                    let message = format!("there is no queue `{parent}` above `{name}`");
                    let help = "define it before, in a line of its own";
                    problems.add(queue.name.span(), message, "no such parent", help);
                    continue;
                };
                let above = interface.queues.iter_mut().find(|queue| is_above(queue));
                let whole = above.map_or(0, |above| {
                    above.is_inner = true;
                    above.rate
                });
                (Some(interface), whole)
            }
        };
        let Some(interface) = interface else { continue };
        let given = queue
            .bandwidth
            .as_ref()
            .map(|bandwidth| match bandwidth.get_ref() {
                // A part of the interface's speed, which no line says.
                Bandwidth::Part(_) if whole == u64::MAX => None,
                bandwidth => Some(bandwidth.of(whole)),
            });
        match given {
            Some(Some(rate)) => queue.rate = rate,
            None if queue.flows.is_some() => queue.rate = 0,
            _ => {
                let message = format!("queue `{name}` has no bandwidth");
                let help = "write bandwidth and a rate like 10M, or flows and a number";
                problems.add(queue.name.span(), message, "how fast?", help);
            }
        }
        interface.queues.push(queue);
    }
    for interface in &interfaces {
        let leaves = interface.queues.iter().filter(|queue| !queue.is_inner);
        let defaults = leaves.filter(|queue| queue.is_default).count();
        if defaults != 1 && problems.count() == 0 {
            let message = format!("the interface has {defaults} default queues, but needs one");
            let help = "write default at the end of one queue that has none below it";
            problems.add(interface.name.span(), message, "which is the default?", help);
        }
    }
    // The interface sends as fast as its queue at the top may.
    for interface in &mut interfaces {
        if let Some(top) = interface.queues.first()
            && let Some(limit) = top.upperlimit
            && limit.first.is_none()
        {
            let rate = limit.rate.of(top.rate);
            interface.rate = Some(Spanned::new(top.name.span(), rate));
        }
    }
    interfaces
}

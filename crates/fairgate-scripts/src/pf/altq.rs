//! Lines of ALTQ, as pf.conf(5) of FreeBSD describes them.

use fairgate_config::language::Problems;
use toml::Spanned;

use super::amount::Bandwidth;
use super::openbsd;
use super::queue::{Codel, Curve, Dropping, Interface, Queue, Scheduler};
use crate::script::notes::Notes;
use crate::script::{Line, Word, number};
use crate::tc::Device;

pub(super) const FORM: &str = "write altq on em0 cbq|priq|hfsc|fairq|codel bandwidth 10Mb queue { a, b \
    }, and \
    queue a bandwidth 20% priority 5 cbq(borrow red default)";

/// The line of an interface.
pub(super) struct Altq {
    name: Word,
    scheduler: Scheduler,
    bandwidth: Option<Spanned<u64>>,
    bucket: Option<Spanned<u64>>,
    /// The names of its queues. For `codel` it has one of its own.
    queues: Vec<Word>,
    own: Queue,
}

/// Returns the scheduler of this name.
fn scheduler(name: &str) -> Option<Scheduler> {
    Some(match name {
        "cbq" => Scheduler::Cbq,
        "priq" => Scheduler::Priq,
        "hfsc" => Scheduler::Hfsc,
        "fairq" => Scheduler::Fairq,
        "codel" => Scheduler::Codel,
        _ => return None,
    })
}

impl Altq {
    /// Reads the line after `altq`.
    pub(super) fn read(mut line: Line, problems: &mut Problems, notes: &mut Notes) -> Option<Altq> {
        line.take();
        let name = line.next("an interface", problems)?;
        let mut altq = Altq {
            own: Queue::named(name.clone()),
            name,
            scheduler: Scheduler::Cbq,
            bandwidth: None,
            bucket: None,
            queues: Vec::new(),
        };
        let mut has_scheduler = false;
        while let Some(word) = line.take() {
            match word.get_ref().as_str() {
                "bandwidth" => {
                    let value = line.next("a bandwidth like 10Mb", problems)?;
                    match Bandwidth::read(value.get_ref()) {
                        Some(Bandwidth::Rate(rate)) if rate > 0 => {
                            altq.bandwidth = Some(Spanned::new(value.span(), rate));
                        }
                        _ => return line.unexpected(&value, "a bandwidth like 10Mb", problems),
                    }
                }
                "tbrsize" => altq.bucket = Some(count(&mut line, problems)?),
                "qlimit" => altq.own.limit = count(&mut line, problems)?,
                "queue" => altq.queues = names(&mut line, problems)?,
                text => match scheduler(text).filter(|_| !has_scheduler) {
                    Some(found) => {
                        has_scheduler = true;
                        altq.scheduler = found;
                        options(&mut altq.own, found, &mut line, problems, notes)?;
                    }
                    None => {
                        return line.unexpected(
                            &word,
                            "a scheduler, `bandwidth`, `tbrsize` or `queue`",
                            problems,
                        );
                    }
                },
            }
        }
        if !has_scheduler {
            let help = "write cbq, priq, hfsc, fairq or codel after the interface";
            problems.add(
                altq.name.span(),
                "no scheduler is named",
                "which scheduler?",
                help,
            );
            return None;
        }
        Some(altq)
    }
}

/// Reads a line after `queue`.
pub(super) fn queue(mut line: Line, problems: &mut Problems, notes: &mut Notes) -> Option<Queue> {
    let mut queue = Queue::named(line.next("the name of a queue", problems)?);
    while let Some(word) = line.take() {
        match word.get_ref().as_str() {
            "on" => queue.on = Some(line.next("an interface", problems)?),
            "bandwidth" => {
                let value = line.next("a bandwidth like 2Mb or 20%", problems)?;
                let Some(bandwidth) = Bandwidth::read(value.get_ref()) else {
                    return line.unexpected(&value, "a bandwidth like 2Mb or 20%", problems);
                };
                queue.bandwidth = Some(Spanned::new(value.span(), bandwidth));
                if let Some(first) = openbsd::burst(&mut line, problems)? {
                    queue.linkshare = Some(Curve {
                        first: Some(first),
                        rate: bandwidth,
                    });
                }
            }
            "priority" => {
                let value = count(&mut line, problems)?;
                match u8::try_from(*value.get_ref())
                    .ok()
                    .filter(|priority| *priority <= 15)
                {
                    Some(priority) => queue.priority = priority,
                    None => {
                        let help = "write 0 to 7 for cbq, hfsc and fairq, 0 to 15 for priq";
                        problems.add(value.span(), "there is no such priority", "too high", help);
                        return None;
                    }
                }
            }
            "qlimit" => queue.limit = count(&mut line, problems)?,
            "parent" => queue.parent = Some(line.next("the name of a queue", problems)?.into_inner()),
            "min" => queue.realtime = Some(openbsd::curve(&mut line, problems)?),
            "max" => queue.upperlimit = Some(openbsd::curve(&mut line, problems)?),
            "flows" => queue.flows = Some(count(&mut line, problems)?),
            "quantum" => {
                count(&mut line, problems)?;
                let text = "`quantum` is that of one frame here";
                notes.add(word.span(), text.to_owned());
            }
            "default" => queue.is_default = true,
            "," => {}
            "{" => {
                queue.below = list(&mut line, problems)?;
            }
            text => match scheduler(text) {
                Some(found) => options(&mut queue, found, &mut line, problems, notes)?,
                None => {
                    let expected = "`bandwidth`, `priority`, `qlimit`, a scheduler with its options, `{`, or \
                        OpenBSD's `parent`, `min`, `max`, `flows` or `default`";
                    return line.unexpected(&word, expected, problems);
                }
            },
        }
    }
    Some(queue)
}

/// Reads the options of a scheduler in parentheses, if there are any.
fn options(
    queue: &mut Queue,
    scheduler: Scheduler,
    line: &mut Line,
    problems: &mut Problems,
    notes: &mut Notes,
) -> Option<()> {
    if line.peek().is_none_or(|word| word.get_ref() != "(") {
        return Some(());
    }
    line.take();
    loop {
        let word = line.next("`)`", problems)?;
        match word.get_ref().as_str() {
            ")" => return Some(()),
            "," => {}
            "default" => queue.is_default = true,
            "borrow" if scheduler == Scheduler::Cbq => queue.borrows = true,
            "red" => queue.dropping.red = true,
            "ecn" => {
                queue.dropping.ecn = true;
                queue.dropping.red |= !queue.dropping.codel && scheduler != Scheduler::Codel;
            }
            "rio" => {
                queue.dropping.red = true;
                let text = "`rio` is `red` here: no packet is marked as within its profile";
                notes.add(word.span(), text.to_owned());
            }
            "codel" => {
                queue.dropping.codel = true;
                queue.dropping.red = false;
            }
            "target" => queue.codel.target = Some(*count(line, problems)?.get_ref()),
            "interval" => queue.codel.interval = Some(*count(line, problems)?.get_ref()),
            "cleardscp" | "flowvalve" => {
                let text = format!("`{}` has no counterpart, and no effect here", word.get_ref());
                notes.add(word.span(), text);
            }
            "minburst" => queue.bursts.push(("minburst", count(line, problems)?)),
            "maxburst" => queue.bursts.push(("maxburst", count(line, problems)?)),
            "pktsize" | "maxpktsize" | "buckets" | "hogs" => {
                line.next("a number", problems)?;
                let text = format!(
                    "`{}` is a detail of ALTQ's implementation, and has no effect here",
                    word.get_ref()
                );
                notes.add(word.span(), text);
            }
            "realtime" => queue.realtime = Some(curve(line, problems)?),
            "linkshare" => queue.linkshare = Some(curve(line, problems)?),
            "upperlimit" => queue.upperlimit = Some(curve(line, problems)?),
            _ => return line.unexpected(&word, "an option of the scheduler, or `)`", problems),
        }
    }
}

/// Reads a service curve: `2Mb`, or `(2Mb 100 500Kb)` with a time in milliseconds.
fn curve(line: &mut Line, problems: &mut Problems) -> Option<Curve> {
    let bandwidth = |line: &mut Line, problems: &mut Problems| {
        let word = line.next("a bandwidth like 2Mb or 20%", problems)?;
        match Bandwidth::read(word.get_ref()) {
            Some(bandwidth) => Some(bandwidth),
            None => line.unexpected(&word, "a bandwidth like 2Mb or 20%", problems),
        }
    };
    if line.peek().is_none_or(|word| word.get_ref() != "(") {
        return Some(Curve {
            first: None,
            rate: bandwidth(line, problems)?,
        });
    }
    let skip_comma = |line: &mut Line| {
        if line.peek().is_some_and(|word| word.get_ref() == ",") {
            line.take();
        }
    };
    line.take();
    let first = bandwidth(line, problems)?;
    skip_comma(line);
    let time = *count(line, problems)?.get_ref();
    skip_comma(line);
    let rate = bandwidth(line, problems)?;
    let close = line.next("`)`", problems)?;
    match close.get_ref() == ")" {
        true => Some(Curve {
            first: Some((first, time)),
            rate,
        }),
        false => line.unexpected(&close, "`)`", problems),
    }
}

pub(super) fn count(line: &mut Line, problems: &mut Problems) -> Option<Spanned<u64>> {
    let word = line.next("a number", problems)?;
    match number(word.get_ref()) {
        Some(found) => Some(Spanned::new(word.span(), found.into())),
        None => line.unexpected(&word, "a number", problems),
    }
}

/// Reads one name, or several in braces.
fn names(line: &mut Line, problems: &mut Problems) -> Option<Vec<Word>> {
    let first = line.next("the names of queues", problems)?;
    match first.get_ref() == "{" {
        true => list(line, problems),
        false => Some(vec![first]),
    }
}

/// Reads names up to `}`.
fn list(line: &mut Line, problems: &mut Problems) -> Option<Vec<Word>> {
    let mut names = Vec::new();
    loop {
        let word = line.next("`}`", problems)?;
        match word.get_ref().as_str() {
            "}" => return Some(names),
            "," => {}
            _ => names.push(word),
        }
    }
}

/// Returns the interfaces with their queues.
pub(super) fn interfaces(
    defined: &[Altq],
    named: &[Queue],
    device: Device,
    problems: &mut Problems,
) -> Vec<Interface> {
    let mut used: Vec<usize> = Vec::new();
    let mut interfaces = Vec::new();
    for altq in defined {
        let Some(rate) = altq.bandwidth.clone() else {
            let help = "pfctl asks the interface for its speed: write bandwidth and the rate of the line";
            problems.add(
                altq.name.span(),
                "the interface has no bandwidth",
                "how fast?",
                help,
            );
            continue;
        };
        let mut queues = Vec::new();
        if altq.scheduler == Scheduler::Codel {
            let mut own = altq.own.clone();
            own.dropping = Dropping {
                codel: true,
                red: false,
                ..own.dropping
            };
            own.is_default = true;
            own.rate = *rate.get_ref();
            queues.push(own);
        }
        let mut waiting: Vec<(Word, Option<String>, u64)> = altq
            .queues
            .iter()
            .rev()
            .map(|name| (name.clone(), None, *rate.get_ref()))
            .collect();
        while let Some((name, parent, whole)) = waiting.pop() {
            if queues
                .iter()
                .any(|queue: &Queue| queue.name.get_ref() == name.get_ref())
            {
                let message = format!("queue `{}` is listed twice", name.get_ref());
                problems.add(name.span(), message, "a second time", "list each queue once");
                continue;
            }
            let is_it = |queue: &&Queue| {
                let is_here = |on: &Word| on.get_ref() == altq.name.get_ref();
                queue.name.get_ref() == name.get_ref() && queue.on.as_ref().is_none_or(is_here)
            };
            let Some(found) = named.iter().find(is_it) else {
                let message = format!("queue `{}` is not defined", name.get_ref());
                let help = format!("add a line like queue {} bandwidth 10%", name.get_ref());
                problems.add(name.span(), message, "no such queue", help);
                continue;
            };
            used.extend(named.iter().position(|queue| std::ptr::eq(queue, found)));
            let mut queue = found.clone();
            queue.rate = queue
                .bandwidth
                .as_ref()
                .map_or(whole, |bandwidth| bandwidth.get_ref().of(whole));
            queue.parent = parent;
            queue.is_inner = !queue.below.is_empty();
            let below = queue.below.iter().rev();
            let name = queue.name.get_ref().clone();
            waiting.extend(below.map(|below| (below.clone(), Some(name.clone()), queue.rate)));
            queues.push(queue);
        }
        check(altq, &queues, *rate.get_ref(), problems);
        interfaces.push(Interface {
            name: altq.name.clone(),
            scheduler: altq.scheduler,
            bucket: altq
                .bucket
                .as_ref()
                .map_or_else(|| bucket(*rate.get_ref(), device), |size| *size.get_ref()),
            rate: Some(rate),
            queues,
        });
    }
    for (at, queue) in named.iter().enumerate() {
        if !used.contains(&at) && problems.count() == 0 {
            let message = format!("queue `{}` is in no list of queues", queue.name.get_ref());
            let help = "name it after queue in an altq line, or in the braces of another queue";
            problems.add(queue.name.span(), message, "never used", help);
        }
    }
    interfaces
}

/// Checks what pfctl checks.
fn check(altq: &Altq, queues: &[Queue], rate: u64, problems: &mut Problems) {
    let defaults = queues.iter().filter(|queue| queue.is_default).count();
    if problems.count() == 0 && defaults != 1 {
        let message = format!("the interface has {defaults} default queues, but needs one");
        let help = "write default in the options of one queue, like priq(default)";
        problems.add(altq.name.span(), message, "which is the default?", help);
    }
    let has_shares = matches!(altq.scheduler, Scheduler::Cbq | Scheduler::Hfsc);
    for parent in std::iter::once(None)
        .chain(queues.iter().map(Some))
        .filter(|_| has_shares)
    {
        let name = parent.map(|queue| queue.name.get_ref());
        let whole = parent.map_or(rate, |queue| queue.rate);
        let mut below = queues.iter().filter(|queue| queue.parent.as_ref() == name);
        let given: u64 = below
            .clone()
            .filter(|queue| queue.bandwidth.is_some())
            .map(|queue| queue.rate)
            .sum();
        if given > whole
            && let Some(last) = below.next_back()
        {
            let message = format!("the queues here have {given} bit/s together, but above them are {whole}");
            problems.add(last.name.span(), message, "too much", "lower some bandwidths");
        }
    }
}

/// The bucket of an interface: whole packets, more at higher rates (`eval_pfaltq` and `sanitize` in
/// pfctl_altq.c).
fn bucket(rate: u64, device: Device) -> u64 {
    let packets = match rate {
        0..=1_000_000 => 1,
        1_000_001..=10_000_000 => 4,
        10_000_001..=200_000_000 => 8,
        200_000_001..=2_500_000_000 => 24,
        _ => 48,
    };
    packets * (u64::from(device.mtu) + u64::from(device.hard_header_len))
}

impl Codel {
    /// Returns the settings that are given, as names and milliseconds.
    pub(super) fn times(self) -> impl Iterator<Item = (&'static str, u64)> {
        let pairs = [("target", self.target), ("interval", self.interval)];
        pairs.into_iter().filter_map(|(name, time)| Some((name, time?)))
    }
}

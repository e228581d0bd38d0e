//! The tree of an interface.

use std::ops::Range;

use fairgate_config::language::{Draft, FilterDraft, Given, PARENT, Problems, Written};

use super::amount::Bandwidth;
use super::names;
use super::queue::{Curve, Interface, PACKETS, Queue, Scheduler};
use crate::dummynet::Direction;
use crate::dummynet::command::Action;
use crate::dummynet::rule::Rule;
use crate::script::drafts::{class, named};
use crate::script::notes::Notes;
use crate::script::setting;
use crate::script::weight::burst_of_weight;
use crate::tc::Device;

/// ALTQ's RED: TH_MIN and TH_MAX in packets, the inverse of the largest probability, and the logarithm of the
/// weight for many packets per second, fewer than 300, and fewer than 50 (`red_alloc` in altq_red.c).
const RED_PACKETS: (u64, u64) = (5, 15);
const RED_PROBABILITY: &str = "0.1";
const RED_WEIGHTS: [(u64, u32); 3] = [(50, 6), (300, 7), (u64::MAX, 9)];

/// The class of the whole link, in a tree that needs one.
const LINK: usize = 1;

/// Returns the tree for the packets that leave by an interface. What can't be translated is reported.
pub(super) fn tree(
    interface: &Interface,
    all: &[Interface],
    rules: &[Rule],
    device: Device,
    problems: &mut Problems,
    notes: &mut Notes,
) -> Option<Draft> {
    let location = interface.name.span();
    let root = match (interface.scheduler, &interface.queues[..]) {
        (Scheduler::Codel, [only]) => leaf(only, device, problems),
        // A queue of hashed flows without a bandwidth is all that there is.
        (Scheduler::Hfsc, [only]) if only.rate == 0 => leaf(only, device, problems),
        _ => {
            let mut root = match interface.scheduler {
                Scheduler::Cbq => cbq(interface, device, problems),
                Scheduler::Priq => priq(interface, device, problems),
                Scheduler::Hfsc => hfsc(interface, device, problems),
                _ => fairq(interface, device, problems, notes),
            };
            let numbers = Numbers::of(interface);
            if let Some(default) = interface
                .queues
                .iter()
                .find(|queue| queue.is_default && !queue.is_inner)
            {
                let class = numbers.class(default.name.get_ref())?;
                let at = default.name.span();
                root.settings.push(number(&at, "default", class as u64));
            }
            add_filters(&mut root, interface, all, rules, &numbers, notes);
            root
        }
    };
    let Some(rate) = &interface.rate else {
        return Some(root);
    };
    let mut shaper = named("tbf", &location);
    let bucket = match interface.bucket {
        // 4 ms at the rate, and at least three frames, as for a pipe of dummynet.
        0 => (rate.get_ref() / 2000).max(3 * frame(device)),
        bucket => bucket,
    };
    shaper.settings = vec![
        number(&rate.span(), "rate", *rate.get_ref()),
        number(&location, "burst", bucket),
    ];
    shaper.inner = Some(Box::new(root));
    Some(shaper)
}

/// Reports rules that lead to queues which no interface has.
pub(super) fn check_targets(all: &[Interface], rules: &[Rule], problems: &mut Problems) {
    let mut reported: Vec<Range<usize>> = Vec::new();
    for rule in rules {
        let Action::Assign(queue, urgent) = &rule.action else {
            continue;
        };
        for name in std::iter::once(queue).chain(urgent) {
            let is_known = all.iter().any(|interface| names(interface, name.get_ref()));
            if !is_known && !reported.contains(&name.span()) {
                reported.push(name.span());
                let message = format!("there is no queue `{}`", name.get_ref());
                let help = "name a queue of an altq line, or of a queue line";
                problems.add(name.span(), message, "no such queue", help);
            }
        }
    }
}

/// The numbers of the classes.
struct Numbers(Vec<(String, usize)>);

impl Numbers {
    fn of(interface: &Interface) -> Numbers {
        let mut queues: Vec<&Queue> = interface.queues.iter().collect();
        let first = match interface.scheduler {
            Scheduler::Cbq => LINK + 1,
            // A higher priority is served first.
            Scheduler::Priq => {
                queues.sort_by_key(|queue| std::cmp::Reverse(queue.priority));
                1
            }
            _ => 1,
        };
        let numbered = queues.into_iter().enumerate();
        Numbers(
            numbered
                .map(|(at, queue)| (queue.name.get_ref().clone(), first + at))
                .collect(),
        )
    }

    fn class(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, class)| *class)
    }
}

fn cbq(interface: &Interface, device: Device, problems: &mut Problems) -> Draft {
    let location = interface.name.span();
    let mut root = named("cbq", &location);
    let numbers = Numbers::of(interface);
    let rate = interface.rate.as_ref().map_or(0, |rate| *rate.get_ref());
    root.settings = vec![
        number(&location, "bandwidth", rate),
        text(&location, "link_sharing", "top-level"),
        number(&location, "packet", frame(device)),
        number(&location, "max_packet", frame(device)),
    ];
    let mut link = inner(LINK, &location);
    link.settings.push(number(&location, "rate", rate));
    link.settings.push(flag(&location, "borrow", false));
    root.classes.push(link);
    for queue in &interface.queues {
        let mut class = class_of(queue, &numbers, device, problems);
        let at = queue.name.span();
        let parent = queue
            .parent
            .as_ref()
            .and_then(|parent| numbers.class(parent))
            .unwrap_or(LINK);
        class.settings.push(number(&at, PARENT, parent as u64));
        class.settings.push(number(&at, "rate", queue.rate));
        class
            .settings
            .push(number(&at, "priority", queue.priority.into()));
        class.settings.push(flag(&at, "borrow", queue.borrows));
        for (name, burst) in &queue.bursts {
            class.settings.push(number(&burst.span(), name, *burst.get_ref()));
        }
        root.classes.push(class);
    }
    root
}

fn priq(interface: &Interface, device: Device, problems: &mut Problems) -> Draft {
    let location = interface.name.span();
    let mut root = named("prio", &location);
    let zero = || toml::Spanned::new(location.clone(), Given::Integer(0));
    root.settings.push(setting(
        &location,
        "priomap",
        Given::List((0..16).map(|_| zero()).collect()),
    ));
    let numbers = Numbers::of(interface);
    let mut queues: Vec<&Queue> = interface.queues.iter().collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.priority));
    for pair in queues.windows(2) {
        if pair[0].priority == pair[1].priority {
            let message = format!(
                "queues `{}` and `{}` have the same priority",
                pair[0].name.get_ref(),
                pair[1].name.get_ref()
            );
            let help = "give each queue of priq a priority of its own";
            problems.add(pair[1].name.span(), message, "the same priority", help);
        }
    }
    for queue in queues {
        root.classes.push(class_of(queue, &numbers, device, problems));
    }
    root
}

fn hfsc(interface: &Interface, device: Device, problems: &mut Problems) -> Draft {
    let location = interface.name.span();
    let mut root = named("hfsc", &location);
    if let Some(rate) = &interface.rate {
        root.settings.push(number(&rate.span(), "rate", *rate.get_ref()));
    }
    let numbers = Numbers::of(interface);
    let whole = |queue: &Queue| {
        let parent = |other: &&Queue| Some(other.name.get_ref()) == queue.parent.as_ref();
        let above = interface.queues.iter().find(parent).map(|parent| parent.rate);
        above
            .or(interface.rate.as_ref().map(|rate| *rate.get_ref()))
            .unwrap_or(queue.rate)
    };
    for queue in &interface.queues {
        let mut class = class_of(queue, &numbers, device, problems);
        let at = queue.name.span();
        if let Some(parent) = queue.parent.as_ref().and_then(|parent| numbers.class(parent)) {
            class.settings.push(number(&at, PARENT, parent as u64));
        }
        let whole = whole(queue);
        let linear = Curve {
            first: None,
            rate: Bandwidth::Rate(queue.rate),
        };
        class.settings.push(text(
            &at,
            "ls",
            &written(queue.linkshare.unwrap_or(linear), whole),
        ));
        for (name, curve) in [("rt", queue.realtime), ("ul", queue.upperlimit)] {
            let curve = curve.filter(|_| name != "rt" || !queue.is_inner);
            class
                .settings
                .extend(curve.map(|curve| text(&at, name, &written(curve, whole))));
        }
        root.classes.push(class);
    }
    root
}

/// Returns a service curve in our notation.
fn written(curve: Curve, whole: u64) -> String {
    let rate = curve.rate.of(whole);
    match curve.first {
        Some((first, millis)) => format!("{}bit:{millis}ms:{rate}bit", first.of(whole)),
        None => format!("{rate}bit"),
    }
}

/// `fairq` hashes flows within each queue, and serves queues by priority up to their bandwidths.
fn fairq(interface: &Interface, device: Device, problems: &mut Problems, notes: &mut Notes) -> Draft {
    let location = interface.name.span();
    let text = "`fairq`: queues share in proportion to their bandwidths here, whatever their priorities, and \
        the flows of each queue share it equally";
    notes.add(location.clone(), text.to_owned());
    let mut root = named("drr", &location);
    let numbers = Numbers::of(interface);
    let least = interface
        .queues
        .iter()
        .map(|queue| queue.rate)
        .min()
        .unwrap_or(1)
        .max(1);
    for queue in &interface.queues {
        let mut class = class_of(queue, &numbers, device, problems);
        let at = queue.name.span();
        let quantum = u128::from(queue.rate) * u128::from(frame(device)) / u128::from(least);
        class
            .settings
            .push(number(&at, "quantum", quantum.min(1 << 24) as u64));
        if queue.dropping == super::queue::Dropping::default() {
            let mut flows = named("sfq", &at);
            flows
                .settings
                .push(number(&queue.limit.span(), "limit", *queue.limit.get_ref()));
            class.inner = Some(Box::new(flows));
        }
        root.classes.push(class);
    }
    root
}

/// Returns a class without a discipline in it.
fn inner(id: usize, location: &Range<usize>) -> Draft {
    Draft {
        header: location.clone(),
        settings: vec![setting(location, "id", Given::Integer(id as i128))],
        ..Draft::default()
    }
}

/// Returns the class of a queue, without the settings of the scheduler.
fn class_of(queue: &Queue, numbers: &Numbers, device: Device, problems: &mut Problems) -> Draft {
    let id = numbers.class(queue.name.get_ref()).unwrap_or(LINK);
    match queue.is_inner {
        true => inner(id, &queue.name.span()),
        false => class(id, leaf(queue, device, problems)),
    }
}

/// Returns what holds the packets of a queue.
fn leaf(queue: &Queue, device: Device, problems: &mut Problems) -> Draft {
    let location = queue.name.span();
    let (limit, at) = (*queue.limit.get_ref(), queue.limit.span());
    if let Some(flows) = &queue.flows {
        let mut draft = named("fq_codel", &location);
        draft
            .settings
            .push(number(&flows.span(), "flows", *flows.get_ref()));
        // FQCODEL's own limit is 1024 packets.
        let limit = if limit == PACKETS { 1024 } else { limit };
        draft.settings.push(number(&at, "limit", limit));
        return draft;
    }
    if queue.dropping.codel {
        let mut draft = named("codel", &location);
        draft.settings.push(number(&at, "limit", limit));
        for (name, millis) in queue.codel.times() {
            draft.settings.push(text(&location, name, &format!("{millis}ms")));
        }
        draft.settings.push(flag(&location, "ecn", queue.dropping.ecn));
        return draft;
    }
    if queue.dropping.red {
        return red(queue, device, problems);
    }
    let mut draft = named("fifo", &location);
    draft.settings.push(number(&at, "limit", limit));
    draft
}

fn red(queue: &Queue, device: Device, problems: &mut Problems) -> Draft {
    let location = queue.name.span();
    let mut draft = named("red", &location);
    let packet = frame(device);
    let (limit, at) = (*queue.limit.get_ref(), queue.limit.span());
    // From 10 % to 30 % of the queue, but at least ALTQ's own thresholds.
    let min = (limit / 10).max(RED_PACKETS.0) * packet;
    let max = (limit * 3 / 10).max(RED_PACKETS.1) * packet;
    let a_second = queue.rate / 8 / packet;
    let weight = RED_WEIGHTS
        .iter()
        .find(|(below, _)| a_second < *below)
        .map_or(9, |(_, log)| *log);
    draft.settings = vec![
        number(&at, "limit_packets", limit),
        number(&at, "limit", limit.saturating_mul(65_536).min(u32::MAX.into())),
        text(&location, "measure", "packets"),
        number(&location, "min", min),
        number(&location, "max", max),
        number(&location, "avpkt", packet),
        text(&location, "probability", RED_PROBABILITY),
        flag(&location, "ecn", queue.dropping.ecn),
    ];
    if queue.rate > 0 {
        draft.settings.push(number(&location, "bandwidth", queue.rate));
    }
    match burst_of_weight(weight, min, packet) {
        Some(burst) => draft.settings.push(number(&location, "burst", burst.into())),
        None => {
            let message = "this length of the queue gives RED no average";
            let help = "give it a qlimit of 50 packets, or leave red out";
            problems.add(at, message, "can't be carried over", help);
        }
    }
    draft
}

/// Adds the filters for the packets that leave by an interface.
fn add_filters(
    root: &mut Draft,
    interface: &Interface,
    all: &[Interface],
    rules: &[Rule],
    numbers: &Numbers,
    notes: &mut Notes,
) {
    let mut has_urgent = false;
    for rule in rules {
        let is_on = |other: &Interface| {
            rule.interface
                .as_ref()
                .is_some_and(|on| on.get_ref() == other.name.get_ref())
        };
        let is_out = rule
            .direction
            .as_ref()
            .is_none_or(|direction| *direction.get_ref() == Direction::Out);
        // A rule of an interface without queues marks packets for the interface that they leave by.
        let is_elsewhere = rule.interface.is_some() && !all.iter().any(is_on);
        let is_here = match &rule.interface {
            None => is_out,
            Some(_) if is_elsewhere => rule
                .direction
                .as_ref()
                .is_some_and(|direction| *direction.get_ref() == Direction::In),
            Some(_) => is_on(interface) && is_out,
        };
        if !is_here {
            continue;
        }
        let default = root
            .settings
            .iter()
            .find(|(key, _)| key.get_ref() == "default")
            .cloned();
        match &rule.action {
            Action::Assign(queue, urgent) => {
                let Some(target) = numbers.class(queue.get_ref()) else {
                    continue;
                };
                if let Some(urgent) = urgent
                    && let Some(class) = numbers.class(urgent.get_ref())
                {
                    has_urgent = true;
                    for conditions in &rule.alternatives {
                        for extra in urgent_packets(conditions, &urgent.span()) {
                            push(root, class, &urgent.span(), [&conditions[..], &extra].concat());
                        }
                    }
                }
                for conditions in &rule.alternatives {
                    push(root, target, &queue.span(), conditions.clone());
                }
            }
            // A rule without a queue: the default.
            Action::Pass(word) => {
                let class = default.as_ref().map(|(_, given)| given.get_ref().clone());
                if let Some(Given::Integer(class)) = class {
                    for conditions in &rule.alternatives {
                        push(root, class as usize, &word.span(), conditions.clone());
                    }
                }
            }
            _ => {}
        }
    }
    // A rule for all packets ends the search.
    if let Some(at) = root.filters.iter().position(|filter| filter.entries.len() == 1) {
        root.filters.truncate(at + 1);
        let last = root.filters.pop().expect("it was found");
        root.settings.retain(|(key, _)| key.get_ref() != "default");
        let class = last.entries[0].1.clone();
        root.settings
            .push((toml::Spanned::new(class.span(), "default".to_owned()), class));
    }
    if !root.filters.is_empty() {
        let text = "pf assigns a whole connection by its first packet: here each packet is matched, those of \
            replies by exchanged addresses and ports";
        notes.add(interface.name.span(), text.to_owned());
    }
    if has_urgent {
        let text = "the second queue of a rule is for packets with the type of service lowdelay, and for \
            acknowledgements of TCP without data: here those of at most 80 bytes";
        notes.add(interface.name.span(), text.to_owned());
    }
}

/// Returns the conditions on packets for the second queue of a rule.
fn urgent_packets(conditions: &[Written], location: &Range<usize>) -> Vec<Vec<Written>> {
    let given = |key: &str| conditions.iter().find(|(other, _)| other.get_ref() == key);
    let mut sets = Vec::new();
    if given("traffic_class").is_none() && given("dscp").is_none() {
        sets.push(vec![text(location, "traffic_class", "0x10/0x10")]);
    }
    let is_tcp = |(_, value): &Written| match value.get_ref() {
        Given::Text(name) => name == "tcp",
        Given::Integer(number) => *number == 6,
        _ => false,
    };
    let protocol = given("protocol");
    if protocol.is_none_or(is_tcp) && given("tcp_flags").is_none() && given("length").is_none() {
        let mut set = vec![
            text(location, "tcp_flags", "0x10/0x10"),
            text(location, "length", "0-80"),
        ];
        if protocol.is_none() {
            set.push(text(location, "protocol", "tcp"));
        }
        sets.push(set);
    }
    sets
}

fn push(root: &mut Draft, class: usize, location: &Range<usize>, conditions: Vec<Written>) {
    let mut entries = vec![setting(location, "class", Given::Integer(class as i128))];
    entries.extend(conditions);
    root.filters.push(FilterDraft {
        header: location.clone(),
        entries,
    });
}

fn frame(device: Device) -> u64 {
    u64::from(device.mtu) + u64::from(device.hard_header_len)
}

fn number(location: &Range<usize>, name: &str, number: u64) -> Written {
    setting(location, name, Given::Integer(number.into()))
}

fn text(location: &Range<usize>, name: &str, text: &str) -> Written {
    setting(location, name, Given::Text(text.to_owned()))
}

fn flag(location: &Range<usize>, name: &str, flag: bool) -> Written {
    setting(location, name, Given::Flag(flag))
}

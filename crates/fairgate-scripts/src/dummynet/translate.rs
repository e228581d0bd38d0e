//! Translates pipes, schedulers, queues and rules into a description.

use std::ops::Range;

use fairgate::LAST_CLASS;
use fairgate_config::language::{Draft, FilterDraft, Given, Problems, Written};
use toml::Spanned;

use super::command::{Action, Object};
use super::mask::Mask;
use super::object::{Configured, Drops, Kind, Lost, Red};
use super::profile::Profile;
use super::rule::Rule;
use super::script::{Script, Target};
use super::units::Size;
use crate::script::drafts::{bands, class, named};
use crate::script::notes::Notes;
use crate::script::setting;
use crate::script::weight::burst_of_weight;

/// dummynet's default size of a queue.
const SLOTS: Size = Size::Slots(50);
/// The longest IP packet, in bytes.
const LONGEST: u64 = 65_536;
/// `net.inet.ip.dummynet.red_avg_pkt_size` and `red_max_pkt_size`, bytes.
const USUAL: u64 = 512;
const LONGEST_OF_RED: u64 = 1500;
/// dummynet's default number of buckets for the queues or pipes of a mask.
const BUCKETS: u64 = 64;
/// `net.inet.ip.dummynet.max_chain_len`: if a bucket has more entries, dummynet forgets idle ones.
const DEEPEST: u64 = 16;
/// The burst of a pipe lasts for the time between this many wake-ups per second, 4 ms: four ticks of
/// dummynet's usual kernel, and one tick of a Linux with 250 ticks per second.
const LATEST_WAKE_UPS_A_SECOND: u64 = 250;
/// The burst holds at least this many frames. At low rates 4 ms are less than one frame.
const FEWEST_FRAMES: u64 = 3;
/// The number of the class for passing packets, in a tree with several targets.
const PASSING: usize = 1;

/// Returns the tree for packets to which these rules apply. Parts that can't be translated are reported.
pub(super) fn tree(
    script: &Script,
    rules: &[&Rule],
    problems: &mut Problems,
    notes: &mut Notes,
) -> Option<Draft> {
    let translation = &mut Translation {
        script,
        problems,
        notes,
    };
    if rules.is_empty() {
        return translation.without_rules();
    }
    let rules = translation.tried(rules);
    let place = |rule: &Rule| match &rule.action {
        Action::To(object, number) => script.target(*object, *number.get_ref()).map(Fate::At),
        Action::Pass(_) | Action::Skip(_) | Action::Assign(..) => Some(Fate::Passing),
        Action::Drop(_) => Some(Fate::Dropped),
    };
    let mut places: Vec<Fate> = Vec::new();
    let last = rules.last().filter(|rule| is_for_all(rule));
    // Packets that no rule matches pass.
    if last.is_none() {
        places.push(Fate::Passing);
    }
    for found in rules.iter().filter_map(|rule| place(rule)) {
        if !places.contains(&found) {
            places.push(found);
        }
    }
    if let &[Fate::At(only)] = &places[..] {
        return translation.target(only, &rules);
    }
    places.sort_by_key(|place| match place {
        Fate::Passing => 0,
        Fate::At(_) => 1,
        Fate::Dropped => 2,
    });
    let class_of = |place: Option<Fate>| {
        let index = places.iter().position(|other| Some(*other) == place);
        index.map_or(PASSING, |index| index + PASSING)
    };
    let location = rules.first().map_or(0..0, |rule| rule.action.location());
    let mut root = bands(&location);
    for at in &places {
        let tree = match at {
            Fate::Passing => named("fifo", &location),
            Fate::At(target) => translation.target(*target, &rules)?,
            Fate::Dropped => {
                let mut dropping = named("netem", &location);
                dropping.settings.push(word(&location, "loss", "1"));
                dropping
            }
        };
        root.classes.push(class(class_of(Some(*at)), tree));
    }
    let default = last.map_or(PASSING, |rule| class_of(place(rule)));
    add_filters(&mut root, &rules, |rule| class_of(place(rule)), default);
    Some(root)
}

/// What becomes of the packets of a rule.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Passing,
    At(Target),
    Dropped,
}

/// Adds filters for the rules that have conditions, and the default for all other packets.
fn add_filters<'r>(
    draft: &mut Draft,
    rules: &[&'r Rule],
    class: impl Fn(&&'r Rule) -> usize,
    default: usize,
) {
    for rule in rules.iter().filter(|rule| !is_for_all(rule)) {
        let location = rule.action.location();
        for conditions in &rule.alternatives {
            let mut entries = vec![setting(&location, "class", Given::Integer(class(rule) as i128))];
            entries.extend(conditions.iter().cloned());
            draft.filters.push(FilterDraft {
                header: location.clone(),
                entries,
            });
        }
    }
    let location = draft.header.clone();
    draft
        .settings
        .push(setting(&location, "default", Given::Integer(default as i128)));
}

fn is_for_all(rule: &Rule) -> bool {
    rule.alternatives.iter().any(Vec::is_empty)
}

/// Returns a tree behind a link that delays packets and loses some. The link holds any number of packets.
fn emulated(delay: Option<&Spanned<String>>, lost: Option<&Spanned<Lost>>, tree: Draft) -> Draft {
    let Some(location) = delay.map(Spanned::span).or(lost.map(Spanned::span)) else {
        return tree;
    };
    let mut link = named("netem", &location);
    link.settings.push(number(&location, "limit", u32::MAX.into()));
    link.settings
        .extend(delay.map(|delay| word(&delay.span(), "delay", delay.get_ref().clone())));
    for (name, value) in lost.into_iter().flat_map(Spanned::get_ref) {
        link.settings.push(word(&location, name, value.clone()));
    }
    link.inner = Some(Box::new(tree));
    link
}

/// Returns `inner` before a link that is busy for an extra time with each packet. `burst` is dummynet's,
/// which an idle pipe sends at once. A late wake-up costs no rate, so nothing needs to be added.
fn busy(pipe: &Configured, profile: &Spanned<Profile>, bandwidth: &Spanned<u64>, inner: Draft) -> Draft {
    let location = profile.span();
    let mut link = named("busy_link", &location);
    link.settings
        .push(number(&bandwidth.span(), "rate", *bandwidth.get_ref()));
    let Profile {
        samples, lost_from, ..
    } = profile.get_ref();
    let micros = |millis: &u32| Spanned::new(location.clone(), Given::Integer(i128::from(*millis) * 1000));
    let extra = samples.iter().map(micros).collect();
    link.settings
        .push(setting(&location, "extra", Given::List(extra)));
    if *lost_from < samples.len() {
        link.settings
            .push(number(&location, "lost_from", *lost_from as u64));
    }
    if let Some(burst) = &pipe.burst {
        link.settings
            .push(number(&burst.span(), "burst", *burst.get_ref()));
    }
    link.inner = Some(Box::new(inner));
    link
}

fn number(location: &Range<usize>, name: &str, number: u64) -> Written {
    setting(location, name, Given::Integer(number.into()))
}

fn word(location: &Range<usize>, name: &str, word: impl Into<String>) -> Written {
    setting(location, name, Given::Word(word.into()))
}

/// The class number of a queue.
struct Numbered {
    class: u64,
    /// The class for hosts that get no class, if the queue is one for each host.
    overflow: Option<u64>,
}

struct Translation<'a, 'p> {
    script: &'a Script,
    problems: &'p mut Problems,
    notes: &'p mut Notes,
}

impl<'a> Translation<'a, '_> {
    /// Returns the tree if there are no rules: all packets go to the only pipe or queue.
    fn without_rules(&mut self) -> Option<Draft> {
        let of = |object: Object| self.script.objects.iter().filter(move |one| one.object == object);
        let queues: Vec<&Configured> = of(Object::Queue).collect();
        let pipes: Vec<&Configured> = of(Object::Pipe).collect();
        match (&queues[..], &pipes[..]) {
            ([], [pipe]) if of(Object::Sched).count() == 0 => {
                self.target(Target::Pipe(*pipe.number.get_ref()), &[])
            }
            ([queue], [_]) => {
                let sched = self.script.scheduler_of(queue)?;
                self.target(Target::Sched(sched), &[])
            }
            _ => {
                let location = self.script.objects.first()?.number.span();
                let message = "no rule says which packets a pipe is for";
                let help = "add rules, like add pipe 1 ip from any to any out";
                self.problems.add(location, message, "no rules", help);
                None
            }
        }
    }

    /// Returns the rules up to the first one for all packets. Later ones are never tried.
    fn tried(&mut self, rules: &[&'a Rule]) -> Vec<&'a Rule> {
        let last = rules
            .iter()
            .position(|rule| is_for_all(rule))
            .unwrap_or(rules.len());
        for rule in rules.iter().skip(last + 1) {
            // Firewalls end with such a rule.
            let is_end = matches!(rule.action, Action::Pass(_) | Action::Drop(_)) && is_for_all(rule);
            if !is_end {
                let text = "this rule is never tried: one before it matches every packet";
                self.notes.add(rule.action.location(), text.to_owned());
            }
        }
        rules.iter().take(last + 1).copied().collect()
    }

    /// Returns a target with its bandwidth.
    fn target(&mut self, target: Target, rules: &[&Rule]) -> Option<Draft> {
        match target {
            Target::Pipe(pipe) => {
                let pipe = self.script.find(Object::Pipe, pipe)?;
                let queue = self.queue(pipe, pipe);
                let tree = match &pipe.mask {
                    Some(mask) => self.pipes(pipe, pipe, mask, queue),
                    None => self.shaped(pipe, queue),
                };
                Some(emulated(pipe.delay.as_ref(), pipe.lost.as_ref(), tree?))
            }
            Target::Sched(sched) => {
                let pipe = self.script.find(Object::Pipe, self.script.pipe_of(sched))?;
                let scheduler = self.scheduler(sched, pipe, rules)?;
                let of_sched = self.script.find(Object::Sched, sched);
                let masked = of_sched
                    .into_iter()
                    .chain([pipe])
                    .filter(|one| one.has_mask_of_schedulers())
                    .find_map(|one| Some((one, one.mask.as_ref()?)));
                let tree = match masked {
                    Some((of, mask)) => self.pipes(pipe, of, mask, scheduler),
                    None => self.shaped(pipe, scheduler),
                };
                Some(emulated(pipe.delay.as_ref(), None, tree?))
            }
        }
    }

    /// Returns `inner` in a shaper with the pipe's bandwidth.
    fn shaped(&mut self, pipe: &Configured, inner: Draft) -> Option<Draft> {
        let Some(bandwidth) = pipe
            .bandwidth
            .as_ref()
            .filter(|bandwidth| *bandwidth.get_ref() > 0)
        else {
            if let Some(burst) = pipe.burst.as_ref().filter(|burst| *burst.get_ref() > 0) {
                let text = "`burst` has no effect: a pipe without bandwidth shapes nothing";
                self.notes.add(burst.span(), text.to_owned());
            }
            return Some(self.without_times(pipe, inner));
        };
        if let Some(profile) = &pipe.profile {
            return Some(busy(pipe, profile, bandwidth, inner));
        }
        let depth = self.depth(pipe, *bandwidth.get_ref());
        let mut shaper = named("tbf", &pipe.number.span());
        shaper.settings = vec![
            number(&bandwidth.span(), "rate", *bandwidth.get_ref()),
            number(&depth.span(), "burst", *depth.get_ref()),
        ];
        shaper.inner = Some(Box::new(inner));
        Some(shaper)
    }

    /// Returns `inner` in a pipe without bandwidth. dummynet counts the delays of a profile as bits at the
    /// bandwidth, so there only its losses remain.
    fn without_times(&mut self, pipe: &Configured, inner: Draft) -> Draft {
        let Some(profile) = &pipe.profile else {
            return inner;
        };
        if profile.get_ref().samples.iter().any(|delay| *delay > 0) {
            let text = "`profile` delays nothing: a pipe without bandwidth sends at once, and loses what the \
                profile loses";
            self.notes.add(profile.span(), text.to_owned());
        }
        let (lost_from, samples) = (profile.get_ref().lost_from, profile.get_ref().samples.len());
        if lost_from >= samples {
            return inner;
        }
        let share = (samples - lost_from) as f64 / samples as f64;
        let lost = Spanned::new(profile.span(), vec![("loss", format!("{share:.9}"))]);
        emulated(None, Some(&lost), inner)
    }

    /// Returns the burst of a pipe in bytes, and its location.
    ///
    /// dummynet gives a pipe credit at every tick of the kernel for all the time since the last tick, and
    /// sends while there is credit (`serve_sched` of ip_dn_io.c). So a late tick costs no rate, and packets
    /// leave in bursts. A token bucket gives credit only up to its burst. Credit beyond that is lost. A
    /// bucket of one frame is full again when the next frame can leave, so every late wake-up costs rate. The
    /// burst must last longer than wake-ups are late. The option `burst` is added to it, as in dummynet.
    fn depth(&self, pipe: &Configured, bandwidth: u64) -> Spanned<u64> {
        let in_time = bandwidth / 8 / LATEST_WAKE_UPS_A_SECOND;
        let allowed = in_time.max(FEWEST_FRAMES * self.frame());
        let (location, burst) = match &pipe.burst {
            Some(burst) => (burst.span(), *burst.get_ref()),
            None => (pipe.number.span(), 0),
        };
        // A bucket holds less than 4 GiB, which are 4 ms at 8.5 Tb/s.
        let most = u64::from(u32::MAX).saturating_sub(burst);
        Spanned::new(location, allowed.min(most).saturating_add(burst))
    }

    /// Returns the longest frame of the device, in bytes.
    fn frame(&self) -> u64 {
        u64::from(self.script.device.mtu) + u64::from(self.script.device.hard_header_len)
    }

    /// Returns a pipe with `inner` for each host that the mask of `of` tells apart: classes that share
    /// nothing, and one class for all further hosts.
    fn pipes(&mut self, pipe: &Configured, of: &Configured, mask: &Mask, inner: Draft) -> Option<Draft> {
        let Some(bandwidth) = pipe.bandwidth.as_ref().filter(|rate| *rate.get_ref() > 0) else {
            let text = "`mask` has no effect: packets never wait in a pipe without bandwidth";
            self.notes.add(mask.location.clone(), text.to_owned());
            return Some(self.without_times(pipe, inner));
        };
        // The link is slower than the class around it, which never has to wait.
        let inner = match &pipe.profile {
            Some(profile) => busy(pipe, profile, bandwidth, inner),
            None => inner,
        };
        let depth = self.depth(pipe, *bandwidth.get_ref());
        let location = pipe.number.span();
        let mut draft = named("htb", &location);
        let hosts = 2;
        draft.settings = vec![number(&location, "default", hosts)];
        let mut others = class(1, inner.clone());
        let mut host = class(hosts as usize, inner);
        for one in [&mut others, &mut host] {
            one.settings
                .push(number(&bandwidth.span(), "rate", *bandwidth.get_ref()));
            one.settings
                .push(number(&depth.span(), "burst", *depth.get_ref()));
            one.settings
                .push(number(&depth.span(), "cburst", *depth.get_ref()));
        }
        host.settings.extend(self.each(of, mask, hosts, 1)?);
        draft.classes = vec![others, host];
        Some(draft)
    }

    /// Returns the settings that make a class one for each host, with numbers from `class` on.
    fn each(&mut self, of: &Configured, mask: &Mask, class: u64, overflow: u64) -> Option<Vec<Written>> {
        let count = self.hosts_of(of);
        let location = &mask.location;
        let mut settings = match mask.settings() {
            Ok(settings) => settings,
            Err(help) => {
                let message = "this mask can't be carried over";
                self.problems
                    .add(location.clone(), message, "two masks in one", help);
                return None;
            }
        };
        let last = u64::from(LAST_CLASS);
        if class + count - 1 > last {
            let message =
                format!("class numbers end at {last}, but {count} hosts need the numbers from {class} on");
            let help = format!("write buckets {}, or less", (last + 1 - class) / DEEPEST);
            let location = of.buckets.as_ref().map_or(location.clone(), Spanned::span);
            self.problems.add(location, message, "too many", help);
            return None;
        }
        settings.push(number(location, "count", count));
        settings.push(number(location, "overflow", overflow));
        Some(settings)
    }

    /// Returns the number of hosts that can have one of their own.
    fn hosts_of(&self, of: &Configured) -> u64 {
        let buckets = of.buckets.as_ref().map_or(BUCKETS, |buckets| *buckets.get_ref());
        buckets.max(1).saturating_mul(DEEPEST)
    }

    /// Returns the queue that `of` describes, in `pipe`. Losses of a pipe are at the pipe.
    fn queue(&mut self, of: &Configured, pipe: &Configured) -> Draft {
        let lost = of.lost.as_ref().filter(|_| of.object != Object::Pipe);
        emulated(None, lost, self.lossless_queue(of, pipe))
    }

    fn lossless_queue(&mut self, of: &Configured, pipe: &Configured) -> Draft {
        let location = of.number.span();
        let (size, size_place) = match &of.size {
            Some(size) => (*size.get_ref(), size.span()),
            None => (SLOTS, location.clone()),
        };
        match &of.drops {
            Drops::Tail => {
                let mut fifo = named("fifo", &location);
                fifo.settings = match size {
                    Size::Slots(slots) => vec![number(&size_place, "limit", slots)],
                    Size::Bytes(bytes) => {
                        vec![
                            word(&size_place, "limit", "none"),
                            number(&size_place, "limit_bytes", bytes),
                        ]
                    }
                };
                fifo
            }
            Drops::Aqm(name, settings) => {
                let mut aqm = named(name.get_ref(), &name.span());
                match size {
                    Size::Slots(slots) => aqm.settings.push(number(&size_place, "limit", slots)),
                    // Only the bytes count.
                    Size::Bytes(bytes) => aqm.settings.extend([
                        number(&size_place, "limit", u32::MAX.into()),
                        number(&size_place, "limit_bytes", bytes),
                    ]),
                }
                aqm.settings.extend(settings.iter().cloned());
                aqm
            }
            Drops::Red(red) => self.red(red, size, &size_place, pipe),
        }
    }

    fn red(&mut self, given: &Red, size: Size, size_place: &Range<usize>, pipe: &Configured) -> Draft {
        let location = &given.location;
        let mut draft = named("red", location);
        // Thresholds are always in bytes here. A packet counts as one of usual length.
        let (unit, usual) = match size {
            Size::Slots(slots) => {
                draft.settings.push(number(size_place, "limit_packets", slots));
                // No packet is longer, so only the number of packets matters.
                let bytes = slots.saturating_mul(LONGEST).min(u32::MAX.into());
                draft.settings.push(number(size_place, "limit", bytes));
                draft.settings.push(word(location, "measure", "packets"));
                (USUAL, USUAL)
            }
            Size::Bytes(bytes) => {
                draft.settings.push(number(size_place, "limit", bytes));
                draft
                    .settings
                    .push(setting(location, "by_length", Given::Flag(true)));
                (1, LONGEST_OF_RED)
            }
        };
        let bandwidth = pipe
            .bandwidth
            .as_ref()
            .map_or(0, |bandwidth| *bandwidth.get_ref());
        let thresholds = [given.min, given.max].map(|threshold| threshold.saturating_mul(unit));
        for (name, threshold) in ["min", "max"].into_iter().zip(thresholds) {
            draft.settings.push(number(location, name, threshold));
        }
        let burst = burst_of_weight(given.weight_log, thresholds[0], usual);
        if burst.is_none() {
            let message = "this weight is not possible with these thresholds";
            let help = "take a min_th of several packets, or a larger w_q";
            self.problems
                .add(location.clone(), message, "can't be carried over", help);
        }
        draft
            .settings
            .extend(burst.map(|burst| number(location, "burst", burst.into())));
        draft.settings.push(number(location, "avpkt", usual));
        draft
            .settings
            .push(word(location, "probability", given.probability.clone()));
        draft
            .settings
            .push(setting(location, "gentle", Given::Flag(given.is_gentle)));
        draft
            .settings
            .push(setting(location, "ecn", Given::Flag(given.ecn)));
        if bandwidth > 0 {
            draft.settings.push(number(location, "bandwidth", bandwidth));
        }
        draft
    }

    /// Returns the scheduler of this number over its queues.
    fn scheduler(&mut self, sched: u32, pipe: &Configured, rules: &[&Rule]) -> Option<Draft> {
        let script = self.script;
        let is_connected =
            |one: &&Configured| one.object == Object::Queue && script.scheduler_of(one) == Some(sched);
        let queues: Vec<&Configured> = script.objects.iter().filter(is_connected).collect();
        let configured = script.find(Object::Sched, sched);
        let kind = configured.and_then(|configured| configured.kind.as_ref());
        let kind = kind.or(pipe.kind.as_ref());
        let location = kind.map_or(pipe.number.span(), Spanned::span);
        match kind.map_or(&Kind::Wf2qPlus, Spanned::get_ref) {
            // dummynet ignores the options of queues whose scheduler has one queue, or creates its own, and
            // those of the own queue of a pipe to which no rule leads. Programs write them all the same.
            Kind::Fifo => {
                for queue in queues.iter().filter_map(|queue| queue.weight.as_ref()) {
                    let text = "`weight` has no effect, as in dummynet: a scheduler `fifo` has one queue";
                    self.notes.add(queue.span(), text.to_owned());
                }
                Some(self.queue(configured.unwrap_or(pipe), pipe))
            }
            Kind::Flows(name, settings) => {
                let own = configured.into_iter().flat_map(Configured::of_queue);
                for location in own {
                    let text = format!("this has no effect: a scheduler `{name}` has queues of its own");
                    self.notes.add(location, text);
                }
                for queue in &queues {
                    let weight = queue.weight.iter().map(|weight| ("`weight`", weight.span()));
                    let others = queue.of_queue().map(|place| ("this option", place));
                    for (what, location) in weight.chain(others) {
                        let number = queue.number.get_ref();
                        let text = format!(
                            "{what} of queue {number} has no effect, as in dummynet: `{name}` has queues \
                             of its own, which share equally"
                        );
                        self.notes.add(location, text);
                    }
                }
                let mut flows = named(name, &location);
                flows.settings.clone_from(settings);
                Some(flows)
            }
            Kind::Wf2qPlus => self.over_classes("wf2q_plus", 1..=100, &queues, pipe, rules, &location),
            Kind::Rr => self.over_classes("drr", 1..=65_536, &queues, pipe, rules, &location),
            Kind::Qfq => self.over_classes("qfq", 1..=65_536, &queues, pipe, rules, &location),
            Kind::Prio => self.over_priorities(&queues, pipe, rules, &location),
        }
    }

    fn over_classes(
        &mut self,
        discipline: &str,
        weights: std::ops::RangeInclusive<u64>,
        queues: &[&Configured],
        pipe: &Configured,
        rules: &[&Rule],
        location: &Range<usize>,
    ) -> Option<Draft> {
        let mut draft = named(discipline, location);
        let numbers = self.numbers(queues);
        for (queue, numbered) in queues.iter().zip(&numbers) {
            let inner = self.queue(queue, pipe);
            let own = queue.number.span();
            let mut of_queue = class(numbered.class as usize, inner);
            let weight = self.within(queue.weight.as_ref(), 1, weights.clone(), "weight");
            let weight_place = queue.weight.as_ref().map_or(own.clone(), Spanned::span);
            let longest_place = queue.longest.as_ref().map_or(own, Spanned::span);
            match discipline {
                "drr" => {
                    let step = self.within(queue.longest.as_ref(), 1500, 64..=2048, "lmax");
                    let bytes = weight.saturating_mul(step);
                    of_queue.settings.push(number(&weight_place, "quantum", bytes));
                }
                "qfq" => {
                    let frame = self.frame();
                    let longest = self.within(queue.longest.as_ref(), frame, 64..=LONGEST, "lmax");
                    of_queue.settings.push(number(&weight_place, "weight", weight));
                    of_queue
                        .settings
                        .push(number(&longest_place, "max_packet", longest));
                }
                _ => {
                    if let Some(longest) = &queue.longest {
                        let text = "`lmax` has no effect: WF2Q+ needs no longest packet";
                        self.notes.add(longest.span(), text.to_owned());
                    }
                    of_queue.settings.push(number(&weight_place, "weight", weight));
                }
            }
            if let (Some(mask), Some(overflow)) = (&queue.mask, numbered.overflow) {
                let mut others = class(overflow as usize, self.queue(queue, pipe));
                others.settings.extend(of_queue.settings.iter().skip(1).cloned());
                draft.classes.push(others);
                of_queue
                    .settings
                    .extend(self.each(queue, mask, numbered.class, overflow)?);
            }
            draft.classes.push(of_queue);
        }
        let class_of = |queue: &Configured| {
            let index = queues.iter().position(|other| other.number == queue.number);
            index.map_or(0, |index| numbers[index].class as usize)
        };
        self.filter_to_queues(&mut draft, rules, queues, class_of);
        Some(draft)
    }

    /// Returns the class numbers of queues. A queue keeps its number. Classes for hosts have numbers after
    /// all others.
    fn numbers(&self, queues: &[&Configured]) -> Vec<Numbered> {
        let own = |queue: &Configured| u64::from(*queue.number.get_ref());
        let mut free = 1 + queues.iter().map(|queue| own(queue)).max().unwrap_or(0);
        let numbered = |queue: &&Configured| match queue.mask {
            None => Numbered {
                class: own(queue),
                overflow: None,
            },
            Some(_) => {
                let class = free;
                free += self.hosts_of(queue);
                Numbered {
                    class,
                    overflow: Some(own(queue)),
                }
            }
        };
        queues.iter().map(numbered).collect()
    }

    /// Returns a `prio`. A queue's weight is its priority; 0 goes first, 63 last.
    fn over_priorities(
        &mut self,
        queues: &[&Configured],
        pipe: &Configured,
        rules: &[&Rule],
        location: &Range<usize>,
    ) -> Option<Draft> {
        let mut ranked: Vec<(u64, &Configured)> = Vec::new();
        for queue in queues {
            let priority = self.within(queue.weight.as_ref(), 0, 0..=63, "weight");
            if let Some(mask) = &queue.mask {
                let message = "`mask` can't be carried over with a scheduler `prio`";
                let help = "leave it out, or use a scheduler that shares: type wf2q+, rr or qfq";
                self.problems
                    .add(mask.location.clone(), message, "no bands for hosts", help);
            }
            if let Some((_, other)) = ranked.iter().find(|(other, _)| *other == priority) {
                let message = format!(
                    "queues {} and {} have the same priority",
                    other.number.get_ref(),
                    queue.number.get_ref()
                );
                let help = "give each a different weight, which is its priority here; 0 goes first";
                self.problems
                    .add(queue.number.span(), message, "same priority", help);
                return None;
            }
            ranked.push((priority, queue));
        }
        ranked.sort_by_key(|(priority, _)| *priority);
        let mut draft = bands(location);
        for (rank, (_, queue)) in ranked.iter().enumerate() {
            let inner = self.queue(queue, pipe);
            draft.classes.push(class(rank + 1, inner));
        }
        let rank = |queue: &Configured| {
            let index = ranked.iter().position(|(_, other)| other.number == queue.number);
            index.map_or(0, |index| index + 1)
        };
        self.filter_to_queues(&mut draft, rules, queues, rank);
        Some(draft)
    }

    /// Adds filters to a scheduler: the rules that send packets to its queues are tried again.
    fn filter_to_queues(
        &self,
        draft: &mut Draft,
        rules: &[&Rule],
        queues: &[&Configured],
        class: impl Fn(&Configured) -> usize,
    ) {
        let queue_of = |rule: &&Rule| match &rule.action {
            Action::To(Object::Queue, number) => queues
                .iter()
                .copied()
                .find(|queue| queue.number.get_ref() == number.get_ref()),
            _ => None,
        };
        let leading: Vec<&Rule> = rules
            .iter()
            .copied()
            .filter(|rule| queue_of(rule).is_some())
            .collect();
        let class_of = |rule: &&Rule| queue_of(rule).map_or(0, &class);
        // Each packet here matched one of the rules. The last rule needs no filter: its class is the default.
        let (default, filtered) = match leading.split_last() {
            Some((last, others)) => (class_of(last), others),
            None => (queues.first().map_or(0, |queue| class(queue)), &leading[..]),
        };
        let is_other = |rule: &&&Rule| class_of(rule) != default;
        let last_needed = filtered
            .iter()
            .rposition(|rule| is_other(&rule))
            .map_or(0, |index| index + 1);
        add_filters(draft, &filtered[..last_needed], class_of, default);
    }

    /// Returns a number, or its default. Like dummynet (`ipdn_bound_var`), it takes the nearest number in the
    /// range, and says so.
    fn within(
        &mut self,
        given: Option<&Spanned<u64>>,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
        name: &str,
    ) -> u64 {
        let Some(given) = given else { return default };
        let number = *given.get_ref();
        let nearest = number.clamp(*range.start(), *range.end());
        if nearest != number {
            let text = format!("`{name}` {number} is out of range: {nearest} is used, as by dummynet");
            self.notes.add(given.span(), text);
        }
        nearest
    }
}

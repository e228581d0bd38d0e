//! Parses the options of a pipe, a queue or a scheduler.

use std::ops::Range;

use fairgate_config::language::{Given, Problems, Written};
use fairgate_config::suggest;

use toml::Spanned;

use super::command::Object;
use super::mask::{self, Mask};
use super::profile::{self, Profile};
use super::units::{self, Size, Wrong};
use crate::script::notes::Notes;
use crate::script::{Line, Word, no_value, setting};

/// A pipe, a queue or a scheduler as configured.
pub(super) struct Configured {
    pub(super) object: Object,
    pub(super) number: Spanned<u32>,
    /// The bandwidth in bit/s. 0 means no limit.
    pub(super) bandwidth: Option<Spanned<u64>>,
    /// The burst in bytes.
    pub(super) burst: Option<Spanned<u64>>,
    pub(super) size: Option<Spanned<Size>>,
    pub(super) drops: Drops,
    /// The delay of each packet, in Fairgate's notation.
    pub(super) delay: Option<Spanned<String>>,
    /// The extra delays of packets.
    pub(super) profile: Option<Spanned<Profile>>,
    /// The packets that are lost.
    pub(super) lost: Option<Spanned<Lost>>,
    /// The fields that distinguish hosts with one object each.
    pub(super) mask: Option<Mask>,
    pub(super) buckets: Option<Spanned<u64>>,
    pub(super) weight: Option<Spanned<u64>>,
    pub(super) longest: Option<Spanned<u64>>,
    /// The pipe or scheduler that a queue is connected to, or the pipe of a scheduler.
    pub(super) link: Option<(Object, Spanned<u32>)>,
    pub(super) kind: Option<Spanned<Kind>>,
}

impl Configured {
    /// Whether the mask makes a scheduler for each host. That of a pipe does so if the line also names the
    /// type of the scheduler; otherwise it is only for packets that rules send to the pipe itself.
    pub(super) fn has_mask_of_schedulers(&self) -> bool {
        match self.object {
            Object::Sched => true,
            Object::Pipe => self.kind.is_some(),
            Object::Queue => false,
        }
    }

    /// Returns the locations of the options about the object's own queue.
    pub(super) fn of_queue(&self) -> impl Iterator<Item = Range<usize>> {
        let drops = match &self.drops {
            Drops::Tail => None,
            Drops::Red(red) => Some(red.location.clone()),
            Drops::Aqm(name, _) => Some(name.span()),
        };
        let mask = self.mask.as_ref().filter(|_| !self.has_mask_of_schedulers());
        let mask = mask.map(|mask| mask.location.clone());
        let size = self.size.as_ref().map(Spanned::span);
        let lost = self.lost.as_ref().map(Spanned::span);
        size.into_iter().chain(drops).chain(mask).chain(lost)
    }
}

/// The packets that a queue loses: the settings of netem.
pub(super) type Lost = Vec<(&'static str, String)>;

/// The rule by which a queue drops packets.
pub(super) enum Drops {
    /// Arriving packets at the limit.
    Tail,
    Red(Red),
    /// An AQM of this name, with these settings.
    Aqm(Spanned<&'static str>, Vec<Written>),
}

/// RED's parameters, `w_q/min_th/max_th/max_p`.
pub(super) struct Red {
    pub(super) location: Range<usize>,
    /// The negative binary logarithm of the weight.
    pub(super) weight_log: u32,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) probability: String,
    pub(super) is_gentle: bool,
    pub(super) ecn: bool,
}

/// The type of a scheduler.
pub(super) enum Kind {
    Fifo,
    Wf2qPlus,
    Rr,
    Qfq,
    Prio,
    /// A scheduler of hashed flows, with these settings.
    Flows(&'static str, Vec<Written>),
}

const KINDS: [&str; 7] = ["fifo", "wf2q+", "rr", "qfq", "fq_codel", "fq_pie", "prio"];

/// Options of all objects.
const COMMON: [&str; 9] = [
    "queue", "plr", "red", "gred", "codel", "pie", "droptail", "buckets", "noerror",
];
const OF_PIPES: [&str; 6] = ["bw", "burst", "delay", "profile", "mask", "type"];
const OF_QUEUES: [&str; 6] = ["pipe", "sched", "weight", "lmax", "ecn", "mask"];
const OF_SCHEDS: [&str; 3] = ["type", "pipe", "mask"];

/// Parses the options after `config`. Mistakes are reported.
pub(super) fn read(
    object: Object,
    number: Spanned<u32>,
    line: Line,
    problems: &mut Problems,
    notes: &mut Notes,
) -> Configured {
    let mut reader = Reader {
        configured: Configured {
            object,
            number,
            bandwidth: None,
            burst: None,
            size: None,
            drops: Drops::Tail,
            delay: None,
            profile: None,
            lost: None,
            mask: None,
            buckets: None,
            weight: None,
            longest: None,
            link: None,
            kind: None,
        },
        line,
        problems,
        notes,
    };
    while let Some(word) = reader.line.take() {
        if reader.option(word).is_none() {
            break;
        }
    }
    reader.configured
}

struct Reader<'p> {
    configured: Configured,
    line: Line,
    problems: &'p mut Problems,
    notes: &'p mut Notes,
}

impl Reader<'_> {
    /// Parses an option and its value. Returns `None` after a problem, because the meaning of the next words
    /// is unknown.
    fn option(&mut self, word: Word) -> Option<()> {
        let object = self.configured.object;
        match (word.get_ref().as_str(), object) {
            ("bw" | "bandwidth", Object::Pipe) => {
                self.configured.bandwidth = Some(self.quantity(&word, units::bandwidth)?);
            }
            ("burst", Object::Pipe) => self.configured.burst = Some(self.quantity(&word, units::burst)?),
            ("delay", Object::Pipe) => {
                let delay = self.quantity(&word, units::time)?;
                self.configured.delay = (!delay.get_ref().starts_with('0')).then_some(delay);
            }
            ("plr", _) => self.loss(&word)?,
            ("profile", Object::Pipe) => self.profile(&word)?,
            ("mask", _) | ("sched_mask", Object::Pipe | Object::Sched) | ("flow_mask", Object::Queue) => {
                self.mask(&word)?
            }
            ("flow_mask" | "sched_mask", _) => {
                let help =
                    "write mask: a queue has a mask of flows, a pipe and a scheduler one of schedulers";
                self.refuse(
                    word.span(),
                    &format!("`{}` here", word.get_ref()),
                    "not here",
                    help,
                );
                return None;
            }
            ("queue", _) => self.configured.size = Some(self.quantity(&word, units::queue)?),
            ("red" | "gred", _) => self.red(&word)?,
            ("ecn", _) => match &mut self.configured.drops {
                Drops::Red(red) => red.ecn = true,
                _ => {
                    let help = "write it after red, gred, codel or pie, which mark instead of dropping";
                    self.refuse(word.span(), "`ecn` here", "nothing marks", help);
                }
            },
            ("codel", _) => {
                let settings = self.parameters(&[CODEL], &[]);
                self.configured.drops = Drops::Aqm(Spanned::new(word.span(), "codel"), settings?);
            }
            ("pie", _) => {
                // dummynet's default for pie, but not for fq_pie.
                let start = [setting(&word.span(), "dq_rate_estimator", flag(true))];
                let settings = self.parameters(&[PIE, ON_OFF], &start);
                self.configured.drops = Drops::Aqm(Spanned::new(word.span(), "pie"), settings?);
            }
            ("droptail", _) => self.configured.drops = Drops::Tail,
            ("buckets", _) => self.configured.buckets = Some(self.quantity(&word, units::plain)?),
            // Only affects the error reported to a sender on the same machine.
            ("noerror", _) => {}
            ("weight", Object::Queue) => self.configured.weight = Some(self.quantity(&word, units::plain)?),
            ("lmax" | "maxlen", Object::Queue) => {
                self.configured.longest = Some(self.quantity(&word, units::plain)?);
            }
            ("pipe", Object::Queue | Object::Sched) => self.link(&word, Object::Pipe)?,
            ("sched", Object::Queue) => self.link(&word, Object::Sched)?,
            // In the line of a pipe it is the type of the scheduler of the same number.
            ("type", Object::Sched | Object::Pipe) => self.kind(&word)?,
            (name, _) => {
                let known: Vec<&str> = match object {
                    Object::Pipe => OF_PIPES.iter().chain(&COMMON).copied().collect(),
                    Object::Queue => OF_QUEUES.iter().chain(&COMMON).copied().collect(),
                    Object::Sched => OF_SCHEDS.iter().chain(&COMMON).copied().collect(),
                };
                let message = format!("the option `{name}` of a {} can't be carried over", object.name());
                let help = suggest::remedy(name, "understood are", known);
                self.problems.add(word.span(), message, "unknown here", help);
                return None;
            }
        }
        Some(())
    }

    fn refuse(&mut self, location: Range<usize>, what: &str, label: &str, help: &str) {
        self.problems
            .add(location, format!("{what} can't be carried over"), label, help);
    }

    /// Takes the word after `option`. Reports if there is none.
    fn value(&mut self, option: &Word) -> Option<Word> {
        let value = self.line.take();
        if value.is_none() {
            no_value(option, self.problems);
        }
        value
    }

    fn quantity<T>(&mut self, option: &Word, read: impl Fn(&str) -> Result<T, Wrong>) -> Option<Spanned<T>> {
        let word = self.value(option)?;
        match read(word.get_ref()) {
            Ok(value) => Some(Spanned::new(word.span(), value)),
            Err(wrong) => {
                self.wrong(option, &word, wrong);
                None
            }
        }
    }

    fn wrong(&mut self, option: &Word, word: &Word, wrong: Wrong) {
        // A quoted word has two more characters than its text.
        let whole = word.span();
        let location = match whole.len() == word.get_ref().len() {
            true => whole.start + wrong.part.start..whole.start + wrong.part.end,
            false => whole,
        };
        let message = format!("`{}`: {}", option.get_ref(), wrong.message);
        self.problems.add(location, message, "not understood", wrong.help);
    }

    fn link(&mut self, option: &Word, to: Object) -> Option<()> {
        let number = self.quantity(option, units::plain)?;
        match u32::try_from(*number.get_ref()) {
            Ok(link @ 1..=65_535) => self.configured.link = Some((to, Spanned::new(number.span(), link))),
            _ => {
                let message = format!("there is no {} {}", to.name(), number.get_ref());
                self.problems.add(
                    number.span(),
                    message,
                    "must be 1 to 65535",
                    "write a number from 1 to 65535",
                );
            }
        }
        Some(())
    }

    /// Reads the file of a profile. As in ipfw, its bandwidth counts like a `bw` in the place of the profile.
    fn profile(&mut self, option: &Word) -> Option<()> {
        let name = self.value(option)?;
        if self.configured.profile.is_some() {
            let help = "remove one of them: a pipe has one profile";
            self.problems
                .add(option.span(), "there are two profiles", "the second one", help);
            return Some(());
        }
        let path = profile::path(self.problems.source().name(), name.get_ref());
        let text = match profile::text(&path) {
            Ok(text) => text,
            Err((message, help)) => {
                self.problems.add(name.span(), message, "named here", help);
                return Some(());
            }
        };
        self.notes.add_file(&path);
        // A mistake in the file says nothing about the words after its name.
        if let Some(profile) = profile::read(&path, text, self.problems) {
            if let Some(bandwidth) = profile.bandwidth {
                self.configured.bandwidth = Some(Spanned::new(name.span(), bandwidth));
            }
            for note in &profile.notes {
                self.notes
                    .add(name.span(), format!("the profile {}: {note}", path.display()));
            }
            self.configured.profile = Some(Spanned::new(name.span(), profile));
        }
        Some(())
    }

    /// Parses a probability of losses.
    fn loss(&mut self, option: &Word) -> Option<()> {
        let lost = self.quantity(option, units::decimal)?;
        let (digits, scale) = *lost.get_ref();
        if digits > scale {
            let message = format!("`{}` is above 1", option.get_ref());
            let help = "write a probability: 0.01 loses one packet in a hundred";
            self.problems.add(lost.span(), message, "at most 1", help);
        }
        let places = scale.ilog10() as usize;
        let text = format!("{}.{:0places$}", digits / scale, digits % scale);
        self.configured.lost = (digits > 0).then(|| Spanned::new(lost.span(), vec![("loss", text)]));
        Some(())
    }

    /// Parses `w_q/min_th/max_th/max_p`. The thresholds are in the unit of the queue's size.
    fn red(&mut self, word: &Word) -> Option<()> {
        const HELP: &str = "write w_q/min_th/max_th/max_p, like 0.001953125/10/30/0.1: a weight, two \
            thresholds and a probability";
        let value = self.value(word)?;
        let parts: Vec<&str> = value.get_ref().split('/').collect();
        let [weight, min, max, probability] = parts[..] else {
            let message = format!("`{}` has {} parts, not 4", value.get_ref(), parts.len());
            self.problems.add(value.span(), message, "expected four", HELP);
            return None;
        };
        let weight = match units::decimal(weight) {
            Ok((digits, scale)) => self.weight_log(&value, digits, scale)?,
            Err(wrong) => {
                self.problems.add(value.span(), wrong.message, "no weight", HELP);
                return None;
            }
        };
        let threshold = |text: &str| match units::queue(text) {
            Ok(Size::Slots(number) | Size::Bytes(number)) => Some(number),
            Err(_) => None,
        };
        let Some((min, max)) = threshold(min).zip(threshold(max)) else {
            let message = format!("`{min}` and `{max}` are not two thresholds");
            self.problems.add(value.span(), message, "no thresholds", HELP);
            return None;
        };
        let is_gentle = word.get_ref() == "gred";
        self.configured.drops = Drops::Red(Red {
            location: value.span(),
            weight_log: weight,
            min,
            max,
            probability: probability.to_owned(),
            is_gentle,
            ecn: false,
        });
        Some(())
    }

    /// Returns the negative binary logarithm of a weight. dummynet's weights are multiples of 2^-16, those of
    /// `red` powers of 2: the nearest one is taken, by their ratio, and there is a warning.
    fn weight_log(&mut self, value: &Word, digits: u64, scale: u64) -> Option<u32> {
        let weight = digits as f64 / scale as f64;
        if digits == 0 || digits > scale {
            let message = format!("the weight {weight} is not above 0 and at most 1");
            let help = "write a weight like 0.002: the part of the average that a packet makes up";
            self.problems.add(value.span(), message, "not a weight", help);
            return None;
        }
        let log = (-weight.log2()).round().clamp(1.0, 31.0) as u32;
        let taken = 0.5f64.powi(log as i32);
        if taken != weight {
            let text = format!(
                "the weight {weight} of the average becomes {taken}, the nearest one over a power of two"
            );
            self.notes.add(value.span(), text);
        }
        Some(log)
    }

    /// Parses a mask: fields and their bits.
    fn mask(&mut self, option: &Word) -> Option<()> {
        let mut mask = Mask::none(option.span());
        while let Some(word) = self.line.peek().cloned() {
            let name = word.get_ref().as_str();
            if let "flow-id" | "queue" = name {
                let help = "leave it out: only addresses, ports and the protocol are supported";
                self.refuse(word.span(), &format!("`{name}`"), "not a field of `each`", help);
                return None;
            }
            if !mask::WORDS.contains(&name) {
                break;
            }
            self.line.take();
            mask.location.end = self.line.peek().unwrap_or(&word).span().end;
            match name {
                "src-ip" => mask.v4[0] = self.quantity(&word, mask::of_v4)?.into_inner(),
                "dst-ip" => mask.v4[1] = self.quantity(&word, mask::of_v4)?.into_inner(),
                "src-ip6" => mask.v6[0] = self.quantity(&word, mask::of_v6)?.into_inner(),
                "dst-ip6" => mask.v6[1] = self.quantity(&word, mask::of_v6)?.into_inner(),
                "src-port" => mask.whole[0] = self.quantity(&word, mask::of_port)?.into_inner(),
                "dst-port" => mask.whole[1] = self.quantity(&word, mask::of_port)?.into_inner(),
                "proto" => mask.whole[2] = self.quantity(&word, mask::of_protocol)?.into_inner(),
                _ => {
                    mask = Mask::all(option.span().start..word.span().end);
                    break;
                }
            }
        }
        // A mask without bits means one queue for all.
        self.configured.mask = (!mask.is_none()).then_some(mask);
        Some(())
    }

    fn kind(&mut self, option: &Word) -> Option<()> {
        let word = self.value(option)?;
        let name = word.get_ref().to_lowercase();
        let kind = match name.as_str() {
            "fifo" => Kind::Fifo,
            "wf2q+" => Kind::Wf2qPlus,
            "rr" => Kind::Rr,
            "qfq" => Kind::Qfq,
            "prio" => Kind::Prio,
            "fq_codel" => {
                // dummynet's default: it marks.
                let start = [setting(&word.span(), "ecn", flag(true))];
                Kind::Flows("fq_codel", self.parameters(&[CODEL, OF_FLOWS], &start)?)
            }
            "fq_pie" => {
                let start = [setting(&word.span(), "ecn", flag(true))];
                Kind::Flows("fq_pie", self.parameters(&[PIE, OF_FLOWS, ALWAYS_ON], &start)?)
            }
            _ => {
                let message = format!("the scheduler `{}` is not supported", word.get_ref());
                let help = suggest::remedy(&name, "understood are", KINDS);
                self.problems.add(word.span(), message, "unknown here", help);
                return None;
            }
        };
        self.configured.kind = Some(Spanned::new(word.span(), kind));
        Some(())
    }

    /// Parses the rest of the line as parameters of one discipline. They override those of `start`.
    fn parameters(&mut self, known: &[&[Parameter]], start: &[Written]) -> Option<Vec<Written>> {
        let mut settings = start.to_vec();
        while let Some(word) = self.line.take() {
            let name = word.get_ref().as_str();
            let mut of_name = known
                .iter()
                .copied()
                .flatten()
                .filter(|(other, ..)| *other == name);
            let Some((_, parameter, reads)) = of_name.next() else {
                let message = format!("the option `{name}` can't be carried over");
                let help = suggest::remedy(
                    name,
                    "understood are",
                    known.iter().copied().flatten().map(|(name, ..)| *name),
                );
                self.problems.add(word.span(), message, "unknown here", help);
                return None;
            };
            let value = match reads {
                Reads::Plain => {
                    let number = self.quantity(&word, units::plain)?;
                    Spanned::new(number.span(), Given::Integer((*number.get_ref()).into()))
                }
                Reads::Time => {
                    let time = self.quantity(&word, units::time)?;
                    Spanned::new(time.span(), Given::Meant(time.into_inner()))
                }
                Reads::Probability => {
                    let value = self.value(&word)?;
                    Spanned::new(value.span(), Given::Word(value.into_inner()))
                }
                Reads::Sixteenths => self.sixteenths(&word)?,
                Reads::Means(value) => Spanned::new(word.span(), flag(*value)),
                Reads::WithoutEffect(why) => {
                    self.notes
                        .add(word.span(), format!("`{name}` has no effect: {why}"));
                    continue;
                }
            };
            settings.retain(|(key, _)| key.get_ref() != parameter);
            settings.push((Spanned::new(word.span(), (*parameter).to_owned()), value));
        }
        Some(settings)
    }

    fn sixteenths(&mut self, option: &Word) -> Option<Spanned<Given>> {
        let decimal = self.quantity(option, units::decimal)?;
        let (digits, scale) = *decimal.get_ref();
        let sixteenths = u128::from(digits) * 16;
        if !sixteenths.is_multiple_of(scale.into()) {
            let message = format!("`{}` can't be carried over", option.get_ref());
            let help = "weights are multiples of 1/16, counted in sixteenths: write one like 0.125 or 1.25";
            self.problems
                .add(decimal.span(), message, "not a multiple of 1/16", help);
            return None;
        }
        let number = (sixteenths / u128::from(scale)) as i128;
        Some(Spanned::new(decimal.span(), Given::Integer(number)))
    }
}

fn flag(value: bool) -> Given {
    Given::Flag(value)
}

/// A word of ipfw, Fairgate's parameter, and the notation of its value.
type Parameter = (&'static str, &'static str, Reads);

enum Reads {
    Plain,
    /// A time in milliseconds, or with a unit.
    Time,
    Probability,
    /// A decimal number. The parameter counts sixteenths.
    Sixteenths,
    /// No value. The word itself sets this flag.
    Means(bool),
    /// No value. The word has no effect, for this reason.
    WithoutEffect(&'static str),
}

const CODEL: &[Parameter] = &[
    ("target", "target", Reads::Time),
    ("interval", "interval", Reads::Time),
    ("ecn", "ecn", Reads::Means(true)),
    ("noecn", "ecn", Reads::Means(false)),
];

/// Parameters of schedulers of flows.
const OF_FLOWS: &[Parameter] = &[
    ("quantum", "quantum", Reads::Plain),
    ("limit", "limit", Reads::Plain),
    ("flows", "flows", Reads::Plain),
];

const PIE: &[Parameter] = &[
    ("target", "target", Reads::Time),
    ("tupdate", "tupdate", Reads::Time),
    ("alpha", "alpha", Reads::Sixteenths),
    ("beta", "beta", Reads::Sixteenths),
    ("max_ecnth", "ecn_prob", Reads::Probability),
    ("ecn", "ecn", Reads::Means(true)),
    ("noecn", "ecn", Reads::Means(false)),
    ("dre", "dq_rate_estimator", Reads::Means(true)),
    ("ts", "dq_rate_estimator", Reads::Means(false)),
    ("max_burst", "max_burst", Reads::Time),
    ("capdrop", "cap_drop", Reads::Means(true)),
    ("nocapdrop", "cap_drop", Reads::Means(false)),
    // ipfw(8) calls them `drand` and `nodrand`, ipfw reads the others.
    ("derand", "derandomize", Reads::Means(true)),
    ("drand", "derandomize", Reads::Means(true)),
    ("noderand", "derandomize", Reads::Means(false)),
    ("nodrand", "derandomize", Reads::Means(false)),
];

const ON_OFF: &[Parameter] = &[("onoff", "on_off", Reads::Means(true))];

/// dn_sched_fq_pie.c begins with PIE when a flow gets its first packet.
const ALWAYS_ON: &[Parameter] = &[(
    "onoff",
    "",
    Reads::WithoutEffect("in fq_pie, PIE begins with the first packet of a flow"),
)];

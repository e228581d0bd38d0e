//! The options of a qdisc or a class: words become settings.

use std::ops::Range;

use fairgate_config::language::{Given, Written};
use fairgate_config::suggest;
use toml::Spanned;

use super::Translation;
use crate::script::{Word, no_value, number, setting};
use crate::tc::kinds::{self, Defaults, Kind, Opt, Reads, Unreadable};
use crate::tc::objects::Qdisc;
use crate::tc::sharing::take;
use crate::tc::values::{Quantity, truncated};

/// A parameter, and the word of tc that sets it.
pub(super) struct Named {
    pub(super) parameter: &'static str,
    pub(super) word: &'static str,
    /// The location of the word, and that of the value.
    locations: [Range<usize>; 2],
}

impl Named {
    /// Whether a part of the word or the value is there.
    pub(super) fn is_at(&self, location: &Range<usize>) -> bool {
        let has = |own: &Range<usize>| own.start <= location.start && location.end <= own.end;
        self.locations.iter().any(has)
    }
}

impl<'a> Translation<'a> {
    /// Returns the settings for the words of each line, with tc's defaults. A later line overrides an earlier
    /// one.
    pub(super) fn settings(
        &mut self,
        lines: &'a [Vec<Word>],
        options: &[&[Opt]],
        defaults: Defaults,
        location: &Range<usize>,
    ) -> Vec<Written> {
        let mut settings: Vec<Written> = Vec::new();
        for words in lines {
            let read = self.line(words, options);
            let is_new = |name: &str| read.iter().any(|(key, _)| key.get_ref() == name);
            settings.retain(|(key, _)| !is_new(key.get_ref()));
            settings.extend(read);
        }
        for (parameter, value) in defaults(&self.script.device) {
            if !settings.iter().any(|(key, _)| key.get_ref() == parameter) {
                self.check_default(parameter, &value, options, location);
                settings.push(setting(location, parameter, Given::Word(value)));
            }
        }
        settings
    }

    pub(super) fn line(&mut self, words: &'a [Word], options: &[&[Opt]]) -> Vec<Written> {
        let mut settings = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let name = word.get_ref();
            let Some(option) = kinds::option_of(&self.kind, name, options) else {
                let message = format!("the option `{name}` can't be carried over");
                let is_known = |option: &&Opt| !matches!(option.reads, Reads::Refused(_));
                let known = options.iter().copied().flatten().filter(is_known);
                let known = known.map(|option| option.word);
                let help = suggest::remedy(name, "understood are", known);
                self.problems.add(word.span(), message, "unknown here", help);
                break;
            };
            if let Reads::Refused(why) = option.reads {
                let message = format!("the option `{name}` is not supported");
                self.problems.add(word.span(), message, "not here", why);
                continue;
            }
            if let Reads::Nat(what) = option.reads {
                self.notes.add_of_nat(word.span(), format!("`{name}`: {what}"));
                continue;
            }
            if let Reads::Noted(what) = option.reads {
                self.notes.add(word.span(), format!("`{name}`: {what}"));
                continue;
            }
            if let Reads::NotedValue(what) = option.reads {
                if words.next().is_none() {
                    no_value(word, self.problems);
                    break;
                }
                self.notes.add(word.span(), format!("`{name}`: {what}"));
                continue;
            }
            if let Reads::Several(read) = option.reads {
                match read(word, &mut words) {
                    Ok(read) => read.into_iter().for_each(|(parameter, value)| {
                        self.set(option, word, parameter, value, &mut settings)
                    }),
                    Err(Unreadable::Missing) => {
                        no_value(word, self.problems);
                        break;
                    }
                    Err(Unreadable::Wrong {
                        location,
                        message,
                        help,
                    }) => self.problems.add(location, message, "not here", help),
                }
                continue;
            }
            let Some(mut value) = option.reads.value(&mut words, word) else {
                no_value(word, self.problems);
                break;
            };
            truncate(option, &mut value);
            self.raise(option, &mut value);
            if let Err(message) = self.check(option, value.get_ref()) {
                let help = "give it such a value, or leave it out";
                self.problems.add(value.span(), message, "not here", help);
                continue;
            }
            // 0 means no class, or the default.
            let is_zero = match value.get_ref() {
                Given::Integer(number) => matches!(option.reads, Reads::Minor) && *number == 0,
                Given::Word(word) => matches!(option.reads, Reads::OrDefault) && number(word) == Some(0),
                _ => false,
            };
            if is_zero {
                continue;
            }
            for parameter in option.parameters(&value) {
                if let Some(unset) = parameter.strip_prefix('-') {
                    settings.retain(|setting: &Written| setting.0.get_ref() != unset);
                    continue;
                }
                if matches!(option.reads, Reads::Tally) {
                    tally(&mut settings, parameter, word);
                    continue;
                }
                self.set(option, word, parameter, value.clone(), &mut settings);
            }
        }
        settings
    }

    /// Adds a setting. Of different words for the same parameter the last counts, as in tc.
    fn set(
        &mut self,
        option: &Opt,
        word: &Word,
        parameter: &'static str,
        value: Spanned<Given>,
        settings: &mut Vec<Written>,
    ) {
        if parameter != option.word {
            self.named.push(Named {
                parameter,
                word: option.word,
                locations: [word.span(), value.span()],
            });
        }
        let source = self.script.source.inner();
        let is_same_word = |of: &Written| source.get(of.0.span()) == source.get(word.span());
        settings.retain(|setting: &Written| setting.0.get_ref() != parameter || is_same_word(setting));
        settings.push((Spanned::new(word.span(), parameter.to_owned()), value));
    }

    /// Raises values as the kernel does.
    fn raise(&mut self, option: &Opt, value: &mut Spanned<Given>) {
        let (Reads::AtLeast(least) | Reads::ListAtLeast(least)) = option.reads else {
            return self.lower(option, value);
        };
        let zero_is_raised = matches!(option.reads, Reads::AtLeast(_));
        let location = value.span();
        let mut raise_one = |given: &mut Given, location: Range<usize>| {
            let Given::Word(written) = given else { return };
            let bytes: Option<u64> = written.strip_suffix('b').unwrap_or(written).parse().ok();
            if bytes.is_some_and(|bytes| bytes < u64::from(least) && (bytes > 0 || zero_is_raised)) {
                let text = format!(
                    "`{}` is {written}, but Linux uses at least {least} bytes, and so does the tree",
                    option.word
                );
                self.notes.add(location, text);
                *given = Given::Integer(least.into());
            }
        };
        match value.get_mut() {
            Given::List(numbers) => numbers.iter_mut().for_each(|number| {
                let location = number.span();
                raise_one(number.get_mut(), location);
            }),
            one => raise_one(one, location),
        }
    }

    /// Lowers values as the kernel does.
    fn lower(&mut self, option: &Opt, value: &mut Spanned<Given>) {
        if let (Reads::AtMost(most), Given::Word(written)) = (&option.reads, value.get_ref())
            && number(written).is_some_and(|number| number > *most)
        {
            let text = format!(
                "`{}` is {written}, but Linux uses at most {most}, and so does the tree",
                option.word
            );
            self.notes.add(value.span(), text);
            *value.get_mut() = Given::Integer((*most).into());
        }
    }

    /// Reports a default of the device that the kernel does not take, such as a frame that is too short for a
    /// class of qfq.
    fn check_default(&mut self, parameter: &str, value: &str, options: &[&[Opt]], location: &Range<usize>) {
        let sets = |option: &&Opt| option.parameter == parameter && matches!(option.reads, Reads::Within(..));
        if let Some(option) = options.iter().copied().flatten().find(sets)
            && let Err(message) = self.check(option, &Given::Word(value.to_owned()))
        {
            let help = format!("write `{}` with such a value", option.word);
            let message = format!("{message}, and by the device it is {value}");
            self.problems
                .add(location.clone(), message, "not with this device", help);
        }
    }

    /// Reports a change of what the kernel sets only when it adds a qdisc.
    pub(super) fn keeps_flows(&mut self, qdisc: &Qdisc) {
        if !matches!(qdisc.kind.get_ref().as_str(), "fq_codel" | "fq_pie") {
            return;
        }
        for word in qdisc
            .options
            .iter()
            .skip(1)
            .flatten()
            .filter(|word| word.get_ref() == "flows")
        {
            let message = format!("Linux can't change `flows` of a `{}`", qdisc.kind.get_ref());
            let help = "give it when the qdisc is added, or delete the qdisc before";
            self.problems.add(word.span(), message, "can't be changed", help);
        }
    }

    /// Leaves out tbf's `mtu` if there is no peak rate. Linux does not use it then (`tbf_change` in
    /// sch_tbf.c).
    pub(super) fn without_peak(&mut self, kind: &Kind, settings: &mut Vec<Written>) {
        let has = |name: &str| settings.iter().any(|(key, _)| key.get_ref() == name);
        if kind.discipline != "tbf" || has("peakrate") {
            return;
        }
        if let Some((_, given)) = take(settings, "mtu") {
            let text = "`mtu` belongs to a peak rate: without one it has no effect, as in Linux";
            self.notes.add(given.span(), text.to_owned());
        }
    }

    /// Checks a value of which only one, or only some, are supported.
    fn check(&mut self, option: &Opt, value: &Given) -> Result<(), String> {
        let Given::Word(word) = value else {
            return Ok(());
        };
        let name = option.word;
        match option.reads {
            Reads::Only(only, why) if word != only => Err(format!("`{name}` must be {only}: {why}")),
            Reads::Within(least, most) => match number(word) {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(format!("`{name}` must be {least} to {most}, as in the kernel")),
            },
            // Known ones were converted.
            Reads::LinkLayer => Err(format!("`{name}` must be ethernet, atm or adsl")),
            // A value within the range was converted to a number.
            Reads::CountedDown(from) => Err(format!("`{name}` must be 1 to {from}")),
            Reads::Unneeded if number(word).is_none() => Err(format!("`{name}` must be a number")),
            Reads::Common(quantity) => match self.common.iter().find(|(other, _)| *other == quantity) {
                Some((_, Given::Word(first))) if !first.eq_ignore_ascii_case(word) => Err(format!(
                    "`{name}` must be {first}, as before; the qdisc and its classes share this value"
                )),
                Some(_) => Ok(()),
                None => {
                    self.common.push((quantity, value.clone()));
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }
}

/// Rounds a number down to whole bytes, as tc does: `.05mbit`.
fn truncate(option: &Opt, value: &mut Spanned<Given>) {
    let quantity = match option.parameter {
        "rate" | "ceil" | "peakrate" | "maxrate" | "bandwidth" | "weight" | "low_rate_threshold" => {
            Quantity::Rate
        }
        _ => Quantity::Size,
    };
    if !matches!(
        option.reads,
        Reads::Same | Reads::AtLeast(_) | Reads::SizeAndCell | Reads::Common(_)
    ) {
        return;
    }
    if let Given::Word(word) = value.get_mut()
        && let Some(whole) = truncated(word, quantity)
    {
        *word = whole;
    }
}

/// Counts one more of a word that can be repeated.
fn tally(settings: &mut Vec<Written>, parameter: &str, word: &Word) {
    let known = settings.iter_mut().find(|(key, _)| key.get_ref() == parameter);
    match known.map(|(_, value)| value.get_mut()) {
        Some(Given::Integer(count)) => *count += 1,
        _ => settings.push(setting(&word.span(), parameter, Given::Integer(1))),
    }
}

//! Reads what a filter does with packets: its class, drops, policers and changes; and prints it in the same
//! form.

use std::time::Duration;

use fairgate::ClassId;
use fairgate::classify::{Edit, Filter, Masked, Outcome, Police};
use fairgate::queues::police;
use toml::Spanned;

use super::computed;
use super::draft::Written;
use super::estimator::{self, Estimator};
use super::fields::{DSCP, MARK, ONE_DSCP, PRIORITY, masked, show_masked, show_name, single};
use super::given::{self, Given, Mistake};
use crate::error::Problems;
use crate::suggest;

/// The keys that say what happens to packets.
pub(super) const KEYS: [&str; 9] = [
    "class",
    "goto",
    "drop",
    "police",
    "set_priority",
    "set_mark",
    "set_dscp",
    "at",
    "chain",
];

/// The word for packets that are classified as if no filter had matched.
const DEFAULT: &str = "default";

/// What a filter does, as far as it was read.
#[derive(Default)]
pub(super) struct Deed {
    outcome: Option<Outcome>,
    goto: Option<u32>,
    drops: bool,
    police: Option<Police>,
    edit: Edit,
    pub(super) at: Option<u32>,
    chain: u32,
}

impl Deed {
    /// Reads a key, if it is one of [`KEYS`].
    pub(super) fn read(
        &mut self,
        (key, given): &Written,
        class: &impl Fn(&Spanned<Given>) -> Result<u32, Mistake>,
        inner: &impl Fn(&Spanned<Given>) -> Result<u32, Mistake>,
        problems: &mut Problems,
    ) -> Option<Result<(), Mistake>> {
        Some(match key.get_ref().as_str() {
            "class" => match given.get_ref() {
                Given::Text(word) if word == DEFAULT => {
                    self.outcome = Some(Outcome::Unclassified);
                    Ok(())
                }
                Given::Table(_) => {
                    computed::read(given).map(|computed| self.outcome = Some(Outcome::Computed(computed)))
                }
                _ => class(given).map(|class| self.outcome = Some(Outcome::Class(class))),
            },
            "drop" => match given.get_ref() {
                Given::Flag(drops) => {
                    self.drops = *drops;
                    Ok(())
                }
                other => Err(Mistake {
                    span: given.span(),
                    message: format!("`drop` is {}, but must be true or false", other.type_name()),
                    label: "expected true".to_owned(),
                    help: "write drop = true".to_owned(),
                }),
            },
            "police" => read_police(given, problems).map(|police| self.police = police),
            "set_priority" => read_priority(given, &mut self.edit),
            "set_mark" => masked(&MARK, given, Masked::<u32>::new).map(|bits| self.edit.mark = Some(bits)),
            "set_dscp" => single(&ONE_DSCP, given).map(|dscp| self.edit.dscp = Some(dscp)),
            "at" => inner(given).map(|class| self.at = Some(class)),
            "goto" => chain("goto", given).map(|chain| self.goto = Some(chain)),
            "chain" => chain("chain", given).map(|chain| self.chain = chain),
            _ => return None,
        })
    }

    /// Whether the filter does only what the default class would do, if it matched all packets.
    pub(super) fn is_a_default(&self) -> bool {
        let is_plain = self.outcome.is_some_and(|outcome| outcome.computed().is_none());
        is_plain && self.police.is_none() && self.edit.is_empty() && self.at.is_none() && self.chain == 0
    }

    /// Adds what the filter does to `filter`. Returns the reason if it does nothing, or two things.
    pub(super) fn add_to(self, filter: &mut Filter) -> Result<(), &'static str> {
        filter.outcome = match (self.outcome, self.drops, self.goto) {
            (Some(outcome), false, None) => outcome,
            (None, true, None) => Outcome::Drop,
            (None, false, Some(chain)) => Outcome::Chain(chain),
            (None, false, None) if self.police.is_some() || !self.edit.is_empty() => Outcome::Continue,
            (None, false, None) => return Err("the filter has no class"),
            (Some(_), true, _) => return Err("a filter that drops has no class"),
            (.., Some(_)) => return Err("a filter that goes to a chain has no class, and does not drop"),
        };
        (filter.police, filter.edit) = (self.police, self.edit);
        (filter.at, filter.chain) = (self.at, self.chain);
        Ok(())
    }
}

/// Reads the number of a chain. The kernel's have 28 bits.
fn chain(key: &'static str, given: &Spanned<Given>) -> Result<u32, Mistake> {
    given::number(key, "a chain", 0..=(1 << 28) - 1, given).map(|number| number as u32)
}

fn read_priority(given: &Spanned<Given>, edit: &mut Edit) -> Result<(), Mistake> {
    let class = match given.get_ref() {
        Given::Text(text) => text.split_once(':'),
        _ => None,
    };
    let Some((major, minor)) = class else {
        edit.priority = Some(single(&PRIORITY, given)?);
        return Ok(());
    };
    let digits = |text: &str| match text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => u16::from_str_radix(text, 16).ok(),
        false => None,
    };
    match digits(major).zip(digits(minor)) {
        Some((major, minor)) if major > 0 => {
            edit.class = Some(ClassId::new(major, minor));
            Ok(())
        }
        _ => Err(Mistake {
            span: given.span(),
            message: format!("{} is not a class", given.get_ref().show()),
            label: "expected a class like \"10:2\"".to_owned(),
            help: "write a priority from 0 to 15, or the handle of a discipline and its class, \
                hexadecimal: \"10:2\""
                .to_owned(),
        }),
    }
}

/// Reads the table of a policer. Its mistakes are reported.
fn read_police(given: &Spanned<Given>, problems: &mut Problems) -> Result<Option<Police>, Mistake> {
    let Given::Table(entries) = given.get_ref() else {
        return Err(Mistake {
            span: given.span(),
            message: format!("`police` is {}, but must be a table", given.get_ref().type_name()),
            label: "expected a table".to_owned(),
            help: "write police = { rate = \"1mbit\", burst = \"10kb\" }, in words police.rate=1mbit \
                police.burst=10kb"
                .to_owned(),
        });
    };
    let parameters = police::Settings::parameters();
    let mut settings = police::Settings::default();
    let before = problems.count();
    for (key, value) in entries {
        let name = key.get_ref().as_str();
        let read = match parameters.iter().position(|info| info.name == name) {
            Some(index) => given::read(&parameters[index], value).map(|value| settings.set(index, &value)),
            None if name == estimator::KEY => estimator::read(value)
                .map(|estimator| settings.set_estimator(estimator.sample_log(), estimator.ewma_log())),
            None => Err(Mistake {
                span: key.span(),
                message: format!("a policer has no parameter `{name}`"),
                label: "unknown parameter".to_owned(),
                help: suggest::remedy(
                    name,
                    "it has",
                    parameters.iter().map(|info| info.name).chain([estimator::KEY]),
                ),
            }),
        };
        if let Err(mistake) = read {
            mistake.report(problems);
        }
    }
    if problems.count() > before {
        return Ok(None);
    }
    settings.police().map(Some).map_err(|error| {
        let named = error
            .parameter()
            .and_then(|name| entries.iter().find(|(key, _)| key.get_ref() == name));
        Mistake {
            span: named.map_or(given.span(), |(_, value)| value.span()),
            message: error.to_string(),
            label: "not possible".to_owned(),
            help: "`rate` needs `burst`, `packets` needs `burst_packets`, `peakrate` needs `mtu`, and \
                `average` needs `estimator`"
                .to_owned(),
        }
    })
}

/// Returns what a filter does as lines `key = value`: first where its packets go.
pub(super) fn lines(filter: &Filter) -> Vec<String> {
    let mut lines: Vec<String> = match filter.outcome {
        Outcome::Class(class) => vec![format!("class = {class}")],
        Outcome::Computed(computed) => vec![format!("class = {}", computed::show(&computed))],
        Outcome::Chain(chain) => vec![format!("goto = {chain}")],
        Outcome::Unclassified => vec![format!("class = \"{DEFAULT}\"")],
        Outcome::Drop => vec!["drop = true".to_owned()],
        _ => Vec::new(),
    };
    let edit = &filter.edit;
    lines.extend(filter.at.map(|class| format!("at = {class}")));
    lines.extend((filter.chain != 0).then(|| format!("chain = {}", filter.chain)));
    lines.extend(
        filter
            .police
            .as_ref()
            .map(|police| format!("police = {}", show_police(police))),
    );
    lines.extend(edit.priority.map(|priority| format!("set_priority = {priority}")));
    lines.extend(edit.class.map(|class| format!("set_priority = \"{class}\"")));
    let mark = edit
        .mark
        .map(|bits| show_masked(bits.value().into(), bits.mask().into(), MARK.most));
    lines.extend(mark.map(|mark| format!("set_mark = {mark}")));
    let dscp = edit.dscp.map(|dscp| show_name(&DSCP, dscp.into()));
    lines.extend(dscp.map(|dscp| format!("set_dscp = {dscp}")));
    lines
}

/// Returns where packets of a filter go, for people.
pub(super) fn shown(filter: &Filter) -> String {
    match filter.outcome {
        Outcome::Class(class) => format!("goes to {class}"),
        Outcome::Computed(computed) => format!("goes to a class by {}", computed::shown(&computed)),
        Outcome::Chain(chain) => format!("goes to chain {chain}"),
        Outcome::Unclassified => format!("goes to the {DEFAULT}"),
        Outcome::Drop => "is dropped".to_owned(),
        _ => "goes on".to_owned(),
    }
}

fn show_police(police: &Police) -> String {
    let parameters = police::Settings::parameters();
    let given = police::Settings::of(police).given();
    let entry = |(index, value): &(usize, fairgate::registry::Value)| {
        let info = &parameters[*index];
        let shown = info.unit.show(value);
        match info.unit {
            fairgate::registry::Unit::Count(_) | fairgate::registry::Unit::Flag => {
                format!("{} = {shown}", info.name)
            }
            _ => format!("{} = \"{shown}\"", info.name),
        }
    };
    let estimator = police.average.and_then(|average| {
        let sample = Duration::from_millis(250) * (1 << average.sample_log);
        Estimator::with_log(sample, average.weight_log)
    });
    let estimator = estimator.map(|estimator| format!("{} = \"{estimator}\"", estimator::KEY));
    let entries: Vec<String> = given.iter().map(entry).chain(estimator).collect();
    format!("{{ {} }}", entries.join(", "))
}

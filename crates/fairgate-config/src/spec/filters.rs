//! Reads the filters and handles of `[[filter]]`, and prints them in the same form.

use std::ops::Range;

use fairgate::classify::{Filter, Masked, Match};
use toml::Spanned;

use super::draft::{FilterDraft, Written};
use super::fields::{
    DSCP, ETHERTYPE, INTERFACE, MARK, PORTS, PREFERENCE, PRIORITY, PROTOCOL, TRAFFIC_CLASS, VLAN, masked,
    prefix, range, show_masked, show_name, show_range, single,
};
use super::given::{Given, Mistake};
use super::header_bytes;
use super::outcomes::{self, Deed};
use crate::error::Problems;
use crate::suggest;

/// The keys of a filter's conditions.
const KEYS: [&str; 14] = [
    "preference",
    "source",
    "destination",
    "source_port",
    "destination_port",
    "protocol",
    "dscp",
    "traffic_class",
    "priority",
    "mark",
    "vlan",
    "ethertype",
    "outer_ethertype",
    "interface",
];

/// Returns all keys of a filter.
fn known_keys() -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().chain(header_bytes::KEYS).chain(outcomes::KEYS)
}

/// Returns the locations of the conditions of a filter: those of their values.
pub(crate) fn condition_locations(draft: &FilterDraft) -> Vec<(&'static str, Range<usize>)> {
    let location = |(key, given): &Written| {
        let known = KEYS
            .into_iter()
            .chain(header_bytes::KEYS)
            .find(|known| known == key.get_ref())?;
        Some((known, given.span()))
    };
    draft.entries.iter().filter_map(location).collect()
}

/// Reads a filter. The function `class` reads the number of its class, and `inner` that of an inner class.
pub(crate) fn read(
    draft: &FilterDraft,
    class: impl Fn(&Spanned<Given>) -> Result<u32, Mistake>,
    inner: impl Fn(&Spanned<Given>) -> Result<u32, Mistake>,
    problems: &mut Problems,
) -> Option<Filter> {
    let before = problems.count();
    let mut condition = Match::default();
    let mut preference = 0;
    let mut deed = Deed::default();
    for written in &draft.entries {
        if let Some(done) = deed.read(written, &class, &inner, problems) {
            if let Err(mistake) = done {
                mistake.report(problems);
            }
            continue;
        }
        if let Some(done) = header_bytes::read(written, &mut condition) {
            if let Err(mistake) = done {
                mistake.report(problems);
            }
            continue;
        }
        let (key, given) = written;
        let done = match key.get_ref().as_str() {
            "preference" => single(&PREFERENCE, given).map(|number| preference = number),
            "source" => prefix(given).map(|prefix| condition.source = Some(prefix)),
            "destination" => prefix(given).map(|prefix| condition.destination = Some(prefix)),
            "source_port" => range(&PORTS, given).map(|ports| condition.source_port = Some(ports)),
            "destination_port" => range(&PORTS, given).map(|ports| condition.destination_port = Some(ports)),
            "protocol" => single(&PROTOCOL, given).map(|number| condition.protocol = Some(number)),
            "dscp" => range(&DSCP, given).map(|dscps| condition.dscp = Some(dscps)),
            "priority" => range(&PRIORITY, given).map(|range| condition.priority = Some(range)),
            "traffic_class" => masked(&TRAFFIC_CLASS, given, Masked::<u8>::new)
                .map(|bits| condition.traffic_class = Some(bits)),
            "mark" => masked(&MARK, given, Masked::<u32>::new).map(|bits| condition.mark = Some(bits)),
            "interface" => single(&INTERFACE, given).map(|number| condition.interface = Some(number)),
            "vlan" => single(&VLAN, given).map(|vlan| condition.vlan = Some(vlan)),
            "ethertype" => single(&ETHERTYPE, given).map(|number| condition.ethertype = Some(number)),
            "outer_ethertype" => {
                single(&ETHERTYPE, given).map(|number| condition.outer_ethertype = Some(number))
            }
            name => Err(Mistake {
                span: key.span(),
                message: format!("a filter has no condition `{name}`"),
                label: "unknown condition".to_owned(),
                help: suggest::remedy(name, "conditions", known_keys()),
            }),
        };
        if let Err(mistake) = done {
            mistake.report(problems);
        }
    }
    header_bytes::complete(&draft.entries, &mut condition, problems);
    if problems.count() > before {
        return None;
    }
    let matches_all = deed.is_a_default() && condition == Match::default();
    let mut filter = Filter {
        preference,
        condition,
        ..Filter::default()
    };
    let header = draft.header.clone();
    if let Err(message) = deed.add_to(&mut filter) {
        let help = "add a line like class = 1, or say what else happens to the packets: drop = true, police, \
            set_priority, set_mark, set_dscp";
        problems.add(header, message, "`class` or another outcome is expected", help);
        return None;
    }
    if matches_all {
        let help = "add a condition such as dscp = \"EF\"; for packets that no filter matches, set `default`";
        problems.add(header, "the filter matches every packet", "no condition", help);
        return None;
    }
    Some(filter)
}

/// Reads a handle as tc writes it: hexadecimal, `"10"` or `"10:"`.
pub(crate) fn handle(given: &Spanned<Given>) -> Result<u16, Mistake> {
    let text = match given.get_ref() {
        Given::Text(text) | Given::Word(text) => Some(text.strip_suffix(':').unwrap_or(text)),
        _ => None,
    };
    // `from_str_radix` accepts a sign.
    let digits = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match digits.and_then(|text| u16::from_str_radix(text, 16).ok()) {
        Some(handle) if handle > 0 => Ok(handle),
        _ => Err(Mistake {
            span: given.span(),
            message: format!("{} is not a handle", given.get_ref().show()),
            label: "expected \"1\" to \"ffff\"".to_owned(),
            help: "write it as tc does, hexadecimal and in quotation marks: handle = \"10\"".to_owned(),
        }),
    }
}

/// Returns a filter as lines `key = value` of TOML, which are read as the same filter.
pub(crate) fn lines(filter: &Filter) -> Vec<String> {
    let mut lines = outcomes::lines(filter);
    lines.extend(conditions(filter));
    lines
}

/// Returns the preference and the conditions of a filter as lines.
fn conditions(filter: &Filter) -> Vec<String> {
    let condition = &filter.condition;
    let mut lines = Vec::new();
    let mut line =
        |key: &str, value: Option<String>| lines.extend(value.map(|value| format!("{key} = {value}")));
    line(
        "preference",
        (filter.preference != 0).then(|| filter.preference.to_string()),
    );
    line("source", condition.source.map(|prefix| format!("\"{prefix}\"")));
    line(
        "destination",
        condition.destination.map(|prefix| format!("\"{prefix}\"")),
    );
    line("source_port", condition.source_port.as_ref().map(show_range));
    line(
        "destination_port",
        condition.destination_port.as_ref().map(show_range),
    );
    line(
        "protocol",
        condition
            .protocol
            .map(|number| show_name(&PROTOCOL, number.into())),
    );
    line(
        "dscp",
        condition
            .dscp
            .as_ref()
            .map(|dscps| match dscps.start() == dscps.end() {
                true => show_name(&DSCP, u64::from(*dscps.start())),
                false => show_range(dscps),
            }),
    );
    line("priority", condition.priority.as_ref().map(show_range));
    line(
        "traffic_class",
        condition
            .traffic_class
            .map(|bits| show_masked(bits.value().into(), bits.mask().into(), TRAFFIC_CLASS.most)),
    );
    line(
        "mark",
        condition
            .mark
            .map(|bits| show_masked(bits.value().into(), bits.mask().into(), MARK.most)),
    );
    line("interface", condition.interface.map(|number| number.to_string()));
    line("vlan", condition.vlan.map(|vlan| vlan.to_string()));
    line(
        "ethertype",
        condition
            .ethertype
            .map(|number| show_name(&ETHERTYPE, number.into())),
    );
    line(
        "outer_ethertype",
        condition
            .outer_ethertype
            .map(|number| show_name(&ETHERTYPE, number.into())),
    );
    lines.extend(header_bytes::lines(condition));
    lines
}

/// Returns a filter in one line, for people.
pub(crate) fn shown(filter: &Filter) -> String {
    let plain = |lines: &[String]| lines.join(", ").replace(" = ", "=").replace('"', "");
    let conditions = match conditions(filter) {
        conditions if conditions.is_empty() => "everything".to_owned(),
        conditions => plain(&conditions),
    };
    let is_goal = |line: &&String| {
        ["class", "drop", "goto"]
            .iter()
            .any(|goal| line.starts_with(goal))
    };
    let deeds: Vec<String> = outcomes::lines(filter)
        .iter()
        .filter(|line| !is_goal(line))
        .cloned()
        .collect();
    let goal = outcomes::shown(filter);
    match deeds.is_empty() {
        true => format!("{conditions} {goal}"),
        false => format!("{conditions} {goal} ({})", plain(&deeds)),
    }
}

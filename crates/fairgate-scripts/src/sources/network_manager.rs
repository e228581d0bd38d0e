//! NetworkManager: the qdiscs and filters of a connection (`tc.qdiscs`, `tc.tfilters`), in the section `[tc]`
//! of its file or as nmcli(1) shows them. Their options are in tc's words.

use super::Writer;
use super::sections::{Section, ini, lines};

pub(super) fn read(writer: &mut Writer<'_>) {
    let (sections, _) = ini(writer.text);
    let of = |name: &str| sections.iter().find(|section| section.kind.get_ref() == name);
    let named = ["interface-name"]
        .into_iter()
        .find_map(|key| of("connection")?.text(key).map(str::to_owned));
    let at = sections.first().map_or(0..writer.text.len(), Section::at);
    let device = match writer.device.map(str::to_owned).or(named) {
        Some(device) => device,
        None => match writer.device(&at) {
            Some(device) => device,
            None => return,
        },
    };
    let mut without = Vec::new();
    for section in &sections {
        if section.kind.get_ref() != "tc" {
            without.extend(section.lines());
            continue;
        }
        for (key, value) in &section.entries {
            let options = value.get_ref();
            match key.get_ref().split_once('.') {
                Some(("qdisc", parent)) => {
                    let place = place(parent, options);
                    writer.command(
                        &key.span(),
                        format!("tc qdisc replace dev {device} {place}{options}"),
                    );
                }
                Some(("tfilter", parent)) => {
                    let parent = parent.trim_start_matches("parent ");
                    writer.command(
                        &key.span(),
                        format!("tc filter add dev {device} parent {parent} {options}"),
                    );
                }
                _ => {
                    let message = format!("`{}` of [tc] is not known", key.get_ref());
                    writer.problem(
                        key.span(),
                        &message,
                        "understood are qdisc.PARENT and tfilter.PARENT",
                    );
                }
            }
        }
    }
    writer
        .notes
        .add_lines(&without, "these sections are not about queues");
    // As nmcli shows it.
    for (start, line) in lines(writer.text, &['#']) {
        let at = start..start + line.len();
        let listed = |key: &str| {
            line.strip_prefix(key)
                .map(|rest| rest.trim_start_matches([':', '=']).trim().to_owned())
        };
        for (key, object) in [("tc.qdiscs", "qdisc replace"), ("tc.tfilters", "filter add")] {
            for one in listed(key).iter().flat_map(|list| list.split(',')).map(str::trim) {
                if !one.is_empty() && one != "--" {
                    writer.command(&at, format!("tc {object} dev {device} {one}"));
                }
            }
        }
    }
}

/// Returns the words for the place of a qdisc, whose options may begin with the kind.
fn place(parent: &str, options: &str) -> String {
    let is_hook = options
        .split_whitespace()
        .any(|word| matches!(word, "ingress" | "clsact"));
    match parent {
        _ if is_hook => String::new(),
        "root" => "root ".to_owned(),
        parent => format!("parent {parent} "),
    }
}

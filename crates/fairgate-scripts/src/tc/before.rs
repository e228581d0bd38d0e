//! The options of tc itself, before the object: `tc -s -n NS qdisc add`.

use fairgate_config::language::Problems;

use super::abbreviations::full;
use crate::script::Word;

/// tc's options without a value. They change what tc prints, or how it goes on after a mistake.
const FLAGS: [&str; 24] = [
    "statistics",
    "stats",
    "details",
    "raw",
    "pretty",
    "graph",
    "iec",
    "json",
    "oneline",
    "force",
    "timestamp",
    "tshort",
    "ts",
    "name",
    "color",
    "Numeric",
    "N",
    "br",
    "brief",
    "s",
    "d",
    "r",
    "p",
    "echo",
];

/// Removes the options before the object. Returns the network namespace that they name, or reports what can't
/// be read: then nothing of the line is left.
pub(super) fn take(words: &mut Vec<Word>, problems: &mut Problems) -> Result<Option<Word>, ()> {
    let mut namespace = None;
    while let Some(option) = words
        .first()
        .filter(|word| word.get_ref().starts_with('-'))
        .cloned()
    {
        words.remove(0);
        let text = option.get_ref().trim_start_matches('-');
        let what = match text.split('=').next().unwrap_or_default() {
            "n" | "net" | "netns" => "a network namespace",
            "cf" | "conf" => "a file with options",
            name if full(name, &FLAGS).is_none() && full(name, &["batch"]).is_some() => "a file",
            name if full(name, &FLAGS).is_some() => continue,
            _ => {
                let message = format!("`{}` is no option of tc", option.get_ref());
                let help = "before the object are options like -s, -d, -force, -n NAMESPACE";
                problems.add(option.span(), message, "unknown", help);
                return Err(());
            }
        };
        if words.is_empty() && what != "a file" {
            let message = format!("`{}` has no value", option.get_ref());
            let help = format!("write {what} after it");
            problems.add(option.span(), message, "a value is missing", help);
            return Err(());
        }
        match what {
            "a file" => {
                let file = words.first().map_or("-", |file| file.get_ref().as_str());
                let message = "the commands are in another file, which is not read with this one";
                let help = format!("read it itself: fairgate tc {file}");
                problems.add(option.span(), message, "another file", help);
                return Err(());
            }
            "a network namespace" => namespace = Some(words.remove(0)),
            _ => drop(words.remove(0)),
        }
    }
    Ok(namespace)
}

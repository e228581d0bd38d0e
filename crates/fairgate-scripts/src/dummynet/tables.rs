//! Tables of addresses: `table N add 192.0.2.0/24`, and `table(N)` in rules.

use std::collections::HashMap;

use fairgate_config::language::Problems;
use toml::Spanned;

use crate::script::{Word, prefix};

/// The addresses in each table after the last line. Rules look them up when packets come, so the order of
/// lines about tables and rules does not matter.
#[derive(Debug, Default)]
pub(crate) struct Tables(HashMap<String, Vec<String>>);

impl Tables {
    /// Returns the addresses of a table, if there is one.
    pub(super) fn addresses(&self, name: &str) -> Option<&[String]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Adds addresses to a table.
    pub(crate) fn fill(&mut self, name: String, addresses: Vec<String>) {
        self.0.entry(name).or_default().extend(addresses);
    }

    /// Reads a line, if it is about a table of ipfw. Its first word is `table` then.
    pub(super) fn read(&mut self, words: &[Word], problems: &mut Problems) {
        let texts: Vec<&str> = words.iter().map(|word| word.get_ref().as_str()).collect();
        let texts = match texts[..] {
            ["-q" | "-f" | "-qf" | "-fq", ref rest @ ..] => rest,
            ref all => all,
        };
        let ["table", name, verb, rest @ ..] = texts else {
            return;
        };
        if name.starts_with('<') {
            return;
        }
        let first = words.len() - rest.len();
        match (*verb, rest) {
            ("create", options) => {
                self.0.entry((*name).to_owned()).or_default();
                let kind = options.iter().position(|option| *option == "type");
                let kind = kind.map_or("addr", |at| options.get(at + 1).unwrap_or(&""));
                if kind != "addr" {
                    let message = format!("a table of type `{kind}` can't be carried over");
                    let help = "rules can name tables of addresses: type addr";
                    problems.add(words[first].span(), message, "not here", help);
                }
            }
            ("add", addresses) => {
                let table = self.0.entry((*name).to_owned()).or_default();
                // Each address may have a value, which only `tablearg` reads.
                for (at, address) in addresses.iter().enumerate() {
                    let is_value = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                    if is_value(address) && at > 0 {
                        continue;
                    }
                    match prefix(address) {
                        Some(_) => table.push((*address).to_owned()),
                        None => unknown(&words[first + at], problems),
                    }
                }
            }
            ("delete", addresses) => {
                let table = self.0.entry((*name).to_owned()).or_default();
                table.retain(|address| !addresses.iter().any(|other| prefix(other) == prefix(address)));
            }
            ("flush", _) => self.0.entry((*name).to_owned()).or_default().clear(),
            ("destroy", _) => {
                self.0.remove(*name);
            }
            // They only print.
            ("list" | "info" | "detail", _) => {}
            _ => {
                let message = format!("`{verb}` of a table can't be carried over");
                let help = "understood are create, add, delete, flush and destroy";
                problems.add(words[first - 1].span(), message, "unknown here", help);
            }
        }
    }
}

fn unknown(word: &Spanned<String>, problems: &mut Problems) {
    let message = format!("`{}` is not an address", word.get_ref());
    let help = "write an address or a prefix, like 192.0.2.0/24";
    problems.add(word.span(), message, "not an address", help);
}

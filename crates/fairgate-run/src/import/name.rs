//! Names from servers, as both files can have them.

use fairgate::harmless::is_hidden;

/// The longest name, in characters: that of a list.
const LONGEST: usize = 200;

/// Returns a name without what nobody sees, in one line, and not too long.
pub(crate) fn shown(name: &str) -> String {
    let words: Vec<String> = name
        .split_whitespace()
        .map(|word| word.chars().filter(|character| !is_hidden(*character)).collect())
        .collect();
    let whole = words.join(" ");
    let whole = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    whole
        .chars()
        .take(LONGEST)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// Returns a name that no other one has: with the identifier if it is taken.
pub(crate) fn distinct(name: &str, id: &str) -> String {
    let room = LONGEST.saturating_sub(id.chars().count() + 3);
    let short: String = name.chars().take(room).collect();
    shown(&format!("{} ({id})", short.trim_end()))
}

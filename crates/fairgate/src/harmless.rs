//! Text from elsewhere, as it may be shown to people.
//!
//! Names come from files, interfaces, captures and other processes. Shown as they are, they control a
//! terminal, reorder the line around them, or look like other names. Whatever shows a name, on a terminal or
//! in a page, passes it through [`name`], and whatever shows a text with names, through [`text`].

use alloc::string::String;

/// Returns the text with everything escaped that [`is_hidden`]: `\u{1b}`. Line ends and tabs are kept.
pub fn text(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t'))
}

/// Returns the name with everything escaped that [`is_hidden`], also line ends and tabs, which would break
/// the line or the table that the name is part of.
pub fn name(name: &str) -> String {
    escaped(name, |_| false)
}

fn escaped(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if is_kept(character) || !is_hidden(character) {
            plain.push(character);
        } else {
            plain.extend(character.escape_default());
        }
    }
    plain
}

/// Returns whether a terminal obeys the character or does not show it: Unicode's categories Cc, Zl, Zp and
/// Cf (but not its signs of Arabic and Indic numbers, which are drawn), and its property
/// `Default_Ignorable_Code_Point`.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn what_a_terminal_obeys_or_hides_is_shown_and_not_sent() {
        assert_eq!(text("a\x1b[2Jb\nc\u{9b}2Jd\r"), "a\\u{1b}[2Jb\nc\\u{9b}2Jd\\r");
        assert_eq!(
            text("\x1b[31;1mred\x1b[0m\t\u{e9}\u{4e2d}"),
            "\\u{1b}[31;1mred\\u{1b}[0m\t\u{e9}\u{4e2d}"
        );
        let hidden = "\u{7f}\u{ad}\u{61c}\u{200b}\u{200d}\u{200e}\u{200f}\u{2028}\u{202a}\u{202e}\
                      \u{2060}\u{2066}\u{2069}\u{3164}\u{fe0f}\u{feff}\u{e0041}";
        for character in hidden.chars() {
            assert_eq!(
                text(&character.to_string()),
                character.escape_unicode().to_string()
            );
        }
    }

    #[test]
    fn a_name_is_in_one_line() {
        assert_eq!(name("a\nb\tc\r"), "a\\nb\\tc\\r");
    }
}

//! The document: prose, and blocks of figures between markers.
//!
//! ```text
//!   <!-- figures: NAME -->
//!   what is replaced
//!   <!-- end -->
//! ```

use crate::figures::Result;

const BEGIN: &str = "<!-- figures: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// A piece of the document.
enum Piece<'t> {
    /// A line that stays.
    Line(&'t str),
    /// A block: its name, and what it holds.
    Block(&'t str, String),
}

/// Checks that the document has each of these blocks once, and no others.
pub(crate) fn check(text: &str, names: &[&str]) -> Result<()> {
    let found: Vec<&str> = pieces(text)?
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Block(name, _) => Some(name),
            Piece::Line(_) => None,
        })
        .collect();
    for name in names {
        match found.iter().filter(|found| found == &name).count() {
            1 => {}
            0 => {
                return Err(format!(
                    "the document has no block `{name}`: add {BEGIN}{name}{CLOSE} and {END}"
                ));
            }
            _ => return Err(format!("the document has the block `{name}` more than once")),
        }
    }
    match found.iter().find(|found| !names.contains(found)) {
        Some(name) => Err(format!(
            "nothing measures the block `{name}`; there are {}",
            names.join(", ")
        )),
        None => Ok(()),
    }
}

/// Replaces what these blocks hold. Others stay.
pub(crate) fn fill(text: &str, blocks: &[(&str, String)]) -> Result<String> {
    let mut filled = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Line(line) => filled += &format!("{line}\n"),
            Piece::Block(name, held) => {
                let block = blocks.iter().find(|(other, _)| *other == name);
                let content = block.map_or(&held, |(_, content)| content);
                filled += &format!("{BEGIN}{name}{CLOSE}\n\n{}\n\n{END}\n", content.trim());
            }
        }
    }
    Ok(filled)
}

/// Checks that each of these blocks was measured.
pub(crate) fn check_measured(names: &[&str], blocks: &[(&str, String)]) -> Result<()> {
    let is_measured = |name: &&&str| blocks.iter().any(|(other, _)| other == *name);
    match names.iter().find(|name| !is_measured(name)) {
        Some(name) => Err(format!("the block `{name}` was not measured")),
        None => Ok(()),
    }
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut open = None;
    for line in text.lines() {
        let begins = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(CLOSE));
        match (begins, &mut open) {
            (Some(name), None) => open = Some((name, String::new())),
            (Some(name), Some((other, _))) => {
                return Err(format!("the block `{name}` begins before `{other}` has ended"));
            }
            (None, Some((name, held))) if line == END => {
                pieces.push(Piece::Block(name, std::mem::take(held)));
                open = None;
            }
            (None, None) if line == END => return Err(format!("`{END}` ends no block")),
            (None, Some((_, held))) => *held += &format!("{line}\n"),
            (None, None) => pieces.push(Piece::Line(line)),
        }
    }
    match open {
        Some((name, _)) => Err(format!("the block `{name}` has no `{END}`")),
        None => Ok(pieces),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# Title\n<!-- figures: a -->\nold\n<!-- end -->\nprose\n<!-- figures: b -->\n<!-- end -->\n";

    #[test]
    fn blocks_are_replaced_and_prose_stays() {
        let blocks = [("b", "two".to_owned()), ("a", "one\n".to_owned())];
        let filled = fill(TEXT, &blocks).unwrap();
        let expected = "# Title\n<!-- figures: a -->\n\none\n\n<!-- end -->\nprose\n\
                        <!-- figures: b -->\n\ntwo\n\n<!-- end -->\n";
        assert_eq!(filled, expected);
        assert_eq!(
            fill(&filled, &blocks).unwrap(),
            expected,
            "a second time changes nothing"
        );
        assert_eq!(
            fill(&filled, &[]).unwrap(),
            expected,
            "what is not measured stays"
        );
    }

    #[test]
    fn a_block_that_is_missing_or_unknown_is_an_error() {
        assert!(check(TEXT, &["a", "b"]).is_ok());
        assert!(
            check(TEXT, &["a", "b", "c"])
                .unwrap_err()
                .contains("no block `c`")
        );
        assert!(
            check(TEXT, &["a"])
                .unwrap_err()
                .contains("nothing measures the block `b`")
        );
        assert!(
            check(&TEXT.repeat(2), &["a", "b"])
                .unwrap_err()
                .contains("more than once")
        );
        assert!(
            check_measured(&["a", "b"], &[("a", String::new())])
                .unwrap_err()
                .contains("`b` was not measured")
        );
        assert!(check_measured(&["a"], &[("a", String::new())]).is_ok());
    }

    #[test]
    fn markers_that_do_not_fit_together_are_an_error() {
        for (text, said) in [
            ("<!-- figures: a -->\n", "has no"),
            ("<!-- end -->\n", "ends no block"),
            (
                "<!-- figures: a -->\n<!-- figures: b -->\n<!-- end -->\n",
                "before `a` has ended",
            ),
        ] {
            let error = check(text, &[]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn the_document_has_the_blocks_that_are_measured() {
        let text = include_str!("../../../../docs/performance.md");
        check(text, &crate::figures::sections::blocks()).unwrap();
    }
}

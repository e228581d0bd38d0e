//! A file that says the rates.
//!
//! ```text
//! # written by a modem's script
//! left_to_right 9mbit
//! right_to_left 42mbit
//! ```
//!
//! A line without a direction is for all that follow. It is read at each review. A script should write
//! another file and rename it, so that no half-written one is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fairgate::Rate;
use fairgate::autorate::Bounds;
use fairgate_config::units::parse_rate;

/// More bytes are not read. Two rates and many comments have less.
const LONGEST: u64 = 64 * 1024;

/// Reads the rates of the directions with these names that follow.
///
/// # Errors
/// Says in a sentence what is wrong, where, and what to do.
pub(super) fn read(
    path: &Path,
    names: [&str; 2],
    bounds: &[Option<Bounds>; 2],
) -> Result<[Option<Rate>; 2], String> {
    let text = contents(path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
    parse(&text, names, bounds).map_err(|(line, what)| format!("{}:{line}: {what}", path.display()))
}

fn contents(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(
    text: &str,
    names: [&str; 2],
    bounds: &[Option<Bounds>; 2],
) -> Result<[Option<Rate>; 2], (usize, String)> {
    let mut rates = [None; 2];
    for (line, written) in (1..).zip(text.lines()) {
        let written = written.split('#').next().unwrap_or_default();
        let words: Vec<&str> = written.split_whitespace().collect();
        let (sides, rate) = match words[..] {
            [] => continue,
            [rate] => (0..2, rate),
            [name, rate] => match names.iter().position(|other| *other == name) {
                Some(side) => (side..side + 1, rate),
                None => {
                    return Err((
                        line,
                        format!(
                            "there is no direction `{name}`; write {} or {}",
                            names[0], names[1]
                        ),
                    ));
                }
            },
            _ => {
                return Err((
                    line,
                    format!(
                        "there are more than two words; write `{} 20mbit` or `20mbit`",
                        names[0]
                    ),
                ));
            }
        };
        let rate =
            parse_rate(rate).map_err(|error| (line, format!("{}; {}", error.message, error.remedy)))?;
        for side in sides {
            let Some(bounds) = bounds[side] else { continue };
            if rate < bounds.min || rate > bounds.max {
                return Err((
                    line,
                    format!(
                        "{rate} is not from {} to {}, the bounds of {}; write a rate within them",
                        bounds.min, bounds.max, names[side]
                    ),
                ));
            }
            rates[side] = Some(rate);
        }
    }
    if rates == [None; 2] {
        return Err((
            1,
            "there is no rate; write `20mbit`, or a direction and its rate".to_owned(),
        ));
    }
    Ok(rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 2] = ["left_to_right", "right_to_left"];

    fn read(text: &str) -> Result<[Option<Rate>; 2], (usize, String)> {
        let bounds = Bounds {
            min: Rate::mbit(2),
            base: Rate::mbit(10),
            max: Rate::mbit(20),
        };
        parse(text, NAMES, &[Some(bounds), Some(bounds)])
    }

    #[test]
    fn rates_are_read() {
        let [seven, nine] = [7, 9].map(|rate| Some(Rate::mbit(rate)));
        assert_eq!(read("7mbit"), Ok([seven, seven]));
        assert_eq!(
            read("# modem\n\nright_to_left 9mbit # now\n7mbit\n right_to_left  9mbit"),
            Ok([seven, nine])
        );
        assert_eq!(read("left_to_right 7mbit\n"), Ok([seven, None]));
        // A direction that does not follow has no bounds and gets no rate.
        let bounds = Bounds {
            min: Rate::mbit(2),
            base: Rate::mbit(2),
            max: Rate::mbit(9),
        };
        assert_eq!(parse("9mbit", NAMES, &[None, Some(bounds)]), Ok([None, nine]));
    }

    #[test]
    fn mistakes_have_a_line() {
        for (text, line, what) in [
            ("", 1, "no rate"),
            ("7mbit\n\n1mbit", 3, "not from 2Mbit to 20Mbit"),
            ("21mbit", 1, "not from"),
            ("up 7mbit", 1, "no direction `up`"),
            ("left_to_right 7 mbit", 1, "more than two words"),
            ("7mbitt", 1, ""),
            ("0bit", 1, ""),
        ] {
            let (found, message) = read(text).expect_err(text);
            assert!(
                found == line && message.contains(what),
                "{text}: {found}: {message}"
            );
        }
    }
}

//! Reads the expressions of `basic` filters (ematches), for example
//! `cmp(u8 at 0 layer 2 mask 0xff gt 10) and not u32(u32 0x10 0xff at 4)`.
//!
//! All conditions of a filter must hold here. So an expression becomes one or more sets of conditions, and
//! each set a filter. A condition that must not hold becomes the ranges beside it. As in the kernel
//! (`__tcf_em_tree_match`), `and` and `or` have the same rank, and the rest of the expression is their right
//! side.

use std::ops::Range;

use fairgate_config::language::{Given, Written};

use super::Reader;
use crate::script::{Word, number, setting};

/// The length of the header of a frame.
const HEADER: u32 = 14;

/// The largest number of sets.
const MOST: usize = 256;

/// Sets of conditions, one of which must hold.
type Sets = Vec<Vec<Written>>;

/// A part of an expression: a word, or a character that stands alone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    location: Range<usize>,
}

enum Expression {
    Condition {
        name: Token,
        arguments: Vec<Token>,
        is_negated: bool,
    },
    Both(Box<Expression>, Box<Expression>),
    Either(Box<Expression>, Box<Expression>),
}

/// Why an expression can't be carried over: the place, what, and the remedy.
struct Mistake(Range<usize>, String, String);

const FORM: &str = "understood are cmp, u32, nbyte and meta of nf_mark, priority, vlan, pkt_len and \
    protocol, with and, or, not and parentheses";

impl<'f> Reader<'f, '_> {
    /// Reads the expression after `match`. Adds its sets of conditions.
    pub(super) fn ematch(&mut self, keyword: &'f Word) {
        let mut tokens = Vec::new();
        let is_end = |word: &Word| {
            matches!(
                word.get_ref().as_str(),
                "classid" | "flowid" | "action" | "police" | "chain"
            )
        };
        while let [word, ..] = self.words.as_slice()
            && !is_end(word)
        {
            tokens.extend(split(word));
            self.words.next();
        }
        let mut parser = Parser {
            tokens: &tokens,
            end: keyword.span(),
            depth: 0,
        };
        let sets = parser
            .expression(false)
            .and_then(|expression| match parser.tokens.first() {
                None => sets(&expression),
                Some(rest) => Err(Mistake(
                    rest.location.clone(),
                    format!("`{}` is not expected here", rest.text),
                    FORM.to_owned(),
                )),
            });
        match sets {
            Ok(sets) => self.alternatives = sets,
            Err(Mistake(location, message, help)) => {
                self.problems.add(location, message, "not here", help);
                self.words = [].iter();
            }
        }
    }
}

/// Splits a word at parentheses and operators.
fn split(word: &Word) -> Vec<Token> {
    let text = word.get_ref();
    let mut tokens: Vec<Token> = Vec::new();
    let mut current = String::new();
    let flush = |current: &mut String, tokens: &mut Vec<Token>| {
        if !current.is_empty() {
            tokens.push(Token {
                text: std::mem::take(current),
                location: word.span(),
            });
        }
    };
    let mut is_quoted = false;
    for character in text.chars() {
        match character {
            '"' => {
                is_quoted = !is_quoted;
                current.push(character);
            }
            '(' | ')' if !is_quoted => {
                flush(&mut current, &mut tokens);
                tokens.push(Token {
                    text: character.to_string(),
                    location: word.span(),
                });
            }
            _ if character.is_whitespace() && !is_quoted => flush(&mut current, &mut tokens),
            _ => current.push(character),
        }
    }
    flush(&mut current, &mut tokens);
    tokens
}

struct Parser<'t> {
    tokens: &'t [Token],
    end: Range<usize>,
    depth: usize,
}

impl Parser<'_> {
    fn next(&mut self) -> Result<Token, Mistake> {
        match self.tokens.split_first() {
            Some((first, rest)) => {
                self.tokens = rest;
                Ok(first.clone())
            }
            None => Err(Mistake(
                self.end.clone(),
                "the expression is not complete".to_owned(),
                FORM.to_owned(),
            )),
        }
    }

    fn expression(&mut self, is_negated: bool) -> Result<Expression, Mistake> {
        self.depth += 1;
        if self.depth > 100 {
            let help = "write several filters";
            return Err(Mistake(
                self.end.clone(),
                "the expression is too deep".to_owned(),
                help.to_owned(),
            ));
        }
        let left = self.term(is_negated)?;
        let Some(operator) = self.tokens.first() else {
            return Ok(left);
        };
        // De Morgan: what is negated swaps the operators.
        let is_and = match operator.text.as_str() {
            "and" | "AND" | "&&" => true,
            "or" | "OR" | "||" => false,
            _ => return Ok(left),
        };
        self.next()?;
        let right = self.expression(is_negated)?;
        Ok(match is_and != is_negated {
            true => Expression::Both(Box::new(left), Box::new(right)),
            false => Expression::Either(Box::new(left), Box::new(right)),
        })
    }

    fn term(&mut self, is_negated: bool) -> Result<Expression, Mistake> {
        let first = self.next()?;
        match first.text.as_str() {
            "not" | "NOT" | "!" => {
                self.depth += 1;
                if self.depth > 100 {
                    return Err(Mistake(
                        first.location,
                        "the expression is too deep".to_owned(),
                        FORM.to_owned(),
                    ));
                }
                self.term(!is_negated)
            }
            "(" => {
                let inner = self.expression(is_negated)?;
                self.close()?;
                Ok(inner)
            }
            _ => {
                let open = self.next()?;
                if open.text != "(" {
                    let message = format!("expected `(` after `{}`", first.text);
                    return Err(Mistake(open.location, message, FORM.to_owned()));
                }
                let mut arguments = Vec::new();
                loop {
                    let argument = self.next()?;
                    if argument.text == ")" {
                        break;
                    }
                    arguments.push(argument);
                }
                Ok(Expression::Condition {
                    name: first,
                    arguments,
                    is_negated,
                })
            }
        }
    }

    fn close(&mut self) -> Result<(), Mistake> {
        let close = self.next()?;
        match close.text == ")" {
            true => Ok(()),
            false => Err(Mistake(
                close.location,
                "expected `)`".to_owned(),
                FORM.to_owned(),
            )),
        }
    }
}

fn sets(expression: &Expression) -> Result<Sets, Mistake> {
    match expression {
        Expression::Condition {
            name,
            arguments,
            is_negated,
        } => condition(name, arguments, *is_negated),
        Expression::Either(left, right) => {
            let mut either = sets(left)?;
            either.extend(sets(right)?);
            limited(either, left)
        }
        Expression::Both(left, right) => {
            let (first, second) = (sets(left)?, sets(right)?);
            if first.len() * second.len() > MOST {
                return limited(vec![Vec::new(); MOST + 1], left);
            }
            let mut sets = Vec::new();
            for first in &first {
                for second in &second {
                    let repeated = |(key, _): &&Written| {
                        key.get_ref() != "bytes"
                            && first.iter().any(|(other, _)| other.get_ref() == key.get_ref())
                    };
                    if let Some((key, _)) = second.iter().find(repeated) {
                        let message =
                            format!("two conditions on the {} can't be carried over", key.get_ref());
                        let help = "write one condition for both".to_owned();
                        return Err(Mistake(key.span(), message, help));
                    }
                    sets.push([&first[..], &second[..]].concat());
                }
            }
            Ok(sets)
        }
    }
}

fn limited(sets: Sets, expression: &Expression) -> Result<Sets, Mistake> {
    match sets.len() > MOST {
        true => Err(Mistake(
            location(expression),
            "the expression has too many alternatives".to_owned(),
            "write several filters".to_owned(),
        )),
        false => Ok(sets),
    }
}

fn location(expression: &Expression) -> Range<usize> {
    match expression {
        Expression::Condition { name, .. } => name.location.clone(),
        Expression::Both(left, _) | Expression::Either(left, _) => location(left),
    }
}

/// Returns the sets for a condition or its opposite.
fn condition(name: &Token, arguments: &[Token], is_negated: bool) -> Result<Sets, Mistake> {
    let why = match name.text.as_str() {
        "cmp" => return cmp(name, arguments, is_negated),
        "u32" => return u32_key(name, arguments, is_negated),
        "nbyte" => return nbyte(name, arguments, is_negated),
        "meta" => return meta(name, arguments, is_negated),
        "ipset" | "ipt" => "the machine's own netfilter has these sets",
        "canid" => "it matches frames of a CAN bus",
        "text" => "it searches the whole packet, of which only the headers are kept",
        _ => "it is unknown here",
    };
    Err(Mistake(
        name.location.clone(),
        format!("`{}` can't be carried over: {why}", name.text),
        FORM.to_owned(),
    ))
}

fn malformed(name: &Token, form: &str) -> Mistake {
    let message = format!("`{}` can't be read", name.text);
    Mistake(name.location.clone(), message, format!("write {form}"))
}

/// What offsets count from, and by how much they are moved.
fn layer(name: &str) -> Option<(&'static str, i64)> {
    Some(match name {
        "0" | "link" => ("network", -14),
        "1" | "network" => ("network", 0),
        "2" | "transport" => ("transport", 0),
        _ => return None,
    })
}

/// Returns the sets for a number of bytes in a range, or outside of it.
fn bytes(name: &Token, place: &str, width: u32, mask: u32, range: (u32, u32), is_negated: bool) -> Sets {
    let all = mask == u32::MAX >> (32 - 8 * width);
    let (first, last) = range;
    let wanted = match is_negated {
        false => vec![(first, last)],
        true => {
            let below = first.checked_sub(1).map(|below| (0, below));
            let above = (last < mask).then(|| (last + 1, mask));
            below.into_iter().chain(above).collect()
        }
    };
    let set = |(first, last): (u32, u32)| {
        let mask = if all { String::new() } else { format!("/{mask:#x}") };
        let text = match first == last {
            // A number with other bits than the mask never matches.
            true => format!("{place} u{} {first:#x}{mask}", 8 * width),
            false => format!("{place} u{} {first:#x}-{last:#x}{mask}", 8 * width),
        };
        vec![setting(&name.location, "bytes", Given::Text(text))]
    };
    // A single number with bits outside of the mask has no packets.
    let exists = |(first, last): &(u32, u32)| first != last || first & !mask == 0;
    wanted.into_iter().filter(exists).map(set).collect()
}

fn place(layer: (&'static str, i64), offset: i64) -> String {
    let (header, moved) = layer;
    let offset = offset + moved;
    match header {
        "transport" => format!("transport+{offset}"),
        _ => format!("network{offset:+}"),
    }
}

fn cmp(name: &Token, arguments: &[Token], is_negated: bool) -> Result<Sets, Mistake> {
    const CMP: &str = "cmp(u8 at 0 layer 2 mask 0xff gt 10)";
    let error = || malformed(name, CMP);
    let words: Vec<&str> = arguments.iter().map(|token| token.text.as_str()).collect();
    let (align, rest) = words.split_first().ok_or_else(error)?;
    let width = match *align {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        _ => return Err(error()),
    };
    let most = u32::MAX >> (32 - 8 * width);
    // It swaps the bytes of the number on most processors. A single byte stays as it is.
    let rest: Vec<&str> = rest.iter().filter(|word| **word != "trans").copied().collect();
    if width > 1 && rest.len() + 1 < words.len() {
        let message = "`trans` of more than one byte can't be carried over";
        let help = "leave it out, and write the number in the order of the packet";
        return Err(Mistake(
            name.location.clone(),
            message.to_owned(),
            help.to_owned(),
        ));
    }
    let (mut at, mut of, mut mask, mut found) = (0, ("network", 0), most, None);
    for pair in rest.chunks(2) {
        let [key, value] = pair else { return Err(error()) };
        match *key {
            "at" => at = i64::from(number(value).ok_or_else(error)?),
            "layer" => of = layer(value).ok_or_else(error)?,
            "mask" => mask = number(value).filter(|mask| *mask <= most).ok_or_else(error)?,
            "eq" | "lt" | "gt" => found = Some((*key, number(value).ok_or_else(error)?)),
            _ => return Err(error()),
        }
    }
    // A mask of 0 is none.
    let mask = if mask == 0 { most } else { mask };
    let (operator, value) = found.ok_or_else(error)?;
    let range = match operator {
        "eq" => Some((value, value)).filter(|_| value <= mask),
        "lt" => value.checked_sub(1).map(|last| (0, last.min(mask))),
        _ => Some((value.saturating_add(1), mask)).filter(|_| value < mask),
    };
    Ok(match (range, is_negated) {
        (Some(range), _) => bytes(name, &place(of, at), width, mask, range, is_negated),
        // It never holds.
        (None, false) => Vec::new(),
        (None, true) => vec![Vec::new()],
    })
}

fn u32_key(name: &Token, arguments: &[Token], is_negated: bool) -> Result<Sets, Mistake> {
    let error = || malformed(name, "u32(u32 0x10 0xff at 4)");
    let words: Vec<&str> = arguments.iter().map(|token| token.text.as_str()).collect();
    let [align, value, mask, "at", offset] = words[..] else {
        return Err(error());
    };
    let width = match align {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        _ => return Err(error()),
    };
    // Without a table nexthdr counts from the IP header, too.
    let offset = offset.strip_prefix("nexthdr+").unwrap_or(offset);
    let most = u32::MAX >> (32 - 8 * width);
    let fits = |number: &u32| *number <= most;
    let value = number(value).filter(fits).ok_or_else(error)?;
    let mask = super::keys::mask_of(mask).filter(fits).ok_or_else(error)?;
    // The header of Ethernet is before that of IP.
    let at = match offset.strip_prefix('-') {
        Some(before) => -i64::from(number(before).ok_or_else(error)?),
        None => i64::from(number(offset).ok_or_else(error)?),
    };
    if mask == 0 {
        return Ok(if is_negated { Vec::new() } else { vec![Vec::new()] });
    }
    let range = (value & mask, value & mask);
    Ok(bytes(
        name,
        &place(("network", 0), at),
        width,
        mask,
        range,
        is_negated,
    ))
}

fn nbyte(name: &Token, arguments: &[Token], is_negated: bool) -> Result<Sets, Mistake> {
    let error = || malformed(name, "nbyte(\"abc\" at 12 layer 1)");
    let words: Vec<&str> = arguments.iter().map(|token| token.text.as_str()).collect();
    let [needle, "at", offset, "layer", of] = words[..] else {
        return Err(error());
    };
    let needle = needle.trim_matches('"').as_bytes();
    let at = number(offset).ok_or_else(error)?;
    let of = layer(of).ok_or_else(error)?;
    if needle.is_empty() || needle.len() > 16 {
        return Err(error());
    }
    let mut parts = Vec::new();
    let mut from = 0;
    while from < needle.len() {
        let width = match needle.len() - from {
            4.. => 4,
            2..4 => 2,
            _ => 1,
        };
        let value = needle[from..from + width]
            .iter()
            .fold(0, |value, byte| value << 8 | u32::from(*byte));
        let width = width as u32;
        let mask = u32::MAX >> (32 - 8 * width);
        let place = place(of, i64::from(at) + from as i64);
        parts.push(bytes(name, &place, width, mask, (value, value), is_negated));
        from += width as usize;
    }
    Ok(match is_negated {
        // Some part is different.
        true => parts.concat(),
        false => vec![parts.into_iter().flatten().flatten().collect()],
    })
}

fn meta(name: &Token, arguments: &[Token], is_negated: bool) -> Result<Sets, Mistake> {
    let error = || malformed(name, "meta(nf_mark mask 0xff eq 0x10) or meta(priority gt 5)");
    let words: Vec<&str> = arguments.iter().map(|token| token.text.as_str()).collect();
    let (key, rest) = words.split_first().ok_or_else(error)?;
    let (mut mask, mut found) = (u32::MAX, None);
    for pair in rest.chunks(2) {
        let [word, value] = pair else { return Err(error()) };
        let value = number(value).ok_or_else(error)?;
        match *word {
            "mask" => mask = value,
            "eq" | "lt" | "gt" => found = Some((*word, value)),
            _ => return Err(error()),
        }
    }
    let (operator, value) = found.ok_or_else(error)?;
    let one = |key: &str, text: String| vec![vec![setting(&name.location, key, Given::Text(text))]];
    match (*key, operator) {
        ("nf_mark" | "fwmark" | "mark", "eq") if !is_negated => match value & !mask {
            0 => Ok(one("mark", format!("{value:#x}/{mask:#x}"))),
            _ => Ok(Vec::new()),
        },
        ("nf_mark" | "fwmark" | "mark", _) => Err(Mistake(
            name.location.clone(),
            "only `eq` of a mark can be carried over, and not its opposite".to_owned(),
            "write filters for the marks that go elsewhere, with a lower prio".to_owned(),
        )),
        ("vlan", "eq") if !is_negated && mask & 0xfff == 0xfff => Ok(match value & mask {
            tag @ 1..=0xfff => vec![vec![setting(&name.location, "vlan", Given::Integer(tag.into()))]],
            // No frame has another identifier.
            _ => Vec::new(),
        }),
        // In the kernel the protocol is in the order of the network.
        ("protocol", "eq") if !is_negated && mask & 0xffff == 0xffff => {
            let number = (value & 0xffff) as u16;
            let ethertype = if number >= 0x0600 {
                number
            } else {
                number.swap_bytes()
            };
            let key = Given::Integer(ethertype.into());
            Ok(vec![vec![setting(&name.location, "outer_ethertype", key)]])
        }
        ("pkt_len", _) if mask == u32::MAX => {
            let (first, last) = match operator {
                "eq" => (value, value),
                "lt" => (0, value.saturating_sub(1)),
                _ => (value.saturating_add(1), u32::MAX),
            };
            let ranges = match is_negated {
                false => vec![(first, last)],
                true => {
                    let below = first.checked_sub(1).map(|below| (0, below));
                    let above = last.checked_add(1).map(|above| (above, u32::MAX));
                    below.into_iter().chain(above).collect()
                }
            };
            // The kernel counts the Ethernet header, too.
            let ranges = ranges.into_iter().filter(|(_, last)| *last >= HEADER);
            let in_ip = |length: u32| length.saturating_sub(HEADER).min(u32::from(u16::MAX));
            let sets =
                ranges.flat_map(|(first, last)| one("length", format!("{}-{}", in_ip(first), in_ip(last))));
            Ok(sets.collect())
        }
        ("priority", _) if mask == u32::MAX => {
            let (first, last) = match operator {
                "eq" => (value, value),
                "lt" => match value.checked_sub(1) {
                    Some(last) => (0, last),
                    None => return Ok(if is_negated { vec![Vec::new()] } else { Vec::new() }),
                },
                _ => (value.saturating_add(1), u32::MAX),
            };
            let ranges = match is_negated {
                false => vec![(first, last)],
                true => {
                    let below = first.checked_sub(1).map(|below| (0, below));
                    let above = last.checked_add(1).map(|above| (above, u32::MAX));
                    below.into_iter().chain(above).collect()
                }
            };
            // Here priorities are 0 to 15.
            let ranges = ranges.into_iter().filter(|(first, _)| *first <= 15);
            let sets = ranges.flat_map(|(first, last)| one("priority", format!("{first}-{}", last.min(15))));
            Ok(sets.collect())
        }
        _ => Err(Mistake(
            name.location.clone(),
            format!("`meta({key})` can't be carried over"),
            FORM.to_owned(),
        )),
    }
}

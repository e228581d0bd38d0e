//! Rates of a node in LibreQoS' network.json.

use super::Replacement;
use crate::subscribers::fields::{Raw, mbit_text};
use crate::subscribers::json::{self, Json, Member, Value};
use crate::subscribers::libreqos::{CHILDREN, RATES};
use crate::subscribers::texts::Mistake;

/// Returns what gives the node of this name other rates, down and up: the values alone. A value that says the
/// same already stays as it is written.
pub(crate) fn replacements(
    content: &str,
    name: &str,
    rates: [Option<u64>; 2],
) -> Result<Vec<Replacement>, Mistake> {
    let whole = json::parse(content)?;
    let mut replaced = Vec::new();
    if let Some(Value::Object(members)) = find(&whole, name) {
        for (key, bits) in RATES.into_iter().zip(rates) {
            if let (Some(bits), Some(member)) = (bits, last(members, key)) {
                replaced.extend(replacement(&member.value, bits));
            }
        }
    }
    Ok(replaced)
}

/// Returns the members of a node. The names of nodes are unique.
fn find<'j, 't>(nodes: &'j Json<'t>, name: &str) -> Option<&'j Value<'t>> {
    let Value::Object(nodes) = &nodes.value else {
        return None;
    };
    nodes.iter().find_map(|node| match &node.value.value {
        own if node.name == name => Some(own),
        Value::Object(members) => last(members, CHILDREN).and_then(|below| find(&below.value, name)),
        _ => None,
    })
}

/// Returns the member that counts if one is given twice, as the reader takes it.
fn last<'j, 't>(members: &'j [Member<'t>], key: &str) -> Option<&'j Member<'t>> {
    members.iter().rev().find(|member| member.name == key)
}

/// Writes a rate as it was written: a number, or the text of one.
fn replacement(value: &Json<'_>, bits: u64) -> Option<Replacement> {
    let span = value.span.clone();
    let (known, new) = match &value.value {
        Value::Text(text) => (text.as_ref(), format!("\"{}\"", mbit_text(bits))),
        Value::Number(text) => (*text, mbit_text(bits)),
        _ => return None,
    };
    let is_same = Raw::new(known, span.clone()).mbit("") == Ok(bits);
    (!is_same).then_some((span, new))
}

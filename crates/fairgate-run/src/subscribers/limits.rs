//! Limits for a time: a subscriber has other rates until then, and afterwards those of the list again.
//!
//! They are in a text of their own beside the list, and not in the list: so the list always says what holds
//! without them, nothing has to be written when they end, another program that writes the list anew does not
//! end them, and LibreQoS finds no column that it does not know.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::fields::LEAST;
use super::list::{DOWN, Limit, UP};
use super::numbers::MOST;
use super::texts::{Mistake, Text};

/// How the name of the text ends.
const ENDING: &str = ".limits";

const SCHEMA: &str = "fairgate.limits/1";

/// The longest time of a limit, seconds: a year.
pub const LONGEST_LIMIT_S: u64 = 366 * 24 * 3600;

/// Limits by the identifiers of subscribers. Some may have ended.
pub(crate) type Limits = BTreeMap<String, Limit>;

/// Returns the time, seconds since 1970.
pub(crate) fn now_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    limits: Vec<Written>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    down_bps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    up_bps: Option<u64>,
    until_s: u64,
}

/// Returns the place of the limits among the texts of a list, if they are there. They are the last ones.
pub(crate) fn place(texts: &[Text]) -> Option<usize> {
    let last = texts.len().checked_sub(1)?;
    let name = Path::new(&texts[last].name).file_name()?.to_string_lossy();
    (name.starts_with('.') && name.ends_with(ENDING)).then_some(last)
}

/// Reads the limits.
pub(crate) fn read(content: &str) -> Result<Limits, Mistake> {
    let wrong = |message: String| {
        let help = "remove the file: then no limit for a time holds, and all have the rates of the list";
        Mistake::new(0..0, message, "no limits", help)
    };
    let document: Document =
        serde_json::from_str(content).map_err(|error| wrong(format!("these are no limits: {error}")))?;
    if document.schema != SCHEMA || document.limits.len() > MOST {
        return Err(wrong(format!("this is no {SCHEMA} with at most {MOST} limits")));
    }
    let limit = |one: Written| {
        let rates = [one.down_bps, one.up_bps];
        match rates.iter().flatten().all(|rate| *rate >= LEAST) {
            true => Ok((
                one.id,
                Limit {
                    rates,
                    until_s: one.until_s,
                },
            )),
            false => Err(wrong(format!("the limit of `{}` is below {LEAST} bit/s", one.id))),
        }
    };
    document.limits.into_iter().map(limit).collect()
}

/// Writes those that hold.
pub(crate) fn written(limits: &Limits, now_s: u64) -> String {
    let holding = limits.iter().filter(|(_, limit)| limit.holds(now_s));
    let written = holding.map(|(id, limit)| Written {
        id: id.clone(),
        down_bps: limit.rates[DOWN],
        up_bps: limit.rates[UP],
        until_s: limit.until_s,
    });
    let document = Document {
        schema: SCHEMA.to_owned(),
        limits: written.collect(),
    };
    serde_json::to_string_pretty(&document).unwrap_or_default() + "\n"
}

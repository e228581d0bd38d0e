//! Limits for a time, as they are asked for.

use fairgate::Rate;
use fairgate_config::units::parse_rate;
use fairgate_run_api::Refused;
use serde_json::{Map, Value};

use crate::subscribers::{DOWN, LEAST, LONGEST_LIMIT_S, Limit, LimitChanges, UP, now_s};

/// Returns what subscribers get for so many seconds from now on. With 0 it ends.
pub(super) fn limits(
    patches: Vec<(String, Map<String, Value>)>,
    for_s: u64,
) -> Result<LimitChanges, Refused> {
    let wrong = |why: String| Err(Refused::Malformed(why));
    if for_s > LONGEST_LIMIT_S {
        return wrong(format!("a limit for a time lasts at most {LONGEST_LIMIT_S} s"));
    }
    let until_s = now_s() + for_s;
    let mut limits = LimitChanges::new();
    for (id, members) in patches {
        let mut rates = [None; 2];
        for (name, value) in &members {
            let side = match name.as_str() {
                "down" => DOWN,
                "up" => UP,
                other => {
                    return wrong(format!(
                        "for a time only `down` and `up` can change, not `{other}`"
                    ));
                }
            };
            rates[side] = Some(rate(name, value.as_str().unwrap_or_default())?);
        }
        limits.push(match (for_s, rates) {
            (0, _) => (id, None),
            (_, [None, None]) => return wrong(format!("`{id}` has neither `down` nor `up`")),
            (_, rates) => (id, Some(Limit { rates, until_s })),
        });
    }
    Ok(limits)
}

/// Reads a rate, which messages call `name`, bit/s.
pub(super) fn rate(name: &str, text: &str) -> Result<u64, Refused> {
    match parse_rate(text).map(Rate::bits_per_second) {
        Ok(bits) if bits >= LEAST => Ok(bits),
        _ => Err(Refused::Malformed(format!(
            "`{name}` must be a rate of at least 10kbit, like 50mbit"
        ))),
    }
}

/// Describes them for the audit.
pub(super) fn described(limits: &LimitChanges, for_s: u64) -> String {
    let one = |(id, limit): &(String, Option<Limit>)| match limit {
        None => format!("end the limit of subscriber {id}"),
        Some(limit) => {
            let rate = |side: usize| limit.rates[side].map_or("-".to_owned(), |bits| bits.to_string());
            format!(
                "limit subscriber {id} for {for_s} s: down {}, up {} bit/s",
                rate(DOWN),
                rate(UP)
            )
        }
    };
    limits.iter().map(one).collect::<Vec<_>>().join("; ")
}

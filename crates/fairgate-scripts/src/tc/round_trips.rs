//! Translates dualpi2's round-trip times into the parameters of its controller, as tc does.

use fairgate_config::language::{Given, Written};
use fairgate_config::units;
use toml::Spanned;

use super::sharing::{Mismatch, take};
use crate::script::setting;

/// The ratio of the longest to the typical round-trip time, if only one of the two is given.
const TYPICAL_TO_MAX: u64 = 6;

/// Replaces `max_rtt` and `typical_rtt` by `target`, `tupdate`, `alpha` and `beta`, by tc's rule (iproute2,
/// q_dualpi2.c; RFC 9332, appendix A). `target` is the typical round-trip time. `tupdate` is the typical
/// round-trip time, but at most a third of the longest. `alpha` is 0.1 `tupdate` / max², and `beta` is 0.3 /
/// max.
pub(super) fn settle(settings: &mut Vec<Written>) -> Result<(), Mismatch> {
    let (max, typical) = (take(settings, "max_rtt"), take(settings, "typical_rtt"));
    let Some(location) = max.as_ref().or(typical.as_ref()).map(|(_, given)| given.span()) else {
        return Ok(());
    };
    let wrong = |message: &str| Mismatch {
        location: location.clone(),
        message: message.to_owned(),
    };
    let own = ["target", "tupdate", "alpha", "beta"];
    if let Some((key, _)) = settings
        .iter()
        .find(|(key, _)| own.contains(&key.get_ref().as_str()))
    {
        return Err(Mismatch {
            location: key.span(),
            message: format!(
                "`{}` can't be combined with round-trip times: tc would ignore it",
                key.get_ref()
            ),
        });
    }
    let micros = |written: Option<Written>| written.map(|(_, given)| micros(&given)).transpose();
    let (max, typical) = match (micros(max)?, micros(typical)?) {
        (Some(max), None) => (max, (max / TYPICAL_TO_MAX).max(1)),
        (None, Some(typical)) => (typical * TYPICAL_TO_MAX, typical),
        (max, typical) => max
            .zip(typical)
            .ok_or_else(|| wrong("no round-trip time is given"))?,
    };
    if typical > max {
        return Err(wrong("the typical round-trip time is longer than the longest"));
    }
    let tupdate = typical.min(max / 3).max(1);
    // Both are in 256ths of 1/s, rounded down.
    let alpha = u128::from(tupdate) * 25_600_000 / (u128::from(max) * u128::from(max));
    let beta = 76_800_000 / max;
    if alpha == 0 || beta == 0 {
        return Err(wrong("alpha or beta would be 0 with this long round-trip time"));
    }
    let word = |name: &str, micros: u64| setting(&location, name, Given::Word(format!("{micros}us")));
    settings.push(word("target", typical));
    settings.push(word("tupdate", tupdate));
    settings.push(setting(&location, "alpha", Given::Integer(alpha as i128)));
    settings.push(setting(&location, "beta", Given::Integer(beta.into())));
    Ok(())
}

/// Reads a round-trip time above 0, up to one minute, in microseconds.
fn micros(given: &Spanned<Given>) -> Result<u64, Mismatch> {
    let wrong = |message: String| Mismatch {
        location: given.span(),
        message,
    };
    let (Given::Word(word) | Given::Meant(word)) = given.get_ref() else {
        return Err(wrong("a round-trip time must be a time".to_owned()));
    };
    let time = units::parse_duration(word).map_err(|error| wrong(error.message))?;
    match u64::try_from(time.as_micros()) {
        Ok(micros @ 1..=60_000_000) => Ok(micros),
        _ => Err(wrong(format!("a round-trip time of {word} is out of range"))),
    }
}

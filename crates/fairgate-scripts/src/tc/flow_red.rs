//! RED on the flows of sfq: the thresholds that tc derives from `redflowlimit` (iproute2, q_sfq.c).

use fairgate_config::language::{Given, Written};
use fairgate_config::units;

use super::sharing::{Mismatch, take};
use crate::script::setting;

/// The options that only RED has.
const OF_RED: [&str; 7] = ["min", "max", "avpkt", "burst", "probability", "ecn", "harddrop"];

/// Takes `redflowlimit` out of the settings. A missing `max` is a quarter of it, a missing `min` a third of
/// `max`.
pub(super) fn settle(settings: &mut Vec<Written>) -> Result<(), Mismatch> {
    let of_red = settings
        .iter()
        .find(|(key, _)| OF_RED.contains(&key.get_ref().as_str()))
        .map(|(key, _)| key.span());
    let Some((_, limit)) = take(settings, "redflowlimit") else {
        return match of_red {
            None => Ok(()),
            Some(location) => Err(Mismatch {
                location,
                message: "tc wants `redflowlimit` beside the options of RED".to_owned(),
            }),
        };
    };
    let size = |given: &Given| match given {
        Given::Word(text) | Given::Meant(text) => units::parse_size(text).ok(),
        Given::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let location = limit.span();
    let Some(limit) = size(limit.get_ref()) else {
        return Err(Mismatch {
            location,
            message: "`redflowlimit` is no number of bytes".to_owned(),
        });
    };
    let known = |name: &str| settings.iter().find(|(key, _)| key.get_ref() == name);
    let max = match known("max") {
        Some((_, given)) => size(given.get_ref()),
        None => Some(limit / 4),
    };
    // A size that can't be read is reported where it is checked.
    let Some(max) = max else { return Ok(()) };
    if max > limit {
        return Err(Mismatch {
            location,
            message: "`max` is above `redflowlimit`".to_owned(),
        });
    }
    let bytes = |name: &str, bytes: u64| setting(&location, name, Given::Integer(bytes.into()));
    let missing = [("max", max), ("min", max / 3)]
        .into_iter()
        .filter(|(name, _)| known(name).is_none())
        .map(|(name, number)| bytes(name, number))
        .collect::<Vec<Written>>();
    settings.extend(missing);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tc::{Device, Script, show};

    fn options(words: &str) -> Result<String, String> {
        let line = format!("qdisc add dev e root handle 1: sfq {words}");
        let spec = Script::parse("test.tc", &line, Device::default())
            .and_then(|script| script.spec())
            .map_err(|error| error.problems()[0].message.clone())?;
        let (qdiscs, _) = show(&spec);
        let texts: Vec<String> = qdiscs[0]
            .options
            .iter()
            .filter_map(|option| option.text())
            .collect();
        Ok(texts.join(" "))
    }

    #[test]
    fn thresholds_are_those_of_tc() {
        let given = options("redflowlimit 100000 min 8000 max 60000 probability 0.20 ecn headdrop").unwrap();
        assert!(
            given.ends_with("ewma 6 min 8000b max 60000b probability 0.2 ecn"),
            "{given}"
        );
        let derived = options("redflowlimit 120000").unwrap();
        assert!(
            derived.contains("min 10000b max 30000b probability 0.02"),
            "{derived}"
        );
        assert!(!options("limit 100").unwrap().contains("ewma"));
        assert!(options("min 8000").unwrap_err().contains("redflowlimit"));
        assert!(
            options("redflowlimit 100 max 1000")
                .unwrap_err()
                .contains("above")
        );
    }
}

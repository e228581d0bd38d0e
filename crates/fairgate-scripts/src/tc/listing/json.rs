//! Values as `tc -j` prints them.

use serde_json::{Map, Value, json};

use crate::tc::display::{Amount, Detail};

/// Returns the details that have a key.
pub(super) fn as_map(details: &[Detail]) -> Map<String, Value> {
    let in_json = details.iter().filter(|detail| !detail.key.is_empty());
    in_json
        .map(|detail| (detail.key.to_owned(), as_json(&detail.amount)))
        .collect()
}

/// Returns a value as tc -j prints it: times in microseconds, rates in bytes per second.
fn as_json(amount: &Amount) -> Value {
    match amount {
        Amount::Count(number, _) | Amount::Size(number) => json!(number),
        Amount::Signed(number) => json!(number),
        Amount::Time(nanos) => json!(nanos / 1000),
        Amount::Rate(rate) => json!(rate.bits_per_second() / 8),
        // Rounded to the digits of the text.
        Amount::Decimal(number) => json!((number * 1e6).round() / 1e6),
        Amount::Digits(_) => amount
            .text()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default(),
        Amount::InCells(_) | Amount::Variable(_) | Amount::VariableRate(_) => json!(amount.text()),
        Amount::Objects(objects) => json!(objects.iter().map(|object| as_map(object)).collect::<Vec<_>>()),
        Amount::Curve(curve) => json!({
            "m1": curve.m1 / 8,
            "d": curve.d.as_micros() as u64,
            "m2": curve.m2 / 8,
        }),
        Amount::Object(numbers) => {
            let number = |number: f64| match number.fract() == 0.0 {
                true => json!(number as i64),
                // tc prints six digits (`jsonw_float` in iproute2's json_writer.c).
                false => as_json(&Amount::Digits(number)),
            };
            let pairs = numbers.iter();
            Value::Object(
                pairs
                    .map(|(key, value)| ((*key).to_owned(), number(*value)))
                    .collect(),
            )
        }
        Amount::Flag(flag) | Amount::Switch(flag) => json!(flag),
        Amount::Bare(word) => json!(word),
        Amount::Numbers(numbers) => json!(numbers),
        Amount::Text(text) => json!(text),
    }
}

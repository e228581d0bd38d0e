//! What was aimed at, beside what is measured.

/// Whether a time is below its aim, both in the same unit.
fn verdict(measured: f64, aim: f64) -> &'static str {
    if measured <= aim { "met" } else { "missed" }
}

/// The cell of an aim, which some rows do not have.
pub(super) fn cell(measured: Option<f64>, aim: Option<f64>) -> String {
    match (measured, aim) {
        (Some(measured), Some(aim)) => format!("{aim}: {}", verdict(measured, aim)),
        (None, Some(aim)) => aim.to_string(),
        (_, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_is_met_or_missed_or_there_is_none() {
        assert_eq!(cell(Some(9.9), Some(10.0)), "10: met");
        assert_eq!(cell(Some(10.1), Some(10.0)), "10: missed");
        assert_eq!(cell(None, Some(10.0)), "10");
        assert_eq!(cell(Some(9.9), None), "");
    }
}

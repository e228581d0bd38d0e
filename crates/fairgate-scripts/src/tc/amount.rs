//! Formats numbers as tc does.

/// Formats a number like C's `%g`: `0.02`, `2e-05`.
pub(super) fn digits(number: f64) -> String {
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("the form has an exponent");
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..=5) => trimmed(&format!("{number:.*}", (5 - exponent) as usize)),
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
        }
        // The number is NaN or infinite.
        Err(_) => number.to_string(),
    }
}

/// Formats a size: `32Mb`, `5Kb`, `3000b`. Like tc, a size close to a round number is shown as the round
/// number.
pub(super) fn size(bytes: u64) -> String {
    let near = |unit: u64, off: u64| {
        let round = (bytes + unit / 2) / unit;
        (bytes >= unit && (round * unit).abs_diff(bytes) < off).then_some(round)
    };
    match (near(1 << 20, 1024), near(1 << 10, 16)) {
        (Some(megabytes), _) => format!("{megabytes}Mb"),
        (_, Some(kilobytes)) => format!("{kilobytes}Kb"),
        _ => format!("{bytes}b"),
    }
}

/// Formats a time with three digits, like tc: `5ms`, `1.2s`, `100us`.
pub(super) fn time(nanos: u64) -> String {
    let micros = nanos as f64 / 1e3;
    let three = |value: f64| {
        let decimals = 2 - value.abs().log10().floor().clamp(0.0, 2.0) as usize;
        let text = format!("{value:.decimals$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    };
    match micros {
        _ if micros >= 1e6 => format!("{}s", three(micros / 1e6)),
        _ if micros >= 1e3 => format!("{}ms", three(micros / 1e3)),
        _ => format!("{micros:.0}us"),
    }
}

/// Formats a rate: `20Mbit`, `2500Kbit`. The unit is the largest one in which the number is whole or has more
/// than three digits.
pub(super) fn rate(bits: u64) -> String {
    let mut number = bits;
    let mut units = ["", "K", "M", "G"].into_iter();
    for unit in units.by_ref() {
        if number < 1000 || !number.is_multiple_of(1000) && number < 1_000_000 {
            return format!("{number}{unit}bit");
        }
        number /= 1000;
    }
    format!("{number}Tbit")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_six_digits() {
        let cases = [
            (0.0, "0"),
            (0.02, "0.02"),
            (1.0, "1"),
            (0.1999999999, "0.2"),
            (0.000123456789, "0.000123457"),
            (0.00001, "1e-05"),
            (1234567.0, "1.23457e+06"),
            (999999.7, "1e+06"),
        ];
        for (number, text) in cases {
            assert_eq!(digits(number), text);
        }
    }

    #[test]
    fn times_have_three_digits() {
        let cases = [
            (5_000_000, "5ms"),
            (99_999_000, "100ms"),
            (1_234_000_000, "1.23s"),
            (100_000, "100us"),
            (0, "0us"),
        ];
        for (nanos, text) in cases {
            assert_eq!(time(nanos), text);
        }
    }

    #[test]
    fn rates_have_the_units_of_tc() {
        let cases = [
            (0, "0bit"),
            (999, "999bit"),
            (1500, "1500bit"),
            (500_000, "500Kbit"),
            (2_500_000, "2500Kbit"),
            (20_000_000, "20Mbit"),
            (1_234_567_000, "1234Mbit"),
            (40_000_000_000_000, "40Tbit"),
        ];
        for (bits, text) in cases {
            assert_eq!(rate(bits), text);
        }
    }

    #[test]
    fn sizes_are_rounded_as_in_tc() {
        let cases = [
            (1514, "1514b"),
            (1600, "1600b"),
            (5120, "5Kb"),
            (5110, "5Kb"),
            (32 << 20, "32Mb"),
            ((4 << 20) + 1000, "4Mb"),
            (1_000_000, "1000000b"),
        ];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
    }
}

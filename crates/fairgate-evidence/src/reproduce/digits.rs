//! Formats measured numbers.

/// Formats a number with four significant digits. Very small and very large numbers have an exponent.
pub(crate) fn digits(value: f64) -> String {
    let magnitude = value.abs();
    match magnitude {
        0.0 => "0".into(),
        m if !(1e-4..1e7).contains(&m) => format!("{value:.2e}"),
        m => {
            let before = m.log10().floor() as i32 + 1;
            format!("{value:.*}", (4 - before).clamp(0, 7) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let cases = [
            (0.0, "0"),
            (12.3456, "12.35"),
            (0.012_345_6, "0.01235"),
            (123_456.7, "123457"),
            (1.2e-9, "1.20e-9"),
            (-0.5, "-0.5000"),
        ];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
    }
}

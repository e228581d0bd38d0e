//! Numbers as text: three significant digits and a unit.

/// Formats a duration from nanoseconds: `9.87 ms`.
pub(crate) fn duration(nanos: u64) -> String {
    let (value, unit) = match nanos {
        0 => return "0".into(),
        1..1_000 => (nanos as f64, "ns"),
        1_000..1_000_000 => (nanos as f64 / 1e3, "µs"),
        1_000_000..10_000_000_000 => (nanos as f64 / 1e6, "ms"),
        _ => (nanos as f64 / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a measured rate: `18.2 Mbit/s`.
pub(crate) fn rate(bps: f64) -> String {
    let (value, unit) = match bps {
        b if b < 0.5 => return "0".into(),
        b if b < 1e3 => (b, "bit/s"),
        b if b < 1e6 => (b / 1e3, "kbit/s"),
        b if b < 1e9 => (b / 1e6, "Mbit/s"),
        b => (b / 1e9, "Gbit/s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a configured rate: `20 Mbit/s`.
pub(crate) fn nominal_rate(bps: u64) -> String {
    let (divisor, unit) = match bps {
        0..1_000_000 => (1e3, "kbit/s"),
        1_000_000..1_000_000_000 => (1e6, "Mbit/s"),
        _ => (1e9, "Gbit/s"),
    };
    format!("{} {unit}", plain(bps as f64 / divisor))
}

/// Formats a number of bytes: `1.5 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let (value, unit) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (bytes as f64 / 1e3, "kB"),
        1_000_000..1_000_000_000 => (bytes as f64 / 1e6, "MB"),
        _ => (bytes as f64 / 1e9, "GB"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a share: `1.25 %`. A share above 0 is never shown as 0.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0 %".into(),
        p if p < 0.01 => "<0.01 %".into(),
        p if p < 10.0 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// Formats a value with three significant digits, without an exponent.
pub(crate) fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Formats a number on an axis, with as few digits as distinguish the ticks.
pub(crate) fn plain(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats one, two or five times a power of ten on a logarithmic axis: `0.001`, `50`, `10⁻⁶`, `2·10⁶`.
pub(crate) fn decade(value: f64) -> String {
    let exponent = (value.log10() + 1e-9).floor() as i32;
    if (-3..=4).contains(&exponent) {
        return plain(value);
    }
    let digit = (value / 10f64.powi(exponent)).round();
    let times = if digit > 1.0 {
        format!("{digit}·")
    } else {
        String::new()
    };
    let raised = |digit: char| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        other => char::from_u32('⁰' as u32 + other as u32 - '0' as u32).unwrap_or(other),
    };
    format!(
        "{times}10{}",
        exponent.to_string().chars().map(raised).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_change_at_powers_of_a_thousand() {
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_234), "1.23 µs");
        assert_eq!(duration(9_876_543), "9.88 ms");
        assert_eq!(duration(1_204_000_000), "1204 ms");
        assert_eq!(duration(12_340_000_000), "12.3 s");
        assert_eq!(rate(18_240_000.0), "18.2 Mbit/s");
        assert_eq!(nominal_rate(20_000_000), "20 Mbit/s");
        assert_eq!(nominal_rate(512_500), "512.5 kbit/s");
        assert_eq!(bytes(1_514), "1.51 kB");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.00001), "<0.01 %");
        assert_eq!(percent(0.123), "12.3 %");
        assert_eq!(decade(0.001), "0.001");
        assert_eq!(decade(1e-6), "10⁻⁶");
        assert_eq!(decade(1e12), "10¹²");
    }
}

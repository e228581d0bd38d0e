//! Quantities as text.

/// Mbit/s, with as many decimals as fit eight columns.
pub(super) fn megabits(bps: f64) -> String {
    let megabits = bps / 1e6;
    match megabits {
        ..1e3 => format!("{megabits:.3}"),
        ..1e5 => format!("{megabits:.1}"),
        _ => format!("{megabits:.0}"),
    }
}

/// Milliseconds, with as many decimals as fit seven columns.
pub(super) fn millis(micros: f64) -> String {
    let millis = micros / 1e3;
    match millis {
        ..10.0 => format!("{millis:.3}"),
        ..1e3 => format!("{millis:.1}"),
        _ => format!("{millis:.0}"),
    }
}

/// Events per second.
pub(super) fn per_second(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        ..10.0 => format!("{rate:.1}"),
        ..1e7 => format!("{rate:.0}"),
        _ => format!("{rate:.1e}"),
    }
}

/// Bytes.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// A time since a start.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3_600 => format!("{} min {:02} s", whole / 60, whole % 60),
        3_600..86_400 => format!("{} h {:02} min", whole / 3_600, whole % 3_600 / 60),
        _ => format!("{} d {:02} h", whole / 86_400, whole % 86_400 / 3_600),
    }
}

/// Breaks text between words. Words that are too long are cut by the screen.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            // Several spaces stay, because they align columns.
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_fit_their_columns() {
        assert_eq!(
            [18_300_000.0, 0.0, 1.2e9, 4e11].map(megabits),
            ["18.300", "0.000", "1200.0", "400000"]
        );
        assert_eq!(
            [85.0, 9_999.9, 123_456.0, 5e6].map(millis),
            ["0.085", "10.000", "123.5", "5000"]
        );
        assert_eq!([0.0, 0.5, 12.4].map(per_second), ["0", "0.5", "12"]);
        assert_eq!(
            [0, 9_999, 15_000, 20_000_000].map(bytes),
            ["0 B", "9999 B", "15.0 kB", "20.0 MB"]
        );
        assert_eq!(
            [3.25, 61.0, 3_720.0, 90_000.0].map(duration),
            ["3.2 s", "1 min 01 s", "1 h 02 min", "1 d 01 h"]
        );
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrapped("a queue without", 8), ["a queue", "  without"]);
        assert_eq!(wrapped("", 8), [""]);
        assert_eq!(wrapped("tab   other", 20), ["tab   other"]);
    }
}

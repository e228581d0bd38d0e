//! Axes: they map values to positions, and choose the values that get a label.

use std::borrow::Cow;

/// How values are mapped to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    Log,
}

/// An axis. Values of `from..=to` have positions from 0 to 1. Values outside have the position of the nearest
/// end.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    scale: Scale,
    from: f64,
    to: f64,
    /// The name of the axis, with its unit.
    pub(crate) label: Cow<'static, str>,
    /// The values with a label, and the labels.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Creates an axis from 0 to at least `to` that ends at a tick.
    pub(crate) fn linear(label: impl Into<Cow<'static, str>>, to: f64, format: fn(f64) -> String) -> Axis {
        let step = nice_step(to.max(f64::MIN_POSITIVE) / 5.0);
        let count = (to / step).ceil().max(1.0) as usize;
        Axis {
            scale: Scale::Linear,
            from: 0.0,
            to: count as f64 * step,
            label: label.into(),
            ticks: (0..=count)
                .map(|i| (i as f64 * step, format(i as f64 * step)))
                .collect(),
        }
    }

    /// Creates an axis from 0 to exactly `to`. The time axis ends where the run ended.
    pub(crate) fn exact(label: impl Into<Cow<'static, str>>, to: f64, format: fn(f64) -> String) -> Axis {
        let mut axis = Axis::linear(label, to, format);
        axis.ticks.retain(|tick| tick.0 <= to);
        axis.to = to.max(f64::MIN_POSITIVE);
        axis
    }

    /// Creates an axis from exactly `from` to exactly `to`.
    pub(crate) fn between(
        label: impl Into<Cow<'static, str>>,
        from: f64,
        to: f64,
        format: fn(f64) -> String,
    ) -> Axis {
        let step = nice_step((to - from).max(f64::MIN_POSITIVE) / 8.0);
        let (first, last) = ((from / step).ceil() as i64, (to / step).floor() as i64);
        Axis {
            scale: Scale::Linear,
            from,
            to: to.max(from + f64::MIN_POSITIVE),
            label: label.into(),
            ticks: (first..=last)
                .map(|i| (i as f64 * step, format(i as f64 * step)))
                .collect(),
        }
    }

    /// Creates a logarithmic axis over the whole decades around `from..=to`. Decades have labels. An axis of
    /// one or two decades also has labels at the twos and fives. The axis has at least one decade and at most
    /// eight. Smaller values have the position of the left end.
    pub(crate) fn log(
        label: impl Into<Cow<'static, str>>,
        from: f64,
        to: f64,
        format: fn(f64) -> String,
    ) -> Axis {
        let to = to.max(f64::MIN_POSITIVE).log10().ceil();
        let from = from
            .max(f64::MIN_POSITIVE)
            .log10()
            .floor()
            .clamp(to - 8.0, to - 1.0);
        let labelled: &[f64] = if to - from > 2.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let ticks = (from as i32..=to as i32)
            .flat_map(|decade| labelled.iter().map(move |digit| digit * 10f64.powi(decade)))
            .filter(|value| value.log10() < to + 1e-9);
        Axis {
            scale: Scale::Log,
            from,
            to,
            label: label.into(),
            ticks: ticks.map(|value| (value, format(value))).collect(),
        }
    }

    /// Creates a logarithmic axis exactly from the first of `labelled` to the last, with labels at these
    /// values. The values must rise and be above 0. With only one value, the axis ends at its double.
    pub(crate) fn log_at(
        label: impl Into<Cow<'static, str>>,
        labelled: &[f64],
        format: fn(f64) -> String,
    ) -> Axis {
        let at = |value: Option<&f64>| value.copied().unwrap_or(1.0).max(f64::MIN_POSITIVE).log10();
        let from = at(labelled.first());
        let to = at(labelled.last());
        Axis {
            scale: Scale::Log,
            from,
            to: if to > from { to } else { from + 2f64.log10() },
            label: label.into(),
            ticks: labelled.iter().map(|&value| (value, format(value))).collect(),
        }
    }

    /// Returns the position of `value`, 0 to 1.
    pub(crate) fn position(&self, value: f64) -> f64 {
        let value = match self.scale {
            Scale::Linear => value,
            Scale::Log => value.max(f64::MIN_POSITIVE).log10(),
        };
        ((value - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that isn't below `least`.
fn nice_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * decade)
        .find(|&step| step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * decade)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_end_at_a_tick() {
        let axis = Axis::linear("Mbit/s", 19.4, |v| format!("{v}"));
        let labels: Vec<_> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(labels, ["0", "5", "10", "15", "20"]);
        assert_eq!(axis.position(5.0), 0.25);
        assert_eq!(axis.position(99.0), 1.0);
    }

    #[test]
    fn an_axis_between_two_values_has_round_ticks_within() {
        let axis = Axis::between("Mbit/s", 1.5, 9.5, |v| format!("{v}"));
        let labels: Vec<_> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(labels, ["2", "3", "4", "5", "6", "7", "8", "9"]);
        assert_eq!(
            (axis.position(1.5), axis.position(5.5), axis.position(9.5)),
            (0.0, 0.5, 1.0)
        );
    }

    #[test]
    fn log_axes_have_decades() {
        let axis = Axis::log("ms", 0.3, 420.0, |v| format!("{v}"));
        let ticks: Vec<_> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(ticks, ["0.1", "1", "10", "100", "1000"]);
        assert!((axis.position(1.0) - 0.25).abs() < 1e-9);
        assert_eq!(axis.position(0.0), 0.0);
    }

    #[test]
    fn a_log_axis_of_few_decades_has_labels_within_a_decade() {
        let labels = |to: f64| -> Vec<String> {
            let axis = Axis::log("ns", 12.0, to, |v| format!("{v}"));
            axis.ticks.into_iter().map(|tick| tick.1).collect()
        };
        assert_eq!(labels(60.0), ["10", "20", "50", "100"]);
        assert_eq!(labels(600.0), ["10", "20", "50", "100", "200", "500", "1000"]);
        assert_eq!(labels(6000.0), ["10", "100", "1000", "10000"]);
    }

    #[test]
    fn log_axes_may_end_anywhere() {
        let axis = Axis::log_at("flows", &[1.0, 8.0, 64.0], |v| format!("{v}"));
        assert!((axis.position(8.0) - 0.5).abs() < 1e-9);
        assert_eq!((axis.position(1.0), axis.position(64.0)), (0.0, 1.0));
        let one = Axis::log_at("flows", &[512.0], |v| format!("{v}"));
        assert_eq!((one.position(512.0), one.position(1024.0)), (0.0, 1.0));
    }

    #[test]
    fn an_axis_without_values_is_finite() {
        assert!(
            Axis::linear("", 0.0, |v| format!("{v}"))
                .position(0.0)
                .is_finite()
        );
        assert!(
            Axis::log("", 0.0, 0.0, |v| format!("{v}"))
                .position(1.0)
                .is_finite()
        );
    }
}

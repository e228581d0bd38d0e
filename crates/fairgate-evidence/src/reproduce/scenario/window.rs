//! Windows of the simulated time: `during = ["5s", "10s"]`.

use std::ops::Range;

use fairgate_config::units::parse_duration;
use fairgate_config::{Document, FileError};
use serde::Deserialize;
use toml::Spanned;

/// One window or several ones, as they are written.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum During {
    One([String; 2]),
    Several(Vec<[String; 2]>),
}

/// A part of the simulated time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Window {
    /// Seconds.
    pub(super) time: Range<f64>,
    /// What the name of the measure gets: `, 5s to 10s`. Empty for the measurement window.
    pub(super) label: String,
}

impl Window {
    /// Reads the windows of a measure. Without any, there is the measurement window of the run, in seconds.
    pub(super) fn read(
        document: &Document,
        during: Option<&Spanned<During>>,
        measured: Range<f64>,
    ) -> Result<Vec<Window>, FileError> {
        let Some(during) = during else {
            return Ok(vec![Window {
                time: measured,
                label: String::new(),
            }]);
        };
        let pairs = match during.get_ref() {
            During::One(pair) => std::slice::from_ref(pair),
            During::Several(pairs) => pairs,
        };
        let windows = pairs.iter().map(|pair| {
            let [from, to] = [&pair[0], &pair[1]].map(|text| {
                let time = parse_duration(text);
                time.map_err(|error| document.error(during.span(), error.message, error.remedy))
            });
            let (from, to) = (from?.as_secs_f64(), to?.as_secs_f64());
            if from >= to {
                return Err(document.error(
                    during.span(),
                    format!("the window from {} to {} is empty", pair[0], pair[1]),
                    "write two times, the earlier one first: [\"5s\", \"10s\"]",
                ));
            }
            Ok(Window {
                time: from..to,
                label: format!(", {} to {}", pair[0], pair[1]),
            })
        });
        windows.collect()
    }

    /// Returns the window in a run that is shorter by this factor.
    pub(super) fn scaled(&self, factor: f64) -> Window {
        Window {
            time: self.time.start * factor..self.time.end * factor,
            label: self.label.clone(),
        }
    }

    /// Returns the positions of a series' points whose interval, in seconds, has its middle in the window.
    /// There is at least one if the series has any: that of the interval around the window's middle.
    pub(super) fn points(&self, interval: f64, count: usize) -> Range<usize> {
        let position = |time: f64| ((time / interval + 0.5).floor() as usize).min(count);
        let points = position(self.time.start)..position(self.time.end);
        if !points.is_empty() || count == 0 {
            return points;
        }
        let middle = (self.time.start + self.time.end) / 2.0;
        let only = ((middle / interval) as usize).min(count - 1);
        only..only + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_the_points_of_its_intervals() {
        let window = |from: f64, to: f64| Window {
            time: from..to,
            label: String::new(),
        };
        assert_eq!(window(5.0, 10.0).points(1.0, 20), 5..10);
        assert_eq!(window(5.0, 10.0).points(0.1, 1000), 50..100);
        assert_eq!(
            window(5.0, 10.0).points(1.0, 8),
            5..8,
            "the run is over before its end"
        );
        assert_eq!(window(0.2, 0.3).points(1.0, 20), 0..1, "shorter than an interval");
        assert_eq!(window(30.0, 40.0).points(1.0, 20), 19..20);
        assert_eq!(window(5.0, 10.0).points(1.0, 0), 0..0);
        assert_eq!(window(5.0, 10.0).scaled(0.1), window(0.5, 1.0));
    }
}

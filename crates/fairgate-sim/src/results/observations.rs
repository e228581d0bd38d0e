//! The results of observations: variables of disciplines over time.

use serde::{Deserialize, Serialize};

use crate::monitor::Observer;
use crate::scenario::Observation;

/// The results of an observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObservationResults {
    /// The name.
    pub name: String,
    /// The name of the interface.
    pub interface: String,
    /// The numbers of the class and of the classes above it: `20`, `20/1`. `None` for the root.
    pub class: Option<String>,
    /// The name of the variable.
    pub variable: String,
    /// The unit of all values: `bit/s`, `ns`, `flows`, `packets`, `bytes`, and others. Empty for plain
    /// numbers, and for yes (1) and no (0).
    pub unit: String,
    /// The value at the end of each interval of the whole run. `None` where there was no value.
    pub series: Vec<Option<f64>>,
    /// The number of values in the measurement window. If it is 0, the following figures are 0, too.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The least of them.
    pub least: f64,
    /// The greatest of them.
    pub most: f64,
    /// Their percentiles 0 to 100.
    pub percentiles: Vec<f64>,
}

impl ObservationResults {
    /// Computes the figures. `interval` is the length of an interval, and `measured` are the ends of the
    /// measurement window, ns. An interval is in the window if its end is, or coincides with the end of the
    /// window.
    pub(crate) fn of(
        observation: &Observation,
        observer: &Observer,
        interval: u64,
        measured: [u64; 2],
    ) -> ObservationResults {
        let [opens, closes] = measured;
        let is_measured = |index: usize| {
            let end = (index as u64 + 1) * interval;
            opens < end && end <= closes
        };
        let mut values: Vec<f64> = observer
            .series()
            .iter()
            .enumerate()
            .filter(|(index, _)| is_measured(*index))
            .filter_map(|(_, value)| *value)
            .collect();
        values.sort_by(f64::total_cmp);
        let count = values.len();
        ObservationResults {
            name: observation.name.clone(),
            interface: observation.interface.clone(),
            class: observation.class.as_ref().map(|_| observer.path().to_string()),
            variable: observation.variable.clone(),
            unit: observer.unit().to_owned(),
            series: observer.series().to_vec(),
            count: count as u64,
            mean: match count {
                0 => 0.0,
                count => values.iter().sum::<f64>() / count as f64,
            },
            least: values.first().copied().unwrap_or(0.0),
            most: values.last().copied().unwrap_or(0.0),
            percentiles: (0..=100)
                .map(|percent| {
                    // The least value that is not below `percent` hundredths of all.
                    let rank = (percent * count).div_ceil(100);
                    values.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
                })
                .collect(),
        }
    }
}

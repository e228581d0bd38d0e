//! The transmit queues of `mq`, `multiq` and `mqprio`: how many there are, and the traffic class of each.

use std::ops::Range;

use fairgate_config::language::{Given, Written};
use toml::Spanned;

use super::Device;
use super::sharing::{Mismatch, take};
use crate::script::setting;

/// The most traffic classes: TC_QOPT_MAX_QUEUE.
const MOST_CLASSES: usize = 16;
/// tc's defaults for the number of traffic classes, and the one of each priority (q_mqprio.c).
const CLASSES: usize = 8;
const MAP: [u16; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 1, 1, 3, 3, 3, 3];

/// The transmit queues that a qdisc distributes packets over.
pub(super) struct TransmitQueues {
    pub(super) count: u16,
    /// The traffic class of each queue.
    pub(super) traffic_classes: Vec<u16>,
    /// The traffic class of each priority.
    pub(super) priomap: Option<Written>,
}

impl TransmitQueues {
    /// Returns queues of one traffic class: as many as the device has, or else as many as qdiscs are attached
    /// to (`attached`).
    pub(super) fn of_device(device: &Device, attached: u16) -> TransmitQueues {
        let count = device.queues.unwrap_or(attached.max(1));
        TransmitQueues {
            count,
            traffic_classes: vec![0; count.into()],
            priomap: None,
        }
    }

    /// Takes the traffic classes and their queues out of the settings of an `mqprio`. The rules are the
    /// kernel's (`mqprio_validate_qopt` in sch_mqprio_lib.c).
    pub(super) fn of_mqprio(
        settings: &mut Vec<Written>,
        device: &Device,
        attached: u16,
        location: &Range<usize>,
    ) -> Result<TransmitQueues, Mismatch> {
        let wrong = |location: &Range<usize>, message: String| Mismatch {
            location: location.clone(),
            message,
        };
        let classes = match take(settings, "num_tc") {
            None => CLASSES,
            Some((_, given)) => match plain(given.get_ref()) {
                Some(classes) if (1..=MOST_CLASSES).contains(&classes.into()) => classes.into(),
                _ => {
                    return Err(wrong(
                        &given.span(),
                        format!("`num_tc` must be 1 to {MOST_CLASSES}"),
                    ));
                }
            },
        };
        let mut map = MAP.to_vec();
        let mut map_location = location.clone();
        if let Some((key, given)) = take(settings, "map") {
            map_location = key.span();
            let Given::List(numbers) = given.get_ref() else {
                return Err(wrong(&map_location, "`map` has no numbers".to_owned()));
            };
            for (index, number) in numbers.iter().enumerate() {
                let class = plain(number.get_ref()).filter(|_| index < MAP.len());
                map[index.min(MAP.len() - 1)] =
                    class.ok_or_else(|| wrong(&number.span(), "`map` is 16 traffic classes".to_owned()))?;
            }
        }
        if let Some(class) = map.iter().find(|class| usize::from(**class) >= classes) {
            let message = format!("`map` names traffic class {class}, but `num_tc` is {classes}");
            return Err(wrong(&map_location, message));
        }
        let queues = match take(settings, "queues") {
            None => (0..classes as u16).map(|class| (class, class + 1)).collect(),
            Some((key, given)) => ranges(&key, &given, classes)?,
        };
        let last = queues.last().map_or(0, |(_, end)| *end);
        let count = device.queues.unwrap_or(last.max(attached));
        if last > count {
            let message = format!("`queues` needs {last} transmit queues, and the device has {count}");
            return Err(wrong(location, message));
        }
        // The queues of no traffic class get one that no priority has.
        let mut traffic_classes = vec![classes as u16; count.into()];
        for (class, (first, end)) in (0..).zip(&queues) {
            traffic_classes[usize::from(*first)..usize::from(*end)].fill(class);
        }
        if traffic_classes.contains(&(MOST_CLASSES as u16)) {
            let message = "some transmit queues are of none of the 16 traffic classes".to_owned();
            return Err(wrong(location, message));
        }
        let entry = |class: &u16| Spanned::new(map_location.clone(), Given::Integer((*class).into()));
        let priomap = Given::List(map.iter().map(entry).collect());
        Ok(TransmitQueues {
            count,
            traffic_classes,
            priomap: Some(setting(&map_location, "priomap", priomap)),
        })
    }
}

/// Reads the queues of each traffic class: `2@0 2@2`, a count and the first one. Returns them as ranges.
fn ranges(
    key: &Spanned<String>,
    given: &Spanned<Given>,
    classes: usize,
) -> Result<Vec<(u16, u16)>, Mismatch> {
    let wrong = |location: Range<usize>, message: String| Mismatch { location, message };
    let Given::List(items) = given.get_ref() else {
        return Err(wrong(key.span(), "`queues` has no ranges".to_owned()));
    };
    if items.len() != classes {
        let message = format!("`queues` has {} ranges, but `num_tc` is {classes}", items.len());
        return Err(wrong(key.span(), message));
    }
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for item in items {
        let range = match item.get_ref() {
            Given::Word(word) => word.split_once('@').and_then(|(count, first)| {
                let (count, first): (u16, u16) = (count.parse().ok()?, first.parse().ok()?);
                (count > 0).then_some((first, first.checked_add(count)?))
            }),
            _ => None,
        };
        let Some(range) = range else {
            let message = "a range of queues is a count above 0 and the first one, like 2@4".to_owned();
            return Err(wrong(item.span(), message));
        };
        if ranges.last().is_some_and(|(_, end)| *end > range.0) {
            let message = "the queues of a traffic class begin after those of the one before".to_owned();
            return Err(wrong(item.span(), message));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

fn plain(given: &Given) -> Option<u16> {
    match given {
        Given::Word(word) => word.parse().ok(),
        _ => None,
    }
}

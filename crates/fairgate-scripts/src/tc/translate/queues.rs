//! The transmit queues of `mq`, `multiq` and `mqprio`.

use fairgate::ClassId;
use fairgate_config::language::{Draft, Given, Written};

use super::Translation;
use crate::script::setting;
use crate::tc::objects::Qdisc;
use crate::tc::sharing::take;
use crate::tc::transmit_queues::TransmitQueues;

/// The most bands of the discipline `mq`.
const MOST_QUEUES: u16 = 64;

impl<'a> Translation<'a> {
    /// Returns a class for each transmit queue. `settings` are those of the qdisc.
    pub(super) fn transmit_queues(
        &mut self,
        qdisc: &'a Qdisc,
        has_traffic_classes: bool,
        settings: &mut Vec<Written>,
    ) -> Option<Vec<Draft>> {
        let location = qdisc.kind.span();
        let kind = qdisc.kind.get_ref();
        let device = &self.script.device;
        let attached = self.script.attached_below(qdisc);
        let attached = attached
            .map(|other| other.parent.map_or(0, ClassId::minor))
            .max()
            .unwrap_or(0);
        // `netif_is_multiqueue` in mq_init, multiq_init and mqprio_init.
        if device.queues == Some(1) {
            let message =
                format!("`{kind}` needs a device with several transmit queues, and this one has one");
            let help = "leave it out, and attach the qdisc of its class to the root";
            self.problems.add(location, message, "one queue", help);
            return None;
        }
        let hardware = take(settings, "hw");
        let queues = match has_traffic_classes {
            false => TransmitQueues::of_device(device, attached),
            true => match TransmitQueues::of_mqprio(settings, device, attached, &location) {
                Ok(queues) => queues,
                Err(wrong) => {
                    let help = "write mqprio num_tc N map CLASS (for each priority) queues COUNT@FIRST (for \
                        each class) hw 0";
                    self.problems
                        .add(wrong.location, wrong.message, "these don't fit", help);
                    return None;
                }
            },
        };
        if queues.count > MOST_QUEUES {
            let message = format!(
                "`{kind}` with {} transmit queues: at most {MOST_QUEUES}",
                queues.count
            );
            let help = "give it fewer queues: a process sends from all of them by itself";
            self.problems.add(location, message, "too many", help);
            return None;
        }
        if !has_traffic_classes && device.queues.is_none() {
            let text = format!(
                "`{kind}`: the device is taken to have {} transmit queues, those that qdiscs are attached \
                 to; --tx-queues says otherwise",
                queues.count
            );
            self.notes.add(location.clone(), text);
        }
        let is_soft =
            hardware.is_some_and(|(_, hw)| matches!(hw.get_ref(), Given::Word(word) if word == "0"));
        if has_traffic_classes && !is_soft {
            let text =
                format!("`{kind}`: no hardware has the queues here, so that they take turns, as with hw 0");
            self.notes.add(location.clone(), text);
        }
        let mut classes = self.classes_of_bands(qdisc, queues.count, &location);
        if has_traffic_classes {
            for (class, of_queue) in classes.iter_mut().zip(&queues.traffic_classes) {
                let number = Given::Integer((*of_queue).into());
                class.settings.push(setting(&location, "traffic_class", number));
            }
        }
        settings.extend(queues.priomap);
        Some(classes)
    }
}

#[cfg(test)]
mod tests;

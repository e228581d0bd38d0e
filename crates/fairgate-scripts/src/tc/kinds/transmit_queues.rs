//! The transmit queues of a device.

use super::{Children, Kind, Look, PLAIN, Reads, none, option, queues};

/// A discipline for each transmit queue. tc has no options for it.
pub(super) const MQ: Kind = Kind {
    name: "mq",
    discipline: "mq",
    options: &[],
    children: Children::TransmitQueues {
        default: &queues::PFIFO_FAST,
        has_traffic_classes: false,
    },
    defaults: none,
    look: Look {
        has_classes_at_root: true,
        ..PLAIN
    },
};

pub(super) const MULTIQ: Kind = Kind {
    name: "multiq",
    children: Children::TransmitQueues {
        default: &queues::PFIFO,
        has_traffic_classes: false,
    },
    ..MQ
};

pub(super) const MQPRIO: Kind = Kind {
    name: "mqprio",
    options: &[&[
        option("num_tc", "num_tc", Reads::Same),
        option("map", "map", Reads::List),
        option("queues", "queues", Reads::List),
        option("hw", "hw", Reads::Within(0, 1)),
        option("mode", "", Reads::Refused(OF_HARDWARE)),
        option("shaper", "", Reads::Refused(OF_HARDWARE)),
        option("min_rate", "", Reads::Refused(OF_RATES)),
        option("max_rate", "", Reads::Refused(OF_RATES)),
        option("fp", "", Reads::Refused(OF_HARDWARE)),
    ]],
    children: Children::TransmitQueues {
        default: &queues::PFIFO_FAST,
        has_traffic_classes: true,
    },
    ..MQ
};

const OF_HARDWARE: &str = "only hardware has it: leave it and its value out, and write hw 0";
const OF_RATES: &str = "hardware limits these rates: attach a tbf to the queues of the traffic class \
    instead, with a part of its rate each";

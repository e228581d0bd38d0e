//! Queues without flows.

use fairgate::queues::fifo::{self, DropFrom, Fifo};

use super::{About, Children, Description, Family, Parameter};
use crate::value::{Unit, choice_field};

choice_field!(DropFrom {
    "tail" => DropFrom::Tail,
    "head" => DropFrom::Head,
});

pub(super) static FIFO: Description<fifo::Config> = Description {
    about: About {
        name: "fifo",
        family: Family::Queues,
        summary: "First in, first out, with a limit of packets, bytes or both",
        when: "As a leaf of other disciplines, and as the base line to compare with.",
        children: Children::None,
    },
    parameters: &[
        Parameter::new(
            "limit",
            Unit::Count("packets"),
            1..=u32::MAX as u64,
            "Most packets queued.",
            |config| &mut config.limit_packets,
        ),
        Parameter::new(
            "limit_bytes",
            Unit::Bytes,
            1..=u64::MAX,
            "Most bytes queued.",
            |config| &mut config.limit_bytes,
        ),
        Parameter::word(
            "drop",
            Unit::Choice(&["tail", "head"]),
            "Which packet pays when the queue is full: the arriving one or the oldest.",
            |config| &mut config.drop_from,
        ),
    ],
    start: fifo::Config::default,
    build: |config, _| Ok(Box::new(Fifo::node(config)?)),
};

//! Compares our textbook QFQ with two traces of the kernel's QFQ+. In these traces every turn is one packet
//! of the longest length, and every flow starts in sorted order. In this case the kernel's order is that of
//! the published algorithm.

use fairgate::Discipline;
use fairgate::classify::Classifier;
use fairgate::queues::fifo::{self, Fifo};
use fairgate::scheduler::{Classes, classes};
use fairgate::timestamps::Share;
use fairgate::timestamps::qfq::{Qfq, Settings, Slope};
use fairgate_evidence::replay::{Outcome, replay_with};

/// The weight and the longest packet of each class in the setup of the traces.
const CLASSES: [(u32, u32); 7] = [
    (1, 512),
    (3, 700),
    (10, 900),
    (40, 1100),
    (200, 1300),
    (1000, 1500),
    (5, 800),
];

fn textbook(slope: Slope) -> Box<dyn Discipline> {
    let class = |(index, &(weight, max_packet)): (usize, &(u32, u32))| classes::ClassConfig {
        minor: index as u32 + 1,
        share: Share { weight, max_packet },
    };
    let config = classes::Config {
        classifier: Classifier {
            handle: 0x10,
            ..Classifier::default()
        },
        classes: CLASSES.iter().enumerate().map(class).collect(),
        templates: Default::default(),
        settings: Settings { slope },
    };
    let fifos = CLASSES.map(|_| -> Box<dyn Discipline> {
        Box::new(Fifo::node(fifo::Config::default()).expect("the default is valid"))
    });
    Box::new(Classes::<Qfq>::node(config, fifos.into()).expect("these shares are valid"))
}

#[test]
fn textbook_qfq_equals_the_kernel_where_the_two_orders_are_the_same() {
    for (name, packets) in [("primed", 781), ("primed_mixed", 642)] {
        let trace = crate::common::kernel_traces().join(format!("qfq_textbook/{name}.jsonl.gz"));
        let outcome = replay_with(&trace, textbook(Slope::Configured).as_mut())
            .expect("the recorded traces are complete");
        let operations = 2 * packets + 1;
        assert_eq!(outcome, Outcome::Equal { operations }, "{name}");
    }
}

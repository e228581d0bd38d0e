//! Our textbook QFQ against the two traces of the kernel's QFQ+ in which every turn is one packet of the longest length and
//! nothing starts unsorted: there the kernel's order is that of the published algorithm.

mod common;

use fairgate::Discipline;
use fairgate::classify::Classifier;
use fairgate::queues::fifo::{self, Fifo};
use fairgate::scheduler::{Classes, classes};
use fairgate::timestamps::Share;
use fairgate::timestamps::qfq::{Qfq, Settings, Slope};
use fairgate_replay::{Outcome, replay_with};

/// Weight and longest packet of the classes in the traces' setup.
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
    let class = |(place, &(weight, max_packet)): (usize, &(u32, u32))| classes::ClassConfig {
        minor: place as u16 + 1,
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
fn the_published_order_is_the_kernels_where_the_two_are_one() {
    for (name, packets) in [("primed", 781), ("primed_mixed", 642)] {
        let trace = common::kernel_traces().join(format!("qfq_textbook/{name}.jsonl.gz"));
        let outcome =
            replay_with(&trace, textbook(Slope::Configured).as_mut()).expect("the recorded traces are whole");
        let operations = 2 * packets + 1;
        assert_eq!(outcome, Outcome::Equal { operations }, "{name}");
    }
}

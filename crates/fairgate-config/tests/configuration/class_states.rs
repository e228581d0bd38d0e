//! The states of classes are read in steps of any length. A live run reads a large tree so.

use fairgate::{ClassId, ClassReading, Packet, Pool, Time};
use fairgate_config::Spec;

/// A step may end anywhere: before the first class is shown, too.
#[test]
fn any_steps_read_the_same_states() {
    let classes: Vec<String> = (1..=40)
        .map(|class| format!("{class} rate=1mbit / fifo"))
        .collect();
    let spec = Spec::inline(&format!("htb handle=1 {{ {} }}", classes.join("; "))).unwrap();
    let mut tree = spec.build(1).unwrap();
    let mut pool = Pool::with_capacity(64);
    for minor in 1..=40 {
        let packet = Packet {
            class: ClassId::new(1, minor),
            ..Packet::of_length(100 + u32::from(minor))
        };
        let id = pool.insert(packet).unwrap();
        tree.enqueue(id, Time::ZERO, &mut pool);
    }
    while let Some(id) = tree.dequeue(Time::ZERO, &mut pool) {
        pool.release(id);
    }
    let read = |most: usize| {
        let (mut reading, mut states) = (ClassReading::default(), Vec::new());
        let mut add = |state: fairgate::ClassState<'_>| states.push((state.minor, state.sent));
        while tree.read_class_states(&mut reading, most, &mut add) {}
        states
    };
    let whole = read(usize::MAX);
    assert_eq!(whole.len(), 40);
    assert!(whole.iter().all(|(_, sent)| sent.packets == 1));
    for most in [1, 7, 39, 40, 41, 64, 79, 80, 81, 119, 120, 121] {
        assert_eq!(read(most), whole, "in steps of {most}");
    }
}

//! A tree that succeeds another one goes on as if the other one had changed in place.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::count::Count;
use crate::discipline::{Algorithm, Discipline, Node, Variable};
use crate::error::ConfigError;
use crate::sharing::shapes::{Shape, fifos, of_cbq, of_hfsc, of_htb, shapes};
use crate::sharing::{cbq, hfsc, htb};
use crate::testing::{Driver, in_class};
use crate::time::Time;

type Build<A> = fn(<A as Algorithm>::Config, Vec<Box<dyn Discipline>>) -> Result<Node<A>, ConfigError>;

/// All that can be seen of a tree.
type Shown = (
    Vec<(&'static str, Variable)>,
    BTreeMap<u16, (Count, Vec<(&'static str, Variable)>)>,
    String,
);

fn shown<A: Algorithm>(root: &Node<A>) -> Shown {
    let (mut variables, mut classes) = (Vec::new(), BTreeMap::new());
    root.visit_variables(&mut |name, value| variables.push((name, value)));
    root.visit_class_states(&mut |class| {
        classes.insert(class.minor, (class.sent, class.variables.to_vec()));
    });
    (variables, classes, format!("{:?}", root.statistics()))
}

fn check<A: Algorithm>(
    shapes: &[Shape],
    config: fn(&Shape) -> A::Config,
    build: Build<A>,
    steps: &[(u8, prop::sample::Index, u32)],
) {
    let mut shape = &shapes[0];
    let new = |shape: &Shape| build(config(shape), fifos(shape)).expect("a valid tree");
    let (mut changed, mut succeeded) = (Driver::new(new(shape)), Driver::new(new(shape)));
    let mut now = Time::ZERO;
    for &(step, index, number) in steps {
        match step {
            0..=4 => {
                let packet = in_class(index.get(shape).0, number);
                assert_eq!(changed.offer(packet, now), succeeded.offer(packet, now));
            }
            5..=8 => {
                now += u64::from(number) * 500;
                assert_eq!(changed.next(now), succeeded.next(now));
            }
            9 => assert_eq!(changed.peek(now), succeeded.peek(now)),
            _ => {
                let before = core::mem::replace(&mut shape, index.get(shapes));
                changed.reconfigure(config(shape), now);
                let is_leaf = |shape: &Shape, minor| {
                    shape.iter().any(|class| class.0 == minor)
                        && shape.iter().all(|class| class.1 != Some(minor))
                };
                let kept = |&minor: &u16| is_leaf(before, minor) && is_leaf(shape, minor);
                succeeded.succeed(new(shape), (1..=10).filter(kept).collect(), now);
            }
        }
        assert_eq!(changed.returned, succeeded.returned);
        assert_eq!(changed.root.watchdog(), succeeded.root.watchdog());
        assert_eq!(shown(&changed.root), shown(&succeeded.root));
    }
    assert_eq!(
        changed.drain(now + 60_000_000_000),
        succeeded.drain(now + 60_000_000_000)
    );
}

proptest! {
    #[test]
    fn a_successor_goes_on_like_a_changed_tree(
        shapes in vec(shapes(), 1..6),
        steps in vec((0u8..11, any::<prop::sample::Index>(), 40u32..1500), 1..200),
    ) {
        check(&shapes, of_htb, htb::Htb::node, &steps);
        check(&shapes, of_cbq, cbq::Cbq::node, &steps);
        check(&shapes, of_hfsc, hfsc::Hfsc::node, &steps);
    }
}

//! A tree that succeeds another one goes on as if the other one had changed in place.

use crate::discipline::{Inspect, Reconfigure};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::count::Count;
use crate::discipline::{Algorithm, Discipline, Node, Variable};
use crate::error::ConfigError;
use crate::rate::Rate;
use crate::sharing::shapes::{Shape, fifos, of_cbq, of_hfsc, of_htb, shapes};
use crate::sharing::{cbq, hfsc, htb};
use crate::testing::{Driver, in_class};
use crate::time::Time;

type Build<A> = fn(<A as Algorithm>::Config, Vec<Box<dyn Discipline>>) -> Result<Node<A>, ConfigError>;

/// All that can be seen of a tree.
type Shown = (
    Vec<(&'static str, Variable)>,
    BTreeMap<u32, (Count, Vec<(&'static str, Variable)>)>,
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
    slow_down: fn(&mut A::Config, usize),
    build: Build<A>,
    steps: &[(u8, prop::sample::Index, u32)],
) {
    let mut shape = &shapes[0];
    let mut running = config(shape);
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
                let before = shape;
                let mut wanted = config(shape);
                // Half of the changes are those of one class.
                match step {
                    10 => slow_down(&mut wanted, index.index(shape.len())),
                    _ => {
                        shape = index.get(shapes);
                        wanted = config(shape);
                    }
                }
                changed.reconfigure(wanted.clone(), now);
                let is_leaf = |shape: &Shape, minor| {
                    shape.iter().any(|class| class.0 == minor)
                        && shape.iter().all(|class| class.1 != Some(minor))
                };
                let kept = |&minor: &u32| is_leaf(before, minor) && is_leaf(shape, minor);
                let mut next = build(wanted.clone(), fifos(shape)).expect("a valid tree");
                if number.is_multiple_of(2) {
                    next.prepare_to_take_over(&running);
                }
                succeeded.succeed(next, (1..=10).filter(kept).collect(), now);
                running = wanted;
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

fn halved(rate: Rate) -> Rate {
    Rate::from_bits_per_second(rate.bits_per_second() / 2).expect("it is above 0")
}

proptest! {
    #[test]
    fn a_successor_goes_on_like_a_changed_tree(
        shapes in vec(shapes(), 1..6),
        steps in vec((0u8..12, any::<prop::sample::Index>(), 40u32..1500), 1..200),
    ) {
        let htb = |config: &mut htb::Config, class: usize| {
            let class = &mut config.classes[class];
            (class.rate, class.ceil) = (halved(class.rate), class.ceil.map(halved));
        };
        let cbq = |config: &mut cbq::Config, class: usize| {
            config.classes[class].rate = halved(config.classes[class].rate);
        };
        let hfsc = |config: &mut hfsc::Config, class: usize| {
            let class = &mut config.classes[class];
            class.ls = Some(hfsc::ServiceCurve::linear(123_456));
            class.ul = Some(hfsc::ServiceCurve::linear(3_000_000)).filter(|_| class.minor.is_multiple_of(2));
        };
        check(&shapes, of_htb, htb, htb::Htb::node, &steps);
        check(&shapes, of_cbq, cbq, cbq::Cbq::node, &steps);
        check(&shapes, of_hfsc, hfsc, hfsc::Hfsc::node, &steps);
    }

    /// A change that changes nothing has no effect, also if classes are over their rates, or parked.
    #[test]
    fn a_change_to_the_same_parameters_has_no_effect(
        shape in shapes(),
        steps in vec((0u8..12, any::<prop::sample::Index>(), 40u32..1500), 1..200),
    ) {
        unchanged(&shape, of_htb, htb::Htb::node, &steps);
        unchanged(&shape, of_cbq, cbq::Cbq::node, &steps);
        unchanged(&shape, of_hfsc, hfsc::Hfsc::node, &steps);
    }
}

fn unchanged<A: Algorithm>(
    shape: &Shape,
    config: fn(&Shape) -> A::Config,
    build: Build<A>,
    steps: &[(u8, prop::sample::Index, u32)],
) {
    let new = || Driver::new(build(config(shape), fifos(shape)).expect("a valid tree"));
    let (mut changed, mut left_alone) = (new(), new());
    let mut now = Time::ZERO;
    for &(step, index, number) in steps {
        match step {
            0..=4 => {
                let packet = in_class(index.get(shape).0, number);
                assert_eq!(changed.offer(packet, now), left_alone.offer(packet, now));
            }
            5..=9 => {
                now += u64::from(number) * 500;
                assert_eq!(changed.next(now), left_alone.next(now));
            }
            // What is due then is done in both.
            _ => {
                let first = (changed.next(now), left_alone.next(now));
                assert_eq!(first.0, first.1);
                changed.reconfigure(config(shape), now);
            }
        }
        assert_eq!(shown(&changed.root), shown(&left_alone.root));
    }
    let end = now + 60_000_000_000;
    assert_eq!(changed.drain(end), left_alone.drain(end));
}

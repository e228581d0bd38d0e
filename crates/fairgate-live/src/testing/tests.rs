//! Deadlines, with short limits.

use std::sync::mpsc;
use std::time::Duration;

use super::deadline::{PATIENCE, watch, within};

#[test]
fn a_wait_ends_with_its_condition_or_its_patience() {
    let mut looks = 0;
    assert!(within(PATIENCE, "the third look", || {
        looks += 1;
        looks == 3
    }));
    assert!(!within(Duration::from_millis(20), "nothing", || false));
}

#[test]
fn a_test_that_does_not_end_is_named_with_what_it_waits_for() {
    let (sender, receiver) = mpsc::channel();
    assert!(within(PATIENCE, "the end of the world", || true));
    let watched = watch("the_test", Duration::from_millis(20), move |message| {
        sender.send(message.to_owned()).expect("the test waits for it");
    });
    let message = receiver.recv_timeout(PATIENCE).expect("the deadline passes");
    drop(watched);
    assert!(
        message.contains("the_test has not ended after 20ms") && message.ends_with("the end of the world"),
        "{message}"
    );
}

#[test]
fn a_test_that_ends_in_time_is_left_alone() {
    let (sender, receiver) = mpsc::channel::<()>();
    drop(watch("the_test", PATIENCE, move |_| {
        sender.send(()).expect("the test waits for it");
    }));
    // The watching thread ends with the test, and drops what it would have called.
    let answer = receiver.recv_timeout(PATIENCE);
    assert_eq!(answer, Err(mpsc::RecvTimeoutError::Disconnected));
}

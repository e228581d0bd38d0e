//! Tests of the modes against what sch_gred.c does.

use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::discipline::Discipline;
use crate::packet::Packet;
use crate::testing::Driver;

/// DSCP 1 to 3 are of the virtual queues 0 to 2, and all others of 15, which is never set up.
fn config() -> Config {
    let mut precedence = [15; 64];
    precedence[1..4].copy_from_slice(&[0, 1, 2]);
    Config {
        precedence,
        ..Config::default()
    }
}

fn of(queue: u8) -> Packet {
    Packet {
        dscp: queue + 1,
        ..Packet::of_length(1000)
    }
}

/// The numbers of drops of each virtual queue, if the packets of `held` keep so many bytes queued and `tried`
/// sends one in ten.
fn drops(config: Config, held: u8, tried: u8, bytes: u64) -> [u64; 3] {
    let mut driver = Driver::new(Gred::node(config, 1).unwrap());
    let mut dropped = [0; 3];
    for step in 0..40_000u64 {
        let now = Time::from_micros(step * 800);
        while driver.root.backlog().bytes > bytes {
            driver.next(now);
        }
        let queue = if step % 10 == 0 { tried } else { held };
        let verdict = driver.offer(of(queue), now);
        dropped[usize::from(queue)] += u64::from(verdict == Verdict::Congested);
    }
    dropped
}

#[test]
fn a_virtual_queue_sees_only_its_own_packets() {
    let dropped = drops(config(), 2, 0, 60_000);
    assert!(dropped[2] > 1000 && dropped[0] == 0, "{dropped:?}");
}

/// The averages of higher priorities count for lower ones, and not the other way.
#[test]
fn with_grio_priorities_add_up() {
    let with = |priority: Vec<u32>| Config {
        grio: true,
        priority,
        ..config()
    };
    let dropped = drops(with(vec![1, 2, 3]), 0, 2, 60_000);
    assert!(dropped[0] > 100 && dropped[2] > 100, "{dropped:?}");
    let dropped = drops(with(vec![3, 2, 1]), 0, 2, 60_000);
    assert!(dropped[0] > 100 && dropped[2] == 0, "{dropped:?}");
}

/// Two equal priorities: one average for all, with the curve of each.
#[test]
fn with_equal_priorities_all_share_an_average() {
    let config = Config {
        grio: true,
        priority: vec![4, 4, 1],
        ..config()
    };
    let node = Gred::node(config.clone(), 1).unwrap();
    assert_eq!(node.algorithm().mode, Mode::Shared);
    let dropped = drops(config, 2, 0, 60_000);
    let rate = [dropped[0] as f64 / 4_000.0, dropped[2] as f64 / 36_000.0];
    // The curves reach 2 % and 10 %.
    assert!((3.0..8.0).contains(&(rate[1] / rate[0])), "{dropped:?}");
}

#[test]
fn packets_without_a_virtual_queue_pass_up_to_the_limit() {
    let config = Config {
        limit: 3_000,
        limits: vec![0, 9_000, 9_000],
        min: vec![0, 2_000, 2_000],
        max: vec![0, 9_000, 9_000],
        ..config()
    };
    let mut driver = Driver::new(Gred::node(config.clone(), 1).unwrap());
    for _ in 0..3 {
        assert_eq!(driver.offer(of(0), Time::ZERO), Verdict::Queued);
    }
    assert_eq!(driver.offer(of(0), Time::ZERO), Verdict::Dropped);
    // The limit of a virtual queue is at most the one of all.
    assert_eq!(config.virtual_queue(1).unwrap().red.limit, 3_000);
    assert_eq!(config.virtual_queue(0), None);
    // With a default that is set up they belong to it.
    let other = Config {
        default_queue: 1,
        ..config
    };
    driver.reconfigure(other, Time::ZERO);
    assert_eq!(
        driver.root.algorithm().virtuals[1].as_ref().unwrap().backlog,
        3_000
    );
}

#[test]
fn a_lowered_limit_drops_the_newest_of_a_virtual_queue() {
    let mut driver = Driver::new(Gred::node(config(), 1).unwrap());
    for queue in [0, 1, 0, 1] {
        driver.offer(of(queue), Time::ZERO);
    }
    let lower = Config {
        limits: vec![1_500, 400_000, 400_000],
        ..config()
    };
    driver.reconfigure(lower, Time::ZERO);
    assert_eq!(driver.returned, [(2, DropReason::Reconfigured)]);
    assert_eq!(driver.drain(Time::ZERO), [0, 1, 3]);
}

#[test]
fn what_does_not_fit_together_is_rejected_by_name() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        Gred::node(config, 1).unwrap_err().parameter()
    };
    assert_eq!(refused(|config| config.queues = 17), Some("queues"));
    assert_eq!(refused(|config| config.default_queue = 3), Some("default_queue"));
    assert_eq!(refused(|config| config.min = vec![5]), Some("min"));
    assert_eq!(refused(|config| config.avpkt = vec![0, 1, 1]), Some("avpkt"));
    assert_eq!(refused(|config| config.max = vec![30_000; 3]), Some("max"));
    assert_eq!(refused(|config| config.burst = vec![1; 3]), Some("burst"));
    assert_eq!(refused(|config| config.precedence[3] = 16), Some("precedence"));
}

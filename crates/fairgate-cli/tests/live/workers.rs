//! Several workers for one run.

use std::net::UdpSocket;
use std::time::Duration;

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::{live, until};
use crate::run::Run;

/// A line that is shaped in one direction, for two workers.
fn shaped(rate: &str) -> String {
    format!(
        "[queue.q]\ndiscipline = \"tbf\"\nrate = \"{rate}\"\nburst = \"2kb\"\n\
         inner = {{ discipline = \"fq_codel\" }}\n\n\
         [run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"q\"\nworkers = 2\n"
    )
}

/// Flows wait in the trees of both workers. What is queued leaves before the run ends, each flow in order.
#[test]
fn a_stop_sends_what_all_workers_have_queued() {
    let Some(_watched) = live("a_stop_sends_what_all_workers_have_queued") else {
        return;
    };
    // Together they fit into the receiver's socket, which nobody reads meanwhile.
    const FLOWS: u8 = 16;
    const COUNT: u8 = 3;
    let network = Network::build().unwrap();
    let bind = |address: &'static str, port: u16| move || UdpSocket::bind((address, port)).unwrap();
    let sink = network.right.enter(bind(Network::RIGHT, 5000)).unwrap();
    sink.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let run = Run::start(&network.router, &shaped("100kbit"));
    for flow in 0..FLOWS {
        let source = network.left.enter(bind(Network::LEFT, 0)).unwrap();
        for number in 0..COUNT {
            let bytes = [&[flow, number][..], &[0; 998]].concat();
            source.send_to(&bytes, (Network::RIGHT, 5000)).unwrap();
        }
    }
    // At its rate, the line would need four seconds.
    until("the workers have the datagrams", || {
        let tree = &run.status().directions[0].tree;
        let of_both = tree.classes.iter().all(|shard| shard.enqueued.packets > 0);
        assert_eq!((tree.discipline.as_str(), tree.classes.len()), ("sharded", 2));
        tree.enqueued.packets >= u64::from(FLOWS * COUNT) && of_both
    });
    let last = run.stop();
    let mut next = [0; FLOWS as usize];
    for _ in 0..FLOWS * COUNT {
        let mut bytes = [0; 1000];
        until("a datagram that was queued arrives", || {
            sink.recv(&mut bytes).is_ok()
        });
        let expected = &mut next[usize::from(bytes[0])];
        assert_eq!(bytes[1], *expected, "flow {}", bytes[0]);
        *expected += 1;
    }
    assert_eq!(last["directions"][0]["tree"]["backlog"]["packets"], 0);
}

/// The file is read again: the trees of both workers follow, and nothing else may change.
#[test]
fn a_reload_reaches_all_workers() {
    let Some(_watched) = live("a_reload_reaches_all_workers") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("line.toml");
    std::fs::write(&file, shaped("10mbit")).unwrap();
    let run = Run::of_file(&network.router, &file).wait();
    std::fs::write(&file, shaped("10mbit").replace("fq_codel", "drr")).unwrap();
    run.signal(Signal::SIGHUP);
    until("both trees have changed", || {
        let tree = &run.status().directions[0].tree;
        tree.classes
            .iter()
            .all(|shard| shard.classes[0].discipline == "drr")
    });
    std::fs::write(&file, shaped("10mbit").replace("workers = 2", "workers = 3")).unwrap();
    run.signal(Signal::SIGHUP);
    until("the number of workers is refused", || {
        run.said().contains("workers")
    });
    // A tree that workers can't share.
    std::fs::write(&file, shaped("10mbit").replace("fq_codel", "fifo")).unwrap();
    run.signal(Signal::SIGHUP);
    until("the tree is refused", || {
        run.said().contains("does not give each flow")
    });
    assert_eq!(run.status().directions[0].tree.classes.len(), 2);
    run.stop();
}

//! Measures how many 64-byte packets per second a bridge forwards between network namespaces.
//!
//! Run it with `cargo bench -p fairgate-live`. It does not use criterion, because it measures a rate over
//! seconds of real forwarding, and that rate includes the kernel's share of the work. It needs root. Without
//! root it prints a message and measures nothing.
//!
//! Every tree is measured with packet sockets and with AF_XDP. The kernel copies frames for both, because
//! veth devices can't do without.

use std::time::Duration;

use fairgate_config::Document;
use fairgate_live::testbed::flood;
use fairgate_live::{BackendKind, Plan};

/// The duration of each measurement.
const DURATION: Duration = Duration::from_secs(3);

/// The number of flows. Each has its own UDP port.
const FLOWS: u16 = 64;

fn main() {
    println!(
        "{:<42} {:>13} {:>13} {:>8}",
        "64-byte packets, one direction", "offered Mpps", "at sink Mpps", "lost"
    );
    let trees = [
        ("fifo", "discipline = \"fifo\""),
        ("fq_codel", "discipline = \"fq_codel\""),
        (
            "tbf 10gbit / fq_codel",
            "discipline = \"tbf\"\nrate = \"10gbit\"\nburst = \"12500kb\"\n\
             inner = { discipline = \"fq_codel\" }",
        ),
    ];
    let cases = BackendKind::ALL
        .into_iter()
        .flat_map(|kind| trees.map(|tree| (kind, tree)));
    for (backend, (tree, queue)) in cases {
        let label = match backend {
            BackendKind::Packet => tree.to_owned(),
            BackendKind::Xdp => format!("{tree}, AF_XDP"),
        };
        let text = format!(
            "[queue.link]\n{queue}\n\n[run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"link\"\n"
        );
        let document = Document::parse("bench.toml", &text).expect("the configuration is valid");
        let mut plan = Plan::read(&document).expect("the configuration is valid");
        plan.backend = Some(backend);
        match flood(&plan, FLOWS, DURATION) {
            Ok(flood) => println!(
                "{label:<42} {:>13.3} {:>13.3} {:>6.1} %",
                flood.offered_pps / 1e6,
                flood.forwarded_pps / 1e6,
                flood.lost as f64 / (flood.offered_pps * DURATION.as_secs_f64()) * 100.0
            ),
            Err(error) => return eprintln!("SKIPPED: the bridge could not be measured: {error}"),
        }
    }
}

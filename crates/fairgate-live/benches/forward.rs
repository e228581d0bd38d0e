//! How many 64-byte packets per second pass through a bridge between network namespaces: `cargo bench -p fairgate-live`.
//!
//! Not a criterion benchmark: it measures a rate over seconds of real forwarding, which includes the kernel's share.
//! Needs root; says so and measures nothing otherwise.

use std::time::Duration;

use fairgate_config::Document;
use fairgate_live::Plan;
use fairgate_live::testbed::flood;

/// Each measurement.
const DURATION: Duration = Duration::from_secs(3);

/// Sources of packets, each with its port.
const FLOWS: u16 = 64;

fn main() {
    println!(
        "{:<42} {:>13} {:>13} {:>8}",
        "64-byte packets, one direction", "offered Mpps", "at sink Mpps", "lost"
    );
    for (label, queue) in [
        ("fifo", "discipline = \"fifo\""),
        ("fq_codel", "discipline = \"fq_codel\""),
        (
            "tbf 10gbit / fq_codel",
            "discipline = \"tbf\"\nrate = \"10gbit\"\nburst = \"12500kb\"\ninner = { discipline = \"fq_codel\" }",
        ),
    ] {
        let text = format!(
            "[queue.line]\n{queue}\n\n[run]\nleft = \"left\"\nright = \"right\"\nleft_to_right = \"line\"\n"
        );
        let document = Document::parse("bench.toml", &text).expect("the configuration is right");
        let plan = Plan::read(&document).expect("the configuration is right");
        match flood(&plan, FLOWS, DURATION) {
            Ok(flood) => println!(
                "{label:<42} {:>13.3} {:>13.3} {:>6.1} %",
                flood.offered_pps / 1e6,
                flood.forwarded_pps / 1e6,
                flood.lost as f64 / (flood.offered_pps * DURATION.as_secs_f64()) * 100.0
            ),
            Err(error) => return eprintln!("SKIPPED: nothing was measured: {error}"),
        }
    }
}

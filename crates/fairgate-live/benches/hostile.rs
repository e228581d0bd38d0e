//! Measures what hostile frames at full rate do to other traffic, and to the memory: malformed ones, and
//! millions of new flows.
//!
//! Run it with `cargo bench -p fairgate-live --bench hostile`. It needs root. Without root it prints a
//! message and measures nothing.

use std::time::Duration;

use fairgate_live::testbed::{Interrupt, Source, attack, plan_of};

/// The duration of each attack. In this time about ten million frames are sent.
const DURATION: Duration = Duration::from_secs(20);

const TREES: [(&str, &str); 4] = [
    ("fq_codel", r#"discipline = "fq_codel""#),
    (
        "cake 100mbit",
        r#"discipline = "cake"
           bandwidth = "100mbit""#,
    ),
    (
        "htb, a class for the host",
        r#"discipline = "htb"
           default = 20
           class = [
               { id = 1, rate = "100mbit" },
               { id = 10, parent = 1, rate = "50mbit", ceil = "100mbit", discipline = "fq_codel" },
               { id = 20, parent = 1, rate = "50mbit", ceil = "100mbit", discipline = "fq_codel" },
           ]
           filter = [
               { class = 10, destination = "10.77.0.2", protocol = "icmp" },
               { class = 10, ethertype = "arp" },
           ]"#,
    ),
    (
        "tbf 100mbit / fq_codel, two workers",
        r#"discipline = "tbf"
           rate = "100mbit"
           burst = "100kb"
           inner = { discipline = "fq_codel" }"#,
    ),
];

fn main() {
    println!(
        "{:<44} {:>14} {:>14} {:>14} {:>14}",
        "attack, tree", "frames, Mpps", "pings lost", "mean ping, ms", "memory, MiB"
    );
    let interrupt = match Interrupt::catch() {
        Ok(interrupt) => interrupt,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    for (attacker, source) in [("malformed", Source::Malformed), ("new flows", Source::NewFlows)] {
        for (tree, queue) in TREES {
            let workers = if tree.ends_with("two workers") { 2 } else { 1 };
            let plan = plan_of(queue, workers).expect("the configuration is valid");
            match attack(&plan, source, DURATION, &interrupt) {
                Ok(attack) => println!(
                    "{:<44} {:>14.3} {:>12.1} % {:>14.2} {:>14.1}",
                    format!("{attacker}, {tree}"),
                    attack.frames_pps / 1e6,
                    100.0 * attack.ping.loss(),
                    attack.ping.mean_ms,
                    attack.memory_growth as f64 / f64::from(1 << 20)
                ),
                Err(error) => return eprintln!("SKIPPED: an attack could not be measured: {error}"),
            }
        }
    }
}

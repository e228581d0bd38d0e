//! Measures how exactly shapers hold a rate, and what that takes of a processor.
//!
//! Run it with `cargo bench -p fairgate-live --bench precision`. It needs root, and a machine that does
//! nothing else. Without root it prints a message and measures nothing.

use std::time::Duration;

use fairgate_config::units::parse_rate;
use fairgate_live::Plan;
use fairgate_live::testbed::{idle, plan_of, precision};

/// The duration of each measurement.
const DURATION: Duration = Duration::from_secs(5);

const RATES: [&str; 4] = ["1mbit", "10mbit", "100mbit", "1gbit"];

/// Trees with `RATE` in the place of a rate, and `BURST` in the place of what it sends in a millisecond.
const TREES: [(&str, &str); 4] = [
    (
        "tbf / fq_codel",
        r#"discipline = "tbf"
           rate = "RATE"
           burst = BURST
           inner = { discipline = "fq_codel" }"#,
    ),
    (
        "htb",
        r#"discipline = "htb"
           default = 1
           class = [{ id = 1, rate = "RATE", discipline = "fq_codel" }]"#,
    ),
    (
        "hfsc",
        r#"discipline = "hfsc"
           default = 1
           class = [{ id = 1, ls = "RATE", ul = "RATE", discipline = "fq_codel" }]"#,
    ),
    (
        "cake",
        r#"discipline = "cake"
           bandwidth = "RATE""#,
    ),
];

fn main() {
    println!(
        "{:<28} {:>12} {:>12} {:>12} {:>16} {:>12}",
        "tree", "of the rate", "gap, ms", "burst, ms", "latest wake-up", "of a core"
    );
    for rate in RATES {
        let parsed = parse_rate(rate).expect("the rate is valid");
        // At least two full frames.
        let burst = (parsed.bits_per_second() / 8000).max(3_028).to_string();
        for (name, tree) in TREES {
            let plan = plan(&tree.replace("RATE", rate).replace("BURST", &burst));
            match precision(&plan, parsed, DURATION) {
                Ok(held) => println!(
                    "{:<28} {:>10.3} % {:>12.2} {:>12.2} {:>16.2} {:>10.2} %",
                    format!("{name}, {rate}"),
                    100.0 * held.rate_bps / parsed.bits_per_second() as f64,
                    held.longest_gap / 1e6,
                    held.longest_burst / 1e6,
                    held.status.processor.latest_us / 1e3,
                    100.0 * held.of_a_core
                ),
                Err(error) => return eprintln!("SKIPPED: the rate could not be measured: {error}"),
            }
        }
    }
    match idle(&plan(&TREES[3].1.replace("RATE", "100mbit")), DURATION) {
        Ok(share) => println!(
            "{:<28} {:>12} {:>12} {:>12} {:>16} {:>10.3} %",
            "no traffic",
            "-",
            "-",
            "-",
            "-",
            100.0 * share
        ),
        Err(error) => eprintln!("SKIPPED: an idle bridge could not be measured: {error}"),
    }
}

fn plan(tree: &str) -> Plan {
    plan_of(tree, 1).expect("the configuration is valid")
}

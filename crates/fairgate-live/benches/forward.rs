//! Measures how many 64-byte packets per second a bridge forwards between network namespaces, and how much
//! processor time each takes.
//!
//! Run it with `cargo bench -p fairgate-live`. It does not use criterion, because it measures a rate over
//! seconds of real forwarding, and that rate includes the kernel's share of the work. It needs root. Without
//! root it prints a message and measures nothing.
//!
//! Every tree is measured with packet sockets and with AF_XDP, beside a loop over the same back end without a
//! queue, and beside the kernel's bridge. The kernel copies frames for both back ends, because veth devices
//! can't do without.

use std::time::Duration;

use fairgate_live::BackendKind;
use fairgate_live::testbed::{Forwarder, Source, TestbedError, flood, plan_of};

/// The duration of each measurement.
const DURATION: Duration = Duration::from_secs(3);

/// The number of flows. Each has its own UDP port.
const FLOWS: u16 = 64;

fn main() {
    println!(
        "{:<30} {:>13} {:>13} {:>8} {:>11}",
        "64-byte packets, one direction", "offered Mpps", "at sink Mpps", "lost", "ns a packet"
    );
    if let Err(error) = measure() {
        eprintln!("SKIPPED: forwarding could not be measured: {error}");
    }
}

fn measure() -> Result<(), TestbedError> {
    show("kernel's bridge", Forwarder::Kernel)?;
    let trees = [
        ("fifo", "discipline = \"fifo\""),
        ("fq_codel", "discipline = \"fq_codel\""),
        (
            "tbf 10gbit / fq_codel",
            "discipline = \"tbf\"\nrate = \"10gbit\"\nburst = \"12500kb\"\n\
             inner = { discipline = \"fq_codel\" }",
        ),
    ];
    for backend in [BackendKind::Packet, BackendKind::Xdp] {
        let label = |tree: &str| match backend {
            BackendKind::Xdp => format!("{tree}, AF_XDP"),
            _ => tree.to_owned(),
        };
        show(&label("loop without a queue"), Forwarder::Loop(backend))?;
        for (tree, queue) in trees {
            let mut plan = plan_of(queue, 1).expect("the configuration is valid");
            plan.backend = Some(backend);
            show(&label(tree), Forwarder::Bridge(&plan))?;
        }
    }
    Ok(())
}

/// Measures, and prints a line.
fn show(label: &str, forwarder: Forwarder<'_>) -> Result<(), TestbedError> {
    let flood = flood(forwarder, Source::Flows(FLOWS), DURATION)?;
    let nanos = flood.nanos_per_frame;
    println!(
        "{label:<30} {:>13.3} {:>13.3} {:>6.1} % {:>11}",
        flood.offered_pps / 1e6,
        flood.forwarded_pps / 1e6,
        flood.lost as f64 / (flood.offered_pps * DURATION.as_secs_f64()) * 100.0,
        nanos.map_or("-".to_owned(), |nanos| format!("{nanos:.0}"))
    );
    Ok(())
}

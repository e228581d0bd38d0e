//! Packet-hops a second: `hops`.

use super::Blocks;
use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::criterion::{self, Measured};
use crate::figures::markdown::{Table, digits, whole};

/// Each with the seconds that the benchmark simulates.
const TRAFFIC: [(&str, &str, f64); 4] = [
    (
        "tcp",
        "10 TCP downloads (CUBIC), the whole protocol included",
        10.0,
    ),
    (
        "udp_constant",
        "10 UDP sources, constant, more than the link carries",
        10.0,
    ),
    ("udp_poisson", "10 UDP sources, Poisson", 10.0),
    ("tcp_10000", "10,000 TCP downloads, links ten times as fast", 4.0),
];

pub(super) fn measure(bench: &Bench) -> Result<Blocks> {
    Ok(vec![(
        "simulator",
        table(&bench.criterion("fairgate-sim", "hops")?)?,
    )])
}

fn table(times: &[Measured]) -> Result<String> {
    let heads = [
        "traffic",
        "million packet-hops a second",
        "ns a hop",
        "times faster than it happens",
    ];
    let mut table = Table::new(1, &heads);
    for (name, traffic, simulated) in TRAFFIC {
        let measured = criterion::of(times, &format!("dumbbell/{name}"))?;
        let hops = measured
            .elements
            .ok_or(format!("`{name}` does not tell its packet-hops"))?;
        let per_hop = measured.median / hops;
        let faster = simulated * 1e9 / measured.median;
        table.add(&[traffic, &digits(1e3 / per_hop), &whole(per_hop), &whole(faster)]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_become_rates() {
        let measured = |(name, ..): &(&str, &str, f64)| Measured {
            name: format!("dumbbell/{name}"),
            median: 0.05e9,
            elements: Some(500_000.0),
        };
        let times: Vec<Measured> = TRAFFIC.iter().map(measured).collect();
        let text = table(&times).unwrap();
        assert!(
            text.contains("| 10 UDP sources, Poisson | 10.0 | 100 | 200 |"),
            "{text}"
        );
        let silent: Vec<Measured> = times
            .into_iter()
            .map(|time| Measured {
                elements: None,
                ..time
            })
            .collect();
        assert!(table(&silent).unwrap_err().contains("`tcp` does not tell"));
    }
}

//! Reading headers: `dissect`.

use super::{Blocks, aims};
use crate::figures::Result;
use crate::figures::bench::Bench;
use crate::figures::criterion::{self, Measured};
use crate::figures::markdown::{Table, digits};

/// Benchmarks and what they read.
const FRAMES: [(&str, &str); 5] = [
    ("ipv4-tcp", "IPv4 with TCP"),
    ("vlan-ipv4-tcp", "the same with a VLAN tag"),
    ("ipv6-udp", "IPv6 with UDP"),
    ("ipv4-tcp/tunnelled", "IPv4 with TCP, and a look for tunnels"),
    ("ipv4-tcp/with-hash", "IPv4 with TCP, hashed"),
];

/// ns, of each but the hashed one.
const AIM: f64 = 20.0;

pub(super) fn measure(bench: &Bench) -> Result<Blocks> {
    Ok(vec![(
        "headers",
        table(&bench.criterion("fairgate", "dissect")?)?,
    )])
}

fn table(times: &[Measured]) -> Result<String> {
    let mut table = Table::new(1, &["frame", "ns", "aim, ns"]);
    for (name, frame) in FRAMES {
        let median = criterion::of(times, &format!("dissect/{name}"))?.median;
        let aim = (!name.ends_with("with-hash")).then_some(AIM);
        table.add(&[frame, &digits(median), &aims::cell(Some(median), aim)]);
    }
    Ok(table.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_has_a_row() {
        let times: Vec<Measured> = FRAMES
            .iter()
            .map(|(name, _)| Measured {
                name: format!("dissect/{name}"),
                median: 15.0,
                elements: None,
            })
            .collect();
        let text = table(&times).unwrap();
        assert_eq!(text.lines().count(), 2 + FRAMES.len());
        assert!(text.contains("| IPv6 with UDP | 15.0 | 20: met |"), "{text}");
        assert!(table(&times[1..]).unwrap_err().contains("`dissect/ipv4-tcp`"));
    }
}

//! Ethernet frames into classes by header fields: `cargo run -p fairgate --example classify`.

use std::error::Error;

use fairgate::classify::{Classifier, Filter, Match};
use fairgate::flow::{LinkType, dissect};
use fairgate::{Discipline, Fifo, FlowHasher, Link, Prio, Time, fifo, prio};

fn main() -> Result<(), Box<dyn Error>> {
    // Band 1 is served first. DNS goes there, everything else into band 2.
    let dns = Filter {
        condition: Match {
            protocol: Some(17),
            destination_port: Some(53..=53),
            ..Match::default()
        },
        outcome: 1.into(),
        ..Filter::default()
    };
    let config = prio::Config {
        classifier: Classifier {
            filters: [dns].into_iter().collect(),
            default: Some(2),
            ..Classifier::default()
        },
        // Where no filter and no default applies, a packet's priority chooses: here always band 1,
        // counted from 0.
        priomap: [1; 16],
    };
    let band = || -> Result<Box<dyn Discipline>, fairgate::ConfigError> {
        Ok(Box::new(Fifo::node(fifo::Config::default())?))
    };
    let mut link = Link::new(Prio::node(config, vec![band()?, band()?])?, 100);

    // `dissect` finds the headers, also behind VLAN tags and in tunnels. The key keeps strangers
    // from choosing hashes.
    let hasher = FlowHasher::new([0x0123, 0x4567]);
    for (name, port) in [("web", 443), ("DNS", 53)] {
        let frame = udp_frame(port);
        let headers = dissect(&frame, LinkType::Ethernet);
        let packet = headers.packet(frame.len() as u32, &hasher);
        link.enqueue((packet, headers.key), name, Time::ZERO)?;
    }
    let order: Vec<&str> = std::iter::from_fn(|| link.dequeue(Time::ZERO).packet())
        .map(|departure| departure.payload)
        .collect();
    println!("{order:?}");
    assert_eq!(order, ["DNS", "web"]);
    Ok(())
}

/// A UDP packet from 192.0.2.1 to this port of 192.0.2.2, in an Ethernet frame.
fn udp_frame(port: u16) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    frame.extend([
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ]);
    frame.extend(5000u16.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 8, 0, 0]);
    frame
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}

//! Two subscribers share a link of 10 Mbit/s, each with fq_codel inside: `cargo run -p fairgate
//! --example tree`.

use std::error::Error;

use fairgate::{ClassId, Discipline, FqCodel, Htb, Link, Next, Packet, Rate, Time, fq_codel, htb};

fn main() -> Result<(), Box<dyn Error>> {
    // Class 1 is the link. 10 is sure of 7 Mbit/s and 20 of 3 Mbit/s. Each may borrow what the other leaves.
    let subscriber = |minor, rate| htb::ClassConfig {
        ceil: Some(Rate::mbit(10)),
        ..htb::ClassConfig::of_rate(minor, Some(1), Rate::mbit(rate))
    };
    let config = htb::Config {
        classifier: fairgate::classify::Classifier {
            handle: 1,
            ..Default::default()
        },
        classes: vec![
            htb::ClassConfig::of_rate(1, None, Rate::mbit(10)),
            subscriber(10, 7),
            subscriber(20, 3),
        ],
        ..htb::Config::default()
    };
    let leaf = |seed| -> Result<Box<dyn Discipline>, fairgate::ConfigError> {
        Ok(Box::new(FqCodel::node(fq_codel::Config::default(), seed)?))
    };
    let mut link: Link<()> = Link::new(Htb::node(config, vec![leaf(1)?, leaf(2)?])?, 1000);

    // Both always have packets queued. Time advances to whenever htb may send: the clock is the program's.
    let (mut now, mut bytes) = (Time::ZERO, [0u64; 2]);
    for class in [10, 20, 10, 20, 10, 20, 10, 20] {
        offer(&mut link, class, now)?;
    }
    while now < Time::from_secs(2) {
        match link.dequeue(now) {
            Next::Packet(departure) => {
                let class = departure.slot.class.minor();
                bytes[usize::from(class == 20)] += u64::from(departure.slot.length);
                offer(&mut link, class, now)?;
            }
            Next::Wait(until) => now = until,
            Next::Idle => unreachable!("both subscribers always have packets queued"),
        }
    }
    let rates = bytes.map(|bytes| bytes as f64 * 8.0 / 2e6);
    println!("{:.2} and {:.2} Mbit/s", rates[0], rates[1]);
    assert!((rates[0] - 7.0).abs() < 0.1 && (rates[1] - 3.0).abs() < 0.1);

    link.root().visit_classes(&mut |class| {
        let statistics = class.discipline.statistics();
        println!(
            "class 1:{:x} sent {} packets",
            class.minor, statistics.dequeued.packets
        );
    });
    Ok(())
}

/// A packet that names its class.
fn offer(link: &mut Link<()>, class: u16, now: Time) -> Result<(), Box<dyn Error>> {
    let packet = Packet {
        class: ClassId::new(1, class),
        ..Packet::of_length(1514)
    };
    link.enqueue(packet, (), now)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}

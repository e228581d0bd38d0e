//! A fair queue with low delay inside a program: `cargo run -p fairgate --example embed`.

use std::error::Error;

use fairgate::{FlowHash, FqCodel, Link, Next, Packet, Time, fq_codel};

fn main() -> Result<(), Box<dyn Error>> {
    // 42 is the seed of its hash. The payload of a packet is its bytes.
    let queue = FqCodel::node(fq_codel::Config::default(), 42)?;
    let mut link = Link::new(queue, 10_000);

    // Two flows. The first one sends nine packets before the second one sends one.
    for number in 0..10u64 {
        let flow = FlowHash::from_raw(if number < 9 { 0x1111 } else { 0x2222 });
        let bytes = format!("packet {number}").into_bytes();
        let packet = Packet {
            flow,
            ..Packet::of_length(1514)
        };
        link.enqueue(packet, bytes, Time::from_micros(number))?;
    }
    // The second flow does not wait for the first one.
    let mut now = Time::from_millis(1);
    while let Next::Packet(departure) = link.dequeue(now) {
        println!("{now}: {}", String::from_utf8(departure.payload)?);
        now += 1_000_000;
    }
    // A driver takes out what the discipline dropped. Here it dropped nothing.
    while let Some(dropped) = link.take_dropped() {
        println!("dropped: {}", dropped.reason.name());
    }
    assert!(link.is_empty());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}

//! A shaper between two UDP sockets, with the system's clock: `cargo run -p fairgate --example udp_shaper`.
//!
//! A sender sends 64 datagrams at once. The shaper forwards them at 8 Mbit/s.

use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use fairgate::{Codel, FlowHash, Link, Next, Packet, Rate, Tbf, Time, codel, tbf};

const RATE: Rate = Rate::mbit(8);
const DATAGRAMS: usize = 64;
const BYTES: usize = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let [sender, inside, outside, receiver] = [(); 4].map(|()| UdpSocket::bind("127.0.0.1:0"));
    let (sender, inside, outside, receiver) = (sender?, inside?, outside?, receiver?);
    sender.connect(inside.local_addr()?)?;
    outside.connect(receiver.local_addr()?)?;

    // Nothing but the token bucket may hold a datagram here for longer than CoDel's patience: no drops.
    let patient = codel::Config {
        codel: codel::Params {
            target: Duration::from_secs(1),
            interval: Duration::from_secs(10),
            ..codel::Params::default()
        },
        ..codel::Config::default()
    };
    let config = tbf::Config {
        limit: None,
        ..tbf::Config::of_rate(RATE)
    };
    let shaper = Tbf::node(config, Some(Box::new(Codel::node(patient)?)))?;
    let mut link = Link::new(shaper, 1000);

    for number in 0..DATAGRAMS {
        sender.send(&vec![number as u8; BYTES])?;
    }
    let start = Instant::now();
    let now = || Time::from_nanos(start.elapsed().as_nanos() as u64);
    let mut forwarded = 0;
    let mut buffer = [0; 2048];
    inside.set_nonblocking(true)?;
    while forwarded < DATAGRAMS {
        match inside.recv(&mut buffer) {
            Ok(length) => {
                let packet = Packet {
                    flow: FlowHash::from_raw(1),
                    ..Packet::of_length(length as u32)
                };
                link.enqueue(packet, buffer[..length].to_vec(), now())?;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        match link.dequeue(now()) {
            Next::Packet(departure) => {
                outside.send(&departure.payload)?;
                forwarded += 1;
            }
            // A program with an event loop would wait for the socket and for this time.
            Next::Wait(until) => std::thread::sleep(Duration::from_nanos(until.nanos_since(now()))),
            Next::Idle => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{forwarded} datagrams in {seconds:.3} s: {:.2} Mbit/s",
        (forwarded * BYTES * 8) as f64 / 1e6 / seconds
    );
    // 64 kB at 1 MB/s take 64 ms, less the 15 kB that the bucket holds at the start.
    assert!(seconds > 0.048, "the shaper let them through");
    for number in 0..DATAGRAMS {
        assert_eq!(receiver.recv(&mut buffer)?, BYTES);
        assert_eq!(buffer[0], number as u8, "in order");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn runs() {
        super::main().unwrap();
    }
}

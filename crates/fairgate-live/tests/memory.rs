//! A day of traffic in the time of its captures: memory does not grow.

use std::fs::File;

use etherparse::PacketBuilder;
use fairgate::Time;
use fairgate_capture::{CaptureWriter, LinkType};
use fairgate_config::Document;
use fairgate_live::{Captures, DryRun, Plan};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A subscriber has its class for as long as it is active, and there are more hosts than classes.
const PLAN: &str = r#"
[queue.down]
discipline = "htb"
default = 2

[[queue.down.class]]
id = 1
rate = "1mbit"

[[queue.down.class]]
id = 2
parent = 1
rate = "50kbit"
discipline = "fifo"

[[queue.down.class]]
id = 100
each = "destination"
count = 8
overflow = 2
parent = 1
rate = "100kbit"
ceil = "1mbit"
discipline = "fq_codel"
flows = 16
limit = 2

[[queue.down.filter]]
class = 100
destination = "10.0.0.0/24"

[queue.up]
discipline = "cake"
bandwidth = "100kbit"
memory_limit = "20kb"

[run]
left = "modem"
right = "home"
left_to_right = "down"
right_to_left = "up"
"#;

/// Six minutes. Bursts are longer than the trees can send at once. Each packet may be of another flow.
const MINUTES: u64 = 6;

/// Half of the packets are of a few flows, which fill their queues. The others have flows of their own.
fn ports(random: &mut Xoshiro256PlusPlus) -> u16 {
    match random.next_u64() % 2 {
        0 => 1 + (random.next_u64() % 3) as u16,
        _ => random.next_u64() as u16,
    }
}

fn write_capture(seed: u64) -> tempfile::TempPath {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (file, path) = tempfile::NamedTempFile::new().unwrap().into_parts();
    let mut writer = CaptureWriter::new(file, LinkType::ETHERNET, 65535).unwrap();
    let mut time = 0;
    while time < MINUTES * 60_000_000_000 {
        for _ in 0..1 + random.next_u64() % 30 {
            let host = (random.next_u64() % 12) as u8;
            let mut frame = Vec::new();
            PacketBuilder::ethernet2([2; 6], [4; 6])
                .ipv4([10, 0, 1, host], [10, 0, 0, host], 64)
                .udp(ports(&mut random), 9)
                .write(&mut frame, &vec![0; (random.next_u64() % 1400) as usize])
                .unwrap();
            writer
                .packet(Time::from_nanos(time), frame.len() as u32, &frame)
                .unwrap();
        }
        time += random.next_u64() % 2_000_000_000;
    }
    writer.finish().unwrap();
    path
}

#[test]
fn memory_does_not_grow_in_a_day() {
    let (down, up) = (write_capture(1), write_capture(2));
    let plan = Plan::read(&Document::parse("day.toml", PLAN).unwrap()).unwrap();
    let null = || Some(File::options().write(true).open("/dev/null").unwrap());
    let captures = Captures {
        received: [Some(down.to_path_buf()), Some(up.to_path_buf())],
        sent: [null(), null()],
        passes: 24 * 60 / MINUTES,
    };
    let mut dry_run = DryRun::open(&plan, captures, Some(1)).unwrap();
    // In the first hour, tables and buffers reach their size.
    while dry_run.passes_left() > 23 * 60 / MINUTES {
        assert!(dry_run.go_on(100).unwrap());
    }
    let rest = allocation_counter::measure(|| while dry_run.go_on(100_000).unwrap() {});
    let status = dry_run.status();
    assert!(status.uptime_s > 23.9 * 3600.0, "{} s", status.uptime_s);
    for direction in &status.directions {
        assert!(direction.sent.packets > 100_000, "{direction:?}");
        assert!(direction.tree.dropped.packets > 1_000, "{direction:?}");
    }
    // A buffer of a capture that is read again may be larger than that before.
    assert!(rest.bytes_current.abs() < 100_000, "{rest:?}");
}

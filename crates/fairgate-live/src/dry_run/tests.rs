use std::fs;
use std::io::Write;
use std::path::Path;

use etherparse::PacketBuilder;
use fairgate_capture::{Capture, CaptureWriter, LinkType, PcapngWriter};
use fairgate_config::Document;
use proptest::prelude::*;

use super::*;

/// Times in captures are counted from 1970.
const BEGIN: u64 = 1_700_000_000_000_000_000;

/// A frame, and its time since [`BEGIN`] in nanoseconds.
type Timed = (u64, Vec<u8>);

fn write(path: &Path, link: LinkType, snap_length: u32, frames: &[Timed]) {
    let mut writer = CaptureWriter::new(Vec::new(), link, snap_length).unwrap();
    for (time, bytes) in frames {
        let time = Time::from_nanos(BEGIN + time);
        writer.packet(time, bytes.len() as u32, bytes).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

fn read(path: &Path) -> Vec<Timed> {
    let mut capture = Capture::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = capture.next_record().unwrap() {
        frames.push((record.time.nanos() - BEGIN, record.data.to_vec()));
    }
    frames
}

fn plan(queue: &str) -> Plan {
    let text = format!("[queue.q]\n{queue}\n[run]\nleft = \"a\"\nright = \"b\"\nleft_to_right = \"q\"\n");
    Plan::read(&Document::parse("dry.toml", &text).unwrap()).unwrap()
}

fn udp(port: u16, payload: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(port, 9)
        .write(&mut frame, &vec![port as u8; payload])
        .unwrap();
    frame
}

/// Runs captures of what the left end receives. Returns the status and what the right end sends.
fn forward(queue: &str, passes: u64, path: &Path) -> Result<(Status, Vec<Timed>), DryRunError> {
    let out = tempfile::NamedTempFile::new().unwrap();
    let captures = Captures {
        received: [Some(path.to_owned()), None],
        sent: [None, Some(out.reopen().unwrap())],
        passes,
    };
    let mut dry_run = DryRun::open(&plan(queue), captures, Some(1))?;
    while dry_run.go_on(7)? {}
    dry_run.finish()?;
    let status = dry_run.status();
    status.check().unwrap();
    Ok((status, read(out.path())))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Without a shaper all frames leave when they arrive, and unchanged.
    #[test]
    fn a_fifo_changes_nothing(
        gaps in proptest::collection::vec((0u64..50_000_000, 1u16..20, 0usize..1400), 1..60),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.pcap");
        let mut time = 0;
        let frames: Vec<_> = gaps.into_iter().map(|(gap, port, payload)| {
            time += gap;
            (time, udp(port, payload))
        }).collect();
        write(&path, LinkType::ETHERNET, u32::MAX, &frames);
        let (status, sent) = forward("discipline = \"fifo\"", 1, &path).unwrap();
        prop_assert_eq!(&sent, &frames);
        prop_assert_eq!(status.directions[0].sent.packets, frames.len() as u64);
    }
}

/// A bucket of one frame: each frame leaves when the one before it has been paid for.
#[test]
fn a_shaper_keeps_its_rate_in_the_time_of_the_capture() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let frames: Vec<_> = (0..100).map(|_| (0, udp(1, 958))).collect();
    write(&path, LinkType::ETHERNET, u32::MAX, &frames);
    let (_, sent) = forward(
        "discipline = \"tbf\"\nrate = \"8mbit\"\nburst = \"1514b\"\nlimit = \"1mb\"",
        1,
        &path,
    )
    .unwrap();
    assert_eq!(sent.len(), 100);
    for (index, (time, _)) in sent.iter().enumerate().skip(2) {
        // 1000 bytes at 8 Mb/s are 1 ms. The bucket begins with 514 bytes more.
        let due = index as u64 * 1_000_000 - 514_000;
        assert!(
            time.abs_diff(due) <= 1_000,
            "frame {index} left at {time} ns instead of {due}"
        );
    }
}

#[test]
fn captures_are_read_as_often_as_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let frames = vec![(0, udp(1, 100)), (5_000_000, udp(2, 100))];
    write(&path, LinkType::ETHERNET, u32::MAX, &frames);
    let (_, sent) = forward("discipline = \"fifo\"", 3, &path).unwrap();
    let times: Vec<u64> = sent.iter().map(|(time, _)| *time / 1_000_000).collect();
    assert_eq!(times, [0, 5, 6, 11, 12, 17]);
}

/// A capture on a host shows merged packets with any checksum. The link carries them cut.
#[test]
fn merged_packets_are_cut_again() {
    let payload: Vec<u8> = (0..20_000u32).map(|number| number as u8).collect();
    for is_ipv6 in [false, true] {
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let builder = match is_ipv6 {
            false => builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
            true => builder.ipv6([1; 16], [2; 16], 64),
        };
        let mut frame = Vec::new();
        let tcp = builder.tcp(80, 4000, 1_000, 1_000).ack(5);
        tcp.write(&mut frame, &payload).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.pcap");
        write(&path, LinkType::ETHERNET, u32::MAX, &[(0, frame)]);
        let (status, sent) = forward("discipline = \"fifo\"", 1, &path).unwrap();
        assert_eq!(status.directions[0].lost.unsupported_offload, 0);
        let mut joined: Vec<u8> = Vec::new();
        for (_, bytes) in &sent {
            assert!(bytes.len() <= 1514, "{} bytes", bytes.len());
            let packet = etherparse::SlicedPacket::from_ethernet(bytes).unwrap();
            let Some(etherparse::TransportSlice::Tcp(tcp)) = &packet.transport else {
                panic!("a segment without TCP");
            };
            assert_eq!(tcp.sequence_number(), 1_000 + joined.len() as u32);
            let checksum = match &packet.net {
                Some(etherparse::NetSlice::Ipv4(ip)) => tcp
                    .to_header()
                    .calc_checksum_ipv4(&ip.header().to_header(), tcp.payload()),
                Some(etherparse::NetSlice::Ipv6(ip)) => tcp
                    .to_header()
                    .calc_checksum_ipv6(&ip.header().to_header(), tcp.payload()),
                _ => panic!("a segment without IP"),
            };
            assert_eq!(checksum.unwrap(), tcp.checksum());
            joined.extend(tcp.payload());
        }
        assert_eq!(joined, payload);
    }
}

#[test]
fn missing_bytes_are_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let frame = udp(7, 500);
    write(&path, LinkType::ETHERNET, 60, &[(0, frame.clone())]);
    let (_, sent) = forward("discipline = \"fifo\"", 1, &path).unwrap();
    assert_eq!(sent[0].1.len(), frame.len());
    assert_eq!(sent[0].1[..60], frame[..60]);
    assert!(sent[0].1[60..].iter().all(|byte| *byte == 0));
}

/// Longer frames than an MTU of 1500 allows, which are no merged packets.
#[test]
fn long_frames_are_forwarded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let frames: Vec<_> = (0..3).map(|number| (number, udp(7, 8_000))).collect();
    write(&path, LinkType::ETHERNET, u32::MAX, &frames);
    let (_, sent) = forward("discipline = \"fifo\"", 1, &path).unwrap();
    assert_eq!(sent, frames);
}

/// Writes a capture of frames of 1000 bytes at these times.
fn write_at(path: &Path, times: &[u64]) {
    let mut writer = PcapngWriter::new(Vec::new(), LinkType::ETHERNET, u32::MAX, "a").unwrap();
    for time in times {
        writer
            .packet(Time::from_nanos(*time), 1000, &udp(1, 958))
            .unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the times and the rate, a dry run ends: with all frames sent, or at the first time that
    /// can't be.
    #[test]
    fn a_dry_run_ends(
        mut times in proptest::collection::vec(
            prop_oneof![0u64..1 << 40, any::<u64>(), u64::MAX - (1 << 40)..=u64::MAX], 1..6,
        ),
        is_sorted in any::<bool>(),
        bits in prop_oneof![Just(8u64), Just(1000), 8u64..1 << 36],
        shaper in prop_oneof![
            Just("tbf\"\nburst = \"1514b\"\nlimit = \"1gb\"\nrate"),
            Just("leaky_bucket\"\nbucket = \"1gb\"\nrate"),
            Just("netem\"\ndelay = \"4s\"\nrate"),
            Just("htb\"\ndefault = 1\n[[queue.q.class]]\nid = 1\ndiscipline = \"fifo\"\nrate"),
            Just("cbq\"\nbandwidth = \"100gbit\"\ndefault = 1\n[[queue.q.class]]\nid = 1\nborrow = false\n\
                  discipline = \"fifo\"\nrate"),
            Just("hfsc\"\ndefault = 1\n[[queue.q.class]]\nid = 1\nls = \"1mbit\"\n\
                  discipline = \"fifo\"\nul"),
        ],
        passes in 1u64..7,
    ) {
        if is_sorted {
            times.sort_unstable();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.pcapng");
        write_at(&path, &times);
        let captures = Captures { received: [Some(path), None], passes, ..Captures::default() };
        let queue = format!("discipline = \"{shaper} = \"{bits}bit\"");
        let ended = DryRun::open(&plan(&queue), captures, Some(1)).and_then(|mut dry_run| {
            // Each frame arrives once, and a shaper waits for it a few times at most.
            for _ in 0..100 * times.len() as u64 * passes {
                if !dry_run.go_on(1)? {
                    return Ok(Some(dry_run.status()));
                }
            }
            Ok(None)
        });
        let latest = times.iter().scan(0, |latest, &time| { *latest = time.max(*latest); Some(*latest) });
        let first_late = latest.clone().position(|time| time > Time::LAST.nanos());
        match ended {
            Ok(status) => {
                let status = status.expect("it ends");
                prop_assert_eq!(first_late, None);
                prop_assert_eq!(status.directions[0].sent.packets, times.len() as u64 * passes);
            }
            Err(DryRunError::TooLate { packet, .. }) => {
                prop_assert_eq!(packet.packet, first_late.map_or(packet.packet, |late| late as u64 + 1));
                prop_assert!(first_late.is_some() || passes > 1);
            }
            Err(DryRunError::Held { held, .. }) => prop_assert!(held > 0),
            Err(error) => prop_assert!(false, "{error:?}"),
        }
    }
}

/// At 8 bit/s the second packet leaves after a quarter of an hour, which is too late.
#[test]
fn packets_that_a_tree_never_sends_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcapng");
    write_at(&path, &[Time::LAST.nanos() - 1, Time::LAST.nanos()]);
    let queue = "discipline = \"tbf\"\nrate = \"8bit\"\nburst = \"1514b\"\nlimit = \"1mb\"";
    let captures = Captures {
        received: [Some(path), None],
        passes: 1,
        ..Captures::default()
    };
    let mut dry_run = DryRun::open(&plan(queue), captures, Some(1)).unwrap();
    let error = dry_run.go_on(100).unwrap_err();
    let is_expected = matches!(&error, DryRunError::Held { held: 1, packet, .. } if packet.packet == 2);
    assert!(is_expected, "{error:?}");
}

#[test]
fn bad_captures_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let error = |path: &Path| forward("discipline = \"fifo\"", 1, path).unwrap_err();
    assert!(matches!(error(&path), DryRunError::Capture { .. }));
    write(&path, LinkType::ETHERNET, 60, &[]);
    assert!(matches!(error(&path), DryRunError::NoPackets { .. }));
    write(&path, LinkType::RAW_IP, 60, &[(0, udp(1, 1)[14..].to_vec())]);
    let place = |packet| CapturedPacket {
        path: path.display().to_string(),
        packet,
    };
    assert!(matches!(error(&path), DryRunError::NotEthernet { packet, .. } if packet == place(1)));
    write(&path, LinkType::ETHERNET, 60, &[(0, udp(1, 1)), (1, udp(1, 1))]);
    let whole = fs::read(&path).unwrap();
    fs::File::create(&path)
        .unwrap()
        .write_all(&whole[..whole.len() - 1])
        .unwrap();
    assert!(matches!(error(&path), DryRunError::Capture { .. }));
}

/// With `overhead` a tree counts other lengths than those of frames. The frames stay as they are.
#[test]
fn trees_count_the_overhead_of_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let frames: Vec<_> = (0..10).map(|_| (0, udp(1, 958))).collect();
    write(&path, LinkType::ETHERNET, u32::MAX, &frames);
    for (overhead, counted) in [(-14, 986), (0, 1000), (24, 1024)] {
        let captures = Captures {
            received: [Some(path.clone()), None],
            ..Captures::default()
        };
        let queue = "discipline = \"fifo\"";
        let plan = Plan {
            overhead,
            ..plan(queue)
        };
        let mut dry_run = DryRun::open(&plan, captures, Some(1)).unwrap();
        while dry_run.go_on(7).unwrap() {}
        let status = dry_run.status();
        let direction = &status.directions[0];
        assert_eq!(
            (direction.tree.dequeued.bytes, direction.sent.bytes),
            (10 * counted, 10_000)
        );
    }
    let text = "[run]\nleft = \"a\"\nright = \"b\"\noverhead = -15\n";
    let error = Plan::read(&Document::parse("dry.toml", text).unwrap()).unwrap_err();
    assert!(format!("{error:?}").contains("must be -14 to 1000"), "{error:?}");
}

/// A steady stream of 8000 bytes per second: 8 packets of 1000 bytes, for 20 time constants.
#[test]
fn an_estimator_shows_the_rate_of_a_steady_stream() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.pcap");
    let frames: Vec<_> = (0..320)
        .map(|number| (number * 125_000_000, udp(1, 958)))
        .collect();
    write(&path, LinkType::ETHERNET, u32::MAX, &frames);
    let queue = "discipline = \"drr\"\nestimator = \"250ms 2s\"\ndefault = 1\n\
                 class = [{ id = 1, estimator = \"1s 3s\", discipline = \"fifo\" }]";
    let (status, _) = forward(queue, 1, &path).unwrap();
    let tree = &status.directions[0].tree;
    let class = tree.estimated_classes[0];
    assert_eq!((tree.estimated_classes.len(), class.class), (1, 1));
    assert_eq!(tree.classes[0].estimated, None, "its fifo has no estimator");
    for rate in [tree.estimated.expect("it has an estimator"), class.rate] {
        assert!(rate.rate_bps.abs_diff(64_000) < 2_000, "{rate:?}");
        assert!((7..=8).contains(&rate.rate_pps), "{rate:?}");
    }
}

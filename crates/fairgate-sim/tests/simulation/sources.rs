//! What flows send: applications over UDP and TCP, as scenario files describe them.

use std::time::Duration;

use fairgate::{Rate, Time};
use fairgate_capture::{CaptureWriter, LinkType};
use fairgate_config::{Document, FileError};
use fairgate_sim::results::{ApplicationResults, FlowResults};
use fairgate_sim::{
    Application, Flow, LineRate, Link, Queue, RecordedPacket, RecordedTurn, Results, Scenario, Simulation,
    Tcp, Traffic, tcp,
};

/// Reads a scenario of two nodes, `server` and `home`, with a link of 10 Mbit/s and a round-trip time of 20
/// ms.
fn read(seconds: u32, flows: &str) -> Result<Scenario, FileError> {
    let document = Document::parse("test.toml", &(network(seconds) + flows))?;
    Scenario::read(&document)
}

fn network(seconds: u32) -> String {
    format!(
        r#"
[queue.short]
discipline = "fifo"
limit = 100

[simulate]
duration = "{seconds}s"

[[simulate.link]]
a = "server"
b = "home"
rate = "10mbit"
delay = "10ms"
queue = "short"
"#
    )
}

fn flow(program: &str) -> String {
    format!("[[simulate.flow]]\nname = \"flow\"\nfrom = \"server\"\nto = \"home\"\n{program}\n")
}

fn run(scenario: &Scenario) -> Results {
    let results = Simulation::new(scenario)
        .expect("the scenario is valid")
        .run()
        .expect("the simulation runs to its end");
    for flow in &results.flows {
        let back = flow
            .connection
            .as_ref()
            .map(|connection| &connection.acknowledgements);
        for totals in [Some(&flow.whole_run), back].into_iter().flatten() {
            assert_eq!(totals.sent, totals.received + totals.lost + totals.in_flight);
        }
    }
    results
}

fn run_file(seconds: u32, program: &str) -> Results {
    run(&read(seconds, &flow(program)).unwrap_or_else(|error| panic!("{program}: {error:?}")))
}

fn only(results: &Results) -> &FlowResults {
    assert_eq!(results.flows.len(), 1);
    &results.flows[0]
}

fn within(value: u64, expected: u64, percent: u64) {
    assert!(
        value.abs_diff(expected) * 100 <= expected * percent,
        "{value} is not within {percent} % of {expected}"
    );
}

#[test]
fn bursts_at_a_rate_have_the_mean_rate() {
    let results = run_file(
        200,
        "tcp = { pattern = \"on_off\", rate = \"4mbit\", on = { exponential = \"500ms\" }, \
         off = { exponential = \"500ms\" } }",
    );
    within(only(&results).goodput_bps, 2_000_000, 8);
}

#[test]
fn greedy_bursts_fill_the_link_while_they_last() {
    let results = run_file(60, r#"tcp = { pattern = "on_off", on = "2s", off = "2s" }"#);
    let series = &only(&results).throughput_series_bps;
    // From 12 s to 14 s the third burst is over, and nothing is queued after 0.2 s.
    assert_eq!(series[105..120], [0; 15][..]);
    assert!(series[125..139].iter().all(|&bps| bps > 9_000_000), "{series:?}");
    // Half of the time, and 0.12 s more in each 4 s, until the queue is empty.
    within(only(&results).goodput_bps, 9_564_000 * 212 / 400, 3);
}

#[test]
fn bursts_of_bytes_deliver_each_byte() {
    for rate in ["", r#"rate = "8mbit", size = "3000b","#] {
        let program = format!(r#"tcp = {{ pattern = "on_off", {rate} bytes = "100000b", off = "1s" }}"#);
        let results = run_file(11, &program);
        // At 8 Mbit/s a burst takes 100 ms.
        let bursts = if rate.is_empty() { 11 } else { 10 };
        let bytes = only(&results).goodput_bps * 11 / 8;
        assert!(
            bytes.abs_diff(bursts * 100_000) <= 11,
            "{bytes} bytes in {bursts} bursts"
        );
    }
}

#[test]
fn datagrams_at_intervals_have_the_mean_rate() {
    let results = run_file(
        100,
        r#"udp = { interval = { uniform = ["0ms", "4ms"] }, size = { uniform = ["500b", "700b"] } }"#,
    );
    within(only(&results).goodput_bps, 600 * 8 * 500, 2);
}

#[test]
fn a_video_has_its_rate_and_rtp_packets() {
    for words in ["spread = false", "spread = true", "shaping = \"200ms\""] {
        let results = run_file(100, &format!("video = {{ rate = \"2500kbit\", {words} }}"));
        let flow = only(&results);
        // 12 bytes of each payload of at most 1328 are RTP's.
        let packets = flow.whole_run.received;
        let video = flow.goodput_bps * 100 / 8 - 12 * packets;
        within(video, 31_250_000, 2);
        assert_eq!(flow.lost, 0);
        let Some(ApplicationResults::Media {
            delay_variation,
            gaps,
            interarrival_jitter_ns,
            ..
        }) = &flow.application
        else {
            panic!("no results of media: {:?}", flow.application)
        };
        assert_eq!(*gaps, 0);
        assert_eq!(delay_variation.count, packets - 1);
        // Without losses this is FlowMonitor's jitter, and RFC 3550's estimate is a smoothed form of it.
        assert!(delay_variation.mean_ns.abs_diff(flow.jitter_ns) <= 1);
        within(*interarrival_jitter_ns, flow.jitter_ns, 15);
    }
}

#[test]
fn recorded_frames_are_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("frames.txt"), "# frames\n3000\n\n1000\n2000\n").unwrap();
    let name = folder.path().join("test.toml");
    let text = |file: &str| {
        format!(
            "{}{}",
            network(9),
            flow(&format!("video = {{ sizes = \"{file}\", frame_rate = 10 }}"))
        )
    };
    let document = |file: &str| Document::parse(name.to_str().unwrap(), &text(file)).unwrap();
    let results = run(&Scenario::read(&document("frames.txt")).unwrap());
    let flow = only(&results);
    // Three, one and two packets. The last frame is sent 100 ms before the end.
    assert_eq!(flow.whole_run.sent, 90 / 3 * 6);
    assert_eq!(flow.whole_run.sent_bytes, 30 * 6000 + 180 * 40);

    std::fs::write(folder.path().join("wrong.txt"), "3000\n12k\n").unwrap();
    for (file, complaint) in [
        ("wrong.txt", "line 2 of wrong.txt is `12k`"),
        ("missing.txt", "missing.txt"),
    ] {
        let error = Scenario::read(&document(file)).unwrap_err();
        let problem = &error.problems()[0];
        assert!(problem.message.contains(complaint), "{}", problem.message);
        assert_eq!(&text(file)[problem.span.clone()], format!("\"{file}\""));
    }
}

#[test]
fn calls_and_games_go_both_ways() {
    let results = run_file(300, "voip = {}");
    assert_eq!(results.flows.len(), 2);
    for (flow, name) in results.flows.iter().zip(["flow", "flow back"]) {
        assert_eq!(flow.name, name);
        // 172 bytes every 20 ms, in 1.004 of 2.591 s.
        within(flow.goodput_bps, 68_800 * 1004 / 2591, 15);
    }
    assert_ne!(results.flows[0].sent, results.flows[1].sent);
    let results = run_file(100, "game = {}");
    let [server, client] = results.flows.as_slice() else {
        panic!("a game has two flows")
    };
    assert_eq!(
        (server.source.as_str(), client.source.as_str()),
        ("server", "home")
    );
    within(server.sent, 100_000_000 / 58_463, 2);
    assert_eq!(client.sent, 2_500);
    assert_eq!(
        run_file(10, "voip = { silence = false }\nboth = false").flows[0].sent,
        500
    );
}

#[test]
fn ping_measures_the_round_trip() {
    let results = run_file(10, "ping = { interval = \"500ms\" }");
    let Some(ApplicationResults::Ping {
        requests,
        answers,
        round_trip,
    }) = &only(&results).application
    else {
        panic!("no results of ping")
    };
    assert_eq!((*requests, *answers), (20, 20));
    // 56 bytes of payload, 28 of headers, and 14 of framing at 10 Mbit/s: 78.4 µs, and 10 ms each way.
    assert_eq!((round_trip.min_ns, round_trip.max_ns), (20_156_800, 20_156_800));
    assert_eq!(only(&results).transport, "icmp");
}

#[test]
fn a_lost_answer_is_no_answer() {
    let two = format!(
        "{}{}",
        flow("ping = { interval = \"10ms\" }"),
        flow("udp = { rate = \"20mbit\" }").replace("\"flow\"", "\"flood\"")
    );
    let results = run(&read(20, &two).unwrap());
    let Some(ApplicationResults::Ping {
        requests,
        answers,
        round_trip,
    }) = &results.flows[0].application
    else {
        panic!("no results of ping")
    };
    assert_eq!((*requests, round_trip.count), (2000, *answers));
    let whole = &results.flows[0].whole_run;
    assert!(whole.lost > 500, "{whole:?}");
    assert_eq!(*answers, whole.received - u64::from(whole.received > *answers));
}

#[test]
fn requests_and_responses_share_a_connection() {
    let results = run_file(
        30,
        r#"request = { response = "100000b", request = "500b", think = "1s", service = "50ms", count = 10 }"#,
    );
    let flow = only(&results);
    let Some(ApplicationResults::Exchanges {
        completed,
        response_time,
    }) = &flow.application
    else {
        panic!("no results of exchanges")
    };
    assert_eq!((*completed, response_time.count), (10, 10));
    // One round trip, 50 ms of service, and 84 ms of transmission; slow start takes some round trips more.
    assert!(response_time.min_ns > 150_000_000, "{response_time:?}");
    // The first exchange includes the handshake.
    assert!(response_time.max_ns < 350_000_000, "{response_time:?}");
    let bytes = flow.goodput_bps * 30 / 8;
    assert!(bytes.abs_diff(1_000_000) < 30, "{bytes}");
    let connection = flow.connection.as_ref().unwrap();
    assert_eq!(connection.retransmissions, 0);
    assert_eq!(connection.transfers.count, 10);
    // A SYN, and no more acknowledgements than every segment needs. Requests carry acknowledgements.
    assert!(
        connection.acknowledgements.sent < 10 * 70 + 20,
        "{:?}",
        connection.acknowledgements
    );
}

/// A response of one segment acknowledges the request, and the next request acknowledges the response.
#[test]
fn data_carries_acknowledgements() {
    let results = run_file(
        10,
        r#"request = { response = "1000b", request = "500b", count = 100 }"#,
    );
    let flow = only(&results);
    let Some(ApplicationResults::Exchanges {
        completed,
        response_time,
    }) = &flow.application
    else {
        panic!("no results of exchanges")
    };
    assert_eq!(*completed, 100);
    // 566 and 1066 bytes of frames, and 20 ms.
    assert_eq!(response_time.min_ns / 1000, 20_000 + (566 + 1066) * 8 / 10);
    let connection = flow.connection.as_ref().unwrap();
    // The SYN-ACK and the responses; the SYN, the requests, and the last acknowledgements.
    assert_eq!(flow.whole_run.sent, 101, "{connection:?}");
    assert!(
        (101..=104).contains(&connection.acknowledgements.sent),
        "{:?}",
        connection.acknowledgements
    );
}

#[test]
fn exchanges_survive_losses_in_both_directions() {
    let flows = [
        flow("tcp = {}\ncount = 3").replace("\"flow\"", "\"down\""),
        flow("tcp = {}\ncount = 3").replace("\"flow\"", "\"up\"").replace(
            "from = \"server\"\nto = \"home\"",
            "from = \"home\"\nto = \"server\"",
        ),
        flow(
            "request = { response = { uniform = [\"1kb\", \"200kb\"] }, \
             request = { uniform = [\"100b\", \"20kb\"] } }",
        ),
    ];
    let text = flows.concat();
    let mut scenario = read(120, &text).unwrap();
    scenario.links[0].queue_a = Queue::fifo(10);
    scenario.links[0].queue_b = Queue::fifo(10);
    let results = run(&scenario);
    let flow = results.flows.last().unwrap();
    let Some(ApplicationResults::Exchanges { completed, .. }) = &flow.application else {
        panic!("no results of exchanges")
    };
    let connection = flow.connection.as_ref().unwrap();
    assert!(*completed > 20, "{completed}");
    assert!(flow.lost > 0 && connection.acknowledgements.lost > 0);
    assert!(connection.retransmissions > 0);
}

#[test]
fn a_recorded_conversation_is_repeated() {
    let turn = |by_client, millis: u64, bytes| RecordedTurn {
        by_client,
        wait: millis * 1_000_000,
        bytes,
    };
    let greeted: &[RecordedTurn] = &[
        turn(false, 10, 80),
        turn(true, 100, 400),
        turn(false, 30, 300_000),
    ];
    let asked: &[RecordedTurn] = &[
        turn(true, 0, 400),
        turn(false, 0, 5_000),
        turn(true, 500, 2_000_000),
    ];
    for (turns, least) in [(greeted, 400), (asked, 2_200)] {
        let mut scenario = Scenario::new(Duration::from_secs(10));
        let (server, client) = (scenario.node("server"), scenario.node("client"));
        let delay = Duration::from_millis(10);
        scenario
            .links
            .push(Link::new(server, client, Rate::mbit(10), delay));
        let tcp = Tcp {
            config: tcp::Config::default(),
            application: Application::Conversation(turns.into()),
        };
        scenario.flows.push(Flow::new("flow", server, client, tcp));
        let results = run(&scenario);
        let flow = only(&results);
        let Some(ApplicationResults::Conversation {
            completed_turns,
            completion_ns,
            ..
        }) = flow.application
        else {
            panic!("no results of a conversation")
        };
        assert_eq!(completed_turns, turns.len() as u64);
        let millis = completion_ns.expect("it is complete") / 1_000_000;
        assert!((least..least + 250).contains(&millis), "{millis} ms");
        let from_server: u64 = turns
            .iter()
            .filter(|turn| !turn.by_client)
            .map(|turn| turn.bytes)
            .sum();
        assert!((flow.goodput_bps * 10 / 8).abs_diff(from_server) < 10);
    }
}

#[test]
fn pages_load_faster_over_more_connections() {
    let load = |connections: u32| {
        let results = run_file(
            120,
            &format!(
                "web = {{ document = \"20000b\", objects = \"30\", size = \"15000b\", think = \"2s\", \
                 connections = {connections}, pages = 20 }}"
            ),
        );
        let flow = only(&results);
        let Some(ApplicationResults::Pages {
            loaded,
            load_time,
            object_time,
        }) = &flow.application
        else {
            panic!("no results of pages")
        };
        assert_eq!((*loaded, object_time.count), (20, 20 * 31));
        let bytes = flow.goodput_bps * 120 / 8;
        assert!(bytes.abs_diff(20 * (20_000 + 30 * 15_000)) < 120, "{bytes}");
        load_time.p50_ns
    };
    let (one, six) = (load(1), load(6));
    // 470 kB take 394 ms. One connection needs a round trip for each object besides.
    assert!(six > 394_000_000 && six < 700_000_000, "{six}");
    assert!(
        one > 394_000_000 + 31 * 20_000_000 && one < 1_500_000_000,
        "{one}"
    );
}

#[test]
fn adaptive_video_plays_what_the_link_carries() {
    let playback = |rate: &str| {
        let text = flow(r#"adaptive = { chunk = "2s", buffer = "60s" }"#);
        let mut scenario = read(600, &text).unwrap();
        scenario.links[0].rate_a = LineRate::Constant(fairgate_config::units::parse_rate(rate).unwrap());
        scenario.measure.start = Duration::from_secs(200);
        match run(&scenario).flows.remove(0).application {
            Some(ApplicationResults::Playback {
                mean_bitrate_bps,
                stalls,
                startup_ns,
                ..
            }) => (mean_bitrate_bps, stalls, startup_ns.expect("playback began")),
            other => panic!("no results of playback: {other:?}"),
        }
    };
    let (fast, stalls, startup) = playback("10mbit");
    assert_eq!((fast, stalls), (5_800_000, 0));
    assert!(startup < 200_000_000, "{startup}");
    let (slow, stalls, _) = playback("2mbit");
    assert!((1_500_000..2_000_000).contains(&slow), "{slow}");
    assert_eq!(stalls, 0);
    let (starved, stalls, _) = playback("200kbit");
    assert_eq!(starved, 235_000);
    assert!(stalls > 10, "{stalls}");
}

#[test]
fn a_torrent_has_flows_in_both_directions() {
    let results = run_file(20, "torrent = { down = 4, up = 2 }");
    let names: Vec<&str> = results.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "flow-1",
            "flow-2",
            "flow-3",
            "flow-4",
            "flow back-1",
            "flow back-2"
        ]
    );
    for flow in &results.flows {
        assert_eq!(flow.connection.as_ref().unwrap().congestion_control, "ledbat");
    }
    let cubic = run_file(
        5,
        "torrent = { down = 1, up = 0 }\ntcp = { congestion_control = \"cubic\" }",
    );
    assert_eq!(
        only(&cubic).connection.as_ref().unwrap().congestion_control,
        "cubic"
    );
}

#[test]
fn recorded_packets_leave_once_at_their_times() {
    let mut scenario = read(5, &flow("udp = { rate = \"1mbit\" }")).unwrap();
    let packets = [(0, 100), (1_000_000_000, 1000), (1_000_000_000, 1000)];
    let packets: Vec<RecordedPacket> = packets
        .map(|(at, payload)| RecordedPacket { at, payload })
        .to_vec();
    scenario.flows[0].traffic = Traffic::Recorded(packets.into());
    scenario.flows[0].start = Duration::from_secs(1);
    let results = run(&scenario);
    let flow = only(&results);
    assert_eq!(
        (flow.whole_run.sent, flow.whole_run.sent_bytes),
        (3, 2100 + 3 * 28)
    );
    let busy: Vec<usize> = (0..50).filter(|&i| flow.throughput_series_bps[i] > 0).collect();
    assert_eq!(busy, [10, 20]);
}

/// Writes a capture: UDP packets of 100 bytes of payload, each with a time in milliseconds and a port.
fn capture(path: &std::path::Path, packets: &[(u64, u16)]) {
    let mut writer = CaptureWriter::new(Vec::new(), LinkType::ETHERNET, 96).unwrap();
    for &(millis, port) in packets {
        let mut frame = vec![0; 42];
        frame[12] = 0x08;
        frame[14..34].copy_from_slice(&[
            0x45, 0, 0, 128, 0, 0, 0, 0, 64, 17, 0, 0, 203, 0, 113, 5, 192, 168, 1, 20,
        ]);
        frame[34..36].copy_from_slice(&port.to_be_bytes());
        let time = Time::from_secs(1_700_000_000) + millis * 1_000_000;
        writer.packet(time, 14 + 128, &frame).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

#[test]
fn a_capture_is_sent_flow_by_flow_at_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let packets = [(0, 1), (100, 2), (200, 1), (300, 3), (400, 1), (500, 4), (600, 2)];
    capture(&folder.path().join("small.pcap"), &packets);
    std::fs::write(folder.path().join("text.pcap"), "no capture").unwrap();
    let name = folder.path().join("test.toml");
    let text = |pcap: &str| network(2) + &flow(&format!("start = \"500ms\"\npcap = {{ {pcap} }}"));
    let document = |pcap: &str| Document::parse(name.to_str().unwrap(), &text(pcap)).unwrap();
    let results = run(&Scenario::read(&document("file = \"small.pcap\", flows = 2")).unwrap());
    let sent: Vec<(&str, u64, u64)> = results
        .flows
        .iter()
        .map(|flow| {
            (
                flow.name.as_str(),
                flow.started_ns / 1_000_000,
                flow.whole_run.received,
            )
        })
        .collect();
    // The two flows with most packets, and the others together.
    assert_eq!(sent, [("flow", 500, 3), ("flow 2", 600, 2), ("flow 3", 800, 2)]);
    assert_eq!(results.flows[0].whole_run.sent_bytes, 3 * 128);
    let busy = |flow: &FlowResults| -> Vec<usize> {
        (0..20).filter(|&i| flow.throughput_series_bps[i] > 0).collect()
    };
    assert_eq!(busy(&results.flows[0]), [5, 7, 9]);
    assert_eq!(busy(&results.flows[2]), [8, 10]);

    for (pcap, location, complaint) in [
        ("file = \"text.pcap\"", "\"text.pcap\"", "not a packet capture"),
        ("file = \"none.pcap\"", "\"none.pcap\"", "none.pcap"),
        (
            "file = \"small.pcap\", to = \"10.0.0.0/8\"",
            "\"small.pcap\"",
            "no IP packets with",
        ),
        (
            "file = \"small.pcap\", to = \"home\"",
            "\"home\"",
            "not an address",
        ),
        ("file = \"small.pcap\", flows = 0", "0", "1 to 10000"),
    ] {
        let error = Scenario::read(&document(pcap)).unwrap_err();
        let problem = &error.problems()[0];
        assert!(problem.message.contains(complaint), "{pcap}: {}", problem.message);
        assert_eq!(&text(pcap)[problem.span.clone()], location, "{pcap}");
    }
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let all = [
        "video = { random_start = true }",
        "voip = {}",
        "game = {}",
        "ping = { interval = { exponential = \"50ms\" } }",
        "ssh = {}",
        "request = { response = { pareto = \"20kb\", shape = 1.5 }, think = { exponential = \"200ms\" } }",
        "web = { think = { exponential = \"1s\" } }",
        "adaptive = { chunk = \"1s\", buffer = \"10s\" }",
        "torrent = {}",
        "tcp = { pattern = \"on_off\", bytes = { exponential = \"50kb\" }, off = { exponential = \"1s\" } }",
    ];
    let text: String = all
        .iter()
        .enumerate()
        .map(|(number, program)| flow(program).replace("\"flow\"", &format!("\"{number}\"")))
        .collect();
    let bytes = |seed| {
        let mut scenario = read(10, &text).unwrap();
        scenario.seed = seed;
        serde_json::to_string(&run(&scenario)).expect("results are plain data")
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

/// A burst of a second leaves 200 kB more than the window in the buffer, ten times in 20 s. They are sent in
/// the silence.
#[test]
fn a_burst_leaves_a_full_send_buffer() {
    const WINDOW: u64 = 30 * 1448;
    let goodput = |buffered: u64| {
        let flow = format!(
            r#"
[[simulate.flow]]
name = "f"
from = "server"
to = "home"

[simulate.flow.tcp]
fixed_window = 30
pattern = "on_off"
on = "1s"
off = "1s"
buffered = "{buffered}b"
"#
        );
        run(&read(20, &flow).expect("the file is valid")).flows[0].goodput_bps
    };
    let none = goodput(0);
    assert_eq!(
        goodput(WINDOW / 2),
        none,
        "what is outstanding can't be taken back"
    );
    let more = goodput(WINDOW + 200_000) - none;
    assert!((780_000..820_000).contains(&more), "{more}");
}

#[test]
fn every_mistake_is_reported_at_its_location() {
    for (program, location, text) in [
        ("video = { rate = \"5x\" }", "x", "unit"),
        (
            "video = { group = \"IPX\" }",
            "\"IPX\"",
            "`X` is no kind of picture",
        ),
        ("video = { group = \"\" }", "\"\"", "empty"),
        ("video = { i = \"5kb\" }", "{ i", "distributions for each kind"),
        ("video = { frame_rate = 0 }", "0", "from 0.001"),
        ("video = { deviation = -1.0 }", "-1.0", "from 0 to 5"),
        ("video = { packet = \"0b\" }", "\"0b\"", "1b to 65495b"),
        (
            "video = { rate = \"5mbit\", fps = 3 }",
            "fps",
            "`fps` is no key of",
        ),
        (
            "video = { shaping = \"100ms\" }",
            "\"100ms\"",
            "no whole number of frames",
        ),
        ("voip = { on = \"1s\" }", "{ on", "both `on` and `off`"),
        (
            "voip = { packet = \"3ms\", rate = \"5kbit\" }",
            "{ packet",
            "whole number",
        ),
        ("game = { interval = \"0s\" }", "{ interval", "above 0"),
        ("ping = { interval = \"0s\" }", "{ interval", "above 0"),
        ("ping = { size = \"70kb\" }", "\"70kb\"", "1b to"),
        ("ping = {}\nboth = true", "true", "both directions in one flow"),
        ("ssh = { size = \"0b\" }", "{ size", "above 0"),
        ("request = { response = \"0b\" }", "{ response", "above 0"),
        ("request = { think = \"1s\" }", "{ think", "response"),
        ("web = { connections = 0 }", "0", "1 to 256"),
        ("web = { objects = \"5kb\" }", "5kb", "no whole number"),
        (
            "adaptive = { rates = [\"2mbit\", \"1mbit\"] }",
            "{ rates",
            "must be above 0 and rise",
        ),
        ("adaptive = { buffer = \"1s\" }", "{ buffer", "must hold a chunk"),
        ("torrent = {}\ncount = 3", "3", "numbers of flows"),
        ("torrent = { down = 0 }", "0", "at least 1"),
        ("web = {}\nvideo = {}", "{}", "both say what is sent"),
        (
            "web = {}\ntcp = { rate = \"1mbit\" }",
            "{ rate",
            "both say what is sent",
        ),
        ("video = {}\ntcp = {}", "{}", "does not use TCP"),
        ("ssh = {}\nudp = { rate = \"1mbit\" }", "{ rate", "omit `udp`"),
        (
            "udp = { size = \"100b\" }",
            "{ size",
            "at a `rate`, or with an `interval`",
        ),
        ("udp = { interval = \"0s\" }", "{ interval", "above 0"),
        (
            "udp = { interval = \"1s\", rate = \"1mbit\" }",
            "{ interval",
            "at a `rate`, or with an",
        ),
        (
            "tcp = { pattern = \"on_off\", bytes = \"9kb\", off = \"1s\", buffered = \"1kb\" }",
            "\"1kb\"",
            "only bursts of a duration without a `rate`",
        ),
        (
            "tcp = { buffered = \"1kb\" }",
            "{ buffered",
            "bursts over TCP need the pattern",
        ),
        (
            "tcp = { pattern = \"on_off\", on = \"1s\" }",
            "{ pattern",
            "need the pattern",
        ),
        ("tcp = { on = \"1s\", off = \"1s\" }", "{ on", "need the pattern"),
        (
            "tcp = { pattern = \"on_off\", on = \"1s\", off = \"1s\", size = \"1kb\" }",
            "\"1kb\"",
            "only at a `rate`",
        ),
        (
            "tcp = { pattern = \"on_off\", bytes = \"0b\", off = \"1s\" }",
            "{ pattern",
            "above 0",
        ),
    ] {
        let file = flow(program);
        let error = match read(10, &file) {
            Err(error) => error,
            Ok(_) => panic!("{program} is accepted"),
        };
        let problem = &error.problems()[0];
        let whole = format!("{}; {}", problem.message, problem.help);
        assert!(whole.contains(text), "{program}: {whole}");
        let excerpt = format!("{error:?}");
        assert!(
            !problem.span.is_empty() || location.is_empty(),
            "{program}: {excerpt}"
        );
        let source = network(10) + &file;
        let at = &source[problem.span.clone()];
        assert!(
            at.starts_with(location),
            "{program}: reported at {at}, not at {location}: {whole}"
        );
    }
}

//! `fairgate compare` as users run it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fairgate::Time;
use fairgate_capture::{CaptureWriter, LinkType};
use serde_json::Value;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/home.pcap.gz");

/// A temporary folder to run in.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn compare(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_fairgate"))
            .arg("compare")
            .args(arguments)
            .current_dir(self.0.path())
            .output()
            .expect("the program starts")
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.compare(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("one JSON document")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes a capture of `packets` UDP packets to a home, 100 µs apart.
fn small_capture(path: &Path, packets: u64) {
    capture_of_flows(path, packets, 1);
}

/// The same with several flows in turn. They differ by destination port.
fn capture_of_flows(path: &Path, packets: u64, flows: u64) {
    let mut frame = vec![0; 42];
    frame[12] = 0x08;
    frame[14..34].copy_from_slice(&[
        0x45, 0, 0x05, 0xdc, 0, 0, 0, 0, 64, 17, 0, 0, 203, 0, 113, 5, 192, 168, 1, 20,
    ]);
    frame[34..36].copy_from_slice(&[0x13, 0x8c]);
    let mut writer = CaptureWriter::new(Vec::new(), LinkType::ETHERNET, 96).unwrap();
    for number in 0..packets {
        let port = 40_004 + (number % flows) as u16;
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        writer
            .packet(Time::from_micros(number * 100), 1514, &frame)
            .unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

/// In an earlier version, a flow whose slot was taken away and not used again was missing from all totals.
#[test]
fn all_packets_are_counted_with_more_flows_than_slots() {
    let scratch = Scratch::new();
    for (packets, flows) in [(513, 513), (600, 600), (20_000, 3_000)] {
        capture_of_flows(&scratch.path("many.pcap"), packets, flows);
        let result = scratch.json(&["--trace", "many.pcap", "--rate", "20mbit"]);
        assert_eq!(result["input"]["replayed"], packets);
        for discipline in result["disciplines"].as_array().unwrap() {
            let number = |value: &Value, name: &str| value[name].as_u64().unwrap();
            let total = &discipline["total"];
            assert_eq!(total["offered"], packets, "{flows} flows, {}", discipline["name"]);
            assert_eq!(number(total, "delivered") + number(total, "dropped"), packets);
            let drops = discipline["drops"].as_object().unwrap();
            let by_reason: u64 = drops.values().map(|count| count.as_u64().unwrap()).sum();
            assert_eq!(total["dropped"], by_reason);
        }
    }
}

/// In an earlier version, a first packet from 1970 led to a run of decades with a rate of 0.
#[test]
fn a_pause_of_years_is_replayed_as_one_second() {
    let scratch = Scratch::new();
    small_capture(&scratch.path("later.pcap"), 1000);
    let mut file = std::fs::read(scratch.path("later.pcap")).unwrap();
    for record in file[24..].chunks_mut(16 + 42).skip(1) {
        record[..4].copy_from_slice(&1_300_000_000u32.to_le_bytes());
    }
    std::fs::write(scratch.path("set.pcap"), file).unwrap();
    let result = scratch.json(&["--trace", "set.pcap", "--rate", "1gbit", "--queue", "fifo"]);
    let seconds = result["duration_ns"].as_u64().unwrap() as f64 / 1e9;
    assert!((1.0..1.2).contains(&seconds), "{seconds} s");
    let remarks = result["remarks"].to_string();
    assert!(
        remarks.contains("longest of 15046 days after packet 1"),
        "{remarks}"
    );
}

/// In an earlier version, the first packet after the end was counted too.
#[test]
fn with_a_duration_only_the_packets_within_are_counted() {
    let scratch = Scratch::new();
    small_capture(&scratch.path("small.pcap"), 1000);
    let result = scratch.json(&["--trace", "small.pcap", "--duration", "50ms", "--queue", "fifo"]);
    assert_eq!(result["input"]["packets"], 500);
    assert_eq!(result["input"]["replayed"], 500);
}

/// The capture is read only once, so a pipe works.
#[test]
fn a_capture_can_be_read_from_a_pipe() {
    let scratch = Scratch::new();
    small_capture(&scratch.path("small.pcap"), 1000);
    let program = Command::new(env!("CARGO_BIN_EXE_fairgate"))
        .args(["compare", "--trace", "/dev/stdin", "--queue", "fifo", "--json"])
        .current_dir(scratch.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut program = program.expect("the program starts");
    let mut pipe = program.stdin.take().expect("it is piped");
    pipe.write_all(&std::fs::read(scratch.path("small.pcap")).unwrap())
        .expect("the program reads");
    drop(pipe);
    let output = program.wait_with_output().expect("the program ends");
    let piped: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let read = scratch.json(&["--trace", "small.pcap", "--queue", "fifo"]);
    assert_eq!(piped["disciplines"], read["disciplines"]);
    assert_eq!(piped["input"]["packets"], 1000);
}

/// The cost of a packet depends on its length, and a record can contain any length.
#[test]
fn an_impossible_length_is_rejected() {
    let scratch = Scratch::new();
    small_capture(&scratch.path("long.pcap"), 10);
    let mut file = std::fs::read(scratch.path("long.pcap")).unwrap();
    let last = file.len() - 42 - 4;
    file[last..last + 4].copy_from_slice(&(16u32 << 20).to_le_bytes());
    std::fs::write(scratch.path("long.pcap"), file).unwrap();
    let output = scratch.compare(&["--trace", "long.pcap"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = stderr(&output).replace("│", " ");
    let complaint = complaint.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        complaint.contains("original length of 16777216 bytes"),
        "{complaint}"
    );
    assert!(complaint.contains("--partial"), "{complaint}");
}

#[test]
fn the_report_has_no_external_references() {
    let scratch = Scratch::new();
    let output = scratch.compare(&["--trace", EXAMPLE, "--rate", "20mbit"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(scratch.files(), ["fairgate-report.html"]);
    let page = std::fs::read_to_string(scratch.path("fairgate-report.html")).unwrap();
    for reference in [
        "http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link", "<iframe",
    ] {
        assert!(
            !page.contains(reference),
            "the report has an external reference: {reference}"
        );
    }
    for name in [
        "fifo",
        "pfifo_fast",
        "sfq",
        "drr",
        "codel",
        "fq_codel",
        "msfc",
        "203.0.113.5:rtp",
        "open loop",
        "--seed 1",
    ] {
        assert!(page.contains(name), "the report does not mention {name}");
    }
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("Report: fairgate-report.html"), "{table}");
    assert!(table.contains("open loop"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colours in a pipe");
}

#[test]
fn the_same_command_gives_the_same_bytes() {
    for arguments in [vec!["--trace", EXAMPLE], vec!["--duration", "5s", "--seed", "7"]] {
        let run = || {
            let scratch = Scratch::new();
            let output =
                scratch.compare(&[arguments.as_slice(), &["--json", "--out", "report.html"]].concat());
            assert!(output.status.success(), "{}", stderr(&output));
            (output.stdout, std::fs::read(scratch.path("report.html")).unwrap())
        };
        assert!(run() == run(), "{arguments:?}");
    }
}

#[test]
fn the_home_scenario_compares_seven_disciplines() {
    let result = Scratch::new().json(&["--duration", "20s"]);
    assert_eq!(result["schema"], "fairgate.compare/1");
    let command = result["command"].as_str().unwrap();
    assert!(
        command.starts_with("fairgate compare --rate 20mbit --duration 20s --seed 1 --queue fifo"),
        "{command}"
    );
    let names: Vec<&str> = result["disciplines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "fifo",
            "pfifo_fast",
            "sfq",
            "drr limit=1000",
            "codel",
            "fq_codel",
            "msfc"
        ]
    );
    let call_p95 = |name: &str| {
        let index = names.iter().position(|n| *n == name).unwrap();
        result["disciplines"][index]["groups"][0]["delay"]["p95_ns"]
            .as_u64()
            .unwrap()
    };
    // This is the purpose of the comparison: 1000 packets at 20 Mbit/s take 0.6 s, and a fair queue lets the
    // call pass.
    assert!(call_p95("fifo") > 200_000_000, "{}", call_p95("fifo"));
    assert!(call_p95("fq_codel") < 50_000_000, "{}", call_p95("fq_codel"));
}

/// With an uncongested link and one flow, all values are known.
#[test]
fn figures_of_a_known_capture_are_exact() {
    let scratch = Scratch::new();
    small_capture(&scratch.path("small.pcap"), 1000);
    let result = scratch.json(&["--trace", "small.pcap", "--rate", "1gbit", "--queue", "fifo"]);
    let discipline = &result["disciplines"][0];
    let group = &discipline["groups"][0];
    assert_eq!(
        result["groups"][0]["name"],
        "203.0.113.5:rtp → 192.168.1.20:40004"
    );
    assert_eq!(
        (group["offered"].as_u64(), group["delivered"].as_u64()),
        (Some(1000), Some(1000))
    );
    // 1514 bytes at 1 Gbit/s: 12112 ns, for every packet; the last one arrives at 99.9 ms.
    assert_eq!(group["delay"]["mean_ns"], 12_112);
    assert_eq!(group["delay"]["max_ns"], 12_112);
    assert_eq!(group["jitter_ns"], 0);
    assert_eq!(result["duration_ns"], 99_900_000 + 12_112);
    assert_eq!(discipline["queue"]["most_packets"], 1);
}

#[test]
fn a_damaged_capture_is_rejected_without_partial() {
    let scratch = Scratch::new();
    small_capture(&scratch.path("whole.pcap"), 100);
    let whole = std::fs::read(scratch.path("whole.pcap")).unwrap();
    std::fs::write(scratch.path("cut.pcap"), &whole[..whole.len() - 7]).unwrap();

    let output = scratch.compare(&["--trace", "cut.pcap", "--queue", "fifo"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = stderr(&output);
    assert!(
        complaint.contains("99 packets") && complaint.contains("--partial"),
        "{complaint}"
    );
    assert_eq!(scratch.files(), ["cut.pcap", "whole.pcap"]);

    let result = scratch.json(&["--trace", "cut.pcap", "--queue", "fifo", "--partial"]);
    assert_eq!(result["input"]["replayed"], 99);
    assert!(result["remarks"].to_string().contains("ends in the middle"));
}

#[test]
fn invalid_input_is_an_error_and_leaves_no_report() {
    let scratch = Scratch::new();
    small_capture(&scratch.path("small.pcap"), 10);
    std::fs::write(scratch.path("text.pcap"), "no capture at all").unwrap();
    std::fs::write(scratch.path("empty.pcap"), "").unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["--trace", "text.pcap"], "not a packet capture"),
        (&["--trace", "empty.pcap"], "empty"),
        (&["--trace", "nowhere.pcap"], "nowhere.pcap"),
        (
            &["--trace", "small.pcap", "--direction", "up"],
            "none of the 10 packets",
        ),
        (&["--rate", "0mbit"], "rate"),
        (&["--queue", "fifo limit=0"], "limit"),
        (&["--queue", "fifo", "--queue", "fifo"], "given twice"),
        (&["--trace", "small.pcap", "--local", "home"], "IP address"),
    ];
    for (arguments, complaint) in cases {
        let output = scratch.compare(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(complaint),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
    assert_eq!(scratch.files(), ["empty.pcap", "small.pcap", "text.pcap"]);
}

#[test]
fn a_report_that_cannot_be_written_leaves_nothing_behind() {
    let scratch = Scratch::new();
    let arguments = ["--duration", "2s", "--queue", "fifo", "--out"];
    let output = scratch.compare(&[&arguments[..], &["nowhere/report.html"]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));

    // Limits files to 8 blocks of 512 bytes. For a writer this looks like a full disk.
    let output = Command::new("sh")
        .args([
            "-c",
            r#"trap '' XFSZ; ulimit -f 8; exec "$0" compare "$@""#,
            env!("CARGO_BIN_EXE_fairgate"),
        ])
        .args(arguments)
        .arg("report.html")
        .current_dir(scratch.0.path())
        .output()
        .expect("sh is installed");
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("report.html"), "{}", stderr(&output));
    assert_eq!(scratch.files(), Vec::<String>::new());
}

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/dumbbell.toml");

/// The disciplines replace the queue of the user's scenario, and nothing else of it.
#[test]
fn a_scenario_of_the_user_is_compared() {
    let scratch = Scratch::new();
    let arguments = [
        SCENARIO,
        "--duration",
        "10s",
        "--queue",
        "fifo limit=300",
        "--queue",
        "fq_codel",
    ];
    let comparison = scratch.json(&arguments);
    let groups = comparison["groups"].as_array().expect("a list of groups");
    assert!(groups.iter().any(|group| group["name"] == "download"));
    let facts = comparison["facts"].to_string();
    assert!(
        facts.contains("provider->home"),
        "the bottleneck's queue is shown: {facts}"
    );
    let p95 = |discipline: usize, group: &str| {
        let index = groups.iter().position(|known| known["name"] == group).unwrap();
        comparison["disciplines"][discipline]["groups"][index]["delay"]["p95_ns"]
            .as_f64()
            .unwrap()
    };
    // 300 packets of 1500 bytes take 180 ms at 20 Mbit/s. A call does not wait for them in fq_codel.
    assert!(p95(0, "call") > 4.0 * p95(1, "call"), "fifo {}", p95(0, "call"));
    assert_eq!(comparison["disciplines"][1]["name"], "fq_codel");
    let output = scratch.compare(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(scratch.files(), ["fairgate-report.html"]);
}

#[test]
fn the_wrong_names_of_a_scenario_are_reported() {
    let scratch = Scratch::new();
    for (arguments, message) in [
        (&["--replace", "wan"][..], "has the queue `wan`"),
        (
            &["--interface", "home->moon"],
            "there is no interface `home->moon`",
        ),
        (&["--rate", "10mbit"], "cannot be used with"),
    ] {
        let output = scratch.compare(&[&[SCENARIO, "--duration", "6s"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        // Long paths break lines anywhere.
        let text = stderr(&output).replace('│', " ");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(message), "{text}");
    }
    assert!(scratch.files().is_empty());
}

/// Writes a capture of two connections: an upload of 5 kB and a download of `bytes`, 20 ms from the server.
fn connections(path: &Path, bytes: u32) {
    let mut writer = CaptureWriter::new(Vec::new(), LinkType::ETHERNET, 96).unwrap();
    let mut packets: Vec<(u64, Vec<u8>, u32)> = Vec::new();
    let mut put = |at: u64, port: u16, by_client: bool, numbers: [u32; 2], flags: u8, payload: u32| {
        let (home, server) = ([192, 168, 1, 20], [203, 0, 113, 5]);
        let ends = [(home, port), (server, 443)];
        let [(source, from), (destination, to)] = if by_client { ends } else { [ends[1], ends[0]] };
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((40 + payload as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend(source);
        frame.extend(destination);
        frame.extend(from.to_be_bytes());
        frame.extend(to.to_be_bytes());
        frame.extend(numbers[0].to_be_bytes());
        frame.extend(numbers[1].to_be_bytes());
        frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packets.push((at, frame, 54 + payload));
    };
    const MILLI: u64 = 1_000;
    for (port, up, down) in [(50_001, 400, bytes), (50_002, 5_000, 300)] {
        put(0, port, true, [0, 0], 2, 0);
        put(20 * MILLI, port, false, [0, 1], 18, 0);
        put(20 * MILLI, port, true, [1, 1], 16, 0);
        let mut sent = [1, 1];
        let mut at = 20 * MILLI;
        for (by_client, total) in [(true, up), (false, down)] {
            let by = usize::from(!by_client);
            let mut left = total;
            while left > 0 {
                let payload = left.min(1448);
                put(at, port, by_client, [sent[by], sent[1 - by]], 24, payload);
                sent[by] += payload;
                left -= payload;
                let back = if by_client { 20 * MILLI } else { 0 };
                put(at + back, port, !by_client, [sent[1 - by], sent[by]], 16, 0);
                at += 500;
            }
            at += 20 * MILLI;
        }
    }
    packets.sort_by_key(|packet| packet.0);
    for (at, frame, length) in packets {
        writer.packet(Time::from_micros(at), length, &frame).unwrap();
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
}

#[test]
fn the_closed_loop_tells_how_long_connections_take() {
    let scratch = Scratch::new();
    connections(&scratch.path("two.pcap"), 1_000_000);
    let time = |rate: &str| {
        let arguments = [
            "--trace",
            "two.pcap",
            "--closed-loop",
            "--rate",
            rate,
            "--queue",
            "fifo",
            "--queue",
            "fq_codel",
        ];
        let result = scratch.json(&arguments);
        assert_eq!(result["input"]["kind"], "connections");
        assert_eq!(result["input"]["connections"], 2);
        assert_eq!(
            result["groups"][0]["name"],
            "203.0.113.5:https → 192.168.1.20:50001"
        );
        for discipline in result["disciplines"].as_array().unwrap() {
            for group in 0..2 {
                let completion = &discipline["groups"][group]["completion"];
                assert_eq!(completion["connections"], 1, "{completion}");
                assert_eq!(completion["completed"], 1, "{completion}");
            }
        }
        result["disciplines"][1]["groups"][0]["completion"]["p50_ns"]
            .as_u64()
            .unwrap()
    };
    let (slow, fast) = (time("5mbit"), time("100mbit"));
    // A million bytes and 4.6 % of headers at 5 Mbit/s take 1.67 s; at 100 Mbit/s, slow start takes six or
    // seven round trips of 20 ms.
    assert!((1_670_000_000..2_300_000_000).contains(&slow), "{slow}");
    assert!((100_000_000..400_000_000).contains(&fast), "{fast}");

    let output = scratch.compare(&["--trace", "two.pcap", "--closed-loop", "--queue", "fifo"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(scratch.path("fairgate-report.html")).unwrap();
    assert!(
        page.contains("Complete") && page.contains("--closed-loop --up 5mbit"),
        "{page}"
    );
    let repeat = [
        "--trace",
        "two.pcap",
        "--closed-loop",
        "--queue",
        "fifo",
        "--json",
    ];
    assert_eq!(scratch.compare(&repeat).stdout, scratch.compare(&repeat).stdout);
}

/// The call and the video of the recording compete with three downloads. Figures of both together would hide
/// what a call gets.
#[test]
fn the_closed_loop_shows_a_call_apart_from_a_video() {
    let scratch = Scratch::new();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/recorded.pcap.gz");
    let loss_of = |top: &str| -> Vec<(String, f64)> {
        let trace = ["--trace", recording, "--closed-loop", "--rate", "10mbit"];
        let result = scratch.json(&[&trace[..], &["--queue", "fq_codel", "--top", top]].concat());
        let groups = result["groups"].as_array().unwrap();
        let measured = result["disciplines"][0]["groups"].as_array().unwrap();
        let downwards = groups
            .iter()
            .zip(measured)
            .filter(|(group, measured)| group["in_total"] == true && measured["completion"].is_null());
        downwards
            .map(|(group, measured)| {
                let name = group["name"].as_str().unwrap().to_owned();
                (name, measured["loss"].as_f64().unwrap())
            })
            .collect()
    };
    let apart = loss_of("5");
    let [(video, of_video), (call, of_call)] = apart.as_slice() else {
        panic!("{apart:?}");
    };
    assert!(video.contains(" → ") && call.contains(" → "), "{apart:?}");
    assert!(*of_video > 0.05 && *of_call == 0.0, "{apart:?}");

    let together = loss_of("1");
    assert_eq!(together.len(), 2);
    assert_eq!((&together[0].0, together[1].0.as_str()), (video, "other packets"));
}

#[test]
fn the_closed_loop_refuses_what_it_cannot_do() {
    let scratch = Scratch::new();
    connections(&scratch.path("two.pcap"), 1_000);
    let cases: [(&[&str], &str); 4] = [
        (&["--closed-loop"], "--trace"),
        (
            &["--trace", "two.pcap", "--closed-loop", "--direction", "up"],
            "cannot be used with",
        ),
        (&["--trace", "two.pcap", "--up", "1mbit"], "--closed-loop"),
        (
            &["--trace", "two.pcap", "--closed-loop", "--local", "10.0.0.0/8"],
            "crosses the link",
        ),
    ];
    for (arguments, complaint) in cases {
        let output = scratch.compare(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            stderr(&output).contains(complaint),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

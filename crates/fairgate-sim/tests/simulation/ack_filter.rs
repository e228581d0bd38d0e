//! Downloads over an access line that is much slower upward: the acknowledgements take the upload, and cake's
//! filter makes room.

/// Returns the goodput of all downloads and of all uploads over 50/1 Mbit/s, Mbit/s.
fn goodput(ack_filter: &str, downloads: u32, uploads: u32, congestion_control: &str) -> [f64; 2] {
    let flow = |name: &str, from: &str, to: &str, count: u32| match count {
        0 => String::new(),
        _ => format!(
            "[[simulate.flow]]\nname = \"{name}\"\nfrom = \"{from}\"\nto = \"{to}\"\ncount = {count}\n\
             tcp = {{ congestion_control = \"{congestion_control}\" }}\n"
        ),
    };
    let flows = flow("download", "server", "home", downloads) + &flow("upload", "home", "server", uploads);
    let results = crate::common::run(&format!(
        r#"
[queue.up]
discipline = "cake"
bandwidth = "1mbit"
ack_filter = "{ack_filter}"

[queue.down]
discipline = "fq_codel"

[simulate]
duration = "40s"
measure = ["10s", "40s"]

[[simulate.link]]
a = "server"
b = "home"
rate_a = "50mbit"
rate_b = "1mbit"
delay = "15ms"
queue_a = "down"
queue_b = "up"

{flows}"#
    ));
    ["download", "upload"].map(|name| {
        let own = results.flows.iter().filter(|flow| flow.group == name);
        own.map(|flow| flow.goodput_bps as f64 / 1e6).sum()
    })
}

/// Beside uploads the acknowledgements of downloads at full rate do not fit. Filtering them raises the
/// downloads, and takes nothing from the uploads (Høiland-Jørgensen, Täht, Morton 2018).
#[test]
fn filtering_acknowledgements_raises_downloads() {
    for congestion_control in ["reno", "cubic"] {
        for (downloads, uploads) in [(1, 1), (8, 4)] {
            let [off, on, aggressive] = ["off", "on", "aggressive"]
                .map(|filter| goodput(filter, downloads, uploads, congestion_control));
            let what = format!("{congestion_control} {downloads}/{uploads}: {off:?}, {on:?}, {aggressive:?}");
            for with in [on, aggressive] {
                assert!(with[0] > 1.1 * off[0], "{what}");
                assert!(with[1] > 0.98 * off[1], "{what}");
            }
        }
    }
}

/// Without uploads there is little to gain, and nothing to lose: CUBIC does not count acknowledgements.
#[test]
fn a_download_alone_loses_nothing() {
    let [off, on, aggressive] = ["off", "on", "aggressive"].map(|filter| goodput(filter, 1, 0, "cubic")[0]);
    assert!(on > off && aggressive > off, "{off}, {on}, {aggressive}");
}

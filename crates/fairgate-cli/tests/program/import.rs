//! `fairgate tc --import-from`: trees from what tc shows of another machine.

use std::path::Path;

use super::{ends, json};

/// What iproute2 6.1 prints of eth0, and of the ifb that its filter redirects packets to: file, text with
/// `-d`, JSON with `-d -j`. Up to 6.1 it prints classes as text only.
const LISTINGS: [(&str, &str, &str); 4] = [
    (
        "eth0.qdisc",
        "qdisc htb 1: root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0 ver 3.17 direct_qlen 1000\n\
         qdisc red 20: parent 1:20 limit 400Kb min 30Kb max 90Kb ecn ewma 5 probability 0.02 Scell_log 15 \n\
         qdisc pfifo 10: parent 1:10 limit 77p\n\
         qdisc ingress ffff: parent ffff:fff1 ---------------- \n",
        r#"[{"kind":"htb","handle":"1:","root":true,"refcnt":2,"options":{"r2q":10,"default":"0x20",
            "direct_packets_stat":0,"ver":"3.17","direct_qlen":1000}},
            {"kind":"red","handle":"20:","parent":"1:20","options":{"limit":409600,"min":30720,"max":92160,
            "ecn":true,"harddrop":false,"adaptive":false,"nodrop":false,"ewma":5,"probability":0.02,
            "Scell_log":15}},
            {"kind":"pfifo","handle":"10:","parent":"1:10","options":{"limit":77}},
            {"kind":"ingress","handle":"ffff:","parent":"ffff:fff1","options":{}}]"#,
    ),
    ("eth0.class", CLASSES, CLASSES),
    (
        "eth0.filter.ingress",
        "filter parent ffff: protocol all pref 10 u32 chain 0 \n\
         filter parent ffff: protocol all pref 10 u32 chain 0 fh 800: ht divisor 1 \n\
         filter parent ffff: protocol all pref 10 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 \
         terminal flowid not_in_hw \n  match 00000000/00000000 at 0\n\taction order 1: mirred (Egress \
         Redirect to device ifb0) stolen\n\tindex 1 ref 1 bind 1\n\n",
        r#"[{"protocol":"all","pref":10,"kind":"u32","chain":0},
            {"protocol":"all","pref":10,"kind":"u32","chain":0,"options":{"fh":"800:","ht_divisor":1}},
            {"protocol":"all","pref":10,"kind":"u32","chain":0,"options":{"fh":"800::800","order":2048,
            "key_ht":"800","bkt":"0","not_in_hw":true,"match":{"value":"0","mask":"0","offmask":"","off":0},
            "actions":[{"order":1,"kind":"mirred","mirred_action":"redirect","direction":"egress",
            "to_dev":"ifb0","control_action":{"type":"stolen"},"index":1,"ref":1,"bind":1}]}}]"#,
    ),
    (
        "ifb0.qdisc",
        "qdisc fq_codel 1: root refcnt 2 limit 10240p flows 1024 quantum 300 target 5ms interval 100ms \
         memory_limit 32Mb ecn drop_batch 64 \n",
        r#"[{"kind":"fq_codel","handle":"1:","root":true,"refcnt":2,"options":{"limit":10240,"flows":1024,
            "quantum":300,"target":4999,"interval":99999,"memory_limit":33554432,"ecn":true,
            "drop_batch":64}}]"#,
    ),
];

const CLASSES: &str = "class htb 1:1 root rate 8Mbit ceil 8Mbit burst 15Kb cburst 1600b \n\
    class htb 1:10 parent 1:1 leaf 10: prio 1 rate 5Mbit ceil 8Mbit burst 1600b cburst 1600b \n\
    class htb 1:20 parent 1:1 leaf 20: prio 2 rate 3Mbit ceil 8Mbit burst 1600b cburst 1600b \n\
    class red 20:1 parent 20: \n";

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).expect("the folder is writable");
}

/// Returns a folder with the listings as text or as JSON. A file that is no listing is left alone.
fn saved(as_json: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text, json) in LISTINGS {
        write(folder.path(), name, if as_json { json } else { text });
    }
    write(folder.path(), "README", "the router in the cellar");
    folder
}

fn name(folder: &tempfile::TempDir) -> &str {
    folder.path().to_str().expect("an ordinary path")
}

#[test]
fn listings_of_both_forms_become_the_same_configuration_file() {
    let [of_text, of_json] = [false, true].map(|as_json| {
        let folder = saved(as_json);
        let (toml, warnings) = ends(&["tc", "--import-from", name(&folder)], 0);
        let path = folder.path().join("router.toml");
        std::fs::write(&path, &toml).expect("the folder is writable");
        let (tree, _) = ends(&["tc", "--import-from", name(&folder), "--tree"], 0);
        let (checked, _) = ends(&["check", path.to_str().expect("an ordinary path")], 0);
        assert!(checked.starts_with(&tree), "{tree}\n{checked}");
        let document = json(&["tc", "--json", "--import-from", name(&folder)], 0);
        assert_eq!(document["schema"], "fairgate.tc/1");
        assert_eq!(document["queues"]["eth0"]["discipline"], "htb");
        assert_eq!(document["queues"]["ifb0"]["discipline"], "fq_codel");
        (toml, tree, warnings)
    });
    assert_eq!(of_text.0, of_json.0);
    let (_, tree, _) = of_text;
    assert!(tree.contains("htb handle=1: default=32"), "{tree}");
    assert!(tree.contains("fifo handle=10: limit=77"), "{tree}");
    // tc's defaults give the weight and the scale that are shown.
    assert!(
        tree.contains("red handle=20: limit=400kb min=30kb max=90kb avpkt=1000b"),
        "{tree}"
    );
    assert!(tree.contains("fq_codel handle=1:"), "{tree}");
}

/// The location is that of the listing, not that of the command that was made from it.
#[test]
fn mistakes_are_shown_where_the_listing_has_them() {
    let refused = |file: &str, text: &str| {
        let folder = saved(false);
        write(folder.path(), file, text);
        let (stdout, stderr) = ends(&["tc", "--import-from", name(&folder)], 2);
        assert_eq!(stdout, "");
        // Long lines are broken.
        stderr.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // Unknown to everything here: an error of the translation.
    let stderr = refused(
        "ifb0.qdisc",
        "qdisc ingress ffff: parent ffff:fff1 ---- \nqdisc pfifo 1: root limit 5p colour 3 \n",
    );
    assert!(stderr.contains("`colour`"), "{stderr}");
    assert!(stderr.contains("ifb0.qdisc:2:"), "{stderr}");
    assert!(stderr.contains("help: "), "{stderr}");
    // Known, and not enough: an error of the import.
    let stderr = refused(
        "ifb0.qdisc",
        "qdisc red 1: root refcnt 2 limit 400Kb min 30Kb max 90Kb \n",
    );
    assert!(
        stderr.contains("ifb0.qdisc, line 1: the listing of this red has no `ewma`"),
        "{stderr}"
    );
    assert!(
        stderr.contains("help: save the listing again with -d"),
        "{stderr}"
    );
    let stderr = refused(
        "ifb0.qdisc",
        "[{\"kind\":\"pfifo\",\"handle\":\"1:\",\"root\":true},\n{\"kind\":",
    );
    assert!(stderr.contains("ifb0.qdisc, line 2, element 2:"), "{stderr}");
    assert!(stderr.contains("help: "), "{stderr}");
}

#[test]
fn a_folder_without_listings_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "README", "the router in the cellar");
    let (_, stderr) = ends(&["tc", "--import-from", name(&folder)], 2);
    assert!(stderr.contains("no qdisc was found"), "{stderr}");
    let missing = folder.path().join("missing");
    let (_, stderr) = ends(&["tc", "--import-from", missing.to_str().expect("ordinary")], 2);
    assert!(stderr.contains("can't read the folder"), "{stderr}");
    assert!(stderr.contains("DEVICE.qdisc"), "{stderr}");
}

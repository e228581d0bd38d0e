//! `fairgate subscribers import`, from a server that answers as UISP and Splynx do.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::ends;
use super::recorded::{Asked, Sent, Server, cut, rows, whole};

const TOKEN: &str = "0123456789abcdef-the-token";

const CONFIGURATION: &str = "[subscribers]\n\
    libreqos = { devices = \"ShapedDevices.csv\", network = \"network.json\" }\n\
    down = \"1gbit\"\nup = \"1gbit\"\nmost_removed = 20\n";

/// A configuration, and the files that it names. They are not there yet.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let stage = Stage {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        stage.write("isp.toml", CONFIGURATION);
        stage.secret(&format!("# UISP, or Splynx\nkey {TOKEN}\n"), 0o600);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("the folder is writable");
    }

    fn secret(&self, text: &str, mode: u32) {
        self.write("token", text);
        fs::set_permissions(self.path("token"), Permissions::from_mode(mode)).expect("a file of ours");
    }

    /// Returns both files, if they are there.
    fn files(&self) -> [Option<String>; 2] {
        ["ShapedDevices.csv", "network.json"].map(|name| fs::read_to_string(self.path(name)).ok())
    }

    /// Imports, and returns what was printed.
    #[track_caller]
    fn imports(&self, program: &str, server: &Server, more: &[&str], code: i32) -> (String, String) {
        let ca = server.ca.display().to_string();
        let (file, token) = (self.path("isp.toml"), self.path("token"));
        let (file, token) = (file.display().to_string(), token.display().to_string());
        let mut words = vec!["subscribers", "import", program, &server.address, &file];
        words.extend(["--token-file", &token, "--ca", &ca]);
        words.extend(more);
        let (stdout, stderr) = ends(&words, code);
        assert!(
            !stdout.contains(TOKEN) && !stderr.contains(TOKEN),
            "{stdout}{stderr}"
        );
        // Nothing is left beside the files.
        let left = fs::read_dir(self.folder.path()).expect("a folder");
        let left: BTreeSet<String> = left
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        let known = ["ShapedDevices.csv", "isp.toml", "network.json", "token"];
        assert!(left.iter().all(|name| known.contains(&name.as_str())), "{left:?}");
        (stdout, stderr)
    }

    /// Imports, which fails in these words and writes nothing.
    #[track_caller]
    fn refuses(&self, program: &str, server: &Server, code: i32, words: &[&str]) {
        let before = self.files();
        let (stdout, stderr) = self.imports(program, server, &[], code);
        let flowing = flowing(&stderr);
        for words in words {
            assert!(flowing.contains(words), "{words}: {stderr}");
        }
        assert!(flowing.contains("help:"), "{stderr}");
        assert_eq!(stdout, "");
        assert_eq!(self.files(), before);
    }
}

/// Returns a message without the ends of its lines.
fn flowing(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "│").collect();
    words.join(" ")
}

#[test]
fn uisp_becomes_a_list_that_is_checked() {
    let (stage, server) = (Stage::new(), Server::recorded());
    let (dry, _) = stage.imports("uisp", &server, &["--dry-run"], 0);
    assert!(dry.contains("Nothing is written; without --dry-run: "), "{dry}");
    assert_eq!(stage.files(), [None, None]);
    let (made, warnings) = stage.imports("uisp", &server, &[], 0);
    assert_eq!(warnings, "");
    for line in [
        "subscriber  1f3a0000-0000-4000-8000-000000000005  Carla Dietz                 suspended",
        "address     1f3a0000-0000-4000-8000-000000000008  Finn Gast    100.64.3.1/32  several subscribers \
         have this address",
        "subscribers  5      1 suspended, 1 no rates, 1 no address",
        "devices      6      1 at no site",
        "addresses    8      2 several subscribers have this address",
        "nodes        4",
    ] {
        assert!(
            made.lines().any(|found| found.trim_end() == line),
            "{line}\n{made}"
        );
    }
    let file = stage.path("isp.toml");
    let (checked, _) = ends(&["check", &file.display().to_string()], 0);
    assert!(checked.contains("subscribers 5, nodes 4\n"), "{checked}");
    let asked = server.asked();
    assert_eq!(asked.len(), 6);
    assert!(
        asked
            .iter()
            .all(|asked| asked.header("X-Auth-Token") == Some(TOKEN)),
        "{asked:?}"
    );
    assert!(asked.iter().all(|asked| asked.header("Authorization").is_none()));
    // The same again changes nothing, not even the time of a file.
    let inodes =
        || ["ShapedDevices.csv", "network.json"].map(|name| fs::metadata(stage.path(name)).unwrap().ino());
    let before = inodes();
    let (again, _) = stage.imports("uisp", &server, &[], 0);
    assert!(again.ends_with("The files have this already.\n"), "{again}");
    assert_eq!(inodes(), before);
}

#[test]
fn a_script_reads_what_was_imported() {
    let (stage, server) = (Stage::new(), Server::recorded());
    let (text, _) = stage.imports("uisp", &server, &["--json", "--suspended", "256kbit"], 0);
    let document: Value = serde_json::from_str(&text).expect("one document");
    assert_eq!(document["schema"], "fairgate.subscribers_import/1");
    assert_eq!(document["program"], "UISP");
    assert_eq!(
        (&document["subscribers"], &document["is_written"]),
        (&json!(6), &json!(true))
    );
    assert_eq!(document["difference"], Value::Null);
    assert_eq!(document["files"].as_array().map(Vec::len), Some(2));
    let first = json!({
        "of": "subscriber", "id": "1f3a0000-0000-4000-8000-000000000006", "name": "Dora Eck",
        "reason": "no_rates", "address": null
    });
    assert_eq!(document["left_out"][0], first);
    // The page describes each key. The site's schemas are made of commands that need no server.
    let page = fs::read_to_string(super::folder("../../docs/json.md")).unwrap();
    let (_, section) = page
        .split_once("## fairgate.subscribers_import/1")
        .expect("a section");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let keys =
        [&document, &document["left_out"][0]].map(|object| object.as_object().expect("an object").keys());
    for key in keys.into_iter().flatten().filter(|key| *key != "schema") {
        assert!(section.contains(&format!("{key}`")), "{key}");
    }
    let slow = fs::read_to_string(stage.path("ShapedDevices.csv")).unwrap();
    assert!(slow.contains(",0.01,0.01,0.256,0.256,"), "{slow}");
}

/// Splynx with pages of so many rows, whatever it is asked for.
fn paged(asked: &Asked, page: usize, all: &[Value]) -> Sent {
    let Some(offset) = asked.number("offset") else {
        return rows(all);
    };
    assert!(asked.target.contains("order%5Bid%5D=ASC&limit="), "{asked:?}");
    let rest = all.iter().skip(offset).take(page);
    rows(&rest.cloned().collect::<Vec<_>>())
}

#[test]
fn splynx_is_read_page_by_page() {
    let whole = Stage::new();
    whole.imports("splynx", &Server::recorded(), &[], 0);
    let expected = whole.files();
    assert!(
        expected[0]
            .as_ref()
            .unwrap()
            .contains("93,Anna Berg,splynx_service_93,Internet,Hill North,")
    );
    for page in [2, 3, 100] {
        let stage = Stage::new();
        let server = Server::start(move |asked, _| paged(asked, page, &asked.rows()));
        let (text, _) = stage.imports("splynx", &server, &[], 0);
        assert!(text.contains("connected to the line, at no node: 1\n"), "{text}");
        assert_eq!(stage.files(), expected, "{page}");
        // Each request is signed, and none has the number of another one.
        let asked = server.asked();
        let nonces: Vec<u64> = asked
            .iter()
            .map(|asked| {
                let header = asked.header("Authorization").expect("a signature");
                let rest = header.strip_prefix("Splynx-EA (key=key&nonce=").expect(header);
                let (nonce, signature) = rest.split_once("&signature=").expect(header);
                assert_eq!(signature.len(), 65, "{header}");
                nonce.parse().expect(header)
            })
            .collect();
        assert!(nonces.windows(2).all(|pair| pair[0] < pair[1]), "{nonces:?}");
    }
}

#[test]
fn a_list_that_changes_while_it_is_read_is_read_again() {
    // A customer is removed after the first page, once.
    let stage = Stage::new();
    let server = Server::start(|asked, before| {
        let mut all = asked.rows();
        if asked.target.contains("internet-services") && before > 4 {
            all.retain(|row| row["id"] != 93);
        }
        paged(asked, 2, &all)
    });
    stage.imports("splynx", &server, &[], 0);
    let text = stage.files()[0].clone().unwrap();
    assert!(
        !text.contains("\n93,") && text.contains("\n94,") && text.contains("\n102,"),
        "{text}"
    );
    // And each time.
    let stage = Stage::new();
    let server = Server::start(|asked, before| {
        let mut all = asked.rows();
        if asked.target.contains("internet-services") && asked.number("offset") > Some(0) {
            all.remove(before % 2);
        }
        paged(asked, 2, &all)
    });
    stage.refuses(
        "splynx",
        &server,
        3,
        &["the list changed each time while its pages were read"],
    );
}

#[test]
fn an_answer_that_is_refused_or_broken_writes_nothing() {
    type Answer = fn(&Asked) -> Sent;
    let json_head = "Content-Type: application/json\r\n";
    let uisp: [(Answer, &[&str]); 9] = [
        (
            |_| {
                let body =
                    "{\"statusCode\": 401, \"error\": \"Unauthorized\", \"message\": \"Invalid token\"}";
                whole("401 Unauthorized", "", body)
            },
            &[
                "/nms/api/v2.1/sites: status 401: Invalid token",
                "Settings > Users > API tokens",
            ],
        ),
        (
            |_| whole("404 Not Found", "", "<html>"),
            &["status 404", "is this the address of UISP"],
        ),
        (
            |_| whole("503 Service Unavailable", "", ""),
            &["status 503", "try again later"],
        ),
        (
            |_| whole("302 Found", "Location: https://elsewhere.example.com/\r\n", ""),
            &["status 302", "https://elsewhere.example.com/", "nowhere else"],
        ),
        (
            |_| {
                whole(
                    "200 OK",
                    "Content-Type: text/html\r\n",
                    "<!doctype html><title>Sign in</title>",
                )
            },
            &["it is a web page, and no JSON", "login page"],
        ),
        (
            |_| whole("200 OK", "", "{\"items\": []}"),
            &["it is an object, and no list"],
        ),
        (
            |_| cut("[{\"id\": \"x\"}", true),
            &["no answer", "the connection has ended before", "try again"],
        ),
        (
            |_| cut("[{\"id\": \"x\"}, {", false),
            &["it ends in the middle: it was cut off"],
        ),
        // Its first answer is fine, and the next one is none.
        (
            |asked| match asked.target.contains("devices") {
                true => whole("500 Internal Server Error", "", ""),
                false => rows(&asked.rows()),
            },
            &["/nms/api/v2.1/devices: status 500"],
        ),
    ];
    let stage = Stage::new();
    for (answer, words) in uisp {
        let server = Server::start(move |asked, _| answer(asked));
        stage.refuses("uisp", &server, 3, words);
    }
    let forbidden = move |asked: &Asked, _| match asked.target.contains("routers-sectors") {
        true => whole(
            "403 Forbidden",
            json_head,
            "{\"error\": {\"message\": \"Access denied\\u001b[31m\", \"code\": 403}}",
        ),
        false => rows(&asked.rows()),
    };
    let words = [
        "routers-sectors: status 403: Access denied\\u{1b}[31m",
        "`Networking: Router contention`",
    ];
    stage.refuses("splynx", &Server::start(forbidden), 3, &words);
    // Nobody has an address.
    let empty = Server::start(|asked, _| match asked.target.contains("/sites") {
        true => rows(&asked.rows()),
        false => rows(&[]),
    });
    let words = [
        "8 subscribers are left out (1 suspended, 1 no rates, 6 no address)",
        "--dry-run names them",
    ];
    stage.refuses("uisp", &empty, 2, &words);
}

#[test]
fn an_answer_that_is_too_short_is_refused() {
    let stage = Stage::new();
    stage.imports("uisp", &Server::recorded(), &[], 0);
    // Two of five are gone.
    let short = || {
        Server::start(|asked, _| {
            let mut all = asked.rows();
            all.retain(|row| {
                let name = row["identification"]["name"].as_str().unwrap_or_default();
                !["Anna Berg", "Cole, Ben"].contains(&name)
            });
            rows(&all)
        })
    };
    let words = [
        "2 of the 5 subscribers",
        "at most 20 percent",
        "confirmed_removed = 2",
    ];
    stage.refuses("uisp", &short(), 2, &words);
    let (dry, _) = stage.imports("uisp", &short(), &["--dry-run"], 0);
    assert!(
        dry.contains("0 subscribers added, 2 removed, 0 changed; there are 3"),
        "{dry}"
    );
    stage.write("isp.toml", &format!("{CONFIGURATION}confirmed_removed = 2\n"));
    let (text, _) = stage.imports("uisp", &short(), &[], 0);
    assert!(text.contains("2 removed") && text.contains("Written: "), "{text}");
}

#[test]
fn the_token_is_kept_and_sent_to_that_server_only() {
    let (stage, server) = (Stage::new(), Server::recorded());
    stage.secret(TOKEN, 0o644);
    stage.refuses(
        "uisp",
        &server,
        2,
        &["holds a secret that others may read", "chmod 600"],
    );
    stage.secret(TOKEN, 0o600);
    stage.refuses("splynx", &server, 2, &["it has no key and secret", "KEY SECRET"]);
    assert!(server.asked().is_empty());
    let fails = |url: &str, code: i32| {
        let [file, token] = ["isp.toml", "token"].map(|name| stage.path(name).display().to_string());
        let words = [
            "subscribers",
            "import",
            "uisp",
            url,
            &file,
            "--token-file",
            &token,
        ];
        flowing(&ends(&words, code).1)
    };
    // Without --ca, nobody vouches for it.
    let stranger = fails(&server.address, 3);
    assert!(
        stranger.contains("no secure connection") && stranger.contains("--ca FILE"),
        "{stranger}"
    );
    assert!(server.asked().is_empty());
    for (url, why) in [
        ("http://localhost", "must not be sent without TLS"),
        ("localhost", "no address of a host"),
        ("https://localhost/crm", "has a path"),
        ("https://alice@localhost", "a user in the address"),
    ] {
        let error = fails(url, 2);
        assert!(
            error.contains(why) && error.contains("https://uisp.example.com"),
            "{url}: {error}"
        );
    }
    let nobody = fails("https://localhost:1", 3);
    assert!(
        nobody.contains("no answer") && nobody.contains("nobody can be reached"),
        "{nobody}"
    );
}

#[test]
fn only_files_of_libreqos_are_written() {
    let (stage, server) = (Stage::new(), Server::recorded());
    stage.write(
        "isp.toml",
        "[subscribers]\nfile = \"list.csv\"\ndown = \"1gbit\"\nup = \"1gbit\"\n",
    );
    stage.write("list.csv", "id,prefixes,down,up\n1,192.0.2.1,5mbit,5mbit\n");
    let ca = server.ca.display().to_string();
    let (file, token) = (
        stage.path("isp.toml").display().to_string(),
        stage.path("token").display().to_string(),
    );
    let words = [
        "subscribers",
        "import",
        "uisp",
        &server.address,
        &file,
        "--token-file",
        &token,
        "--ca",
        &ca,
    ];
    let (_, error) = ends(&words, 2);
    assert!(
        error.contains("has no list of LibreQoS' files") && error.contains("libreqos = {"),
        "{error}"
    );
    assert!(server.asked().is_empty());
}

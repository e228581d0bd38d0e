//! Endpoints that would let anyone control a run, or that can't be. Each message names place, rule and
//! remedy.

use std::fs;

use super::ends;

/// Checks that a run with these keys and options is refused with all of `parts`.
#[track_caller]
fn refused(keys: &str, options: &[&str], parts: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("home.toml");
    let run = format!("[run]\nleft = \"nowhere0\"\nright = \"nowhere1\"\n{keys}\n");
    fs::write(&file, run).unwrap();
    let file = file.display().to_string();
    let (stdout, stderr) = ends(&[&["run", &file], options].concat(), 2);
    assert_eq!(stdout, "");
    // Messages are wrapped.
    let words: Vec<&str> = stderr.split_whitespace().filter(|word| *word != "│").collect();
    let text = words.join(" ");
    for part in parts {
        assert!(text.contains(part), "{part} is not in:\n{stderr}");
    }
}

#[test]
fn an_address_without_token_or_tls_is_refused() {
    refused(
        "api = \"0.0.0.0:8443\"",
        &[],
        &["home.toml:4:7", "`api_token` is missing", "or use a unix socket"],
    );
    refused(
        "api = \"127.0.0.1:8443\"\napi_token = \"tokens\"",
        &[],
        &["`api_certificate` is missing"],
    );
    refused(
        "metrics = \"192.0.2.1:9095\"",
        &[],
        &[
            "`metrics_token` is missing",
            "an address of the loopback interface",
        ],
    );
    refused("", &["--api", "127.0.0.1:8443"], &["`api_token` is missing"]);
    let files = ["--api", "[::]:8443", "--api-token", "t", "--api-certificate", "c"];
    refused("", &files, &["`api_key` is missing"]);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    refused(
        "api = \"unix:sock\"\napi_key = \"key\"",
        &[],
        &["`api_key` is for an address of TCP", "remove `api_key`"],
    );
    refused(
        "api_token = \"tokens\"",
        &[],
        &["home.toml:4:13", "`api_token` needs `api`"],
    );
    refused(
        "",
        &["--metrics", "unix:sock"],
        &["Prometheus can't use a unix socket"],
    );
    refused(
        "",
        &["--api", "localhost:1"],
        &["neither a unix socket nor an IP address"],
    );
    refused("", &["--api-token", "tokens"], &["--api <ADDRESS>"]);
    let dry = ["--from-left", "in.pcap", "--metrics", "127.0.0.1:9095"];
    refused("", &dry, &["a dry run has neither API nor metrics"]);
}

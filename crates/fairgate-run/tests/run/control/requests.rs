//! Requests and answers, in memory.

use fairgate_live::Offer;
use fairgate_run::rehearsal::{Rehearsal, Reply, Stage};
use serde_json::{Value, json};

const TREE: &str = "htb default=20 { 1 rate=20mbit { 10 rate=5mbit ceil=20mbit / drr { 1 / fifo; 2 / fifo }; \
                    20 rate=15mbit ceil=20mbit / fq_codel } }";

fn stage() -> (Rehearsal, Stage) {
    let run = Rehearsal::new(TREE).unwrap();
    (run.clone(), Stage::new(run))
}

fn get(stage: &Stage, target: &str) -> Reply {
    stage.ask("GET", target, &[], b"").unwrap()
}

/// Sends a JSON document.
fn send(stage: &Stage, method: &str, target: &str, tag: Option<&str>, body: &Value) -> Reply {
    let mut headers: Vec<(&str, &[u8])> = vec![("content-type", b"application/json")];
    headers.extend(tag.map(|tag| ("if-match", tag.as_bytes())));
    let body = body.to_string();
    stage.ask(method, target, &headers, body.as_bytes()).unwrap()
}

fn document(reply: &Reply) -> Value {
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}: {reply:?}"))
}

/// Returns the status code and the type of a problem.
fn problem(reply: &Reply) -> (u16, String) {
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json"),
        "{reply:?}"
    );
    let document = document(reply);
    assert_eq!(document["status"], reply.status);
    assert!(
        document["title"].is_string() && document["detail"].is_string(),
        "{document}"
    );
    let kind = document["type"].as_str().unwrap().to_owned();
    let kind = kind.strip_prefix("urn:fairgate:problem:").unwrap().to_owned();
    (reply.status, kind)
}

#[test]
fn the_status_has_parts() {
    let (_, stage) = stage();
    let whole = document(&get(&stage, "/v1/status"));
    assert_eq!(
        whole["directions"][0]["tree"]["classes"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert!(
        whole["directions"][0]["queue"]
            .as_str()
            .unwrap()
            .contains("fq_codel")
    );
    let used = document(&get(&stage, "/v1/status?used=true"));
    assert!(used["directions"][0].get("queue").is_none());
    let page = document(&get(&stage, "/v1/status?classes=10-15"));
    let tree = &page["directions"][0]["tree"];
    let numbers: Vec<&Value> = tree["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| &class["class"])
        .collect();
    assert_eq!(numbers, [10], "{page}");
    assert_eq!(tree["class_states"].as_array().unwrap().len(), 1);
    let right = document(&get(&stage, "/v1/status/right"));
    assert_eq!(right["from"], "right");
    let inner = document(&get(&stage, "/v1/status/left/class?path=10/2"));
    assert_eq!(
        (&inner["path"], &inner["discipline"]["discipline"]),
        (&json!("10/2"), &json!("fifo"))
    );
    // An inner class has a state and no discipline.
    let inner = document(&get(&stage, "/v1/status/left/class?path=1"));
    assert!(
        inner["state"]["variables"].is_object() && inner.get("discipline").is_none(),
        "{inner}"
    );
    let health = document(&get(&stage, "/v1/health"));
    assert_eq!(
        (&health["name"], &health["revision"]),
        (&json!("rehearsal"), &json!(0))
    );
}

#[test]
fn what_is_not_there_is_a_problem() {
    let (_, stage) = stage();
    let cases = [
        ("/x", 404, "not-found"),
        ("/v1", 404, "not-found"),
        ("/v1/status/", 404, "not-found"),
        ("/v2/status", 404, "not-found"),
        ("/v1/status/middle", 404, "not-found"),
        ("/v1/status/middle/class?path=1", 404, "not-found"),
        ("/v1/status/left/class?path=99", 404, "not-found"),
        ("/v1/status/left/class?path=10/9", 404, "not-found"),
        ("/v1/status/left/class?path=10/2/1", 404, "not-found"),
        ("/v1/status/left/class?path=", 400, "malformed"),
        ("/v1/status/left/class?path=a", 400, "malformed"),
        ("/v1/status/left/class?path=4294967296", 400, "malformed"),
        ("/v1/status/left/class", 400, "malformed"),
        ("/v1/status/%ff", 400, "malformed"),
        ("/v1/status?used=maybe", 400, "malformed"),
        ("/v1/status?unused=true", 400, "malformed"),
        ("/v1/status?classes=", 400, "malformed"),
        ("/v1/status?classes=7-3", 400, "malformed"),
        ("/v1/status/left?classes=1-4294967296", 400, "malformed"),
        ("/v1/status?used=true&used=true", 400, "malformed"),
    ];
    for (target, status, kind) in cases {
        assert_eq!(
            problem(&get(&stage, target)),
            (status, kind.to_owned()),
            "{target}"
        );
    }
    let reply = stage.ask("DELETE", "/v1/status", &[], b"").unwrap();
    assert_eq!(problem(&reply), (405, "method".to_owned()));
    assert_eq!(reply.header("allow"), Some("GET,HEAD"));
    let reply = stage
        .ask(
            "OPTIONS",
            "/v1/changes",
            &[("origin", b"http://evil.example")],
            b"",
        )
        .unwrap();
    assert_eq!(problem(&reply), (403, "cross-site".to_owned()));
}

#[test]
fn a_change_is_made_whole_or_refused_whole() {
    let (run, stage) = stage();
    let lines =
        json!({ "lines": ["class add 30 parent=1 rate=1mbit / fifo", "filter add class=30 dscp=EF"] });
    let made = send(&stage, "POST", "/v1/changes", None, &lines);
    assert_eq!((made.status, &document(&made)["revision"]), (200, &json!(1)));
    let trees = document(&get(&stage, "/v1/trees"));
    assert!(
        trees["directions"][1]["queue"]
            .as_str()
            .unwrap()
            .contains("id = 30"),
        "{trees}"
    );

    let half = json!({ "lines": ["class delete 10", "class delete 77"] });
    let refused = send(&stage, "POST", "/v1/changes", None, &half);
    assert_eq!(problem(&refused), (422, "refused".to_owned()));
    assert!(
        document(&refused)["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("77")
    );
    assert_eq!(document(&get(&stage, "/v1/trees")), trees);

    let one = json!({ "from": "left", "lines": ["queue change root fifo"] });
    assert_eq!(send(&stage, "POST", "/v1/changes", None, &one).status, 200);
    let both = json!({ "lines": ["queue change root fifo"] });
    assert_eq!(problem(&send(&stage, "POST", "/v1/changes", None, &both)).0, 422);
    let changes = document(&get(&stage, "/v1/changes"));
    assert_eq!(
        (
            &changes["revision"],
            &changes["changes"]["applied"],
            &changes["changes"]["refused"]
        ),
        (&json!(2), &json!(2), &json!(2))
    );
    assert!(
        run.log().iter().all(|entry| entry.starts_with("uid 0, pid 1: ")),
        "{:?}",
        run.log()
    );
}

#[test]
fn a_change_of_an_old_revision_is_refused() {
    let (run, stage) = stage();
    let trees = get(&stage, "/v1/trees");
    let tag = trees.header("etag").unwrap().to_owned();
    let line = |rate: &str| json!({ "lines": [format!("class change 10 rate={rate}")] });
    let made = send(&stage, "POST", "/v1/changes", Some(&tag), &line("6mbit"));
    assert_eq!(made.status, 200);
    let newer = made.header("etag").unwrap().to_owned();
    assert_ne!(tag, newer);

    let stale = send(&stage, "POST", "/v1/changes", Some(&tag), &line("7mbit"));
    assert_eq!(problem(&stale), (412, "stale".to_owned()));
    assert_eq!(
        (stale.header("etag"), &document(&stale)["revision"]),
        (Some(&*newer), &json!(1))
    );
    assert_eq!(run.revision(), 1);

    // One of several tags is enough. Tags of another run, and weak ones, never are.
    let several = format!("{tag}, {newer}");
    assert_eq!(
        send(&stage, "POST", "/v1/changes", Some(&several), &line("7mbit")).status,
        200
    );
    let current = get(&stage, "/v1/trees").header("etag").unwrap().to_owned();
    for foreign in [format!("W/{current}"), "\"0123456789abcdef-2\"".to_owned()] {
        let reply = send(&stage, "POST", "/v1/changes", Some(&foreign), &line("8mbit"));
        assert_eq!(problem(&reply).0, 412, "{foreign}");
    }
    assert_eq!(
        problem(&send(&stage, "POST", "/v1/changes", Some("2"), &line("8mbit"))).0,
        400
    );
    assert_eq!(
        send(&stage, "POST", "/v1/changes", Some("*"), &line("8mbit")).status,
        200
    );

    // Who has the current trees does not get them again.
    let current = get(&stage, "/v1/trees").header("etag").unwrap().to_owned();
    let known = [("if-none-match", current.as_bytes())];
    let reply = stage.ask("GET", "/v1/trees", &known, b"").unwrap();
    assert_eq!((reply.status, reply.body.len()), (304, 0));
    let old = [("if-none-match", tag.as_bytes())];
    assert_eq!(stage.ask("GET", "/v1/trees", &old, b"").unwrap().status, 200);
}

#[test]
fn reservations_are_added_changed_refreshed_and_withdrawn() {
    let tree = "tbf rate=10mbit burst=5kb / hfsc default=1 { 1 ls=10mbit / fq_codel }";
    let run = Rehearsal::new(tree).unwrap();
    let stage = Stage::new(run.clone());
    let order = |rate: u64| {
        json!({ "from": "left", "terms": { "name": "call", "rate_bps": rate, "burst_bytes": 2000,
                           "filter": "protocol=udp", "lifetime_ms": 90_000 } })
    };
    let tag = get(&stage, "/v1/trees").header("etag").unwrap().to_owned();
    let added = send(&stage, "POST", "/v1/reservations", Some(&tag), &order(100_000));
    assert_eq!(added.status, 201);
    assert_eq!(document(&added)["reservations"][0]["terms"]["name"], "call");
    let stale = send(
        &stage,
        "PUT",
        "/v1/reservations/call",
        Some(&tag),
        &order(200_000),
    );
    assert_eq!(problem(&stale).0, 412);
    let changed = send(&stage, "PUT", "/v1/reservations/call", None, &order(200_000));
    assert_eq!(document(&changed)["reservations"][0]["reserved_bps"], 200_000);
    let renamed = send(&stage, "PUT", "/v1/reservations/other", None, &order(200_000));
    assert_eq!(problem(&renamed).0, 400);
    let left = json!({ "from": "left" });
    let refreshed = send(&stage, "POST", "/v1/reservations/call/refresh", None, &left);
    assert_eq!(refreshed.status, 200);
    let all = document(&get(&stage, "/v1/reservations"));
    assert_eq!(all["reservations"].as_array().unwrap().len(), 1);
    let gone = stage
        .ask("DELETE", "/v1/reservations/call?from=left", &[], b"")
        .unwrap();
    assert_eq!(document(&gone)["reservations"], json!([]));
    let twice = stage
        .ask("DELETE", "/v1/reservations/call?from=left", &[], b"")
        .unwrap();
    assert_eq!(problem(&twice).0, 422);
    // With those that were refused.
    assert_eq!(run.log().len(), 6, "{:?}", run.log());
}

#[test]
fn bodies_that_are_not_the_expected_document_are_refused() {
    let (run, stage) = stage();
    let json: &[(&str, &[u8])] = &[("content-type", b"application/json")];
    let text = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "{\"lines\": 7}",
        "{\"lines\": [7]}",
        "{\"lines\": [], \"more\": 1}",
        "{\"lines\": [], \"lines\": []}",
        "{\"lines\": []} x",
        &format!("{{\"lines\": {}", "[".repeat(100_000)),
    ];
    for body in text {
        let reply = stage.ask("POST", "/v1/changes", json, body.as_bytes()).unwrap();
        assert_eq!(problem(&reply), (400, "malformed".to_owned()), "{body:.40}");
    }
    let reply = stage
        .ask("POST", "/v1/changes", json, b"{\"lines\": [\"\xff\"]}")
        .unwrap();
    assert_eq!(problem(&reply).0, 400);
    let long = vec![b' '; (16 << 20) + 1];
    let reply = stage.ask("POST", "/v1/changes", json, &long).unwrap();
    assert_eq!(problem(&reply), (413, "too-large".to_owned()));
    let fine = b"{\"lines\": []}";
    let others: [&[(&str, &[u8])]; 7] = [
        &[],
        &[("content-type", b"text/plain")],
        &[("content-type", b"application/x-www-form-urlencoded")],
        &[("content-type", b"application/jsonx")],
        &[("content-type", b"application/json; charset=latin1")],
        &[
            ("content-type", b"application/json"),
            ("content-encoding", b"gzip"),
        ],
        &[("content-type", b"\xff")],
    ];
    for headers in others {
        let reply = stage.ask("POST", "/v1/changes", headers, fine).unwrap();
        assert_eq!(problem(&reply), (415, "media-type".to_owned()), "{headers:?}");
    }
    assert_eq!(run.log().len(), 0);
    let utf8: &[(&str, &[u8])] = &[("content-type", b"Application/JSON;charset=UTF-8")];
    assert_eq!(stage.ask("POST", "/v1/changes", utf8, fine).unwrap().status, 200);
}

#[test]
fn a_run_that_has_ended_is_a_problem() {
    let (run, stage) = stage();
    run.end();
    for target in ["/v1/health", "/v1/status", "/v1/changes", "/metrics"] {
        let reply = get(&stage, target);
        assert_eq!(problem(&reply), (503, "silent".to_owned()), "{target}");
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
}

#[test]
fn an_endpoint_for_metrics_has_nothing_else() {
    let stage = Stage::of(Rehearsal::new("fifo").unwrap(), Offer::Metrics);
    let reply = get(&stage, "/metrics");
    assert_eq!(reply.status, 200);
    assert!(
        reply
            .header("content-type")
            .unwrap()
            .starts_with("application/openmetrics-text")
    );
    for target in ["/v1/status", "/v1/trees", "/v1/openapi.json", "/"] {
        assert_eq!(problem(&get(&stage, target)).0, 404, "{target}");
    }
    assert_eq!(problem(&stage.ask("POST", "/metrics", &[], b"").unwrap()).0, 405);
}

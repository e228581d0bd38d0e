//! The OpenAPI document: that it is one, that it has all routes, and that real answers are as it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use boon::{Compiler, Schemas};
use fairgate_run::openapi;
use fairgate_run::rehearsal::{Rehearsal, Reply, Stage};
use oas3::spec::{ObjectOrReference, ParameterIn};
use serde_json::{Value, json};

const PLACE: &str = "http://fairgate.example/openapi.json";

fn document() -> Value {
    serde_json::from_str(&openapi()).unwrap()
}

/// Returns the methods of each path.
fn operations() -> BTreeMap<String, BTreeSet<String>> {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let methods = |item: &Value| {
        let keys = item.as_object().unwrap().keys();
        keys.map(|key| key.to_uppercase()).collect()
    };
    paths
        .iter()
        .map(|(path, item)| (path.clone(), methods(item)))
        .collect()
}

/// An independent reader of OpenAPI 3.1 understands it, and what the specification demands beyond the form
/// holds.
#[test]
fn it_is_an_openapi_document() {
    let spec = oas3::from_json(openapi()).unwrap();
    assert!(spec.openapi.starts_with("3.1."), "{}", spec.openapi);
    let mut ids = BTreeSet::new();
    for (path, method, operation) in spec.operations() {
        let id = operation.operation_id.clone().unwrap();
        assert!(ids.insert(id.clone()), "{id} is there twice");
        assert!(operation.summary.is_some(), "{id} has no summary");
        let mut in_path: BTreeSet<String> = path
            .split('/')
            .filter_map(|part| Some(part.strip_prefix('{')?.strip_suffix('}')?.to_owned()))
            .collect();
        for parameter in &operation.parameters {
            let ObjectOrReference::Object(parameter) = parameter else {
                panic!("{id}: a parameter is elsewhere");
            };
            if parameter.location == ParameterIn::Path {
                assert_eq!(parameter.required, Some(true), "{id}");
                assert!(in_path.remove(&parameter.name), "{id}: {}", parameter.name);
            }
        }
        assert!(in_path.is_empty(), "{id} does not describe {in_path:?}");
        let responses = operation.responses.as_ref().unwrap();
        assert!(responses.keys().any(|code| code.starts_with('2')), "{id}");
        let has_body = operation.request_body.is_some();
        assert_eq!(
            has_body,
            ["PATCH", "POST", "PUT"].contains(&method.as_str()),
            "{id}"
        );
    }
    assert!(ids.len() >= 13, "{ids:?}");
    let text = openapi();
    for part in text.split("\"$ref\":\"#").skip(1) {
        let pointer = part.split('"').next().unwrap();
        assert!(document().pointer(pointer).is_some(), "{pointer} is nowhere");
    }
}

/// Each path answers exactly the methods that the document has. The routes are made by one function, which
/// takes described handlers only.
#[test]
fn it_has_exactly_the_routes() {
    let source =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http/api/mod.rs")).unwrap();
    assert!(!source.contains(".route(") && source.contains(".routes(routes!("));
    let stage = Stage::new(Rehearsal::new("fifo").unwrap());
    for (path, methods) in operations() {
        let target = path
            .replace("{from}", "left")
            .replace("{name}", "call")
            .replace("{id}", "17");
        let reply = stage.ask("BREW", &target, &[], b"").unwrap();
        assert_eq!(reply.status, 405, "{path}");
        let allowed = reply.header("allow").unwrap().split(',').map(str::to_owned);
        let allowed: BTreeSet<String> = allowed.filter(|method| method != "HEAD").collect();
        assert_eq!(allowed, methods, "{path}");
    }
}

/// docs/api.md lists the same routes.
#[test]
fn the_documentation_has_exactly_the_routes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let text = fs::read_to_string(file).unwrap();
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("| `")) {
        let Some((route, _)) = line.split_once("` |") else {
            continue;
        };
        if let Some((method, path)) = route.split_once(' ')
            && path.starts_with('/')
        {
            listed
                .entry(path.to_owned())
                .or_default()
                .insert(method.to_owned());
        }
    }
    assert_eq!(listed, operations());
}

/// Forbids keys that a schema does not have.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.contains_key("properties") {
                object.entry("additionalProperties").or_insert(json!(false));
            }
            object.values_mut().for_each(close);
        }
        Value::Array(array) => array.iter_mut().for_each(close),
        _ => {}
    }
}

/// Checks an answer against the schema of its operation.
struct Checker {
    document: Value,
    schemas: Schemas,
    compiler: Compiler,
}

impl Checker {
    fn new() -> Checker {
        let mut closed = document();
        close(&mut closed["components"]["schemas"]);
        let mut compiler = Compiler::new();
        compiler.add_resource(PLACE, closed).unwrap();
        Checker {
            document: document(),
            schemas: Schemas::new(),
            compiler,
        }
    }

    fn check(&mut self, method: &str, path: &str, reply: &Reply) {
        let operation = &self.document["paths"][path][method.to_lowercase()];
        let responses = operation["responses"].as_object().unwrap();
        let code = reply.status.to_string();
        let code = if responses.contains_key(&code) {
            code
        } else {
            "default".to_owned()
        };
        let media_type = reply.header("content-type").unwrap().split(';').next().unwrap();
        let content = responses[&code]["content"].as_object().unwrap();
        let known = content
            .keys()
            .find(|known| known.split(';').next() == Some(media_type));
        let known = known.unwrap_or_else(|| panic!("{method} {path} {code} has no {media_type}"));
        let part = |text: &str| text.replace('~', "~0").replace('/', "~1");
        let pointer = format!(
            "{PLACE}#/paths/{}/{}/responses/{code}/content/{}/schema",
            part(path),
            method.to_lowercase(),
            part(known)
        );
        let schema = self.compiler.compile(&pointer, &mut self.schemas).unwrap();
        let value: Value = serde_json::from_slice(&reply.body).unwrap();
        if let Err(error) = self.schemas.validate(&value, schema) {
            panic!("{method} {path} {code}: {error:#}\n{value:#}");
        }
    }
}

/// Every kind of answer, and every kind of problem, is as the document says.
#[test]
fn answers_are_as_described() {
    let tree = "htb default=20 { 1 rate=20mbit { 10 rate=5mbit ceil=20mbit / drr { 1 / fifo; 2 / fifo }; \
                20 rate=15mbit ceil=20mbit / fq_codel } }";
    let stage = Stage::new(Rehearsal::new(tree).unwrap());
    // The second reading: now there are points.
    stage.read();
    let mut checker = Checker::new();
    let json: &[(&str, &[u8])] = &[("content-type", b"application/json")];
    let stale: &[(&str, &[u8])] = &[("content-type", b"application/json"), ("if-match", b"\"x\"")];
    let terms = "{\"terms\": {\"name\": \"call\", \"rate_bps\": 100000, \"burst_bytes\": 2000, \
                 \"filter\": \"protocol=udp\", \"lifetime_ms\": 9000, \"delay_us\": 700000}}";
    let reservable = "{\"from\": \"left\", \"lines\": [\"queue change root tbf rate=10mbit burst=5kb / hfsc \
                      default=1 { 1 ls=10mbit / fq_codel }\"]}";
    let unconfirmed = "{\"lines\": [\"class change 10 rate=4mbit\"], \"confirm_within_s\": 60, \
                       \"because\": \"ticket 17\"}";
    let change = "{\"lines\": [\"class change 10 rate=4mbit\"]}";
    let wrong = "{\"lines\": [\"class delete 99\"]}";
    type Case<'c> = (&'c str, &'c str, &'c str, &'c [(&'c str, &'c [u8])], &'c str, u16);
    let subscriber = "{\"prefixes\": [\"192.0.2.17\"], \"plan\": \"home\"}";
    let list = "{\"subscribers\": [{\"id\": \"18\", \"prefixes\": [\"192.0.2.18\"], \"down\": \"3mbit\", \
                \"up\": \"2mbit\"}]}";
    let place = "/v1/outline/place";
    let (all, one, of_17) = ("/v1/subscribers", "/v1/subscribers/{id}", "/v1/subscribers/17");
    let patches = "{\"subscribers\": [{\"id\": \"18\", \"down\": \"4mbit\"}]}";
    let cases: [Case<'_>; 72] = [
        ("GET", "/v1/health", "/v1/health", &[], "", 200),
        ("GET", "/v1/status", "/v1/status", &[], "", 200),
        ("GET", "/v1/status", "/v1/status?used=true", &[], "", 200),
        ("GET", "/v1/status", "/v1/status?x", &[], "", 400),
        ("GET", "/v1/status/{from}", "/v1/status/left", &[], "", 200),
        ("GET", "/v1/status/{from}", "/v1/status/no", &[], "", 404),
        (
            "GET",
            "/v1/status/{from}/class",
            "/v1/status/left/class?path=10",
            &[],
            "",
            200,
        ),
        (
            "GET",
            "/v1/status/{from}/class",
            "/v1/status/left/class?path=1",
            &[],
            "",
            200,
        ),
        ("GET", "/v1/classes", "/v1/classes?from=left", &[], "", 200),
        (
            "GET",
            "/v1/classes",
            "/v1/classes?from=left&sort=delay&limit=1",
            &[],
            "",
            200,
        ),
        ("GET", "/v1/classes", "/v1/classes?from=no", &[], "", 404),
        ("GET", "/v1/classes", "/v1/classes?sort=rate", &[], "", 400),
        (
            "GET",
            "/v1/history",
            "/v1/history?from=left&seconds=60",
            &[],
            "",
            200,
        ),
        (
            "GET",
            "/v1/history",
            "/v1/history?from=left&class=7",
            &[],
            "",
            404,
        ),
        (
            "GET",
            "/v1/history",
            "/v1/history?from=left&seconds=86401",
            &[],
            "",
            400,
        ),
        ("GET", "/v1/outline", "/v1/outline?from=left", &[], "", 200),
        ("GET", "/v1/outline", "/v1/outline?from=no", &[], "", 404),
        (
            "GET",
            place,
            "/v1/outline/place?from=left&path=10/1",
            &[],
            "",
            200,
        ),
        (
            "GET",
            place,
            "/v1/outline/place?from=left&path=root",
            &[],
            "",
            200,
        ),
        ("GET", place, "/v1/outline/place?from=left&path=99", &[], "", 404),
        (
            "GET",
            "/v1/flows",
            "/v1/flows?sort=round_trip&limit=7",
            &[],
            "",
            200,
        ),
        ("GET", "/v1/flows", "/v1/flows?limit=0", &[], "", 400),
        (
            "GET",
            "/v1/intervals",
            "/v1/intervals?interval_us=999",
            &[],
            "",
            400,
        ),
        ("GET", "/v1/packets", "/v1/packets?seconds=7", &[], "", 404),
        ("GET", "/v1/packets", "/v1/packets?seconds=0", &[], "", 400),
        (
            "POST",
            "/v1/what-if",
            "/v1/what-if",
            json,
            "{\"queues\": [\"fifo\"]}",
            404,
        ),
        ("POST", "/v1/what-if", "/v1/what-if", json, "{\"queue\": 7}", 400),
        ("GET", "/v1/trees", "/v1/trees", &[], "", 200),
        ("GET", "/v1/changes", "/v1/changes", &[], "", 200),
        ("POST", "/v1/changes", "/v1/changes", json, change, 200),
        ("POST", "/v1/changes", "/v1/changes", json, wrong, 422),
        ("POST", "/v1/changes", "/v1/changes", stale, change, 412),
        ("POST", "/v1/changes", "/v1/changes", &[], change, 415),
        (
            "POST",
            "/v1/changes/confirm",
            "/v1/changes/confirm",
            json,
            "{}",
            422,
        ),
        ("POST", "/v1/changes", "/v1/changes", json, unconfirmed, 200),
        (
            "POST",
            "/v1/changes/confirm",
            "/v1/changes/confirm",
            json,
            "{}",
            200,
        ),
        (
            "POST",
            "/v1/changes/confirm",
            "/v1/changes/confirm",
            json,
            "{\"x\": 1}",
            400,
        ),
        // A rehearsal has no file. Without a body, a page of another site could ask for it.
        ("POST", "/v1/reload", "/v1/reload", json, "{}", 422),
        (
            "POST",
            "/v1/reload",
            "/v1/reload",
            json,
            "{\"because\": \"why\"}",
            422,
        ),
        ("POST", "/v1/reload", "/v1/reload", json, "{\"x\": 1}", 400),
        ("POST", "/v1/reload", "/v1/reload", &[], "", 415),
        ("POST", "/v1/changes", "/v1/changes", json, reservable, 200),
        ("POST", "/v1/reservations", "/v1/reservations", json, terms, 201),
        ("GET", "/v1/reservations", "/v1/reservations", &[], "", 200),
        (
            "PUT",
            "/v1/reservations/{name}",
            "/v1/reservations/call",
            json,
            terms,
            200,
        ),
        (
            "POST",
            "/v1/reservations/{name}/refresh",
            "/v1/reservations/call/refresh",
            json,
            "{}",
            200,
        ),
        (
            "DELETE",
            "/v1/reservations/{name}",
            "/v1/reservations/call",
            &[],
            "",
            200,
        ),
        ("PUT", one, of_17, json, subscriber, 201),
        ("PUT", one, of_17, json, subscriber, 200),
        ("PUT", one, of_17, stale, subscriber, 412),
        ("PUT", one, of_17, json, "{\"id\": \"7\"}", 400),
        ("PUT", one, of_17, json, "{}", 422),
        ("GET", one, of_17, &[], "", 200),
        (
            "GET",
            "/v1/subscribers/{id}/now",
            "/v1/subscribers/17/now",
            &[],
            "",
            200,
        ),
        (
            "GET",
            "/v1/subscribers/{id}/now",
            "/v1/subscribers/99/now",
            &[],
            "",
            404,
        ),
        (
            "PATCH",
            one,
            of_17,
            json,
            "{\"down\": \"7mbit\", \"name\": null}",
            200,
        ),
        ("PATCH", one, of_17, json, "{\"colour\": 7}", 400),
        ("PATCH", one, "/v1/subscribers/99", json, "{}", 404),
        ("GET", all, all, &[], "", 200),
        ("DELETE", one, of_17, &[], "", 200),
        ("DELETE", one, of_17, &[], "", 404),
        ("GET", one, of_17, &[], "", 404),
        ("PUT", all, all, json, list, 200),
        ("PUT", all, all, stale, list, 412),
        ("PUT", all, all, json, "{\"subscribers\": [{}]}", 422),
        ("PATCH", all, all, json, patches, 200),
        ("PATCH", all, all, stale, patches, 412),
        (
            "PATCH",
            all,
            all,
            json,
            "{\"subscribers\": [{\"id\": \"7\"}]}",
            422,
        ),
        (
            "PATCH",
            all,
            all,
            json,
            "{\"subscribers\": [{\"down\": \"7mbit\"}]}",
            400,
        ),
        // A rehearsal has no nodes.
        (
            "PATCH",
            "/v1/nodes/{name}",
            "/v1/nodes/AP%203",
            json,
            "{\"down\": \"7mbit\"}",
            404,
        ),
        (
            "PATCH",
            "/v1/nodes/{name}",
            "/v1/nodes/AP%203",
            json,
            "{\"ceil\": 7}",
            400,
        ),
        ("GET", "/v1/openapi.json", "/v1/openapi.json", &[], "", 200),
    ];
    let mut seen = BTreeSet::new();
    for (method, path, target, headers, body, status) in cases {
        let reply = stage.ask(method, target, headers, body.as_bytes()).unwrap();
        assert_eq!(reply.status, status, "{method} {target}: {reply:?}");
        checker.check(method, path, &reply);
        seen.insert(format!("{method} {path}"));
    }
    seen.insert("GET /metrics".to_owned());
    let all = operations();
    let all = all
        .iter()
        .flat_map(|(path, methods)| methods.iter().map(move |method| format!("{method} {path}")));
    assert_eq!(seen, all.collect());
}

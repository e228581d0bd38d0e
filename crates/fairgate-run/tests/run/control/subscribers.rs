//! Subscribers: each has an entity tag of its own.

use fairgate_run::rehearsal::{Rehearsal, Reply, Stage};
use serde_json::{Value, json};

struct Client(Stage);

impl Client {
    fn ask(&self, method: &str, target: &str, tag: Option<&str>, body: Option<Value>) -> Reply {
        let mut headers: Vec<(&str, &[u8])> = Vec::new();
        headers.extend(body.as_ref().map(|_| ("content-type", &b"application/json"[..])));
        headers.extend(tag.map(|tag| ("if-match", tag.as_bytes())));
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.0.ask(method, target, &headers, body.as_bytes()).unwrap()
    }

    fn put(&self, id: u8, tag: Option<&str>) -> Reply {
        let entry = json!({"name": "Ann", "prefixes": [format!("192.0.2.{id}")], "plan": "home"});
        self.ask("PUT", &format!("/v1/subscribers/{id}"), tag, Some(entry))
    }

    fn get(&self, target: &str) -> Value {
        let reply = self.ask("GET", target, None, None);
        assert_eq!(reply.status, 200, "{reply:?}");
        serde_json::from_slice(&reply.body).unwrap()
    }
}

fn client() -> (Rehearsal, Client) {
    let run = Rehearsal::new("fifo").unwrap();
    (run.clone(), Client(Stage::new(run)))
}

fn tag(reply: &Reply) -> &str {
    reply.header("etag").unwrap_or_else(|| panic!("{reply:?}"))
}

#[test]
fn a_tag_changes_with_its_subscriber_alone() {
    let (run, client) = client();
    let added = client.put(17, None);
    assert_eq!(added.status, 201);
    let seen = client.ask("GET", "/v1/subscribers/17", None, None);
    assert_eq!(tag(&seen), tag(&added));
    assert_eq!(client.put(18, None).status, 201);
    let again = client.ask("GET", "/v1/subscribers/17", None, None);
    assert_eq!(tag(&again), tag(&seen));
    let faster = json!({"down": "150mbit"});
    let patched = client.ask(
        "PATCH",
        "/v1/subscribers/17",
        Some(tag(&seen)),
        Some(faster.clone()),
    );
    assert_eq!(patched.status, 200, "{patched:?}");
    assert_ne!(tag(&patched), tag(&seen));
    // Another operator still has the first tag.
    let before = run.revision();
    for (method, body) in [("PATCH", Some(faster)), ("DELETE", None)] {
        let late = client.ask(method, "/v1/subscribers/17", Some(tag(&seen)), body);
        assert_eq!(late.status, 412, "{late:?}");
        assert_eq!(tag(&late), tag(&patched));
    }
    assert_eq!(client.put(17, Some(tag(&seen))).status, 412);
    assert_eq!(run.revision(), before);
    let subscriber = client.get("/v1/subscribers/17");
    assert_eq!(subscriber["subscriber"]["down"], "150mbit");
    assert_eq!(subscriber["subscriber"]["plan"], "home");
    assert_eq!(subscriber["class"], 16);
    // What does not exist has no tag.
    assert_eq!(client.put(19, Some(tag(&seen))).status, 412);
    // A member that is removed comes from the plan.
    let slower = client.ask("PATCH", "/v1/subscribers/17", None, Some(json!({"down": null})));
    assert_eq!(tag(&slower), tag(&seen));
    let gone = client.ask("DELETE", "/v1/subscribers/17", Some(tag(&slower)), None);
    assert_eq!(gone.status, 200, "{gone:?}");
}

#[test]
fn the_whole_list_has_the_tag_of_the_trees() {
    let (run, client) = client();
    client.put(17, None);
    let all = client.ask("GET", "/v1/subscribers", None, None);
    let document: Value = serde_json::from_slice(&all.body).unwrap();
    assert_eq!(document["revision"], run.revision());
    assert_eq!(document["classes"], json!({"17": 16}));
    assert_eq!(document["difference"], Value::Null);
    let other = json!({"subscribers": [
        {"id": "20", "prefixes": ["192.0.2.20"], "down": "5mbit", "up": "5mbit"},
        document["subscribers"][0],
    ]});
    let put = client.ask("PUT", "/v1/subscribers", Some(tag(&all)), Some(other.clone()));
    assert_eq!(put.status, 200, "{put:?}");
    let counts = json!({"added": 1, "removed": 0, "changed": 0, "count": 2});
    let made: Value = serde_json::from_slice(&put.body).unwrap();
    assert_eq!(made["difference"], counts);
    let now = client.get("/v1/subscribers");
    assert_eq!(now["classes"], json!({"17": 16, "20": 17}));
    assert_eq!(now["difference"], counts);
    let late = client.ask("PUT", "/v1/subscribers", Some(tag(&all)), Some(other));
    assert_eq!(late.status, 412);
}

/// Several change together, or none of them.
#[test]
fn several_change_in_one_request() {
    let (run, client) = client();
    for id in 17..20 {
        client.put(id, None);
    }
    let seen = client.ask("GET", "/v1/subscribers", None, None);
    let patch = |tag: Option<&str>, list: Value| {
        client.ask(
            "PATCH",
            "/v1/subscribers",
            tag,
            Some(json!({ "subscribers": list })),
        )
    };
    let down = |id: &str| client.get(&format!("/v1/subscribers/{id}"))["subscriber"]["down"].clone();
    let both = json!([{"id": "17", "down": "5mbit"}, {"id": "19", "down": "6mbit", "name": null}]);
    let made = patch(Some(tag(&seen)), both.clone());
    assert_eq!(made.status, 200, "{made:?}");
    let document: Value = serde_json::from_slice(&made.body).unwrap();
    assert_eq!(
        document["difference"],
        json!({"added": 0, "removed": 0, "changed": 2, "count": 3})
    );
    assert_eq!(document["revision"], run.revision());
    assert_eq!(
        [down("17"), down("18"), down("19")],
        [json!("5mbit"), Value::Null, json!("6mbit")]
    );
    let entry =
        "PATCH subscriber 17: down none -> \"5mbit\"; PATCH subscriber 19: down none -> \"6mbit\", name";
    assert!(run.log().last().unwrap().contains(entry), "{:?}", run.log());
    let before = run.revision();
    assert_eq!(patch(Some(tag(&seen)), both).status, 412);
    for (list, words) in [
        (
            json!([{"id": "17", "down": "7mbit"}, {"id": "21", "down": "7mbit"}]),
            "there is no subscriber `21`",
        ),
        (
            json!([{"id": "17", "down": "7mbit"}, {"id": "18", "down": "fast"}]),
            "`fast` is not a rate",
        ),
        (
            json!([{"id": "17", "down": "7mbit"}, {"id": "17", "up": "7mbit"}]),
            "`17` is given twice",
        ),
    ] {
        let refused = patch(None, list);
        assert_eq!(refused.status, 422, "{refused:?}");
        assert!(
            String::from_utf8_lossy(&refused.body).contains(words),
            "{words}: {refused:?}"
        );
    }
    assert_eq!(run.revision(), before);
    assert_eq!(down("17"), "5mbit");
}

/// What is sent may have been cut off, as a file may.
#[test]
fn a_list_that_removes_too_many_is_refused() {
    let (run, client) = client();
    let many: Vec<Value> = (1..=30)
        .map(|id| json!({"id": id.to_string(), "prefixes": [format!("192.0.2.{id}")], "plan": "home"}))
        .collect();
    let put = |list: &[Value], confirmed: Value| {
        let list = json!({"subscribers": list, "confirmed_removed": confirmed});
        client.ask("PUT", "/v1/subscribers", None, Some(list))
    };
    assert_eq!(put(&many, Value::Null).status, 200);
    let before = run.revision();
    for (count, removed) in [(26, 4), (0, 30)] {
        let refused = put(&many[..count], Value::Null);
        assert_eq!(refused.status, 422, "{refused:?}");
        let document: Value = serde_json::from_slice(&refused.body).unwrap();
        let error = &document["errors"][0];
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("{removed} of the 30 subscribers that run")),
            "{error}"
        );
        let help = error["help"].as_str().unwrap();
        assert!(
            help.contains(&format!("\"confirmed_removed\": {removed} ")),
            "{error}"
        );
        assert_eq!(put(&many[..count], json!(removed - 1)).status, 422);
    }
    assert_eq!(run.revision(), before);
    assert_eq!(put(&many[..27], Value::Null).status, 200);
    let confirmed = put(&many[..7], json!(20));
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    assert_eq!(
        client.get("/v1/subscribers")["subscribers"]
            .as_array()
            .unwrap()
            .len(),
        7
    );
}

/// All mistakes are listed, and nothing is changed.
#[test]
fn a_list_with_mistakes_is_refused() {
    let (run, client) = client();
    client.put(17, None);
    let before = run.revision();
    let wrong = json!({"subscribers": [
        {"id": "20", "prefixes": ["192.0.2.256"], "plan": "home"},
        {"id": "21", "prefixes": ["192.0.2.21"], "plan": "house"},
    ]});
    let refused = client.ask("PUT", "/v1/subscribers", None, Some(wrong));
    assert_eq!(refused.status, 422);
    let document: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(document["errors"].as_array().unwrap().len(), 2, "{document}");
    let twice = json!({"prefixes": ["192.0.2.0/24"], "plan": "home"});
    let refused = client.ask("PUT", "/v1/subscribers/18", None, Some(twice));
    assert_eq!(refused.status, 422);
    assert_eq!(run.revision(), before);
    assert_eq!(
        client.get("/v1/subscribers")["subscribers"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// Identifiers may have any characters.
#[test]
fn an_identifier_is_escaped_in_a_path() {
    let (_, client) = client();
    let entry = json!({"prefixes": ["192.0.2.1"], "plan": "home"});
    let added = client.ask("PUT", "/v1/subscribers/a%2Fb%20c", None, Some(entry));
    assert_eq!(added.status, 201, "{added:?}");
    assert_eq!(client.get("/v1/subscribers")["classes"], json!({"a/b c": 16}));
    assert_eq!(
        client.get("/v1/subscribers/a%2Fb%20c")["subscriber"]["id"],
        "a/b c"
    );
}

/// The class of a subscriber has its name in the documents of the tree, and changes it with the list.
#[test]
fn a_class_has_the_name_of_its_subscriber() {
    let (_, client) = client();
    client.put(17, None);
    let name = || {
        let outline = client.get("/v1/outline?from=left");
        let places = outline["places"].as_array().unwrap().iter();
        let found = places.clone().find(|place| place["path"] == "16");
        let status = client.get("/v1/status");
        let tree = &status["directions"][0]["tree"];
        let class = tree["classes"]
            .as_array()
            .unwrap()
            .iter()
            .find(|class| class["class"] == 16);
        let (class, place) = (class.unwrap(), found.unwrap());
        assert_eq!(class["name"], place["name"]);
        let expected = json!([1, 100_000_000, "17", "home"]);
        let subscriber = &class["subscriber"];
        assert_eq!(
            json!([
                class["node"],
                class["limit_bps"],
                subscriber["id"],
                subscriber["plan"]
            ]),
            expected
        );
        place["name"].clone()
    };
    assert_eq!(name(), "Ann");
    for (body, expected) in [(json!({"name": "Ben"}), "Ben"), (json!({"name": null}), "17")] {
        let patched = client.ask("PATCH", "/v1/subscribers/17", None, Some(body));
        assert_eq!(patched.status, 200, "{patched:?}");
        assert_eq!(name(), expected);
    }
    let shaped = json!({"down_bps": 100_000_000, "up_bps": 20_000_000});
    assert_eq!(client.get("/v1/subscribers")["shaped"], json!({"17": shaped}));
    assert_eq!(client.get("/v1/subscribers/17")["shaped"], shaped);
}

//! The names of metrics. The documentation lists exactly the names that are sent. The dashboard and the
//! alerts use only these names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use fairgate_run::rehearsal::{Rehearsal, Stage};

fn text() -> String {
    let stage = Stage::new(Rehearsal::new("drr default=2 { 1 / fifo; 2 / fifo }").unwrap());
    let reply = stage.ask("GET", "/metrics", &[], b"").unwrap();
    String::from_utf8(reply.body).unwrap()
}

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the type of each family.
fn families(text: &str) -> BTreeMap<&str, &str> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let families: Vec<(&str, &str)> = types.map(|line| line.split_once(' ').unwrap()).collect();
    let found: BTreeMap<&str, &str> = families.iter().copied().collect();
    assert_eq!(found.len(), families.len(), "a family is there twice");
    found
}

/// Returns the names of the series of all families.
fn series(text: &str) -> BTreeSet<String> {
    let name = |(family, kind): (&str, &str)| match kind {
        "counter" => format!("{family}_total"),
        "info" => format!("{family}_info"),
        _ => family.to_owned(),
    };
    families(text).into_iter().map(name).collect()
}

/// Returns the words of a text that begin like metrics.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let metrics = words.filter(|word| word.starts_with("fairgate_"));
    metrics.map(str::to_owned).collect()
}

/// The rules of OpenMetrics 1.0 that a parser depends on.
#[test]
fn it_is_openmetrics_text() {
    let text = text();
    assert!(text.ends_with("# EOF\n"));
    let families = families(&text);
    let mut family = "";
    let mut seen = BTreeSet::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.split(' ');
            match words.next().unwrap() {
                "HELP" | "TYPE" | "UNIT" => family = words.next().unwrap(),
                "EOF" => {}
                other => panic!("{other}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        // OpenMetrics keeps these labels for summaries and histograms: promtool complains of them elsewhere.
        for reserved in ["quantile", "le"] {
            let labels = [format!("{{{reserved}=\""), format!(",{reserved}=\"")];
            assert!(!labels.iter().any(|label| series.contains(label)), "{line}");
        }
        assert!(seen.insert(series), "{series} is there twice");
        assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
        let name = series.split('{').next().unwrap();
        let suffix = name
            .strip_prefix(family)
            .unwrap_or_else(|| panic!("{line} is not of {family}"));
        let expected = match families[family] {
            "counter" => "_total",
            "info" => "_info",
            "gauge" => "",
            other => panic!("{other}"),
        };
        assert_eq!(suffix, expected, "{line}");
    }
    assert!(seen.contains(
        "fairgate_class_sent_bytes_total{from=\"left\",class=\"root\",depth=\"0\",discipline=\"drr\"}"
    ));
    assert!(seen.contains("fairgate_classes_limit"));
}

#[test]
fn the_documentation_lists_exactly_the_metrics() {
    let documentation = file("docs/metrics.md");
    let rows = documentation
        .lines()
        .filter(|line| line.starts_with("| `fairgate_"));
    let listed: BTreeSet<String> = rows
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(listed, series(&text()));
}

#[test]
fn dashboard_and_alerts_use_metrics_that_exist() {
    let series = series(&text());
    let dashboard = file("integrations/grafana/dashboard.json");
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = parsed["panels"].as_array().unwrap();
    let mut places = BTreeSet::new();
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        let targets = panel["targets"].as_array().unwrap();
        for target in targets {
            let expression = target["expr"].as_str().unwrap();
            assert!(!metrics_in(expression).is_empty(), "{title}");
            let depth = |open, close| expression.matches(open).count() == expression.matches(close).count();
            assert!(
                depth('(', ')') && depth('{', '}') && depth('[', ']'),
                "{expression}"
            );
        }
        let place = &panel["gridPos"];
        let place = (place["x"].as_u64().unwrap(), place["y"].as_u64().unwrap());
        assert!(places.insert(place), "{title} covers another panel");
    }
    let alerts = file("integrations/grafana/alerts.yml");
    assert!(alerts.contains("groups:") && alerts.contains("- alert: "));
    for (name, used) in [
        ("dashboard", metrics_in(&dashboard)),
        ("alerts", metrics_in(&alerts)),
    ] {
        let unknown: Vec<&String> = used.difference(&series).collect();
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        assert!(used.len() >= 4, "{name}: {used:?}");
    }
}

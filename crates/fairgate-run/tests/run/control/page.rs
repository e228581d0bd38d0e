//! The web page: who gets it, and what browsers are told.

use fairgate_live::Offer;
use fairgate_run::page::{ASSETS, HEADERS};
use fairgate_run::rehearsal::{Rehearsal, Stage};

fn stage(offer: Offer) -> Stage {
    Stage::of(Rehearsal::new("fifo").unwrap(), offer)
}

/// Every file is answered, with what a browser may do with it, and not again if it is known.
#[test]
fn all_files_are_served() {
    let stage = stage(Offer::Api);
    for asset in ASSETS {
        let reply = stage.ask("GET", asset.path, &[], b"").unwrap();
        assert_eq!((reply.status, &*reply.body), (200, asset.bytes), "{}", asset.path);
        assert_eq!(reply.header("content-type"), Some(asset.media_type));
        for (name, value) in HEADERS {
            assert_eq!(reply.header(name), Some(*value), "{name}");
        }
        let tag = reply.header("etag").unwrap().to_owned();
        let again = stage
            .ask("GET", asset.path, &[("if-none-match", tag.as_bytes())], b"")
            .unwrap();
        assert_eq!((again.status, again.body.len()), (304, 0), "{}", asset.path);
        assert_eq!(again.header("etag"), Some(&*tag));
        let older = stage
            .ask("GET", asset.path, &[("if-none-match", b"\"0\"")], b"")
            .unwrap();
        assert_eq!(older.status, 200);
    }
}

/// The policy lets nothing in that is not named, and no script or style that is part of a document.
#[test]
fn the_policy_is_strict() {
    let (_, policy) = HEADERS
        .iter()
        .find(|(name, _)| *name == "content-security-policy")
        .unwrap();
    let parts: Vec<&str> = policy.split("; ").collect();
    assert_eq!(parts[0], "default-src 'none'");
    for forbidden in ["unsafe", "http:", "https:", "*", "blob:"] {
        assert!(!policy.contains(forbidden), "{forbidden}");
    }
    for ban in ["base-uri", "frame-ancestors", "form-action"] {
        assert!(parts.contains(&&*format!("{ban} 'none'")), "{ban}");
    }
}

/// Other methods and paths are those of the API, and an endpoint of metrics has no page.
#[test]
fn the_page_takes_nothing_from_the_api() {
    let of_api = stage(Offer::Api);
    assert_eq!(of_api.ask("POST", "/", &[], b"").unwrap().status, 404);
    assert_eq!(of_api.ask("GET", "/web/app.js", &[], b"").unwrap().status, 404);
    assert_eq!(of_api.ask("GET", "/../Cargo.toml", &[], b"").unwrap().status, 404);
    let of_metrics = stage(Offer::Metrics);
    assert_eq!(of_metrics.ask("GET", "/", &[], b"").unwrap().status, 404);
    assert_eq!(
        of_metrics
            .ask("GET", "/v1/history?from=left", &[], b"")
            .unwrap()
            .status,
        404
    );
}

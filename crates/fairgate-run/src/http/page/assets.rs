//! The files of the web page.
//!
//! The page is plain HTML, CSS and ECMAScript modules. There is no framework and nothing is generated: the
//! files in `web/` are served as they are. They hold no data and no secrets. All that the page shows comes
//! from the API (`docs/api.md`), and a browser loads nothing from another host: [`HEADERS`] forbids it.
//!
//! `web/vendored` has what others wrote, copied from npm by `web/vendor`; `web/package-lock.json` pins it.

use std::hash::{DefaultHasher, Hasher};
use std::sync::LazyLock;

/// A file of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its path as a browser asks for it. That of the page itself is `/`.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! assets {
    ($($path:literal, $file:literal, $media_type:expr;)*) => {
        &[$(Asset {
            path: $path,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../../../web/", $file)),
        }),*]
    };
}

/// All files of the page.
pub const ASSETS: &[Asset] = assets! {
    "/", "index.html", HTML;
    "/icon.svg", "icon.svg", IMAGE;
    "/style.css", "style.css", STYLE;
    "/app.js", "app.js", SCRIPT;
    "/api.js", "api.js", SCRIPT;
    "/change.js", "change.js", SCRIPT;
    "/charts.js", "charts.js", SCRIPT;
    "/detail.js", "detail.js", SCRIPT;
    "/dialog.js", "dialog.js", SCRIPT;
    "/dom.js", "dom.js", SCRIPT;
    "/find.js", "find.js", SCRIPT;
    "/flows.js", "flows.js", SCRIPT;
    "/format.js", "format.js", SCRIPT;
    "/history.js", "history.js", SCRIPT;
    "/list.js", "list.js", SCRIPT;
    "/login.js", "login.js", SCRIPT;
    "/nodes.js", "nodes.js", SCRIPT;
    "/packets.js", "packets.js", SCRIPT;
    "/pair.js", "pair.js", SCRIPT;
    "/subscriber.js", "subscriber.js", SCRIPT;
    "/subscribers.js", "subscribers.js", SCRIPT;
    "/theme.js", "theme.js", SCRIPT;
    "/tree.js", "tree.js", SCRIPT;
    "/vendored/uPlot.css", "vendored/uPlot.min.css", STYLE;
    "/vendored/uPlot.js", "vendored/uPlot.iife.min.js", SCRIPT;
};

/// What a browser may do with the page. It runs only these scripts and styles, none that is part of a
/// document, speaks only to the API that it comes from, and is in no frame.
pub const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    // A new version is seen at once; the entity tag saves the transfer.
    ("cache-control", "no-cache"),
];

/// Returns the file at this path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

impl Asset {
    /// Returns its entity tag: it is another one if any file of the page is another one, so that a browser
    /// never has files of two versions.
    pub fn tag() -> &'static str {
        static TAG: LazyLock<String> = LazyLock::new(|| {
            let mut hasher = DefaultHasher::new();
            for asset in ASSETS {
                hasher.write(asset.bytes);
            }
            format!("\"{:016x}\"", hasher.finish())
        });
        &TAG
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The page, with all that it loads, is this small without compression.
    const MOST_BYTES: usize = 200_000;

    #[test]
    fn the_page_is_light() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.bytes.len()).sum();
        assert!(bytes < MOST_BYTES, "{bytes}");
    }

    /// Every file is served, and nothing in them names another host, or is a script or style in a document:
    /// the browser would refuse it.
    #[test]
    fn the_files_are_complete_and_need_nothing_else() {
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let mut files: BTreeSet<Vec<u8>> = BTreeSet::new();
        for folder in [web.clone(), web.join("vendored")] {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let is_file = path
                    .extension()
                    .is_some_and(|end| ["html", "js", "css", "svg"].iter().any(|known| end == *known));
                if is_file {
                    files.insert(fs::read(&path).unwrap());
                }
            }
        }
        let served: BTreeSet<Vec<u8>> = ASSETS.iter().map(|asset| asset.bytes.to_vec()).collect();
        assert_eq!(served.len(), ASSETS.len());
        assert!(
            files == served,
            "{} files, {} are served",
            files.len(),
            served.len()
        );
        for asset in ASSETS
            .iter()
            .filter(|asset| !asset.path.starts_with("/vendored/"))
        {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let without_namespace = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!without_namespace.contains("://"), "{} names a host", asset.path);
            if asset.media_type == HTML {
                assert!(!text.contains("<style") && !text.contains(" style="));
                let handlers = text.split(" on").skip(1).filter(|rest| {
                    rest.trim_start_matches(|letter: char| letter.is_ascii_lowercase())
                        .starts_with('=')
                });
                assert_eq!(handlers.count(), 0, "{}", asset.path);
                assert!(!text.contains("<script>"));
            }
        }
    }

    /// What a file loads is served.
    #[test]
    fn what_a_file_loads_is_served() {
        let mut loads = 0;
        for asset in ASSETS
            .iter()
            .filter(|asset| !asset.path.starts_with("/vendored/"))
        {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let starts = ["from \"./", "src=\"/", "href=\"/"];
            for start in starts {
                for part in text.split(start).skip(1) {
                    let path = format!("/{}", part.split('"').next().unwrap());
                    assert!(find(&path).is_some(), "{} loads {path}", asset.path);
                    loads += 1;
                }
            }
        }
        assert!(loads > 20, "{loads}");
    }
}

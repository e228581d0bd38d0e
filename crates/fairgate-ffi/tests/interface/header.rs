//! `include/fairgate.h` is what cbindgen makes of the source. `make header` writes it anew.

use std::path::Path;

#[test]
fn header_is_made_from_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new()
        .with_crate(folder)
        .with_config(config)
        .generate()
        .expect("the source can be read");
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = without_rust_safety(&String::from_utf8(made).expect("text"));
    let place = folder.join("include/fairgate.h");
    if std::env::var_os("FAIRGATE_WRITE_HEADER").is_some() {
        std::fs::write(&place, &made).expect("the header can be written");
    }
    let kept = std::fs::read_to_string(place).expect("the header");
    assert!(
        kept == made,
        "include/fairgate.h is not what the source says: run `make header`"
    );
}

/// Leaves out the sections for Rust about safety. In C the head of the file has the rules.
fn without_rust_safety(header: &str) -> String {
    let mut kept = String::new();
    let mut is_skipping = false;
    for line in header.lines() {
        let comment = line.trim_start().strip_prefix("//");
        if comment.is_some_and(|comment| comment.trim() == "# Safety") {
            is_skipping = true;
            // The empty comment before the heading belongs to it.
            if kept.trim_end().ends_with("\n//") {
                kept.truncate(kept.trim_end().len() - "\n//".len());
                kept.push('\n');
            }
        }
        is_skipping &= comment.is_some();
        if !is_skipping {
            // Rust marks code with `, C does not. Arguments keep their names.
            kept.push_str(&line.replace('`', ""));
            kept.push('\n');
        }
    }
    kept
}

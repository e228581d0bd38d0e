//! What tells the runs of sweeps apart.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};
use toml::{Table, Value};

/// Returns the identity of a run: 32 hexadecimal digits that depend on the scenario, the seed, and the
/// version of this crate. The order of keys does not matter, and neither does the file's own seed and
/// `[sweep]`.
pub fn identity(file: &Table, seed: u64) -> String {
    let mut digest = SipHasher13::new();
    feed_text(&mut digest, env!("CARGO_PKG_VERSION"));
    digest.write_u64(seed);
    feed_table(
        &mut digest,
        file,
        &|path| matches!(path, ["sweep"] | ["simulate", "seed"]),
        &mut Vec::new(),
    );
    format!("{:032x}", u128::from(digest.finish128()))
}

fn feed_table<'t>(
    digest: &mut SipHasher13,
    table: &'t Table,
    is_left_out: &dyn Fn(&[&str]) -> bool,
    path: &mut Vec<&'t str>,
) {
    let mut entries: Vec<(&String, &Value)> = table.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    digest.write(b"{");
    for (key, value) in entries {
        path.push(key);
        if !is_left_out(path) {
            feed_text(digest, key);
            feed(digest, value, is_left_out, path);
        }
        path.pop();
    }
    digest.write(b"}");
}

/// Each kind of value begins with a letter of its own, so that no two values give the same bytes.
fn feed<'t>(
    digest: &mut SipHasher13,
    value: &'t Value,
    is_left_out: &dyn Fn(&[&str]) -> bool,
    path: &mut Vec<&'t str>,
) {
    match value {
        Value::String(text) => feed_text(digest, text),
        Value::Integer(number) => {
            digest.write(b"i");
            digest.write_i64(*number);
        }
        Value::Float(number) => {
            digest.write(b"f");
            digest.write_u64(number.to_bits());
        }
        Value::Boolean(flag) => digest.write(if *flag { b"t" } else { b"n" }),
        Value::Datetime(time) => {
            digest.write(b"d");
            feed_text(digest, &time.to_string());
        }
        Value::Array(list) => {
            digest.write(b"[");
            for value in list {
                feed(digest, value, is_left_out, path);
            }
            digest.write(b"]");
        }
        Value::Table(table) => feed_table(digest, table, is_left_out, path),
    }
}

fn feed_text(digest: &mut SipHasher13, text: &str) {
    digest.write(b"s");
    digest.write_u64(text.len() as u64);
    digest.write(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str, seed: u64) -> String {
        identity(&toml::from_str(text).unwrap(), seed)
    }

    #[test]
    fn only_what_changes_a_run_changes_its_identity() {
        let one = id("[simulate]\nduration = \"1s\"\nseed = 3\n[queue.a]\nlimit = 5", 1);
        let same = "[queue.a]\nlimit = 5\n[sweep]\nseeds = 9\n[simulate]\nseed = 4\nduration = \"1s\"";
        assert_eq!(one, id(same, 1));
        assert_eq!(one.len(), 32);
        assert_ne!(one, id(same, 2));
        for other in [
            "limit = 5.0",
            "limit = \"5\"",
            "limit = 6",
            "limit = [5]",
            "seed = 5",
            "",
        ] {
            let text = format!("[queue.a]\n{other}\n[simulate]\nduration = \"1s\"");
            assert_ne!(one, id(&text, 1), "{other}");
        }
    }
}

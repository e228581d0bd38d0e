//! What programs answer that change nothing a script can see later.

use std::fs;
use std::io;
use std::path::Path;

use super::Answer;
use crate::record::machine::{Device, Stored, entries};

/// modprobe and insmod: every module can be loaded. Two of them bring interfaces.
pub(super) fn load(words: &[String], machine: &Stored) -> io::Result<Answer> {
    let named = words.iter().find(|word| !word.starts_with('-'));
    let is_other = words.iter().any(|word| {
        matches!(
            word.as_str(),
            "-r" | "--remove" | "-n" | "--dry-run" | "-c" | "--showconfig"
        )
    });
    let Some(module) = named.filter(|_| !is_other) else {
        return Ok(Answer::default());
    };
    let module = module.rsplit('/').next().unwrap_or(module);
    let module = module.split(".ko").next().unwrap_or(module).replace('-', "_");
    fs::create_dir_all(machine.sys.join("module").join(&module))?;
    // The numbers of interfaces without a parameter: `numifbs` in drivers/net/ifb.c, `numdummies` in dummy.c.
    let (parameter, default) = match module.as_str() {
        "ifb" => ("numifbs=", 2),
        "dummy" => ("numdummies=", 1),
        _ => return Ok(Answer::default()),
    };
    let given = words
        .iter()
        .find_map(|word| word.strip_prefix(parameter)?.parse().ok());
    machine.change(|machine| {
        for index in 0..given.unwrap_or(default) {
            let name = format!("{module}{index}");
            if machine.find(&name).is_none() {
                machine.devices.push(Device::new(&name, &module));
            }
        }
    })?;
    Ok(Answer::default())
}

/// Returns the rules that a firewall program reads from a file or from standard input.
pub(super) fn rules(name: &str, words: &[String]) -> io::Result<Vec<String>> {
    let reads = name.ends_with("-restore") || name == "nft";
    if !reads {
        return Ok(Vec::new());
    }
    let file = words
        .iter()
        .position(|word| word == "-f" || word == "--file")
        .and_then(|at| words.get(at + 1));
    let text = match file.map(String::as_str) {
        Some("-" | "/dev/stdin") => io::read_to_string(io::stdin())?,
        Some(path) => fs::read_to_string(path)?,
        None if name.ends_with("-restore") => io::read_to_string(io::stdin())?,
        None => return Ok(Vec::new()),
    };
    Ok(text.lines().map(str::to_owned).collect())
}

pub(super) fn other(name: &str, words: &[String]) -> Answer {
    let has = |option: &[&str]| words.iter().any(|word| option.contains(&word.as_str()));
    match name {
        "lsmod" => Answer::output(modules()),
        "ethtool" => ethtool(words),
        "sysctl" => sysctl(words),
        _ if name.ends_with("tables") || name.ends_with("-nft") || name.ends_with("-legacy") => {
            if has(&["-V", "--version"]) {
                let version = if name.ends_with("legacy") {
                    "legacy"
                } else {
                    "nf_tables"
                };
                let program = name.split('-').next().unwrap_or(name);
                Answer::output(format!("{program} v1.8.9 ({version})\n"))
            } else if has(&["-C", "--check"]) {
                Answer::error(
                    1,
                    format!("{name}: Bad rule (does a matching rule exist in that chain?).\n"),
                )
            } else {
                Answer::default()
            }
        }
        "nft" if has(&["-v", "--version"]) => Answer::output("nftables v1.0.6 (Lester Gooch #5)\n"),
        "nft" if has(&["list"]) && has(&["table", "chain"]) => {
            Answer::error(1, "Error: No such file or directory\n")
        }
        _ => Answer::default(),
    }
}

fn modules() -> String {
    let mut text = "Module                  Size  Used by\n".to_owned();
    for module in entries(Path::new("/sys/module")) {
        text += &format!("{module:<19} {:>8}  0\n", 16384);
    }
    text
}

fn ethtool(words: &[String]) -> Answer {
    let options = ["-k", "--show-features", "--show-offload"];
    let device = words
        .iter()
        .find(|word| !word.starts_with('-'))
        .map_or("", String::as_str);
    if words.iter().any(|word| options.contains(&word.as_str())) {
        let features = [
            "rx-checksumming",
            "tx-checksumming",
            "scatter-gather",
            "tcp-segmentation-offload",
            "generic-segmentation-offload",
            "generic-receive-offload",
            "large-receive-offload",
        ];
        let features: String = features
            .iter()
            .map(|feature| format!("{feature}: on\n"))
            .collect();
        return Answer::output(format!("Features for {device}:\n{features}"));
    }
    if words.iter().any(|word| word.starts_with('-')) {
        return Answer::default();
    }
    Answer::output(format!(
        "Settings for {device}:\n\tSpeed: 1000Mb/s\n\tDuplex: Full\n\tLink detected: yes\n"
    ))
}

/// Settings are read from `/proc`. They are never written, because most belong to the whole machine.
fn sysctl(words: &[String]) -> Answer {
    let is_bare = words
        .iter()
        .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('n'));
    let mut text = String::new();
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        if let Some((name, value)) = word.split_once('=') {
            text += &format!("{name} = {value}\n");
            continue;
        }
        let path = Path::new("/proc/sys").join(word.replace('.', "/"));
        match fs::read_to_string(&path) {
            Ok(value) if is_bare => text += &value,
            Ok(value) => text += &format!("{word} = {value}"),
            Err(_) => {
                let path = path.display();
                let error = format!("sysctl: cannot stat {path}: No such file or directory\n");
                return Answer::error(1, error);
            }
        }
    }
    Answer::output(text)
}

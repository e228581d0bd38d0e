//! What a run that was started as root may still do.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use fairgate_live::testbed::Network;
use nix::sys::signal::Signal;

use crate::common::{live, until};
use crate::run::{BACKENDS, PLAIN, Run, call, plain};

/// The numbers of capabilities in linux/capability.h.
const DAC_OVERRIDE: u64 = 1 << 1;
const IPC_LOCK: u64 = 1 << 14;
pub(crate) const NEEDED: u64 = 1 << 12 | 1 << 13 | 1 << 39;

/// Checks the privileges of all threads of a run.
pub(crate) fn holds(run: &Run, expected: u64) {
    let process = run.program.as_ref().expect("the run has not ended").id();
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let mut checked = 0;
    for thread in threads {
        // A thread that answered a client may have ended in between.
        let Ok(status) = fs::read_to_string(thread.unwrap().path().join("status")) else {
            continue;
        };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.expect("proc(5) has this field").trim()
        };
        for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
            let held = u64::from_str_radix(field(set), 16).unwrap();
            assert_eq!(held, expected, "{set} {status}");
        }
        for set in ["CapInh:", "CapAmb:"] {
            assert_eq!(u64::from_str_radix(field(set), 16), Ok(0), "{status}");
        }
        assert_eq!(field("NoNewPrivs:"), "1");
        checked += 1;
    }
    assert!(checked > 0, "the run has at least its first thread");
}

#[test]
fn only_what_forwarding_needs_is_kept() {
    let Some(_watched) = live("only_what_forwarding_needs_is_kept") else {
        return;
    };
    let network = Network::build().unwrap();
    for (backend, needed) in BACKENDS.into_iter().zip([NEEDED, NEEDED | IPC_LOCK, NEEDED]) {
        let run = Run::start(&network.router, &plain(backend));
        holds(&run, needed);
        assert!(!run.said().contains("cap_dac_override"));
        run.stop();
    }
}

/// Root may read the file only by `cap_dac_override`.
#[test]
fn a_file_of_another_user_can_be_read_again() {
    let Some(_watched) = live("a_file_of_another_user_can_be_read_again") else {
        return;
    };
    let network = Network::build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("private.toml");
    fs::write(&file, PLAIN).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    chown(&file, Some(65534), Some(65534)).unwrap();
    let run = Run::of_file(&network.router, &file).wait();
    holds(&run, NEEDED | DAC_OVERRIDE);
    let note = format!("(cap_dac_override) is kept, because {}", file.display());
    // The run forwards before its log has written all lines.
    until("the note is written", || run.said().contains(&note));
    run.signal(Signal::SIGHUP);
    until("the file is read again", || {
        run.said().contains("its queues are active")
    });
    run.stop();
}

/// The files that a script names belong to it.
#[test]
fn a_file_that_a_script_names_can_be_read_again() {
    let Some(_watched) = live("a_file_that_a_script_names_can_be_read_again") else {
        return;
    };
    let network = Network::build().unwrap();
    // The status socket of a script has the name of its device, and another test has that of `left`.
    for words in ["left down", "left name lte0", "lte0 up"] {
        let words: Vec<&str> = words.split(' ').collect();
        call(&network.router, "ip", &[&["link", "set"], &words[..]].concat());
    }
    let folder = tempfile::tempdir().unwrap();
    let private = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(65534), Some(65534)).unwrap();
        file
    };
    let numbers: Vec<String> = (0..100).map(|number| (number * 100).to_string()).collect();
    let table = private("lte.dist", &numbers.join(" "));
    let profile = private("radio.profile", "samples 10\nprob delay\n0 0\n1 5\n");
    let cases = [
        (
            "tc",
            "tc qdisc add dev lte0 root netem delay 5ms 1ms distribution lte\n".to_owned(),
            table,
        ),
        (
            "dummynet",
            format!(
                "pipe 1 config bw 50Mbit/s profile {}\nadd 100 pipe 1 ip from any to any out via lte0\n",
                profile.display()
            ),
            profile,
        ),
    ];
    for (language, script, named) in cases {
        let run = Run::of_script_with(&network.router, language, &script, ["right", "lte0"], |command| {
            command.env("TC_LIB_DIR", folder.path());
        });
        holds(&run, NEEDED | DAC_OVERRIDE);
        let note = format!("(cap_dac_override) is kept, because {}", named.display());
        until("the note is written", || run.said().contains(&note));
        run.signal(Signal::SIGHUP);
        until("the script and its file are read again", || {
            run.said().contains("its queues are active")
        });
        run.stop();
    }
}

//! `fairgate tc --record`.

// Only a part of it is used here.
#[allow(dead_code)]
#[path = "../../../fairgate-live/src/testing/deadline.rs"]
mod deadline;
mod walls;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};

use deadline::{say, until};

use super::{fairgate, text};

/// A folder with a script in it.
struct Scripts(tempfile::TempDir);

impl Scripts {
    fn new(script: &str) -> Scripts {
        let scripts = Scripts(tempfile::tempdir().expect("a temporary folder"));
        scripts.write("shape.sh", script);
        scripts
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).expect("the folder is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
        path
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs `fairgate tc` with these options and the script with these arguments. `None` if this machine
    /// allows no namespaces, which is said.
    fn record(&self, options: &[&str], arguments: &[&str]) -> Option<(i32, String, String)> {
        let mut words = vec!["tc"];
        words.extend(options);
        words.extend(["--record", "./shape.sh"]);
        words.extend(arguments);
        let output = fairgate(&words).current_dir(self.path()).output();
        let Output {
            status,
            stdout,
            stderr,
        } = output.expect("the program was built");
        let (stdout, stderr) = (text(&stdout).to_owned(), text(&stderr).to_owned());
        let allowed = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
        if status.code() == Some(3) && allowed.trim() == "0" {
            say(&format!("SKIPPED: this machine allows no namespaces: {stderr}"));
            return None;
        }
        Some((status.code().expect("no signal ended it"), stdout, stderr))
    }
}

/// The script is one that operators have: variables, arithmetic, functions, queries, modules, a firewall.
const SHAPE: &str = "#!/bin/sh
set -eu
DEV=$1
UP=$2
TC=$(command -v tc)
run() { \"$TC\" \"$@\"; }
modprobe ifb numifbs=1
ip link set dev ifb0 up
[ -d /sys/class/net/\"$DEV\" ] || { echo \"no $DEV\" >&2; exit 7; }
ip -o link show dev \"$DEV\" | grep -q 'state UP'
tc qdisc show dev \"$DEV\" | grep -q htb && exit 8
iptables -t mangle -A POSTROUTING -o \"$DEV\" -j MARK --set-mark 1
run qdisc del dev \"$DEV\" root 2>/dev/null || true
run qdisc add dev \"$DEV\" root handle 1: htb default 20
run class add dev \"$DEV\" parent 1: classid 1:1 htb rate \"${UP}\"kbit
for id in 10 20; do
  /sbin/tc class add dev \"$DEV\" parent 1:1 classid 1:$id htb \\
    rate $((UP / 4))kbit ceil ${UP}kbit
done
tc qdisc show dev \"$DEV\" | grep -q 'qdisc htb 1:'
printf 'qdisc add dev %s parent 1:10 handle 10: pfifo limit 9\\n' \"$DEV\" > batch.tc
printf '# the rest\\nqdisc add dev %s parent 1:20 sfq\\n' \"$DEV\" >> batch.tc
tc -batch batch.tc
ip link add test0 type ifb && tc qdisc add dev test0 root nothing && ip link del test0
";

const EXPANDED: &str = "
qdisc add dev wan0 root handle 1: htb default 20
class add dev wan0 parent 1: classid 1:1 htb rate 4000kbit
class add dev wan0 parent 1:1 classid 1:10 htb rate 1000kbit ceil 4000kbit
class add dev wan0 parent 1:1 classid 1:20 htb rate 1000kbit ceil 4000kbit
qdisc add dev wan0 parent 1:10 handle 10: pfifo limit 9
qdisc add dev wan0 parent 1:20 sfq
";

#[test]
fn a_script_is_the_commands_that_it_gives() {
    let expected = fairgate(&["tc", EXPANDED])
        .output()
        .expect("the program was built");
    for shell in ["#!/bin/sh", "#!/bin/bash"] {
        let scripts = Scripts::new(&SHAPE.replace("#!/bin/sh", shell));
        let Some((code, stdout, stderr)) = scripts.record(&["--with-device", "wan0"], &["wan0", "4000"])
        else {
            return;
        };
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(stdout, text(&expected.stdout), "{shell}");
        let note = "warning: the script sets marks, DSCPs or classes by iptables (once)";
        assert!(stderr.contains(note), "{stderr}");
        assert!(
            !scripts.path().join("batch.tc").exists(),
            "files of the script stay inside"
        );
    }
}

/// The location is a line of the script, with the text as the shell expanded it.
#[test]
fn mistakes_are_shown_where_the_script_gives_them() {
    for (shell, name) in [("#!/bin/bash", "$2"), ("#!/bin/sh", "${2}")] {
        let scripts = Scripts::new(&format!(
            "{shell}\nwrapped() {{\n  tc \"$@\"\n}}\ntc qdisc add dev $1 root handle 1: prio\n\
             for band in 1 2; do\n  wrapped qdisc add dev $1 parent 1:$band {name}\ndone\n\
             echo 'qdisc add dev e parent 1:3 bad3' > b\ntc -b b\n"
        ));
        let Some((code, _, stderr)) = scripts.record(&[], &["e", "bad"]) else {
            return;
        };
        assert_eq!(code, 2, "{stderr}");
        let script = if shell == "#!/bin/bash" {
            "./shape.sh"
        } else {
            "shape.sh"
        };
        assert!(stderr.contains(&format!("{script}:7:")), "{shell}: {stderr}");
        assert!(
            stderr.contains("7 │ tc qdisc add dev e parent 1:2 bad"),
            "{stderr}"
        );
        assert!(stderr.contains("[b:1:"), "{stderr}");
        assert!(
            stderr.contains("4 lines were read, 3 of them refused"),
            "{stderr}"
        );
        let (_, stdout, _) = scripts.record(&["--json"], &["e", "bad"]).expect("it ran before");
        let document: serde_json::Value = serde_json::from_str(&stdout).expect("a JSON document");
        assert_eq!(document["errors"][0]["line"], 7, "{stdout}");
    }
}

/// Everything that a script could change outside is a copy, or is refused.
#[test]
fn a_script_changes_nothing() {
    let scripts = Scripts::new(
        "#!/bin/sh
touch made
echo 1 > /etc/fairgate-was-here
echo 0 > /proc/sys/kernel/randomize_va_space
hostname fairgate-was-here
kill -9 -1 2>/dev/null
ls /dev /sys/class/net /run > seen
ping -c 1 -W 1 192.0.2.1 && tc qdisc add dev e root reached
grep -q 'eth\\|wlan\\|enp' /proc/net/dev && tc qdisc add dev e root seen
[ -e /dev/mem ] && tc qdisc add dev e root memory
tc qdisc add dev e root pfifo limit 3
exit 4
",
    );
    let before = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux");
    let Some((code, stdout, stderr)) = scripts.record(&["--tree"], &[]) else {
        return;
    };
    assert_eq!(
        (code, stdout.as_str()),
        (0, "queue e\n  fifo limit=3\n"),
        "{stderr}"
    );
    assert!(
        stderr.contains("warning: the script failed (exit status: 4)"),
        "{stderr}"
    );
    assert!(!scripts.path().join("made").exists() && !scripts.path().join("seen").exists());
    assert!(!Path::new("/etc/fairgate-was-here").exists());
    let after = fs::read_to_string("/proc/sys/kernel/hostname").expect("Linux");
    assert_eq!(before, after);
    let random = fs::read_to_string("/proc/sys/kernel/randomize_va_space").expect("Linux");
    assert_ne!(random.trim(), "0");
}

/// A recording that is killed leaves its control groups to the next one. So nobody looks for such groups
/// meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a process with this word in its command line runs on this machine.
fn runs(word: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("Linux").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .any(|line| line.trim_end() == word)
}

#[test]
fn no_process_stays_behind() {
    let seconds = 100_000 + std::process::id();
    let scripts = Scripts::new(&format!(
        "#!/bin/bash\ntrap '' INT TERM HUP\nsleep {seconds} &\nsleep {seconds}\n"
    ));
    let Some((code, _, stderr)) = scripts.record(&["--time-limit", "1s"], &[]) else {
        return;
    };
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("`./shape.sh` did not end within 1 s"), "{stderr}");
    let word = format!("sleep {seconds}");
    until("the script ends at its time limit", || !runs(&word));

    let _alone = alone();
    let mut command = fairgate(&["tc", "--record", "./shape.sh"]);
    let mut program = command
        .current_dir(scripts.path())
        .spawn()
        .expect("the program was built");
    until("the script runs", || runs(&word));
    program.kill().expect("it runs");
    program.wait().expect("a child of this process");
    until("the script ends with the program", || !runs(&word));
    let next = Scripts::new("#!/bin/sh\ntc qdisc add dev e root pfifo limit 3\n");
    // Whoever inherits the ended stages may take a moment to see that.
    until("the next recording removes its control groups", || {
        next.record(&[], &[]).expect("it ran before");
        walls::groups().is_empty()
    });
}

#[test]
fn a_script_must_exist() {
    let scripts = Scripts::new("#!/bin/sh\n");
    fs::remove_file(scripts.path().join("shape.sh")).expect("it was written");
    let Some((code, _, stderr)) = scripts.record(&[], &[]) else {
        return;
    };
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("there is no file and no program `./shape.sh`"),
        "{stderr}"
    );
}

/// Commands for another network namespace are recorded with its name.
#[test]
fn commands_in_namespaces_are_recorded() {
    let scripts = Scripts::new(
        "#!/bin/sh
ip netns add router
ip netns exec router tc qdisc add dev r-out root handle 1: htb default 10
ip netns exec router tc class add dev r-out parent 1: classid 1:10 htb rate 10mbit
nsenter --net=/run/netns/router -- tc qdisc add dev r-in root fq_codel
tc -n router qdisc add dev r-mid root sfq
tc qdisc add dev h-in root fq_codel
",
    );
    let devices = ["--tree", "--with-device", "h-in", "--with-device", "r-out"];
    let Some((code, stdout, stderr)) = scripts.record(&devices, &[]) else {
        return;
    };
    assert_eq!(code, 0, "{stderr}");
    for part in [
        "queue r-out",
        "rate=10mbit",
        "queue r-in",
        "queue r-mid",
        "queue h-in",
    ] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    assert!(
        stderr.contains("`r-out` is in the network namespace `router`"),
        "{stderr}"
    );
}
